"""A recording in parts of time, for cross-validation of models with a prior.

Every part is reduced to one information matrix and one vector per channel over the standard parameters of a robot that
has all drive terms. Models with fewer terms are linear maps of these, so that a model is fitted and tested in
milliseconds, whatever the length of the recording. Friction and rotor inertia are not negative in these fits either: a
model that predicts well only with a negative friction would be lost as soon as it must be physically consistent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import DynidError
from dynid.feasibility.metrics import quadratic_rows
from dynid.identification.estimators.feasible import Preference, preference
from dynid.identification.observation import Observation, time_parts
from dynid.robot.model import Robot

__all__ = ["Loss", "Parts", "parts_of"]

Array = NDArray[np.float64]

# Exchanges of the active set before they are made one by one, and in total.
_EXCHANGES, _MOST_EXCHANGES = 20, 500
_ROUNDING = 1e-10
# Largest share of the error by which models that predict equally well may differ.
_EQUAL = 0.01


@dataclass(frozen=True, eq=False)
class Loss:
    """Squared torque errors of predicted parts of the time.

    Attributes
    ----------
    lost : ndarray, shape (part, channel)
        Sum of squared torque errors.
    total : ndarray, shape (channel,)
        Sum of squared torques of all parts.
    """

    lost: Array
    total: Array

    @cached_property
    def errors(self) -> Array:
        """Relative torque errors (channel,)."""
        return np.asarray(np.sqrt(self.lost.sum(axis=0) / np.where(self.total > 0, self.total, np.inf)))

    @cached_property
    def error(self) -> float:
        """Relative torque error, mean over the channels."""
        return float(np.mean(self.errors))

    def excess(self, best: Loss) -> tuple[float, float]:
        """By how much the error is larger than that of the best model, and the standard error of this difference.

        Both models predict the same parts. The difference of the errors is a sum over the parts,

            mean over channels of (lost - lost of the best) / (total * (error + error of the best)),

        whose scatter between the parts gives the standard error.
        """
        scale = self.total * (self.errors + best.errors)
        shares = np.mean((self.lost - best.lost) / np.where(scale > 0, scale, np.inf), axis=1)
        count = len(shares)
        return float(shares.sum()), float(np.sqrt(count) * np.std(shares, ddof=1))

    def as_good_as(self, best: Loss) -> bool:
        """Whether the error exceeds that of the best model by at most one standard error, and by at most 1 %."""
        excess, standard_error = self.excess(best)
        return excess <= min(standard_error, _EQUAL * best.error)

    def surely_better_than(self, other: Loss) -> bool:
        """Whether the error is smaller than that of another model, with a confidence of 95 %."""
        excess, standard_error = self.excess(other)
        return excess < -float(scipy.stats.t.ppf(0.975, len(self.lost) - 1)) * standard_error


@dataclass(frozen=True, eq=False)
class Parts:
    """Parts of the time of an observation over the standard parameters of its robot.

    Attributes
    ----------
    observation : Observation
        The observation.
    factors : tuple of tuple of ndarray
        Triangular factor of [W y] per part and channel.
    noise : ndarray, shape (channel,)
        Standard deviation of the torque error of a fit with all terms, by which rows are divided.
    preference : Preference
        The prior of the standard parameters and the units of the drive parameters.
    notes : tuple of str
        What was assumed for the prior.
    """

    observation: Observation
    factors: tuple[tuple[Array, ...], ...]
    noise: Array
    preference: Preference
    notes: tuple[str, ...]

    @cached_property
    def _prior(self) -> tuple[Array, Array]:
        """Information (p, p) and vector (p,) of the prior with weight one."""
        wanted = self.preference
        rows, target = quadratic_rows(self.robot, wanted.prior, "pullback", wanted.scale)
        return rows.T @ rows, rows.T @ target

    @cached_property
    def _information(self) -> tuple[tuple[Array, Array], ...]:
        """Information (p, p) and vector (p,) of every part; the sum of all comes last."""
        K = self.observation.base.matrix
        out = []
        for part in self.factors:
            stacked = np.vstack([f / n for f, n in zip(part, self.noise, strict=True)])
            W = stacked[:, :-1] @ K
            out.append((W.T @ W, W.T @ stacked[:, -1]))
        total = np.sum([N for N, _ in out], axis=0), np.sum([v for _, v in out], axis=0)
        return (*out, total)

    @property
    def robot(self) -> Robot:
        """The robot with all drive terms."""
        return self.observation.robot

    def fitted(self, weight: float, terms: Array, without: int | None = None) -> Array:
        """Base parameters (b,) of the fit to all parts but one, with the prior times a weight.

        `terms` (p, k) maps the parameters of a model to the standard parameters of the robot.
        """
        information, vector = self._information[-1]
        if without is not None:
            part = self._information[without]
            information, vector = information - part[0], vector - part[1]
        prior, pulled = self._prior
        N = terms.T @ (information + weight * prior) @ terms
        scale = 1.0 / np.sqrt(np.diag(N))
        right = scale * (terms.T @ (vector + weight * pulled))
        bounded = ~np.any(terms[~self._not_negative] != 0, axis=0)
        found = _bounded_solution(scale[:, None] * N * scale + 1e-13 * np.eye(len(N)), right, bounded)
        return np.asarray(self.observation.base.matrix @ (terms @ (scale * found)))

    @cached_property
    def _not_negative(self) -> NDArray[np.bool_]:
        """Which standard parameters (p,) of the robot are not negative: friction and rotor inertia."""
        names = {t.name for t in self.robot.drives if t.dissipates}
        return np.array([name in names for name in self.robot.parameter_names])

    def loss(self, betas: list[Array], held_out: Parts | None = None) -> Loss:
        """Torque errors, each part predicted by its own base parameters."""
        tested = self.factors if held_out is None else held_out.factors
        lost = [
            [float(np.sum((f[:, -1] - f[:, :-1] @ beta) ** 2)) for f in part]
            for beta, part in zip(betas, tested, strict=True)
        ]
        total = np.sum([[float(f[:, -1] @ f[:, -1]) for f in part] for part in tested], axis=0)
        return Loss(np.array(lost), total)

    def cross_validated(self, weight: float, terms: Array, held_out: Parts | None = None) -> Loss:
        """Torque errors of predicting each part from the others."""
        betas = [self.fitted(weight, terms, k) for k in range(len(self.factors))]
        return self.loss(betas, held_out)


def _bounded_solution(N: Array, right: Array, bounded: NDArray[np.bool_]) -> Array:
    """Minimum of x'Nx / 2 - x'right with x >= 0 where it is bounded, by exchanges between free and zero unknowns."""
    free = np.ones(len(N), dtype=bool)
    fewest, left = len(N) + 1, _EXCHANGES
    for _ in range(_MOST_EXCHANGES):
        x = np.zeros(len(N))
        _, x[free], failed = scipy.linalg.lapack.dposv(N[np.ix_(free, free)], right[free])
        if failed:
            raise np.linalg.LinAlgError("the information of a fit is not positive definite")
        slope = N @ x - right
        wrong = bounded & np.where(free, x < -_ROUNDING, slope < -_ROUNDING)
        count = int(wrong.sum())
        if not count:
            return x
        if count < fewest:
            fewest, left = count, _EXCHANGES
        elif left:
            left -= 1
        else:  # one exchange at a time ends after finitely many
            last = int(np.flatnonzero(wrong)[-1])
            wrong = np.arange(len(N)) == last
        free ^= wrong
    raise DynidError("the fit with bounded friction did not converge")


def parts_of(observation: Observation, count: int, prior: Array | None = None) -> Parts:
    """An observation in parts of the time; the noise is that of a fit in which the prior counts little."""
    factors = tuple(time_parts(observation, count))
    torque = observation.torque_norms() / np.sqrt(np.maximum(observation.rows, 1))
    noise = np.where(torque > 0, 0.1 * torque, 1.0)
    every = np.eye(len(observation.robot.layout))
    for _ in range(3):
        wanted, notes = preference(observation, noise, prior=prior)
        parts = Parts(observation, factors, noise, wanted, tuple(notes))
        left = observation.residual_norms(parts.fitted(1.0, every))
        rows = np.maximum(np.array(observation.rows, dtype=float) - 1, 1)
        noise = np.maximum(left / np.sqrt(rows), 1e-9 * np.where(torque > 0, torque, 1.0))
    return Parts(observation, factors, noise, wanted, tuple(notes))
