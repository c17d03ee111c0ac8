"""Variable projection: base parameters and offsets are solved exactly at every step of the few other unknowns.

At given delays, gains, encoder offsets and tilt the model is linear in the rest, which one triangular solve gives.
The others take Gauss-Newton steps of the joint problem, with channels weighted by the standard deviation of their
residual.

    argmin over theta of min over x of |(y(theta) - A(theta) x) / noise|^2

Source: Golub and Pereyra, The Differentiation of Pseudo-Inverses and Nonlinear Least Squares Problems Whose Variables
Separate (1973); here steps are those of the joint problem, and x is solved again after each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.calibration.sensors.rows import KNOWN, LEADING, ONE, RATE, Folded, Problem, inner_unknowns
from dynid.calibration.sensors.unknowns import Unknown
from dynid.errors import DynidError, MissingData, NotIdentifiable, TooFew
from dynid.identification.observation import fold
from dynid.parameters.base import BaseParameters
from dynid.recording.recording import Recording
from dynid.signals.filters import decimate
from dynid.signals.settings import Signals, prepare

__all__ = ["Found", "solve", "velocity_sensors"]

Array = NDArray[np.float64]


_ITERATIONS = 40
_HALVINGS = 12
# A step below this share of each standard deviation, or below rounding, ends the search.
_SMALL_STEP, _ROUNDING = 1e-3, 1e-11
# A step below this share of the standard deviation is lost in noise.
_LOST = 0.1
# Steps that shrink more slowly than this are extrapolated, at most to this multiple of the step.
_SLOW, _FARTHEST = 0.3, 20.0
# Singular values of unit columns below this share of the largest are rounding.
_RANK = 1e-10
# Rounding error of a channel's torque, as a share of it.
_FLOOR = 1e-13
# Longest delay (s): longer ones align another part of the motion.
LONGEST = 0.25
_RANGE = {"delay": LONGEST, "wrench_delay": LONGEST, "encoder_offset": 1.0, "tilt": 1.0}


@dataclass(frozen=True, eq=False)
class Found:
    """Unknowns of the sensors (k,), base parameters (b,), their joint covariance (b + k, b + k), and convergence."""

    theta: Array
    beta: Array
    covariance: Array
    noise: Array
    folded: Folded
    condition_number: float
    iterations: int
    converged: bool
    stuck: tuple[str, ...] = ()


def solve(problem: Problem) -> Found:
    """Least squares over base parameters and all unknowns of the sensors."""
    theta = problem.unknowns.start.copy()
    system = _System(problem, problem.fold(theta), theta)
    if sum(system.rows) <= problem.base.count + len(theta):
        raise TooFew(
            f"{sum(system.rows)} rows are left for {problem.base.count} base parameters and {len(theta)} errors of "
            "sensors; record longer, or lower min_velocity or trim"
        )
    noise = np.full(len(system.rows), 1.0)
    beta, linear = system.linear(noise)
    noise = system.noise(beta, linear)
    system = _System(problem, problem.fold(theta, beta), theta)
    converged = halted = False
    iteration = 0
    last = np.zeros_like(theta)
    while not converged and not halted and iteration < _ITERATIONS:
        iteration += 1
        beta, linear = system.linear(noise)
        noise = system.noise(beta, linear)
        beta, linear = system.linear(noise)
        theta = system.with_linear(theta, linear)
        step, sigma = system.step(beta, linear, noise)
        cost = system.cost(beta, linear, noise)
        halted = True
        for move in _moves(step, last):
            trial = _bounded(problem, theta + move)
            system = _System(problem, problem.fold(trial, beta), trial)
            small = bool(np.all((np.abs(move) <= _SMALL_STEP * sigma) | (np.abs(move) <= _ROUNDING)))
            if small or system.better(noise, cost, step, sigma):
                halted = False
                break
        # Where no step improves the fit, the search has converged if the step is lost in noise.
        converged = bool(np.all(np.abs(step) <= _LOST * sigma)) if halted or small else False
        theta, last = trial, step
    beta, linear = system.linear(noise)
    noise = system.noise(beta, linear)
    beta, linear = system.linear(noise)
    theta = system.with_linear(theta, linear)
    covariance, condition = system.covariance(beta, noise)
    entries = problem.unknowns.entries
    stuck = tuple(e.name for e, x in zip(entries, theta, strict=True) if abs(x) >= _RANGE.get(e.word, np.inf))
    return Found(theta, beta, covariance, noise, system.folded, condition, iteration, converged and not stuck, stuck)


class _System:
    """The least-squares problem at given unknowns, from folded factors."""

    def __init__(self, problem: Problem, folded: Folded, theta: Array) -> None:
        self.base: BaseParameters = problem.base
        self.folded = folded
        self.rows = folded.rows
        self.entries: Sequence[Unknown] = problem.unknowns.entries
        self.values = problem.unknowns.values(theta)
        self.inner = inner_unknowns(problem.unknowns)
        robot = problem.robot
        self.linear_entries = [i for i, e in enumerate(self.entries) if e.linear]
        self.curved = [i for i, e in enumerate(self.entries) if not e.linear]
        # Per channel: whether it belongs to the base wrench, and its index there or among the joints.
        names = [c.removeprefix("base.") for c in robot.channels[: len(robot.channels) - robot.n]]
        self.place = [
            (True, names.index(c.removeprefix("base.")))
            if c not in robot.coordinates
            else (False, robot.coordinates.index(c))
            for c in self.base.channels
        ]

    def gain(self, channel: int) -> float:
        wrench, number = self.place[channel]
        return 1.0 if wrench else float(self.values["torque_gain"][number])

    def touches(self, entry: Unknown, channel: int) -> bool:
        """Whether an unknown belongs to the sensor of this channel."""
        wrench, number = self.place[channel]
        if entry.word.startswith("wrench"):
            return wrench and (entry.word == "wrench_delay" or number in entry.members)
        return not wrench and number in entry.members

    def linear_rows(self, channel: int) -> tuple[Array, Array]:
        """Columns of base parameters and offsets, and their right-hand side."""
        b, f, gain = self.base.count, self.folded.factors[channel], self.gain(channel)
        one = f[:, b + ONE]
        offsets = [one * self.touches(self.entries[i], channel) for i in self.linear_entries]
        return np.column_stack([gain * f[:, :b], *offsets]), f[:, -1] - gain * f[:, b + KNOWN]

    def linear(self, noise: Array) -> tuple[Array, Array]:
        """Base parameters and offsets at these unknowns."""
        parts = [self.linear_rows(c) for c in range(len(noise))]
        A = np.vstack([a / s for (a, _), s in zip(parts, noise, strict=True)])
        y = np.concatenate([t / s for (_, t), s in zip(parts, noise, strict=True)])
        x = _least_squares(A, y)
        return x[: self.base.count], x[self.base.count :]

    def residual(self, channel: int, beta: Array, linear: Array) -> Array:
        A, y = self.linear_rows(channel)
        return np.asarray(y - A @ np.concatenate([beta, linear]))

    def cost(self, beta: Array, linear: Array, noise: Array) -> float:
        return sum(float(np.sum((self.residual(c, beta, linear) / s) ** 2)) for c, s in enumerate(noise))

    def noise(self, beta: Array, linear: Array) -> Array:
        """Standard deviation of the residual of each channel."""
        out = []
        for c, (rows, f) in enumerate(zip(self.rows, self.folded.factors, strict=True)):
            used = int(np.count_nonzero(np.linalg.norm(f[:, : self.base.count], axis=0)))
            used += sum(self.touches(e, c) for e in self.entries)
            size = np.linalg.norm(f[:, -1]) / np.sqrt(max(rows, 1))
            rest = np.linalg.norm(self.residual(c, beta, linear)) / np.sqrt(max(rows - used, 1))
            out.append(max(rest, _FLOOR * size) or 1.0)
        return np.array(out)

    def jacobian(self, beta: Array, noise: Array) -> Array:
        """Columns of base parameters, then of all unknowns in their order, over the channels' noise."""
        b = self.base.count
        parts = []
        for c, s in enumerate(noise):
            f, gain = self.folded.factors[c], self.gain(c)
            A, _ = self.linear_rows(c)
            columns = np.zeros((len(f), len(self.entries)))
            columns[:, self.linear_entries] = A[:, b:]
            for i in self.curved:
                entry = self.entries[i]
                if entry.word in ("encoder_offset", "tilt"):
                    columns[:, i] = gain * f[:, b + LEADING + self.inner.index(entry)]
                elif self.touches(entry, c):
                    model = f[:, :b] @ beta + f[:, b + KNOWN]
                    columns[:, i] = model if entry.word == "torque_gain" else -gain * f[:, b + RATE]
            parts.append(np.column_stack([A[:, :b], columns]) / s)
        return np.vstack(parts)

    def step(self, beta: Array, linear: Array, noise: Array) -> tuple[Array, Array]:
        """Gauss-Newton step of the unknowns (k,), and their standard deviations (k,)."""
        J = self.jacobian(beta, noise)
        r = np.concatenate([self.residual(c, beta, linear) / s for c, s in enumerate(noise)])
        b = self.base.count
        size = np.linalg.norm(J, axis=0)
        size = np.where(size > 0, size, 1.0)
        _, s, vt = np.linalg.svd(fold(np.asfortranarray(J / size)), full_matrices=False)
        strong = s > _RANK * s[0]
        sigma = np.sqrt(np.sum((vt[strong] / s[strong, None]) ** 2, axis=0)) / size
        step = _least_squares(J, r)[b:]
        step[self.linear_entries] = 0.0
        return step, sigma[b:]

    def better(self, noise: Array, cost: float, step: Array, sigma: Array) -> bool:
        """Whether the sum of squares is smaller here, or the next step shorter than the last one.

        The model's torque rate stands for the measured one, whose noise would bias a delay. So where the model errs
        the steps end a little beside the smallest sum, and there their length decides.
        """
        beta, linear = self.linear(noise)
        if self.cost(beta, linear, noise) < cost:
            return True
        ahead, _ = self.step(beta, linear, noise)
        return bool(np.linalg.norm(ahead / sigma) < np.linalg.norm(step / sigma))

    def with_linear(self, theta: Array, linear: Array) -> Array:
        out = theta.copy()
        out[self.linear_entries] = linear
        return out

    def covariance(self, beta: Array, noise: Array) -> tuple[Array, float]:
        """Joint covariance of base parameters and unknowns, and the condition number of the base columns."""
        J = fold(np.asfortranarray(self.jacobian(beta, noise)))
        size = np.linalg.norm(J, axis=0)
        _, s, vt = np.linalg.svd(J / np.where(size > 0, size, 1.0), full_matrices=True)
        s = np.concatenate([s, np.zeros(vt.shape[0] - len(s))])
        weak = s <= _RANK * s[0]
        if weak.any():
            names = [*self.base.names, *(e.name for e in self.entries)]
            share = np.abs(vt[weak]).max(axis=0)
            listed = [names[i] for i in np.argsort(-share) if share[i] > 0.1]
            raise DynidError(
                f"this motion does not tell apart {', '.join(listed[:6])}; leave some of them out",
                code="not_identifiable",
            )
        root = (vt.T / s) / size[:, None]
        return root @ root.T, float(np.linalg.cond(J[:, : self.base.count]))


