"""MJCF files that need MuJoCo's compiler, held against MuJoCo itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.assessment.model.other_code import against_mujoco
from dynid.robot.serialize import robot_to_dict
from tests.support.robot_files import Load

mujoco = pytest.importorskip("mujoco")

SAME = 1e-10  # relative to the largest torque: two codes, the derivative of a Jacobian by differences for loops
BODY = '<inertial mass="2" pos="0.1 0.1 0.2" quat="0.9 0.1 0.2 0.3" diaginertia="0.03 0.02 0.04"/>'
TETRAHEDRON = '<asset><mesh name="m" vertex="0 0 0  1 0 0  0 2 0  0 0 3"/></asset>'


def mjcf(world: str, rest: str = "", before: str = '<compiler angle="radian"/>') -> str:
    return f"<mujoco>{before}<worldbody>{world}</worldbody>{rest}</mujoco>"


def arm(first: str = "", inside: str = "", count: int = 2) -> str:
    """A chain of hinges h1, h2, ..., the first with these attributes."""
    out = inside
    for k in range(count, 0, -1):
        more = first if k == 1 else ""
        out = f'<body name="b{k}" pos="0.1 0 0.3"><joint name="h{k}" axis="{k % 2} 1 0" {more}/>{BODY}{out}</body>'
    return out


FILES = {
    "inertia of a mesh": mjcf('<body><joint axis="0 1 0"/><geom type="mesh" mesh="m"/></body>', TETRAHEDRON),
    "replicate": mjcf(
        '<replicate count="3" offset="1 0 0" euler="0 0 1"><body><joint axis="0 1 0"/><geom size="0.1" pos="1 0 0"/>'
        "</body></replicate>"
    ),
    "bounded masses": mjcf(
        '<body><joint axis="0 1 0"/><geom size="0.01" density="1" pos="1 0 0"/></body>',
        before='<compiler boundmass="0.5" boundinertia="0.01"/>',
    ),
    "scaled masses": mjcf(arm(), before='<compiler angle="radian" settotalmass="11"/>'),
    "ball joint": mjcf(arm(inside=f'<body name="c"><joint name="hip" type="ball" pos="0.1 0 0.2"/>{BODY}</body>')),
    "ball after a slide": mjcf(f'<body name="c"><joint type="slide"/><joint name="hip" type="ball"/>{BODY}</body>'),
    "free body beside an arm": mjcf(f'{arm()}<body name="box" pos="1 2 3"><freejoint name="f"/>{BODY}</body>'),
    "two free bodies": mjcf(f"<body><freejoint/>{BODY}{arm()}</body><body><freejoint/>{BODY}</body>"),
    "free cube with the damping of all joints": mjcf(
        f'{arm()}<body><joint type="free"/><geom type="box" size="0.1 0.1 0.1"/></body>',
        before='<compiler angle="radian"/><default><joint armature="1" damping="2"/></default>',
    ),
    "springs of joints": mjcf(arm('stiffness="3" springref="0.4" damping="0.2" armature="0.1"')),
    "spring of a follower": mjcf(
        arm('stiffness="3" springref="0.4" damping="0.5"'),
        '<equality><joint joint1="h1" joint2="h2" polycoef="0.2 -1.5"/></equality>',
    ),
    "springs of tendons": mjcf(
        arm(count=3),
        '<tendon><fixed name="t" stiffness="7" springlength="0.2" damping="0.3"><joint joint="h1" coef="0.5"/>'
        '<joint joint="h3" coef="-2"/></fixed></tendon>',
    ),
    "joint held at a constant": mjcf(arm(count=3), '<equality><joint joint1="h2" polycoef="0.7"/></equality>'),
    "two joints follow one": mjcf(
        arm(count=3), '<equality><joint joint1="h1" joint2="h2"/><joint joint1="h1" joint2="h3"/></equality>'
    ),
    "equality of a tendon": mjcf(
        arm(count=3),
        '<tendon><fixed name="t"><joint joint="h1" coef="0.5"/><joint joint="h3" coef="-2"/></fixed></tendon>'
        '<equality><tendon tendon1="t" polycoef="0.1"/></equality>',
    ),
    "motor with a rotor": mjcf(arm(), '<actuator><motor joint="h2" gear="3" armature="0.1" damping="0.2"/></actuator>'),
    "four-bar": mjcf(
        f'<body name="crank"><joint name="c" axis="0 1 0" damping="0.1"/>{BODY}<body name="coupler" pos="0 0 0.3">'
        f'<joint name="d" axis="0 1 0"/>{BODY}</body></body>'
        f'<body name="rocker" pos="0.5 0 0"><joint name="e" axis="0 1 0" stiffness="2"/>{BODY}</body>',
        '<equality><connect body1="coupler" body2="rocker" anchor="0.5 0 0.1"/></equality>'
        '<actuator><motor joint="c"/></actuator>',
    ),
}

TENDONS = (
    '<tendon><fixed name="t"><joint joint="h1" coef="0.5"/><joint joint="h2" coef="1"/><joint joint="h3" coef="-2"/>'
    '</fixed><fixed name="u"><joint joint="h4" coef="1"/><joint joint="h2" coef="0.3"/></fixed></tendon>'
)
FILES |= {
    "polynomial of a joint": mjcf(
        arm('ref="0.2"', count=3),
        '<equality><joint joint1="h1" joint2="h2" polycoef="0.2 -1.5 0.8 0.3 0.1"/></equality>',
    ),
    "polynomial of a follower": mjcf(
        arm(count=4),
        '<equality><joint joint1="h4" joint2="h2" polycoef="0.1 0.4 0.5"/><joint joint1="h2" joint2="h3"/></equality>',
    ),
    "tendon over three joints": mjcf(
        arm(count=4), TENDONS + '<equality><tendon tendon1="t" polycoef="0.1"/></equality>'
    ),
    "polynomial of a tendon": mjcf(
        arm(count=4), TENDONS + '<equality><tendon tendon1="t" tendon2="u" polycoef="0.1 0.4 0.7"/></equality>'
    ),
    "motors on coupled joints": mjcf(
        arm(count=4),
        TENDONS + '<equality><tendon tendon1="t"/></equality><actuator><motor tendon="u"/><motor joint="h1"/>'
        '<motor joint="h3"/></actuator>',
    ),
    "rod, and a joint held at a constant": mjcf(
        f'<body><joint name="held"/>{BODY}<body pos="0.1 0 0"><joint name="h1" axis="0 1 0"/>{BODY}<body name="tip" '
        f'pos="0.3 0 0"><joint name="h2" axis="0 1 0"/>{BODY}<site name="p" pos="0.2 0 0"/></body></body></body>'
        '<site name="w" pos="0.4 0.05 0.3"/>',
        '<tendon><spatial name="rod"><site site="p"/><site site="w"/></spatial></tendon>'
        '<equality><joint joint1="held" polycoef="0.3"/><tendon tendon1="rod" polycoef="0.02"/></equality>',
    ),
    "robot tied to the world": mjcf(
        f'<body name="base"><freejoint/>{BODY}{arm()}</body>',
        '<equality><connect body1="base" anchor="0.5 0.1 0.1"/></equality>',
    ),
}

# A parallelogram of heavy bars without gravity: at zero acceleration its torques are zero.
FILES["parallelogram without gravity"] = mjcf(
    f"""<body name="a"><joint name="h1" axis="1 0 0"/><geom type="cylinder" size="0.2 2" pos="0 2 0" euler="90 0 0"/>
      <body name="b" pos="0 4 0"><joint name="h2" axis="1 0 0"/>{BODY}
        <body name="c" pos="0 0 4"><joint name="h3" axis="1 0 0"/>
          <geom type="cylinder" size="0.2 2" pos="0 -2 0" euler="90 0 0"/></body></body></body>""",
    '<equality><connect body1="c" anchor="0 -4 0"/></equality>',
    before='<option gravity="0 0 0"/>',
)

# A leg like Cassie's: a floating pelvis, a spring in the shin, and a rod on a ball joint from hip to heel.
FILES["leg with a rod"] = mjcf(
    f"""<body name="pelvis"><freejoint/>{BODY}
      <body name="thigh" pos="0 0.1 0"><joint name="hip" axis="0 1 0" armature="0.04" damping="1"/>{BODY}
        <body name="rod" pos="0 0 0.04"><joint name="achilles" type="ball"/>{BODY}</body>
        <body name="shin" pos="0.12 0 0"><joint name="knee" axis="0 1 0" armature="0.04"/>{BODY}
          <body name="tarsus" pos="0.43 0 0"><joint name="ankle" axis="0 1 0"/>{BODY}
            <body name="heel" pos="-0.01 0 0.1"><joint name="heel_spring" axis="0 1 0" stiffness="1250"/>{BODY}</body>
    </body></body></body></body>""",
    """<equality><connect body1="rod" body2="heel" anchor="0.5 0 0.05"/></equality>
    <actuator><motor joint="hip" gear="25"/><motor joint="knee" gear="16"/></actuator>""",
)
# A finger whose tendon is driven by a servo and held by a spring, as those of shadow hands.
FILES["finger with a tendon"] = mjcf(
    arm(count=3, first='stiffness="0.1"'),
    """<tendon><fixed name="flexor" stiffness="3" springlength="0" frictionloss="0.1" armature="0.01">
      <joint joint="h2" coef="1"/><joint joint="h3" coef="1"/></fixed></tendon>
    <actuator><position tendon="flexor" kp="2"/><motor joint="h1"/></actuator>""",
)


@pytest.mark.parametrize("case", FILES)
def test_dynamics_are_mujocos(tmp_path: Path, case: str) -> None:
    """Mass matrix, bias and inverse dynamics through the map between our velocities and MuJoCo's."""
    path = tmp_path / "robot.xml"
    path.write_text(FILES[case])
    assert against_mujoco(path).largest < SAME


