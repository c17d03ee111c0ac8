"""Rigid parameters and residual estimated together: the rigid-body kernel, with one posterior for all joints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.residual.posterior import Posterior

__all__ = ["RigidPosterior", "together"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RigidPosterior:
    """Change of the base values (b,), their covariance (b, b), and W'K^-1 (b, m) of every learned joint's points."""

    change: Array
    covariance: Array
    pulled: Mapping[int, Array]

    def variance(self, joint: int, posterior: Posterior, x: Array, W: Array) -> Array:
        """What the base values' uncertainty adds to the variance (N,) at features x, base regressor rows W (N, b)."""
        cross = posterior.kernel.matrix(posterior.theta, x, posterior.blocks[0].points)
        r = W - cross @ self.pulled[joint].T
        return np.asarray(np.einsum("ij,ij->i", r @ self.covariance, r))


def together(posteriors: Mapping[int, Posterior], W: Mapping[int, Array], prior: Array) -> RigidPosterior:
    """Base values given all joints' data: W (m, b) holds the base regressor at the points, prior (b, b) a covariance.

    Each joint's own posterior has the base values where they were; with r its target there and K its covariance,
    information and pull of the change are the sums of W'K^-1 W and W'K^-1 r.
    """
    values, vectors = np.linalg.eigh(prior)
    half = vectors * np.sqrt(np.maximum(values, 0.0))
    information, pull = np.eye(len(prior)), np.zeros(len(prior))
    pulled = {}
    for joint, posterior in posteriors.items():
        block, rows = posterior.blocks[0], W[joint]
        pulled[joint] = rows.T @ block.reduction
        information += half.T @ (pulled[joint] @ rows) @ half / posterior.scale**2
        pull += half.T @ (rows.T @ block.weights) / posterior.scale
    covariance = half @ np.linalg.inv(information) @ half.T
    return RigidPosterior(half @ np.linalg.solve(information, pull), covariance, pulled)
