"""Motions that are designed."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli import complete, options, stacked, values
from dynid.cli.app import Json, app, write, wrote
from dynid.cli.excite_ranking import COUNT, ranked, ranking_loop
from dynid.cli.inputs import Inputs
from dynid.cli.output import show
from dynid.cli.progress import working
from dynid.cli.wrap import with_logs
from dynid.errors import ConflictingArguments, UnknownName

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dynid.excitation.limits import MotionLimits
    from dynid.identification.estimate import Estimate
    from dynid.robot.model import Robot

    Array = NDArray[np.float64]


@app.command()
@with_logs
def excite(
    inputs: Inputs,
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
    criterion: Annotated[
        str,
        typer.Option(
            autocompletion=complete.criteria,
            help="d, a, e, cond, hadamard, frobenius, sum-cond, mass-static, mass-dynamic, or sigma with --chosen.",
        ),
    ] = "d",
    chosen: Annotated[
        str | None, typer.Option(help="Base parameters of --criterion sigma, separated by commas.")
    ] = None,
    duration: Annotated[float, typer.Option(help="Seconds of the motion.")] = 20.0,
    budget: Annotated[int, typer.Option(help="Iterations of the search.")] = 1000,
    time_limit: Annotated[float | None, typer.Option(help="Seconds after which the search ends.")] = None,
    after: Annotated[
        str | None,
        typer.Option(
            metavar="FILES",
            help="Earlier recordings or saved estimates (.json), separated by commas: the motion is designed for what "
            "they leave uncertain.",
        ),
    ] = None,
    stack: Annotated[
        int | None,
        typer.Option(
            metavar="MOST", min=1, help="Design up to this many motions one after another, numbered files. [one]"
        ),
    ] = None,
    target: Annotated[
        float | None,
        typer.Option(help="End of --stack: largest standard deviation, as a share of a parameter's typical size."),
    ] = None,
    least_gain: Annotated[
        float | None, typer.Option(help="End of --stack: share by which a motion improves the criterion. [0.05]")
    ] = None,
    rules: Annotated[
        str | None,
        typer.Option(help="Ready constraints: halper, sums of amplitudes and a start at zero."),
    ] = None,
    limits: options.LimitsOption = None,
    avoid: options.Avoid = None,
    limit_share: Annotated[float, typer.Option(help="Share of the robot's own limits that may be used.")] = 1.0,
    start_posture: options.StartPosture = None,
    seed: options.Seed = 0,
    output_rate: options.OutputRate = None,
    torque_noise: options.TorqueNoise = None,
    rank: Annotated[
        str | None,
        typer.Option(help="simulated: several motions, ranked by identification from simulated logs. [one motion]"),
    ] = None,
    candidates: Annotated[
        int | None, typer.Option(help="Motions that --rank compares; they share the budget. [5]")
    ] = None,
    controller: options.Controller = None,
    position_noise: options.PositionNoise = "0",
    figure: options.Figure = None,
    as_json: Json = False,
) -> None:
    """Design a motion that excites a robot's parameters within all its limits.

    The file has 100 samples per second unless --output-rate is given. With --torque-noise the expected standard
    deviations of the parameters are printed too. Friction and rotor inertias count like bodies, also where the robot
    file says nothing of them. With --rank simulated several motions are run under the --controller with the noise that
    is given, identified, and the one with the smallest errors is written. For a log without torques: dynid chirp.

    With --after the motion is designed for what earlier recordings leave uncertain. With --stack motions are designed
    one after another, each for what the ones before leave uncertain: motion-1.csv, motion-2.csv, ... It ends when
    --target is reached, when a motion gains less than --least-gain, or after so many motions, and says which.

    Example: dynid excite tx40 -o motion.csv --limits limits.toml --torque-noise 0.5 --figure motion.svg

    where limits.toml holds lower, upper, velocity, acceleration, jerk, torque or power of joints by name or pattern:

    \b
    ["joint*"]
    velocity = 1.5
    acceleration = 10
    """
    from dynid.excitation.design import design_excitation
    from dynid.excitation.files import check_suffix, write_excitation
    from dynid.robot.load import USUAL_FRICTION

    stop, estimates = stacked.Stop(stack, target, least_gain), stacked.earlier_estimates(after)
    robot, rate = _with_unknown_drives(inputs, estimates), 100.0 if output_rate is None else output_rate
    # Everything is checked before the search, which takes its time.
    check_suffix(output)
    stacked.check_stacked(stop, output, figure)
    within = _limits(robot, limits, limit_share)
    _check_request(robot, within, family, duration, size, rate)
    std = _torque_std(torque_noise, robot)
    known = stacked.earlier(inputs, robot, after, estimates, std, rate)
    if robot is not inputs.robot and not estimates:
        print(
            f"dynid: the robot file has no friction: the motion is designed for {USUAL_FRICTION} and rotor inertias, "
            "which method auto chooses from (--friction none: for the bodies alone)",
            file=sys.stderr,
        )
    loop = ranking_loop(inputs, rank, candidates, controller, position_noise, std)
    if loop is not None and stop.most is not None:
        raise ConflictingArguments(
            "--rank compares motions for one recording, --stack designs several: leave one out", "rank"
        )
    settings: dict[str, Any] = {
        "family": family,
        "size": size,
        "criterion": criterion,
        "limits": within,
        "start": values.numbers(start_posture, "--start-posture"),
        "after": known,
        "budget": budget,
        "time_limit": time_limit,
        "seed": seed,
        **_wishes(inputs, chosen, avoid),
    }
    if rules is not None:
        settings |= _ruled(rules, robot, within, duration, settings)
    if stop.most is not None:
        stacked.design_stack(robot, duration, stop, settings, (output, figure, rate), as_json)
        return
    with working("designing a motion") as work:
        if loop is None:
            motion, ranking = design_excitation(robot, duration, progress=work.report, **settings), None
        else:
            ranking = ranked(robot, duration, candidates or COUNT, loop, work.report, settings)
            motion = ranking.best
    plan = None if std is None and after is None else motion.plan(known.noise, rate=known.rate, previous=known)
    write_excitation(motion, output, rate)
    wrote(output)
    if figure is not None:
        from dynid.report.excitation import excitation_figure

        write(figure, excitation_figure(motion))
    if as_json:
        more = {"plan": plan, "ranking": ranking}
        print(json.dumps(motion.to_dict() | {k: x.to_dict() for k, x in more.items() if x is not None}, indent=2))
    else:
        if ranking is not None:
            show(ranking.summary())
        show(motion.summary())
        if plan is not None:
            show(plan.summary())


def _with_unknown_drives(inputs: Inputs, estimates: Sequence[Estimate]) -> Robot:
    """The robot with the drive terms of earlier estimates, or of what method "auto" chooses from.

    Those of the file stay if there is no estimate, and those of an option in any case.
    """
    robot = inputs.robot
    if "friction" in inputs.chosen_by_user():
        return robot
    if estimates:
        return stacked.with_drives_of(robot, estimates[0])
    values_of_drives = (x for p, x in zip(robot.layout, robot.parameters, strict=True) if not p.inertial)
    if any(values_of_drives) or robot.base != "fixed":
        return robot
    from dynid.robot.load import USUAL_FRICTION

    return robot.with_drives(USUAL_FRICTION, rotor_inertia=True)


def _limits(robot: Robot, limits: str | None, share: float) -> MotionLimits:
    """Limits of the motion: those given over the robot's own."""
    import numpy as np

    from dynid.excitation.files import read_limits
    from dynid.excitation.limits import motion_limits
    from dynid.excitation.room import check_torque_model, has_torque_model

    given = None if limits is None else read_limits(limits)
    check_torque_model(robot, given)
    within = motion_limits(robot, given, share=share)
    if not has_torque_model(robot) and np.any(np.isfinite(within.torque)):
        print("dynid: the robot has no masses, so the torque limits of its file cannot be kept", file=sys.stderr)
    return within


