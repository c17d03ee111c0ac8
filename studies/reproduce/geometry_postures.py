"""Designed postures of a geometric calibration against twice as many random ones, predicted and simulated.

Arms of six and seven joints with random lengths and twists, a marker seen by a tracker that stands anywhere, noise of
0.2 mm. In a cell, joints move by 0.5 to 1.3 rad to both sides; free ones by 1.7 to 3 rad. Random postures are drawn
from the same candidates. Calibrations are simulated with errors of joints as large as is expected, and the tool's error
is counted over the workspace after the base is placed best.

Free joints are seen well by random postures, too: the relaxation in `benchmarks/geometry.py` bounds what any choice
gains there, and twice the number is above it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid import Robot
from dynid.geometry import GeometryModel, Points, plan_postures
from dynid.geometry.kinematics import Postures
from dynid.geometry.measurements.starts import nearest_rotation
from dynid.geometry.problem import Problem
from dynid.geometry.solve import solve
from dynid.robot.spatial import placement
from studies.reproduce.study import Figure, finished_rows, rows_file

__all__ = ["figures", "random_arm"]

Array = NDArray[np.float64]

RANGES = {"in a cell": (0.5, 1.3), "free": (1.7, 3.0)}
ARMS, COUNT = 20, 20
_MARKER = (0.05, 0.0, 0.1)
_NOISE = 2e-4


def figures(full: bool = False, folder: Path | None = None) -> Iterator[Figure]:
    """Few candidates, simulations and free arms, or many of all."""
    candidates = 1500 if full else 250
    arms = {"in a cell": ARMS, "free": ARMS if full else 5}
    repeats = {where: 10 if full else 40 // count for where, count in arms.items()}
    tasks: dict[str, tuple[Any, ...]] = {
        f"{where}, arm {seed}, {candidates}, {repeats[where]}": (where, seed, candidates, repeats[where])
        for where in RANGES
        for seed in range(arms[where])
    }
    rows = finished_rows("geometry-postures", _one, tasks, rows_file("geometry-postures", folder), 1)
    for where in RANGES:
        mine = [row for row in rows if row["where"] == where]
        yield from _compared(where, mine)


def random_arm(seed: int, widths: tuple[float, float]) -> Robot:
    """An arm of six or seven joints with random lengths, some neighbors parallel, and random ranges of joints."""
    rng = np.random.default_rng(seed)
    n = 6 + seed % 2
    rows = [(0.0, 0.0, rng.uniform(0.2, 0.5), 0.0)]
    for k in range(1, n):
        twist = float(rng.choice([-1, 1])) * np.pi / 2 if k % 2 or rng.random() < 0.6 else 0.0
        rows.append((twist, rng.uniform(0.0, 0.35), rng.uniform(0.0, 0.35), 0.0))
    arm = Robot.from_dh(rows, "modified", name=f"arm {seed}")
    ends = rng.uniform(*widths, n)
    return arm.with_limits({j: {"position": [-float(w), float(w)]} for j, w in zip(arm.coordinates, ends, strict=True)})


def _expected(frame: str, q: Array) -> Points:
    """The marker before anything is measured, and a tracker of unknown place."""
    return Points(q, frame, points=np.zeros((len(q), 3)), known=np.array([_MARKER]), base=np.eye(4), noise=_NOISE)


def _one(where: str, seed: int, candidates: int, repeats: int) -> dict[str, Any]:
    """Errors (m) that are predicted and simulated for designed postures and for twice as many random ones."""
    robot = random_arm(seed, RANGES[where])
    frame, rng = robot.links[-1].name, np.random.default_rng(1000 + seed)
    marker = _expected(frame, np.zeros((1, robot.n)))
    low, high = np.array([(x.lower, x.upper) for x in robot.limits.values()]).T
    pool, workspace = rng.uniform(low, high, (candidates, robot.n)), rng.uniform(low, high, (100, robot.n))
    plan = plan_postures(robot, marker, COUNT, candidates=pool, workspace=workspace, seed=seed)
    simulated: dict[str, list[Array]] = {"designed": [], "random": []}
    for _ in range(repeats):
        truth = rng.normal(size=len(Problem.of(robot, [marker], GeometryModel()).geometry.unknowns))
        sets = {"designed": plan.q, "random": pool[rng.permutation(candidates)[: 2 * COUNT]]}
        for name, q in sets.items():
            simulated[name].append(_calibrated(robot, frame, q, workspace, truth, rng))
    even = float(np.exp(np.interp(-np.log(plan.accuracy), -np.log(plan.random), np.log(plan.counts))))
    return {
        "where": where,
        "designed": plan.accuracy,
        "random": float(plan.random[plan.counts == 2 * COUNT][0]),
        "even": even / COUNT,
        "simulated designed": float(np.quantile(simulated["designed"], 0.95)),
        "simulated random": float(np.quantile(simulated["random"], 0.95)),
        "below": float(np.mean(np.array(simulated["designed"]) <= plan.accuracy)),
    }


def _calibrated(robot: Robot, frame: str, q: Array, workspace: Array, truth: Array, rng: np.random.Generator) -> Array:
    """Errors (W,) of the marker over the workspace after a calibration with these postures (m)."""
    model = GeometryModel(learned=False)
    problem = Problem.of(robot, [_expected(frame, q)], model)
    x = truth * [u.std for u in problem.geometry.unknowns]
    base = placement(nearest_rotation(rng.normal(size=(3, 3))), rng.uniform(-2, 2, 3))
    seen = _marker(problem, q, x) @ base[:3, :3].T + base[:3, 3] + _NOISE * rng.normal(size=(len(q), 3))
    measured = Points(q, frame, points=seen, known=np.array([_MARKER]), noise=_NOISE)
    found = Problem.of(robot, [measured], model)
    solution = solve(found, robust=False)
    moved = np.array(_MARKER) + solution.x[found.places[0]["marker 1"][1]]
    at, true = _marker(found, workspace, solution.x[: len(x)], moved), _marker(problem, workspace, x)
    turn = nearest_rotation((true - true.mean(0)).T @ (at - at.mean(0)))
    return np.asarray(np.linalg.norm((at - at.mean(0)) @ turn.T - (true - true.mean(0)), axis=1))


def _marker(problem: Problem, q: Array, x: Array, local: Array | None = None) -> Array:
    """Positions of the marker in the base of the robot."""
    geometry = problem.geometry
    placed = geometry.place(Postures(geometry.robot, q), x, len(x))[geometry.frames[0]]
    return np.asarray(placed.point(np.array(_MARKER) if local is None else local).value)


def _compared(where: str, rows: list[dict[str, Any]]) -> Iterator[Figure]:
    """Medians over the arms."""
    twice = math.inf if where == "free" else 0.0
    reason = "twice the number is beyond the bound of any choice" if where == "free" else "designed N reach random 2 N"
    section = f"joints {where}: {COUNT} designed postures, {2 * COUNT} random ones"
    for name, designed, random in (
        ("predicted", "designed", "random"),
        ("simulated", "simulated designed", "simulated random"),
    ):
        ratio = float(np.median([row[random] / row[designed] for row in rows]))
        text = (
            f"{ratio:.3f}: {1e3 * np.median([r[designed] for r in rows]):.3f} mm, "
            f"{1e3 * np.median([r[random] for r in rows]):.3f} mm"
        )
        yield Figure(section, f"error of random over designed, {name}", "1", text, max(1 - ratio, 0.0), twice, reason)
    even = float(np.median([row["even"] for row in rows]))
    text = f"{even:.2f}" if even < 1.999 else "2 or more"
    yield Figure(section, "random postures as good as a designed one", "2", text, max(2 - even, 0.0), twice, reason)
    below = 100 * float(np.mean([row["below"] for row in rows]))
    reason = "errors of one calibration go together: few arms tell little"
    away = abs(below - 95)
    yield Figure(section, "simulated errors below the predicted 95 %", "95 %", f"{below:.1f} %", away, 5.0, reason)
