"""Posterior of a Gaussian process, the same for all inference methods: points, weights and a reduction matrix.

    mean = k' w + h' c,    variance = k(x, x) - k' A k + r' S r,    r = h - T k

Sources: Rasmussen and Williams, Gaussian Processes for Machine Learning (2006), chapter 2; Nguyen-Tuong, Seeger and
Peters, Model Learning with Local Gaussian Process Regression (2009), for several local models, here with weights that
end at the fourth nearest centre.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.residual.features import Features
from dynid.residual.kernel import Kernel
from dynid.residual.layout import NEIGHBOURS
from dynid.residual.noise import Noise, reversal_at

__all__ = ["Block", "Posterior", "Statistics", "basis_columns"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Block:
    """One set of points: mean k'w + h'c and variance k(x,x) - k'Ak + r'Sr with r = h - Tk.

    Here k are the covariances of a query x to the `points` (m, d) and h the basis functions at x.

    Attributes
    ----------
    points : array, shape (m, d)
    weights : array, shape (m,)
        w.
    reduction : array, shape (m, m)
        A.
    coefficients : array, shape (b,)
        Coefficients c of the basis functions.
    covariance : array, shape (b, b)
        Covariance S of the coefficients.
    projection : array, shape (b, m)
        T.
    """

    points: Array
    weights: Array
    reduction: Array
    coefficients: Array
    covariance: Array
    projection: Array


@dataclass(frozen=True, eq=False)
class Statistics:
    """Sufficient statistics of a sparse posterior: V D^-1 V' (k, k) and V D^-1 y (k,); those of more data add up."""

    information: Array
    information_vector: Array

    def __add__(self, other: Statistics) -> Statistics:
        vector = self.information_vector + other.information_vector
        return Statistics(self.information + other.information, vector)


@dataclass(frozen=True, eq=False)
class Posterior:
    """A fitted Gaussian process, in scaled units: outputs times `scale` are in N m.

    It has one block, or several local ones around `centers` (blocks, d), of which the nearest three share a query.
    `degree` of the basis: -1 none, 0 a constant, 1 linear in the features. A sparse posterior keeps the `statistics` of
    its data, so that more data can be added.
    """

    kernel: Kernel
    theta: Array
    noise: Noise
    noise_theta: Array
    scale: float
    blocks: tuple[Block, ...]
    centers: Array
    degree: int = -1
    statistics: Statistics | None = None

    @property
    def points(self) -> int:
        """Number of points of all blocks."""
        return sum(len(b.points) for b in self.blocks)

    def mean(self, x: Array) -> Array:
        """Mean (N,) at features x (N, d), in N m."""
        return self._shared(x, False)[0]

    def predict(self, x: Array) -> tuple[Array, Array]:
        """Mean (N m) and variance (N2 m2), each (N,), of the function without measurement noise."""
        return self._shared(x, True)

    def uncertainty(self, x: Array) -> Array:
        """Posterior over prior variance (N,): 1 far away from the data."""
        return np.asarray(self.predict(x)[1] / self.prior_variance)

    @property
    def prior_variance(self) -> float:
        """Variance before any data, in N2 m2."""
        return self.scale**2 * self.kernel.variance(self.theta)

    def reversal(self, features: Features, x: Array) -> Array:
        """Reversal 1 - s^2 (N,), which the noise depends on, at features x (N, d)."""
        return reversal_at(self.noise, features, x)

    def noise_variance(self, reversal: Array) -> Array:
        """Variance (N,) of the measurement noise, in N2 m2."""
        return np.asarray(self.scale**2 * self.noise.variance(self.noise_theta, reversal))

    def _shared(self, x: Array, variance: bool) -> tuple[Array, Array]:
        if len(self.blocks) == 1:
            return self._block(self.blocks[0], x, variance)
        share = self.shares(x)
        mean, second = np.zeros(len(x)), np.zeros(len(x))
        for b, block in enumerate(self.blocks):
            rows = np.flatnonzero(share[:, b])
            if rows.size:
                m, v = self._block(block, x[rows], variance)
                mean[rows] += share[rows, b] * m
                second[rows] += share[rows, b] * (v + m**2)
        return mean, second - mean**2 if variance else second

    def shares(self, x: Array) -> Array:
        """Weights (N, blocks) of the local models: continuous in x, and zero beyond the nearest three."""
        part, theta = self.kernel.parts[0], self.kernel.split(self.theta)[0]
        a, c = part.scaled(theta, x), part.scaled(theta, self.centers)
        s = ((a[:, None, :] - c[None]) ** 2).sum(axis=2)
        near = np.exp(-0.5 * (s - s.min(axis=1, keepdims=True)))
        if near.shape[1] > NEIGHBOURS:
            near = np.maximum(near - np.sort(near, axis=1)[:, -NEIGHBOURS - 1, None], 0.0)
            near[near.sum(axis=1) == 0] = 1.0  # a tie of more than three
        return np.asarray(near / near.sum(axis=1, keepdims=True))

    def _block(self, block: Block, x: Array, variance: bool) -> tuple[Array, Array]:
        k = self.kernel.matrix(self.theta, x, block.points)
        h = basis_columns(self.degree, x)
        mean = k @ block.weights + h @ block.coefficients
        if not variance:
            return self.scale * mean, np.zeros(len(x))
        v = self.kernel.variance(self.theta) - np.einsum("ij,ij->i", k @ block.reduction, k)
        if h.shape[1]:
            r = h - k @ block.projection.T
            v = v + np.einsum("ij,ij->i", r @ block.covariance, r)
        return self.scale * mean, self.scale**2 * np.maximum(v, 0.0)


# Prior standard deviation of basis coefficients, in scaled units: so wide that the data determine them.
_VAGUE = 30.0


def basis_columns(degree: int, x: Array) -> Array:
    """Columns (N, b) of an explicit basis, times the standard deviation of their vague prior."""
    columns = [np.ones((len(x), 1))] * (degree >= 0) + [x] * (degree >= 1)
    return _VAGUE * np.hstack(columns) if columns else np.zeros((len(x), 0))
