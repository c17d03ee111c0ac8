"""SDF files we write, read back by our reader and by a second one that goes straight to Pinocchio."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import dynid
from dynid import Robot
from dynid.errors import ModelError
from dynid.export.sdf import write_sdf
from dynid.robot import Link
from dynid.robot.parts import Frame
from tests.support.errors import expect_error
from tests.support.model_files import assert_pinocchios_torques, assert_same_torques, changed
from tests.support.random_robots import random_motion, random_robot, reordered, with_custom_terms

TREES = {
    "arm": random_robot(1, 6),
    "floating": random_robot(3, 7, base="floating"),
    "instrumented": random_robot(4, 5, base="instrumented"),
    "mimics": random_robot(5, 8, mimics=3),
    "floating with mimics": random_robot(6, 8, base="floating", mimics=2),
    "breadth first": reordered(random_robot(7, 8, parents=[0, 1, 2, 0, 4, 1, 0, 7]), 0)[0],
}


def robot_of(name: str) -> Robot:
    """A robot with friction whose values differ; only what SDF holds."""
    robot = TREES[name] if name in TREES else replace(dynid.load_robot(name).tree, drives=(), transmission=None)
    robot = robot.with_drives("viscous+coulomb")
    return replace(robot, drives=tuple(replace(t, value=0.1 + 0.01 * i) for i, t in enumerate(robot.drives)))


def read_back(path: Path, robot: Robot) -> Robot:
    base = "instrumented" if robot.base == "instrumented" else None
    return dynid.load_robot(path, friction="viscous+coulomb", gravity=robot.gravity, base=base)


@pytest.mark.parametrize("name", [*dynid.builtin_robots(), *TREES])
def test_our_reader_gets_the_same_robot_back(tmp_path: Path, name: str) -> None:
    """Names, order, parameters, torques, frames, limits and the base."""
    robot, path = robot_of(name), tmp_path / "robot.sdf"
    write_sdf(robot, path, allow_infeasible=True)
    back = read_back(path, robot)
    assert (back.name, back.base, back.coordinates) == (robot.name, robot.base, robot.coordinates)
    assert back.parameter_names == robot.parameter_names
    np.testing.assert_allclose(back.parameters, robot.parameters, rtol=1e-12, atol=1e-12)
    assert_same_torques(back, robot)
    assert back.limits == robot.limits
    q = random_motion(robot, 1, 1)[0][0]
    for frame in robot.frames:
        ours = dynid.dynamics.frame_placement(back, q, frame.name)
        np.testing.assert_allclose(ours, dynid.dynamics.frame_placement(robot, q, frame.name), atol=1e-12)


def pose(element: ET.Element | None) -> pin.SE3:
    """A placement as SDF writes it: three lengths, three angles."""
    if element is None:
        return pin.SE3.Identity()
    values = np.array([float(x) for x in (element.text or "").split()])
    return pin.SE3(pin.rpy.rpyToMatrix(values[3:]), values[:3])


def pinocchio_model(path: Path, floating: bool) -> pin.Model:
    """A model from the elements of our files: link poses relative to the parent link, joint poses on the child."""
    sdf = ET.parse(path).getroot().find("model")
    assert sdf is not None
    links = {e.get("name"): e for e in sdf.findall("link")}
    joints = [e for e in sdf.findall("joint") if e.get("type") != "fixed"]
    children = {e.findtext("child") for e in joints}
    model = pin.Model()
    root = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "root") if floating else 0
    where = {next(n for n in links if n not in children): (root, pin.SE3.Identity())}  # link -> joint, frame on it

    def body(link: ET.Element) -> pin.Inertia:
        inertial = link.find("inertial")
        assert inertial is not None
        t = {k: float(inertial.findtext(f"inertia/i{k}", "")) for k in ("xx", "xy", "xz", "yy", "yz", "zz")}
        tensor = np.array([[t["xx"], t["xy"], t["xz"]], [t["xy"], t["yy"], t["yz"]], [t["xz"], t["yz"], t["zz"]]])
        alone = pin.Inertia(float(inertial.findtext("mass", "")), np.zeros(3), tensor)
        return pose(inertial.find("pose")).act(alone)

    model.inertias[root] = body(links[next(iter(where))])
    order = {e.findtext("parent"): [x for x in joints if x.findtext("parent") == e.findtext("parent")] for e in joints}

    def hang(parent: str | None) -> None:
        for joint in order.get(parent, []):
            child = str(joint.findtext("child"))
            index, on = where[str(parent)]
            relative = links[child].find("pose")
            assert relative is not None and relative.get("relative_to") == parent
            on_child = pose(joint.find("pose"))
            axis = np.array([float(x) for x in joint.findtext("axis/xyz", "").split()])
            slides = joint.get("type") == "prismatic"
            kind = pin.JointModelPrismaticUnaligned if slides else pin.JointModelRevoluteUnaligned
            number = model.addJoint(index, kind(axis), on * pose(relative) * on_child, joint.get("name"))
            where[child] = (number, on_child.inverse())
            model.inertias[number] = on_child.inverse().act(body(links[child]))
            hang(child)

    hang(next(iter(where)))
    return model


@pytest.mark.parametrize("name", TREES)
def test_pinocchio_computes_the_same_torques(tmp_path: Path, name: str) -> None:
    """Our reader and our writer do not share an error."""
    robot, path = TREES[name], tmp_path / "robot.sdf"
    write_sdf(robot, path)
    model = pinocchio_model(path, robot.base == "floating")
    assert_pinocchios_torques(model, robot)


def test_springs_are_in_the_file(tmp_path: Path) -> None:
    """SDF knows them, though our reader asks for friction alone."""
    robot = random_robot(2, 3)
    robot = robot.with_terms(robot.joint_term("j2", "k", 3.0, rest=0.25))
    write_sdf(robot, tmp_path / "robot.sdf")
    joint = next(e for e in ET.parse(tmp_path / "robot.sdf").iter("joint") if e.get("name") == "j2")
    dynamics = joint.find("axis/dynamics")
    assert dynamics is not None
    assert {e.tag: e.text for e in dynamics} == {"spring_stiffness": "3", "spring_reference": "0.25"}


def test_what_sdf_cannot_hold_is_listed(tmp_path: Path) -> None:
    """Each term with its joints, names that had to change, links without mass, gravity, the measured base."""
    path = tmp_path / "robot.sdf"
    robot = with_custom_terms(random_robot(8, 3, drives=True, base="instrumented"))
    links = (replace(robot.links[0], name="world"), Link("j1", np.zeros(10)), *robot.links[2:])
    robot = replace(robot, links=links, frames=(Frame("l2", 1, np.eye(4)),))
    text = "; ".join(write_sdf(robot, path))
    for word in (
        "Ia of j1, motor1, j2",
        "off of",
        "wave of j1",
        "coupling of motor1",
        "gravity=(",
        'base="instrumented"',
        "link 'world' is written as 'world_link'",
        "joint 'j1' is written as 'j1_joint'",
        "frame 'l2' is written as 'l2_frame'",
        "link 'j1' has no mass",
    ):
        assert word in text
    assert "k of j" not in text and "fv of j" not in text
    names = [e.get("name") for e in ET.parse(path).iter() if e.tag in ("link", "joint", "frame")]
    assert len(set(names)) == len(names)
    dynid.load_robot(path)
    assert write_sdf(random_robot(8, 3).with_gravity((0, 0, -9.81)), path) == []


@pytest.mark.parametrize("name", ["a\u2028b", "a\nb", " a", "a ", "____", "a::b"])
def test_names_that_sdf_does_not_take_are_changed_and_listed(name: str, tmp_path: Path) -> None:
    """Of links too, which joints name in the text of elements; our reader refused some of our files."""
    robot = random_robot(8, 3).with_gravity((0, 0, -9.81))
    robot = replace(robot, links=(robot.links[0], replace(robot.links[1], name=name), *robot.links[2:]))
    assert "is written as" in "; ".join(write_sdf(robot, tmp_path / "robot.sdf"))
    assert_same_torques(dynid.load_robot(tmp_path / "robot.sdf"), robot)


def test_impossible_robots_are_written_only_if_asked(tmp_path: Path) -> None:
    """As in the other formats."""
    robot = random_robot(0, 2)
    broken = replace(robot, links=(*robot.links[:2], Link("l2", -robot.links[2].inertia)))
    with expect_error(ModelError, "allow_infeasible", code="untrusted"):
        write_sdf(broken, tmp_path / "robot.sdf")
    assert "l2" in write_sdf(broken, tmp_path / "robot.sdf", allow_infeasible=True)[0]
    assert_same_torques(dynid.load_robot(tmp_path / "robot.sdf", gravity=robot.gravity), broken)


TEMPLATE = """<?xml version='1.0'?>
<sdf version='1.11'>
  <!-- the robot -->
  <world name='lab'><gravity>0 0 -9.81</gravity>
    <model name='ground'><static>1</static><link name='upper'/></model>
    <model name='arm'>
      <joint name='tie' type='fixed'><parent>world</parent><child>base</child></joint>
      <link name='base'/>
      <link name='upper'>
        <pose>0 0 0.5 0 0 0</pose>
        <inertial> <!-- from CAD -->
          <mass>2</mass>
          <pose degrees='true'>0 0 0.1 10 20 30</pose>
          <inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz></inertia>
        </inertial>
        <visual name='skin'><geometry><mesh><uri>a.dae</uri></mesh></geometry></visual>
      </link>
      <model name='hand'>
        <link name='palm'><gravity>1</gravity></link>
        <link name='cover'><inertial><mass>0.5</mass></inertial></link>
        <joint name='glue' type='fixed'><parent>palm</parent><child>cover</child></joint>
      </model>
      <joint name='shoulder' type='revolute'>
        <parent>base</parent>
        <child>upper</child>
        <axis>
          <xyz>0 1 0</xyz>
          <dynamics><friction>0.2</friction></dynamics>
        </axis>
      </joint>
      <joint name='wrist' type='continuous'><parent>upper</parent><child>hand::palm</child>
        <axis><xyz>0 0 1</xyz></axis></joint>
      <plugin name='p' filename='q'><joint name="shoulder"/></plugin>
    </model>
  </world>
