"""A posture as a stick figure whose links are colored by how much the motion so far leaves to learn of them."""

from __future__ import annotations

from html import escape

import numpy as np
from numpy.typing import NDArray

from dynid.excitation.live import LiveExcitation
from dynid.excitation.live_colors import UNKNOWN, color_of
from dynid.robot.skeleton import bars, poses

__all__ = ["posture_figure"]

Array = NDArray[np.float64]

_SIZE, _MARGIN, _LINE, _STROKE = 360.0, 30.0, 16.0, 7.0
# Seen from the front left, a little from above.
_AZIMUTH, _ELEVATION = np.radians(-60.0), np.radians(20.0)


def posture_figure(live: LiveExcitation) -> str:
    """Draw the last posture of a live score, each link in the color of what is left to learn of it.

    Parameters
    ----------
    live : LiveExcitation
        The score, of a robot or of a person.

    Returns
    -------
    str
        The SVG file. Blue links are known up to the target, red ones not at all, gray ones have no parameters.
    """
    score = live.score()
    left = {x.name: x.relative_std / 100 for x in score.segments}
    lines = [(live.robot.links[i].name, points) for i, points in _lines(live)]
    lines.sort(key=lambda line: -left.get(line[0], 0.0))
    height = _SIZE + 2 * _MARGIN + _LINE * len(left)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_SIZE + 2 * _MARGIN:g} {height:g}" role="img" '
        'font-family="sans-serif" font-size="11">',
        f"<title>{escape(live.robot.name)}: next, {escape(str(score.advice))}</title>",
    ]
    for name, ends in reversed(lines):
        (x1, y1), (x2, y2) = ends
        parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{_color(left.get(name), live)}" '
            f'stroke-width="{_STROKE:g}" stroke-linecap="round"><title>{_words(name, left.get(name))}</title></line>'
        )
    for k, (name, share) in enumerate(left.items()):
        y = _SIZE + 2 * _MARGIN + _LINE * k
        parts.append(f'<rect x="{_MARGIN:g}" y="{y - 9:.1f}" width="10" height="10" fill="{_color(share, live)}"/>')
        parts.append(f'<text x="{_MARGIN + 16:g}" y="{y:.1f}" fill="currentColor">{_words(name, share)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _color(share: float | None, live: LiveExcitation) -> str:
    return UNKNOWN if share is None else color_of(share, live.target)


def _words(name: str, share: float | None) -> str:
    left = "no parameters" if share is None else f"{100 * share:.0f} % of the uncertainty left"
    return f"{escape(name)}: {left}"


def _lines(live: LiveExcitation) -> list[tuple[int, Array]]:
    """Link and both ends (2, 2) on the page of every bar."""
    placed = poses(live.robot, live.posture)
    drawn = bars(live.robot)
    if not drawn:
        return []
    ends = np.array([[placed[b.link, :3, :3] @ x + placed[b.link, :3, 3] for x in (b.start, b.end)] for b in drawn])
    toward = np.array([np.cos(_AZIMUTH), np.sin(_AZIMUTH), 0.0])
    right = np.array([-toward[1], toward[0], 0.0])
    up = np.cos(_ELEVATION) * np.array([0.0, 0.0, 1.0]) - np.sin(_ELEVATION) * toward
    seen = np.stack([ends @ right, -ends @ up], axis=-1)
    low = seen.min(axis=(0, 1))
    scale = _SIZE / max(float((seen.max(axis=(0, 1)) - low).max()), 1e-9)
    return [(b.link, points) for b, points in zip(drawn, _MARGIN + scale * (seen - low), strict=True)]
