"""A picture of measured against predicted torques, joint by joint, as SVG."""

from __future__ import annotations

from html import escape

import numpy as np
from numpy.typing import NDArray

from dynid.identification.validation import Validation

__all__ = ["torque_figure"]

Array = NDArray[np.float64]

_WIDTH, _PANEL, _LEFT, _TOP = 900, 130, 90, 60
_MEASURED, _PREDICTED, _ERROR = "#7b8794", "#1d6fb8", "#d1495b"
_MOST_POINTS = 1500


def torque_figure(validation: Validation, title: str) -> str:
    """One panel a joint: measured and predicted torque over time, and their difference."""
    height = _TOP + len(validation.channels) * (_PANEL + 30) + 20
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH + _LEFT + 30}" height="{height}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="28" font-size="18" font-weight="bold" fill="#1d2b3a">{escape(title)}</text>',
    ]
    x = _LEFT
    for words, colour in (("measured", _MEASURED), ("predicted", _PREDICTED), ("difference", _ERROR)):
        out.append(f'<text x="{x}" y="48" fill="{colour}">{words}</text>')
        x += 80
    for i, channel in enumerate(validation.channels):
        out += _panel(validation, i, channel, _TOP + i * (_PANEL + 30))
    return "\n".join([*out, "</svg>", ""])


def _panel(validation: Validation, i: int, channel: str, top: float) -> list[str]:
    t, measured, predicted = validation.time[i], validation.measured[i], validation.predicted[i]
    step = max(1, len(t) // _MOST_POINTS)
    t, measured, predicted = t[::step], measured[::step], predicted[::step]
    low = float(min(measured.min(), predicted.min(), 0.0))
    high = float(max(measured.max(), predicted.max(), 0.0))
    span = max(high - low, 1e-12)
    duration = max(float(t[-1] - t[0]), 1e-12)

    def path(y: Array, colour: str, width: float) -> str:
        u = _LEFT + _WIDTH * (t - t[0]) / duration
        v = top + _PANEL * (high - y) / span
        # Rows that were left out break the line.
        gap = np.concatenate([[True], np.diff(t) > 5 * np.median(np.diff(t))]) if len(t) > 2 else np.ones(len(t), bool)
        points = "".join(f"{'M' if g else 'L'}{a:.1f} {b:.1f}" for a, b, g in zip(u, v, gap, strict=True))
        return f'<path d="{points}" fill="none" stroke="{colour}" stroke-width="{width}"/>'

    label = f"{channel}: RMSE {validation.rmse[i]:.3g}, {100 * validation.relative[i]:.1f} %"
    return [
        f'<rect x="{_LEFT}" y="{top}" width="{_WIDTH}" height="{_PANEL}" fill="#f4f6f8"/>',
        path(measured, _MEASURED, 2.5),
        path(predicted, _PREDICTED, 1.2),
        path(measured - predicted, _ERROR, 1.0),
        f'<text x="{_LEFT + 6}" y="{top + 14}" fill="#1d2b3a">{escape(label)}</text>',
        f'<text x="{_LEFT - 6}" y="{top + 12}" text-anchor="end" fill="#52606d">{high:.3g}</text>',
        f'<text x="{_LEFT - 6}" y="{top + _PANEL}" text-anchor="end" fill="#52606d">{low:.3g}</text>',
        f'<text x="{_LEFT + _WIDTH}" y="{top + _PANEL + 14}" text-anchor="end" fill="#52606d">{duration:.3g} s</text>',
    ]
