"""Sections that compare estimates of one robot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.assessment.verdict.assessment import Assessment
from dynid.assessment.verdict.evidence import Evidence
from dynid.errors import Mismatch
from dynid.fleet.comparison import compare_estimates
from dynid.hypothesis import probability
from dynid.identification.estimate import Estimate
from dynid.report.charts import Chart, number, plus_minus
from dynid.report.content import Figure, Figures, Section, Table, Text, section

__all__ = ["comparison_sections", "method_section"]


def method_section(evidence: Evidence, others: Sequence[Estimate]) -> Section:
    """Errors of several methods on the same motion, and what method "auto" compared."""
    rows = []
    for estimate in (evidence.estimate, *others):
        validation = evidence.validated(estimate)
        unseen = None if validation is None else validation.relative
        consistent = estimate.standard is not None or estimate.feasibility().status == "feasible"
        rows.append(
            [
                estimate.method,
                estimate.status,
                "yes" if consistent else "no",
                f"{100 * float(np.median(estimate.relative_error)):.2f}",
                "-" if unseen is None else f"{100 * float(np.nanmedian(unseen)):.2f}",
                "-" if unseen is None else f"{100 * float(np.nanmax(unseen)):.2f}",
                number(estimate.seconds),
            ]
        )
    head = ["method", "status", "physically consistent", "% fitted", "% unseen", "% worst joint", "seconds"]
    lead = f"Estimates of the same recording by {len(rows)} methods." if others else "One method was run."
    return section("methods", "Methods", lead, Table(head, rows, numbers=3))


def comparison_sections(
    both: Sequence[Evidence], judgements: Sequence[Assessment], names: tuple[str, str]
) -> list[Section]:
    """Key figures, errors, checks and parameters of two estimates."""
    first, second = (e.estimate for e in both)
    if first.base.expressions != second.base.expressions:
        raise Mismatch("the two estimates are of different robots or drive terms and cannot be compared")
    return [
        _figures(both, names),
        _errors(both, names),
        _checked(judgements, names),
        _significance(first, second),
        _parameters(first, second, names),
    ]


def _figures(both: Sequence[Evidence], names: tuple[str, str]) -> Section:
    """Key figures."""

    def row(words: str, values: Sequence[object]) -> list[str]:
        return [words, *(x if isinstance(x, str) else number(float(x)) for x in values)]  # type: ignore[arg-type]

    estimates = [e.estimate for e in both]
    rows = [
        row("method", [e.method for e in estimates]),
        row("status", [e.status for e in estimates]),
        row("median error fitted, %", [100 * float(np.median(e.relative_error)) for e in estimates]),
        row("worst error fitted, %", [100 * float(np.max(e.relative_error)) for e in estimates]),
    ]
    if all(e.validation is not None for e in both):
        relative = [e.validation.relative for e in both if e.validation is not None]
        rows.append(row("median error unseen, %", [100 * float(np.nanmedian(x)) for x in relative]))
        rows.append(row("worst error unseen, %", [100 * float(np.nanmax(x)) for x in relative]))
    rows.append(row("condition number", [e.condition_number for e in estimates]))
    rows.append(row("rows", [sum(e.rows) for e in estimates]))
    return section("figures", "Key figures", "The most important figures of both.", Table(["", *names], rows))


def _errors(both: Sequence[Evidence], names: tuple[str, str]) -> Section:
    """Torque errors per joint."""
    unseen = all(e.validation is not None for e in both)
    values = [
        np.nan_to_num(e.validation.relative) if unseen and e.validation else e.estimate.relative_error for e in both
    ]
    channels = both[0].estimate.base.channels
    place = np.arange(1, len(channels) + 1)
    chart = Chart("joint", "error in % of the torque", "torque errors", 1000, 260)
    chart.bars(place - 0.2, 100 * values[0], 0.4, "predicted").bars(place + 0.2, 100 * values[1], 0.4, "second")
    rows = [
        [c, f"{100 * a:.2f}", f"{100 * b:.2f}", f"{100 * (b - a):+.2f}"]
        for c, a, b in zip(channels, *values, strict=True)
    ]
    where = "unseen motion" if unseen else "the fitted motion of each: no other was given"
    legend = (("predicted", names[0]), ("second", names[1]))
    head = ["joint", f"% {names[0]}", f"% {names[1]}", "difference"]
    return section("errors", "Errors", f"On {where}.", Figures([Figure([chart])], "wide", legend), Table(head, rows))


def _checked(judgements: Sequence[Assessment], names: tuple[str, str]) -> Section:
    """Checks of both."""
    rows = [
        [a.name, a.result, b.result, a.words, b.words] for a, b in zip(*(j.checks for j in judgements), strict=True)
    ]
    head = ["check", *names, f"found in {names[0]}", f"found in {names[1]}"]
    return section("checks", "Checks", "Every check of both.", Table(head, rows, numbers=9))


def _significance(first: Estimate, second: Estimate) -> Section:
    """Whether the difference is more than chance, and whether it is that of a payload."""
    found = compare_estimates(first, second)
    rows = [
        ["all base parameters", number(found.statistic), str(found.freedom), probability(found.p_value)],
        ["bodies, as by a payload", "", "", probability(found.payload_p)],
        ["bodies, otherwise", "", "", probability(found.other_p)],
    ]
    lead = (
        "Tests of equal base parameters. They hold for estimates from separate recordings, not for two methods on one."
    )
    table = Table(["what", "statistic", "degrees of freedom", "p-value"], rows)
    return section("significance", "Significance", lead, Text(found.summary()), table)


def _parameters(first: Estimate, second: Estimate, names: tuple[str, str]) -> Section:
    """Base parameters of both, sorted by their normalised difference."""
    std = np.hypot(first.std, second.std)
    away = (second.beta - first.beta) / np.where(std > 0, std, np.inf)
    order = np.argsort(-np.abs(away))
    rows = [
        [
            first.base.names[i],
            number(first.base.values()[i]),
            plus_minus(first.beta[i], first.std[i]),
            plus_minus(second.beta[i], second.std[i]),
            f"{away[i]:+.1f}",
        ]
        for i in order
    ]
    head = ["base parameter", "a priori", *names, "difference / std"]
    far = int(np.count_nonzero(np.abs(away) > 3))
    lead = f"{far} of {len(rows)} base parameters differ by more than three standard deviations; largest first."
    return section("parameters", "Parameters", lead, Table(head, rows))
