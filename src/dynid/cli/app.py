"""What all commands share: the application, the order they are listed in, JSON output, and files that are written."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from dynid.errors import DynidError
from dynid.files import check_output, write_text

__all__ = ["INTERRUPTED", "ORDER", "Json", "app", "check_outputs", "interrupted", "option_named", "write"]

# As one meets them on the way from a robot to its model.
ORDER = (
    *("robots", "inspect", "human", "excite", "simulate", "live"),
    *("check", "calibrate", "identify", "validate", "friction", "payload", "gains", "compensate"),
    *("report", "export", "studio", "demo", "reproduce", "benchmark", "doctor"),
)
# The exit code that shells give to what Ctrl-C has ended.
INTERRUPTED = 130


class Commands(TyperGroup):
    """Commands in the order of the work, whatever the order of imports; Ctrl-C ends them in one line."""

    def list_commands(self, ctx: Any) -> list[str]:
        place = {name: k for k, name in enumerate(ORDER)}
        return sorted(super().list_commands(ctx), key=lambda name: place.get(name, len(place)))

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            interrupted()
            raise typer.Exit(INTERRUPTED) from None


def interrupted() -> None:
    print("dynid: interrupted", file=sys.stderr)


app = typer.Typer(
    name="dynid",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Robot dynamic identification: what a robot's parameters are, and what a recording can tell of them.",
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of tables.")]


def check_outputs(*paths: Path | None) -> None:
    """Refuse files that cannot be written before the work is done; None is one that is not asked for."""
    for path in paths:
        if path is not None:
            check_output(path)


def write(path: Path, text: str) -> None:
    write_text(path, text)
    print(f"wrote {path}", file=sys.stderr)


@contextmanager
def option_named() -> Iterator[None]:
    """Errors name the option of the command in place of the argument of the function."""
    try:
        yield
    except DynidError as error:
        raise type(error)(str(error).replace("allow_infeasible=True", "--allow-infeasible")) from None
