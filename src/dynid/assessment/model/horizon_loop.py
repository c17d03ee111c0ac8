"""Simulation error by horizon in closed loop: the controller of the recording moves the model along its reference."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.assessment.model.horizon import ModelErrors, SimulationError
from dynid.assessment.model.horizon_starts import Setting, Track, checked_track, nothing, setting_of
from dynid.dynamics.assembly import assembly_where_closed
from dynid.dynamics.functions import mass_matrix
from dynid.errors import DynidError, Mismatch, NotApplicable, TooFew
from dynid.identification.estimate import Estimate
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.model import Robot
from dynid.signals.settings import Signals, prepare
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.engine import simulate
from dynid.simulation.laws import LinearController
from dynid.simulation.plant import bolted
from dynid.simulation.reference import Reference, as_reference
from dynid.simulation.replay import Ending, Replay, Starts
from dynid.simulation.simulation import Simulation

__all__ = ["closed_loop_error"]

Array = NDArray[np.float64]

_AHEAD = 0.002  # s; a linkage that cannot move on for so long was stopped by a singular posture


def closed_loop_error(
    estimate: Estimate,
    recording: Recording,
    loop: ClosedLoop,
    horizons: tuple[float, ...],
    signals: Signals,
    interval: float,
    max_starts: int,
) -> SimulationError:
    """Errors of closed-loop simulations; for the parameters see `simulation_error`.

    The state of a linear control law at a start is what the law has after the measured motion up to there.
    """
    began = time.perf_counter()
    empty = nothing(estimate, "closed", horizons)
    robot = estimate.robot
    try:
        plan = _plan(estimate, recording, loop, signals)
        setting = setting_of(robot, plan.track, empty, interval, max_starts)
        identified = _errors(setting, plan, estimate.parameters)
    except DynidError as error:
        return replace(empty, reason=str(error))
    prior, reason = None, "the robot has no a-priori parameters"
    if np.any(robot.parameters):
        prior, reason = _errors(setting, plan, None), ""
    step = 1.0 / plan.law.rate
    return setting.result(replace(empty, step=step, reason=reason), identified=identified, prior=prior, began=began)


@dataclass(frozen=True, eq=False)
class _Plan:
    """Measured motion on the clock of the controller, with reference and controller state (row, n, m) at every row."""

    robot: Robot
    loop: ClosedLoop
    law: LinearController
    track: Track
    reference: Reference
    states: Array


def _plan(estimate: Estimate, recording: Recording, loop: ClosedLoop, signals: Signals) -> _Plan:
    """Reference, measured motion and controller states of all runs."""
    robot, law = estimate.robot, loop.controller
    if robot.base == "floating":
        raise NotApplicable("a robot on a floating base has no closed-loop simulation")
    if not isinstance(law, LinearController):
        raise NotApplicable(
            "the state of a controller that is a Python function is not known within a run", "controller"
        )
    if law.n != robot.n:
        raise Mismatch(f"the controller has {law.n} joints, the robot {robot.n}", "controller")
    whole = replace(signals, trim=0.0)
    checked_track(estimate, [prepare(run, whole) for run in recording.runs])
    parts = [_on_ticks(robot, run, whole, law) for run in recording.runs]
    edge = round(signals.trim * law.rate)
    sizes = np.cumsum([0, *(len(p[0]) for p in parts)])
    runs = [(int(a) + edge, int(b) - 1 - edge) for a, b in pairwise(sizes)]
    if any(b - a < 2 for a, b in runs):
        raise TooFew("a run is too short")
    q, v, *path = (np.concatenate([p[i] for p in parts]) for i in range(5))
    track = Track(q, v, np.zeros_like(q), tuple(runs), (1.0 / law.rate,) * len(runs))
    sensors = replace(loop.sensors, noise=0.0, torque_noise=0.0)
    states = np.concatenate([_states(law, *(p[i] for i in (2, 3, 0, 1))) for p in parts])
    return _Plan(robot, replace(loop, sensors=sensors), law, track, Reference(law.rate, *path), states)


def _on_ticks(robot: Robot, run: Run, signals: Signals, law: LinearController) -> tuple[Array, ...]:
    """Measured positions and velocities, and the reference with its derivatives, at every control period of a run."""
    path, motion = as_reference(run, robot, law.rate), prepare(run, signals)
    t = run.t[0] + np.arange(len(path)) / law.rate
    q, v = (np.column_stack([np.interp(t, motion.t, x) for x in signal.T]) for signal in (motion.q, motion.v))
    return q, v, path.q, path.v, path.a


def _states(law: LinearController, q_ref: Array, v_ref: Array, q: Array, v: Array) -> Array:
    """States (row, n, m) of a law that follows these signals from zero."""
    out = np.zeros((len(q), law.n, law.C.shape[1]))
    if not out.size:
        return out
    driven = np.einsum("nmu,knu->knm", law.B, np.stack([q_ref, v_ref, q, v], axis=2))
    for k in range(len(q) - 1):
        out[k + 1] = np.einsum("nij,nj->ni", law.A, out[k]) + driven[k]
    return out


def _errors(setting: Setting, plan: _Plan, parameters: ArrayLike | None) -> ModelErrors:
    """Errors of the loop with these parameters."""
    found = [_simulated(plan, s, parameters) for s in (setting.starts, setting.whole)]
    return setting.errors(found[0], found[1])


def _simulated(plan: _Plan, starts: Starts, parameters: ArrayLike | None) -> Replay:
    """Simulated positions at the marks of every start."""
    out = np.full((*starts.marks.shape, plan.robot.n), np.nan)
    endings = []
    for s in range(len(starts)):
        first, inside = int(starts.first[s]), starts.inside[s]
        marks = starts.marks[s][inside]
        rows = slice(first, first + int(marks[-1]) + 1)
        path = plan.reference
        done = simulate(
            plan.robot,
            plan.loop,
            Reference(path.rate, path.q[rows], path.v[rows], path.a[rows]),
            parameters=parameters,
            initial=(starts.q[s], starts.v[s]),
            controller_state=plan.states[first],
        )
        reached = marks < len(done.q)
        out[s, np.flatnonzero(inside)[reached]] = done.q[marks[reached]]
        endings.append(Ending.COMPLETED if done.completed else _ending(plan.robot, parameters, done))
    return Replay(out, tuple(endings))


def _ending(robot: Robot, parameters: ArrayLike | None, done: Simulation) -> Ending:
    """Why a simulation ended early, from its last state."""
    if not len(done.q):
        return Ending.NOT_POSITIVE
    if robot.loops:
        ahead = done.q[-1:] + _AHEAD * done.v[-1:]
        if not assembly_where_closed(robot.with_base("fixed"), ahead, 0 * ahead, 0 * ahead)[1][0]:
            return Ending.OPEN
    lowest = float(np.linalg.eigvalsh(mass_matrix(bolted(robot, parameters), done.q[-1:]))[0, 0])
    return Ending.DIVERGED if lowest > 0 else Ending.NOT_POSITIVE
