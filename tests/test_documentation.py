"""Examples in the documentation run as they are written."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

import dynid

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    *(p for p in sorted((ROOT / "docs").glob("**/*.md")) if not p.parent.name.endswith("-pages")),
]
MODULES = [
    "dynid.robot.load",
    "dynid.dynamics.functions",
    "dynid.dynamics.gradient",
    "dynid.parameters.base",
    "dynid.codegen.generate",
]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_python_blocks_run_in_order(
    page: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """All blocks of a page share one namespace; a printed comment is what is printed."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(block, page.name, "exec"), names)
        printed = capsys.readouterr().out.splitlines()
        expected = re.findall(r"^print\(.*\) {2,}# (.*)$", block, re.MULTILINE)
        for text in expected:
            if text.startswith(("how", "the", "values", "errors")):
                continue
            assert any(line == text.split(": beta")[0] for line in printed), (text, printed)


def test_robot_file_of_the_documentation_loads(tmp_path: Path) -> None:
    """The complete TOML example is one, with the coupling block added to it as well."""
    blocks = re.findall(r"```toml\n(.*?)```", (ROOT / "docs/robot-files.md").read_text(encoding="utf-8"), re.DOTALL)
    file = tmp_path / "elbow.toml"
    file.write_text(blocks[0])
    robot = dynid.load_robot(file)
    assert robot.n == 2 and robot.limits["joint1"].effort == 50
    head, joints = blocks[0].split("[[joint]]", 1)
    coupling, motors = blocks[1].split("[[motor]]", 1)
    file.write_text(f"{head}{coupling}[[joint]]{joints}[[motor]]{motors}")
    assert "fvm_2" in dynid.load_robot(file).parameter_labels


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name: str) -> None:
    """Doctests of the public functions."""
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0 and result.failed == 0


def test_every_public_name_exists_and_is_documented() -> None:
    """What __all__ promises is there and says what it gives."""
    for name in dynid.__all__:
        assert getattr(dynid, name).__doc__
