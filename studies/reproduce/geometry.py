"""Geometric calibration of robots whose errors are known: intervals, numbers of parameters, far starts; and real data.

Every robot is `geometry_plants.Plant`: dynid gets its nominal model, encoders of 16 to 20 bits, one or three unknown
markers seen by a tracker anywhere in the room with 0.05 to 0.5 mm of noise, and 2 % of outliers. Base parameters are
compared with those of the plant in the same gauge: of all errors that explain measurements without noise, those that
the prior finds most probable. Tools are compared at other random postures: a marker in the tracker's frame, and the
origin of the tool's frame after the common rigid motion, of which no measurement says anything.

Numbers of parameters: 4 R + 2 P + 6 with poses, base and tool unknown (Everett, Driels and Mooring, Kinematic Modelling
for Robot Calibration, 1987; Hayati and Mirmirani, 1985, for parallel axes); 4 R + 2 P + 3 with positions of one point,
as no turn of the tool about this point is seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DynidError
from dynid.geometry.base import base_geometry
from dynid.geometry.estimate import rigid_columns
from dynid.geometry.measurements.points import Points
from dynid.geometry.measurements.poses import Poses
from dynid.geometry.measurements.starts import nearest_rotation
from dynid.geometry.problem import Problem
from dynid.geometry.solve import solve
from dynid.geometry.unknowns import GeometryModel, UnknownKind
from dynid.robot.spatial import placement
from studies.reproduce.geometry_plants import CLASSES, STANDARD, TOOL, Plant, Sizes
from studies.reproduce.geometry_real import real_figures
from studies.reproduce.intervals import banded
from studies.reproduce.study import Figure, finished_rows, has_data, kept_figures, rows_file

__all__ = ["far_run", "figures", "one_run", "rank_of"]

Array = NDArray[np.float64]

# Robots of each class: ten of them are the fifty of the full form, each with so many draws of postures and noise.
_ROBOTS, _DRAWS, _FEW = 10, 4, 2
_LEVEL, _BAND, _RMS = 1.959964, (0.92, 0.98), (0.8, 1.2)
_NOISE, _BITS, _POSTURES, _TESTED = (5e-5, 5e-4), (16, 21), (60, 120), 40
# Errors of 10 mm and 3 degrees per joint.
_FAR = Sizes(position=(0.01 / 3**0.5,) * 2, rotation=(np.pi / 60 / 3**0.5,) * 2, zero=(np.pi / 60,) * 2)
# Error of the marker, over its standard deviation, beyond which a calibration has failed.
_LOST = 3.0
_EXACT, _ITERATIONS = 1e-6, 80


def one_run(kind: str, robot: int, draw: int, sizes: Sizes | None = None) -> dict[str, Any]:
    """Errors over standard deviations of base parameters, of a marker and of the tool, of one calibration."""
    rng = np.random.default_rng([robot, draw, sorted(CLASSES).index(kind)])
    plant = Plant.drawn(kind, robot, sizes)
    noise, bits = float(np.exp(rng.uniform(*np.log(_NOISE)))), int(rng.integers(*_BITS))
    count, markers = int(rng.integers(*_POSTURES)), (1, 3)[(robot // 2 + draw) % 2]
    taken = plant.taken(count, rng, markers=markers, noise=noise, bits=bits)
    problem = Problem.of(plant.robot, [taken.measurement], GeometryModel())
    found = solve(problem)
    problem = problem.loaded(found.x)
    width = len(problem.geometry.unknowns)
    covariance = found.covariance[:width, :width]
    base = base_geometry(problem, found.x)
    wrong = base.weights @ (found.x - _in_gauge(plant, markers, count, found.prior_std))[:width]
    z = wrong / np.sqrt(np.einsum("bi,ij,bj->b", base.weights, covariance, base.weights))
    # Bending, which the plant has not, is at its prior's centre.
    there = np.array([base.unknowns[k].kind is not UnknownKind.BENDING for k in base.kept])
    q = plant.readings(_TESTED, rng)
    marker, marker_std = _marker_errors(plant, problem, q, markers, found.x, found.covariance)
    tool, tool_std = _tool_errors(plant, problem, q, found.x[:width], covariance)
    outliers, aside = set(taken.outliers.tolist()), set(np.flatnonzero(found.weights[0] == 0).tolist())
    return {
        "kind": kind, "held back": bool(robot % 2), "markers": markers, "noise": noise,
        "z": z[there].tolist(), "z lacking": z[~there].tolist(), "z marker": (marker / marker_std).ravel().tolist(),
        "z tool": (tool / tool_std).ravel().tolist(), "error": _rms(marker), "std": _rms(marker_std),
        "tool error": _rms(tool), "tool std": _rms(tool_std), "converged": found.converged,
        "found noise": found.noise[0].sensor * float(taken.measurement.std[0]),
        "outliers": len(outliers), "missed": len(outliers - aside), "wrongly": len(aside - outliers),
    }  # fmt: skip


def far_run(kind: str, robot: int) -> dict[str, Any]:
    """Whether a calibration from a nominal model that is far off found its minimum, and how far the marker is off."""
    row = one_run(kind, robot, 0, _FAR)
    return {"kind": kind, "error": row["error"], "std": row["std"], "converged": row["converged"]}


def rank_of(kind: str, poses: bool) -> tuple[int, int]:
    """Published number of parameters with base and tool, and ours."""
    plant = Plant.drawn(kind, 0, Sizes(compliance=(0.0, 0.0)))
    q = plant.readings(80, np.random.default_rng(0))
    rotation, origin = plant.tool(q)
    seen = placement_of(rotation, origin) if poses else placement_of(rotation, origin) @ [0.05, 0.02, 0.04, 1.0]
    measured = Poses(q, TOOL, poses=seen) if poses else Points(q, TOOL, points=seen[:, :3])
    problem = Problem.of(plant.robot, [measured], GeometryModel.only("position", "rotation", "zero"))
    revolute = int(plant.turning.sum())
    expected = 4 * revolute + 2 * (len(plant.turning) - revolute) + (6 if poses else 3)
    return expected, base_geometry(problem).total


def placement_of(rotation: Array, origin: Array) -> Array:
    """Placements (N, 4, 4)."""
    return np.array([placement(r, p) for r, p in zip(rotation, origin, strict=True)])


def _in_gauge(plant: Plant, markers: int, count: int, prior_std: Array) -> Array:
    """The plant's errors, moved along what no measurement shows to where the prior finds them most probable."""
    exact = plant.taken(max(count, 100), np.random.default_rng(0), markers=markers, noise=0.0, bits=0, outliers=0.0)
    problem = Problem.of(plant.robot, [exact.measurement], GeometryModel())
    truth = plant.truth(problem.geometry)
    problem = problem.loaded(truth)
    x = np.concatenate([truth, np.zeros(len(problem.unknowns) - len(truth))])
    weak = np.where(np.isfinite(prior_std), 1 / prior_std, 1e-6)
    scale = exact.measurement.std / _EXACT

    def system(x: Array) -> tuple[Array, Array]:
        rows = problem.rows(x)[0]
        r = np.concatenate([(rows.residual * scale).ravel(), weak * x])
        return r, np.vstack([(rows.slope * scale[:, None]).reshape(-1, len(x)), np.diag(weak)])

    r, J = system(x)
    damping, of_sensors = 1e-6, np.arange(len(x)) >= len(truth)
    for step in range(_ITERATIONS):
        # Base and markers first, from their start; then all along the gauge.
        first = step < 6
        size = np.linalg.norm(J, axis=0)
        matrix = np.vstack([(J * of_sensors if first else J) / size, np.sqrt(damping) * np.eye(len(x))])
        change = np.linalg.lstsq(matrix, np.concatenate([-r, np.zeros(len(x))]), rcond=None)[0] / size
        there = system(x + change)
        if there[0] @ there[0] > r @ r:
            damping *= 10
            if damping > 1:
                break
            continue
        done = not first and r @ r - there[0] @ there[0] < 1e-9 * (r @ r)
        x, (r, J), damping = x + change, there, max(damping / 10, 1e-14)
        if done:
            break
    return x


