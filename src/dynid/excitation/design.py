"""The designer: many random motions are scored, the best few refined, and the best of those held against its limits."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from dynid.errors import DataError, DynidError, did_you_mean
from dynid.excitation.basis import Basis, BSpline, CubicSpline, Fourier, FourierQuintic, PointToPoint, at_rest
from dynid.excitation.criteria import make_criterion
from dynid.excitation.excitation import Excitation
from dynid.excitation.limits import MotionLimits, motion_limits
from dynid.excitation.problem import AnyClearance, Problem
from dynid.excitation.room import check_duration, check_torque_model
from dynid.excitation.search import refine, shrunk
from dynid.parameters.base import base_parameters
from dynid.robot.model import Robot

__all__ = ["FAMILIES", "design_excitation", "make_family"]

Array = NDArray[np.float64]
Progress = Callable[[str], None]

# A grid misses the peaks between its points; limits are this much tighter during the search.
_TIGHT = 0.01
# And clearances this much wider, in their own unit: postures between grid points may come closer.
_ROOM = 0.2
_FINE = 10
_CANDIDATES = 60
_REFINED = 20
_MOST_TIGHTENINGS = 5


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
    """A basis by name: `size` harmonics, spline segments or waypoints."""
    if not isinstance(family, str):
        return family
    if family not in FAMILIES:
        raise DataError(f"family '{family}' is unknown: use {', '.join(FAMILIES)}{did_you_mean(family, FAMILIES)}")
    return FAMILIES[family](duration, size)


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
    clearances: Sequence[AnyClearance] = (),
    channels: str | Sequence[str] | None = None,
    budget: float = 30.0,
    seed: int = 0,
    samples: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Excitation:
    """A motion within all limits that tells most about the base parameters, found within `budget` seconds.

    `family` is one of fourier (starts and ends at rest), fourier-free, fourier-quintic, b-spline, cubic, quintic,
    trapezoid, double-s, postures, or a basis; `size` its harmonics, segments or waypoints. `criterion` and `options`
    are those of `make_criterion`, `noise` the deviation of each channel. `channels` are those that will be measured: by
    default joint torques, or the base wrench of an instrumented base. `limits` add to those of the robot's file. The
    motion begins at posture `start` (n,), where it is given. The same seed gives the same motion unless the budget cuts
    in.
    """
    began = time.monotonic()
    if not budget > 0:
        raise DataError(f"the budget must be a positive number of seconds, got {budget}")
    basis = make_family(family, duration, size)
    held = limits if isinstance(limits, MotionLimits) else motion_limits(robot, limits)
    check_duration(robot, held, basis.duration)
    check_torque_model(robot, None if isinstance(limits, MotionLimits) else limits)
    if robot.base == "floating":
        raise DataError(
            "motions are designed for robots whose base stands still; stand this one on a foot (dynid.excitation.stand_on), or "
            "fix its base"
        )
    base = base_parameters(robot, channels=channels or ("torque" if robot.base == "fixed" else "wrench"))
    goal = make_criterion(base, criterion, noise=noise, **options)
    count = samples or _sample_count(basis, base.count, robot.n)
    labels = [c.label for c in clearances]
    if len(set(labels)) < len(labels):
        raise DataError(f"clearances need different labels, got {', '.join(labels)}")
    posture = None if start is None else _posture(robot, start, held)
    coarse = Problem(basis, goal, held.tightened(_TIGHT), count, tuple(clearances), posture, _ROOM)
    fine = replace(coarse, limits=held, samples=_FINE * count, clearance_room=0.0)
    say = progress or (lambda line: None)
    with threadpool_limits(1, "blas"):
        best = _search(coarse, seed, began + budget, say)
        best, tightened = _verified(coarse, fine, best, began + budget, say)
    return Excitation(
        robot=robot,
        basis=basis,
        coefficients=best,
        limits=held,
        criterion=goal,
        clearances=tuple(clearances),
        seconds=time.monotonic() - began,
        notes=tightened,
        samples=count,
    )


def _sample_count(basis: Basis, parameters: int, joints: int) -> int:
    """Enough samples for the fastest function of the basis, and four times as many rows as parameters."""
    return int(max(100, 10 * basis.size, np.ceil(4 * parameters / joints)))


def _posture(robot: Robot, start: ArrayLike, limits: MotionLimits) -> Array:
    q = np.asarray(start, dtype=float)
    if q.shape != (robot.n,) or not np.all(np.isfinite(q)):
        raise DataError(f"the start posture needs {robot.n} finite numbers, got shape {q.shape}")
    for name, value, low, high in zip(robot.coordinates, q, limits.lower, limits.upper, strict=True):
        if not low <= value <= high:
            raise DataError(f"the start posture of '{name}' is {value:g}, outside its range [{low:g}, {high:g}]")
    return q


def _search(problem: Problem, seed: int, deadline: float, say: Progress) -> Array:
    """The best of several local optima, from the best of many random motions."""
    rng = np.random.default_rng(seed)
    scored: list[tuple[float, int, Array]] = []
    while len(scored) < _CANDIDATES:
        X = shrunk(problem, _random(problem, rng), 0.02)
        if X is None:
            raise DynidError(_no_room(problem))
        scored.append((problem.value(X), len(scored), X))
        if time.monotonic() > deadline and scored:
            break
    scored.sort(key=lambda entry: entry[:2])
    best, value = scored[0][2], scored[0][0]
    say(f"{len(scored)} random motions: criterion {value:.4f}")
    for k, (_, _, X) in enumerate(scored[:_REFINED], start=1):
        if time.monotonic() > deadline:
            break
        found = refine(problem, X, deadline)
        new = problem.value(found)
        if new < value:
            best, value = found, new
        left = max(deadline - time.monotonic(), 0.0)
        say(f"start {k} of {_REFINED}: {new:.4f}, best {value:.4f}, {left:.0f} s left")
    if not np.isfinite(value):
        raise DynidError("no motion of this family shows all base parameters; use more harmonics or waypoints")
    return best


def _random(problem: Problem, rng: np.random.Generator) -> Array:
    """Random coefficients in units of the limits, about the middle of the ranges."""
    return problem.resting + problem.unit * rng.normal(size=problem.unit.shape)


def _no_room(problem: Problem) -> str:
    """Which limit already forbids standing still in the middle."""
    for limit in problem.slacks(problem.resting):
        if limit.slack.min(initial=1.0) < 0.02:
            column = int(np.argmin(limit.slack.min(axis=0)))
            names = problem.criterion.base.robot.coordinates
            where = f" of '{names[column]}'" if limit.kind not in {c.label for c in problem.clearances} else ""
            return f"the {limit.kind} limit{where} leaves no room: the middle of the ranges breaks it at rest"
    return "the limits leave no room for motion about the middle of the ranges"


def _verified(
    coarse: Problem, fine: Problem, X: Array, deadline: float, say: Progress
) -> tuple[Array, tuple[str, ...]]:
    """The motion with its limits held on a grid ten times finer: tightened and refined again, or drawn together."""
    notes: tuple[str, ...] = ()
    problem = coarse
    for k in range(1, _MOST_TIGHTENINGS + 1):
        labels = {c.label for c in fine.clearances}
        slacks = [(limit.kind in labels, float(limit.slack.min(initial=1.0))) for limit in fine.slacks(X)]
        over = max((-slack for near, slack in slacks if not near), default=0.0)
        close = max((-slack for near, slack in slacks if near), default=0.0)
        if max(over, close) <= 0 or time.monotonic() > deadline:
            break
        say(f"limits are broken by {100 * max(over, close):.2f} % between grid points: tightened")
        notes = (f"limits were tightened {k} times because they were broken between grid points",)
        problem = replace(
            problem,
            limits=problem.limits.tightened(1.2 * max(over, 0.0)),
            clearance_room=problem.clearance_room + 1.2 * max(close, 0.0),
        )
        inside = shrunk(problem, X)
        if inside is None:
            break
        X = refine(problem, inside, deadline, iterations=20)
    held = shrunk(fine, X)
    if held is None:
        raise DynidError("no motion within the limits was found in time; give a larger budget")
    return held, notes
