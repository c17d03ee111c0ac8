"""Hypotheses about what is wrong with measurements of geometry, each as a change that can be fitted.

What is discrete (signs, order, units, rows, names) changes the measurements. Whether such a change pays is seen from
the registration alone, relaxed to a linear regression,

    y_m = B p(q) + G_m vec R(q) + t_m    for markers,        p(q) + R(q) b = s    for a ball in sockets,

which needs no start and holds for any placement of base and markers. What is small adds columns to the derivatives:
those of a part of the sensor from some posture on, or growing with time; those of zeros by the direction from which a
joint came.

Source: own derivation; the regression is the lifted form of the registration of Kabsch (1976).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.frames import frame_placement
from dynid.errors import DynidError
from dynid.geometry.evidence import Columns, Fit
from dynid.geometry.measurements.measurement import Measurement
from dynid.geometry.measurements.points import Points
from dynid.geometry.measurements.sockets import Sockets
from dynid.geometry.problem import Problem, Rows
from dynid.geometry.tangents import rotations
from dynid.geometry.unknowns import GeometryModel, UnknownKind
from dynid.robot.model import Robot

__all__ = [
    "Family",
    "GeometryCauseCode",
    "Suspect",
    "changed_positions",
    "families",
    "relabelled",
    "rescaled",
    "swapped_markers",
]

Array = NDArray[np.float64]
Repair = Callable[[Array], tuple[Measurement, ...]]


class GeometryCauseCode(StrEnum):
    """Stable code of a cause of wrong measurements of geometry."""

    MARKERS_SWAPPED = "markers_swapped"
    JOINT_SIGN = "joint_sign"
    JOINT_ORDER = "joint_order"
    DEGREES = "degrees"
    JOINT_ZERO = "joint_zero"
    MOVED = "moved"
    SOCKET_DISTANCE = "socket_distance"
    SOCKET_LABEL = "socket_label"
    LOOSE = "loose"
    BACKLASH = "backlash"
    DRIFT = "drift"
    SCALE = "scale"
    ROWS_SHIFTED = "rows_shifted"
    JOINT_STUCK = "joint_stuck"
    OUTLIERS = "outliers"
    UNKNOWN = "unknown"


C = GeometryCauseCode
# Expected sizes: motion of what came loose or moved (m, rad), drift, backlash (rad), scale, distance (m).
_MOVED, _DRIFT, _BACKLASH, _SCALE, _DISTANCE = 2e-2, 3e-3, 2e-3, 2e-2, 1e-2
# Postures on each side of a change, and places of a change that are tried.
_SIDE, _PLACES = 4, 120
# Equal readings one after another from which a joint counts as stuck.
_STUCK = 4
# Motion (rad) of a reading by one step of its search.
_TURN = 0.5
# Discrete changes one after another, and share of the error that each must take away.
_DEPTH, _WORTH = 3, 0.8


@dataclass(frozen=True, eq=False)
class Suspect:
    """One hypothesis.

    Attributes
    ----------
    code : GeometryCauseCode
        What it is.
    words : str or callable
        What it is in words; a function of the fitted sizes.
    chance : float
        Log of the number of its like.
    measurements : tuple of Measurement, optional
        The measurements without the fault, where the fault is discrete.
    make : callable, optional
        Columns of its unknowns.
    std : ndarray
        Their expected sizes.
    unit : str
        Their unit.
    advice : str
        What to do.
    repair : callable, optional
        Measurements without the fault, from fitted sizes.
    moved : callable, optional
        Measurements moved by fitted sizes, for unknowns that are far from linear.
    """

    code: GeometryCauseCode
    words: str | Callable[[Array], str]
    chance: float
    advice: str
    measurements: tuple[Measurement, ...] | None = None
    make: Callable[[Sequence[Rows], Array], Columns] | None = None
    std: Array = field(default_factory=lambda: np.zeros(0))
    unit: str = ""
    repair: Repair | None = None
    moved: Callable[[Array, tuple[Measurement, ...]], tuple[Measurement, ...]] | None = None


@dataclass(frozen=True, eq=False)
class Family:
    """Hypotheses of one kind whose columns are compared by one linear step."""

    members: tuple[Suspect, ...]


# -- what is small: columns ---------------------------------------------------------------------------


def families(fit: Fit) -> Iterator[Family]:
    """Every family of small faults at the fit of the measurements as they are."""
    problem = fit.problem
    for k, m in enumerate(problem.measurements):
        fixed, carried = _parts(problem, k)
        for what, names in fixed:
            yield from _changes(problem, k, C.MOVED, what, names)
            yield Family((_drifting(problem, k, what, names),))
        for what, names in carried:
            yield from _changes(problem, k, C.LOOSE, what, names)
        if isinstance(m, Points):
            yield Family((_scaled(problem, k),))
        if isinstance(m, Sockets) and m.distances_known:
            yield Family(tuple(_distances(problem, k)))
        yield from _stuck(problem, k)
    zeros = _zeros(problem)
    if zeros:
        yield Family(tuple(_playing(problem, [j]) for j in zeros))
        yield Family((_warming(problem, list(zeros)),))


def _parts(problem: Problem, k: int) -> tuple[list[tuple[str, list[str]]], list[tuple[str, list[str]]]]:
    """Parts of a sensor that stand in the world, and those on the robot, each with how to call them."""
    m, names = problem.measurements[k], list(problem.places[k])
    if isinstance(m, Points):
        marks = [(x, [x]) for x in m.markers]
        whole = [("the tool with its markers", list(m.markers))] if len(m.markers) > 1 else []
        return [("the base or the tracker", ["base"])], marks + whole
    if isinstance(m, Sockets):
        return [("the base or the sockets", [n for n in names if n != "ball"])], [("the ball", ["ball"])]
    return [(f"{name} of {m.name}", [name]) for name in names], []


def _columns(problem: Problem, k: int, names: Sequence[str], factor: Array) -> _Make:
    """Columns of parts of a sensor times one factor per posture."""
    where = np.concatenate([np.arange(len(problem.unknowns))[problem.places[k][n][1]] for n in names])

    def make(rows: Sequence[Rows], ties: Array) -> Columns:
        own = [np.zeros((*r.seen.shape, len(where))) for r in rows]
        own[k] = rows[k].slope[..., where] * factor[:, None, None]
        return Columns(tuple(own), np.zeros((len(ties), len(where))))

    return make


_Make = Callable[[Sequence[Rows], Array], Columns]


def _changes(problem: Problem, k: int, code: GeometryCauseCode, what: str, names: list[str]) -> Iterator[Family]:
    """Parts of a sensor that moved before some posture, one member per place of the change."""
    m = problem.measurements[k]
    n = len(m.q)
    if n < 3 * _SIDE:
        return
    at = np.unique(np.linspace(_SIDE, n - _SIDE, min(_PLACES, n - 2 * _SIDE + 1)).astype(int))
    size = sum(problem.places[k][x][0].size for x in names)
    std = np.full(size, _MOVED)
    advice = (
        "fasten it and measure again, or give the postures before and from there on as two measurements"
        if code is C.MOVED
        else "fasten it and measure again, or give it another name from this posture on"
    )
    members = []
    for i in at.tolist():
        after = (np.arange(n) >= i).astype(float)
        members.append(
            Suspect(
                code,
                partial(_moved_words, what, i),
                float(np.log(len(at))),
                advice,
                make=_columns(problem, k, names, after),
                std=std,
                unit="m",
                repair=partial(_parted, problem, k, names, i),
            )
        )
    yield Family(tuple(members))


def _moved_words(what: str, at: int, size: Array) -> str:
    return f"{what} moved by {1e3 * _length(size):.2g} mm before posture {at}"


def _length(size: Array) -> float:
    return float(np.linalg.norm(size[:3]))


def _parted(problem: Problem, k: int, names: Sequence[str], at: int, size: Array) -> tuple[Measurement, ...]:
    """Measurements in which parts of a sensor are others from a posture on."""
    given, m = list(problem.measurements), problem.measurements[k]
    after = np.arange(len(m.q)) >= at
    if isinstance(m, Points) and "base" not in names:
        mine = np.array([m.markers.index(x) for x in names])
        old, new = m.points.copy(), m.points[:, mine].copy()
        old[np.ix_(after, mine)] = np.nan
        new[~after] = np.nan
        known = None if m.known is None else np.vstack([m.known, m.known[mine]])
        more = tuple(f"{x} from posture {at}" for x in names)
        given[k] = replace(m, points=np.concatenate([old, new], axis=1), markers=(*m.markers, *more), known=known)
    elif isinstance(m, Sockets) and "ball" not in names:
        other = np.where(after, np.char.add(m.socket, f" from posture {at}"), m.socket)
        distances = dict(m.distances_known)
        for (a, b), d in m.distances_known.items():
            distances[f"{a} from posture {at}", f"{b} from posture {at}"] = d
        there = {str(x) for x in other}
        given[k] = replace(
            m, socket=other, distances_known={pair: d for pair, d in distances.items() if set(pair) <= there}
        )
    else:
        given[k : k + 1] = [m.some(~after), replace(m.some(after), name=f"{m.name} from posture {at}")]
    return tuple(given)


def _time(n: int) -> Array:
    return np.linspace(-0.5, 0.5, n)


def _drifting(problem: Problem, k: int, what: str, names: list[str]) -> Suspect:
    t = _time(len(problem.measurements[k].q))
    size = sum(problem.places[k][x][0].size for x in names)
    return Suspect(
        C.DRIFT,
        lambda size: f"{what} drifted by {1e3 * _length(size):.2g} mm from the first posture to the last",
        np.log(2),
        "let the robot and the sensor warm up first, and measure postures in random order",
        make=_columns(problem, k, names, t),
        std=np.full(size, _DRIFT),
        unit="m",
        repair=(lambda size: _steady(problem, k, size, t)) if isinstance(problem.measurements[k], Points) else None,
    )


def _steady(problem: Problem, k: int, size: Array, t: Array) -> tuple[Measurement, ...]:
    """Points without the drift of the base in the tracker."""
    m = problem.measurements[k]
    assert isinstance(m, Points)
    middle = np.eye(4) if m.base is None else m.base
    back = rotations(-t[:, None] * size[3:])
    points = middle[:3, 3] + np.einsum("nij,nmj->nmi", back, m.points - middle[:3, 3] - t[:, None, None] * size[:3])
    given = list(problem.measurements)
    given[k] = replace(m, points=points)
    return tuple(given)


def _scaled(problem: Problem, k: int) -> Suspect:
    m = problem.measurements[k]
    assert isinstance(m, Points)
    middle = np.nanmean(m.points, axis=(0, 1))
    seen = np.where(np.isfinite(m.points), m.points - middle, 0.0).reshape(len(m.q), -1)

    def make(rows: Sequence[Rows], ties: Array) -> Columns:
        own = [np.zeros((*r.seen.shape, 1)) for r in rows]
        # Predicted positions: noise of measured ones would pull the scale down.
        own[k] = -(seen / m.std + rows[k].residual)[..., None]
        return Columns(tuple(own), np.zeros((len(ties), 1)))

    def repair(size: Array) -> tuple[Measurement, ...]:
        given = list(problem.measurements)
        given[k] = replace(m, points=m.points * (1 + size[0]))
        return tuple(given)

    return Suspect(
        C.SCALE,
        lambda size: f"positions of {m.name} are {100 * abs(size[0]):.2g} % too {'short' if size[0] > 0 else 'long'}",
        0.0,
        "calibrate the scale of the tracker with a length that is known, or correct its unit",
        make=make,
        std=np.array([_SCALE]),
        unit="of the length",
        repair=repair,
    )


def _distances(problem: Problem, k: int) -> Iterator[Suspect]:
    m = problem.measurements[k]
    assert isinstance(m, Sockets)
    before = sum(len(x.distances_known) for x in problem.measurements[:k] if isinstance(x, Sockets))
    for i, ((a, b), d) in enumerate(m.distances_known.items()):

        def make(rows: Sequence[Rows], ties: Array, i: int = i) -> Columns:
            on = np.zeros((len(ties), 1))
            on[before + i] = -1 / m.distance_std
            return Columns(tuple(np.zeros((*r.seen.shape, 1)) for r in rows), on)

        def repair(size: Array, a: str = a, b: str = b, d: float = d) -> tuple[Measurement, ...]:
            given = list(problem.measurements)
            given[k] = replace(m, distances_known={**m.distances_known, (a, b): d + float(size[0])})
            return tuple(given)

        yield Suspect(
            C.SOCKET_DISTANCE,
            partial(_distance_words, a, b, d),
            float(np.log(len(m.distances_known))),
            "measure this distance again, or leave it out",
            make=make,
            std=np.array([_DISTANCE]),
            unit="m",
            repair=repair,
        )


def _distance_words(a: str, b: str, d: float, size: Array) -> str:
    return f"the distance of sockets {a} and {b} is {1e3 * (d + size[0]):.5g} mm, not {1e3 * d:.5g} mm"


def _zeros(problem: Problem) -> dict[int, int]:
    """Column of the zero of each independent joint that has one."""
    robot = problem.geometry.robot
    number = {name: i for i, name in enumerate(robot.coordinates)}
    return {
        number[u.owner]: k
        for k, u in enumerate(problem.unknowns)
        if u.kind in (UnknownKind.ZERO, UnknownKind.SLIDE_ZERO) and u.owner in number
    }


def _of_zeros(problem: Problem, joints: Sequence[int], factors: Sequence[Array]) -> _Make:
    """Columns of the zeros of joints, times one factor (N, joints) per posture of each sensor."""
    where = [_zeros(problem)[j] for j in joints]

    def make(rows: Sequence[Rows], ties: Array) -> Columns:
        own = tuple(r.slope[..., where] * f[:, None, :] for r, f in zip(rows, factors, strict=True))
        return Columns(own, np.zeros((len(ties), len(where))))

    return make


def _with_positions(problem: Problem, q: Sequence[Array]) -> tuple[Measurement, ...]:
    return tuple(replace(m, q=x) for m, x in zip(problem.measurements, q, strict=True))


def directions(q: Array) -> Array:
    """Sign (N, n) of the last motion of each joint before a posture, zero before its first."""
    out = np.zeros_like(q)
    for i in range(1, len(q)):
        moved = q[i] - q[i - 1]
        out[i] = np.where(moved != 0, np.sign(moved), out[i - 1])
    return out


def _shifted_zeros(
    problem: Problem, joints: Sequence[int], factors: Sequence[Array], size: Array
) -> tuple[Measurement, ...]:
    q = [m.q.copy() for m in problem.measurements]
    for x, f in zip(q, factors, strict=True):
        x[:, list(joints)] += f * size
    return _with_positions(problem, q)


def _playing(problem: Problem, joints: list[int]) -> Suspect:
    factors = [0.5 * directions(m.q)[:, joints] for m in problem.measurements]
    name = problem.geometry.robot.coordinates[joints[0]]
    return Suspect(
        C.BACKLASH,
        lambda size: f"'{name}' stands {1e3 * abs(size[0]):.2g} mrad apart when it comes from one side or the other",
        float(np.log(problem.geometry.robot.n)),
        "approach every posture from the same side, and check the gear and the bearing of this joint",
        make=_of_zeros(problem, joints, factors),
        std=np.full(1, _BACKLASH),
        unit="rad",
        repair=lambda size: _shifted_zeros(problem, joints, factors, size),
    )


def _warming(problem: Problem, joints: list[int]) -> Suspect:
    factors = [np.tile(_time(len(m.q))[:, None], (1, len(joints))) for m in problem.measurements]
    names = [problem.geometry.robot.coordinates[j] for j in joints]
    return Suspect(
        C.DRIFT,
        lambda size: (
            f"the zero of '{names[int(np.argmax(np.abs(size)))]}' drifted by {1e3 * np.abs(size).max():.2g} mrad from "
            "the first posture to the last"
        ),
        np.log(2),
        "let the robot and the sensor warm up first, and measure postures in random order",
        make=_of_zeros(problem, joints, factors),
        std=np.full(len(joints), _BACKLASH),
        unit="rad",
        repair=lambda size: _shifted_zeros(problem, joints, factors, size),
    )


def _stuck(problem: Problem, k: int) -> Iterator[Family]:
    """Readings of a joint that stay the same while others move."""
    m, zeros = problem.measurements[k], _zeros(problem)
    moves = np.ptp(m.q, axis=0) > 0
    for j in zeros:
        same = np.concatenate([[False], m.q[1:, j] == m.q[:-1, j]])
        runs = np.split(np.arange(len(same)), np.flatnonzero(~same))
        run = max(runs, key=len)
        if len(run) < _STUCK or np.delete(moves, j).sum() == 0:
            continue
        rows = run[1:]
        name = problem.geometry.robot.coordinates[j]

        def make(all_rows: Sequence[Rows], ties: Array, j: int = j, rows: NDArray[np.intp] = rows) -> Columns:
            own = [np.zeros((*r.seen.shape, len(rows))) for r in all_rows]
            own[k][rows, :, np.arange(len(rows))] = all_rows[k].slope[rows, :, zeros[j]]
            return Columns(tuple(own), np.zeros((len(ties), len(rows))))

        def repair(size: Array, rows: NDArray[np.intp] = rows) -> tuple[Measurement, ...]:
            given = list(problem.measurements)
            given[k] = m.some(np.setdiff1d(np.arange(len(m.q)), rows))
            return tuple(given)

        def moved(
            size: Array, given: tuple[Measurement, ...], j: int = j, rows: NDArray[np.intp] = rows
        ) -> tuple[Measurement, ...]:
            q = given[k].q.copy()
            q[rows, j] += np.clip(size, -_TURN, _TURN)
            return (*given[:k], replace(given[k], q=q), *given[k + 1 :])

        yield Family(
            (
                Suspect(
                    C.JOINT_STUCK,
                    f"'{name}' reads the same from posture {run[0]} to {run[-1]} although it moved",
                    float(np.log(len(zeros))),
                    "record its position anew, or leave these postures out",
                    make=make,
                    std=np.ones(len(rows)),
                    unit="rad",
                    repair=repair,
                    moved=moved,
                ),
            )
        )


# -- what is discrete: changed measurements -----------------------------------------------------------


def _relaxed(robot: Robot, given: Sequence[Measurement], q: Sequence[Array], slowly: bool) -> tuple[float, float]:
    """Log of the squared error of the relaxed registration times its numbers, summed over sensors, and numbers."""
    total, numbers = 0.0, 0.0
    for m, x in zip(given, q, strict=True):
        errors = _relaxed_errors(robot, m, x)
        if errors is None and slowly:
            errors = _registered_errors(robot, m, x)
        if errors is not None:
            total += len(errors) * 3 * float(np.log(max(float((errors**2).sum(1).mean()), 1e-16)))
            numbers += 3 * len(errors)
    return total, numbers


def _relaxed_errors(robot: Robot, m: Measurement, q: Array) -> Array | None:
    """Errors (K, 3) of the relaxed registration; None for sensors that have none."""
    if not isinstance(m, Points | Sockets):
        return None
    placed = frame_placement(robot, q, m.frame)
    p, R = placed[:, :3, 3], placed[:, :3, :3]
    if isinstance(m, Points):
        columns = np.column_stack([p, R.reshape(len(p), 9), np.ones(len(p))])
        out = []
        for y in np.moveaxis(m.points, 1, 0):
            seen = np.isfinite(y).all(1)
            basis = _basis(columns[seen])
            out.append(y[seen] - basis @ (basis.T @ y[seen]))
        return np.concatenate(out)
    socket = (m.socket[:, None] == np.array(m.sockets)).astype(float)
    A = np.concatenate([R, -np.einsum("ns,ij->nijs", socket, np.eye(3)).reshape(len(p), 3, -1)], axis=2)
    flat, y = A.reshape(3 * len(p), -1), p.ravel()
    basis = _basis(flat)
    return np.asarray((y - basis @ (basis.T @ y)).reshape(-1, 3))


def _registered_errors(robot: Robot, m: Measurement, q: Array) -> Array | None:
    """Errors (N, r) with the starts that a sensor finds from the robot's file; None where it finds none."""
    try:
        problem = Problem.of(robot, [replace(m, q=q)], GeometryModel.only("zero"))
        errors = problem.rows(np.zeros(len(problem.unknowns)))[0].residual
    except (DynidError, np.linalg.LinAlgError):
        return None
    return errors if np.isfinite(errors).all() else None


