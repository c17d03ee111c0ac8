"""Between runs: differences of the estimates of consecutive runs of one real machine, beside their 95 % intervals.

Runs of one kind show the same parameters: of the same folder and payload, of all joints or of one after the other, of
one design with the same joints driven. Compared are the base parameters that both runs decide.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DynidError
from dynid.identification.pipeline import identify
from dynid.recording.load import load_recording
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from studies.reproduce import drives, fleet_real, robot_cases
from studies.reproduce.coverage import LEVEL
from studies.reproduce.intervals import METHODS, RECORD, RMS, banded, decided
from studies.reproduce.study import Figure, data_folder, finished_rows, rows_file

__all__ = ["differences", "figures", "real_run"]

Array = NDArray[np.float64]
# Recordings of the same kind, with the robot.
Kinds = dict[str, tuple[Robot, list[Recording]]]

_INSIDE = (0.90, 0.98)
_FEW = 3  # runs of each kind in the short form
_DRIVEN = 0.25  # RMS torque over that of the joint with the largest, from which a joint is driven


def figures(full: bool = False, folder: Path | None = None) -> Iterator[Figure]:
    """Share of the differences inside the intervals: of few runs of the double pendulums, with `full` of all.

    `folder` keeps finished runs.
    """
    path, workers = rows_file("between-runs", folder), -1 if full else 1
    machines = {"double pendulums": _pendulums, "UR10e": _ur10e, "Kinova Gen3": _kinova}
    for machine, kinds in list(machines.items())[: None if full else 1]:
        tasks = {
            f"{machine}, {kind}, run {k}": (robot, run)
            for kind, (robot, runs) in kinds().items()
            for k, run in enumerate(runs[: None if full else _FEW], start=1)
        }
        rows = finished_rows(f"runs of the {machine}", real_run, tasks, path, workers)
        for method in METHODS:
            section = f"{machine}, consecutive runs of one kind: {method}"
            refused = sum("refused" in row[method] for row in rows)
            yield Figure(section, "runs refused", "0", f"{refused} of {len(rows)}", refused, np.inf, RECORD)
            pairs = [(a[method], b[method]) for a, b in pairwise(rows) if _kind(a) == _kind(b)]
            z, covered = differences(pairs)
            if z.size:
                limit, why = 0.0 if full and method == "auto" else np.inf, f"{z.size} differences of {len(pairs)} pairs"
                yield banded(section, "inside", _INSIDE, float(covered.mean()), limit, why)
                yield banded(section, "RMS z", RMS, float(np.sqrt(np.mean(z**2))), np.inf, RECORD)


def _kind(row: dict[str, Any]) -> str:
    return str(row["name"]).rpartition(", run ")[0]


def real_run(robot: Robot, run: Recording) -> dict[str, Any]:
    """Value, standard deviation and half the interval of the decided base parameters by expression, for each method."""
    out: dict[str, Any] = {}
    for method in METHODS:
        try:
            found = identify(robot, run, method)
        except DynidError as error:
            out[method] = {"refused": str(error)}
            continue
        kept = decided(found, run, found.beta) & (found.std > 0)
        lower, upper = found.confidence_intervals(LEVEL).T
        values = np.column_stack([found.beta, found.std, 0.5 * (upper - lower)]).tolist()
        out[method] = {name: x for name, x, keep in zip(found.base.expressions, values, kept, strict=True) if keep}
    return out


def differences(pairs: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> tuple[Array, NDArray[np.bool]]:
    """z of the differences of what both runs of a pair decide, and whether they are inside their intervals."""
    both = [(a[k], b[k]) for a, b in pairs for k in a if k in b and k != "refused"]
    one, two = (np.array([pair[side] for pair in both]).reshape(-1, 3) for side in (0, 1))
    apart, (std, half) = one[:, 0] - two[:, 0], np.hypot(one[:, 1:], two[:, 1:]).T
    return apart / std, np.abs(apart) <= half


def _ur10e() -> Kinds:
    """Runs of the UR10e by folder of the log and payload."""
    robot, out = drives.ur10e(), dict[str, tuple[Robot, list[Recording]]]()
    entries = fleet_real.ur10e_entries(robot, drives.calibrate(robot, "14 harmonics").gains)
    for file, entry in zip(fleet_real.ur10e_files(), entries, strict=True):
        payload = f"payload of {entry.moment:%Y-%m-%d}" if fleet_real.loaded(entry.name) else "no payload"
        kind = f"{file.parent.name}, {payload}"  # payloads of two days need not be the same
        assert isinstance(entry.data, Recording)
        out.setdefault(kind, (robot, []))[1].append(entry.data)
    return out


def _kinova() -> Kinds:
    """Runs of the Kinova with currents: of all joints, and of one after the other."""
    robot, out = robot_cases.kinova_current().robot, dict[str, tuple[Robot, list[Recording]]]()
    for file in sorted((data_folder() / "kinova-gen3-dynamapp").glob("*.csv.gz")):
        kind = "one joint moves" if file.name.startswith("joint_") else "all joints move"
        columns = {"q": "Position{i}", "torque": "TorqueCur{i}"}
        run = load_recording(file, robot, columns=columns, time=None, rate=1000.0)
        out.setdefault(kind, (robot, []))[1].append(run)
    return out


def _pendulums() -> Kinds:
    """Runs of the three designs of the double pendulum, by the joints that are driven."""
    out: Kinds = {}
    for case in (robot_cases.pendulum_a0, robot_cases.pendulum_c0, robot_cases.pendulum_c1):
        data = case()
        assert data.test is not None
        for run in (*data.train.runs, *data.test.runs):
            assert run.torque is not None
            size = np.sqrt(np.mean(run.torque**2, axis=0))
            driven = [n for n, x in zip(data.train.joints, size, strict=True) if x > _DRIVEN * size.max()]
            kind = f"{case.__name__}, {' and '.join(driven)} driven"
            out.setdefault(kind, (data.robot, []))[1].append(Recording(data.train.joints, (run,)))
    return out
