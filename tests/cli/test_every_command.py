"""What every command has: an example, JSON, help that fits, one meaning per option, and a place in its group."""

from __future__ import annotations

import importlib.metadata
import json
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dynid.cli.app import GROUPS, ORDER
from dynid.cli.main import app
from tests.support.commands import leaves

GROUP: Any = app.built


COMMANDS = leaves(GROUP)
# A page stays open; there is nothing to print at its end.
WITHOUT_JSON = ("studio",)
WIDTH = 80
# Options whose help names what this command writes or takes; their meaning is the same.
OWN_HELP = {"--output", "--report", "--duration", "--sex", "--height", "--weight", "--method", "--counts", "--models"}
OWN_HELP |= {"--template", "--table"}
OWN_HELP |= {"--target"}  # how well parameters are to be known


@cache
def help_of(*command: str) -> str:
    done = CliRunner().invoke(app, [*command, "--help"], terminal_width=WIDTH)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_commands_are_listed_in_groups() -> None:
    """In the order of the work, whatever the order in which their modules are imported."""
    assert set(GROUP.commands) == set(ORDER)
    page = help_of()
    places = [page.index(f"\n{heading}:\n") for heading in GROUPS]
    assert places == sorted(places)
    listed = re.findall(r"^  ([a-z]+) +[A-Z]", page[places[0] :], re.MULTILINE)
    assert listed == list(ORDER)


def test_version() -> None:
    """Of the installed package."""
    done = CliRunner().invoke(app, ["--version"])
    assert done.exit_code == 0 and done.stdout == f"dynid {importlib.metadata.version('dynid')}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_says_what_an_option_takes_in_words(name: str) -> None:
    """FILE, NUMBER, SIGNAL=UNIT; not the types of Python."""
    page = help_of(*name.split())
    assert not re.findall(r"<[a-z]+.*?>|list\[", page)
    if "--columns" in page:
        assert "--columns SIGNAL=COLUMNS" in page and "--rate NUMBER" in page


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example_that_parses(name: str) -> None:
    """Every example is a call of its command with options that exist."""
    examples = re.findall(r"Example: dynid (.+?)(?:\n\n|\Z)", COMMANDS[name].help + "\n\n", re.DOTALL)
    assert examples
    for example in examples:
        words = shlex.split(" ".join(example.split()))
        own = name.split()
        assert words[: len(own)] == own
        COMMANDS[name].make_context(name, words[len(own) :])
    assert f"Example: dynid {name}" in " ".join(help_of(*name.split()).split())


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_and_names_everything(name: str) -> None:
    """No line is longer than a terminal; arguments stand in the usage; each argument and option is explained."""
    page = help_of(*name.split())
    # An example is one line to copy, which the page breaks at blanks only.
    assert all(len(line) <= WIDTH for line in page.splitlines())
    usage = " ".join(page.split("\n\n")[0].split())
    words = " ".join(page.split())
    for parameter in COMMANDS[name].params:
        if parameter.name == "help":
            continue
        assert parameter.help, parameter.name
        assert " ".join(parameter.help.split()[:4]) in words
        if parameter.param_type_name == "argument":
            assert parameter.metavar.isupper() and re.search(rf"\b{parameter.metavar}\b", usage)
        else:
            assert max(parameter.opts, key=len) in words


def test_an_option_has_one_meaning() -> None:
    """The same name has the same help in all commands; -o is always --output."""
    meanings: dict[str, set[str]] = {}
    for command in COMMANDS.values():
        for parameter in command.params:
            if parameter.param_type_name == "option":
                assert ("-o" in parameter.opts) == ("--output" in parameter.opts)
                meanings.setdefault(max(parameter.opts, key=len), set()).add(parameter.help or "")
    several = {option for option, helps in meanings.items() if len(helps) > 1}
    assert several <= OWN_HELP, {option: meanings[option] for option in several - OWN_HELP}


@pytest.mark.parametrize("name", [n for n in COMMANDS if n not in WITHOUT_JSON])
def test_every_command_speaks_json(name: str) -> None:
    """By the same word."""
    assert any("--json" in parameter.opts for parameter in COMMANDS[name].params)


@pytest.mark.slow
def test_the_demonstration_speaks_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Estimate, truth, errors and verdict; nothing else on standard output."""
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["demo", "--json", "--report", "page.html"])
    assert done.exit_code == 0, done.output
    page = json.loads(done.stdout)
    assert page["report"] == "page.html" and (tmp_path / "page.html").exists()
    assert len(page["truth"]) == len(page["estimate"]["base_parameters"]) == 61
    values = {p["name"]: (p["value"], p["std"]) for p in page["estimate"]["base_parameters"]}
    far = [n for n, (value, sigma) in values.items() if abs(value - page["truth"][n]) > 5 * sigma]
    assert far == [] and max(joint["relative"] for joint in page["validation"].values()) < 0.1
    assert page["verdict"]["verdict"]
