"""Ellipsoids around collision shapes hold the shapes, are as small as can be, and hold all bodies within."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid.errors import InvalidValue, ModelError
from dynid.feasibility.constraints import Ellipsoids, Fixed, link_scales
from dynid.feasibility.fit import fit
from dynid.feasibility.sets import feasible_set
from dynid.feasibility.shapes import bounding_ellipsoids, enclosing_ellipsoid, moved_ellipsoid
from dynid.parameters.base import random_states
from dynid.robot.inertia import inertia_from_com, inertia_to_pseudo
from dynid.robot.spatial import placement, rpy_rotation
from tests.support.errors import expect_error

Array = NDArray[np.float64]

TURN = placement(rpy_rotation(0.3, -0.5, 1.1), [0.1, -0.2, 0.3])
ORIGIN = '<origin xyz="0.1 -0.2 0.3" rpy="0.3 -0.5 1.1"/>'
SHAPES = {
    "box": '<box size="0.2 0.4 0.6"/>',
    "cylinder": '<cylinder radius="0.1" length="0.5"/>',
    "sphere": '<sphere radius="0.15"/>',
    "capsule": '<capsule radius="0.1" length="0.5"/>',
}
INERTIA = '<inertial><mass value="2"/><inertia ixx="0.02" iyy="0.02" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>'


def urdf(folder: Path, first: str = "", second: str = "", tool: str = "") -> Path:
    """Two joints in a row and a tool fixed to the second link, each with collision elements."""
    text = f"""<robot name="two"><link name="base"/>
    <link name="upper">{INERTIA}{first}</link><link name="lower">{INERTIA}{second}</link><link name="tool">{tool}</link>
    <joint name="a" type="continuous"><parent link="base"/><child link="upper"/><axis xyz="0 0 1"/></joint>
    <joint name="b" type="continuous"><parent link="upper"/><child link="lower"/><axis xyz="1 0 0"/>
      <origin xyz="0 0 0.5"/></joint>
    <joint name="c" type="fixed"><parent link="lower"/><child link="tool"/>{ORIGIN}</joint></robot>"""
    file = folder / "two.urdf"
    file.write_text(text)
    return file


def collision(shape: str, origin: str = "") -> str:
    return f"<collision>{origin}<geometry>{shape}</geometry></collision>"


def surface(kind: str, rng: np.random.Generator, count: int = 2000) -> Array:
    """Points on (the sharpest parts of) a shape in its own frame."""
    ball = rng.normal(size=(count, 3))
    ball /= np.linalg.norm(ball, axis=1, keepdims=True)
    if kind == "box":
        return rng.choice([-1.0, 1.0], (count, 3)) * [0.1, 0.2, 0.3]
    if kind == "cylinder":
        angle = rng.uniform(0, 2 * np.pi, count)
        return np.column_stack([0.1 * np.cos(angle), 0.1 * np.sin(angle), 0.25 * rng.choice([-1.0, 1.0], count)])
    if kind == "sphere":
        return 0.15 * ball
    return 0.1 * ball + np.column_stack([np.zeros((count, 2)), 0.25 * rng.choice([-1.0, 1.0], count)])


def values(Q: Array, points: Array) -> Array:
    lifted = np.column_stack([points, np.ones(len(points))])
    return np.einsum("ni,ij,nj->n", lifted, Q, lifted)


def semi_axes(Q: Array) -> Array:
    """Half lengths of an ellipsoid's axes, shortest first."""
    centre = np.linalg.solve(-Q[:3, :3], Q[:3, 3])
    height = Q[3, 3] + Q[:3, 3] @ centre
    return np.sort(np.sqrt(height / np.linalg.eigvalsh(-Q[:3, :3])))


@pytest.mark.parametrize("kind", list(SHAPES))
def test_shapes_touch_their_ellipsoid_from_inside_wherever_they_are(kind: str, tmp_path: Path) -> None:
    """All points are inside, some on it; as small as what the mesh algorithm finds for the same points."""
    file = urdf(tmp_path, collision(SHAPES[kind], ORIGIN))
    (Q,) = bounding_ellipsoids(file, dynid.load_robot(file))["upper"]
    own = surface(kind, np.random.default_rng(0))
    points = own @ TURN[:3, :3].T + TURN[:3, 3]
    inside = values(Q, points)
    assert inside.min() > -1e-9
    # Samples come close to where the shape touches, not onto it.
    assert inside.min() < 0.01
    numeric = np.prod(semi_axes(enclosing_ellipsoid(points)))
    # The hull of 2000 samples is smaller than a smooth shape by about a hundredth.
    assert numeric <= np.prod(semi_axes(Q)) * (1 + 2e-4)
    assert np.prod(semi_axes(Q)) < 1.02 * numeric


