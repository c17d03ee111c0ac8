"""Charts of values: intervals of parameters beside their prior, curves through measured points, and bars of errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.plotting.labels import axis_label
from dynid.plotting.style import LIMIT, MEASURED, PREDICTED, PRIOR, axes_of, look_of, styled

__all__ = ["Curves", "Interval", "draw_curves", "draw_intervals"]

Array = NDArray[np.float64]

# Inches per parameter, and for the labels of a chart.
_ROW, _HEAD = 0.19, 0.75
_MOST_DOTS = 4000


@dataclass(frozen=True)
class Interval:
    """A value with its interval and its prior, all in `unit`."""

    name: str
    unit: str
    value: float
    low: float
    high: float
    prior: float


@dataclass(frozen=True, eq=False)
class Curves:
    """Curves y(x) by name, the first one the best, through measured points (N,) and their means with intervals.

    A curve is drawn apart for negative and positive x: friction jumps at rest.
    """

    title: str
    x_label: str
    y_label: str
    x: Array
    y: Array
    mean_x: Array
    mean: Array
    reach: Array
    grid: Array
    curves: Mapping[str, Array]


def draw_intervals(intervals: Sequence[Interval], ax: Any = None) -> NDArray[Any]:
    """Draw values with intervals and priors as rows, with one chart per unit.

    Returns
    -------
    ndarray of Axes, shape (unit,)
    """
    groups: dict[str, list[Interval]] = {}
    for one in intervals:
        groups.setdefault(one.unit, []).append(one)
    charts = sorted(groups.items(), key=lambda item: -len(item[1]))
    with styled() as pyplot:
        if ax is None:
            axes = _packed(pyplot, [len(group) for _, group in charts])
        else:
            axes = axes_of(len(groups), ax=ax, columns=min(len(groups), 2))[:, 0]
        for place, (unit, group) in zip(axes, charts, strict=True):
            at = np.arange(len(group))
            value, low, high, prior = (
                np.array([getattr(x, k) for x in group]) for k in ("value", "low", "high", "prior")
            )
            place.axvline(0.0, color=LIMIT, linewidth=0.6)
            place.scatter(
                prior, at, marker="D", s=20, facecolors="none", edgecolors=PRIOR, linewidths=1.0, label="a priori"
            )
            place.errorbar(
                value,
                at,
                xerr=np.array([value - low, high - value]),
                fmt="o",
                markersize=3.2,
                color=PREDICTED,
                elinewidth=1.2,
                capsize=2.5,
                label="estimate",
            )
            place.set_yticks(at, [x.name for x in group])
            place.set_ylim(len(group) - 0.4, -0.6)
            place.grid(axis="y", visible=False)
            place.set_xlabel(axis_label("value", unit))
            _scale(place, value, prior, high - low)
        axes[0].legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, borderaxespad=0.2)
    return axes


def _packed(pyplot: Any, counts: Sequence[int]) -> NDArray[Any]:
    """Axes for lists of so many rows, longest first, in one or two columns, with rows of equal height."""
    columns: list[list[int]] = [[]] if len(counts) == 1 else [[], []]
    taken = [0.0] * len(columns)
    for k, count in enumerate(counts):
        shortest = int(np.argmin(taken))
        columns[shortest].append(k)
        taken[shortest] += _HEAD + _ROW * count
    figure = pyplot.figure(figsize=(7.0 if len(columns) > 1 else 4.5, 0.4 + max(taken)), layout="constrained")
    grid = figure.add_gridspec(1, len(columns))
    axes = np.empty(len(counts), dtype=object)
    for place, members in enumerate(columns):
        heights = [_HEAD + _ROW * counts[k] for k in members]
        left = max(taken) - sum(heights)
        inner = grid[place].subgridspec(len(members) + 1, 1, height_ratios=[*heights, max(left, 1e-3)])
        for row, k in enumerate(members):
            axes[k] = figure.add_subplot(inner[row])
    return axes


def _scale(place: Any, value: Array, prior: Array, width: Array) -> None:
    """A logarithmic axis beyond the smallest values where they span more than two decades."""
    sizes = np.abs(np.concatenate([value, prior]))
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    if not sizes.size or sizes.max() < 100.0 * np.median(sizes):
        return
    threshold = 10.0 ** np.floor(np.log10(np.quantile(sizes, 0.25)))
    place.set_xscale("symlog", linthresh=threshold, linscale=1.0)
    place.margins(x=0.05)
    # Few ticks on each side: those next to zero would overlap it.
    decades = int(np.ceil(np.log10(sizes.max() / threshold)))
    marks = [threshold * 10.0**k for k in range(1, decades + 1, max(1, decades // 2))]
    lowest = float(np.min(value - 0.5 * width, initial=0.0))
    negative = [-m for m in marks if m <= -lowest]
    place.set_xticks([*negative[::-1], 0.0, *marks])


def draw_curves(curves: Sequence[Curves], ax: Any = None) -> NDArray[Any]:
    """Draw curves through measured points, with one chart per joint.

    Returns
    -------
    ndarray of Axes, shape (chart,)
    """
    columns = 1 if len(curves) == 1 else 2
    with styled():
        size = (5.0, 3.2) if len(curves) == 1 else (7.0, 2.8)
        axes = axes_of(len(curves), ax=ax, columns=columns, size=size)[:, 0]
        for place, one in zip(axes, curves, strict=True):
            step = max(1, len(one.x) // _MOST_DOTS)
            dots = {"s": 2.0, "color": LIMIT, "alpha": 0.35, "linewidths": 0.0, "rasterized": True}
            place.scatter(one.x[::step], one.y[::step], label="measured", **dots)
            style = {"fmt": "o", "markersize": 3.0, "elinewidth": 1.0, "zorder": 3}
            place.errorbar(one.mean_x, one.mean, yerr=one.reach, color=MEASURED, label="mean, 95 %", **style)
            for k, (name, y) in reversed(list(enumerate(one.curves.items()))):
                look = look_of(k)
                width = 1.8 if k == 0 else 1.0
                jump = np.where((one.grid[1:] > 0) & (one.grid[:-1] < 0))[0] + 1
                x, drawn = np.insert(one.grid, jump, np.nan), np.insert(y, jump, np.nan)
                place.plot(x, drawn, color=look.color, linewidth=width, label=name, zorder=4 if k == 0 else 2)
            low, high = np.quantile(one.y, [0.002, 0.998])
            low, high = (
                min(low, 0.0, *(float(y.min()) for y in one.curves.values())),
                max(high, 0.0, *(float(y.max()) for y in one.curves.values())),
            )
            place.set_ylim(low - 0.06 * (high - low), high + 0.06 * (high - low))
            place.set_title(one.title)
            place.set_xlabel(one.x_label)
            place.set_ylabel(one.y_label)
            # Below the axis: the names of models are long, and points are everywhere.
            place.legend(
                loc="upper left", bbox_to_anchor=(-0.05, -0.2), ncols=3 - columns, borderaxespad=0.0, columnspacing=1.0
            )
    return axes
