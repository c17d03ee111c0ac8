"""Payloads and drive gains: runs with something known or unknown in the hand."""

from __future__ import annotations

from typing import Annotated

import typer

from dynid.cli import options, values
from dynid.cli.app import Json, app, check_outputs
from dynid.cli.inputs import Inputs
from dynid.cli.output import required
from dynid.cli.progress import working
from dynid.cli.report import conclude, judged, result_page
from dynid.cli.wrap import with_logs, with_model
from dynid.errors import ConflictingArguments, MissingArgument, TooFew

LinkOption = Annotated[str, typer.Option("--link", help="Link that the payload is fixed to.")]
Free = Annotated[
    list[str] | None,
    typer.Option(
        "--free",
        metavar="PARAMETERS",
        help="Drive parameters that may differ between the runs: off_*; may be repeated.",
    ),
]


@app.command()
@with_model(logs=True, cleaning=tuple(options.CLEANING))
def payload(
    inputs: Inputs,
    link: LinkOption,
    loaded: Annotated[
        list[str] | None, typer.Argument(metavar="LOADED", help="Log files with the payload, one run each.")
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option("--without", metavar="LOG", help="Log without the payload; may be repeated.")
    ] = None,
    form: Annotated[
        str, typer.Option(help="full (ten parameters), mass-centre (a point mass), mass (with --center).")
    ] = "full",
    center: Annotated[str | None, typer.Option(help="With --form mass: x,y,z in m, in the link's frame.")] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Plain least squares: the body need not be physically consistent.")
    ] = False,
    free: Free = None,
    gain_std: Annotated[
        float | None,
        typer.Option(help="Relative standard deviation of the gains of the drives. [0.1 for currents times gains]"),
    ] = None,
    report: options.ResultReport = None,
    require: options.Require = None,
    as_json: Json = False,
) -> None:
    """Identify a tool or payload: mass, centre of mass and inertia.

    From runs with it and runs without it (MODEL is the robot), or from runs with it and an estimate of the arm without
    it (MODEL is the estimate).

    Example: dynid payload arm.urdf loaded.csv --without run1.csv --link link3

    Example: dynid payload estimate.json loaded.csv --link link3
    """
    from dynid.calibration.payload import identify_payload

    wanted, page = required(require), result_page(report)
    check_outputs(page)
    if not loaded:
        raise MissingArgument("no log with the payload is given: name LOADED", "loaded")
    estimate = inputs.estimate if not without else None
    if estimate is None and not without:
        raise MissingArgument(
            "give runs without the payload, --without, or a saved estimate of the arm in place of MODEL", "without"
        )
    from_project = inputs.project is not None and inputs.project.output == inputs.estimate_file
    if inputs.estimate_file is not None and without and not from_project:
        raise ConflictingArguments(
            "give runs without the payload, --without, or a saved estimate, and not both", "without"
        )
    carrying, empty = inputs.read(loaded), inputs.read(without) if without else None
    with working("identifying the payload"):
        found = identify_payload(
            inputs.robot,
            carrying,
            empty,
            link=link,
            model=estimate,
            form=form,  # type: ignore[arg-type]
            feasible=not plain,
            centre=values.numbers(center, "--center"),
            free=tuple(free or ()),
            signals=inputs.signals() if inputs.cleaning or estimate is None else None,
            gain_std=gain_std,
        )
    conclude(found.summary(), found.to_dict(), judged(found, page), page, wanted, as_json)


@app.command()
@with_logs
def gains(
    inputs: Inputs,
    link: LinkOption,
    payload_mass: Annotated[float, typer.Option(help="Mass of the payload, kg.")],
    data: Annotated[
        list[str] | None,
        typer.Argument(metavar="DATA", help="Two logs with currents: without the payload, then with it."),
    ] = None,
    method: Annotated[str, typer.Option(help="output (errors in currents), wls or tls.")] = "output",
    shared: Annotated[
        list[str] | None,
        typer.Option("--shared", metavar="JOINTS", help="Joints with equal motors: joint1,joint2; may be repeated."),
    ] = None,
    negative: Annotated[bool, typer.Option("--negative", help="Let gains be negative.")] = False,
    free: Free = None,
    report: options.ResultReport = None,
    require: options.Require = None,
    as_json: Json = False,
) -> None:
    """Identify drive gains (N m/A) from currents, without and with a payload of known mass.

    Example: dynid gains arm.urdf currents.csv currents_loaded.csv --payload-mass 1.5 --link link3 --friction coulomb
    """
    from dynid.calibration.drive_gains import identify_drive_gains

    wanted, page = required(require), result_page(report)
    check_outputs(page)
    if not data or len(data) != 2:
        raise TooFew(f"two logs are needed, without the payload and with it, got {len(data or ())}")
    empty, carrying = inputs.read(data[:1]), inputs.read(data[1:])
    with working("identifying drive gains"):
        found = identify_drive_gains(
            inputs.robot,
            empty,
            carrying,
            payload=payload_mass,
            link=link,
            method=method,  # type: ignore[arg-type]
            shared=[group.split(",") for group in shared or ()],
            positive=not negative,
            free=tuple(free or ()),
            signals=inputs.signals(),
        )
    conclude(found.summary(), found.to_dict(), judged(found, page), page, wanted, as_json)
