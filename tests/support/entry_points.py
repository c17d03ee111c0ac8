"""Entry points of a package that is not installed."""

from __future__ import annotations

import importlib.metadata
from typing import Any

import pytest

__all__ = ["add_entry_point"]


def add_entry_point(monkeypatch: pytest.MonkeyPatch, point: importlib.metadata.EntryPoint) -> None:
    """Add an entry point to those of the packages that are installed."""
    installed = importlib.metadata.entry_points

    def found(**chosen: Any) -> Any:
        return [*installed(**chosen), point] if chosen.get("group") == point.group else installed(**chosen)

    monkeypatch.setattr(importlib.metadata, "entry_points", found)
