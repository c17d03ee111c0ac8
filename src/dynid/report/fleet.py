"""The page of a fleet: verdicts of the units, outliers first, parameters over time, and what was left out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from dynid.assessment.verdict.assessment import Assessment
from dynid.files import write_text
from dynid.fleet.health import Change, UnitCode
from dynid.fleet.kinds import owners_of
from dynid.fleet.result import FleetEstimate
from dynid.fleet.verdict import assess_fleet
from dynid.fleet.whitened import WhitenedEntry
from dynid.report.charts import Chart, number
from dynid.report.content import Figure, Figures, Section, Table, Text, section
from dynid.report.document import checks_section, page_of

__all__ = ["write_fleet"]

Array = NDArray[np.float64]

# Changes that are drawn, and outlying parameters that are listed.
_DRAWN, _OUTLYING = 24, 40
_MARK = {
    UnitCode.CHANGED: "failed",
    UnitCode.UNLIKE: "failed",
    UnitCode.STEADY: "passed",
    UnitCode.TOO_SHORT: "not",
}


def write_fleet(found: FleetEstimate, path: str | Path) -> Assessment:
    """Write the page of a fleet into one self-contained HTML file, with its verdict first.

    Parameters
    ----------
    found : FleetEstimate
        Result of `dynid.fleet.identify_fleet`.
    path : str or Path
        HTML file to write.

    Returns
    -------
    Assessment
        The verdict at the top of the page.
    """
    assessment = assess_fleet(found)
    changed = sum(bool(u.changes) for u in found.health.units)
    sections = [
        checks_section(assessment),
        _verdicts(found),
        _changes(found),
        _outliers(found),
        _temperature(found),
        _left_out(found),
    ]
    page = page_of(
        title=f"{found.base.robot.name}: a fleet of {len(found.units)}",
        subtitle=f"{len(found.entries)} recordings, {found.base.count} base parameters each.",
        judgements=[assessment],
        names=[""],
        figures=[
            (
                "units",
                str(len(found.units)),
                f"{changed} changed, {sum(u.unlike is not None for u in found.health.units)} unlike the others",
            ),
            ("recordings", str(len(found.entries)), f"{found.left_out} left out"),
            ("false alarms", f"{100 * found.health.rate:g} %", f"probability of any over {found.health.tests} series"),
        ],
        sections=[s for s in sections if s is not None],
    )
    write_text(path, page)
    return assessment


def _verdicts(found: FleetEstimate) -> Section:
    rows = []
    for unit in found.health.units:
        mark = Markup('<span class="result {}">{}</span>').format(_MARK[unit.code], unit.code.value)
        words = Markup("<br>").join(unit.sentences)
        rows.append([unit.unit, mark, words, str(unit.dates)])
    lead = " ".join(
        ["Every unit, changed ones first.", *(f"{note[0].upper()}{note[1:]}." for note in found.health.notes)]
    )
    return section("verdicts", "Units", lead, Table(["unit", "verdict", "found", "dates"], rows, numbers=3))


def _changes(found: FleetEstimate) -> Section | None:
    """What changed, over time."""
    figures = []
    for change in found.health.changes[:_DRAWN]:
        entries = [e for e in found.entries if e.unit == change.unit]
        j = _shown_parameter(found, change, entries)
        figures.append(Figure([_chart(found, entries, j, change)], found.base.names[j], change.words))
    if not figures:
        return None
    legend = [
        ("mark", "this unit, with two standard deviations"),
        ("predicted", "mean of the fleet"),
        ("limit", "change"),
    ]
    lead = "What changed, from every recording by itself; for a payload the body parameter that shows it most."
    return section("changes", "What changed", lead, Figures(figures, "medium", legend))


def _shown_parameter(found: FleetEstimate, change: Change, entries: Sequence[WhitenedEntry]) -> int:
    """The parameter to draw: the changed one, or the body parameter with the most significant change."""
    if change.kind is not None:
        return found.base.names.index(change.parameter)
    bodies = [j for j, kind in enumerate(found.kinds) if kind.of_body]
    after = np.array([_day(e.moment) >= _day(datetime.fromisoformat(change.date)) for e in entries])
    values, std = np.array([e.beta for e in entries]), np.array([e.std for e in entries])
    shift = np.abs(np.mean(values[after], axis=0) - np.mean(values[~after], axis=0)) / np.mean(std, axis=0)
    return max(bodies, key=lambda j: float(np.nan_to_num(shift[j])))


def _day(moment: datetime) -> float:
    return (moment - datetime(2000, 1, 1)).total_seconds() / 86400.0


def _chart(found: FleetEstimate, entries: Sequence[WhitenedEntry], j: int, change: Change) -> Chart:
    known = [e for e in entries if e.known[j]]
    start = _day(entries[0].moment)
    days = np.array([_day(e.moment) - start for e in known])
    values, std = np.array([e.beta[j] for e in known]), np.array([e.std[j] for e in known])
    first = entries[0].moment.date().isoformat()
    chart = Chart(
        f"days since {first}", f"{found.base.names[j]} in {found.base.units[j]}", change.unit, width=460.0, height=220.0
    )
    if found.pooled is not None:
        mean, between = float(found.pooled.mean[j]), float(np.sqrt(found.pooled.variance[j]))
        ends = np.array([0.0, max(float(days[-1]), 1e-6)])
        chart.band(ends, np.full(2, mean - 2 * between), np.full(2, mean + 2 * between), "predicted")
        chart.level(mean, "predicted")
    at = _day(datetime.fromisoformat(change.date)) - start
    low, high = float((values - 2 * std).min()), float((values + 2 * std).max())
    chart.spans(days, values - 2 * std, values + 2 * std, "measured").dots(days, values, "mark")
    return chart.line(np.array([at, at]), np.array([low, high]), "limit")


def _outliers(found: FleetEstimate) -> Section | None:
    """Units that differ most from the fleet, whether they changed or not."""
    pooled = found.pooled
    if pooled is None:
        return None
    steady = {unit.unit for unit in found.health.units if not unit.changes and unit.unlike is None}
    between = np.sqrt(np.maximum(pooled.variance, 1e-300))
    away = (pooled.values - pooled.mean) / between
    joints = owners_of(found.base)
    order = np.dstack(np.unravel_index(np.argsort(-np.abs(away), axis=None), away.shape))[0]
    rows = [
        [
            found.units[u],
            joints[j],
            found.base.names[j],
            number(pooled.values[u, j]),
            number(pooled.std[u, j]),
            number(pooled.mean[j]),
            f"{away[u, j]:+.1f}",
        ]
        for u, j in order
        if found.units[u] in steady
    ][:_OUTLYING]
    if not rows:
        return None
    head = ["unit", "joint", "parameter", "value", "std", "mean of the fleet", "in std between units"]
    lead = (
        "Shrinkage estimates farthest from the mean of the fleet. Units differ by nature; this is no alarm. Units that "
        "changed have no single value and are left out, and so are units that are unlike the fleet."
    )
    return section("outliers", "Units far from the fleet", lead, Table(head, rows, numbers=3))


def _temperature(found: FleetEstimate) -> Section | None:
    rows = []
    for name, variation in found.health.variations.items():
        effect = variation.temperature
        slope = ["not logged, or constant", "", ""]
        if effect is not None:
            between = "own slope per unit" if np.isinf(effect.between) else number(effect.between)
            slope = [number(effect.slope), number(effect.std), between]
        rows.append([name, *slope, number(float(np.sqrt(variation.scatter)))])
    if not rows:
        return None
    head = ["parameter", "per deg C", "std", "std between units", "scatter from date to date"]
    lead = "How friction follows the temperature of its joint, and how it varies from date to date beyond noise."
    return section("temperature", "Temperature and scatter", lead, Table(head, rows))


def _left_out(found: FleetEstimate) -> Section | None:
    if not found.faults:
        return None
    rows = [[f.unit, f.date, f.words] for f in found.faults]
    lead = f"{found.left_out} recordings could not be used."
    return section(
        "left out",
        "Left out",
        lead,
        Text("Nothing of them is in any figure above."),
        Table(["unit", "date", "why"], rows, numbers=3),
    )
