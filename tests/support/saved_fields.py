"""Objects that were saved and loaded: every field must be the same, in nested objects too."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynid.results import SavedResult


def assert_same_fields(ours: Any, theirs: Any, where: str = "") -> None:
    """Walk over all fields, entries and items, and compare them exactly."""
    assert type(ours) is type(theirs), f"{where}: {type(ours)} and {type(theirs)}"
    if is_dataclass(theirs):
        for field in fields(theirs):
            assert_same_fields(getattr(ours, field.name), getattr(theirs, field.name), f"{where}.{field.name}")
    elif isinstance(theirs, np.ndarray):
        assert ours.dtype == theirs.dtype and np.array_equal(ours, theirs, equal_nan=ours.dtype.kind == "f"), where
    elif isinstance(theirs, Mapping):
        assert list(ours) == list(theirs), where
        for key in theirs:
            assert_same_fields(ours[key], theirs[key], f"{where}[{key!r}]")
    elif isinstance(theirs, tuple | list):
        assert len(ours) == len(theirs), where
        for k, (one, two) in enumerate(zip(ours, theirs, strict=True)):
            assert_same_fields(one, two, f"{where}[{k}]")
    elif isinstance(theirs, functools.partial):
        assert ours.func is theirs.func, where
        assert_same_fields((ours.args, ours.keywords), (theirs.args, theirs.keywords), where)
    else:
        assert ours == theirs, f"{where}: {ours!r} and {theirs!r}"


def assert_no_defaults(given: Any, except_for: Collection[str] = ()) -> None:
    """Every field with a default has another value, so that a field that is not saved cannot go unnoticed."""
    for field in fields(given):
        default = field.default if field.default is not MISSING else None
        if field.default_factory is not MISSING:
            default = field.default_factory()
        elif field.default is MISSING:
            continue
        value = getattr(given, field.name)
        same = value is default or (not isinstance(value, np.ndarray) and not is_dataclass(value) and value == default)
        if is_dataclass(value) and is_dataclass(default):
            same = repr(value) == repr(default)
        assert same == (field.name in except_for), f"{field.name} has its default {default!r}"


def survived(result: SavedResult, folder: Path) -> Any:
    """A result after it was saved and loaded, with the same stored fields and the same types."""
    result.save(folder / "result.json")
    again = type(result).load(folder / "result.json")
    assert again.stored() == result.stored()
    for x in fields(result):  # type: ignore[arg-type]
        before, after = getattr(result, x.name), getattr(again, x.name)
        # A whole number in a field of floats becomes one.
        assert type(after) is type(before) or after == before, x.name
    return again
