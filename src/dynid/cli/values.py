"""Values written as text on the command line: numbers, numbers per joint, pairs, ranges, lists of names."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Literal, cast

from dynid.errors import DataError

__all__ = [
    "Source",
    "coulomb_slope",
    "cutoff",
    "decimation",
    "key_numbers",
    "key_values",
    "min_velocity",
    "names",
    "number",
    "number_or_per_joint",
    "numbers",
    "row_range",
    "source",
    "time_column",
]

Source = str | dict[str, Path]


def number(text: str, option: str) -> float:
    """One number."""
    try:
        value = float(text)
    except ValueError:
        raise DataError(f"{option} takes a number, got '{text}'") from None
    if not isfinite(value):
        raise DataError(f"{option} takes a finite number, got '{text}'")
    return value


def numbers(text: str | None, option: str) -> list[float] | None:
    """Numbers separated by commas; None where the option is left out."""
    return None if text is None else [number(part, option) for part in text.split(",")]


def number_or_per_joint(text: str | None, option: str) -> float | tuple[float, ...]:
    """One number for all joints or one per joint; 0 where the option is left out."""
    found = numbers(text, option) or [0.0]
    return found[0] if len(found) == 1 else tuple(found)


def names(text: str | None) -> list[str]:
    """Names separated by commas."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def key_values(items: Sequence[str] | None, option: str) -> dict[str, str]:
    """SIGNAL=VALUE pairs."""
    out = {}
    for item in items or ():
        key, equals, value = item.partition("=")
        if not equals or not key or not value:
            raise DataError(f"{option} takes SIGNAL=VALUE, got '{item}'")
        out[key] = value
    return out


def key_numbers(items: Sequence[str] | None, option: str) -> dict[str, float | tuple[float, ...]]:
    """SIGNAL=NUMBER pairs, or SIGNAL=NUMBER,NUMBER,... with one number per joint."""
    return {k: number_or_per_joint(v, f"{option} {k}") for k, v in key_values(items, option).items()}


def row_range(text: str, option: str) -> tuple[int | None, int | None]:
    """START:STOP, either of which may be left out."""
    start, colon, stop = text.partition(":")
    if not colon or not all(x.isdigit() or not x for x in (start, stop)):
        raise DataError(f"{option} takes START:STOP, got '{text}'")
    return (int(start) if start else None, int(stop) if stop else None)


def time_column(text: str) -> str | int | None:
    """Name or number of the time column; None for "none"."""
    if text == "none":
        return None
    return int(text) if text.isdigit() else text


def source(text: str) -> Source:
    """A path, or a mapping from signal to path written as q=A,torque=B."""
    if "=" not in text or Path(text).exists():
        return text
    return {k: Path(v) for k, v in key_values(text.split(","), "DATA").items()}


def coulomb_slope(text: str) -> float | tuple[float, ...] | Literal["auto", "exact"]:
    """Slope of Coulomb friction, one number or one per joint, "auto" or "exact"."""
    if text in ("auto", "exact"):
        return cast(Literal["auto", "exact"], text)
    return number_or_per_joint(text, "--coulomb-slope")


def cutoff(text: str) -> float | str | None:
    """Cut-off frequency in Hz, "auto", or None for "none"."""
    return None if text == "none" else text if text == "auto" else number(text, "--cutoff")


def decimation(text: str) -> tuple[int, ...] | str:
    """Decimation factors, "auto", or none of them for "none"."""
    if text in ("none", "auto"):
        return () if text == "none" else text
    return tuple(_factor(x) for x in numbers(text, "--decimate") or ())


def _factor(value: float) -> int:
    """A decimation factor."""
    if not value.is_integer() or value < 1:
        raise DataError(f"--decimate takes whole numbers of at least 1, got {value:g}")
    return int(value)


def min_velocity(text: str) -> float | tuple[float, ...] | str:
    """Lowest velocity, one number or one per joint, or a percentage of the highest velocity."""
    return text if text.endswith("%") else number_or_per_joint(text, "--min-velocity")