def _basis(columns: Array) -> Array:
    u, s, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(u[:, s > 1e-9 * s[0]])


@dataclass(frozen=True, eq=False)
class _Change:
    """One discrete change of joint positions."""

    code: GeometryCauseCode
    words: str
    advice: str
    act: Callable[[Array], Array]


def _position_changes(robot: Robot) -> Iterator[_Change]:
    names = robot.coordinates
    turns = [robot.joints[[j.name for j in robot.joints].index(n)].kind == "revolute" for n in names]

    def factor(j: int, value: float) -> Callable[[Array], Array]:
        return lambda q: q * np.where(np.arange(len(names)) == j, value, 1.0)

    def offset(j: int, value: float) -> Callable[[Array], Array]:
        return lambda q: q + np.where(np.arange(len(names)) == j, value, 0.0)

    def exchanged(i: int, j: int) -> Callable[[Array], Array]:
        order = np.arange(len(names))
        order[[i, j]] = [j, i]
        return lambda q: q[:, order]

    def later(columns: list[int], step: int) -> Callable[[Array], Array]:
        def act(q: Array) -> Array:
            out = q.copy()
            rows = np.clip(np.arange(len(q)) + step, 0, len(q) - 1)
            out[:, columns] = q[rows][:, columns]
            return out

        return act

    for j, name in enumerate(names):
        yield _Change(C.JOINT_SIGN, f"'{name}' has the wrong sign", "turn its sign when it is read", factor(j, -1.0))
        if turns[j]:
            told = "convert it when it is read"
            yield _Change(C.DEGREES, f"'{name}' is in degrees", told, factor(j, np.pi / 180))
            for angle in (90, -90, 180):
                told = f"add {angle} degrees to its position when it is read, or correct the zero in the robot's file"
                words = f"the zero of '{name}' is off by {-angle if angle != 180 else 180} degrees"
                yield _Change(C.JOINT_ZERO, words, told, offset(j, np.radians(angle)))
        for step in (1, -1):
            way = "before" if step == 1 else "after"
            words = f"'{name}' is logged one row {way} the others"
            yield _Change(C.ROWS_SHIFTED, words, "shift its column by one row", later([j], step))
    if all(turns):
        told = "convert them when they are read"
        yield _Change(C.DEGREES, "all joints are in degrees", told, lambda q: q * np.pi / 180)
    for step in (1, -1):
        way = "before" if step == 1 else "after"
        words = f"joint positions are logged one row {way} what the sensor saw"
        told = "shift the rows of joint positions by one"
        yield _Change(C.ROWS_SHIFTED, words, told, later(list(range(len(names))), step))
    for i, j in combinations(range(len(names)), 2):
        words = f"'{names[i]}' and '{names[j]}' are exchanged"
        yield _Change(C.JOINT_ORDER, words, "exchange their columns, or give the names of joints", exchanged(i, j))


