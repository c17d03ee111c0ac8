"""First against second half of every real recording: do the estimates differ by as much as their standard deviations?

The halves have their own noise and, if the model is complete, the same parameters. Then the RMS of
z = (b1 - b2) / sqrt(s1^2 + s2^2) over the base parameters is near one. Real models are not complete: a z above one is
the sum of a standard deviation that is too small and of effects that are not in the model.

The two are told apart by cutting the same recordings into parts that alternate: both sets then hold the same kind of
motion and the same slow changes, and only a standard deviation that is too small is left.

How many recordings may be expected near one is seen on arms whose model is complete, integrated by Pinocchio or MuJoCo:
the RMS over a few correlated parameters scatters too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import DynidError
from dynid.identification.pipeline import identify
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.signals.settings import Signals
from studies.reproduce.coverage import SIGNALS, centred
from studies.reproduce.coverage_plants import ARMS, NOISES
from studies.reproduce.robot_cases import CASES
from studies.reproduce.study import Figure, finished_rows, rows_file

__all__ = ["figures", "parts_z"]

_LOWEST, _HIGHEST = 0.7, 1.3


# Number of parts of each run, and what they are called. Two parts are halves.
_PARTS = {2: "first against second half", 10: "odd against even tenths"}
_SEEDS = 10  # recordings of each simulated arm and noise


def figures(folder: Path | None = None) -> Iterator[Figure]:
    """RMS z of weighted least squares for every robot, and how many are near one; all for the record."""
    path = rows_file("halves", folder)
    for parts, title in _PARTS.items():
        yield from _compared(parts, f"RMS z of {title}, wls", path)
    yield from _simulated("RMS z of first against second half, wls, complete model and independent plant", path)


def _simulated(section: str, path: Path | None) -> Iterator[Figure]:
    """How many recordings of simulated arms with a complete model are near one, where standard deviations are right."""
    total = 0
    rows = finished_rows("halves, simulated arms", _arm, {f"simulated {title}": (title,) for title in ARMS}, path, 1)
    for title, row in zip(ARMS, rows, strict=True):
        z = np.array(row["z"])
        inside = int(np.sum((z >= _LOWEST) & (z <= _HIGHEST)))
        total += inside
        band = f"{z.min():.2f} to {z.max():.2f}"
        yield Figure(section, title, str(len(z)), f"{inside} ({band})", len(z) - inside, np.inf, "for the record")
    count = len(ARMS) * len(NOISES) * _SEEDS
    yield Figure(section, "all arms", str(count), str(total), count - total, np.inf, "for the record")


def _arm(title: str) -> dict[str, Any]:
    """RMS z of all recordings of a simulated arm."""
    arm, signals = ARMS[title], centred(SIGNALS)
    seeds = range(_SEEDS)
    return {"z": [parts_z(arm.prior, arm.recording(c, s), signals=signals) for c in NOISES.values() for s in seeds]}


def _compared(parts: int, section: str, path: Path | None) -> Iterator[Figure]:
    band, found, record = f"{_LOWEST} to {_HIGHEST}", [], "for the record"
    tasks = {f"{name}, {parts} parts": (name, parts) for name in CASES}
    rows = finished_rows(f"halves, {parts} parts", _recorded, tasks, path, workers=1)
    for name, row in zip(CASES, rows, strict=True):
        if "refused" in row:
            yield Figure(section, name, band, "none", 0.0, np.inf, row["refused"])
            continue
        z = row["z"]
        found.append(z)
        yield Figure(section, name, band, f"{z:.2f}", max(_LOWEST - z, z - _HIGHEST, 0.0), np.inf, record)
    inside, above = sum(_LOWEST <= z <= _HIGHEST for z in found), sum(z > _HIGHEST for z in found)
    outside = len(found) - inside
    yield Figure(section, f"recordings within {band}", str(len(found)), str(inside), outside, np.inf, record)
    yield Figure(section, f"recordings above {_HIGHEST}", "0", str(above), above, np.inf, record)


def _recorded(name: str, parts: int) -> dict[str, Any]:
    """RMS z of a real recording; part of a motion may not excite all base parameters, or be too short."""
    data = CASES[name]()
    try:
        return {"z": parts_z(data.robot, data.train, parts)}
    except DynidError as error:
        return {"refused": str(error)}


def parts_z(robot: Robot, recording: Recording, parts: int = 2, signals: Signals | None = None) -> float:
    """RMS of the differences of base parameters from odd and even parts of all runs, over their standard deviations."""
    ends = [np.arange(parts + 1) * len(run) // parts for run in recording.runs]
    pieces = [
        tuple(
            run.rows(e[k], e[k + 1]) for run, e in zip(recording.runs, ends, strict=True) for k in range(odd, parts, 2)
        )
        for odd in (0, 1)
    ]
    one, two = (identify(robot, Recording(recording.joints, runs), "wls", signals=signals) for runs in pieces)
    return float(np.sqrt(np.mean((one.beta - two.beta) ** 2 / (one.std**2 + two.std**2))))