def test_a_spring_left_out_would_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison itself can fail: without its tendon spring the robot differs."""
    path = tmp_path / "robot.xml"
    path.write_text(FILES["springs of tendons"])
    monkeypatch.setattr("dynid.robot.mjcf_passive._tendon_terms", lambda *given: [])
    assert against_mujoco(path).largest > 1e-3


def test_a_closed_loop_has_the_motor_on_an_independent_joint(load: Load) -> None:
    """The passive joints are those without motors; on request the tree is read, with a note on the loop."""
    robot = load(FILES["four-bar"], ".xml")
    assert (robot.coordinates, robot.passive) == (("c",), ("d", "e"))
    tree = load(FILES["four-bar"], ".xml", ignore_loops=True)
    assert tree.coordinates == ("c", "d", "e")
    assert any("closes a loop" in note for note in tree.notes)


def test_equalities_leave_out_joints(load: Load) -> None:
    """A constant locks, two joints of a tendon follow each other, and chains of followers have one leader."""
    assert load(FILES["joint held at a constant"], ".xml").coordinates == ("h1", "h3")
    assert load(FILES["two joints follow one"], ".xml").coordinates == ("h3",)
    assert load(FILES["equality of a tendon"], ".xml").coordinates == ("h2", "h3")


def test_keyframes_are_postures(load: Load) -> None:
    """By joint name; the quaternion of a ball as the three angles that give the same rotation."""
    world = arm(inside=f'<body name="c"><joint name="hip" type="ball"/>{BODY}</body>')
    key = '<keyframe><key name="home" qpos="0.1 0.2 0.8 0.36 0 0.48"/></keyframe>'
    robot = load(mjcf(world, key), ".xml")
    posture = robot.postures["home"]
    assert list(posture) == list(robot.coordinates)
    q = [posture[name] for name in robot.coordinates]
    model = mujoco.MjModel.from_xml_string(mjcf(world, key))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_kinematics(model, data)
    ours = dynid.dynamics.frame_placement(robot, q, "c")
    np.testing.assert_allclose(ours[:3, :3].ravel(), data.body("c").xmat, atol=1e-12)
    assert robot.locked({"h1": 0.3}).postures["home"].keys() == posture.keys() - {"h1"}


def test_tendons_of_motors_are_a_transmission(load: Load) -> None:
    """tau_joint = coupling * gear * tau_motor, as MuJoCo's actuator moments."""
    rest = (
        '<tendon><fixed name="t"><joint joint="h1" coef="0.5"/><joint joint="h2" coef="-2"/></fixed></tendon>'
        '<actuator><motor name="m1" joint="h1" gear="4"/><motor name="m2" tendon="t" gear="10"/></actuator>'
    )
    robot = load(mjcf(arm(), rest), ".xml")
    assert robot.transmission is not None
    np.testing.assert_allclose(robot.transmission.matrix, [[4, 5], [0, -20]])


