"""What a recording says of each standard parameter: identified alone, only in combination, or left to the prior.

Which combinations any motion could show follows from the base parameters. What this recording shows follows from their
covariance: with an a-priori covariance S of the standard parameters and the covariance C of the base parameters K pi,
the covariance that remains is S - S K' (K S K' + C)^-1 K S. A parameter whose variance stays above half of the
a-priori one is unidentifiable from this recording: the prior says more about it than the data. The a-priori covariance
is that of methods with a prior: every pseudo-inertia is known within a factor of about two. A value that the data moved
away from the prior by more than that is part of an identified combination.

Essential parameters are what is left when base parameters that the data do not determine are removed, one by one or
by a search over all subsets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import InvalidValue, Mismatch, UnknownName
from dynid.feasibility.metrics import quadratic_rows
from dynid.feasibility.prior import consistent_prior, wide_bodies
from dynid.identification.estimate import Estimate
from dynid.identification.estimators.registry import is_posterior
from dynid.identification.estimators.solution import condition_number
from dynid.identification.observation import Observation
from dynid.identification.posterior import BODY_SCALE
from dynid.parameters.base import ParameterClass

__all__ = [
    "SUBSETS",
    "Choice",
    "Essential",
    "best_by_f_test",
    "best_within_ratio",
    "essential_parameters",
    "parameter_classes",
    "prior_covariance",
    "prior_shares",
    "remaining_covariances",
]

Array = NDArray[np.float64]


# Essential parameters by a global search: branch and bound over the subsets of the base parameters.
#
# Removing column i from a fit with values x and covariance C (up to the noise) raises the sum of squares by x_i^2 /
# C_ii
# and changes x and C by one elimination step, so a subset costs no new fit. Sums of squares only rise when columns are
# removed: what a set leaves is a bound for all its subsets. The work is counted in subsets, not in time.


# Subsets that are looked at unless told otherwise.
SUBSETS = 20_000


@dataclass(frozen=True)
class Choice:
    """Columns that are kept, in order; `proven` if every other choice was ruled out."""

    kept: tuple[int, ...]
    proven: bool


@dataclass(frozen=True, eq=False)
class _Fit:
    """A fit with some columns: their indices, values, covariance (up to the noise) and sum of squares."""

    columns: tuple[int, ...]
    values: Array
    covariance: Array
    squares: float

    @property
    def rises(self) -> Array:
        """How much the sum of squares rises when each column alone is removed."""
        return np.asarray(self.values**2 / np.diag(self.covariance))

    def without(self, place: int) -> _Fit:
        """The fit without the column at a place, by one elimination step."""
        row, pivot = self.covariance[place], self.covariance[place, place]
        values = self.values - row * (self.values[place] / pivot)
        covariance = self.covariance - np.outer(row, row) / pivot
        left = np.delete(np.arange(len(self.columns)), place)
        return _Fit(
            tuple(self.columns[k] for k in left),
            values[left],
            covariance[np.ix_(left, left)],
            self.squares + float(self.values[place] ** 2 / pivot),
        )


def _full(factor: Array) -> _Fit:
    """The fit with all columns of a triangular factor [R z]."""
    count = factor.shape[1] - 1
    r = scipy.linalg.qr(factor, mode="r")[0][: count + 1]
    inverse = scipy.linalg.solve_triangular(r[:count, :count], np.eye(count))
    squares = float(r[count, count] ** 2) if len(r) > count else 0.0
    return _Fit(tuple(range(count)), inverse @ r[:count, count], inverse @ inverse.T, squares)


def _searched(
    full: _Fit,
    cost: Callable[[_Fit], float],
    bound: Callable[[_Fit, frozenset[int]], float],
    first: tuple[int, ...],
    subsets: int,
) -> Choice:
    """The subset of least cost. `bound` is below the cost of every subset that contains the columns that stay."""
    start = full
    for column in sorted(set(full.columns) - set(first)):
        start = start.without(start.columns.index(column))
    best, kept = cost(start), start.columns
    waiting: list[tuple[_Fit, frozenset[int]]] = [(full, frozenset())]
    left = subsets
    while waiting:
        if left == 0:
            return Choice(kept, False)
        left -= 1
        fit, staying = waiting.pop()
        value = cost(fit)
        if value < best:
            best, kept = value, fit.columns
        free = [k for k, column in enumerate(fit.columns) if column not in staying]
        if not free or len(fit.columns) == 1 or bound(fit, staying) >= best:
            continue
        # The column that is missed least: removed first, and kept in the other branch.
        place = min(free, key=lambda k: fit.rises[k])
        waiting.append((fit, staying | {fit.columns[place]}))
        waiting.append((fit.without(place), staying))
    return Choice(kept, True)


def best_by_f_test(factor: Array, freedom: int, price: float, first: tuple[int, ...], subsets: int) -> Choice:
    """The subset with the least sum of squares over the noise variance plus a price for each parameter.

    With the limit of the F-test as price, whatever is left out explains less than the test asks of so many parameters,
    and everything that is kept explains more. The noise is that of the fit with all columns.
    """
    full = _full(factor)
    noise = max(full.squares / freedom, 1e-300)

    def cost(fit: _Fit) -> float:
        return fit.squares / noise + price * len(fit.columns)

    def bound(fit: _Fit, staying: frozenset[int]) -> float:
        free = [k for k, column in enumerate(fit.columns) if column not in staying]
        size = np.sqrt(np.diag(fit.covariance)[free])
        # Removing a set R raises the squares by t' K^-1 t >= |t|^2 / (largest eigenvalue), K the correlations of R.
        top = float(np.linalg.eigvalsh(fit.covariance[np.ix_(free, free)] / np.outer(size, size))[-1])
        gains = np.minimum(price, fit.rises[free] / (noise * top))
        return fit.squares / noise + price * len(staying) + float(gains.sum())

    return _searched(full, cost, bound, first, subsets)


def best_within_ratio(factor: Array, ratio: float, first: tuple[int, ...], subsets: int) -> Choice:
    """The subset with the least sum of squares among those whose relative standard deviations lie within a ratio."""
    full = _full(factor)

    def within(fit: _Fit) -> bool:
        relative = np.sqrt(np.diag(fit.covariance)) / np.maximum(np.abs(fit.values), 1e-300)
        return bool(relative.max() <= ratio * relative.min())

    def cost(fit: _Fit) -> float:
        return fit.squares if within(fit) else np.inf

    def bound(fit: _Fit, staying: frozenset[int]) -> float:
        # A subset of one that satisfies the ratio leaves more; otherwise at least one more column goes.
        free = [k for k, column in enumerate(fit.columns) if column not in staying]
        return fit.squares if within(fit) else fit.squares + float(fit.rises[free].min())

    return _searched(full, cost, bound, first, subsets)


# Share of the a-priori variance that is left; at a half, data and prior say equally much.
_PRIOR_DECIDES = 0.5


def parameter_classes(estimate: Estimate) -> dict[str, ParameterClass]:
    """Class of every standard parameter in this recording, by name.

    A parameter that no motion shows, or that this recording determines less than the prior does, is unidentifiable.
    """
    robot, kinds = estimate.robot, estimate.base.classes
    variance = np.diag(prior_covariance(estimate))
    shares = prior_shares(estimate)
    known = {p.owner for p, value in zip(robot.layout, robot.parameters, strict=True) if p.symbol == "m" and value > 0}
    given = np.array([p.owner in known for p in robot.layout])
    moved = given & ((estimate.parameters - robot.parameters) ** 2 > variance)
    if estimate.standard is None:
        moved[:] = False
    return {
        name: ParameterClass.UNIDENTIFIABLE if share > _PRIOR_DECIDES and not far else ParameterClass(kinds[name])
        for name, share, far in zip(robot.parameter_names, shares, moved, strict=True)
    }


def prior_shares(estimate: Estimate) -> Array:
    """Share (p,) of the a-priori variance of each standard parameter that is left; 1 where the data say nothing."""
    variance = np.diag(prior_covariance(estimate))
    left = np.max([np.diag(c) for c in remaining_covariances(estimate)], axis=0)
    inertial = np.array([p.inertial for p in estimate.robot.layout])
    # Drive parameters have no a-priori covariance of their own: only what is not observed at all is open.
    return np.where(_unseen(estimate), 1.0, np.where(inertial, np.clip(left / variance, 0.0, 1.0), 0.0))


def remaining_covariances(estimate: Estimate) -> tuple[Array, ...]:
    """What the data leave of the a-priori covariance (p, p); of methods with a prior, their own covariance beside it.

    The larger variance of a quantity is the one to trust. What no torque depends on keeps its a-priori variance: what
    the prior says of a body's shape is not what the data say of its mass.
    """
    before, (K, C) = prior_covariance(estimate), _finite_base(estimate)
    unseen = _unseen(estimate)
    before[unseen[:, None] != unseen] = 0.0
    carried = before @ K.T
    total = K @ carried + C
    size = np.sqrt(np.maximum(np.diag(total), 1e-300))
    known = carried / size
    inner = np.linalg.pinv(total / np.outer(size, size), hermitian=True)
    left = before - known @ inner @ known.T
    return (left,) if estimate.standard_covariance is None else (left, estimate.standard_covariance)


def _unseen(estimate: Estimate) -> NDArray[np.bool_]:
    """Standard parameters (p,) that no torque of the recording depends on."""
    return ~np.any(np.abs(_finite_base(estimate)[0]) > 0, axis=0)


def _finite_base(estimate: Estimate) -> tuple[Array, Array]:
    """Combinations and covariance of the base parameters that the recording shows at all."""
    finite = np.isfinite(np.diag(estimate.covariance))
    return estimate.base.matrix[finite], estimate.covariance[np.ix_(finite, finite)]


def prior_covariance(estimate: Estimate, at: Array | None = None) -> Array:
    """Covariance (p, p) of the prior: each pseudo-inertia is known within a factor of about two, in a posterior better.

    Such a prior is wider about heavier bodies: `at` has their standard parameters (p,), by default those of the method.
    """
    robot = estimate.robot
    prior = consistent_prior(robot).parameters
    inertial = np.array([p.inertial for p in robot.layout])
    typical = np.maximum(np.abs(prior), np.abs(estimate.parameters))
    scale = np.where(inertial | (typical > 0), np.maximum(typical, 1e-300), 1.0)
    # Standard parameters that no method estimated may be far from any body.
    given = estimate.standard if at is None else at
    bodies = wide_bodies(robot, prior if given is None else given, prior)
    rows = quadratic_rows(robot, bodies, "pullback", scale)[0]
    unit = np.linalg.norm(rows, axis=0)
    root = np.linalg.pinv(rows / unit) / unit[:, None]
    root[inertial] *= BODY_SCALE if is_posterior(estimate.method) else 1.0
    return np.asarray(root @ root.T)


@dataclass(frozen=True, eq=False)
class Essential:
    """Essential parameters of an estimate.

    Attributes
    ----------
    estimate : Estimate
        The estimate with all other base parameters at zero.
    kept : tuple of int
        Indices of the essential parameters among the base parameters.
    removed : tuple of int
        Indices of the others, in the order in which they were removed.
    change : float
        Norm of the change of the predicted torques relative to their norm.
    proven : bool
        Whether a global search ruled out every other choice.
    """

    estimate: Estimate
    kept: tuple[int, ...]
    removed: tuple[int, ...]
    change: float
    proven: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the essential parameters."""
        return tuple(self.estimate.base.names[i] for i in self.kept)


