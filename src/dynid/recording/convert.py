"""From what a file holds to joint-side SI units: units, scale, sign, gain, transmission, offset, in this order."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.recording.names import named_unit
from dynid.robot.model import Robot

__all__ = ["TIME_UNITS", "Conversion", "PerJoint"]

Array = NDArray[np.float64]
PerJoint = float | Sequence[float]

# How many of them make a second: dividing by these is exact where multiplying by 1e-9 is not.
TIME_UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
_ANGLES = {"rad": 1.0, "deg": np.pi / 180, "rev": 2 * np.pi}
_LENGTHS = {"m": 1.0, "mm": 1e-3}
_TORQUES = {"Nm": 1.0, "N m": 1.0, "mNm": 1e-3, "kNm": 1e3}
_FORCES = {"N": 1.0, "kN": 1e3}
_CURRENTS = {"A": 1.0, "mA": 1e-3}
_SPEEDS = {f"{unit}/s": x for unit, x in _ANGLES.items()} | {"rpm": 2 * np.pi / 60}
_ACCELERATIONS = {f"{unit}/s2": x for unit, x in _ANGLES.items()}
# Units of turning and of sliding joints, signal by signal.
_UNITS: dict[str, tuple[dict[str, float], dict[str, float]]] = {
    "q": (_ANGLES, _LENGTHS),
    "v": (_SPEEDS, {f"{unit}/s": x for unit, x in _LENGTHS.items()}),
    "a": (_ACCELERATIONS, {f"{unit}/s2": x for unit, x in _LENGTHS.items()}),
    "reference": (_ANGLES, _LENGTHS),
    "torque": (_TORQUES, _FORCES),
    "current": (_CURRENTS, _CURRENTS),
}
_COUNTED = ("q", "v", "a", "reference")
_MOTOR_SIDE = ("q", "v", "a", "reference", "torque")


@dataclass(frozen=True)
class Conversion:
    """What is done to the signals of a file, each option by signal; see `load_recording`."""

    robot: Robot | None = None
    units: Mapping[str, str | Sequence[str]] | None = None
    scale: Mapping[str, PerJoint] | None = None
    sign: Mapping[str, PerJoint] | None = None
    gain: PerJoint | None = None
    motor_side: bool | Collection[str] = False
    offset: Mapping[str, PerJoint] | None = None

    def __post_init__(self) -> None:
        for what in ("units", "scale", "sign", "offset"):
            given = getattr(self, what)
            known = ("t", *_UNITS) if what == "units" else tuple(_UNITS)
            if given is not None and not isinstance(given, Mapping):
                raise DataError(f'{what} must name its signals, such as {what}={{"q": ...}}')
            wrenches = {s for s in given or () if s.partition(":")[0] == "wrench" and what != "units"}
            unknown = sorted(set(given or ()) - set(known) - wrenches)
            if unknown:
                raise DataError(f"{what} knows {', '.join(known)}, not '{unknown[0]}'")
        if not isinstance(self.motor_side, bool):
            chosen = {self.motor_side} if isinstance(self.motor_side, str) else set(self.motor_side)
            if not chosen <= set(_MOTOR_SIDE):
                raise DataError(f"motor_side knows {', '.join(_MOTOR_SIDE)}, not '{min(chosen - set(_MOTOR_SIDE))}'")
            object.__setattr__(self, "motor_side", frozenset(chosen))
        if self.motor_side and (self.robot is None or self.robot.transmission is None):
            raise DataError("motor_side needs a robot with a transmission (robot.with_transmission)")

    def on_motor_side(self, signal: str) -> bool:
        """Whether the file holds this signal (a current: the torque made of it) as the motors see it."""
        if signal == "current" and self.gain is not None:
            signal = "torque"
        if isinstance(self.motor_side, bool):
            return self.motor_side and signal in _MOTOR_SIDE
        return signal in self.motor_side

    def time_unit(self) -> str | None:
        unit = (self.units or {}).get("t")
        if unit is not None and unit not in TIME_UNITS:
            raise DataError(f"unit '{unit}' of t is unknown: use {', '.join(TIME_UNITS)}")
        return str(unit) if unit is not None else None

    def to_si(self, signal: str, values: Array, columns: Sequence[str], file: str) -> Array:
        """Values (N, channel) in SI units, still on the side and with the sign of the file."""
        given = (self.units or {}).get(signal)
        if given is None:
            named = next((unit for unit in (named_unit(signal, c) for c in columns) if unit), None)
            if named:
                raise DataError(
                    f"{file}: column '{columns[0]}' says {named}: give units={{'{signal}': '{named}'}}, or what it is"
                )
            return values
        units = [given] * values.shape[1] if isinstance(given, str) else list(given)
        if len(units) != values.shape[1]:
            raise DataError(f"units of {signal} are {len(units)}, its columns {values.shape[1]}")
        return values * [self._factor(signal, unit, k) for k, unit in enumerate(units)]

    def _factor(self, signal: str, unit: str, k: int) -> float:
        turning, sliding = _UNITS[signal]
        slides = self._slides(signal, k)
        known = {**turning, **sliding} if slides is None else sliding if slides else turning
        if unit.startswith("counts:") and signal in _COUNTED and not slides:
            try:
                return 2 * np.pi / float(unit.removeprefix("counts:"))
            except (ValueError, ZeroDivisionError):
                raise DataError(f"unit '{unit}' of {signal} needs the counts of a turn: counts:4096") from None
        if unit not in known:
            counted = ", counts:4096" if signal in _COUNTED and not slides else ""
            whose = "" if slides is None or self.robot is None else f", joint '{self.robot.coordinates[k]}'"
            raise DataError(f"unit '{unit}' of {signal}{whose} is unknown: use {', '.join(known)}{counted}")
        return known[unit]

    def _slides(self, signal: str, k: int) -> bool | None:
        """Whether channel k belongs to a sliding joint; None where that cannot be told."""
        if self.robot is None or self.on_motor_side(signal):
            return None
        kinds = [joint.kind for joint in self.robot.joints if joint.mimic is None]
        return kinds[k] == "prismatic" if k < len(kinds) else None

    def to_joints(self, signals: dict[str, Array]) -> dict[str, Array]:
        """All signals (N, joint) of the joints, with their final sign and zero; currents with a gain give torques."""
        out = dict(signals)
        self._check_used(out)
        for what in ("scale", "sign"):
            for signal, factor in (getattr(self, what) or {}).items():
                out[signal] = out[signal] * _per_joint(what, signal, factor, out[signal].shape[1])
        if self.gain is not None:
            if "current" not in out or "torque" in out:
                raise DataError("gain turns currents into torques: the recording must have currents and no torques")
            out["torque"] = out["current"] * _per_joint("gain", "current", self.gain, out["current"].shape[1])
            if self.on_motor_side("torque"):
                del out["current"]  # currents of motors have no place beside torques of joints
        if self.robot is not None and self.robot.transmission is not None:
            T = self.robot.transmission.matrix
            for signal in [s for s in out if self.on_motor_side(s)]:
                # tau = T tau_motor and v_motor = T' v, so v = inv(T') v_motor.
                out[signal] = out[signal] @ (T.T if signal == "torque" else np.linalg.pinv(T))
        for signal, shift in (self.offset or {}).items():
            out[signal] = out[signal] + _per_joint("offset", signal, shift, out[signal].shape[1])
        return out

    def _check_used(self, signals: Mapping[str, Any]) -> None:
        """Every option must reach a signal."""
        made = {"torque"} if self.gain is not None else set()
        for what in ("units", "scale", "sign", "offset"):
            late = made if what == "offset" else set()
            lost = set(getattr(self, what) or ()) - set(signals) - late - {"t"}
            if lost:
                raise DataError(f"{what} is given for {min(lost)}, which the recording does not have")
        if not isinstance(self.motor_side, bool):
            lost = set(self.motor_side) - set(signals) - made
            if lost:
                raise DataError(f"motor_side is given for {min(lost)}, which the recording does not have")


def _per_joint(what: str, signal: str, value: Any, count: int) -> Array:
    try:
        out = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise DataError(f"{what} of {signal} must be a number or one a joint, got {value!r:.60}") from None
    if out.shape not in ((), (count,)) or not np.all(np.isfinite(out)):
        raise DataError(f"{what} of {signal} must be a finite number or {count} of them, got {value!r:.60}")
    if what == "sign" and not np.all(np.abs(out) == 1):
        raise DataError(f"sign of {signal} must be 1 or -1, got {value!r:.60}")
    return out
