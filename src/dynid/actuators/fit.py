"""Fit of simulated to measured positions by Gauss-Newton steps with exact sensitivities.

The runs are cut into segments, whose initial states are unknown too: each segment of each independent part of the robot
is reduced by an orthogonal transformation to what it says about the parameters alone, and its initial state follows by
back substitution. Short segments come first: they converge from poor values and through instability. Then they grow to
the whole run, where the initial states no longer cost information.

Last, the errors of the simulation are taken out. Dry friction that is rounded at low velocities converges well, and
steps of moderate length are fast, but good encoders show the difference. In the steps of a simulator, the fit ends with
steep friction. Else the runs are simulated with steep friction
and shorter steps, extrapolated to steps of zero, and the fit goes on with the difference added (deferred correction) as
long as the error of that simulation decreases.

With the positions q_s(t; x, x0_s) simulated in segment s from x0_s, and the weights 1 / sigma of the joints:

    argmin sum over s of |(q - q_s(x, x0_s)) / sigma|^2 + |precision x|^2 over x and all x0_s,
    x <- x + argmin |e - S d|^2 + damping |diag(|S_i|) d|^2,    exact q_s = q_s(h) + (q_s(h / 4) - q_s(h)) / (1 - 1 / 4)

where QR of the columns of x0_s leaves the rows of x alone.

Sources: Bock, Recent Advances in Parameter Identification Techniques for ODE (1983), for segments with unknown initial
states; Marquardt (1963), for the damping; Stetter, The Defect Correction Principle and Discretization Methods (1978),
for the correction of the steps. The growth of the segments is our own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.actuators.chains import independent_chains
from dynid.actuators.logs import Log
from dynid.actuators.rollouts import STEP, Directions, Rollout, Segments, rollout, touched
from dynid.actuators.unknowns import ParameterSpace, Quantity
from dynid.errors import InvalidValue, SimulationFailed
from dynid.robot.actuator_law import ActuatorLaw
from dynid.robot.model import Robot

__all__ = ["Continued", "Fitted", "Stage", "continued", "fit", "inverse_of", "refit"]

Array = NDArray[np.float64]

# Seconds of the segments before the whole runs.
HORIZONS = (0.5, 3.0)
_DAMPING, _LEAST_DAMPING = 1e-3, 1e-9
_GROWTH, _DECAY = 10.0, 0.2
_ROUNDING = 1e-12
# A stage ends when the sum of squares decreases by less than this share: over short segments, over whole runs, and with
# the final weights; or after so many steps.
_SHORT_STAGE, _WHOLE_STAGE, _FINAL_STAGE = 1e-2, 1e-3, 1e-4
_STEPS = 40
# Steps of the simulation that corrects the errors of the fit's, as a share of those of the fit. Dry friction acts at
# the end of a step: the error is proportional to the step. At most so many corrections.
_SHORTER = 0.25
_CORRECTIONS = 4
# A step that is expected to decrease the sum of squares by less than this share of that is not tried.
_WORTH = 0.1
# Standard deviation of the velocity at the start of a segment, as a share of the velocity of the joint.
_VELOCITY = 1.0
# What is expected of the unknowns counts by this as long as the weights of the positions are those of their range.
_GUESS = 1e-6
# No joint is weighted as if its positions were known better than this share of its range.
_BEST = 1e-5
# A decrease of the sum of squares by this share shows that a bound hinders the fit.
_MUCH = 0.2
# Singular values of scaled columns below this share of the largest say nothing, and the share of a value in their
# directions from which it is not determined.
_NO_INFORMATION, _CONTAINED = 1e-9, 1e-3


@dataclass(frozen=True, eq=False)
class Stage:
    """Segments of all logs at one horizon: their first rows and initial states, per log."""

    length: tuple[int, ...]
    first: tuple[NDArray[np.int64], ...]
    states: tuple[Array, ...]


@dataclass(frozen=True, eq=False)
class Fitted:
    """Result of a fit.

    Attributes
    ----------
    values : ndarray, shape (C,)
    residuals : tuple of ndarray, shape (K, n)
        Measured minus simulated positions of every log.
    influence : ndarray, shape (rows, C)
        Change of the values per row of time, whose sum over rows is the error of the values.
    covariance : ndarray, shape (C, C)
        For residuals that are white with the variance of each joint.
    lost : ndarray of bool, shape (C,)
        Values that the log does not show at all: directions without any effect contain them.
    sigma : ndarray, shape (n,)
        Standard deviation of the residual of each joint (rad or m).
    at_bound : ndarray of bool, shape (C,)
        Values at their least value.
    negative_delay : float
        Largest delay below zero (s) that fits much better than a delay at its bound of zero; 0.0 if none does.
    stage : Stage
        The segments of the last stage.
    space : ParameterSpace
        The unknowns of a robot with the friction that was simulated.
    added : tuple of ndarray, shape (segment, row, n)
        What is added to the simulated positions of every log: the error of this simulation. () without a correction.
    cost : float
        Whitened sum of squares.
    horizon : float
        Seconds of the longest segment.
    iterations : int
    converged : bool
    """

    values: Array
    residuals: tuple[Array, ...]
    influence: Array
    covariance: Array
    lost: NDArray[np.bool_]
    sigma: Array
    at_bound: NDArray[np.bool_]
    negative_delay: float
    stage: Stage
    space: ParameterSpace
    added: tuple[Array, ...]
    cost: float
    horizon: float
    iterations: int
    converged: bool

    @property
    def corrected(self) -> bool:
        """Whether the values are those for steep friction and steps of zero length."""
        return bool(self.added)


class _Part(NamedTuple):
    """Joints that move independently of all others, and the unknowns that their motion depends on."""

    joints: NDArray[np.int64]
    columns: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Point:
    """Everything at one point of the search: simulated positions, residuals, and the factors of all segments.

    The triangular factors of every log and part have the columns initial states, unknowns of the part, and errors.
    """

    values: Array
    stage: Stage
    cost: float
    simulated: tuple[Array, ...] = ()
    residuals: tuple[Array, ...] = ()
    slopes: tuple[Array, ...] = ()
    factors: tuple[tuple[Array, ...], ...] = ()


def fit(
    space: ParameterSpace,
    logs: Sequence[Log],
    values: Array,
    *,
    steep: Robot | None = None,
    horizons: Sequence[float] = HORIZONS,
    step: float | None = None,
    report: Callable[[str, float], None] | None = None,
) -> Fitted:
    """Fit the unknowns to the measured positions.

    Parameters
    ----------
    space : ParameterSpace
    logs : sequence of Log
    values : array of shape (C,)
        Values to start from.
    steep : Robot, optional
        The robot with steeper friction, for the corrections at the end; none without it.
    horizons : sequence of float
        Seconds of the segments before the whole runs.
    step : float, optional
        Largest integration step in s.
    report : callable, optional
        Called with what is done and the share that is done.

    Returns
    -------
    Fitted
    """
    longest = max((len(x) - 1) / x.rate for x in logs)
    stages = [*(h for h in horizons if 2 * h < longest), longest]
    sigma = _ranges(logs)
    iterations, done, converged = 0, None, False
    for k, horizon in enumerate(stages):
        last = k + 1 == len(stages)
        problem = _Problem(space, logs, sigma, step, expecting=_GUESS)
        point = problem.at(values, _stage(logs, horizon, space, values))
        if not np.isfinite(point.cost):
            break  # unstable over this horizon: the shorter one stays
        tolerance = _WHOLE_STAGE if last else _SHORT_STAGE
        started = None if report is None else partial(_reported, report, horizon, k, len(stages))
        point, used, converged = problem.minimize(point, tolerance, started)
        iterations += used
        values, done = point.values, (problem, point, horizon)
        sigma = _sigmas(point, logs)
    if done is None:
        raise SimulationFailed(
            f"the simulation of robot '{space.robot.name}' under this law diverges: the law is unstable with the "
            "model, or the sign of a joint, the order of the joints or a unit is wrong"
        )
    problem, point, horizon = done
    # Once more with the weights of the final residuals.
    problem = _Problem(space, logs, sigma, step)
    point, used, converged = problem.minimize(problem.judged(point), _FINAL_STAGE, None)
    iterations += used
    if steep is not None:
        improved = _corrected if space.law.timestep is None else _steepened
        problem, point, used = improved(problem, point, steep)
        iterations += used
    return problem.result(point, horizon, iterations, converged)


def _steepened(problem: _Problem, point: _Point, steep: Robot) -> tuple[_Problem, _Point, int]:
    """The problem with steep friction, its minimum, and the number of steps to it.

    The steps of a simulator are what they are: there is no error of theirs to take out.
    """
    exact = _Problem(replace(problem.space, robot=steep), problem.logs, problem.sigma, problem.step)
    start = exact.at(point.values, point.stage)
    if not np.isfinite(start.cost):
        return problem, point, 0
    return exact, *exact.minimize(start, _FINAL_STAGE, None)[:2]


def _corrected(problem: _Problem, point: _Point, steep: Robot) -> tuple[_Problem, _Point, int]:
    """The problem with the errors of its simulation taken out, its minimum, and the number of steps to it."""
    iterations = 0
    best = problem, point
    anchored = problem.anchored(point, steep)
    for _ in range(_CORRECTIONS):
        if anchored is None or (best[0].added and anchored[1].cost > (1.0 - _FINAL_STAGE) * best[1].cost):
            break
        best = anchored
        moved, used, _ = best[0].minimize(best[1], _FINAL_STAGE, None)
        iterations += used
        if used == 0:
            break
        anchored = problem.anchored(moved, steep)
    return *best, iterations


def refit(space: ParameterSpace, logs: Sequence[Log], values: Array, fitted: Fitted, step: float | None) -> Fitted:
    """A fit with more unknowns, from where a fit with fewer ended, to the accuracy of a test."""
    problem = _Problem(space, logs, fitted.sigma, step, fitted.added)
    point, used, converged = problem.minimize(problem.at(values, fitted.stage), _SHORT_STAGE, None)
    return problem.result(point, fitted.horizon, used, converged)


class Continued(NamedTuple):
    """Values (C,) after a few steps, and the whitened sum of squares there."""

    values: Array
    cost: float


def continued(
    space: ParameterSpace,
    logs: Sequence[Log],
    starts: Sequence[Array],
    *,
    horizon: float,
    sigma: Array,
    step: float | None,
    steps: int,
) -> Continued | None:
    """A few steps from the best of some starts (C,), over segments of one horizon; None if all diverge."""
    problem = _Problem(space, logs, sigma, step)
    stages = [_stage(logs, horizon, space, x) for x in starts]
    errors = [problem.misfit(x, stage) for x, stage in zip(starts, stages, strict=True)]
    best = int(np.argmin(errors))
    if not np.isfinite(errors[best]):
        return None
    point = problem.at(starts[best], stages[best])
    if np.isfinite(point.cost):
        point = problem.minimize(point, _WHOLE_STAGE, None, steps)[0]
    return Continued(point.values, point.cost)


class _Problem:
    """Sum of squares of the position errors over sigma (n,), and the steps that reduce it.

    `added` is what is added to the simulated positions of every log, `expecting` the weight of what is expected of the
    unknowns before.
    """

    def __init__(
        self,
        space: ParameterSpace,
        logs: Sequence[Log],
        sigma: Array,
        step: float | None,
        added: tuple[Array, ...] = (),
        *,
        expecting: float = 1.0,
    ) -> None:
        self.space, self.logs, self.sigma, self.step, self.added = space, logs, sigma, step, added
        self.least, self.precision = space.least, expecting * space.precision
        along = space.directions
        self.parts = [_Part(c.joints, touched(c, along.parameters, along.law)) for c in independent_chains(space.robot)]
        self.velocity_std = [np.maximum(_VELOCITY * np.sqrt(np.mean(x.v**2, axis=0)), 1e-6) for x in logs]

    def misfit(self, values: Array, stage: Stage) -> float:
        """Whitened sum of squares at these values and initial states, without derivatives; infinite if unstable."""
        parameters, fields = self.space.at(values)
        law, total = self.space.law.changed(**fields), 0.0
        for k, log in enumerate(self.logs):
            found = self._simulated(k, stage, law, parameters)
            if any(x.ended_early for x in found.endings):
                return np.inf
            rows = self._rows(k, stage)
            error = log.measured[np.minimum(rows, len(log) - 1)] - law.bias - found.q
            total += float(np.sum((error[rows < len(log)] / self.sigma) ** 2))
        return total

    def at(self, values: Array, stage: Stage) -> _Point:
        """Simulate all segments at these values."""
        parameters, fields = self.space.at(values)
        try:
            law = self.space.law.changed(**fields)
        except InvalidValue:  # beyond what a law can be
            return _Point(values, stage, np.inf)
        simulated, slopes = [], []
        for k, log in enumerate(self.logs):
            found = self._simulated(k, stage, law, parameters, directions=self.space.directions)
            if any(x.ended_early for x in found.endings):
                return _Point(values, stage, np.inf)
            inside = self._rows(k, stage) < len(log)
            slope = found.dq
            assert slope is not None
            slope[~inside] = 0.0
            if "bias" in self.space.directions.law:
                slope[..., : len(values)] += inside[..., None, None] * self.space.directions.law["bias"].T
            simulated.append(found.q)
            slopes.append(slope)
        return self._point(values, stage, tuple(simulated), tuple(slopes))

    def judged(self, point: _Point) -> _Point:
        """The same simulation, judged by the weights and the correction of this problem."""
        return self._point(point.values, point.stage, point.simulated, point.slopes)

    def _point(self, values: Array, stage: Stage, simulated: tuple[Array, ...], slopes: tuple[Array, ...]) -> _Point:
        """Errors, factors and cost of simulated positions and their slopes."""
        law = self.space.law.changed(**self.space.at(values)[1])
        residuals, factors, cost = [], [], float(np.sum((self.precision * values) ** 2))
        for k, (log, slope) in enumerate(zip(self.logs, slopes, strict=True)):
            rows = self._rows(k, stage)
            measured = log.measured[np.minimum(rows, len(log) - 1)]
            q = simulated[k] + self.added[k] if self.added else simulated[k]
            error = np.where((rows < len(log))[..., None], measured - law.bias - q, 0.0)
            late = (log.v[stage.first[k]] - stage.states[k][:, law.n :]) / self.velocity_std[k]
            factors.append(tuple(self._factor(x, error, slope, late, self.velocity_std[k]) for x in self.parts))
            residuals.append(error)
            cost += float(np.sum((error / self.sigma) ** 2) + np.sum(late**2))
        if not np.isfinite(cost):
            return _Point(values, stage, np.inf)
        return _Point(values, stage, cost, simulated, tuple(residuals), slopes, tuple(factors))

    @staticmethod
    def _rows(k: int, stage: Stage) -> NDArray[np.int64]:
        """Rows (segment, row) of log k; the last segment may reach beyond its end."""
        return np.asarray(stage.first[k][:, None] + np.arange(stage.length[k] + 1))

    def _simulated(
        self,
        k: int,
        stage: Stage,
        law: ActuatorLaw,
        parameters: Array,
        *,
        robot: Robot | None = None,
        step: float | None = None,
        directions: Directions | None = None,
    ) -> Rollout:
        """Segments of log k under this law."""
        n, states = law.n, stage.states[k]
        return rollout(
            robot or self.space.robot,
            law,
            self.logs[k].commands,
            Segments(stage.first[k], stage.length[k], states[:, :n], states[:, n:]),
            directions=directions,
            parameters=parameters,
            step=step or self.step,
        )

    def anchored(self, point: _Point, steep: Robot) -> tuple[_Problem, _Point] | None:
        """The problem that is exact at this point: with steep friction and steps of zero length; None if unstable."""
        parameters, fields = self.space.at(point.values)
        law = self.space.law.changed(**fields)
        own, added = self.step or STEP, []
        for k in range(len(self.logs)):
            found = [
                self._simulated(k, point.stage, law, parameters, robot=steep, step=step)
                for step in (own, _SHORTER * own)
            ]
            if any(x.ended_early for one in found for x in one.endings):
                return None
            long, short = (x.q for x in found)
            added.append(long + (short - long) / (1.0 - _SHORTER) - point.simulated[k])
        exact = _Problem(self.space, self.logs, self.sigma, self.step, tuple(added))
        return exact, exact.judged(point)

    def _factor(self, part: _Part, error: Array, slope: Array, late: Array, std: Array) -> Array:
        """Triangular factors of the segments of one part: its initial states, its unknowns, and the errors."""
        joints, count = part.joints, len(self.least)
        m, segments = len(joints), len(error)
        columns = [*(count + joints), *(count + self.space.law.n + joints), *part.columns]
        weight = 1.0 / self.sigma[joints]
        sides = slope[:, :, joints][..., columns] * weight[:, None]
        whole = np.concatenate([sides, (error[:, :, joints] * weight)[..., None]], axis=3)
        # Velocities at the start, as far as the filtered positions tell.
        prior = np.zeros((segments, m, whole.shape[-1]))
        prior[:, np.arange(m), m + np.arange(m)] = 1.0 / std[joints]
        prior[:, :, -1] = late[:, joints]
        stacked = np.concatenate([whole.reshape(segments, -1, whole.shape[-1]), prior], axis=1)
        return np.asarray(np.linalg.qr(stacked, mode="r"))

    def minimize(
        self, point: _Point, tolerance: float, report: Callable[[float], object] | None, steps: int = _STEPS
    ) -> tuple[_Point, int, bool]:
        """Levenberg-Marquardt steps until the cost no longer decreases."""
        damping = _DAMPING
        for iteration in range(steps):
            if report is not None:
                report(iteration / steps)
            while True:
                values, stage, expected = self._step(point, damping)
                if point.cost - expected < _WORTH * tolerance * point.cost:
                    return point, iteration, True
                trial = self.at(values, stage)
                if trial.cost < point.cost:
                    break
                damping *= _GROWTH
            gain = 1.0 - trial.cost / point.cost
            point, damping = trial, max(_DECAY * damping, _LEAST_DAMPING)
            if gain < tolerance:
                return point, iteration + 1, True
        return point, steps, False

    def _step(self, point: _Point, damping: float) -> tuple[Array, Stage, float]:
        """Values and initial states after one damped step, and the cost that is expected there."""
        count = len(point.values)
        damped = [[_damped(R, 2 * len(x.joints), damping) for x, R in self._blocks(log)] for log in point.factors]
        inner = self._inner(damped, point.values)
        H, g = inner[:, :-1].T @ inner[:, :-1], inner[:, :-1].T @ inner[:, -1]
        size = np.where(np.diag(H) > 0, np.diag(H), 1.0)
        free = np.ones(count, bool)
        change = np.zeros(count)
        for _ in range(count):  # values that would pass their least value stay there
            A = H[np.ix_(free, free)] + np.diag((damping + _ROUNDING) * size[free])
            change[:] = np.where(free, 0.0, self.least - point.values)
            rest = g[free] - H[np.ix_(free, ~free)] @ change[~free]
            unit = 1.0 / np.sqrt(size[free])  # the unknowns have different units
            change[free] = unit * scipy.linalg.solve(A * np.outer(unit, unit), unit * rest, assume_a="pos")
            out = free & (point.values + change < self.least)
            if not out.any():
                break
            free &= ~out
        states, expected = [], float(np.sum((self.precision * (point.values + change)) ** 2))
        for before, exact, log in zip(point.stage.states, point.factors, damped, strict=True):
            after = np.array(before)
            for (part, R), plain in zip(self._blocks(log), exact, strict=True):
                m = 2 * len(part.joints)
                rest = R[:, :m, -1] - R[:, :m, m:-1] @ change[part.columns]
                shift = np.linalg.solve(R[:, :m, :m], rest[..., None])[..., 0]
                after[:, [*part.joints, *(self.space.law.n + part.joints)]] += shift
                errors = plain[..., -1] - plain[..., m:-1] @ change[part.columns]
                expected += float(np.sum((errors - np.einsum("skm,sm->sk", plain[..., :m], shift)) ** 2))
            states.append(after)
        return np.maximum(point.values + change, self.least), replace(point.stage, states=tuple(states)), expected

    def _blocks(self, factors: Sequence[Array]) -> zip[tuple[_Part, Array]]:
        """The parts and their factors."""
        return zip(self.parts, factors, strict=True)

    def _inner(self, factors: Sequence[Sequence[Array]], values: Array) -> Array:
        """What all segments, and what is expected, say about the unknowns alone: rows of columns and the errors."""
        count, known = len(values), self.precision > 0
        out = [np.column_stack([np.diag(self.precision), -self.precision * values])[known]]
        for log in factors:
            for part, R in self._blocks(log):
                m = 2 * len(part.joints)
                own = R[:, m:, m:].reshape(-1, R.shape[2] - m)
                rows = np.zeros((len(own), count + 1))
                rows[:, [*part.columns, -1]] = own
                out.append(rows)
        return np.concatenate(out)

    def result(self, point: _Point, horizon: float, iterations: int, converged: bool) -> Fitted:
        """Covariance, and the influence of every row on the values."""
        inverse, lost = inverse_of(self._inner(point.factors, point.values)[:, :-1])
        influence = []
        for error, slope, blocks in zip(point.residuals, point.slopes, point.factors, strict=True):
            total = np.zeros((*error.shape[:2], len(point.values)))
            for part, R in self._blocks(blocks):
                j, m = part.joints, 2 * len(part.joints)
                states = [*(len(point.values) + j), *(len(point.values) + self.space.law.n + j)]
                own = np.linalg.solve(R[:, :m, :m], R[:, :m, m:-1])
                here = slope[:, :, j]
                alone = here[..., part.columns] - here[..., states] @ own[:, None]
                total += np.einsum("sti,stic->stc", error[:, :, j] / self.sigma[j] ** 2, alone) @ inverse[part.columns]
            influence.append(total.reshape(-1, len(point.values)))
        return Fitted(
            point.values,
            tuple(self._residuals(point)),
            np.concatenate(influence),
            inverse,
            lost,
            self.sigma,
            point.values <= self.least,
            self._negative_delay(point),
            point.stage,
            self.space,
            self.added,
            point.cost,
            horizon,
            iterations,
            converged,
        )

    def _negative_delay(self, point: _Point) -> float:
        """The delay below zero (s) after a step without this bound, if that decreases the cost much; 0 otherwise."""
        bound = point.values <= self.least
        delays = bound & np.array([x.quantity is Quantity.DELAY for x in self.space.unknowns])
        free = ~bound | delays
        if not delays.any():
            return 0.0
        inner = self._inner(point.factors, point.values)
        rows, errors = inner[:, :-1][:, free], inner[:, -1]
        scale = np.linalg.norm(rows, axis=0)
        scale[scale == 0] = 1.0
        step = np.linalg.lstsq(rows / scale, errors, rcond=_NO_INFORMATION)[0] / scale
        decrease = float(errors @ errors - np.sum((errors - rows @ step) ** 2))
        change = np.zeros(len(free))
        change[free] = step
        return float(min(change[delays].min(), 0.0)) if decrease > _MUCH * point.cost else 0.0

    def _residuals(self, point: _Point) -> list[Array]:
        """Residuals of every log in the order of its rows."""
        out = []
        for log, length, first, error in zip(
            self.logs, point.stage.length, point.stage.first, point.residuals, strict=True
        ):
            whole = np.full_like(log.measured, np.nan)
            for k, row in enumerate(first):
                stop = min(row + length + 1, len(log))
                whole[row:stop] = error[k, : stop - row]
            out.append(whole)
        return out


def _damped(factors: Array, m: int, damping: float) -> Array:
    """Triangular factors with damped initial states, which are the first m columns."""
    sizes = np.linalg.norm(factors[:, :, :m], axis=1)
    rows = np.zeros((len(factors), m, factors.shape[2]))
    rows[:, np.arange(m), np.arange(m)] = np.sqrt(damping) * sizes
    return np.asarray(np.linalg.qr(np.concatenate([factors, rows], axis=1), mode="r"))


def inverse_of(rows: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Inverse of rows' rows without its zero directions, and which values these directions contain."""
    scale = np.linalg.norm(rows, axis=0)
    scale[scale == 0] = 1.0
    _, s, vt = np.linalg.svd(rows / scale, full_matrices=False)
    small = s <= _NO_INFORMATION * s.max(initial=0.0)
    root = vt[~small].T / s[~small]
    lost = np.abs(vt[small]).max(axis=0, initial=0.0) > _CONTAINED
    return root @ root.T / np.outer(scale, scale), lost


