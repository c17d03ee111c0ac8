"""Starts of a simulation along measured motion, the torques that act, and the measured positions to compare with."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from dynid.assessment.model.horizon import ModelErrors, SimulationError
from dynid.dynamics.assembly import assembly_where_closed
from dynid.dynamics.frames import frame_placement
from dynid.errors import MissingData, TooFew
from dynid.identification.estimate import Estimate
from dynid.identification.loads import measured, state
from dynid.robot.model import Robot
from dynid.signals.settings import Motion
from dynid.simulation.replay import Ending, Replay, Starts

__all__ = ["Setting", "Track", "checked_track", "nothing", "setting_of", "track_of"]

Array = NDArray[np.float64]

_MOVES = {"rad": 0.01, "m": 0.001}
_STILL = 1e-6  # m; an end link that moves less is not compared
_POSES = 200  # by which it is decided whether an end link moves
_RATE = 1000.0  # Hz; faster recordings are averaged to about this rate
_WHOLE_MARKS = 200  # rows of a whole run at which the error is taken


@dataclass(frozen=True, eq=False)
class Track:
    """Measured motion as one table: positions (row, nq), velocities and torques (row, nv), and the rows of the runs."""

    q: Array
    v: Array
    torque: Array
    runs: tuple[tuple[int, int], ...]  # first and last row
    periods: tuple[float, ...]

    @property
    def duration(self) -> float:
        """Seconds of all runs."""
        return float(sum((last - first) * h for (first, last), h in zip(self.runs, self.periods, strict=True)))

    def starts(self, horizons: Sequence[float], interval: float, least: Array) -> Starts:
        """Starts at this interval, wherever the shortest horizon lies in the run.

        Those from which no joint moves by `least` (joint,) up to the longest horizon are left out.
        """
        first, last, period, marks = [], [], [], []
        for (begin, end), h in zip(self.runs, self.periods, strict=True):
            offsets = np.maximum(1, np.round(np.array(horizons) / h).astype(np.int64))
            rows = np.arange(begin, end - offsets[0] + 1, max(1, round(interval / h)))
            first.append(rows)
            last.append(np.full(len(rows), end))
            period.append(np.full(len(rows), h))
            marks.append(np.tile(offsets, (len(rows), 1)))
        found = [np.concatenate(x) for x in (first, last, period, marks)]
        ends = np.minimum(found[0] + found[3][:, -1], found[1])
        joints = self.q[:, -len(least) :]
        moved = [np.any(np.ptp(joints[a : b + 1], axis=0) > least) for a, b in zip(found[0], ends, strict=True)]
        return self._starts(*(x[np.array(moved, bool)] for x in found))

    def whole_runs(self) -> Starts:
        """One start per run, with marks over the whole run."""
        first, last = np.array(self.runs, np.int64).T
        marks = np.array([np.linspace(1, b - a, _WHOLE_MARKS).astype(np.int64) for a, b in self.runs])
        return self._starts(first, last, np.array(self.periods), marks)

    def _starts(self, first: Array, last: Array, period: Array, marks: Array) -> Starts:
        rows = first.astype(np.int64)
        return Starts(self.q[rows], self.v[rows], rows, last.astype(np.int64), period, marks.astype(np.int64))

    def at_marks(self, starts: Starts) -> Array:
        """Measured positions (start, mark, nq); NaN beyond the end of a run."""
        rows = np.minimum(starts.first[:, None] + starts.marks, starts.last[:, None])
        return np.where(starts.inside[..., None], self.q[rows], np.nan)


def least_motion(units: Sequence[str]) -> Array:
    """Smallest range of joints with these units that counts as motion: 0.01 rad or 1 mm."""
    return np.array([_MOVES[u] for u in units])


def track_of(robot: Robot, motions: Sequence[Motion]) -> Track:
    """The track of filtered runs.

    Raises
    ------
    DataError
        If the torques of the joints, or the wrench on a floating base, were not measured.
    """
    parts: list[tuple[Array, Array, Array]] = []
    runs, periods, row = [], [], 0
    for motion in motions:
        if motion.torque is None:
            raise MissingData("the joint torques were not measured")
        if robot.base == "floating" and motion.wrench is None and not motion.wrenches:
            raise MissingData("the wrench on the floating base was not measured")
        q, v, _ = state(robot, motion)
        torque = measured(robot, motion, q)
        torque = torque[:, -robot.nv :]
        if not np.all(np.isfinite(torque)):
            raise MissingData("the torque of a joint was not measured")
        q, v, torque, period = _thinned(q, v, torque, 1.0 / motion.rate)
        if len(q) < 3:
            continue
        parts.append((q, v, torque))
        runs.append((row, row + len(q) - 1))
        periods.append(period)
        row += len(q)
    if not parts:
        raise TooFew("the runs are too short")
    q, v, torque = (np.concatenate(x) for x in zip(*parts, strict=True))
    return Track(q, v, torque, tuple(runs), tuple(periods))


def _thinned(q: Array, v: Array, torque: Array, period: float) -> tuple[Array, Array, Array, float]:
    """About a thousand rows per second; torques are averaged over the rows that are left out."""
    factor = int(1.0 / (period * _RATE) + 0.25)
    if factor < 2:
        return q, v, torque, period
    width = factor + 1 - factor % 2
    weights = np.full(width, 1.0 / factor)
    weights[[0, -1]] = (factor - width + 2) / (2.0 * factor)
    padded = np.pad(torque, ((width // 2, width // 2), (0, 0)), mode="edge")
    mean = sum(w * padded[i : i + len(torque)] for i, w in enumerate(weights))
    return q[::factor], v[::factor], np.asarray(mean)[::factor], period * factor


def tool_frames(robot: Robot, q: Array) -> tuple[str, ...]:
    """One frame per end link: the named frame on it that is farthest from its joint, or the link itself.

    Frames that do not move over the positions q (N, nq) are left out.
    """
    parents = {joint.parent for joint in robot.joints}
    out = []
    for i in range(1, len(robot.links)):
        if i in parents:
            continue
        on_link = [f for f in robot.frames if f.link == i]
        far = max(on_link, key=lambda f: float(np.linalg.norm(f.placement[:3, 3])), default=None)
        out.append(robot.links[i].name if far is None else far.name)
    moved = np.ptp(tool_positions(robot, q, out), axis=0).max(axis=1, initial=0.0) if out else np.zeros(0)
    return tuple(name for name, span in zip(out, moved, strict=True) if span > _STILL)


def tool_positions(robot: Robot, q: Array, tools: Sequence[str]) -> Array:
    """Positions (..., tool, 3) of frames for q (..., nq); NaN where q is not finite or closed loops cannot follow."""
    flat = q.reshape(-1, q.shape[-1])
    good = np.all(np.isfinite(flat), axis=1) & (np.abs(flat) < 1e9).all(axis=1)
    out = np.full((len(flat), len(tools), 3), np.nan)
    places = flat[good]
    if robot.loops:
        rest = np.zeros((len(places), robot.nv))
        assembly, closed = assembly_where_closed(robot, places, rest, rest)
        good[good] = closed
        places = assembly.q[closed]
    for i, name in enumerate(tools):
        if len(places):
            out[good, i] = frame_placement(robot.tree, places, name)[:, :3, 3]
    return out.reshape(*q.shape[:-1], len(tools), 3)


def held_velocity(robot: Robot, starts: Starts) -> Array:
    """Positions (start, mark, nq) with the velocity of the start."""
    t = (starts.marks * starts.period[:, None])[..., None]
    first = robot.nq - robot.n
    out = np.empty((*starts.marks.shape, robot.nq))
    out[..., first:] = starts.q[:, None, first:] + t * starts.v[:, None, robot.nv - robot.n :]
    if robot.base == "floating":
        for s in range(len(starts)):
            turn = Rotation.from_quat(starts.q[s, 3:7])
            out[s, :, :3] = starts.q[s, :3] + t[s] * turn.apply(starts.v[s, :3])
            out[s, :, 3:7] = (turn * Rotation.from_rotvec(t[s] * starts.v[s, 3:6])).as_quat()
    return out


def nothing(estimate: Estimate, loop: str, horizons: tuple[float, ...]) -> SimulationError:
    """The result before anything is simulated."""
    robot = estimate.robot
    units = tuple("m" if robot.channel_units[c] == "N" else "rad" for c in robot.coordinates)
    return SimulationError(robot.name, loop, robot.coordinates, units, (), horizons)  # type: ignore[arg-type]


def checked_track(estimate: Estimate, motions: Sequence[Motion]) -> Track:
    """The track of filtered runs, if they can be simulated."""
    robot = estimate.robot
    if not robot.n:
        raise MissingData("the robot has no joints")
    lacking = [c for c in robot.coordinates if c not in estimate.base.channels]
    if lacking:
        raise MissingData(f"the torque of '{lacking[0]}' is not one of the measured channels")
    return track_of(robot, motions)


@dataclass(frozen=True, eq=False)
class Setting:
    """Robot, measured track, starts and tools of one comparison, with the measured positions at all marks."""

    robot: Robot
    track: Track
    tools: tuple[str, ...]
    interval: float
    starts: Starts
    whole: Starts
    measured: Array
    measured_whole: Array

    def errors(self, starts: Replay, whole: Replay) -> ModelErrors:
        """Errors of simulated positions at the marks of starts and of whole runs."""
        joints, tools = self._distances(starts, self.starts, self.measured)
        each, tips = self._distances(whole, self.whole, self.measured_whole)
        with np.errstate(over="ignore"):
            rms = [np.sqrt(np.mean(x**2, axis=1)) for x in (each, tips)]
        return ModelErrors(joints, tools, rms[0], rms[1], starts.endings)

    def _distances(self, found: Replay, starts: Starts, measured: Array) -> tuple[Array, Array]:
        first = self.robot.nq - self.robot.n
        joints = np.abs(found.q - measured)[..., first:]
        places = [tool_positions(self.robot, q, self.tools) for q in (found.q, measured)]
        tools = np.linalg.norm(places[0] - places[1], axis=-1)
        joints[starts.inside & ~np.all(np.isfinite(found.q), axis=-1)] = np.inf
        tools[starts.inside & ~np.all(np.isfinite(places[0]), axis=(-2, -1))] = np.inf
        return joints, tools

    def result(
        self, empty: SimulationError, *, identified: ModelErrors, prior: ModelErrors | None, began: float
    ) -> SimulationError:
        """The result with its errors; the baseline is computed here."""
        held = [Replay(held_velocity(self.robot, s), (Ending.COMPLETED,) * len(s)) for s in (self.starts, self.whole)]
        return replace(
            empty,
            tools=self.tools,
            starts=tuple(int(x) for x in self.starts.inside.sum(axis=0)),
            runs=len(self.whole),
            interval=self.interval,
            identified=identified,
            prior=prior,
            baseline=self.errors(held[0], held[1]),
            seconds=time.perf_counter() - began,
        )


def setting_of(robot: Robot, track: Track, empty: SimulationError, interval: float, max_starts: int) -> Setting:
    """Starts over the whole track, as many as allowed."""
    horizons, least = empty.horizons, least_motion(empty.units)
    interval = max(interval, track.duration / max_starts)
    starts, whole = track.starts(horizons, interval, least), track.whole_runs()
    if not len(starts):
        raise TooFew(
            f"the runs are shorter than {horizons[0]:g} s, or no joint moves by more than 0.01 rad or 1 mm in them",
            "horizons",
        )
    while len(starts) > max_starts and len(starts) > len(track.runs):
        interval *= 1.1
        starts = track.starts(horizons, interval, least)
    tools = tool_frames(robot, track.q[:: max(1, len(track.q) // _POSES)])
    return Setting(robot, track, tools, interval, starts, whole, track.at_marks(starts), track.at_marks(whole))
