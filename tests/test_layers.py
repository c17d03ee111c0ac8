"""The architecture: parts import only parts below them, and what a page or a command shows is never needed below."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import dynid

ROOT = Path(dynid.__file__).parent
# From the ground up; a part may import those before it. Imports inside functions are for conveniences such as
# `Estimate.report`, and are not counted.
ORDER = [
    *("errors", "public", "files", "markup", "robot", "dynamics", "recording", "signals", "feasibility", "simulate"),
    *(
        "identify",
        "checks",
        "excitation",
        "human",
        "capture",
        "statistics",
        "friction",
        "residual",
        "export",
        "codegen",
    ),
    *("verdict", "reproduce", "benchmark", "report", "doctor", "demo", "studio", "commands", "cli", "__main__"),
]


def imported(path: Path) -> set[str]:
    """Parts that a module imports when it is loaded."""
    found = set()
    for line in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(line, ast.ImportFrom) and (line.module or "").split(".")[0] == "dynid":
            parts = (line.module or "").split(".")
            found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in line.names}
    return found


def test_every_part_has_its_place() -> None:
    parts = {p.stem for p in ROOT.iterdir() if (p.suffix == ".py" or (p / "__init__.py").exists())} - {"__init__"}
    assert parts == set(ORDER)


@pytest.mark.parametrize("part", ORDER)
def test_a_part_imports_only_what_is_below_it(part: str) -> None:
    home = ROOT / part
    files = home.rglob("*.py") if home.is_dir() else [ROOT / f"{part}.py"]
    below = {part, *ORDER[: ORDER.index(part)]}
    wrong = {f"{f.relative_to(ROOT)}: {name}" for f in files for name in imported(f) - below}
    assert not wrong
