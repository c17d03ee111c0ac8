"""Ordinary least squares: every row has the same weight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.identification.estimators.options import MethodOptions
from dynid.identification.estimators.solution import Solution, solve_factor
from dynid.identification.observation import Observation

__all__ = ["OlsOptions", "ols"]


@dataclass(frozen=True, eq=False, kw_only=True)
class OlsOptions(MethodOptions):
    """Options of method "ols": there are none."""


def ols(observation: Observation, options: OlsOptions | None = None) -> Solution:
    """Minimise |y - W beta|, with one noise variance for all rows: |residual|^2 / (rows - b)."""
    beta, inverse = solve_factor(observation.stacked(), observation.base)
    freedom = observation.total_rows - beta.size
    variance = float(np.sum(observation.residual_norms(beta) ** 2)) / freedom
    noise = np.full(len(observation.rows), np.sqrt(variance))
    return Solution(beta, variance * inverse @ inverse.T, noise)
