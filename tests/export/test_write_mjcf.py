"""MJCF files we write, read back by our reader and by MuJoCo itself."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from typer.testing import CliRunner

import dynid
from dynid import Robot
from dynid.cli.main import app
from dynid.errors import DynidError, ModelError
from dynid.export.mjcf import write_mjcf
from dynid.robot import Joint, Limits, Link
from dynid.robot.parts import Frame
from tests.support import model_files
from tests.support.errors import expect_error
from tests.support.model_files import assert_same_torques
from tests.support.random_robots import mimic_map, random_motion, random_robot, reordered, with_custom_terms
from tests.support.synthetic import EXACT, arm, record

TREES = {
    "arm": random_robot(1, 6),
    "tree with rotors": random_robot(2, 9, rotors=True),
    "floating": random_robot(3, 7, base="floating", rotors=True),
    "instrumented": random_robot(4, 5, base="instrumented"),
    "mimics": random_robot(5, 8, mimics=3, rotors=True),
    "floating with mimics": random_robot(6, 8, base="floating", mimics=2),
    "breadth first": reordered(random_robot(7, 8, parents=[0, 1, 2, 0, 4, 1, 0, 7]), 0)[0],
    "every drive": random_robot(8, 5, drives=True, mimics=1),
    **{f"random {seed}": random_robot(seed, 2 + seed % 9, mimics=seed % 2, rotors=True) for seed in range(20, 30)},
}
LOADED_BY_MUJOCO = ("box2", "twolink", "tx40", "wam7")


def robot_of(name: str) -> Robot:
    return TREES[name] if name in TREES else dynid.load_robot(name).tree


def carried(robot: Robot, symbols: tuple[str, ...] = ("Ia", "fv", "fc")) -> Robot:
    """The robot with the drive terms that the file holds."""
    drives = tuple(t for t in robot.drives if not t.motor and t.function is None and t.symbol in symbols)
    return replace(robot, drives=drives, transmission=None)


def read_back(path: Path, robot: Robot) -> Robot:
    return dynid.load_robot(path, friction="viscous+coulomb", rotor_inertia=True, base=robot.base)


def in_order_of(back: Robot, robot: Robot, columns: int) -> list[int]:
    """Indices that bring `columns` of `robot`, the joints' the last, into the order of the joints of `back`."""
    first = columns - robot.n
    return [*range(first), *(first + robot.coordinates.index(name) for name in back.coordinates)]


@pytest.mark.parametrize("name", [*dynid.builtin_robots(), *TREES])
def test_our_reader_gets_the_same_robot_back(tmp_path: Path, name: str) -> None:
    """Names, parameters, torques, frames, limits, gravity and the base."""
    robot = carried(robot_of(name))
    path = tmp_path / "robot.xml"
    write_mjcf(robot, path, allow_infeasible=True)
    back = read_back(path, robot)
    assert (back.name, back.base) == (robot.name, robot.base)
    np.testing.assert_array_equal(back.gravity, robot.gravity)
    assert sorted(x.name for x in back.links[1:]) == sorted(x.name for x in robot.links[1:])
    for i, link in enumerate(robot.links):
        same = back.links[0] if i == 0 else back.links[back.link_index(link.name)]
        np.testing.assert_allclose(same.inertia, link.inertia, atol=1e-11)
    value = dict(zip(back.parameter_names, back.parameters, strict=True))
    for term in robot.drives:
        assert value[term.name] == term.value
    assert_same_torques(back, robot)
    q = random_motion(robot, 1, 1)[0][0]
    for frame in robot.frames:
        ours = dynid.dynamics.frame_placement(back, q[in_order_of(back, robot, robot.nq)], frame.name)
        np.testing.assert_allclose(ours, dynid.dynamics.frame_placement(robot, q, frame.name), atol=1e-13)
    for joint, limits in robot.limits.items():
        assert back.limits[joint] == replace(limits, velocity=np.inf)


