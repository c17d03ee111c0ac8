"""Figure of the benchmark: torque errors per method, robot and case, as SVG."""

from __future__ import annotations

from html import escape

import numpy as np
import polars as pl

from studies.benchmark.benchmark import Benchmark

__all__ = ["benchmark_figure"]

_LEFT, _TOP, _PANEL, _GAP, _ROW = 170, 100, 300, 70, 22
_COLORS = ("#1d6fb8", "#d1495b", "#2e8b57", "#b8860b", "#7a4fa3", "#3a3f47", "#00838f")
_INK, _PALE = "#1d2b3a", "#52606d"


def benchmark_figure(benchmark: Benchmark) -> str:
    """One panel per noise and filter, one row per method and start, one dot per robot, and the converged share."""
    table = benchmark.table
    cases = list(table.select("noise", "filter").unique(maintain_order=True).iter_rows())
    rows = list(table.select("method", "start").unique(maintain_order=True).iter_rows())
    robots = table["robot"].unique(maintain_order=True).to_list()
    colors = {robot: _COLORS[i % len(_COLORS)] for i, robot in enumerate(robots)}
    errors = table["torque_error"].drop_nulls().drop_nans()
    low, high = (-2, 2) if errors.is_empty() else _decades(errors.to_numpy())
    width, height = _LEFT + len(cases) * (_PANEL + _GAP), _TOP + _ROW * len(rows) + 60
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="20" y="28" font-size="18" font-weight="bold" fill="{_INK}">'
        "Torque error on unseen motion (%), and share of runs that converged</text>",
    ]
    for i, robot in enumerate(robots):
        out.append(f'<circle cx="{26 + 110 * i}" cy="46" r="5" fill="{colors[robot]}"/>')
        out.append(f'<text x="{36 + 110 * i}" y="50" fill="{_INK}">{escape(robot)}</text>')
    for k, (method, start) in enumerate(rows):
        words = method if start is None else f"{method}, {start}"
        y = _TOP + _ROW * k + 15
        out.append(f'<text x="{_LEFT - 10}" y="{y}" text-anchor="end" fill="{_INK}">{escape(words)}</text>')
    for i, (noise, name) in enumerate(cases):
        out += _panel(table.filter(noise=noise, filter=name), rows, colors, _LEFT + i * (_PANEL + _GAP), low, high)
        x = _LEFT + i * (_PANEL + _GAP)
        out.append(f'<text x="{x}" y="{_TOP - 12}" fill="{_INK}">{escape(f"{noise} counts, filter {name}")}</text>')
    return "\n".join([*out, "</svg>", ""])


def _decades(errors: np.ndarray) -> tuple[int, int]:
    """Powers of ten around all errors."""
    positive = errors[errors > 0]
    return int(np.floor(np.log10(positive.min()))), int(np.ceil(np.log10(positive.max())))


def _panel(
    table: pl.DataFrame,
    rows: list[tuple[str, str | None]],
    colors: dict[str, str],
    left: float,
    low: int,
    high: int,
) -> list[str]:
    bottom = _TOP + _ROW * len(rows)
    out = [f'<rect x="{left}" y="{_TOP}" width="{_PANEL}" height="{bottom - _TOP}" fill="#f4f6f8"/>']
    for power in range(low, high + 1):
        x = left + _PANEL * (power - low) / max(high - low, 1)
        out.append(f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom}" stroke="#d5dbe1"/>')
        out.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle" fill="{_PALE}">{10.0**power:g}</text>')
    for k, (method, start) in enumerate(rows):
        y = _TOP + _ROW * (k + 0.5)
        mine = table.filter(pl.col("method") == method, pl.col("start").eq_missing(pl.lit(start, pl.String)))
        if mine.is_empty():
            continue
        for robot, error in mine.select("robot", "torque_error").iter_rows():
            if error is not None and error > 0:
                x = left + _PANEL * (np.log10(error) - low) / max(high - low, 1)
                out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colors[robot]}" fill-opacity="0.8"/>')
        converged = 100 * float(mine["converged"].mean())  # type: ignore[arg-type]
        out.append(f'<text x="{left + _PANEL + 6}" y="{y + 4:.1f}" fill="{_PALE}">{converged:.0f} %</text>')
    return out
