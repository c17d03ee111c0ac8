"""Excitation that a motion has given so far."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from dynid.cli import options, values
from dynid.cli.app import Json, app, check_outputs, write
from dynid.cli.inputs import Inputs
from dynid.cli.output import show
from dynid.cli.wrap import with_logs

if TYPE_CHECKING:
    from dynid.excitation.live import LiveScore


@app.command()
@with_logs(cleaning=("cutoff",))
def live(
    inputs: Inputs,
    data: options.Data = None,
    channels: options.Channels = None,
    target: Annotated[
        float, typer.Option(help="A parameter counts as excited at this share of its a-priori uncertainty.")
    ] = 0.1,
    channel_noise: Annotated[
        str | None, typer.Option(help="Standard deviation of the channels, one or one each. [3 N, 1 N m]")
    ] = None,
    every: Annotated[float, typer.Option(help="Seconds of motion between two lines.")] = 1.0,
    figure: options.Figure = None,
    as_json: Json = False,
) -> None:
    """Replay a motion and show what it has excited so far, and which part of the body to move next.

    --figure draws the last posture, with links colored by what is left to learn of them.

    The base floats where its motion was recorded, unless --base is given.

    Example: dynid live human.urdf motion.csv --base floating
    """
    from dynid.excitation.live import LiveExcitation
    from dynid.excitation.replay import replay
    from dynid.human.prior import with_virtual_links

    check_outputs(figure)
    recording = inputs.read()
    robot = inputs.robot
    if not inputs.base_given and all(run.base is not None for run in recording.runs):
        robot = robot.with_base("floating")
    if any(link.inertia[0] > 0 for link in robot.links):
        robot = with_virtual_links(robot)
    std = values.numbers(channel_noise, "--channel-noise")
    noise = std[0] if std is not None and len(std) == 1 else std
    score = LiveExcitation(robot, channels=channels, target=target, noise=noise)
    settings = replace(inputs.signals(), decimate=())
    for now in replay(score, recording, signals=settings, every=every):
        print(now.line(), file=sys.stderr, flush=True)
    if figure is not None:
        from dynid.report.posture import posture_figure

        write(figure, posture_figure(score))
    if as_json:
        print(json.dumps(score.score().to_dict(), indent=2))
    else:
        _show(score.score())


def _show(score: LiveScore) -> None:
    """The summary, in color on a terminal."""
    if not sys.stdout.isatty():
        show(score.summary())
        return
    from rich.console import Console

    from dynid.excitation.live_colors import score_table

    Console().print(score_table(score))
    show(score.line().strip())