def test_smallest_ellipsoids_in_closed_form(tmp_path: Path) -> None:
    """A box times the square root of three; a cylinder times those of 3/2 and 3; a capsule without length is a ball."""
    file = urdf(tmp_path, collision(SHAPES["box"]), collision(SHAPES["cylinder"]))
    found = bounding_ellipsoids(file, dynid.load_robot(file))
    np.testing.assert_allclose(semi_axes(found["upper"][0]), np.sqrt(3) * np.array([0.1, 0.2, 0.3]))
    np.testing.assert_allclose(semi_axes(found["lower"][0]), [np.sqrt(1.5) * 0.1] * 2 + [np.sqrt(3) * 0.25])
    short = urdf(tmp_path, collision('<capsule radius="0.1" length="1e-9"/>'))
    np.testing.assert_allclose(
        semi_axes(bounding_ellipsoids(short, dynid.load_robot(short))["upper"][0]), 0.1, rtol=1e-7
    )


def test_enclosing_ellipsoid_of_points() -> None:
    """Corners of a box, moved and with points inside; unequal clouds; no volume is refused."""
    rng = np.random.default_rng(3)
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-2, 2) for z in (-3, 3)], dtype=float)
    cloud = np.vstack([corners, rng.uniform(-1, 1, (50, 3))]) @ TURN[:3, :3].T + TURN[:3, 3]
    Q = enclosing_ellipsoid(cloud, tolerance=1e-8)
    assert values(Q, cloud).min() >= 0
    np.testing.assert_allclose(semi_axes(Q), np.sqrt(3) * np.array([1, 2, 3]), rtol=1e-5)
    for seed in range(5):
        points = np.random.default_rng(seed).normal(size=(200, 3)) * [1e-3, 1e-2, 1e-1] + [1, 2, 3]
        Q = enclosing_ellipsoid(points)
        assert values(Q, points).min() >= -1e-9
        # The optimum is held by at least four points; any enclosing ellipsoid is no smaller than the optimum.
        assert np.sum(values(Q, points) < 0.05) >= 4
    with expect_error(InvalidValue, "points"):
        enclosing_ellipsoid(np.column_stack([rng.normal(size=(10, 2)), np.zeros(10)]))


@pytest.mark.parametrize("kind", list(SHAPES))
def test_bodies_inside_a_shape_are_inside_its_ellipsoid(kind: str, tmp_path: Path) -> None:
    """tr(J Q) >= 0 for any distribution of mass within."""
    file = urdf(tmp_path, collision(SHAPES[kind], ORIGIN))
    (Q,) = bounding_ellipsoids(file, dynid.load_robot(file))["upper"]
    rng = np.random.default_rng(1)
    for _ in range(20):
        points = surface(kind, rng, 6) @ TURN[:3, :3].T + TURN[:3, 3]
        pi = inertia_from_com(rng.exponential(size=6), points, np.zeros((6, 3, 3))).sum(axis=0)
        assert np.trace(inertia_to_pseudo(pi) @ Q) >= -1e-9 * pi[0]


def test_shapes_of_fixed_links_go_to_their_carrier(tmp_path: Path) -> None:
    """The tool's sphere lies at its placement on the lower link; links without shapes are absent."""
    file = urdf(tmp_path, second=collision(SHAPES["box"]), tool=collision(SHAPES["sphere"]))
    found = bounding_ellipsoids(file, dynid.load_robot(file))
    assert list(found) == ["lower"] and len(found["lower"]) == 2
    ball = found["lower"][1]
    np.testing.assert_allclose(values(ball, TURN[None, :3, 3]), 1.0)
    np.testing.assert_allclose(ball, moved_ellipsoid(np.diag([-1 / 0.15**2] * 3 + [1.0]), TURN), atol=1e-12)


