"""The example node of ROS 2, with a stub in place of rclpy: joint states in, payload, events and diagnostics out."""

from __future__ import annotations

import ast
import importlib.util
import json
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import dynid
from tests.support import carrying_plant, rclpy_stub
from tests.support.carrying_plant import MASS, carry

FOLDER = Path(__file__).parents[2] / "examples" / "ros2_dynid_online"
NAME = "ros2_dynid_online"


def module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def known_arm(tmp_path: Path) -> Path:
    """A saved estimate whose values are those of the plant."""
    plant = carrying_plant.arm(6)
    robot = plant.with_terms(*(plant.joint_term(k, "Ia", carrying_plant.ROTOR) for k in range(plant.n)))
    base = dynid.base_parameters(robot)
    n = len(base.channels)
    dynid.Estimate(
        base=base,
        method="wls",
        beta=base.values(),
        covariance=1e-10 * np.eye(base.count),
        noise=np.ones(n),
        rows=(100,) * n,
        rms=np.ones(n),
        relative_error=np.zeros(n),
        condition_number=1.0,
        status="solved",
        seconds=0.0,
    ).save(tmp_path / "estimate.json")
    return tmp_path / "estimate.json"


def test_the_node_weighs_what_is_picked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = {
        "estimate": str(known_arm(tmp_path)),
        "link": "link6",
        "rate": 250.0,
        "training": 2.5,
    }
    rclpy_stub.install(monkeypatch, parameters)
    node_module = module(FOLDER / NAME / "payload_node.py")
    node: Any = node_module.PayloadNode()
    kind, take = node.subscriptions["joint_states"]
    run = carry(carrying_plant.arm(6), 6.0, hold=(4.0, np.inf), rate=250.0)
    joints = [f"joint{k}" for k in range(6, 0, -1)]  # in another order than the robot's
    take(kind(name=["other"], position=[0.0], effort=[0.0]))
    for t, q, torque in zip(run.t, run.q, run.torque, strict=True):
        message = kind(name=[*joints, "gripper"], position=[*q[::-1], 0.0], effort=[*torque[::-1], 0.0])
        message.header.stamp.sec, message.header.stamp.nanosec = int(t), round(1e9 * (t % 1.0))
        take(message)
    (publish,) = node.timers
    publish()
    (event,) = node.publishers["~/event"].messages
    assert json.loads(event.data)["kind"] == "pick-up"
    (payload,) = node.publishers["~/payload"].messages
    assert abs(payload.inertia.m - MASS) < 0.05 * MASS and payload.header.frame_id == "link6"
    (report,) = node.publishers["/diagnostics"].messages
    values = {x.key: x.value for x in report.status[0].values}
    assert values["unusable joint states"] == "1" and values["events"] == "1"
    assert report.status[0].level == b"\x01" and any("no joint" in line for line in node.log)
    node_module.main()


def test_the_build_files_agree() -> None:
    """Names, entry point, installed files and parameters."""
    package = ET.parse(FOLDER / "package.xml").getroot()
    assert package.findtext("name") == NAME and package.find("export/build_type") is not None
    assert (FOLDER / "resource" / NAME).is_file()
    setup = (FOLDER / "setup.py").read_text(encoding="utf-8")
    for file in ("launch/payload.launch.py", "config/payload.yaml", "package.xml"):
        assert file in setup and (FOLDER / file).is_file()
    assert f'NAME = "{NAME}"' in setup and "payload_node:main" in setup
    node = (FOLDER / NAME / "payload_node.py").read_text(encoding="utf-8")
    imported = {(x.module or "").split(".")[0] for x in ast.walk(ast.parse(node)) if isinstance(x, ast.ImportFrom)} | {
        "rclpy"
    }
    depends = {x.text for x in package.findall("exec_depend")}
    assert {name for name in imported if name.endswith("_msgs") or name == "rclpy"} <= depends
    found = next(
        x
        for x in ast.parse(node).body
        if isinstance(x, ast.Assign) and x.targets[0].id == "DEFAULTS"  # type: ignore[attr-defined]
    )
    names = set(ast.literal_eval(found.value))
    written = {
        line.split(":")[0].strip()
        for line in (FOLDER / "config" / "payload.yaml").read_text(encoding="utf-8").splitlines()[2:]
    }
    assert names == written
    launch = (FOLDER / "launch" / "payload.launch.py").read_text(encoding="utf-8")
    assert f'package="{NAME}"' in launch and 'executable="payload_node"' in launch
