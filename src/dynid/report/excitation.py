"""Figure of an excitation: positions, velocities, accelerations and torques with their limits, and spectra, as SVG.

SVG, because `dynid excite --figure` works in the default install.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.functions import inverse_dynamics
from dynid.excitation.excitation import Excitation
from dynid.excitation.room import has_torque_model
from dynid.report.charts import Chart
from dynid.report.sheet import sheet

__all__ = ["excitation_figure"]

Array = NDArray[np.float64]

_WIDTH, _HEIGHT, _POINTS = 300.0, 150.0, 600
# Harmonics beyond the last one with this share of the largest amplitude are not drawn.
_FAINT = 1e-3
_LEGEND = (("predicted", "motion"), ("limit", "limit"), ("bars", "amplitude of the position"))


def excitation_figure(motion: Excitation) -> str:
    """Return an SVG with one row per joint: q, v, a, torque of the a-priori model, and spectrum of the position.

    Parameters
    ----------
    motion : Excitation
        Motion to draw.

    Returns
    -------
    str
        The SVG file.
    """
    kinds = {j.name: j.kind for j in motion.robot.joints}
    t = np.linspace(0.0, motion.duration, _POINTS + 1)
    q, v, a = motion.at(t)
    lim = motion.limits
    signals = [("position", q, lim.lower, lim.upper), ("velocity", v, -lim.velocity, lim.velocity)]
    signals.append(("acceleration", a, -lim.acceleration, lim.acceleration))
    if has_torque_model(motion.robot):
        torque = inverse_dynamics(motion.robot, q, v, a)[:, -motion.robot.n :]
        signals.append(("a-priori torque", torque, -lim.torque, lim.torque))
    rows = []
    for j, name in enumerate(motion.robot.coordinates):
        length, force = ("rad", "N m") if kinds[name] == "revolute" else ("m", "N")
        units = (length, f"{length}/s", f"{length}/s2", force)
        charts = [
            _panel(t, values[:, j], float(low[j]), float(high[j]), f"{words} in {unit}")
            for (words, values, low, high), unit in zip(signals, units, strict=False)
        ]
        rows.append((name, [*charts, _spectrum(motion, j, length)]))
    title = f"{motion.robot.name}: motion of {motion.duration:g} s, condition number {motion.condition_number:.4g}"
    return sheet(title, rows, _LEGEND)


def _panel(t: Array, y: Array, low: float, high: float, label: str) -> Chart:
    """A signal over time, with its finite limits as dashed lines."""
    chart = Chart("time in s", label, width=_WIDTH, height=_HEIGHT).line(t, y, "predicted")
    for bound in (low, high):
        if np.isfinite(bound):
            chart.level(bound, "limit")
    return chart


def _spectrum(motion: Excitation, j: int, unit: str) -> Chart:
    """Amplitudes of a position at multiples of 1/duration, without its mean."""
    steps = 2048
    q = motion.at(np.arange(steps) * (motion.duration / steps))[0][:, j]
    amplitude = 2.0 / steps * np.abs(np.fft.rfft(q - q.mean()))
    last = max(4, int(np.flatnonzero(amplitude >= _FAINT * max(float(amplitude.max()), 1e-300)).max()))
    shown = np.arange(1, last + 1)
    chart = Chart("frequency in Hz", f"amplitude in {unit}", width=_WIDTH, height=_HEIGHT)
    return chart.bars(shown / motion.duration, amplitude[shown], 1.0 / motion.duration, "bars")
