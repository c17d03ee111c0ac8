"""Boxes around the shapes of links, from every kind of model file."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynid
from dynid.robot.extent import mesh_box
from dynid.robot.serialize import robot_from_dict, robot_to_dict
from tests.support.robot_files import joint, urdf

CORNERS = np.array([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 3.0, -1.0]])


def write_stl(path: Path) -> None:
    corners = np.vstack([CORNERS, CORNERS.mean(axis=0) + np.array([0, 0, 0.01])])  # a closed mesh, as MuJoCo needs it
    faces = [corners[list(i)] for i in ((0, 1, 2), (0, 3, 1), (1, 3, 2), (0, 2, 3))]
    triangles = [struct.pack("<12fH", *np.zeros(3), *face.ravel(), 0) for face in faces]
    path.write_bytes(bytes(80) + struct.pack("<I", len(faces)) + b"".join(triangles))


def shape(kind: str, geometry: str, xyz: str = "0 0 0", rpy: str = "0 0 0") -> str:
    return f'<{kind}><origin xyz="{xyz}" rpy="{rpy}"/><geometry>{geometry}</geometry></{kind}>'


def robot_with(tmp_path: Path, *shapes: str, tool: str = "") -> dynid.Robot:
    text = urdf(
        '<link name="a"/>',
        f'<link name="b">{"".join(shapes)}</link>',
        f'<link name="c">{tool}</link>',
        joint("j", "continuous", "a", "b"),
        joint("k", "fixed", "b", "c", '<origin xyz="0 0 1"/>'),
    )
    (tmp_path / "arm.urdf").write_text(text)
    return dynid.load_robot(tmp_path / "arm.urdf")


BOX = '<box size="0.2 0.4 0.6"/>'


@pytest.mark.parametrize(
    ("shapes", "lower", "upper"),
    [
        ([shape("collision", BOX, "1 0 0")], [0.9, -0.2, -0.3], [1.1, 0.2, 0.3]),
        ([shape("collision", BOX, "1 0 0", "0 0 1.5707963267948966")], [0.8, -0.1, -0.3], [1.2, 0.1, 0.3]),
        ([shape("collision", '<sphere radius="0.5"/>')], [-0.5] * 3, [0.5] * 3),
        ([shape("collision", '<cylinder radius="0.1" length="1"/>')], [-0.1, -0.1, -0.5], [0.1, 0.1, 0.5]),
        ([shape("collision", '<capsule radius="0.1" length="1"/>')], [-0.1, -0.1, -0.6], [0.1, 0.1, 0.6]),
        ([shape("visual", BOX)], [-0.1, -0.2, -0.3], [0.1, 0.2, 0.3]),
        ([shape("visual", BOX), shape("collision", '<sphere radius="0.5"/>')], [-0.5] * 3, [0.5] * 3),
        ([shape("collision", '<mesh filename="part.stl" scale="0.1 0.1 -0.1"/>')], [0, 0, 0], [0.2, 0.3, 0.1]),
    ],
)
def test_boxes_of_urdf_shapes(tmp_path: Path, shapes: list[str], lower: list[float], upper: list[float]) -> None:
    write_stl(tmp_path / "part.stl")
    extent = robot_with(tmp_path, *shapes).links[1].extent
    assert extent is not None
    assert_allclose(extent, [lower, upper], atol=1e-7)


def test_fixed_links_belong_to_their_carrier(tmp_path: Path) -> None:
    robot = robot_with(tmp_path, shape("collision", BOX), tool=shape("collision", BOX))
    extent = robot.links[1].extent
    assert extent is not None
    assert_allclose(extent, [[-0.1, -0.2, -0.3], [0.1, 0.2, 1.3]])
    again = robot_from_dict(robot_to_dict(robot)).links[1].extent
    assert again is not None and np.array_equal(again, extent)


@pytest.mark.parametrize(
    "unknown", ['<mesh filename="none.stl"/>', '<mesh filename="part.dae"/>', '<box size="a"/>', "<cone/>", ""]
)
def test_a_shape_that_cannot_be_read_leaves_the_extent_open(tmp_path: Path, unknown: str) -> None:
    (tmp_path / "part.dae").write_text("<COLLADA/>")
    robot = robot_with(tmp_path, shape("collision", BOX), shape("collision", unknown))
    assert robot.links[1].extent is None
    assert robot_with(tmp_path).links[1].extent is None


def test_formats_of_meshes_agree(tmp_path: Path) -> None:
    write_stl(tmp_path / "binary.stl")
    vertices = "".join(f"vertex {x} {y} {z}\n" for x, y, z in CORNERS)
    (tmp_path / "text.stl").write_text(f"solid part\nfacet normal 0 0 1\nouter loop\n{vertices}endloop\nendfacet\n")
    (tmp_path / "part.obj").write_text("".join(f"v {x} {y} {z}\n" for x, y, z in CORNERS) + "vn 9 9 9\nf 1 2 3\n")
    for name in ("binary.stl", "text.stl", "part.obj"):
        box = mesh_box(tmp_path / name)
        assert box is not None
        assert_allclose(box, [[0, 0, -1], [2, 3, 0]])


def test_boxes_of_mjcf_and_sdf(tmp_path: Path) -> None:
    """The same arm in both; geoms that do not collide count only where there are no others."""
    write_stl(tmp_path / "part.stl")
    inertial = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    (tmp_path / "arm.xml").write_text(
        '<mujoco><asset><mesh name="m" file="part.stl" scale="0.1 0.1 0.1"/></asset><worldbody>'
        f'<body name="b"><joint/>{inertial}<geom type="box" size="0.1 0.2 0.3" pos="1 0 0"/>'
        '<geom type="sphere" size="5" contype="0" conaffinity="0"/>'
        f'<body name="c" pos="0 0 1"><joint/>{inertial}<geom type="mesh" mesh="m" contype="0" conaffinity="0"/></body>'
        "</body></worldbody></mujoco>"
    )
    pose = "<inertial><mass>1</mass></inertial>"
    (tmp_path / "arm.sdf").write_text(
        f'<sdf version="1.7"><model name="arm"><link name="w"/><link name="b">{pose}<collision name="x">'
        "<pose>1 0 0 0 0 0</pose><geometry><box><size>0.2 0.4 0.6</size></box></geometry></collision></link>"
        f'<link name="c">{pose}<visual name="y"><geometry><mesh><uri>part.stl</uri><scale>0.1 0.1 0.1</scale></mesh>'
        '</geometry></visual></link><joint name="t" type="fixed"><parent>world</parent><child>w</child></joint>'
        '<joint name="j" type="revolute"><parent>w</parent><child>b</child></joint>'
        '<joint name="k" type="revolute"><parent>b</parent><child>c</child></joint></model></sdf>'
    )
    for name in ("arm.xml", "arm.sdf"):
        links = {x.name: x.extent for x in dynid.load_robot(tmp_path / name).links}
        first, second = links["b"], links["c"]
        assert first is not None and second is not None
        assert_allclose(first, [[0.9, -0.2, -0.3], [1.1, 0.2, 0.3]])
        assert_allclose(second, [[0, 0, -0.1], [0.2, 0.3, 0]], atol=1e-7)


def test_locked_links_share_their_extent(tmp_path: Path) -> None:
    (tmp_path / "arm.urdf").write_text(
        urdf(
            '<link name="a"/>',
            f'<link name="b">{shape("collision", BOX)}</link>',
            f'<link name="c">{shape("collision", BOX)}</link>',
            joint("j", "continuous", "a", "b"),
            joint("k", "continuous", "b", "c", '<origin xyz="1 0 0"/>'),
        )
    )
    robot = dynid.load_robot(tmp_path / "arm.urdf")
    extent = robot.locked({"k": 0.0}).links[1].extent
    assert extent is not None
    assert_allclose(extent, [[-0.1, -0.2, -0.3], [1.1, 0.2, 0.3]])
    assert robot.with_payload("b", np.ones(10)).links[1].extent is None
