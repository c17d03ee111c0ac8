"""Section on friction: the identified curve of every joint, with the measured torques."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.verdict.evidence import Evidence
from dynid.dynamics.functions import inverse_dynamics
from dynid.report.charts import Chart, number
from dynid.report.content import Figure, Figures, Section, section
from dynid.report.section_errors import force_word, unit_of, velocity_label
from dynid.report.section_residuals import fitted_rows
from dynid.robot.drives import drive_kinds

__all__ = ["friction_section"]

Array = NDArray[np.float64]

_KINDS = drive_kinds("viscous", "coulomb", "stribeck", "offset")
_MOST_DOTS = 500
_LEGEND = (("predicted", "identified"), ("prior", "a priori"), ("measured", "measured, without the rest of the model"))


def friction_section(evidence: Evidence) -> Section | None:
    """Friction torque over velocity of every joint with a friction model; None where there is none."""
    estimate, robot = evidence.estimate, evidence.estimate.robot
    owner = {t.name: robot.tree_coordinates[t.owner] for t in robot.drives}
    terms = {
        j: [t for t in robot.drives if owner[t.name] == name and t.kind in _KINDS]
        for j, name in enumerate(robot.coordinates)
    }
    if not any(terms.values()) or robot.base == "floating":
        return None
    fitted = fitted_rows(evidence) if evidence.motions else []
    rows = {name: own for name, own in zip(estimate.base.channels, fitted, strict=False) if len(own[0])}
    figures = []
    for j, name in enumerate(robot.coordinates):
        if not terms[j] or name not in estimate.base.channels:
            continue
        own, unit = {t.name for t in terms[j]}, unit_of(evidence, name)
        reach = robot.limits[name].velocity
        if name in rows:
            reach = float(np.abs(rows[name][2]).max())
        velocity = np.linspace(-1.0, 1.0, 201) * (reach if np.isfinite(reach) else 1.0)
        chart = Chart(
            velocity_label(unit), f"{force_word(unit)} in {unit}", f"friction of {name}", width=340, height=210
        )
        if name in rows:
            e, _, v, _, _ = rows[name]
            pick = np.unique(np.linspace(0, len(e) - 1, _MOST_DOTS).astype(int))
            chart.dots(v[pick], e[pick] + _curve(evidence, j, own, v[pick], estimate.parameters), "measured")
        if any(robot.parameters[[p.name in own for p in robot.layout]]):
            chart.line(velocity, _curve(evidence, j, own, velocity, robot.parameters), "prior")
        chart.line(velocity, _curve(evidence, j, own, velocity, estimate.parameters), "predicted", "friction").level(
            0.0, "zero"
        )
        values = [
            f"{p.symbol if p.owner == name else p.name} {number(x)} {p.unit}"
            for p, x in zip(robot.layout, estimate.parameters, strict=True)
            if p.name in own
        ]
        figures.append(Figure([chart], name, ", ".join(values)))
    lead = "Identified friction over velocity, with the measured torque minus the rest of the model."
    return section("friction", "Friction", lead, Figures(figures, "small", _LEGEND))


def _curve(evidence: Evidence, joint: int, own: set[str], velocity: Array, parameters: Array) -> Array:
    """Torque of some drive terms of one joint at these velocities."""
    robot = evidence.estimate.robot
    alone = np.where([p.name in own for p in robot.layout], parameters, 0.0)
    v = np.zeros((len(velocity), robot.n))
    q = np.tile(robot.home, (len(velocity), 1))
    v[:, joint] = velocity
    return inverse_dynamics(robot, q, v, np.zeros_like(q), alone)[:, -robot.n + joint]
