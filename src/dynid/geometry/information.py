"""What postures say about the unknowns of a calibration, and how accurate they make the tool.

    cov e(q) = J(q) (P + sum over postures k of A_k'A_k)^-1 J(q)'

with the slope A_k of all residuals of a posture over their noise, P what is known of the unknowns before, and J the
slope of the tool's position. Unknowns of sensors are among the unknowns: what a posture says of them is lost for the
robot. Where sensors do not show how the robot stands, e is what is left after the base is placed best, J - Q Q'J with
the rigid motions Q of all positions. Over the postures of the workspace

    |e|^2 ~ g chi2_h,    g = trace(cov^2)/trace(cov),    h = trace(cov)^2/trace(cov^2)

Sources: Sun and Hollerbach, Observability Index Selection for Robot Calibration (2008); Klimchik, Wu, Caro, Furet and
Pashkevich, Geometric and Elastostatic Calibration of Robotic Manipulator Using Partial Pose Measurements (2014), for
the accuracy at test postures; Satterthwaite, An Approximate Distribution of Estimates of Variance Components (1946).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from dynid.geometry.candidates import Drawn, expected_at, labels_of
from dynid.geometry.choice import Choice
from dynid.geometry.problem import Problem
from dynid.geometry.tangents import Tangent
from dynid.geometry.unknowns import UnknownKind

__all__ = ["Information", "error_below", "inform", "posture_rows", "tool_positions"]

Array = NDArray[np.float64]

# Postures that are linearised at once.
_CHUNK = 250
# Information that stands for knowing nothing, over that of one posture; and of any number of postures.
_NOTHING, _EVER = 1e-6, 1e9
# Shares below which singular values, and information about a motion of the base, are rounding.
_RANK, _UNSEEN = 1e-9, 1e-6
_SHARE = 0.95


@dataclass(frozen=True, eq=False)
class Information:
    """Candidates as information, and the tool over the workspace.

    Attributes
    ----------
    problem : Problem
        The measurements.
    scale : ndarray, shape (X,)
        Unit of each unknown.
    rows : ndarray, shape (N, r, X)
        Rows of each candidate over their noise, in these units.
    prior : ndarray, shape (X, X)
        Information without postures.
    tool : ndarray, shape (W, 3, X)
        Slope of the error of the tool over the workspace.
    points : ndarray, shape (W, 3)
        Positions of the tool (m).
    absolute : bool
        Whether errors are counted in the base of the file.
    """

    problem: Problem
    scale: Array
    rows: Array
    prior: Array
    tool: Array
    points: Array
    absolute: bool

    def covariance(self, which: Sequence[int] | NDArray[np.intp], times: float = 1.0) -> Array:
        """Covariance (X, X) after postures, each measured so many times."""
        rows = self.rows[np.asarray(which, dtype=int)].reshape(-1, len(self.scale))
        M = self.prior + times * rows.T @ rows
        unit = 1 / np.sqrt(np.diag(M))
        values, vectors = np.linalg.eigh(M * np.outer(unit, unit))
        half = vectors / np.sqrt(np.maximum(values, 1e-15)) * unit[:, None]
        return np.asarray(half @ half.T)

    def tool_covariances(self, covariance: Array) -> Array:
        """Covariance (W, 3, 3) of the tool's position."""
        return np.asarray(self.tool @ covariance @ np.swapaxes(self.tool, 1, 2))

    def accuracy(self, which: Sequence[int] | NDArray[np.intp], times: float = 1.0) -> float:
        """95 % of the errors of the tool over the workspace are below this (m)."""
        return error_below(self.tool_covariances(self.covariance(which, times)))

    @property
    def best(self) -> float:
        """The accuracy that no number of postures improves (m)."""
        return self.accuracy(np.arange(len(self.rows)), _EVER)

    def choice(self, criterion: str) -> Choice:
        """The choice among the candidates."""
        if criterion == "a":
            own = [u.kind is not UnknownKind.SENSOR for u in self.problem.unknowns]
            weight = np.diag(np.array(own, dtype=float) / max(sum(own), 1))
        else:
            weight = np.einsum("wix,wiy->xy", self.tool, self.tool, optimize=True) / len(self.tool)
        _, size, directions = np.linalg.svd(self._triangle())
        shown = directions[: int((size > _RANK * size[0]).sum())].T
        return Choice(self.rows, self.prior, criterion, weight, shown)

    def _triangle(self) -> Array:
        """A triangle with the same inner products as the rows of all candidates together."""
        return np.asarray(np.linalg.qr(self.rows.reshape(-1, len(self.scale)), mode="r"))

    def with_candidates(self, drawn: Drawn) -> Information:
        """The same with other candidates."""
        return replace(self, rows=posture_rows(self.problem, drawn) * self.scale)


