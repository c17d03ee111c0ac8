"""The terminal that pages are printed on."""

from __future__ import annotations

from rich.console import Console

__all__ = ["page"]

_PIPE_WIDTH = 150


def page() -> Console:
    """A console as wide as the terminal; output into a pipe or file is not squeezed into 80 columns."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_PIPE_WIDTH)
