"""Factors of the entries in units of their noise, and the estimate of each entry by itself.

The noise of a channel is pooled over the entries of a unit. The autocorrelation of the noise makes standard deviations
larger than those of white noise; how much larger is the same for all entries of a fleet, whose units move alike, and is
therefore averaged over the entries in which it was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.fleet.folding import FoldedEntry
from dynid.identification.observation import fold
from dynid.parameters.base import BaseParameters

__all__ = ["WhitenedEntry", "noise_ratio", "whitened_entries"]

Array = NDArray[np.float64]

_WEAKEST = 1e-9
# Standard deviation of what an entry says nothing about, in units of the largest column of its factor.
_DIFFUSE = 1e6
# Share of a parameter in directions that are not excited from which its standard deviation is infinite.
_HIDDEN = 1e-4


@dataclass(frozen=True, eq=False)
class WhitenedEntry:
    """What one entry says about the base parameters, with noise of unit variance.

    Attributes
    ----------
    unit : str
        Name of the unit.
    moment : datetime
        When it was recorded.
    name : str
        Name of the recording.
    temperature : ndarray, shape (joint,)
        Temperature per joint, deg C, or NaN.
    rows : ndarray, shape (k, b)
        Rows A of A beta = z.
    target : ndarray, shape (k,)
        z.
    beta : ndarray, shape (b,)
        Estimate from this entry alone; directions that it does not excite are those of the mean of the fleet.
    covariance : ndarray, shape (b, b)
        Its covariance, very large in those directions.
    known : ndarray of bool, shape (b,)
        Parameters that the entry determines.
    noise : ndarray, shape (channel,)
        Standard deviation of the torque noise per channel, N m or N.
    """

    unit: str
    moment: datetime
    name: str
    temperature: Array
    rows: Array
    target: Array
    beta: Array
    covariance: Array
    known: NDArray[np.bool_]
    noise: Array

    @property
    def std(self) -> Array:
        """Standard deviation of each base parameter (b,); infinite where the entry does not determine it."""
        return np.where(self.known, np.sqrt(np.maximum(np.diag(self.covariance), 0.0)), np.inf)


def noise_ratio(folded: Sequence[FoldedEntry], count: int) -> Array:
    """Standard deviation of each base parameter (b,) relative to that of white noise, over all measured entries."""
    measured = [x.ratio for x in folded if x.ratio is not None and np.all(np.isfinite(x.ratio))]
    return np.sqrt(np.mean(np.square(measured), axis=0)) if measured else np.ones(count)


def whitened_entries(base: BaseParameters, folded: Sequence[FoldedEntry], ratio: Array) -> list[WhitenedEntry]:
    """Every folded entry in units of its noise."""
    pooled = _unit_noise(folded)
    halves = [_scaled(one, np.fmax(one.own_noise, pooled[one.unit]), ratio) for one in folded]
    whole = [beta for _, _, beta in halves if beta is not None]
    center = np.median(whole, axis=0) if whole else base.values()
    out = []
    for one, (rows, target, beta) in zip(folded, halves, strict=True):
        known = np.ones(base.count, dtype=bool)
        if beta is None:
            beta, covariance, known = _diffuse(rows, target, center)
        else:
            inverse = scipy.linalg.solve_triangular(rows, np.eye(base.count))
            covariance = inverse @ inverse.T
        noise = np.fmax(one.own_noise, pooled[one.unit])
        out.append(
            WhitenedEntry(one.unit, one.moment, one.name, one.temperature, rows, target, beta, covariance, known, noise)
        )
    return out


def _unit_noise(folded: Sequence[FoldedEntry]) -> dict[str, Array]:
    """Standard deviation of the residual per unit and channel, over all entries of the unit."""
    squares: dict[str, Array] = {}
    freedom: dict[str, Array] = {}
    for one in folded:
        squares[one.unit] = squares.get(one.unit, 0.0) + one.squares
        freedom[one.unit] = freedom.get(one.unit, 0.0) + one.freedom
    with np.errstate(invalid="ignore", divide="ignore"):
        return {unit: np.sqrt(squares[unit] / freedom[unit]) for unit in squares}


def _scaled(one: FoldedEntry, noise: Array, ratio: Array) -> tuple[Array, Array, Array | None]:
    """Rows and target in units of the noise, and the least-squares solution where the rows determine all parameters."""
    floor = 1e-13 * np.array([np.linalg.norm(f[:, -1]) for f in one.factors]) + 1e-300
    used = [k for k, n in enumerate(one.rows) if n]
    stack = fold(np.asfortranarray(np.vstack([one.factors[k] / max(noise[k], floor[k]) for k in used])))
    A, z = stack[:, :-1], stack[:, -1]
    if len(one.at_rest):
        # What joints at rest leave undecided must not be decided by noise.
        H = one.at_rest[:, :-1]
        basis = np.linalg.pinv(H)
        z = z - A @ (basis @ one.at_rest[:, -1])
        A = A - A @ basis @ H
    size = np.linalg.norm(A, axis=0)
    unit = A / np.where(size > 0, size, 1.0)
    singular = np.linalg.svd(unit, compute_uv=False)
    if len(A) < A.shape[1] or singular[-1] <= _WEAKEST * singular[0]:
        # Separate ratios would turn the directions that are not excited.
        return A / ratio.max(), z / ratio.max(), None
    q, r = scipy.linalg.qr(A, mode="economic")
    beta = scipy.linalg.solve_triangular(r, q.T @ z)
    scaled = np.asarray(r / ratio)
    return scaled, scaled @ beta, np.asarray(beta)


def _diffuse(rows: Array, target: Array, center: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Solution around a center with a very wide prior, its covariance, and what the rows determine."""
    size = np.linalg.norm(rows, axis=0)
    typical = np.where(size > 0, size, size.max())
    _, s, vt = np.linalg.svd(rows / typical, full_matrices=True)
    s = np.concatenate([s, np.zeros(len(vt) - len(s))])
    hidden = s <= _WEAKEST * s[0]
    prior = np.eye(len(center)) * typical / _DIFFUSE
    q, r = scipy.linalg.qr(np.vstack([rows, prior]), mode="economic")
    inverse = scipy.linalg.solve_triangular(r, np.eye(len(center)))
    beta = inverse @ (q.T @ np.concatenate([target, prior @ center]))
    return beta, inverse @ inverse.T, np.asarray(np.sum(vt[hidden] ** 2, axis=0) < _HIDDEN)
