"""Files that a robot file names: inside its folder or one above, in its package, or where the user allows it."""

from __future__ import annotations

from pathlib import Path

import pytest

import dynid
from dynid.errors import ModelError
from dynid.robot.inside import FOLDERS
from tests.support.errors import expect_error
from tests.support.log_files import refused

TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


def urdf(folder: Path, mesh: str) -> Path:
    """A robot of one joint whose link has this mesh."""
    shape = f'<collision><geometry><mesh filename="{mesh}"/></geometry></collision>'
    text = f'<robot name="r"><link name="a"/><link name="b">{shape}</link>'
    text += '<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint></robot>'
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "a.urdf").write_text(text)
    return folder / "a.urdf"


def mjcf(folder: Path, mesh: str, more: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    text = f'<mujoco>{more}<asset><mesh name="m" file="{mesh}"/></asset><worldbody><body name="b"><joint name="j"/>'
    (folder / "a.xml").write_text(text + '<geom type="mesh" mesh="m"/></body></worldbody></mujoco>')
    return folder / "a.xml"


@pytest.fixture
def meshes(tmp_path: Path) -> Path:
    """A mesh in each of: pkg/robots, pkg/meshes, elsewhere."""
    for name in ("pkg/robots", "pkg/meshes", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "part.obj").write_text(TETRAHEDRON)
    return tmp_path


@pytest.mark.parametrize("mesh", ["part.obj", "../meshes/part.obj", "package://pkg/meshes/part.obj"])
def test_meshes_of_the_package_are_read(meshes: Path, mesh: str) -> None:
    robot = dynid.load_robot(urdf(meshes / "pkg" / "robots", mesh), inertia_from="collision")
    assert robot.links[1].inertia[0] == pytest.approx(1000 / 6) and robot.links[1].extent is not None


@pytest.mark.parametrize("mesh", ["../../elsewhere/part.obj", "file://{}/elsewhere/part.obj", "{}/elsewhere/part.obj"])
def test_meshes_elsewhere_need_permission(meshes: Path, mesh: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The robot is read without their sizes, and refused where their inertia is asked for."""
    file = urdf(meshes / "pkg" / "robots", mesh.format(meshes))
    assert dynid.load_robot(file).links[1].extent is None
    with refused("outside its folder and is not read", FOLDERS):
        dynid.load_robot(file, inertia_from="collision")
    monkeypatch.setenv(FOLDERS, str(meshes / "elsewhere"))
    assert dynid.load_robot(file, inertia_from="collision").links[1].extent is not None


def test_packages_do_not_lead_outside(meshes: Path) -> None:
    file = urdf(meshes / "pkg" / "robots", "package://pkg/../../../../../../../../etc/passwd")
    with expect_error(ModelError, code="file_missing"):
        dynid.load_robot(file, inertia_from="collision")


@pytest.mark.parametrize("mesh", ["part.obj", "../meshes/part.obj"])
def test_mjcf_meshes_of_the_package_are_read(meshes: Path, mesh: str) -> None:
    pytest.importorskip("mujoco")
    assert dynid.load_robot(mjcf(meshes / "pkg" / "robots", mesh)).n == 1


@pytest.mark.parametrize(
    ("mesh", "more"),
    [
        ("../../elsewhere/part.obj", ""),
        ("part.obj", '<compiler meshdir="../../elsewhere"/>'),
        ("part.obj", '<compiler assetdir="/dev"/>'),
        ("/dev/zero", ""),
    ],
)
def test_mjcf_meshes_elsewhere_are_refused(meshes: Path, mesh: str, more: str) -> None:
    with expect_error(ModelError, code="unsupported"):
        dynid.load_robot(mjcf(meshes / "pkg" / "robots", mesh, more))


def test_includes_stay_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "robot"
    (folder / "parts").mkdir(parents=True)
    body = '<worldbody><body name="b"><joint name="j"/><geom size=".1"/></body></worldbody>'
    for place in (folder / "parts", tmp_path):
        (place / "body.xml").write_text(f"<mujoco>{body}</mujoco>")
    (folder / "a.xml").write_text('<mujoco><include file="parts/body.xml"/></mujoco>')
    assert dynid.load_robot(folder / "a.xml").n == 1
    (folder / "a.xml").write_text('<mujoco><include file="../body.xml"/></mujoco>')
    with expect_error(ModelError, code="unsupported"):
        dynid.load_robot(folder / "a.xml")
    monkeypatch.setenv(FOLDERS, str(tmp_path))
    assert dynid.load_robot(folder / "a.xml").n == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('<size nuserdata="2000000000"/>', "<size> asks for nuserdata"),
        ('<asset><hfield name="h" nrow="100000" ncol="100000" size="1 1 1 1"/></asset>', "nrow times ncol"),
        ('<worldbody><composite type="particle" count="1000 1000 10"/></worldbody>', "more than 10000 bodies"),
    ],
)
def test_sizes_without_bound_are_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "a.xml").write_text(f"<mujoco>{text}</mujoco>")
    with refused(words):
        dynid.load_robot(tmp_path / "a.xml")


def test_a_file_that_asks_for_all_memory_gets_mujocos_choice(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    body = '<worldbody><body name="b"><joint name="j"/><geom size=".1"/></body></worldbody>'
    (tmp_path / "a.xml").write_text(f'<mujoco><size memory="900T"/>{body}</mujoco>')
    assert dynid.load_robot(tmp_path / "a.xml").n == 1
