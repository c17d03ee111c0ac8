"""HTML tables for notebooks, styled by the page that shows them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["html_table"]

_CELL = 'style="text-align:{align};padding:2px 10px"'


def html_table(caption: str, header: Sequence[str], rows: Iterable[Sequence[object]], note: str = "") -> str:
    """A table with a caption above it and an optional note below; the first column is left-aligned."""

    def line(cells: Sequence[object], tag: str) -> str:
        marks = (_CELL.format(align="left" if k == 0 else "right") for k in range(len(cells)))
        return (
            "<tr>"
            + "".join(f"<{tag} {m}>{escape(str(c))}</{tag}>" for m, c in zip(marks, cells, strict=True))
            + "</tr>"
        )

    body = "".join(line(row, "td") for row in rows)
    below = f"<div>{escape(note)}</div>" if note else ""
    return (
        f'<div><div><strong>{escape(caption)}</strong></div><table style="border-collapse:collapse">'
        f"<thead>{line(header, 'th')}</thead><tbody>{body}</tbody></table>{below}</div>"
    )
