"""Options of a body on force plates: files of the plates, the table's prior, the weight, left and right alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from dynid.errors import DataError

if TYPE_CHECKING:
    from dynid.recording.recording import Recording
    from dynid.robot.model import Robot

Array = NDArray[np.float64]

Wrench = Annotated[
    list[Path] | None,
    typer.Option("--wrench", help="File of a force plate in world axes about the world's origin, one a log."),
]
ValidateWrench = Annotated[
    list[Path] | None, typer.Option("--validate-wrench", help="Plate of the logs of --validate, one a log.")
]
ZeroPlate = Annotated[
    list[str] | None,
    typer.Option(
        "--zero-plate",
        help="Take a plate's offset off: START:END s of its file in which nothing stands on it, or a file of it "
        "unloaded; one for all plates, or one each in the order of --wrench and --validate-wrench.",
    ),
]
Prior = Annotated[str | None, typer.Option(help="file, or anthropometric: the table's body on this skeleton. [file]")]
Sex = Annotated[str, typer.Option(help="With --prior anthropometric: male or female.")]
Height = Annotated[float | None, typer.Option(help="With --prior anthropometric: m. [from the skeleton]")]
Weight = Annotated[float | None, typer.Option(help="With --prior anthropometric: kg, known. [what the plate carries]")]
Metric = Annotated[
    str | None, typer.Option(help="Distance from the prior: euclidean, pullback or entropic. [euclidean]")
]
Symmetric = Annotated[bool, typer.Option("--symmetry", help="With --method feasible: left_* and right_* are alike.")]

# A plate that carries this much more or less than the weight that was given makes one of them doubtful.
_DOUBTFUL = 0.03


def on_plates(
    robot: Robot,
    read: Callable[[Sequence[str]], Recording],
    data: Sequence[str],
    files: Sequence[Path] | None,
    zeros: Sequence[Array | float] = (),
) -> tuple[Robot, Recording]:
    """Robot and recording with the wrench of one plate's file a run; the base floats where its motion is recorded.

    zeros: what is taken off each plate (6,).
    """
    if not files:
        return robot, read(data)
    options = read.keywords if isinstance(read, partial) else {}
    if options.get("rows") is not None or options.get("bad_rows", "error") != "error":
        raise DataError("--rows and --bad-rows cut the logs but not the files of --wrench: cut both files beforehand")
    recording = read(data)
    from dynid.cli.plate_files import with_plate
    from dynid.recording.wrench import WrenchSensor

    if len(files) != len(recording.runs):
        raise DataError(f"{len(files)} plate files are given for {len(recording.runs)} runs: one for each is needed")
    moving = all(run.base is not None for run in recording.runs)
    if robot.base == "fixed":
        robot = robot.with_base("floating" if moving else "instrumented")
    sensor = WrenchSensor("world")
    runs = (
        with_plate(run, file, sensor, zero=zero)
        for run, file, zero in zip(recording.runs, files, zeros or [0.0] * len(files), strict=True)
    )
    return robot, replace(recording, runs=tuple(runs))


def plate_zeros(files: Sequence[Path] | None, given: Sequence[str] | None) -> list[Array | float]:
    """Offsets of the plates, from --zero-plate; said aloud, as they change all that follows."""
    plates = list(files or ())
    if not given:
        return [0.0] * len(plates)
    if not plates:
        raise DataError("--zero-plate takes the offset off the plates of --wrench: none is given")
    if len(given) not in (1, len(plates)):
        raise DataError(f"{len(given)} of --zero-plate are given for {len(plates)} plates: give one, or one each")
    from dynid.cli.plate_files import plate_zero

    zeros: list[Array | float] = []
    for file, what in zip(plates, list(given) * (len(plates) // len(given)), strict=True):
        zero = plate_zero(what, file)
        fx, fy, fz, mx, my, mz = (f"{x:.3g}" for x in zero)
        typer.echo(f"dynid: taken off {file.name}: {fx}, {fy}, {fz} N and {mx}, {my}, {mz} N m", err=True)
        zeros.append(zero)
    return zeros


def with_prior(
    robot: Robot, recording: Recording, prior: str | None, sex: str, height: float | None, weight: float | None
) -> tuple[Robot, float | None]:
    """The robot with its prior, and its weight where that is known."""
    if prior in (None, "file"):
        if height is not None or weight is not None:
            raise DataError("--height and --weight describe a person: give --prior anthropometric")
        return robot, None
    if prior != "anthropometric":
        raise DataError(f"--prior '{prior}' is unknown: use file or anthropometric")
    from dynid.human.prior import with_anthropometric_prior

    carried = _carried(robot, recording)
    if weight is None and carried is None:
        raise DataError("--weight is needed where no plate is given with --wrench")
    known = weight if weight is not None else carried
    assert known is not None
    if carried is not None and abs(carried - known) > _DOUBTFUL * known:
        typer.echo(f"dynid: the plate carries {carried:.1f} kg, --weight says {known:g} kg", err=True)
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
    """Method and its options, with what is known of the body: its weight, its mirror image, how far the prior is."""
    if method not in (None, "feasible") and (weight is not None or symmetry or metric is not None):
        raise DataError(f"--prior anthropometric, --metric and --symmetry are for --method feasible, not '{method}'")
    if weight is None and not symmetry and metric is None:
        return method or "wls", given
    from dynid.feasibility.constraints import Mass, Symmetry

    if metric not in (None, "euclidean", "pullback", "entropic"):
        raise DataError(f"--metric '{metric}' is unknown: use euclidean, pullback or entropic")
    laws: list[Any] = [given.get("constraints", "full")]
    if weight is not None:
        laws.append(Mass(weight, weight))
    if symmetry:
        laws.append(Symmetry.by_name(robot, _sideways(robot)))
    # What the data leave open is much of a body: how far to trust the table is a question for the data too.
    pull = {"weight": "cv"} if weight is not None else {}
    return "feasible", pull | given | {"constraints": laws, "metric": metric or "euclidean"}


def _sideways(robot: Robot) -> str:
    """The axis along which left and right links lie apart, all joints at zero."""
    from dynid.robot.posture import link_placements

    where = {link.name: place[:3, 3] for link, place in zip(robot.links, link_placements(robot), strict=True)}
    pairs = [
        (n, n.replace("left", "right", 1)) for n in where if "left" in n and n.replace("left", "right", 1) in where
    ]
    apart = sum((np.abs(where[a] - where[b]) for a, b in pairs), np.zeros(3))
    return "xyz"[int(np.argmax(apart))]
