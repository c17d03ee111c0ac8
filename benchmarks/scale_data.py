"""A partitioned data set of a seven-joint arm, made cheaply: one motion with its torques, repeated with other noise.

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
from dynid.excitation.fourier import random_fourier

RATE = 1000.0
PARTITION = 500_000
# The motion repeats after this many samples; each partition starts elsewhere in it.
PERIOD = 100_000
TORQUE_NOISE, POSITION_NOISE = 0.5, 2e-6


def motion(robot: dynid.Robot) -> dict[str, np.ndarray]:
    """Positions, velocities and torques over one period."""
    limits = list(robot.limits.values())
    lower, upper = np.array([x.lower for x in limits]), np.array([x.upper for x in limits])
    t = np.arange(PERIOD) / RATE
    q, v, a = random_fourier(lower, upper, np.array([x.velocity for x in limits]), PERIOD / RATE / 5, t, seed=1)
    return {"q": q, "v": v, "torque": dynid.inverse_dynamics(robot, q, v, a)}


def write(folder: Path, samples: int, size: int = PARTITION, robot: dynid.Robot | None = None) -> int:
    """Write partitions of `size` samples, a day's runs in each folder; returns their number."""
    robot = robot or arm()
    signals = motion(robot)
    noise = {"q": POSITION_NOISE, "v": 0.0, "torque": TORQUE_NOISE}
    count = -(-samples // size)
    for k in range(count):
        rows = min(size, samples - k * size)
        rng = np.random.default_rng(k)
        place = (rng.integers(PERIOD) + np.arange(rows)) % PERIOD
        columns = {"t": np.arange(rows) / RATE}
        for signal, values in signals.items():
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
