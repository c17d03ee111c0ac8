"""What every estimator returns, and the linear algebra they share."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import DynidError
from dynid.parameters.base import BaseParameters

__all__ = ["Iteration", "Solution", "report_iteration", "solve_factor"]

Array = NDArray[np.float64]

_RANK = 1e-12
_ROUNDING = 1e-9

# Heard by the command line while it waits.
_told = logging.getLogger("dynid.progress")


@dataclass(frozen=True, eq=False)
class Iteration:
    """One round of an estimator that simulates: base values it ended with, its largest step and residual.

    `step` is the largest change of a base value as a share of its size, `residual` the torque error as a share of the
    torque.
    `smallest` is the smallest eigenvalue of the links' pseudo-inertias and the friction and rotor values, as a share of
    each one's size: not below zero, but for rounding, where the iterate is a possible robot.
    """

    beta: Array
    step: float
    residual: float
    smallest: float
    simulation_seconds: float
    solver_seconds: float

    @property
    def feasible(self) -> bool:
        return self.smallest > -_ROUNDING


def report_iteration(history: Sequence[Iteration], most: int) -> None:
    """Log how the last round went, for whoever waits."""
    spent = sum(r.simulation_seconds + r.solver_seconds for r in history)
    left = spent / len(history) * (most - len(history))
    words = "round %d of at most %d: largest step %.2g, at most %.0f s left"
    _told.info(words, len(history), most, history[-1].step, left)


@dataclass(frozen=True, eq=False)
class Solution:
    """Base parameters (b,), their covariance (b, b), noise a channel (channel,), and how it went.

    `parameters` (p,) where the estimator finds standard parameters too, `parameter_covariance` (p, p) with them.
    `history` holds what every round of an iterative estimator did.
    """

    beta: Array
    covariance: Array
    noise: Array
    condition_number: float
    status: str = "solved"
    iterations: int = 1
    notes: tuple[str, ...] = field(default=())
    parameters: Array | None = None
    parameter_covariance: Array | None = None
    history: tuple[Iteration, ...] = ()


def solve_factor(factor: Array, base: BaseParameters) -> tuple[Array, Array, float]:
    """Least squares from a factor of [W y]: beta, the inverse triangle R^-1, and the condition number of W.

    Columns are scaled to unit norm for the rank decision, so that units do not decide it.
    """
    r, z = factor[:, :-1], factor[:, -1]
    norms = np.linalg.norm(r, axis=0)
    scaled = r / np.where(norms > 0, norms, 1.0)
    singular = np.linalg.svd(scaled, compute_uv=False)
    if r.shape[0] < r.shape[1] or singular[-1] <= _RANK * singular[0]:
        raise DynidError(_unexcited(base, scaled))
    q, t = scipy.linalg.qr(r, mode="economic")
    beta = scipy.linalg.solve_triangular(t, q.T @ z)
    inverse = scipy.linalg.solve_triangular(t, np.eye(len(t)))
    return beta, inverse, float(np.linalg.cond(r))


def _unexcited(base: BaseParameters, scaled: Array) -> str:
    """Which parameters the motion does not show: those in the directions of zero singular values."""
    _, s, vt = np.linalg.svd(scaled, full_matrices=True)
    s = np.concatenate([s, np.zeros(vt.shape[0] - len(s))])
    missing = np.abs(vt[s <= _RANK * s[0]]).max(axis=0)
    names = [base.names[i] for i in np.argsort(-missing) if missing[i] > 0.1]
    shown = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
    return f"this motion does not show all base parameters; it says nothing about {shown}"
