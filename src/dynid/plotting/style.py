"""The style of all figures: palette, line widths and fonts, and the layout of axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DynidError, InvalidShape

if TYPE_CHECKING:
    from types import ModuleType

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.gridspec import GridSpecBase

__all__ = [
    *("LIMIT", "MEASURED", "PALETTE", "PREDICTED", "PRIOR", "RESIDUAL", "SETTINGS", "UNDERLAY"),
    *("Look", "axes_of", "look_of", "shared_legend", "styled"),
]

# The palette of Okabe and Ito without its yellow, which is too light on white: told apart with every color blindness.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MEASURED, PREDICTED, RESIDUAL, PRIOR, LIMIT = "#4D4D4D", PALETTE[0], PALETTE[1], PALETTE[1], "#8C8C8C"
UNDERLAY = "#B3B3B3"
# Lines beyond the colors of the palette differ by their dashes.
_DASHES = ("-", "--", ":", "-.")
SETTINGS: dict[str, Any] = {
    "font.size": 9.0,
    "axes.titlesize": 9.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9.0,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "axes.prop_cycle": f"cycler('color', {list(PALETTE)})",
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.6,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "legend.fontsize": 8.0,
    "legend.frameon": False,
    "legend.handlelength": 1.6,
    "lines.linewidth": 1.1,
    "figure.dpi": 120.0,
    "savefig.dpi": 200.0,
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}


class Look(NamedTuple):
    """Color and dashes of a line."""

    color: str
    dashes: str


def look_of(number: int) -> Look:
    """The look of one of many lines, by its number from 0."""
    turn, place = divmod(number, len(PALETTE))
    return Look(PALETTE[place], _DASHES[turn % len(_DASHES)])


def _pyplot() -> ModuleType:
    try:
        from matplotlib import pyplot
    except ImportError:
        raise DynidError("plots need matplotlib: pip install 'dynid[plots]'", code="missing_package") from None
    return pyplot


@contextmanager
def styled() -> Iterator[ModuleType]:
    """The style as long as a figure is drawn, and `matplotlib.pyplot`; the settings of the user are not changed.

    Raises
    ------
    DynidError
        If matplotlib is not installed.
    """
    pyplot = _pyplot()
    with pyplot.rc_context(SETTINGS):
        yield pyplot


def shared_legend(axes: NDArray[Any], own: bool) -> None:
    """One legend for several charts: outside of them in a figure of our own, within the first one otherwise."""
    first = axes.reshape(-1)[0]
    handles, names = first.get_legend_handles_labels()
    if own:
        first.figure.legend(handles, names, loc="outside upper right", ncols=len(names))
    else:
        first.legend(handles, names)


def axes_of(
    cells: int,
    heights: Sequence[float] = (1.0,),
    *,
    ax: Axes | Sequence[Axes] | NDArray[Any] | None = None,
    columns: int = 1,
    size: tuple[float, float] = (7.0, 1.9),
) -> NDArray[Any]:
    """Axes for `cells` charts in a grid, each a stack of axes that share their x axis.

    Parameters
    ----------
    cells : int
        Number of charts.
    heights : sequence of float
        Relative heights of the axes of a chart, from the top.
    ax : Axes, sequence of Axes or None
        Axes to draw into: all that are needed, or one, whose place is divided if more are needed. By default a new
        figure is made.
    columns : int
        Most columns of the grid.
    size : tuple of float
        Width of the figure and height of each row of charts in inches.

    Returns
    -------
    ndarray of Axes, shape (cells, len(heights))

    Raises
    ------
    DataError
        If another number of axes is given.
    """
    count = cells * len(heights)
    if ax is None:
        rows = -(-cells // columns)
        figure = _pyplot().figure(figsize=(size[0], 0.4 + size[1] * rows), layout="constrained")
        return _stacks(figure, figure.add_gridspec(rows, min(columns, cells)), cells, heights)
    given = np.array(ax, dtype=object).reshape(-1)
    if len(given) == count:
        return given.reshape(cells, len(heights))
    if len(given) != 1:
        raise InvalidShape(f"this plot needs {count} axes, or one whose place it divides, got {len(given)}", "ax")
    (place,) = given
    place.set_axis_off()
    rows, wide = -(-cells // columns), min(columns, cells)
    spec = place.get_subplotspec()
    if spec is not None:
        return _stacks(place.figure, spec.subgridspec(rows, wide), cells, heights)
    box = place.get_position()
    edges = {"left": box.x0, "right": box.x1, "bottom": box.y0, "top": box.y1}
    return _stacks(place.figure, place.figure.add_gridspec(rows, wide, **edges), cells, heights)


def _stacks(figure: Figure | SubFigure, grid: GridSpecBase, cells: int, heights: Sequence[float]) -> NDArray[Any]:
    """New axes in the places of a grid."""
    out = np.empty((cells, len(heights)), dtype=object)
    for cell in range(cells):
        row, column = divmod(cell, grid.ncols)
        inner = grid[row, column].subgridspec(len(heights), 1, height_ratios=heights)
        for k in range(len(heights)):
            out[cell, k] = figure.add_subplot(inner[k], sharex=out[cell, 0] if k else None)
            if k + 1 < len(heights):
                out[cell, k].tick_params(labelbottom=False)
    return out
