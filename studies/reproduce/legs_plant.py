"""A robot on its legs in MuJoCo: PD control with feed-forward, and what its sensors record."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

import dynid
from dynid.recording import WrenchSensor
from dynid.robot.model import Robot
from studies.reproduce.legs_gaits import Gait, biped_gait, quadruped_gait
from studies.reproduce.legs_models import BIPED_FEET, QUADRUPED_FEET, biped_xml, quadruped_xml

__all__ = ["LegsPlant", "legs_plant"]

Array = NDArray[np.float64]
Payload = tuple[float, tuple[float, float, float]]

RATE = 500.0
STEPS = 2  # simulated steps per sample


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
        True wrench of the floor on each foot at the origin of its frame, in world axes.
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
def legs_plant(kind: str, seed: int = 0, payload: Payload | None = None, seconds: float | None = None) -> LegsPlant:
    """Simulate a "quadruped" or "biped" and record it; `seconds` cuts the motion short."""
    import mujoco

    feet = QUADRUPED_FEET if kind == "quadruped" else BIPED_FEET
    nominal = load(kind)
    rate = RATE * STEPS
    gait = (quadruped_gait if kind == "quadruped" else biped_gait)(nominal, feet, rate, seed)
    plant = mujoco.MjModel.from_xml_string(model(kind, payload))
    count = len(gait.t) if seconds is None else min(len(gait.t), round(seconds * rate))
    gains = (120.0, 3.0) if kind == "quadruped" else (500.0, 10.0)
    raw = _simulate(mujoco, plant, gait, feet, count // STEPS, gains)
    return _recorded(load(kind, payload), feet, raw, seed)


def _simulate(
    mujoco, plant, gait: Gait, feet: tuple[str, ...], samples: int, gains: tuple[float, float]  # type: ignore[no-untyped-def]
) -> dict[str, Array]:
    """Integrate the closed loop; the samples hold the state at the beginning of a step and the forces in it."""
    data = mujoco.MjData(plant)
    n = gait.q.shape[1]
    data.qpos[7:] = gait.q[0]
    data.qpos[:7] = [0, 0, 0, 1, 0, 0, 0]
    mujoco.mj_forward(plant, data)
    sites = [plant.site(f).id for f in feet]
    soles = np.array([data.site_xpos[s] for s in sites])
    bottom = min(soles[:, 2]) - (plant.geom(1).size[0] if plant.geom(1).type[0] == 2 else 0.0)
    data.qpos[2] = -bottom
    mujoco.mj_forward(plant, data)
    body_foot = {plant.site_bodyid[s]: k for k, s in enumerate(sites)}
    out = {
        name: np.zeros((samples, width))
        for name, width in dict(q=n, v=n, a=n, torque=n, imu=6, base=7, twist=6, acceleration=6).items()
    }
    forces = np.zeros((samples, len(feet), 6))
    wrench = np.zeros(6)
    stiffness, damping = gains
    for k in range(samples * STEPS):
        q, v = data.qpos[7:].copy(), data.qvel[6:].copy()
        torque = gait.torque[k] + stiffness * (gait.q[k] - q) + damping * (gait.v[k] - v)
        data.ctrl[:] = torque
        i, record = divmod(k, STEPS)
        if record == 0:
            out["q"][i], out["v"][i], out["torque"][i] = q, v, torque
            pose = data.qpos[:7]
            out["base"][i] = [*pose[:3], *pose[4:7], pose[3]]
            turn = np.zeros(9)
            mujoco.mju_quat2Mat(turn, pose[3:7])
            turn = turn.reshape(3, 3)
            out["twist"][i] = [*(turn.T @ data.qvel[:3]), *data.qvel[3:6]]
        mujoco.mj_step(plant, data)
        if record == 0:
            out["imu"][i] = data.sensordata[:6]
            out["a"][i] = data.qacc[6:]
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
                forces[i, foot] += [*force, *np.cross(arm, force)]
    if data.qpos[2] < 0.15 or abs(data.qpos[4]) > 0.3 or abs(data.qpos[5]) > 0.3:
        raise RuntimeError("the simulated robot has fallen")
    return out | {"t": np.arange(samples) / RATE, "forces": forces}


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
    contacts = {f: forces[f][:, 2] > 1.0 for f in feet}
    run = dynid.Run(raw["t"], q, torque=torque, imu=imu, contacts=contacts)
    return LegsPlant(robot, run, feet, forces, raw["base"], raw["twist"], raw["acceleration"], bias)


def with_true_forces(plant: LegsPlant) -> dynid.Run:
    """The run with the wrench of the floor on every foot, as sensors in the feet would measure it."""
    from dataclasses import replace

    sensors = {f: WrenchSensor(f, axes="world") for f in plant.feet}
    return replace(plant.run, wrenches=plant.forces, sensors=sensors)
