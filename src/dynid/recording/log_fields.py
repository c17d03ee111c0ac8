"""Fields of a log format: their types, and how their values are brought into plain Python types."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypedDict

import numpy as np

from dynid.recording.run import NAMED_CONTACT, NAMED_WRENCH, SIGNALS

__all__ = [
    "Columns",
    "LogFields",
    "PerJoint",
    "check_signals",
    "is_signal",
    "plain_columns",
    "plain_float",
    "plain_per_joint",
]

PerJoint = float | tuple[float, ...]
Columns = str | int | tuple[str | int, ...]


class LogFields(TypedDict, total=False):
    """The fields of `LogFormat` as keyword arguments, in every form that `LogFormat` accepts."""

    time: str | int | None
    rate: float | None
    columns: Mapping[str, str | int | Sequence[str | int]] | None
    units: Mapping[str, str | Sequence[str]] | None
    scale: Mapping[str, float | Sequence[float]] | None
    sign: Mapping[str, float | Sequence[float]] | None
    gain: float | Sequence[float] | None
    motor_side: bool | str | Collection[str]
    offset: Mapping[str, float | Sequence[float]] | None
    joints: Sequence[str | int] | None
    rows: str | Sequence[int | None] | None
    bad_rows: str
    topic: str | None


def is_signal(name: Any) -> bool:
    """Whether this is the name of a signal, wrenches of named sensors and contacts of named frames included."""
    return isinstance(name, str) and (name in SIGNALS or is_named(name))


def is_named(signal: str) -> bool:
    """Whether a signal is the wrench of a named sensor or the contact of a named frame."""
    return signal.startswith((NAMED_WRENCH, NAMED_CONTACT)) and signal not in (NAMED_WRENCH, NAMED_CONTACT)


def check_signals(field: str, value: Any, known: Sequence[str], wrenches: bool = True) -> None:
    """Refuse anything but a mapping from known signals."""
    if not isinstance(value, Mapping):
        raise ValueError(f'{field} must name its signals, such as {field}={{"q": ...}}, got {value!r:.60}')
    for signal in value:
        if signal not in known and not (wrenches and is_signal(signal) and is_named(str(signal))):
            hint = ", the clock is given with time=" if field == "columns" and signal in ("t", "time") else ""
            raise ValueError(f"{field}: signal '{signal}' is unknown, use {', '.join(known)}{hint}")


def plain_columns(signal: str, spec: Any) -> Any:
    """Columns of one signal in plain Python types."""
    if isinstance(spec, str):
        return spec
    parts = [spec] if isinstance(spec, int | np.integer) else list(spec) if isinstance(spec, Iterable) else [None]
    plain = [int(x) if isinstance(x, np.integer) else x for x in parts]
    if not all(isinstance(x, str | int) and not isinstance(x, bool) for x in plain):
        raise ValueError(f"columns of {signal} must be names, indices, a pattern or a range, got {spec!r:.60}")
    return plain[0] if isinstance(spec, int | np.integer) else tuple(plain)


def plain_float(value: Any) -> float | None:
    """The value as a float, None where it is not a number."""
    if isinstance(value, str | bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def plain_per_joint(field: str, signal: str, value: Any) -> PerJoint:
    """A finite number, or a tuple of one number per joint."""
    many = isinstance(value, Iterable) and not isinstance(value, str) and np.ndim(value) > 0  # type: ignore[arg-type]
    numbers = [plain_float(x) for x in (value if many else [value])]
    finite = [x for x in numbers if x is not None and np.isfinite(x)]
    if len(finite) != len(numbers):
        raise ValueError(f"{field} of {signal} must be a finite number or one per joint, got {value!r:.60}")
    if field == "sign" and any(abs(x) != 1 for x in finite):
        raise ValueError(f"sign of {signal} must be 1 or -1, got {value!r:.60}")
    return tuple(finite) if many else finite[0]
