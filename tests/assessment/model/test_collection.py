"""A folder of robot files: what loads, what is refused and why, and what agrees with MuJoCo and Pinocchio."""

from __future__ import annotations

from pathlib import Path

import pytest

from dynid.assessment.model.collection import ModelState, check_models
from dynid.errors import MissingFile
from tests.support.commands import dynid
from tests.support.errors import expect_error

mujoco = pytest.importorskip("mujoco")

BODY = '<inertial mass="2" pos="0.1 0.1 0.2" diaginertia="0.03 0.02 0.04"/>'
ARM = f'<mujoco><worldbody><body><joint axis="0 1 0" stiffness="2"/>{BODY}</body></worldbody></mujoco>'
URDF = (
    '<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/><origin xyz="0.1 0 0"/>'
    '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j" type="continuous">'
    '<parent link="a"/><child link="b"/><axis xyz="0 1 0"/></joint></robot>'
)
FILES = {
    "arm.xml": (ARM, ModelState.AGREES),
    "arm.urdf": (URDF, ModelState.AGREES),
    "arm.sdf": (
        '<sdf version="1.9"><model name="m"><link name="a"/><link name="b"/><joint name="j" type="revolute">'
        "<parent>a</parent><child>b</child></joint></model></sdf>",
        ModelState.LOADS,
    ),
    "drone.urdf": (URDF.replace("continuous", "fixed"), ModelState.AGREES),
    "deep/scene.xml": ('<mujoco><worldbody><geom size="1"/></worldbody></mujoco>', ModelState.NO_JOINTS),
    "deep/wrong.xml": ("<mujoco><worldbody><body><joint/></body></worldbody></mujoco>", ModelState.LOADS),
    "deep/broken.urdf": ("<robot>", ModelState.INVALID),
    "notes.xml": ("<letter/>", None),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, (text, _) in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_every_file_has_its_state(folder: Path) -> None:
    """One line per robot file, in the order of the paths; other XML files do not count."""
    found = {Path(m.file).as_posix(): m for m in check_models(folder).models}
    assert {name: m.state for name, m in found.items()} == {n: s for n, (_, s) in FILES.items() if s is not None}
    assert found["arm.xml"].difference is not None and found["arm.xml"].difference < 1e-12
    assert "1 joints" in found["arm.xml"].line()


def test_a_wrong_robot_differs_and_sets_the_exit_code(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that loses the springs of joints is found out, by the command too."""
    assert dynid("doctor", "--models", folder).returncode == 0
    monkeypatch.setattr("dynid.robot.mjcf_passive._joint_springs", lambda *given: [])
    outcome = dynid("doctor", "--models", folder)
    assert outcome.returncode == 1
    assert "differs    arm.xml" in outcome.stdout
    assert "2 agrees, 2 loads, 1 differs" in outcome.stdout


def test_what_is_refused_has_its_reason(tmp_path: Path) -> None:
    """MuJoCo reads a tendon over three sites that keeps its length, dynid does not."""
    sites = [f'<site name="{name}" pos="0 0 {k}"/>' for k, name in enumerate("xyz", start=1)]
    two = f"{sites[0]}<body><joint/>{BODY}{sites[1]}<body><joint/>{BODY}{sites[2]}</body></body>"
    rope = '<tendon><spatial name="t"><site site="x"/><site site="y"/><site site="z"/></spatial></tendon>'
    held = '<equality><tendon tendon1="t"/></equality>'
    (tmp_path / "rope.xml").write_text(f"<mujoco><worldbody>{two}</worldbody>{rope}{held}</mujoco>")
    (model,) = check_models(tmp_path).models
    assert model.state == ModelState.REFUSED and "'t', which runs through space" in model.reason
    assert not check_models(tmp_path).ok


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    with expect_error(MissingFile, "folder"):
        check_models(tmp_path)
