"""Ordinary least squares: every row counts the same."""

from __future__ import annotations

import numpy as np

from dynid.identification.estimators.solution import Solution, solve_factor
from dynid.identification.observation import Observation

__all__ = ["ols"]


def ols(observation: Observation) -> Solution:
    """argmin |y - W beta|, with one noise variance for all rows: |residual|^2 / (rows - b)."""
    beta, inverse, condition = solve_factor(observation.stacked(), observation.base)
    freedom = observation.total_rows - beta.size
    variance = float(np.sum(observation.residual_norms(beta) ** 2)) / freedom
    noise = np.full(len(observation.rows), np.sqrt(variance))
    return Solution(beta, variance * inverse @ inverse.T, noise, condition)