def changed_positions(
    robot: Robot, given: tuple[Measurement, ...], most: int, slowly: bool = False
) -> Iterator[Suspect]:
    """Changes of joint positions that pay in the registration, the best first and combined where that pays more.

    With `slowly`, sensors without a relaxed registration are registered for every change.
    """
    q = [m.q for m in given]
    start, numbers = _relaxed(robot, given, q, slowly)
    if not numbers:
        return
    least = np.log(_WORTH**2) * numbers
    known = list(_position_changes(robot))
    chosen: list[tuple[float, tuple[_Change, ...]]] = []
    beam: list[tuple[float, tuple[_Change, ...], list[Array]]] = [(start, (), q)]
    for _ in range(_DEPTH):
        found = []
        for cost, done, x in beam:
            for change in known:
                there = [change.act(y) for y in x]
                new = _relaxed(robot, given, there, slowly)[0]
                if new < cost + least:
                    found.append((new, (*done, change), there))
        found.sort(key=lambda one: one[0])
        chosen += [(cost, done) for cost, done, _ in found[:most]]
        beam = found[:1]
        if not beam:
            break
    chosen.sort(key=lambda one: one[0] + 2 * np.log(len(known)) * len(one[1]))
    for _, done in chosen[:most]:
        x = q
        for change in done:
            x = [change.act(y) for y in x]
        yield Suspect(
            done[0].code,
            " and ".join(dict.fromkeys(c.words for c in done)),
            len(done) * float(np.log(len(known))),
            "; ".join(dict.fromkeys(c.advice for c in done)),
            measurements=tuple(replace(m, q=y) for m, y in zip(given, x, strict=True)),
        )


