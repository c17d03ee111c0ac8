"""Delay and gain of a torque sensor with the arm's parameters, against MuJoCo's identification toolbox.

python -m benchmarks.sensors            # needs mujoco[sysid]
python -m benchmarks.sensors --draws 5

Both get the same simulated recordings of a two-joint arm under position servos: positions and torques, the torques
delayed by 13.3 ms, those of joint 2 too large by a factor of 1.2, both with noise. Their prior knowledge differs:
- mujoco.sysid simulates the closed loop and fits positions and torques (output error). It is given the servos, the
  commands, the initial state, the simulator of the data, and the inertias of both links except mass and centre of mass
  of the second: 9 unknowns, started with errors of 20 to 50 %.
- dynid.calibration.calibrate_sensors uses the geometry only and fits all base parameters by least squares on torques;
  it does not simulate and needs no initial values.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import time
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

import mujoco
import numpy as np
from mujoco import rollout, sysid

import dynid

RATE, SECONDS = 500.0, 10.0
DELAY, GAIN = 0.0133, 1.2
POSITION_NOISE, TORQUE_NOISE = 1e-5, 0.05

XML = """
<mujoco model="arm2">
  <compiler angle="radian" autolimits="true"/>
  <option integrator="implicitfast" timestep="0.002"><flag contact="disable"/></option>
  <worldbody>
    <body name="link1" pos="0 0 0.5">
      <inertial pos="0.15 0 0.01" mass="2.0" fullinertia="0.006 0.022 0.021 0 0 0"/>
      <joint name="joint1" type="hinge" axis="0 1 0" armature="0.12" damping="0.9"/>
      <body name="link2" pos="0.35 0 0">
        <inertial pos="0.12 0 0.02" mass="1.2" fullinertia="0.003 0.011 0.010 0 0 0"/>
        <joint name="joint2" type="hinge" axis="0 1 0" armature="0.08" damping="0.5"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position name="servo1" joint="joint1" kp="300" kv="25"/>
    <position name="servo2" joint="joint2" kp="150" kv="12"/>
  </actuator>
  <sensor>
    <jointpos name="joint1_pos" joint="joint1"/>
    <jointpos name="joint2_pos" joint="joint2"/>
    <jointactuatorfrc name="joint1_torque" joint="joint1"/>
    <jointactuatorfrc name="joint2_torque" joint="joint2"/>
  </sensor>
</mujoco>
"""


def simulated(seed: int) -> tuple[mujoco.MjSpec, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Specification, initial state, command times and commands, sensor times and sensor values."""
    rng = np.random.default_rng(seed)
    spec = mujoco.MjSpec.from_string(XML)
    model = spec.compile()
    data = mujoco.MjData(model)
    t = np.arange(round(SECONDS * RATE)) / RATE
    command = np.zeros((len(t), 2))
    for k in range(1, 6):
        phase = rng.uniform(0, 2 * np.pi, 2)
        command += 0.35 / np.sqrt(k) * np.sin(2 * np.pi * 0.3 * k * t[:, None] + phase)
    command *= np.minimum(t / 0.5, 1.0)[:, None]
    start = sysid.create_initial_state(model, data.qpos, data.qvel, data.act)
    state, sensor = rollout.rollout(model, data, start, command[:-1])
    times, sensor = state[0, :, 0], sensor[0]
    torque = np.column_stack([np.interp(times - DELAY, times, x) for x in sensor[:, 2:].T])
    torque = torque * [1.0, GAIN] + TORQUE_NOISE * rng.normal(size=torque.shape)
    logged = np.hstack([sensor[:, :2] + POSITION_NOISE * rng.normal(size=(len(times), 2)), torque])
    return spec, start, t, command, times, logged


def ours(times: np.ndarray, logged: np.ndarray) -> tuple[float, float, float]:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "arm.xml"
        file.write_text(XML)
        robot = dynid.load_robot(file, friction="viscous", rotor_inertia=True)
    recording = dynid.Recording(robot.coordinates, (dynid.Run(times, logged[:, :2], torque=logged[:, 2:]),))
    started = time.perf_counter()
    found = dynid.calibration.calibrate_sensors(
        robot, recording, {"delay": "common", "torque_gain": "all"}, reference="joint1"
    )
    return time.perf_counter() - started, float(found.delay[0]), float(found.torque_gain[1])


