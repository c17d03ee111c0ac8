"""The human model: mass, symmetry, shape, its URDF, and the command that makes it."""

from __future__ import annotations

import doctest
import importlib
import json
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.errors import InvalidValue, UnknownName
from dynid.export.urdf import write_urdf
from dynid.robot.posture import link_placements
from tests.support import commands
from tests.support.compare import difference
from tests.support.errors import Error, expect_error

PEOPLE = [("male", 1.8, 94.0), ("female", 1.62, 51.5), ("male", 1.1, 20.0)]
FLIP = np.diag([1.0, -1.0, 1.0])


def body(robot: dynid.Robot, name: str) -> np.ndarray:
    return robot.links[robot.link_index(name)].inertia


def motion(robot: dynid.Robot, samples: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    q = np.column_stack([rng.normal(size=(samples, 7)), rng.uniform(-0.7, 0.7, (samples, robot.n))])
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1)[:, None]
    return q, rng.normal(size=(samples, robot.nv)), 5 * rng.normal(size=(samples, robot.nv))


@pytest.mark.parametrize(("sex", "height", "weight"), PEOPLE)
def test_weight_is_exact_and_all_links_are_possible(sex: str, height: float, weight: float) -> None:
    robot = dynid.human.human_model(sex, height, weight)
    assert sum(link.inertia[0] for link in robot.links) == pytest.approx(weight, rel=1e-14)
    assert len(robot.parameter_links) == 16 and robot.n == 35 and robot.base == "floating"
    for i in robot.parameter_links:
        assert dynid.inertia.inertia_violations(robot.links[i].inertia) == []
    assert dynid.feasibility.is_feasible(robot).status == "feasible"


def test_numbers_are_those_of_the_table() -> None:
    """Thigh of the mean subject: 14.16 % of 73 kg, centre at 40.95 % of 422.2 mm, radii 32.9, 32.9 and 14.9 %."""
    mass, centre, tensor = dynid.inertia.inertia_to_com(
        body(dynid.human.human_model("male", 1.741, 73.0), "left_thigh")
    )
    assert mass == pytest.approx(0.1416 * 73)
    np.testing.assert_allclose(centre, [0, 0, -0.4095 * 0.4222], atol=1e-12)
    expected = mass * 0.4222**2 * np.diag([0.329**2, 0.329**2, 0.149**2])
    np.testing.assert_allclose(tensor, expected, atol=1e-12)


def test_axes_of_trunk_and_foot() -> None:
    """The trunk turns hardest about the front-to-back axis; the long axis of a foot points forward, its sagittal up."""
    robot = dynid.human.human_model("male", 1.741, 73.0)
    mass, _, tensor = dynid.inertia.inertia_to_com(body(robot, "upper_trunk"))
    np.testing.assert_allclose(np.sqrt(np.diag(tensor) / mass) / 0.2421, [0.505, 0.320, 0.465], rtol=1e-9)
    mass, centre, tensor = dynid.inertia.inertia_to_com(body(robot, "right_foot"))
    np.testing.assert_allclose(np.sqrt(np.diag(tensor) / mass) / 0.2581, [0.124, 0.245, 0.257], rtol=1e-9)
    assert centre[0] > 0.05 and centre[2] < 0


@pytest.mark.parametrize(("sex", "height", "weight"), PEOPLE)
def test_left_is_the_mirror_image_of_right(sex: str, height: float, weight: float) -> None:
    robot = dynid.human.human_model(sex, height, weight)
    for link in robot.links:
        if link.virtual:
            continue
        other = body(robot, link.name.replace("left", "right"))
        ours, theirs = dynid.inertia.inertia_to_com(link.inertia), dynid.inertia.inertia_to_com(other)
        assert ours[0] == pytest.approx(theirs[0])
        np.testing.assert_allclose(FLIP @ ours[1], theirs[1], atol=1e-12)
        np.testing.assert_allclose(FLIP @ ours[2] @ FLIP, theirs[2], atol=1e-12)


