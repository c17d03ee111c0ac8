"""A command never replaces a file that it reads, and never writes two results into one file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import dynid
from tests.support.documented_files import write_arm_files

COMMANDS = [
    "identify arm.urdf run1.csv -o run1.csv",
    "identify arm.urdf run1.csv --validate run2.csv --figure run2.csv",
    "identify arm.urdf run1.csv -o arm.urdf",
    "identify arm.urdf ./run1.csv -o ../arm/run1.csv",
    "calibrate arm.urdf run1.csv -o run1.csv",
    "friction arm.urdf run1.csv -o run1.csv",
    "export arm.urdf -o arm.urdf",
    "simulate arm.urdf --reference run1.csv -o run1.csv",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("outputs") / "arm"
    place.mkdir()
    write_arm_files(place)
    return place


@pytest.mark.parametrize("command", COMMANDS)
def test_an_input_is_not_overwritten(command: str, folder: Path) -> None:
    before = {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}
    done = dynid(*command.split(), folder=folder)
    assert done.returncode == 1
    assert "is read by this command and would be overwritten" in done.stderr
    assert {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()} == before


def test_files_of_the_project_file_are_inputs_too(folder: Path) -> None:
    project = '[robot]\nfile = "arm.urdf"\n[runs]\nidentify = ["run1.csv"]\n'
    (folder / "dynid.toml").write_text(project)
    before = (folder / "run1.csv").read_bytes()
    for output in ("run1.csv", "arm.urdf", "dynid.toml"):
        done = dynid("identify", "-o", output, folder=folder)
        assert done.returncode == 1 and "would be overwritten" in done.stderr
    (folder / "dynid.toml").unlink()
    assert (folder / "run1.csv").read_bytes() == before


def test_two_outputs_have_two_names(folder: Path) -> None:
    done = dynid("identify", "arm.urdf", "run1.csv", "-o", "out.json", "--figure", "out.json", folder=folder)
    assert done.returncode == 1 and "two outputs have the name 'out.json'" in done.stderr
    assert not (folder / "out.json").exists()
