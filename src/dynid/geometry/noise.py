"""The scatter of measurements: of the sensor itself, and of the robot, which moves all that a sensor sees at once.

A posture's residuals r have the covariance

    S = sigma^2 I + u^2 G_t G_t' + v^2 G_r G_r'

with the noise sigma of the sensor, and with positions u and directions v by which the robot misses its model at this
posture: repeatability, backlash, what the model does not have. G are the derivatives of the residuals in a motion of
the frame, directions about the middle of what is seen. Where a posture gives three numbers or fewer, sigma stands for
all of it. The variances theta follow by restricted maximum likelihood with Fisher's scoring,

    theta <- theta + I^-1 s,    s_k = sum r' S^-1 V_k S^-1 r - f_k,    I_kl = sum tr(S^-1 V_k S^-1 V_l),
    f_k = sum tr(S^-1 V_k) - tr(S^-1 V_k S^-1 J C J'),

with C the covariance of the unknowns, V_k the matrix that theta_k multiplies, and I reduced by the share of freedom
that the unknowns take.

Sources: Harville, Maximum Likelihood Approaches to Variance Component Estimation (1977); Searle, Casella and McCulloch,
Variance Components (1992), chapters 6 and 8.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.geometry.problem import Rows

__all__ = ["Noise", "Whitened", "distances", "leverages", "misfit", "renewed", "started_noise", "whitened"]

Array = NDArray[np.float64]

# Numbers per posture beyond which the robot's scatter can be told from the sensor's.
_OF_A_POINT = 3
# Least standard deviation over the expected one, and the most that one step changes a variance.
_LEAST, _STEP = 1e-2, 10.0
# Residuals that the stated noise of a sensor counts as: few postures with many unknowns show no noise.
_STATED = 2.0
# Share of its degrees of freedom that a component keeps at least.
_LEAST_LEFT = 0.02
# Share of a squared length that is rounding.
_FLAT = 1e-10
# Least scatter of the robot, as a share of what the sensor's looks like: less is not seen.
_UNSEEN = 0.02
# Least eigenvalue of a covariance over its trace.
_ROUNDING = 1e-12
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
    """A start that trusts the measurements: from one that does not, errors stay at their prior and all is noise."""
    if rows.seen.shape[1] <= _OF_A_POINT:
        return Noise(1.0)
    moved = float(np.sqrt((rows.pose[..., :3] ** 2).sum() / max(int(rows.seen.sum()), 1)))
    position = 1.0 / max(moved, 1e-300)
    return Noise(1.0, position, position / _REACH)


def _matrices(rows: Rows, noise: Noise) -> list[tuple[float, Array]]:
    """Standard deviation and factor (N, r, ...) of each component."""
    eye = np.broadcast_to(np.eye(rows.seen.shape[1]), (*rows.seen.shape, rows.seen.shape[1]))
    out = [(noise.sensor, eye)]
    if noise.position:
        moved, turned = rows.pose[..., :3], rows.pose[..., 3:]
        back = np.swapaxes(moved, 1, 2)
        about_middle = turned - moved @ (np.linalg.pinv(back @ moved, rcond=_FLAT, hermitian=True) @ (back @ turned))
        out += [(noise.position, moved), (noise.direction, about_middle)]
    return out


def _covariance(components: list[tuple[float, Array]]) -> Array:
    """S of every posture (N, r, r); where residuals are in another unit, its least eigenvalue is above rounding."""
    S = np.asarray(sum(std**2 * (V @ np.swapaxes(V, 1, 2)) for std, V in components))
    size = np.trace(S, axis1=1, axis2=2)[:, None, None]
    return np.asarray(S + _ROUNDING * size * np.eye(S.shape[1]))


def _root(rows: Rows, noise: Noise) -> Array:
    """Matrices (N, r, r) that make residuals of unit covariance."""
    return np.linalg.inv(np.linalg.cholesky(_covariance(_matrices(rows, noise))))


def misfit(rows: Rows, noise: Noise) -> Array:
    """r' S^-1 r of every posture (N,)."""
    if not noise.position:
        return np.asarray((rows.residual**2).sum(1) / noise.sensor**2)
    return np.asarray(((_root(rows, noise) @ rows.residual[..., None])[..., 0] ** 2).sum(1))


def whitened(rows: Rows, noise: Noise) -> Whitened:
    """Rows with unit covariance."""
    if not noise.position:
        return Whitened(rows.residual / noise.sensor, rows.slope / noise.sensor)
    root = _root(rows, noise)
    return Whitened((root @ rows.residual[..., None])[..., 0], root @ rows.slope)


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
    components = _matrices(part, noise)
    back = np.linalg.inv(_covariance(components))
    r = (back @ part.residual[..., None])[..., 0]
    J = back @ part.slope
    thetas = np.array([std**2 for std, _ in components])
    score, whole, free = (np.zeros(len(thetas)) for _ in range(3))
    information = np.zeros((len(thetas),) * 2)
    for k, (_, V) in enumerate(components):
        turned = np.swapaxes(V, 1, 2)
        VJ, VS = turned @ J, turned @ back
        traces = np.einsum("nvr,nrv->n", VS, V)
        if k == 0:
            # What was not seen has a residual of zero by definition.
            traces = traces - (~part.seen / noise.sensor**2).sum(1)
        taken = ((VJ @ covariance) * VJ).sum((1, 2))
        whole[k] = w @ traces
        free[k] = max(whole[k] - w**2 @ taken, _LEAST_LEFT * whole[k], 1e-300)
        score[k] = w @ ((turned @ r[..., None])[..., 0] ** 2).sum(1) - free[k]
        for m in range(k + 1):
            both = w @ ((VS @ components[m][1]) ** 2).sum((1, 2))
            if m == k == 0:
                both = both - w @ (~part.seen / noise.sensor**4).sum(1)
            information[k, m] = information[m, k] = both
    # The stated noise of the sensor counts as a few residuals of its size.
    score[0] += _STATED * (1 / thetas[0] ** 2 - 1 / thetas[0])
    information[0, 0] += _STATED / thetas[0] ** 2
    left = np.sqrt(free / np.maximum(whole, 1e-300))
    scale = thetas[:, None] * thetas
    relative = np.linalg.lstsq(information * np.outer(left, left) * scale, score * thetas, rcond=1e-12)[0]
    stds = np.sqrt(thetas * np.clip(1 + relative, 1 / _STEP, _STEP))
    stds[0] = max(stds[0], _LEAST)
    sizes = np.array([np.sqrt((V**2).sum() / max(part.seen.sum(), 1)) for _, V in components])
    stds[1:] = np.maximum(stds[1:], _UNSEEN * stds[0] / np.maximum(sizes[1:], 1e-300))
    return Noise(*(float(s) for s in stds))
