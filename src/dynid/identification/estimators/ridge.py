"""Ridge regression towards a prior: parameters that the motion does not excite keep their prior values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError
from dynid.identification.estimators.options import MethodOptions, check_at_least_one
from dynid.identification.estimators.solution import Solution, solve_factor
from dynid.identification.estimators.wls import joint_noise
from dynid.identification.observation import Observation, fold
from dynid.parameters.base import BaseParameters

__all__ = ["RidgeOptions", "ridge"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class RidgeOptions(MethodOptions):
    """Options of method "ridge".

    Attributes
    ----------
    prior : array_like, shape (b,), optional
        Prior mean of the base parameters; by default the a-priori values of the robot.
    std : array_like, default 1.0
        Prior standard deviation: one number relative to the typical size of each kind of parameter, one value per base
        parameter (b,), or a covariance (b, b).
    iterations : int, default 3
        How often the noise of the joints is estimated from the residuals and the fit repeated.
    """

    prior: ArrayLike | None = None
    std: ArrayLike = 1.0
    iterations: int = 3

    def __post_init__(self) -> None:
        check_at_least_one("iterations", self.iterations)
        if np.ndim(self.std) < 2 and not np.all(np.asarray(self.std, dtype=float) > 0):
            raise DataError("prior standard deviations must be positive: one number, or one per base parameter")


def ridge(observation: Observation, options: RidgeOptions | None = None) -> Solution:
    """Weighted least squares with a Gaussian prior on the base parameters."""
    options = options or RidgeOptions()
    base = observation.base
    centre = base.values() if options.prior is None else np.asarray(options.prior, dtype=float)
    if centre.shape != (base.count,) or not np.all(np.isfinite(centre)):
        raise DataError(f"the prior needs {base.count} finite base parameters, got shape {centre.shape}")
    root = _whitening(base, centre, options.std)
    extra = np.column_stack([root, root @ centre])
    noise = _starting_noise(observation)
    for _ in range(options.iterations):
        factor = fold(np.vstack([observation.stacked(1.0 / noise), extra]))
        beta, inverse = solve_factor(factor, observation.base)
        noise = joint_noise(observation, beta)
    return Solution(beta, inverse @ inverse.T, noise, iterations=options.iterations, prior_rows=root)


def _starting_noise(observation: Observation) -> Array:
    """A first guess before any fit: a tenth of the RMS torque per channel."""
    size = observation.torque_norms() / np.sqrt(np.maximum(observation.rows, 1))
    return np.asarray(np.where(size > 0, 0.1 * size, 1.0))


def _whitening(base: BaseParameters, centre: Array, std: ArrayLike) -> Array:
    """Matrix whose product with (beta - prior) has unit covariance under the prior."""
    d = np.asarray(std, dtype=float)
    if d.ndim == 2:
        if d.shape != (base.count, base.count):
            raise DataError(f"the prior covariance needs shape {(base.count,) * 2}, got {d.shape}")
        try:
            return np.asarray(np.linalg.inv(np.linalg.cholesky(d)))
        except np.linalg.LinAlgError:
            raise DataError("the prior covariance is not positive definite") from None
    if d.ndim == 0:
        d = float(d) * typical_sizes(base, centre)
    if d.shape != (base.count,) or not np.all(d > 0):
        raise DataError(f"prior standard deviations must be positive, one per base parameter ({base.count})")
    return np.diag(1.0 / d)


def typical_sizes(base: BaseParameters, values: Array) -> Array:
    """Root mean square of the values of each kind of parameter, (b,); one where all are zero."""
    groups = np.array([base.robot.layout[j].group for j in base.kept])
    out = np.ones(base.count)
    for group in set(groups):
        same = groups == group
        size = float(np.sqrt(np.mean(values[same] ** 2)))
        out[same] = size if size > 0 else 1.0
    return out
