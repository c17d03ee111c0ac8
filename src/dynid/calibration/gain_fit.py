"""Drive gains from rows [W, W P, W k, i] per joint: W beta + W P p + W k = g i, unknown beta, p and g.

Three estimators of the same system, which agree without noise. "wls" regresses torques on currents: errors of the
currents bias the gains towards zero. "tls" assumes errors in every column. "output" predicts the currents, where the
errors are: it is nonlinear and has no such bias.

With torques g_j i of joint j, the arm W beta, the unknown load W P p and the known load W k:

    wls      argmin |S (W beta + W P p + W k - g i)|^2 over beta, p and g
    tls      the smallest singular vector of [W, W P, -i, W k], scaled by its last entry
    output   argmin |(W beta + W P p + W k) / g - i|^2 / noise^2 over g, with the best beta and p for each g

Source: Gautier and Briot, Global Identification of Joint Drive Gains and Dynamic Parameters of Robots (2014), for known
loads and for tls; "output", with the errors in the currents, is our own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.calibration.loaded import without_span
from dynid.errors import DataError, DynidError

__all__ = ["METHODS", "GainFit", "GainRows", "Method", "output", "tls", "wls"]

Array = NDArray[np.float64]
Method = Literal["output", "wls", "tls"]
METHODS = ("output", "wls", "tls")

_WEAKEST = 1e-10
_SIGNIFICANT = 3.0
# N m/A: smaller than any drive gain.
_SMALLEST = 1e-9
# Linear estimates biased by this share through errors of the currents do not decide signs.
_LOST = 0.5


@dataclass(frozen=True, eq=False)
class GainRows:
    """Rows of each joint over [arm and unknown load (u), known load, current], and which gain every joint has.

    `group` (joint,) numbers the gains, so that equal motors may share one. `noise` (joint,) is the standard
    deviation of an independent row of current, `worth` (joint,) the number of such rows. `prior` and `prior_std`
    (gain,) are the prior of the gains, with infinite standard deviations where there is none; `lower` and `upper`
    (gain,) are bounds of their magnitude.
    """

    channels: tuple[Array, ...]
    group: NDArray[np.intp]
    noise: Array
    worth: Array
    prior: Array
    prior_std: Array
    lower: Array
    upper: Array

    @property
    def gains(self) -> int:
        return int(self.group.max()) + 1

    @property
    def log_bounds(self) -> tuple[Array, Array]:
        """Logarithms of the smallest and largest gains."""
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(self.lower, _SMALLEST)), np.log(self.upper)

    def torque_rows(self, weights: Array) -> Array:
        """[unknowns, gains, known load]: the sum over a row times (u, g, 1) is zero where all is explained."""
        out = []
        for rows, weight, k in zip(self.channels, weights, self.group, strict=True):
            gains = np.zeros((len(rows), self.gains))
            gains[:, k] = -rows[:, -1]
            out.append(weight * np.hstack([rows[:, :-2], gains, rows[:, -2:-1]]))
        return np.vstack(out)

    def current_rows(self, gains: Array) -> Array:
        """[unknowns, currents less those of the known load] for given gains, with unit noise."""
        out = []
        for rows, noise, k in zip(self.channels, self.noise, self.group, strict=True):
            target = rows[:, -1] - rows[:, -2] / gains[k]
            out.append(np.hstack([rows[:, :-2] / gains[k], target[:, None]]) / noise)
        return np.vstack(out)

    def predicted_currents(self, gains: Array) -> Array:
        """Currents (row, gain) that the best other unknowns predict with these gains, one column a gain."""
        system = self.current_rows(gains)
        unknowns = _solve(system[:, :-1], system[:, -1])
        out, start = np.zeros((len(system), self.gains)), 0
        for rows, noise, k in zip(self.channels, self.noise, self.group, strict=True):
            whole = rows[:, :-2] @ unknowns + rows[:, -2]
            out[start : start + len(rows), k] = whole / gains[k] / noise
            start += len(rows)
        return out

    def prior_rows(self) -> tuple[Array, Array]:
        """Rows and targets of what is known beforehand."""
        known = np.isfinite(self.prior_std)
        return np.eye(self.gains)[known] / self.prior_std[known, None], self.prior[known] / self.prior_std[known]


@dataclass(frozen=True, eq=False)
class GainFit:
    """Gains (gain,), their covariance with and without the prior (gain, gain), and the other unknowns (u,).

    `pull` (gain,) is the share by which errors of the currents pull a gain towards zero, as a linear method suffers it.
    """

    gains: Array
    covariance: Array
    own_covariance: Array
    unknowns: Array
    held: tuple[int, ...] = ()
    pull: Array | None = None


def wls(rows: GainRows, positive: bool = True) -> GainFit:
    """Known load on the measured side; joints weighted by what plain least squares left of them."""
    weights = np.ones(len(rows.channels))
    # Once: a gain that was pulled down leaves smaller errors of torque, would count more and be pulled down further.
    for _ in range(2):
        system = rows.torque_rows(weights)
        lead = system.shape[1] - rows.gains - 1
        left = without_span(system, lead)
        R, z = left[:, :-1], -left[:, -1]
        free = _solve(R, z)
        unknowns = _unknowns(system, free)
        used, weights = weights, 1.0 / _torque_noise(rows, weights, system, unknowns, free)
    pinned, target = rows.prior_rows()
    A, b = np.vstack([R, pinned]), np.concatenate([z, target])
    pull = _pull(rows, used, R)
    gains, held = _bounded(A, b, rows, positive, pull)
    return GainFit(gains, _inverse(A), _inverse(R), _unknowns(system, gains), held, pull)


def tls(rows: GainRows) -> GainFit:
    """Smallest singular vector of all columns, scaled by the known load."""
    start = wls(rows, positive=False)
    system = rows.torque_rows(1.0 / (np.abs(start.gains[rows.group]) * rows.noise))
    norms = np.linalg.norm(system, axis=0)
    used = norms > 0
    _, singular, vt = np.linalg.svd(system[:, used] / norms[used], full_matrices=False)
    last = np.zeros(len(norms))
    last[used] = vt[-1] / norms[used]
    if singular[-2] < _WEAKEST * singular[0] or singular[-1] > 0.999 * singular[-2]:
        raise DynidError(
            "total least squares has no unique solution: not all parameters are identifiable from the motion",
            code="not_identifiable",
        )
    if abs(last[-1]) * norms[-1] < 1e-9:
        raise DynidError(
            "the known payload is not visible to total least squares; use method output",
            "method",
            code="not_identifiable",
        )
    found = last / last[-1]
    lead = system.shape[1] - rows.gains - 1
    left = without_span(system, lead)[:, :-1]
    return GainFit(found[lead:-1], _inverse(left), _inverse(left), found[:lead], pull=start.pull)


def output(rows: GainRows, positive: bool = True) -> GainFit:
    """Currents predicted from gains, arm and load; the other unknowns are solved for at every step.

    Signs are tried: a gain is negative where that explains the currents better by three standard deviations.
    """
    start = wls(rows, positive=False)
    best, signs = _with_signs(rows, start.gains, np.ones(rows.gains))
    turned = np.where(start.gains < 0, -1.0, 1.0)
    doubted = [turned, *(np.where(np.arange(rows.gains) == k, -1.0, 1.0) for k in np.flatnonzero(turned < 0))]
    for change in doubted if np.any(turned < 0) else ():
        other, tried = _with_signs(rows, start.gains, signs * change)
        if other.cost < best.cost - 0.5 * _SIGNIFICANT**2:
            best, signs = other, tried
    if positive and np.any(signs < 0):
        raise NegativeGain(int(np.argmax(signs < 0)))
    gains = signs * np.exp(best.x)
    slope = best.jac / gains
    data = slope[: len(slope) - len(rows.prior_rows()[1])]
    lower, upper = rows.log_bounds
    edge = (best.x - lower < 1e-6) | (upper - best.x < 1e-6)
    system = rows.current_rows(gains)
    unknowns = _solve(system[:, :-1], system[:, -1])
    held = tuple(int(i) for i in np.flatnonzero(edge))
    return GainFit(gains, _inverse(slope), _inverse(data), unknowns, held)


def _with_signs(rows: GainRows, start: Array, signs: Array) -> tuple[Any, Array]:
    """Gains of given signs that predict the currents best, by their logarithms."""
    lower, upper = rows.log_bounds
    first = np.clip(np.log(np.where(start != 0, np.abs(start), 1.0)), lower, upper)
    inside = np.clip(first, np.minimum(lower + 1e-9, upper), np.maximum(upper - 1e-9, lower))
    pinned, target = rows.prior_rows()

    def rest(logs: Array) -> Array:
        gains = signs * np.exp(logs)
        system = rows.current_rows(gains)
        q = _basis(system[:, :-1])
        left = system[:, -1] - q @ (q.T @ system[:, -1])
        return np.concatenate([left, pinned @ gains - target])

    def slope(logs: Array) -> Array:
        # The residual is orthogonal to the columns of the other unknowns: what moving them would add does not count.
        gains = signs * np.exp(logs)
        predicted = rows.predicted_currents(gains)
        q = _basis(rows.current_rows(gains)[:, :-1])
        return np.vstack([predicted - q @ (q.T @ predicted), pinned * gains])

    found = scipy.optimize.least_squares(
        rest, inside, slope, bounds=(lower, upper), xtol=1e-13, ftol=1e-13, gtol=1e-13, max_nfev=80
    )
    return found, signs


class NegativeGain(DataError):
    """A gain that the data say is negative."""

    def __init__(self, group: int) -> None:
        super().__init__("a gain is negative")
        self.group = group


def _pull(rows: GainRows, weights: Array, R: Array) -> Array:
    """Share of each current's part outside all other columns that no parameter of its joint explains: its errors."""
    lost = np.zeros(rows.gains)
    for block, weight, k in zip(rows.channels, weights, rows.group, strict=True):
        lost[k] += float(np.sum((weight * _left(block)) ** 2))
    return np.asarray(np.minimum(lost / np.maximum(np.sum(R**2, axis=0), 1e-300), 1.0))


