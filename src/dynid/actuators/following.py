"""Do measured positions follow their commands? Signs, orders and units of columns that do not belong together.

A proportional gain pulls a joint towards its command, against the derivative gain. Well below the natural frequency of
the loop the joint follows that late, whatever its armature, friction and delay. Where slow motion goes against its
command, follows that of another joint, or is 57 times as large, no actuator explains the log.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.actuators.logs import Log
from dynid.dynamics.functions import mass_matrix
from dynid.errors import Mismatch
from dynid.robot.actuator_law import ActuatorLaw
from dynid.robot.model import Robot
from dynid.signals.filters import lowpass

__all__ = ["check_followed"]

Array = NDArray[np.float64]

# Slow is below this share of the natural frequency of a joint under the law, whose armature is not yet known.
_SLOW = 0.25
# Periods of slow motion that a log needs, and the share of the command that must be slow.
_PERIODS, _SHARE = 3.0, 0.2
# Correlation below which motion is against its command.
_AGAINST = -0.9
# Decrease of the sum over joints of the logarithm of the unexplained variance that another order must achieve, and the
# correlation with its own command that every joint must have less of: a joint that follows late may follow the command
# of its neighbour better where commands run along the joints as a wave.
_ORDER, _OWN = 5.0, 0.9
# Correlation and relative error of the ratio with which positions and commands differ by degrees per rad.
_SAME, _DEGREES = 0.95, 0.1


def check_followed(robot: Robot, law: ActuatorLaw, logs: Sequence[Log]) -> None:
    """Raise `DataError` if the positions of a log do not belong to its commands.

    Parameters
    ----------
    robot : Robot
    law : ActuatorLaw
        Joints without a proportional gain, or without slow commands, are not checked.
    logs : sequence of Log
    """
    if logs[0].commands.position is None:
        return
    posture = np.mean(np.concatenate([x.q for x in logs]), axis=0)
    inertia = np.diag(mass_matrix(robot, posture[None])[0])
    cutoffs = _SLOW * np.sqrt(law.gain * law.kp / inertia) / (2 * np.pi)
    late = np.where(law.kp > 0, law.kd / np.where(law.kp > 0, law.kp, 1.0), 0.0) * (law.velocity_target == "zero")
    found = {i: x for i, f in enumerate(cutoffs) if (x := _slow(logs, i, float(f), late)) is not None}
    own = {i: float(_correlations(q, r)[i]) for i, (q, r) in found.items()}
    for i, joint in enumerate(law.joints):
        if i in found and own[i] < _AGAINST:
            raise Mismatch(
                f"joint '{joint}' moves against its command (correlation {own[i]:.2f}): reverse the sign of its "
                "positions or of its commands",
                "sign",
            )
    _check_order(law, found)
    angles = {j.name for j in robot.joints if j.kind != "prismatic"}
    for i, (q, r) in found.items():
        ratio = float(np.std(q) / np.std(r[:, i]))
        degrees = np.exp(np.abs(np.log(ratio))) * np.pi / 180.0
        if law.joints[i] in angles and own[i] > _SAME and abs(degrees - 1.0) < _DEGREES:
            which, other = ("positions", "commands") if ratio > 1 else ("commands", "positions")
            raise Mismatch(
                f"the {which} of joint '{law.joints[i]}' are in degrees, its {other} in rad: give one unit", "units"
            )


def _slow(logs: Sequence[Log], joint: int, cutoff: float, late: Array) -> tuple[Array, Array] | None:
    """Slow positions (K,) of a joint and slow commands (K, n) of all, without means; None if there is too little.

    Commands are smoothed over `late` (n,), in s, as the derivative gain does.
    """
    positions, commands, total = [], [], 0.0
    for log in logs:
        if not 0.0 < cutoff < 0.4 * log.rate or len(log) * cutoff < _PERIODS * log.rate:
            continue
        given = log.commands.position
        assert given is not None
        smooth = [_smoothed(x, float(s) * log.rate) for x, s in zip(given.T, late, strict=True)]
        whole = np.column_stack([log.measured[:, joint], *smooth])
        slow = lowpass(whole, cutoff, log.rate)
        slow = slow - slow.mean(axis=0)
        positions.append(slow[:, 0])
        commands.append(slow[:, 1:])
        total += float(np.sum((given[:, joint] - given[:, joint].mean()) ** 2))
    if not positions:
        return None
    q, r = np.concatenate(positions), np.concatenate(commands)
    enough = total > 0 and np.sum(r[:, joint] ** 2) > _SHARE**2 * total and np.any(q != 0)
    return (q, r) if enough else None


def _smoothed(x: Array, rows: float) -> Array:
    """First-order lag of this many rows."""
    share = 1.0 - np.exp(-1.0 / rows) if rows > 0 else 1.0
    return np.asarray(scipy.signal.lfilter([share], [1.0, share - 1.0], x - x[0]) + x[0])


def _correlations(q: Array, r: Array) -> Array:
    """Correlation (n,) of a position with every command."""
    size = np.linalg.norm(q) * np.linalg.norm(r, axis=0)
    return np.asarray(q @ r / np.where(size > 0, size, np.inf))


def _check_order(law: ActuatorLaw, found: dict[int, tuple[Array, Array]]) -> None:
    """Raise `DataError` if positions follow the commands of other joints."""
    joints = list(found)
    if len(joints) < 2:
        return
    with_command = np.array([_correlations(q, r)[joints] for q, r in found.values()])
    unexplained = np.log(np.maximum(1.0 - np.maximum(with_command, 0.0) ** 2, 1e-6))
    _, order = scipy.optimize.linear_sum_assignment(unexplained)
    better = np.trace(unexplained) - unexplained[np.arange(len(joints)), order].sum()
    moved = np.flatnonzero(order != np.arange(len(joints)))
    if better > _ORDER and np.all(np.diag(with_command)[moved] < _OWN):
        i = int(moved[0])
        name, other = (law.joints[joints[k]] for k in (i, order[i]))
        raise Mismatch(
            f"the positions of joint '{name}' follow the commands of joint '{other}': positions and commands have "
            "different orders of joints"
        )