@pytest.mark.parametrize("name", ["box2", "iiwa14", "tx40"])
def test_base_parameters_are_the_same_after_a_round_trip(tmp_path: Path, name: str) -> None:
    """Rounding in the file must not make columns look independent that are not."""
    robot = carried(dynid.load_robot(name)).with_drives("viscous+coulomb", rotor_inertia=True)
    path = tmp_path / "robot.xml"
    write_mjcf(robot, path, allow_infeasible=True)
    assert dynid.base_parameters(read_back(path, robot)).count == dynid.base_parameters(robot).count


def test_a_second_round_changes_nothing(tmp_path: Path) -> None:
    """The base that stands still keeps its name though our reader calls it the world."""
    first, second = tmp_path / "first.xml", tmp_path / "second.xml"
    robot = carried(TREES["arm"])
    write_mjcf(robot, first)
    write_mjcf(dynid.load_robot(first), second)
    names = [{(e.tag, e.get("name")) for e in ET.parse(f).iter()} for f in (first, second)]
    assert names[0] == names[1]


# -- MuJoCo itself ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mujoco() -> ModuleType:
    module: ModuleType = pytest.importorskip("mujoco")
    return module


def assert_mujocos_torques(mujoco: ModuleType, path: Path, robot: Robot) -> None:
    model_files.assert_mujocos_torques(mujoco, mujoco.MjModel.from_xml_path(str(path)), robot)


@pytest.mark.parametrize("name", [*LOADED_BY_MUJOCO, *TREES])
def test_mujoco_computes_the_same_torques(tmp_path: Path, mujoco: ModuleType, name: str) -> None:
    """Rigid bodies, rotor inertia, viscous friction and springs; Coulomb friction is a constraint in MuJoCo."""
    robot = carried(robot_of(name), ("Ia", "fv", "k"))
    path = tmp_path / "robot.xml"
    write_mjcf(robot, path, allow_infeasible=True)
    assert_mujocos_torques(mujoco, path, robot)


def test_mujoco_knows_ranges_frames_couplings_and_friction(tmp_path: Path, mujoco: ModuleType) -> None:
    """What stands in the file beside the bodies is MuJoCo's too."""
    robot = TREES["mimics"].with_drives("coulomb")
    leader = robot.coordinates[0]
    robot = robot.with_limits({leader: {"position": (-1, 2), "effort": 30}})
    robot = replace(robot, drives=tuple(replace(t, value=0.4) for t in robot.drives))
    path = tmp_path / "robot.xml"
    write_mjcf(robot, path)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    np.testing.assert_array_equal(model.joint(leader).range, [-1, 2])
    np.testing.assert_array_equal(model.jnt_actfrcrange[model.joint(leader).id], [-30, 30])
    assert model.joint(leader).frictionloss[0] == 0.4
    assert model.neq == 3
    q = random_motion(robot, 0, 1)[0][0]
    G, offset = mimic_map(robot)
    data.qpos[[model.joint(j.name).qposadr[0] for j in robot.joints]] = G @ q + offset
    mujoco.mj_forward(model, data)
    for frame in robot.frames:
        theirs = dynid.dynamics.frame_placement(robot, q, frame.name)
        np.testing.assert_allclose(data.site(frame.name).xpos, theirs[:3, 3], atol=1e-12)
        np.testing.assert_allclose(data.site(frame.name).xmat, theirs[:3, :3].ravel(), atol=1e-12)
    equal = data.efc_type[: data.nefc] == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
    np.testing.assert_allclose(data.efc_pos[: data.nefc][equal], 0, atol=1e-12)  # the couplings hold where ours do


