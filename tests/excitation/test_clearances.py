"""Clearances keep what they say: distances, boxes and balance, with gradients that match finite differences."""

from __future__ import annotations

import logging
import pickle
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from numpy.typing import NDArray

import dynid
from dynid import Robot
from dynid.errors import DataError, InvalidValue, MissingArgument, MissingData, ModelError, NotApplicable, UnknownName
from dynid.excitation.balance import SupportPolygon, verify_balance, zero_moment_point
from dynid.excitation.collision import Collision, LinkShape, Obstacle
from dynid.excitation.design import design_excitation
from dynid.excitation.problem import Clearance
from dynid.excitation.workspace import KeepIn
from dynid.robot import Joint, Link
from dynid.robot.spatial import placement, rpy_rotation
from studies.reproduce.corner import DISTANCE, LENGTHS, corner_case
from tests.support.errors import Error, expect_error
from tests.support.random_robots import random_robot

Array = NDArray[np.float64]

TURN = placement(rpy_rotation(0.3, -0.5, 1.1), [0.4, 0.2, 0.5])


def tetrahedron(file: Path) -> None:
    """A binary STL of four faces, some of them turned inwards."""
    corners = 0.12 * np.array([[1, 1, 1], [-1, -1, 1], [-1, 1, -1], [1, -1, -1]], dtype=np.float32)
    faces = b"".join(
        struct.pack("<12fH", 0, 0, 0, *corners[[a, b, c]].ravel(), 0)
        for a, b, c in ((0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3))
    )
    file.write_bytes(bytes(80) + struct.pack("<I", 4) + faces)


def arm_file(folder: Path) -> Path:
    """Seven joints about z and y by turns, with shapes of all kinds on links 1 to 7, and a tool fixed to the last."""
    tetrahedron(folder / "part.stl")
    shapes = (
        '<cylinder radius="0.06" length="0.2"/>',
        '<box size="0.1 0.12 0.2"/>',
        '<capsule radius="0.05" length="0.2"/>',
        '<cylinder radius="0.05" length="0.2"/>',
        '<mesh filename="part.stl" scale="0.5 0.5 1"/>',
        '<capsule radius="0.05" length="0.1"/>',
        '<box size="0.1 0.1 0.1"/>',
    )
    mass = '<inertial><mass value="2"/><inertia ixx="0.02" iyy="0.02" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>'
    text = '<robot name="seven"><link name="link0"/>'
    for k, shape in enumerate(shapes, start=1):
        text += f'<link name="link{k}">{mass}<collision><origin xyz="0 0 0.12"/><geometry>{shape}</geometry>'
        text += f'</collision></link><joint name="joint{k}" type="revolute"><parent link="link{k - 1}"/>'
        text += f'<child link="link{k}"/><origin xyz="0 0 {0.25 if k > 1 else 0.1}" rpy="0.1 0 0"/>'
        text += f'<axis xyz="{"0 0 1" if k % 2 else "0 1 0"}"/>'
        text += '<limit lower="-2.5" upper="2.5" velocity="2" effort="100"/></joint>'
    text += '<link name="tool"><collision><geometry><sphere radius="0.06"/></geometry></collision></link>'
    text += '<joint name="flange" type="fixed"><parent link="link7"/><child link="tool"/>'
    text += '<origin xyz="0 0 0.25"/></joint>'
    file = folder / "seven.urdf"
    file.write_text(text + "</robot>")
    return file


OBSTACLES = (
    Obstacle("table", "box", (1.0, 1.0, 0.1), placement(translation=[0.0, 0.0, -0.1])),
    Obstacle("post", "cylinder", (0.05, 1.5), placement(translation=[0.6, 0.0, 0.7])),
    Obstacle("ball", "sphere", 0.2, placement(translation=[-0.5, 0.3, 0.8])),
    Obstacle("pipe", "capsule", (0.08, 1.0), TURN),
)


