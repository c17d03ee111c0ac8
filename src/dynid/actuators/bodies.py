"""Bodies that have the identified base parameters and are physically consistent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.actuators.unknowns import Unknown
from dynid.feasibility.fit import fit_near_prior
from dynid.feasibility.prior import consistent_prior
from dynid.feasibility.sets import feasible_set
from dynid.parameters.base import BaseParameters
from dynid.robot.model import Robot

__all__ = ["consistent_robot"]

Array = NDArray[np.float64]

# Combinations that are held have this relative standard deviation.
_HELD = 1e-6
# Noise moves the best fit further than this quantile of chi-squared in 99 of 100 logs.
_QUANTILE = 0.01


def consistent_robot(base: BaseParameters, unknowns: Sequence[Unknown], values: Array, covariance: Array) -> Robot:
    """The physically consistent robot nearest to the given one that the log cannot tell from the values.

    Values of unknowns that are combinations are those of the combinations.
    """
    robot = base.robot
    target = base.matrix @ robot.parameters
    names = [robot.parameter_names[k] for k in base.kept]
    owner = {p: k for k, x in enumerate(unknowns) for p in x.parameters}
    size = np.maximum(np.abs(target), 1e-3 * np.abs(target).max())
    variance = np.diag((_HELD * size) ** 2)
    place = [i for i, name in enumerate(names) if name in owner]
    index = [owner[names[i]] for i in place]
    target[place] = values[index]
    variance[np.ix_(place, place)] += covariance[np.ix_(index, index)]
    root = np.linalg.cholesky(variance)
    R = scipy.linalg.solve_triangular(root, base.matrix, lower=True)
    z = scipy.linalg.solve_triangular(root, target, lower=True)
    prior = consistent_prior(robot).parameters
    found = fit_near_prior(feasible_set(robot), R, z, prior, 0.5 * float(scipy.stats.chi2.ppf(_QUANTILE, len(place))))
    return robot.with_parameters(found.parameters)
