"""Bodies, armature and damping from torques and encoders in open loop, on an arm that MuJoCo integrates."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid.actuators import ActuatorEstimate, draw_actuators, identify_actuators
from dynid.errors import ConflictingArguments
from dynid.feasibility.sets import feasible_set
from dynid.parameters.base import base_parameters
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot import ActuatorLaw
from tests.support.errors import expect_error

Array = NDArray[np.float64]

RATE, SECONDS = 200.0, 4.0
NOISE = 1e-4  # rad
_ARM = """
<mujoco><option integrator="RK4" timestep="0.0005"/><worldbody>
  <body name="upper"><joint name="shoulder" axis="0 1 0" armature="{a}" damping="{d}"/>
    <inertial pos="0.1 0.01 0.02" mass="{m}" diaginertia="0.006 0.009 0.008"/>
    <body name="lower" pos="0.3 0 0"><joint name="elbow" axis="0 1 0" armature="{a}" damping="{d}"/>
      <inertial pos="0.12 0 -0.01" mass="{m}" diaginertia="0.002 0.004 0.004"/></body></body>
</worldbody></mujoco>
"""
TRUE, GIVEN = _ARM.format(a=0.02, d=0.15, m=1.1), _ARM.format(a=0.005, d=0.5, m=1.6)


def robot_of(text: str, folder: Path) -> dynid.Robot:
    (folder / "arm.xml").write_text(text, encoding="utf-8")
    return dynid.load_robot(folder / "arm.xml", friction="viscous", rotor_inertia=True)


def fallen(seed: int) -> Recording:
    """The arm falls from a horizontal pose and swings under held torques."""
    model = mujoco.MjModel.from_xml_string(TRUE)
    data = mujoco.MjData(model)
    t = np.arange(round(SECONDS * RATE)) / RATE
    torque = np.column_stack([3.0 * np.sin(5.0 * t), 1.5 * np.sin(8.0 * t + 1.0)])
    q, every = np.zeros_like(torque), round(1 / (RATE * model.opt.timestep))
    for k, u in enumerate(torque):
        q[k], data.qfrc_applied[:] = data.qpos, u
        mujoco.mj_step(model, data, every)
    q += NOISE * np.random.default_rng(seed).normal(size=q.shape)
    return Recording(("shoulder", "elbow"), (Run(t=t, q=q, torque=torque),))


@pytest.fixture(scope="module")
def true(tmp_path_factory: pytest.TempPathFactory) -> dynid.Robot:
    return robot_of(TRUE, tmp_path_factory.mktemp("true"))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> ActuatorEstimate:
    robot = robot_of(GIVEN, tmp_path_factory.mktemp("given"))
    law = ActuatorLaw(robot.coordinates)
    return identify_actuators(robot, fallen(0), law, unknown=("armature", "damping", "bodies"))


def test_whole_runs_are_fitted_to_the_noise(found: ActuatorEstimate) -> None:
    assert found.converged
    assert found.horizon > SECONDS - 0.1
    np.testing.assert_allclose(found.rms, NOISE, rtol=0.1)
    assert np.all(found.prior_rms > 100 * found.rms)


def test_base_parameters_are_those_of_the_plant(found: ActuatorEstimate, true: dynid.Robot) -> None:
    base = base_parameters(true, channels="torque")
    expected, reached = base.matrix @ true.parameters, base.matrix @ found.robot.parameters
    np.testing.assert_allclose(reached, expected, atol=2e-3 * np.abs(expected).max())


def test_bodies_are_physically_consistent(found: ActuatorEstimate) -> None:
    values = dict(zip(found.robot.parameter_names, found.robot.parameters, strict=True))
    assert values["m_upper"] > 0
    assert values["m_lower"] > 0
    assert values["Ia_shoulder"] >= 0
    assert not feasible_set(found.robot).violations(found.robot.parameters)


def test_torques_of_other_motion_are_met(found: ActuatorEstimate, true: dynid.Robot) -> None:
    t = np.arange(0.0, 5.0, 0.01)[:, None]
    w, size = np.array([2.0, 3.3]), np.array([0.8, 1.1])
    motion = (size * np.sin(w * t), size * w * np.cos(w * t), -size * w**2 * np.sin(w * t))
    expected = dynid.inverse_dynamics(true, *motion)
    error = dynid.inverse_dynamics(found.robot, *motion) - expected
    assert np.linalg.norm(error) < 1e-3 * np.linalg.norm(expected)


def test_values_lie_within_their_standard_deviations(found: ActuatorEstimate) -> None:
    for label, true in (("armature of elbow", 0.02), ("damping of shoulder", 0.15), ("damping of elbow", 0.15)):
        value, std = found.value(label)
        assert abs(value - true) < 4 * std
        assert std < 0.05 * true


def test_what_motion_shows_in_combination_only_is_said_so(found: ActuatorEstimate, true: dynid.Robot) -> None:
    """The given bodies are too heavy: with them, the armature of the first joint alone would have to be negative."""
    shown = {x.label: x.expression for x in found.unknowns if x.quantity == "armature"}
    assert set(shown) == {"Ia_shoulderR", "armature of elbow"}
    assert "Iyy" in shown["Ia_shoulderR"] and not shown["armature of elbow"]
    assert any("Ia_shoulderR = " in note for note in found.notes)
    base = base_parameters(true, channels="torque", order=["Ia_shoulder", "Ia_elbow", "fv_shoulder", "fv_elbow"])
    expected = dict(zip((true.parameter_names[k] for k in base.kept), base.matrix @ true.parameters, strict=True))
    for x, value, std in zip(found.unknowns, found.values, found.std, strict=True):
        assert abs(value - expected[x.parameters[0]]) < 4 * std + 1e-5


def test_draws_are_physically_consistent_robots(found: ActuatorEstimate) -> None:
    draws = draw_actuators(found, 3)
    assert np.all(draws.values[:, [x.startswith(("Ia_", "fv_", "m_")) for x in draws.names]] >= 0)
    for model, _ in draws.models(found.robot, found.law):
        assert not feasible_set(model).violations(model.parameters)


def test_an_armature_that_bodies_hide_in_cannot_be_shared(tmp_path: Path) -> None:
    robot = robot_of(GIVEN, tmp_path)
    with expect_error(ConflictingArguments, "unknown"):
        identify_actuators(
            robot, fallen(0), ActuatorLaw(robot.coordinates), unknown={"armature": "shared", "bodies": ""}
        )
