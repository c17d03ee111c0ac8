"""Small data sets of the synthetic arm."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import dynid
from dynid.recording import DataSet, Recording, Run, open_dataset, write_partition
from tests.support.synthetic import motion


def runs(robot: dynid.Robot, count: int, samples: int = 4000, noise: float = 0.05) -> list[Run]:
    """Runs of twenty seconds with other motion each."""
    out = []
    for k in range(count):
        t, q, v, a = motion(robot, k, samples, 20.0)
        torque = dynid.inverse_dynamics(robot, q, v, a) + noise * np.random.default_rng(k).normal(size=q.shape)
        out.append(Run(t, q, torque=torque, name=str(k)))
    return out


def write_data_set(robot: dynid.Robot, folder: Path, some: list[Run]) -> DataSet:
    """A partition per run, one run per day."""
    for k, run in enumerate(some):
        keys = {"robot": "unit1" if k % 2 else "unit2", "date": f"2025-01-{k + 1:02d}"}
        write_partition(Recording(robot.coordinates, (run,)), folder, keys)
    return open_dataset(folder, robot)


def files(folder: Path) -> list[Path]:
    """The partitions, in the order of their dates."""
    return sorted(folder.rglob("*.parquet"), key=lambda path: path.parent.parent.name)
