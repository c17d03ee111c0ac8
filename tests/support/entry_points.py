"""Entry points of a package that is not installed."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from dynid.base import records

__all__ = ["add_entry_point"]


def add_entry_point(monkeypatch: pytest.MonkeyPatch, point: EntryPoint) -> None:
    """Add an entry point to those of the packages that are installed."""
    installed = records._points

    def found(group: str, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
        return (*installed(group, path), point) if group == point.group else installed(group, path)

    monkeypatch.setattr(records, "_points", found)