def slopes(clearance: Clearance, q: Array, which: NDArray[np.intp], step: float = 1e-6) -> Array:
    """Central differences (N, n) of one value at each posture."""
    rows, out = np.arange(len(q)), np.empty_like(q)
    for j in range(q.shape[1]):
        h = step * np.eye(q.shape[1])[j]
        out[:, j] = (clearance.values(q + h) - clearance.values(q - h))[rows, which] / (2 * step)
    return out


def test_distances_have_exact_gradients_for_all_shapes_and_a_long_arm(tmp_path: Path) -> None:
    file = arm_file(tmp_path)
    robot = dynid.load_robot(str(file))
    clearance = Collision(robot, file, distance=0.02, obstacles=OBSTACLES, scale=0.3)
    rng = np.random.default_rng(1)
    q = rng.uniform(-2.5, 2.5, (300, 7))
    value = clearance.values(q)
    found = np.argwhere((value < 2.0) & (value > -0.2))
    rows, which = rng.permutation(found)[:400].T
    assert len(set(which)) > 0.8 * value.shape[1]
    exact, numeric = clearance.gradients(q[rows], which), slopes(clearance, q[rows], which)
    # GJK stops at about 1e-8 m, which differences divide by 2e-6 and by the scale; the nearest point of a few jumps.
    error = np.abs(exact - numeric).max(axis=1) / (1 + np.abs(numeric).max(axis=1))
    assert np.mean(error < 1e-3) > 0.98
    assert np.median(error) < 1e-6
    far = np.argwhere(value == 2.0)[:5]
    assert len(far) == 5
    assert np.all(clearance.gradients(q[far[:, 0]], far[:, 1]) == 0)


def test_pruning_changes_nothing(tmp_path: Path) -> None:
    file = arm_file(tmp_path)
    clearance = Collision(dynid.load_robot(str(file)), file, distance=0.03, obstacles=OBSTACLES)
    q = np.random.default_rng(2).uniform(-2.5, 2.5, (200, 7))
    expected = np.minimum((clearance.distances(q) - 0.03) / 0.05, 2.0)
    assert clearance.scale == 0.05
    np.testing.assert_allclose(clearance.values(q), expected, atol=1e-12)
    assert clearance.closest(q)[0] == clearance.distances(q).min()
    again = pickle.loads(pickle.dumps(clearance))
    np.testing.assert_array_equal(again.values(q), clearance.values(q))


def test_distances_of_balls_are_those_of_their_centres() -> None:
    """Against frames alone, with shapes on a link frame and a named frame, on a random tree."""
    robot = random_robot(3, 5)
    a, b = robot.links[2].name, robot.links[5].name
    shapes = [LinkShape(a, "sphere", 0.1, TURN), LinkShape(b, "sphere", 0.02)]
    ball = Obstacle("ball", "sphere", 0.3, TURN)
    clearance = Collision(robot, distance=0.0, pairs=[(a, b), (b, "ball")], obstacles=[ball], shapes=shapes)
    q = np.random.default_rng(0).uniform(-1, 1, (50, robot.n))
    first = (dynid.dynamics.frame_placement(robot, q, a) @ TURN)[:, :3, 3]
    second = dynid.dynamics.frame_placement(robot, q, b)[:, :3, 3]
    expected = np.column_stack(
        [np.linalg.norm(second - first, axis=1) - 0.12, np.linalg.norm(second - TURN[:3, 3], axis=1) - 0.32]
    )
    np.testing.assert_allclose(clearance.distances(q), expected, atol=1e-9)
    which = np.arange(50) % 2
    np.testing.assert_allclose(clearance.gradients(q, which), slopes(clearance, q, which), atol=1e-5)


