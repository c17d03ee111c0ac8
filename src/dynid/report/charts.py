"""Charts as SVG: parts have CSS classes for their color, and carry their values for the script of the page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.report.chart_data import Series

__all__ = ["Chart", "interval", "number", "plus_minus", "scale_color"]

Array = NDArray[np.float64]

_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 10.0, 10.0, 34.0


def number(value: float) -> str:
    """Format a number with at most four digits."""
    return "-" if value is None or not np.isfinite(value) else f"{value:.4g}"


def plus_minus(value: float, std: float) -> str:
    """A value and its standard deviation, both to the second digit of the latter."""
    if not (np.isfinite(value) and np.isfinite(std) and std > 0):
        return f"{number(value)} \u00b1 {number(std)}"
    place = 1 - int(np.floor(np.log10(std)))
    if not -4 <= place <= 7:  # an exponent is easier to read
        return f"{value:.4g} \u00b1 {std:.2g}"
    return f"{round(value, place):.{max(place, 0)}f} \u00b1 {round(std, place):.{max(place, 0)}f}"


def ticks(low: float, high: float, count: int) -> list[float]:
    """About `count` tick positions between two bounds, at least two."""
    span = max(high - low, 1e-300)
    step = 10.0 ** np.floor(np.log10(span / count))
    for factor in (1.0, 2.0, 5.0, 10.0):
        if span / (factor * step) <= count:
            step *= factor
            break
    first = np.ceil(low / step - 1e-9)
    found = [float(k * step) for k in np.arange(first, np.floor(high / step + 1e-9) + 1)]
    return found if len(found) > 1 or high <= low else ticks(low, high, count + 1)


@dataclass
class Chart:
    """One pair of axes; parts are drawn in the order in which they are added.

    Lines with a name are read out by the script of the page at the pointer. Labels of axes have units.
    """

    x_label: str
    y_label: str
    title: str = ""
    width: float = 720.0
    height: float = 220.0
    log_y: bool = False
    log_x: bool = False
    _parts: list[tuple[str, Any]] = field(default_factory=list)
    _x: list[Array] = field(default_factory=list)
    _y: list[Array] = field(default_factory=list)
    _series: list[Series] = field(default_factory=list)
    _named: list[str] = field(default_factory=list)

    def line(self, x: ArrayLike, y: ArrayLike, kind: str, name: str = "", gaps: bool = False) -> Chart:
        """Add a line with the CSS class `kind`; with `gaps` it breaks at large steps of x."""
        a, b = self._seen(x, y, name or kind, shown=bool(name) and not (self.log_x or self.log_y))
        self._parts.append(("line", (a, b, kind, gaps)))
        return self

    def band(self, x: ArrayLike, low: ArrayLike, high: ArrayLike, kind: str) -> Chart:
        """Add the area between two lines."""
        a, b = self._seen(x, low, "lower")
        _, c = self._seen(x, high, "upper")
        self._parts.append(("band", (a, b, c, kind)))
        return self

    def dots(self, x: ArrayLike, y: ArrayLike, kind: str) -> Chart:
        """Add points."""
        self._parts.append(("dots", (*self._seen(x, y, kind), kind)))
        return self

    def bars(self, x: ArrayLike, y: ArrayLike, width: float, kind: str, base: float = 0.0) -> Chart:
        """Add bars from `base`, each `width` wide in units of x."""
        a, b = self._seen(x, y, kind)
        self._x.append(np.array([a.min() - width / 2, a.max() + width / 2]))
        self._y.append(np.array([base]))
        self._parts.append(("bars", (a, b, width, kind, base)))
        return self

    def marks(self, x: ArrayLike, y: ArrayLike, shares: ArrayLike, words: Sequence[str]) -> Chart:
        """Add circles whose color goes from the first to the last of a scale as `shares` go from 0 to 1."""
        a, b = self._seen(x, y, "position")
        self._parts.append(("marks", (a, b, np.asarray(shares, dtype=float), tuple(words))))
        return self

    def arrows(self, x: ArrayLike, y: ArrayLike, dx: ArrayLike, dy: ArrayLike, kind: str) -> Chart:
        """Add arrows from points, in units of the axes."""
        a, b = self._seen(x, y, "start")
        c, d = self._seen(a + np.asarray(dx, dtype=float), b + np.asarray(dy, dtype=float), "end")
        self._parts.append(("arrows", (a, b, c, d, kind)))
        return self

    def level(self, y: float, kind: str, counts: bool = True) -> Chart:
        """Add a horizontal line; it widens the range of y if it `counts`."""
        if counts:
            self._y.append(np.array([y]))
        self._parts.append(("level", (y, kind)))
        return self

    def spans(self, x: ArrayLike, low: ArrayLike, high: ArrayLike, kind: str) -> Chart:
        """Add vertical lines from `low` to `high`, such as error bars."""
        a, b = self._seen(x, low, "lower")
        _, c = self._seen(x, high, "upper")
        self._parts.append(("spans", (a, b, c, kind)))
        return self

    @property
    def series(self) -> list[Series]:
        """The data of the chart, in the order in which they were added."""
        return self._series

    def _seen(self, x: ArrayLike, y: ArrayLike, name: str, shown: bool = False) -> tuple[Array, Array]:
        """Note data for the ranges of the axes and for the reader, and return them as arrays."""
        a, b = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        self._x.append(a)
        self._y.append(b)
        self._series.append(Series(self.x_label, f"{name}: {self.y_label}", a, b, shown))
        if shown:
            self._named.append(name)
        return a, b

    def placed(self, x: float, y: float) -> str:
        """Return the chart as a part of a larger SVG, with its upper left corner at x, y."""
        size = f'<svg x="{x:g}" y="{y:g}" width="{self.width:g}" height="{self.height:g}" '
        return size + self.svg().removeprefix("<svg ")

    def svg(self, places: Sequence[int] = ()) -> str:
        """Return the chart as SVG; `places` are the columns of the data that the page reads out, see `ChartTable`."""
        x0, x1 = self._range(self._x, self.log_x, 0.0)
        y0, y1 = self._range(self._y, self.log_y, 0.05)
        right, bottom = self.width - _RIGHT, self.height - _BOTTOM

        def u(x: Array | float) -> Array:
            value = np.log10(x) if self.log_x else np.asarray(x)
            return np.asarray(_LEFT + (right - _LEFT) * (value - x0) / (x1 - x0))

        def v(y: Array | float) -> Array:
            value = np.log10(np.maximum(y, 10.0**y0)) if self.log_y else np.asarray(y)
            return np.asarray(bottom - (bottom - _TOP) * (value - y0) / (y1 - y0))

        out = [
            f'<svg class="chart" viewBox="0 0 {self.width:g} {self.height:g}" role="img" '
            f'aria-label="{escape(self.words)}"{self._data(places, x0, x1, y0, y1)}>'
        ]
        for y in self._ticks(y0, y1, self.log_y, max(3, int(self.height / 40))):
            h = float(v(y))
            out.append(f'<path class="grid" d="M{_LEFT:g} {h:.1f}H{right:g}"/>')
            out.append(f'<text class="tick" x="{_LEFT - 6:g}" y="{h + 3.5:.1f}" text-anchor="end">{_tick(y)}</text>')
        for x in self._ticks(x0, x1, self.log_x, max(4, int(self.width / 80))):
            w = float(u(x))
            out.append(f'<path class="grid" d="M{w:.1f} {_TOP:g}V{bottom:g}"/>')
            out.append(f'<text class="tick" x="{w:.1f}" y="{bottom + 14:.1f}" text-anchor="middle">{_tick(x)}</text>')
        # Attributes rather than a class, because other pages have style sheets of their own.
        frame = f"M{_LEFT:g} {_TOP:g}V{bottom:g}H{right:g}"
        out.append(f'<path class="frame" fill="none" stroke="currentColor" stroke-opacity="0.35" d="{frame}"/>')
        out += [self._drawn(kind, part, u, v) for kind, part in self._parts]
        out.append(
            f'<text class="axis" x="{(_LEFT + right) / 2:.1f}" y="{self.height - 4:g}" text-anchor="middle">'
            f"{escape(self.x_label)}</text>"
        )
        turned = (_TOP + bottom) / 2
        out.append(
            f'<text class="axis" transform="translate(9 {turned:.1f}) rotate(-90)" text-anchor="middle">'
            f"{escape(self.y_label)}</text></svg>"
        )
        return "".join(out)

    @property
    def words(self) -> str:
        """What the chart shows, for readers who do not see it."""
        axes = f"{self.y_label} over {self.x_label}"
        return f"{self.title}: {axes}" if self.title else axes

    def _drawn(self, kind: str, part: Any, u: Any, v: Any) -> str:
        """SVG of one part."""
        if kind == "line":
            x, y, look, gaps = part
            return f'<path class="line {look}" d="{_path(u(x), v(y), x if gaps else None)}"/>'
        if kind == "band":
            x, low, high, look = part
            there, back = zip(u(x), v(high), strict=True), zip(u(x)[::-1], v(low)[::-1], strict=True)
            points = "L".join(f"{a:.1f} {b:.1f}" for a, b in (*there, *back))
            return f'<path class="band {look}" d="M{points}Z"/>'
        if kind == "spans":
            x, low, high, look = part
            points = "".join(f"M{a:.1f} {b:.1f}V{c:.1f}" for a, b, c in zip(u(x), v(low), v(high), strict=True))
            return f'<path class="span {look}" d="{points}"/>'
        if kind == "dots":
            x, y, look = part
            points = "".join(f"M{a:.1f} {b:.1f}h0" for a, b in zip(u(x), v(y), strict=True))
            return f'<path class="dots {look}" d="{points}"/>'
        if kind == "bars":
            x, y, width, look, base = part
            ground = float(v(base)) if not self.log_y else float(v(np.min(y) * 1e-6))
            left, right = u(x - 0.45 * width), u(x + 0.45 * width)
            points = "".join(
                f"M{a:.1f} {ground:.1f}V{b:.1f}H{c:.1f}V{ground:.1f}Z"
                for a, b, c in zip(left, v(y), right, strict=True)
            )
            return f'<path class="bars {look}" d="{points}"/>'
        if kind == "marks":
            x, y, shares, words = part
            circles = zip(u(x), v(y), shares, words, strict=True)
            return "".join(
                f'<circle class="mark" cx="{a:.1f}" cy="{b:.1f}" r="5" fill="{scale_color(s)}">'
                f"<title>{escape(text)}</title></circle>"
                for a, b, s, text in circles
            )
        if kind == "arrows":
            x, y, x1, y1, look = part
            ends = zip(u(x), v(y), u(x1), v(y1), strict=True)
            return f'<path class="line {look}" d="{"".join(_arrow(*end) for end in ends)}"/>'
        y, look = part
        h = float(v(y))
        return f'<path class="level {look}" d="M{_LEFT:g} {h:.1f}H{self.width - _RIGHT:g}"/>'

    def _range(self, values: list[Array], log: bool, margin: float) -> tuple[float, float]:
        """Range of an axis, as exponents of ten if it is logarithmic."""
        every = np.concatenate([np.ravel(x) for x in values]) if values else np.zeros(1)
        every = every[np.isfinite(every) & ((every > 0) if log else True)]
        low, high = (float(every.min()), float(every.max())) if every.size else (0.0, 1.0)
        if log:
            low, high = np.log10(low), np.log10(high)
        room = margin * (high - low) or (0.0 if high > low else 0.5 * max(abs(high), 1.0))
        return low - room, high + room

    def _ticks(self, low: float, high: float, log: bool, count: int) -> list[float]:
        """Tick positions of an axis."""
        if not log:
            return ticks(low, high, count)
        step = max(1, int(np.ceil((high - low) / count)))
        whole = [10.0**k for k in range(int(np.ceil(low)), int(np.floor(high)) + 1, step)]
        if len(whole) > 1:
            return whole
        finer = [f * 10.0**k for k in range(int(np.floor(low)), int(np.ceil(high)) + 1) for f in (1, 2, 5)]
        return [x for x in finer if low <= np.log10(x) <= high]

    def _data(self, places: Sequence[int], x0: float, x1: float, y0: float, y1: float) -> str:
        """What the script needs to read out values and to zoom."""
        if not places:
            return ""
        plain = {
            "c": list(places),
            "n": self._named,
            "r": [float(f"{b:.6g}") for b in (x0, x1, y0, y1)],
            "b": [_LEFT, _TOP, self.width - _RIGHT, self.height - _BOTTOM],
            "l": self.x_label,
        }
        return f' data-chart="{escape(json.dumps(plain, separators=(",", ":")))}"'


def scale_color(share: float) -> str:
    """Color of a scale: blue at 0, over grey, red at 1."""
    low, middle, high = np.array([29, 111, 184]), np.array([200, 200, 190]), np.array([209, 73, 91])
    s = 2 * min(max(float(share), 0.0), 1.0)
    rgb = low + s * (middle - low) if s < 1 else middle + (s - 1) * (high - middle)
    return "#" + "".join(f"{round(x):02x}" for x in rgb)


def _arrow(x: float, y: float, x1: float, y1: float) -> str:
    """SVG path of an arrow with a head of a third of its length, five pixels at most."""
    shaft = np.array([x1 - x, y1 - y])
    length = float(np.hypot(*shaft))
    if not np.isfinite(length) or length < 0.5:
        return ""
    back = shaft / length * min(5.0, length / 3)
    side = 0.5 * np.array([-back[1], back[0]])
    (a, b), (c, d) = (np.array([x1, y1]) - back + s * side for s in (1, -1))
    return f"M{x:.1f} {y:.1f}L{x1:.1f} {y1:.1f}M{a:.1f} {b:.1f}L{x1:.1f} {y1:.1f}L{c:.1f} {d:.1f}"


def interval(prior: float | None, value: float, low: float, high: float) -> str:
    """SVG of an estimate with its confidence interval and, as a tick, the a-priori value."""
    seen = [x for x in (prior, low, high) if x is not None and np.isfinite(x)]
    if not seen or not np.isfinite(value):
        return ""
    bottom, top = min(*seen, value), max(*seen, value)
    span = top - bottom or 1.0

    def u(x: float) -> float:
        return 8 + 124 * (x - bottom) / span

    start, stop = (u(x) if np.isfinite(x) else edge for x, edge in ((low, 8.0), (high, 132.0)))
    tick = "" if prior is None else f'<path class="prior" d="M{u(prior):.1f} 2V16"/>'
    return (
        '<svg class="interval" viewBox="0 0 140 18" aria-hidden="true"><path class="ground" d="M4 9H136"/>'
        f'{tick}<path class="range" d="M{start:.1f} 9H{max(stop, start + 0.5):.1f}"/>'
        f'<circle cx="{u(value):.1f}" cy="9" r="3.2"/></svg>'
    )


def _path(u: Array, v: Array, x: Array | None) -> str:
    """SVG path of a line; it breaks at large steps of x."""
    new = np.zeros(len(u), bool)
    if x is not None and len(x) > 2:
        steps = np.diff(x)
        new[1:] = steps > 8 * np.median(steps)
    new[:1] = True
    good = np.isfinite(u) & np.isfinite(v)
    return "".join(f"{'M' if n else 'L'}{a:.1f} {b:.1f}" for a, b, n, g in zip(u, v, new, good, strict=True) if g)


def _tick(value: float) -> str:
    """Short text of a tick value."""
    if abs(value) < 1e-12:
        return "0"
    plain = f"{value:.4g}"
    shown = plain if len(plain) < 6 else f"{value:.0e}"
    return shown.replace("e-0", "e-").replace("e+0", "e")
