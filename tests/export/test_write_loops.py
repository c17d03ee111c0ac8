"""Closed loops in model files: equality constraints in MJCF, a warning elsewhere."""

import numpy as np
import pytest

import dynid
from dynid.robot.model import Robot

Y = [0, 1, 0]


def _with_rod():
    rows = [
        {"name": "a", "axis": Y, "inertia": {"mass": 1.0, "com": [0.1, 0, 0], "tensor": [0.01, 0, 0, 0.01, 0, 0.01]}},
        {
            "name": "c",
            "axis": Y,
            "xyz": [0.4, 0, 0],
            "parent": "base",
            "inertia": {"mass": 1.0, "com": [0.1, 0, 0], "tensor": [0.01, 0, 0, 0.01, 0, 0.01]},
        },
    ]
    rod = {
        "kind": "rod",
        "length": 0.4,
        "first": {"link": "link1", "name": "p", "xyz": [0.2, 0, 0]},
        "second": {"link": "link2", "name": "s", "xyz": [0.3, 0, 0]},
    }
    return Robot.from_dh(rows, "origin", name="rod", loop=[rod], posture={"a": -1.0, "c": -1.2})


@pytest.mark.parametrize("make", [lambda: dynid.load_robot("palletizer"), _with_rod], ids=["connect", "rod"])
def test_mujoco_finds_the_assembled_posture_closed(make, tmp_path):
    mujoco = pytest.importorskip("mujoco")
    robot = make()
    dynid.export.write(robot, tmp_path / "robot.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    for share in (0.0, 0.2):
        motion = dynid.dynamics.assemble(robot, (robot.home + share)[None])
        for name, x in zip(robot.tree_coordinates, motion.q[0], strict=True):
            if share == 0.0:
                assert data.qpos[model.joint(name).qposadr[0]] == pytest.approx(x, abs=1e-12)
            data.qpos[model.joint(name).qposadr[0]] = x
        mujoco.mj_forward(model, data)
        assert data.nefc >= len(robot.loops)
        rows = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
        assert np.abs(data.efc_pos[rows]).max() < 1e-12


@pytest.mark.parametrize("ending", ["urdf", "sdf"])
def test_other_files_hold_the_tree_and_say_so(ending, tmp_path):
    robot = dynid.load_robot("fourbar")
    warnings = dynid.export.write(robot, tmp_path / f"robot.{ending}")
    assert "has no place for closed loops" in warnings[0]
    assert "'coupler_end' and 'rocker_end'" in warnings[0]
    assert dynid.load_robot(tmp_path / f"robot.{ending}").n == 3
