"""Sections on predicted torques: key figures, and measured and predicted torques per joint."""

from __future__ import annotations

import numpy as np

from dynid.assessment.verdict.assessment import Assessment, CheckCode
from dynid.assessment.verdict.evidence import Evidence
from dynid.identification.bodies import total_mass
from dynid.identification.validation_errors import Validation
from dynid.report.charts import Chart, number
from dynid.report.content import Figure, Figures, Section, Table, section
from dynid.report.thinning import thinned

__all__ = ["force_word", "key_figures", "torque_section", "unit_of", "velocity_label"]

_LEGEND = (
    ("measured", "measured"),
    ("predicted", "predicted"),
    ("error", "residual: measured minus predicted"),
    ("limit", "\u00b1 2 standard deviations of the fit"),
)


def unit_of(evidence: Evidence, channel: str) -> str:
    """Unit of a channel's torque."""
    return evidence.estimate.robot.channel_units[channel]


def force_word(unit: str) -> str:
    """What a channel measures: a torque or a force."""
    return "torque" if unit == "N m" else "force"


def velocity_label(unit: str) -> str:
    """Axis label of the velocity that belongs to a torque or a force."""
    return "velocity in rad/s" if unit == "N m" else "velocity in m/s"


def key_figures(evidence: Evidence, assessment: Assessment) -> list[tuple[str, str, str]]:
    """Name, value and explanation of the most important figures."""
    estimate, validation = evidence.estimate, evidence.validation
    shown, where = (
        (estimate.relative_error, "fitted motion") if validation is None else (validation.relative, "unseen motion")
    )
    figures = [("torque error", f"{100 * float(np.nanmedian(shown)):.2f} %", f"median over the joints, on {where}")]
    figures.append(
        ("worst joint", f"{100 * float(np.nanmax(shown)):.2f} %", estimate.base.channels[int(np.nanargmax(shown))])
    )
    mass = total_mass(estimate)
    figures.append(("total mass", f"{mass.after:.3g} kg", f"a priori {mass.before:.3g} kg; {mass.words}"))
    result = assessment.check(CheckCode.PHYSICALLY_CONSISTENT).result
    consistent = {"passed": "yes", "failed": "no", "warned": "no"}.get(result, "unknown")
    figures.append(("physically consistent", consistent, "masses, inertias and friction"))
    rows = f"of {len(estimate.robot.layout)} standard ones, from {sum(estimate.rows)} rows in {estimate.seconds:.2g} s"
    figures.append(("base parameters", f"{estimate.base.count}", rows))
    figures.append(("condition number", number(estimate.condition_number), "of the regressor with unit columns"))
    return figures


def torque_section(evidence: Evidence) -> Section:
    """Measured and predicted torque of every joint."""
    unseen = evidence.validation is not None
    shown = evidence.validation
    if shown is None:
        shown = evidence.fit_validation
    title = "Measured and predicted torque"
    if shown is None:
        lead = "No recording was given to the report."
        return section("torques", title, lead, _table(evidence, None))
    where = "unseen motion" if unseen else "the fitted motion: no other was given"
    figures = [_figure(evidence, shown, i) for i, rows in enumerate(shown.rows) if rows]
    lead = f"On {where}. The residual has its own axis. Drag over a chart to zoom in, double-click to zoom out."
    return section(
        "torques", title, lead, _table(evidence, shown if unseen else None), Figures(figures, "medium", _LEGEND)
    )


def _figure(evidence: Evidence, shown: Validation, i: int) -> Figure:
    """Measured and predicted torque of one channel."""
    channel, unit = shown.channels[i], unit_of(evidence, shown.channels[i])
    t, measured, predicted = shown.time[i], shown.measured[i], shown.predicted[i]
    rows = thinned(t, (measured, measured - predicted))
    t, measured, predicted = t[rows], measured[rows], predicted[rows]
    word = force_word(unit)
    chart = Chart("time in s", f"{word} in {unit}", f"{word} of {channel}, measured and predicted", 520, 210)
    chart.line(t, measured, "measured", "measured", gaps=True)
    chart.line(t, predicted, "predicted", "predicted", gaps=True)
    reach = 2.0 * float(evidence.noise[i])
    below = Chart("time in s", f"residual in {unit}", f"residual of {channel}", 520, 130)
    below.line(t, measured - predicted, "error", "residual", gaps=True)
    below.level(0.0, "zero").level(reach, "limit").level(-reach, "limit")
    caption = (
        f"error {100 * shown.relative[i]:.2f} % of the torque, RMSE {number(shown.rmse[i])} {unit}, "
        f"largest {number(shown.largest[i])} {unit}"
    )
    return Figure([chart, below], channel, caption)


def _table(evidence: Evidence, validation: Validation | None) -> Table:
    """Errors of all channels."""
    estimate = evidence.estimate
    rows = []
    for i, channel in enumerate(estimate.base.channels):
        row = [channel, unit_of(evidence, channel), str(estimate.rows[i]), number(estimate.rms[i])]
        row.append(f"{100 * estimate.relative_error[i]:.2f}")
        if validation is not None:
            r2 = validation.r2[i]
            moves = bool(validation.checked[i])
            row += [
                number(validation.rmse[i]) if moves else "stands still",
                f"{100 * validation.relative[i]:.2f}" if moves else "-",
                f"{r2:.4f}" if np.isfinite(r2) else "-",
            ]
        rows.append(row)
    head = ["joint", "unit", "rows", "RMS fitted", "% fitted"]
    return Table(
        [*head, *(["RMSE unseen", "% unseen", "R\u00b2 unseen"] if validation is not None else [])], rows, numbers=2
    )
