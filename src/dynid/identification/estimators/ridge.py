"""Ridge towards a prior: what the motion does not show stays where it was."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError
from dynid.identification.estimators.solution import Solution, solve_factor
from dynid.identification.estimators.wls import joint_noise
from dynid.identification.observation import Observation, fold
from dynid.parameters.base import BaseParameters

__all__ = ["ridge"]

Array = NDArray[np.float64]


def ridge(
    observation: Observation,
    prior: ArrayLike | None = None,
    deviation: ArrayLike | float = 1.0,
    iterations: int = 3,
) -> Solution:
    """Least squares whitened by the joints' noise, with a Gaussian prior on the base parameters.

    `prior` (b,) defaults to the robot's a-priori values. `deviation` is a standard deviation: one number times the
    prior's typical size of each kind of parameter, one a parameter (b,), or a full covariance (b, b).
    """
    base = observation.base
    centre = base.values() if prior is None else np.asarray(prior, dtype=float)
    if centre.shape != (base.count,) or not np.all(np.isfinite(centre)):
        raise DataError(f"the prior needs {base.count} finite base values, got shape {centre.shape}")
    root = _whitening(base, centre, deviation)
    extra = np.column_stack([root, root @ centre])
    noise = _starting_noise(observation)
    for _ in range(iterations):
        factor = fold(np.vstack([observation.stacked(1.0 / noise), extra]))
        beta, inverse, condition = solve_factor(factor, observation.base)
        noise = joint_noise(observation, beta)
    return Solution(beta, inverse @ inverse.T, noise, condition, iterations=iterations)


def _starting_noise(observation: Observation) -> Array:
    """A first guess that needs no fit: a tenth of the torque's own size."""
    size = observation.torque_norms() / np.sqrt(np.maximum(observation.rows, 1))
    return np.asarray(np.where(size > 0, 0.1 * size, 1.0))


def _whitening(base: BaseParameters, centre: Array, deviation: ArrayLike | float) -> Array:
    """Matrix whose product with (beta - prior) has unit covariance under the prior."""
    d = np.asarray(deviation, dtype=float)
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
        raise DataError("prior deviations must be positive, one a base parameter")
    return np.diag(1.0 / d)


def typical_sizes(base: BaseParameters, values: Array) -> Array:
    """Root mean square of the values of each kind of parameter (same unit), (b,); one where all are zero."""
    units = np.array([base.robot.layout[j].unit for j in base.kept])
    out = np.ones(base.count)
    for unit in set(units):
        same = units == unit
        size = float(np.sqrt(np.mean(values[same] ** 2)))
        out[same] = size if size > 0 else 1.0
    return out
