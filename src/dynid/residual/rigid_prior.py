"""Rigid parameters and residual estimated together: the rigid-body kernel, with one posterior for all joints.

    (C^-1 + sum of W'K^-1 W) change = sum of W'K^-1 r,    variance = (w - W'K^-1 k)' S (w - W'K^-1 k)

with the prior covariance C of the base parameters, K of the data of a joint and S that of the change.

Source: Rasmussen and Williams, Gaussian Processes for Machine Learning (2006), section 2.7 (explicit basis functions);
Nguyen-Tuong and Peters, Using Model Knowledge for Learning Inverse Dynamics (2010), for the rigid-body kernel.
"""

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
    """Rigid parameters estimated together with the residual.

    Attributes
    ----------
    change : array, shape (b,)
        Change of the base parameters from their prior values.
    covariance : array, shape (b, b)
        Covariance of the base parameters.
    projection : mapping of int to array, shape (b, m)
        W'K^-1 of every learned joint's points, by joint.
    """

    change: Array
    covariance: Array
    projection: Mapping[int, Array]

    def variance(self, joint: int, posterior: Posterior, x: Array, W: Array) -> Array:
        """Variance (N,) from uncertain base parameters at features x (N, d), with base regressor rows W (N, b)."""
        cross = posterior.kernel.matrix(posterior.theta, x, posterior.blocks[0].points)
        r = W - cross @ self.projection[joint].T
        return np.asarray(np.einsum("ij,ij->i", r @ self.covariance, r))


def together(posteriors: Mapping[int, Posterior], W: Mapping[int, Array], prior: Array) -> RigidPosterior:
    """Base parameters given all joints' data, with their `prior` covariance (b, b).

    W (m, b) holds each joint's base regressor at its points. With r the target and K the covariance of a joint at the
    prior base parameters, the information matrix and vector of their change are the sums of W'K^-1 W and W'K^-1 r.
    """
    values, vectors = np.linalg.eigh(prior)
    half = vectors * np.sqrt(np.maximum(values, 0.0))
    information, vector = np.eye(len(prior)), np.zeros(len(prior))
    projection = {}
    for joint, posterior in posteriors.items():
        block, rows = posterior.blocks[0], W[joint]
        projection[joint] = rows.T @ block.reduction
        information += half.T @ (projection[joint] @ rows) @ half / posterior.scale**2
        vector += half.T @ (rows.T @ block.weights) / posterior.scale
    covariance = half @ np.linalg.inv(information) @ half.T
    return RigidPosterior(half @ np.linalg.solve(information, vector), covariance, projection)
