"""The loop of Krishnamoorthi (2018): torques fed forward along the reference beside a PD law, its log, and RBD-LS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
from dynid.simulation.engine import Loop, simulate
from dynid.simulation.laws import overlay, pd
from dynid.simulation.sensors import Sensors
from dynid.simulation.torque_models import RigidModel, TorqueModel

__all__ = [
    "CLEAN",
    "IDENTIFICATION",
    "TEST",
    "THESIS",
    "Differentiation",
    "Gains",
    "Held",
    "Log",
    "follow",
    "friction_free",
    "identified",
    "least_squares",
    "position_error",
    "repeated",
    "thesis_model",
]

Array = NDArray[np.float64]
State = tuple[Array, Array, Array]

_RATE = 1000.0  # Hz, of the controller
# Coulomb friction turns over within a hundredth of a rad/s: slope of the step in s/rad.
_LOOP = Loop(integrator="auto", coulomb=200.0)


@dataclass(frozen=True)
class Gains:
    """Stiffness (N m/rad) and damping (N m s/rad), the same for every joint."""

    stiffness: float
    damping: float


IDENTIFICATION, TEST = Gains(75.0, 0.32), Gains(10.0, 0.2)


@dataclass(frozen=True)
class Differentiation:
    """How speeds and accelerations are got, and the speed (rad/s) below which a joint is taken to stick.

    Rows of a joint that sticks say nothing of its friction, whatever sign its speed has.
    """

    how: Literal["differences", "exact"]
    slowest: float = 0.0


# Central differences of positions logged at 10 Hz and every row, as in the thesis; and the clean opposite.
THESIS, CLEAN = Differentiation("differences"), Differentiation("exact", 0.02)


@dataclass(frozen=True, eq=False)
class Log:
    """What was asked for and what happened: desired and true q, v, a, the drives' torque and the PD law's, each (N, n).

    `starts` are the samples at which a run begins that does not continue the one before.
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
        """q, v, a as simulated, or with speeds and accelerations from differences of the logged positions."""
        if how == "exact":
            return self.true
        runs = np.split(self.true[0], self.starts[1:])
        speeds = [derivative(q, self.rate) for q in runs]
        return self.true[0], np.vstack(speeds), np.vstack([derivative(v, self.rate) for v in speeds])

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
        """The mean over the periods of each run, but for its first, in which the robot settles.

        Desired motion is the same in all of them, so a model of the torques along it loses nothing.
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


@dataclass(frozen=True)
class Held:
    """A slow model asked at every `ticks`-th sample alone, its torques held in between."""

    model: TorqueModel
    ticks: int = 10

    def torques(self, q: Array, v: Array, a: Array) -> Array:
        some = slice(None, None, self.ticks)
        return np.repeat(self.model.torques(q[some], v[some], a[some]), self.ticks, axis=0)[: len(q)]


def _stacked(first: State, second: State) -> State:
    q, v, a = (np.vstack(pair) for pair in zip(first, second, strict=True))
    return q, v, a


def repeated(motion: Motion, seconds: float) -> Motion:
    """A motion over and over until `seconds`."""
    times = round(seconds / motion.duration)
    return motion if times <= 1 else Joined((motion,) * times)


def follow(
    plant: Robot,
    motion: Motion,
    model: Robot | TorqueModel | None,
    gains: Gains,
    *,
    correction: TorqueModel | None = None,
    rate: float = 10.0,
) -> Log:
    """A robot led along a motion by a PD law at 1 kHz and a model's torques, logged at `rate` Hz without noise.

    `correction` is laid over a model that stays on.
    """
    law = pd(_RATE, np.full(plant.n, gains.stiffness), np.full(plant.n, gains.damping))
    if model is not None:
        law = law.with_feedforward(RigidModel(model) if isinstance(model, Robot) else model)
    if correction is not None:
        law = overlay(law, correction)
    run = simulate(plant, law, motion, sensors=Sensors(speed="exact"), loop=_LOOP, rate=rate)
    if not run.finished:
        raise DynidError(f"the simulated {plant.name} stopped: {run.outcome}")
    _, q, v, a = motion.sample(rate)
    feedback = gains.stiffness * (q - run.q) + gains.damping * (v - run.v)
    return Log(rate, (q, v, a), (run.q, run.v, run.a), run.torque, feedback)


def friction_free(name: str, offset: ArrayLike = 0.0) -> Robot:
    """The rigid bodies of a built-in robot without any drive, their base values moved by an offset (b,)."""
    robot = load_robot(name).with_drives("none", False)
    base = base_parameters(robot)
    return identified(base, base.values() + np.asarray(offset, dtype=float))


@cache
def thesis_model(name: str) -> BaseParameters:
    """What the thesis identifies: rigid bodies with fv and fc a joint; motor inertia is left out."""
    return base_parameters(load_robot(name).with_drives("viscous+coulomb", False))


def identified(base: BaseParameters, beta: Array) -> Robot:
    """A robot with these base values; none that could be built is looked for."""
    return base.robot.with_parameters(base.join(beta))


def least_squares(base: BaseParameters, state: State, torque: Array, slowest: float = 0.0) -> Array:
    """Base values (b,) by ordinary least squares on the rows of all joints that move faster than `slowest`."""
    W = base.regressor(*state)
    moving = np.abs(state[1]) >= slowest
    return np.asarray(np.linalg.lstsq(W[moving], torque[moving], rcond=None)[0])


def position_error(logs: Sequence[Log]) -> Array:
    """Root mean square of each joint's position error (n,), the mean over logs."""
    return np.mean([np.sqrt(np.mean((x.desired[0] - x.true[0]) ** 2, axis=0)) for x in logs], axis=0)