def test_flat_and_pointlike_bodies_load(tmp_path: Path, mujoco: ModuleType) -> None:
    """A turned plate, a turned rod, a point mass and nothing at all, where MuJoCo counts every last bit."""
    turn = random_robot(0, 1).joints[0].placement[:3, :3]
    bodies = [np.diag(d) for d in ([0.1, 0.3, 0.4], [0.2, 0.2, 0.0], [0.0, 0.0, 0.0])]
    inertias = [dynid.inertia.inertia_from_com(20.0, [3.0, -2.0, 1.0], turn @ b @ turn.T) for b in bodies]
    robot = random_robot(11, 5, parents=[0, 1, 2, 3, 4])
    links = [replace(x, inertia=pi) for x, pi in zip(robot.links[1:5], [*inertias, np.zeros(10)], strict=True)]
    robot = replace(robot, links=(robot.links[0], *links, robot.links[5]))
    path = tmp_path / "robot.xml"
    warnings = write_mjcf(robot, path)
    assert not any("impossible" in w for w in warnings)
    assert any("'l4'" in w and "kg more" in w for w in warnings)
    assert_mujocos_torques(mujoco, path, robot)
    assert_same_torques(read_back(path, robot), robot)


@pytest.mark.parametrize("name", ["iiwa14", "puma560"])
def test_impossible_links_are_written_only_if_asked(tmp_path: Path, mujoco: ModuleType, name: str) -> None:
    """MuJoCo refuses them, and nothing in the file bends them into shape."""
    path = tmp_path / "robot.xml"
    robot = dynid.load_robot(name)
    with expect_error(ModelError, "allow_infeasible", code="untrusted"):
        write_mjcf(robot, path)
    assert not path.exists()
    broken = [x.name for x in robot.links if np.any(x.inertia) and dynid.inertia.inertia_violations(x.inertia)]
    warnings = [w for w in write_mjcf(robot, path, allow_infeasible=True) if "MuJoCo will not load" in w]
    assert [w.split("'")[1] for w in warnings] == broken
    assert "balanceinertia" not in path.read_text()
    with pytest.raises(ValueError, match="inertia"):
        mujoco.MjModel.from_xml_path(str(path))


# -- names, joints of one body, warnings --------------------------------------------------------------


def test_several_joints_of_a_body_stay_in_one_body(tmp_path: Path, mujoco: ModuleType) -> None:
    """Links that only separate two joints are no bodies without mass."""
    source = TREES["arm"]
    virtual = {2, 3}
    parents = [0, 1, 2, 3, 4, 4]
    robot = replace(
        random_robot(9, 6, parents=parents, rotors=True),
        links=tuple(Link(f"l{i}", np.zeros(10), True) if i in virtual else x for i, x in enumerate(source.links)),
    )
    path = tmp_path / "robot.xml"
    assert write_mjcf(robot, path) == []
    assert [b.get("name") for b in ET.parse(path).iter("body")] == ["l0", "l1", "l4", "l5", "l6"]
    back = read_back(path, robot)
    assert [p for p in back.parameter_names if p.startswith("m_")] == ["m_l1", "m_l4", "m_l5", "m_l6"]
    assert_same_torques(back, robot)
    assert_mujocos_torques(mujoco, path, robot)


def test_a_link_between_joints_that_carries_a_frame_is_a_body(tmp_path: Path, mujoco: ModuleType) -> None:
    """Then it gets the least mass that MuJoCo takes."""
    robot = random_robot(9, 3, parents=[0, 1, 2], rotors=True)
    links = tuple(Link(x.name, np.zeros(10), True) if i == 1 else x for i, x in enumerate(robot.links))
    robot = replace(robot, links=links, frames=(Frame("between", 1, np.eye(4)),))
    path = tmp_path / "robot.xml"
    assert ["'l1' has no mass" in w for w in write_mjcf(robot, path)] == [True]
    assert_mujocos_torques(mujoco, path, robot)


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_the_name_of_mujocos_world_is_left_to_it(tmp_path: Path, mujoco: ModuleType, base: str) -> None:
    """A base link called world stands still in MuJoCo's world, or flies under another name."""
    robot = random_robot(10, 3, base=base)
    robot = replace(robot, links=(replace(robot.links[0], name="world"), *robot.links[1:]))
    path = tmp_path / "robot.xml"
    assert any("'world'" in w for w in write_mjcf(robot, path)) == (base == "floating")
    assert_mujocos_torques(mujoco, path, robot)
    assert_same_torques(read_back(path, robot), robot)
    empty = replace(robot, links=(Link("world", np.zeros(10)), *robot.links[1:]), base="fixed")
    write_mjcf(empty, path)
    assert next(ET.parse(path).iter("body")).get("name") == "l1"