def mujoco_sysid(
    spec: mujoco.MjSpec, start: np.ndarray, t: np.ndarray, command: np.ndarray, times: np.ndarray, logged: np.ndarray
) -> tuple[float, float, float]:
    model = spec.compile()

    def of_joint(field: str, name: str):  # type: ignore[no-untyped-def]
        def change(s: mujoco.MjSpec, p: sysid.Parameter) -> None:
            # From version 4 on, MjSpec stores damping as a polynomial.
            old = getattr(s.joint(name), field)
            if np.ndim(old):
                old[0] = p.value[0]
            else:
                setattr(s.joint(name), field, p.value[0])

        return change

    def mass(s: mujoco.MjSpec, p: sysid.Parameter) -> None:
        s.body("link2").mass = p.value[0]

    def centre(s: mujoco.MjSpec, p: sysid.Parameter) -> None:
        s.body("link2").ipos = [p.value[0], 0.0, p.value[1]]

    params = sysid.ParameterDict()
    for field, values in (("armature", (0.12, 0.08)), ("damping", (0.9, 0.5))):
        for name, value in zip(("joint1", "joint2"), values, strict=True):
            params.add(
                sysid.Parameter(f"{name}_{field}", 1.5 * value, 0.1 * value, 5 * value, modifier=of_joint(field, name))
            )
    params.add(sysid.Parameter("mass", 1.0, 0.2, 4.0, modifier=mass))
    params.add(sysid.Parameter("centre", [0.08, 0.0], [-0.3, -0.3], [0.3, 0.3], modifier=centre))
    params.add(sysid.Parameter("delay", 0.0, -0.05, 0.05))
    params.add(sysid.Parameter("gain", 1.0, 0.3, 3.0))
    transform = sysid.SignalTransform()
    transform.delay("*_torque", params["delay"])
    transform.gain("joint2_torque", params["gain"], target="predicted")
    names = ["joint1_pos", "joint2_pos", "joint1_torque", "joint2_torque"]
    transform.enable_sensors(names)
    control = sysid.TimeSeries(t, command)
    sensors = sysid.TimeSeries.from_names(times, logged, model)
    sequences = sysid.ModelSequences("arm2", spec, "run", start, control, sensors)
    residual = sysid.build_residual_fn(models_sequences=[sequences], modify_residual=transform.apply)
    started = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        found, _ = sysid.optimize(initial_params=params, residual_fn=residual, optimizer="mujoco", verbose=False)
    return time.perf_counter() - started, float(found["delay"].value[0]), float(found["gain"].value[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=3, help="number of recordings, each with its own motion and noise")
    draws = parser.parse_args().draws
    results: dict[str, list[tuple[float, float, float]]] = {"dynid": [], "mujoco.sysid": []}
    recordings = [simulated(seed) for seed in range(draws)]
    ours(*recordings[0][4:])  # compiled once
    for recording in recordings:
        results["dynid"].append(ours(*recording[4:]))
        results["mujoco.sysid"].append(mujoco_sysid(*recording))
    print(f"mujoco {metadata.version('mujoco')}; {draws} recordings of {SECONDS:g} s at {RATE:g} Hz, two joints")
    print(f"{'':14}{'seconds':>9}{'delay error, us':>18}{'gain error, %':>16}   (root mean square)")
    for name, rows in results.items():
        seconds, delay, gain = np.array(rows).T
        late, large = np.sqrt(np.mean((delay - DELAY) ** 2)), np.sqrt(np.mean((gain / GAIN - 1) ** 2))
        print(f"{name:14}{np.median(seconds):9.2f}{1e6 * late:18.1f}{100 * large:16.3f}")
    ratio = np.median([b[0] / a[0] for a, b in zip(results["dynid"], results["mujoco.sysid"], strict=True)])
    print(f"time ratio {ratio:.1f}")


if __name__ == "__main__":
    main()
