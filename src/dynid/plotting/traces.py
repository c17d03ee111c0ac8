"""Signals over time: panels of lines with their limits, and measured against predicted signals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import UnknownName
from dynid.patterns import matching_names
from dynid.plotting.labels import axis_label
from dynid.plotting.style import LIMIT, MEASURED, PREDICTED, RESIDUAL, UNDERLAY, axes_of, shared_legend, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["TIME", "Line", "Pair", "Panel", "chosen_joints", "draw_pairs", "draw_panels", "legend_above", "with_gaps"]

Array = NDArray[np.float64]

TIME = "time (s)"
# A step of time that is this many times the usual one is a gap, over which no line is drawn.
_GAP = 5.0
_LEGEND_COLUMNS = 7


@dataclass(frozen=True, eq=False)
class Line:
    """A line: times and values (N,), its name in the legend ("" for none), color and dashes."""

    x: Array
    y: Array
    name: str
    color: str
    dashes: str = "-"
    width: float = 1.1
    alpha: float = 1.0


@dataclass(frozen=True, eq=False)
class Panel:
    """Lines over time with one label of the y axis; `limits` are levels with their color, `marks` are times."""

    label: str
    lines: tuple[Line, ...]
    limits: tuple[tuple[float, str], ...] = ()
    marks: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Pair:
    """A measured and a predicted signal (N,) of a channel over time (N,), in `unit`; without rows it stands still."""

    name: str
    unit: str
    time: Array
    measured: Array
    predicted: Array


def chosen_joints(joints: str | Sequence[str] | None, names: Sequence[str]) -> list[int]:
    """Numbers of the joints that patterns name; all of them for None.

    Raises
    ------
    DataError
        If a pattern matches no joint.
    """
    if joints is None:
        return list(range(len(names)))
    found: list[int] = []
    for pattern in [joints] if isinstance(joints, str) else joints:
        matched = matching_names(pattern, names)
        if not matched:
            raise UnknownName(f"no joint matches '{pattern}', the joints are {', '.join(names)}", "joints")
        found += [names.index(name) for name in matched]
    return sorted(set(found))


def with_gaps(t: Array, *signals: Array) -> list[Array]:
    """Times and signals (N,) with NaN where time leaps or goes back, so that no line is drawn there."""
    steps = np.diff(t)
    if not len(steps):
        return [t, *signals]
    usual = float(np.median(steps))
    places = np.flatnonzero((steps > _GAP * usual) | (steps < 0)) + 1
    return [np.insert(np.asarray(x, dtype=float), places, np.nan) for x in (t, *signals)]


def legend_above(ax: Axes) -> None:
    """The legend of the lines of some axes, above them."""
    handles, names = ax.get_legend_handles_labels()
    if names:
        columns = min(len(names), _LEGEND_COLUMNS)
        ax.legend(handles, names, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns, borderaxespad=0.2)


def draw_panels(panels: Sequence[Panel], ax: Any = None, *, height: float = 1.6, abscissa: str = TIME) -> NDArray[Any]:
    """Draw panels below each other, with one legend above the first.

    Returns
    -------
    ndarray of Axes, shape (panel,)
    """
    with styled():
        (axes,) = axes_of(1, (1.0,) * len(panels), ax=ax, size=(7.0, height * len(panels)))
        for place, panel in zip(axes, panels, strict=True):
            for line in panel.lines:
                style = {"color": line.color, "linestyle": line.dashes, "linewidth": line.width, "alpha": line.alpha}
                place.plot(line.x, line.y, label=line.name or None, **style)
            for level, color in panel.limits:
                place.axhline(level, color=color, linewidth=0.8, linestyle=(0, (6, 3)), alpha=0.8)
            for when in panel.marks:
                place.axvline(when, color=LIMIT, linewidth=0.7, linestyle=":")
            place.set_ylabel(panel.label)
            place.margins(x=0.0)
        axes[-1].set_xlabel(abscissa)
        legend_above(axes[0])
        _align(axes)
    return axes


def draw_pairs(
    pairs: Sequence[Pair], ax: Any = None, *, quantity: str = "torque", band: float | None = None
) -> NDArray[Any]:
    """Draw measured and predicted signals, with the residual on its own axis below each.

    Dashed lines beside the residual show `band` times the range of the measured signal.

    Returns
    -------
    ndarray of Axes, shape (channel, 2)
        The axes of the signals, and those of the residuals.
    """
    count = len(pairs)
    columns = 1 if count == 1 else 2
    with styled():
        axes = axes_of(count, (2.2, 1.0), ax=ax, columns=columns, size=(7.0, 2.6 if count > 1 else 3.4))
        for (top, below), pair in zip(axes, pairs, strict=True):
            name = "force" if pair.unit == "N" else quantity
            t, measured, predicted = with_gaps(pair.time, pair.measured, pair.predicted)
            # The measured line is the wider one below, so that it is seen where the two agree.
            top.plot(t, measured, color=UNDERLAY, linewidth=2.6, label="measured")
            top.plot(t, predicted, color=PREDICTED, linewidth=1.0, label="predicted")
            below.plot(t, measured - predicted, color=RESIDUAL, linewidth=0.8, label="residual")
            below.axhline(0.0, color=MEASURED, linewidth=0.6)
            if band is not None and len(pair.measured):
                for level in np.array([-band, band]) * np.ptp(pair.measured):
                    below.axhline(level, color=MEASURED, linewidth=0.8, linestyle="--")
            top.set_title(pair.name if len(pair.time) else f"{pair.name}: stands still")
            top.set_ylabel(axis_label(name, pair.unit))
            below.set_ylabel(axis_label("residual", pair.unit))
            below.margins(x=0.0)
            _align(np.array([top, below]))
        for _, below in axes[-columns:]:
            below.set_xlabel(TIME)
        shared_legend(axes, ax is None)
    return axes


def _align(axes: NDArray[Any]) -> None:
    """Labels of y axes below each other are aligned."""
    axes[0].figure.align_ylabels(list(axes))
