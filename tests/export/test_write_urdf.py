"""URDF files we write, from the tree and into other files, read by Pinocchio itself."""

from __future__ import annotations

import codecs
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import dynid
import dynid.robot
from dynid import Robot
from dynid.errors import ModelError
from dynid.export.urdf import write_urdf
from dynid.robot import Link
from dynid.robot.parts import Frame
from tests.support.errors import expect_error
from tests.support.model_files import assert_pinocchios_torques, assert_same_torques, changed
from tests.support.random_robots import random_inertia, random_robot, with_custom_terms

ROBOTS = {
    **{name: dynid.load_robot(name).tree for name in dynid.builtin_robots()},
    **{f"tree {seed}": random_robot(seed, 3 + seed % 6) for seed in range(4)},
    "floating tree": random_robot(5, 7, base="floating"),
}


@pytest.mark.parametrize("name", ROBOTS)
def test_pinocchio_computes_the_same_torques(tmp_path: Path, name: str) -> None:
    """Masses, inertias and kinematics of the file are those of the robot."""
    robot = ROBOTS[name].without("*") if ROBOTS[name].drives else ROBOTS[name]
    path = tmp_path / "robot.urdf"
    write_urdf(robot, path, allow_infeasible=True)
    floating = robot.base == "floating"
    model = pin.buildModelFromUrdf(str(path), *([pin.JointModelFreeFlyer()] if floating else []))
    assert_pinocchios_torques(model, robot)


@pytest.mark.parametrize("seed", range(6))
def test_our_reader_gets_the_same_torques_with_friction(tmp_path: Path, seed: int) -> None:
    """Mimic joints, limits, damping and friction too."""
    robot = random_robot(seed, 6, mimics=seed % 3).with_drives("viscous+coulomb")
    robot = replace(robot, drives=tuple(replace(t, value=0.1 * (i + 1)) for i, t in enumerate(robot.drives)))
    path = tmp_path / "robot.urdf"
    (warning,) = write_urdf(robot, path)
    assert "gravity" in warning
    back = dynid.load_robot(path, friction="viscous+coulomb", gravity=robot.gravity)
    assert_same_torques(back, robot)


def test_smooth_coulomb_friction_is_written_as_a_step(tmp_path: Path) -> None:
    robot = random_robot(1, 3).with_gravity((0, 0, -9.81)).with_drives("coulomb")
    robot = replace(robot, drives=tuple(replace(t, value=0.1 * (i + 1)) for i, t in enumerate(robot.drives)))
    (warning,) = write_urdf(robot.with_smooth_coulomb(50.0), tmp_path / "robot.urdf")
    assert "fc (smooth) of j1, j2, j3 is written as a step" in warning
    back = dynid.load_robot(tmp_path / "robot.urdf", friction="coulomb")
    np.testing.assert_allclose([t.value for t in back.drives], [0.1, 0.2, 0.3], rtol=1e-12)


def test_right_angles_are_written_exactly(tmp_path: Path) -> None:
    """At and around a pitch of a right angle the three angles must still give the rotation back."""
    from dynid.export.contents import rpy_angles
    from dynid.robot.spatial import rpy_rotation

    for pitch in (np.pi / 2, -np.pi / 2):
        for off in (0.0, 1e-15, 1e-12, 1e-9, 1e-6, 1e-3):
            turn = rpy_rotation(0.3, pitch - off, -1.1)
            np.testing.assert_allclose(rpy_rotation(*rpy_angles(turn)), turn, atol=3e-12)


def test_what_urdf_cannot_hold_is_listed(tmp_path: Path) -> None:
    """Each drive term with its joints, the coupling of motors, gravity and frames of one name."""
    robot = with_custom_terms(random_robot(8, 3, drives=True)).with_smooth_coulomb(5.0)
    robot = replace(robot, frames=(*robot.frames, robot.frames[0]))
    text = "; ".join(write_urdf(robot, tmp_path / "robot.urdf"))
    for word in (
        "Ia of j1, motor1, j2",
        "fvp of j1, motor1, j2",
        "fcn (smooth) of",
        "fc (smooth) of j1",
        "off of",
        "k of",
        "wave of j1",
        "coupling of motor1",
        "gravity=(",
        "second frame named 'tool0'",
    ):
        assert word in text
    dynid.load_robot(tmp_path / "robot.urdf")
    standing = random_robot(8, 3).with_gravity((0, 0, -9.81))
    assert write_urdf(standing, tmp_path / "robot.urdf") == []


