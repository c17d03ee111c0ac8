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
from tests.support.meshes import CUBE_OBJ, SHAPED_ARM, cube


def test_dropped_meshes_are_found_by_their_names(tmp_path: Path) -> None:
    """One after the other; what is missing is named, and what was read is not read again."""
    workspace = Workspace(tmp_path)
    (tmp_path / "arm.urdf").write_text(SHAPED_ARM)
    robot, store = dynid.load_robot(tmp_path / "arm.urdf"), Meshes(workspace)
    bare = store.dress("arm.urdf", robot)
    assert [s.kind for s in bare.shapes] == ["box", "cylinder"] and bare.absent == ("base.stl", "upper.obj")
    assert bare.words() == "Drop these files to see the shapes: base.stl, upper.obj"
    workspace.write("upper.obj", CUBE_OBJ)
    workspace.write("base.stl", b"solid nothing")
    half = store.dress("arm.urdf", robot)
    assert half.problems == ("base.stl cannot be read",) and half.absent == ()
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "base.stl").write_bytes(stl_bytes(cube()))
    whole = store.dress("arm.urdf", robot)
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
