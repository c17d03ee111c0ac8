"""A picture of a motion: positions, speeds, accelerations and torques against their limits, and spectra, as SVG."""

from __future__ import annotations

from html import escape

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.functions import inverse_dynamics
from dynid.excitation.excitation import Excitation
from dynid.excitation.room import has_torque_model

__all__ = ["excitation_figure"]

Array = NDArray[np.float64]

_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP_X, _GAP_Y = 250, 92, 110, 92, 74, 30
_MOTION, _LIMIT, _BAR = "#1d6fb8", "#d1495b", "#2a9d5c"
_INK, _GREY = "#1d2b3a", "#52606d"
_POINTS = 600
# Harmonics beyond the last one with this share of the largest amplitude are not drawn.
_FAINT = 1e-3


def excitation_figure(motion: Excitation) -> str:
    """A row a joint: q, v, a, torque of the a-priori model, and amplitudes of the position over frequency."""
    names = motion.robot.coordinates
    kinds = {j.name: j.kind for j in motion.robot.joints}
    t = np.linspace(0.0, motion.duration, _POINTS + 1)
    q, v, a = motion.at(t)
    lim = motion.limits
    signals = [("position", q, lim.lower, lim.upper), ("velocity", v, -lim.velocity, lim.velocity)]
    signals.append(("acceleration", a, -lim.acceleration, lim.acceleration))
    if has_torque_model(motion.robot):
        torque = inverse_dynamics(motion.robot, q, v, a)[:, -motion.robot.n :]
        signals.append(("torque, a-priori model", torque, -lim.torque, lim.torque))
    width = _LEFT + (len(signals) + 1) * (_WIDTH + _GAP_X)
    height = _TOP + len(names) * (_HEIGHT + _GAP_Y) + 10
    title = f"{motion.robot.name}: motion of {motion.duration:g} s, condition number {motion.condition_number:.4g}"
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="20" y="30" font-size="18" font-weight="bold" fill="{_INK}">{escape(title)}</text>',
        f'<text x="20" y="52"><tspan fill="{_MOTION}">motion</tspan> <tspan fill="{_LIMIT}">limit</tspan> '
        f'<tspan fill="{_BAR}">amplitude</tspan></text>',
    ]
    for k, heading in enumerate([*(s[0] for s in signals), "spectrum of the position"]):
        out.append(f'<text x="{_LEFT + k * (_WIDTH + _GAP_X)}" y="{_TOP - 12}" fill="{_INK}">{heading}</text>')
    for j, name in enumerate(names):
        top = _TOP + j * (_HEIGHT + _GAP_Y)
        turns = kinds[name] == "revolute"
        length, force = ("rad", "N m") if turns else ("m", "N")
        units = (length, f"{length}/s", f"{length}/s2", force)
        out.append(f'<text x="20" y="{top + _HEIGHT / 2}" font-size="13" fill="{_INK}">{escape(name)}</text>')
        for k, ((_, values, low, high), unit) in enumerate(zip(signals, units, strict=False)):
            left = _LEFT + k * (_WIDTH + _GAP_X)
            out += _panel(left, top, t, values[:, j], float(low[j]), float(high[j]), unit)
        out += _spectrum(_LEFT + len(signals) * (_WIDTH + _GAP_X), top, motion, j, length)
    return "\n".join([*out, "</svg>", ""])


def _frame(left: float, top: float, high: str, low: str, end: str) -> list[str]:
    return [
        f'<rect x="{left}" y="{top}" width="{_WIDTH}" height="{_HEIGHT}" fill="#f4f6f8"/>',
        f'<text x="{left - 5}" y="{top + 9}" text-anchor="end" fill="{_GREY}">{high}</text>',
        f'<text x="{left - 5}" y="{top + _HEIGHT}" text-anchor="end" fill="{_GREY}">{low}</text>',
        f'<text x="{left + _WIDTH}" y="{top + _HEIGHT + 12}" text-anchor="end" fill="{_GREY}">{end}</text>',
    ]


def _panel(left: float, top: float, t: Array, y: Array, low: float, high: float, unit: str) -> list[str]:
    """A signal over time, and its limits as dashed lines."""
    bounds = [b for b in (low, high) if np.isfinite(b)]
    bottom, peak = min(*bounds, float(y.min()), float(y.max())), max(*bounds, float(y.min()), float(y.max()))
    margin = 0.06 * max(peak - bottom, 1e-12)
    bottom, peak = bottom - margin, peak + margin

    def height(value: Array | float) -> Array:
        return np.asarray(top + _HEIGHT * (peak - value) / (peak - bottom))

    u = left + _WIDTH * t / t[-1]
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(u, height(y), strict=True))
    out = _frame(left, top, f"{peak - margin:.3g}", f"{bottom + margin:.3g} {unit}", f"{t[-1]:g} s")
    for bound in bounds:
        v = float(height(bound))
        out.append(
            f'<line class="limit" x1="{left}" x2="{left + _WIDTH}" y1="{v:.1f}" y2="{v:.1f}" stroke="{_LIMIT}" '
            'stroke-dasharray="5 3"/>'
        )
    return [*out, f'<polyline points="{points}" fill="none" stroke="{_MOTION}" stroke-width="1.4"/>']


def _spectrum(left: float, top: float, motion: Excitation, j: int, unit: str) -> list[str]:
    """Amplitudes of a position at multiples of 1/duration, without its mean."""
    steps = 2048
    q = motion.at(np.arange(steps) * (motion.duration / steps))[0][:, j]
    amplitude = 2.0 / steps * np.abs(np.fft.rfft(q - q.mean()))
    largest = max(float(amplitude.max()), 1e-300)
    last = max(4, int(np.flatnonzero(amplitude >= _FAINT * largest).max()))
    out = _frame(left, top, f"{largest:.2g}", f"0 {unit}", f"{(last + 1) / motion.duration:.3g} Hz")
    pitch = _WIDTH / (last + 1)
    for k in range(1, last + 1):
        tall = 0.94 * _HEIGHT * amplitude[k] / largest
        out.append(
            f'<rect x="{left + (k - 0.3) * pitch:.2f}" y="{top + _HEIGHT - tall:.2f}" width="{0.6 * pitch:.2f}" '
            f'height="{tall:.2f}" fill="{_BAR}"><title>{k / motion.duration:.4g} Hz: {amplitude[k]:.3g} {unit}</title>'
            "</rect>"
        )
    return out
