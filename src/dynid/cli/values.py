"""Values written as text on the command line: numbers, numbers per joint, pairs, ranges, lists of names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Literal, cast

from dynid.errors import InvalidType, InvalidValue
from dynid.reading import whole_number

__all__ = [
    "HeldOut",
    "Source",
    "checked",
    "coulomb_slope",
    "cutoff",
    "decimation",
    "draws",
    "key_kilograms",
    "key_numbers",
    "key_values",
    "kilograms",
    "min_velocity",
    "name_or_number",
    "names",
    "number",
    "number_or_per_joint",
    "numbers",
    "row_range",
    "source",
    "time_column",
]

_FEWEST, _MOST = 2, 1_000_000

Source = str | dict[str, Path]

# Sizes in SI units that no option goes beyond; the squares and counts that follow from them do not overflow.
_SMALLEST, _LARGEST = 1e-15, 1e15


@dataclass(frozen=True)
class HeldOut:
    """What is kept for validation: other logs, a share of each run, or rows START:STOP."""

    logs: Sequence[Source] = ()
    share: float | None = None
    rows: str | None = None


def checked(value: float, option: str) -> float:
    """A number that can be computed with."""
    if not isfinite(value):
        raise InvalidValue(f"{option} takes a finite number, got {value}", option)
    if value and not _SMALLEST <= abs(value) <= _LARGEST:
        raise InvalidValue(
            f"{option} takes 0 or a number of a size between {_SMALLEST:g} and {_LARGEST:g}, got {value:g}", option
        )
    return value


def draws(count: int) -> int:
    """A number of draws: fewer have no standard deviation, more take too much computer memory."""
    if not _FEWEST <= count <= _MOST:
        raise InvalidValue(f"--draws takes {_FEWEST} to {_MOST} draws, got {count}", "draws")
    return count


def number(text: str, option: str) -> float:
    """One number."""
    try:
        value = float(text)
    except ValueError:
        raise InvalidType(f"{option} takes a number, got '{text:.60}'", option) from None
    return checked(value, option)


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
            raise InvalidValue(f"{option} takes SIGNAL=VALUE, got '{item}'", option)
        out[key] = value
    return out


def key_numbers(items: Sequence[str] | None, option: str) -> dict[str, float | tuple[float, ...]]:
    """SIGNAL=NUMBER pairs, or SIGNAL=NUMBER,NUMBER,... with one number per joint."""
    return {k: number_or_per_joint(v, f"{option} {k}") for k, v in key_values(items, option).items()}


def kilograms(text: str, option: str) -> float:
    """A mass in kg, with or without its unit."""
    try:
        value = float(text.strip().removesuffix("kg"))
    except ValueError:
        raise InvalidValue(f"{option} takes a mass in kg such as 16 or 16kg, got '{text:.60}'", option) from None
    return checked(value, option)


def key_kilograms(items: Sequence[str] | None, option: str) -> dict[str, float]:
    """LINK=KG pairs."""
    out = {}
    for item in items or ():
        link, equals, mass = item.rpartition("=")
        if not equals or not link:
            raise InvalidValue(f"{option} takes LINK=KG, got '{item:.60}'", option)
        out[link] = kilograms(mass, f"{option} {link}")
    return out


def row_range(text: str, option: str) -> tuple[int | None, int | None]:
    """START:STOP, either of which may be left out."""
    start, colon, stop = text.partition(":")
    ends = whole_number(start), whole_number(stop)
    if not colon or any(x and end is None for x, end in zip((start, stop), ends, strict=True)):
        raise InvalidValue(f"{option} takes START:STOP, got '{text:.60}'", option)
    return ends


def time_column(text: str) -> str | int | None:
    """Name or number of the time column; None for "none"."""
    return None if text == "none" else name_or_number(text)


def name_or_number(text: str) -> str | int:
    """A number where a text is one, such as that of a column or of a joint, else the text."""
    found = whole_number(text)
    return text if found is None else found


def source(text: str) -> Source:
    """A path, or a mapping from signal to path written as q=A,torque=B."""
    if "=" not in text or Path(text).exists():
        return text
    return {k: Path(v) for k, v in key_values(text.split(","), "DATA").items()}


def coulomb_slope(text: str) -> float | tuple[float, ...] | Literal["auto", "exact"]:
    """Slope of Coulomb friction, one number or one per joint, "auto" or "exact"."""
    if text in ("auto", "exact"):
        return cast("Literal['auto', 'exact']", text)
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
        raise InvalidValue(f"--decimate takes whole numbers of at least 1, got {value:g}", "decimate")
    return int(value)


def min_velocity(text: str) -> float | tuple[float, ...] | str:
    """Lowest velocity, one number or one per joint, or a percentage of the highest velocity."""
    return text if text.endswith("%") else number_or_per_joint(text, "--min-velocity")
