"""Visible shapes of robot files and their meshes as STL."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid.errors import ModelError
from dynid.robot.extent import mesh_box
from dynid.robot.posture import link_placements
from dynid.robot.visuals import MeshFile, meshes_as_stl, stl_bytes, visual_shapes
from tests.support.errors import Error, expect_error
from tests.support.meshes import CUBE_DAE, CUBE_OBJ, SHAPED_ARM, SHAPED_MJCF, SHAPED_SDF, cube


@pytest.fixture
def arm(tmp_path: Path) -> Path:
    (tmp_path / "arm.urdf").write_text(SHAPED_ARM)
    return tmp_path / "arm.urdf"


def test_shapes_belong_to_the_links_that_carry_them(arm: Path) -> None:
    """Also those on fixed joints, and on joints that are locked."""
    robot = dynid.load_robot(arm)
    base, upper, tool, fore = visual_shapes(arm, robot)
    assert [s.kind for s in (base, upper, tool, fore)] == ["mesh", "mesh", "box", "cylinder"]
    assert (base.link, upper.link, fore.link, tool.link) == (0, 1, 2, 2)
    assert base.mesh == "package://arm/meshes/base.stl" and upper.mesh == "meshes/upper.obj"
    assert upper.scale.tolist() == [0.5, -0.5, 0.5] and tool.size.tolist() == [0.1, 0.2, 0.3]
    assert upper.placement[:3, 3].tolist() == [0.0, 0.0, 0.25]
    assert tool.placement[:3, 3] == pytest.approx([0.0, 0.1, 0.4])
    assert (base.color, upper.color, fore.color) == ("#ff8000", "#336699", None)
    locked = visual_shapes(arm, robot.locked({"elbow": np.pi / 2}))
    assert [s.link for s in locked] == [0, 1, 1, 1]
    assert locked[3].placement[:3, 3] == pytest.approx([0.15, 0.0, 0.5])  # turned about y


@pytest.mark.parametrize(("name", "text"), [("arm.xml", SHAPED_MJCF), ("arm.sdf", SHAPED_SDF)])
def test_one_arm_has_the_same_shapes_in_every_format(arm: Path, name: str, text: str) -> None:
    """Locked or not; the order of shapes and of links is that of each file."""
    other = arm.with_name(name)
    other.write_text(text)
    for held in ({}, {"elbow": np.pi / 2}):
        found = []
        for file in (arm, other):
            robot = dynid.load_robot(file)
            robot = robot.locked(held) if held else robot
            shapes = visual_shapes(file, robot)
            base = {"world", "base"}  # of MJCF and of the others
            rows = {
                (s.kind, Path(s.mesh).name): (
                    "base" if robot.links[s.link].name in base else robot.links[s.link].name,
                    s.placement.round(9).tolist(),
                    s.size.round(9).tolist(),
                    s.scale.tolist(),
                    s.color,
                )
                for s in shapes
            }
            assert len(rows) == len(shapes) == 4
            found.append(rows)
        assert found[0] == found[1]


_GEOMS = """<mujoco><compiler eulerseq="XYZ"/>
<asset><mesh name="plain" file="cube.obj" scale="0.2 0.3 0.4" refpos="0.5 0.1 -0.2"/>
  <mesh name="turned" file="cube.obj" scale="0.2 0.2 0.2" refpos="0.5 0.1 -0.2" refquat="1 2 -1 0.5"/></asset>
<worldbody><body><joint axis="0 0 1" ref="30"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
  <geom type="capsule" size="0.1 0.2" euler="10 20 30" pos="1 2 3"/>
  <geom type="ellipsoid" size="0.1 0.2 0.3" axisangle="1 1 0 40"/>
  <geom type="box" fromto="0 0 0 1 1 1" size="0.1"/>
  <frame pos="0.1 0.2 0.3" quat="1 1 0 0">
    <geom type="mesh" mesh="plain" zaxis="1 0 0"/><geom type="mesh" mesh="turned" xyaxes="0 1 0 -1 0 0"/></frame>
  <body pos="0 1 0"><joint type="slide"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
    <geom type="cylinder" size="0.1 0.2"/>
    <body euler="0 0 90"><geom type="sphere" size="0.1" pos="1 0 0"/></body></body>
</body></worldbody></mujoco>"""


def test_geoms_are_where_mujoco_puts_them(tmp_path: Path) -> None:
    """Euler angles, frames, references of meshes and bodies without names; compared by MuJoCo's own corners."""
    mujoco = pytest.importorskip("mujoco")
    (tmp_path / "geoms.xml").write_text(_GEOMS)
    (tmp_path / "cube.obj").write_bytes(CUBE_OBJ)
    robot = dynid.load_robot(tmp_path / "geoms.xml")
    shapes = visual_shapes(tmp_path / "geoms.xml", robot)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "geoms.xml"))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    placed = link_placements(robot, dict(zip(robot.coordinates, map(float, data.qpos), strict=True)))
    assert [s.kind for s in shapes] == ["capsule", "ellipsoid", "box", "mesh", "mesh", "cylinder", "sphere"]
    sizes = {"capsule": [1, 0.5], "ellipsoid": 1, "box": 0.5, "cylinder": [1, 0.5], "sphere": 1}
    corners = np.unique(cube().reshape(-1, 3), axis=0)
    for g, shape in enumerate(shapes):
        at = placed[shape.link] @ shape.placement
        if shape.kind != "mesh":
            assert at[:3, 3] == pytest.approx(data.geom_xpos[g], abs=1e-9)
            assert at[:3, :3] == pytest.approx(data.geom_xmat[g].reshape(3, 3), abs=1e-9)
            size = shape.size * sizes[shape.kind]
            assert size == pytest.approx(model.geom_size[g][: len(size)])
            continue
        mesh = model.mesh(model.geom_dataid[g])
        first, count = int(mesh.vertadr[0]), int(mesh.vertnum[0])
        theirs = model.mesh_vert[first : first + count] @ data.geom_xmat[g].reshape(3, 3).T + data.geom_xpos[g]
        ours = (corners * shape.scale) @ at[:3, :3].T + at[:3, 3]
        assert _sorted(theirs) == pytest.approx(_sorted(ours), abs=1e-6)  # their corners are floats of 32 bits


