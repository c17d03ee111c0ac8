"""Several models with common parameters, identified together: payloads, tools, mountings, robots of one type."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError, DynidError, did_you_mean
from dynid.feasibility.constraints import Constraints
from dynid.feasibility.covariance import constrained_covariance
from dynid.feasibility.fit import fit
from dynid.feasibility.metrics import hessian_rows
from dynid.identification.estimate import Estimate
from dynid.identification.estimators.solution import Outcome, Solution, condition_number
from dynid.identification.estimators.wls import joint_noise
from dynid.identification.observation import Observation, fold, observe
from dynid.identification.pipeline import estimate_of
from dynid.identification.union import Patterns, UnionBase, feasible_union, shared_parameters, union_base
from dynid.markup import HtmlFrame
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.robot.parts import checked
from dynid.signals.settings import Signals
from dynid.terminal import rendered, table_of
from dynid.threads import one_blas_thread

if TYPE_CHECKING:
    import polars as pl

__all__ = ["SharedEstimate", "identify_shared"]

Array = NDArray[np.float64]

METHODS = ("ols", "wls", "feasible")
_RANK = 1e-12


@dataclass(frozen=True, eq=False)
class SharedEstimate(HtmlFrame):
    """Joint base parameters of several models, and the estimate of each model.

    Attributes
    ----------
    base : UnionBase
        The base parameters of the joint vector of standard parameters (P,). Names of parameters that are not shared end
        with @ and the label of their model.
    labels : tuple of str
        Labels of the models.
    method : str
        "ols", "wls" or "feasible".
    beta : ndarray, shape (b,)
        Joint base parameters.
    covariance : ndarray, shape (b, b)
        Their covariance.
    maps : tuple of ndarray, shape (b_k, b)
        Matrices that give the base parameters of each model from the joint ones.
    estimates : tuple of Estimate
        The estimate of each model.
    condition_number : float
        Condition number of the joint regressor over its noise, with unit columns.
    status : str
        How the method ended, in words.
    seconds : float
        Computing time in s.
    notes : tuple of str
        Remarks of the method.
    standard, standard_covariance : ndarray, shapes (P,) and (P, P), or None
        Joint standard parameters and their covariance, with method "feasible".
    """

    base: UnionBase
    labels: tuple[str, ...]
    method: str
    beta: Array
    covariance: Array
    maps: tuple[Array, ...]
    estimates: tuple[Estimate, ...]
    condition_number: float
    status: str
    seconds: float
    notes: tuple[str, ...] = ()
    standard: Array | None = None
    standard_covariance: Array | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the joint base parameters."""
        return self.base.names

    @property
    def std(self) -> Array:
        """Standard deviation of each joint base parameter (b,)."""
        return np.asarray(np.sqrt(np.maximum(np.diag(self.covariance), 0.0)))

    def __getitem__(self, label: str) -> Estimate:
        """The estimate of one model."""
        return self.estimates[self._index(label)]

    def cross_covariance(self, first: str, second: str) -> Array:
        """Covariance (b_i, b_j) between the base parameters of two models, given by their labels."""
        a, b = self.maps[self._index(first)], self.maps[self._index(second)]
        return np.asarray(a @ self.covariance @ b.T)

    def difference(self, first: str, second: str) -> tuple[Array, Array]:
        """Base parameters of the first model minus those of the second (b,), and their standard deviations (b,)."""
        i, j = self._index(first), self._index(second)
        one, other = self.estimates[i].base, self.estimates[j].base
        if one.kept != other.kept or one.channels != other.channels or one.matrix.shape != other.matrix.shape:
            raise DataError(f"models '{first}' and '{second}' have different base parameters, which have no difference")
        change = self.maps[i] - self.maps[j]
        variance = np.einsum("ij,jk,ik->i", change, self.covariance, change)
        return self.estimates[i].beta - self.estimates[j].beta, np.sqrt(np.maximum(variance, 0.0))

    def _index(self, label: str) -> int:
        if label not in self.labels:
            raise DataError(f"no model has the label '{label}', the labels are {', '.join(self.labels)}")
        return self.labels.index(label)

    def to_frame(self) -> pl.DataFrame:
        """The joint base parameters as a table.

        Returns
        -------
        polars.DataFrame
            One row per parameter: parameter, estimate and std.
        """
        import polars as pl

        return pl.DataFrame({"parameter": self.names, "estimate": self.beta, "std": self.std})

    def summary(self) -> str:
        """Joint base parameters with their standard deviations, then the fit of each model; as wide as the terminal."""
        title = f"{self.base.count} base parameters of {len(self.labels)} models by {self.method}"
        table = table_of(title, "parameter", "estimate", "sigma", text=("parameter",))
        for name, value, sigma in zip(self.names, self.beta, self.std, strict=True):
            table.add_row(name, f"{value:.5g}", f"{sigma:.2g}")
        names = ("model", "channel", "rows", "relative %")
        errors = table_of("torque error, % of torque", *names, text=("model", "channel"))
        for label, estimate in zip(self.labels, self.estimates, strict=True):
            for row in zip(estimate.base.channels, estimate.rows, 100 * estimate.relative_error, strict=True):
                errors.add_row(label, row[0], str(row[1]), f"{row[2]:.2f}")
        alone = sum(e.base.count for e in self.estimates)
        closing = f"{self.status}; {self.base.count} unknowns, {alone} without sharing; {self.seconds:.2f} s"
        return rendered(table, errors, closing, *self.notes)

    def to_dict(self) -> dict[str, Any]:
        """The estimates and the joint base parameters as plain data; it cannot be read back."""
        return {
            "method": self.method,
            "status": self.status,
            "models": dict(zip(self.labels, (e.to_dict() for e in self.estimates), strict=True)),
            "shared": list(self.base.union.shared),
            "base_parameters": [
                {"name": n, "value": float(b), "std": float(s)}
                for n, b, s in zip(self.names, self.beta, self.std, strict=True)
            ],
            "covariance": self.covariance.tolist(),
            "condition_number": self.condition_number,
            "seconds": self.seconds,
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        return f"SharedEstimate({', '.join(self.labels)}: {self.base.count} base parameters, {self.method})"


def identify_shared(
    models: Sequence[tuple[Robot, Recording | Observation]],
    *,
    shared: Patterns = "all",
    own: Patterns = (),
    labels: Sequence[str] | None = None,
    method: str = "wls",
    signals: Signals | None = None,
    channels: str | Sequence[str] | None = None,
    constraints: Constraints = "full",
    prior: ArrayLike | None = None,
) -> SharedEstimate:
    """Identify several models together that share parameters.

    Parameters
    ----------
    models : sequence of (Robot, Recording or Observation)
        Two models or more. Gravity, drives and tools may differ between them.
    shared, own : str or sequence of str
        Names or labels of parameters with wildcards, or the groups "all", "links" (inertial parameters) and "drives".
        Parameters of one name that match `shared` and not `own` are one unknown; the others are separate in each model.
        Use `own="*_link6"` for a robot with and without a payload on link6, `own="off_*"` for offsets that change from
        run to run.
    labels : sequence of str, optional
        Labels of the models, by default "1", "2", ...
    method : {"ols", "wls", "feasible"}, default "wls"
        Ordinary least squares, weighted least squares with one noise per channel and model, or weighted least squares
        over physically consistent robots.
    signals : Signals, optional
        How runs are filtered, as for `identify`.
    channels : str or sequence of str, optional
        Measured quantities that are fitted, as for `identify`.
    constraints : str or sequence of constraints, default "full"
        What makes a robot physically consistent, for method "feasible".
    prior : array_like, shape (P,), optional
        Prior of the joint standard parameters, for method "feasible".

    Returns
    -------
    SharedEstimate

    Raises
    ------
    DataError
        If there are fewer than two models, or if labels, patterns or the method are wrong.
    DynidError
        If the motions do not excite all joint base parameters.
    """
    started = time.perf_counter()
    if len(models) < 2:
        raise DataError(f"parameters are shared between two models or more, got {len(models)}")
    if method not in METHODS:
        raise DataError(f"method '{method}' is unknown here: use {', '.join(METHODS)}{did_you_mean(method, METHODS)}")
    marks = tuple(str(k + 1) for k in range(len(models))) if labels is None else tuple(labels)
    if len(set(marks)) != len(models) or len(marks) != len(models):
        raise DataError(f"{len(models)} models need as many different labels, got {', '.join(marks)}")
    seen = [_observed(robot, data, signals, channels) for robot, data in models]
    union = shared_parameters([robot for robot, _ in models], marks, shared, own)
    base = union_base(union, [o.base for o in seen])
    maps = tuple(union.expand(o.base.matrix, i)[:, list(base.kept)] for i, o in enumerate(seen))
    with one_blas_thread():
        noise = [np.ones(len(o.rows)) for o in seen]
        beta, inverse = _solved(_stacked(seen, maps, noise), base)
        if method == "ols":
            squares = sum(float(np.sum(o.residual_norms(T @ beta) ** 2)) for o, T in zip(seen, maps, strict=True))
            size = np.sqrt(squares / max(sum(o.total_rows for o in seen) - base.count, 1))
            noise = [np.full(len(o.rows), size) for o in seen]
            inverse = size * inverse
        else:
            noise = [joint_noise(o, T @ beta) for o, T in zip(seen, maps, strict=True)]
            beta, inverse = _solved(_stacked(seen, maps, noise), base)
        condition = condition_number(_stacked(seen, maps, noise)[:, :-1])
        covariance = inverse @ inverse.T
        standard = standard_covariance = None
        status, outcome, notes = "solved", Outcome.CONVERGED, []
        if method == "feasible":
            possible = feasible_union(union, constraints)
            start = union.prior if prior is None else checked(prior, (union.size,), "prior", DataError)
            factor = _stacked(seen, maps, noise)
            R = np.pad(factor[: base.count, :-1] @ base.matrix, ((0, 0), (0, possible.extra)))
            found = fit(possible, R, factor[: base.count, -1], start)
            standard = found.parameters
            pinned = np.sqrt(found.weight) * hessian_rows(possible, standard, start, "euclidean")
            standard_covariance = constrained_covariance(found, R, pinned)
            beta, covariance = base.matrix @ standard, base.matrix @ standard_covariance @ base.matrix.T
            status = found.solution.status
            outcome = Outcome.CONVERGED if found.solution.status == "solved" else Outcome.NOT_CONVERGED
            notes = [f"{len(found.active)} constraints are active: {', '.join(found.active)}"] if found.active else []
        estimates = []
        for i, (o, T) in enumerate(zip(seen, maps, strict=True)):
            mine = union.columns[i]
            solution = Solution(
                beta=T @ beta,
                covariance=T @ covariance @ T.T,
                noise=noise[i],
                status=status,
                outcome=outcome,
                notes=(f"identified together with {', '.join(m for m in marks if m != marks[i])}", *notes),
                parameters=None if standard is None else standard[mine],
                parameter_covariance=None if standard_covariance is None else standard_covariance[np.ix_(mine, mine)],
            )
            estimates.append(estimate_of(o, solution, f"{method}, shared", started, condition))
    return SharedEstimate(
        base=base,
        labels=marks,
        method=method,
        beta=beta,
        covariance=covariance,
        maps=maps,
        estimates=tuple(estimates),
        condition_number=condition,
        status=status,
        seconds=time.perf_counter() - started,
        notes=tuple(notes),
        standard=standard,
        standard_covariance=standard_covariance,
    )


def _observed(
    robot: Robot, data: Recording | Observation, signals: Signals | None, channels: str | Sequence[str] | None
) -> Observation:
    """The observation of one model."""
    if not isinstance(data, Observation):
        return observe(robot, data, signals=signals, channels=channels)
    if signals is not None or channels is not None:
        raise DataError("an observation has its signals and channels already; give them to observe")
    if data.robot.parameter_names != robot.parameter_names:
        raise DataError(f"the observation is of another robot or other drive terms than '{robot.name}'")
    return data


def _stacked(seen: Sequence[Observation], maps: Sequence[Array], noise: Sequence[Array]) -> Array:
    """One factor of [W y] over the joint base parameters, channels over their noise."""
    parts = []
    for observation, T, std in zip(seen, maps, noise, strict=True):
        factor = observation.stacked(1.0 / std)
        parts.append(np.column_stack([factor[:, :-1] @ T, factor[:, -1]]))
    return fold(np.asfortranarray(np.vstack(parts)))


def _solved(factor: Array, base: UnionBase) -> tuple[Array, Array]:
    """Joint base parameters and the inverse triangle."""
    r, z = factor[:, :-1], factor[:, -1]
    norms = np.linalg.norm(r, axis=0)
    _, s, vt = np.linalg.svd(r / np.where(norms > 0, norms, 1.0), full_matrices=True)
    s = np.concatenate([s, np.zeros(vt.shape[0] - len(s))])
    weak = s <= _RANK * s[0]
    if weak.any():
        share = np.abs(vt[weak]).max(axis=0)
        names = [base.names[i] for i in np.argsort(-share) if share[i] > 0.1]
        raise DynidError(
            f"these motions do not excite all base parameters; not identifiable from them: {', '.join(names[:6])}"
        )
    q, t = scipy.linalg.qr(r, mode="economic")
    beta = scipy.linalg.solve_triangular(t, q.T @ z)
    inverse = scipy.linalg.solve_triangular(t, np.eye(len(t)))
    return beta, inverse
