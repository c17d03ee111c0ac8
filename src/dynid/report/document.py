"""The report of an estimate: one self-contained HTML file, with the verdict first."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from markupsafe import Markup

from dynid.assessment.causes.diagnosis import Diagnosis
from dynid.assessment.finding import Finding
from dynid.assessment.verdict.assess import assess_evidence, evidence_of
from dynid.assessment.verdict.assessment import RESULTS, Assessment, Check
from dynid.assessment.verdict.evidence import Evidence
from dynid.errors import MissingData
from dynid.files import write_text
from dynid.identification.estimate import Estimate
from dynid.identification.observation import Observation
from dynid.identification.validation_errors import Validation
from dynid.recording.dataset import DataSet
from dynid.recording.recording import Recording
from dynid.report.compared import comparison_sections, method_section
from dynid.report.content import Section, Table, section
from dynid.report.provenance import Provenance, written
from dynid.report.section_bodies import body_section, friction_section
from dynid.report.section_errors import key_figures, torque_section
from dynid.report.section_motion import data_section, motion_section, settings_section, simulation_section
from dynid.report.section_parameters import hidden_section, parameter_section
from dynid.report.section_residuals import residual_section, test_section

__all__ = ["checks_section", "page_of", "write", "write_comparison", "write_evidence"]

_RESULT = {"passed": "passed", "warned": "warned", "failed": "failed", "not checked": "not"}


def write(
    estimate: Estimate,
    path: str | Path,
    validation: Validation | Recording | DataSet | Observation | None = None,
    *,
    recording: Recording | DataSet | None = None,
    observation: Observation | None = None,
    findings: Iterable[Finding] | None = None,
    diagnosis: Diagnosis | None = None,
    others: Sequence[Estimate] = (),
    command: str = "",
    seed: int | None = None,
    files: Sequence[str | Path] = (),
    project: str = "",
) -> Assessment:
    """Write the report of an estimate into one HTML file.

    Parameters
    ----------
    estimate : Estimate
        Estimate to report.
    path : str or Path
        HTML file to write.
    validation : Recording, DataSet, Observation or Validation, optional
        Motion that was not used for the estimate, see `dynid.assess`.
    recording : Recording or DataSet, optional
        Recording that the estimate was identified from. Charts and checks of a data set use evenly spaced chunks.
    observation : Observation, optional
        Observation that the estimate was identified from; by default it is computed from `recording`.
    findings : iterable of Finding, optional
        Findings of `dynid.check`; by default the recordings are checked here.
    diagnosis : Diagnosis, optional
        Hypothesis tests of `dynid.stats.diagnose`.
    others : sequence of Estimate
        Estimates of the same robot by other methods, for comparison.
    command : str
        Command that reproduces the estimate; it is shown in the report.
    seed : int, optional
        Random seed of the estimate; it is shown in the report.
    files : sequence of str or Path
        Files of the robot and of the recordings; the report has their names and SHA-256.
    project : str
        Text of the project file (dynid.toml) that reproduces the estimate; it is shown in the report.

    Returns
    -------
    Assessment
        The assessment at the top of the report.

    Raises
    ------
    DataError
        If the estimate has no finite parameters, or the data do not fit it.

    Examples
    --------
    >>> import tempfile, dynid
    >>> from dynid.cli.demo import synthetic_recording
    >>> robot = dynid.load_robot("twolink", friction="viscous+coulomb")
    >>> fitted, unseen = (synthetic_recording(robot, seed, 10.0) for seed in (0, 1))
    >>> estimate = dynid.identify(robot, fitted, "feasible")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dynid.report.write(estimate, folder + "/report.html", unseen, recording=fitted).verdict
    'trusted'
    """
    evidence = evidence_of(
        estimate, validation, recording=recording, observation=observation, findings=findings, diagnosis=diagnosis
    )
    return write_evidence(evidence, path, others=others, origin=Provenance(command, seed, files, project))


def write_evidence(
    evidence: Evidence,
    path: str | Path,
    *,
    others: Sequence[Estimate] = (),
    origin: Provenance | None = None,
    assessment: Assessment | None = None,
) -> Assessment:
    """Write the report of an estimate whose evidence was collected, and perhaps assessed, before; see `write`."""
    estimate = evidence.estimate
    if not evidence.finite:
        raise MissingData(f"the estimate is {estimate.status}; it has no parameters to report")
    assessment = assessment or assess_evidence(evidence)
    sections = [
        torque_section(evidence),
        simulation_section(evidence),
        parameter_section(evidence),
        hidden_section(evidence),
        residual_section(evidence),
        test_section(evidence),
        body_section(evidence),
        friction_section(evidence),
        motion_section(evidence),
        method_section(evidence, others),
        data_section(evidence),
        settings_section(evidence, origin or Provenance()),
    ]
    page = page_of(
        title=f"{estimate.robot.name}: can its model be trusted?",
        subtitle=f"{estimate.base.count} base parameters from {sum(estimate.rows)} rows, by method {estimate.method}. "
        f"Report of {written()}.",
        judgements=[assessment],
        names=[""],
        figures=key_figures(evidence, assessment),
        sections=[checks_section(assessment), *(s for s in sections if s is not None)],
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
    """Write a comparison of two estimates of one robot into one HTML file.

    Parameters
    ----------
    first, second : Estimate
        Estimates of the same robot and drive terms.
    path : str or Path
        HTML file to write.
    validation : Recording, optional
        Motion that was used for neither.
    recording : Recording, optional
        Recording that both were identified from.
    names : tuple of str
        Names of the two estimates in the report.

    Returns
    -------
    tuple of Assessment
        The assessments of both.

    Raises
    ------
    DataError
        If the estimates are of different robots or drive terms.
    """
    both = [evidence_of(e, validation, recording=recording) for e in (first, second)]
    judgements = [assess_evidence(e) for e in both]
    page = page_of(
        title=f"{first.robot.name}: {names[0]} and {names[1]}",
        subtitle=f"Comparison of {first.method} and {second.method}.",
        judgements=judgements,
        names=list(names),
        figures=[],
        sections=comparison_sections(both, judgements, names),
    )
    write_text(path, page)
    return judgements[0], judgements[1]


def checks_section(assessment: Assessment) -> Section:
    """All checks, failed ones first."""
    rows = [_row(c) for result in RESULTS for c in assessment.checks if c.result == result]
    head = ["check", "result", "found, and what to do", "figure", "limit", "unit"]
    lead = "All checks. After a failed check the result should not be used; after a warning, use it with care."
    return section("checks", "Why", lead, Table(head, rows, numbers=3, words=(5,), stacked=True))


def _row(check: Check) -> list[str | Markup]:
    """Table row of a check."""
    mark = Markup('<span class="result {}">{}</span>').format(_RESULT[check.result], check.result)
    # Shares are shown in percent, as in the sentence beside them.
    share = check.unit.startswith("of the ")
    figure, limit = (
        "" if x is None else f"{100 * x:.3g} %" if share else f"{x:.3g}" for x in (check.figure, check.limit)
    )
    advice = Markup('<span class="expression">{}</span>').format(check.advice) if check.advice else ""
    return [check.name, mark, Markup("{}{}").format(check.words, advice), figure, limit, check.unit]


def page_of(**content: Any) -> str:
    """The HTML page."""
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
        footer=f"Made by dynid {__version__} with Python {sys.version.split()[0]}. This file is self-contained.",
        **content,
    )