def test_impossible_robots_are_written_only_if_asked(tmp_path: Path) -> None:
    """The error names the link and the law; links without mass and inertia are possible."""
    robot, path = random_robot(0, 3), tmp_path / "robot.urdf"
    flat = dynid.inertia.inertia_from_com(1.0, np.zeros(3), np.diag([1.0, 1.0, 3.0]))
    for inertia, words in (
        (flat, "link 'l2' is not physically consistent: triangle inequality broken"),
        (-robot.links[2].inertia, "link 'l2' is not physically consistent: mass .* is not positive"),
        (np.eye(10)[4], "mass 0 kg is not positive"),
        (np.eye(10)[1], "first moment without mass"),
    ):
        broken = replace(robot, links=(*robot.links[:2], Link("l2", inertia), robot.links[3]))
        with pytest.raises(dynid.ModelError, match=f"{words}.*allow_infeasible=True"):
            write_urdf(broken, path)
        assert not path.exists()
        if inertia[0] != 0:
            assert "not physically consistent" in write_urdf(broken, path, allow_infeasible=True)[0]
            back = dynid.load_robot(path, gravity=robot.gravity)
            assert_same_torques(back, broken)
            path.unlink()
    with expect_error(ModelError, code="unsupported"):
        write_urdf(broken, path, allow_infeasible=True)
    braking = robot.with_terms(robot.joint_term("j2", "fv", -0.1))
    with expect_error(ModelError, "allow_infeasible", code="untrusted"):
        write_urdf(braking, path)
    empty = replace(robot, links=(*robot.links[:2], Link("l2", np.zeros(10)), robot.links[3]))
    write_urdf(empty, path)


# -- into a file --------------------------------------------------------------------------------------

# Comments everywhere, attributes in odd orders and quotes, self-closing links, a mimic joint, fixed links, other tags.
TEMPLATE = """<?xml version="1.0" encoding="{encoding}"?>
<!-- the arm of the laboratory: <link name="not a link"/> -->
<?note keep="this"?>
<robot   xmlns:xacro="http://www.ros.org/wiki/xacro" name='arm "é"'>
\t<material name="grey"><color rgba=".5 .5 .5 1"/></material>
\t<link name="base"><inertial><mass value="3"/>
\t\t<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
\t<link name="upper">
\t\t<inertial>  <!-- from CAD -->
\t\t\t<inertia izz = "0.02" ixx='0.03' iyy="0.03"
\t\t\t         ixy="0" ixz="0" iyz="0" />
\t\t\t<origin rpy="0.1 0.2 0.3" xyz="0 0 .1"/> <!-- centre -->
\t\t\t<mass value="2.0"/>
\t\t</inertial>
\t\t<visual><geometry><mesh filename="package://arm/a&amp;b.stl" scale='1 1 1'/></geometry></visual>
\t</link>
\t<link name="fore"/>
\t<link name="finger" ><collision><geometry><box size="1 1 1"/></geometry></collision></link>
\t<link name="tool">
\t\t<inertial>
\t\t\t<mass value="0.5"/>
\t\t\t<inertia ixx="0.001" iyy="0.001" izz="0.001" ixy="0" ixz="0" iyz="0"/>
\t\t</inertial>
\t</link>
\t<joint name="shoulder" type="continuous">
\t\t<parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
\t\t<dynamics friction="0.4" damping = '0.7'/><!-- measured -->
\t</joint>
\t<joint name="elbow" type="revolute"><parent link="upper"/><child link="fore"/>
\t\t<origin xyz="0 0 .3"/><axis xyz="1 0 0"/>
\t\t<limit lower="-1" upper="1" effort="10" velocity="3"/></joint>
\t<joint name="grip" type="prismatic">
\t\t<parent link="fore"/>
\t\t<child link="finger"/>
\t\t<origin xyz="0 .1 .2" rpy="0 0 .4"/>
\t\t<axis xyz="0 0 1"/>
\t\t<limit lower="-1" upper="1" effort="10" velocity="3"/>
\t\t<mimic joint="elbow" multiplier="-2" offset="0.1"/>
\t\t<dynamics damping="0.25" friction="0.5"/>
\t</joint>
\t<joint name="flange" type="fixed"><parent link="fore"/><child link="tool"/><origin xyz="0 0 .2" rpy=".5 0 0"/></joint>
\t<transmission name="t1"><joint name="shoulder"><hardwareInterface>Effort</hardwareInterface></joint></transmission>
\t<gazebo reference="upper"><![CDATA[ <link name="upper"> ]]></gazebo>
</robot>
<!-- end -->
"""
FORMS = {
    "plain": ("utf-8", b"", "\n"),
    "windows": ("utf-8", codecs.BOM_UTF8, "\r\n"),
    "latin": ("iso-8859-1", b"", "\n"),
    "utf-16": ("utf-16-le", codecs.BOM_UTF16_LE, "\r\n"),
}


