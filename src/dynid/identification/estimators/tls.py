"""Total least squares: noise in the regressor as well as in the torque."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.errors import DynidError
from dynid.identification.estimators.options import MethodOptions
from dynid.identification.estimators.solution import Solution, solve_factor
from dynid.identification.estimators.wls import wls
from dynid.identification.observation import Observation

__all__ = ["TlsOptions", "tls"]


@dataclass(frozen=True, eq=False, kw_only=True)
class TlsOptions(MethodOptions):
    """Options of method "tls": there are none."""


def tls(observation: Observation, options: TlsOptions | None = None) -> Solution:
    """The smallest change of columns and torque together that makes them agree (smallest singular vector of [W y]).

    Rows are divided by the noise of their joint and columns are scaled to unit norm, so that all columns have the same
    relative noise. The covariance is first order (Van Huffel and Vandewalle): (1 + |beta_s|^2) sigma^2 (W'W)^-1.
    """
    start = wls(observation)
    factor = observation.stacked(1.0 / start.noise)
    _, inverse = solve_factor(factor, observation.base)
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
    return Solution(beta, covariance, start.noise)
