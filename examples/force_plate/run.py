"""A person on a force plate: masses from motion capture and ground reactions. `python run.py [FOLDER]`"""

from __future__ import annotations

import csv
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

import dynid

OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "out"
HEIGHT, RATE = 1.80, 100  # m, Hz


def motion(person: dynid.Robot, seed: int, seconds: float = 30.0) -> tuple[np.ndarray, np.ndarray]:
    """Pelvis poses and joint angles of somebody who sways and moves all joints, and their velocities, at 1 kHz."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, seconds, 0.001)

    def waves(count: int, size: float) -> np.ndarray:
        low, high = np.array([[0.2, 0.0, 0.3], [0.9, 2 * np.pi, 1.0]])[:, :, None]
        three = rng.uniform(low, high, (3, 3, count))  # frequency in Hz, phase, share of each wave
        return size * sum(share * np.sin(2 * np.pi * np.outer(t, f) + phase) for f, phase, share in three)

    place, turn = waves(3, 0.05) + np.array([0.0, 0.0, 1.0]), Rotation.from_rotvec(waves(3, 0.06))
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


def record(person: dynid.Robot, name: str, seed: int) -> dynid.Recording:
    """A motion and what the plate under it measured, at 100 Hz with a newton of noise, as files and as a recording."""
    fine, velocity = motion(person, seed)
    q, wrench = (x[:: 1000 // RATE] for x in (fine, ground(person, fine, velocity)))
    wrench = wrench + np.random.default_rng(seed).normal(size=wrench.shape)
    t = np.arange(len(wrench)) / RATE
    run = dynid.Run(t, q[:, 7:], base=q[:, :7])
    dynid.Recording(person.coordinates, (run,)).to_csv(OUT / f"{name}.csv")
    with (OUT / f"{name}_plate.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["time", "Fx", "Fy", "Fz", "Mx", "My", "Mz"])
        rows.writerows([f"{x:.6g}" for x in row] for row in np.column_stack([t, wrench]))
    plate = dynid.recording.WrenchSensor("world")
    run = replace(run, wrenches={"plate": wrench}, sensors={"plate": plate})
    return dynid.Recording(person.coordinates, (run,))


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    dynid.export.write(dynid.human.human_model("male", HEIGHT, 82.0), OUT / "human.urdf")
    table = dynid.load_robot(OUT / "human.urdf", base="floating")  # de Leva's segments: the mean of many people
    # This person is heavier in the thighs and lighter in the trunk.
    factors = {"thigh": 1.3, "upper_trunk": 0.85, "upper_arm": 1.2}
    chosen = [next((f for part, f in factors.items() if part in p.owner), 1.0) for p in table.layout]
    person = table.with_parameters(table.parameters * chosen)

    recording, unseen = record(person, "motion", 1), record(person, "other", 2)
    signals = dynid.Signals(cutoff=5.0, decimate=(5,))  # of 30 s of motion below 2 Hz
    estimate = dynid.identify(table, recording, "feasible", signals=signals, weight="cv", channels="wrench")
    estimate.save(OUT / "estimate.json")
    found = estimate.identified_robot
    masses = [dynid.dynamics.total_mass(x) for x in (found, person, table)]
    print("mass {:.2f} kg, true {:.2f}, by the table {:.2f}".format(*masses))
    errors = estimate.validate(unseen).relative
    before = replace(estimate, beta=estimate.base.values(table.parameters)).validate(unseen).relative
    for channel, old, new in zip(estimate.base.channels, before, errors, strict=True):
        print(f"{channel}: error on unseen motion {100 * old:.1f} % by the table, {100 * new:.1f} % identified")
    assert np.all(errors < before) and abs(masses[0] - masses[1]) < 0.2


if __name__ == "__main__":
    main()
