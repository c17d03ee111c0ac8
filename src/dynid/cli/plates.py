"""Options of a person on force plates: plate files, anthropometric prior, mass, and symmetry of left and right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from dynid.errors import ConflictingArguments, InvalidShape, MissingArgument, NotApplicable, UnknownName

if TYPE_CHECKING:
    from dynid.cli.inputs import Inputs
    from dynid.recording.recording import Recording
    from dynid.robot.model import Robot

Array = NDArray[np.float64]

Wrench = Annotated[
    list[Path] | None,
    typer.Option("--wrench", help="File of a force plate in world axes about the world's origin, one per log."),
]
ValidateWrench = Annotated[
    list[Path] | None, typer.Option("--validate-wrench", help="Plate file of each log of --validate.")
]
ZeroPlate = Annotated[
    list[str] | None,
    typer.Option(
        "--zero-plate",
        metavar="FILE|FROM:TO",
        help="Subtract a plate's offset: START:END s of its file in which it is unloaded, or a file of the unloaded "
        "plate; one for all plates, or one each in the order of --wrench and --validate-wrench.",
    ),
]
Prior = Annotated[str | None, typer.Option(help="file, or anthropometric: the table's body on this skeleton. [file]")]
Sex = Annotated[str, typer.Option(help="With --prior anthropometric: male or female.")]
Height = Annotated[float | None, typer.Option(help="With --prior anthropometric: m. [from the skeleton]")]
Weight = Annotated[float | None, typer.Option(help="With --prior anthropometric: kg. [the mean load of the plate]")]
Metric = Annotated[
    str | None, typer.Option(help="Distance from the prior: euclidean, pullback or entropic. [euclidean]")
]
Symmetric = Annotated[
    bool, typer.Option("--symmetry", help="With --method feasible: left_* and right_* are mirror images.")
]

# A relative difference between the plate's mean load and the given mass above which a warning is printed.
_DOUBTFUL = 0.03


def on_plates(
    inputs: Inputs, data: Sequence[str] | None, files: Sequence[Path], zeros: Sequence[Array | float]
) -> tuple[Robot, Recording]:
    """Robot and recording with the wrench of one plate file per run; the base floats if its motion is recorded.

    `zeros` are subtracted from the plates, each (6,).
    """
    if not files:
        return inputs.robot, inputs.read(data or None)
    if inputs.log is not None and (inputs.log.rows is not None or inputs.log.bad_rows != "error"):
        raise ConflictingArguments(
            "--rows and --bad-rows cut the logs but not the files of --wrench: cut both files beforehand", "rows"
        )
    recording = inputs.read(data or None)
    from dynid.cli.plate_files import with_plate
    from dynid.recording.wrench import WrenchSensor

    if len(files) != len(recording.runs):
        raise InvalidShape(
            f"{len(files)} plate files are given for {len(recording.runs)} runs: one for each is needed", "wrench"
        )
    moving = all(run.base is not None for run in recording.runs)
    robot = inputs.robot
    if robot.base == "fixed":
        robot = robot.with_base("floating" if moving else "instrumented")
    sensor = WrenchSensor("world")
    runs = (
        with_plate(run, file, sensor, zero=zero) for run, file, zero in zip(recording.runs, files, zeros, strict=True)
    )
    return robot, replace(recording, runs=tuple(runs))


def plate_zeros(files: Sequence[Path] | None, given: Sequence[str] | None) -> list[Array | float]:
    """Offsets of the plates, from --zero-plate, printed because they change every result."""
    plates = list(files or ())
    if not given:
        return [0.0] * len(plates)
    if not plates:
        raise MissingArgument("--zero-plate subtracts the offset of the plates of --wrench: none is given", "wrench")
    if len(given) not in (1, len(plates)):
        raise InvalidShape(
            f"{len(given)} of --zero-plate are given for {len(plates)} plates: give one, or one each", "zero_plate"
        )
    from dynid.cli.plate_files import plate_zero

    zeros: list[Array | float] = []
    for file, what in zip(plates, list(given) * (len(plates) // len(given)), strict=True):
        zero = plate_zero(what, file)
        fx, fy, fz, mx, my, mz = (f"{x:.3g}" for x in zero)
        typer.echo(f"dynid: subtracted from {file.name}: {fx}, {fy}, {fz} N and {mx}, {my}, {mz} N m", err=True)
        zeros.append(zero)
    return zeros


def with_prior(
    robot: Robot, recording: Recording, prior: str | None, sex: str, height: float | None, weight: float | None
) -> tuple[Robot, float | None]:
    """The robot with its prior, and its mass where that is known."""
    if prior in (None, "file"):
        if height is not None or weight is not None:
            raise NotApplicable("--height and --weight describe a person: give --prior anthropometric", "height")
        return robot, None
    if prior != "anthropometric":
        raise UnknownName(f"--prior '{prior}' is unknown: use file or anthropometric", "prior")
    from dynid.human.prior import with_anthropometric_prior

    carried = _carried(robot, recording)
    if weight is None and carried is None:
        raise MissingArgument("--weight is needed where no plate is given with --wrench", "weight")
    known = weight if weight is not None else carried
    assert known is not None
    if carried is not None and abs(carried - known) > _DOUBTFUL * known:
        typer.echo(f"dynid: the plate carries {carried:.1f} kg, --weight is {known:g} kg", err=True)
    return with_anthropometric_prior(robot, sex, known, height=height), known


def _carried(robot: Robot, recording: Recording) -> float | None:
    """Mean mass (kg) that the plates carry over all runs; None without plates."""
    forces = [run.wrenches["plate"][:, :3].mean(axis=0) for run in recording.runs if "plate" in run.wrenches]
    if not forces:
        return None
    gravity = np.asarray(robot.gravity, dtype=float)
    return float(-np.mean(forces, axis=0) @ gravity / (gravity @ gravity))


def feasible_options(
    robot: Robot, method: str | None, given: dict[str, Any], metric: str | None, weight: float | None, symmetry: bool
) -> tuple[str, dict[str, Any]]:
    """Method and its options, with what is known of the body: its mass, its symmetry, the metric of the prior."""
    from dynid.feasibility.constraints import Mass, Symmetry
    from dynid.identification.estimators.registry import find_method

    how = method or "feasible"
    if weight is None and not symmetry and metric is None:
        return how, given
    if not {"constraints", "mass", "metric", "weight"} <= set(find_method(how).option_names):
        raise NotApplicable(
            f"--prior anthropometric, --metric and --symmetry are for --method feasible, not '{how}'", "prior"
        )
    if metric not in (None, "euclidean", "pullback", "entropic"):
        raise UnknownName(f"--metric '{metric}' is unknown: use euclidean, pullback or entropic", "metric")
    laws: list[Any] = [given.get("constraints", "full")]
    known: dict[str, Any] = {}
    if weight is not None:
        laws.append(Mass(weight, weight))
        known = {"mass": weight}
    if symmetry:
        laws.append(Symmetry.by_name(robot, _sideways(robot)))
    # The data leave much of a body undetermined; cross-validation finds the weight of the table.
    pull = {"weight": "cv"} if weight is not None else {}
    return how, pull | given | known | {"constraints": laws, "metric": metric or "euclidean"}


def _sideways(robot: Robot) -> str:
    """The axis along which left and right links lie apart, all joints at zero."""
    from dynid.robot.posture import link_placements

    where = {link.name: place[:3, 3] for link, place in zip(robot.links, link_placements(robot), strict=True)}
    pairs = [
        (n, n.replace("left", "right", 1)) for n in where if "left" in n and n.replace("left", "right", 1) in where
    ]
    apart = sum((np.abs(where[a] - where[b]) for a, b in pairs), np.zeros(3))
    return "xyz"[int(np.argmax(apart))]
