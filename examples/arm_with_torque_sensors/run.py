"""Joint torque sensors, logged in degrees under the vendor's names: from the log to a URDF. `python run.py [FOLDER]`"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import dynid

OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "out"


def write_log(arm: dynid.Robot, path: Path, seed: int) -> None:
    """Ten seconds at 1 kHz: milliseconds, angles in degrees, torques with noise of 0.02 N m behind the gears."""
    limits = dynid.excitation.motion_limits(arm, share=0.6)
    motion = dynid.design_excitation(arm, duration=10, limits=limits, budget=1, seed=seed)
    controller = dynid.controllers.cascade(1000.0, *dynid.controllers.bandwidth_gains(arm, 5.0))
    sensors = dynid.simulation.Sensors(noise=1e-5, torque_noise=0.02, velocity_cutoff=100.0)
    loop = dynid.ClosedLoop(controller=controller, sensors=sensors)
    run = dynid.simulate(arm, loop, motion, seed=seed).recording().runs[0]
    header = ["clock_ms", *(f"axis{k}_deg" for k in range(1, arm.n + 1)), *(f"sensor{k}" for k in range(1, arm.n + 1))]
    rows = np.column_stack([1000 * run.t, np.rad2deg(run.q), run.torque])
    np.savetxt(path, rows, delimiter=",", header=",".join(header), comments="", fmt="%.9g")


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    # Sensors behind the gears feel neither friction nor rotors: the model has bodies and offsets of the sensors alone.
    true = dynid.load_robot("rv2sq").with_drives("offset", rotor_inertia=False)
    gripper = dynid.inertia.inertia_from_com(1.5, [0.03, 0.02, 0.06], 0.003 * np.eye(3))
    true = true.with_payload("link6", gripper)
    # The file has the bodies of an old data sheet: every second link too heavy, the others too light.
    factors = [(1.0, 1.3, 0.7)[1 + true.link_index(p.owner) % 2] if p.inertial else 1.0 for p in true.layout]
    prior = true.with_parameters(true.parameters * factors)
    dynid.export.write(prior, OUT / "arm.urdf")
    for name, seed in (("monday", 1), ("tuesday", 2)):
        write_log(true, OUT / f"{name}.csv", seed)

    arm = dynid.load_robot(OUT / "arm.urdf", friction="offset")
    log = dynid.LogFormat(
        time="clock_ms", columns={"q": "axis{i}_deg", "torque": "sensor{i}"}, units={"t": "ms", "q": "deg"}
    )
    recording, unseen = (dynid.load_recording(OUT / f"{name}.csv", arm, log=log) for name in ("monday", "tuesday"))
    for finding in dynid.check(arm, recording):
        print(f"{finding.severity}: {finding.what} ({finding.how_much})")
    estimate = dynid.identify(arm, recording, "feasible")
    assessment = dynid.report.write(estimate, OUT / "report.html", unseen, recording=recording)
    dynid.export.write(estimate, OUT / "identified.urdf")

    found = estimate.validate(unseen).relative
    before = replace(estimate, beta=estimate.base.values(arm.parameters)).validate(unseen).relative
    for joint, old, new in zip(arm.coordinates, before, found, strict=True):
        print(f"{joint}: torque error on unseen motion {100 * old:.1f} % by the file, {100 * new:.1f} % identified")
    print(f"verdict: {assessment.verdict}")
    assert np.all(found < before) and assessment.verdict == "trusted"


if __name__ == "__main__":
    main()
