"""Figures as SVG files: charts of the report in rows, with a title and a legend.

Drawn by the report's own charts rather than by matplotlib, so that the `--figure` options work in the default install.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from dynid.report.charts import Chart

__all__ = ["COLORS", "sheet"]

COLORS = {
    "measured": "#7b8794",
    "predicted": "#1d6fb8",
    "error": "#d1495b",
    "limit": "#d1495b",
    "bars": "#2a9d5c",
    "mean": "#1d2b3a",
    "zero": "#d9dde3",
    "third": "#2a9d5c",
    "fourth": "#f2b134",
    "fifth": "#8e5ea2",
    "sixth": "#52606d",
    "seventh": "#e07a5f",
}
_STYLE = (
    "text{font:12px Helvetica,Arial,sans-serif;fill:#52606d}.title{font-size:18px;font-weight:bold;fill:#1d2b3a}"
    ".name{font-size:13px;fill:#1d2b3a}.tick,.axis{font-size:11px}.grid{stroke:#e9edf1;fill:none}"
    ".line{fill:none;stroke-width:1.4}.line.measured{stroke-width:2.4}.line.best{stroke-width:2.6}"
    ".level{fill:none}.level.limit{stroke-dasharray:5 3}.span{fill:none;stroke-width:1.5}"
    ".dots{fill:none;stroke-width:3;stroke-linecap:round}.dots.measured{opacity:.35}.dots.mean{stroke-width:6}"
    + "".join(f".{kind}{{stroke:{color}}}" for kind, color in COLORS.items())
    + f".bars{{stroke:none;fill:{COLORS['bars']}}}"
)
_MARGIN, _GAP = 20.0, 16.0


def sheet(title: str, rows: Sequence[tuple[str, Sequence[Chart]]], legend: Sequence[tuple[str, str]] = ()) -> str:
    """Return one SVG file with a title, a legend of (color, words), and rows of (name, charts)."""
    top = 66.0 if legend else 46.0
    heights = [24.0 + max(chart.height for chart in charts) for _, charts in rows]
    wide = max(sum(chart.width + _GAP for chart in charts) for _, charts in rows)
    width, height = wide + 2 * _MARGIN, top + sum(heights) + _MARGIN
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}"><style>{_STYLE}</style>',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text class="title" x="{_MARGIN:g}" y="30">{escape(title)}</text>',
    ]
    left = _MARGIN
    for color, words in legend:
        out.append(f'<text x="{left:.0f}" y="52" style="fill:{COLORS[color]}">{escape(words)}</text>')
        left += 24 + 6.6 * len(words)
    for (name, charts), tall in zip(rows, heights, strict=True):
        out.append(f'<text class="name" x="{_MARGIN:g}" y="{top + 16:g}">{escape(name)}</text>')
        left = _MARGIN
        for chart in charts:
            out.append(chart.placed(left, top + 22))
            left += chart.width + _GAP
        top += tall
    return "\n".join([*out, "</svg>", ""])
