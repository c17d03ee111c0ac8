"""Columns from lists of records (JSON objects, ROS messages)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.recording.table import Unusable

__all__ = ["columns_of", "flat"]

_PLAIN = (bool, int, float, str, np.bool_, np.integer, np.floating, np.ndarray)


def flat(record: Any, prefix: str = "") -> dict[str, Any]:
    """Numbers, texts and lists of a nested record under dotted names; lists of records are left out."""
    out: dict[str, Any] = {}
    for key, value in _items(record):
        if isinstance(value, _PLAIN) or value is None:
            out[prefix + key] = value
        elif isinstance(value, Sequence):
            if not any(isinstance(x, Mapping) or is_dataclass(x) for x in value):
                out[prefix + key] = value
        else:
            out.update(flat(value, f"{prefix}{key}."))
    return out


def _items(record: Any) -> Iterator[tuple[str, Any]]:
    """Fields of a mapping or a dataclass."""
    if isinstance(record, Mapping):
        yield from record.items()
    elif is_dataclass(record):
        yield from ((f.name, getattr(record, f.name)) for f in fields(record) if not f.name.startswith("__"))


def columns_of(records: Sequence[Mapping[str, Any]]) -> dict[str, NDArray[np.float64] | Unusable]:
    """Columns of flat records, by field: numbers (N,), lists (N, width); missing values are NaN."""
    names = dict.fromkeys(name for record in records for name in record)
    return {name: _column([record.get(name) for record in records]) for name in names}


def _column(values: list[Any]) -> NDArray[np.float64] | Unusable:
    """One field of all records."""
    try:
        return np.array([np.nan if x is None else x for x in values], dtype=float)
    except (TypeError, ValueError):
        pass
    # Lists of different lengths, or missing in some records, are padded with NaN, so that the rows count as bad.
    width = max((len(x) for x in values if _is_list(x)), default=0)
    out = np.full((len(values), width), np.nan)
    try:
        for row, value in zip(out, values, strict=True):
            if value is not None:
                row[: len(value)] = [np.nan if x is None else x for x in value]
    except (TypeError, ValueError):
        return Unusable("contains no numbers")
    return out if width else Unusable("contains no numbers")


def _is_list(value: Any) -> bool:
    """Whether a value is a list or an array."""
    return isinstance(value, np.ndarray) or (isinstance(value, Sequence) and not isinstance(value, str))