def template_bytes(form: str) -> bytes:
    encoding, mark, newline = FORMS[form]
    named = "utf-16" if encoding.startswith("utf-16") else encoding
    return mark + TEMPLATE.format(encoding=named).replace("\n", newline).encode(encoding)


def load(path: Path) -> Robot:
    return dynid.load_robot(path, friction="viscous+coulomb")


@pytest.mark.parametrize("form", FORMS)
def test_an_unchanged_robot_leaves_its_file_as_it_is(tmp_path: Path, form: str) -> None:
    """Byte by byte, whatever the encoding and the line ends."""
    source, out = tmp_path / "arm.urdf", tmp_path / "out.urdf"
    source.write_bytes(template_bytes(form))
    robot = load(source)
    write_urdf(robot.with_parameters(robot.parameters), out, template=source)
    assert out.read_bytes() == source.read_bytes()
    write_urdf(dynid.load_robot(source), out, template=source)
    assert out.read_bytes() == source.read_bytes()


@pytest.mark.parametrize("form", FORMS)
def test_only_inertial_and_dynamics_elements_change(tmp_path: Path, form: str) -> None:
    """With these taken out of both, the files are the same byte by byte; what is in them reads back."""
    source, out = tmp_path / "arm.urdf", tmp_path / "out.urdf"
    source.write_bytes(template_bytes(form))
    robot = changed(load(source))
    assert write_urdf(robot, out, template=source) == []
    back = load(out)
    np.testing.assert_allclose(back.parameters, robot.parameters, rtol=1e-13, atol=1e-14)
    assert_same_torques(back, robot)
    encoding, mark, newline = FORMS[form]
    assert out.read_bytes().startswith(mark)
    old, new = (f.read_bytes().decode(encoding) for f in (source, out))
    assert new.count("\r\n") == new.count("\n") * (newline == "\r\n")
    without = [re.sub(r"\s*<inertial>.*?</inertial>|\s*<dynamics[^>]*/>", "", x, flags=re.DOTALL) for x in (old, new)]
    # The link that was closed in its own tag now has a content.
    assert without[0].replace('<link name="fore"/>', f'<link name="fore">{newline}\t</link>') == without[1]
    for kept in ("<!-- from CAD -->", "<!-- centre -->", "<!-- measured -->", "izz = ", "damping = '", "a&amp;b"):
        assert kept in new


def test_a_follower_does_not_brake_twice(tmp_path: Path) -> None:
    """The leader has all that is felt; what the follower had of its own is taken out, and only if it is modelled."""
    source, out = tmp_path / "arm.urdf", tmp_path / "out.urdf"
    source.write_bytes(template_bytes("plain"))
    robot = load(source)
    values = dict(zip(robot.parameter_names, robot.parameters, strict=True))
    assert (values["fv_elbow"], values["fc_elbow"]) == (4 * 0.25, 2 * 0.5)
    robot = robot.with_parameters(robot.parameters + [p.symbol == "fv" for p in robot.layout])
    write_urdf(robot, out, template=source)
    np.testing.assert_array_equal(load(out).parameters, robot.parameters)
    # Damping was changed, so the leader has it all; friction was not, and stays where it was.
    assert '<dynamics damping="0" friction="0.5"/>' in out.read_text(encoding="utf-8")
    assert '<dynamics damping="2"/>' in out.read_text(encoding="utf-8")
    again = tmp_path / "again.urdf"
    write_urdf(load(out), again, template=out)
    assert again.read_bytes() == out.read_bytes()


def test_links_on_fixed_joints_give_their_inertia_away_once(tmp_path: Path) -> None:
    """Only where their body changes."""
    source, out = tmp_path / "arm.urdf", tmp_path / "out.urdf"
    source.write_bytes(template_bytes("plain"))
    robot = dynid.load_robot(source)
    heavy = robot.with_payload("upper", dynid.inertia.inertia_from_com(1.0, [0, 0, 0.1], np.eye(3)))
    write_urdf(heavy, out, template=source)
    assert "0.001" in out.read_text(encoding="utf-8")
    write_urdf(
        robot.with_payload("fore", dynid.inertia.inertia_from_com(1.0, [0, 0, 0.1], np.eye(3))), out, template=source
    )
    assert "0.001" not in out.read_text(encoding="utf-8")
    assert dynid.load_robot(out).links[2].inertia[0] == pytest.approx(1.5)


