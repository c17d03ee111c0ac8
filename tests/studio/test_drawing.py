"""The solids that stand for a robot have its size, place and inertia."""

from __future__ import annotations

import numpy as np

import dynid
from dynid.robot.inertia import inertia_from_com
from dynid.robot.skeleton import bars, poses
from dynid.studio.drawing import closest_pairs, ellipsoid_corners, ellipsoids, frame, reach


def test_bars_join_the_joints() -> None:
    """The end of every bar is where the next link begins, in any posture."""
    robot = dynid.load_robot("rv2sq")
    placed = poses(robot, np.random.default_rng(0).uniform(-1, 1, 6))
    for bar in bars(robot):
        children = [i + 1 for i, j in enumerate(robot.joints) if j.parent == bar.link]
        if children:
            end = (placed[bar.link] @ np.append(bar.end, 1.0))[:3]
            assert min(np.linalg.norm(placed[c][:3, 3] - end) for c in children) < 1e-9
        assert np.allclose(bar.rotation[:, 2] * bar.length, bar.end - bar.start)


def test_an_even_ellipsoid_is_drawn_as_itself() -> None:
    axes, mass = np.array([0.1, 0.2, 0.3]), 3.0
    tensor = mass / 5 * np.diag([axes[1] ** 2 + axes[2] ** 2, axes[0] ** 2 + axes[2] ** 2, axes[0] ** 2 + axes[1] ** 2])
    robot = dynid.load_robot("twolink")
    body = inertia_from_com(mass, np.array([0.1, 0.0, 0.0]), tensor)
    values = robot.parameters.copy()
    values[[i for i, p in enumerate(robot.layout) if p.owner == "link2" and p.inertial]] = body
    (drawn,) = [e for e in ellipsoids(robot.with_parameters(values)) if robot.links[e.link].name == "link2"]
    assert np.allclose(np.sort(drawn.semi_axes), axes) and np.allclose(drawn.centre, [0.1, 0, 0])


def test_a_folded_arm_touches_itself() -> None:
    robot = dynid.load_robot("rv2sq")
    q = np.zeros((2, 6))
    q[1, 1], q[1, 2] = 2.0, 2.7
    nearest, names = closest_pairs(robot, q, 0.05)
    assert nearest.shape == (2,) and len(names) == 2 and nearest[1] < nearest[0]


def test_links_whose_frame_is_at_their_end_have_bars_too() -> None:
    """Standard DH parameters: two rods of 1 m, joint to joint and to the end."""
    robot = dynid.load_robot("twolink")
    placed = poses(robot, np.array([0.0, np.pi / 2]))
    ends = [[(placed[b.link] @ np.append(x, 1.0))[:3] for x in (b.start, b.end)] for b in bars(robot)]
    assert reach(robot) == 2.0
    assert np.allclose(ends, [[[0, 0, 0], [1, 0, 0]], [[1, 0, 0], [1, 1, 0]]])


def test_the_camera_sees_the_whole_robot() -> None:
    robot = dynid.load_robot("rv2sq")
    centre, radius = frame(robot)
    placed = poses(robot, np.zeros(6))
    assert all(np.linalg.norm(x[:3, 3] - centre) <= radius for x in placed) and radius < reach(robot)
    wide, far = frame(robot, {0: np.array([[5.0, 0.0, 0.0]])})
    assert far > 2.0 and wide[0] > 2.0


def test_the_camera_sees_inertias_that_are_larger_than_the_robot() -> None:
    """Points on every ellipsoid are inside the boxes and the ball around them."""
    robot = dynid.load_robot("tx40")
    corners = ellipsoid_corners(robot)
    centre, radius = frame(robot, corners)
    placed = poses(robot, np.zeros(6))
    random = np.random.default_rng(0).normal(size=(200, 3))
    sphere = random / np.linalg.norm(random, axis=1, keepdims=True)
    for e in ellipsoids(robot):
        local = corners[e.link] @ e.rotation - e.centre @ e.rotation
        assert np.allclose(np.abs(local), e.semi_axes)
        world = (e.centre + (sphere * e.semi_axes) @ e.rotation.T) @ placed[e.link][:3, :3].T + placed[e.link][:3, 3]
        assert np.linalg.norm(world - centre, axis=1).max() <= radius
    assert radius > frame(robot)[1]
