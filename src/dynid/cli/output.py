"""What commands print: text no wider than the terminal, errors, mass, verdict and its exit code, what to do next."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dynid.errors import UnknownName, did_you_mean
from dynid.identification.judgement import REASONS
from dynid.terminal import width

if TYPE_CHECKING:
    from dynid.assessment.verdict.assessment import Assessment
    from dynid.identification.estimate import Estimate
    from dynid.identification.validation_errors import Validation

__all__ = [
    "BELOW_REQUIRED",
    "check_required",
    "error_lines",
    "headline",
    "mass_lines",
    "next_lines",
    "required",
    "show",
    "verdict_lines",
]

# The exit code of a verdict below --require.
BELOW_REQUIRED = 3
# From the best to the worst, by the words of --require.
_VERDICTS = {"trusted": ("trusted",), "care": ("trusted", "use with care")}
# Characters that tables are drawn with; their lines must not be wrapped.
_TABLE = "│┃━─"


def show(text: str) -> None:
    """Print text; lines wider than the terminal are wrapped under their own indentation."""
    limit = width()
    for line in text.splitlines():
        if len(line) <= limit or any(c in line for c in _TABLE):
            print(line)
            continue
        hang = " " * (len(line) - len(line.lstrip()) + 2)
        print(textwrap.fill(line, limit, subsequent_indent=hang, break_on_hyphens=False))


def headline(estimate: Estimate) -> str:
    """One line on an estimate: how many parameters, by which method, from how many rows, and how it ended."""
    return (
        f"{estimate.robot.name}: {len(estimate.beta)} base parameters by {estimate.method} from {sum(estimate.rows)} "
        f"rows, condition number {estimate.condition_number:.4g}, {estimate.status}"
    )


def error_lines(estimate: Estimate, validation: Validation | None) -> list[str]:
    """Torque errors per joint: of the validation, or of the fit without one."""
    if validation is not None:
        title, joints = "torque errors on motion that was not used for the fit:", validation.channels
        rmse, relative = validation.rmse, validation.relative
    else:
        title, joints = "torque errors of the fit itself:", estimate.base.channels
        rmse, relative = estimate.rms, estimate.relative_error
    size = max(map(len, joints))
    units = estimate.robot.channel_units
    rows = zip(joints, rmse, relative, strict=True)
    shown = (
        f"{e:10.4g} {units[j]:<4} {100 * r:7.2f} %" if e == e else "not checked, the joint stands still"
        for j, e, r in rows
    )
    return [title, *(f"  {j:<{size}}  {text}" for j, text in zip(joints, shown, strict=True))]


def mass_lines(estimate: Estimate) -> list[str]:
    """The total mass beside that of the a-priori model, then masses of links that were given, and a box that is off."""
    from dynid.identification.bodies import total_mass
    from dynid.identification.summary import body_lines

    return [f"total mass: {total_mass(estimate).sentence}", *body_lines(estimate)]


def next_lines(assessment: Assessment | None, output: Path | None, report: Path | None) -> list[str]:
    """What to do next: read the report, mend what the checks found, take the model away."""
    steps = [] if report is None else [f"open {report} in a browser"]
    if output is None:
        steps.append("save the estimate and its report: -o estimate.json")
    if assessment is not None and not assessment.trusted:
        # Two remedies fit on a screen.
        steps += list(dict.fromkeys(c.advice for c in assessment.against if c.advice))[:2]
    elif output is not None and output.suffix == ".json":
        steps.append(f"dynid export {output} -o identified.urdf")
    return ["next:", *(f"  - {step}" for step in steps)] if steps else []


def verdict_lines(assessment: Assessment, report: Path | None = None) -> list[str]:
    """The verdict and its first reasons; the report has all of them."""
    reasons = list(assessment.reasons[:REASONS])
    more = len(assessment.reasons) - len(reasons)
    reasons += [f"{more} more in {report or 'the report (--report PAGE.html)'}"] if more else []
    return [f"verdict: {assessment.verdict}", *(f"  - {reason}" for reason in reasons)]


def required(text: str | None) -> str | None:
    """The value of --require, checked."""
    if text is not None and text not in _VERDICTS:
        raise UnknownName(f"--require takes trusted or care, got '{text}'{did_you_mean(text, _VERDICTS)}", "require")
    return text


def check_required(text: str | None, *assessments: Assessment | None) -> None:
    """End with exit code 3 where a verdict is below what --require asks for."""
    if text is None:
        return
    for assessment in assessments:
        if assessment is not None and assessment.verdict not in _VERDICTS[text]:
            print(f"dynid: the verdict is '{assessment.verdict}', --require {text} asks for better", file=sys.stderr)
            raise typer.Exit(BELOW_REQUIRED)
