"""Motor currents, and a weight from the kitchen scale: drive gains first, then the arm. `python run.py [FOLDER]`"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import dynid

OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "out"
GAINS = np.array([9.0, 12.0, 8.0, 4.0, 3.0, 1.5])  # N m/A, which the drives of this arm have and nobody knows
WEIGHT = 1.5  # kg, which somebody weighed


def currents(arm: dynid.Robot, seed: int) -> dynid.Recording:
    """A log of 10 s: the arm follows a motion under its controller, positions and currents are written at 1 kHz."""
    limits = dynid.excitation.motion_limits(arm, share=0.8)
    motion = dynid.design_excitation(arm, duration=10, limits=limits, budget=1, seed=seed)
    controller = dynid.controllers.cascade(1000.0, *dynid.controllers.bandwidth_gains(arm, 5.0))
    sensors = dynid.simulation.Sensors(noise=1e-5, torque_noise=0.2, velocity_cutoff=100.0)
    loop = dynid.ClosedLoop(controller=controller, sensors=sensors)
    run = dynid.simulate(arm, loop, motion, seed=seed).recording().runs[0]
    plain = replace(run, current=run.torque / GAINS, torque=None, v=None, a=None, reference=None)
    return dynid.Recording(arm.coordinates, (plain,))


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    arm = dynid.load_robot("rv2sq")
    body = dynid.inertia.inertia_from_com(WEIGHT, [0.0, 0.04, 0.08], 0.003 * np.eye(3))
    dynid.export.write(arm, OUT / "arm.urdf")
    for name, robot, seed in (
        ("currents", arm, 1),
        ("currents_loaded", arm.with_payload("link6", body), 2),
        ("unseen", arm, 3),
    ):
        currents(robot, seed).to_csv(OUT / f"{name}.csv")

    plain, loaded, unseen = (
        dynid.load_recording(OUT / f"{name}.csv", arm) for name in ("currents", "currents_loaded", "unseen")
    )
    found = dynid.calibration.identify_drive_gains(arm, plain, loaded, payload=WEIGHT, link="link6")
    print(found.summary())
    for joint, gain, std, true in zip(arm.coordinates, found.gains, found.std, GAINS, strict=True):
        print(f"{joint}: {gain:.3f} +- {std:.3f} N m/A, true {true:g}")
    assert np.all(np.abs(found.gains - GAINS) < 4 * found.std)

    estimate = dynid.identify(arm, found.apply(plain), "feasible")
    estimate.save(OUT / "estimate.json")
    errors = estimate.validate(found.apply(unseen)).relative
    print("torque error on unseen motion, %:", ", ".join(f"{100 * e:.1f}" for e in errors))
    assert errors.max() < 0.2


if __name__ == "__main__":
    main()
