"""What every estimator returns, and the linear algebra they share."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import DynidError
from dynid.identify.observation import Observation

__all__ = ["Solution", "solve_factor"]

Array = NDArray[np.float64]

_RANK = 1e-12


@dataclass(frozen=True, eq=False)
class Solution:
    """Base parameters (b,), their covariance (b, b), noise a channel (channel,), and how it went.

    `parameters` (p,) where the estimator finds standard parameters too.
    """

    beta: Array
    covariance: Array
    noise: Array
    condition_number: float
    status: str = "solved"
    iterations: int = 1
    notes: tuple[str, ...] = field(default=())
    parameters: Array | None = None


def solve_factor(factor: Array, observation: Observation) -> tuple[Array, Array, float]:
    """Least squares from a factor of [W y]: beta, the inverse triangle R^-1, and the condition number of W.

    Columns are scaled to unit norm for the rank decision, so that units do not decide it.
    """
    r, z = factor[:, :-1], factor[:, -1]
    norms = np.linalg.norm(r, axis=0)
    scaled = r / np.where(norms > 0, norms, 1.0)
    singular = np.linalg.svd(scaled, compute_uv=False)
    if r.shape[0] < r.shape[1] or singular[-1] <= _RANK * singular[0]:
        raise DynidError(_unexcited(observation, scaled))
    q, t = scipy.linalg.qr(r, mode="economic")
    beta = scipy.linalg.solve_triangular(t, q.T @ z)
    inverse = scipy.linalg.solve_triangular(t, np.eye(len(t)))
    return beta, inverse, float(np.linalg.cond(r))


def _unexcited(observation: Observation, scaled: Array) -> str:
    """Which parameters the motion does not show: those in the directions of zero singular values."""
    _, s, vt = np.linalg.svd(scaled, full_matrices=True)
    s = np.concatenate([s, np.zeros(vt.shape[0] - len(s))])
    missing = np.abs(vt[s <= _RANK * s[0]]).max(axis=0)
    names = [observation.base.names[i] for i in np.argsort(-missing) if missing[i] > 0.1]
    shown = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
    return f"this motion does not show all base parameters; it says nothing about {shown}"
