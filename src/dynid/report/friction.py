"""Figure of friction over velocity: measured points, their means, and the curves of the models, as SVG.

SVG, because `dynid friction --figure` works in the default install.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.errors import MissingData
from dynid.friction.map import FrictionMap
from dynid.friction.pieces import unit_of
from dynid.friction.result import FrictionFit
from dynid.friction.rows import binned_friction
from dynid.report.charts import Chart
from dynid.report.sheet import sheet

__all__ = ["friction_chart", "friction_figure"]

Array = NDArray[np.float64]

_CURVES = ("error", "predicted", "third", "fourth", "fifth", "sixth", "seventh")
_MAX_POINTS = 3000


def friction_figure(fit: FrictionFit, title: str, measured: FrictionMap | None = None, others: int = 3) -> str:
    """Return an SVG of friction over velocity, with the best models of a fit.

    Curves of friction that depends on load or temperature are those of the mean load and temperature of the rows.

    Parameters
    ----------
    fit : FrictionFit
        Fitted friction models, with the rows behind them.
    title : str
        Title of the figure.
    measured : FrictionMap, optional
        Friction map, whose means are drawn instead of those of the rows.
    others : int
        Number of models beside the best one.

    Returns
    -------
    str
        The SVG file.

    Raises
    ------
    DataError
        If the fit has no rows.
    """
    chart, legend = friction_chart(fit, title, measured, others)
    return sheet(title, [(fit.joint, [chart])], legend)


def friction_chart(
    fit: FrictionFit, title: str, measured: FrictionMap | None = None, others: int = 3
) -> tuple[Chart, list[tuple[str, str]]]:
    """The chart of `friction_figure` and its legend of (color, words)."""
    if not len(fit.velocity):
        raise MissingData(f"the fit of '{fit.joint}' has no points to draw")
    velocity, torque = fit.velocity, fit.friction
    rate, effort = (unit_of(unit, prismatic=fit.prismatic) for unit in ("rad/s", "N m"))
    reach = 1.05 * max(fit.max_velocity, float(np.abs(velocity).max()))
    v = np.linspace(0.0 if np.all(velocity > 0) else -reach, reach, 801)
    v[np.abs(v) < 1e-9 * reach] = 1e-9 * reach
    models = fit.ranking[: 1 + others]
    curves = [f.curve(v, load=fit.mean_load, temperature=fit.mean_temperature) for f in models]
    shown = np.concatenate([np.quantile(torque, [0.002, 0.998]), curves[0]])
    low, high = min(0.0, float(shown.min())), max(0.0, float(shown.max()))
    low, high = low - 0.06 * (high - low), high + 0.06 * (high - low)
    chart = Chart(f"velocity in {rate}", f"friction in {effort}", title, 940.0, 470.0).level(0.0, "zero")
    inside = (torque >= low) & (torque <= high)
    step = max(1, len(velocity) // _MAX_POINTS)
    chart.dots(velocity[inside][::step], torque[inside][::step], "measured")
    x, mean, std = (
        (measured.velocity, measured.friction, measured.std) if measured else binned_friction(velocity, torque)
    )
    chart.spans(x, mean - 2 * std, mean + 2 * std, "mean").dots(x, mean, "mean")
    legend = []
    for k, (model, curve) in reversed(list(enumerate(zip(models, curves, strict=True)))):
        kind = _CURVES[k % len(_CURVES)]
        # Coulomb friction jumps at rest: the two directions are separate lines.
        for side in (v < 0, v > 0):
            if side.any():
                chart.line(v[side], np.clip(curve[side], low, high), kind if k else f"{kind} best")
        legend.append((kind, f"{model.name} ({model.rms:.3g} {effort})"))
    return chart, legend[::-1]
