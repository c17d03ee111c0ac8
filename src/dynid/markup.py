"""HTML for notebooks, styled by the page that shows it: tables, frames and summaries."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

__all__ = ["HtmlFrame", "HtmlSummary", "frame_html", "html_table", "words_of"]

_CELL = 'style="text-align:{align};padding:2px 10px"'
_MOST_ROWS = 100


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


def frame_html(caption: str, frame: pl.DataFrame, note: str = "") -> str:
    """A polars table with a caption, numbers with five digits, and the first hundred rows of a long one."""
    left = frame.height - _MOST_ROWS
    more = f"{left} more rows: see to_frame()" if left > 0 else ""
    rows = ([_shown(x) for x in row] for row in frame.head(_MOST_ROWS).rows())
    return html_table(caption, frame.columns, rows, "; ".join(x for x in (more, note) if x))


def _shown(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def words_of(name: str) -> str:
    """The name of a class in words: "DriveGains" as "drive gains"."""
    return "".join(f" {c.lower()}" if c.isupper() else c for c in name).strip()


class HtmlFrame:
    """A result that notebooks show as the table of its `to_frame()`."""

    __slots__ = ()

    def to_frame(self) -> pl.DataFrame:
        """The result as a table."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return frame_html(words_of(type(self).__name__), self.to_frame())


class HtmlSummary:
    """A result that notebooks show as the text of its `summary()`."""

    __slots__ = ()

    def summary(self) -> str:
        """The result as text."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        name = escape(words_of(type(self).__name__))
        return f"<div><div><strong>{name}</strong></div><pre>{escape(self.summary())}</pre></div>"