def _sorted(points: NDArray[np.float64]) -> NDArray[np.float64]:
    return points[np.lexsort(points.round(4).T)]


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("arm.xml", 'size="0.05 0.1 0.15"', 'size="0.05 0.1 0"', "geom '', size: must be positive"),
        ("arm.xml", 'type="box"', 'type="torus"', "shape 'torus' is unknown"),
        ("arm.xml", 'mesh="upper"', 'mesh="lower"', "mesh 'lower' has no file"),
        ("arm.xml", "<worldbody>", "<worldbody><replicate/>", "bodies of <replicate> are made by MuJoCo"),
        ("arm.xml", 'file="base.stl"', 'file="../../base.stl"', "outside its folder"),
        ("arm.sdf", "0.1 0.2 0.3</size>", "0.1 0.2 0</size>", "box size: must be positive"),
        ("arm.sdf", "<box><size>0.1 0.2 0.3</size></box>", "<cone/>", "shape 'cone' is unknown"),
        ("arm.sdf", "</uri>", "</uri><submesh/>", "a part of a mesh"),
        ("arm.sdf", "<sdf ", "<gazebo ", "neither a URDF, an MJCF nor an SDF file"),
    ],
)
def test_a_malformed_shape_of_other_formats_is_one_sentence(
    tmp_path: Path, name: str, old: str, new: str, words: str
) -> None:
    file, text = tmp_path / name, SHAPED_MJCF if name.endswith("xml") else SHAPED_SDF
    file.write_text(text)
    robot = dynid.load_robot(file)
    assert old in text
    file.write_text(text.replace(old, new).replace("</sdf>", "</gazebo>" if "gazebo" in new else "</sdf>"))
    with pytest.raises(dynid.ModelError, match=words):
        visual_shapes(file, robot)


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ('<box size="0.1 0.2 0.3"/>', '<box size="0.1 0.2 0"/>', (ModelError, "")),
        ('<box size="0.1 0.2 0.3"/>', "<torus/>", (ModelError, "", "unsupported")),
        ('<geometry><box size="0.1 0.2 0.3"/></geometry>', "", (ModelError, "")),
    ],
)
def test_a_malformed_shape_is_one_sentence(arm: Path, old: str, new: str, error: Error) -> None:
    robot = dynid.load_robot(arm)
    arm.write_text(SHAPED_ARM.replace(old, new))
    with expect_error(*error):
        visual_shapes(arm, robot)


def test_meshes_of_all_formats_become_stl(tmp_path: Path) -> None:
    """A mesh of each format, a mirrored one, one that is damaged and one with too many triangles."""
    files = {"cube.stl": stl_bytes(cube()), "cube.obj": CUBE_OBJ, "cube.dae": CUBE_DAE, "bad.dae": b"<COLLADA"}
    files["many.stl"] = stl_bytes(np.tile(cube(), (4, 1, 1)))
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    plain, mirror = np.ones(3), np.array([1.0, -2.0, 1.0])
    wanted = [("cube.stl", plain), ("cube.obj", plain), ("cube.dae", plain), ("cube.stl", mirror), ("bad.dae", plain)]
    meshes = [MeshFile(tmp_path / name, scale) for name, scale in (*wanted, ("many.stl", plain))]
    found = meshes_as_stl(meshes, most_triangles=50)
    assert meshes_as_stl([], 10) == []
    for k, (low, high) in enumerate([(-0.5, 0.5)] * 3 + [(-1.0, 1.0)]):
        stl = found[k]
        assert isinstance(stl, bytes)
        (tmp_path / "out.stl").write_bytes(stl)
        box = mesh_box(tmp_path / "out.stl")
        assert box is not None and box[:, 1] == pytest.approx([low, high])
        assert _volume(stl) == pytest.approx(2.0 if k == 3 else 1.0)  # a mesh that is inside out has a negative one
    assert found[4] == "bad.dae cannot be read"
    assert isinstance(found[5], str) and "many.stl has 48 triangles" in found[5]


def _volume(stl: bytes) -> float:
    rows = np.frombuffer(stl[84:], np.dtype([("x", "<f4", 12), ("end", "<u2")]))["x"].reshape(-1, 4, 3)
    assert len(rows) == int.from_bytes(stl[80:84], "little") == 12
    return float(np.einsum("ij,ij->", rows[:, 1], np.cross(rows[:, 2], rows[:, 3]))) / 6
