"""Section on simulated motion: how far it is from the measured one, by horizon."""

from __future__ import annotations

import numpy as np

from dynid.assessment.model.horizon import SimulationError
from dynid.assessment.verdict.evidence import Evidence
from dynid.report.charts import Chart
from dynid.report.content import Figure, Figures, Section, Table, Text, section

__all__ = ["simulation_section"]

_TITLE = "Simulated motion"
_STYLES = {"identified": "predicted", "a-priori": "measured", "constant velocity": "error"}


def simulation_section(evidence: Evidence) -> Section:
    """Errors of simulated unseen motion, of the identified and the a-priori model."""
    found = evidence.simulation
    if found is None:
        return section("simulation", _TITLE, "No unseen motion was given to the report.")
    if not found.simulated:
        return section("simulation", _TITLE, f"Not simulated: {found.reason}.")
    head, rows = found.table()
    pair = "identified and a-priori model" if found.prior is not None else "identified model"
    order = ", identified / a-priori" if found.prior is not None else ""
    lead = (
        f"The measured torque moves the {pair} from {max(found.starts)} measured states of the unseen motion, without "
        f"feedback. Median distance to the measured position after each time, and its rms over whole runs{order}."
    )
    return section(
        "simulation",
        _TITLE,
        lead,
        Table(head, rows, numbers=2),
        Text(". ".join(x[0].upper() + x[1:] for x in found.remarks()) + ".") if found.remarks() else None,
        _figures(found),
    )


def _figures(found: SimulationError) -> Figures:
    """Median errors over the horizon: of the tools, or of the joints where no end link moves."""
    unit = "m" if found.tools else "rad or m"
    chart = Chart(
        "time after the start in s",
        f"position error in {unit}",
        "error of simulated motion by horizon",
        520,
        230,
        log_y=True,
    )
    drawn = []
    for name, errors in found.models.items():
        median = errors.tool_quantiles() if found.tools else errors.joint_quantiles()
        worst = np.max(median, axis=1)
        good = np.isfinite(worst) & (worst > 0)
        if good.any():
            chart.line(np.array(found.horizons)[good], worst[good], _STYLES[name], name)
            drawn.append((_STYLES[name], name))
    what = "the end link that is farthest off" if found.tools else "the joint that is farthest off"
    return Figures([Figure([chart], "Error by horizon", f"median over the starts, of {what}")], "medium", drawn)
