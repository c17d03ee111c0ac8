"""A robot on its legs in MuJoCo: PD control with feed-forward, and what its sensors record."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dynid
from dynid.recording import WrenchSensor
from dynid.robot.model import Robot
from studies.reproduce.legs_gaits import Gait, biped_gait, quadruped_gait
from studies.reproduce.legs_models import BIPED_FEET, QUADRUPED_FEET, biped_xml, quadruped_xml, with_springs

__all__ = ["LegsPlant", "RobotFallsError", "legs_plant"]

Array = NDArray[np.float64]
Payload = tuple[float, tuple[float, float, float]]

RATE = 500.0
STEPS = 2  # simulated steps per sample


class RobotFallsError(RuntimeError):
    """The motion of a simulated robot, which does not watch its balance, ends on the floor."""


@dataclass(frozen=True, eq=False)
class Noise:
    """Sensors: torque as a share of its root mean square, encoder step (rad), IMU noise per sample and biases."""

    torque: float = 0.02
    encoder: float = 2 * np.pi / 2**14
    accelerometer: float = 0.08
    gyroscope: float = 0.01
    accelerometer_bias: float = 0.05
    gyroscope_bias: float = 0.01


@dataclass(frozen=True, eq=False)
class LegsPlant:
    """A simulated experiment: the true robot, its noisy run, and what no sensor of the robot knows.

    Attributes
    ----------
    robot : Robot
        The robot with its true parameters.
    run : Run
        Encoders, torques, IMU and contact schedule.
    feet : tuple of str
        Frames of the feet.
    forces : mapping of str to ndarray (N, 6)
        True wrench of the floor on each foot at the origin of its frame, in the axes of that frame.
    base, twist : ndarray (N, 7), (N, 6)
        True pose and body twist of the trunk.
    """

    robot: Robot
    run: dynid.Run
    feet: tuple[str, ...]
    forces: dict[str, Array]
    base: Array
    twist: Array
    acceleration: Array
    bias: Array

    @property
    def recording(self) -> dynid.Recording:
        """The run as a recording."""
        return dynid.Recording(self.robot.coordinates, (self.run,))


def model(kind: str, payload: Payload | None = None) -> str:
    """MJCF text of the plant."""
    return {"quadruped": quadruped_xml, "biped": biped_xml}[kind](payload)


def load(kind: str, payload: Payload | None = None) -> Robot:
    """The plant as dynid reads it."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "robot.xml"
        file.write_text(model(kind, payload))
        return dynid.load_robot(file, friction="viscous+coulomb", rotor_inertia=True)