def test_hull_of_a_mesh_touches_where_its_corner_is(tmp_path: Path) -> None:
    file = arm_file(tmp_path)
    robot = dynid.load_robot(str(file))
    wall = Obstacle("wall", "box", (0.1, 20.0, 20.0), placement(translation=[5.0, 0.0, 0.0]))
    clearance = Collision(robot, file, distance=0.0, pairs=[("link5", "wall")], obstacles=[wall])
    q = np.random.default_rng(5).uniform(-2.5, 2.5, (20, 7))
    corners = 0.12 * np.array([[1, 1, 1], [-1, -1, 1], [-1, 1, -1], [1, -1, -1]]) * [0.5, 0.5, 1] + [0, 0, 0.12]
    h = dynid.dynamics.frame_placement(robot, q, "link5")
    x = (corners @ np.swapaxes(h[:, :3, :3], 1, 2))[:, :, 0] + h[:, :1, 3]
    np.testing.assert_allclose(clearance.distances(q)[:, 0], 4.95 - x.max(axis=1), atol=1e-7)


def test_pairs_that_say_nothing_are_left_out_and_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    robot, (corner,), _ = corner_case()
    assert {(x.first, x.second) for x in corner.left_out} == {(f"link{k}", f"link{k + 1}") for k in (1, 2, 3)}
    assert len(corner.pairs) == 15
    thick = [LinkShape.capsule(f"link{k + 1}", [0, 0, 0], [x, 0, 0], 0.2) for k, x in enumerate(LENGTHS)]
    under = Obstacle("under", "sphere", 0.1)
    with caplog.at_level(logging.WARNING, logger="dynid"):
        clearance = Collision(robot, distance=0.02, obstacles=[under], shapes=thick)
    reason = {(x.first, x.second): x.reason for x in clearance.left_out}
    assert reason["link1", "under"] == "closer than 0.02 m in all of 200 random postures"
    assert "of 200 random postures" in reason["link2", "link4"]
    assert "no clearance is checked between 'link1' and 'under'" in caplog.text
    assert ("link1", "link4") in clearance.pairs
    free = robot.with_limits({f"joint{k + 1}": {"position": (-2.0, 2.0)} for k in range(4)})
    meet = [
        LinkShape("link1", "sphere", 0.1, placement(translation=[0.75, 0.0, 0.0])),
        LinkShape("link3", "sphere", 0.1),
    ]
    far = Obstacle("far", "sphere", 0.1, placement(translation=[0.9, 0.0, 1.0]))
    clearance = Collision(free, distance=0.02, obstacles=[far], shapes=meet)
    assert [x.reason for x in clearance.left_out] == ["touch at the zero posture"]
    assert clearance.pairs == (("link1", "far"), ("link3", "far"))
    assert Collision(robot, distance=0.02, pairs=[("link1", "link2")], shapes=thick).pairs == (("link1", "link2"),)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda robot: Collision(robot, distance=0.02), (MissingArgument, "shapes")),
        (
            lambda robot: Collision(robot, distance=-1.0, shapes=[LinkShape("link1", "sphere", 0.1)]),
            (InvalidValue, "distance"),
        ),
        (
            lambda robot: Collision(robot, distance=0.1, shapes=[LinkShape("link9", "sphere", 0.1)]),
            (ModelError, "shapes", "unknown_name"),
        ),
        (
            lambda robot: Collision(robot, distance=0.1, shapes=[LinkShape("link1", "sphere", 0.1)]),
            (MissingData, "shapes"),
        ),
        (lambda robot: LinkShape("link1", "cone", 0.1), (UnknownName, "kind")),
        (lambda robot: LinkShape("link1", "box", (0.1, 0.2)), (DataError, "")),
        (lambda robot: Obstacle("wall", "sphere", -0.1), (InvalidValue, "size")),
        (lambda robot: Obstacle("wall", "sphere", 0.1, np.zeros((4, 4))), (DataError, "")),
        (lambda robot: KeepIn(robot, "hand", lower=[0, 0, 0]), (ModelError, "name", "unknown_name")),
        (lambda robot: KeepIn(robot, "link4", lower=[0, 1, 0], upper=[1, 0, 1]), (InvalidValue, "lower")),
        (lambda robot: KeepIn(robot, "link4"), (MissingArgument, "lower")),
        (lambda robot: SupportPolygon(robot, [[0, 0], [1, 0], [0, 1]]), (NotApplicable, "")),
        (lambda robot: SupportPolygon(dynid.load_robot("wam7"), [[0, 0], [1, 0]]), (InvalidValue, "polygon")),
        (
            lambda robot: SupportPolygon(dynid.load_robot("wam7"), np.eye(3)[:, :2], margin=1.0),
            (InvalidValue, "margin"),
        ),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_reason(make: Callable[[Robot], object], error: Error) -> None:
    with expect_error(*error):
        make(corner_case()[0])