def inform(
    problem: Problem, drawn: Drawn, workspace: Array, tool: Array | None, absolute: bool | None = None
) -> Information:
    """The information of candidates and the slopes of the tool.

    Parameters
    ----------
    problem : Problem
        The measurements at any postures, one for each label at least.
    drawn : Drawn
        Candidates.
    workspace : ndarray, shape (W, n)
        Postures at which the tool has to be accurate.
    tool : ndarray, shape (3,), optional
        Point of the measured frame, the one that is measured by default.
    absolute : bool, optional
        Count errors in the base of the file; if the sensors show how it stands by default.
    """
    std = np.array([u.std for u in problem.unknowns])
    rows = posture_rows(problem, drawn)
    mean = np.einsum("nrx,nrx->x", rows, rows) / len(rows)
    ties = problem.ties(np.zeros(len(std)))[1]
    open_ended = np.isinf(std)
    with np.errstate(divide="ignore"):
        free = 1 / np.sqrt(_NOTHING * (mean + (ties**2).sum(0)))
    scale = np.where(open_ended, np.where(np.isfinite(free), free, 1.0), std)
    rows = rows * scale
    known = ties * scale
    prior = np.eye(len(scale)) + known.T @ known
    at = tool_positions(problem, workspace, tool)
    found = Information(problem, scale, rows, prior, at.slope * scale, at.value, True)
    rigid = _rigid(at.value)
    if absolute is None:
        absolute = _base_is_shown(found, rigid, known, open_ended)
    if absolute:
        return found
    Q = np.linalg.qr(rigid)[0]
    flat = found.tool.reshape(-1, len(scale))
    return replace(found, tool=(flat - Q @ (Q.T @ flat)).reshape(found.tool.shape), absolute=False)


def posture_rows(problem: Problem, drawn: Drawn) -> Array:
    """Rows (N, r, X) of postures over their noise, those of all measurements one below the other.

    Where a posture has more rows than unknowns, as a board with many corners, they are replaced by fewer of the same
    inner products.
    """
    labels = _labels(problem)
    first, out = len(labels.q), []
    for k in range(0, len(drawn.q), _CHUNK):
        there = expected_at(problem, labels.and_also(drawn.some(np.arange(k, min(k + _CHUNK, len(drawn.q))))))
        slopes = np.concatenate([r.slope[first:] for r in there.rows(np.zeros(len(there.unknowns)))], axis=1)
        if slopes.shape[1] > slopes.shape[2]:
            slopes = np.asarray(np.linalg.qr(slopes, mode="r"))
        out.append(slopes)
    return np.concatenate(out)


def tool_positions(problem: Problem, q: Array, tool: Array | None) -> Tangent:
    """The tool (W, 3) in the base, with its slopes; by default the point that the first sensor measures."""
    labels = _labels(problem)
    first = len(labels.q)
    like = tuple(np.zeros(len(q), dtype=np.intp) for _ in problem.measurements)
    there = expected_at(problem, labels.and_also(Drawn(q, like)))
    space, measured = there.space(0, np.zeros(len(there.unknowns))), there.measurements[0]
    at = measured.point(space) if tool is None else space.frames[measured.frame].point(tool)
    # The columns behind those of the unknowns move the measured frame.
    return Tangent(at.value[first:], at.slope[first:, :, : len(there.unknowns)])


def error_below(covariances: Array, share: float = _SHARE) -> float:
    """The length below which a share of errors with these covariances (W, 3, 3) is."""
    trace = np.einsum("wii->w", covariances)
    square = np.einsum("wij,wji->w", covariances, covariances)
    if not np.any(trace > 0):
        return 0.0
    kept = trace > 1e-14 * trace.max()
    g, h = square[kept] / trace[kept], trace[kept] ** 2 / square[kept]
    still = len(trace) - kept.sum()

    def missing(size: float) -> float:
        return float((special.gammainc(h / 2, size / (2 * g)).sum() + still) / len(trace) - share)

    if missing(0.0) >= 0:
        return 0.0
    return float(np.sqrt(optimize.brentq(missing, 0.0, 100 * trace.max(), xtol=1e-12 * trace.max(), rtol=1e-10)))


def _labels(problem: Problem) -> Drawn:
    """One posture for each label of each measurement: with these, a problem has all unknowns."""
    rows = [labels_of(m)[1] for m in problem.measurements]
    most = max(len(x) for x in rows)
    like = tuple(x[np.arange(most) % len(x)] for x in rows)
    return Drawn(problem.measurements[0].q[like[0]], like)


def _rigid(points: Array) -> Array:
    """Motions (3W, 6) of all points when the base moves."""
    arm = points - points.mean(0)
    turns = np.stack([np.cross(np.eye(3)[k], arm) for k in range(3)], axis=2)
    return np.concatenate([np.tile(np.eye(3), (len(points), 1, 1)), turns], axis=2).reshape(-1, 6)


def _base_is_shown(found: Information, rigid: Array, ties: Array, open_ended: NDArray[np.bool_]) -> bool:
    """Whether every motion of the base that errors of the joints can make is seen, whatever sensors do not know."""
    own = np.array([u.kind is not UnknownKind.SENSOR for u in found.problem.unknowns])
    slopes = found.tool.reshape(-1, len(own))[:, own]
    motions, *_ = np.linalg.lstsq(slopes, rigid, rcond=_RANK)
    made = np.linalg.norm(slopes @ motions - rigid, axis=0) < 1e-6 * np.linalg.norm(rigid, axis=0)
    if not made.any():
        return True
    moves = np.zeros((len(own), int(made.sum())))
    moves[own] = motions[:, made]
    data = np.vstack([found._triangle(), ties])
    seen = data @ moves
    hidden = data[:, ~own & open_ended]
    hidden = hidden / np.maximum(np.linalg.norm(hidden, axis=0), 1e-300)
    left = seen - hidden @ np.linalg.lstsq(hidden, seen, rcond=1e-12)[0] if hidden.shape[1] else seen
    # A combination of motions that is unseen is one, too.
    size = np.linalg.norm(seen, axis=0)
    return bool(np.linalg.svd(left / np.maximum(size, 1e-300), compute_uv=False)[-1] > _UNSEEN)
