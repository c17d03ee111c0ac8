"""Robots identified from real recordings by method auto, as files that other programs read and simulate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import dynid
from dynid.feasibility import consistent_prior, feasible_set
from studies.reproduce.robot_cases import CASES

mujoco = pytest.importorskip("mujoco")

ROBOTS = ("lwr4", "ur10e", "med7", "kinova_sensor", "xmate_sensor", "kr300", "tiago", "tx40")
# Torques of the TIAGo are currents times guessed gains, so that its masses are not in kg.
SCALED = ("tiago",)
FALL = 2.0  # s


@pytest.mark.slow
@pytest.mark.parametrize("name", ROBOTS)
def test_a_written_robot_is_plausible_and_falls(name: str, data: Path, tmp_path: Path) -> None:
    """URDF in Pinocchio and MJCF in MuJoCo: the same masses, a positive mass matrix, two seconds of free fall."""
    case = CASES[name]()
    estimate = dynid.identify(case.robot, case.train)
    robot = estimate.identified_robot
    assert feasible_set(robot).violations(estimate.parameters) == []
    at = [i for i, p in enumerate(robot.layout) if p.inertial and p.symbol == "m"]
    total, prior = estimate.parameters[at].sum(), consistent_prior(case.robot)
    expected = prior.parameters[[i for i, p in enumerate(case.robot.layout) if p.inertial and p.symbol == "m"]].sum()
    assert prior.complete or name in SCALED or 0.3 < total / expected < 3.0, (total, expected)
    dynid.export.write(estimate, tmp_path / "robot.urdf")
    dynid.export.write(estimate, tmp_path / "robot.xml")
    model = pin.buildModelFromUrdf(str(tmp_path / "robot.urdf"))
    assert sum(model.inertias[k].mass for k in range(1, model.njoints)) == pytest.approx(total, rel=1e-6)
    mass_matrix = pin.crba(model, model.createData(), pin.neutral(model))
    assert np.linalg.eigvalsh(mass_matrix)[0] > 0
    loaded = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
    state = mujoco.MjData(loaded)
    loaded.opt.timestep = 2e-4
    while state.time < FALL:
        mujoco.mj_step(loaded, state)
    assert np.all(np.isfinite(state.qpos)) and np.abs(state.qvel).max() < 200.0
    assert state.warning.number.sum() == 0
