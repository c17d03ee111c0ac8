"""No result depends on how fast the computer is: the clock shows times, and ends only what says so."""

from __future__ import annotations

import ast
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dynid
from dynid.child import read_in_child
from dynid.cli.demo import synthetic_recording
from dynid.errors import DataError
from tests.support.errors import expect_error

ROOT = Path(dynid.__file__).parent
CLOCKS = {"monotonic", "perf_counter", "process_time", "time", "monotonic_ns", "perf_counter_ns", "time_ns"}
# Where the clock decides something, each with its reason.
DECIDES = {
    ("excitation/search.py", "ended"): "a time limit that the user gave; the result says that it ended the search",
    ("online/sources.py", "read"): "how long to wait for new lines",
    ("online/sources.py", "__init__"): "how long to try to reach a program; then an error",
    ("cli/watch.py", "_follow"): "the seconds that the user gave, and how often values are shown",
    ("cli/progress.py", "report"): "how often progress is printed",
    ("studio/live_curve.py", "add"): "how often a point is drawn",
}


def _called(node: ast.AST) -> bool:
    """Whether a node is a call of a clock of the module `time`."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CLOCKS):
        return False
    return isinstance(node.func.value, ast.Name) and node.func.value.id == "time"


def _word(node: ast.AST) -> str | None:
    """What an assignment can give a time to: "name" or ".attribute"."""
    if isinstance(node, ast.Attribute):
        return f".{node.attr}"
    return node.id if isinstance(node, ast.Name) else None


def _timed(node: ast.AST, words: set[str]) -> bool:
    """Whether an expression holds a call of a clock, or something that was assigned from one."""
    return any(_called(part) or _word(part) in words for part in ast.walk(node))


def _assigned(target: ast.AST, value: ast.AST, words: set[str]) -> set[str]:
    """What an assignment gives a time to; of tuples only the parts whose own element is one."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        pairs = zip(target.elts, value.elts, strict=True)
        return {word for t, v in pairs for word in _assigned(t, v, words)}
    if not _timed(value, words):
        return set()
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    return {word for word in map(_word, parts) if word is not None}


def _parts(function: ast.AST) -> tuple[list[ast.Assign], list[ast.expr]]:
    """Assignments, and comparisons and conditions, of a function."""
    nodes = list(ast.walk(function))
    conditions = [n.test for n in nodes if isinstance(n, ast.IfExp | ast.While | ast.If)]
    return [n for n in nodes if isinstance(n, ast.Assign)], [
        *conditions,
        *(n for n in nodes if isinstance(n, ast.Compare)),
    ]


def _decisions(text: str) -> set[str]:
    """Functions of a module with a comparison or a condition that depends on a clock."""
    functions = {
        f"{f.name} {f.lineno}": _parts(f)
        for f in ast.walk(ast.parse(text))
        if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    # Attributes hold times for all functions of the module, local names for their own.
    attributes: set[str] = set()
    found: set[str] = set()
    for _ in range(3):
        for name, (assignments, tests) in functions.items():
            words = set(attributes)
            for _ in range(2):
                for node in assignments:
                    for target in node.targets:
                        words |= _assigned(target, node.value, words)
            attributes |= {word for word in words if word.startswith(".")}
            if any(_timed(test, words) for test in tests):
                found.add(name.split()[0])
    return found


def test_the_clock_decides_only_where_that_is_listed() -> None:
    """A budget in seconds gives another result on another computer: whoever adds one has to say why, here."""
    texts = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py")}
    assert not [name for name, text in texts.items() if "from time import" in text], "say time.monotonic()"
    clocks = {name: text for name, text in texts.items() if "import time\n" in text}
    found = {(name, function) for name, text in clocks.items() for function in _decisions(text)}
    assert found == set(DECIDES)


def test_the_search_for_clocks_finds_budgets() -> None:
    """A loop until a time, an attribute with a start, and a test of the time that was spent."""
    assert _decisions("def f():\n until = time.monotonic() + 3\n while time.monotonic() < until:\n  pass") == {"f"}
    other = "class A:\n def a(self):\n  self._began = time.time()\n def b(self):\n  return now() - self._began > 3"
    assert _decisions(other) == {"b"}
    assert _decisions("def g():\n began = time.perf_counter()\n return time.perf_counter() - began") == set()


class Fast:
    """A clock that runs a hundred times faster, as on a computer that is a hundred times slower."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock, self.start = clock, clock()

    def __call__(self) -> float:
        return self.start + 100.0 * (self.clock() - self.start)


def test_a_slow_computer_gives_the_same_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Design and identification under a clock that runs a hundred times faster: the same numbers, the same notes."""
    robot = dynid.load_robot("twolink")
    recording = synthetic_recording(robot, duration=4.0, seed=1)

    def figures() -> tuple[Any, ...]:
        motion = dynid.design_excitation(robot, 4.0, size=2, limits={"*": {"acceleration": 10.0}}, budget=40)
        estimate = dynid.identify(robot, recording)
        return motion.coefficients.tobytes(), motion.notes, estimate.beta.tobytes(), estimate.notes

    calm = figures()
    for name in ("monotonic", "perf_counter"):
        monkeypatch.setattr(f"time.{name}", Fast(getattr(time, name)))
    assert figures() == calm


def test_a_reader_that_waits_too_long_may_be_on_a_busy_computer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The error says so and what to set, and does not call the file damaged as if that were sure."""

    def late(given: list[str], seconds: float) -> tuple[int, str]:
        raise subprocess.TimeoutExpired(given, seconds)

    monkeypatch.setattr("dynid.child._start", late)
    path = tmp_path / "log.mat"
    path.write_bytes(b"0")
    with expect_error(DataError):
        read_in_child("dynid.recording.arrays:extract", path, tmp_path)
