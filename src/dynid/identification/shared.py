"""Several models with common parameters, identified together: payloads, tools, mountings, robots of one type.

With joint parameters Pi and the parameters pi_k = E_k Pi of model k, all models have joint base parameters beta:

    y_k = W_k K_k E_k Pi + e_k = W_k T_k beta + e_k,    T_k the columns of K_k E_k that represent beta,
    beta = argmin sum of |y_k - W_k T_k beta|^2 / noise_k^2.

Source: Khalil, Gautier and Lemoine, Identification of the Payload Inertial Parameters of Industrial Manipulators
(2007), who stack motion with and without a payload; any pattern of shared parameters is our own generalisation.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.errors import ConflictingArguments, DataError, DynidError, Mismatch, TooFew, UnknownName, did_you_mean, named
from dynid.feasibility.cone import Block
from dynid.feasibility.constraints import Constraints
from dynid.feasibility.covariance import constrained_covariance
from dynid.feasibility.fit import fit
from dynid.feasibility.metrics import hessian_rows
from dynid.feasibility.sets import FeasibleSet, feasible_set
from dynid.identification.estimate import Estimate
from dynid.identification.estimators.feasible import FEASIBLE
from dynid.identification.estimators.least_squares import OLS, WLS, joint_noise
from dynid.identification.estimators.solution import Outcome, Solution, condition_number
from dynid.identification.observation import Observation, fold
from dynid.identification.observing import observe
from dynid.identification.pipeline import estimate_of
from dynid.markup import HtmlFrame
from dynid.parameters.base import BaseParameters
from dynid.parameters.rank import independent_columns
from dynid.patterns import matching_names
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.robot.parts import checked
from dynid.signals.settings import Signals
from dynid.terminal import rendered, table_of
from dynid.threads import one_blas_thread

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "SharedEstimate",
    "Union",
    "UnionBase",
    "feasible_union",
    "identify_shared",
    "shared_parameters",
    "union_base",
]

Array = NDArray[np.float64]
Patterns = str | Sequence[str]

_ZERO_COLUMN = 1e-10
_WEIGHT = 1e-9


@dataclass(frozen=True, eq=False)
class Union:
    """The joint vector (P,): its names and labels, the models and their marks, and the columns of each model."""

    robots: tuple[Robot, ...]
    marks: tuple[str, ...]
    names: tuple[str, ...]
    labels: tuple[str, ...]
    columns: tuple[NDArray[np.intp], ...]

    @property
    def size(self) -> int:
        """Number of joint parameters P."""
        return len(self.names)

    @property
    def shared(self) -> tuple[str, ...]:
        """Names of the parameters that more than one model has."""
        count = np.zeros(self.size)
        for columns in self.columns:
            count[columns] += 1
        return tuple(n for n, c in zip(self.names, count, strict=True) if c > 1)

    @cached_property
    def prior(self) -> Array:
        """A-priori values (P,); those of shared parameters come from the first model that has them."""
        out = np.zeros(self.size)
        for robot, columns in zip(reversed(self.robots), reversed(self.columns), strict=True):
            out[columns] = robot.parameters
        return out

    def expand(self, rows: Array, model: int) -> Array:
        """Rows over the standard parameters of one model as rows over the joint vector (k, P)."""
        out = np.zeros((len(rows), self.size))
        out[:, self.columns[model]] = rows
        return out


@dataclass(frozen=True, eq=False)
class UnionBase:
    """Base parameters beta = K pi of the joint vector: `matrix` is K (b, P), `kept` are the representatives."""

    union: Union
    matrix: Array
    kept: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of joint base parameters b."""
        return len(self.kept)

    @property
    def names(self) -> tuple[str, ...]:
        """Name of the representative of each combination, with an R if other parameters are regrouped into it."""
        rows = zip(self.kept, self.matrix, strict=True)
        return tuple(self.union.names[j] + ("R" if np.count_nonzero(row) > 1 else "") for j, row in rows)


class FeasibleUnion(FeasibleSet):
    """The constraints of all models over the joint vector."""

    union: Union

    @property
    def size(self) -> int:
        return self.union.size

    @cached_property
    def scale(self) -> Array:
        out = np.ones(self.size + self.extra)
        for robot, columns in zip(reversed(self.union.robots), reversed(self.union.columns), strict=True):
            out[columns] = FeasibleSet(robot, (), 0).scale
        return out


def shared_parameters(robots: Sequence[Robot], marks: Sequence[str], shared: Patterns, own: Patterns) -> Union:
    """The joint vector: parameters of one name that match `shared` and not `own` are one parameter."""
    yes, no = (tuple([x] if isinstance(x, str) else x) for x in (shared, own))
    everything = [(p.name, p.label, p.inertial) for robot in robots for p in robot.layout]
    for pattern in yes + no:
        if not any(_matches(pattern, *p) for p in everything):
            raise UnknownName(f"no parameter matches '{pattern}'", "pattern")
    place: dict[str, int] = {}
    labels: list[str] = []
    columns = []
    for robot, mark in zip(robots, marks, strict=True):
        mine = []
        for p in robot.layout:
            common = any(_matches(x, p.name, p.label, p.inertial) for x in yes)
            apart = any(_matches(x, p.name, p.label, p.inertial) for x in no)
            name = p.name if common and not apart else f"{p.name}@{mark}"
            if name not in place:
                place[name] = len(place)
                labels.append(p.label if common and not apart else f"{p.label}@{mark}")
            mine.append(place[name])
        columns.append(np.array(mine))
    return Union(tuple(robots), tuple(marks), tuple(place), tuple(labels), tuple(columns))