def test_what_is_left_out_is_said(load: Load) -> None:
    """One sentence on each thing that acts in MuJoCo and has no drive term."""
    world = (
        f'<site name="s"/><body name="b1" gravcomp="0.5"><joint name="h1" damping="1 2 3" frictionloss="0.1"/>{BODY}'
        f'<site name="e" pos="0 0 1"/><body name="c"><joint name="hip" type="ball" damping="1"/>{BODY}</body></body>'
    )
    rest = (
        '<tendon><spatial name="rope" stiffness="5"><site site="s"/><site site="e"/></spatial></tendon>'
        '<actuator><position name="servo" joint="h1" kp="3"/></actuator>'
    )
    notes = " ".join(load(mjcf(world, rest, '<option density="1.2"/>'), ".xml").notes)
    expected = ["'hip' became", "damping of ball joint 'hip'", "'rope' runs through space", "polynomial damping"]
    expected += ["'servo'", "compensation of body 'b1'", "density 1.2", "Coulomb friction of joint 'h1'"]
    for words in expected:
        assert words in notes
    said = load(mjcf(world, rest), ".xml", friction="viscous+coulomb").notes
    assert not any("Coulomb friction" in note for note in said)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (mjcf('<body><joint/><geom type="mesh" mesh="m"/></body>', '<asset><mesh name="m" file="no.stl"/></asset>'),
         "no.stl"),
        (mjcf(f'<body><joint name="j"/>{BODY}<site name="a"/></body><site name="b" pos="0 0 1"/>',
              '<tendon><spatial name="t"><site site="a"/><site site="b"/></spatial></tendon>'
              '<actuator><muscle tendon="t" lengthrange="0.5 1.5"/></actuator>'), "muscles"),
    ],
    ids=["missing mesh", "muscle"],
)  # fmt: skip
def test_refused_in_one_sentence(load: Load, text: str, words: str) -> None:
    """The file or the elements are named."""
    with pytest.raises(dynid.ModelError, match=words):
        load(text, ".xml")


