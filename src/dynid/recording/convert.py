"""From the values of a file to joint-side SI units: units, scale, sign, gain, transmission, offset, in this order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import InvalidShape, MissingArgument, NotApplicable, UnknownName, keyword, named
from dynid.recording.log_fields import PerJoint
from dynid.recording.log_format import LogFormat
from dynid.recording.names import named_unit
from dynid.recording.units import ENCODER_SIGNALS, MOTOR_SIGNALS, UNITS, counts_factor
from dynid.robot.model import Robot

__all__ = ["Conversion"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Conversion:
    """The conversions of a log format, for a robot."""

    robot: Robot | None
    log: LogFormat

    def __post_init__(self) -> None:
        if self.log.motor_side and (self.robot is None or self.robot.transmission is None):
            raise MissingArgument("motor_side needs a robot with a transmission (robot.with_transmission)")

    def on_motor_side(self, signal: str) -> bool:
        """Whether the file has this signal (for a current with a gain: the torque) on the motor side."""
        if signal == "current" and self.log.gain is not None:
            signal = "torque"
        if isinstance(self.log.motor_side, bool):
            return self.log.motor_side and signal in MOTOR_SIGNALS
        return signal in self.log.motor_side

    def time_unit(self) -> str | None:
        """Unit of the clock, None where it is not given."""
        unit = self.log.units.get("t")
        return None if unit is None else str(unit)

    def to_si(self, signal: str, values: Array, columns: Sequence[str], file: str) -> Array:
        """Values (N, channel) in SI units, still on the side and with the sign of the file."""
        given = self.log.units.get(signal)
        if given is None:
            unit = next((unit for unit in (named_unit(signal, c) for c in columns) if unit), None)
            if unit:
                raise MissingArgument(
                    f"column '{columns[0]}' is named in {unit}: give {keyword('units', {signal: unit})}, or the "
                    "unit that it has",
                    where=file,
                )
            return values
        units = [given] * values.shape[1] if isinstance(given, str) else list(given)
        if len(units) != values.shape[1]:
            raise InvalidShape(
                f"{named('units')} of {signal} has {len(units)} entries, the signal {values.shape[1]} columns"
            )
        return values * [self._factor(signal, unit, k) for k, unit in enumerate(units)]

    def _factor(self, signal: str, unit: str, k: int) -> float:
        """Factor from a unit of channel k to SI."""
        revolute, prismatic = UNITS[signal]
        slides = self._slides(signal, k)
        known = {**revolute, **prismatic} if slides is None else prismatic if slides else revolute
        counts = None if slides else counts_factor(signal, unit)
        if counts is not None:
            return counts
        if unit not in known:
            counted = ", counts:4096" if signal in ENCODER_SIGNALS and not slides else ""
            whose = "" if slides is None or self.robot is None else f", joint '{self.robot.coordinates[k]}'"
            raise UnknownName(f"unit '{unit}' of {signal}{whose} is unknown: use {', '.join(known)}{counted}", "units")
        return known[unit]

    def _slides(self, signal: str, k: int) -> bool | None:
        """Whether channel k belongs to a prismatic joint; None where that is unknown."""
        if self.robot is None or self.on_motor_side(signal):
            return None
        kinds = [joint.kind for joint in self.robot.joints if joint.name in self.robot.coordinates]
        return kinds[k] == "prismatic" if k < len(kinds) else None

    def to_joints(self, signals: dict[str, Array]) -> dict[str, Array]:
        """All signals (N, joint) on the joint side, with their final sign and offset; a gain gives torques."""
        out = dict(signals)
        self._check_used(out)
        for what, factors in (("scale", self.log.scale), ("sign", self.log.sign)):
            for signal, factor in factors.items():
                out[signal] = out[signal] * _per_joint(what, signal, factor, out[signal].shape[1])
        if self.log.gain is not None:
            if "current" not in out or "torque" in out:
                raise NotApplicable(
                    "gain turns currents into torques: the recording must have currents and no torques", "gain"
                )
            out["torque"] = out["current"] * _per_joint("gain", "current", self.log.gain, out["current"].shape[1])
            if self.on_motor_side("torque"):
                del out["current"]  # motor currents do not belong beside joint torques
        if self.robot is not None and self.robot.transmission is not None:
            T = self.robot.transmission.matrix
            for signal in [s for s in out if self.on_motor_side(s)]:
                # tau = T tau_motor and v_motor = T' v, so v = inv(T') v_motor.
                out[signal] = out[signal] @ (T.T if signal == "torque" else np.linalg.pinv(T))
        for signal, shift in self.log.offset.items():
            out[signal] = out[signal] + _per_joint("offset", signal, shift, out[signal].shape[1])
        return out

    def _check_used(self, signals: Mapping[str, Any]) -> None:
        """Every setting must apply to a signal that was read."""
        made = {"torque"} if self.log.gain is not None else set()
        for what in ("units", "scale", "sign", "offset"):
            late = made if what == "offset" else set()
            unused = set(getattr(self.log, what)) - set(signals) - late - {"t"}
            if unused:
                raise NotApplicable(f"{what} is given for {min(unused)}, which the recording does not have")
        if not isinstance(self.log.motor_side, bool):
            unused = set(self.log.motor_side) - set(signals) - made
            if unused:
                raise NotApplicable(
                    f"{named('motor_side')} is given for {min(unused)}, which the recording does not have"
                )


def _per_joint(what: str, signal: str, value: PerJoint, count: int) -> Array:
    """The value as an array that broadcasts over the joints."""
    out = np.asarray(value, dtype=float)
    if out.shape not in ((), (count,)):
        raise InvalidShape(f"{what} of {signal} has {out.size} entries, expected one number or {count}")
    return out
