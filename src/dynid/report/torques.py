"""Figure of measured and predicted torques of every joint, as SVG.

SVG, because `dynid demo --figure` must draw it in the default install.
"""

from __future__ import annotations

from dynid.identification.validation_errors import Validation
from dynid.report.charts import Chart
from dynid.report.sheet import sheet
from dynid.report.thinning import thinned

__all__ = ["torque_figure"]

_LEGEND = (("measured", "measured"), ("predicted", "predicted"), ("error", "difference"))


def torque_figure(validation: Validation, title: str) -> str:
    """Return an SVG with one chart per joint: measured and predicted torque over time, and their difference.

    Parameters
    ----------
    validation : Validation
        Measured and predicted torques.
    title : str
        Title of the figure.

    Returns
    -------
    str
        The SVG file.
    """
    rows = []
    for i, channel in enumerate(validation.channels):
        if not validation.rows[i]:  # the joint stands still
            continue
        t, measured, predicted = validation.time[i], validation.measured[i], validation.predicted[i]
        kept = thinned(t, (measured, measured - predicted))
        t, measured, predicted = t[kept], measured[kept], predicted[kept]
        unit = validation.units[i]
        chart = Chart("time in s", f"torque in {unit}" if unit == "N m" else f"force in {unit}", channel, 940.0, 190.0)
        chart.line(t, measured, "measured", gaps=True).line(t, predicted, "predicted", gaps=True)
        chart.line(t, measured - predicted, "error", gaps=True)
        rows.append((f"{channel}: RMSE {validation.rmse[i]:.3g} {unit}, {100 * validation.relative[i]:.1f} %", [chart]))
    return sheet(title, rows, _LEGEND)
