"""Flexible joints in MJCF: MuJoCo moves motors and links as dynid does."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import dynid
from dynid.cli.main import app
from dynid.errors import ModelError
from dynid.export.label import Label
from dynid.export.mjcf import Springs, write_mjcf
from dynid.flexible import FlexibleEstimate, identify_flexible, write_flexible
from dynid.simulation.unmodeled import link_side
from tests.support.errors import expect_error
from tests.support.flexible_plant import recording, robot


@pytest.fixture(scope="module")
def mujoco() -> ModuleType:
    return pytest.importorskip("mujoco")


@pytest.fixture(scope="module")
def estimate() -> FlexibleEstimate:
    return identify_flexible(robot(), recording(), link_friction="viscous", tests=False)


def test_mujoco_moves_motors_and_links_as_our_simulation(mujoco: Any, tmp_path: Path) -> None:
    """The torques of a closed loop, given to MuJoCo: the same motion, of which the springs are a large part."""
    bare = dynid.load_robot("twolink", friction="viscous", rotor_inertia=True)
    values = {"Ia": 0.5, "fv": 1.0}
    arm = bare.with_parameters([values.get(p.symbol, x) for p, x in zip(bare.layout, bare.parameters, strict=True)])
    t = np.arange(1500) / 1000.0
    path = 0.4 * np.sin(np.outer(t, [3.0, 5.0]))
    stiffness, damping = {"joint1": 3000.0, "joint2": 900.0}, {"joint1": 6.0, "joint2": 2.0}
    effects = dynid.simulation.UnmodeledEffects(stiffness=[*stiffness.values()], damping=[*damping.values()])
    law = dynid.controllers.pd(1000.0, [1500.0, 500.0], [60.0, 20.0])
    done = dynid.simulate(arm, dynid.ClosedLoop(controller=law), path, unmodeled=effects)
    assert np.abs(done.motor_q - done.q).max() > 5e-3
    write_mjcf(link_side(arm), tmp_path / "arm.xml", springs=Springs(arm, stiffness, damping))
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))
    names = [model.joint(k).name for k in range(model.njnt)]
    assert names == ["joint1", "joint1_deflection", "joint2", "joint2_deflection"]
    model.opt.integrator, model.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, 5e-4
    data = mujoco.MjData(model)
    data.qpos[0::2], data.qpos[1::2] = done.motor_q[0], done.q[0] - done.motor_q[0]
    data.qvel[0::2] = done.v[0]
    for k in range(len(done.t) - 1):
        data.qfrc_applied[0::2] = done.torque[k]
        mujoco.mj_step(model, data, 2)
        # Both integrators are exact to 1e-6 rad here; the springs bend by 6e-3 rad.
        np.testing.assert_allclose(data.qpos[0::2], done.motor_q[k + 1], atol=2e-5)
        np.testing.assert_allclose(data.qpos[0::2] + data.qpos[1::2], done.q[k + 1], atol=2e-5)


def test_identified_joints_have_the_same_equations_in_mujoco(
    mujoco: Any, estimate: FlexibleEstimate, tmp_path: Path
) -> None:
    """Motor: rotor inertia and friction; spring; link: bodies and the friction of the link, on the sum of both."""
    assert write_flexible(estimate, tmp_path / "arm.xml") == Label().warnings
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.qacc[:] = (0.4, -0.01), (0.7, 0.3), (2.0, -5.0)
    mujoco.mj_inverse(model, data)
    q, v, a = (np.array([[x.sum()]]) for x in (data.qpos, data.qvel, data.qacc))
    link = dynid.inverse_dynamics(estimate.identified_robot, q, v, a)[0, 0]
    spring = estimate.stiffness[0] * 0.01 - estimate.damping[0] * 0.3
    motors = estimate.motor_parameters
    motor = motors["Ia_joint1"] * 2.0 + motors["fv_joint1"] * 0.7
    np.testing.assert_allclose(data.qfrc_inverse, [motor + link, link - spring], rtol=1e-9)


def test_formats_without_springs_say_so(estimate: FlexibleEstimate, tmp_path: Path) -> None:
    for name, word in (("arm.urdf", "URDF"), ("arm.sdf", "SDF")):
        warnings = write_flexible(estimate, tmp_path / name)
        assert warnings[-1].startswith(f"{word} has no place for springs between motors and links")
    with expect_error(ModelError, "template", code="not_applicable"):
        write_flexible(estimate, tmp_path / "b.xml", template=tmp_path / "arm.xml")
    write_flexible(estimate, tmp_path / "joints.json")
    assert json.loads((tmp_path / "joints.json").read_text())["joints"].keys() == {"joint1"}


def test_a_joint_without_elasticity_is_one_joint(mujoco: Any, tmp_path: Path) -> None:
    arm = dynid.load_robot("twolink", friction="viscous", rotor_inertia=True)
    springs = Springs(arm, {"joint2": 900.0}, {"joint2": 2.0})
    write_mjcf(link_side(arm), tmp_path / "arm.xml", springs=springs, allow_infeasible=True)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))
    assert [model.joint(k).name for k in range(model.njnt)] == ["joint1", "joint2", "joint2_deflection"]
    value = dict(zip(arm.parameter_names, arm.parameters, strict=True))
    assert model.joint("joint1").armature[0] == value["Ia_joint1"]


def test_command_line_refuses_an_unknown_ending(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["flexible", "twolink", str(tmp_path / "log.csv"), "-o", "arm.txt"])
    assert result.exit_code != 0
