"""The data behind charts: one CSV table for all series of a figure, which readers download and the script reads."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

__all__ = ["ChartTable", "Series"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Series:
    """Values y (N,) over x (N,) with the label of each; `shown` if the page reads them out at the pointer."""

    x_label: str
    y_label: str
    x: Array
    y: Array
    shown: bool = False


class ChartTable:
    """Columns of several series: those over the same x share one column of it, the others follow with their own.

    Attributes
    ----------
    places : list of list of int
        For each chart the column of x and those of the series that the page reads out; empty where there are none.
    """

    def __init__(self, charts: Sequence[Sequence[Series]]) -> None:
        self._head: list[str] = []
        self._columns: list[list[str]] = []
        # Column of x and of the y over it, in the order in which they are first needed.
        groups: list[tuple[Series, list[Series]]] = []
        for one in (s for chart in charts for s in chart):
            same = next((g for g in groups if _same_x(g[0], one)), None)
            if same is None:
                groups.append((one, [one]))
            else:
                same[1].append(one)
        where: dict[int, tuple[int, int]] = {}
        for first, members in groups:
            over = self._add(first.x_label, first.x, 7)
            for one in members:
                where[id(one)] = (over, self._add(one.y_label, one.y, 5))
        self.places: list[list[int]] = []
        for chart in charts:
            shown = [where[id(s)] for s in chart if s.shown]
            self.places.append([shown[0][0], *(y for _, y in shown)] if shown else [])

    def _add(self, label: str, values: Array, digits: int) -> int:
        self._head.append(label)
        self._columns.append([f"{x:.{digits}g}" if np.isfinite(x) else "" for x in values.tolist()])
        return len(self._columns) - 1

    def csv(self) -> str:
        """The table; columns that are shorter than others end in empty cells."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self._head)
        writer.writerows(zip_longest(*self._columns, fillvalue=""))
        return out.getvalue()

    def address(self) -> str:
        """The table as an address that a page can link to."""
        return "data:text/csv;charset=utf-8," + quote(self.csv(), safe=",;:()/+*=!~'")


def _same_x(first: Series, second: Series) -> bool:
    return first.x_label == second.x_label and np.array_equal(first.x, second.x)
