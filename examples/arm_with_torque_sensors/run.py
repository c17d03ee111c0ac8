"""Joint torque sensors, logged in degrees under names of the vendor: from the log to a URDF. `python run.py [FOLDER]`"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy.signal import savgol_filter

import dynid

OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "out"


def write_log(arm: dynid.Robot, path: Path, seed: int) -> None:
    """Ten seconds at 1 kHz: milliseconds, angles in degrees, torques with noise of 0.3 N m behind the gears."""
    limits = dynid.excitation.motion_limits(arm, share=0.6)
    motion = dynid.design_excitation(arm, duration=10, limits=limits, budget=1, seed=seed)
    controller = dynid.controllers.cascade(1000.0, *dynid.controllers.bandwidth_gains(arm, 5.0))
    sensors = dynid.simulation.Sensors(noise=1e-5, torque_noise=0.3, velocity_cutoff=100.0)
    loop = dynid.ClosedLoop(controller=controller, sensors=sensors)
    run = dynid.simulate(arm, loop, motion, seed=seed).recording().runs[0]
    header = ["clock_ms", *(f"axis{k}_deg" for k in range(1, arm.n + 1)), *(f"sensor{k}" for k in range(1, arm.n + 1))]
    rows = np.column_stack([1000 * run.t, np.rad2deg(run.q), run.torque])
    np.savetxt(path, rows, delimiter=",", header=",".join(header), comments="", fmt="%.9g")


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    # Sensors behind the gears feel neither friction nor rotors: the model has bodies and offsets of the sensors alone.
    true = dynid.load_robot("rv2sq").with_drives("offset", rotor_inertia=False)
    wrong = dict(zip(true.links, [1.3, 0.7, 1.3, 0.7, 1.3, 0.7], strict=True))  # masses as of an old data sheet
    factors = [wrong[p.link] if p.inertial else 1.0 for p in true.layout]
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
        print(f"{finding.severity}: {finding.message}")
    estimate = dynid.identify(arm, recording, "feasible")
    assessment = dynid.report.write(estimate, OUT / "report.html", unseen, recording=recording)
    dynid.export.write(estimate, OUT / "identified.urdf")

    found = estimate.validate(unseen).relative
    measured = unseen.runs[0].torque
    before = np.linalg.norm(measured - predicted(arm, unseen), axis=0) / np.linalg.norm(measured, axis=0)
    for joint, old, new in zip(arm.coordinates, before, found, strict=True):
        print(f"{joint}: torque error on unseen motion {100 * old:.1f} % by the file, {100 * new:.1f} % identified")
    print(f"verdict: {assessment.verdict}")
    assert np.all(found < before) and assessment.verdict == "trusted"


def predicted(arm: dynid.Robot, recording: dynid.Recording) -> np.ndarray:
    """Torques of the file's own parameters for the motion of a recording."""
    run = recording.runs[0]
    smooth = savgol_filter(run.q, 101, 4, deriv=0, axis=0)
    v, a = (savgol_filter(run.q, 101, 4, deriv=k, delta=0.001, axis=0) for k in (1, 2))
    return dynid.inverse_dynamics(arm, smooth, v, a)


if __name__ == "__main__":
    main()
