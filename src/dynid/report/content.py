"""Contents of a report: sections with text, tables, figures, and parts that are shown per joint."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from dynid.report.chart_data import ChartTable
from dynid.report.charts import Chart

__all__ = ["Block", "Code", "Figure", "Figures", "Groups", "Joints", "Scene", "Section", "Table", "Text", "section"]

# Characters from which on a cell of a table is a sentence.
_SENTENCE = 36


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    words: str
    kind = "text"


@dataclass(frozen=True)
class Code:
    """A text file that a reader copies or downloads."""

    words: str
    file: str
    kind = "code"

    @property
    def address(self) -> str:
        """The file as an address that the page links to."""
        return "data:text/plain;charset=utf-8," + quote(self.words, errors="replace")


@dataclass(frozen=True)
class Table:
    """Rows of text or markup; columns from `numbers` on are aligned right, but for those in `words`.

    On narrow screens, rows of a `stacked` table have their cells below each other, and so have those of tables with
    sentences, with the names of their columns.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str | Markup]]
    title: str = ""
    folded: bool = False
    numbers: int = 1
    words: tuple[int, ...] = ()
    stacked: bool = False
    kind = "table"

    @property
    def listed(self) -> bool:
        """Whether a narrow screen shows it as a list, because its sentences have no room beside each other."""
        return not self.stacked and len(self.head) > 2 and any(len(x) > _SENTENCE for row in self.rows for x in row)


@dataclass(frozen=True)
class Groups:
    """Tables with the same columns, such as one per link: each is folded under its name and a remark.

    All of them are searched together. Columns are aligned as those of `Table`.
    """

    title: str
    head: Sequence[str]
    groups: Sequence[tuple[str, str, Sequence[Sequence[str | Markup]]]]
    numbers: int = 1
    words: tuple[int, ...] = ()
    stacked = listed = False
    kind = "groups"


@dataclass(frozen=True, eq=False)
class Figure:
    """Charts above each other with a title, a caption and one table of their data."""

    charts: Sequence[Chart]
    title: str = ""
    caption: str = ""

    @cached_property
    def _table(self) -> ChartTable:
        return ChartTable([chart.series for chart in self.charts])

    @property
    def picture(self) -> Markup:
        """The charts as markup."""
        drawn = zip(self.charts, self._table.places, strict=True)
        return Markup("\n".join(chart.svg(places) for chart, places in drawn))

    @property
    def words(self) -> str:
        """What the first chart is called."""
        return self.charts[0].title or self.title

    @property
    def file(self) -> str:
        """Name of the file that a reader downloads."""
        return re.sub(r"[^A-Za-z0-9]+", "-", self.words).strip("-") + ".csv"

    @property
    def address(self) -> str:
        """The data as an address that the page links to."""
        return self._table.address()


@dataclass(frozen=True)
class Figures:
    """Figures side by side with one legend, whose entries switch the series; `size` is "wide", "medium" or "small"."""

    figures: Sequence[Figure]
    size: str = "wide"
    legend: Sequence[tuple[str, str]] = ()
    kind = "figures"


@dataclass(frozen=True)
class Joints:
    """The same blocks for every joint: one joint is shown at a time, all of them in print."""

    key: str
    joints: Sequence[tuple[str, Sequence[Any]]]
    kind = "joints"


@dataclass(frozen=True)
class Scene:
    """A rotatable view of a robot: plain data for the script of the page, and switches of what it draws."""

    data: str
    words: str
    label: str = "The robot with its bodies as ellipsoids"
    switches: Sequence[tuple[str, str, bool]] = (
        ("after", "identified", True),
        ("before", "a priori (dashed)", True),
        ("names", "names", False),
    )
    kind = "scene"

    @property
    def json(self) -> Markup:
        """The data as markup."""
        # A closing tag inside a name must not end the script element.
        return Markup(self.data.replace("<", "\\u003c"))


Block = Text | Table | Groups | Code | Figures | Joints | Scene


@dataclass(frozen=True)
class Section:
    """A part of the report, with a heading and one introductory sentence."""

    key: str
    title: str
    lead: str
    blocks: Sequence[Block] = field(default_factory=list)


def section(key: str, title: str, lead: str, *blocks: Block | None) -> Section:
    """A section of the blocks that are not None."""
    return Section(key, title, lead, [b for b in blocks if b is not None])