def test_equal_values_make_a_symmetric_posture_with_symmetric_torques() -> None:
    """Left and right joints that move alike take the same torque, and no wrench leaves the plane of symmetry."""
    robot = dynid.human.human_model("female", 1.7, 60.0)
    rng = np.random.default_rng(1)
    state = np.zeros((3, 20, robot.n))
    for k, name in enumerate(robot.coordinates):
        if name.startswith("left"):
            j = robot.coordinates.index(name.replace("left", "right"))
            state[:, :, k] = state[:, :, j] = rng.uniform(-1, 1, (3, 20))
        elif name.endswith("flexion") and not name.startswith("right"):
            state[:, :, k] = rng.uniform(-1, 1, (3, 20))
    q = np.column_stack([np.zeros((20, 6)), np.ones(20), state[0]])
    v, a = (np.column_stack([np.zeros((20, 6)), x]) for x in state[1:])
    tau = dynid.inverse_dynamics(robot, q, v, a)
    left = [6 + k for k, n in enumerate(robot.coordinates) if n.startswith("left")]
    right = [6 + robot.coordinates.index(robot.coordinates[k - 6].replace("left", "right")) for k in left]
    assert difference(tau[:, left], tau[:, right]) < 1e-12
    assert np.abs(tau[:, [1, 3, 5]]).max() < 1e-10 * np.abs(tau).max()
    assert np.abs(tau[:, left]).max() > 10


def test_shape_of_a_standing_person() -> None:
    """Height within 3 %, centre of mass at 55 to 59 % of it, fingertips below the hip and feet on one level."""
    for sex, height, weight in PEOPLE:
        robot = dynid.human.human_model(sex, height, weight)
        places = link_placements(robot)
        at = {f.name: (places[f.link] @ f.placement)[:3, 3] for f in robot.frames}
        ground = at["left_sole"][2]
        assert at["right_sole"][2] == ground and at["left_toe"][0] > at["left_sole"][0] > at["left_heel"][0]
        tall = at["vertex"][2] - ground
        assert tall == pytest.approx(height, rel=0.03)
        moments = [dynid.inertia.move_inertia(x.inertia, h)[1:4] for x, h in zip(robot.links, places, strict=True)]
        centre = np.sum(moments, axis=0) / weight
        assert 0.55 < (centre[2] - ground) / tall < 0.59
        assert abs(centre[1]) < 1e-12 and abs(centre[0]) < 0.02
        assert at["left_fingertip"][2] < 0 < at["left_fingertip"][1]


@pytest.mark.parametrize(
    ("joint", "frame", "direction"),
    [
        ("left_hip_flexion", "left_sole", (1, 0, 0)),
        ("right_hip_abduction", "right_sole", (0, -1, 0)),
        ("left_knee_flexion", "left_sole", (-1, 0, 0)),
        ("left_ankle_flexion", "left_toe", (0, 0, 1)),
        ("right_shoulder_flexion", "right_fingertip", (1, 0, 0)),
        ("left_shoulder_abduction", "left_fingertip", (0, 1, 0)),
        ("left_elbow_flexion", "left_fingertip", (1, 0, 0)),
        ("lumbar_flexion", "vertex", (1, 0, 0)),
        ("left_hip_rotation", "left_toe", (0, -1, 0)),
        ("right_hip_rotation", "right_toe", (0, 1, 0)),
    ],
)
def test_joints_move_where_their_names_say(joint: str, frame: str, direction: tuple[int, int, int]) -> None:
    robot = dynid.human.human_model()
    q = np.zeros(robot.nq)
    q[6] = 1.0
    start = dynid.dynamics.frame_placement(robot, q, frame)[:3, 3]
    q[7 + robot.coordinates.index(joint)] = 0.05
    moved = dynid.dynamics.frame_placement(robot, q, frame)[:3, 3] - start
    assert moved @ direction > 0.8 * np.linalg.norm(moved) > 0