def _check_request(robot: Robot, within: MotionLimits, family: str, duration: float, size: int, rate: float) -> None:
    """Refuse a family, a duration or a rate that no search can satisfy."""
    from dynid.excitation.design import make_family
    from dynid.excitation.files import check_rate
    from dynid.excitation.room import check_duration

    # A motion that is too short would otherwise be refused for its rate.
    check_duration(robot, within, duration)
    check_rate(make_family(family, duration, size), rate)


def _torque_std(noise: str | None, robot: Robot) -> Array | None:
    """Standard deviation of the torque of each joint (n,), if given."""
    from dynid.excitation.information import torque_noise

    std = values.numbers(noise, "--torque-noise")
    return None if std is None else torque_noise(std, robot.n)


def _wishes(inputs: Inputs, chosen: str | None, avoid: Path | None) -> dict[str, Any]:
    """Settings beyond the limits: parameters that count most, obstacles to keep clear of."""
    wishes: dict[str, Any] = {} if chosen is None else {"chosen": chosen.split(",")}
    if avoid is not None:
        from dynid.excitation.avoid import read_avoid

        file = inputs.robot_file
        wishes["clearances"] = [read_avoid(avoid, inputs.robot, file if file.endswith(".urdf") else None)]
    return wishes


def _ruled(rules: str, robot: Robot, within: MotionLimits, duration: float, request: dict[str, Any]) -> dict[str, Any]:
    """Settings of named rules; options that say something else are refused."""
    from dynid.excitation.amplitudes import halper_rules

    if rules != "halper":
        raise UnknownName(f"--rules is halper or left out, not '{rules}'", "rules")
    for option, value, allowed in (
        ("--family", request["family"], ("fourier",)),
        ("--criterion", request["criterion"], ("d", "cond")),
        ("--start-posture", request["start"], (None,)),
    ):
        if not any(value is x or value == x for x in allowed):
            raise ConflictingArguments(f"--rules halper has its own {option}: leave it out", option)
    return halper_rules(robot, duration, request["size"], limits=within)
