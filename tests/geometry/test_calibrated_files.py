"""Calibrated robots as files: their tools by Pinocchio, MuJoCo and our readers, and what of a template stays."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.dynamics import frame_placement
from dynid.errors import MissingArgument, ModelError, NotApplicable, UnknownName, WrongFormat
from dynid.export import write
from dynid.export.label import Label
from dynid.geometry import corrected_robot, write_calibrated
from tests.support.errors import expect_error
from tests.support.model_files import changed
from tests.support.random_robots import random_robot
from tests.support.wrong_geometry import EVERYTHING, by_mujoco, by_pinocchio, postures, tool, wrong

SAME = 1e-9  # m and parts of axes; what is measured is below 2e-15
FILES = {
    "mukca-ball-sockets/panda.urdf": "ball_link",
    "mukca-ball-sockets/gen3lite.urdf": "end_effector_link",
    "tiago-mocap-figaroh/tiago_48_schunk.urdf": "arm_tool_link",
    "ur10e-mamedov/ur10e.urdf": "wrist_3_link",
}
TREES = {
    **{name: changed(dynid.load_robot(name)) for name in ("puma560", "wam7", "iiwa14")},
    "mimics": random_robot(1, 8, kinds="rprprprr", mimics=3, mounts=False),
    "mounts": random_robot(2, 6, kinds="rrprrr"),
}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("snap", [False, True])
def test_pinocchio_reads_our_tool_from_a_real_urdf(data: Path, tmp_path: Path, file: str, snap: bool) -> None:
    """Joints on fixed links among them; nothing but origins of joints changes."""
    source, out = data / file, tmp_path / "out.urdf"
    robot, frame = dynid.load_robot(source, snap_angles=snap), FILES[file]
    unknowns, x = wrong(robot)
    write_calibrated(out, robot, unknowns, x, template=source)
    q = postures(robot)
    expected = tool(robot, unknowns, x, q, frame)
    found = by_pinocchio(out, robot, q, frame)
    fixed = 1e-4 if snap else SAME  # fixed frames keep their rounded angles
    np.testing.assert_allclose(found[:, :3, :3], expected[:, :3, :3], rtol=0, atol=fixed)
    np.testing.assert_allclose(found[:, :3, 3], expected[:, :3, 3], rtol=0, atol=fixed)
    assert np.abs(frame_placement(robot, q, frame)[:, :3, 3] - expected[:, :3, 3]).max() > 1e-3
    before, after = (_without_origins(p.read_text()) for p in (source, out))
    assert before == after


def _without_origins(text: str) -> str:
    return re.sub(r'(xyz|rpy)="[^"]*"', "", text)


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("templated", [True, False])
def test_every_format_gives_our_tool(tmp_path: Path, name: str, templated: bool) -> None:
    robot = TREES[name]
    unknowns, x = wrong(robot)
    q, corrected = postures(robot), corrected_robot(robot, unknowns, x)
    for ending in ("urdf", "xml", "sdf"):
        source, out = tmp_path / f"in.{ending}", tmp_path / f"out.{ending}"
        write(robot, source)
        given = source if templated else None
        write_calibrated(out, robot, unknowns, x, template=given)
        back = dynid.load_robot(out)
        assert back.coordinates == robot.coordinates
        for i, link in enumerate(robot.links[1:]):
            expected = frame_placement(corrected, q, link.name)
            if ending == "urdf":  # links sit on their joints there
                mount = np.linalg.inv(robot.joints[i].mount)
                expected = expected @ mount
                np.testing.assert_allclose(by_pinocchio(out, robot, q, link.name), expected, rtol=0, atol=SAME)
            elif ending == "xml":
                np.testing.assert_allclose(by_mujoco(out, robot, q, link.name), expected, rtol=0, atol=SAME)
            np.testing.assert_allclose(frame_placement(back, q, link.name), expected, rtol=0, atol=SAME)


MJCF = """<mujoco model="lab">
  <!-- kept -->
  <compiler angle="degree" eulerseq="XYZ"/>
  <default><joint pos="0.1 0 0"/><default class="turned"><joint axis="0 1 0" ref="30"/></default></default>
  <worldbody>
    <body name="stand" pos="0 0 0.5" euler="0 0 90">
      <frame pos="0.1 0 0" euler="10 20 30">
        <body name="shoulder" pos="0 0.1 0" axisangle="1 0 0 40">
          <inertial mass="1" pos="0 0 0.1" diaginertia="0.1 0.1 0.1"/>
          <frame euler="0 0 15"><joint name="pan"/></frame>
          <joint name="lift" class="turned"/>
          <joint name="slide" type="slide" axis="1 2 3" ref="0.2"/>
          <body name="plate" pos="0.2 0 0" zaxis="0 1 1">
            <body name="hand" pos="0 0 0.3">
              <joint name="roll" class="turned"/>
              <inertial mass="1" pos="0 0 0.1" diaginertia="0.1 0.1 0.1"/>
            </body>
          </body>
        </body>
      </frame>
    </body>
  </worldbody>
