"""The measured side of the equations of motion: joint torques and external wrenches per channel.

The equations of motion are Y pi = (0, torque) + sum of J' F over the contacts. Wrenches of named sensors are
transformed to the origin and axes of the base, where they are summed into the six base rows; each also adds torques to
the joints that carry its link.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.assembly import assemble
from dynid.dynamics.frames import base_placement, joint_twists, link_of_frame, placement_in_base
from dynid.dynamics.tree import compile_robot
from dynid.errors import DataError, Mismatch, MissingArgument, MissingData, UnknownName, keyword
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.recording.wrench import WrenchSensor
from dynid.robot.mechanism import WRENCH_CHANNELS
from dynid.robot.model import Robot
from dynid.signals.settings import Motion

__all__ = ["check_run", "default_channels", "measured", "state", "wrench_at_base"]

Array = NDArray[np.float64]


def default_channels(robot: Robot, recording: Recording) -> str:
    """The channels that all runs of a recording have: "torque", "wrench" or "all"."""
    if robot.base == "fixed" or not all(run.wrench is not None or run.wrenches for run in recording.runs):
        return "torque"
    return "all" if robot.n and all(run.torque is not None for run in recording.runs) else "wrench"


def check_run(robot: Robot, run: Run, channels: Sequence[str]) -> None:
    """Raise a DataError if a run does not have what the channels need."""
    if run.q.shape[1] != robot.n:
        raise Mismatch(f"the recording has {run.q.shape[1]} joints, robot '{robot.name}' has {robot.n}")
    torques = any(c not in WRENCH_CHANNELS for c in channels)
    if torques and run.torque is None:
        raise no_torques(run)
    if any(c in WRENCH_CHANNELS for c in channels) and run.wrench is None and not run.wrenches:
        raise MissingData(f"run '{run.name}' has no wrench, of the base or of named sensors")
    if robot.base == "floating" and run.base is None:
        raise MissingData(
            f"run '{run.name}' has no motion of its base, which floats: give the poses as base (N, 7)", "base"
        )
    for name, sensor in run.sensors.items():
        body = _body(robot, sensor, name)
        if torques and body is None:
            raise MissingArgument(
                f"wrench sensor '{name}' is fixed to the world: say which link it acts on (link=) for joint torques "
                "to be used"
            )


def no_torques(run: Run) -> DataError:
    """The error of a run without torques, and what can be done with what it has."""
    return MissingData(f"run '{run.name}' has no torques; {without_torques(run)}")


def without_torques(run: Run) -> str:
    """What can be done with a run that has no torques."""
    if run.current is not None:
        return "it has currents: give the drive gains (N m/A) when loading, or find them with dynid gains"
    actuators = "dynid actuators (identify_actuators) finds armature, friction and delay"
    if run.reference is not None:
        return f"from commands and positions alone, {actuators}"
    return f"log torques or motor currents; or the commands beside the positions: from these, {actuators}"


def state(robot: Robot, motion: Motion, rows: slice = slice(None)) -> tuple[Array, Array, Array]:
    """q (N, nq), v and a (N, nv) of a filtered run; a floating base comes first."""
    joints = motion.q[rows], motion.v[rows], motion.a[rows]
    if robot.base != "floating":
        return joints
    assert motion.base is not None
    base = motion.base.pose[rows], motion.base.v[rows], motion.base.a[rows]
    q, v, a = (np.hstack([b, j]) for b, j in zip(base, joints, strict=True))
    return q, v, a


def measured(robot: Robot, motion: Motion, q: Array, rows: slice = slice(None)) -> Array:
    """Torques and wrenches (N, channel) of a filtered run with external wrenches; NaN for channels without data.

    q (N, nq) are the positions of these rows.
    """
    first = len(robot.channels) - robot.n
    if not first and not motion.wrenches:
        assert motion.torque is not None
        return motion.torque[rows]
    out = np.full((len(q), len(robot.channels)), np.nan)
    if motion.torque is not None:
        out[:, first:] = motion.torque[rows]
    if first and (motion.wrench is not None or motion.wrenches):
        out[:, :first] = 0.0 if motion.wrench is None else motion.wrench[rows]
    for name, values in motion.wrenches.items():
        sensor = motion.sensors[name]
        load = wrench_at_base(robot, sensor, q, values[rows])
        if first:
            out[:, :first] += load
        body = _body(robot, sensor, name)
        if body:
            out[:, first:] += _joint_loads(robot, body, q, load)
    return out


def wrench_at_base(robot: Robot, sensor: WrenchSensor, q: Array, values: Array) -> Array:
    """Wrench of a sensor (N, 6) about the origin of the base and in its axes; q (N, nq)."""
    world = base_placement(robot, q)
    place = _place(robot, sensor, q, world) @ sensor.placement
    if sensor.axes == "sensor":
        axes = place[:, :3, :3]
    elif sensor.axes == "world":
        axes = np.swapaxes(world[:, :3, :3], 1, 2)
    else:
        axes = np.broadcast_to(np.eye(3), (len(q), 3, 3))
    force = np.einsum("nij,nj->ni", axes, values[:, :3])
    moment = np.einsum("nij,nj->ni", axes, values[:, 3:]) + np.cross(place[:, :3, 3], force)
    return np.hstack([force, moment])


def _place(robot: Robot, sensor: WrenchSensor, q: Array, world: Array) -> Array:
    """Placement (N, 4, 4) in the base of the frame that a sensor is fixed to."""
    if _own(robot, sensor.frame):
        return placement_in_base(robot, q, sensor.frame)
    out = np.tile(np.eye(4), (len(q), 1, 1))
    if sensor.frame == "world":
        turned = np.swapaxes(world[:, :3, :3], 1, 2)
        out[:, :3, :3] = turned
        out[:, :3, 3] = -np.einsum("nij,nj->ni", turned, world[:, :3, 3])
    return out


def _own(robot: Robot, name: str) -> bool:
    """Whether the robot has a link or frame of this name."""
    return name in [x.name for x in robot.links] + [x.name for x in robot.frames]


def _body(robot: Robot, sensor: WrenchSensor, name: str) -> int | None:
    """Index of the link that the wrench of a sensor acts on; None for a sensor in the world without a link."""
    if sensor.link is not None:
        return robot.link_index(sensor.link)
    if _own(robot, sensor.frame):
        return link_of_frame(robot, sensor.frame)
    if sensor.frame == "base":
        return 0
    if sensor.frame == "world":
        return None
    raise UnknownName(
        f"robot '{robot.name}' has no link or frame '{sensor.frame}', where the wrench of '{name}' is said to be "
        f"measured: say where it is with {keyword('sensors')} (WrenchSensor)"
    )


def _joint_loads(robot: Robot, body: int, q: Array, load: Array) -> Array:
    """Torques (N, n) of a wrench on a body, given at the base, on the joints that carry it."""
    if robot.loops:
        x, base = assemble(robot, q), robot.nv - robot.n
        loads = _joint_loads(robot.tree, body, x.q, load)
        return np.asarray(np.einsum("nij,ni->nj", x.jacobian[:, base:, base:], loads))
    tree = compile_robot(robot).tree
    twists = joint_twists(robot, q, body)
    out = np.zeros((len(q), robot.n))
    for j in tree.support[tree.support_start[body] : tree.support_start[body + 1]]:
        out[:, tree.coordinate[j]] += tree.ratio[j] * np.sum(twists[:, j] * load, axis=1)
    return out
