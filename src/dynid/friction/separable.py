"""Separable least squares with coefficients that are not negative; only the inner parameters are searched.

y = W b + F f + C(theta) c + e with f >= 0 and c >= 0. The column space of W is projected out once. The coefficients are
solved exactly for every theta; those that would be negative are zero. The derivative of the residual with respect to
theta is the full one, over the columns whose coefficients are positive.

With the positive columns C, P = 1 - C C^+ and r = P y:

    dr = -P dC c - (P dC C^+)' y,    c = C^+ y

Source: Golub and Pereyra, The Differentiation of Pseudo-Inverses and Nonlinear Least Squares Problems Whose Variables
Separate (1973).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import NotIdentifiable

__all__ = ["Separable", "SeparableFit"]

Array = NDArray[np.float64]

_RANK = 1e-10
_STARTS = 3
_AT_BOUND = 1e-3
_NNLS_ITERATIONS = 1000


@dataclass(frozen=True, eq=False)
class SeparableFit:
    """Inner parameters theta (m,), linear ones (b + f + c,), the residual, and the inverse of J' J over all parameters.

    `at_zero` (f + c,) says which coefficients the bound holds at zero, `at_bound` (m,) which inner parameters lie at
    the edge of their range. The inverse is that of the problem without bounds.
    """

    theta: Array
    linear: Array
    residual: Array
    unscaled_covariance: Array
    at_bound: tuple[bool, ...]
    at_zero: tuple[bool, ...]
    converged: bool

    @property
    def rss(self) -> float:
        """Residual sum of squares."""
        return float(self.residual @ self.residual)


@dataclass(frozen=True, eq=False)
class Separable:
    """Rows y (N,), columns W (N, b) with any coefficients, F (N, f) and C(theta) (N, c) with those not negative.

    `columns` computes C, `slopes` its derivatives (m, N, c).
    """

    W: Array
    F: Array
    y: Array
    columns: Callable[[Array], Array]
    slopes: Callable[[Array], Array]

    @cached_property
    def basis(self) -> Array:
        """Orthonormal columns that span W."""
        if not self.W.shape[1]:
            return self.W
        norms = np.linalg.norm(self.W, axis=0)
        if not np.all(norms > 0):
            raise NotIdentifiable(
                "a column of the friction problem is zero: not all parameters are identifiable from the motion"
            )
        q, r, _ = scipy.linalg.qr(self.W / norms, mode="economic", pivoting=True)
        if abs(r[-1, -1]) <= _RANK * abs(r[0, 0]):
            raise NotIdentifiable(
                "columns of the friction problem are linearly dependent: not all parameters are identifiable from the "
                "motion"
            )
        return np.asarray(q)

    @cached_property
    def target(self) -> Array:
        """y without its part in the column space of W."""
        return self._rest(self.y)

    def _rest(self, x: Array) -> Array:
        """The part of x orthogonal to W; projected twice against rounding errors."""
        for _ in range(2 if self.W.shape[1] else 0):
            x = x - self.basis @ (self.basis.T @ x)
        return x

    @cached_property
    def _fixed(self) -> Array:
        """F without its part in the column space of W."""
        return self._rest(self.F)

    def _columns(self, theta: Array) -> tuple[Array, NDArray[np.bool_]]:
        """[F C(theta)] without its part in the column space of W, and which of its coefficients are positive."""
        columns = np.hstack([self._fixed, self._rest(self.columns(theta))])
        return columns, self._positive(columns)

    def _positive(self, columns: Array) -> NDArray[np.bool_]:
        """Mask (f + c,) of the columns whose coefficients the bound leaves free."""
        norms = np.linalg.norm(columns, axis=0)
        unit = columns / np.where(norms > 0, norms, 1.0)
        u, s, vt = self._factor(unit)
        if np.all(vt.T @ ((u.T @ self.target) / s) >= 0):
            return np.ones(len(norms), bool)
        q, r = np.linalg.qr(unit)
        return np.asarray(scipy.optimize.nnls(r, q.T @ self.target, maxiter=_NNLS_ITERATIONS)[0] > 0)

    def residual(self, theta: Array) -> Array:
        """y - W b - F f - C c with the best b, f and c (N,)."""
        columns, positive = self._columns(theta)
        u, _, _ = self._factor(columns[:, positive])
        return np.asarray(self.target - u @ (u.T @ self.target))

    def jacobian(self, theta: Array) -> Array:
        """Derivative (N, m) of the residual with respect to theta."""
        columns, positive = self._columns(theta)
        u, s, vt = self._factor(columns[:, positive])
        along = u.T @ self.target
        residual = self.target - u @ along
        c = vt.T @ (along / s)
        still = np.zeros((len(self.y), self.F.shape[1]))
        out = np.empty((len(self.y), len(theta)))
        for i, moving in enumerate(self.slopes(theta)):
            slope = np.hstack([still, moving])[:, positive]
            moved = self._rest(slope @ c)
            out[:, i] = -(moved - u @ (u.T @ moved)) - u @ ((vt @ (slope.T @ residual)) / s)
        return out

    @staticmethod
    def _factor(C: Array) -> tuple[Array, Array, Array]:
        """Singular value decomposition without negligible values."""
        u, s, vt = np.linalg.svd(C, full_matrices=False)
        keep = s > _RANK * max(s.max(initial=0.0), np.finfo(float).tiny)
        return u[:, keep], s[keep], vt[keep]

    def solve(self, low: Array, high: Array, grids: Sequence[Array], log: Sequence[bool]) -> SeparableFit:
        """Search from the best points of a grid, within bounds (m,); `log` parameters by their logarithm."""
        if not len(low):
            return self._result(np.zeros(0), low, high, True)
        logs = np.array(log, dtype=bool)

        def inside(x: Array) -> Array:
            return np.where(logs, np.exp(np.where(logs, x, 0.0)), x)

        def outside(theta: Array) -> Array:
            return np.where(logs, np.log(np.where(logs, theta, 1.0)), theta)

        def slope(x: Array) -> Array:
            theta = inside(x)
            return self.jacobian(theta) * np.where(logs, theta, 1.0)

        points = [np.array(p) for p in product(*grids)]
        sums = [float(np.sum(self.residual(p) ** 2)) for p in points]
        bounds = (outside(low), outside(high))
        margin = 1e-6 * (bounds[1] - bounds[0])
        best = None
        for start in self._starts(points, sums):
            x0 = np.clip(outside(start), bounds[0] + margin, bounds[1] - margin)
            found = scipy.optimize.least_squares(
                lambda x: self.residual(inside(x)), x0, slope, bounds, x_scale=bounds[1] - bounds[0], xtol=1e-10
            )
            if best is None or found.cost < best.cost:
                best = found
        assert best is not None
        return self._result(inside(best.x), low, high, best.status > 0)

    def _starts(self, points: list[Array], sums: list[float]) -> Iterator[Array]:
        """The best point of the grid, then the best ones that are not near the previous ones."""
        extent = np.ptp(points, axis=0)
        taken: list[Array] = []
        for k in np.argsort(sums):
            apart = [np.max(np.abs(points[k] - p) / np.where(extent > 0, extent, 1.0)) for p in taken]
            if not taken or min(apart) > 0.15:
                taken.append(points[k])
                yield points[k]
            if len(taken) == _STARTS:
                return

    def _result(self, theta: Array, low: Array, high: Array, converged: bool) -> SeparableFit:
        """Linear parameters, residual and covariance at theta."""
        C = self.columns(theta)
        whole = np.hstack([self.W, self.F, C])
        norms = np.linalg.norm(whole, axis=0)
        scale = np.where(norms > 0, norms, 1.0)
        _, positive = self._columns(theta)
        used = np.concatenate([np.ones(self.W.shape[1], bool), positive])
        linear = np.zeros(whole.shape[1])
        linear[used] = np.linalg.lstsq((whole / scale)[:, used], self.y, rcond=None)[0] / scale[used]
        c = linear[self.W.shape[1] + self.F.shape[1] :]
        tangent = np.column_stack([whole, *(s @ c for s in (self.slopes(theta) if len(theta) else ()))])
        sizes = np.linalg.norm(tangent, axis=0)
        sizes = np.where(sizes > 0, sizes, 1.0)
        # A parameter without effect, such as the Stribeck velocity of a zero Stribeck torque, has infinite variance.
        inverse = _inverse((tangent / sizes).T @ (tangent / sizes)) / np.outer(sizes, sizes)
        reach = _AT_BOUND * (high - low)
        at_bound = tuple(bool(x) for x in (theta - low < reach) | (high - theta < reach))
        at_zero = tuple(bool(x) for x in ~positive)
        return SeparableFit(theta, linear, self.y - whole @ linear, inverse, at_bound, at_zero, converged)


def _inverse(gram: Array) -> Array:
    """Inverse of a Gram matrix of unit columns; infinite variances where it is singular."""
    values, vectors = np.linalg.eigh(gram)
    known = values > _RANK
    out = (vectors[:, known] / values[known]) @ vectors[:, known].T
    lost = np.any(np.abs(vectors[:, ~known]) > 1e-3, axis=1)
    out[lost, lost] = np.inf
    return np.asarray(out)
