"""Sections on parameters: values with confidence intervals, and parameters that are poorly identified."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from markupsafe import Markup

from dynid.assessment.verdict.evidence import Evidence
from dynid.parameters.base import ParameterClass
from dynid.report.charts import interval, number
from dynid.report.content import Groups, Section, Table, Text, section
from dynid.robot.model import Robot

__all__ = ["by_link", "hidden_section", "links_of_parameters", "parameter_section"]


# Parameters by the link that they belong to.

T = TypeVar("T")


def links_of_parameters(robot: Robot) -> list[str]:
    """The link of each standard parameter; drive parameters belong to the link that their joint moves.

    A motor of a coupled drive belongs to no single link, and has a group of its own.
    """
    moved = {joint.name: robot.links[i + 1].name for i, joint in enumerate(robot.joints)}
    return [p.owner if p.inertial else moved.get(p.owner, p.owner) for p in robot.layout]


def by_link(links: Sequence[str], rows: Sequence[T]) -> dict[str, list[T]]:
    """Rows by their link, in the order in which links first appear."""
    out: dict[str, list[T]] = {}
    for link, row in zip(links, rows, strict=True):
        out.setdefault(link, []).append(row)
    return out


_CLASSES = {
    ParameterClass.IDENTIFIABLE: "alone",
    ParameterClass.COMBINED: "in combination",
    ParameterClass.UNIDENTIFIABLE: "not from this recording",
}
# Relative standard deviation (%) beyond which a parameter is called poorly identified.
_POOR = 30.0


def parameter_section(evidence: Evidence) -> Section:
    """Base parameters with 95 % intervals, their expressions, and the standard parameters behind them, by link."""
    estimate, base = evidence.estimate, evidence.estimate.base
    known = bool(np.any(base.values()))
    note = "In the pictures the dot is the estimate, the bar its confidence interval, and the tick the a-priori value."
    lead = f"{base.count} combinations of {len(estimate.robot.layout)} standard parameters are identifiable. " + (
        note if known else "The robot has no a-priori values."
    )
    return section("parameters", "Parameters", lead, _base(evidence, known), _standard(evidence))


def _base(evidence: Evidence, known: bool) -> Groups:
    """Base parameters by the link of the parameter that each is named after."""
    estimate, base = evidence.estimate, evidence.estimate.base
    rows: list[tuple[float, list[str | Markup]]] = []
    bounds = estimate.confidence_intervals()
    columns = zip(
        *(base.names, base.expressions, base.units, base.values(), estimate.beta, estimate.relative_std, bounds),
        strict=True,
    )
    for name, expression, unit, prior, value, relative, (low, high) in columns:
        before = float(prior) if known else None
        label = Markup("<b>{}</b><span class='expression'>{}</span>").format(name, expression)
        picture = Markup(interval(before, float(value), float(low), float(high)))
        ends = f"{number(low)} \u2026 {number(high)}"
        cells = [label, unit, number(prior) if known else "-", number(value), ends, _percent(relative), picture]
        rows.append((float(relative), cells))
    links = links_of_parameters(estimate.robot)
    groups = [
        (
            link,
            _remark(len(own), sum(relative > _POOR for relative, _ in own), f"with a std above {_POOR:.0f} %"),
            [cells for _, cells in own],
        )
        for link, own in by_link([links[k] for k in base.kept], rows).items()
    ]
    head = ["base parameter and its combination", "unit", "a priori", "estimate", "95 % interval", "std %", "interval"]
    return Groups(f"{base.count} base parameters by link", head, groups, numbers=2, words=(6,))


def _standard(evidence: Evidence) -> Groups:
    """All standard parameters by link."""
    estimate = evidence.estimate
    std, classes = estimate.standard_std, estimate.parameter_classes
    rows = []
    for i, (p, prior, value) in enumerate(
        zip(estimate.robot.layout, estimate.robot.parameters, estimate.parameters, strict=True)
    ):
        sigma = "-" if std is None else number(float(std[i]))
        rows.append([p.name, p.unit, number(prior), number(value), sigma, _CLASSES[classes[p.name]]])
    left = _CLASSES[ParameterClass.UNIDENTIFIABLE]
    groups = [
        (link, _remark(len(own), sum(row[-1] == left for row in own), "not determined by this recording"), own)
        for link, own in by_link(links_of_parameters(estimate.robot), rows).items()
    ]
    how = "as estimated" if estimate.standard is not None else "nearest to the a-priori ones"
    head = ["parameter", "unit", "a priori", "estimate", "std", "identifiable"]
    return Groups(f"{len(rows)} standard parameters by link, {how}", head, groups, numbers=2, words=(5,))


def hidden_section(evidence: Evidence) -> Section:
    """Parameters that are not identifiable, and those that are poorly identified from this motion."""
    estimate, base = evidence.estimate, evidence.estimate.base
    never = [name for name, kind in base.classes.items() if kind == "unidentifiable"]
    relative = estimate.relative_std
    poor = [int(i) for i in np.argsort(-relative) if relative[i] > _POOR]
    blocks: list[Table | Text] = []
    if never:
        blocks.append(Text(f"Not identifiable from any motion, and without effect on the torques: {_listed(never)}."))
    classes = estimate.parameter_classes
    here = [n for n, kind in classes.items() if kind == ParameterClass.UNIDENTIFIABLE and n not in set(never)]
    if here:
        blocks.append(Text(f"Not identifiable from this recording: {_listed(here)}."))
    if evidence.weakest:
        blocks.append(Text(f"Most uncertain relative to their size: {', '.join(evidence.weakest[:6])}."))
    if poor:
        rows = [
            [
                base.names[i],
                base.expressions[i],
                number(estimate.beta[i]),
                number(estimate.std[i]),
                _percent(relative[i]),
            ]
            for i in poor
        ]
        title = (
            f"{len(poor)} of {base.count} base parameters with standard deviations above {_POOR:.0f} % of their value"
        )
        blocks.append(Table(["parameter", "combination", "estimate", "std", "%"], rows, title, len(poor) > 12, 2))
    else:
        blocks.append(Text(f"The standard deviation of every base parameter is below {_POOR:.0f} % of its value."))
    lead = "Parameters with a large uncertainty. Small ones hardly affect predicted torques."
    return section("uncertain", "Poorly identified parameters", lead, *blocks)


def _remark(count: int, some: int, what: str) -> str:
    """How many parameters a link has, and how many of them are special."""
    return f"{count} parameters, {some or 'none'} {what}"


def _percent(relative: float) -> str:
    """A relative standard deviation as text."""
    return f"{relative:.1f}" if relative < 1000 else "> 1000"


def _listed(names: list[str], limit: int = 12) -> str:
    """The first names, and the number of the others."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
