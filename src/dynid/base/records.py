"""Records of what can be added: found in the modules of a folder, and in packages of others by their entry points."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import pkgutil
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from dynid.errors import DynidError

__all__ = ["collect", "joined", "listed"]

T = TypeVar("T")


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
    return tuple(dict.fromkeys([*own, *sorted(point.name for point in importlib.metadata.entry_points(group=group))]))


def collect(package: str, kind: type[T], group: str = "") -> dict[str, T]:
    """All records of a kind by their names: those in the modules of a package, then those of other packages.

    Parameters
    ----------
    package : str
        Package whose modules hold records at their top, any number each.
    kind : type
        Class of the records, which has a field `name`.
    group : str, optional
        Group of entry points of other packages; each names one record.

    Returns
    -------
    dict of str to record
        In alphabetical order of the modules and, within a module, in the order in which they are written.

    Raises
    ------
    DynidError
        If two records have the same name, or an entry point cannot be loaded or names something else.
    """
    found: list[T] = []
    for name in _modules(package):
        # A module may import the record of another one.
        own = vars(importlib.import_module(f"{package}.{name}")).values()
        found += [record for record in own if isinstance(record, kind) and not any(record is x for x in found)]
    return joined(found, kind, group)


def joined(records: Iterable[T], kind: type[T], group: str) -> dict[str, T]:
    """Records by their names, then those of other packages.

    Parameters
    ----------
    records : iterable of record
        Records of this package.
    kind : type
        Class of the records, which has a field `name`.
    group : str
        Group of entry points of other packages, each named as its record is.

    Returns
    -------
    dict of str to record

    Raises
    ------
    DynidError
        If two records have the same name, or an entry point cannot be loaded or names something else.
    """
    points = sorted(importlib.metadata.entry_points(group=group)) if group else []
    found: dict[str, T] = {}
    for record in (*records, *(_loaded(point, kind) for point in points)):
        if _name(record) in found:
            raise DynidError(f"there are two records {kind.__name__} of the name '{_name(record)}'")
        found[_name(record)] = record
    return found


def _modules(package: str) -> Iterator[str]:
    """Names of the modules of a package, in alphabetical order."""
    spec = importlib.util.find_spec(package)
    assert spec is not None and spec.submodule_search_locations is not None
    yield from sorted(module.name for module in pkgutil.iter_modules(spec.submodule_search_locations))


def _loaded(point: importlib.metadata.EntryPoint, kind: type[T]) -> T:
    """The record of an entry point."""
    try:
        record = point.load()
    except Exception as error:
        raise DynidError(f"the entry point '{point.name}' ({point.value}) cannot be loaded: {error}") from error
    if not isinstance(record, kind) or _name(record) != point.name:
        raise DynidError(f"the entry point '{point.name}' ({point.value}) is no {kind.__name__} of this name")
    return record


def _name(record: Any) -> str:
    return str(record.name)
