"""A person on a force plate: the masses of the body from motion capture and ground reactions. `python run.py [FOLDER]`"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

import dynid

OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "out"
HEIGHT, WEIGHT, RATE = 1.80, 82.0, 100  # m, kg, Hz


def motion(person: dynid.Robot, seed: int, seconds: float = 12.0) -> tuple[np.ndarray, np.ndarray]:
    """Pelvis poses and joint angles of somebody who sways and moves all joints, and their velocities, at 1 kHz."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, seconds, 0.001)

    def waves(count: int, size: float) -> np.ndarray:
        f, phase, share = rng.uniform(0.2, 0.9, (3, count)), rng.uniform(0, 6.3, (3, count)), rng.uniform(0.3, 1, (3, count))
        return size * sum(share[k] * np.sin(2 * np.pi * t[:, None] * f[k] + phase[k]) for k in range(3))

    place, turn = waves(3, 0.05) + [0.0, 0.0, 1.0], Rotation.from_rotvec(waves(3, 0.06))
    angles = waves(person.n, 0.15)
    q = np.hstack([place, turn.as_quat(), angles])
    spin = (turn[:-2].inv() * turn[2:]).as_rotvec() / 0.002  # between the neighbours, in the axes of the pelvis
    linear = turn[1:-1].inv().apply((place[2:] - place[:-2]) / 0.002)
    return q[1:-1], np.hstack([linear, spin, (angles[2:] - angles[:-2]) / 0.002])


def ground(person: dynid.Robot, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Force and moment of the ground about the origin of the world: the rate of the momentum, less gravity."""
    momentum = dynid.dynamics.momentum(person, q, v)
    centre, mass = dynid.dynamics.center_of_mass(person, q), dynid.dynamics.total_mass(person)
    about_origin = momentum[:, 3:] + np.cross(centre, momentum[:, :3])
    weight = np.array([0.0, 0.0, -9.81 * mass])
    force = np.gradient(momentum[:, :3], 0.001, axis=0) - weight
    moment = np.gradient(about_origin, 0.001, axis=0) - np.cross(centre, weight)
    return np.hstack([force, moment])


def write_logs(person: dynid.Robot, name: str, seed: int) -> None:
    """A motion and what the plate under it measured, at 100 Hz, with a newton of noise."""
    q, v = motion(person, seed)
    step = 1000 // RATE
    wrench = ground(person, q, v)[::step] + np.random.default_rng(seed).normal(size=(len(q[::step]), 6))
    t = np.arange(len(wrench)) / RATE
    run = dynid.Run(t, q[::step, 7:], base=q[::step, :7])
    dynid.Recording(person.coordinates, (run,)).to_csv(OUT / f"{name}.csv")
    with (OUT / f"{name}_plate.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["time", "Fx", "Fy", "Fz", "Mx", "My", "Mz"])
        rows.writerows([f"{x:.6g}" for x in row] for row in np.column_stack([t, wrench]))


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    table = dynid.human.human_model("male", HEIGHT, WEIGHT)  # de Leva's segments: a mean of many people
    dynid.export.write(table, OUT / "human.urdf")
    print(table)


if __name__ == "__main__":
    main()
