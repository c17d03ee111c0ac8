"""The console for terminal pages."""

from __future__ import annotations

from rich.console import Console

from dynid.terminal import width

__all__ = ["page"]


def page() -> Console:
    """Return a console as wide as the terminal, or 150 columns wide for a pipe or file."""
    return Console(highlight=False, width=width())
