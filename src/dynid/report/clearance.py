"""How close motions come to what is in their way, over time, as SVG."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np

from dynid.excitation.collision import Collision
from dynid.excitation.excitation import Excitation

__all__ = ["clearance_figure"]

_WIDTH, _HEIGHT, _LEFT, _TOP = 640, 240, 70, 40
_COLOURS = ("#d1495b", "#1d6fb8", "#2a9d5c", "#8d6a9f")
_INK, _GREY = "#1d2b3a", "#52606d"
_POINTS = 600


def clearance_figure(motions: Mapping[str, Excitation], collision: Collision) -> str:
    """Closest distance (m) of all pairs along each motion, with the clearance that is asked for."""
    lines = {}
    for name, motion in motions.items():
        t = np.linspace(0.0, motion.duration, _POINTS + 1)
        lines[name] = (t, collision.distances(motion.at(t)[0]).min(axis=1))
    end = max(float(t[-1]) for t, _ in lines.values())
    low = min(0.0, *(float(d.min()) for _, d in lines.values()))
    high = max(2 * collision.distance, *(float(d.max()) for _, d in lines.values()))

    def x(t: float) -> float:
        return _LEFT + _WIDTH * t / end

    def y(d: float) -> float:
        return _TOP + _HEIGHT * (high - d) / (high - low)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH + _LEFT + 20}" height="{_HEIGHT + _TOP + 70}" '
        f'font-family="sans-serif" font-size="12" fill="{_INK}">',
        f'<rect width="100%" height="100%" fill="white"/><text x="{_LEFT}" y="20">closest distance, m</text>',
    ]
    for value, words in ((0.0, "touching"), (collision.distance, "clearance")):
        out.append(
            f'<line x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="{_GREY}" '
            f'stroke-dasharray="4 3"/><text x="{_LEFT + _WIDTH}" y="{y(value) - 4:.1f}" text-anchor="end" '
            f'fill="{_GREY}">{words}</text>'
        )
    for value in (low, high):
        out.append(f'<text x="{_LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.2f}</text>')
    out.append(f'<text x="{_LEFT + _WIDTH}" y="{_TOP + _HEIGHT + 18}" text-anchor="end">{end:g} s</text>')
    for k, (name, (t, d)) in enumerate(lines.items()):
        colour = _COLOURS[k % len(_COLOURS)]
        points = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in zip(t, d, strict=True))
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        out.append(f'<text x="{_LEFT + 180 * k}" y="{_TOP + _HEIGHT + 50}" fill="{colour}">{escape(name)}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"
