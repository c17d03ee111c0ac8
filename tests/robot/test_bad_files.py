"""Files that cannot be a robot: one line each, naming what is wrong; never a foreign exception."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dynid
from tests.support.robot_files import Load, joint, link, one_joint, refused, urdf

LIMIT = '<limit lower="-1" upper="1" velocity="1" effort="1"/>'
LINKS = link("a", 1) + link("b", 1)
THIRD = link("c", 1)
XACRO = ' xmlns:xacro="http://www.ros.org/wiki/xacro"'


def chain(*edges: tuple[str, str, str], links: str = "abc") -> str:
    """Continuous joints (name, parent, child) over links named by letters."""
    return urdf(*(link(n, 1) for n in links), *(joint(n, "continuous", p, c) for n, p, c in edges))


def mimicking(first: str, second: str) -> str:
    """Joints j and k with these mimic elements."""
    return urdf(LINKS, THIRD, joint("j", "continuous", "a", "b", first), joint("k", "continuous", "b", "c", second))


def inertial(inside: str) -> str:
    return f'<link name="a"><inertial>{inside}</inertial></link>'


BAD_URDF = {
    "empty file": ("", ["not well-formed XML"]),
    "no XML at all": ("a robot", ["not well-formed XML"]),
    "cut off": (one_joint()[:-20], ["not well-formed XML"]),
    "unknown encoding": ('<?xml version="1.0" encoding="utf-99"?>' + one_joint(), ["utf-99"]),
    "another format": ("<sdf/>", ["<sdf>", "<robot>"]),
    "no links": (urdf(), ["no links"]),
    "xacro left over": (one_joint().replace(">", f"{XACRO}><xacro:if/>", 1), ["xacro", "<if>"]),
    "xacro expression": (one_joint("revolute", LIMIT.replace('"1"', '"${pi}"', 1)), ["'j'", "limit upper", "${pi}"]),
    "unknown link": (one_joint().replace('child link="b"', 'child link="elbow"'), ["'j'", "unknown link 'elbow'"]),
    "no child": (one_joint().replace('<child link="b"/>', ""), ["'j'", "child", "link"]),
    "loop of all links": (chain(("x", "a", "b"), ("y", "b", "c"), ("z", "c", "a")), ["loop", "'x'"]),
    "loop beside a root": (chain(("x", "a", "b"), ("y", "b", "c"), ("z", "c", "a"), links="rabc"), ["loop", "'x'"]),
    "two parents of a link": (chain(("x", "a", "b"), ("y", "a", "c"), ("z", "b", "c")), ["'c'", "'y'", "'z'", "loops"]),
    "joint onto itself": (chain(("x", "a", "a"), links="ab"), ["'x'", "loop"]),
    "two trees": (chain(("x", "a", "b")), ["not connected", "'a'", "'c'"]),
    "zero axis": (one_joint(more='<axis xyz="0 0 0"/>'), ["'j'", "zero axis"]),
    "axis of two numbers": (one_joint(more='<axis xyz="0 1"/>'), ["'j'", "axis", "3 finite numbers", "'0 1'"]),
    "axis without numbers": (one_joint(more="<axis/>"), ["'j'", "axis"]),
    "origin of words": (one_joint(more='<origin xyz="0 zero 0"/>'), ["'j'", "origin xyz", "0 zero 0"]),
    "NaN angle": (one_joint(more='<origin rpy="nan 0 0"/>'), ["'j'", "origin rpy", "nan"]),
    "NaN mass": (one_joint().replace('mass value="1.0"', 'mass value="nan"', 1), ["link 'a'", "mass", "nan"]),
    "infinite inertia": (one_joint().replace('iyy="0.04"', 'iyy="1e999"', 1), ["link 'a'", "iyy", "1e999"]),
    "mass without inertia": (urdf(inertial('<mass value="1"/>')), ["link 'a'", "no inertia"]),
    "inertia without mass": (urdf(inertial("<inertia/>")), ["link 'a'", "without a <mass>"]),
    "unknown kind": (one_joint("spherical"), ["'j'", "'spherical'", "revolute"]),
    "planar joint without a normal": (one_joint("planar", '<axis xyz="a b c"/>'), ["'j'", "axis", "a b c"]),
    "nothing that moves": (urdf(LINKS, joint("j", "fixed", "a", "b")), ["no joint that moves"]),
    "joint of no kind": (one_joint("").replace(' type=""', ""), ["'j'", "kind ''"]),
    "revolute without limits": (one_joint("revolute"), ["'j'", "limit", "continuous"]),
    "limits upside down": (one_joint("revolute", LIMIT.replace('upper="1"', 'upper="-2"')), ["'j'", "-1", "-2"]),
    "NaN limit": (one_joint("prismatic", LIMIT.replace('effort="1"', 'effort="nan"')), ["'j'", "limit effort", "nan"]),
    "negative rate": (one_joint("revolute", LIMIT.replace('velocity="1"', 'velocity="-1"')), ["'j'", "velocity -1"]),
    "damping in words": (one_joint(more='<dynamics damping="high"/>'), ["'j'", "damping", "high"]),
    "two links of one name": (urdf(LINKS, link("b", 2), joint("j", "continuous", "a", "b")), ["two links", "'b'"]),
    "two joints of one name": (chain(("x", "a", "b"), ("x", "b", "c")), ["two joints", "'x'"]),
    "link without a name": (urdf("<link/>"), ["link", "'name'"]),
    "joint without a name": (one_joint().replace('joint name="j"', "joint"), ["joint", "no name"]),
    "mimic without joint": (one_joint(more="<mimic/>"), ["'j'", "mimic", "'joint'"]),
    "mimic of itself": (one_joint(more='<mimic joint="j"/>'), ["'j'", "itself"]),
    "mimics in a circle": (mimicking('<mimic joint="k"/>', '<mimic joint="j"/>'), ["'j'", "itself"]),
    "mimic in words": (mimicking("", '<mimic joint="j" multiplier="two"/>'), ["'k'", "multiplier", "two"]),
    "mimic of a fixed joint": (
        urdf(LINKS, THIRD, joint("j", "continuous", "a", "b", '<mimic joint="k"/>'), joint("k", "fixed", "b", "c")),
        ["'j'", "'k'", "fixed"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_URDF)
def test_bad_urdf_is_refused_in_one_line(load: Load, case: str) -> None:
    """The message names the link or joint and what is wrong with it."""
    text, words = BAD_URDF[case]
    refused(lambda: load(text, ".urdf"), *words)


BODY = '<inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>'
TWO = f'<body name="a"><joint name="j"/>{BODY}<body name="b"><joint name="k"/>{BODY}</body></body>'


def mjcf(world: str, before: str = "", after: str = "") -> str:
    return f'<mujoco model="m">{before}<worldbody>{world}</worldbody>{after}</mujoco>'


def on(joint: str, body: str = BODY) -> str:
    return mjcf(f'<body name="a">{joint}{body}</body>')


BAD_MJCF = {
    "empty file": ("", ["not well-formed XML"]),
    "cut off": (mjcf(TWO)[:-5], ["not well-formed XML"]),
    "another format": ("<collada/>", ["<collada>", "<mujoco>"]),
    "no bodies": (mjcf(""), ["no joint that moves"]),
    "misspelt joint": (on('<joint name="hip" type="hing"/>'), ["'hip'", "'hing'"]),
    "zero axis": (on('<joint name="hip" axis="0 0 0"/>'), ["'hip'", "zero axis"]),
    "axis in words": (on('<joint name="hip" axis="0 up 0"/>'), ["'hip'", "axis", "0 up 0"]),
    "NaN mass": (on("<joint/>", BODY.replace('mass="1"', 'mass="nan"')), ["body 'a'", "mass", "nan"]),
    "no mass": (on("<joint/>", BODY.replace('mass="1"', "")), ["body 'a'", "mass"]),
    "mass without inertia": (on("<joint/>", '<inertial mass="1" pos="0 0 0"/>'), ["body 'a'", "no inertia"]),
    "short position": (mjcf(TWO.replace('name="b"', 'name="b" pos="1 2"')), ["body 'b'", "pos", "1 2"]),
    "zero quaternion": (mjcf(TWO.replace('name="b"', 'name="b" quat="0 0 0 0"')), ["body 'b'", "quat"]),
    "parallel axes": (mjcf(TWO.replace('name="b"', 'name="b" xyaxes="1 0 0 2 0 0"')), ["body 'b'", "xyaxes"]),
    "two bodies of one name": (mjcf(TWO.replace('"b"', '"a"')), ["two bodies", "'a'"]),
    "two joints of one name": (mjcf(TWO.replace('"k"', '"j"')), ["two joints", "'j'"]),
    "unknown class": (on('<joint name="hip" class="leg"/>'), ["'hip'", "'leg'"]),
    "class without a name": (mjcf(TWO, "<default><default/></default>"), ["default", "'class'"]),
    "mesh for an inertia": (on("<joint/>", '<geom type="mesh" mesh="x"/>'), ["mesh"]),
    "negative density": (on("<joint/>", '<geom name="g" size="1" density="-5"/>'), ["density", "'g'"]),
    "shape without size": (on("<joint/>", '<geom name="g" type="box"/>'), ["body 'a'", "'g'", "size"]),
    "shape of no length": (on("<joint/>", '<geom type="box" size="1" fromto="1 1 1 1 1 1"/>'), ["body 'a'", "fromto"]),
    "range of one number": (on('<joint name="hip" range="2"/>'), ["'hip'", "range"]),
    "armature in words": (on('<joint name="hip" armature="big"/>'), ["'hip'", "armature", "big"]),
    "unknown angle unit": (mjcf(TWO, '<compiler angle="grad"/>'), ["angle", "'grad'", "radian"]),
    "missing include": (mjcf(TWO + '<include file="arm.xml"/>'), ["'arm.xml'"]),
    "file including itself": (mjcf(TWO + '<include file="robot.xml"/>'), ["'robot.xml'", "twice"]),
    "gravity of two numbers": (mjcf(TWO, '<option gravity="0 0"/>'), ["gravity", "0 0"]),
    "loop of one body": (mjcf(TWO, after='<equality><connect body1="a"/></equality>'), ["connect"]),
    "equality with nobody": (mjcf(TWO, after='<equality><joint joint1="k" joint2="z"/></equality>'), ["'z'"]),
    "equality with itself": (mjcf(TWO, after='<equality><joint joint1="k" joint2="k"/></equality>'), ["'k'", "itself"]),
    "equality in words": (
        mjcf(TWO, after='<equality><joint joint1="k" joint2="j" polycoef="a b"/></equality>'),
        ["'k'", "polycoef"],
    ),
    "free body inside": (on("<joint/>", f'{BODY}<body><freejoint name="f"/></body>'), ["'f'", "'free'"]),
    "free body with a hinge": (on("<freejoint/><joint/>"), ["body 'a'", "free"]),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_MJCF)
@pytest.mark.parametrize("installed", [True, False], ids=["with MuJoCo", "without"])
def test_bad_mjcf_is_refused_in_one_line(
    load: Load, monkeypatch: pytest.MonkeyPatch, case: str, installed: bool
) -> None:
    """The message names the body or joint and what is wrong with it, or what to do instead."""
    if not installed:
        monkeypatch.setattr("dynid.robot.mjcf.find_spec", lambda name: None)
    text, words = BAD_MJCF[case]
    refused(lambda: load(text, ".xml"), *words)


NEEDS_MUJOCO = {
    "inertia of a mesh": on("<joint/>", '<geom type="mesh" mesh="x"/>'),
    "rescaled masses": mjcf(TWO, '<compiler settotalmass="5"/>'),
    "bounded masses": mjcf(TWO, '<compiler boundmass="5"/>'),
    "macro element": mjcf(f'<replicate count="2">{TWO}</replicate>'),
    "closed loop": mjcf(TWO, after='<equality><connect body1="a" body2="b" anchor="0 0 0"/></equality>'),
    "curved equality": mjcf(TWO, after='<equality><joint joint1="k" joint2="j" polycoef="0 1 2"/></equality>'),
    "free body beside": mjcf(f'<body name="ball"><freejoint/>{BODY}</body>{TWO}'),
    "polynomial damping": on('<joint damping="1 2 3"/>'),
    "spring by its frequency": on('<joint springdamper="1 2"/>'),
}


@pytest.mark.parametrize("case", NEEDS_MUJOCO)
def test_the_light_reader_names_the_extra(load: Load, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    """What needs MuJoCo's compiler says so, and how to get it."""
    monkeypatch.setattr("dynid.robot.mjcf.find_spec", lambda name: None)
    refused(lambda: load(NEEDS_MUJOCO[case], ".xml"), "pip install 'dynid[mujoco]'")


