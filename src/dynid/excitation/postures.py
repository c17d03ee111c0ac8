"""Static postures that identify masses and first moments best, chosen from many candidates by exchange.

    d: maximise log det(sum over chosen postures of A_k'A_k), by exchanging one posture for a candidate at a time

Sources: Fedorov, Theory of Optimal Experiments (1972), for exchange; Gautier and Khalil (1990), for base parameters of
gravity.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.errors import (
    Infeasible,
    InvalidValue,
    MissingData,
    NotApplicable,
    NotIdentifiable,
    TooFew,
    UnknownName,
    keyword,
    named,
)
from dynid.excitation.balance import SupportPolygon
from dynid.excitation.limits import MotionLimits, endless_joints, motion_limits
from dynid.excitation.linkage import with_passive_joints
from dynid.excitation.problem import Clearance
from dynid.markup import HtmlFrame
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.patterns import matching_names
from dynid.robot.model import Robot
from dynid.threads import one_blas_thread

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Postures", "select_postures"]

Array = NDArray[np.float64]

CRITERIA = ("d", "cond")
_PASSES = 20
# Replacements of a posture whose condition number is computed, drawn anew each time.
_LOOKED_AT = 150
_HALVINGS = 30
_RANDOM_SETS = 100
_RANK = 1e-10


@dataclass(frozen=True, eq=False)
class Postures(HtmlFrame):
    """Chosen static postures, ordered for short moves between them.

    Attributes
    ----------
    q : array, shape (count, nq)
        Postures, rad or m.
    base : BaseParameters
        Base parameters that are identifiable at rest.
    criterion : str
    condition_number : float
        Of the rows over the noise, with columns scaled to unit size over all candidates.
    log_determinant : float
        Mean logarithm of the singular values of these rows.
    random_condition_numbers, random_log_determinants : array
        The same for random sets of as many candidates.
    which : tuple of int
        Indices of the chosen postures among the admissible candidates.
    candidates : int
        Number of admissible candidates.
    std : array, shape (b,)
        The standard deviation of each base parameter for the given noise.
    """

    q: Array
    base: BaseParameters
    criterion: str
    condition_number: float
    log_determinant: float
    random_condition_numbers: Array
    random_log_determinants: Array
    which: tuple[int, ...]
    candidates: int
    std: Array

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.base.robot

    @property
    def gain(self) -> float:
        """Factor on the number of random postures with the same volume of the confidence ellipsoid."""
        return float(np.exp(2 * (self.log_determinant - np.median(self.random_log_determinants))))

    def to_frame(self) -> pl.DataFrame:
        """The postures as a table.

        Returns
        -------
        polars.DataFrame
            One row per posture, one column per joint, rad or m.
        """
        import polars as pl

        joints = self.q[:, self.q.shape[1] - self.robot.n :]
        return pl.DataFrame({name: joints[:, k] for k, name in enumerate(self.robot.coordinates)})

    def summary(self) -> str:
        """A table of the postures, and a comparison with random ones."""
        from rich.console import Console
        from rich.table import Table

        joints = self.q[:, self.q.shape[1] - self.robot.n :]
        table = Table(title=f"{self.robot.name}: {len(self.q)} postures of {self.candidates}")
        table.add_column("joint")
        for k in range(len(joints)):
            table.add_column(str(k + 1), justify="right")
        for name, values in zip(self.robot.coordinates, joints.T, strict=True):
            table.add_row(name, *(f"{x:.2f}" for x in values))
        console = Console(file=io.StringIO(), width=max(120, 24 + 9 * len(joints)), highlight=False)
        console.print(table)
        console.print(f"{self.base.count} combinations of masses and first moments are identifiable at rest")
        console.print(
            f"condition number {self.condition_number:.4g}; of random sets "
            f"{np.median(self.random_condition_numbers):.4g}, best {self.random_condition_numbers.min():.4g}"
        )
        console.print(f"equivalent to {self.gain:.1f} times as many random postures")
        return console.file.getvalue()  # type: ignore[attr-defined]


def select_postures(
    robot: Robot,
    count: int,
    *,
    candidates: int | ArrayLike = 1000,
    criterion: str = "d",
    channels: str | Sequence[str] | None = None,
    support: SupportPolygon | None = None,
    clearances: Sequence[Clearance] = (),
    limits: Mapping[str, Mapping[str, float]] | MotionLimits | None = None,
    start: ArrayLike | None = None,
    noise: ArrayLike | None = None,
    seed: int = 0,
) -> Postures:
    """Choose static postures that identify masses and first moments best.

    Parameters
    ----------
    robot : Robot
    count : int
        Number of postures.
    candidates : int or array, shape (N, nq)
        Candidate postures, or how many are drawn at random within the position ranges.
    criterion : {"d", "cond"}
        Volume of the confidence ellipsoid, or condition number.
    channels : str or sequence of str, optional
        "wrench", "torque" or names of channels. Default: the base wrench if there is one, else torques.
    support : SupportPolygon, optional
        The centre of mass must stay above it.
    clearances : sequence of clearances
        Random candidates that violate the support or a clearance are moved towards `start` until they do not.
    limits : mapping or MotionLimits, optional
        Position ranges, beside those of the robot's model.
    start : array, shape (n,), optional
        An admissible posture. Default: zero, or the nearest posture within the ranges.
    noise : array, shape (channel,) or (), optional
        The standard deviation of each channel.
    seed : int
        Seed of the random candidates.

    Returns
    -------
    Postures

    Raises
    ------
    DataError
        If there are too few postures or candidates, or none is admissible.

    Examples
    --------
    >>> import dynid
    >>> robot = dynid.load_robot("tx40")
    >>> dynid.excitation.select_postures(robot, 12, candidates=200).q.shape
    (12, 6)
    """
    if criterion not in CRITERIA:
        raise UnknownName(f"{named('criterion')} '{criterion}' is unknown: use {', '.join(CRITERIA)}")
    chosen = channels or ("torque" if robot.base == "fixed" else "wrench")
    base = base_parameters(robot, channels=chosen, still=True)
    clearances = with_passive_joints(robot, tuple(clearances))
    kept = (*((support,) if support is not None else ()), *clearances)
    rng = np.random.default_rng(seed)
    if isinstance(candidates, int | np.integer):
        q = _drawn(robot, int(candidates), kept, limits, start, rng)
    else:
        q = np.atleast_2d(np.asarray(candidates, dtype=float))
        q = q[_allowed(q, kept)] if kept and len(q) else q
        if not len(q):
            raise Infeasible("no candidate posture satisfies the support and the clearances")
    with one_blas_thread():
        A, sizes = _rows(base, q, noise)
        _check_count(base, A, count)
        exchange = _Exchange(A)
        which = exchange.by_volume(count)
        if criterion == "cond":
            which = exchange.by_condition(which, rng)
        figures = exchange.figures(which)
        random = np.array([exchange.figures(rng.permutation(len(q))[:count]) for _ in range(_RANDOM_SETS)])
        covariance = np.linalg.inv(exchange.information(which))
    ordered = _short_moves(q, which)
    return Postures(
        q=q[ordered],
        base=base,
        criterion=criterion,
        condition_number=figures[0],
        log_determinant=figures[1],
        random_condition_numbers=random[:, 0],
        random_log_determinants=random[:, 1],
        which=tuple(ordered),
        candidates=len(q),
        std=np.sqrt(np.diag(covariance)) * sizes,
    )


def _drawn(
    robot: Robot,
    count: int,
    kept: Sequence[Clearance],
    limits: Mapping[str, Mapping[str, float]] | MotionLimits | None,
    start: ArrayLike | None,
    rng: np.random.Generator,
) -> Array:
    """Random postures in range, moved towards the start posture until they are admissible."""
    if robot.base == "floating":
        raise NotApplicable(
            "random postures need a robot with a fixed base: put it on a foot with dynid.excitation.stand_on, or give "
            "candidates with the pose of the base",
            "candidates",
        )
    if count < 1:
        raise InvalidValue(f"at least one candidate is needed, got {count}", "count")
    lower, upper = _ranges(robot, limits)
    home = np.clip(robot.home, lower, upper) if start is None else np.asarray(start, dtype=float)
    if home.shape != (robot.n,) or not np.all((home >= lower) & (home <= upper)):
        raise InvalidValue(f"the start posture needs {robot.n} numbers within the joints' ranges", "start")
    if kept and not _allowed(home[None], kept)[0]:
        name = next(c.label for c in kept if c.values(home[None]).min() < 0)
        raise Infeasible(f"the start posture violates the {name} limit: give another one as {keyword('start')}")
    q = rng.uniform(lower, upper, (count, robot.n))
    if not kept:
        return q
    low, high = np.zeros(count), np.ones(count)
    fits = _allowed(q, kept)
    low[fits] = 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        fits = _allowed(home + middle[:, None] * (q - home), kept)
        low, high = np.where(fits, np.maximum(low, middle), low), np.where(fits, high, middle)
        if np.all(high - low < 1e-3):
            break
    return np.asarray(home + low[:, None] * (q - home))


def _ranges(robot: Robot, limits: Mapping[str, Mapping[str, float]] | MotionLimits | None) -> tuple[Array, Array]:
    """Position ranges; velocity limits are not needed at rest."""
    if not isinstance(limits, MotionLimits):
        velocities = {name: {"velocity": 1.0} for name in robot.coordinates}
        given = {k: {n: x for n, x in v.items() if n != "velocity"} for k, v in (limits or {}).items()}
        ranged = {n for k, v in given.items() if "lower" in v for n in matching_names(k, robot.coordinates)}
        for name in endless_joints(robot):
            # Half a revolution of an arm's joint is safe, that of a standing robot's knee is not.
            if name not in ranged:
                raise MissingData(
                    f"joint '{name}' has no position range; give one with {keyword('limits')}, lower and upper of it"
                )
        limits = motion_limits(robot, {**velocities, **{k: {**velocities.get(k, {}), **v} for k, v in given.items()}})
    return limits.lower, limits.upper


def _allowed(q: Array, kept: Sequence[Clearance]) -> NDArray[np.bool_]:
    return np.asarray(np.all([c.values(q).min(axis=1) >= 0 for c in kept], axis=0))


def _rows(base: BaseParameters, q: Array, noise: ArrayLike | None) -> tuple[Array, Array]:
    """Rows (N, channel, s) at rest over their noise, columns of unit size over all candidates; and the unit sizes."""
    std = np.ones(len(base.channels)) if noise is None else np.asarray(noise, dtype=float)
    std = np.broadcast_to(std, (len(base.channels),)) if std.ndim == 0 else std
    if std.shape != (len(base.channels),) or not np.all(std > 0) or not np.all(np.isfinite(std)):
        raise InvalidValue(f"{named('noise')} must be positive numbers, one or {len(base.channels)}")
    still = np.zeros((len(q), base.robot.nv))
    A = base.regressor(q, still, still) / std[:, None]
    A = A[:, np.abs(A).max(axis=(0, 2)) > 0]
    norms = np.sqrt(np.mean(np.sum(A**2, axis=1), axis=0))
    if np.any(norms == 0):
        raise NotIdentifiable(
            f"'{base.names[int(np.argmin(norms))]}' is not identifiable from any candidate; widen the ranges"
        )
    return A / norms, cast("Array", 1.0 / norms)


def _check_count(base: BaseParameters, A: Array, count: int) -> None:
    if not 1 <= count <= len(A):
        raise TooFew(f"{count} postures cannot be chosen from {len(A)} candidates", "count")
    if count * A.shape[1] < base.count:
        least = -(-base.count // A.shape[1])
        raise TooFew(
            f"{count} postures give {count * A.shape[1]} rows for {base.count} parameters; take at least {least}",
            "count",
        )
    singular = np.linalg.svd(A.reshape(-1, base.count), compute_uv=False)
    if len(singular) < base.count or singular[-1] <= _RANK * singular[0]:
        raise NotIdentifiable("all candidates together do not identify every parameter; widen the ranges or draw more")


class _Exchange:
    """Sets of candidates with rows A (N, c, s), improved by exchanging one at a time."""

    def __init__(self, A: Array) -> None:
        self.A = A
        self.size = A.shape[2]

    def information(self, which: Sequence[int] | NDArray[np.intp]) -> Array:
        """Information matrix of a set."""
        rows = self.A[np.asarray(which, dtype=int)].reshape(-1, self.size)
        return np.asarray(rows.T @ rows)

    def figures(self, which: Sequence[int] | NDArray[np.intp]) -> tuple[float, float]:
        """Condition number and mean logarithm of the singular values."""
        rows = self.A[np.asarray(which, dtype=int)].reshape(-1, self.size)
        s = np.linalg.svd(rows, compute_uv=False)
        if s[-1] <= _RANK * s[0]:
            return np.inf, -np.inf
        return float(s[0] / s[-1]), float(np.mean(np.log(s)))

    def _gains(self, M: Array) -> Array:
        """Growth (N,) of log det M by each candidate's rows."""
        root = scipy.linalg.cholesky(M, lower=True)
        seen = scipy.linalg.solve_triangular(root, self.A.reshape(-1, self.size).T, lower=True).T.reshape(self.A.shape)
        inner = np.eye(self.A.shape[1]) + seen @ np.swapaxes(seen, 1, 2)
        return np.asarray(np.linalg.slogdet(inner)[1])

    def by_volume(self, count: int) -> list[int]:
        """Greedy choice, then each posture exchanged for the best in its place until none changes."""
        little = 1e-9 * np.eye(self.size)
        M, which = little.copy(), list[int]()
        for _ in range(count):
            gains = self._gains(M)
            gains[which] = -np.inf
            which.append(int(np.argmax(gains)))
            M += self.A[which[-1]].T @ self.A[which[-1]]
        for _ in range(_PASSES):
            changed = False
            for k in range(count):
                others = which[:k] + which[k + 1 :]
                gains = self._gains(self.information(others) + little)
                gains[others] = -np.inf
                best = int(np.argmax(gains))
                if gains[best] > gains[which[k]] + 1e-9:
                    which[k], changed = best, True
            if not changed:
                break
        return which

    def by_condition(self, which: list[int], rng: np.random.Generator) -> list[int]:
        """Exchanges that lower the condition number, among some replacements drawn anew for each place."""
        which, value = list(which), self.figures(which)[0]
        for _ in range(_PASSES):
            before = value
            for k in range(len(which)):
                others = which[:k] + which[k + 1 :]
                free = np.setdiff1d(np.arange(len(self.A)), which)
                tried = rng.permutation(free)[:_LOOKED_AT]
                if not tried.size:
                    return which
                rows = self.A[tried]
                spectra = np.linalg.eigvalsh(self.information(others) + np.swapaxes(rows, 1, 2) @ rows)
                best = int(tried[np.argmax(spectra[:, 0] / spectra[:, -1])])
                new = self.figures([*others, best])[0]
                if new < value:
                    which[k], value = best, new
            if value > 0.99 * before:
                break
        return which


def _short_moves(q: Array, which: Sequence[int]) -> list[int]:
    """The chosen postures in an order in which the next is always the nearest one left."""
    left, out = list(which), list[int]()
    at = q[left].mean(axis=0)
    while left:
        nearest = min(left, key=lambda i: float(np.abs(q[i] - at).max()))
        left.remove(nearest)
        out.append(nearest)
        at = q[nearest]
    return out
