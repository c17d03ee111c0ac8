"""Errors of Python functions name the options of the command line."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dynid
from dynid.cli.keywords import BY_COMMAND, OPTIONS, option_words, with_options
from dynid.cli.main import app

SOURCE = Path(dynid.__path__[0])
GROUP: Any = app.built
# Keywords that messages of the package name and that no command sets.
PYTHON_ONLY = {
    "between",
    "feedforward",
    "held",
    "independent",
    "positions",
    "sensors",
    "robot",
    "shapes",
    "times",
    "unit",
}
# An attribute of MJCF files.
PYTHON_ONLY |= {"saveinertial"}


def all_options(group: Any = GROUP) -> set[str]:
    """Every option of every command."""
    found: set[str] = set()
    for command in group.commands.values():
        found |= all_options(command) if hasattr(command, "commands") else set()
        found |= {name for p in command.params for name in (*p.opts, *p.secondary_opts)}
    return found


@pytest.mark.parametrize("keyword", sorted(OPTIONS))
def test_every_keyword_becomes_an_option_that_exists(keyword: str) -> None:
    """In each form in which messages give a keyword."""
    option = OPTIONS[keyword]
    assert option in ("MODEL", "ROBOT") or option in all_options()
    assert option_words(f"give {keyword}= (Hz)") == f"give {option} (Hz)"
    assert option_words(f"give {keyword}=True, or {keyword}=...") == f"give {option}, or {option}"
    assert option_words(f"say {keyword}=None") == f"say {option} none"
    assert option_words(f"with {keyword}='x' it") == f"with {option} x it"
    assert option_words(f"{keyword}=0.5 is too large") == f"{option} 0.5 is too large"
    assert option_words(f"{keyword} must be positive") == f"{option} must be positive"
    assert option_words(f"{keyword} 'x' is unknown") == f"{option} 'x' is unknown"


def test_words_that_are_no_keywords_stay() -> None:
    """Options themselves, parts of words, comparisons and the middle of sentences."""
    for text in ("--rate 100", "sample_rate=5", "Signals.rate=5", "the rate must", "x.time=3", "rate==3", "time stops"):
        assert option_words(text) == text
    assert option_words("give it, loop=ClosedLoop(controller=...)") == "give it, --controller"
    assert option_words(option_words("give rate= and time=None")) == "give --rate and --time none"


def test_values_per_signal_are_written_as_the_option_takes_them() -> None:
    """A table in Python, an option that is repeated on the command line."""
    assert option_words("give units={'q': 'deg'}, or") == "give --units q=deg, or"
    found = option_words('such as columns={"q": "1:7", "torque": "tau{i}"}')
    assert found == "such as --columns q=1:7 --columns torque=tau{i}"
    assert option_words('sign={"wrench": -1}, or') == "--sign wrench=-1, or"


@pytest.mark.parametrize("command", sorted(BY_COMMAND))
def test_commands_with_options_of_their_own(command: str) -> None:
    """A keyword that two commands set by different names."""
    own = {name for p in GROUP.commands[command].params for name in p.opts}
    for keyword, option in BY_COMMAND[command].items():
        assert option in own
        assert option_words(f"give {keyword}=", command) == f"give {option}"


def test_the_error_keeps_its_type() -> None:
    """A ModelError stays one."""
    changed = with_options(dynid.ModelError("give friction='none'"))
    assert type(changed) is dynid.ModelError and str(changed) == "give --friction none"


def messages() -> Iterator[str]:
    """Texts of all errors that the package raises, with what is filled in left out."""
    for path in SOURCE.rglob("*.py"):
        if path.is_relative_to(SOURCE / "cli"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                for part in ast.walk(node.exc):
                    if isinstance(part, ast.JoinedStr):
                        pieces = [str(v.value) if isinstance(v, ast.Constant) else "..." for v in part.values]
                        yield "".join(pieces)
                    elif isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield part.value


def test_every_keyword_of_a_message_is_known() -> None:
    """A new message with `keyword=` needs its option here, or a place among those that only Python has."""
    named = {word for text in messages() for word in re.findall(r"(?<![-\w.\"'<])([a-z_]{2,})=(?!=)", text)}
    assert {"rate", "time", "allow_infeasible"} <= named
    known = set(OPTIONS) | PYTHON_ONLY | {k for own in BY_COMMAND.values() for k in own}
    assert named <= known, sorted(named - known)


def test_folders_of_a_partition_are_no_keywords() -> None:
    """Keys of a data set keep their names, whatever options there are."""
    text = "partition date=2025-01-01/name=a/rate=3.parquet has no rows; skip_bad=True leaves such partitions out"
    assert option_words(text) == text.replace("skip_bad=True", "--skip-bad-partitions")
