"""Visual shapes of URDF files and their meshes as STL."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.robot.extent import mesh_box
from dynid.robot.visuals import MeshFile, meshes_as_stl, stl_bytes, visual_shapes
from tests.support.meshes import CUBE_DAE, CUBE_OBJ, SHAPED_ARM, cube


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


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('<box size="0.1 0.2 0.3"/>', '<box size="0.1 0.2 0"/>', "must be positive"),
        ('<box size="0.1 0.2 0.3"/>', "<torus/>", "shape 'torus' is unknown"),
        ('<geometry><box size="0.1 0.2 0.3"/></geometry>', "", "has no shape"),
    ],
)
def test_a_malformed_shape_is_one_sentence(arm: Path, old: str, new: str, words: str) -> None:
    robot = dynid.load_robot(arm)
    arm.write_text(SHAPED_ARM.replace(old, new))
    with pytest.raises(dynid.ModelError, match=words):
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
