"""From recordings to an estimate."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli import complete, data_sets, options, values
from dynid.cli.app import Json, app, check_outputs, write, wrote
from dynid.cli.inputs import Inputs
from dynid.cli.output import (
    check_required,
    error_lines,
    headline,
    mass_lines,
    next_lines,
    required,
    show,
    verdict_lines,
)
from dynid.cli.progress import working
from dynid.cli.report import assess_and_report, report_files
from dynid.cli.wrap import with_logs
from dynid.errors import ConflictingArguments, DynidError, InvalidValue, MissingArgument, NotApplicable

if TYPE_CHECKING:
    from dynid.assessment.causes.diagnosis import Diagnosis
    from dynid.assessment.verdict.assessment import Assessment
    from dynid.cli.values import HeldOut
    from dynid.identification.estimate import Estimate
    from dynid.identification.observation import Observation
    from dynid.identification.validation_errors import Validation
    from dynid.recording.recording import Recording
    from dynid.simulation.closed_loop import ClosedLoop

__all__ = [
    "Constraints",
    "Output",
    "PriorWeight",
    "ReportFile",
    "body_options",
    "feasible_options",
    "finish",
    "run_method",
]

Constraints = Annotated[
    str | None, typer.Option(help="With --method auto or feasible: full or semi (no triangle inequality). [full]")
]
PriorWeight = Annotated[
    str | None,
    typer.Option(
        help="With --method feasible: weight of the a-priori model, a number or cv. [as large as the data allow]"
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", help="Save the estimate (.json), or its robot: .urdf, .xml (MJCF), .sdf or .toml."),
]
ReportFile = Annotated[
    str | None,
    typer.Option("--report", help="File of the HTML report, the verdict beside it; none for no report. [at --output]"),
]


@app.command()
@with_logs
def identify(
    inputs: Inputs,
    data: options.Data = None,
    validate: options.Validate = None,
    validate_share: options.ValidateShare = None,
    validate_rows: options.ValidateRows = None,
    method: Annotated[
        str | None,
        typer.Option(
            autocompletion=complete.methods,
            help=complete.methods_help(),
        ),
    ] = None,
    constraints: Constraints = None,
    prior_weight: PriorWeight = None,
    mass: options.Mass = None,
    link_mass: options.LinkMass = None,
    box: options.Box = None,
    average: Annotated[
        bool,
        typer.Option(
            "--average",
            help="The logs repeat one motion: fit their mean by wls, with their scatter as the noise.",
        ),
    ] = False,
    controller: options.Controller = None,
    start: Annotated[
        str | None, typer.Option(help="First parameters to simulate with: prior (the file's) or feasible. [prior]")
    ] = None,
    velocity_cutoff: options.VelocityCutoff = None,
    coulomb_slope: options.CoulombSlope = None,
    integrator: options.Integrator = None,
    tests: Annotated[
        bool,
        typer.Option("--tests", help="Also test the residual, the terms and, with --controller, bias."),
    ] = False,
    output: Output = None,
    allow_infeasible: options.AllowInfeasible = False,
    untrusted: options.Untrusted = False,
    report: ReportFile = None,
    figure: options.Figure = None,
    table: options.ParameterTable = False,
    require: options.Require = None,
    cluster: options.Cluster = None,
    device: options.Device = None,
    skip_bad_partitions: options.SkipBadPartitions = False,
    as_json: Json = False,
) -> None:
    """Identify a robot's parameters from recordings, with their uncertainty, and validate them on other motion.

    Example: dynid identify arm.urdf run1.csv run2.csv --validate run3.csv -o identified.urdf

    Example: dynid identify arm.urdf run.csv --method pc-didim --controller loop.toml --velocity-cutoff 100 --tests
    """
    from dynid.identification.estimators.registry import find_method, method_options
    from dynid.identification.pipeline import check_folded
    from dynid.identification.repeated import identify_repetitions

    project = inputs.project
    if output is None and project is not None:
        output = project.output
    check_outputs(output, figure, *report_files(report, output))
    wanted = required(require)
    if average:
        _check_averaged(method, tests, device, cluster)
        method = "wls"
    if method is None:
        method = (project.identify.method if project is not None else None) or "auto"
    record = find_method(method)
    if prior_weight is not None and record.posterior:
        raise NotApplicable(
            f"--prior-weight is for --method feasible; method '{method}' learns the scales of its prior", "prior_weight"
        )
    if start is not None and not record.simulates:
        raise NotApplicable(f"--start is for methods that simulate, not for '{method}': see --method", "start")
    given = feasible_options(inputs, method, constraints, prior_weight)
    given |= body_options(inputs, method, mass, link_mass, box) | ({} if start is None else {"start": start})
    loop = inputs.closed_loop(controller, velocity_cutoff, coulomb_slope, integrator)
    if all(x is None for x in (controller, velocity_cutoff, coulomb_slope, integrator)) and not record.simulates:
        loop = loop if tests else None  # that of the project file is for other methods
    if record.uses_controller and (loop is None or loop.controller is None):
        raise MissingArgument(
            f"method '{method}' simulates the closed loop: give the controller that made the recording, --controller",
            "controller",
        )
    if device is not None:
        check_folded(inputs.robot, record, method_options(method, **given), device, cluster)
    held_out = inputs.held_out(validate, validate_share, validate_rows)
    origin: dict[str, Any] = {
        "files": inputs.files(*held_out.logs),
        "project": _rerun(inputs, method, held_out, given, controller, velocity_cutoff, coulomb_slope, integrator),
    }
    in_pieces = not (record.simulates or tests or average)
    found = data_sets.read_split(inputs, validate, validate_share, validate_rows, long=in_pieces)
    if found is not None:
        if not in_pieces:
            raise NotApplicable("a data set is for methods that do not simulate, and without --tests and --average")
        with data_sets.client_of(cluster) as client:
            work = data_sets.Work(client, skip_bad_partitions, device)
            estimate, sample, other = data_sets.identify(inputs, *found, method, given, work)
        finish(
            inputs,
            estimate,
            sample,
            other,
            output=output,
            allow_infeasible=allow_infeasible,
            untrusted=untrusted,
            report=report,
            figure=figure,
            table=table,
            require=wanted,
            as_json=as_json,
            **origin,
        )
        return
    data_sets.check_files_only(cluster, skip_bad_partitions)
    recording, unseen = inputs.read_split(validate, validate_share, validate_rows)
    if average:
        with working(f"identifying {inputs.robot.name} from the mean of {len(recording.runs)} runs"):
            estimate, observation = identify_repetitions(inputs.robot, recording, signals=inputs.signals()), None
        origin["project"] = ""  # a project file has no word for it
    else:
        estimate, observation = run_method(inputs, recording, method, given, loop=loop, tests=tests, device=device)
    finish(
        inputs,
        estimate,
        recording,
        unseen,
        observation=observation,
        tests=(lambda: _diagnosis(estimate, recording, observation, loop)) if tests and estimate.converged else None,
        output=output,
        allow_infeasible=allow_infeasible,
        untrusted=untrusted,
        report=report,
        figure=figure,
        table=table,
        require=wanted,
        as_json=as_json,
        **origin,
    )


def _check_averaged(method: str | None, tests: bool, device: str | None, cluster: str | None) -> None:
    """Raise a DataError for options that do not go with the mean of repetitions."""
    if method is not None and method != "wls":
        raise ConflictingArguments(f"--average fits the mean of the runs by wls, not by '{method}'", "average")
    given = {"--tests": tests, "--device": device, "--cluster": cluster}
    for option, value in given.items():
        if value:
            raise ConflictingArguments(
                f"{option} does not go with --average, whose noise is the scatter of the runs", option
            )


def feasible_options(inputs: Inputs, method: str, constraints: str | None, prior_weight: str | None) -> dict[str, Any]:
    """Options of methods with constraints: those given, and those of the project file."""
    from dynid.identification.estimators.registry import find_method

    given: dict[str, Any] = {}
    if inputs.project is not None and _takes_bodies(method):
        section, known = inputs.project.identify, find_method(method).option_names
        given = {"constraints": section.constraints} if "constraints" in known else {}
        if "weight" in known:
            given["weight"] = section.prior_weight
    if constraints is not None:
        given["constraints"] = constraints
    if prior_weight is not None:
        try:
            given["weight"] = prior_weight if prior_weight == "cv" else float(prior_weight)
        except ValueError:
            raise InvalidValue(f"--prior-weight is a number or cv, got '{prior_weight}'", "prior_weight") from None
    return {name: value for name, value in given.items() if value is not None}


def body_options(
    inputs: Inputs,
    method: str,
    mass: str | None = None,
    link_mass: Sequence[str] | None = None,
    box: bool | None = None,
) -> dict[str, Any]:
    """What is known of the bodies: the options over the project file; wrong links are told before logs are read."""
    from dynid.errors import one_of
    from dynid.feasibility.prior import known_masses
    from dynid.identification.estimators.registry import methods

    if not _takes_bodies(method):
        named = {"--mass": mass, "--link-mass": link_mass or None, "--box" if box else "--no-box": box}
        for option, value in named.items():
            if value is not None:
                able = one_of(name for name in methods() if _takes_bodies(name))
                raise NotApplicable(f"{option} is for --method {able}, not for '{method}'", option)
        return {}
    given = {"mass": None if mass is None else values.kilograms(mass, "--mass"), "box": box}
    links = values.key_kilograms(link_mass, "--link-mass")
    if inputs.project is not None:
        robot, identify = inputs.project.robot, inputs.project.identify
        known = {"mass": robot.mass, "box": identify.box}
        given = {name: known[name] if value is None else value for name, value in given.items()}
        links = robot.link_mass | links
    known_masses(inputs.robot, given["mass"], links)
    return {name: value for name, value in (given | {"link_masses": links or None}).items() if value is not None}


def finish(
    inputs: Inputs,
    estimate: Estimate,
    recording: Recording,
    unseen: Recording | data_sets.Unseen | None,
    *,
    observation: Observation | None = None,
    tests: Callable[[], Diagnosis] | None = None,
    output: Path | None = None,
    allow_infeasible: bool = False,
    untrusted: bool = False,
    report: str | None = None,
    figure: Path | None = None,
    table: bool = False,
    require: str | None = None,
    as_json: bool = False,
    files: Sequence[Path] = (),
    project: str = "",
) -> None:
    """Save an estimate, then validate and assess it, write its report, and print errors and verdict.

    What took long to compute is saved first, so that nothing that follows can lose it, and again with its verdict. A
    model file, which the verdict may forbid, is written once it is known.

    Parameters
    ----------
    inputs : Inputs
        Robot and logs of the command.
    estimate : Estimate
        What was identified.
    recording, unseen : Recording, Unseen or None
        The motion it was identified from, or a part of it, and other motion to validate on.
    observation : Observation, optional
        What it was identified from, so that the runs are not filtered again.
    tests : callable, optional
        Computes tests of the residual.
    output, report, figure, allow_infeasible, untrusted, table, require, as_json
        The options of these names.
    files, project
        Files that were read, and the text of the project file that computes the estimate again.
    """
    from dynid.assessment.verdict.assess import evidence_of

    saved = output if output is not None and output.suffix.lower() == ".json" else None
    if saved is not None:
        estimate.save(saved)
        wrote(saved)
    diagnosis = None if tests is None else tests()
    with working("assessing the estimate"):
        other: dict[str, Any] = unseen.evidence if isinstance(unseen, data_sets.Unseen) else {"validation": unseen}
        evidence = evidence_of(
            estimate,
            **other,
            recording=recording,
            observation=observation,
            findings=() if report == "none" else None,  # data are checked only for a verdict
            diagnosis=diagnosis,
        )
        validation = evidence.validation if unseen is not None else None
        diagnosis = None if diagnosis is None else evidence.tested
        keep = _keeper(estimate, saved)
        assessment, page = assess_and_report(evidence, report, output, files=files, project=project, assessed=keep)
    if assessment is not None:
        estimate = estimate.with_judgement(assessment.judgement())
    refused = None
    if output is not None and saved is None:
        try:
            _write(estimate, output, inputs.robot_file, allow_infeasible, untrusted)
        except DynidError as error:  # the verdict is worth reading all the same
            refused = error
    if page is not None:
        wrote(page)
    if figure is not None:
        from dynid.report.torques import torque_figure

        shown = validation if validation is not None else estimate.validate(recording)
        write(figure, torque_figure(shown, f"{estimate.robot.name}, {estimate.method}"))
    if as_json:
        more = {"verdict": assessment, "validation": validation, "diagnosis": diagnosis}
        parts = {name: part.to_dict() for name, part in more.items() if part is not None}
        print(json.dumps(estimate.to_dict() | parts, indent=2))
    else:
        _print(estimate, assessment, validation, diagnosis, table, output, page)
    if refused is not None:
        raise refused
    if not estimate.converged:
        print(f"dynid: {estimate.status}", file=sys.stderr)
        raise typer.Exit(1)
    check_required(require, assessment)


def _rerun(
    inputs: Inputs,
    method: str,
    held_out: HeldOut,
    given: dict[str, Any],
    controller: Path | None,
    velocity_cutoff: float | None,
    coulomb_slope: str | None,
    integrator: str | None,
) -> str:
    """The project file that computes the estimate again."""
    from dynid.cli.project_text import rerun_text

    masses = {"mass": given.get("mass"), "link_mass": given.get("link_masses", {})}
    settings = {
        "constraints": given.get("constraints"),
        "prior_weight": given.get("weight"),
        "box": given.get("box"),
    }
    loop: dict[str, Any] = {}
    if inputs.project is not None:
        loop = inputs.project.loop.model_dump(exclude_none=True)
    options = {
        "controller": None if controller is None else controller.as_posix(),
        "velocity_cutoff": velocity_cutoff,
        "coulomb_slope": None if coulomb_slope is None else values.coulomb_slope(coulomb_slope),
        "integrator": integrator,
    }
    loop |= {k: v for k, v in options.items() if v is not None}
    return rerun_text(inputs, method, held_out, {k: v for k, v in masses.items() if v}, settings, loop)


def _takes_bodies(method: str) -> bool:
    """Whether a method takes what is known of the bodies."""
    from dynid.identification.estimators.options import BodyOptions
    from dynid.identification.estimators.registry import find_method

    return issubclass(find_method(method).options, BodyOptions)


def run_method(
    inputs: Inputs,
    recording: Recording,
    method: str,
    given: dict[str, Any],
    *,
    loop: ClosedLoop | None = None,
    tests: bool = False,
    device: str | None = None,
) -> tuple[Estimate, Observation | None]:
    """The estimate and, for methods that do not simulate, the observation it was identified from."""
    from dynid.identification.estimators.registry import find_method, method_options
    from dynid.identification.observing import observe
    from dynid.identification.pipeline import identify as run
    from dynid.identification.pipeline import identify_observed

    record = find_method(method)
    method_options(method, **given)
    # Other methods do not simulate, but their tests may.
    simulated = loop if record.simulates or not tests else None
    with working(f"identifying {inputs.robot.name} with {method}") as work:
        if record.takes == "recording":
            wanted = method_options(method, **(inputs.chosen_by_user(record) | given))
            settings: dict[str, Any] = {"signals": inputs.signals(), "progress": work.report}
            return identify_observed(inputs.robot, recording, record, wanted, device=device, **settings)
        if record.simulates or simulated is not None:
            settings = {"signals": inputs.signals(), "loop": simulated, "progress": work.report}
            return run(inputs.robot, recording, method, **settings, **given), None
        started = time.perf_counter()
        observation = observe(inputs.robot, recording, signals=inputs.signals(), device=device)
        estimate = run(inputs.robot, observation, method, **given)
        return replace(estimate, seconds=time.perf_counter() - started), observation


def _diagnosis(
    estimate: Estimate, recording: Recording, observation: Observation | None, loop: ClosedLoop | None
) -> Diagnosis:
    from dynid.assessment.causes.diagnosis import diagnose

    with working("testing the residual and the terms"):
        return diagnose(estimate, recording if loop is not None or observation is None else observation, loop=loop)


def _print(
    estimate: Estimate,
    assessment: Assessment | None,
    validation: Validation | None,
    diagnosis: Diagnosis | None,
    table: bool,
    output: Path | None,
    report: Path | None,
) -> None:
    """Tables on request, then one screen: errors per joint, total mass, the verdict, and what to do next."""
    if table:
        show(estimate.summary())
        if validation is not None:
            show(validation.summary())
    else:
        show("\n".join([headline(estimate), *estimate.notes]))
    if diagnosis is not None:
        show(diagnosis.summary())
    show("\n".join([*error_lines(estimate, validation), *mass_lines(estimate)]))
    if assessment is not None:
        show("\n".join(verdict_lines(assessment, report)))
    show("\n".join(next_lines(assessment, output, report)))


def _keeper(estimate: Estimate, saved: Path | None) -> Callable[[Assessment], None]:
    """Saves the estimate again, with its verdict."""

    def keep(assessment: Assessment) -> None:
        if saved is not None:
            estimate.with_judgement(assessment.judgement()).save(saved)

    return keep


def _write(estimate: Estimate, output: Path, robot_file: str, allow_infeasible: bool, untrusted: bool) -> None:
    """Write the identified robot in the format of the ending.

    A file of the robot's own format is the template; infeasible parameters and a verdict of "do not use" are refused
    unless they are allowed.
    """
    from dynid.export.model_file import write

    template = robot_file if robot_file.endswith(output.suffix) and output.suffix != ".toml" else None
    settings: dict[str, Any] = {"allow_infeasible": allow_infeasible, "untrusted": untrusted}
    for warning in write(estimate, output, template=template, **settings):
        print(f"dynid: {warning}", file=sys.stderr)
    wrote(output)