def test_a_mesh_that_only_shows_may_be_missing(load: Load) -> None:
    """The inertia is given, so the robot loads and says that its size is not known."""
    world = f'<body name="a"><joint/>{BODY}<geom type="mesh" mesh="m"/></body>'
    robot = load(mjcf(world, '<asset><mesh name="m" file="no.stl"/></asset>'), ".xml")
    assert robot.links[1].inertia[0] == 2
    assert "no.stl" in robot.notes[0]


def test_a_mesh_with_a_mass_may_be_missing(load: Load) -> None:
    """It becomes a point at its place, and the robot says so."""
    geoms = '<geom type="sphere" size="0.1" mass="2"/><geom type="mesh" mesh="m" mass="0.5" pos="0 0 0.4"/>'
    world = f'<body name="a"><joint axis="0 1 0"/>{geoms}</body>'
    robot = load(mjcf(world, '<asset><mesh name="m" file="no.stl"/></asset>'), ".xml")
    assert robot.links[1].inertia[0] == pytest.approx(2.5) and robot.links[1].inertia[3] == pytest.approx(0.2)
    assert "no.stl" in robot.notes[0] and "0.5 kg of 'a' became a point" in robot.notes[0]


def test_nested_includes_are_relative_to_the_including_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both readers find a file beside the file that includes it."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "inner.xml").write_text(f"<mujoco><worldbody>{arm()}</worldbody></mujoco>")
    (tmp_path / "parts" / "outer.xml").write_text('<mujoco><include file="inner.xml"/></mujoco>')
    (tmp_path / "robot.xml").write_text('<mujoco><include file="parts/outer.xml"/></mujoco>')
    assert dynid.load_robot(tmp_path / "robot.xml").coordinates == ("h1", "h2")
    monkeypatch.setattr("dynid.robot.mjcf.find_spec", lambda name: None)
    assert dynid.load_robot(tmp_path / "robot.xml").coordinates == ("h1", "h2")


LIGHT = ["ball joint", "ball after a slide", "springs of joints", "spring of a follower", "joint held at a constant"]


@pytest.mark.parametrize("case", LIGHT)
def test_both_readers_give_the_same_robot(load: Load, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    """Every number of the robot, where the light reader can read the file too."""
    shape = '<geom type="capsule" size="0.1 0.2" euler="0.1 0.2 0.3" contype="0"/></body>'
    text = FILES[case].replace("</body>", shape, 1)
    options = {"friction": "viscous+coulomb", "rotor_inertia": True}
    first = robot_to_dict(load(text, ".xml", **options))
    monkeypatch.setattr("dynid.robot.mjcf.find_spec", lambda name: None)
    assert_same(first, robot_to_dict(load(text, ".xml", **options)))


def assert_same(a: object, b: object) -> None:
    """Plain data alike: texts equal, numbers within rounding."""
    if isinstance(a, dict):
        assert isinstance(b, dict) and a.keys() == b.keys()
        for key in a.keys() - {"notes"}:
            assert_same(a[key], b[key])
    elif isinstance(a, list):
        assert isinstance(b, list) and len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    elif isinstance(a, float):
        assert a == pytest.approx(b, abs=1e-12)
    else:
        assert a == b
