"""Identification while a robot runs: a log that grows, or a socket on this computer."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli import options
from dynid.cli.app import Json, app, check_outputs, wrote
from dynid.cli.inputs import Inputs
from dynid.cli.output import show
from dynid.cli.wrap import with_model
from dynid.errors import InvalidValue, TooFew

if TYPE_CHECKING:
    from rich.console import Group

    from dynid.online.follower import Follower, FollowerState
    from dynid.online.sources import LineSource

# Seconds that one look for new lines takes at most.
_LOOK = 0.1
# Lines of the terminal that are not base parameters.
_OTHER_LINES = 16


@app.command()
@with_model(logs=True, cleaning=("cutoff", "min_velocity", "measured_velocity"))
def watch(
    inputs: Inputs,
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="Log file that grows, unix:PATH of a socket, or localhost:PORT.")
    ],
    link: Annotated[str | None, typer.Option("--link", help="Link that the payload is fixed to.")] = None,
    forgetting: Annotated[
        float | None, typer.Option(help="Time constant in s of the weight of old samples. [none forgotten]")
    ] = None,
    window: Annotated[float | None, typer.Option(help="Seconds of motion to keep, in place of --forgetting.")] = None,
    every: Annotated[float, typer.Option(help="Seconds of motion between two lines.")] = 1.0,
    seconds: Annotated[
        float | None,
        typer.Option("--for", help="Seconds to watch; 0 reads what is there. [until Ctrl-C or the end of a socket]"),
    ] = None,
    table: options.ParameterTable = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Save the last estimate into this JSON file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Follow a log or a socket while the robot moves: estimated parameters, payload, pick-up and release.

    The payload needs a known arm: MODEL is its saved estimate, or a robot file whose parameters are taken as exact.

    Example: dynid watch arm.urdf run3.csv --friction viscous+coulomb+offset --for 0

    Example: dynid watch estimate.json run3.csv --link link3 --for 0 -o watched.json
    """
    from dynid.online.follower import Follower
    from dynid.online.lines import LineReader
    from dynid.online.sources import open_source

    if every <= 0:
        raise InvalidValue(f"--every must be a positive number of seconds, got {every:g}", "every")
    if seconds is not None and seconds < 0:
        raise InvalidValue(f"--for must not be negative, got {seconds:g}", "seconds")
    check_outputs(output)
    settings = {"forgetting": forgetting, "window": window, **inputs.cleaning}
    reader = LineReader(inputs.robot, inputs.log, whole=inputs.whole)
    follower = Follower(inputs.robot, reader, link=link, model=inputs.estimate, settings=settings)
    lines = open_source(source)
    try:
        with _display(lines.name) as shown:
            _follow(lines, follower, seconds, every, shown)
    finally:
        lines.close()
        state = follower.state()
        _save(state, output)  # also after an error: the motion does not come back
    _show(state, table, as_json)
    if output is not None and state.estimate is None:
        raise TooFew(f"nothing is saved: {state.waiting}")


def _follow(
    lines: LineSource, follower: Follower, seconds: float | None, every: float, shown: Callable[[FollowerState], None]
) -> None:
    """Feed lines until the time is over, the socket is closed, or Ctrl-C."""
    started, last = time.monotonic(), -every
    try:
        while True:
            left = _LOOK if seconds is None else min(_LOOK, started + seconds - time.monotonic())
            new = lines.read(max(left, 0.0))
            late = seconds is not None and time.monotonic() - started >= seconds
            over = lines.ended or (late and not (seconds == 0 and new))
            for event in follower.feed(new, last=over):
                print(f"{event}", file=sys.stderr, flush=True)
            if over:
                return
            now = follower.elapsed
            if new and now - last >= every:
                shown(follower.state())
                last = now
    except KeyboardInterrupt:
        follower.feed([], last=True)


def _save(state: FollowerState, output: Path | None) -> None:
    """Save the estimate, if there is one."""
    if output is not None and state.estimate is not None:
        state.estimate.save(output)
        wrote(output)


def _show(state: FollowerState, table: bool, as_json: bool) -> None:
    """Print what was found last."""
    if as_json:
        print(json.dumps(state.to_dict(), indent=2))
    else:
        show(state.line().strip())
        for event in state.events:
            show(str(event))
        if table and state.estimate is not None:
            show(state.estimate.summary())


@contextmanager
def _display(name: str) -> Iterator[Callable[[FollowerState], None]]:
    """A function that shows the state: a table on a terminal, a line elsewhere; both on standard error."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda state: print(state.line(), file=sys.stderr, flush=True)
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), transient=True, auto_refresh=False) as live:

        def update(state: FollowerState) -> None:
            live.update(_page(name, state, live.console.height), refresh=True)

        yield update


def _page(name: str, state: FollowerState, height: int) -> Group:
    """Tables of the base parameters and of the torque errors per joint, with the payload and the last events."""
    from rich.console import Group

    from dynid.terminal import table_of

    parts: list[Any] = [f"{name}: {state.line().strip()}"]
    estimate = state.estimate
    if estimate is not None:
        joints = table_of("torque errors", "joint", "rms", "relative %", text=("joint",))
        for joint, rms, share in zip(estimate.base.channels, estimate.rms, estimate.relative_error, strict=True):
            joints.add_row(joint, f"{rms:.4g}", f"{100 * share:.2f}")
        parts.append(joints)
        room = max(3, height - _OTHER_LINES - len(estimate.base.channels))
        values = table_of("base parameters", "parameter", "value", "std", text=("parameter",))
        rows = list(zip(estimate.base.names, estimate.beta, estimate.std, strict=True))
        for label, value, std in rows[:room]:
            values.add_row(label, f"{value:.5g}", f"{std:.2g}")
        parts.append(values)
        if len(rows) > room:
            parts.append(f"and {len(rows) - room} more base parameters")
    parts += [str(event) for event in state.events[-3:]]
    return Group(*parts)
