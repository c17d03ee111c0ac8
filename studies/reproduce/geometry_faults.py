"""Verdicts on spoiled and on good measurements of geometry, of arms that Pinocchio places.

Nothing here is published. Fifteen kinds of faults are put into measurements of two arms with six and seven joints, with
errors of every joint, eccentric encoders, joints that bend, and noise. Nothing that is spoiled may be trusted with an
error of the tool above twice that of the same measurements without the fault, the right cause should be named, and good
measurements should be trusted. Half of the kinds and of the seeds are held back while limits are set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from dynid.errors import DataError, DynidError
from dynid.geometry import GeometryCauseCode, Points, Sockets, assess_geometry, calibrate_geometry, find_geometry_causes
from dynid.geometry.measurements.measurement import Measurement
from dynid.geometry.measurements.starts import nearest_rotation
from dynid.robot.load import load_robot
from dynid.robot.model import Robot
from studies.reproduce.study import Figure, finished_rows, rows_file

__all__ = ["FAULTS", "Plant", "figures", "half_of", "judged"]

Array = NDArray[np.float64]
Half = Literal["development", "held back"]
C = GeometryCauseCode

ROBOTS = ("tx40", "iiwa14")
FEW, MANY, GOOD = 2, 10, 50
POSTURES = 45
NAMED, TRUSTED, HONEST = 0.8, 0.96, 2.0
# Sizes of errors of joints: position (m), direction and zero (rad), eccentricity (rad), compliance (rad/(N m)).
_POSITION, _DIRECTION, _ZERO, _ECCENTRIC, _SOFT = 1e-3, 4e-3, 1e-2, 2e-4, 2e-5
_MARKERS = np.array([[0.06, 0.0, 0.08], [-0.03, 0.05, 0.06], [-0.04, -0.05, 0.1]])
_TRACKER = pin.exp3(np.array([0.3, -0.2, 1.0]))
_WORKSPACE = 200


@dataclass(frozen=True, eq=False)
class Plant:
    """An arm with errors of its geometry, placed by Pinocchio.

    Attributes
    ----------
    robot : Robot
        The robot of the file.
    model : pin.Model
        The arm as it is.
    zeros : ndarray, shape (n,)
        Zeros of the encoders (rad).
    waves : ndarray, shape (2, n)
        Amplitude and phase of the eccentricity of each joint (rad).
    soft : ndarray, shape (n,)
        Compliances (rad/(N m)).
    """

    robot: Robot
    model: pin.Model
    zeros: Array
    waves: Array
    soft: Array

    @classmethod
    def of(cls, name: str, rng: np.random.Generator) -> Plant:
        robot = load_robot(name)
        model = robot.to_pinocchio()
        zeros = rng.normal(0, _ZERO, robot.n)
        for k in range(1, model.njoints):
            away = pin.SE3(pin.exp3(rng.normal(0, _DIRECTION, 3)), rng.normal(0, _POSITION, 3))
            model.jointPlacements[k] = model.jointPlacements[k] * away
        waves = np.array([rng.normal(0, _ECCENTRIC, robot.n), rng.uniform(0, 6, robot.n)])
        return cls(robot, model, zeros, waves, np.abs(rng.normal(0, _SOFT, robot.n)))

    def placed(self, q: Array) -> Array:
        """Placements (N, 4, 4) of the last link."""
        data, out = self.model.createData(), []
        frame = self.model.getFrameId(self.robot.links[-1].name)
        for reading in q + self.zeros:
            turned = reading + self.waves[0] * np.sin(reading + self.waves[1])
            turned = turned - self.soft * pin.computeGeneralizedGravity(self.model, data, turned)
            pin.framesForwardKinematics(self.model, data, turned)
            out.append(data.oMf[frame].homogeneous.copy())
        return np.array(out)

    def random(self, rng: np.random.Generator, count: int) -> Array:
        """Postures (N, n) within the limits."""
        limits = [j.limits for j in self.robot.joints]
        low, high = (np.array([getattr(x, side) for x in limits]) for side in ("lower", "upper"))
        return np.asarray(rng.uniform(0.8 * low, 0.8 * high, (count, self.robot.n)))


@dataclass(frozen=True, eq=False)
class Case:
    """Measurements before they are put together: what a fault changes."""

    plant: Plant
    q: Array  # as the arm stands
    read: Array  # as they are logged
    rng: np.random.Generator
    noise: float

    def points(self, placed: Array | None = None) -> Array:
        """Markers (N, M, 3) in a tracker."""
        at = self.plant.placed(self.q) if placed is None else placed
        seen = np.einsum("nij,mj->nmi", at[:, :3, :3], _MARKERS) + at[:, None, :3, 3]
        noisy = seen @ _TRACKER.T + [1.0, 0.5, -0.3]
        return np.asarray(noisy + self.rng.normal(0, self.noise, noisy.shape))


Spoil = Callable[[Case], Measurement]


def _markers(case: Case, points: Array, read: Array | None = None, **more: Any) -> Points:
    read = case.read if read is None else read
    return Points(read, case.plant.robot.links[-1].name, points=points, noise=2e-4, **more)


def _good(case: Case) -> Measurement:
    return _markers(case, case.points())


def _after(case: Case) -> NDArray[np.bool_]:
    n = len(case.q)
    return np.arange(n) >= case.rng.integers(n // 4, 3 * n // 4)


def _swapped(case: Case) -> Measurement:
    points, rows = case.points(), _after(case)
    if case.rng.random() < 0.5:
        known = _MARKERS[[1, 0, 2]]
        return _markers(case, points, known=known, known_std=1e-3)
    points[rows] = points[rows][:, [1, 0, 2]]
    return _markers(case, points)


def _inner(case: Case) -> int:
    """A joint whose sign, order or zero no unknown placement of base or marker can imitate."""
    return int(case.rng.integers(1, case.q.shape[1] - 1))


def _sign(case: Case) -> Measurement:
    read, j = case.read.copy(), _inner(case)
    read[:, j] *= -1
    return _markers(case, case.points(), read)


def _order(case: Case) -> Measurement:
    read = case.read.copy()
    i, j = case.rng.choice(read.shape[1], 2, replace=False)
    read[:, [i, j]] = read[:, [j, i]]
    return _markers(case, case.points(), read)


def _degrees(case: Case) -> Measurement:
    read = case.read.copy()
    if case.rng.random() < 0.5:
        return _markers(case, case.points(), np.degrees(read))
    j = _inner(case)
    read[:, j] = np.degrees(read[:, j])
    return _markers(case, case.points(), read)


def _zero(case: Case) -> Measurement:
    read, j = case.read.copy(), _inner(case)
    read[:, j] += np.radians(case.rng.choice([90, -90, 180]))
    return _markers(case, case.points(), read)


def _moved(case: Case) -> Measurement:
    points, rows = case.points(), _after(case)
    turn, shift = pin.exp3(case.rng.normal(0, 5e-3, 3)), case.rng.normal(0, 4e-3, 3)
    points[rows] = points[rows] @ turn.T + shift
    return _markers(case, points)


def _loose(case: Case) -> Measurement:
    at, points, rows = case.plant.placed(case.q), case.points(), _after(case)
    shift = np.einsum("nij,j->ni", at[:, :3, :3], case.rng.normal(0, 3e-3, 3)) @ _TRACKER.T
    points[rows, int(case.rng.integers(3))] += shift[rows]
    return _markers(case, points)


def _backlash(case: Case) -> Measurement:
    q, j = case.q.copy(), int(case.rng.integers(1, 4))
    side = np.sign(np.diff(case.q[:, j], prepend=case.q[0, j] - 1))
    q[:, j] += case.rng.uniform(2e-3, 5e-3) / 2 * side
    return _markers(case, case.points(case.plant.placed(q)))


def _drift(case: Case) -> Measurement:
    t = np.linspace(0, 1, len(case.q))[:, None]
    if case.rng.random() < 0.5:
        points = case.points() + (t * case.rng.normal(0, 3e-3, 3))[:, None]
        return _markers(case, points)
    zeros = np.zeros(case.q.shape[1])
    zeros[1:4] = case.rng.normal(0, 4e-3, 3)
    return _markers(case, case.points(case.plant.placed(case.q + t * zeros)))


def _few(case: Case) -> Measurement:
    points = case.points()
    if case.rng.random() < 0.5:
        rows = np.arange(9)
        return _markers(case, points[rows], case.read[rows])
    near = case.q[:1] + case.rng.uniform(-0.15, 0.15, case.q.shape)
    return _markers(case, case.points(case.plant.placed(near)), near)


def _scale(case: Case) -> Measurement:
    factor = case.rng.choice([1000.0, 1.02, 0.98])
    return _markers(case, factor * case.points())


def _rows(case: Case) -> Measurement:
    read, kind = case.read.copy(), case.rng.integers(3)
    if kind == 0:
        first = int(case.rng.integers(5, 20))
        j = _inner(case)
        read[first : first + 12, j] = read[first, j]
    elif kind == 1:
        j = _inner(case)
        read[1:, j] = read[:-1, j]
    else:
        read[1:] = read[:-1]
    return _markers(case, case.points(), read)


def _gross(case: Case) -> Measurement:
    points = case.points()
    rows = case.rng.choice(len(points), int(case.rng.integers(len(points) // 7, len(points) // 4)), replace=False)
    points[rows] += case.rng.normal(0, 0.03, (len(rows), 1, 3))
    return _markers(case, points)


# -- sockets --------------------------------------------------------------------------------------------


def _in_sockets(case: Case) -> tuple[Array, list[str], dict[tuple[str, str], float]]:
    """Postures (N, n) of the arm with its ball in three sockets, their names, and distances of sockets."""
    plant, rng = case.plant, case.rng
    ball = _MARKERS[0]
    at = plant.placed(case.q)
    tip = at[:, :3, :3] @ ball + at[:, :3, 3]
    reach = np.linalg.norm(tip, axis=1)
    centre = tip[np.argsort(np.abs(reach - np.quantile(reach, 0.5)))[0]]
    sockets = dict(zip("ABC", centre + np.array([[0.0, 0.0, 0.0], [0.2, 0.0, 0.05], [0.05, 0.18, -0.05]]), strict=True))
    q: list[Array] = []
    names: list[str] = []
    limits = [j.limits for j in plant.robot.joints]
    low, high = (np.array([getattr(x, side) for x in limits]) for side in ("lower", "upper"))
    while len(q) < len(case.q):
        name = "ABC"[len(q) % 3]
        found = _reached(plant, plant.random(rng, 1)[0], sockets[name], ball)
        if found is not None and np.all((found > low) & (found < high)):
            q.append(found)
            names.append(name)
    pairs = {(a, b): float(np.linalg.norm(sockets[a] - sockets[b])) for a, b in ("AB", "BC", "AC")}
    return np.array(q), names, pairs


def _reached(plant: Plant, q: Array, target: Array, ball: Array) -> Array | None:
    """A posture near q with the ball at a target."""
    for _ in range(30):
        steps = np.vstack([q, q + 1e-6 * np.eye(len(q))])
        at = plant.placed(steps)
        tip = at[:, :3, :3] @ ball + at[:, :3, 3]
        away = target - tip[0]
        if np.linalg.norm(away) < 1e-9:
            return q
        J = (tip[1:] - tip[0]).T / 1e-6
        q = q + np.clip(J.T @ np.linalg.solve(J @ J.T + 1e-8 * np.eye(3), away), -0.3, 0.3)
    return None


def _ball(case: Case, q: Array, names: Sequence[str], pairs: dict[tuple[str, str], float]) -> Sockets:
    jitter = case.rng.normal(0, case.noise / 0.3, q.shape)
    link = case.plant.robot.links[-1].name
    ball = tuple(_MARKERS[0] + case.rng.normal(0, 1e-3, 3))
    return Sockets(
        q + jitter, link, socket=np.array(names), distances_known=pairs, ball=ball, ball_std=2e-3, noise=2e-4
    )


def _good_sockets(case: Case) -> Measurement:
    return _ball(case, *_in_sockets(case))


def _distance(case: Case) -> Measurement:
    q, names, pairs = _in_sockets(case)
    one = list(pairs)[int(case.rng.integers(3))]
    return _ball(case, q, names, {**pairs, one: pairs[one] + case.rng.choice([-1, 1]) * case.rng.uniform(5e-3, 2e-2)})


def _label(case: Case) -> Measurement:
    q, names, pairs = _in_sockets(case)
    for i in case.rng.choice(len(names), int(case.rng.integers(2, 6)), replace=False):
        names[i] = "ABC"[("ABC".index(names[i]) + int(case.rng.integers(1, 3))) % 3]
    return _ball(case, q, names, pairs)


# Each kind with what makes it, whether it is one of sockets, and codes of causes or of checks that are right.
FAULTS: dict[str, tuple[Spoil, frozenset[str]]] = {
    "markers swapped": (_swapped, frozenset({C.MARKERS_SWAPPED})),
    "sign": (_sign, frozenset({C.JOINT_SIGN})),
    "order": (_order, frozenset({C.JOINT_ORDER})),
    "degrees": (_degrees, frozenset({C.DEGREES})),
    "zero": (_zero, frozenset({C.JOINT_ZERO})),
    "moved": (_moved, frozenset({C.MOVED})),
    "distance": (_distance, frozenset({C.SOCKET_DISTANCE})),
    "label": (_label, frozenset({C.SOCKET_LABEL})),
    "loose marker": (_loose, frozenset({C.LOOSE})),
    "backlash": (_backlash, frozenset({C.BACKLASH})),
    "drift": (_drift, frozenset({C.DRIFT})),
    "few or similar": (_few, frozenset({"few"})),
    "scale": (_scale, frozenset({C.SCALE})),
    "rows": (_rows, frozenset({C.ROWS_SHIFTED, C.JOINT_STUCK})),
    "outliers": (_gross, frozenset({C.OUTLIERS})),
}
_OF_SOCKETS = ("distance", "label")
_FEW_CHECKS = ("excitation", "prediction_uncertainty", "domain", "error_growth")


@dataclass(frozen=True)
class Outcome:
    """What is said of one case; errors of the tool (m) are root mean squares over the workspace."""

    robot: str
    seed: int
    fault: str
    verdict: str
    named: tuple[str, ...]
    tool: float
    honest: float
    words: str = ""

    @property
    def right(self) -> bool:
        return bool(FAULTS[self.fault][1] & set(self.named))

    @property
    def wrong(self) -> bool:
        """Whether it is trusted with an error above twice the honest one."""
        return self.verdict == "trusted" and self.tool > HONEST * self.honest


def half_of(fault: str, seed: int) -> Half:
    """The half of a case: even seeds of every other kind, and of good measurements, are for development."""
    kind = fault.startswith("good") or list(FAULTS).index(fault) % 2 == 0
    return "development" if kind and seed % 2 == 0 else "held back"


def made(robot: str, seed: int, fault: str) -> tuple[Plant, Measurement]:
    """A plant and its measurements."""
    rng = np.random.default_rng([seed, ROBOTS.index(robot)])
    plant = Plant.of(robot, rng)
    q = plant.random(rng, POSTURES)
    case = Case(plant, q, q, rng, float(rng.uniform(1e-4, 3e-4)))
    spoil = _good_sockets if fault == "good sockets" else _good if fault == "good" else FAULTS[fault][0]
    return plant, spoil(case)


def tool_error(plant: Plant, estimate: Any) -> float:
    """Error (m) of the tool over the workspace, after the base is placed best."""
    q = plant.random(np.random.default_rng(1), _WORKSPACE)
    true, found = (x[:, :3, :3] @ _MARKERS[0] + x[:, :3, 3] for x in (plant.placed(q), estimate.place(q)[0]))
    a, b = true - true.mean(0), found - found.mean(0)
    R = nearest_rotation(a.T @ b)
    return float(np.sqrt(((a - b @ R.T) ** 2).sum(1).mean()))


def judged(robot: str, seed: int, fault: str) -> Outcome:
    """Calibrate and assess one case with default settings."""
    plant, given = made(robot, seed, fault)
    good = "good sockets" if fault in (*_OF_SOCKETS, "good sockets") else "good"
    try:
        honest = np.nan if fault == good else _honest(robot, seed, good)
        estimate = calibrate_geometry(plant.robot, given)
        causes = find_geometry_causes(plant.robot, given)
        assessment = assess_geometry(estimate, given, causes)
    except DynidError as error:
        named: tuple[str, ...] = ("degrees",) if "degrees" in str(error) else (type(error).__name__,)
        return Outcome(robot, seed, fault, "refused", named, np.nan, np.nan, str(error))
    tool = tool_error(plant, estimate)
    named = tuple(str(c.code) for c in causes.causes)
    against = tuple(str(c.code) for c in assessment.against)
    few = ("few",) if set(against) & set(_FEW_CHECKS) else ()
    words = "; ".join([*(c.words for c in causes.causes), *against])
    return Outcome(robot, seed, fault, assessment.verdict, (*named, *few), tool, honest, words)


def _honest(robot: str, seed: int, good: str) -> float:
    plant, given = made(robot, seed, good)
    return tool_error(plant, calibrate_geometry(plant.robot, given, held_out=False))


def figures(full: bool = False, half: str | None = None, folder: Path | None = None) -> Iterator[Figure]:
    """Figures of both halves, or of one; two seeds of spoiled measurements, or ten with fifty good ones."""
    halves: tuple[Half, ...] = get_args(Half)
    if half is not None and half not in halves:
        raise DataError(f"there is no half '{half}': use {' or '.join(repr(h) for h in halves)}")
    chosen = [h for h in halves if half in (None, h)]
    outcomes = collected(MANY if full else FEW, GOOD if full else 2 * FEW, chosen, folder)
    for which in chosen:
        mine = [o for o in outcomes if half_of(o.fault, o.seed) == which]
        yield from _of_half(mine, which)


def collected(seeds: int, good: int, halves: Sequence[Half], folder: Path | None, workers: int = -1) -> list[Outcome]:
    """Outcomes of all cases of these halves; each is kept in the folder as soon as it is known."""
    cases = [(ROBOTS[(seed // 2 + k) % 2], seed, f) for seed in range(seeds) for k, f in enumerate(FAULTS)]
    cases += [(ROBOTS[s // 2 % 2], s, "good" if s % 5 else "good sockets") for s in range(good)]
    tasks = {f"{r}, seed {s}, {f}": (r, s, f) for r, s, f in cases if half_of(f, s) in halves}
    rows = finished_rows("geometry-faults", _row, tasks, rows_file("geometry-faults", folder), workers)
    return [replace(Outcome(**{k: v for k, v in r.items() if k != "name"}), named=tuple(r["named"])) for r in rows]


def _row(robot: str, seed: int, fault: str) -> dict[str, Any]:
    return asdict(judged(robot, seed, fault))


def _of_half(outcomes: Sequence[Outcome], half: Half) -> Iterator[Figure]:
    good = [o for o in outcomes if o.fault.startswith("good")]
    spoiled = [o for o in outcomes if not o.fault.startswith("good")]
    if good:
        share = float(np.mean([o.verdict == "trusted" for o in good]))
        ours = f"{sum(o.verdict == 'trusted' for o in good)} of {len(good)}"
        section = f"good measurements, {half} half"
        yield Figure(section, "trusted", f"{100 * TRUSTED:.0f} %", ours, max(TRUSTED - share, 0.0), 0.0, "at least")
    section = f"spoiled measurements, {half} half"
    for fault in FAULTS:
        mine = [o for o in spoiled if o.fault == fault]
        if mine:
            count = Counter(o.verdict for o in mine)
            verdicts = ", ".join(f"{n} {v}" for v, n in count.most_common())
            ratio = np.array([o.tool / o.honest for o in mine if np.isfinite(o.tool)])
            worst = f"; error of the tool {np.median(ratio):.3g} times the honest one" if len(ratio) else ""
            ours = f"{verdicts}; right cause {sum(o.right for o in mine)} of {len(mine)}{worst}"
            yield Figure(section, fault, "none trusted", ours, float(sum(o.wrong for o in mine)), 0.0, "")
    if spoiled:
        share = float(np.mean([o.right for o in spoiled]))
        ours = f"{100 * share:.0f} % of {len(spoiled)}"
        yield Figure(section, "right cause", f"{100 * NAMED:.0f} %", ours, max(NAMED - share, 0.0), 0.0, "at least")
