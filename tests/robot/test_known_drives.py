"""The library of drives: its files, and robots whose joints have them."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dynid
from dynid import ModelError
from dynid.cli.main import app
from dynid.robot import known_drives, load_drive
from dynid.robot.library import with_known_drives
from tests.support.errors import expect_error

GOOD = resources.files("dynid.robot.drives_library").joinpath("xl330-m288.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", known_drives())
def test_every_drive_has_values_that_are_determined(name: str) -> None:
    """Standard deviations of at most half the values; a source and the study that gave them."""
    drive = load_drive(name)
    assert drive.name == name and drive.date.year >= 2026 and len(drive.source) > 40
    for value in (*drive.drive.values(), *drive.motor.values()):
        assert 0 < value.std <= 0.5 * value.value
    study = Path(__file__).parents[2] / "studies" / "reproduce" / f"{drive.study}.py"
    assert study.is_file() and f'"{name}"' in study.read_text(encoding="utf-8")


def test_all_joints_have_the_drive() -> None:
    robot = dynid.load_robot("twolink", drives="xl330-m288")
    drive = load_drive("xl330-m288").drive
    assert {t.name: t.value for t in robot.drives} == {
        f"{s}_{j}": v.value for j in robot.coordinates for s, v in drive.items()
    }
    assert all(t.unit == drive[t.symbol].unit for t in robot.drives)


def test_some_joints_have_the_drive_and_others_keep_theirs() -> None:
    plain = dynid.load_robot("twolink")
    robot = dynid.load_robot("twolink", drives={".*2": "xl330-m288"})
    old = {t.name: t.value for t in plain.drives if t.shaft == "joint1"}
    assert {t.name: t.value for t in robot.drives if t.shaft == "joint1"} == old and old
    assert [t.symbol for t in robot.drives if t.shaft == "joint2"] == ["Ia", "fv", "fc"]
    both = dynid.load_robot("twolink", drives={"joint1": "xl330-m288", ".*": "xl330-m288"})
    assert len(both.drives) == 6


def test_what_the_library_does_not_say_stays() -> None:
    """The STS3215 has friction, its armature is not determined: that of the robot stays."""
    own = dynid.load_robot("twolink", friction="viscous+coulomb-asymmetric", rotor_inertia=True)
    robot = with_known_drives(own, "sts3215")
    assert [t.symbol for t in robot.drives if t.shaft == "joint1"] == ["Ia", "fv", "fc"]
    armature = {t.name: t.value for t in own.drives if t.symbol == "Ia"}
    assert {t.name: t.value for t in robot.drives if t.symbol == "Ia"} == armature and all(armature.values())


def test_springs_and_offsets_stay() -> None:
    robot = dynid.load_robot("twolink", friction="viscous+coulomb+offset", rotor_inertia=True)
    robot = with_known_drives(robot.with_terms(robot.joint_term("joint1", "k", 2.0)), "xl330-m288")
    assert [t.symbol for t in robot.drives if t.shaft == "joint1"] == ["Ia", "fv", "fc", "off", "k"]


def test_values_of_a_file_are_not_called_missing(tmp_path: Path) -> None:
    """A URDF with damping: the drive of the library takes its place."""
    path = tmp_path / "arm.urdf"
    dynid.export.write(dynid.load_robot("twolink", friction="viscous"), path)
    assert any("damping" in note for note in dynid.load_robot(path).notes)
    assert not any("damping" in note for note in dynid.load_robot(path, drives="xl330-m288").notes)


def test_own_files(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD.replace("0.001607", "0.5"))
    assert dynid.load_robot("twolink", drives=path).drives[0].value == 0.5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("date = 2026-11-16", ""), "needs a date"),
        (('study = "servo_drives"', ""), "needs a text 'study'"),
        (("[motor]", "[motors]"), "unknown key 'motors'"),
        (("fc = {", "fx = {"), "fx of .drive. is unknown"),
        (("std = 0.0001, ", ""), "needs value, std and unit"),
        (("value = 0.0125", "value = -1"), "not negative"),
        (("value = 0.0125", "value = true"), "not negative"),
        (("value = 0.0125", f"value = {10**400}"), "too many digits"),
        (("value = 0.0125", f"value = {'9' * 5000}"), "too many digits"),
        (('"kg m2"', '"g cm2"'), "is in kg m2 or kg, not in 'g cm2'"),
        (("[drive]", "[drive"), "not valid TOML"),
    ],
)
def test_bad_files(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    assert change[0] in GOOD
    path.write_text(GOOD.replace(*change))
    with pytest.raises(ModelError, match=message):
        load_drive(path)


def test_bad_names(tmp_path: Path) -> None:
    with expect_error(ModelError, "drives", code="unknown_name"):
        dynid.load_robot("twolink", drives="xl330")
    with expect_error(ModelError, "drives", code="unknown_name"):
        dynid.load_robot("twolink", drives={"knee": "xl330-m288"})
    with expect_error(ModelError, "drives", code="invalid_value"):
        dynid.load_robot("twolink", drives={"(": "xl330-m288"})
    with expect_error(ModelError, code="file_missing"):
        load_drive(tmp_path / "none.toml")
    linear = tmp_path / "linear.toml"
    linear.write_text(GOOD.replace('"kg m2"', '"kg"'))
    with expect_error(ModelError, "drives", code="mismatch"):
        dynid.load_robot("twolink", drives=linear)


def test_the_command_line_has_the_library_too() -> None:
    done = CliRunner().invoke(app, ["inspect", "twolink", "--drives", "xl330-m288"])
    assert done.exit_code == 0 and "0.001607" in done.stdout and "fcp" not in done.stdout