@pytest.mark.parametrize(("sex", "height", "weight"), PEOPLE[:2])
def test_urdf_round_trip(tmp_path: Path, sex: str, height: float, weight: float) -> None:
    """Same links, masses, limits and frames; same torques for the same motion of joints by name."""
    robot = dynid.human.human_model(sex, height, weight)
    assert write_urdf(robot, tmp_path / "human.urdf") == []
    read = dynid.human.with_virtual_links(dynid.load_robot(tmp_path / "human.urdf", base="floating"))
    assert {x.name for x in read.links if x.virtual} == {x.name for x in robot.links if x.virtual}
    assert set(read.parameter_names) == set(robot.parameter_names)
    ours = dict(zip(robot.parameter_names, robot.parameters, strict=True))
    theirs = dict(zip(read.parameter_names, read.parameters, strict=True))
    # Twelve digits in the file.
    assert max(abs(ours[n] - theirs[n]) for n in ours) < 1e-10
    assert read.limits.keys() == robot.limits.keys()
    for name in read.limits:
        assert read.limits[name].upper == pytest.approx(robot.limits[name].upper, abs=1e-11)
    assert {f.name for f in read.frames} == {f.name for f in robot.frames}
    q, v, a = motion(robot, 10)
    order = [robot.coordinates.index(n) for n in read.coordinates]
    moved = (np.column_stack([x[:, :k], x[:, k:][:, order]]) for x, k in ((q, 7), (v, 6), (a, 6)))
    tau = dynid.inverse_dynamics(robot, q, v, a)
    assert difference(dynid.inverse_dynamics(read, *moved), np.column_stack([tau[:, :6], tau[:, 6:][:, order]])) < 1e-9


def test_single_lengths_can_be_given() -> None:
    robot = dynid.human.human_model("male", 1.8, 80, lengths={"thigh": 0.5, "hip_half_width": 0.09})
    assert robot.joints[robot.coordinates.index("left_hip_flexion")].placement[1, 3] == 0.09
    assert robot.joints[robot.coordinates.index("right_knee_flexion")].placement[2, 3] == -0.5
    assert sum(link.inertia[0] for link in robot.links) == pytest.approx(80)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"height": -1.8}, (InvalidValue, "height")),
        ({"height": 180}, (InvalidValue, "height")),
        ({"height": None}, (InvalidValue, "height")),
        ({"weight": 0}, (InvalidValue, "weight")),
        ({"weight": float("nan")}, (InvalidValue, "weight")),
        ({"sex": "Male"}, (UnknownName, "sex")),
        ({"table": "winter"}, (UnknownName, "source")),
        ({"lengths": {"tail": 0.2}}, (UnknownName, "lengths")),
        ({"lengths": {"thigh": -0.2}}, (InvalidValue, "lengths")),
    ],
)
def test_odd_input_is_refused(options: dict[str, object], error: Error) -> None:
    with expect_error(*error):
        dynid.human.human_model(**{"sex": "male", "height": 1.8, "weight": 80, **options})  # type: ignore[arg-type]


def test_command(tmp_path: Path) -> None:
    """The file it writes is the model, and --json tells what is in it."""
    file = tmp_path / "human.urdf"
    call = ("human", "model", "--sex", "male", "--height", "1.8", "--weight", "94")
    done = commands.dynid(*call, "-o", file, "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["mass"] == pytest.approx(94) and len(data["segments"]) == 16 and len(data["joints"]) == 35
    assert sum(s["mass"] for s in data["segments"]) == pytest.approx(94)
    assert sum(x.inertia[0] for x in dynid.load_robot(file).links) == pytest.approx(94)
    text = commands.dynid(*call)
    assert text.returncode == 0 and "left_thigh" in text.stdout
    bad = commands.dynid(*call[:-1], "-3")
    assert bad.returncode == 1 and bad.stderr.strip() == "dynid: --weight must lie between 1 and 700 kg, got -3.0"


@pytest.mark.parametrize("name", ["dynid.human.table", "dynid.human.build"])
def test_examples_of_the_docstrings(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0 and result.failed == 0
