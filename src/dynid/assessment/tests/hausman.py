"""Hausman's comparison of two estimators: one always consistent, one precise if its assumptions hold."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError
from dynid.hypothesis import Hypothesis, HypothesisTest, chi2_tail
from dynid.identification.estimate import Estimate

__all__ = ["hausman", "hausman_test"]

Array = NDArray[np.float64]

_SAME = Hypothesis(
    "agreement of two estimators (Hausman)",
    "both estimators find the same parameters; the second is the more precise one",
    "the estimates differ by no more than their precision explains: the second can be used",
    "the estimates differ by more than their precision explains: the second is biased",
    "use the more precise one",
    "use the first, and look for what biases the second: noisy positions, feedback, constraints that do not hold",
)


def hausman_test(consistent: Estimate, efficient: Estimate, level: float = 0.05) -> HypothesisTest:
    """Compare two estimates from the same rows, such as iv (consistent) and wls (efficient if X is exogenous)."""
    if consistent.base.names != efficient.base.names:
        raise DataError("the two estimates are of different base parameters")
    return hausman(consistent.beta, consistent.covariance, efficient.beta, efficient.covariance, level)


def hausman(
    consistent: ArrayLike,
    consistent_covariance: ArrayLike,
    efficient: ArrayLike,
    efficient_covariance: ArrayLike,
    level: float = 0.05,
    tolerance: float = 1e-6,
) -> HypothesisTest:
    """H = d'(S - T)^+ d, chi2(rank), with d the difference of the parameters (b,) and S, T their covariances (b, b).

    Directions in which S exceeds T by less than `tolerance` of S carry no information and are left out. Where T is
    the larger one the second estimator is not the precise one it should be; a note says so.
    """
    first, second = np.asarray(consistent, dtype=float), np.asarray(efficient, dtype=float)
    S, T = np.asarray(consistent_covariance, dtype=float), np.asarray(efficient_covariance, dtype=float)
    b = first.size
    if first.shape != (b,) or second.shape != (b,) or S.shape != (b, b) or T.shape != (b, b):
        raise DataError(f"two vectors of {b} parameters need covariances of shape {(b, b)}")
    sigma = np.sqrt(np.maximum(np.diag(S), 0.0))
    try:
        L = np.linalg.cholesky(S / np.outer(sigma, sigma)) if np.all(sigma > 0) else None
    except np.linalg.LinAlgError:
        L = None
    if L is None:
        raise DataError("the covariance of the consistent estimator is not positive definite")

    def whitened(columns: Array) -> Array:
        return np.asarray(scipy.linalg.solve_triangular(L, columns, lower=True))

    ratio = whitened(whitened(T / np.outer(sigma, sigma)).T)
    gain, directions = np.linalg.eigh(np.eye(b) - 0.5 * (ratio + ratio.T))
    used = gain > tolerance
    if not used.any():
        raise DataError("the second estimator is nowhere more precise than the first: there is nothing to test")
    part = directions[:, used].T @ whitened((first - second) / sigma)
    worse = int(np.count_nonzero(gain < -tolerance))
    note = (
        f"the covariance difference is not positive semidefinite: in {worse} of {b} directions the second estimator is "
        "less precise, and these are left out; use one noise for both, and check which one assumes more"
    )
    tail = chi2_tail(float(np.sum(part**2 / gain[used])), int(used.sum()))
    return _SAME.judge(*tail, level, (note,) if worse else ())
