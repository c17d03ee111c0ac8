"""Recordings of the workspace as traces: loaded once, with the torque that the saved estimate predicts for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from dynid.errors import Mismatch, MissingArgument, MissingData, UnknownName
from dynid.identification.estimate import Estimate
from dynid.identification.row_stream import motion_blocks
from dynid.identification.stops import without_stops
from dynid.recording.run import Run
from dynid.robot.model import Robot
from dynid.signals.settings import prepare
from dynid.studio.session import Session
from dynid.studio.traces import Trace

__all__ = ["LoggedRun", "Prediction", "TraceSource", "values_at"]

Array = NDArray[np.float64]
T = TypeVar("T")

# Runs and predictions that are kept; a run of a million samples and six joints takes about 200 MB.
_KEPT = 2
# Signal -> what it is called on its axis, and its units for revolute and for prismatic joints.
_SIGNALS = {
    "q": ("position", ("rad", "m")),
    "v": ("velocity", ("rad/s", "m/s")),
    "torque": ("torque", ("N m", "N")),
    "current": ("current", ("A", "A")),
}


@dataclass(frozen=True, eq=False)
class LoggedRun:
    """One run of a recording, ready to be drawn.

    Attributes
    ----------
    robot : Robot
        The robot that it was loaded for.
    run : Run
        The samples.
    runs : tuple of str
        Names of all runs of its recording.
    joints : tuple of str
        Names of the joints, in the order of the columns.
    traces : dict of str to Trace
        The signals that were recorded, over the time since the first sample.
    """

    robot: Robot
    run: Run
    runs: tuple[str, ...]
    joints: tuple[str, ...]
    traces: dict[str, Trace]

    @property
    def duration(self) -> float:
        """Time in s from the first to the last sample."""
        return float(self.traces["q"].t[-1])

    def axes(self, predicted: bool) -> list[dict[str, Any]]:
        """The axes of the plots as plain data: joints of one signal and one unit share an axis."""
        kinds = {j.name: j.kind for j in self.robot.joints}
        linear = [kinds[c] == "prismatic" for c in self.robot.coordinates]
        out = []
        for signal, (label, units) in _SIGNALS.items():
            if signal not in self.traces:
                continue
            for kind, unit in enumerate(units):
                joints = [j for j in range(len(self.joints)) if linear[j] == bool(kind)]
                if not joints:
                    continue
                name = "force" if unit == "N" else label
                with_model = predicted and signal == "torque"
                signals = ["torque", "predicted"] if with_model else [signal]
                out.append({"label": name, "unit": unit, "joints": joints, "signals": signals})
                if with_model:
                    out.append({"label": "residual", "unit": unit, "joints": joints, "signals": ["residual"]})
        return out

    def pose(self, time: float) -> Array:
        """Positions (n,) at a time in s, or (nq,) with the floating base."""
        row = self.traces["q"].row(time)
        q = self.run.q[row]
        return q if self.run.base is None else np.concatenate([self.run.base[row], q])


@dataclass(frozen=True, eq=False)
class Prediction:
    """Torque that an estimate predicts for a run, per joint with the columns "predicted" and "residual".

    Both are at the rows of the fit: filtered and decimated, without those at which a joint stands still or presses
    against a stop. The residual is the measured torque, filtered alike, minus the prediction.
    """

    joints: tuple[int, ...]
    traces: tuple[Trace, ...]


class _Kept(Generic[T]):
    """The last results of long work, by the robot and what else they depend on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._results: list[tuple[Robot, tuple[Any, ...], T]] = []

    def once(self, robot: Robot, key: tuple[Any, ...], work: Callable[[], T]) -> T:
        """The result of work(), or that of before; requests that come at once wait for the first."""
        with self._lock:
            for result in self._results:
                if result[0] is robot and result[1] == key:
                    return result[2]
            made = work()
            self._results = [*self._results, (robot, key, made)][-_KEPT:]
            return made