</sdf>
"""


def test_only_inertial_and_dynamics_elements_change(tmp_path: Path) -> None:
    """All else is the same byte by byte; an unchanged robot leaves its file alone."""
    source, out = tmp_path / "lab.sdf", tmp_path / "out.sdf"
    source.write_bytes(TEMPLATE.replace("\n", "\r\n").encode())
    robot = dynid.load_robot(source, friction="viscous+coulomb")
    assert write_sdf(robot, out, template=source) == []
    assert out.read_bytes() == source.read_bytes()
    other = changed(robot)
    assert write_sdf(other, out, template=source) == []
    back = dynid.load_robot(out, friction="viscous+coulomb")
    assert_same_torques(back, other)
    np.testing.assert_allclose(back.parameters, other.parameters, rtol=1e-12, atol=1e-12)
    pattern = r"\s*<inertial>.*?</inertial>|\s*<dynamics>.*?</dynamics>"
    old, new = (re.sub(pattern, "", f.read_bytes().decode(), flags=re.DOTALL) for f in (source, out))
    assert old == new
    assert b"<!-- from CAD -->" in out.read_bytes()
    assert out.read_bytes().count(b"\r\n") == out.read_bytes().count(b"\n")


def test_elements_that_are_missing_are_put_in(tmp_path: Path) -> None:
    """A joint without an axis turns about z, and still does when it gets its friction."""
    source, out = tmp_path / "lab.sdf", tmp_path / "out.sdf"
    source.write_text(TEMPLATE.replace("<axis><xyz>0 0 1</xyz></axis>", "").replace("<gravity>1</gravity>", ""))
    other = changed(dynid.load_robot(source, friction="viscous+coulomb"))
    write_sdf(other, out, template=source)
    assert_same_torques(dynid.load_robot(out, friction="viscous+coulomb"), other)


def test_files_of_other_robots_are_refused(tmp_path: Path) -> None:
    """With what is missing."""
    source, out = tmp_path / "lab.sdf", tmp_path / "out.sdf"
    source.write_text(TEMPLATE)
    robot = changed(dynid.load_robot(source))
    for text, error in (
        (TEMPLATE.replace("'wrist'", "'ankle'"), (ModelError, "template", "mismatch")),
        (
            TEMPLATE.replace("'upper'", "'lower'").replace(">upper<", ">lower<"),
            (ModelError, "template", "mismatch"),
        ),
        ("<mujoco/>", (ModelError, "template", "file_damaged")),
    ):
        file = tmp_path / "other.sdf"
        file.write_text(text)
        with expect_error(*error):
            write_sdf(robot, out, template=file)
