"""What does the arm carry? A model of the arm, then one log with a tool. `python run.py [FOLDER]`"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import dynid

OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "out"
MASS, CENTRE = 0.8, [0.0, 0.02, 0.06]  # kg; m in the frame of link6


def log(arm: dynid.Robot, seed: int) -> dynid.Recording:
    """Ten seconds of motion under a controller, positions and torques at 1 kHz."""
    limits = dynid.excitation.motion_limits(arm, share=0.7)
    motion = dynid.design_excitation(arm, duration=10, limits=limits, budget=1, seed=seed)
    controller = dynid.controllers.cascade(1000.0, *dynid.controllers.bandwidth_gains(arm, 5.0))
    sensors = dynid.simulation.Sensors(noise=1e-5, torque_noise=0.2, velocity_cutoff=100.0)
    return dynid.simulate(arm, dynid.ClosedLoop(controller=controller, sensors=sensors), motion, seed=seed).recording()


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    arm = dynid.load_robot("rv2sq")
    tool = dynid.inertia.inertia_from_com(MASS, CENTRE, np.diag([0.002, 0.002, 0.001]))
    dynid.export.write(arm, OUT / "arm.urdf")
    log(arm, 1).to_csv(OUT / "bare.csv")
    log(arm.with_payload("link6", tool), 2).to_csv(OUT / "loaded.csv")

    bare, loaded = (dynid.load_recording(OUT / f"{name}.csv", arm) for name in ("bare", "loaded"))
    model = dynid.identify(arm, bare, "wls")
    model.save(OUT / "estimate.json")
    found = dynid.calibration.identify_payload(arm, loaded, link="link6", model=model)
    print(found.summary())
    centre = ", ".join(f"{1000 * x:.1f}" for x in found.centre)
    print(f"mass {found.mass:.3f} +- {found.mass_std:.3f} kg, true {MASS:g}")
    print(f"centre {centre} mm, true {', '.join(f'{1000 * x:g}' for x in CENTRE)}")
    assert abs(found.mass - MASS) < 4 * found.mass_std
    assert np.all(np.abs(found.centre - CENTRE) < 4 * found.centre_std)

    # The same tool on the model, for a simulator or a controller.
    dynid.export.write(arm.with_payload("link6", found.inertial), OUT / "with_tool.urdf")


if __name__ == "__main__":
    main()