def _stage(logs: Sequence[Log], horizon: float, space: ParameterSpace, values: Array) -> Stage:
    """Segments of this length with initial states from the filtered positions."""
    bias = space.applied(values)[1].bias
    lengths, starts, states = [], [], []
    for log in logs:
        length = min(max(2, round(horizon * log.rate)), len(log) - 1)
        parts = max(1, (len(log) - 1) // length)
        first = length * np.arange(parts)
        lengths.append((len(log) - 1) // parts if parts == 1 else length)
        starts.append(first)
        states.append(np.hstack([log.q[first] - bias, log.v[first]]))
    return Stage(tuple(lengths), tuple(starts), tuple(states))


def _reported(report: Callable[[str, float], None], horizon: float, k: int, stages: int, share: float) -> None:
    report(f"{horizon:.2g} s", (k + share) / stages)


def _ranges(logs: Sequence[Log]) -> Array:
    """Range of every joint, the weight of its errors before any fit."""
    size = np.max([np.ptp(log.measured, axis=0) for log in logs], axis=0)
    return np.asarray(np.where(size > 0, 0.05 * size, max(size.max(), 1.0)))


def _sigmas(point: _Point, logs: Sequence[Log]) -> Array:
    """Standard deviation of the residual of every joint."""
    flat = np.concatenate([x.reshape(-1, x.shape[-1]) for x in point.residuals])
    size = np.max([np.ptp(log.measured, axis=0) for log in logs], axis=0)
    floor = _BEST * np.where(size > 0, size, max(size.max(), 1.0))
    return np.asarray(np.maximum(np.sqrt(np.mean(flat**2, axis=0)), floor))
