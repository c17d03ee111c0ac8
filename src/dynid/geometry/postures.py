"""Which postures to measure: those that make the tool accurate over a workspace, and how many are enough.

    i: minimise  mean over the workspace of  trace cov e(q),    e of `dynid.geometry.information`

Postures are chosen among random candidates by exchange, then exchanged for others near them, closer and closer. The
smallest number is the first along growing choices that reaches the wanted accuracy.

Sources: Driels and Pathre, Significance of Observation Strategy on the Design of Robot Calibration Experiments (1990);
Sun and Hollerbach, Observability Index Selection for Robot Calibration (2008).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import (
    ConflictingArguments,
    DataError,
    Infeasible,
    InvalidShape,
    InvalidValue,
    MissingArgument,
    TooFew,
    UnknownName,
    keyword,
    named,
    one_of,
)
from dynid.excitation.collision import Collision, Obstacle
from dynid.excitation.limits import stated_limits
from dynid.excitation.problem import Clearance
from dynid.excitation.workspace import KeepIn
from dynid.geometry.candidates import Candidates, Drawn, Visible, labels_of
from dynid.geometry.choice import CRITERIA
from dynid.geometry.information import Information, inform
from dynid.geometry.measurements.measurement import Measurement
from dynid.geometry.posture_plan import PosturePlan
from dynid.geometry.problem import Problem
from dynid.geometry.route import route
from dynid.geometry.unknowns import GeometryModel
from dynid.progress import Progress, ProgressCallback
from dynid.robot.model import Robot
from dynid.robot.parts import checked
from dynid.robot.spatial import placement
from dynid.threads import one_blas_thread

__all__ = ["plan_postures"]

Array = NDArray[np.float64]

# Postures of the workspace, and draws of random candidates for comparison.
_WORKSPACE, _RANDOM = 200, 9
# Numbers of postures grow by this factor along the curve, which ends at this multiple of the number that is wanted.
_FACTOR, _BEYOND = 1.3, 2
# Candidates around each chosen posture, and how far they are over the ranges, in turn.
_AROUND, _SIZES = 15, (0.3, 0.1, 0.03)
# Candidates that may stand between two postures of the path.
_BETWEEN = 300
# Range of a sliding joint without stops (m), and edge and thickness of a floor (m).
_SLIDE, _FLOOR = 1.0, (20.0, 1.0)


def plan_postures(
    robot: Robot,
    measurements: Measurement | Sequence[Measurement],
    count: int | None = None,
    *,
    accuracy: float | None = None,
    criterion: str = "i",
    model: GeometryModel | None = None,
    bodies: Robot | None = None,
    tool: ArrayLike | None = None,
    workspace: ArrayLike | None = None,
    absolute: bool | None = None,
    candidates: int | ArrayLike = 1000,
    reach: ArrayLike | None = None,
    visible: Visible | Sequence[Visible] = (),
    urdf: str | Path | None = None,
    obstacles: Sequence[Obstacle] = (),
    floor: float | None = None,
    clearances: Sequence[Clearance] = (),
    start: ArrayLike | None = None,
    most: int = 200,
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> PosturePlan:
    """Choose the postures of a geometric calibration, before anything is measured.

    Parameters
    ----------
    robot : Robot
        The robot of the file.
    measurements : Measurement or sequence of Measurement
        The sensors, all used at every posture: any instance with the noise and with what is expected of its parts.
        What it measured does not matter. A ball in sockets needs a row for each socket, and their positions (`starts`).
    count : int, optional
        Number of postures; the smallest that reaches `accuracy` if not given.
    accuracy : float, optional
        Wanted 95 % error of the tool (m).
    criterion : {"i", "d", "e", "a"}
        Mean variance of the tool over the workspace, volume of the confidence ellipsoid, smallest eigenvalue of the
        information, or mean variance of the geometric unknowns over what is expected of them.
    model : GeometryModel, optional
        What may differ from the file.
    bodies : Robot, optional
        Robot whose bodies load the joints, the same by default.
    tool : array, shape (3,), optional
        Point of the measured frame that has to be accurate (m). Default: the point that is measured.
    workspace : array, optional
        Box of positions (2, 3) of this point in the base, or postures (W, n), where it has to be accurate. Default:
        wherever it can be.
    absolute : bool, optional
        Count errors in the base of the file, or those that are left after the base is placed best. Default: the former
        if the sensors show how the base stands.
    candidates : int or array, shape (K, n)
        Number of candidate postures, or postures.
    reach : array, shape (2, 3), optional
        Box in the base in which the measured point stays (m).
    visible : callable or sequence of callable
        Which postures (N, n) with placements (N, 4, 4) of the frame can be measured, such as `Sight`.
    urdf : str or Path, optional
        URDF file of the robot, whose collision shapes keep clear of each other, of obstacles and of the floor.
    obstacles : sequence of Obstacle
        Obstacles for these shapes.
    floor : float, optional
        Height in the base (m) below which no joint and no shape of the robot may be.
    clearances : sequence of clearances
        What else postures and moves keep, as for motions.
    start : array, shape (n,), optional
        Posture at which the path begins, zero by default or the nearest one within the ranges.
    most : int
        Largest number of postures that is tried for `accuracy`.
    seed : int
        Seed of all that is random.
    progress : callable, optional
        Called with a `dynid.progress.Progress`.

    Returns
    -------
    PosturePlan

    Raises
    ------
    Infeasible
        If no posture is possible, the workspace cannot be reached, or the accuracy not with any number of postures.
    TooFew
        If there are fewer postures than the unknowns of the sensors need, or fewer candidates than postures.
    MissingArgument
        If neither a number of postures nor an accuracy is given.
    NotApplicable
        For kinds of sensors for which postures cannot be planned.

    Examples
    --------
    >>> import dynid, numpy as np
    >>> from dynid.geometry import Points, plan_postures
    >>> robot = dynid.load_robot("tx40")
    >>> tracker = Points(np.zeros((1, 6)), "link6", points=np.zeros((1, 3)), known=[[0, 0, 0.1]], base=np.eye(4))
    >>> plan = plan_postures(robot, tracker, 12, candidates=100)
    >>> plan.q.shape, bool(plan.accuracy < plan.random[plan.counts == 12][0])
    ((12, 6), True)
    """
    if criterion not in CRITERIA:
        raise UnknownName(f"{named('criterion')} '{criterion}' is unknown: use {one_of(CRITERIA)}")
    _check_wanted(count, accuracy, most)
    rng, report = np.random.default_rng(seed), _Report(progress)
    sensors = (measurements,) if isinstance(measurements, Measurement) else tuple(measurements)
    with one_blas_thread():
        problem = Problem.of(robot, sensors, GeometryModel() if model is None else model, bodies)
        kept, notes = _kept_clear(robot, sensors[0].frame, clearances, urdf, obstacles, floor)
        low, high = _ranges(robot)
        begin = _start(start, low, high)
        source = Candidates(
            problem, low, high, (visible,) if callable(visible) else tuple(visible), kept, _box(reach, "reach"),
            sensors[0].frame, _point(problem, tool), any(m.contact for m in sensors), {},
        )  # fmt: skip
        drawn = _drawn(source, candidates, rng)
        notes += _unreached(problem, drawn)
        report("candidates drawn", 0.15)
        places = _workspace(source, workspace, rng)
        information = inform(problem, drawn, places, None if tool is None else source.point, absolute)
        if not information.absolute and absolute is None:
            notes.append("the sensors do not show how the base stands: errors are counted after it is placed best")
        _check_count(information, problem, count)
        curve = _curve(information, criterion, count, accuracy, most, report)
        random = np.array([_of_random(information, n, rng) for n in curve.counts])
        chosen, last = _moved(source, information, criterion, drawn.some(np.array(curve.chosen)), rng, report)
        report("choice done", 0.9)
        path = route(begin, chosen.q, _velocities(robot), kept, np.vstack([begin, drawn.q[:_BETWEEN]]))
        every = np.arange(len(chosen.q))
        covariance = last.covariance(every)
        order, number = list(path.order), np.argsort(path.order)
        plan = PosturePlan(
            robot=robot.name,
            joints=robot.coordinates,
            q=chosen.q[order],
            labels=_labels(problem, chosen.some(np.array(order))),
            frame=source.frame,
            criterion=criterion,
            value=last.choice(criterion).value(every),
            accuracy=last.accuracy(every),
            absolute=last.absolute,
            counts=np.array(curve.counts),
            accuracies=np.array(curve.accuracies),
            random=random,
            best=information.best,
            points=last.points,
            errors=np.sqrt(np.einsum("wii->w", last.tool_covariances(covariance))),
            unknowns=tuple(u.name for u in problem.unknowns),
            prior_std=np.array([u.std for u in problem.unknowns]),
            std=np.sqrt(np.diag(covariance)) * last.scale,
            path=path.stops,
            stops=np.where(path.posture >= 0, number[path.posture], -1),
            unsafe=tuple((int(number[a]) if a >= 0 else -1, int(number[b])) for a, b in path.unsafe),
            candidates=len(drawn.q),
            notes=tuple(notes),
        )
    report("planned", 1.0)
    return plan


class _Report:
    """Progress with the time that is left, from that which has passed."""

    def __init__(self, callback: ProgressCallback | None) -> None:
        self._callback, self._began = callback, time.perf_counter()

    def __call__(self, message: str, share: float, **values: float) -> None:
        if self._callback is not None:
            left = (time.perf_counter() - self._began) * (1 / share - 1)
            self._callback(Progress(message, share, left, values))


# -- what is asked for ---------------------------------------------------------------------------------


def _check_wanted(count: int | None, accuracy: float | None, most: int) -> None:
    if count is None and accuracy is None:
        raise MissingArgument(
            f"give the number of postures, or the accuracy that is wanted: {keyword('accuracy', 0.0005)} is 0.5 mm",
            "count",
        )
    if count is not None and accuracy is not None:
        raise ConflictingArguments("give either the number of postures or the accuracy that is wanted", "accuracy")
    for name, value in (("count", count), ("most", most)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1):
            raise InvalidValue(f"a number of postures is a whole number from 1, got {value!r:.40}", name)
    if accuracy is not None and not (np.isfinite(accuracy) and accuracy > 0):
        raise InvalidValue(f"the accuracy is a length in metres above zero, got {accuracy}", "accuracy")


def _check_count(information: Information, problem: Problem, count: int | None) -> None:
    """Postures that the unknowns of the sensors need, and candidates."""
    least, have = _least(information, problem), len(information.rows)
    if count is not None and count < least:
        raise TooFew(f"{count} postures cannot show what is unknown of the sensors: take at least {least}", "count")
    if have < max(count or 0, least):
        raise TooFew(f"{max(count or 0, least)} postures cannot be chosen from {have} candidates", "candidates")


def _least(information: Information, problem: Problem) -> int:
    """Least number of postures with as many values as unknowns of which nothing is expected."""
    free = int(np.isinf([u.std for u in problem.unknowns]).sum()) - len(
        problem.ties(np.zeros(len(problem.unknowns)))[0]
    )
    return max(-(-free // information.rows.shape[1]), 1)


def _box(given: ArrayLike | None, name: str) -> Array | None:
    if given is None:
        return None
    box = np.asarray(given, dtype=float)
    if box.shape != (2, 3) or not np.isfinite(box).all():
        raise InvalidShape(f"a box needs two corners of three numbers, got shape {box.shape}", name)
    if np.any(box[0] >= box[1]):
        raise InvalidValue(f"the box is empty along {'xyz'[int(np.argmax(box[0] >= box[1]))]}", name)
    return box


def _point(problem: Problem, tool: ArrayLike | None) -> Array:
    """The point in the measured frame (3,) whose place counts."""
    if tool is not None:
        return checked(tool, (3,), "tool", DataError)
    space, first = problem.space(0, np.zeros(len(problem.unknowns))), problem.measurements[0]
    frame = space.frames[first.frame]
    return np.asarray(frame.rotation[0].T @ (first.point(space).value[0] - frame.origin[0]))


def _ranges(robot: Robot) -> tuple[Array, Array]:
    """Position ranges of the joints; a turn or a slide to both sides where there are none."""
    limits = stated_limits(robot)
    return np.where(np.isfinite(limits.lower), limits.lower, -_SLIDE), np.where(
        np.isfinite(limits.upper), limits.upper, _SLIDE
    )


def _velocities(robot: Robot) -> Array:
    """Velocities of the joints, 1 where none is stated."""
    velocities = np.array([robot.limits[name].velocity for name in robot.coordinates])
    return np.where(np.isfinite(velocities) & (velocities > 0), velocities, 1.0)


def _start(given: ArrayLike | None, low: Array, high: Array) -> Array:
    if given is None:
        return np.clip(np.zeros(len(low)), low, high)
    begin = np.asarray(given, dtype=float)
    if begin.shape != low.shape or not np.all((begin >= low) & (begin <= high)):
        raise InvalidValue(f"the start posture needs {len(low)} numbers within the joints' ranges", "start")
    return begin


def _kept_clear(
    robot: Robot,
    frame: str,
    given: Sequence[Clearance],
    urdf: str | Path | None,
    obstacles: Sequence[Obstacle],
    floor: float | None,
) -> tuple[tuple[Clearance, ...], list[str]]:
    """What postures keep, and what is not checked."""
    kept, around = list(given), list(obstacles)
    if floor is not None:
        ends = dict.fromkeys([*(link.name for link in robot.links[1:]), frame])
        kept += [KeepIn(robot, end, lower=(-np.inf, -np.inf, floor), label="floor") for end in ends]
        edge, depth = _FLOOR
        around.append(Obstacle("floor", "box", (edge, edge, depth), placement(translation=(0, 0, floor - depth / 2))))
    if urdf is None and not obstacles:
        known = any(isinstance(x, Collision) for x in given)
        return tuple(kept), [] if known else ["collision is not checked: no file with shapes of the links is given"]
    try:
        return (*kept, Collision(robot, urdf, obstacles=around)), []
    except MissingArgument as error:
        if obstacles:
            raise
        return tuple(kept), [f"collision is not checked: {error}"]


# -- candidates ----------------------------------------------------------------------------------------


def _drawn(source: Candidates, given: int | ArrayLike, rng: np.random.Generator) -> Drawn:
    """Candidates that can be measured."""
    n = len(source.lower)
    if isinstance(given, int | np.integer):
        if given < 1:
            raise InvalidValue(f"at least one candidate is needed, got {given}", "candidates")
        drawn, tried = source.drawn(int(given), rng), "random"
    else:
        q = np.atleast_2d(np.asarray(given, dtype=float))
        if q.shape[1] != n or not np.isfinite(q).all():
            raise InvalidShape(f"candidates need {n} joint positions each, got shape {q.shape}", "candidates")
        rows = [labels_of(m)[1] for m in source.problem.measurements]
        drawn = source.possible(Drawn(q, tuple(x[np.arange(len(q)) % len(x)] for x in rows)))
        tried = "given"
    if not len(drawn.q):
        worst = max(source.refused, key=lambda why: source.refused[why], default="are not possible")
        raise Infeasible(f"no posture can be measured: {source.refused.get(worst, 0)} {tried} postures {worst}")
    return drawn


def _unreached(problem: Problem, drawn: Drawn) -> list[str]:
    """Labels without a candidate, in words."""
    out = []
    for m, like in zip(problem.measurements, drawn.like, strict=True):
        names, rows = labels_of(m)
        for row in sorted(set(rows.tolist()) - set(like.tolist())):
            where = ", ".join(f"{name} {getattr(m, name)[row]}" for name in names) or f"place {m.place[row]}"
            out.append(f"no posture was found for {where} of {m.name}")
    return out


def _workspace(source: Candidates, given: ArrayLike | None, rng: np.random.Generator) -> Array:
    """Postures (W, n) at which the tool has to be accurate."""
    n = len(source.lower)
    whole = replace(source, visible=(), contact=False, reach=None, refused={})
    if given is not None:
        space = np.asarray(given, dtype=float)
        if space.shape != (2, 3):
            if space.ndim != 2 or space.shape[1] != n or not len(space) or not np.isfinite(space).all():
                raise InvalidShape(
                    f"a workspace is a box of shape (2, 3) or postures of {n} joints, got shape {space.shape}",
                    "workspace",
                )
            return space
        whole = replace(whole, reach=_box(space, "workspace"))
    found = whole.drawn(_WORKSPACE, rng).q
    if not len(found):
        raise Infeasible("no posture reaches the workspace: give another box", "workspace")
    return found


# -- choice --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Curve:
    """Numbers of postures, the accuracy of each, and the chosen candidates of the wanted one."""

    counts: list[int]
    accuracies: list[float]
    chosen: list[int]


def _curve(
    information: Information, criterion: str, count: int | None, accuracy: float | None, most: int, report: _Report
) -> _Curve:
    """Choices of growing numbers, to twice the wanted one or until the accuracy is reached."""
    choice, least = information.choice(criterion), _least(information, information.problem)
    most = min(len(information.rows), most if count is None else _BEYOND * count)
    if accuracy is not None:
        best = information.best
        if best > accuracy:
            raise Infeasible(
                f"no number of postures reaches {_mm(accuracy)}: these sensors leave {_mm(best)}", "accuracy"
            )
    counts = _ladder(least, most, count)
    found: list[tuple[int, list[int], float]] = []

    def grow(which: list[int], n: int) -> tuple[int, list[int], float]:
        better = choice.exchanged(choice.grown(which, n))
        value = information.accuracy(better)
        report(f"{n} postures", 0.15 + 0.5 * min(n / most, 1.0) ** 2, accuracy=value)
        return n, better, value

    for n in counts:
        found.append(grow(found[-1][1] if found else [], n))
        if accuracy is not None and found[-1][2] <= accuracy:
            break
    if accuracy is not None:
        if found[-1][2] > accuracy:
            raise Infeasible(
                f"{found[-1][0]} postures leave {_mm(found[-1][2])} and no number of them less than {_mm(best)}: "
                f"{_mm(accuracy)} needs more postures or a better sensor",
                "accuracy",
            )
        # One by one from the last number that was too small.
        last = found.pop()
        while len(found) and found[-1][0] < last[0] - 1 and found[-1][2] > accuracy:
            found.append(grow(found[-1][1], found[-1][0] + 1))
        if not found or found[-1][2] > accuracy:
            found.append(last)
    chosen = next(which for n, which, _ in found if n == (count or found[-1][0]))
    return _Curve([n for n, *_ in found], [value for *_, value in found], chosen)


def _ladder(least: int, most: int, count: int | None) -> list[int]:
    """Numbers from the least to the most, the wanted one among them."""
    out = [least]
    while out[-1] < most:
        out.append(min(max(out[-1] + 1, int(_FACTOR * out[-1])), most))
    return sorted({*out, *(() if count is None else (count,))})


def _mm(length: float) -> str:
    return f"{1e3 * length:.3g} mm"


def _of_random(information: Information, count: int, rng: np.random.Generator) -> float:
    """Median accuracy of random candidates."""
    sets = (rng.permutation(len(information.rows))[:count] for _ in range(_RANDOM))
    return float(np.median([information.accuracy(which) for which in sets]))


def _moved(
    source: Candidates,
    information: Information,
    criterion: str,
    chosen: Drawn,
    rng: np.random.Generator,
    report: _Report,
) -> tuple[Drawn, Information]:
    """The chosen postures exchanged for others near them, and their information."""
    count = len(chosen.q)
    for k, size in enumerate(_SIZES):
        near = chosen.and_also(source.near(chosen, _AROUND, size, rng))
        local = information.with_candidates(near)
        chosen = near.some(np.array(local.choice(criterion).exchanged(range(count))))
        report("postures moved", 0.65 + 0.25 * (k + 1) / len(_SIZES))
    return chosen, information.with_candidates(chosen)


def _labels(problem: Problem, drawn: Drawn) -> dict[str, tuple[str, ...]]:
    """Labels of postures that are not the same for all."""
    out: dict[str, tuple[str, ...]] = {}
    for m, like in zip(problem.measurements, drawn.like, strict=True):
        out |= {name: tuple(getattr(m, name)[like].tolist()) for name in labels_of(m)[0]}
    return out