def test_what_mjcf_cannot_hold_is_listed(tmp_path: Path) -> None:
    """Every drive term that is not in the file is named, and so is what else is lost."""
    robot = with_custom_terms(random_robot(8, 3, drives=True))
    robot = robot.with_limits({"j1": {"velocity": 2.0}}).with_base("instrumented")
    robot = replace(robot, frames=(*robot.frames, robot.frames[0]))
    text = "; ".join(write_mjcf(robot, tmp_path / "robot.xml"))
    for word in ("fvp of j1, motor1, j2", "fcn of", "off of", "wave of j1", "coupled of j3", "Ia of motor1, motor2"):
        assert word in text
    for word in ("coupling of motor1", "velocity limits", 'base="instrumented"', "second frame named 'tool0'"):
        assert word in text
    assert write_mjcf(random_robot(8, 3, rotors=True), tmp_path / "robot.xml") == []
    backwards = replace(arm(), drives=tuple(replace(t, value=-1.0) for t in arm().drives))
    warnings = write_mjcf(backwards, tmp_path / "robot.xml", allow_infeasible=True)
    assert any("fc_joint1 is negative" in w for w in warnings)
    with expect_error(ModelError, "allow_infeasible", code="untrusted"):
        write_mjcf(backwards, tmp_path / "robot.xml")


def test_another_order_of_joints_is_warned_of(tmp_path: Path) -> None:
    """MJCF has no other order than branch by branch."""
    path = tmp_path / "robot.xml"
    robot = TREES["breadth first"]
    (warning,) = write_mjcf(robot, path)
    assert warning.endswith(", ".join(dynid.load_robot(path).coordinates))
    assert dynid.load_robot(path).coordinates != robot.coordinates


def test_one_sided_ranges_are_written_wide(tmp_path: Path) -> None:
    """As in URDF, a missing side is a number out of reach."""
    joint = Joint("j", "prismatic", 0, np.eye(4), np.array([0, 0, 1]), limits=Limits(lower=-0.5))
    robot = Robot("slide", random_robot(0, 1).links, (joint,))
    write_mjcf(robot, tmp_path / "robot.xml")
    assert dynid.load_robot(tmp_path / "robot.xml").limits["j"] == Limits(-0.5, 1e9)


def test_unusable_paths_and_bodies_are_plain_errors(tmp_path: Path) -> None:
    """With what to blame in them."""
    robot = random_robot(0, 2)
    with expect_error(DynidError, code="not_writable"):
        write_mjcf(robot, tmp_path / "no" / "robot.xml")
    moment = replace(robot, links=(*robot.links[:2], Link("l2", np.eye(10)[1])))
    with expect_error(ModelError, code="unsupported"):
        write_mjcf(moment, tmp_path / "robot.xml", allow_infeasible=True)


# -- templates ----------------------------------------------------------------------------------------

