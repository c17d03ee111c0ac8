"""Meshes of the workspace: found by place or by name, never outside of it, read once."""

from __future__ import annotations

from pathlib import Path

import pytest

import dynid
from dynid.robot.visuals import stl_bytes
from dynid.studio import meshes
from dynid.studio.meshes import Dress, Meshes
from dynid.studio.session import Session
from dynid.studio.workspace import Workspace
from tests.support.meshes import CUBE_OBJ, SHAPED_ARM, SHAPED_MJCF, SHAPED_SDF, cube


@pytest.mark.parametrize(
    ("name", "text"), [("arm.urdf", SHAPED_ARM), ("arm.xml", SHAPED_MJCF), ("arm.sdf", SHAPED_SDF)]
)
def test_dropped_meshes_are_found_by_their_names(tmp_path: Path, name: str, text: str) -> None:
    """One after the other; what is missing is named, and what was read is not read again."""
    workspace = Workspace(tmp_path)
    (tmp_path / name).write_text(text)
    robot, store = dynid.load_robot(tmp_path / name), Meshes(workspace)
    bare = store.dress(name, robot)
    assert sorted(s.kind for s in bare.shapes) == ["box", "cylinder"] and bare.absent == ("base.stl", "upper.obj")
    assert bare.words() == "Drop these files to see the shapes: base.stl, upper.obj"
    workspace.write("upper.obj", CUBE_OBJ)
    workspace.write("base.stl", b"solid nothing")
    half = store.dress(name, robot)
    assert half.problems == ("base.stl cannot be read",) and half.absent == ()
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "base.stl").write_bytes(stl_bytes(cube()))
    whole = store.dress(name, robot)
    base, upper = whole.shapes[:2]
    assert whole.words() == "" and len(whole.shapes) == 4 and base.link == 0 and base.color == "#ff8000"
    content = store.content(upper.url.removeprefix("/meshes/").removesuffix(".stl"))
    assert content is not None and len(content) == 84 + 50 * 12
    assert store.content("nothing") is None and store.dress("twolink", robot).shapes == ()


def test_meshes_outside_the_workspace_are_not_read(tmp_path: Path) -> None:
    work, outside = tmp_path / "work", tmp_path / "arm" / "meshes"
    work.mkdir()
    outside.mkdir(parents=True)
    (outside / "base.stl").write_bytes(stl_bytes(cube()))
    (work / "arm.urdf").write_text(SHAPED_ARM)
    (work / "upper.obj").symlink_to(outside / "base.stl")
    found = Meshes(Workspace(work)).dress("arm.urdf", dynid.load_robot(work / "arm.urdf"))
    assert found.absent == ("base.stl", "upper.obj")


def test_boxes_of_primitives(tmp_path: Path) -> None:
    """A ball around them is what the camera looks at."""
    shapes = {
        "box": ("0.1 0.2 0.3", [0.1, 0.2, 0.3]),
        "ellipsoid": ("0.1 0.2 0.3", [0.1, 0.2, 0.3]),
        "sphere": ("0.1", [0.1, 0.1, 0.1]),
        "cylinder": ("0.1 0.3", [0.1, 0.1, 0.3]),
        "capsule": ("0.1 0.3", [0.1, 0.1, 0.4]),
    }
    geoms = "".join(f'<geom type="{kind}" size="{size}"/>' for kind, (size, _) in shapes.items())
    (tmp_path / "solids.xml").write_text(f"<mujoco><worldbody><body><joint/>{geoms}</body></worldbody></mujoco>")
    found = Meshes(Workspace(tmp_path)).dress("solids.xml", dynid.load_robot(tmp_path / "solids.xml"))
    assert found.words() == "" and [s.kind for s in found.shapes] == list(shapes)
    for shape, (_, half) in zip(found.shapes, shapes.values(), strict=True):
        assert shape.box[1] == pytest.approx(half) and shape.box[0] == pytest.approx([-x for x in half])


def test_large_meshes_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "arm.urdf").write_text(SHAPED_ARM)
    (tmp_path / "upper.obj").write_bytes(CUBE_OBJ)
    monkeypatch.setattr(meshes, "MESH_LIMIT", 10)
    found = Meshes(Workspace(tmp_path)).dress("arm.urdf", dynid.load_robot(tmp_path / "arm.urdf"))
    assert "upper.obj has more than" in found.words() and "base.stl" in found.words()
    many = Dress(absent=tuple(f"m{k}.stl" for k in range(5)))
    assert many.words() == "Drop these files to see the shapes: m0.stl, m1.stl, m2.stl and 2 more"


def test_a_robot_from_elsewhere_brings_its_meshes(tmp_path: Path) -> None:
    """From its package and from beside its folder."""
    package = tmp_path / "arm"
    (package / "meshes").mkdir(parents=True)
    (package / "urdf").mkdir()
    (package / "meshes" / "base.stl").write_bytes(stl_bytes(cube()))
    (package / "meshes" / "upper.obj").write_bytes(CUBE_OBJ)
    text = SHAPED_ARM.replace('"meshes/upper.obj"', '"../meshes/upper.obj"')
    (package / "urdf" / "arm.urdf").write_text(text)
    work = tmp_path / "elsewhere" / "work"
    work.mkdir(parents=True)
    session = Session(Workspace(work))
    robot = session.adopt(package / "urdf" / "arm.urdf")
    found = session.meshes.dress("arm.urdf", robot)
    assert found.words() == "" and sum(bool(s.url) for s in found.shapes) == 2
    assert (work / "arm" / "meshes" / "base.stl").is_file() and (work / "meshes" / "upper.obj").is_file()


def test_an_mjcf_file_brings_what_it_includes(tmp_path: Path) -> None:
    """The arm is included by a scene, with a mesh in a folder of its own."""
    package, work = tmp_path / "arm", tmp_path / "work"
    (package / "parts").mkdir(parents=True)
    (package / "meshes").mkdir()
    work.mkdir()
    (package / "parts" / "arm.xml").write_text(SHAPED_MJCF)
    (package / "scene.xml").write_text('<mujoco><include file="parts/arm.xml"/></mujoco>')
    (package / "meshes" / "base.stl").write_bytes(stl_bytes(cube()))
    (package / "meshes" / "upper.obj").write_bytes(CUBE_OBJ)
    session = Session(Workspace(work))
    robot = session.adopt(package / "scene.xml")
    found = session.meshes.dress("scene.xml", robot)
    assert robot.n == 2 and found.words() == "" and sum(bool(s.url) for s in found.shapes) == 2
    assert (work / "parts" / "arm.xml").is_file() and (work / "meshes" / "upper.obj").is_file()
