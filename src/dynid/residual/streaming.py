"""Add data to a fitted residual at fixed kernels and hyper-parameters.

    sparse: V D^-1 V' and V D^-1 y of new rows are added,    exact: the inverse of a matrix with a new corner (Schur)

Source: Quinonero-Candela and Rasmussen, A Unifying View of Sparse Approximate Gaussian Process Regression (2005), for
the statistics; Golub and Van Loan, Matrix Computations (4th edition 2013), for the inverse of a bordered matrix.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynid.errors import InvalidValue, NotApplicable
from dynid.recording.recording import Recording
from dynid.residual import exact, sparse
from dynid.residual.features import Features
from dynid.residual.posterior import Block, Posterior
from dynid.residual.problem import Problem
from dynid.residual.rows import TorqueRows

if TYPE_CHECKING:
    from dynid.residual.residual import Residual

__all__ = ["updated"]

Array = NDArray[np.float64]


def updated(residual: Residual, data: Recording | TorqueRows, max_points: int) -> Residual:
    """The residual with more data.

    Sparse posteriors add the statistics of the new rows, which is exact. Exact and local ones grow by the new rows;
    beyond `max_points` a block keeps the points that explain most of the variance.
    """
    if max_points < 1:
        raise InvalidValue(f"max_points must be positive, got {max_points}", "max_points")
    rows = data if isinstance(data, TorqueRows) else residual.rows(data)
    joints = list(residual.joints)
    for one in rows.joints:
        joint = joints[one.joint]
        if joint is None:
            continue
        old = joint.posterior
        if old.degree >= 0:
            raise NotApplicable("data cannot be added to a residual with a basis; fit it again")
        y = (one.error if residual.has_rigid else one.torque) / old.scale
        x = residual.features(*one.motion)
        problem = Problem.of(old.kernel, old.noise, residual.features, x, y, np.zeros((len(y), 0)))
        joints[one.joint] = replace(joint, posterior=_grown(old, problem, residual.features, max_points))
    return replace(residual, joints=tuple(joints))


def _grown(old: Posterior, problem: Problem, features: Features, max_points: int) -> Posterior:
    theta = np.append(old.theta, old.noise_theta)
    if old.statistics is not None:
        points = old.blocks[0].points
        statistics = old.statistics + sparse.gather(problem, theta, points)
        block = sparse.condition(old.kernel, old.theta, points, statistics)
        return replace(old, blocks=(block,), statistics=statistics)
    home = np.argmax(old.shares(problem.x), axis=1) if len(old.blocks) > 1 else np.zeros(len(problem.y), np.intp)
    blocks = []
    for b, block in enumerate(old.blocks):
        mine = np.flatnonzero(home == b)
        blocks.append(_with_rows(block, problem.rows(mine), theta, features, max_points) if mine.size else block)
    return replace(old, blocks=tuple(blocks))


def _with_rows(block: Block, problem: Problem, theta: Array, features: Features, max_points: int) -> Block:
    kernel = problem.kernel
    kernel_theta, noise_theta = problem.split(theta)
    known = np.linalg.solve(block.reduction, block.weights)
    x, y = np.vstack([block.points, problem.x]), np.concatenate([known, problem.y])
    if len(x) <= max_points:
        cross = kernel.matrix(kernel_theta, block.points, problem.x)
        corner = kernel.matrix(kernel_theta, problem.x)
        corner[np.diag_indices_from(corner)] += problem.noise_variance(noise_theta)
        return exact.extend(block, cross, corner, problem.x, y)
    whole = Problem.of(kernel, problem.noise, features, x, y, np.zeros((len(y), 0)))
    return exact.condition(whole.rows(sparse.choose_rows(kernel, kernel_theta, x, max_points)), theta)
