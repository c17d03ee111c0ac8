"""Records that other packages add to those of dynid, by entry points; each is loaded when it is used."""

from __future__ import annotations

import logging
import sys
from collections.abc import Container
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, Protocol, TypeVar

from dynid.errors import Duplicate, DynidError, InvalidType, Mismatch, Unsupported

__all__ = ["Plugins"]

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
