"""A picture of friction against speed: what was measured, and the curves of the models, as SVG."""

from __future__ import annotations

from html import escape

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.friction.map import FrictionMap
from dynid.friction.result import FrictionFit

__all__ = ["friction_figure"]

Array = NDArray[np.float64]

_WIDTH, _HEIGHT, _LEFT, _TOP = 820, 420, 80, 64
_POINT, _BAR, _BEST = "#7b8794", "#1d2b3a", "#d1495b"
_OTHERS = ("#1d6fb8", "#2a9d5c", "#f2b134", "#8e5ea2", "#52606d", "#e07a5f")
_MOST_POINTS = 3000
_BINS = 40


def friction_figure(fit: FrictionFit, title: str, measured: FrictionMap | None = None, others: int = 3) -> str:
    """Friction over speed: the rows behind a fit (or a friction map), their means, and the curves of its best models.

    Curves of friction that depends on load or temperature are those of the rows' mean load and temperature.
    """
    if not len(fit.speed):
        raise DataError(f"the fit of '{fit.joint}' has no points to draw")
    speed, torque = fit.speed, fit.friction
    reach = 1.05 * max(fit.fastest, float(np.abs(speed).max()))
    even = bool(np.all(speed > 0))
    v = np.linspace(0.0 if even else -reach, reach, 801)
    v[np.abs(v) < 1e-9 * reach] = 1e-9 * reach
    curves = [(f, f.curve(v, fit.mean_load, fit.mean_temperature)) for f in fit.ranking[: 1 + others]]
    shown = np.concatenate([np.quantile(torque, [0.002, 0.998]), curves[0][1]])
    low, high = min(0.0, float(shown.min())), max(0.0, float(shown.max()))
    low, high = low - 0.06 * (high - low), high + 0.06 * (high - low)

    def at(x: Array | float, y: Array | float) -> tuple[Array, Array]:
        u = _LEFT + _WIDTH * (np.asarray(x) - v[0]) / (v[-1] - v[0])
        return np.asarray(u), np.asarray(_TOP + _HEIGHT * (high - np.asarray(y)) / (high - low))

    def path(y: Array) -> str:
        u, w = at(v, np.clip(y, low, high))
        # A sharp step at rest is no line.
        breaks = np.append(True, np.diff(np.sign(v)) != 0)
        return "".join(f"{'M' if b else 'L'}{a:.1f} {c:.1f}" for a, c, b in zip(u, w, breaks, strict=True))

    total = _TOP + _HEIGHT + 50
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH + _LEFT + 30}" height="{total}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="26" font-size="18" font-weight="bold" fill="#1d2b3a">{escape(title)}</text>',
        f'<rect x="{_LEFT}" y="{_TOP}" width="{_WIDTH}" height="{_HEIGHT}" fill="#f4f6f8"/>',
        *_axes(at, v, low, high),
    ]
    step = max(1, len(speed) // _MOST_POINTS)
    inside = (torque >= low) & (torque <= high)
    for a, b in zip(*at(speed[inside][::step], torque[inside][::step]), strict=True):
        out.append(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="1.6" fill="{_POINT}" fill-opacity="0.35"/>')
    centre, mean, spread = (measured.speed, measured.friction, measured.std) if measured else _means(speed, torque)
    for x, y, s in zip(centre, mean, spread, strict=True):
        (a, up), (_, down), (_, b) = at(x, y + 2 * s), at(x, y - 2 * s), at(x, y)
        out.append(
            f'<line x1="{a:.1f}" y1="{up:.1f}" x2="{a:.1f}" y2="{down:.1f}" stroke="{_BAR}" stroke-width="1.5"/>'
            f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{_BAR}"><title>{x:.4g} rad/s: {y:.4g} N m</title></circle>'
        )
    x, lines = float(_LEFT), []
    for k, (f, y) in enumerate(curves):
        colour, width = (_BEST, 2.5) if k == 0 else (_OTHERS[(k - 1) % len(_OTHERS)], 1.2)
        words = f"{f.name} ({f.rms:.3g} N m)"
        lines.append(f'<path d="{path(y)}" fill="none" stroke="{colour}" stroke-width="{width}"/>')
        out.append(f'<text x="{x:.0f}" y="48" fill="{colour}">{escape(words)}</text>')
        x += 24 + 6.6 * len(words)
    out += reversed(lines)
    return "\n".join([*out, "</svg>", ""])


def _axes(at, v: Array, low: float, high: float) -> list[str]:  # type: ignore[no-untyped-def]
    (left, rest), (right, _), (zero, top), (_, bottom) = at(v[0], 0.0), at(v[-1], 0.0), at(0.0, high), at(0.0, low)
    line = 'stroke="#d9dde3" stroke-width="1"'
    return [
        f'<line x1="{left:.1f}" y1="{rest:.1f}" x2="{right:.1f}" y2="{rest:.1f}" {line}/>',
        f'<line x1="{zero:.1f}" y1="{top:.1f}" x2="{zero:.1f}" y2="{bottom:.1f}" {line}/>',
        f'<text x="{_LEFT - 6}" y="{top + 10:.0f}" text-anchor="end" fill="#52606d">{high:.3g}</text>',
        f'<text x="{_LEFT - 6}" y="{bottom:.0f}" text-anchor="end" fill="#52606d">{low:.3g}</text>',
        f'<text x="{_LEFT - 6}" y="{0.5 * (top + bottom):.0f}" text-anchor="end" fill="#52606d">N m</text>',
        f'<text x="{left:.0f}" y="{bottom + 18:.0f}" fill="#52606d">{v[0]:.3g}</text>',
        f'<text x="{right:.0f}" y="{bottom + 18:.0f}" text-anchor="end" fill="#52606d">{v[-1]:.3g} rad/s</text>',
    ]


def _means(speed: Array, torque: Array) -> tuple[Array, Array, Array]:
    """Means of the points in bins of speed with their deviations; the points themselves where they are few."""
    if len(speed) <= 2 * _BINS:
        return speed, torque, np.zeros_like(torque)
    edges = np.linspace(speed.min(), speed.max() * (1 + 1e-12), _BINS + 1)
    label = np.clip(np.searchsorted(edges, speed, side="right") - 1, 0, _BINS - 1)
    found = []
    for k in range(_BINS):
        own = label == k
        # Both signs in one bin would average to nothing.
        if own.sum() >= 5 and not (edges[k] < 0 < edges[k + 1]):
            found.append((speed[own].mean(), torque[own].mean(), torque[own].std(ddof=1) / np.sqrt(own.sum())))
    table = np.array(found).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]