</mujoco>
"""


def test_bodies_of_several_joints_frames_and_references(tmp_path: Path) -> None:
    """Joints with positions, classes and references, inside frames, on static bodies, three in one body."""
    source, out = tmp_path / "lab.xml", tmp_path / "out.xml"
    source.write_text(MJCF)
    robot = dynid.load_robot(source)
    unknowns, x = wrong(robot)
    q = postures(robot)
    write_calibrated(out, robot, unknowns, x, template=source)
    for body in ("shoulder", "hand"):
        expected = tool(robot, unknowns, x, q, body)
        np.testing.assert_allclose(by_mujoco(out, robot, q, body), expected, rtol=0, atol=SAME)
    text = out.read_text()
    assert "<!-- kept -->" in text and 'pos="0 0 0.5" euler="0 0 90"' in text and 'zaxis="0 1 1"' in text
    write_calibrated(out, robot, unknowns, 0 * x, template=source)
    assert out.read_bytes() == source.read_bytes()


def test_an_arm_in_mjcf_with_meshes_elsewhere(data: Path, tmp_path: Path) -> None:
    source = data / "so101-arm-sage" / "so101.xml"
    robot, out = dynid.load_robot(source), tmp_path / "out.xml"
    unknowns, x = wrong(robot)
    warnings = write_calibrated(out, robot, unknowns, x, template=source)
    assert any("meshes" in w for w in warnings)
    q, body = postures(robot), robot.links[-1].name
    np.testing.assert_allclose(by_mujoco(out, robot, q, body), tool(robot, unknowns, x, q, body), rtol=0, atol=SAME)


SDF = """<?xml version="1.0"?>
<sdf version="1.9">
  <model name="lab">
    <pose>1 2 3 0 0 0.5</pose>
    <link name="base"><inertial><mass>1</mass></inertial></link>
    <joint name="ground" type="fixed"><parent>world</parent><child>base</child></joint>
    <link name="upper">
      <pose degrees="true">0.1 0 0.3 0 90 0</pose>
      <visual name="shape"><pose relative_to="mark">0 0 0.1 0 0 0</pose></visual>
    </link>
    <frame name="mark" attached_to="base"><pose>0.5 0 0 0 0 0</pose></frame>
    <joint name="pan" type="revolute">
      <pose relative_to="base">0.1 0 0.2 0.1 0.2 0.3</pose>
      <parent>base</parent><child>upper</child>
      <axis><xyz expressed_in="__model__">0 0 1</xyz></axis>
    </joint>
    <link name="plate"><pose relative_to="upper">0 0.2 0 0 0 0.4</pose></link>
    <joint name="bolt" type="fixed"><parent>upper</parent><child>plate</child></joint>
    <link name="hand"><pose>0.4 0.1 0.6 0 0 0</pose></link>
    <joint name="roll" type="prismatic">
      <parent>plate</parent><child>hand</child>
      <axis><xyz>1 1 0</xyz></axis>
    </joint>
    <frame name="tip" attached_to="hand"/>
    <frame name="probe" attached_to="hand"><pose relative_to="upper">0 0 1 0 0 0</pose></frame>
  </model>
