"""The scatter of measurements: of the sensor itself, and of the robot, which moves all that a sensor sees at once.

A posture's residuals r have the covariance

    S = sigma^2 I + u^2 G_t G_t' + v^2 G_r G_r'

with the noise sigma of the sensor, and with positions u and directions v by which the robot misses its model at this
posture: repeatability, backlash, what the model lacks. G are the derivatives of the residuals in a motion of the frame,
directions about the middle of what is seen. Where a posture gives three numbers or fewer, sigma stands for all of it.
The variances follow by restricted maximum likelihood,

    theta <- theta (sum r' S^-1 V S^-1 r) / (sum tr(S^-1 V) - tr(S^-1 V S^-1 J C J')),

with C the covariance of the unknowns and V the matrix that theta multiplies.

Sources: Harville, Maximum Likelihood Approaches to Variance Component Estimation (1977); Searle, Casella and McCulloch,
Variance Components (1992), chapter 6.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.geometry.problem import Rows

__all__ = ["Noise", "Whitened", "distances", "leverages", "renewed", "started_noise", "whitened"]

Array = NDArray[np.float64]

# Numbers per posture beyond which the robot's scatter can be told from the sensor's.
_OF_A_POINT = 3
# Least standard deviation over the expected one, and the most that one step changes a variance.
_LEAST, _STEP = 1e-2, 10.0
# Share of its degrees of freedom that a component keeps at least.
_LEAST_LEFT = 0.02
# Distance (m) at which directions of the robot scatter as much as its positions, for a start.
_REACH = 0.5


@dataclass(frozen=True)
class Noise:
    """Standard deviations of one sensor.

    Attributes
    ----------
    sensor : float
        Of its residuals, over the expected one.
    position : float
        Position of the robot (m).
    direction : float
        Direction of the robot (rad).
    """

    sensor: float
    position: float = 0.0
    direction: float = 0.0


@dataclass(frozen=True, eq=False)
class Whitened:
    """Residuals and derivatives of a sensor with unit covariance.

    Attributes
    ----------
    residual : ndarray, shape (N, r)
        Residuals.
    slope : ndarray, shape (N, r, X)
        Derivatives.
    """

    residual: Array
    slope: Array


def started_noise(rows: Rows) -> Noise:
    """A start from the residuals of the robot's file: all of them the sensor's, or half of them the robot's."""
    used = max(int(rows.seen.sum()), 1)
    rms = float(np.sqrt((rows.residual**2).sum() / used))
    if rows.seen.shape[1] <= _OF_A_POINT:
        return Noise(max(rms, 1.0))
    moved = float(np.sqrt((rows.pose[..., :3] ** 2).sum() / used))
    position = max(rms, 1.0) / max(moved, 1e-300)
    return Noise(1.0, position, position / _REACH)


def _matrices(rows: Rows, noise: Noise) -> list[tuple[float, Array]]:
    """Standard deviation and factor (N, r, ...) of each component."""
    eye = np.broadcast_to(np.eye(rows.seen.shape[1]), (*rows.seen.shape, rows.seen.shape[1]))
    out = [(noise.sensor, eye)]
    if noise.position:
        moved, turned = rows.pose[..., :3], rows.pose[..., 3:]
        about_middle = turned - moved @ (np.linalg.pinv(moved) @ turned)
        out += [(noise.position, moved), (noise.direction, about_middle)]
    return out


def _covariance(rows: Rows, noise: Noise) -> Array:
    """S of every posture (N, r, r)."""
    return np.asarray(sum(std**2 * (V @ np.swapaxes(V, 1, 2)) for std, V in _matrices(rows, noise)))


def whitened(rows: Rows, noise: Noise) -> Whitened:
    """Rows with unit covariance."""
    if not noise.position:
        return Whitened(rows.residual / noise.sensor, rows.slope / noise.sensor)
    root = np.linalg.cholesky(_covariance(rows, noise))
    both = np.linalg.solve(root, np.concatenate([rows.residual[..., None], rows.slope], axis=2))
    return Whitened(both[..., 0], both[..., 1:])


def leverages(white: Whitened, covariance: Array) -> Array:
    """Covariance (N, r, r) of the predicted residuals of each posture, in units of their own."""
    return np.asarray(white.slope @ covariance @ np.swapaxes(white.slope, 1, 2))


def distances(white: Whitened, weights: Array, covariance: Array) -> Array:
    """Squared distance (N,) of each posture from what the others predict, over its covariance.

    For a posture that was fitted with weight one, r' (I - H)^-1 r; for one that was not, r' (I + H)^-1 r.
    """
    H = leverages(white, covariance)
    signed = np.eye(H.shape[1]) - np.where(weights > 0, weights, -1.0)[:, None, None] * H
    # A posture that alone shows some unknown says nothing about itself.
    values, vectors = np.linalg.eigh(signed)
    turned = (np.swapaxes(vectors, 1, 2) @ white.residual[..., None])[..., 0]
    return np.asarray((turned**2 / np.maximum(values, _LEAST_LEFT)).sum(1))


def renewed(rows: Rows, noise: Noise, weights: Array, covariance: Array) -> Noise:
    """One step of restricted maximum likelihood over the postures by their weights."""
    used = weights > 0
    if not used.any():
        return noise
    part = Rows(rows.residual[used], rows.slope[used], rows.seen[used], rows.pose[used])
    w = weights[used]
    S = _covariance(part, noise)
    back = np.linalg.inv(S)
    r = (back @ part.residual[..., None])[..., 0]
    J = back @ part.slope
    seen = part.seen
    stds = []
    for k, (std, V) in enumerate(_matrices(part, noise)):
        explained = ((np.einsum("nrv,nr->nv", V, r) ** 2).sum(1) * w).sum()
        whole = np.einsum("nrv,nrs,nsv->n", V, back, V, optimize=True)
        if k == 0:
            # What was not seen has a residual of zero by definition.
            whole = whole - (~seen / noise.sensor**2).sum(1)
        taken = np.einsum("nvx,nvx->n", (VJ := np.swapaxes(V, 1, 2) @ J) @ covariance, VJ)
        free = max(float((w * whole).sum() - (w**2 * taken).sum()), _LEAST_LEFT * float((w * whole).sum()), 1e-300)
        change = float(np.clip(explained / free, 1 / _STEP, _STEP))
        stds.append(std * np.sqrt(change))
    stds[0] = max(stds[0], _LEAST)
    return Noise(*(float(s) for s in stds))
