"""Reports: whether an estimate can be trusted, in one HTML file."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli import data_sets, options
from dynid.cli.app import Json, app, check_outputs, wrote
from dynid.cli.inputs import Inputs, load_estimate
from dynid.cli.output import check_required, error_lines, required, show, verdict_lines
from dynid.cli.progress import working
from dynid.cli.wrap import with_estimate
from dynid.errors import DynidError, NotApplicable, WrongFormat

if TYPE_CHECKING:
    from dynid.assessment.verdict.assessment import Assessment
    from dynid.assessment.verdict.evidence import Evidence
    from dynid.identification.estimate import Estimate
    from dynid.recording.recording import Recording

__all__ = ["Compare", "assess_and_report", "conclude", "judged", "report_files", "result_page"]

Compare = Annotated[
    Path | None, typer.Option("--compare", help="Another saved estimate of the same robot, compared with the first.")
]


@app.command()
@with_estimate
def report(
    inputs: Inputs,
    data: Annotated[
        list[str] | None,
        typer.Argument(metavar="DATA", help="Logs that the estimate was identified from. [those of dynid.toml]"),
    ] = None,
    validate: options.Validate = None,
    validate_share: options.ValidateShare = None,
    validate_rows: options.ValidateRows = None,
    compare: Compare = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="File of the report.")] = Path("report.html"),
    table: options.ParameterTable = False,
    require: options.Require = None,
    cluster: options.Cluster = None,
    skip_bad_partitions: options.SkipBadPartitions = False,
    as_json: Json = False,
) -> None:
    """Assess whether a saved estimate can be trusted, and write an HTML report of it with the verdict beside it.

    The file of the estimate keeps the verdict, which `dynid export` writes into models; without unseen motion it can
    only get worse.

    Example: dynid report estimate.json run1.csv --validate run3.csv

    Example: dynid report estimate.json --compare other.json --validate run3.csv
    """
    from dynid.assessment.verdict.assess import assess_evidence, evidence_of
    from dynid.report.document import write_comparison, write_evidence
    from dynid.report.provenance import Provenance

    check_outputs(output, None if compare is not None else _verdict_file(output))
    wanted = required(require)
    estimate, file = inputs.estimate, inputs.estimate_file
    assert estimate is not None and file is not None
    other = None if compare is None else load_estimate(compare)
    fitted, unseen = _motion(
        inputs, validate, validate_share, validate_rows, compare is None, cluster, skip_bad_partitions
    )
    with working("assessing the estimate and writing the report"):
        if compare is not None and other is not None:
            names = _names(file, compare)
            held_out = None if unseen is None else unseen.recording
            both = write_comparison(estimate, other, output, held_out, recording=fitted, names=names)
            validation = None if held_out is None else estimate.validate(held_out)
            verdicts = dict(zip(names, both, strict=True))
            _keep(estimate, both[0], file)
            _keep(other, both[1], compare)
        else:
            project = "" if inputs.project is None else inputs.project.path.read_text(encoding="utf-8")
            others = inputs.held_out(validate, validate_share, validate_rows).logs
            evidence = evidence_of(estimate, **({} if unseen is None else unseen.evidence), recording=fitted)
            origin = Provenance(_command(), files=inputs.files(*others), project=project)
            assessment = assess_evidence(evidence)
            _keep(estimate, assessment, file)
            verdicts = {file.stem: write_evidence(evidence, output, origin=origin, assessment=assessment)}
            validation = evidence.validation
            _save(verdicts[file.stem], output)
    if as_json:
        pages = {name: assessment.to_dict() for name, assessment in verdicts.items()}
        print(json.dumps(pages if compare is not None else pages[file.stem], indent=2))
    else:
        if table:
            show(estimate.summary())
        for name, assessment in verdicts.items():
            show(f"{name}: {assessment.summary()}" if compare is not None else assessment.summary())
        show("\n".join(error_lines(estimate, validation)))
        for assessment in verdicts.values():
            show("\n".join(verdict_lines(assessment)[:1]))
    wrote(output)
    check_required(wanted, *verdicts.values())


def _motion(
    inputs: Inputs,
    validate: list[str] | None,
    share: float | None,
    rows: str | None,
    streams: bool,
    cluster: str | None,
    skip_bad: bool,
) -> tuple[Recording | None, data_sets.Unseen | None]:
    """The fitted recording and the motion to validate on, as far as they are given; of data sets, a part.

    Without `streams` data sets are refused.
    """
    from dynid.assessment.verdict.assess import part_of
    from dynid.recording.dataset import DataSet

    found = data_sets.read_fitted(inputs, validate, share, rows, long=streams)
    if found is not None:
        if not streams:
            raise NotApplicable("--compare is for log files, not for a data set", "compare")
        assert inputs.estimate is not None
        with data_sets.client_of(cluster) as client:
            unseen = data_sets.predicted(inputs.estimate, found[1], data_sets.Work(client, skip_bad))
        return part_of(found[0]) if isinstance(found[0], DataSet) else found[0], unseen
    data_sets.check_files_only(cluster, skip_bad)
    fitted, other = None, None
    if inputs.data or share is not None or rows is not None:
        fitted, other = inputs.read_split(validate, share, rows)
    elif validate:
        other = inputs.read(validate)
    return fitted, None if other is None else data_sets.Unseen(other)


def assess_and_report(
    evidence: Evidence,
    report: str | None,
    output: Path | None,
    *,
    files: Sequence[Path] = (),
    project: str = "",
    assessed: Callable[[Assessment], None] = lambda _: None,
) -> tuple[Assessment | None, Path | None]:
    """The assessment of `dynid identify`, and its report where one is asked for or an estimate is saved.

    Parameters
    ----------
    evidence : Evidence
        The estimate with the observation, validation and tests that exist.
    report : str or None
        Value of --report: a file, "none" for no assessment, or None for a report beside `output`.
    output : Path or None
        File of the estimate.
    files, project
        Files that were read, and the text of the project file that computes the estimate again.
    assessed : callable
        Is given the verdict before the report is written, which is younger than what belongs to it.

    Returns
    -------
    Assessment or None
        The verdict.
    Path or None
        The report, if one was written.
    """
    if report == "none":
        return None, None
    from dynid.assessment.verdict.assess import assess_evidence
    from dynid.report.document import write_evidence
    from dynid.report.provenance import Provenance

    assessment = assess_evidence(evidence)
    assessed(assessment)
    path = next(iter(report_files(report, output)), None)
    if path is None or not evidence.estimate.converged:
        return assessment, None
    origin = Provenance(_command(), files=files, project=project)
    write_evidence(evidence, path, origin=origin, assessment=assessment)
    _save(assessment, path)
    return assessment, path


def result_page(report: Path | None) -> Path | None:
    """The value of --report of commands whose page is written only where it is named, checked."""
    if report is not None and report.suffix not in (".html", ".htm"):
        raise WrongFormat(f"--report takes an .html file, got '{report}'", "report")
    return report


def judged(result: Any, report: Path | None, unseen: Any = None, prior: Any = None) -> Assessment:
    """The verdict on a payload, gains, friction, a fleet, actuators or a geometry, and its page where asked for."""
    if report is None:
        from dynid.report.results import verdict_on

        return verdict_on(result, unseen, prior)
    from dynid.report.results import write_result

    assessment = write_result(result, report, unseen, prior, command=_command())
    wrote(report)
    return assessment


def conclude(
    words: str, page: dict[str, Any], assessment: Assessment, report: Path | None, wanted: str | None, as_json: bool
) -> None:
    """Print a result and its verdict, as text or as JSON, and end as --require asks for."""
    if as_json:
        print(json.dumps(page | {"verdict": assessment.to_dict()}, indent=2))
    else:
        show(words)
        show("\n".join(verdict_lines(assessment, report)))
    check_required(wanted, assessment)


def report_files(report: str | None, output: Path | None) -> tuple[Path, ...]:
    """The report and the verdict that `dynid identify` writes, for its --report and --output; () for none."""
    path = None if report == "none" else Path(report) if report is not None else output
    if path is None:
        return ()
    if report is None:
        path = path.with_suffix(".report.html")
    elif path.suffix not in (".html", ".htm"):
        raise WrongFormat(f"--report takes an .html file or none, got '{report}'", "report")
    return path, _verdict_file(path)


def _keep(estimate: Estimate, assessment: Assessment, file: Path) -> None:
    """Let the file of an estimate hold its verdict; one that cannot be written stays as it is, which is told.

    Its time does not change: by it a report knows that it belongs to this result.
    """
    judgement = assessment.judgement().after(estimate.judgement)
    if judgement == estimate.judgement:
        return
    times = file.stat()
    try:
        estimate.with_judgement(judgement).save(file)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    except DynidError as error:
        print(f"dynid: the estimate does not hold this verdict: {error}", file=sys.stderr)
    else:
        wrote(file)


def _save(assessment: Assessment, path: Path) -> None:
    """Write the verdict beside the report."""
    assessment.save(_verdict_file(path))


def _verdict_file(path: Path) -> Path:
    """The file of the verdict, beside the report."""
    stem = path.name.removesuffix(path.suffix).removesuffix(".report")
    return path.with_name("verdict.json" if stem == "report" else f"{stem}.verdict.json")


def _names(first: Path, second: Path) -> tuple[str, str]:
    return (first.stem, second.stem) if first.stem != second.stem else (str(first), str(second))


def _command() -> str:
    """The command line that is running, which the report quotes."""
    return shlex.join(["dynid", *sys.argv[1:]])
