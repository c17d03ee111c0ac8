"""Reports: whether an estimate can be trusted, in one HTML file."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dynid.cli import options
from dynid.cli.app import Json, app, check_outputs
from dynid.cli.progress import working
from dynid.errors import DataError
from dynid.recording.recording import Recording
from dynid.robot.model import Robot

if TYPE_CHECKING:
    from dynid.assessment.tests.diagnosis import Diagnosis
    from dynid.assessment.verdict.assessment import Assessment
    from dynid.identification.estimate import Estimate

__all__ = ["headline", "judged"]


@app.command()
@options.with_logs
def report(
    machine: Robot,
    read: Callable[[Sequence[str]], Recording],
    estimate: Annotated[Path, typer.Argument(metavar="ESTIMATE", help="Saved estimate of `dynid identify`.")],
    data: Annotated[
        list[str] | None, typer.Option("--data", help="Log that the estimate was found from; may be repeated.")
    ] = None,
    validation: Annotated[
        list[str] | None,
        typer.Option("--validate", "--validation", help="Log of other motion to judge by; may be repeated."),
    ] = None,
    compare: Annotated[
        Path | None, typer.Option(help="Another saved estimate of the same robot, to stand beside the first.")
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the report goes.")] = Path("report.html"),
    as_json: Json = False,
) -> None:
    """Say whether a saved estimate can be trusted, and write an HTML report of it with the verdict beside it.

    Example: dynid report arm.urdf estimate.json --data run1.csv --validate run3.csv --friction viscous+coulomb+offset

    Example: dynid report arm.urdf estimate.json --compare other.json --validate run3.csv
    --friction viscous+coulomb+offset
    """
    from dynid.identification.estimate import Estimate
    from dynid.report.document import write as write_report
    from dynid.report.document import write_comparison

    check_outputs(output)
    known = Estimate.load(estimate, machine)
    fitted = read(data) if data else None
    unseen = read(validation) if validation else None
    rival = None if compare is None else Estimate.load(compare, machine)
    with working("judging and drawing"):
        if compare is not None and rival is not None:
            names = _names(estimate, compare)
            both = write_comparison(known, rival, output, unseen, recording=fitted, names=names)
            verdicts = dict(zip(names, both, strict=True))
        else:
            verdicts = {estimate.stem: write_report(known, output, unseen, recording=fitted, command=_command())}
            _save(verdicts[estimate.stem], output)
    print(f"wrote {output}", file=sys.stderr)
    if as_json:
        pages = {name: j.to_dict() for name, j in verdicts.items()}
        print(json.dumps(pages if compare is not None else pages[estimate.stem], indent=2))
        return
    for name, assessment in verdicts.items():
        print(f"{name}: {assessment.summary()}" if compare is not None else assessment.summary())


def judged(
    estimate: Estimate,
    where: str | None,
    output: Path | None,
    unseen: Recording | None,
    recording: Recording,
    diagnosis: Diagnosis | None,
) -> Assessment | None:
    """The assessment of `dynid identify`, with its report where one is asked for or an estimate is saved."""
    if where == "none":
        return None
    path = Path(where) if where is not None else output and output.with_suffix(".report.html")
    if path is None or not estimate.converged:
        from dynid.assessment.verdict.assess import assess

        return assess(estimate, unseen, recording=recording, diagnosis=diagnosis)
    if path.suffix not in (".html", ".htm"):
        raise DataError(f"--report takes an .html file or none, got '{where}'")
    from dynid.report.document import write as write_report

    assessment = write_report(estimate, path, unseen, recording=recording, diagnosis=diagnosis, command=_command())
    _save(assessment, path)
    print(f"wrote {path}", file=sys.stderr)
    return assessment


def headline(assessment: Assessment) -> str:
    """The verdict and its reasons."""
    return "\n".join([f"verdict: {assessment.verdict}", *(f"  - {reason}" for reason in assessment.reasons)])


def _save(assessment: Assessment, path: Path) -> None:
    stem = path.name.removesuffix(path.suffix).removesuffix(".report")
    assessment.save(path.with_name("verdict.json" if stem == "report" else f"{stem}.verdict.json"))


def _names(first: Path, second: Path) -> tuple[str, str]:
    return (first.stem, second.stem) if first.stem != second.stem else (str(first), str(second))


def _command() -> str:
    """The command line that is running, for whoever wants to run it again."""
    return shlex.join(["dynid", *sys.argv[1:]])
