"""What rows are worth: independent rows in time and in state, and how parameters scatter between blocks of time.

Residuals of real robots are correlated over time, and structured by unmodeled effects. Three measures, each of which
sees what the others do not:

- in time: n rows of noise with autocorrelations r_k are worth n / (1 + 2 sum r_k);
- in state: what repeats wherever the robot is in the same state is an error of the model. Rows fall into cells by the
  signs of random projections (locality-sensitive hashing); with sums S of the residuals in the cells, rows are worth
  1 / (sum S^2 / sum e^2);
- in each direction: friction that changes with temperature leaves residuals whose sign follows the velocity, so that
  they look white. The delete-one-block jackknife sees it, with few degrees of freedom. Its variances are moderated
  with the variances of the posterior as their mean, and the degrees of freedom of the prior learned.

The residuals are those of the noise: what the fit took from them, W_t C W_s' with the covariance C of beta, is added
(restricted maximum likelihood).

The moderated variance of a parameter is (d_0 v_0 + d v) / (d_0 + d), with v by blocks and v_0 of the posterior.

Sources: Geyer, Practical Markov Chain Monte Carlo (1992), for the end of the sum over time; Charikar, Similarity
Estimation Techniques from Rounding Algorithms (2002), for cells by signs of projections; Smyth, Linear Models and
Empirical Bayes Methods for Assessing Differential Expression in Microarray Experiments (2004), for moderated variances;
Patterson and Thompson, Recovery of Inter-Block Information when Block Sizes Are Unequal (1971), for restricted
likelihood. Cells in the state as a measure of errors of the model are our own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy import sparse

from dynid.identification.jackknife import jackknife
from dynid.identification.observation import Observation
from dynid.identification.row_stream import Block

__all__ = ["LeftOver", "independent_shares", "scatter"]

Array = NDArray[np.float64]

# Directions in which the share of the fit is measured.
_PROBES = 12
# Longest lag in rows; sums of two autocorrelations below this many of their standard errors end the sum.
_LAGS, _SIGNIFICANT = 1024, 1.0
# Tables of cells and planes per table, which cut it into 64 cells; standard errors by which the effect of the state is
# larger than that of time where it counts.
_TABLES, _PLANES, _SURE = 16, 6, 2.0
# Data determine a base parameter if they have this share in its variance.
_DETERMINED = 0.5
# Degrees of freedom of the prior of variances, from hardly known to surely those of the posterior.
_FREEDOM = np.geomspace(2.0, 1000.0, 60)


@dataclass(frozen=True, eq=False)
class LeftOver:
    """What a fit with parameters beta leaves, summed over pairs of rows that are close in time or in state.

    `probes` (b, m) are random combinations of the root of the covariance of beta: the mean of their products is what
    the fit took. `planes` (channel, b, table * plane) cut the space of the rows into cells.
    """

    beta: Array
    probes: Array
    planes: Array

    def over(self, blocks: Iterable[Block]) -> tuple[Array, Array]:
        """Sums of some blocks: of lagged products (channel, lag), and of signals (channel, cell, 1 + m)."""
        lags = np.zeros((len(self.planes), _LAGS))
        cells = np.zeros((len(self.planes), _TABLES * 2**_PLANES, 1 + self.probes.shape[1]))
        for block in blocks:
            signals = np.column_stack([block.y - block.W @ self.beta, block.W @ self.probes])
            place = (block.index - block.index[0]) // _step(block.index)
            dense = np.zeros((int(place[-1]) + 1, signals.shape[1]))
            dense[place] = signals
            size = scipy.fft.next_fast_len(2 * len(dense), real=True)
            power = np.abs(scipy.fft.rfft(dense, size, axis=0)) ** 2
            lagged = scipy.fft.irfft(power.sum(axis=1), size)[: min(_LAGS, len(dense))]
            lags[block.channel, : len(lagged)] += lagged
            cells[block.channel] += self._cells(block) @ signals
        return lags, cells

    def _cells(self, block: Block) -> sparse.csc_array:
        """Which rows of a block are in which cell (cell, row)."""
        sides = (block.W @ self.planes[block.channel] > 0).reshape(-1, _TABLES, _PLANES)
        cell = sides @ 2 ** np.arange(_PLANES) + 2**_PLANES * np.arange(_TABLES)
        ends = _TABLES * np.arange(len(cell) + 1)
        return sparse.csc_array((np.ones(cell.size), cell.ravel(), ends), (_TABLES * 2**_PLANES, len(cell)))

    def join(self, first: tuple[Array, Array], second: tuple[Array, Array]) -> tuple[Array, Array]:
        """Sums of both."""
        return first[0] + second[0], first[1] + second[1]


def _step(index: NDArray[np.int64]) -> int:
    """Samples per row."""
    return max(int(np.gcd.reduce(np.diff(index))), 1) if len(index) > 1 else 1


def independent_shares(observation: Observation, beta: Array, root: Array) -> Array:
    """Independent rows per row (channel,) of the residuals that beta leaves; root (b, k) of its covariance."""
    rng = np.random.default_rng(0)
    count = min(_PROBES, root.shape[1])
    signs = rng.choice([-1.0, 1.0], (root.shape[1], count)) / np.sqrt(count)
    sizes = np.array([np.linalg.norm(f[:, :-1], axis=0) for f in observation.factors])
    planes = rng.standard_normal((len(root), _TABLES * _PLANES)) / np.where(sizes > 0, sizes, np.inf)[:, :, None]
    parts: Sequence[tuple[Array, Array]] = observation.reduced(LeftOver(beta, root @ signs, planes))
    lags, cells = (np.sum([part[k] for part in parts], axis=0) for k in (0, 1))
    return np.array([1.0 / _effect(*each) for each in zip(lags, cells, observation.rows, strict=True)])


def _effect(lags: Array, cells: Array, rows: int) -> float:
    """Rows per independent row: in time, or in state where these are surely more."""
    time = _in_time(lags, rows)
    state = float(np.sum(cells**2)) / _TABLES / max(lags[0], 1e-300)
    return state if state > time * (1.0 + _SURE * np.sqrt(2.0 / 2**_PLANES)) else time


def _in_time(lags: Array, rows: int) -> float:
    """Rows per independent row from sums of lagged products.

    The sum of the autocorrelations ends at the first pair of lags that is not surely positive.
    """
    last = min(_LAGS, rows // 4) // 2 * 2
    if last < 2 or lags[0] <= 0:
        return 1.0
    pairs = (lags[:last] / lags[0]).reshape(-1, 2).sum(axis=1)
    ended = np.flatnonzero(pairs <= _SIGNIFICANT * np.sqrt(2.0 / rows))
    total = float(pairs[: ended[0] if len(ended) else len(pairs)].sum())
    return max(2.0 * total - 1.0, 1.0)


def scatter(
    observation: Observation, beta: Array, noise: Array, factor: Array, root: Array, prior: Array
) -> tuple[Array, float]:
    """Standard deviations by moderated blocks of time over those of the posterior (b,), and degrees of freedom.

    `noise` (channel,) is that of independent rows, `factor` (k, b) the rows in units of it, `root` (b, k) that of the
    covariance, and `prior` (b, b) the rows of the prior.
    """
    ones = np.ones(len(beta))
    found = jackknife(observation, beta, noise, prior=prior)
    if found is None:
        return ones, np.inf
    expected = np.linalg.norm(root @ (factor @ root).T, axis=1) ** 2
    known = expected > _DETERMINED * np.sum(root**2, axis=1)
    ratio, own = found.std[known] ** 2 / expected[known], found.blocks - 1.0
    likelihood = scipy.stats.f.logpdf(ratio, own, _FREEDOM[:, None]).sum(axis=1)
    given = float(_FREEDOM[np.argmax(likelihood)])
    ones[known] = np.sqrt((given + own * ratio) / (given + own))
    return ones, given + own
