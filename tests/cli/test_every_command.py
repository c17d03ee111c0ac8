"""What every command has: an example, JSON for machines, help that fits, and a place in the list."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from dynid.cli.app import ORDER
from dynid.cli.main import app

GROUP: Any = typer.main.get_command(app)
COMMANDS: dict[str, Any] = GROUP.commands
# A page stays open; there is nothing to print at its end.
WITHOUT_JSON = ("studio",)
WIDTH = 80


def help_of(*command: str) -> str:
    done = CliRunner().invoke(app, [*command, "--help"], terminal_width=WIDTH)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_commands_are_listed_in_the_order_of_the_work() -> None:
    """Whatever the order in which their modules are imported; every command has its place."""
    assert set(COMMANDS) == set(ORDER)
    listed = re.findall(r"^  ([a-z]+)  ", help_of().split("Commands:")[1], re.MULTILINE)
    assert listed == list(ORDER)
    assert listed.index("excite") < listed.index("identify") < listed.index("report") < listed.index("doctor")


@pytest.mark.parametrize("name", ORDER)
def test_help_has_an_example_that_parses(name: str) -> None:
    """Every example is a call of its command with options that exist."""
    examples = re.findall(r"Example: dynid (.+?)(?:\n\n|\Z)", COMMANDS[name].help + "\n\n", re.DOTALL)
    assert examples
    for example in examples:
        first, *arguments = shlex.split(" ".join(example.split()))
        assert first == name
        COMMANDS[name].make_context(name, arguments)
    assert f"Example: dynid {name}" in " ".join(help_of(name).split())


@pytest.mark.parametrize("name", ORDER)
def test_help_fits_and_names_everything(name: str) -> None:
    """No line is longer than a terminal; arguments stand in the usage; each argument and option is explained."""
    page = help_of(name)
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


@pytest.mark.parametrize("name", [n for n in ORDER if n not in WITHOUT_JSON])
def test_every_command_speaks_json(name: str) -> None:
    """By the same word."""
    assert any("--json" in parameter.opts for parameter in COMMANDS[name].params)


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