def _basis(columns: Array) -> Array:
    """Orthonormal basis of the span of columns."""
    u, s, _ = np.linalg.svd(columns / _scale(columns), full_matrices=False)
    return np.asarray(u[:, s > _WEAKEST * s[0]])


def _left(system: Array) -> Array:
    """Residual of least squares on the last column."""
    scale = _scale(system[:, :-1])
    x = np.linalg.lstsq(system[:, :-1] / scale, system[:, -1], rcond=_WEAKEST)[0]
    return np.asarray(system[:, -1] - (system[:, :-1] / scale) @ x)


def _scale(columns: Array) -> Array:
    norms = np.linalg.norm(columns, axis=0)
    return np.where(norms > 0, norms, 1.0)


def _solve(R: Array, z: Array) -> Array:
    scale = _scale(R)
    return np.asarray(np.linalg.lstsq(R / scale, z, rcond=_WEAKEST)[0] / scale)


def _inverse(R: Array) -> Array:
    """(R'R)^-1, infinite on the diagonal where a column shows nothing of its own."""
    scale = _scale(R)
    _, s, vt = np.linalg.svd(R / scale, full_matrices=False)
    strong = s > _WEAKEST * max(s[0], 1e-300)
    root = (vt[strong].T / s[strong]) / scale[:, None]
    out = np.asarray(root @ root.T)
    lost = 1.0 - np.sum(vt[strong] ** 2, axis=0) > 1e-6
    out[lost, lost] = np.inf
    return out


