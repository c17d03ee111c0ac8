"""The control loop of Krishnamoorthi (2018), PD with feedforward along the reference, its log, and RBD-LS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError, DynidError
from dynid.excitation.sequencing import Joined, Motion
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.robot.load import load_robot
from dynid.robot.model import Robot
from dynid.signals.filters import derivative
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.engine import simulate
from dynid.simulation.laws import overlay, pd
from dynid.simulation.sensors import Sensors
from dynid.simulation.simulation import Simulation
from dynid.simulation.torque_models import RigidModel, TorqueModel

__all__ = [
    "CLEAN",
    "IDENTIFICATION",
    "TEST",
    "THESIS",
    "Differentiation",
    "Gains",
    "Log",
    "follow",
    "followed",
    "friction_free",
    "identified",
    "least_squares",
    "repeated",
    "thesis_model",
    "tracking_error",
]

Array = NDArray[np.float64]
State = tuple[Array, Array, Array]

_RATE = 1000.0  # Hz, of the controller
# Coulomb friction changes sign within a hundredth of a rad/s: slope of the step in s/rad.
_LOOP = ClosedLoop(sensors=Sensors(velocity="exact"), coulomb_slope=200.0)


@dataclass(frozen=True)
class Gains:
    """Stiffness (N m/rad) and damping (N m s/rad), the same for every joint."""

    stiffness: float
    damping: float


IDENTIFICATION, TEST = Gains(75.0, 0.32), Gains(10.0, 0.2)


@dataclass(frozen=True)
class Differentiation:
    """How velocities and accelerations are computed, and the velocity (rad/s) below which a joint counts as sticking.

    Rows of a sticking joint carry no information on its friction, whatever the sign of its velocity.
    """

    how: Literal["differences", "exact"]
    slowest: float = 0.0


# Central differences of positions logged at 10 Hz and all rows, as in the thesis; or exact derivatives of moving rows.
THESIS, CLEAN = Differentiation("differences"), Differentiation("exact", 0.02)


@dataclass(frozen=True, eq=False)
class Log:
    """Desired and true q, v, a, torque of the drives and torque of the PD law, each (N, n).

    `starts` are the first samples of the runs.
    """

    rate: float
    desired: State
    true: State
    torque: Array
    feedback: Array
    starts: tuple[int, ...] = (0,)

    def __len__(self) -> int:
        return len(self.torque)

    def measured(self, how: Literal["differences", "exact"]) -> State:
        """q, v, a as simulated, or with velocities and accelerations from differences of the logged positions."""
        if how == "exact":
            return self.true
        runs = np.split(self.true[0], self.starts[1:])
        velocities = [derivative(q, self.rate) for q in runs]
        return self.true[0], np.vstack(velocities), np.vstack([derivative(v, self.rate) for v in velocities])

    def joined(self, other: Log) -> Log:
        """Two logs as one set of data."""
        return Log(
            self.rate,
            _stacked(self.desired, other.desired),
            _stacked(self.true, other.true),
            np.vstack([self.torque, other.torque]),
            np.vstack([self.feedback, other.feedback]),
            (*self.starts, *(len(self) + s for s in other.starts)),
        )

    def period_mean(self, period: float) -> Log:
        """The mean over the periods of each run, without the first one, which contains the transient.

        The desired motion is the same in all periods, so nothing is lost for a model of the torques along it.
        """
        count = round(period * self.rate)
        means: list[list[Array]] = []
        for first, last in zip(self.starts, (*self.starts[1:], len(self)), strict=True):
            whole = (last - first - 1) // count
            if whole < 2:
                raise DataError(f"a run of {(last - first) / self.rate:g} s has no second period of {period:g} s")
            arrays = (*self.desired, *self.true, self.torque, self.feedback)
            kept = slice(first + count, first + whole * count)
            means.append([x[kept].reshape(whole - 1, count, -1).mean(axis=0) for x in arrays])
        q, v, a, true_q, true_v, true_a, torque, feedback = (np.vstack(x) for x in zip(*means, strict=True))
        starts = tuple(count * k for k in range(len(means)))
        return Log(self.rate, (q, v, a), (true_q, true_v, true_a), torque, feedback, starts)

    @property
    def runs(self) -> NDArray[np.intp]:
        """Number of the run of each sample (N,)."""
        return np.searchsorted(self.starts, np.arange(len(self)), side="right") - 1


def _stacked(first: State, second: State) -> State:
    q, v, a = (np.vstack(pair) for pair in zip(first, second, strict=True))
    return q, v, a


def repeated(motion: Motion, seconds: float) -> Motion:
    """A motion repeated for `seconds`."""
    times = round(seconds / motion.duration)
    return motion if times <= 1 else Joined((motion,) * times)


def followed(
    plant: Robot,
    motion: Motion,
    model: Robot | TorqueModel | None,
    gains: Gains,
    *,
    correction: TorqueModel | None = None,
    rate: float = 10.0,
) -> Simulation:
    """Simulate a PD law at 1 kHz with feedforward of a model along a motion, sampled at `rate` Hz without noise.

    `correction` is an overlay on the feedforward model.
    """
    law = pd(_RATE, np.full(plant.n, gains.stiffness), np.full(plant.n, gains.damping))
    if model is not None:
        law = law.with_feedforward(RigidModel(model) if isinstance(model, Robot) else model)
    if correction is not None:
        law = overlay(law, correction)
    run = simulate(plant, replace(_LOOP, controller=law), motion, rate=rate)
    if not run.completed:
        raise DynidError(f"the simulated {plant.name} stopped: {run.outcome}")
    return run


def follow(
    plant: Robot,
    motion: Motion,
    model: Robot | TorqueModel | None,
    gains: Gains,
    *,
    correction: TorqueModel | None = None,
    rate: float = 10.0,
) -> Log:
    """The log of `followed`."""
    run = followed(plant, motion, model, gains, correction=correction, rate=rate)
    _, q, v, a = motion.sample(rate)
    feedback = gains.stiffness * (q - run.q) + gains.damping * (v - run.v)
    return Log(rate, (q, v, a), (run.q, run.v, run.a), run.torque, feedback)


def friction_free(name: str, offset: ArrayLike = 0.0) -> Robot:
    """The rigid bodies of a built-in robot without drives, their base values shifted by an offset (b,)."""
    robot = load_robot(name).with_drives("none", rotor_inertia=False)
    base = base_parameters(robot)
    return identified(base, base.values() + np.asarray(offset, dtype=float))


@cache
def thesis_model(name: str) -> BaseParameters:
    """The model of the thesis: rigid bodies with fv and fc per joint, without motor inertia."""
    return base_parameters(load_robot(name).with_drives("viscous+coulomb", rotor_inertia=False))


def identified(base: BaseParameters, beta: Array) -> Robot:
    """A robot with these base values, not necessarily a feasible one."""
    return base.robot.with_parameters(base.join(beta))


def least_squares(base: BaseParameters, state: State, torque: Array, slowest: float = 0.0) -> Array:
    """Base values (b,) by ordinary least squares on the rows of all joints that move faster than `slowest`."""
    W = base.regressor(*state)
    moving = np.abs(state[1]) >= slowest
    return np.asarray(np.linalg.lstsq(W[moving], torque[moving], rcond=None)[0])


def tracking_error(runs: Sequence[Simulation]) -> Array:
    """Root mean square of each joint's position error (n,), the mean over runs."""
    return np.asarray(np.mean([run.tracking_rmse for run in runs], axis=0))
