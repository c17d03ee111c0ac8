"""Sections on the residual: distribution, autocorrelation, spectrum, dependence on velocity and torque, and tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.assessment.causes.residuals import correlogram
from dynid.assessment.verdict.evidence import Evidence
from dynid.errors import DataError
from dynid.hypothesis import probability
from dynid.report.charts import Chart, number, plus_minus
from dynid.report.content import Figure, Figures, Joints, Section, Table, Text, section
from dynid.report.section_errors import force_word, unit_of, velocity_label

__all__ = ["Rows", "fitted_rows", "residual_section", "test_section"]

Array = NDArray[np.float64]
# Error, prediction, velocity, sample number, and time between rows of a channel.
Rows = tuple[Array, Array, Array, NDArray[np.int64], float]

_MOST_DOTS = 400


def fitted_rows(evidence: Evidence) -> list[Rows]:
    """Rows of each channel of the fitted recording: error, prediction, velocity, sample number, time between rows."""
    estimate, seen = evidence.estimate, evidence.fitted
    assert seen is not None
    velocities = np.vstack([m.v for m in evidence.motions])
    parts: list[list[tuple[Array, Array, Array, NDArray[np.int64]]]] = [[] for _ in estimate.base.channels]
    joint = {name: j for j, name in enumerate(estimate.robot.coordinates)}
    for block in seen.blocks():
        channel = estimate.base.channels[block.channel]
        velocity = velocities[block.index, joint[channel]] if channel in joint else np.zeros(len(block.y))
        predicted = block.W @ estimate.beta
        parts[block.channel].append((block.y - predicted, predicted, velocity, block.index))
    first = evidence.motions[0]
    step = float(np.prod(first.decimate) if first.decimate else 1) / first.rate
    none = (np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0, np.int64))
    out = []
    for part in parts:
        e, predicted, velocity, index = (np.concatenate(x) for x in zip(*(part or [none]), strict=True))
        out.append((e, predicted, velocity, index, step))
    return out


def residual_section(evidence: Evidence) -> Section:
    """Five plots of the residual of every joint."""
    title = "Residual"
    if not evidence.motions:
        lead = "The fitted recording was not given to the report, so its residual cannot be shown."
        return section("residuals", title, lead)
    joints = []
    for channel, rows in zip(evidence.estimate.base.channels, fitted_rows(evidence), strict=True):
        unit = unit_of(evidence, channel)
        enough = len(rows[0]) > 20
        block = Figures(_figures(channel, rows, unit), "small") if enough else Text("Too few rows.")
        joints.append((channel, [block]))
    lead = "White noise is normally distributed, not autocorrelated, and independent of velocity and torque."
    return section("residuals", title, lead, Joints("residual", joints))


def _figures(channel: str, rows: Rows, unit: str) -> Sequence[Figure]:
    """Histogram, autocorrelation, spectrum, and dependence on velocity and torque."""
    e, predicted, velocity, index, step = rows
    own = f"residual of {channel}"
    caption = "bars: residual; line: normal distribution of the same variance"
    out = [Figure([_histogram(e, unit, f"{own}, histogram")], "Histogram", caption)]
    try:
        page = correlogram(e, index)
        lag = np.arange(1, len(page.autocorrelation) + 1)
        chart = _small(
            f"lag in rows of {number(1e3 * step)} ms", "autocorrelation, no unit", f"{own}, autocorrelation"
        ).bars(lag, page.autocorrelation, 1.0, "residual")
        chart.line(lag, page.expected + page.limits, "limit").line(lag, page.expected - page.limits, "limit")
        chart.level(0.0, "zero")
        out.append(Figure([chart], "Autocorrelation", "dashed: 95 % limits of white noise, filtered alike"))
    except DataError:
        pass  # too few neighbouring rows
    frequency, power = scipy.signal.welch(e, 1.0 / step, nperseg=min(256, len(e)))
    chart = _small("frequency in Hz", f"density in ({unit})\u00b2/Hz", f"{own}, spectrum", log_y=True)
    out.append(Figure([chart.line(frequency[1:], power[1:], "residual")], "Spectrum", "power spectral density"))
    for x, words, title in (
        (velocity, velocity_label(unit), "Against velocity"),
        (predicted, f"predicted {force_word(unit)} in {unit}", f"Against {force_word(unit)}"),
    ):
        out.append(
            Figure([_cloud(x, e, words, unit, f"{own}, {title.lower()}")], title, "dots: rows; line: mean per bin")
        )
    return out


def _small(x_label: str, y_label: str, title: str, log_y: bool = False) -> Chart:
    """A small chart."""
    return Chart(x_label, y_label, title, width=340.0, height=200.0, log_y=log_y)


def _histogram(e: Array, unit: str, title: str) -> Chart:
    """Histogram of a residual."""
    reach = 4 * float(np.std(e)) or 1.0
    count, edges = np.histogram(np.clip(e, -reach, reach), 41, (-reach, reach), density=True)
    middle = 0.5 * (edges[1:] + edges[:-1])
    chart = _small(f"residual in {unit}", f"density in 1/({unit})", title)
    chart.bars(middle, count, float(edges[1] - edges[0]), "residual")
    chart.line(middle, scipy.stats.norm.pdf(middle, e.mean(), np.std(e) or 1.0), "limit")
    return chart


def _cloud(x: Array, e: Array, words: str, unit: str, title: str) -> Chart:
    """Residual over a signal, with the mean per bin."""
    pick = np.unique(np.linspace(0, len(e) - 1, _MOST_DOTS).astype(int))
    chart = _small(words, f"residual in {unit}", title).dots(x[pick], e[pick], "residual").level(0.0, "zero")
    order = np.argsort(x)
    bins = np.array_split(order, min(25, max(2, len(x) // 8)))
    return chart.line([x[b].mean() for b in bins], [e[b].mean() for b in bins], "predicted")


def test_section(evidence: Evidence) -> Section:
    """Hypothesis tests."""
    title, diagnosis = "Hypothesis tests", evidence.tested
    if diagnosis is None:
        return section("tests", title, "No tests were made: the fitted recording was not given to the report.")
    rows = []
    for test in diagnosis.tests:
        rows.append([test.name, test.null, test.verdict, test.advice, probability(test.p_value)])
    blocks: list[Table | Text] = [Table(["test", "null hypothesis", "found", "what to do", "p"], rows, numbers=4)]
    missing = diagnosis.missing
    if missing is not None:
        blocks.append(Text(f"Missing effects: {missing.verdict}. {missing.advice[:1].upper()}{missing.advice[1:]}."))
        if missing.effects:
            effects = [
                [
                    e.joint,
                    e.words,
                    f"{100 * e.share:.0f}",
                    plus_minus(e.coefficient, e.std),
                    probability(e.p_value),
                ]
                for e in missing.effects
            ]
            head = ["joint", "effect", "% of its residual", "coefficient (SI)", "p"]
            blocks.append(Table(head, effects, "Effects that explain part of the residual", numbers=2))
    causes = diagnosis.causes
    if causes is not None:
        blocks.append(Text(f"Causes: {causes.verdict}."))
        if causes.causes:
            named = [
                [c.words, f"{100 * c.share:.0f}", f"{100 * c.unexplained:.1f}", f"{100 * c.probability:.0f}", c.advice]
                for c in causes.causes
            ]
            head = ["cause", "% of the residual", "% of the torque", "probability, %", "what to do"]
            blocks.append(
                Table(head, named, "Causes of the residual, in the order in which they were found", words=(4,))
            )
    blocks += [Text(f"Not tested: {reason}.") for reason in diagnosis.untested]
    lead = "With many rows, tests reject even negligible effects. The verdict depends on their size instead."
    return section("tests", title, lead, *blocks)