def _unknowns(system: Array, gains: Array) -> Array:
    """The other unknowns (u,) for given gains."""
    lead = system.shape[1] - len(gains) - 1
    target = -(system[:, lead:-1] @ gains + system[:, -1])
    return _solve(system[:, :lead], target)


def _torque_noise(rows: GainRows, weights: Array, system: Array, unknowns: Array, gains: Array) -> Array:
    """Standard deviation of an independent row of torque per joint, from what the fit leaves (joint,)."""
    rest = system @ np.concatenate([unknowns, gains, [1.0]])
    ends = np.cumsum([len(block) for block in rows.channels])[:-1]
    lost = np.array([np.linalg.norm(part) for part in np.split(rest, ends)]) / weights
    out = lost / np.sqrt(rows.worth)
    return np.asarray(np.maximum(out, 1e-6 * out.max(initial=0.0) + 1e-300))


def _bounded(A: Array, b: Array, rows: GainRows, positive: bool, pull: Array) -> tuple[Array, tuple[int, ...]]:
    free = _solve(A, b)
    lower = rows.lower if positive else -rows.upper
    outside = (free < lower) | (free > rows.upper)
    if not np.any(outside):
        return free, ()
    if positive:
        size = np.sqrt(np.maximum(np.diag(_inverse(A)), 0.0))
        wrong = (free < -_SIGNIFICANT * size) & (pull < _LOST)
        if np.any(wrong):
            raise NegativeGain(int(np.argmax(wrong)))
    found = scipy.optimize.lsq_linear(A, b, (lower, rows.upper), tol=1e-12)
    edge = found.active_mask != 0
    return np.asarray(found.x), tuple(int(i) for i in np.flatnonzero(edge))