# Degrees, classes, an include, shapes that weigh, a body on two joints, bodies fixed to others, a coupled joint.
TEMPLATE = """
<mujoco model="scene">
  <compiler meshdir="assets" {compiler}/>
  <option gravity="0 1 -9"/>
  <default><joint armature="0.05" damping="0.2"/><default class="fast"><joint damping="0.1"/></default></default>
  <asset><texture name="grid" type="2d" builtin="checker" width="8" height="8"/></asset>
  <include file="gripper.xml"/>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="pedestal" pos="0 0 0.2"><geom type="box" size="0.1 0.1 0.1"/>
      <body name="upper" pos="0 0 0.3" euler="10 20 30" childclass="fast">
        <joint name="pan" axis="0 0 1" range="-90 90"/>
        <frame pos="0.1 0 0"><joint type="slide" axis="1 1 0"/></frame>
        <geom type="capsule" size="0.03 0.1" rgba="1 0 0 1"/>
        <body name="cover" pos="0 0.1 0"><geom type="sphere" size="0.04"/><body><geom size="0.02"/></body></body>
        <frame euler="0 90 0"><body name="fore" pos="0.2 0 0">
          <joint name="elbow" axis="0 1 0" frictionloss="0.3"/>
          <inertial mass="1" pos="0 0 0.1" diaginertia="0.01 0.02 0.02"/>
          <geom name="skin" type="box" size="0.1 0.1 0.1"/>
        </body></frame>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
INCLUDED = """
<mujoco>
  <worldbody><body pos="1 0 0"><joint name="follower" axis="1 0 0" armature="0.4"/><geom size="0.1"/></body></worldbody>
  <equality><joint joint1="follower" joint2="elbow" polycoef="0.1 -2 0 0 0"/></equality>
</mujoco>
"""


def template_files(folder: Path, compiler: str = "") -> Path:
    (folder / "gripper.xml").write_text(INCLUDED)
    path = folder / "scene.xml"
    path.write_text(TEMPLATE.format(compiler=compiler))
    return path


def changed(robot: Robot) -> Robot:
    """The robot with all its parameters different, its bodies still possible."""
    scale = np.array([1.3 if p.inertial else 1.7 for p in robot.layout])
    robot = robot.with_parameters(robot.parameters * scale + [0 if p.inertial else 0.01 for p in robot.layout])
    payload = dynid.inertia.inertia_from_com(0.4, [0.1, 0.2, 0.3], np.diag([0.01, 0.02, 0.02]))
    return robot.with_payload("upper", payload).with_payload("fore", payload)


@pytest.mark.parametrize("compiler", ["", 'inertiafromgeom="true"', 'inertiafromgeom="auto" angle="radian"'])
def test_a_template_takes_inertias_and_drives_and_nothing_else(
    tmp_path: Path, mujoco: ModuleType, compiler: str
) -> None:
    """Shapes must not weigh beside the new inertia, nor fixed bodies, nor a follower beside its leader."""
    source, out = template_files(tmp_path, compiler), tmp_path / "out.xml"
    before = dynid.load_robot(source, friction="viscous+coulomb", rotor_inertia=True)
    robot = changed(before)
    robot = robot.with_terms(robot.joint_term("elbow", "k", 3.0, rest=0.3))
    assert write_mjcf(robot, out, template=source) == []
    back = read_back(out, robot)
    assert back.parameter_names == robot.parameter_names
    np.testing.assert_allclose(back.parameters, robot.parameters, atol=1e-14)
    assert next(t.rest for t in back.drives if t.symbol == "k") == pytest.approx(0.3)
    assert_mujocos_torques(mujoco, out, replace(robot, drives=tuple(t for t in robot.drives if t.symbol != "fc")))
    old, new = (list(ET.parse(f).iter()) for f in (source, out))
    shapes = [{(e.get("name"), e.get("size"), e.get("rgba")) for e in x if e.tag == "geom"} for x in (old, new)]
    assert shapes[0] < shapes[1]  # the included file's too
    assert {e.get("name") for e in old if e.get("name")} < {e.get("name") for e in new}
    assert next(e for e in new if e.tag == "compiler").get("meshdir") == "assets"
    assert back.limits == before.limits


def test_a_template_keeps_the_drives_that_are_not_modelled(tmp_path: Path) -> None:
    """Without drive terms only inertias change."""
    source, out = template_files(tmp_path), tmp_path / "out.xml"
    write_mjcf(dynid.load_robot(source), out, template=source)
    options = {"friction": "viscous+coulomb", "rotor_inertia": True}
    before, after = (dynid.load_robot(f, **options) for f in (source, out))  # type: ignore[arg-type]
    np.testing.assert_allclose(after.parameters, before.parameters, atol=1e-14)


COMMENTED = """<?xml version='1.0'?>
<!-- a scene -->
<mujoco model='scene'>
  <compiler angle='radian'/><!-- radians -->
  <include file='looks.xml'/>
  <worldbody>
    <body name='upper' pos='0 0 0.3'>   <!-- the upper one -->
      <joint name='pan'  axis='0 0 1' damping='0.5' /> <!-- stiff -->
      <inertial mass='1' pos='0 0 .1' quat='1 0 0 0' diaginertia='.01 .02 .02'/>
      <geom type='sphere' size='0.1'/>
      <body name='fore' pos='0.2 0 0'><joint name='elbow' axis='0 1 0'/><geom size='0.1'/></body>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_text_of_a_template_stays(tmp_path: Path, newline: str) -> None:
    """Byte by byte but for inertial elements and drive attributes; an unchanged robot changes nothing at all."""
    source, out = tmp_path / "scene.xml", tmp_path / "out.xml"
    (tmp_path / "looks.xml").write_text("<mujoco><visual/></mujoco>")
    source.write_bytes(COMMENTED.replace("\n", newline).encode())
    robot = dynid.load_robot(source, friction="viscous+coulomb", rotor_inertia=True)
    assert write_mjcf(robot, out, template=source) == []
    assert out.read_bytes() == source.read_bytes()
    other = changed(robot)
    assert write_mjcf(other, out, template=source) == []
    assert_same_torques(read_back(out, other), other)
    broken = robot.with_parameters(-robot.parameters)
    with expect_error(ModelError, "allow_infeasible", code="untrusted"):
        write_mjcf(broken, out, template=source)
    text = "; ".join(write_mjcf(broken, tmp_path / "broken.xml", template=source, allow_infeasible=True))
    assert "link 'fore' is not physically consistent" in text and "fv_pan = -0.5 is negative" in text
    pattern = r"\s*<inertial[^>]*/>| (damping|armature|frictionloss)=(\"[^\"]*\"|'[^']*')"
    old, new = (re.sub(pattern, "", f.read_bytes().decode()) for f in (source, out))
    assert old == new and "<include file='looks.xml'/>" in new