def _marker_errors(
    plant: Plant, problem: Problem, q: Array, markers: int, x: Array, covariance: Array
) -> tuple[Array, Array]:
    """Errors (N, 3) of the first marker in the tracker's frame, and their standard deviations."""
    measured = problem.measurements[0]
    assert isinstance(measured, Points)
    seen = plant.seen(q, markers)
    asked = Points(q, TOOL, points=seen, known=measured.known, base=measured.base)
    there = Problem(problem.geometry, (asked,), problem.errors)
    rows, size = there.rows(x)[0], asked.std[0]
    slope = size * rows.slope[:, :3]
    return size * rows.residual[:, :3], np.sqrt(np.einsum("nri,ij,nrj->nr", slope, covariance, slope, optimize=True))


def _tool_errors(plant: Plant, problem: Problem, q: Array, x: Array, covariance: Array) -> tuple[Array, Array]:
    """Errors (N, 3) of the tool's origin without their common rigid motion, and their standard deviations."""
    geometry = problem.geometry
    found = geometry.place(geometry.postures(q, x), x, len(x))[TOOL]
    _, truth = plant.tool(q)
    middle, mean = found.origin.mean(0), truth.mean(0)
    turn = nearest_rotation((truth - mean).T @ (found.origin - middle))
    error = (found.origin - middle) @ turn.T + mean - truth
    basis = np.linalg.qr(rigid_columns(found.origin - middle))[0]
    flat = found.shift.reshape(-1, len(x))
    left = (flat - basis @ (basis.T @ flat)).reshape(found.shift.shape)
    return error, np.sqrt(np.einsum("nri,ij,nrj->nr", left, covariance, left, optimize=True))


