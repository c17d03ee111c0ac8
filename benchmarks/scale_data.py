"""A partitioned data set of a seven-joint arm, made cheaply: one period of a motion with its torques, repeated.

Every partition has its own noise, and its own phase between the motion and the clock of the samples. With one phase for
all, every reversal of a joint would lie at the same place between two samples: noise of the positions that moves the
change of sign of the friction by one sample then has the same effect everywhere, and does not average out.

python -m benchmarks.scale_data FOLDER --samples 10000000
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import polars

import dynid
from benchmarks.identify import arm
from dynid.excitation.basis import random_fourier

RATE = 1000.0
PARTITION = 500_000
# The motion repeats after this many samples; each partition starts elsewhere in it.
PERIOD = 20_000
TORQUE_NOISE, POSITION_NOISE = 0.5, 2e-6


def motion(robot: dynid.Robot, start: float = 0.0) -> dict[str, np.ndarray]:
    """Positions, velocities and torques over one period from a time in s."""
    limits = list(robot.limits.values())
    lower, upper = np.array([x.lower for x in limits]), np.array([x.upper for x in limits])
    t = start + np.arange(PERIOD) / RATE
    q, v, a = random_fourier(lower, upper, np.array([x.velocity for x in limits]), PERIOD / RATE, t, seed=1)
    return {"q": q, "v": v, "torque": dynid.inverse_dynamics(robot, q, v, a)}


def write(folder: Path, samples: int, size: int = PARTITION, robot: dynid.Robot | None = None) -> int:
    """Write partitions of `size` samples, a day's runs in each folder; returns their number."""
    robot = robot or arm()
    noise = {"q": POSITION_NOISE, "v": 0.0, "torque": TORQUE_NOISE}
    count = -(-samples // size)
    for k in range(count):
        rows = min(size, samples - k * size)
        rng = np.random.default_rng(k)
        place = np.arange(rows) % PERIOD
        columns = {"t": np.arange(rows) / RATE}
        for signal, values in motion(robot, rng.uniform(0.0, PERIOD / RATE)).items():
            for j, name in enumerate(robot.coordinates):
                column = values[place, j].astype(np.float32)
                if noise[signal]:
                    column += np.float32(noise[signal]) * rng.standard_normal(rows, dtype=np.float32)
                columns[f"{signal}_{name}"] = column
        path = folder / f"robot=arm/date=2025-01-{1 + k * 28 // count:02d}/run={k}"
        path.mkdir(parents=True, exist_ok=True)
        polars.DataFrame(columns).write_parquet(path / "part-0.parquet", compression="lz4", row_group_size=65536)
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--samples", type=int, default=10_000_000)
    arguments = parser.parse_args()
    began = time.perf_counter()
    count = write(arguments.folder, arguments.samples)
    size = sum(p.stat().st_size for p in arguments.folder.rglob("*.parquet"))
    spent = time.perf_counter() - began
    print(f"{arguments.samples:,} samples in {count} partitions, {size / 1e9:.2f} GB, written in {spent:.0f} s")


if __name__ == "__main__":
    main()