def essential_parameters(
    observation: Observation,
    estimate: Estimate,
    *,
    ratio: float = 30.0,
    test: str = "ratio",
    level: float = 0.05,
    search: str = "stepwise",
    subsets: int = SUBSETS,
) -> Essential:
    """Remove base parameters that the data do not determine.

    Parameters
    ----------
    observation : Observation
        The data that the estimate was found from.
    estimate : Estimate
        The estimate; its weights of the channels are kept.
    ratio : float, default 30
        Limit of the test "ratio".
    test : {"ratio", "f"}, default "ratio"
        "ratio" (Pham and Gautier): the parameter with the largest relative standard deviation is removed while this is
        more than `ratio` times the smallest one. "f": it is removed while an F-test does not find its effect
        significant.
    level : float, default 0.05
        Level of the F-test.
    search : {"stepwise", "global"}, default "stepwise"
        "stepwise" removes one parameter after the other. "global" starts there and looks at all subsets by branch and
        bound, for the one that fits best: with the test "ratio" among those whose relative standard deviations lie
        within `ratio`, with "f" at the price of the F-test for each parameter.
    subsets : int
        Subsets that a global search looks at. Where they do not suffice, the best of them is returned, `proven` is
        False, and a note of the estimate says so.

    Returns
    -------
    Essential

    Raises
    ------
    DataError
        If `test` is unknown, or the estimate has other base parameters than the observation.
    """
    if test not in ("ratio", "f"):
        raise UnknownName(f"test '{test}' is unknown: use ratio or f", "test")
    if search not in ("stepwise", "global"):
        raise UnknownName(f"search '{search}' is unknown: use stepwise or global", "search")
    if isinstance(subsets, bool) or not isinstance(subsets, int) or subsets < 1:
        raise InvalidValue(f"the number of subsets is a whole number from 1, got {subsets!r:.40}", "subsets")
    if estimate.base.names != observation.base.names:
        raise Mismatch(
            f"the estimate has {estimate.base.count} base parameters, the observation {observation.base.count} "
            "others: observe the robot of the estimate, observe(estimate.robot, recording)"
        )
    factor = observation.stacked(1.0 / estimate.noise)
    kept, removed = _stepwise(factor, observation.total_rows, ratio, test, level)
    proven = False
    if search == "global":
        first, freedom = tuple(sorted(kept)), observation.total_rows - observation.base.count
        if test == "ratio":
            found = best_within_ratio(factor, ratio, first, subsets)
        else:
            price = float(scipy.stats.f.ppf(1.0 - level, 1, freedom))
            found = best_by_f_test(factor, freedom, price, first, subsets)
        kept, proven = list(found.kept), found.proven
        removed = [i for i in range(observation.base.count) if i not in kept]
    beta = _fit(factor, kept)[0]
    full = np.zeros(observation.base.count)
    full[kept] = beta
    covariance = np.zeros((full.size, full.size))
    inverse = _inverse(factor, kept)
    covariance[np.ix_(kept, kept)] = inverse @ inverse.T
    torque, norms = observation.residual_norms(full), observation.torque_norms()
    plain = observation.stacked()[:, :-1]
    change = float(np.linalg.norm(plain @ (full - estimate.beta)) / np.linalg.norm(plain @ estimate.beta))
    reduced = replace(
        estimate,
        beta=full,
        covariance=covariance,
        rms=torque / np.sqrt(np.maximum(observation.rows, 1)),
        relative_error=torque / np.where(norms > 0, norms, np.inf),
        condition_number=condition_number(factor[:, kept]),
        notes=(*estimate.notes, f"{len(kept)} essential parameters", *_unproven(search, proven, subsets)),
    )
    return Essential(reduced, tuple(kept), tuple(removed), change, proven)


