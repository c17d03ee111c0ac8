"""Records of what can be added: found in the modules of a folder, and in packages of others by their entry points."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import pkgutil
import sys
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, Protocol, TypeVar

from dynid.errors import Duplicate, DynidError, InvalidType, Mismatch, Unsupported

__all__ = ["Plugins", "collect", "joined", "listed"]

logger = logging.getLogger("dynid")


class _Named(Protocol):
    """A record with a name."""

    @property
    def name(self) -> str: ...


Record = TypeVar("Record", bound=_Named)


@dataclass(frozen=True)
class Plugins(Generic[Record]):
    """The records of one kind that other packages add.

    Attributes
    ----------
    group : str
        Group of entry points, such as "dynid.methods". An entry point has the name of its record.
    kind : type
        Type of the records.
    word : str
        What a record is called in messages, such as "method".
    """

    group: str
    kind: type[Record]
    word: str

    def packages(self) -> dict[str, str]:
        """Name of the package by the name of each record, of which none is loaded."""
        return {point.name: _package(point) for point in _points(self.group, tuple(sys.path))}

    def find(self, name: str) -> Record | None:
        """The record of a name, None where no package adds one.

        Raises
        ------
        DynidError
            If it cannot be loaded or is no record of this kind and name, or if two packages add it.
        """
        points = [point for point in _points(self.group, tuple(sys.path)) if point.name == name]
        if not points:
            return None
        if len(points) > 1:
            both = " and ".join(f"'{_package(point)}'" for point in points)
            raise Duplicate(f"packages {both} add a {self.word} '{name}' each: uninstall one of them")
        whose = f"{self.word} '{name}' of package '{_package(points[0])}'"
        try:
            record = points[0].load()
        except Exception as error:  # whatever the code of another package raises
            raise Unsupported(f"{whose} cannot be loaded: {type(error).__name__}: {error}") from error
        if not isinstance(record, self.kind):
            raise InvalidType(f"{whose} is a {type(record).__name__}, not a {self.kind.__name__}")
        if record.name != name:
            raise Mismatch(f"{whose} calls itself '{record.name}': an entry point has the name of its record")
        return record

    def all(self, own: Container[str]) -> dict[str, Record]:
        """The records that can be loaded; a warning names the package of each other one."""
        found = {}
        for name, package in self.packages().items():
            if name in own:
                _warn(f"{self.word} '{name}' of package '{package}' is not used: dynid has one of this name")
                continue
            try:
                record = self.find(name)
            except DynidError as error:
                _warn(str(error))
                continue
            assert record is not None
            found[name] = record
        return found


@cache
def _points(group: str, _: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """The entry points of a group, for a search path."""
    return tuple(entry_points(group=group))


def _package(point: EntryPoint) -> str:
    return point.module.partition(".")[0] if point.dist is None else point.dist.name


@cache
def _warn(message: str) -> None:
    """Log a warning, once."""
    logger.warning("%s", message)


def listed(package: str, group: str) -> tuple[str, ...]:
    """Names of records without loading them: modules of a package, then entry points, each in alphabetical order.

    Parameters
    ----------
    package : str
        Package with one module per record, named as the record is.
    group : str
        Group of entry points of other packages, named as their records are.

    Returns
    -------
    tuple of str
    """
    own = [name for name in _modules(package) if not name.startswith("_")]
    return tuple(dict.fromkeys([*own, *(point.name for point in _points(group, tuple(sys.path)))]))


def collect(package: str, kind: type[Record], group: str, word: str) -> dict[str, Record]:
    """The records in the modules of a package, then those of other packages that can be loaded.

    Parameters
    ----------
    package : str
        Package whose modules hold records at their top, any number each.
    kind : type
        Class of the records.
    group, word : str
        As those of `Plugins`.

    Returns
    -------
    dict of str to record
        In alphabetical order of the modules and, within a module, in the order in which they are written.
    """
    found: list[Record] = []
    for name in _modules(package):
        # A module may import the record of another one.
        own = vars(importlib.import_module(f"{package}.{name}")).values()
        found += [record for record in own if isinstance(record, kind) and not any(record is x for x in found)]
    return joined(found, kind, group, word)


def joined(records: Iterable[Record], kind: type[Record], group: str, word: str) -> dict[str, Record]:
    """Records of dynid by their names, then those of other packages that can be loaded.

    Parameters
    ----------
    records : iterable of record
        Records of dynid.
    kind : type
        Class of the records.
    group, word : str
        As those of `Plugins`.

    Returns
    -------
    dict of str to record
        A warning names each package whose record cannot be loaded.

    Raises
    ------
    DynidError
        If two records of dynid have the same name.
    """
    found: dict[str, Record] = {}
    for record in records:
        if record.name in found:
            raise Duplicate(f"there are two records {kind.__name__} of the name '{record.name}'")
        found[record.name] = record
    return found | Plugins(group, kind, word).all(found)


def _modules(package: str) -> Iterator[str]:
    """Names of the modules of a package, in alphabetical order."""
    spec = importlib.util.find_spec(package)
    assert spec is not None and spec.submodule_search_locations is not None
    yield from sorted(module.name for module in pkgutil.iter_modules(spec.submodule_search_locations))
