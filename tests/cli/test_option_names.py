"""Errors of Python functions name the options of the command line."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import dynid
from dynid.cli.app import Commands
from dynid.cli.main import _Warnings, app
from dynid.cli.option_names import _BY_COMMAND, _PARAMETERS, option_words
from dynid.errors import InvalidValue, Keyword, Sentence, keyword, named
from tests.support.commands import leaves
from tests.support.errors import expect_error

GROUP: Any = app.built


def said(text: str, command: str | None = None) -> str:
    """A sentence in the words of the command line."""
    return Sentence(text).in_words(option_words(GROUP, command))


def parameters(group: Any = GROUP) -> set[str]:
    """Names of the parameters of all commands."""
    found: set[str] = set()
    for command in group.commands.values():
        found |= parameters(command) if hasattr(command, "commands") else {p.name for p in command.params}
    return found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"give {keyword('rate')} (Hz)", "give --rate (Hz)"),
        (f"{named('rate')} must be positive", "--rate must be positive"),
        (f"leave out {keyword('rate', 100.0)}", "leave out --rate 100"),
        (f"say {keyword('time', None)}", "say --time none"),
        (f"say {keyword('allow_infeasible', True)}", "say --allow-infeasible"),
        (f"say {keyword('box', False)}", "say --no-box"),
        (f"give {keyword('units', {'t': 'ms'})}, or", "give --units t=ms, or"),
        (
            f"such as {keyword('columns', {'q': '1:7', 'torque': 'tau{i}'})}",
            "such as --columns q=1:7 --columns torque=tau{i}",
        ),
        (f"or {keyword('link_masses')}", "or --link-mass"),
        (f"give {keyword('skip_bad', True)}", "give --skip-bad-partitions"),
        (f"with {keyword('positions')}", "with positions="),  # what no command sets
        ("the rate must be, sample_rate=5", "the rate must be, sample_rate=5"),
    ],
)
def test_arguments_become_the_options_that_set_them(text: str, words: str) -> None:
    assert said(text) == words


def test_commands_with_options_of_their_own() -> None:
    assert said(f"give {keyword('rate')}", "simulate") == "give --output-rate"
    assert said(f"give {keyword('method')}", "inspect") == "give --grouping"
    assert said(f"give {keyword('positive', False)}", "gains") == "give --negative"


def test_every_parameter_that_is_named_here_exists() -> None:
    known = parameters()
    assert set(_PARAMETERS.values()) <= known
    for command, names in _BY_COMMAND.items():
        own = [c for words, c in leaves(GROUP).items() if words.split()[-1] == command]
        assert set(names.values()) <= {p.name for c in own for p in c.params}
        # Where the names agree, nothing is to be listed.
        assert all(argument != parameter for argument, parameter in names.items())


def test_a_command_raises_the_same_error_in_its_words() -> None:
    """A ModelError stays one, with its code and argument."""
    error = dynid.ModelError(f"give {keyword('friction', 'none')}", code="unsupported")
    found = error.in_words(option_words(GROUP, None))
    assert type(found) is dynid.ModelError and str(found) == "give --friction none"
    assert (found.code, found.argument) == ("unsupported", "friction")
    assert str(error) == 'give friction="none"'


def test_the_group_rewords_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Any, ctx: Any) -> None:
        raise InvalidValue(f"{named('noise')} must be positive")

    monkeypatch.setattr("dynid.cli.app.TyperGroup.invoke", fail)
    context = type("Context", (), {"invoked_subcommand": "live"})()
    with expect_error(InvalidValue, "noise"):
        Commands.invoke(GROUP, context)


def test_warnings_name_options(capsys: pytest.CaptureFixture[str]) -> None:
    for text in (Sentence(f"name them with {keyword('columns')}"), "it has columns= 3"):
        _Warnings().emit(logging.LogRecord("dynid", logging.WARNING, "", 0, text, None, None))
    assert capsys.readouterr().err.splitlines() == ["dynid: name them with --columns", "dynid: it has columns= 3"]


def test_a_keyword_in_python() -> None:
    assert str(Keyword("columns", ({"q": "1:7"},))) == 'columns={"q": "1:7"}'
