"""Models to take away: files for simulators, code for controllers, equations for readers."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli import complete, options, values
from dynid.cli.app import Json, app, check_outputs, wrote
from dynid.cli.inputs import Inputs
from dynid.cli.progress import working
from dynid.cli.wrap import with_model
from dynid.errors import MissingArgument, NotApplicable, UnknownName, WrongFormat, did_you_mean
from dynid.export.endings import ENDINGS, TEMPLATES
from dynid.export.simulators.registry import simulator_names
from dynid.files import write_text
from dynid.quoting import one_line

if TYPE_CHECKING:
    from dynid.identification.estimate import Estimate
    from dynid.robot.model import Robot

_ENDINGS = {**ENDINGS, ".c": "c", ".h": "c", ".py": "python", ".jl": "julia", ".m": "matlab"}
_ENDINGS |= {".casadi": "casadi", ".tex": "latex"}
_TENSORS = ("torch", "jax")  # Python files too: they are named by --to
FORMATS = (*dict.fromkeys(_ENDINGS.values()), *_TENSORS)
_CODE = ("c", "python", "julia", "matlab", "casadi", *_TENSORS)
_FUNCTIONS = ("inverse_dynamics", "gravity_torque", "coriolis_torque", "mass_matrix", "forward_dynamics", "regressor")


@app.command()
@with_model
def export(
    inputs: Inputs,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File to write; for code a file or a folder.")
    ] = None,
    to: Annotated[str | None, typer.Option("--to", help=f"{', '.join(FORMATS)}. [by the ending of the output]")] = None,
    template: Annotated[
        Path | None, typer.Option(help="URDF, MJCF or SDF file of which only inertias and drives change.")
    ] = None,
    parameters: Annotated[
        str | None,
        typer.Option(
            help="Of code and equations: standard, base, symbolic (an argument) or symbolic-base. "
            "[standard; symbolic for torch and jax]"
        ),
    ] = None,
    functions: Annotated[
        str | None, typer.Option(help="Functions of the code, separated by commas, or all. [those of a controller]")
    ] = None,
    simulator: Annotated[
        str | None,
        typer.Option(
            autocompletion=complete.simulators,
            help=f"Actuators for a simulator, which need --law: {', '.join(simulator_names())}.",
        ),
    ] = None,
    law: options.Law = None,
    step: Annotated[
        float | None, typer.Option(help="Physics step of the simulator in seconds. [period of the law, or 0.001]")
    ] = None,
    draws: options.Draws = None,
    name: Annotated[str | None, typer.Option(help="Name of the code. [that of the file, else of the robot]")] = None,
    dated: Annotated[str | None, typer.Option("--date", help="Date in the head of code. [today]")] = None,
    allow_infeasible: options.AllowInfeasible = False,
    untrusted: options.Untrusted = False,
    as_json: Json = False,
) -> None:
    """Write a robot, or an identified one, for a simulator, a controller or a reader.

    Every file of an estimate holds its verdict and domain. Below "trusted" one line says so; "do not use" is refused.

    Example: dynid export arm.urdf -o arm.c

    Example: dynid export estimate.json --parameters base -o arm.py

    Example: dynid export arm.urdf --rotor-inertia --simulator mujoco --law pd:60,4 -o arm.xml

    Example: dynid export estimate.json --to torch -o arm.py

    Example: dynid export estimate.json --draws 1000 -o ranges.json
    """
    from dynid.export.model_file import write as write_model

    if output is None:
        raise MissingArgument("name the file to write with -o, as in -o arm.c", "output")
    if not output.is_dir():
        check_outputs(output)
    if simulator is None and step is not None:
        raise NotApplicable("--step is for actuators: name the simulator with --simulator", "step")
    others = {"--to": to, "--functions": functions, "--name": name, "--parameters": parameters}
    if draws is not None:
        unused = [option for option, given in (others | {"--simulator": simulator}).items() if given is not None]
        if unused:
            raise NotApplicable(f"{unused[0]} is not for ranges of draws")
        _ranges(inputs, output, values.draws(draws), untrusted, as_json)
        return
    if simulator is not None:
        for option, given in others.items():
            if given is not None:
                raise NotApplicable(f"{option} is not for the actuators of a simulator", option)
        _actuators(inputs, output, simulator, law, step, template, allow_infeasible, untrusted, as_json)
        return
    form = _form(to, output)
    if law is not None and form not in _TENSORS:
        raise NotApplicable(f"--law is for --simulator and for {' and '.join(_TENSORS)}, not for {form}")
    if template is not None and form not in TEMPLATES:
        raise NotApplicable(f"--template is for {', '.join(TEMPLATES)}, not for {form}", "template")
    for option, given in (("--functions", functions), ("--name", name)):
        if given is not None and form not in _CODE:
            raise NotApplicable(f"{option} is for code ({', '.join(_CODE)}), not for {form}", option)
    if parameters is not None and form not in (*_CODE, "latex"):
        raise NotApplicable(f"--parameters is for code and equations, not for {form}", "parameters")
    source = inputs.estimate if inputs.estimate is not None else inputs.robot
    operations: dict[str, str] = {}
    paths, warnings = [output], list[str]()
    if form in _CODE:
        today = date.today().isoformat() if dated is None else dated
        code = _code(source, form, output, functions, parameters, name, today, allow_infeasible, untrusted, law)
        paths, operations, warnings = code
    elif form == "latex":
        warnings = _latex(source, output, parameters, untrusted)
    else:
        settings: dict[str, Any] = {"allow_infeasible": allow_infeasible, "untrusted": untrusted}
        warnings = write_model(source, output, form=form, template=template, **settings)
    for warning in warnings:
        print(f"dynid: {warning}", file=sys.stderr)
    for path in paths:
        wrote(path)
    if as_json:
        page = {"written": [str(p) for p in paths], "format": form, "warnings": warnings, "operations": operations}
        print(json.dumps(page, indent=2))
    else:
        for function, count in operations.items():
            print(f"{function}: {count}")


def _actuators(
    inputs: Inputs,
    output: Path,
    simulator: str,
    law: str | None,
    step: float | None,
    template: Path | None,
    allow_infeasible: bool,
    untrusted: bool,
    as_json: bool,
) -> None:
    """The actuators of the robot for a simulator; what it cannot hold is told."""
    from dynid.actuators.law_file import load_law
    from dynid.export.simulators.properties import loss_sentences
    from dynid.export.simulators.write import write_actuators

    if law is None:
        raise MissingArgument("--simulator needs the law of the actuators, such as --law pd:20,1.5")
    source = inputs.estimate if inputs.estimate is not None else inputs.robot
    given = load_law(law, inputs.robot.coordinates)
    settings: dict[str, Any] = {"allow_infeasible": allow_infeasible, "untrusted": untrusted}
    file = write_actuators(source, given, output, simulator, step=step, template=template, **settings)
    warnings = [*file.warnings, *loss_sentences(file.lost)]
    for warning in warnings:
        print(f"dynid: {warning}", file=sys.stderr)
    if as_json:
        kept = {str(k.what): k.place for k in file.kept}
        lost = [asdict(loss) for loss in file.lost]
        page = {"written": [str(output)], "simulator": simulator, "warnings": warnings, "kept": kept, "lost": lost}
        print(json.dumps(page, indent=2))
    wrote(output)


def _ranges(inputs: Inputs, output: Path, count: int, untrusted: bool, as_json: bool) -> None:
    """Ranges of the standard parameters of an estimate with their correlation and its verdict."""
    from dynid.export.label import label_of
    from dynid.export.randomization import write_ranges
    from dynid.identification.parameter_draws import ParameterDraws

    if inputs.estimate is None:
        raise NotApplicable("--draws are those of an estimate: name its file in place of the robot", "draws")
    label = label_of(inputs.estimate, untrusted)
    with working("drawing robots"):
        drawn = ParameterDraws.of(inputs.estimate, count)
    write_ranges(drawn, output, label=label, untrusted=untrusted)
    for warning in () if label is None else label.warnings:
        print(f"dynid: {warning}", file=sys.stderr)
    if as_json:
        print(json.dumps({"written": [str(output)], "draws": count}, indent=2))
    wrote(output)


def _form(to: str | None, output: Path) -> str:
    """The format: that of --to, or that of the ending."""
    if to is not None:
        if to not in FORMATS:
            raise UnknownName(f"--to '{to}' is unknown: use {', '.join(FORMATS)}{did_you_mean(to, FORMATS)}", "to")
        return to
    if output.suffix.lower() not in _ENDINGS:
        raise WrongFormat(
            f"the ending of '{output}' does not name a format: use --to with one of {', '.join(FORMATS)}", "output"
        )
    return _ENDINGS[output.suffix.lower()]


def _code(
    source: Robot | Estimate,
    form: str,
    output: Path,
    functions: str | None,
    parameters: str | None,
    name: str | None,
    today: str,
    allow_infeasible: bool,
    untrusted: bool,
    law: str | None,
) -> tuple[list[Path], dict[str, str], list[str]]:
    """Code into a folder, or, where the output ends as code does, beside it under its name."""
    from dynid.actuators.law_file import load_law
    from dynid.codegen.generate import generate_code
    from dynid.robot.model import Robot

    wanted: str | tuple[str, ...] = _FUNCTIONS
    if functions is not None:
        wanted = "all" if functions == "all" else tuple(functions.split(","))
    else:
        if parameters is None or not parameters.endswith("base"):
            wanted = (*_FUNCTIONS, "drive_torque")  # base parameters add rotors to bodies
        if form in _TENSORS:
            wanted = tuple(f for f in wanted if f != "regressor")
    robot = source if isinstance(source, Robot) else source.robot
    named = output.suffix.lower() in _ENDINGS
    folder = output.parent if named else output
    with working("writing the dynamics as code"):
        code = generate_code(
            source,
            wanted,
            language=form,
            parameters=parameters,
            name=name if name is not None or not named else output.stem,
            date=today,
            allow_infeasible=allow_infeasible,
            untrusted=untrusted,
            law=None if law is None else load_law(law, robot.coordinates),
        )
    return list(code.write(folder)), {f: str(count) for f, count in code.operations.items()}, list(code.warnings)


def _latex(source: Robot | Estimate, output: Path, parameters: str | None, untrusted: bool) -> list[str]:
    """Equations of motion as LaTeX; the verdict on an estimate stands in the head and is returned below "trusted"."""
    from dynid.codegen.symbolic import equations
    from dynid.export.label import label_of
    from dynid.parameters.base import base_parameters
    from dynid.robot.model import Robot

    kind = parameters or "standard"
    if kind not in ("standard", "base", "symbolic", "symbolic-base"):
        raise UnknownName(f"--parameters '{kind}' is unknown: use standard or base", "parameters")
    label = label_of(source, untrusted)
    robot = source if isinstance(source, Robot) else source.robot
    base, numbers = None, robot.parameters if isinstance(source, Robot) else source.parameters
    if kind.endswith("base"):
        base = base_parameters(robot) if isinstance(source, Robot) else source.base
        numbers = base.values() if isinstance(source, Robot) else source.beta
    with working("deriving the equations, up to a minute for four joints"):
        found = equations(robot, base)
        text = found.latex()
    if not kind.startswith("symbolic"):
        named = zip(found.parameters.items(), numbers, strict=True)
        text += "% values:\n" + "".join(f"% {symbol} = {x:.12g}  ({n})\n" for (n, symbol), x in named)
    if label is None:
        write_text(output, text)
        return []
    about = (label if kind == "standard" else label.without_bodies()).lines()
    write_text(output, "".join(f"% {one_line(line)}\n" for line in about) + text)
    return label.warnings
