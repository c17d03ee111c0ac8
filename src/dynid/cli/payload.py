"""Payloads and drive gains: runs with something known or unknown in the hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from dynid.cli import options
from dynid.cli.app import Json, app
from dynid.cli.progress import working
from dynid.errors import DataError
from dynid.recording.recording import Recording
from dynid.robot.model import Robot

LinkOption = Annotated[str, typer.Option("--link", help="Link that the payload is fixed to.")]
Free = Annotated[
    list[str] | None,
    typer.Option("--free", help="Drive parameters that may differ between the runs: off_*; may be repeated."),
]


@app.command()
@options.with_logs
def payload(
    machine: Robot,
    read: Callable[[Sequence[str]], Recording],
    loaded: Annotated[list[str], typer.Argument(metavar="LOADED", help="Log files with the payload, one run each.")],
    link: LinkOption,
    without: Annotated[
        list[str] | None, typer.Option("--without", help="Log without the payload; may be repeated.")
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="Saved estimate of the arm without the payload, instead of runs.")
    ] = None,
    form: Annotated[
        str, typer.Option(help="full (ten numbers), mass-centre (a point), mass (with --centre).")
    ] = "full",
    centre: Annotated[str | None, typer.Option(help="With --form mass: x,y,z in m, in the link's frame.")] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Plain least squares: the body need not be possible.")] = False,
    free: Free = None,
    cutoff: options.Cutoff = None,
    decimate: options.Decimate = None,
    min_velocity: options.MinSpeed = None,
    trim: options.Trim = None,
    as_json: Json = False,
) -> None:
    """Weigh a tool or payload: mass, centre and inertia, from runs with it and runs or a model without.

    Example: dynid payload arm.urdf loaded.csv --without run1.csv --link link3
    """
    from dynid.calibration.payload import identify_payload
    from dynid.identification.estimate import Estimate

    if (without is None) == (model is None):
        raise DataError("give runs without the payload, --without, or a saved estimate, --model, and not both")
    chosen = (cutoff, decimate, min_velocity, trim)
    given = any(x is not None for x in chosen)
    carrying, empty = read(loaded), read(without) if without else None
    with working("weighing the payload"):
        found = identify_payload(
            machine,
            carrying,
            empty,
            link=link,
            model=None if model is None else Estimate.load(model, machine),
            form=form,  # type: ignore[arg-type]
            feasible=not plain,
            centre=options.read_numbers(centre, "--centre"),
            free=tuple(free or ()),
            signals=options.read_signals(*chosen) if given or model is None else None,
        )
    print(json.dumps(found.to_dict(), indent=2) if as_json else found.summary())


@app.command()
@options.with_logs
def gains(
    machine: Robot,
    read: Callable[[Sequence[str]], Recording],
    unloaded: Annotated[str, typer.Argument(metavar="UNLOADED", help="Log with currents, without the payload.")],
    loaded: Annotated[str, typer.Argument(metavar="LOADED", help="Log with currents, with the payload.")],
    link: LinkOption,
    payload_mass: Annotated[float, typer.Option(help="Mass of the payload, kg.")],
    method: Annotated[str, typer.Option(help="output (errors in currents), wls or tls.")] = "output",
    shared: Annotated[
        list[str] | None, typer.Option("--shared", help="Joints with equal motors: joint1,joint2; may be repeated.")
    ] = None,
    negative: Annotated[bool, typer.Option("--negative", help="Let gains be negative.")] = False,
    free: Free = None,
    cutoff: options.Cutoff = None,
    decimate: options.Decimate = None,
    min_velocity: options.MinSpeed = None,
    trim: options.Trim = None,
    as_json: Json = False,
) -> None:
    """Find drive gains (N m/A) from currents, without and with a payload of known mass.

    Example: dynid gains arm.urdf currents.csv currents_loaded.csv --payload-mass 1.5 --link link3
    """
    from dynid.calibration.drive_gains import identify_drive_gains

    empty, carrying = read([unloaded]), read([loaded])
    with working("identifying drive gains"):
        found = identify_drive_gains(
            machine,
            empty,
            carrying,
            payload=payload_mass,
            link=link,
            method=method,  # type: ignore[arg-type]
            shared=[group.split(",") for group in shared or ()],
            positive=not negative,
            free=tuple(free or ()),
            signals=options.read_signals(cutoff, decimate, min_velocity, trim),
        )
    print(json.dumps(found.to_dict(), indent=2) if as_json else found.summary())
