"""What logs are good for, by what they hold: the identification that comes next."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.data.channels import TORQUE_CONSTANT, TORQUE_ZERO
from dynid.assessment.data.torque import (
    TORQUE_GRAVITY_COMPENSATED,
    TORQUE_TOO_SMALL,
    TORQUE_UNRELATED,
    TORQUE_UNSIGNED,
)
from dynid.assessment.finding import Finding
from dynid.dynamics.functions import regressor
from dynid.identification.stops import smallest_motions
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.model import Robot
from dynid.signals.motion_band import moving_columns

__all__ = ["Route", "route"]

Array = NDArray[np.float64]
Goal = Literal["bodies", "payload", "flexible", "legs", "gains", "actuators", "record"]

# Findings that say that an effort is no torque of its joint.
_NOT_TORQUES = frozenset(
    {
        TORQUE_UNSIGNED,
        TORQUE_TOO_SMALL,
        TORQUE_UNRELATED,
        TORQUE_GRAVITY_COMPENSATED,
        TORQUE_ZERO,
        TORQUE_CONSTANT,
    }
)
# Efforts are given up where this share of the joints that move has none that is a torque.
_MOST = 0.5
# A joint is at rest below this share of its largest velocity, and postures are runs at rest for this share of the time.
_SLOW, _AT_REST = 0.02, 0.5
# Two runs are the same motion if they differ by less than this share of it. Their torques differ by a payload if its
# weight explains this share of the difference.
_SAME_MOTION, _BY_WEIGHT, _ROWS = 0.05, 0.7, 500
# File names of runs with and without a payload.
_EMPTY = re.compile(
    r"(?<![a-z])(un_?loaded|no_?(pay)?load|without|empty|bare|(?<![\d.])0(\.0+)?_?kg)(?![a-z])", re.IGNORECASE
)
_LOADED = re.compile(r"(?<![a-z])((pay)?load(ed)?|(with_?)?tool|\d+(\.\d+)?_?kg)(?![a-z])", re.IGNORECASE)


@dataclass(frozen=True)
class Route:
    """What logs are good for.

    Attributes
    ----------
    goal : str
        What can be identified: "bodies" (with friction), "payload", "flexible" (joints with encoders on both sides),
        "legs" (a robot on its feet), "gains" (of drives whose currents were logged), "actuators" (without torques), or
        "record": nothing before there is another log.
    reason : str
        What the logs hold, in one sentence.
    loaded : tuple of int
        Numbers of the recordings with the payload, for goal "payload".
    feet : tuple of str
        Frames that touch the ground, for goal "legs".
    """

    goal: Goal
    reason: str
    loaded: tuple[int, ...] = ()
    feet: tuple[str, ...] = ()


def route(robot: Robot, recordings: Sequence[Recording], findings: Iterable[Finding] = ()) -> Route:
    """What logs are good for.

    Parameters
    ----------
    robot : Robot
        The robot.
    recordings : sequence of Recording
        The logs, one recording each.
    findings : iterable of Finding
        What `check` found in them; efforts that are no torques are then left aside.

    Returns
    -------
    Route

    Examples
    --------
    >>> import dynid
    >>> from dataclasses import replace
    >>> from dynid.assessment import route
    >>> from dynid.cli.demo import synthetic_recording
    >>> robot = dynid.load_robot("twolink")
    >>> recording = synthetic_recording(robot, seed=0, duration=10.0)
    >>> route(robot, [recording]).goal
    'bodies'
    >>> commanded = tuple(replace(run, torque=None, reference=run.q) for run in recording.runs)
    >>> route(robot, [replace(recording, runs=commanded)]).goal
    'actuators'
    """
    runs = [run for recording in recordings for run in recording.runs]
    efforts = all(run.torque is not None for run in runs)
    wrench = all(run.wrench is not None or bool(run.wrenches) for run in runs)
    useless = _useless(robot, runs, findings) if efforts else ""
    if efforts and not useless:
        return _with_torques(robot, recordings, runs)
    if wrench:
        return Route("bodies", "the logs hold the wrench on the base: bodies can be identified from it")
    if not efforts and all(run.current is not None for run in runs):
        return Route("gains", "the logs hold currents of unknown torque per ampere")
    if all(run.reference is not None for run in runs):
        what = useless or "the logs hold commanded and measured positions and no torques"
        return Route("actuators", f"{what}: armature, friction, delay and gains of the drives can be identified")
    what = useless or "the logs hold positions and neither torques nor commands"
    return Route("record", f"{what}: record a log with torques, currents or the commanded positions")


def _useless(robot: Robot, runs: Sequence[Run], findings: Iterable[Finding]) -> str:
    """Why the efforts are no torques; "" where enough of them may be."""
    named = {run.name for run in runs}
    found = [f for f in findings if f.code in _NOT_TORQUES and f.run in named]
    if any(not f.joint for f in found):
        return "the efforts are magnitudes and no torques"
    moves = np.any([moving_columns(run.q, smallest_motions(robot)) for run in runs], axis=0)
    moving = {name for name, own in zip(robot.coordinates, moves, strict=True) if own}
    bad = {f.joint for f in found} & moving
    if not bad or len(bad) <= _MOST * len(moving):
        return ""
    return f"the efforts of {len(bad)} of {len(moving)} moving joints are no torques of these joints"


def _with_torques(robot: Robot, recordings: Sequence[Recording], runs: Sequence[Run]) -> Route:
    """The route of logs whose efforts may be torques."""
    if robot.base == "floating" and all(run.imu is not None and run.base is None for run in runs):
        feet = tuple(sorted({name for run in runs for name in run.contacts} or _feet(robot)))
        return Route("legs", "the logs hold torques and an inertial unit, and the base floats", feet=feet)
    if any(run.link_q is not None for run in runs):
        return Route("flexible", "the logs hold torques and encoders on both sides of the gears")
    loaded = _loaded(robot, recordings)
    if loaded:
        return Route("payload", "the logs hold torques without and with a payload", loaded)
    if all(_at_rest(run) > _AT_REST for run in runs):
        what = "the logs hold torques at postures: gravity and static friction decide, and inertia hardly shows"
        return Route("bodies", what)
    return Route("bodies", "the logs hold torques: bodies and friction can be identified")


def _feet(robot: Robot) -> set[str]:
    """Frames and links that are named as feet."""
    names = [frame.name for frame in robot.frames] + [link.name for link in robot.links]
    return {name for name in names if re.search(r"(foot|sole)s?(_link|_frame)?$", name, re.IGNORECASE)}


def _at_rest(run: Run) -> float:
    """Share of the time in which no joint moves."""
    v = np.abs(np.gradient(run.q, axis=0))
    top = np.quantile(v, 0.99, axis=0)
    return float(np.mean(np.all(v <= _SLOW * np.maximum(top, 1e-12), axis=1)))


def _loaded(robot: Robot, recordings: Sequence[Recording]) -> tuple[int, ...]:
    """Recordings with a payload: by file names, or of two runs of one motion by the weight at the last link."""
    names = [recording.runs[0].name for recording in recordings]
    empty = [bool(_EMPTY.search(name)) for name in names]
    named = [bool(_LOADED.search(name)) and not none for name, none in zip(names, empty, strict=True)]
    if any(named) and not all(named):
        return tuple(i for i, is_loaded in enumerate(named) if is_loaded)
    if robot.base == "floating" or len(recordings) != 2 or any(len(recording.runs) != 1 for recording in recordings):
        return ()
    first, second = (recording.runs[0] for recording in recordings)
    n = min(len(first), len(second))
    if n < _ROWS or max(len(first), len(second)) > (1 + _SAME_MOTION) * n:
        return ()
    q = first.q[:n]
    moved = np.linalg.norm(q - q.mean(axis=0))
    if not moved > 0 or np.linalg.norm(q - second.q[:n]) > _SAME_MOTION * moved:
        return ()
    assert first.torque is not None and second.torque is not None
    few = slice(None, None, max(1, n // _ROWS))
    if _by_weight(robot, q[few], (second.torque[:n] - first.torque[:n])[few]) < _BY_WEIGHT:
        return ()
    return (int(np.linalg.norm(second.torque[:n]) > np.linalg.norm(first.torque[:n])),)


def _by_weight(robot: Robot, q: Array, torque: Array) -> float:
    """Share of a torque (N, joint) that the weight of a body at the last link explains."""
    Y = regressor(robot, q, np.zeros_like(q), np.zeros_like(q))[:, : robot.n]
    last = robot.links[robot.parameter_links[-1]].name
    columns = [k for k, p in enumerate(robot.layout) if p.owner == last and p.symbol in ("m", "mx", "my", "mz")]
    A, y = Y[:, :, columns].reshape(-1, len(columns)), torque.ravel()
    found, *_ = np.linalg.lstsq(A, y, rcond=1e-10)
    return 1.0 - float(np.sum((y - A @ found) ** 2)) / max(float(np.sum(y**2)), 1e-300)
