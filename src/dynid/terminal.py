"""Text for the terminal: one width for every table and line."""

from __future__ import annotations

import io
import os
import shutil
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["rendered", "table_of", "width"]

# Output into a pipe or file is not folded to the width of a terminal.
_PIPE_WIDTH = 150


def width() -> int:
    """Columns of the terminal; of COLUMNS, or 150, where output goes into a pipe or file."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit():
        return shutil.get_terminal_size().columns
    return _PIPE_WIDTH


def rendered(*parts: object) -> str:
    """Tables and lines as text, no wider than the terminal."""
    from rich.console import Console

    console = Console(file=io.StringIO(), width=width(), highlight=False, markup=False)
    for part in parts:
        console.print(part)
    return console.file.getvalue()  # type: ignore[attr-defined]


def table_of(title: str, *columns: str, text: tuple[str, ...] = ()) -> Table:
    """An empty table; the columns named in `text` are aligned to the left and wrapped, the others to the right."""
    from rich.table import Table

    table = Table(title=title)
    for name in columns:
        words = name in text
        table.add_column(name, justify="left" if words else "right", overflow="fold", no_wrap=not words)
    return table
