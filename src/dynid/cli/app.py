"""The application: its groups of commands, errors that name options, JSON output, and files that are written."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import ContextVar
from functools import cached_property
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import OptionInfo

from dynid.cli.option_names import option_words
from dynid.cli.values import checked
from dynid.errors import DynidError
from dynid.files import check_output, real_path, write_text

__all__ = [
    "GROUPS",
    "INTERRUPTED",
    "ORDER",
    "Application",
    "Command",
    "Commands",
    "Json",
    "app",
    "check_outputs",
    "interrupted",
    "remember_inputs",
    "write",
    "wrote",
]

# In the order of the work, from a robot to its model.
GROUPS = {
    "Model": ("robots", "inspect", "human", "export"),
    "Experiment": ("excite", "chirp", "simulate", "live", "convert", "check", "calibrate"),
    "Identify": (
        *("identify", "validate", "friction", "payload", "gains", "compensate", "actuators", "flexible", "legs"),
        *("geometry", "fleet", "watch", "solvers"),
    ),
    "Understand": ("report", "studio"),
    "Project": ("init", "demo", "doctor", "reproduce", "benchmark"),
}
ORDER = tuple(name for names in GROUPS.values() for name in names)
# What an option takes, in --help, where its declaration says nothing better.
_METAVARS = {Path: "FILE", float: "NUMBER", int: "NUMBER", str: "TEXT"}
# The exit code that shells give to a command that Ctrl-C has ended.
INTERRUPTED = 130
# Parameters that name files to write.
_OUTPUTS = ("output", "figure", "save", "report", "page")
# What else the command that runs was given: every value may name a file to read.
_given: ContextVar[tuple[Any, ...]] = ContextVar("given", default=())
# Files that the command has written so far. It names them at its end, after what it prints.
_written: ContextVar[list[str] | None] = ContextVar("written", default=None)


class Commands(TyperGroup):
    """Commands in the order of the work. Errors name options; Ctrl-C ends a command with one line."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names in the order of the groups, whatever the order of imports."""
        place = {name: k for k, name in enumerate(ORDER)}
        return sorted(super().list_commands(ctx), key=lambda name: place.get(name, len(place)))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands of --help under the headings of their groups."""
        found = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        width = max((len(name) for name in found), default=0)
        headed = {heading: [n for n in names if n in found] for heading, names in GROUPS.items()}
        if set(found) - {name for names in headed.values() for name in names}:
            headed = {"Commands": list(found)}
        for heading, names in headed.items():
            if names:
                with formatter.section(heading):
                    # The first sentence whole: the formatter wraps it to the terminal.
                    rows = [(f"{n:<{width}}", found[n].get_short_help_str(200)) for n in names]  # type: ignore[union-attr]
                    formatter.write_dl(rows)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except DynidError as error:
            raise error.in_words(option_words(self, ctx.invoked_subcommand)) from error
        except KeyboardInterrupt:
            interrupted()
            raise typer.Exit(INTERRUPTED) from None


def interrupted() -> None:
    """Say that Ctrl-C ended the command."""
    print("dynid: interrupted", file=sys.stderr)


class Command(TyperCommand):
    """A command whose --help names its arguments without their Python types, and that knows what it was given."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        for parameter in self.params:
            value = ctx.params.get(parameter.name)
            for one in value if isinstance(value, tuple) else (value,):
                if isinstance(one, float):
                    checked(one, parameter.opts[0])
        given = _given.set(tuple(value for name, value in ctx.params.items() if name not in _OUTPUTS))
        files = _written.set([])
        try:
            return super().invoke(ctx)
        finally:
            with suppress(OSError):  # `main` tries again and says so
                sys.stdout.flush()
            for path in _written.get() or ():
                print(f"wrote {path}", file=sys.stderr)
            _written.reset(files)
            _given.reset(given)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """List the arguments, then the options."""
        rows: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                name = parameter.metavar if parameter.param_type_name == "argument" else None
                rows[parameter.param_type_name].append((name or record[0], record[1]))
        for kind, listed in rows.items():
            if listed:
                with formatter.section(f"{kind.capitalize()}s"):
                    formatter.write_dl(listed)


class Application(typer.Typer):
    """Commands whose --help says FILE, NUMBER or TEXT where Python has a type."""

    @cached_property
    def built(self) -> Any:
        """The group of all commands, built once: that takes longer than a short command."""
        return typer.main.get_command(self)

    def __call__(self, *args: Any, **settings: Any) -> Any:
        """Run the command that the command line names."""
        return self.built(*args, **settings)

    def command(self, *args: Any, **settings: Any) -> Callable[[Any], Any]:
        """Register a function as a command."""
        register = super().command(*args, **{"cls": Command} | settings)

        def named(function: Any) -> Any:
            parameters = signature(function, eval_str=True).parameters
            # As they are now: Typer would evaluate the text of an annotation again.
            function.__annotations__ = {name: p.annotation for name, p in parameters.items()}
            for parameter in parameters.values():
                kind = next((t for t in _types(parameter.annotation) if isinstance(t, type) and t in _METAVARS), None)
                for info in getattr(parameter.annotation, "__metadata__", ()):
                    if isinstance(info, OptionInfo) and info.metavar is None and kind is not None:
                        info.metavar = _METAVARS[kind]
            return register(function)

        return named


def _types(annotation: Any) -> Iterator[Any]:
    """The types in an annotation such as `Annotated[list[str] | None, ...]`, what is annotated before what is said."""
    inside = get_args(annotation)
    if not inside:
        yield annotation
    for one in inside:
        yield from _types(one)


app = Application(
    name="dynid",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    """Print the version and end."""
    if wanted:
        from importlib.metadata import version

        print(f"dynid {version('dynid')}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Dynamic identification of robots: parameters from recorded motion, with their uncertainty and a verdict.

    In a folder with dynid.toml (see `dynid init`) every command works without arguments; options override the file.
    """


Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def check_outputs(*paths: Path | None) -> None:
    """Refuse files before the work is done: those that cannot be written, are read, or are named twice.

    None is a file that is not asked for.
    """
    inputs = {_resolved(text) for text in _input_texts()}
    seen: set[Path] = set()
    for path in paths:
        if path is None:
            continue
        place = real_path(path)
        if place in inputs:
            raise DynidError(
                f"'{path}' is read by this command and would be overwritten: name another file to write",
                code="not_writable",
                argument="output",
            )
        if place in seen:
            raise DynidError(
                f"two outputs have the name '{path}': name another file for one of them",
                code="duplicate",
                argument="output",
            )
        seen.add(place)
        check_output(path)


def remember_inputs(*texts: str) -> None:
    """Files that a command reads and that are not among its arguments, such as those of the project file."""
    _given.set((*_given.get(), list(texts)))


def _input_texts() -> Iterator[str]:
    """Everything in the arguments and options of the command that may name a file to read."""
    for value in _given.get():
        for one in value if isinstance(value, list | tuple) else (value,):
            if isinstance(one, str | Path):
                yield str(one)
                yield from re.split("[=,]", str(one))  # q=positions.csv,torque=torques.csv


def _resolved(text: str) -> Path | None:
    """The file of this name, if there is one."""
    with suppress(OSError, ValueError):
        path = Path(text)
        return real_path(path) if path.is_file() else None
    return None


def write(path: Path, text: str) -> None:
    """Write a text file and name it on standard error."""
    write_text(path, text)
    wrote(path)


def wrote(path: str | Path) -> None:
    """Name a file that was written, on standard error, at the end of the command."""
    written = _written.get()
    if written is None:
        print(f"wrote {path}", file=sys.stderr)
    else:
        written.append(str(path))