def _moves(step: Array, last: Array) -> Iterator[Array]:
    """Steps to try: an extrapolated one where steps shrink slowly, then the step itself and fractions of it."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(last != 0, step / last, 0.0)
    slow = (ratio > _SLOW) & (ratio < 1.0)
    if slow.any():
        yield step * np.where(slow, np.minimum(1.0 / (1.0 - np.where(slow, ratio, 0.0)), _FARTHEST), 1.0)
    for k in range(_HALVINGS):
        yield step / 2.0**k


def _least_squares(A: Array, y: Array) -> Array:
    """Minimum-norm least-squares solution over unit columns."""
    size = np.linalg.norm(A, axis=0)
    size = np.where(size > 0, size, 1.0)
    return np.asarray(np.linalg.lstsq(A / size, y, rcond=_RANK)[0] / size)


def _bounded(problem: Problem, theta: Array) -> Array:
    """Unknowns limited to their range: delays of at most a quarter second, angles of at most one radian."""
    reach = np.array([_RANGE.get(e.word, np.inf) for e in problem.unknowns.entries])
    return np.asarray(np.clip(theta, -reach, reach))


# Gains and offsets of velocity sensors, from positions alone.


def velocity_sensors(
    recording: Recording, settings: Signals, words: tuple[str, ...]
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Gain and offset (joint,) of measured velocities against the rate of positions, and their standard deviations."""
    joints = len(recording.joints)
    rows: list[list[Array]] = [[] for _ in range(joints)]
    for run in recording.runs:
        if run.v is None:
            raise MissingData(f"run '{run.name}' has no measured velocity, whose sensor is to be calibrated")
        moved = prepare(run, replace(settings, measured_velocity=False, measured_acceleration=False))
        told = prepare(run, replace(settings, measured_velocity=True, measured_acceleration=False))
        step = int(np.prod(moved.decimate or (1,)))
        for j in range(joints):
            both = np.column_stack([moved.v[:, j], told.v[:, j]])
            rows[j].append(decimate(both, moved.decimate)[moved.lead // step : (len(both) - moved.lead) // step])
    value = {"velocity_gain": np.ones(joints), "velocity_offset": np.zeros(joints)}
    std = {word: np.zeros(joints) for word in value}
    for j, parts in enumerate(rows):
        true, told_v = np.vstack(parts).T
        columns = [true] if "velocity_gain" in words else []
        columns += [np.ones_like(true)] if "velocity_offset" in words else []
        A = np.column_stack(columns)
        y = told_v if "velocity_gain" in words else told_v - true
        if "velocity_gain" in words and np.ptp(true) == 0:
            raise NotIdentifiable(
                f"joint '{recording.joints[j]}' stands still, which tells nothing of its velocity gain"
            )
        x = np.linalg.lstsq(A, y, rcond=None)[0]
        noise = np.linalg.norm(y - A @ x) / np.sqrt(max(len(y) - len(x), 1))
        one_std = noise * np.sqrt(np.diag(np.linalg.inv(A.T @ A)))
        for k, word in enumerate(w for w in ("velocity_gain", "velocity_offset") if w in words):
            value[word][j], std[word][j] = x[k], one_std[k]
    return value, std
