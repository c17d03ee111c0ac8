"""What all commands share: the application, JSON output, and files that are written."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dynid.files import write_text

__all__ = ["Json", "app", "write"]

app = typer.Typer(
    name="dynid",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Robot dynamic identification: what a robot's parameters are, and what a recording can tell of them.",
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of tables.")]


def write(path: Path, text: str) -> None:
    write_text(path, text)
    print(f"wrote {path}", file=sys.stderr)
