"""Commands in the documentation run as they are written."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from dynid.cli.main import app
from studies.reproduce.registry import studies
from tests.support.commands import dynid, leaves
from tests.support.documented_files import write_arm_files, write_person_files

ROOT = Path(__file__).parents[2]
WRITTEN = (p for p in sorted((ROOT / "docs").glob("**/*.md")) if not p.parent.name.endswith("-pages"))
PAGES = [ROOT / "README.md", *WRITTEN]
HELP: dict[str, Any] = leaves(app.built)
# Studies take minutes and have tests of their own; a page of the studio stays open.
LONG = ("reproduce", "benchmark", "studio", "demo")
# Pages whose commands take more than ten seconds and that README.md and other pages have most of.
SLOW = (
    "--help",
    "docs/friction.md",
    "docs/study-reports/human-forceplate.md",
    "docs/index.md",
    "docs/large-logs.md",
    "docs/legs.md",
    "docs/residual.md",
    "docs/tutorial.md",
    "docs/walk-through.md",
)
# A second of search is enough to write a motion.
QUICK = {"excite": ("--budget", "60")}


def commands(page: Path) -> list[str]:
    """Lines of code blocks that call dynid, continued lines joined and remarks dropped."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = re.findall(r"^ {4}(dynid [a-z].*)$", text, re.MULTILINE)
    return [re.sub(r"\s+", " ", line.split("  #")[0]).strip() for line in lines]


DOCUMENTED = {str(page.relative_to(ROOT)): found for page in PAGES if (found := commands(page))}
DOCUMENTED["--help"] = [
    " ".join(example.split())
    for command in HELP.values()
    for example in re.findall(r"Example: (dynid .*?)\n\n", f"{command.help}\n\n", re.DOTALL)
]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders with the files that commands name, one for robots and one for people."""
    folder = tmp_path_factory.mktemp("documented")
    found = {"arm": folder / "arm", "person": folder / "person"}
    for path in found.values():
        path.mkdir()
    write_arm_files(found["arm"])
    write_person_files(found["person"])
    return found


@pytest.mark.parametrize("page", [pytest.param(p, marks=pytest.mark.slow) if p in SLOW else p for p in DOCUMENTED])
def test_commands_of_a_page_run_in_order(page: str, places: dict[str, Path], tmp_path: Path) -> None:
    """In a copy of the folders, where a command may use what one above it wrote."""
    for name, folder in places.items():
        shutil.copytree(folder, tmp_path / name)
    for command in DOCUMENTED[page]:
        if command.split()[1] in LONG:
            continue
        words = shlex.split(command)[1:]
        done = dynid(*words, *QUICK.get(words[0], ()), folder=tmp_path / ("person" if "human" in command else "arm"))
        assert done.returncode == 0, (command, done.stderr[-500:])


def test_documented_studies_exist() -> None:
    """Every `dynid reproduce NAME` of the documentation names a study."""
    words = [c.split() for found in DOCUMENTED.values() for c in found]
    named = {w[2] for w in words if w[1] == "reproduce" and len(w) > 2}
    assert named and named <= set(studies())
