"""Weighted least squares with one variance a joint (Gautier's procedure)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.identification.estimators.ols import ols
from dynid.identification.estimators.solution import Solution, solve_factor
from dynid.identification.observation import Observation

__all__ = ["joint_noise", "wls"]

Array = NDArray[np.float64]


def joint_noise(observation: Observation, beta: Array, freedom: str = "columns") -> Array:
    """Standard deviation of each channel's residual, (channel,).

    What is subtracted from a channel's rows: "columns", those the channel touches (default); "parameters", all base
    parameters (Sousa 2014); "none" (Nguyen 2021).
    """
    rows = np.array(observation.rows, dtype=float)
    if freedom == "columns":
        rows -= [np.count_nonzero(np.linalg.norm(f[:, :-1], axis=0)) for f in observation.factors]
    elif freedom == "parameters":
        rows -= beta.size
    elif freedom != "none":
        raise DataError(f"freedom '{freedom}' is unknown: use columns, parameters or none")
    empty = np.array(observation.rows) == 0
    short = np.flatnonzero((rows < 1) & ~empty)
    if short.size:
        raise DataError(f"channel '{observation.base.channels[short[0]]}' has too few rows to tell its noise")
    noise = observation.residual_norms(beta) / np.sqrt(np.maximum(rows, 1))
    return np.maximum(noise, noise_floor(observation))


def noise_floor(observation: Observation) -> Array:
    """What rounding leaves of each channel's torque, (channel,): no data are better than that."""
    size = observation.torque_norms() / np.sqrt(np.maximum(observation.rows, 1))
    return np.asarray(np.where(size > 0, 1e-13 * size, 1.0))


def wls(observation: Observation, iterations: int = 1, freedom: str = "columns") -> Solution:
    """Rows of each joint divided by the joint's residual deviation of the fit before, starting from OLS."""
    if iterations < 1:
        raise DataError(f"wls needs at least one iteration, got {iterations}")
    beta = ols(observation).beta
    for _ in range(iterations):
        noise = joint_noise(observation, beta, freedom)
        beta, inverse, condition = solve_factor(observation.stacked(1.0 / noise), observation.base)
    return Solution(beta, inverse @ inverse.T, noise, condition, iterations=iterations)
