"""A recording in parts of time, for cross-validation of models with a prior.

Every part is reduced to one information matrix and one vector per channel over the standard parameters of a robot that
has all drive terms. Models with fewer terms are linear maps of these, so that a model is fitted and tested in
milliseconds, whatever the length of the recording.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.feasibility.metrics import quadratic_rows
from dynid.identification.estimators.feasible import Preference, preference
from dynid.identification.observation import Observation, time_parts
from dynid.robot.model import Robot

__all__ = ["Parts", "parts_of"]

Array = NDArray[np.float64]


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
        found = scipy.linalg.solve(scale[:, None] * N * scale + 1e-13 * np.eye(len(N)), right, assume_a="pos")
        return np.asarray(self.observation.base.matrix @ (terms @ (scale * found)))

    def errors(self, betas: list[Array], held_out: Parts | None = None) -> Array:
        """Relative torque errors (channel,), each part predicted by its own base parameters."""
        tested = self.factors if held_out is None else held_out.factors
        lost, total = np.zeros(len(self.noise)), np.zeros(len(self.noise))
        for beta, part in zip(betas, tested, strict=True):
            lost += [float(np.sum((f[:, -1] - f[:, :-1] @ beta) ** 2)) for f in part]
            total += [float(f[:, -1] @ f[:, -1]) for f in part]
        return np.asarray(np.sqrt(lost / np.where(total > 0, total, np.inf)))

    def cross_validated(self, weight: float, terms: Array, held_out: Parts | None = None) -> Array:
        """Relative errors (channel,) of predicting each part from the others."""
        betas = [self.fitted(weight, terms, k) for k in range(len(self.factors))]
        return self.errors(betas, held_out)


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