def _rms(x: Array) -> float:
    """Root mean square of a distance (m)."""
    return float(np.sqrt((np.asarray(x) ** 2).sum(1).mean()))


# -- figures ------------------------------------------------------------------------------------------


def figures(full: bool = False, folder: Path | None = None) -> Iterator[Figure]:
    """All sections; fifty robots with `full`, two of each class otherwise."""
    tasks = {
        f"{kind}, robot {k}, draw {d}": (kind, k, d)
        for kind in CLASSES
        for k in range(_ROBOTS if full else _FEW)
        for d in range(_DRAWS if full else 1)
    }
    rows = finished_rows("geometry", one_run, tasks, rows_file("geometry", folder), 2 if full else 1)
    yield from _coverage(rows, full)
    far = {f"{kind}, robot {k}, far": (kind, k) for kind in CLASSES for k in range(_ROBOTS if full else _FEW)}
    yield from _far(finished_rows("geometry-far", far_run, far, rows_file("geometry-far", folder), 2 if full else 1))
    sections = {"numbers of parameters": _ranks}
    if has_data():
        sections["real"] = partial(real_figures, full)
    yield from kept_figures("geometry-parts", sections, folder)


def _coverage(rows: list[dict[str, Any]], full: bool) -> Iterator[Figure]:
    limit = 0.0 if full else np.inf
    halves = {"all": rows}
    for name, back in (("first half", False), ("held-back half", True)):
        halves[f"{name} of the robots"] = [r for r in rows if r["held back"] is back]
    halves |= {kind: [r for r in rows if r["kind"] == kind] for kind in CLASSES}
    halves |= {f"{m} marker{'s' * (m > 1)}": [r for r in rows if r["markers"] == m] for m in (1, 3)}
    for name, mine in halves.items():
        section, why = f"95 % intervals: {name}", f"{len(mine)} calibrations"
        for what, key, decided in (
            ("base parameters", "z", True),
            ("marker", "z marker", True),
            ("tool, rigid motion removed", "z tool", True),
            ("bending, which the plants do not have", "z lacking", False),
        ):
            z = np.array([x for r in mine for x in r[key]])
            if not z.size:
                continue
            # Classes have few robots, and an error of the tool's frame is one draw per robot.
            tolerance = limit if (decided and "half" in name) or (name == "all" and decided) else np.inf
            yield banded(section, f"{what}, covered", _BAND, float((np.abs(z) < _LEVEL).mean()), tolerance, why)
            yield banded(section, f"{what}, RMS z", _RMS, float(np.sqrt(np.mean(z**2))), np.inf, why)
        ratio = [r["error"] / r["std"] for r in mine]
        yield Figure(
            section, "error of the marker over its std, median", "1", f"{np.median(ratio):.2f}", 0.0, np.inf, why
        )
        yield Figure(
            section, "error of the marker, median", "", f"{1e3 * np.median([r['error'] for r in mine]):.3f} mm", 0.0,
            np.inf, why,
        )  # fmt: skip
    outliers, missed, wrongly = (sum(r[key] for r in rows) for key in ("outliers", "missed", "wrongly"))
    yield Figure("outliers", "missed", f"of {outliers}", str(missed), missed, 0.01 * outliers, "10 to 50 mm")
    yield Figure("outliers", "good postures set aside", "", str(wrongly), 0.0, np.inf, f"{len(rows)} calibrations")
    lost = sum(not r["converged"] for r in rows)
    yield Figure("convergence", "not converged", "0", str(lost), lost, 0.0, f"{len(rows)} calibrations")


def _far(rows: list[dict[str, Any]]) -> Iterator[Figure]:
    lost = [r for r in rows if not r["converged"] or r["error"] > _LOST * r["std"]]
    why = "10 mm and 3 degrees per joint, base in any direction"
    yield Figure("far starts", f"failures of {len(rows)}", "0", str(len(lost)), len(lost), 0.0, why)
    worst = max(r["error"] / r["std"] for r in rows)
    yield Figure("far starts", "largest error of the marker over its std", "", f"{worst:.2f}", 0.0, np.inf, why)


def _ranks() -> Iterator[Figure]:
    for kind in STANDARD:
        for poses in (True, False):
            name = f"{kind}, {'poses' if poses else 'positions'}"
            try:
                expected, ours = rank_of(kind, poses)
            except DynidError as error:
                yield Figure("numbers of parameters", name, "a number", str(error), 1.0, 0.0, "")
                continue
            how = "4 R + 2 P + 6" if poses else "4 R + 2 P + 3"
            yield Figure("numbers of parameters", name, str(expected), str(ours), abs(ours - expected), 0.0, how)
