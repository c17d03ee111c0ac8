"""Geometry and dynamics together, against a plant of Pinocchio with wrong joints, other bodies and compliances."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import dynid
from dynid.geometry import GeometryModel, Points, WholeEstimate, calibrate_geometry, corrected_robot, identify_whole

COMPLIANCE, DAMPING, COULOMB = 4e-5, 2.0, 3.0
TOOL = np.array([0.05, 0.02, 0.1])
MODEL = GeometryModel(eccentricity=0.0, bending=0.0)


class Plant:
    """An arm of three joints whose base is tilted and whose joints are wrong by millimetres and half degrees."""

    def __init__(self, nominal: dynid.Robot, rng: np.random.Generator) -> None:
        self.model = nominal.to_pinocchio()
        self.data = self.model.createData()
        for j in range(1, self.model.njoints):
            error = pin.Motion(np.r_[3e-3 * rng.normal(size=3), np.deg2rad(0.6) * rng.normal(size=3)])
            self.model.jointPlacements[j] = self.model.jointPlacements[j] * pin.exp6(error)
            body = self.model.inertias[j]
            self.model.inertias[j] = pin.Inertia(body.mass * rng.uniform(0.7, 1.3), body.lever, body.inertia)

    def tip(self, q: np.ndarray) -> np.ndarray:
        bent = q.copy()
        for _ in range(10):
            bent = q - COMPLIANCE * pin.computeGeneralizedGravity(self.model, self.data, bent)
        pin.forwardKinematics(self.model, self.data, bent)
        return np.asarray(self.data.oMi[self.model.njoints - 1].act(TOOL))

    def torques(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        rigid = np.array([pin.rnea(self.model, self.data, *x) for x in zip(q, v, a, strict=True)])
        return rigid + DAMPING * v + COULOMB * np.sign(v)


def motion(rng: np.random.Generator, seconds: float) -> tuple[np.ndarray, ...]:
    """A sum of sines in three joints: time, position, velocity, acceleration."""
    t = np.arange(0, seconds, 0.01)
    w = 2 * np.pi * 0.1 * np.arange(1, 6)
    A = 0.3 * rng.normal(size=(3, 5))
    angle = t[:, None] * w
    return t, np.sin(angle) @ A.T, (w * np.cos(angle)) @ A.T, (-(w**2) * np.sin(angle)) @ A.T


@pytest.fixture(scope="module")
def setting() -> tuple[dynid.Robot, Plant, Points, WholeEstimate, dynid.Recording]:
    rng = np.random.default_rng(4)
    arm = dynid.load_robot("puma560").locked({"joint4": 0.0, "joint5": 0.0, "joint6": 0.0})
    nominal = arm.without("*").with_drives("viscous+coulomb")
    plant = Plant(nominal, rng)
    q = rng.uniform(-1.5, 1.5, (40, 3))
    stand = pin.SE3(pin.exp3(np.array([0.3, 0.2, 1.0])), np.array([0.5, -0.2, 0.1]))
    seen = np.array([stand.act(plant.tip(x)) for x in q]) + 2e-4 * rng.normal(size=(40, 3))
    t, *states = motion(rng, 15.0)
    torque = plant.torques(*states)
    noisy = torque + 0.02 * torque.std(0) * rng.normal(size=torque.shape)
    recording = dynid.Recording(nominal.coordinates, [dynid.Run(t=t, q=states[0], torque=noisy)])
    points = Points(q, nominal.links[-1].name, points=seen)
    whole = identify_whole(nominal, points, recording, MODEL, method="wls")
    return nominal, plant, points, whole, recording


def torque_error(robot: dynid.Robot, plant: Plant) -> float:
    """Error on other motion over the standard deviation of the torque, mean over the joints."""
    _, *states = motion(np.random.default_rng(9), 10.0)
    true = plant.torques(*states)
    return float(np.mean((dynid.inverse_dynamics(robot, *states) - true).std(0) / true.std(0)))


def test_torques_are_predicted_better_than_from_either_alone(setting) -> None:
    nominal, plant, points, whole, recording = setting
    alone = dynid.identify(nominal, recording, "wls")
    measured = calibrate_geometry(nominal, points, MODEL, held_out=False)
    count = measured.joint_count
    placed = corrected_robot(nominal, measured.unknowns[:count], measured.values[:count])
    after = dynid.identify(placed, recording, "wls")
    ours = torque_error(whole.robot, plant)
    assert ours < 0.7 * torque_error(alone.identified_robot, plant)
    assert ours < 0.7 * torque_error(after.identified_robot, plant)


def test_torques_see_the_tilt_of_the_base_which_markers_do_not(setting) -> None:
    whole = setting[3]
    names = [u.name for u in whole.geometry.unknowns]
    tilts = [names.index(f"{s} of joint1") for s in ("rx", "ry")]
    assert np.all(whole.gained[tilts] > 0.9)
    assert whole.gained.min() > -1e-6
    assert "rx of joint1" in whole.summary()


def test_the_tilt_is_covered_by_its_interval(setting) -> None:
    nominal, plant, _, whole, _ = setting
    nominal_axis = nominal.joints[0].placement[:3, :3] @ nominal.joints[0].axis
    true = plant.model.jointPlacements[1].rotation @ nominal.joints[0].axis
    found = whole.robot.joints[0].placement[:3, :3] @ nominal.joints[0].axis
    names = [u.name for u in whole.geometry.unknowns]
    std = whole.geometry.std[[names.index(f"{s} of joint1") for s in ("rx", "ry")]]
    assert np.linalg.norm(true - nominal_axis) > 3 * np.linalg.norm(found - true)
    assert np.linalg.norm(found - true) < 4 * np.linalg.norm(std)


def test_links_are_where_the_markers_saw_them(setting) -> None:
    whole, points = setting[3], setting[2]
    sensor = whole.geometry.sensors[0]
    assert sensor.after < 4e-4 < 10 * sensor.after < sensor.before
    assert whole.covariance.shape == (len(whole.gained) + whole.dynamics.base.count,) * 2
    assert len(points.q) == sensor.postures