def test_files_of_other_robots_are_refused(tmp_path: Path) -> None:
    """With what is missing and what there is instead."""
    source, out = tmp_path / "arm.urdf", tmp_path / "out.urdf"
    text = TEMPLATE.format(encoding="utf-8")
    source.write_text(text, encoding="utf-8")
    robot = changed(load(source))
    for other, words in (
        (text.replace('"shoulder"', '"hip"'), "no joint 'shoulder'; its joints are hip, elbow, grip"),
        (text.replace('"upper"', '"thigh"'), "no link 'upper'; its links are base, thigh, fore, finger"),
        (text.replace('xyz="0 0 .3"', 'xyz="0 0 .4"'), "link 'fore' moves otherwise"),
        (text.replace('multiplier="-2"', 'multiplier="2"'), "'grip' follows another joint otherwise"),
        (text.replace('type="prismatic"', 'type="fixed"'), "no joint 'grip'"),
        (text.replace("<robot ", "<mujoco ").replace("</robot>", "</mujoco>"), "not a URDF file"),
        (text.replace("</robot>", ""), "not well-formed"),
    ):
        file = tmp_path / "other.urdf"
        file.write_text(other, encoding="utf-8")
        with pytest.raises(dynid.ModelError, match=words):
            write_urdf(robot, out, template=file)
    with expect_error(ModelError, "template", code="file_damaged"):
        write_urdf(robot, out, template=tmp_path / "missing.urdf")
    with expect_error(ModelError, "template", code="mismatch"):
        write_urdf(robot.locked({"shoulder": 0.1}), out, template=source)
    assert not out.exists()


def test_files_with_entities_are_refused(tmp_path: Path) -> None:
    """Neither read nor changed in place: the text of an element could stand anywhere."""
    source = tmp_path / "arm.urdf"
    text = TEMPLATE.format(encoding="utf-8").replace('<link name="upper">', '<link name="&u;">')
    source.write_text(text.replace("<!-- the arm", '<!DOCTYPE robot [<!ENTITY u "upper">]>\n<!-- the arm', 1), "utf-8")
    with expect_error(ModelError, code="unsupported"):
        load(source)


def test_a_file_may_be_its_own_template(tmp_path: Path) -> None:
    """Elements given twice in it are one then."""
    source = tmp_path / "arm.urdf"
    text = TEMPLATE.format(encoding="utf-8")
    source.write_text(text.replace('<mass value="2.0"/>', '<mass value="2.0"/><mass value="9"/>'), "utf-8")
    robot = changed(load(source))
    write_urdf(robot, source, template=source)
    assert '"9"' not in source.read_text("utf-8")
    np.testing.assert_allclose(load(source).parameters, robot.parameters, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("seed", range(4))
def test_link_frames_of_the_file_may_be_others(tmp_path: Path, seed: int) -> None:
    """Frames on the far end of a link, as in Denavit-Hartenberg tables, are turned into the file's."""
    robot = random_robot(seed, 5)
    source, out = tmp_path / "source.urdf", tmp_path / "out.urdf"
    write_urdf(robot, source)
    other = changed(robot)
    write_urdf(other, out, template=source)
    assert_same_torques(dynid.load_robot(out, gravity=robot.gravity), other)


def test_a_robot_that_stands_on_its_hand_fits_its_file(tmp_path: Path) -> None:
    """Walked from another link, bodies stay where they are."""
    robot = replace(random_robot(3, 5, parents=[0, 1, 2, 1, 4], mounts=False), gravity=np.array([0, 0, -9.81]))
    robot = replace(robot, frames=(Frame("hand", 3, random_robot(4, 1).joints[0].placement),))
    source, out = tmp_path / "source.urdf", tmp_path / "out.urdf"
    write_urdf(robot, source)
    other = changed(robot)
    other = replace(other, links=(Link("l0", random_inertia(np.random.default_rng(5))), *other.links[1:]))
    write_urdf(dynid.robot.rooted_at(other, "hand"), out, template=source)
    back = dynid.load_robot(out)
    for name in ("l0", "l1", "l2", "l3", "l4", "l5"):
        ours, theirs = (r.links[r.link_index(name)].inertia for r in (other, back))
        np.testing.assert_allclose(theirs, ours, atol=1e-12)
