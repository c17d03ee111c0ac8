"""Motions: designed and simulated."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli import complete, options
from dynid.cli.app import Json, app, check_outputs, write
from dynid.cli.progress import working
from dynid.errors import DataError
from dynid.recording.recording import Recording
from dynid.robot.model import Robot

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dynid.excitation.limits import MotionLimits

    Array = NDArray[np.float64]


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
            autocompletion=complete.families,
            help="fourier, fourier-free, fourier-quintic, b-spline, cubic, quintic, trapezoid, double-s or postures.",
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
    from dynid.excitation.design import design_excitation
    from dynid.excitation.files import check_suffix, write_excitation
    from dynid.robot.load import load_robot

    machine = load_robot(robot, friction=friction, rotor_inertia=rotor_inertia, gravity=gravity)
    # All that can be wrong is asked before the search, which takes its time.
    check_suffix(output)
    check_outputs(output, figure)
    held = _held(machine, limits, share)
    _check_request(machine, held, family, duration, size, rate)
    measured = _deviation(noise, machine)
    with working(f"designing a motion, {budget:g} s") as work:
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
            progress=work.say,
            **_wishes(machine, robot, chosen, avoid),
        )
    plan = None if measured is None else motion.plan(measured, rate)
    write_excitation(motion, output, rate)
    print(f"wrote {output}", file=sys.stderr)
    if figure is not None:
        from dynid.report.excitation import excitation_figure

        write(figure, excitation_figure(motion))
    if as_json:
        print(json.dumps(motion.to_dict() | ({} if plan is None else {"plan": plan.to_dict()}), indent=2))
        return
    print(motion.summary())
    if plan is not None:
        print(plan.summary())


def _held(machine: Robot, limits: str | None, share: float) -> MotionLimits:
    """The limits that the motion keeps: those given over the robot's own."""
    import numpy as np

    from dynid.excitation.files import read_limits
    from dynid.excitation.limits import motion_limits
    from dynid.excitation.room import check_torque_model, has_torque_model

    given = None if limits is None else read_limits(limits)
    check_torque_model(machine, given)
    held = motion_limits(machine, given, share)
    if not has_torque_model(machine) and np.any(np.isfinite(held.torque)):
        print("dynid: the robot has no masses, so the torque limits of its file cannot be kept", file=sys.stderr)
    return held


def _check_request(machine: Robot, held: MotionLimits, family: str, duration: float, size: int, rate: float) -> None:
    """Refuse what no search can give: a family, a duration or a rate that cannot be."""
    from dynid.excitation.design import make_family
    from dynid.excitation.files import check_rate
    from dynid.excitation.room import check_duration

    # A motion that is too short would otherwise be blamed on the rate.
    check_duration(machine, held, duration)
    check_rate(make_family(family, duration, size), rate)


def _deviation(noise: str | None, machine: Robot) -> Array | None:
    """Torque deviation a joint (n,), where one is given."""
    from dynid.excitation.plan import torque_noise

    deviation = options.read_numbers(noise, "--noise")
    return None if deviation is None else torque_noise(deviation, machine.n)


