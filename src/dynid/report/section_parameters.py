"""Sections on parameters: values with intervals against the prior, and what the motion could not show."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from dynid.assessment.verdict.evidence import Evidence
from dynid.report.charts import interval, number
from dynid.report.content import Section, Table, Text, section

__all__ = ["hidden_section", "parameter_section"]

# Deviations in percent of the value beyond which a parameter is called poorly known.
_POOR = 30.0


def parameter_section(evidence: Evidence) -> Section:
    """Base parameters with 95 % intervals, their expressions, and the standard parameters behind them."""
    estimate, base = evidence.estimate, evidence.estimate.base
    known = bool(np.any(base.values()))
    bounds = estimate.confidence_intervals()
    rows: list[list[str | Markup]] = []
    columns = zip(
        base.names, base.expressions, base.values(), estimate.beta, estimate.relative_std, bounds, strict=True
    )
    for name, expression, prior, value, relative, (low, high) in columns:
        before = float(prior) if known else None
        label = Markup("<b>{}</b><span class='expression'>{}</span>").format(name, expression)
        percent = f"{relative:.1f}" if relative < 1000 else "> 1000"
        picture = Markup(interval(before, float(value), float(low), float(high)))
        ends = f"{number(low)} \u2026 {number(high)}"
        rows.append([label, number(prior) if known else "-", number(value), ends, percent, picture])
    head = [
        "base parameter and what it combines",
        "a priori",
        "estimate",
        "95 % interval",
        "deviation %",
        "",
    ]
    note = "In the pictures the dot is the estimate, the bar its interval, and the tick the a-priori value."
    lead = (
        f"{base.count} combinations are all that torques can show of {len(estimate.robot.layout)} standard parameters. "
        + (note if known else "The robot has no a-priori values.")
    )
    return section("parameters", "Parameters", lead, Table(head, rows), _standard(evidence))


def _standard(evidence: Evidence) -> Table:
    estimate = evidence.estimate
    deviation = None
    if estimate.standard_covariance is not None:
        deviation = np.sqrt(np.maximum(np.diag(estimate.standard_covariance), 0.0))
    classes = {"identifiable": "alone", "combined": "in combination", "unidentifiable": "not at all"}
    rows = []
    for i, (p, prior, value) in enumerate(
        zip(estimate.robot.layout, estimate.robot.parameters, estimate.parameters, strict=True)
    ):
        spread = "-" if deviation is None else number(float(deviation[i]))
        rows.append([p.name, p.unit, number(prior), number(value), spread, classes[estimate.base.classes[p.name]]])
    how = "as the method found them" if estimate.standard is not None else "nearest to the a-priori ones"
    title = f"All {len(rows)} standard parameters, {how}"
    return Table(
        ["parameter", "unit", "a priori", "estimate", "deviation", "identifiable"], rows, title, folded=True, numbers=2
    )


def hidden_section(evidence: Evidence) -> Section:
    """What no motion shows, and what this one showed poorly."""
    estimate, base = evidence.estimate, evidence.estimate.base
    never = [name for name, kind in base.classes.items() if kind == "unidentifiable"]
    relative = 100.0 * evidence.deviation / np.maximum(np.abs(estimate.beta), 1e-300)
    poor = [int(i) for i in np.argsort(-relative) if relative[i] > _POOR]
    blocks: list[Table | Text] = []
    if never:
        blocks.append(
            Text(f"No motion of this robot shows {_listed(never)}: the estimate keeps their a-priori values.")
        )
    if evidence.condition is not None and np.isfinite(evidence.condition) and evidence.weakest:
        blocks.append(
            Text(
                f"Most easily mimicked by others in this motion: {', '.join(evidence.weakest[:6])} "
                f"(condition number {number(evidence.condition)})."
            )
        )
    if poor:
        rows = [
            [
                base.names[i],
                base.expressions[i],
                number(estimate.beta[i]),
                number(evidence.deviation[i]),
                number(relative[i]),
            ]
            for i in poor
        ]
        title = f"{len(poor)} of {base.count} base parameters with deviations beyond {_POOR:.0f} % of their value"
        blocks.append(Table(["parameter", "combination", "estimate", "deviation", "%"], rows, title, len(poor) > 12, 2))
    else:
        blocks.append(Text(f"Every base parameter is known to better than {_POOR:.0f} % of its value."))
    lead = "Parameters that the data leave open. Small ones among them do no harm to predicted torques."
    return section("hidden", "What the motion could not show", lead, *blocks)


def _listed(names: list[str], most: int = 12) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