def test_a_negative_mass_in_an_mjcf_loads_and_is_reported(load: Load) -> None:
    """As in a URDF: the file is read as written and the check says what is wrong."""
    robot = load(on("<joint/>", BODY.replace('mass="1"', 'mass="-1"')), ".xml")
    assert "read without MuJoCo" in robot.notes[0] or not robot.notes
    assert dynid.inertia.inertia_violations(robot.links[1].inertia)[0] == "mass -1 kg is not positive"


@pytest.mark.parametrize("suffix", [".urdf", ".xml", ".toml"])
def test_binary_files_folders_and_nothing_are_refused(tmp_path: Path, suffix: str) -> None:
    """Random bytes, a folder with a robot's name, and a path that leads nowhere."""
    noise = tmp_path / f"noise{suffix}"
    noise.write_bytes(np.random.default_rng(0).bytes(4000))
    refused(lambda: dynid.load_robot(noise), f"noise{suffix}")
    folder = tmp_path / f"folder{suffix}"
    folder.mkdir()
    refused(lambda: dynid.load_robot(folder), "it is a folder, not a file", f"folder{suffix}")
    refused(lambda: dynid.load_robot(tmp_path / f"absent{suffix}"), "no file", f"absent{suffix}")


def test_unknown_names_come_with_suggestions(tmp_path: Path) -> None:
    """A slip of the pen is guessed, anything else gets the list; a file of another kind is told so."""
    refused(lambda: dynid.load_robot("tx4"), "'tx4'", "did you mean tx40?")
    refused(lambda: dynid.load_robot("WAM"), "did you mean wam7")
    refused(lambda: dynid.load_robot("qqqqqq"), "box2", "tx40")
    (tmp_path / "arm.urdf.xacro").write_text("<robot/>")
    refused(lambda: dynid.load_robot(tmp_path / "arm.urdf.xacro"), "run xacro")
    other = tmp_path / "robot.step"
    other.write_text("ISO-10303")
    refused(lambda: dynid.load_robot(other), "robot.step", ".urdf")


@pytest.mark.parametrize(
    "source", [None, 7, [], b"tx40", "", "x" * 5000, "x" * 5000 + ".urdf", "two\nlines.urdf", "\0"]
)
def test_sources_that_are_no_robot_at_all(source: object) -> None:
    """Every error message is one line."""
    refused(lambda: dynid.load_robot(source))  # type: ignore[arg-type]
