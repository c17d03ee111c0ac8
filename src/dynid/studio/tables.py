"""Tables of the page."""

from __future__ import annotations

import html

from nicegui import ui

__all__ = ["TABLE_STYLE", "plain_table", "sentence_table"]

TABLE_STYLE = """
.dynid-sentences { border-collapse: collapse; width: 100%; font-size: 13px; line-height: 1.45; }
.dynid-sentences th { text-align: left; font-weight: 500; }
.dynid-sentences :is(th, td) { padding: 6px 12px 6px 0; vertical-align: top; border-bottom: 1px solid #8885; }
@media (max-width: 640px) {
  .dynid-sentences thead { display: none; }
  .dynid-sentences tr { display: block; padding: 8px 0; border-bottom: 1px solid #8885; }
  .dynid-sentences td { display: block; border: none; padding: 1px 0; }
  .dynid-sentences td:empty { display: none; }
  .dynid-sentences td:first-child { font-weight: 500; }
  .dynid-sentences td:not(:first-child)::before { content: attr(data-name) ": "; opacity: 0.8; }
}
"""


def plain_table(rows: list[dict[str, str]]) -> ui.table:
    """A table of text; the keys of the first row are its columns."""
    columns = [
        {"name": k, "label": k.replace("_", " "), "field": k, "align": "left"} for k in (rows[0] if rows else {})
    ]
    return ui.table(columns=columns, rows=rows).props("dense flat wrap-cells").classes("w-full")


def sentence_table(rows: list[dict[str, str]]) -> ui.html:
    """A table with sentences, which have no room beside each other on a phone: there every row is a list."""
    names = [k.replace("_", " ") for k in (rows[0] if rows else {})]
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in names)
    body = "".join(
        f"<tr>{''.join(_cell(name, x) for name, x in zip(names, row.values(), strict=True))}</tr>" for row in rows
    )
    table = f'<table class="dynid-sentences"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return ui.html(table, sanitize=False).classes("w-full")


def _cell(name: str, words: str) -> str:
    return f'<td data-name="{html.escape(name)}">{html.escape(words)}</td>'
