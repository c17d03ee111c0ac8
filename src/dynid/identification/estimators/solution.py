"""What every estimator returns, and the linear algebra they share.

With a factor [R z] of the weighted rows [W y], so that [W y]'[W y] = [R z]'[R z], and R = Q T:

    beta = T^-1 Q' z,    (W'W)^-1 = T^-1 T^-T.

Source: Golub and Van Loan, Matrix Computations (4th edition 2013), chapter 5 (least squares by QR).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import DynidError
from dynid.feasibility.box import Wall
from dynid.identification.observation import Block, Observation, WeightedRows
from dynid.parameters.base import BaseParameters
from dynid.progress import Progress, ProgressCallback

__all__ = [
    "Iteration",
    "Outcome",
    "Solution",
    "condition_number",
    "report_iteration",
    "solve_factor",
    "with_rows",
]

Array = NDArray[np.float64]

_RANK = 1e-12
_ROUNDING = 1e-9


class Outcome(StrEnum):
    """How an estimator ended.

    CONVERGED: it reached its solution, or did the single iteration that was asked for. NOT_CONVERGED: it used up its
    iterations. STALLED: no step improved the fit. ABORTED: a simulation or a filter stopped early.
    """

    CONVERGED = "converged"
    NOT_CONVERGED = "not converged"
    STALLED = "stalled"
    ABORTED = "aborted"


@dataclass(frozen=True, eq=False)
class Iteration:
    """One iteration of an estimator that simulates or filters.

    Attributes
    ----------
    beta : ndarray, shape (b,)
        Base parameters at the end of the iteration.
    step : float
        Largest change of a base parameter, relative to its size.
    residual : float
        Torque error relative to the torque; for methods that fit other signals, the mean squared error in units of its
        variance.
    smallest : float
        Smallest eigenvalue of the pseudo-inertias of the links and smallest friction or rotor inertia, each relative to
        its typical size. It is not negative, up to rounding, if the iterate is physically consistent.
    simulation_seconds, solver_seconds : float
        Computing time in s.
    """

    beta: Array
    step: float
    residual: float
    smallest: float
    simulation_seconds: float
    solver_seconds: float

    @property
    def feasible(self) -> bool:
        """Whether the iterate is physically consistent, up to rounding."""
        return self.smallest > -_ROUNDING


def report_iteration(progress: ProgressCallback | None, history: Sequence[Iteration], max_iterations: int) -> None:
    """Report the last iteration, with the time that the remaining ones take at most."""
    if progress is None:
        return
    done = len(history)
    spent = sum(x.simulation_seconds + x.solver_seconds for x in history)
    message = f"iteration {done} of at most {max_iterations}: largest step {history[-1].step:.2g}"
    progress(Progress(message, done / max_iterations, spent / done * (max_iterations - done)))


@dataclass(frozen=True, eq=False)
class Solution:
    """What an estimator returns.

    Attributes
    ----------
    beta : ndarray, shape (b,)
        Base parameters.
    covariance : ndarray, shape (b, b)
        Their covariance for white noise.
    noise : ndarray, shape (channel,)
        Standard deviation of the torque noise per channel, in N m or N.
    status : str
        How the method ended, in words.
    outcome : Outcome
        How the method ended.
    iterations : int
        Number of iterations.
    notes : tuple of str
        Remarks for the user.
    parameters, parameter_covariance : ndarray, shapes (p,) and (p, p), or None
        Standard parameters and their covariance, for methods that estimate them.
    history : tuple of Iteration
        The iterations of a method that simulates or filters.
    rows : callable or None
        Streams the weighted rows of the estimator where these are not the rows of the observation divided by the noise.
    time_blocks : tuple of ndarray, shape (k, b + 1)
        Factors of these rows by consecutive blocks of time in place of `rows`, where a data set does not keep them.
    prior_rows : ndarray, shape (k, b) or (k, p), or None
        Weighted rows of the prior of a method that has one: over base parameters, or over standard parameters where the
        method estimates those.
    equalities : ndarray, shape (k, p), or None
        Rows of standard parameters that are known exactly.
    shift : ndarray, shape (b,), or None
        How far the prior moved the base parameters from the best fit.
    resampled : bool
        Whether the covariance comes from repeated solves on simulated data: it is then taken as it is.
    independent_rows : tuple of float
        Effective number of independent rows per channel that a posterior rests on; its covariance is taken as it is.
    freedom : float
        Degrees of freedom of the standard deviations of a posterior.
    walls : tuple of Wall
        Sides of the plausible box against which the data push.
    equations : int or None
        Number of equations of `rows`, where these are not the rows of the observation.
    """

    beta: Array
    covariance: Array
    noise: Array
    status: str = "solved"
    outcome: Outcome = Outcome.CONVERGED
    iterations: int = 1
    notes: tuple[str, ...] = ()
    parameters: Array | None = None
    parameter_covariance: Array | None = None
    history: tuple[Iteration, ...] = ()
    rows: WeightedRows | None = None
    time_blocks: tuple[Array, ...] = ()
    prior_rows: Array | None = None
    equalities: Array | None = None
    shift: Array | None = None
    resampled: bool = False
    independent_rows: tuple[float, ...] = ()
    freedom: float = np.inf
    walls: tuple[Wall, ...] = ()
    equations: int | None = None


class StreamedRows(Protocol):
    """Weighted rows: streamed from blocks of rows, or reduced to a factor."""

    def stream(self, blocks: Iterable[Block]) -> Iterator[tuple[int, Array, Array, NDArray[np.int64]]]:
        """The weighted rows."""

    def over(self, blocks: Iterable[Block]) -> Array:
        """Their factor."""

    def join(self, first: Array, second: Array) -> Array:
        """Factor of both."""


def with_rows(
    solution: Solution, observation: Observation, weighted: StreamedRows, parts: Sequence[Array] | None = None
) -> Solution:
    """The solution with its weighted rows: their stream or, of a data set, their factors (`parts`, if known)."""
    if observation.passes is None:
        return replace(solution, rows=lambda: weighted.stream(observation.blocks()))
    return replace(solution, time_blocks=tuple(observation.reduced(weighted) if parts is None else parts))


def condition_number(rows: Array) -> float:
    """Condition number of regressor rows (k, b) whose columns are scaled to unit norm.

    Units of the parameters do not matter then. Infinite if a parameter has no effect or if columns are dependent, NaN
    if an entry is not finite.
    """
    if not np.all(np.isfinite(rows)):
        return float("nan")
    norms = np.linalg.norm(rows, axis=0)
    if rows.shape[0] < rows.shape[1] or not np.all(norms > 0):
        return float("inf")
    singular = np.linalg.svd(rows / norms, compute_uv=False)
    return float(singular[0] / singular[-1]) if singular[-1] > 0 else float("inf")


def solve_factor(factor: Array, base: BaseParameters) -> tuple[Array, Array]:
    """Least squares from a factor of [W y]: base parameters (b,) and the inverse triangle R^-1 (b, b).

    Columns are scaled to unit norm for the rank decision, so that units do not decide it.
    """
    r, z = factor[:, :-1], factor[:, -1]
    norms = np.linalg.norm(r, axis=0)
    scaled = r / np.where(norms > 0, norms, 1.0)
    singular = np.linalg.svd(scaled, compute_uv=False)
    if r.shape[0] < r.shape[1] or singular[-1] <= _RANK * singular[0]:
        raise DynidError(_not_excited(base, scaled), code="not_identifiable")
    q, t = scipy.linalg.qr(r, mode="economic")
    beta = scipy.linalg.solve_triangular(t, q.T @ z)
    inverse = scipy.linalg.solve_triangular(t, np.eye(len(t)))
    return beta, inverse


def _not_excited(base: BaseParameters, scaled: Array) -> str:
    """A message that names the parameters in the directions of zero singular values."""
    _, s, vt = np.linalg.svd(scaled, full_matrices=True)
    s = np.concatenate([s, np.zeros(vt.shape[0] - len(s))])
    missing = np.abs(vt[s <= _RANK * s[0]]).max(axis=0)
    names = [base.names[i] for i in np.argsort(-missing) if missing[i] > 0.1]
    shown = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
    return f"this motion does not excite all base parameters; not identifiable from it: {shown}"
