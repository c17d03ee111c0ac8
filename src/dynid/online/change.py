"""Detection of a change of parameters from a stream of rows, with a stated rate of false alarms.

The rows since the last change are compared with each of the last suffixes of rows (a generalised likelihood ratio over
a limited window). With the information N_A and the estimate x_A of the rows before the suffix, and N_B and the score
g_B = X_B'(y_B - X_B x_A) of the suffix, the statistic g_B' (N_B + N_B N_A^-1 N_B)^-1 g_B has a chi-square distribution
while nothing changes and the noise is normal. A weak prior is added to both, which only lowers it. The level of one
test is the rate of false alarms divided by the number of tests per hour: by Bonferroni's inequality the rate holds
however the tests depend on each other.

Sources: Willsky and Jones, A Generalized Likelihood Ratio Approach to the Detection and Estimation of Jumps in Linear
Systems (1976); Lai, Sequential Changepoint Detection in Quality Control and Dynamical Systems (1995), for a limited
window; Basseville and Nikiforov, Detection of Abrupt Changes (1993).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

__all__ = ["Change", "ChangeDetector"]

Array = NDArray[np.float64]

_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Change:
    """A detected change.

    Attributes
    ----------
    rows : int
        Samples of rows since the change, the last one included.
    statistic : float
        Value of the test.
    before : ndarray, shape (k,)
        Parameters before the change.
    covariance : ndarray, shape (k, k)
        Their covariance.
    """

    rows: int
    statistic: float
    before: Array
    covariance: Array


class ChangeDetector:
    """Information of the rows since the last change, and the tests of the last rows against it.

    Parameters
    ----------
    prior : ndarray, shape (k,)
        Standard deviation of each parameter before any data: large, so that it only keeps the equations solvable.
    window : int
        Number of suffixes that are tested.
    level : float
        Probability of a false alarm of one test.
    """

    def __init__(self, prior: Array, *, window: int, level: float) -> None:
        size = len(prior)
        self._weak = np.diag(1.0 / prior**2)
        self.window = window
        self.threshold = float(scipy.stats.chi2.isf(level, size))
        self._information, self._scores = np.zeros((size, size)), np.zeros(size)
        # The last rows, the oldest first.
        self._recent = np.zeros((window, size, size)), np.zeros((window, size))
        self._count = 0

    def restart(self, information: Array, scores: Array) -> None:
        """Begin anew with rows of this information (k, k) and these scores (k,)."""
        self._information, self._scores = information.copy(), scores.copy()
        self._count = 0

    def add(self, X: Array, y: Array) -> Change | None:
        """Take the whitened rows X (m, k), y (m,) of one instant; returns the change, if there is one."""
        blocks, scores = self._recent
        if self._count == self.window:
            self._information += blocks[0]
            self._scores += scores[0]
            blocks[:-1], scores[:-1] = blocks[1:], scores[1:]
        else:
            self._count += 1
        blocks[self._count - 1], scores[self._count - 1] = X.T @ X, X.T @ y
        return self._test()

    def _test(self) -> Change | None:
        """The most significant suffix, if it exceeds the threshold."""
        blocks, scores = (x[: self._count] for x in self._recent)
        later, later_scores = (np.cumsum(x[::-1], axis=0) for x in (blocks, scores))
        before = self._information + later[-1] - later
        covariance = np.linalg.inv(before + self._weak)
        known = np.einsum("kij,kj->ki", covariance, self._scores + later_scores[-1] - later_scores)
        left = later_scores - np.einsum("kij,kj->ki", later, known)
        variance = later + later @ covariance @ later
        # A few rows do not show all parameters: what they do not show gets a variance of the size of rounding.
        size = 1.0 + np.einsum("kii,i->k", variance, 1.0 / np.diag(self._weak))
        variance += _ROUNDING * size[:, None, None] * self._weak
        statistic = np.einsum("ki,ki->k", left, np.linalg.solve(variance, left[:, :, None])[:, :, 0])
        k = int(np.argmax(statistic))
        if not statistic[k] > self.threshold:
            return None
        return Change(k + 1, float(statistic[k]), known[k], covariance[k])