</sdf>
"""


def test_poses_of_sdf_relative_to_anything(tmp_path: Path) -> None:
    """Frames, shapes, fixed links and axes keep their places on what carries them."""
    source, out = tmp_path / "lab.sdf", tmp_path / "out.sdf"
    source.write_text(SDF)
    robot = dynid.load_robot(source)
    unknowns, x = wrong(robot)
    write_calibrated(out, robot, unknowns, x, template=source)
    back, corrected, q = dynid.load_robot(out), corrected_robot(robot, unknowns, x), postures(robot)
    for frame in ("upper", "plate", "hand", "tip", "probe", "mark"):
        expected = frame_placement(corrected, q, frame)
        np.testing.assert_allclose(frame_placement(back, q, frame), expected, rtol=0, atol=SAME)
    text = out.read_text()
    # The shape moves with its link: its pose in the frame of the base is another one.
    (words,) = re.findall(r'relative_to="mark">([^<]*)<', text)
    shape = [float(v) for v in words.split()[:3]]
    link = [np.linalg.inv(frame_placement(r, [0.0, 0.0], "upper")) for r in (robot, corrected)]
    at = frame_placement(robot, [0.0, 0.0], "mark")
    places = [h @ at @ [*p, 1] for h, p in zip(link, ([0, 0, 0.1], shape), strict=True)]
    np.testing.assert_allclose(places[1], places[0], rtol=0, atol=SAME)
    write_calibrated(out, robot, unknowns, 0 * x, template=source)
    assert out.read_bytes() == source.read_bytes()


def test_lost_errors_and_labels_go_with_the_file(tmp_path: Path) -> None:
    robot, out = TREES["puma560"], tmp_path / "out.urdf"
    unknowns, x = wrong(robot, model=EVERYTHING)
    warnings = write_calibrated(out, robot, unknowns, x, frame="link6", label=Label())
    assert [w for w in warnings if w.startswith("compliance of 6 joints moves link6 by")]
    assert "verdict: not assessed" in out.read_text()


def test_formats_that_cannot_be_are_refused(tmp_path: Path) -> None:
    robot = TREES["puma560"]
    unknowns, x = wrong(robot)
    with expect_error(WrongFormat, "form"):
        write_calibrated(tmp_path / "a.txt", robot, unknowns, x)
    with expect_error(UnknownName, "form"):
        write_calibrated(tmp_path / "a", robot, unknowns, x, form="udrf")
    with expect_error(NotApplicable, "template"):
        write_calibrated(tmp_path / "a", robot, unknowns, x, form="dh", template="b.urdf")
    with expect_error(MissingArgument, "frame"):
        write_calibrated(tmp_path / "a", robot, unknowns, x, form="dh")
    write(TREES["wam7"], tmp_path / "wam.urdf")
    with expect_error(ModelError, "template", code="mismatch"):
        write_calibrated(tmp_path / "a.urdf", robot, unknowns, x, template=tmp_path / "wam.urdf")
    (tmp_path / "b.sdf").write_text("<robot/>")
    with expect_error(ModelError, "template", code="file_format"):
        write_calibrated(tmp_path / "a.sdf", robot, unknowns, x, template=tmp_path / "b.sdf")


PLANAR = """<robot name="cart"><link name="base"/><link name="cart"/><link name="arm"/>
<joint name="drive" type="planar"><parent link="base"/><child link="cart"/><axis xyz="0 0 1"/></joint>
<joint name="turn" type="continuous"><parent link="cart"/><child link="arm"/></joint></robot>"""


def test_joints_that_the_reader_made_of_one_are_refused(tmp_path: Path) -> None:
    """A planar joint has one origin: errors between its parts have no place; others have, and get a new origin."""
    source, out = tmp_path / "cart.urdf", tmp_path / "out.urdf"
    source.write_text(PLANAR)
    robot = dynid.load_robot(source)
    unknowns, x = wrong(robot)
    with expect_error(ModelError, "template", code="unsupported"):
        write_calibrated(out, robot, unknowns, x, template=source)
    turn = np.array([u.owner == "turn" for u in unknowns])
    write_calibrated(out, robot, unknowns, np.where(turn, x, 0), template=source)
    assert out.read_text().count("<origin") == 1
