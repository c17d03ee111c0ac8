"""Reference trajectories at the rate of a controller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.batch import for_kernel
from dynid.errors import InvalidShape, InvalidType, InvalidValue, Mismatch, MissingData, TooFew
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.model import Robot
from dynid.signals.filters import derivative

__all__ = ["Reference", "as_reference"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reference:
    """A reference trajectory, sampled at the rate of the controller.

    Attributes
    ----------
    rate : float
        Sampling rate (Hz).
    q, v, a : array of shape (K, n)
        Positions (rad or m), velocities and accelerations.

    Raises
    ------
    DataError
        If the arrays differ in shape or hold values that are not finite.
    """

    rate: float
    q: Array
    v: Array
    a: Array

    def __post_init__(self) -> None:
        for name in ("q", "v", "a"):
            value = for_kernel(getattr(self, name))
            if value.shape != np.shape(self.q) or value.ndim != 2 or not np.all(np.isfinite(value)):
                raise InvalidShape(
                    f"a reference's {name} must be finite and of the same shape (K, n) as q, got {value.shape}",
                    "reference",
                )
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.q)


def as_reference(given: Any, robot: Robot, rate: float, duration: float | None = None) -> Reference:
    """A reference at `rate` Hz from a motion, a run or recording with reference signals, or positions (K, n)."""
    if isinstance(given, Reference):
        reference = _at_rate(given, rate)
    elif hasattr(given, "sample"):
        _, q, v, a = given.sample(rate)
        reference = Reference(rate, q, v, a)
    elif isinstance(given, Recording | Run):
        reference = _recorded(given, rate)
    else:
        reference = _from_positions(given, rate)
    if reference.q.shape[1] != robot.n:
        raise InvalidShape(
            f"the reference has shape {reference.q.shape}, robot '{robot.name}' needs (K, {robot.n})", "reference"
        )
    if duration is not None:
        ticks = round(duration * rate)
        if not 2 <= ticks <= len(reference):
            raise TooFew(f"the reference lasts {len(reference) / rate:g} s, but duration is {duration:g} s", "duration")
        reference = Reference(rate, reference.q[:ticks], reference.v[:ticks], reference.a[:ticks])
    _inside(reference, robot)
    return reference


def whole_ratio(fast: float, slow: float, what: str) -> int:
    """Whole ratio of two rates (Hz)."""
    if not slow > 0:
        raise InvalidValue(f"{what}: a rate is positive, got {slow:g} Hz", "rate")
    ratio = fast / slow
    if round(ratio) < 1 or abs(ratio - round(ratio)) > 1e-6 * ratio:
        raise InvalidValue(f"{what}: {fast:g} Hz is not a whole multiple of {slow:g} Hz", "rate")
    return round(ratio)


def _at_rate(given: Reference, rate: float) -> Reference:
    """The reference itself, refused if its rate differs from the controller's."""
    if abs(given.rate - rate) > 1e-9 * rate:
        raise Mismatch(
            f"the reference is sampled at {given.rate:g} Hz, the controller runs at {rate:g} Hz", "reference"
        )
    return given


def _from_positions(given: ArrayLike, rate: float) -> Reference:
    """A reference from positions, differentiated numerically."""
    try:
        q = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise InvalidType(
            "the reference is neither a motion, a recording nor an array of positions", "reference"
        ) from None
    if q.ndim != 2 or len(q) < 3 or not np.all(np.isfinite(q)):
        raise InvalidShape(
            f"the reference must be finite positions (K, n) with at least three rows, got shape {q.shape}", "reference"
        )
    v = derivative(q, rate)
    return Reference(rate, q, v, derivative(v, rate))


def _recorded(given: Recording | Run, rate: float) -> Reference:
    """The recorded reference, interpolated by cubic splines where the controller is faster."""
    if isinstance(given, Recording):
        if len(given.runs) != 1:
            raise InvalidValue(
                f"a reference is one run, the recording has {len(given.runs)}; give one of its runs", "reference"
            )
        given = given.runs[0]
    if given.reference is None:
        raise MissingData(
            f"run '{given.name}' has no reference signals, which a closed-loop simulation needs", "reference"
        )
    recorded = (len(given) - 1) / (given.t[-1] - given.t[0])
    factor = whole_ratio(rate, recorded, f"run '{given.name}': controller and recorded reference")
    if factor == 1:
        return _from_positions(given.reference, rate)
    from scipy.interpolate import CubicSpline

    curve = CubicSpline(np.arange(len(given)) / recorded, given.reference)
    t = np.arange((len(given) - 1) * factor + 1) / rate
    return Reference(rate, curve(t), curve(t, 1), curve(t, 2))


def _inside(reference: Reference, robot: Robot) -> None:
    """Refuse a reference beyond the position limits."""
    for i, name in enumerate(robot.coordinates):
        limits, q = robot.limits[name], reference.q[:, i]
        room = 1e-6 * max(1.0, abs(limits.upper - limits.lower)) if np.isfinite(limits.upper - limits.lower) else 0.0
        if q.min() < limits.lower - room or q.max() > limits.upper + room:
            raise InvalidValue(
                f"the reference takes '{name}' from {q.min():.4g} to {q.max():.4g}, beyond its limits "
                f"[{limits.lower:.4g}, {limits.upper:.4g}]",
                "reference",
            )