def _unproven(search: str, proven: bool, subsets: int) -> tuple[str, ...]:
    """A note on a global search that did not end."""
    ended = search == "stepwise" or proven
    return () if ended else (f"the search ended after {subsets} subsets: another choice may fit better",)


def _stepwise(factor: Array, rows: int, ratio: float, test: str, level: float) -> tuple[list[int], list[int]]:
    """Columns that are kept, and those that are removed one after the other, in this order."""
    kept = list(range(factor.shape[1] - 1))
    removed: list[int] = []
    beta, std, residual = _fit(factor, kept)
    while len(kept) > 1:
        relative = std / np.maximum(np.abs(beta), 1e-300)
        worst = int(np.argmax(relative))
        trial = kept[:worst] + kept[worst + 1 :]
        smaller = _fit(factor, trial)
        if test == "ratio":
            leave = relative[worst] > ratio * relative.min()
        else:
            freedom = rows - len(kept)
            rise = (smaller[2] ** 2 - residual**2) / max(residual**2 / freedom, 1e-300)
            leave = rise < scipy.stats.f.ppf(1.0 - level, 1, freedom)
        if not leave:
            break
        removed.append(kept[worst])
        kept = trial
        beta, std, residual = smaller
    return kept, removed


def _inverse(factor: Array, kept: list[int]) -> Array:
    """Inverse triangle of some columns."""
    r = scipy.linalg.qr(factor[:, kept], mode="r")[0][: len(kept)]
    return np.asarray(scipy.linalg.solve_triangular(r, np.eye(len(kept))))


def _fit(factor: Array, kept: list[int]) -> tuple[Array, Array, float]:
    """Values, standard deviations and residual norm of a fit with some columns only."""
    beta = np.asarray(np.linalg.lstsq(factor[:, kept], factor[:, -1], rcond=None)[0], dtype=float)
    std = np.asarray(np.linalg.norm(_inverse(factor, kept), axis=1))
    return beta, std, float(np.linalg.norm(factor[:, -1] - factor[:, kept] @ beta))
