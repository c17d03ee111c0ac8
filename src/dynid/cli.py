"""The command line: thin, each command a call of the public functions."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dynid import options
from dynid.errors import DynidError, writing
from dynid.recording.recording import Recording
from dynid.robot.model import Robot

app = typer.Typer(
    name="dynid",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Robot dynamic identification: what a robot's parameters are, and what a recording can tell of them.",
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of tables.")]


def main() -> None:
    """Run the command line; bad input ends with one line on standard error and exit code 1."""
    logging.basicConfig(format="dynid: %(message)s", level=logging.WARNING, stream=sys.stderr)
    try:
        app(standalone_mode=True)
    except DynidError as error:
        print(f"dynid: {error}", file=sys.stderr)
        sys.exit(1)


@app.command()
def robots(as_json: Json = False) -> None:
    """List the built-in robots.

    Example: dynid robots
    """
    from dynid.robot.load import builtin_robots

    found = builtin_robots()
    if as_json:
        print(json.dumps(found, indent=2))
        return
    width = max(map(len, found))
    for name, description in found.items():
        print(f"{name:<{width}}  {description}")


@app.command()
def inspect(
    robot: options.RobotArgument,
    base: Annotated[bool, typer.Option("--base", help="Also the base parameters, expression by expression.")] = False,
    audit: Annotated[
        bool, typer.Option("--audit", help="Also whether the model is usable: mass matrix, drives, a free fall.")
    ] = False,
    as_json: Json = False,
    figure: Annotated[Path | None, typer.Option(help="Draw the robot and its parameters into this SVG file.")] = None,
    friction: options.Friction = None,
    rotor_inertia: options.RotorInertia = None,
    base_kind: Annotated[
        str | None, typer.Option(help="fixed, floating, or instrumented (base wrench measured). [file's own]")
    ] = None,
    gravity: options.Gravity = None,
    channels: Annotated[
        str | None, typer.Option(help="Measured channels: torque, wrench, or names separated by commas. [all]")
    ] = None,
    method: Annotated[str, typer.Option(help="left-to-right, pivoted or recursive.")] = "left-to-right",
) -> None:
    """Show what a robot is: tree, parameters, limits, base parameters, and which inertias are impossible.

    Example: dynid inspect tx40 --base --figure tx40.svg
    """
    from dynid.identify.base import base_parameters
    from dynid.report.inspection import inspection_data, print_inspection
    from dynid.robot.load import load_robot

    machine = load_robot(
        robot,
        friction=friction,
        rotor_inertia=rotor_inertia,
        base=base_kind,  # type: ignore[arg-type]
        gravity=gravity,
    )
    names = channels.split(",") if channels and "," in channels else channels
    groups = base_parameters(machine, channels=names, method=method)  # type: ignore[arg-type]
    found = None
    if audit:
        from dynid.checks.audit import audit as examine

        print("trying the model at 10000 poses and letting it fall ...", file=sys.stderr)
        found = examine(machine)
    if as_json:
        print(json.dumps(inspection_data(machine, groups, found), indent=2))
    else:
        print_inspection(machine, groups, expressions=base, audit=found)
    if figure is not None:
        from dynid.report.figure import robot_figure

        _write(figure, robot_figure(machine, groups))


@app.command()
@options.with_logs
def check(
    machine: Robot,
    read: Callable[[Sequence[str]], Recording],
    data: options.DataArgument,
    as_json: Json = False,
) -> None:
    """Say what is wrong with a recording; fails if something makes it unusable.

    Example: dynid check arm.urdf run.csv
    """
    from dynid.checks import check as find
    from dynid.report.findings import findings_data, print_findings

    recording = read(data)
    findings = find(recording, machine)
    if as_json:
        print(json.dumps(findings_data(findings), indent=2))
    else:
        print_findings(findings)
    if any(f.severity == "error" for f in findings):
        raise typer.Exit(1)


@app.command()
@options.with_logs
def identify(
    machine: Robot,
    read: Callable[[Sequence[str]], Recording],
    robot: options.RobotArgument,
    data: options.DataArgument,
    validate: Annotated[
        list[str] | None, typer.Option("--validate", help="Log of other motion to validate on; may be repeated.")
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="ols, wls, gls, irls, tls, ridge or feasible; ml, ekf or ukf; with --controller iv, didim, pc-iv, "
            "pc-didim, cloe or clie."
        ),
    ] = "wls",
    constraints: Annotated[
        str | None, typer.Option(help="With --method feasible: full or semi (no triangle inequality). [full]")
    ] = None,
    prior_weight: Annotated[
        str | None, typer.Option(help="With --method feasible: pull of the a-priori model, a number or cv. [ties only]")
    ] = None,
    controller: Annotated[
        Path | None, typer.Option(help="TOML file of the controller, for methods that simulate and for --tests.")
    ] = None,
    start: Annotated[
        str | None, typer.Option(help="First parameters to simulate with: prior (the file's) or feasible. [prior]")
    ] = None,
    speed_cutoff: Annotated[
        float | None, typer.Option(help="With --controller: its low-pass in Hz of measured speeds. [none]")
    ] = None,
    tests: Annotated[
        bool,
        typer.Option("--tests", help="Also test the residual, the terms and, with --controller, bias."),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Save the estimate here; with .urdf or .xml (MJCF), the identified robot."),
    ] = None,
    figure: options.Figure = None,
    cutoff: options.Cutoff = None,
    decimate: options.Decimate = None,
    min_speed: options.MinSpeed = None,
    trim: options.Trim = None,
    as_json: Json = False,
) -> None:
    """Identify a robot's parameters from recordings, with their uncertainty, and validate them on others.

    Example: dynid identify arm.urdf run1.csv run2.csv --method feasible --validate run3.csv -o identified.urdf

    Example: dynid identify arm.urdf run1.csv --method pc-didim --controller loop.toml --tests
    """
    from dynid.identify.estimators import CLOSED_LOOP
    from dynid.identify.identify import identify as run

    recording = read(data)
    unseen = read(validate) if validate else None
    signals = options.read_signals(cutoff, decimate, min_speed, trim)
    given = options.read_feasible(constraints, prior_weight) | ({} if start is None else {"start": start})
    loop = options.read_loop(controller, speed_cutoff, machine)
    # Other methods do not simulate, but their tests may.
    simulated = loop if method in CLOSED_LOOP or not tests else {}
    estimate = run(machine, recording, method, signals=signals, **simulated, **given)
    validation = estimate.validate(unseen) if unseen is not None else None
    diagnosis = None
    if tests and estimate.settled:
        from dynid.statistics.diagnosis import diagnose

        diagnosis = diagnose(estimate, recording, **loop)
    if as_json:
        page = estimate.to_dict()
        if validation is not None:
            page["validation"] = validation.to_dict()
        if diagnosis is not None:
            page["diagnosis"] = diagnosis.to_dict()
        print(json.dumps(page, indent=2))
    else:
        print(estimate.summary())
        if validation is not None:
            print(validation.summary())
        if diagnosis is not None:
            print(diagnosis.summary())
    if output is not None:
        writers = {".urdf": estimate.to_urdf, ".xml": estimate.to_mjcf, ".mjcf": estimate.to_mjcf}
        if output.suffix in writers:
            template = robot if robot.endswith(output.suffix) else None
            for warning in writers[output.suffix](output, template):
                print(f"dynid: {warning}", file=sys.stderr)
        else:
            estimate.save(output)
        print(f"wrote {output}", file=sys.stderr)
    if figure is not None:
        from dynid.report.torques import torque_figure

        shown = validation if validation is not None else estimate.validate(recording)
        _write(figure, torque_figure(shown, f"{machine.name}, {method}"))
    if not estimate.settled:
        print(f"dynid: {estimate.status}", file=sys.stderr)
        raise typer.Exit(1)


@app.command()
@options.with_logs
def validate(
    machine: Robot,
    read: Callable[[Sequence[str]], Recording],
    estimate: Annotated[list[Path], typer.Option("--estimate", "-e", help="Saved estimate; repeat to compare two.")],
    data: options.DataArgument,
    figure: options.Figure = None,
    as_json: Json = False,
) -> None:
    """Predict the torques of recordings with saved estimates and show the errors.

    Example: dynid validate arm.urdf run3.csv -e estimate.json
    """
    from dynid.identify.estimate import Estimate

    recording = read(data)
    results = {str(path): Estimate.load(path, machine).validate(recording) for path in estimate}
    if figure is not None:
        from dynid.report.torques import torque_figure

        _write(figure, torque_figure(results[str(estimate[0])], f"{machine.name}, {estimate[0].name}"))
    if as_json:
        print(json.dumps({name: result.to_dict() for name, result in results.items()}, indent=2))
        return
    for name, result in results.items():
        print(name)
        print(result.summary())


@app.command()
def excite(
    robot: options.RobotArgument,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="Motion: .csv, .yaml or .json (ROS 2 JointTrajectory), .toml (exact)."),
    ],
    family: Annotated[
        str,
        typer.Option(
            help="fourier, fourier-free, fourier-quintic, b-spline, cubic, quintic, trapezoid, double-s or postures."
        ),
    ] = "fourier",
    size: Annotated[int, typer.Option(help="Harmonics, segments or waypoints of the family.")] = 5,
    criterion: Annotated[str, typer.Option(help="d, a, e, cond, sum-cond, or sigma with --chosen.")] = "d",
    chosen: Annotated[
        str | None, typer.Option(help="Base parameters of --criterion sigma, separated by commas.")
    ] = None,
    duration: Annotated[float, typer.Option(help="Seconds of one period.")] = 20.0,
    budget: Annotated[float, typer.Option(help="Seconds of search.")] = 30.0,
    limits: options.LimitsOption = None,
    avoid: Annotated[
        Path | None, typer.Option(help="TOML file of obstacles and shapes to keep clear of; a URDF's own shapes count.")
    ] = None,
    share: Annotated[float, typer.Option(help="Share of the robot's own limits that may be used.")] = 1.0,
    start: Annotated[str | None, typer.Option(help="Posture to begin at, one number a joint: 0,0.5,-1.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the random motions.")] = 0,
    rate: Annotated[float, typer.Option(help="Points of the file a second, and samples of the plan.")] = 100.0,
    noise: Annotated[
        str | None, typer.Option(help="Torque deviation, one or one a joint; also prints what will be known when.")
    ] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw motion, limits and spectra into this SVG file.")] = None,
    as_json: Json = False,
    friction: options.Friction = None,
    rotor_inertia: options.RotorInertia = None,
    gravity: options.Gravity = None,
) -> None:
    """Design a motion that shows a robot's parameters within all its limits.

    Example: dynid excite tx40 -o motion.csv --limits limits.toml --noise 0.5 --figure motion.svg

    where limits.toml holds lower, upper, velocity, acceleration, jerk, torque or power of joints by name or pattern:

    \b
    ["joint*"]
    velocity = 1.5
    acceleration = 10
    """
    import numpy as np

    from dynid.excitation.design import design_excitation, make_family
    from dynid.excitation.files import check_output, check_rate, check_suffix, read_limits, write_excitation, write_text
    from dynid.excitation.limits import motion_limits
    from dynid.excitation.plan import torque_noise
    from dynid.excitation.room import check_duration, check_torque_model, has_torque_model
    from dynid.robot.load import load_robot

    machine = load_robot(robot, friction=friction, rotor_inertia=rotor_inertia, gravity=gravity)
    # All that can be wrong is asked before the search, which takes its time.
    check_suffix(output)
    for path in filter(None, (output, figure)):
        check_output(path)
    given = None if limits is None else read_limits(limits)
    check_torque_model(machine, given)
    held = motion_limits(machine, given, share)
    if not has_torque_model(machine) and np.any(np.isfinite(held.torque)):
        print("dynid: the robot has no masses, so the torque limits of its file cannot be kept", file=sys.stderr)
    # A motion that is too short would otherwise be blamed on the rate.
    check_duration(machine, held, duration)
    check_rate(make_family(family, duration, size), rate)
    deviation = options.read_numbers(noise, "--noise")
    measured = None if deviation is None else torque_noise(deviation, machine.n)
    more: dict[str, Any] = {} if chosen is None else {"chosen": chosen.split(",")}
    if avoid is not None:
        from dynid.excitation.avoid import read_avoid

        more["clearances"] = [read_avoid(avoid, machine, robot if robot.endswith(".urdf") else None)]
    motion = design_excitation(
        machine,
        duration,
        family=family,
        size=size,
        criterion=criterion,
        limits=held,
        start=options.read_numbers(start, "--start"),
        noise=measured,
        budget=budget,
        seed=seed,
        progress=lambda line: print(line, file=sys.stderr),
        **more,
    )
    plan = None if measured is None else motion.plan(measured, rate)
    write_excitation(motion, output, rate)
    print(f"wrote {output}", file=sys.stderr)
    if figure is not None:
        from dynid.report.excitation import excitation_figure

        write_text(figure, excitation_figure(motion))
        print(f"wrote {figure}", file=sys.stderr)
    if as_json:
        page = motion.to_dict()
        if plan is not None:
            page["plan"] = plan.to_dict()
        print(json.dumps(page, indent=2))
        return
    print(motion.summary())
    if plan is not None:
        print(plan.summary())


@app.command()
def simulate(
    robot: options.RobotArgument,
    controller: Annotated[Path, typer.Option(help="TOML file of the controller: kind, rate, gains or bandwidth.")],
    reference: Annotated[
        Path, typer.Option(help="Motion to follow: .toml from dynid excite, or a log with reference or positions.")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="Recording to write: .csv or .parquet.")],
    duration: Annotated[float | None, typer.Option(help="Seconds of the reference to run. [all]")] = None,
    rate: Annotated[float | None, typer.Option(help="Rate of the recording in Hz. [the controller's]")] = None,
    noise: Annotated[str | None, typer.Option(help="Deviation of measured positions, one or one a joint. [0]")] = None,
    counts: Annotated[str | None, typer.Option(help="Encoder counts a turn, one or one a joint. [no steps]")] = None,
    speed_cutoff: Annotated[float | None, typer.Option(help="Low-pass in Hz of speeds. [none]")] = None,
    torque_noise: Annotated[
        str | None, typer.Option(help="Deviation of recorded torques, one or one a joint. [0]")
    ] = None,
    delay: Annotated[int, typer.Option(min=0, help="Control periods between measuring and acting.")] = 0,
    integrator: Annotated[str, typer.Option(help="auto, rk4, semi-implicit, dopri5 or implicit.")] = "rk4",
    coulomb: Annotated[
        str, typer.Option(help="Slope of smooth Coulomb friction in s/rad, or exact with --integrator implicit.")
    ] = "100",
    saturate: Annotated[bool, typer.Option("--saturate", help="Keep torques within the robot's limits.")] = False,
    stop_at_limits: Annotated[
        bool, typer.Option("--stop-at-limits", help="End where a position or speed limit is passed.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of the noise.")] = 0,
    as_json: Json = False,
    friction: options.Friction = None,
    rotor_inertia: options.RotorInertia = None,
    gravity: options.Gravity = None,
) -> None:
    """Run a robot under its controller along a reference and write what a logger would; fails if it stops early.

    Example: dynid simulate tx40 --controller loop.toml --reference motion.toml --noise 1e-4 --out run.csv

    where loop.toml holds the controller:

    \b
    kind = "cascade"
    rate = 5000
    bandwidth = [10, 10, 10, 20, 20, 20]
    """
    from dynid.excitation.files import check_output, check_suffix
    from dynid.robot.load import load_robot
    from dynid.simulate.controller_files import load_controller
    from dynid.simulate.sensors import Sensors
    from dynid.simulate.simulate import Loop
    from dynid.simulate.simulate import simulate as run

    machine = load_robot(robot, friction=friction, rotor_inertia=rotor_inertia, gravity=gravity)
    check_suffix(out, (".csv", ".parquet"))
    check_output(out)
    law = load_controller(controller, machine)
    sensors = Sensors(
        noise=options.read_one_or_each(noise, "--noise"),
        counts=options.read_one_or_each(counts, "--counts"),
        speed_cutoff=speed_cutoff,
        torque_noise=options.read_one_or_each(torque_noise, "--torque-noise"),
        delay=delay,
    )
    slope = "exact" if coulomb == "exact" else options.read_one_or_each(coulomb, "--coulomb")
    done = run(
        machine,
        law,
        options.read_reference(reference, machine),
        duration=duration,
        sensors=sensors,
        loop=Loop(integrator, coulomb=slope),  # type: ignore[arg-type]
        rate=rate,
        torque_limits="robot" if saturate else None,
        stop_at_limits=stop_at_limits,
        seed=seed,
        progress=lambda share: print(f"simulated {share:.0%}", file=sys.stderr),
    )
    if len(done.t) > 1:
        recording = done.recording()
        (recording.to_csv if out.suffix == ".csv" else recording.to_parquet)(out)
        print(f"wrote {out}", file=sys.stderr)
    print(json.dumps(done.to_dict(), indent=2) if as_json else done.summary())
    if not done.finished:
        raise typer.Exit(1)


@app.command()
def demo(figure: options.Figure = None) -> None:
    """Identify a TX40 from a recording made on the spot, and show truth against estimate.

    Example: dynid demo
    """
    from dynid.demo import run_demo
    from dynid.identify.summary import truth_text

    print("making two recordings of a TX40 (encoders, 2 % torque noise) and identifying it ...", file=sys.stderr)
    result = run_demo()
    print(truth_text(result.estimate, result.truth))
    print(result.validation.summary())
    if figure is not None:
        from dynid.report.torques import torque_figure

        _write(figure, torque_figure(result.validation, "TX40, predicted from another motion"))


@app.command()
def reproduce(
    name: Annotated[str | None, typer.Argument(help="Which study; all of them if left out.")] = None,
    as_json: Json = False,
    failed_only: Annotated[bool, typer.Option("--failed-only", help="Print only figures out of tolerance.")] = False,
    full: Annotated[bool, typer.Option("--full", help="As many runs as the source has (pc-didim).")] = False,
) -> None:
    """Recompute published figures and print each beside ours; fails if one is out of its tolerance.

    Example: dynid reproduce structure
    """
    from dynid.report.reproduction import print_study
    from dynid.reproduce.registry import find_study, studies
    from dynid.reproduce.study import has_data

    chosen = [find_study(name)] if name else list(studies().values())
    out: list[dict[str, Any]] = []
    failures = 0
    for study in chosen:
        if name is None and study.needs_data and not has_data():
            print(f"dynid: {study.name} skipped, the real recordings are not there (DYNID_DATA)", file=sys.stderr)
            continue
        if full and study.full is None and name is not None:
            raise DynidError(f"reproduction '{name}' has no longer form; leave --full out")
        figures = list(study.full() if full and study.full is not None else study.run())
        failures += sum(not f.ok for f in figures)
        if as_json:
            out += [{"study": study.name, **vars(f), "ok": f.ok} for f in figures]
        else:
            print_study(study, figures, failed_only)
    if as_json:
        print(json.dumps(out, indent=2))
    if failures:
        raise typer.Exit(1)


@app.command()
def benchmark(
    robots: Annotated[
        str | None,
        typer.Option(help="Robots separated by commas. [tx40,rv2sq,puma560,wam7,iiwa14; the first two with --quick]"),
    ] = None,
    runs: Annotated[
        int | None, typer.Option(min=1, help="Recordings of each robot and noise. [2, with --quick 1]")
    ] = None,
    noise: Annotated[
        str | None, typer.Option(help="Encoder counts a revolution. [32000,1000; the first with --quick]")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help="Methods separated by commas. [wls, feasible, all that simulate but slow ones]")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes that share the work. [one a core]")] = None,
    folder: Annotated[
        Path | None, typer.Option(help="Keep finished recordings here; a second call does only what is missing.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the table, robot by robot, into this CSV file.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw the torque errors into this SVG file.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A short run: fewer robots, encoders and recordings.")] = False,
    as_json: Json = False,
) -> None:
    """Run every estimator on simulated robots whose parameters are known: accuracy, robustness and time.

    Example: dynid benchmark --runs 5 --figure benchmark.svg --out benchmark.csv
    """
    from dynid.benchmark.benchmark import BENCHMARK_ROBOTS, COUNTS, run_benchmark

    counts = [int(x) for x in options.read_numbers(noise, "--noise") or COUNTS[: 1 if quick else None]]
    result = run_benchmark(
        robots.split(",") if robots else BENCHMARK_ROBOTS[: 2 if quick else None],
        runs or (1 if quick else 2),
        counts,
        methods.split(",") if methods else None,
        workers,
        folder,
        progress=lambda line: print(line, file=sys.stderr),
    )
    if as_json:
        print(json.dumps(result.to_dict(), indent=2))
    else:
        print(result.summary())
    if out is not None:
        with writing(out):
            result.table.write_csv(out)
        print(f"wrote {out}", file=sys.stderr)
    if figure is not None:
        from dynid.benchmark.figure import benchmark_figure

        _write(figure, benchmark_figure(result))


def _write(path: Path, text: str) -> None:
    with writing(path):
        path.write_text(text, encoding="utf-8")
    print(f"wrote {path}", file=sys.stderr)
