"""The SARCOS arm, torques learned from motion alone: the test part of the textbook data set, ten folds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.linalg import lapack

from dynid.residual.features import Features, fit_features
from dynid.residual.kernel import parse_kernel
from dynid.residual.noise import Noise
from dynid.residual.posterior import basis_columns
from dynid.residual.problem import Problem
from dynid.residual.training import Training, hyper_parameters
from dynid.robot.model import Robot
from studies.reproduce.study import Figure, data_folder

__all__ = ["fold_errors", "left_out", "sarcos_figures", "sarcos_rows"]

Array = NDArray[np.float64]

_FOLDS = 10
_SEED = 0
# Rasmussen and Williams (2006, Table 2.1), joint 1, learned from the 44484 rows that are not here.
_TEXTBOOK, _LINEAR = 0.011, 0.075


def sarcos_rows() -> tuple[Array, Array]:
    """Motion (4449, 21): positions, velocities, accelerations; torques (4449, 7)."""
    table = scipy.io.loadmat(data_folder() / "sarcos-arm-test" / "sarcos_inv_test.mat")["sarcos_inv_test"]
    return np.asarray(table[:, :21], dtype=float), np.asarray(table[:, 21:], dtype=float)


def sarcos_figures() -> Iterator[Figure]:
    """Mean squared error over variance per joint, for random folds and for folds of neighbouring rows."""
    motion, torque = sarcos_rows()
    section = f"SARCOS arm, plain GP, {_FOLDS} folds of its {len(motion)} test rows: squared error over variance"
    N = len(motion)
    neighbours = np.arange(N) * _FOLDS // N
    drawn = np.random.default_rng(_SEED).permutation(neighbours)
    for j in range(torque.shape[1]):
        random, blocks = fold_errors(motion, torque[:, j], j, (drawn, neighbours))
        share = [float(np.mean(e**2) / np.var(torque[:, j])) for e in (random, blocks)]
        known = f"{_TEXTBOOK:g} from eleven times the rows, linear {_LINEAR:g}" if j == 0 else "-"
        ours = f"{share[0]:.4f} drawn at random, {share[1]:.4f} neighbours"
        reason = "as good as a linear model from eleven times the rows" if j == 0 else "for the record"
        limit = _LINEAR if j == 0 else np.inf
        yield Figure(section, f"joint {j + 1}", known, ours, share[0], limit, reason)


def fold_errors(motion: Array, torque: Array, joint: int, folds: tuple[NDArray[np.intp], ...]) -> list[Array]:
    """Errors (N,) of each row predicted without its fold, for several divisions into folds.

    Hyper-parameters come from 600 rows distributed over all.
    """
    features = _features(motion)
    x, scale = features(*np.split(motion, 3, axis=1)), float(np.std(torque))
    basis = basis_columns(0, x)
    kernel = parse_kernel("ard", features, joint)
    problem = Problem.of(kernel, Noise(), features, x, torque / scale, basis)
    theta, _ = hyper_parameters(problem, Training(restarts=0))
    own, noise = problem.split(theta)
    K = kernel.matrix(own, x) + basis @ basis.T
    K[np.diag_indices_from(K)] += problem.noise_variance(noise)
    return left_out(K, problem.y, folds, scale)


def left_out(K: Array, y: Array, folds: tuple[NDArray[np.intp], ...], scale: float) -> list[Array]:
    """Errors of targets y (N,) with covariance K (N, N), noise included, each fold predicted from the others.

    With P = K^-1 they are P_BB^-1 (P y)_B for a fold B (Rasmussen and Williams 2006, 5.4.2, for folds of one).
    """
    L, bad = lapack.dpotrf(K, lower=1, overwrite_a=1, clean=1)
    assert bad == 0
    pulled, _ = lapack.dpotrs(L, y, lower=1)
    P, _ = lapack.dpotri(L, lower=1, overwrite_c=1)
    out = []
    for fold in folds:
        error = np.zeros(len(y))
        for k in np.unique(fold):
            i = np.flatnonzero(fold == k)
            low = np.tril(P[np.ix_(i, i)])
            error[i] = scipy.linalg.solve(low + np.tril(low, -1).T, pulled[i], assume_a="pos")
        out.append(scale * error)
    return out


def _features(motion: Array) -> Features:
    """Features of an arm of unknown geometry: seven revolute joints."""
    arm = Robot.from_dh([(0.0, 0.0, 0.0, 0.0)] * (motion.shape[1] // 3), "modified", name="sarcos")
    q, v, a = np.split(motion, 3, axis=1)
    return fit_features(arm, q, v, a, periodic=False)
