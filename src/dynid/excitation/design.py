"""Design of excitation trajectories: random motions are scored, the best refined, and the limits verified."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import (
    Duplicate,
    DynidError,
    InvalidShape,
    InvalidValue,
    NotApplicable,
    UnknownName,
    did_you_mean,
    named,
)
from dynid.excitation.amplitudes import AmplitudeLimits, check_family
from dynid.excitation.basis import Basis, BSpline, CubicSpline, Fourier, FourierQuintic, PointToPoint, at_rest
from dynid.excitation.criteria import Criterion, make_criterion
from dynid.excitation.excitation import Excitation
from dynid.excitation.information import Earlier, Information, earlier_information
from dynid.excitation.limits import MotionLimits, endless_joints, motion_limits
from dynid.excitation.linkage import with_passive_joints
from dynid.excitation.problem import AnyClearance, Problem
from dynid.excitation.room import check_duration, check_torque_model
from dynid.excitation.search import Work, refine, shrunk
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.progress import Progress, ProgressCallback
from dynid.robot.model import Robot
from dynid.threads import one_blas_thread

__all__ = ["FAMILIES", "design_excitation", "make_family"]

Array = NDArray[np.float64]

# Peaks between grid points are missed, so limits are this much tighter during the search.
_TIGHT = 0.01
# And clearances this much wider, in their own unit.
_ROOM = 0.2
_FINE = 10
# Samples per second at which torques and the other limits of joints hold at last: friction steps between grid points.
_CONTROL_RATE = 1000.0
_CANDIDATES = 60
_REFINED = 20
_MOST_TIGHTENINGS = 5
# Iterations after limits were tightened.
_TIGHTENED = 20
# Slack that a posture at rest needs, as a share of each limit, and the postures that are tried.
_LEAST_ROOM, _POSTURES = 0.02, 200


def _splines(duration: float, segments: int) -> Basis:
    return at_rest(BSpline(duration, segments))


def _waypoints(duration: float, count: int) -> Basis:
    return CubicSpline(duration, count)


FAMILIES: dict[str, Callable[[float, int], Basis]] = {
    "fourier": lambda duration, size: at_rest(Fourier(duration, size)),
    "fourier-free": lambda duration, size: Fourier(duration, size),
    "fourier-quintic": lambda duration, size: at_rest(FourierQuintic(duration, size)),
    "b-spline": _splines,
    "cubic": _waypoints,
    "quintic": lambda duration, size: PointToPoint(duration, size, "quintic"),
    "trapezoid": lambda duration, size: PointToPoint(duration, size, "trapezoid"),
    "double-s": lambda duration, size: PointToPoint(duration, size, "double-s"),
    "postures": lambda duration, size: PointToPoint(duration, size, "quintic", dwell=0.5),
}


def make_family(family: str | Basis, duration: float, size: int) -> Basis:
    """A basis by name, with `size` harmonics, spline segments or waypoints; a basis is returned as it is."""
    if not isinstance(family, str):
        return family
    if family not in FAMILIES:
        raise UnknownName(
            f"{named('family')} '{family}' is unknown: use {', '.join(FAMILIES)}{did_you_mean(family, FAMILIES)}"
        )
    return FAMILIES[family](duration, size)


class _Found(NamedTuple):
    """The coefficients that a search found, and what is said about it."""

    coefficients: Array
    notes: tuple[str, ...]


def design_excitation(
    robot: Robot,
    duration: float = 20.0,
    *,
    family: str | Basis = "fourier",
    size: int = 5,
    criterion: str = "d",
    limits: Mapping[str, Mapping[str, float]] | MotionLimits | None = None,
    start: ArrayLike | None = None,
    noise: ArrayLike | None = None,
    after: Earlier | Sequence[Earlier] = (),
    clearances: Sequence[AnyClearance] = (),
    amplitudes: AmplitudeLimits | None = None,
    channels: str | Sequence[str] | None = None,
    budget: int = 1000,
    time_limit: float | None = None,
    seed: int = 0,
    samples: int | None = None,
    progress: ProgressCallback | None = None,
    **options: Any,
) -> Excitation:
    """Design a motion within all limits that identifies the base parameters best.

    The same seed gives the same motion, unless a time limit ends the search.

    Parameters
    ----------
    robot : Robot
        Its base must not float.
    duration : float
        Duration of the motion, s.
    family : str or Basis
        "fourier" (starts and ends at rest), "fourier-free", "fourier-quintic", "b-spline", "cubic", "quintic",
        "trapezoid", "double-s", "postures", or a basis.
    size : int
        Number of harmonics, segments or waypoints.
    criterion : str
        "d" (volume of the confidence ellipsoid), "a" (mean variance), "e" (smallest singular value), "cond" (condition
        number), "hadamard", "frobenius", "sum-cond", "mass-static", "mass-dynamic", "sigma" or "torque"; see
        `dynid.excitation.criteria.make_criterion`.
    limits : mapping or MotionLimits, optional
        Limits by joint name or pattern, beside those of the robot's model, such as {"joint*": {"acceleration": 10.0}}.
    start : array, shape (n,), optional
        Posture at which the motion starts, rad or m. By default it moves about the middle of the ranges, or about
        another posture where that one violates a limit at rest.
    noise : array, shape (channel,) or (), optional
        The standard deviation of each channel, N m (N for forces). Default: the noise in the recordings of `after`, or
        1.
    after : Recording, DataSet, Observation, Estimate, Information, or a sequence of them
        Earlier recordings or estimates: the motion is designed for the parameters that they leave uncertain, see
        `earlier_information`.
    clearances : sequence of clearances
        Further limits, such as those of `dynid.excitation.clearances`. With closed loops, the limits of passive joints
        and a margin to singular postures are always among them (`PassiveJoints`).
    amplitudes : AmplitudeLimits, optional
        Limits on the harmonics of a Fourier series, such as those of `dynid.excitation.halper_rules`.
    channels : str or sequence of str, optional
        Channels that will be measured. Default: joint torques, or the base wrench of an instrumented base.
    budget : int
        Iterations of the search in all. It ends earlier when the twenty best start motions have been refined.
    time_limit : float, optional
        Seconds after which the search ends with the best motion so far; a note of the result says so. The choice of
        start motions and the check of the limits on a finer grid are not cut short, and compilation does not count.
    seed : int
        Seed of the random starts.
    samples : int, optional
        Samples of the grid on which criterion and limits are computed.
    progress : callable, optional
        Called with a `dynid.progress.Progress` during the search.
    **options
        Further options of `dynid.excitation.criteria.make_criterion`: sizes, friction, known, chosen, task.

    Returns
    -------
    Excitation

    Raises
    ------
    DataError
        If a setting is unknown or contradicts the robot.
    DynidError
        If no motion within the limits was found.

    Examples
    --------
    >>> import dynid
    >>> robot = dynid.load_robot("twolink")
    >>> motion = dynid.design_excitation(robot, 5.0, budget=50, limits={"*": {"acceleration": 10.0}})
    >>> t, q, v, a = motion.sample(100.0)
    >>> q.shape
    (501, 2)
    """
    began = time.monotonic()
    if isinstance(budget, bool) or not isinstance(budget, int) or budget < 1:
        raise InvalidValue(f"the budget is a whole number of iterations, at least 1, got {budget!r:.40}", "budget")
    if time_limit is not None and not time_limit > 0:
        raise InvalidValue(f"the time limit must be a positive number of seconds, got {time_limit!r:.40}", "time_limit")
    basis = make_family(family, duration, size)
    check_family(amplitudes, basis)
    held = limits if isinstance(limits, MotionLimits) else motion_limits(robot, limits)
    check_duration(robot, held, basis.duration)
    check_torque_model(robot, None if isinstance(limits, MotionLimits) else limits)
    if robot.base == "floating":
        raise NotApplicable(
            "motions are designed for robots with a fixed base; put this one on a foot with dynid.excitation.stand_on, "
            "or fix its base"
        )
    base = base_parameters(robot, channels=channels or ("torque" if robot.base == "fixed" else "wrench"))
    count = samples or _sample_count(basis, base.count, robot.n)
    goal = _goal(base, criterion, earlier_information(base, after, noise=noise), count, basis.duration, options)
    clearances = with_passive_joints(robot, tuple(clearances))
    labels = [c.label for c in clearances]
    if len(set(labels)) < len(labels):
        raise Duplicate(f"clearances need different labels, got {', '.join(labels)}", "clearances")
    notes = _turning(robot, held)
    posture = None if start is None else _posture(robot, start, held)
    coarse = Problem(basis, goal, held.tightened(_TIGHT), count, tuple(clearances), posture, _ROOM)
    if amplitudes is not None:
        coarse = replace(coarse, amplitudes=amplitudes.tightened(_TIGHT))
    if posture is None and coarse.worst(coarse.resting) < _LEAST_ROOM:
        coarse = replace(coarse, start=_roomy_posture(coarse, seed))
        notes += (
            "the motion starts and ends at another posture than the middle of the ranges, which violates a limit",
        )
    fine = replace(coarse, limits=held, samples=_FINE * count, clearance_room=0.0, amplitudes=amplitudes)
    report = progress or (lambda _: None)
    with one_blas_thread():
        found = _search(coarse, seed, budget, time_limit, report)
        best, tightened = _verified(coarse, fine, found.coefficients, report)
    return Excitation(
        robot=robot,
        basis=basis,
        coefficients=best,
        limits=held,
        criterion=goal,
        clearances=tuple(clearances),
        seconds=time.monotonic() - began,
        notes=(*notes, *found.notes, *tightened),
        samples=count,
    )


def _goal(
    base: BaseParameters, name: str, earlier: Information, count: int, duration: float, options: dict[str, Any]
) -> Criterion:
    """The criterion on a grid of so many samples, with what is known stacked below."""
    stacked = earlier.on_grid(count, duration)
    if options.get("known") is not None:
        stacked = np.vstack([stacked, np.asarray(options["known"], dtype=float)]) if len(stacked) else options["known"]
    return make_criterion(base, name, noise=earlier.noise, **options | {"known": stacked})


def _turning(robot: Robot, held: MotionLimits) -> tuple[str, ...]:
    """A note on joints without stops, which turn half a revolution to both sides."""
    ranges = dict(zip(robot.coordinates, held.upper - held.lower, strict=True))
    turning = [name for name in endless_joints(robot) if ranges[name] <= 2 * np.pi]
    return (
        (f"joints without stops turn at most half a revolution to both sides: {', '.join(turning)}",) if turning else ()
    )


def _roomy_posture(problem: Problem, seed: int) -> Array:
    """The random posture that is furthest from all limits at rest."""
    rng = np.random.default_rng(seed)
    low, high = problem.limits.lower, problem.limits.upper
    postures = low + rng.uniform(0.1, 0.9, (_POSTURES, len(low))) * (high - low)
    rooms = [still.worst(still.resting) for still in (replace(problem, start=q) for q in postures)]
    if max(rooms) < _LEAST_ROOM:
        raise DynidError(
            _no_room(problem, f"the middle of the ranges and {_POSTURES} other postures violate it"), code="infeasible"
        )
    return np.asarray(postures[int(np.argmax(rooms))])


def _sample_count(basis: Basis, parameters: int, joints: int) -> int:
    """Enough samples for the fastest function of the basis, and four times as many rows as parameters."""
    return int(max(100, 10 * basis.size, np.ceil(4 * parameters / joints)))


def _posture(robot: Robot, start: ArrayLike, limits: MotionLimits) -> Array:
    q = np.asarray(start, dtype=float)
    if q.shape != (robot.n,) or not np.all(np.isfinite(q)):
        raise InvalidShape(f"the start posture needs {robot.n} finite numbers, got shape {q.shape}", "start")
    for name, value, low, high in zip(robot.coordinates, q, limits.lower, limits.upper, strict=True):
        if not low <= value <= high:
            raise InvalidValue(
                f"the start posture of '{name}' is {value:g}, outside its range [{low:g}, {high:g}]", "start"
            )
    return q


def _search(problem: Problem, seed: int, budget: int, time_limit: float | None, report: ProgressCallback) -> _Found:
    """The best of several local optima, from the best of many random motions."""
    starts = _candidates(problem, seed)
    value = problem.value(starts[0])
    problem.gradient(starts[0])  # what is compiled here does not count
    report(Progress(f"{_CANDIDATES} random motions, criterion {value:.4f}", 0.0, None, _values(value, value)))
    work = Work(budget, time_limit)
    search = _SearchProgress(report, work, len(starts), value)
    best = starts[0]
    for X in starts:
        if work.ended:
            break
        found = refine(problem, X, work, seen=search.iterated)
        new = problem.value(found)
        if new < value:
            best, value = found, new
        search.ended(new)
    if not np.isfinite(value):
        raise DynidError(
            "no motion of this family excites all base parameters; use more harmonics or waypoints",
            code="not_identifiable",
        )
    if not work.late:
        return _Found(best, ())
    return _Found(best, (f"stopped by the time limit: {search.done} of {len(starts)} motions were refined",))


def _candidates(problem: Problem, seed: int) -> list[Array]:
    """The best of many random motions, the best first."""
    rng = np.random.default_rng(seed)
    motions = []
    for _ in range(_CANDIDATES):
        X = shrunk(problem, _random(problem, rng), _LEAST_ROOM)
        if X is None:
            raise DynidError(_no_room(problem, "the start posture violates it"), "start", code="infeasible")
        motions.append(X)
    order = np.argsort([problem.value(X) for X in motions], kind="stable")
    return [motions[k] for k in order[:_REFINED]]


@dataclass
class _SearchProgress:
    """What is reported while motions are refined one after the other.

    The search ends with the last start or with the budget, whichever comes first.
    """

    report: ProgressCallback
    work: Work
    count: int
    best: float
    done: int = 0

    def __post_init__(self) -> None:
        self._started, self._budget = time.monotonic(), self.work.left

    def iterated(self, value: float) -> None:
        """An iteration of the present start."""
        self._tell(self.done + 1, value)

    def ended(self, value: float) -> None:
        """The end of a start."""
        self.done += 1
        self._tell(self.done, value)

    def _tell(self, start: int, value: float) -> None:
        self.best = min(self.best, value)
        share = min(max(self.done / self.count, 1.0 - self.work.left / self._budget), 1.0)
        left = (time.monotonic() - self._started) * (1.0 / share - 1.0) if share > 0 else None
        message = f"start {start} of {self.count}: criterion {value:.4f}, best {self.best:.4f}"
        self.report(Progress(message, share, left, _values(value, self.best)))


def _values(criterion: float, best: float) -> dict[str, float]:
    return {"criterion": criterion, "best": best}


def _random(problem: Problem, rng: np.random.Generator) -> Array:
    """Random coefficients in units of the limits, about the middle of the ranges."""
    return problem.resting + problem.unit * rng.normal(size=problem.unit.shape)


def _no_room(problem: Problem, posture: str) -> str:
    """The limit that a posture violates at rest, with what is said of the posture."""
    for limit in problem.slacks(problem.resting):
        if limit.slack.min(initial=1.0) < _LEAST_ROOM:
            column = int(np.argmin(limit.slack.min(axis=0)))
            names = problem.criterion.base.robot.coordinates
            where = f" of '{names[column]}'" if limit.kind not in {c.label for c in problem.clearances} else ""
            return f"the {limit.kind} limit{where} leaves no room: {posture} at rest"
    return "the limits leave no room for motion"


def _verified(coarse: Problem, fine: Problem, X: Array, report: ProgressCallback) -> tuple[Array, tuple[str, ...]]:
    """The motion with its limits satisfied on a finer grid, by tighter limits and refinement, or by scaling it down."""
    notes: tuple[str, ...] = ()
    problem = coarse
    for k in range(1, _MOST_TIGHTENINGS + 1):
        labels = {c.label for c in fine.clearances}
        slacks = [(limit.kind in labels, float(limit.slack.min(initial=1.0))) for limit in fine.slacks(X)]
        over = max((-slack for near, slack in slacks if not near), default=0.0)
        close = max((-slack for near, slack in slacks if near), default=0.0)
        if max(over, close) <= 0:
            break
        report(Progress(f"limits exceeded by {100 * max(over, close):.2f} % between grid points: tightened"))
        notes = (f"limits were tightened {k} times because they were exceeded between grid points",)
        problem = replace(
            problem,
            limits=problem.limits.tightened(1.2 * max(over, 0.0)),
            clearance_room=problem.clearance_room + 1.2 * max(close, 0.0),
        )
        inside = shrunk(problem, X)
        if inside is None:
            break
        X = refine(problem, inside, Work(_TIGHTENED))
    held = shrunk(fine, X)
    count = max(fine.samples, int(np.ceil(_CONTROL_RATE * fine.basis.duration)))
    between = replace(fine, samples=count, clearances=())
    if held is not None and between.worst(held) < 0:
        held = shrunk(between, held)
        held = held if held is None or not fine.clearances else shrunk(fine, held)
    if held is None:
        raise DynidError(
            "no motion within the limits was found on the finer grid; give more samples", "samples", code="infeasible"
        )
    return held, notes
