"""Tables of the page."""

from __future__ import annotations

from nicegui import ui

__all__ = ["plain_table"]


def plain_table(rows: list[dict[str, str]]) -> ui.table:
    """A table of text; the keys of the first row are its columns."""
    columns = [
        {"name": k, "label": k.replace("_", " "), "field": k, "align": "left"} for k in (rows[0] if rows else {})
    ]
    return ui.table(columns=columns, rows=rows).props("dense flat wrap-cells").classes("w-full")
