"""Section on the excitation: singular values of the regressor, and ranges of the joints."""

from __future__ import annotations

import numpy as np

from dynid.assessment.verdict.evidence import Evidence
from dynid.report.charts import Chart, number
from dynid.report.content import Figure, Figures, Section, Table, section

__all__ = ["motion_section"]


def motion_section(evidence: Evidence) -> Section:
    """Singular values of the regressor, and ranges of positions, velocities and accelerations."""
    figures = []
    if evidence.fitted is not None:
        factor = evidence.fitted.stacked(1.0 / evidence.noise)[:, :-1]
        size = np.linalg.norm(factor, axis=0)
        values = np.linalg.svd(factor / np.where(size > 0, size, 1.0), compute_uv=False)
        values = np.maximum(values, 1e-9)
        chart = Chart(
            "combination of parameters, strongest first",
            "singular value, no unit",
            "singular values of the regressor",
            1000,
            240,
            log_y=True,
        )
        chart.bars(np.arange(1, len(values) + 1), values, 1.0, "predicted")
        caption = "unit columns, each channel divided by its noise; small values are poorly excited combinations"
        figures.append(Figure([chart], "Excitation of each combination of parameters", caption))
    rows = []
    if evidence.motions:
        robot = evidence.estimate.robot
        q = np.vstack([m.q for m in evidence.motions])
        v, a = (np.vstack([getattr(m, x) for m in evidence.motions]) for x in ("v", "a"))
        units = {joint.name: "rad" if joint.kind == "revolute" else "m" for joint in robot.joints}
        for j, name in enumerate(robot.coordinates):
            limit = robot.limits[name]
            room = limit.upper - limit.lower
            span, velocity = float(np.ptp(q[:, j])), float(np.abs(v[:, j]).max())
            rows.append(
                [
                    name,
                    units[name],
                    f"{q[:, j].min():.3g} \u2026 {q[:, j].max():.3g}",
                    f"{100 * span / room:.0f} %" if np.isfinite(room) and room > 0 else "-",
                    number(velocity),
                    f"{100 * velocity / limit.velocity:.0f} %"
                    if np.isfinite(limit.velocity) and limit.velocity
                    else "-",
                    number(float(np.abs(a[:, j]).max())),
                ]
            )
    head = [
        "joint",
        "unit",
        "positions",
        "of its range",
        "largest velocity /s",
        "of its limit",
        "largest acceleration /s\u00b2",
    ]
    condition = number(evidence.estimate.condition_number)
    lead = f"Condition number {condition}. A large one matters where it makes predicted torques uncertain."
    return section(
        "motion",
        "Excitation",
        lead,
        Figures(figures) if figures else None,
        Table(head, rows, numbers=2) if rows else None,
    )