class TraceSource:
    """Runs of the workspace by file name and number, and their predictions; the last ones are kept.

    Parameters
    ----------
    session : Session
        The session whose robot and files these are.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        # Apart, so that a zoom does not wait for a prediction.
        self._runs: _Kept[LoggedRun] = _Kept()
        self._predictions: _Kept[Prediction] = _Kept()

    def run(self, name: str, number: int = 0) -> LoggedRun:
        """A run of a file; it is read again when the file, the robot or the log format changes.

        Parameters
        ----------
        name : str
            Name of the file in the workspace.
        number : int, default 0
            Number of the run in it, counted from 0.

        Returns
        -------
        LoggedRun
            The run.

        Raises
        ------
        DataError
            If there is no robot, no such file or no such run, or the file cannot be read.
        """
        robot = self._robot()
        key = self._stamp(name), number, self._session.log
        return self._runs.once(robot, key, lambda: self._load(name, number))

    def prediction(self, name: str, number: int = 0) -> Prediction:
        """The torque that the saved estimate predicts for a run.

        Parameters
        ----------
        name : str
            Name of the file in the workspace.
        number : int, default 0
            Number of the run in it, counted from 0.

        Returns
        -------
        Prediction
            Predicted torque and residual per joint that has one.

        Raises
        ------
        DataError
            If there is no estimate, it is of another robot, or the run has no torque.
        """
        logged = self.run(name, number)
        key = self._stamp(name), number, self._stamp(self._session.files.estimate)
        return self._predictions.once(logged.robot, key, lambda: self._predict(logged))

    def _robot(self) -> Robot:
        if self._session.robot is None:
            raise MissingArgument("choose a robot first")
        return self._session.robot

    def _stamp(self, name: str) -> tuple[str, int, int]:
        found = self._session.workspace.existing(name).stat()
        return name, found.st_mtime_ns, found.st_size

    def _load(self, name: str, number: int) -> LoggedRun:
        recording = self._session.recording(name)
        if not 0 <= number < len(recording.runs):
            raise UnknownName(f"'{name}' has {len(recording.runs)} runs, there is no run {number}")
        run = recording.runs[number]
        since = run.t - run.t[0]
        signals = {s: getattr(run, s) for s in _SIGNALS}
        traces = {s: Trace(since, values) for s, values in signals.items() if values is not None}
        for trace in traces.values():
            _ = trace.extremes  # now, so that the first zoom does not wait for them
        return LoggedRun(self._robot(), run, tuple(r.name for r in recording.runs), recording.joints, traces)

    def _predict(self, logged: LoggedRun) -> Prediction:
        estimate = Estimate.load(self._session.workspace.existing(self._session.files.estimate))
        base, settings = estimate.base, estimate.signals
        if base.robot.coordinates != logged.robot.coordinates:
            raise Mismatch(f"the estimate is of another robot than '{logged.robot.name}': identify again")
        if logged.run.torque is None:
            raise MissingData("the recording has no torque to compare with")
        motions, _ = without_stops(base, [prepare(logged.run, settings)], settings)
        rows: dict[int, list[tuple[Array, Array]]] = {}
        for block in motion_blocks(base, motions[0], settings):
            channel = base.channels[block.channel]
            if channel not in base.robot.coordinates:
                continue  # a wrench belongs to no joint
            model = block.W @ estimate.beta
            times = motions[0].t[block.index] - logged.run.t[0]
            joint = base.robot.coordinates.index(channel)
            rows.setdefault(joint, []).append((times, np.column_stack([model, block.y - model])))
        if not rows:
            raise MissingData("no joint moves in this recording: there is no torque to compare")
        return Prediction(tuple(rows), tuple(_joined(parts) for parts in rows.values()))


def _joined(parts: Sequence[tuple[Array, Array]]) -> Trace:
    """One trace of the blocks of a joint, in the order of time."""
    times, values = (np.concatenate(x) for x in zip(*parts, strict=True))
    order = np.argsort(times, kind="stable")
    return Trace(times[order], values[order])


def values_at(logged: LoggedRun, model: Prediction | None, time: float) -> list[list[str]]:
    """Table of the values of all joints at a time, the first row its heads.

    Parameters
    ----------
    logged : LoggedRun
        The run.
    model : Prediction or None
        The predicted torques, where they are shown.
    time : float
        Time in s since the first sample.

    Returns
    -------
    list of list of str
        Heads, then one row per joint; a dash where the prediction has a gap.
    """
    row = logged.traces["q"].row(time)
    heads = [f"{_SIGNALS[s][0]}, {_units(logged, s)}" for s in logged.traces]
    if model is not None:
        heads += [f"{name}, {_units(logged, 'torque')}" for name in ("predicted", "filtered residual")]
    table = [["joint", *heads]]
    predictions = {} if model is None else dict(zip(model.joints, model.traces, strict=True))
    for j, joint in enumerate(logged.joints):
        cells = [f"{trace.values[row, j]:.4g}" for trace in logged.traces.values()]
        if model is not None:
            cells += _model_cells(predictions.get(j), time)
        table.append([joint, *cells])
    return table


def _units(logged: LoggedRun, signal: str) -> str:
    """Unit of a signal, both where the robot has revolute and prismatic joints."""
    return " or ".join(dict.fromkeys(a["unit"] for a in logged.axes(False) if signal in a["signals"]))


def _model_cells(trace: Trace | None, time: float) -> list[str]:
    """Predicted torque and residual at a time as text."""
    if trace is None or not trace.t[0] <= time <= trace.t[-1]:
        return ["-", "-"]
    row = trace.row(time)
    if trace.t[min(row + 1, len(trace.t) - 1)] - trace.t[row] > trace.gap:
        return ["-", "-"]
    return [f"{value:.4g}" for value in trace.values[row]]