def tetrahedron(folder: Path) -> Array:
    """A tetrahedron as OBJ, ASCII STL and binary STL; its corners."""
    corners = np.array([[0, 0, 0], [0.3, 0, 0], [0, 0.2, 0], [0, 0, 0.4]])
    faces = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    lines = [f"v {x} {y} {z}" for x, y, z in corners] + [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in faces]
    (folder / "part.obj").write_text("\n".join(lines) + "\n")
    facets = [
        "facet normal 0 0 0\nouter loop\n"
        + "".join("vertex {} {} {}\n".format(*corners[i]) for i in face)
        + "endloop\nendfacet\n"
        for face in faces
    ]
    (folder / "text.stl").write_text("solid part\n" + "".join(facets) + "endsolid part\n")
    packed = b"".join(struct.pack("<12fH", 0, 0, 0, *corners[list(face)].ravel(), 0) for face in faces)
    (folder / "binary.stl").write_bytes(b" " * 80 + struct.pack("<I", len(faces)) + packed)
    return corners


@pytest.mark.parametrize("name", ["part.obj", "text.stl", "binary.stl"])
@pytest.mark.parametrize("prefix", ["meshes/", "package://two/meshes/"])
def test_meshes_are_read_scaled_and_enclosed(name: str, prefix: str, tmp_path: Path) -> None:
    """Through their relative path or that of their package, in every format."""
    (tmp_path / "meshes").mkdir()
    corners = tetrahedron(tmp_path / "meshes") * [2, 1, 1]
    file = urdf(tmp_path, collision(f'<mesh filename="{prefix}{name}" scale="2 1 1"/>'))
    (Q,) = bounding_ellipsoids(file, dynid.load_robot(file))["upper"]
    # All four corners of a simplex are on its smallest ellipsoid, which is centred between them.
    np.testing.assert_allclose(values(Q, corners), 0.0, atol=1e-5)
    np.testing.assert_allclose(np.linalg.solve(-Q[:3, :3], Q[:3, 3]), corners.mean(axis=0), atol=1e-6)


def test_what_is_wrong_with_a_shape_is_named(tmp_path: Path) -> None:
    """Missing and broken meshes, unknown shapes, sizes that are none, and another robot."""
    (tmp_path / "broken.stl").write_text("nonsense")
    cases = {
        '<mesh filename="package://arm/none.stl"/>': "file_missing",
        '<mesh filename="broken.stl"/>': "file_damaged",
        "<cone/>": "unsupported",
        '<sphere radius="-1"/>': "invalid_model",
        "": "invalid_model",
    }
    for shape, code in cases.items():
        file = urdf(tmp_path, collision(shape))
        with expect_error(ModelError, code=code):
            bounding_ellipsoids(file, dynid.load_robot(file))
    file = urdf(tmp_path, collision(SHAPES["box"]))
    with expect_error(ModelError, code="mismatch"):
        bounding_ellipsoids(file, dynid.load_robot("tx40"))


def test_a_fit_keeps_the_mass_inside_the_shapes_of_the_file(tmp_path: Path) -> None:
    """A forgotten payload pulls mass out of the shapes; with the file's ellipsoids it stays in, at a price."""
    file = urdf(tmp_path, collision(SHAPES["box"]), collision(SHAPES["cylinder"]), collision(SHAPES["sphere"]))
    robot = dynid.load_robot(file)
    shapes = bounding_ellipsoids(file, robot)
    assert {name: len(found) for name, found in shapes.items()} == {"upper": 1, "lower": 2}
    payload = inertia_from_com(1.0, [0.0, 0.8, 0.0], np.zeros((3, 3)))
    W = dynid.regressor(robot, *random_states(robot, 40, seed=0)).reshape(-1, len(robot.layout))
    y = W @ robot.with_payload("lower", payload).parameters
    prior = np.asarray(robot.parameters)
    # Weighed: otherwise more mass inside would do for some outside.
    known = ["full", Fixed({"m_lower": 3.0})]
    inside = [Ellipsoids(name, found) for name, found in shapes.items()]
    held = fit(feasible_set(robot, [*known, *inside]), W, y, prior)
    assert fit(feasible_set(robot, known), W, y, prior).cost < 1e-6
    assert held.cost > 0.1
    # The body is the sum of the parts that the solver keeps beside it, in units of the link, each inside its ellipsoid.
    mass, length = link_scales(robot)["lower"]
    units = mass * np.array([1.0] + [length] * 3 + [length**2] * 6)
    parts = units * held.solution.x[len(robot.layout) :][:20].reshape(2, 10)
    np.testing.assert_allclose(parts.sum(axis=0), held.parameters[10:20], atol=1e-6)
    for part, shape in zip(parts, shapes["lower"], strict=True):
        assert np.trace(inertia_to_pseudo(part) @ shape) > -1e-5