def swapped_markers(robot: Robot, given: tuple[Measurement, ...]) -> Iterator[Suspect]:
    """Two markers exchanged from some posture on; from the first where it is known where markers sit."""
    for k, m in enumerate(given):
        if not isinstance(m, Points) or len(m.markers) < 2 or len(m.q) < 3 * _SIDE:
            continue
        n, pairs = len(m.q), list(combinations(range(len(m.markers)), 2))
        placed = frame_placement(robot, m.q, m.frame)
        columns = np.column_stack([placed[:, :3, 3], placed[:, :3, :3].reshape(n, 9), np.ones(n)])
        basis = _basis(columns)
        y = np.where(np.isfinite(m.points), m.points, np.nanmean(m.points, axis=0))
        tried = [(a, b, i) for a, b in pairs for i in range(_SIDE, n - _SIDE + 1)]
        costs = []
        for a, b, i in tried:
            both = y[:, [a, b]].copy()
            both[i:] = both[i:, ::-1]
            flat = both.reshape(n, -1)
            costs.append(float((flat**2).sum() - ((basis.T @ flat) ** 2).sum()))
        best = [tried[int(np.argmin(costs))]]
        if m.known is not None:
            best += [(a, b, 0) for a, b in pairs]
        for a, b, i in best:
            points = m.points.copy()
            points[i:, [a, b]] = points[i:, [b, a]]
            changed = (*given[:k], replace(m, points=points), *given[k + 1 :])
            since = f" from posture {i} on" if i else ""
            yield Suspect(
                C.MARKERS_SWAPPED,
                f"{m.markers[a]} and {m.markers[b]} are exchanged{since}",
                float(np.log(len(tried))),
                "exchange their names there",
                measurements=changed,
            )


