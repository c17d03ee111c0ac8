"""Geometric calibration of real robots: a ball in sockets (MUKCa), and a hand seen by motion capture (TIAGo).

Errors are those at places or postures that were left out of the fit. MUKCa: mean distance of the predicted positions of
the ball in one socket from their mean, for locations of the tool that were left out. TIAGo: root mean square over
postures and markers, each fifth posture left out, and random fifths.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.geometry.calibrate import calibrate_geometry
from dynid.geometry.measurements.points import Points
from dynid.geometry.measurements.sockets import Sockets
from dynid.geometry.problem import Problem
from dynid.geometry.solve import solve
from dynid.geometry.unknowns import GeometryModel
from dynid.robot.load import load_robot
from dynid.robot.model import Robot
from studies.reproduce.study import Figure, data_folder

__all__ = ["hand_of_tiago", "panda_with_masses", "real_figures", "sockets_of"]

Array = NDArray[np.float64]

_APART = 0.05  # m, centres of the two sockets
_REFERENCE = {"panda_1": "0.78", "panda_2_clean": "0.37", "panda_3": "0.20", "dinova_1": ""}
_PARTS, _SPLITS = 5, 4
_BALL = "ball_link"


def sockets_of(name: str) -> tuple[Robot, Sockets]:
    """The arm of a folder of MUKCa, and its postures."""
    folder = data_folder() / "mukca-ball-sockets"
    robot = load_robot(folder / ("gen3lite.urdf" if name.startswith("dinova") else "panda.urdf"))
    q, socket, place, known = [], [], [], {}
    for location in sorted(path for path in (folder / name).iterdir() if path.is_dir()):
        for file in sorted(location.glob("*.csv")):
            rows = np.loadtxt(file, delimiter=",", ndmin=2)
            q.append(rows)
            socket += [f"{location.name}/{file.stem}"] * len(rows)
            place += [location.name] * len(rows)
        known[f"{location.name}/hole_0", f"{location.name}/hole_1"] = _APART
    rows = np.vstack(q)
    robot = robot.locked(dict.fromkeys(robot.coordinates[rows.shape[1] :], 0.0))
    return robot, Sockets(rows, _BALL, socket=socket, place=place, distances_known=known)  # type: ignore[arg-type]


@lru_cache(maxsize=1)
def panda_with_masses() -> Robot | None:
    """The Panda of the package example-robot-data, None where it is not installed."""
    import pinocchio

    for above in Path(pinocchio.__file__).parents:
        file = above / "share/example-robot-data/robots/panda_description/urdf/panda.urdf"
        if file.is_file():
            return load_robot(file)
    return None


def hand_of_tiago() -> tuple[Robot, Points]:
    """TIAGo with three markers beyond its wrist."""
    folder = data_folder() / "tiago-mocap-figaroh"
    robot = load_robot(folder / "tiago_48_schunk.urdf")
    table = np.genfromtxt(folder / "tiago_base_hand_mocap.csv", delimiter=",", names=True)
    q = np.zeros((len(table), robot.n))
    for name in table.dtype.names or ():
        if name in robot.coordinates:
            q[:, robot.coordinates.index(name)] = table[name]
    points = np.stack([np.stack([table[f"{axis}{k}"] for axis in "xyz"], axis=1) for k in (1, 2, 3)], axis=1)
    return robot, Points(q, "arm_7_link", points=points)


def real_figures(full: bool = False) -> Iterator[Figure]:
    """Both recordings."""
    for name, reference in _REFERENCE.items():
        yield from _sockets(name, reference)
    yield from _tiago(full)


def _sockets(name: str, reference: str) -> Iterator[Figure]:
    section = f"ball in sockets: {name}"
    robot, measured = sockets_of(name)
    found = calibrate_geometry(robot, measured)
    assert found.held_out is not None
    before, after = (1e3 * x for x in found.held_out.mean)
    limit = float(reference) if reference else np.inf
    why = "mean error at locations left out, mm; one default"
    yield Figure(section, "nominal", "", f"{before:.2f}", 0.0, np.inf, why)
    yield Figure(section, "calibrated", reference, f"{after:.3f}", max(after - limit, 0.0), 0.0, why)
    file = data_folder() / "mukca-ball-sockets" / f"{name.removesuffix('_clean')}_published.urdf"
    if file.is_file():
        theirs = 1e3 * _own_mean(load_robot(file), measured)
        why = "the published file, which was fitted to these postures"
        yield Figure(
            section, "MUKCa's published file", f"{theirs:.3f}", f"{after:.3f}", max(after - theirs, 0.0), 0.0, why
        )
    bodies = panda_with_masses() if name.startswith("panda") else None
    if bodies is not None:
        loaded = calibrate_geometry(robot, measured, bodies=bodies).held_out
        assert loaded is not None
        with_masses = 1e3 * loaded.mean[1]
        why = "masses of the Panda of example-robot-data"
        worse = max(with_masses - after, 0.0)
        yield Figure(section, "with compliance", f"{after:.3f}", f"{with_masses:.3f}", worse, 0.0, why)


def _own_mean(robot: Robot, measured: Sockets) -> float:
    """Mean distance of the ball from its mean in each socket, with the geometry of a file."""
    from dynid.dynamics.frames import frame_placement

    robot = robot.locked(dict.fromkeys(robot.coordinates[measured.q.shape[1] :], 0.0))
    ball = frame_placement(robot, measured.q, _BALL)[:, :3, 3]
    away = np.empty(len(ball))
    for socket in measured.sockets:
        mine = measured.socket == socket
        away[mine] = np.linalg.norm(ball[mine] - ball[mine].mean(0), axis=1)
    return float(away.mean())


def _tiago(full: bool) -> Iterator[Figure]:
    robot, measured = hand_of_tiago()
    count = len(measured.q)
    rng = np.random.default_rng(0)
    splits = {"every fifth": np.arange(count) % _PARTS}
    splits |= {f"random fifths {k + 1}": rng.permutation(count) % _PARTS for k in range(_SPLITS if full else 1)}
    models = {
        "registration": (GeometryModel.only(), "4.76"),
        "zeros": (GeometryModel.only("zero"), "4.31"),
        "six per joint": (GeometryModel.only("position", "rotation", "zero"), "3.86"),
        "default": (GeometryModel(), "3.86"),
    }
    for name, (model, reference) in models.items():
        section = f"motion capture of a hand: {name}"
        problem = Problem.of(robot, [measured], model)
        found = solve(problem)
        fitted = measured.distances(problem.loaded(found.x).rows(found.x)[0].residual * measured.std)
        rms = 1e3 * float(np.sqrt(np.mean(fitted**2)))
        yield Figure(section, "fitted, mm", "", f"{rms:.2f}", 0.0, np.inf, "root mean square")
        for split, part in splits.items():
            left = 1e3 * _left_out(robot, measured, model, part)
            why = "for the record: the published parts are not told"
            yield Figure(section, f"left out, {split}, mm", reference, f"{left:.2f}", 0.0, np.inf, why)
        for k, u in enumerate(problem.unknowns):
            if u.kind in ("zero", "compliance"):
                half = 1.96 * float(np.sqrt(found.covariance[k, k]))
                text = f"{found.x[k]:.3g} +- {half:.2g} {u.unit}"
                yield Figure(section, u.name, "", text, 0.0, np.inf, "95 % interval")


def _left_out(robot: Robot, measured: Points, model: GeometryModel, part: NDArray[np.intp]) -> float:
    """Root mean square (m) at postures left out, base and markers being those of the others."""
    errors: list[float] = []
    for k in np.unique(part):
        fitted = Problem.of(robot, [measured.some(part != k)], model)
        found = solve(fitted)
        start = fitted.measurements[0]
        assert isinstance(start, Points)
        there = Problem(fitted.geometry, (replace(measured.some(part == k), base=start.base, known=start.known),))
        errors += measured.distances(there.loaded(found.x).rows(found.x)[0].residual * measured.std).tolist()
    return float(np.sqrt(np.mean(np.square(errors))))
