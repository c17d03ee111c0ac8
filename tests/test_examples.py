"""The folders of examples are complete, and run as their README says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import dynid

EXAMPLES = Path(__file__).parents[1] / "examples"
FOLDERS = [
    "arm_with_currents",
    "arm_with_torque_sensors",
    "controller_in_c",
    "force_plate",
    "payload",
    "quadruped_legs",
]


def commands(text: str) -> list[str]:
    """Lines of a README that call dynid, continued lines joined."""
    return re.findall(r"^ {4}(dynid .*)$", re.sub(r" \\\n\s*", " ", text), re.MULTILINE)


def test_every_folder_is_listed_and_complete() -> None:
    """A script that compiles, a short README with the line that runs it, and a command for the same files."""
    index = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [p.parent.name for p in sorted(EXAMPLES.glob("*/run.py"))] == FOLDERS
    for name in FOLDERS:
        assert f"({name}/README.md)" in index
        script = (EXAMPLES / name / "run.py").read_text(encoding="utf-8")
        compile(script, name, "exec")
        assert "    assert " in script, f"{name} does not compare its result with the truth"
        assert "tests" not in script and "shared" not in script, f"{name} needs more than dynid"
        text = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
        assert "    python run.py\n" in text and commands(text) and len(text.splitlines()) < 40
        for link in re.findall(r"\]\(([^)#]+)", text):
            assert (EXAMPLES / name / link).exists(), (name, link)


@pytest.mark.slow
@pytest.mark.parametrize("name", FOLDERS)
def test_example_runs_and_so_do_its_commands(name: str, tmp_path: Path) -> None:
    """The script, then the commands of the README in the folder that it wrote."""
    script = str(EXAMPLES / name / "run.py")
    subprocess.run([sys.executable, script, str(tmp_path / "out")], check=True, capture_output=True, text=True)
    for command in commands((EXAMPLES / name / "README.md").read_text(encoding="utf-8")):
        done = dynid(*shlex.split(command)[1:], folder=tmp_path / "out")
        assert done.returncode == 0, (command, done.stderr[-500:])