def rescaled(robot: Robot, given: tuple[Measurement, ...]) -> Iterator[Suspect]:
    """Positions in another unit than metres, from the size of the motion that is seen."""
    for k, m in enumerate(given):
        if not isinstance(m, Points):
            continue
        placed = frame_placement(robot, m.q, m.frame)[:, :3, 3]
        ratio = float(np.nanmedian(np.nanstd(m.points, axis=0)) / max(float(np.median(placed.std(0))), 1e-9))
        for factor, unit in ((1e-3, "millimetres"), (1e-2, "centimetres"), (0.0254, "inches")):
            if 0.5 < ratio * factor < 2:
                changed = (*given[:k], replace(m, points=factor * m.points), *given[k + 1 :])
                yield Suspect(
                    C.SCALE,
                    f"positions of {m.name} are in {unit}",
                    float(np.log(3)),
                    f"multiply them by {factor:g} when they are read",
                    measurements=changed,
                )


def relabelled(fit: Fit) -> Iterator[Suspect]:
    """Postures whose ball rests in another socket than they say."""
    for k, m in enumerate(fit.problem.measurements):
        if not isinstance(m, Sockets) or len(m.sockets) < 2:
            continue
        parts = fit.problem.places[k]
        at = np.array([parts[f"socket {s}"][0].start + fit.x[parts[f"socket {s}"][1]] for s in m.sockets])
        own = np.searchsorted(m.sockets, m.socket)
        ball = fit.rows[k].residual[:, :3] * m.std + at[own]
        away = np.linalg.norm(ball[:, None] - at, axis=2)
        nearest = away.argmin(1)
        wrong = (nearest != own) & (away.min(1) < 0.5 * away[np.arange(len(own)), own])
        if wrong.any() and wrong.mean() < 0.5:
            changed = replace(m, socket=np.where(wrong, np.array(m.sockets)[nearest], m.socket))
            given = (*fit.problem.measurements[:k], changed, *fit.problem.measurements[k + 1 :])
            first = ", ".join(str(i) for i in np.flatnonzero(wrong)[:5])
            more = " and others" if wrong.sum() > 5 else ""
            yield Suspect(
                C.SOCKET_LABEL,
                f"the ball rests in another socket than postures {first}{more} say",
                float(wrong.sum() * np.log(20 * (len(m.sockets) - 1))),
                "correct the name of the socket of these postures",
                measurements=given,
            )
