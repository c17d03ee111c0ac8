"""Total least squares: the regressor is noisy too."""

from __future__ import annotations

import numpy as np

from dynid.errors import DynidError
from dynid.identification.estimators.solution import Solution, solve_factor
from dynid.identification.estimators.wls import wls
from dynid.identification.observation import Observation

__all__ = ["tls"]


def tls(observation: Observation) -> Solution:
    """The smallest change of columns and torque together that makes them agree (smallest singular vector of [W y]).

    Rows are whitened by the joints' noise and columns scaled to unit norm, so that every column is trusted alike
    relative to its size. The covariance is first order (Van Huffel and Vandewalle): (1 + |beta_s|^2) sigma^2 (W'W)^-1.
    """
    start = wls(observation)
    factor = observation.stacked(1.0 / start.noise)
    _, inverse, condition = solve_factor(factor, observation.base)
    norms = np.linalg.norm(factor, axis=0)
    scaled = factor / norms
    _, singular, vt = np.linalg.svd(scaled)
    last = vt[-1]
    if abs(last[-1]) < 1e-12 or singular[-1] > 0.999 * singular[-2]:
        raise DynidError("total least squares has no unique solution for these data; use wls")
    ratio = -last[:-1] / last[-1]
    beta = ratio * norms[-1] / norms[:-1]
    freedom = observation.total_rows - beta.size
    variance = float(singular[-1] ** 2 * norms[-1] ** 2) / freedom
    covariance = (1.0 + float(ratio @ ratio)) * variance * inverse @ inverse.T
    return Solution(beta, covariance, start.noise, condition)