@lru_cache(maxsize=4)
def legs_plant(
    kind: str,
    seed: int = 0,
    payload: Payload | None = None,
    seconds: float | None = None,
    springs: tuple[float, float] | None = None,
) -> LegsPlant:
    """Simulate a "quadruped" or "biped" and record it; `seconds` cuts the motion short.

    With springs (stiffness, damping) between motors and links the run has the positions of both.
    """
    import mujoco

    feet = QUADRUPED_FEET if kind == "quadruped" else BIPED_FEET
    nominal = load(kind)
    rate = RATE * STEPS
    gait = (quadruped_gait if kind == "quadruped" else biped_gait)(nominal, feet, rate, seed)
    text = model(kind, payload)
    plant = mujoco.MjModel.from_xml_string(text if springs is None else with_springs(text, *springs))
    count = len(gait.t) if seconds is None else min(len(gait.t), round(seconds * rate))
    gains = (120.0, 3.0) if kind == "quadruped" else (500.0, 10.0)
    raw = _simulate(mujoco, plant, gait, feet, count // STEPS, gains)
    plain = _recorded(load(kind, payload), feet, raw, seed)
    if springs is None:
        return plain
    step = Noise().encoder
    return replace(plain, run=replace(plain.run, link_q=np.round(raw["link"] / step) * step))


def _simulate(
    mujoco: Any, plant: Any, gait: Gait, feet: tuple[str, ...], samples: int, gains: tuple[float, float]
) -> dict[str, Array]:
    """Integrate the closed loop; the samples hold the state at the beginning of a step and the forces in it."""
    data = mujoco.MjData(plant)
    n = gait.q.shape[1]
    # Joints with springs have two coordinates: the motor, then the deflection.
    each = (plant.nv - 6) // n
    data.qpos[7::each] = gait.q[0]
    data.qpos[:7] = [0, 0, 0, 1, 0, 0, 0]
    mujoco.mj_forward(plant, data)
    sites = [plant.site(f).id for f in feet]
    soles = np.array([data.site_xpos[s] for s in sites])
    bottom = min(soles[:, 2]) - (plant.geom(1).size[0] if plant.geom(1).type[0] == 2 else 0.0)
    data.qpos[2] = -bottom
    mujoco.mj_forward(plant, data)
    body_foot = {plant.site_bodyid[s]: k for k, s in enumerate(sites)}
    widths = {"q": n, "link": n, "v": n, "a": n, "torque": n, "imu": 6, "base": 7, "twist": 6, "acceleration": 6}
    out = {name: np.zeros((samples, width)) for name, width in widths.items()}
    forces = np.zeros((samples, len(feet), 6))
    vertical = np.zeros((samples, len(feet)))
    wrench = np.zeros(6)
    stiffness, damping = gains
    for k in range(samples * STEPS):
        q, v = data.qpos[7::each].copy(), data.qvel[6::each].copy()
        torque = gait.torque[k] + stiffness * (gait.q[k] - q) + damping * (gait.v[k] - v)
        data.ctrl[:] = torque
        i, record = divmod(k, STEPS)
        if record == 0:
            out["q"][i], out["v"][i], out["torque"][i] = q, v, torque
            out["link"][i] = data.qpos[7:].reshape(n, each).sum(axis=1)
            pose = data.qpos[:7]
            if abs(pose[4]) > 0.3 or abs(pose[5]) > 0.3:
                raise RobotFallsError(f"the simulated robot falls at {i / RATE:.1f} s")
            out["base"][i] = [*pose[:3], *pose[4:7], pose[3]]
            entries = np.zeros(9)
            mujoco.mju_quat2Mat(entries, pose[3:7])
            turn = entries.reshape(3, 3)
            out["twist"][i] = [*(turn.T @ data.qvel[:3]), *data.qvel[3:6]]
        mujoco.mj_step(plant, data)
        if record == 0:
            out["imu"][i] = data.sensordata[:6]
            out["a"][i] = data.qacc[6::each]
            spin = out["twist"][i][3:]
            linear = turn.T @ data.qacc[:3] - np.cross(spin, out["twist"][i][:3])
            out["acceleration"][i] = [*linear, *data.qacc[3:6]]
            for c in range(data.ncon):
                contact = data.contact[c]
                mujoco.mj_contactForce(plant, data, c, wrench)
                frame = contact.frame.reshape(3, 3)
                body = plant.geom_bodyid[contact.geom2]
                force = frame.T @ wrench[:3]
                foot = body_foot[body]
                arm = contact.pos - data.site_xpos[sites[foot]]
                axes = data.site_xmat[sites[foot]].reshape(3, 3).T
                forces[i, foot] += [*(axes @ force), *(axes @ np.cross(arm, force))]
                vertical[i, foot] += force[2]
    return out | {"t": np.arange(samples) / RATE, "forces": forces, "vertical": vertical}


def _recorded(robot: Robot, feet: tuple[str, ...], raw: dict[str, Array], seed: int) -> LegsPlant:
    """The sensors: noise on torques, encoder steps, noise and bias of the inertial unit."""
    rng = np.random.default_rng(1000 + seed)
    noise = Noise()
    size = noise.torque * np.sqrt(np.mean(raw["torque"] ** 2))
    torque = raw["torque"] + rng.normal(0.0, size, raw["torque"].shape)
    q = np.round(raw["q"] / noise.encoder) * noise.encoder
    each = np.repeat([noise.accelerometer, noise.gyroscope], 3)
    bias = rng.normal(0.0, np.repeat([noise.accelerometer_bias, noise.gyroscope_bias], 3))
    imu = raw["imu"] + bias + rng.normal(size=raw["imu"].shape) * each
    forces = {f: raw["forces"][:, k] for k, f in enumerate(feet)}
    contacts = {f: (raw["vertical"][:, k] > 1.0).astype(float) for k, f in enumerate(feet)}
    run = dynid.Run(raw["t"], q, torque=torque, imu=imu, contacts=contacts)
    return LegsPlant(robot, run, feet, forces, raw["base"], raw["twist"], raw["acceleration"], bias)


def with_true_forces(plant: LegsPlant) -> dynid.Run:
    """The run with the wrench of the floor on every foot, as sensors in the feet would measure it."""
    sensors = {f: WrenchSensor(f) for f in plant.feet}
    return replace(plant.run, wrenches=plant.forces, sensors=sensors)


def with_wrong_schedule(plant: LegsPlant, share: float, seed: int = 0) -> dynid.Run:
    """The run with its schedule inverted for a share of the samples of every foot, in stretches of 0.1 s."""
    rng = np.random.default_rng(seed)
    length = round(0.1 * RATE)
    contacts = {}
    for foot, given in plant.run.contacts.items():
        stretches = rng.random(len(given) // length + 1) < share
        wrong = np.repeat(stretches, length)[: len(given)]
        contacts[foot] = np.where(wrong, 1.0 - given, given)
    return replace(plant.run, contacts=contacts)


def air_run(kind: str, seed: int = 0, seconds: float = 20.0) -> tuple[Robot, dynid.Run]:
    """The robot with its trunk held and its legs waving in the air: joints and torques."""
    import mujoco

    robot = load(kind)
    rng = np.random.default_rng(seed)
    plant = mujoco.MjModel.from_xml_string(model(kind).replace("<freejoint/>", "").replace('contype="1"', ""))
    data = mujoco.MjData(plant)
    t = np.arange(0.0, seconds, 1.0 / (RATE * STEPS))
    rest = np.tile([0.0, 0.75, -1.5], 4) if kind == "quadruped" else np.tile([0.0, 0.0, -0.45, 0.9, -0.45, 0.0], 2)
    reference = np.tile(rest, (len(t), 1))
    for j in range(robot.n):
        for f in rng.uniform(0.3, 1.8, 4):
            reference[:, j] += 0.12 * np.sin(2 * np.pi * (f * t + rng.uniform()))
    speed = np.gradient(reference, t, axis=0)
    data.qpos[:] = reference[0]
    q, torque = np.zeros((2, len(t) // STEPS, robot.n))
    for k in range(len(t) // STEPS * STEPS):
        command = 120.0 * (reference[k] - data.qpos) + 3.0 * (speed[k] - data.qvel)
        data.ctrl[:] = command
        if k % STEPS == 0:
            q[k // STEPS], torque[k // STEPS] = data.qpos, command
        mujoco.mj_step(plant, data)
    noise = Noise()
    torque += rng.normal(0.0, noise.torque * np.sqrt(np.mean(torque**2)), torque.shape)
    q = np.round(q / noise.encoder) * noise.encoder
    return robot.with_base("fixed"), dynid.Run(np.arange(len(q)) / RATE, q, torque=torque)