def test_a_point_in_a_box_has_exact_values_and_gradients() -> None:
    robot = random_robot(7, 6)
    name, point = robot.links[-1].name, np.array([0.1, -0.2, 0.3])
    box = KeepIn(robot, name, point=point, lower=[-1.0, -np.inf, -2.0], upper=[1.0, 0.5, np.inf])
    q = np.random.default_rng(0).uniform(-1, 1, (60, robot.n))
    h = dynid.dynamics.frame_placement(robot, q, name)
    at = h[:, :3, 3] + h[:, :3, :3] @ point
    expected = np.column_stack(
        [at[:, 0] + 1, np.ones(60), (at[:, 2] + 2) / 0.5, 1 - at[:, 0], (0.5 - at[:, 1]) / 0.5, np.ones(60)]
    )
    np.testing.assert_allclose(box.values(q), expected, atol=1e-12)
    which = np.arange(60) % 6
    # Central differences with a step of 1e-6 are good to about 1e-9 of the value.
    np.testing.assert_allclose(box.gradients(q, which), slopes(box, q, which), atol=1e-8)


def standing_robot() -> Robot:
    """A tree on a heavy foot, with friction and rotors that no foot feels."""
    robot = random_robot(11, 5, kinds="rrprr").with_gravity([0, 0, -9.81])
    foot = dynid.inertia.inertia_from_com(5.0, [0.02, 0.01, 0.05], 0.05 * np.eye(3))
    return robot.with_payload(robot.links[0].name, foot)


def test_centre_of_mass_agrees_with_pinocchio_and_has_exact_gradients() -> None:
    robot = standing_robot()
    support = SupportPolygon(robot, [[-0.5, -0.4], [0.5, -0.4], [0.5, 0.4], [-0.5, 0.4], [0.1, 0.1]], margin=0.05)
    assert support.normals.shape == (4, 2)
    q = np.random.default_rng(0).uniform(-1, 1, (40, robot.n))
    model = robot.to_pinocchio()
    data = model.createData()
    mass0, com0 = model.inertias[0].mass, model.inertias[0].lever
    expected = []
    for row in q:
        com = pin.centerOfMass(model, data, row)
        moving = data.mass[0]
        # Pinocchio leaves out what is fixed to the universe.
        expected.append(((moving * com + mass0 * com0) / (moving + mass0))[:2])
    np.testing.assert_allclose(support.center_of_mass(q), expected, atol=1e-10)
    x, y = np.array(expected).T
    inside = np.column_stack([0.5 - x, 0.5 + x, 0.4 - y, 0.4 + y])
    np.testing.assert_allclose(np.sort(support.values(q), axis=1), np.sort((inside - 0.05) / 0.35, axis=1), atol=1e-9)
    which = np.arange(40) % 4
    np.testing.assert_allclose(support.gradients(q, which), slopes(support, q, which), atol=1e-7)


