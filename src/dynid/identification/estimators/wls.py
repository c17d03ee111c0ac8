"""Weighted least squares with one variance per joint (Gautier's procedure)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.identification.estimators.ols import ols
from dynid.identification.estimators.options import MethodOptions, check_at_least_one, check_choice
from dynid.identification.estimators.solution import Solution, solve_factor
from dynid.identification.observation import Observation

__all__ = ["WlsOptions", "joint_noise", "wls"]

Array = NDArray[np.float64]
Freedom = Literal["columns", "parameters", "none"]


@dataclass(frozen=True, eq=False, kw_only=True)
class WlsOptions(MethodOptions):
    """Options of method "wls".

    Attributes
    ----------
    iterations : int, default 1
        How often the rows are weighted again by the residuals of the fit before. One iteration is the classical
        two-step procedure.
    freedom : {"columns", "parameters", "none"}, default "columns"
        What is subtracted from the number of rows of a channel in the estimate of its noise: the number of columns that
        are not zero in this channel, the number of all base parameters (Sousa 2014), or nothing (Nguyen 2021).
    """

    iterations: int = 1
    freedom: Freedom = "columns"

    def __post_init__(self) -> None:
        check_at_least_one("iterations", self.iterations)
        check_choice("freedom", self.freedom, ("columns", "parameters", "none"))


def wls(observation: Observation, options: WlsOptions | None = None) -> Solution:
    """Divide the rows of each joint by the standard deviation of its residual in the fit before, starting from OLS."""
    options = options or WlsOptions()
    beta = ols(observation).beta
    for _ in range(options.iterations):
        noise = joint_noise(observation, beta, options.freedom)
        beta, inverse = solve_factor(observation.stacked(1.0 / noise), observation.base)
    return Solution(beta, inverse @ inverse.T, noise, iterations=options.iterations)


def joint_noise(observation: Observation, beta: Array, freedom: Freedom = "columns") -> Array:
    """Standard deviation of the residual of each channel, (channel,); `freedom` as in `WlsOptions`."""
    rows = np.array(observation.rows, dtype=float)
    if freedom == "columns":
        rows -= [np.count_nonzero(np.linalg.norm(f[:, :-1], axis=0)) for f in observation.factors]
    elif freedom == "parameters":
        rows -= beta.size
    empty = np.array(observation.rows) == 0
    short = np.flatnonzero((rows < 1) & ~empty)
    if short.size:
        raise DataError(f"channel '{observation.base.channels[short[0]]}' has too few rows to estimate its noise")
    noise = observation.residual_norms(beta) / np.sqrt(np.maximum(rows, 1))
    return np.maximum(noise, noise_floor(observation))


def noise_floor(observation: Observation) -> Array:
    """Rounding error of the torque of each channel, (channel,), which is taken as the smallest possible noise."""
    size = observation.torque_norms() / np.sqrt(np.maximum(observation.rows, 1))
    return np.asarray(np.where(size > 0, 1e-13 * size, 1.0))
