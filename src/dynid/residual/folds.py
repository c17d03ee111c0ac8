"""Cross-validation folds over a motion, and torque errors of the rigid model identified without a fold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynid.residual.rows import JointRows

__all__ = ["fold_numbers", "held_out_errors"]

Array = NDArray[np.float64]

# Number of folds. From _ENOUGH runs on every run is a fold; fewer are cut into intervals of time, more are grouped.
_FOLDS = 6
_ENOUGH = 4
# If least squares would remove more than this share of the squared error, the model was not fitted to these rows.
_ELSEWHERE = 0.2
# Directions of the scaled parameters with less information than this in the other folds keep their identified values.
_KNOWN = 1e-9


def fold_numbers(joints: Sequence[JointRows]) -> list[NDArray[np.intp]]:
    """A fold for every row of every joint: runs, grouped or cut into intervals of time that all joints share."""
    runs = np.unique(np.concatenate([rows.run for rows in joints]))
    if len(runs) >= _ENOUGH:
        count = min(len(runs), _FOLDS)
        return [np.asarray(np.searchsorted(runs, rows.run) * count // len(runs)) for rows in joints]
    pieces = -(-_FOLDS // len(runs))
    out = [np.zeros(len(rows), np.intp) for rows in joints]
    for i, run in enumerate(runs):
        here = [rows.run == run for rows in joints]
        clock = np.concatenate([rows.t[h] for rows, h in zip(joints, here, strict=True)])
        start, length = clock.min(), max(float(np.ptp(clock)), 1e-12)
        for rows, h, fold in zip(joints, here, out, strict=True):
            piece = np.floor((rows.t[h] - start) / length * pieces).astype(np.intp)
            fold[h] = i * pieces + np.minimum(piece, pieces - 1)
    return out


def held_out_errors(joints: Sequence[JointRows], folds: Sequence[NDArray[np.intp]]) -> list[Array]:
    """Errors (folds, N) of every joint's rows, the rigid model identified each time without one of the folds.

    The change of the base parameters is that of least squares with joints weighted by their errors, which is exact for
    an estimate by weighted least squares. Errors of a model that was fitted to all folds have opposite signs in
    different folds, so that a residual learned on one fold would seem useless on another; leaving the fold out avoids
    this. Errors of a model that was fitted to other data are returned as they are.
    """
    count, size = 1 + max(int(f.max()) for f in folds), joints[0].W.shape[1]
    information, vector = np.zeros((count, size, size)), np.zeros((count, size))
    for rows, fold in zip(joints, folds, strict=True):
        weight = 1.0 / max(float(np.mean(rows.error**2)), 1e-300)
        for k in range(count):
            W, error = rows.W[fold == k], rows.error[fold == k]
            information[k] += weight * (W.T @ W)
            vector[k] += weight * (W.T @ error)
    total, scale = information.sum(axis=0), np.sqrt(np.maximum(np.diag(information.sum(axis=0)), 1e-300))

    def change(A: Array, b: Array) -> Array:
        return np.asarray(np.linalg.lstsq(A / np.outer(scale, scale), b / scale, rcond=_KNOWN)[0] / scale)

    whole = change(total, vector.sum(axis=0))
    samples = sum(len(rows) for rows in joints)
    if whole @ vector.sum(axis=0) > _ELSEWHERE * samples:
        return [np.tile(rows.error, (count, 1)) for rows in joints]
    moved = [change(total - information[k], vector.sum(axis=0) - vector[k]) - whole for k in range(count)]
    return [rows.error - np.array(moved) @ rows.W.T for rows in joints]