def test_a_flying_template(tmp_path: Path, mujoco: ModuleType) -> None:
    """The free body takes the inertia of the base; a pedestal beside it stays as it is."""
    source, out = tmp_path / "drone.xml", tmp_path / "out.xml"
    source.write_text(
        """<mujoco><worldbody><body name="pad"><geom type="box" size="1 1 1"/></body>
        <body name="drone"><freejoint/><geom size="0.2"/><body><geom size="0.1" pos="0.3 0 0"/></body>
        <body name="upper"><joint name="a"/><geom size="0.1" pos="0.1 0 0"/>
        <body name="fore"><joint name="b" axis="1 0 0"/><geom size="0.1" pos="0 0.1 0"/></body></body></body>
        </worldbody></mujoco>"""
    )
    robot = changed(dynid.load_robot(source, friction="viscous", rotor_inertia=True))
    assert write_mjcf(robot, out, template=source) == []
    back = read_back(out, robot)
    np.testing.assert_allclose(back.links[0].inertia, robot.links[0].inertia, atol=1e-14)
    assert_mujocos_torques(mujoco, out, robot)


def test_a_template_with_files_beside_it_is_not_torn_from_them(tmp_path: Path) -> None:
    """Meshes are found from the folder of the file."""
    source = template_files(tmp_path)
    source.write_text(source.read_text().replace("<asset>", '<asset><mesh name="skin" file="skin.stl"/>'))
    robot = dynid.load_robot(source)
    (tmp_path / "else").mkdir()
    (warning,) = write_mjcf(robot, tmp_path / "else" / "out.xml", template=source)
    assert "meshes" in warning and "skin.stl" in (tmp_path / "else" / "out.xml").read_text()
    assert write_mjcf(robot, tmp_path / "out.xml", template=source) == []


