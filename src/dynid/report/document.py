"""The report of an estimate: one HTML file that opens anywhere, with the verdict first."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from markupsafe import Markup

from dynid.assessment.finding import Finding
from dynid.assessment.tests.diagnosis import Diagnosis
from dynid.assessment.verdict.assess import assess_evidence, evidence_of
from dynid.assessment.verdict.assessment import RESULTS, Assessment, Check
from dynid.errors import DataError
from dynid.files import write_text
from dynid.identification.estimate import Estimate
from dynid.identification.validation import Validation
from dynid.recording.recording import Recording
from dynid.report.compared import comparison_sections, method_section
from dynid.report.content import Section, Table, section
from dynid.report.section_bodies import body_section
from dynid.report.section_drives import friction_section
from dynid.report.section_errors import key_figures, torque_section
from dynid.report.section_motion import motion_section
from dynid.report.section_parameters import hidden_section, parameter_section
from dynid.report.section_record import data_section, settings_section
from dynid.report.section_residuals import residual_section, test_section

__all__ = ["write", "write_comparison"]

_RESULT = {"passed": "passed", "warned": "warned", "failed": "failed", "not checked": "not"}


def write(
    estimate: Estimate,
    path: str | Path,
    validation: Validation | Recording | None = None,
    *,
    recording: Recording | None = None,
    findings: Iterable[Finding] | None = None,
    diagnosis: Diagnosis | None = None,
    others: Sequence[Estimate] = (),
    command: str = "",
    seed: int | None = None,
) -> Assessment:
    """Write the report of an estimate into one HTML file, and give the assessment that it opens with.

    `validation`, `recording`, `findings` and `diagnosis` are as for `dynid.assess`; `others` are estimates of the same
    robot by other methods. `command` and `seed` are written down for whoever wants to make the estimate again.
    """
    evidence = evidence_of(estimate, validation, recording, findings, diagnosis)
    if not evidence.finite:
        raise DataError(f"the estimate is {estimate.status}; it has no values to report")
    assessment = assess_evidence(evidence)
    sections = [
        torque_section(evidence),
        parameter_section(evidence),
        hidden_section(evidence),
        residual_section(evidence),
        test_section(evidence),
        body_section(evidence),
        friction_section(evidence),
        motion_section(evidence),
        method_section(evidence, others) if others else None,
        data_section(evidence),
        settings_section(evidence, command, seed),
    ]
    page = _page(
        title=f"{estimate.robot.name}: can its model be trusted?",
        subtitle=f"{estimate.base.count} base parameters from {sum(estimate.rows)} rows, by method {estimate.method}.",
        judgements=[assessment],
        names=[""],
        figures=key_figures(evidence, assessment),
        sections=[_checks(assessment), *(s for s in sections if s is not None)],
    )
    write_text(path, page)
    return assessment


def write_comparison(
    first: Estimate,
    second: Estimate,
    path: str | Path,
    validation: Recording | None = None,
    *,
    recording: Recording | None = None,
    names: tuple[str, str] = ("A", "B"),
) -> tuple[Assessment, Assessment]:
    """Write two estimates of one robot side by side into one HTML file."""
    both = [evidence_of(e, validation, recording) for e in (first, second)]
    judgements = [assess_evidence(e) for e in both]
    page = _page(
        title=f"{first.robot.name}: {names[0]} against {names[1]}",
        subtitle=f"{first.method} and {second.method}, side by side.",
        judgements=judgements,
        names=list(names),
        figures=[],
        sections=comparison_sections(both, judgements, names),
    )
    write_text(path, page)
    return judgements[0], judgements[1]


def _checks(assessment: Assessment) -> Section:
    rows = [_row(c) for result in RESULTS for c in assessment.checks if c.result == result]
    head = ["check", "result", "found, and what to do", "figure", "limit"]
    lead = "Every question that was asked of the estimate. One failure forbids its use, one warning asks for care."
    return section("checks", "Why", lead, Table(head, rows, numbers=3))


def _row(check: Check) -> list[str | Markup]:
    mark = Markup('<span class="result {}">{}</span>').format(_RESULT[check.result], check.result)
    figure = "" if check.figure is None else f"{check.figure:.3g}"
    limit = "" if check.limit is None else f"{check.limit:.3g}"
    advice = Markup('<span class="expression">{}</span>').format(check.advice) if check.advice else ""
    return [check.name, mark, Markup("{}{}").format(check.words, advice), figure, limit]


def _page(**content: Any) -> str:
    import jinja2

    folder = resources.files("dynid.report") / "templates"

    def read(name: str) -> str:
        return (folder / name).read_text(encoding="utf-8")

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    template = environment.from_string(read("report.html.j2"))
    from dynid import __version__

    return template.render(
        style=Markup(read("style.css")),
        script=Markup(read("report.js")),
        footer=f"Made by dynid {__version__} with Python {sys.version.split()[0]}. It needs nothing else to open.",
        **content,
    )
