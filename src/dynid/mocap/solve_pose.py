"""One pose from one frame of markers: Levenberg-Marquardt on the manifold, with bounds."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.mocap.marker_model import MarkerModel

__all__ = ["Pose", "PoseSolver", "rigid_fit"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_UNDETERMINED = 1e-6  # share of a coordinate that lies in directions no marker sees
_SINGULAR = 1e-10
_LONGEST_STEP = 0.5  # rad, m
_SOFT = 0.05  # m/rad: what a violated limit costs beside markers


@dataclass(frozen=True, eq=False)
class Pose:
    """A solved frame: q (nq,), distances (M,) m of the markers, steps taken, and what it is worth.

    `unit_std` (nv,) is the standard deviation of every coordinate for marker noise of 1 m at weight 1; infinite
    where the markers seen do not determine it, 0 where it stands at a limit.
    """

    q: Array
    distances: Array
    cost: float
    steps: int
    converged: bool
    unit_std: Array

    @property
    def rms(self) -> float:
        """Root mean square distance of the markers seen, m."""
        return float(np.sqrt(np.nanmean(self.distances**2)))


@dataclass(frozen=True, eq=False)
class PoseSolver:
    """Solver of single frames: `lower` and `upper` (nv,) are bounds, or soft limits where `soft`."""

    model: MarkerModel
    lower: Array
    upper: Array
    soft: bool = False
    tolerance: float = 1e-6
    max_iterations: int = 50
    _where: slice = field(init=False)

    def __post_init__(self) -> None:
        robot = self.model.robot
        object.__setattr__(self, "_where", slice(robot.nq - robot.n, None))

    def within(self, q: Array) -> Array:
        """The pose with its joints moved into the bounds."""
        if self.soft:
            return q
        n = self.model.robot.n
        out = q.copy()
        out[self._where] = np.clip(q[self._where], self.lower[len(self.lower) - n :], self.upper[len(self.upper) - n :])
        return out

    def solve(self, q: Array, target: Array, weights: Array) -> Pose:
        """Pose nearest to markers at `target` (M, 3), NaN where unseen, from the pose q."""
        weights = np.where(np.isfinite(target[:, 0]), weights, 0.0)
        target = np.nan_to_num(target)
        q = self.within(q)
        p, jacobian = self.model.jacobians(q)
        cost = self._cost(p, q, target, weights)
        damping, converged, steps = 1e-9, False, 0
        normal, slope = self._normal(p, jacobian, q, target, weights)
        while steps < self.max_iterations:
            steps += 1
            free = self._free(q, slope)
            step = np.zeros(len(slope))
            step[free] = _damped(normal[np.ix_(free, free)], slope[free], damping)
            # Where joints line up, the step the markers ask for may be many turns long.
            step *= min(1.0, _LONGEST_STEP / max(float(np.abs(step).max(initial=0.0)), 1e-300))
            new = self.within(self.model.moved(q, step))
            step[len(step) - self.model.robot.n :] = new[self._where] - q[self._where]
            small = np.abs(step).max(initial=0.0) < self.tolerance
            p_new, jacobian_new = self.model.jacobians(new)
            cost_new = self._cost(p_new, new, target, weights)
            if cost_new <= cost:
                q, p, jacobian, cost = new, p_new, jacobian_new, cost_new
                normal, slope = self._normal(p, jacobian, q, target, weights)
                damping = max(damping / 10, 1e-9)
            elif not small:
                damping = max(10 * damping, 1e-6)
            if small:
                converged = True
                break
        distances = np.where(weights > 0, np.linalg.norm(target - p, axis=1), np.nan)
        return Pose(q, distances, cost, steps, converged, _unit_std(normal, self._free(q, slope)))

    def _cost(self, p: Array, q: Array, target: Array, weights: Array) -> float:
        off = target - p
        cost = float(weights @ np.einsum("mi,mi->m", off, off))
        if self.soft:
            cost += _SOFT**2 * float(np.sum(self._violation(q) ** 2))
        return cost

    def _normal(self, p: Array, jacobian: Array, q: Array, target: Array, weights: Array) -> tuple[Array, Array]:
        rows = jacobian.reshape(-1, jacobian.shape[2])
        weighted = rows * np.repeat(weights, 3)[:, None]
        normal, slope = rows.T @ weighted, weighted.T @ (target - p).ravel()
        if self.soft:
            off = self._violation(q)
            normal[np.diag_indices(len(off))] += _SOFT**2 * (off != 0)
            slope -= _SOFT**2 * off
        return normal, slope

    def _violation(self, q: Array) -> Array:
        out = np.zeros(len(self.lower))
        n = self.model.robot.n
        x, low, high = q[self._where], self.lower[len(out) - n :], self.upper[len(out) - n :]
        out[len(out) - n :] = np.maximum(x - high, 0) - np.maximum(low - x, 0)
        return out

    def _free(self, q: Array, slope: Array) -> Mask:
        """Coordinates that do not press against a bound."""
        out = np.ones(len(slope), bool)
        if not self.soft:
            first = len(slope) - self.model.robot.n
            x, g = q[self._where], slope[first:]
            out[first:] = ~(((x <= self.lower[first:]) & (g < 0)) | ((x >= self.upper[first:]) & (g > 0)))
        return out


def _damped(normal: Array, slope: Array, damping: float) -> Array:
    """(H + damping diag H) step = slope; what no marker sees stays."""
    scale = np.diag(normal)
    ridge = damping * np.maximum(scale, 1e-3 * scale.max(initial=0.0)) + 1e-300
    matrix = normal.copy()
    matrix[np.diag_indices(len(scale))] += ridge
    _, step, fault = scipy.linalg.lapack.dposv(matrix, slope)
    if fault:
        step = np.linalg.lstsq(matrix, slope, rcond=1e-12)[0]
    return np.asarray(step).ravel()


def _unit_std(normal: Array, free: Mask) -> Array:
    out = np.zeros(len(free))
    where = np.flatnonzero(free)
    h = normal[np.ix_(where, where)]
    scale = np.sqrt(np.diag(h))
    blind = scale <= 1e-9 * scale.max(initial=0.0)
    out[where[blind]] = np.inf
    seen, scale = where[~blind], scale[~blind]
    if not len(seen):
        return out
    h = normal[np.ix_(seen, seen)] / np.outer(scale, scale)
    factor, fault = scipy.linalg.lapack.dpotrf(h)
    if not fault:
        inverse, fault = scipy.linalg.lapack.dpotri(factor)
        if not fault and np.diag(inverse).max() < 1 / _SINGULAR**0.5:
            out[seen] = np.sqrt(np.diag(inverse)) / scale
            return out
    values, vectors = np.linalg.eigh(h)
    good = values > _SINGULAR * values[-1]
    lost = np.sum(vectors[:, ~good] ** 2, axis=1) > _UNDETERMINED
    variance = np.sum(vectors[:, good] ** 2 / values[good], axis=1)
    out[seen] = np.where(lost, np.inf, np.sqrt(variance) / scale)
    return out


def rigid_fit(before: Array, after: Array) -> tuple[Array, Array]:
    """Rotation and translation that bring points (M, 3) nearest to others (Kabsch)."""
    a, b = before.mean(axis=0), after.mean(axis=0)
    u, _, vt = np.linalg.svd((after - b).T @ (before - a))
    turn = u @ np.diag([1.0, 1.0, np.linalg.det(u @ vt)]) @ vt
    return turn, b - turn @ a