def test_templates_of_other_robots_are_refused(tmp_path: Path) -> None:
    """With what is missing in them; a joint that was locked moves in the template still."""
    source, out = template_files(tmp_path), tmp_path / "out.xml"
    robot = dynid.load_robot(source)
    for text, error in (
        (TEMPLATE.replace('name="elbow"', 'name="knee"'), (ModelError, "template", "file_damaged")),
        (TEMPLATE.replace('name="pan"', 'name="tilt"'), (ModelError, "template", "mismatch")),
        (TEMPLATE.replace('name="fore"', 'name="shin"'), (ModelError, "template", "mismatch")),
        (TEMPLATE.replace('pos="0.2 0 0"', 'pos="0.3 0 0"'), (ModelError, "template", "mismatch")),
        (TEMPLATE.replace('axis="0 1 0"', 'axis="1 1 0"'), (ModelError, "template", "mismatch")),
        (
            TEMPLATE.replace("<option", '<compiler balanceinertia="true"/><option'),
            (ModelError, "template", "unsupported"),
        ),
        ("<robot/>", (ModelError, "template", "file_format")),
        ("<mujoco>", (ModelError, "", "file_damaged")),
    ):
        other = tmp_path / "other.xml"
        other.write_text(text.replace("{compiler}", ""))
        with expect_error(*error):
            write_mjcf(robot, out, template=other)
    with expect_error(ModelError, code="file_missing"):
        write_mjcf(robot, out, template=tmp_path / "missing.xml")
    with expect_error(ModelError, "template", code="mismatch"):
        write_mjcf(robot.locked({"pan": 0.0, "upper_joint2": 0.0}), out, template=source)
    assert not out.exists()


def test_measured_base_and_template(tmp_path: Path) -> None:
    """The world of MuJoCo has no inertia to change; a base by its own name has."""
    source, out = template_files(tmp_path), tmp_path / "out.xml"
    robot = dynid.load_robot(source, base="instrumented")
    assert write_mjcf(robot, out, template=source) == []
    heavy = replace(robot.links[0], inertia=2 * robot.links[0].inertia)
    warnings = write_mjcf(replace(robot, links=(heavy, *robot.links[1:])), out, template=source)
    assert any("'world' is left" in w for w in warnings)
    heavy = replace(heavy, name="pedestal")
    assert write_mjcf(replace(robot, links=(heavy, *robot.links[1:])), out, template=source) == []
    np.testing.assert_allclose(dynid.load_robot(out).links[0].inertia, heavy.inertia, rtol=1e-12, atol=1e-14)


# -- from an estimate ---------------------------------------------------------------------------------


def test_an_estimate_is_written_with_its_own_values(tmp_path: Path) -> None:
    """Identified from noise-free data, the file predicts the torques of the robot; offsets are warned of."""
    estimate = dynid.identify(arm(), record(arm()), "ols", signals=EXACT)
    path = tmp_path / "identified.xml"
    warnings = dynid.export.write(estimate, path)
    assert any("off of joint1, joint2, joint3" in w for w in warnings)
    identified = carried(estimate.identified_robot)
    assert_same_torques(read_back(path, identified), identified)


def test_identify_writes_mjcf_by_its_ending(tmp_path: Path) -> None:
    """The file it was read from is the template, so its shapes are in the new one."""
    source, out = template_files(tmp_path), tmp_path / "out.xml"
    robot = dynid.load_robot(source, friction="viscous")
    record(robot, samples=200).to_csv(tmp_path / "run.csv")
    run = CliRunner().invoke(
        app, ["identify", str(source), str(tmp_path / "run.csv"), "--friction", "viscous", "-o", str(out)]
    )
    assert run.exit_code == 0, run.output
    assert 'name="floor"' in out.read_text()
    assert dynid.load_robot(out).n == robot.n
