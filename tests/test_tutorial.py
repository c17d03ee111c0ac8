"""The tutorial prints what it says: its commands run in an empty folder, and their output is compared with the page."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commands import dynid

PAGE = Path(__file__).parents[1] / "docs" / "tutorial.md"
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[+-]?\d+)?")
# The search for a motion and the fit end at the same place on every computer, up to rounding in the last digits shown.
TOLERANCE = 0.02


def steps(text: str) -> Iterator[tuple[str, list[str]]]:
    """Every command of the numbered sections with the lines that the page shows as its output."""
    text = re.sub(r" \\\n\s*", " ", text.split("\n## Logs with other headers")[0])
    pieces = re.split(r"^ {4}dynid (.*)$", text, flags=re.MULTILINE)
    for command, after in zip(pieces[1::2], pieces[2::2], strict=True):
        shown = re.match(r"\s*```text\n(.*?)\n```", after, re.DOTALL)
        yield command, shown[1].splitlines() if shown else []


def agrees(said: str, printed: str) -> bool:
    """Whether a line is the one of the page: the same words, and numbers within the tolerance; `...` ends it early."""
    if said.endswith(" ..."):
        said = said.removesuffix(" ...")
        printed = " ".join(printed.split()[: len(said.split())])
    if NUMBER.sub("#", " ".join(said.split())) != NUMBER.sub("#", " ".join(printed.split())):
        return False
    pairs = zip(NUMBER.findall(said), NUMBER.findall(printed), strict=True)
    return all(math.isclose(float(a), float(b), rel_tol=TOLERANCE) for a, b in pairs)


def missing(shown: list[str], printed: list[str]) -> list[str]:
    """Lines of the page that were not printed, in this order."""
    rest = iter(printed)
    return [line for line in shown if line != "..." and not any(agrees(line, other) for other in rest)]


def test_a_wrong_figure_would_be_seen() -> None:
    assert agrees("  joint1   0.0763 N m  0.55 %", "  joint1     0.07625 N m     0.55 %")
    assert agrees("52 base parameters ...", "52 base parameters (left-to-right)")
    assert not agrees("  joint1   0.0763 N m", "  joint1     0.0863 N m")
    assert not agrees("verdict: trusted", "verdict: use with care")
    assert missing(["a 1", "...", "b 2"], ["a 1", "c 3", "b 2"]) == []
    assert missing(["b 2", "a 1"], ["a 1", "b 2"]) == ["a 1"]


def test_every_step_shows_what_it_prints() -> None:
    """A tutorial that lost its output blocks would pass the test below."""
    found = dict(steps(PAGE.read_text(encoding="utf-8")))
    assert {"check", "identify", "report"} <= set(found)
    assert sum(bool(shown) for shown in found.values()) >= 6


@pytest.mark.slow
def test_the_commands_print_what_the_page_shows(tmp_path: Path) -> None:
    """About two minutes: from an empty folder to the identified URDF."""
    text = PAGE.read_text(encoding="utf-8")
    loop = re.search(r"```toml\n(kind.*?)```", text, re.DOTALL)
    assert loop is not None
    (tmp_path / "loop.toml").write_text(loop[1])
    for command, shown in steps(text):
        done = dynid(*shlex.split(command), folder=tmp_path)
        assert done.returncode == 0, (command, done.stderr[-500:])
        assert missing(shown, done.stdout.splitlines()) == [], command
    assert (tmp_path / "identified.urdf").exists()