def test_zero_moment_point_agrees_with_the_momentum_of_pinocchio() -> None:
    """p is where the moment of dl/dt - m g about it has no x and y; at rest it is under the centre of mass."""
    robot, height = standing_robot(), 0.3
    rng = np.random.default_rng(1)
    q, v, a = rng.uniform(-1, 1, (3, 30, robot.n))
    support = SupportPolygon(robot, [[-1, -1], [1, -1], [1, 1], [-1, 1]])
    np.testing.assert_allclose(zero_moment_point(robot, q, 0 * v, 0 * a), support.center_of_mass(q), atol=1e-10)
    model = robot.to_pinocchio()
    data = model.createData()
    foot = model.inertias[0]
    for k in range(30):
        pin.computeCentroidalMomentumTimeVariation(model, data, q[k], v[k], a[k])
        mass, com = data.mass[0], np.array(data.com[0])
        force = np.array(data.dhg.linear) - mass * robot.gravity - foot.mass * robot.gravity
        moment = np.array(data.dhg.angular) + np.cross(com, data.dhg.linear - mass * robot.gravity)
        moment += np.cross(foot.lever, -foot.mass * robot.gravity)
        point = zero_moment_point(robot, q[k], v[k], a[k], height=height)[0]
        left = moment - np.cross([*point, height], force)
        np.testing.assert_allclose(left[:2], 0, atol=1e-8 * np.abs(moment).max())


def test_a_robot_thrown_up_has_no_zero_moment_point() -> None:
    """A single mass on a vertical slide that falls faster than gravity."""
    slide = Joint("lift", "prismatic", 0, np.eye(4), np.array([0.0, 0.0, 1.0]))
    body = Link("body", dynid.inertia.inertia_from_com(2.0, [0.1, 0.2, 0.0], 0.01 * np.eye(3)))
    robot = Robot("slide", (Link("base", np.zeros(10)), body), (slide,))
    point = zero_moment_point(robot, [[0.0], [0.0]], [[0.0], [0.0]], [[5.0], [-20.0]])
    np.testing.assert_allclose(point[0], [0.1, 0.2], atol=1e-12)
    assert np.all(np.isnan(point[1]))


def test_a_motion_is_held_against_its_box_and_its_balance() -> None:
    robot = dynid.load_robot("wam7")
    limits = {"*": {"lower": -0.6, "upper": 0.6, "velocity": 0.8, "acceleration": 3.0}}
    middle = dynid.dynamics.frame_placement(robot, np.zeros(7), robot.links[-1].name)[:3, 3]
    around = np.array([0.2, 0.2, np.inf])
    box = KeepIn(robot, robot.links[-1].name, lower=middle - around, upper=middle + around)
    support = SupportPolygon(robot, 0.4 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]), margin=0.02)
    motion = design_excitation(
        robot, 8.0, limits=limits, clearances=[box, support], size=2, samples=60, budget=150, seed=0
    )
    q = motion.sample(200.0)[1]
    assert box.values(q).min() >= -1e-3
    assert support.values(q).min() >= -1e-3
    assert set(motion.slacks) >= {box.label, "balance"}
    found = verify_balance(support, motion)
    assert found.margin.shape == found.times.shape
    assert found.kept == (found.worst[0] >= 0)
    small = SupportPolygon(robot, 0.01 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) + 5.0)
    assert not verify_balance(small, motion).kept


@pytest.mark.slow
def test_the_design_in_a_corner_keeps_its_clearance_and_the_one_without_does_not() -> None:
    robot, clearances, limits = corner_case()
    common = {"limits": limits, "size": 3, "samples": 120, "seed": 0}
    free = design_excitation(robot, 6.0, budget=150, **common)
    kept = design_excitation(robot, 6.0, budget=300, clearances=clearances, **common)
    without, _ = clearances[0].closest(free.sample(500.0)[1])
    within, _ = clearances[0].closest(kept.sample(500.0)[1])
    assert without < -0.05
    # Verified on a grid of 1200 samples: between them a link may come a little closer.
    assert within >= DISTANCE - 5e-4
    assert kept.slacks["collision"] >= -0.01
    assert kept.condition_number < 1e4