def union_base(union: Union, bases: Sequence[BaseParameters]) -> UnionBase:
    """Base parameters of all models together, from those of each.

    Every measured torque is a combination of the base parameters of one model, so the rows of all K over the joint
    vector span what is identifiable.
    """
    rows = np.vstack([union.expand(base.matrix, i) for i, base in enumerate(bases)])
    norms = np.linalg.norm(rows, axis=0)
    seen = norms > _ZERO_COLUMN * norms.max(initial=0.0)
    unit = np.where(seen, rows / np.where(seen, norms, 1.0), 0.0)
    # In the order of the scan of each model, so that the groupings are the usual ones.
    scan = [int(union.columns[i][j]) for i, base in enumerate(bases) for j in (*base.kept, *reversed(base.dependent))]
    singular = np.linalg.svd(unit, compute_uv=False)
    kept = independent_columns(unit, [j for j in dict.fromkeys(scan) if seen[j]], singular)
    if not kept:
        raise DynidError("the structural rank of the models together is not clear", code="not_identifiable")
    found = np.linalg.lstsq(unit[:, kept], unit, rcond=None)[0] * norms / norms[kept][:, None]
    matrix = np.where(np.abs(found) < _WEIGHT, 0.0, found)
    matrix[:, kept] = np.eye(len(kept))
    return UnionBase(union, matrix, tuple(kept))


def feasible_union(union: Union, constraints: Constraints) -> FeasibleUnion:
    """The constraints that make every model physically consistent; those of shared parts appear once."""
    sets = [feasible_set(robot, constraints) for robot in union.robots]
    extra = sum(s.extra for s in sets)
    blocks: list[Block] = []
    known = set()
    own = union.size
    for one, columns, mark in zip(sets, union.columns, union.marks, strict=True):
        where = np.concatenate([columns, own + np.arange(one.extra)])
        own += one.extra
        for block in one.blocks:
            coo = block.matrix.tocoo()
            place = where[coo.col]
            unshared = any(c >= union.size or union.names[c].endswith(f"@{mark}") for c in np.unique(place))
            label = f"{block.label} ({mark})" if unshared else block.label
            key = (label, block.cone, tuple(np.unique(place)))
            if key in known:
                continue
            known.add(key)
            matrix = type(block.matrix)((coo.data, (coo.row, place)), shape=(block.rows, union.size + extra))
            blocks.append(Block(block.cone, matrix, block.constant, label, block.unit))
    out = FeasibleUnion(union.robots[0], tuple(blocks), extra)
    object.__setattr__(out, "union", union)
    return out


def _matches(pattern: str, name: str, label: str, inertial: bool) -> bool:
    """Whether a pattern or group matches a parameter."""
    groups = {"all": True, "links": inertial, "drives": not inertial}
    return groups[pattern] if pattern in groups else bool(matching_names(pattern, (name, label)))


METHODS = {method.name: method for method in (OLS, WLS, FEASIBLE)}
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
            raise Mismatch(f"models '{first}' and '{second}' have different base parameters, which have no difference")
        change = self.maps[i] - self.maps[j]
        variance = np.einsum("ij,jk,ik->i", change, self.covariance, change)
        return self.estimates[i].beta - self.estimates[j].beta, np.sqrt(np.maximum(variance, 0.0))

    def _index(self, label: str) -> int:
        if label not in self.labels:
            raise UnknownName(f"no model has the label '{label}', the labels are {', '.join(self.labels)}", "label")
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
        raise TooFew(f"parameters are shared between two models or more, got {len(models)}", "models")
    if method not in METHODS:
        raise UnknownName(
            f"{named('method')} '{method}' is unknown here: use {', '.join(METHODS)}{did_you_mean(method, METHODS)}"
        )
    marks = tuple(str(k + 1) for k in range(len(models))) if labels is None else tuple(labels)
    if len(set(marks)) != len(models) or len(marks) != len(models):
        raise Mismatch(f"{len(models)} models need as many different labels, got {', '.join(marks)}", "labels")
    seen = [_observed(robot, data, signals, channels) for robot, data in models]
    union = shared_parameters([robot for robot, _ in models], marks, shared, own)
    base = union_base(union, [o.base for o in seen])
    maps = tuple(union.expand(o.base.matrix, i)[:, list(base.kept)] for i, o in enumerate(seen))
    with one_blas_thread():
        noise = [np.ones(len(o.rows)) for o in seen]
        beta, inverse = _solved(_stacked(seen, maps, noise), base)
        if METHODS[method] is OLS:
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
        if METHODS[method].consistent:
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
        raise ConflictingArguments(
            "an observation has its signals and channels already; give them to observe", "signals"
        )
    if data.robot.parameter_names != robot.parameter_names:
        raise Mismatch(f"the observation is of another robot or other drive terms than '{robot.name}'")
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
            f"these motions do not excite all base parameters; not identifiable from them: {', '.join(names[:6])}",
            code="not_identifiable",
        )
    q, t = scipy.linalg.qr(r, mode="economic")
    beta = scipy.linalg.solve_triangular(t, q.T @ z)
    inverse = scipy.linalg.solve_triangular(t, np.eye(len(t)))
    return beta, inverse
