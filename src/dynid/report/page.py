"""The console for terminal pages."""

from __future__ import annotations

from rich.console import Console

from dynid.terminal import width

__all__ = ["page"]


def page() -> Console:
    """Return a console as wide as the terminal, or 150 columns wide for a pipe or file.

    Brackets in text are not markup: names come from files.
    """
    return Console(highlight=False, markup=False, width=width())
