"""Hausman test of two estimators: one always consistent, the other more precise if its assumptions hold.

    H = d' (S - T)^+ d ~ chi2(rank),    d the difference of the estimates, S and T their covariances

Source: Hausman, Specification Tests in Econometrics (1978).
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.errors import InvalidShape, InvalidValue, Mismatch, NotApplicable
from dynid.hypothesis import Hypothesis, HypothesisTest, TestCode, chi2_tail
from dynid.identification.estimate import Estimate

__all__ = ["hausman", "hausman_test"]

Array = NDArray[np.float64]

_SAME = Hypothesis(
    TestCode.HAUSMAN,
    "agreement of two estimators (Hausman)",
    "both estimators converge to the same parameters, and the second is more precise",
    "the estimates differ by no more than their covariances explain: the second can be used",
    "the estimates differ by more than their covariances explain: the second is biased",
    "use the more precise one",
    "use the first, and look for the cause of the bias: noisy positions, feedback, constraints that do not hold",
)


def hausman_test(consistent: Estimate, efficient: Estimate, *, level: float = 0.05) -> HypothesisTest:
    """Compare two estimates from the same rows, such as iv (consistent) and wls (efficient if W is exogenous).

    Parameters
    ----------
    consistent : Estimate
        Estimate that is consistent under both hypotheses.
    efficient : Estimate
        Estimate of the same base parameters that is more precise under the null hypothesis.
    level : float
        Significance level.

    Returns
    -------
    HypothesisTest

    Raises
    ------
    DataError
        If the estimates are of different base parameters, or the second is nowhere more precise.
    """
    if consistent.base.names != efficient.base.names:
        raise Mismatch("the two estimates are of different base parameters")
    return hausman(consistent.beta, consistent.covariance, efficient.beta, efficient.covariance, level=level)


def hausman(
    consistent: ArrayLike,
    consistent_covariance: ArrayLike,
    efficient: ArrayLike,
    efficient_covariance: ArrayLike,
    *,
    level: float = 0.05,
    tolerance: float = 1e-6,
) -> HypothesisTest:
    """H = d'(S - T)^+ d, chi2(rank), with d the difference of the parameters (b,) and S, T their covariances (b, b).

    Directions in which S exceeds T by less than `tolerance` of S carry no information and are left out. Where T is
    larger than S, the second estimator is not more precise as assumed; a note says so.
    """
    first, second = np.asarray(consistent, dtype=float), np.asarray(efficient, dtype=float)
    S, T = np.asarray(consistent_covariance, dtype=float), np.asarray(efficient_covariance, dtype=float)
    b = first.size
    if first.shape != (b,) or second.shape != (b,) or S.shape != (b, b) or T.shape != (b, b):
        raise InvalidShape(f"two vectors of {b} parameters need covariances of shape {(b, b)}", "covariance")
    sigma = np.sqrt(np.maximum(np.diag(S), 0.0))
    try:
        L = np.linalg.cholesky(S / np.outer(sigma, sigma)) if np.all(sigma > 0) else None
    except np.linalg.LinAlgError:
        L = None
    if L is None:
        raise InvalidValue("the covariance of the consistent estimator is not positive definite", "covariance")

    def whitened(columns: Array) -> Array:
        return np.asarray(scipy.linalg.solve_triangular(L, columns, lower=True))

    ratio = whitened(whitened(T / np.outer(sigma, sigma)).T)
    gain, directions = np.linalg.eigh(np.eye(b) - 0.5 * (ratio + ratio.T))
    used = gain > tolerance
    if not used.any():
        raise NotApplicable("the second estimator is nowhere more precise than the first: the test cannot be made")
    part = directions[:, used].T @ whitened((first - second) / sigma)
    worse = int(np.count_nonzero(gain < -tolerance))
    note = (
        f"the covariance difference is not positive semidefinite: in {worse} of {b} directions the second estimator is "
        "less precise, and these are left out; use the same noise for both, and check their assumptions"
    )
    tail = chi2_tail(float(np.sum(part**2 / gain[used])), int(used.sum()))
    return _SAME.judge(*tail, level, (note,) if worse else ())