def _wishes(machine: Robot, robot: str, chosen: str | None, avoid: Path | None) -> dict[str, Any]:
    """What the motion is asked for beyond its limits: parameters to show, obstacles to keep clear of."""
    wishes: dict[str, Any] = {} if chosen is None else {"chosen": chosen.split(",")}
    if avoid is not None:
        from dynid.excitation.avoid import read_avoid

        wishes["clearances"] = [read_avoid(avoid, machine, robot if robot.endswith(".urdf") else None)]
    return wishes


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
    velocity_cutoff: Annotated[float | None, typer.Option(help="Low-pass in Hz of speeds. [none]")] = None,
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

    Example: dynid simulate tx40 --controller loop.toml --reference motion.csv --noise 1e-5 --out tx40.csv

    where loop.toml holds the controller:

    \b
    kind = "cascade"
    rate = 5000
    bandwidth = [10, 10, 10, 20, 20, 20]
    """
    from dynid.excitation.files import check_suffix
    from dynid.robot.load import load_robot
    from dynid.simulation.controller_files import load_controller
    from dynid.simulation.engine import Loop
    from dynid.simulation.engine import simulate as run
    from dynid.simulation.sensors import Sensors

    machine = load_robot(robot, friction=friction, rotor_inertia=rotor_inertia, gravity=gravity)
    check_suffix(out, (".csv", ".parquet"))
    check_outputs(out)
    law = load_controller(controller, machine)
    sensors = Sensors(
        noise=options.read_one_or_each(noise, "--noise"),
        counts=options.read_one_or_each(counts, "--counts"),
        velocity_cutoff=velocity_cutoff,
        torque_noise=options.read_one_or_each(torque_noise, "--torque-noise"),
        delay=delay,
    )
    slope = "exact" if coulomb == "exact" else options.read_one_or_each(coulomb, "--coulomb")
    followed = options.read_reference(reference, machine)
    with working("simulating") as work:
        done = run(
            machine,
            law,
            followed,
            duration=duration,
            sensors=sensors,
            loop=Loop(integrator, coulomb=slope),  # type: ignore[arg-type]
            rate=rate,
            torque_limits="robot" if saturate else None,
            stop_at_limits=stop_at_limits,
            seed=seed,
            progress=lambda share: work.at(share, "simulated"),
        )
    if len(done.t) > 1:
        recording = done.recording()
        (recording.to_csv if out.suffix == ".csv" else recording.to_parquet)(out)
        print(f"wrote {out}", file=sys.stderr)
    print(json.dumps(done.to_dict(), indent=2) if as_json else done.summary())
    if not done.finished:
        raise typer.Exit(1)


@app.command()
@options.with_logs
def live(
    machine: Robot,
    read: Callable[[Sequence[str]], Recording],
    data: options.DataArgument,
    base: Annotated[
        str | None,
        typer.Option(help="floating, instrumented (bolted to a plate) or fixed. [floating if its motion is there]"),
    ] = None,
    channels: Annotated[str | None, typer.Option(help="wrench, torque or all. [wrench where the base has one]")] = None,
    target: Annotated[float, typer.Option(help="Share of its uncertainty at which a parameter is known.")] = 0.1,
    noise: Annotated[str | None, typer.Option(help="Deviation of the channels, one or one each. [3 N, 1 N m]")] = None,
    every: Annotated[float, typer.Option(help="Seconds of motion between two lines.")] = 1.0,
    cutoff: options.Cutoff = None,
    as_json: Json = False,
) -> None:
    """Replay a motion and show what it has excited so far, and which part of the body to move next.

    Example: dynid live human.urdf motion.csv --base floating
    """
    from dynid.excitation.live import LiveExcitation
    from dynid.excitation.replay import replay
    from dynid.human.prior import with_virtual_links

    if base not in (None, "floating", "instrumented", "fixed"):
        raise DataError(f"--base is floating, instrumented or fixed, got '{base}'")
    recording = read(data)
    if base is None:
        base = "floating" if all(run.base is not None for run in recording.runs) else machine.base
    robot = machine.with_base(base)  # type: ignore[arg-type]
    if any(link.inertia[0] > 0 for link in robot.links):
        robot = with_virtual_links(robot)
    deviation = options.read_numbers(noise, "--noise")
    one = deviation[0] if deviation is not None and len(deviation) == 1 else deviation
    score = LiveExcitation(robot, channels, target=target, noise=one)
    settings = options.read_signals(cutoff, "none", None, None)
    whole = sum(len(run) * run.step for run in recording.runs)
    with working("replaying") as work:
        for now in replay(score, recording, settings, every):
            work.say(now.line(), min(now.time / whole, 1.0))
    print(json.dumps(score.score().to_dict(), indent=2) if as_json else score.score().summary())
