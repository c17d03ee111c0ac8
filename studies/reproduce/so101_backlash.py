"""Backlash of the SO-101 arm: play that shows at a constant command, and the dead zone of the position loop.

The encoder of the servo is on its output. A joint with play moves freely within it, also away from its command and
against its motor, while the torque that the moving arm exerts on it is far below its friction. A joint that slips
would move towards the command only. A joint that gravity loads in one direction keeps its gears in contact, and
shows no play.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid.actuators.estimate import ActuatorEstimate
from dynid.actuators.identify import identify_actuators
from dynid.actuators.logs import read_logs
from dynid.dynamics.functions import inverse_dynamics
from studies.reproduce.so101_data import JOINTS, STEP, so101_recording

__all__ = ["HALF_A_DEGREE", "Play", "away", "dead_zones", "free_play"]

Array = NDArray[np.float64]

HALF_A_DEGREE = np.radians(0.5)
# The arm may exert this share of the friction of a joint on it, no more.
_FAR_BELOW = 0.5


class Play(NamedTuple):
    """Movement (rad) of a joint away from a constant command, torque (N m) of the arm on it, and its friction (N m)."""

    width: float
    torque: float
    friction: float


def free_play(found: ActuatorEstimate) -> dict[str, Play]:
    """Least play of the joints whose command is constant while the others move, in hold_under_gravity."""
    recording = so101_recording(("hold_under_gravity",))
    bodies = found.robot.with_drives(friction="none", rotor_inertia=False)
    log = read_logs(bodies, found.law, recording)[0]
    torque = np.abs(inverse_dynamics(bodies, log.q, log.v, log.a)).max(axis=0)
    command = recording.runs[0].reference
    assert command is not None
    out = {}
    for j, joint in enumerate(JOINTS):
        friction = found.value(f"friction of {joint}")[0]
        if np.ptp(command[:, j]) == 0 and torque[j] < _FAR_BELOW * friction:
            out[joint] = Play(away(log.measured[:, j] - command[0, j]), float(torque[j]), friction)
    return out


def away(offset: Array) -> float:
    """Largest movement away from the command, of the positions (K,) relative to it."""
    distance = np.abs(offset)
    return float(np.max(distance - np.minimum.accumulate(distance)))


def dead_zones(found: ActuatorEstimate) -> dict[str, tuple[float, float]]:
    """Width (rad) of position errors without effect and its standard deviation, from backlash_detection.

    Stiffness, armature, delay and limit are those of the fitted runs; damping and friction are fitted again.
    """
    recording = so101_recording(("backlash_detection",))
    unknown = ("damping", "friction", "backlash")
    refined = identify_actuators(found.robot, recording, found.law, unknown=unknown, step=STEP)
    return {joint: refined.value(f"backlash of {joint}") for joint in JOINTS}
