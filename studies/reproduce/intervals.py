"""Intervals by design: coverage of 95 % intervals over cells of robots, lengths, noise and hardly visible terms.

The plants move along Fourier series, their torque is Pinocchio's, and the model is complete. True offsets and rotor
inertias are 0 to 4 standard deviations of weighted least squares. Counted are the parameters of the plant that the data
decide; terms that the plant lacks are counted apart.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from pathlib import Path as FilePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DynidError
from dynid.identification.estimate import Estimate
from dynid.identification.observing import observe
from dynid.identification.pipeline import identify
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.signals.settings import Signals
from studies.reproduce.analytic_plants import Path, bodies, moved, prior_of, recorded, with_typical_drives
from studies.reproduce.coverage import LEVEL, true_values
from studies.reproduce.study import Figure, finished_rows, rows_file

__all__ = ["CELLS", "METHODS", "RECORD", "RMS", "Cell", "banded", "decided", "figures", "one_run"]

Array = NDArray[np.float64]

ROBOTS = {"two joints": "box2", "six joints": "rv2sq", "seven joints": "wam7"}
LENGTHS = (5.0, 12.0, 60.0)  # s
CORNERS: dict[str, float | None] = {"white": None, "10 Hz": 10.0, "2 Hz": 2.0}
VISIBLE = (0.0, 0.5, 1.0, 2.0, 4.0)
METHODS = ("auto", "wls")
# Runs of each cell: 2025 of two joints, 300 of six and of seven; and those of the short form.
RUNS = {"two joints": 45, "six joints": 20, "seven joints": 20}
_FEW, _FEW_CELLS = 3, ("two joints", (5.0, 12.0), "10 Hz", (0.0, 2.0))
_RATE, _NOISE, _PILOT = 500.0, 0.03, 10**6
SIGNALS = Signals(cutoff=40.0, decimate=(5, 2))
# Bands of the pooled share, of the root mean square of z, and of the largest |z|.
_SHARE, RMS, _LARGEST = (0.93, 0.97), (0.9, 1.1), 5.0
_IDENTIFIED, RECORD = 0.3, "for the record"


@dataclass(frozen=True)
class Cell:
    """One cell of the design; offsets and rotor inertias are `visible` standard deviations of least squares."""

    robot: str
    length: float
    noise: str
    visible: float

    def __str__(self) -> str:
        return f"{self.robot}, {self.length:g} s, {self.noise}, {self.visible:g} deviations"


def _cells() -> tuple[Cell, ...]:
    """All combinations of two joints; of six and seven a third of them, in which any two factors are balanced."""
    grid = list(product(ROBOTS, enumerate(LENGTHS), enumerate(CORNERS), enumerate(VISIBLE)))
    return tuple(
        Cell(robot, length, noise, visible)
        for robot, (i, length), (j, noise), (k, visible) in grid
        if robot == "two joints" or (i + j + k) % 3 == 0
    )


CELLS = _cells()


@lru_cache(maxsize=2)
def _plant(cell: Cell) -> tuple[Robot, Path, Array]:
    """The true robot of a cell, its motion and its torque without noise."""
    robot = with_typical_drives(bodies(ROBOTS[cell.robot]), 0)
    weak = [term.symbol in ("Ia", "off") for term in robot.drives]
    truth = replace(
        robot, drives=tuple(replace(t, value=0.0 if w else t.value) for t, w in zip(robot.drives, weak, strict=True))
    )
    path = moved(truth, "rich", cell.length, _RATE, CELLS.index(cell))
    pilot = recorded(truth, path, path.torque(truth), _NOISE, CORNERS[cell.noise], _PILOT)
    found = identify(truth, pilot, "wls", signals=SIGNALS)
    std = dict(zip(found.base.names, found.std, strict=True))
    signs = [1.0 if t.symbol == "Ia" or t.owner % 2 else -1.0 for t in truth.drives]
    values = [
        sign * cell.visible * std.get(t.name, 0.0) if w else t.value
        for t, w, sign in zip(truth.drives, weak, signs, strict=True)
    ]
    truth = replace(truth, drives=tuple(replace(t, value=float(x)) for t, x in zip(truth.drives, values, strict=True)))
    return truth, path, path.torque(truth)


def one_run(cell: Cell, run: int) -> dict[str, Any]:
    """z of the decided parameters, whether they are covered and whether the plant has them, for each method."""
    truth, path, torque = _plant(cell)
    seed = zlib.crc32(f"{cell}, run {run}".encode())  # no two runs of the design share their noise
    recording = recorded(truth, path, torque, _NOISE, CORNERS[cell.noise], seed)
    prior = prior_of(truth, "20 %", seed)
    out: dict[str, Any] = {"cell": str(cell), "robot": cell.robot}
    for method in METHODS:
        try:
            out[method] = _errors(identify(prior, recording, method, signals=SIGNALS), recording, truth)
        except DynidError as error:
            out[method] = {"refused": str(error)}
    return out


def _errors(estimate: Estimate, recording: Recording, truth: Robot) -> dict[str, Any]:
    values = true_values(truth, estimate.base)
    kept = decided(estimate, recording, values)
    lower, upper = estimate.confidence_intervals(LEVEL).T
    with np.errstate(divide="ignore", invalid="ignore"):  # an active constraint leaves no standard deviation
        z = np.nan_to_num((estimate.beta - values) / estimate.std, posinf=np.inf, neginf=-np.inf)
    known = np.isin([estimate.robot.parameter_names[k] for k in estimate.base.kept], truth.parameter_names)
    covered = (lower <= values) & (values <= upper)
    names = np.array(estimate.base.names)[kept]
    return {
        "names": names.tolist(), "z": z[kept].tolist(), "covered": covered[kept].tolist(), "plant": known[kept].tolist()
    }  # fmt: skip


def decided(estimate: Estimate, recording: Recording, values: Array) -> NDArray[np.bool]:
    """Base parameters that the data decide: their standard deviation without a prior is below 30 % of the value.

    Drive terms may be zero: theirs is below the value at which the term alone would make the torque of its joint.
    """
    seen = observe(estimate.robot, recording, signals=estimate.signals)
    independent = np.array(estimate.independent_rows or seen.rows) / np.maximum(seen.rows, 1)
    rows = seen.stacked(np.sqrt(independent) / estimate.noise)[:, :-1]
    size = np.linalg.norm(rows, axis=0)
    size[size == 0.0] = np.finfo(float).tiny
    _, s, vt = np.linalg.svd(rows / size, full_matrices=False)
    std = np.sqrt(np.sum((vt / np.maximum(s, 1e-12)[:, None]) ** 2, axis=0)) / size
    torque = seen.torque_norms()
    shares = np.linalg.norm(seen.stacked(1.0 / np.where(torque > 0, torque, np.inf))[:, :-1], axis=0)
    drive = np.array([not estimate.robot.layout[k].inertial for k in estimate.base.kept])
    typical = np.divide(1.0, shares, out=np.zeros_like(shares), where=drive & (shares > 0))
    return np.asarray((std < np.maximum(_IDENTIFIED * np.abs(values), typical)) & np.isfinite(estimate.std))


def figures(full: bool = False, folder: FilePath | None = None) -> Iterator[Figure]:
    """Coverage of a few cells, or of all of them with `full`; `folder` keeps finished runs."""
    robot, lengths, noise, visible = _FEW_CELLS
    few = [c for c in CELLS if c.robot == robot and c.length in lengths and c.noise == noise and c.visible in visible]
    tasks = {f"{c}, run {k}": (c, k) for c in (CELLS if full else few) for k in range(RUNS[c.robot] if full else _FEW)}
    rows = finished_rows("intervals", one_run, tasks, rows_file("intervals", folder), -1 if full else 1)
    for robot in dict.fromkeys(row["robot"] for row in rows):
        yield from _robot(robot, [row for row in rows if row["robot"] == robot], full)


def _robot(robot: str, rows: list[dict[str, Any]], full: bool) -> Iterator[Figure]:
    """Pooled figures of a robot against their bands, then one line per cell."""
    tolerance, reason = (0.0, f"{len(rows)} runs") if full else (np.inf, f"{RECORD}, {len(rows)} runs")
    for method in METHODS:
        section, z, covered = f"{robot}: {method}", *_pooled(rows, method)
        limit, why = (tolerance, reason) if method == "auto" else (np.inf, RECORD)
        refused = sum("refused" in row[method] for row in rows)
        yield Figure(section, "runs refused", "0", str(refused), refused, limit, why)
        if z.size:
            rms, largest = float(np.sqrt(np.mean(z**2))), float(np.abs(z).max())
            yield banded(section, "covered", _SHARE, float(covered.mean()), limit, why)
            yield banded(section, "RMS z", RMS, rms, limit, why)
            yield banded(section, "largest |z|", (0.0, _LARGEST), largest, limit, why)
        _, covered = _pooled(rows, method, plant=False)
        if covered.size:
            share = float(covered.mean())
            yield banded(section, "terms that the plant lacks, covered", _SHARE, share, np.inf, RECORD)
    parts = [[*row["cell"].split(", ")[1:], row["cell"]] for row in rows]
    for group in dict.fromkeys(part for by in zip(*parts, strict=True) for part in by):
        mine = [row for row, part in zip(rows, parts, strict=True) if group in part]
        auto, wls = (_shown(*_pooled(mine, method)) for method in METHODS)
        yield Figure(f"{robot}: wls beside auto", group, wls, auto, 0.0, np.inf, f"{RECORD}, {len(mine)} runs")


def _pooled(rows: list[dict[str, Any]], method: str, plant: bool = True) -> tuple[Array, NDArray[np.bool]]:
    """z and whether they are covered of all runs, of the parameters that the plant has or of the others."""
    found = [row[method] for row in rows if "refused" not in row[method]]
    z, covered, known = (np.array([x for one in found for x in one[key]]) for key in ("z", "covered", "plant"))
    chosen = known.astype(bool) == plant
    return z[chosen], covered[chosen].astype(bool)


def _shown(z: Array, covered: NDArray[np.bool]) -> str:
    if not z.size:
        return "none"
    return f"{100 * covered.mean():.1f} %, RMS z {np.sqrt(np.mean(z**2)):.2f}, largest {np.abs(z).max():.1f}"


def banded(section: str, name: str, band: tuple[float, float], found: float, tolerance: float, reason: str) -> Figure:
    outside = max(band[0] - found, found - band[1], 0.0)
    return Figure(section, name, f"{band[0]:g} to {band[1]:g}", f"{found:.3f}", outside, tolerance, reason)
