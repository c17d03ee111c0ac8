"""Units that a log may use, with their factors to SI."""

from __future__ import annotations

from dynid.errors import MissingArgument, UnknownName

__all__ = ["ENCODER_SIGNALS", "MOTOR_SIGNALS", "TIME_UNITS", "UNITS", "check_unit_name", "counts_factor"]

_TURN = 6.283185307179586

# Ticks per second: dividing by these is exact where multiplying by 1e-9 is not.
TIME_UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
_ANGLES = {"rad": 1.0, "deg": _TURN / 360, "rev": _TURN}
_LENGTHS = {"m": 1.0, "mm": 1e-3}
_TORQUES = {"Nm": 1.0, "N m": 1.0, "mNm": 1e-3, "kNm": 1e3}
_FORCES = {"N": 1.0, "kN": 1e3}
_CURRENTS = {"A": 1.0, "mA": 1e-3}
_ANGULAR_VELOCITIES = {f"{unit}/s": x for unit, x in _ANGLES.items()} | {"rpm": _TURN / 60}
_LINEAR_VELOCITIES = {f"{unit}/s": x for unit, x in _LENGTHS.items()}
_ANGULAR_ACCELERATIONS = {f"{unit}/s2": x for unit, x in _ANGLES.items()}
_LINEAR_ACCELERATIONS = {f"{unit}/s2": x for unit, x in _LENGTHS.items()}
# Signal: units for revolute joints, units for prismatic joints.
UNITS: dict[str, tuple[dict[str, float], dict[str, float]]] = {
    "q": (_ANGLES, _LENGTHS),
    "v": (_ANGULAR_VELOCITIES, _LINEAR_VELOCITIES),
    "a": (_ANGULAR_ACCELERATIONS, _LINEAR_ACCELERATIONS),
    "reference": (_ANGLES, _LENGTHS),
    "link_q": (_ANGLES, _LENGTHS),
    "torque": (_TORQUES, _FORCES),
    "current": (_CURRENTS, _CURRENTS),
}
# Signals that may be given in encoder counts, as in "counts:4096".
ENCODER_SIGNALS = ("q", "v", "a", "reference", "link_q")
# Signals that the transmission converts from the motor side to the joint side.
MOTOR_SIGNALS = ("q", "v", "a", "reference", "torque")


def counts_factor(signal: str, unit: str) -> float | None:
    """Radians per encoder count of a unit such as "counts:4096", None for any other unit."""
    if not unit.startswith("counts:") or signal not in ENCODER_SIGNALS:
        return None
    try:
        counts = float(unit.removeprefix("counts:"))
    except ValueError:
        counts = 0.0
    if not 0.0 < abs(counts) < float("inf"):
        raise MissingArgument(
            f"unit '{unit}' of {signal} needs the counts per revolution, such as counts:4096", "units"
        )
    return _TURN / counts


def check_unit_name(signal: str, unit: str) -> None:
    """Raise DataError unless `unit` is a unit of the signal on a revolute or a prismatic joint."""
    if signal == "t":
        if unit not in TIME_UNITS:
            raise UnknownName(f"unit '{unit}' of t is unknown: use {', '.join(TIME_UNITS)}", "units")
        return
    known = {**UNITS[signal][0], **UNITS[signal][1]}
    if unit not in known and counts_factor(signal, unit) is None:
        counted = ", counts:4096" if signal in ENCODER_SIGNALS else ""
        raise UnknownName(f"unit '{unit}' of {signal} is unknown: use {', '.join(known)}{counted}", "units")
