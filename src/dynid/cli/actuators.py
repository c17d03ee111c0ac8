"""Actuators identified from commanded and measured positions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from dynid.cli import complete, options, values
from dynid.cli.actuator_inputs import actuated_robot, stated_law
from dynid.cli.app import Json, app, check_outputs, wrote
from dynid.cli.inputs import Inputs
from dynid.cli.output import required
from dynid.cli.progress import working
from dynid.cli.report import conclude, judged, result_page
from dynid.cli.wrap import with_logs
from dynid.errors import DynidError, MissingArgument, TooFew, UnknownName, WrongFormat
from dynid.export.simulators.registry import simulator_names, simulator_target

if TYPE_CHECKING:
    from dynid.actuators.estimate import ActuatorEstimate
    from dynid.actuators.validation import PositionErrors
    from dynid.export.label import Label
    from dynid.recording.recording import Recording


@app.command()
@with_logs(cleaning=())
def actuators(
    inputs: Inputs,
    data: options.Data = None,
    law: options.Law = None,
    control_rate: options.ControlRate = None,
    hold: options.Hold = None,
    unknown: options.Unknown = None,
    validate: options.Validate = None,
    validate_share: options.ValidateShare = None,
    validate_rows: options.ValidateRows = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write law, values and errors into this file (.toml, .json).")
    ] = None,
    export: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            autocompletion=complete.joined(simulator_names(), ","),
            help=f"Write files for these simulators beside the output: {', '.join(simulator_names())}.",
        ),
    ] = None,
    draws: options.Draws = None,
    report: options.ResultReport = None,
    require: options.Require = None,
    untrusted: options.Untrusted = False,
    as_json: Json = False,
) -> None:
    """Identify armature, friction and delay of actuators from encoders alone: no torques are measured.

    The log holds measured and commanded positions; the law turns the command into torque. Damping, friction and
    armature of the robot file are the start. In a folder with dynid.toml, its section [actuators] has the law, the
    unknowns and the files to write; options override it.

    Example: dynid actuators arm.urdf encoders1.csv --law pd:400,25 --validate encoders2.csv -o actuators.toml

    Example: dynid actuators arm.urdf encoders1.csv --law pd:400,25 -o servo.toml --export mujoco,isaaclab --draws 100
    """
    from dynid.actuators.identify import identify_actuators
    from dynid.actuators.validation import position_errors
    from dynid.export.label import Label

    project = inputs.project
    if project is not None:
        chosen = project.actuators
        output = output or project.beside(chosen.output)
        draws = chosen.draws if draws is None else draws
        export = export or ",".join(chosen.export)
    wanted, sheet = required(require), result_page(report)
    if output is not None and output.suffix not in (".toml", ".json"):
        raise WrongFormat(f"--output is a .toml or .json file, not '{output.name}'", "output")
    if draws is not None and output is None:
        raise MissingArgument("--draws writes ranges beside the output: name it with -o", "output")
    draws = None if draws is None else values.draws(draws)
    files = _simulator_files(export, output)
    ranges = None if draws is None or output is None else output.with_name(f"{output.stem}_ranges.json")
    check_outputs(output, *files.values(), ranges, sheet)
    robot = actuated_robot(inputs)
    given, quantities = stated_law(inputs, robot, law, control_rate, hold, unknown)
    recording, unseen = inputs.read_split(validate, validate_share, validate_rows)
    with working("identifying actuators") as work:
        found = identify_actuators(robot, recording, given, unknown=quantities, progress=work.report)
    found = _searched(found, recording, unseen)
    after = prior = None
    if unseen is not None:
        with working("simulating other motion"):
            after = position_errors(found.robot, found.law, unseen, fitted=found.fingerprint)
            prior = position_errors(robot.with_base("fixed"), given, unseen)
    verdict = judged(found, sheet, after, prior)
    if output is not None:
        found.save(output)
        wrote(output)
    refused, label = None, Label(verdict.judgement())
    try:
        _export(found, files, label, untrusted)
        if ranges is not None and draws is not None:
            _ranges(found, ranges, draws, label, untrusted)
    except DynidError as error:  # the verdict is worth reading all the same
        refused = error
    lines = "\n".join(_lines(found, after, prior))
    conclude(lines, _page(found, after, prior), verdict, sheet, None if refused is not None else wanted, as_json)
    if refused is not None:
        raise refused


def _searched(found: ActuatorEstimate, recording: Recording, unseen: Recording | None) -> ActuatorEstimate:
    """The estimate with what explains its errors; as it is where a log is too short to leave a part of it out."""
    from dynid.actuators.cause_search import actuator_causes

    with working("searching for unmodeled effects") as work:
        try:
            return found.with_causes(actuator_causes(found, recording, unseen, progress=work.report))
        except TooFew:
            return found


def _simulator_files(text: str | None, output: Path | None) -> dict[str, Path]:
    """The files of simulators by their names, beside the output."""
    out: dict[str, Path] = {}
    for name in values.names(text):
        if output is None:
            raise MissingArgument("--export writes files beside the output: name it with -o", "output")
        if name not in simulator_names():
            raise UnknownName(f"--export '{name}' is unknown: use {', '.join(simulator_names())}", "export")
        out[name] = output.with_name(f"{output.stem}_{name}{simulator_target(name).ending}")
    return out


def _export(found: ActuatorEstimate, files: dict[str, Path], label: Label, untrusted: bool) -> None:
    """Files for simulators with the verdict; what they cannot hold is told."""
    from dynid.export.simulators.properties import loss_sentences
    from dynid.export.simulators.write import write_actuators

    for name, path in files.items():
        file = write_actuators(found.robot, found.law, path, name, label=label, untrusted=untrusted)
        wrote(path)
        for sentence in (*file.warnings, *loss_sentences(file.lost)):
            print(f"{name}: {sentence}", file=sys.stderr)


def _ranges(found: ActuatorEstimate, path: Path, count: int, label: Label, untrusted: bool) -> None:
    """Ranges of draws with their correlation and the verdict."""
    from dynid.actuators.posterior import draw_actuators
    from dynid.export.randomization import write_ranges

    write_ranges(draw_actuators(found, count), path, label=label, untrusted=untrusted)
    wrote(path)


def _lines(found: ActuatorEstimate, after: PositionErrors | None, prior: PositionErrors | None) -> list[str]:
    """Values and errors per joint as text."""
    lines = [found.table(), ""]
    rms, before = (found.rms, found.prior_rms) if after is None or prior is None else (after.rms, prior.rms)
    motion = "fitted" if after is None else "other"
    wide = max(len(x) for x in found.law.joints)
    lines.append(f"position error of {motion} motion (root mean square), identified and as given:")
    for joint, a, b in zip(found.law.joints, rms, before, strict=True):
        lines.append(f"  {joint:<{wide}}  {a:.2e}  {b:.2e}")
    lines.append(f"{found.rows} rows, {found.horizon:.3g} s simulated, {found.seconds:.1f} s of computing")
    return lines + [f"note: {x}" for x in found.notes]


def _page(found: ActuatorEstimate, after: PositionErrors | None, prior: PositionErrors | None) -> dict[str, Any]:
    """Everything as plain data."""
    kinds = {joint.name: joint.kind for joint in found.robot.joints}
    return {
        "unknowns": [
            {
                "label": x.label,
                "value": float(value),
                "std": float(std) if np.isfinite(std) else None,
                "unit": x.unit,
                "at_bound": bool(bound),
            }
            for x, value, std, bound in zip(found.unknowns, found.values, found.std, found.at_bound, strict=True)
        ],
        "joints": list(found.law.joints),
        "position_units": ["m" if kinds[joint] == "prismatic" else "rad" for joint in found.law.joints],
        "rows": found.rows,
        "notes": list(found.notes),
        "causes": None if found.causes is None else found.causes.to_dict(),
        "confounded": [x._asdict() for x in found.confounded],
        "rms": found.rms.tolist(),
        "prior_rms": [float(x) if np.isfinite(x) else None for x in found.prior_rms],
        "unseen": None if after is None else after.to_dict(),
        "unseen_prior": None if prior is None else prior.to_dict(),
    }
