"""Geometric calibration: plan postures, find where the joints really are, check it, write the corrected robot."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli import options, values
from dynid.cli.app import Application, Commands, Json, app, check_outputs, remember_inputs, wrote
from dynid.cli.inputs import Inputs
from dynid.cli.output import check_required, required, show, verdict_lines
from dynid.cli.progress import working
from dynid.cli.report import judged, result_page
from dynid.cli.wrap import with_robot
from dynid.errors import InvalidValue, MissingArgument, MissingFile, UnknownName, WrongFormat, did_you_mean, one_of

if TYPE_CHECKING:
    from dynid.assessment.verdict.assessment import Assessment
    from dynid.cli.project import GeometrySection, Project
    from dynid.geometry.estimate import GeometryEstimate
    from dynid.geometry.measurements.measurement import Measurement
    from dynid.geometry.reading import ReadMeasurements
    from dynid.robot.model import Robot

geometry = Application(
    name="geometry",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Find where the joints really are: geometric calibration of arms.",
)
app.add_typer(geometry)

# How geometry is modelled; drives and inertias of bodies do not matter.
_MODELLING = ("gravity", "lock", "ignore_loops")
_TABLES = {"zeros": "zeros", "dh": "dh", "mdh": "mdh", "kinematics-yaml": "ur"}
_ROBOT_FILES = (".urdf", ".xml", ".mjcf", ".sdf")
# Lines of the verdict that fit prints; the report has all reasons.
_LINES = 3
# File and number of postures that the next command names where none was given.
_OUTPUT, _COUNT = "geometry.json", 40

Data = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="DATA",
        help="Files of measurements, or folders of them: tables, and samples of robot_calibration, easy_handeye2 or "
        "MoveIt. [those of dynid.toml]",
    ),
]
Estimate = Annotated[
    Path | None,
    typer.Argument(metavar="ESTIMATE", help="Saved calibration of `dynid geometry fit -o`. [that of dynid.toml]"),
]
Frame = Annotated[
    str | None, typer.Option(help="Link or frame that is measured. [that of dynid.toml, or of the calibration]")
]
Distance = Annotated[
    list[str] | None,
    typer.Option(metavar="A,B=METRES", help="Known distance between two sockets at each place; may be repeated."),
]
Places = Annotated[
    str | None,
    typer.Option(
        help="What is one place, left out as a whole in validation: folder, file or none. [folders if several]"
    ),
]
SurfaceOption = Annotated[
    list[str] | None,
    typer.Option("--surface", metavar="NAME=KIND", help="Kind of a touched surface: plane, line or point. [its name]"),
]
InHand = Annotated[
    bool | None,
    typer.Option("--in-hand/--beside", help="Where the sensor of poses is: on the robot, or beside it. [found]"),
]
Noise = Annotated[
    float | None, typer.Option(help="Standard deviation of each measured coordinate, m. [that of its kind]")
]
Bodies = Annotated[
    str | None,
    typer.Option(help="Robot file or built-in name whose masses load the joints, by joint names. [the robot's own]"),
]


@dataclass(frozen=True)
class _Reading:
    """How measurements are read: options over the section [geometry] of the project file."""

    frame: str | None
    distance: Sequence[str] | None
    units: Sequence[str] | None
    joints: str | None
    places: str | None
    surface: Sequence[str] | None = None
    in_hand: bool | None = None
    noise: float | None = None

    def measurements(self, robot: Robot, data: Sequence[str], project: Project | None) -> ReadMeasurements:
        """The measurements in files, and what was guessed about them."""
        from dynid.geometry.reading import read_measurements

        chosen = _section(project)
        if not data and project is not None:
            data = [str(project.folder / name) for name in chosen.measurements]
        if not data:
            raise MissingArgument(
                "no measurement is given: name DATA, or list files in geometry.measurements of dynid.toml"
            )
        frame = self.frame or chosen.frame
        if frame is None:
            tips = [x.name for i, x in enumerate(robot.links) if all(j.parent != i for j in robot.joints)]
            raise MissingArgument(
                f"name the link or frame that is measured with --frame, such as {one_of(tips)}", "frame"
            )
        with working("reading"):
            found = read_measurements(
                list(data),
                robot,
                frame=frame,
                distances=_pairs(chosen.distances) | _distances(self.distance),
                units=chosen.units | values.key_values(self.units, "--units"),
                joints=values.names(self.joints) or chosen.joints,
                places=self.places or chosen.places,  # type: ignore[arg-type]
                surfaces=chosen.surfaces | values.key_values(self.surface, "--surface"),
                in_hand=chosen.in_hand if self.in_hand is None else self.in_hand,
                noise=chosen.noise if self.noise is None else self.noise,
            )
        remember_inputs(*map(str, found.files))
        return found


@geometry.command()
@with_robot(modelling=_MODELLING)
def plan(
    inputs: Inputs,
    data: Data = None,
    frame: Frame = None,
    markers: Annotated[
        int | None,
        typer.Option(min=1, max=4, help="In place of DATA: markers on the link that a tracker will see. [3]"),
    ] = None,
    distance: Distance = None,
    count: Annotated[int | None, typer.Option(min=1, help="Number of postures.")] = None,
    accuracy: Annotated[
        float | None, typer.Option(help="In place of --count: wanted 95 % error of the tool, m.")
    ] = None,
    workspace: Annotated[
        str | None,
        typer.Option(metavar="X,Y,Z:X,Y,Z", help="Corners of the box in the base in which the tool works, m."),
    ] = None,
    pool: Annotated[int, typer.Option(min=1, help="Random postures to choose from.")] = 1000,
    avoid: options.Avoid = None,
    bodies: Bodies = None,
    seed: options.Seed = 0,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the postures into this CSV file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Choose the postures to measure, for the accuracy of the tool, and say how accurate they make it.

    With DATA, of the sensors that measured them; a ball in sockets keeps its sockets.

    Example: dynid geometry plan tx40 --frame link6 --count 20 --pool 200 -o postures.csv

    Example: dynid geometry plan tx40 tracker.csv --frame link6 --count 20 --pool 200
    """
    from dynid.geometry.postures import plan_postures

    if output is not None and output.suffix != ".csv":
        raise WrongFormat(f"postures are written as .csv, not '{output}'", "output")
    check_outputs(output)
    reading = _Reading(frame, distance, None, None, None)
    if markers is not None or not (data or _section(inputs.project).measurements):
        sensors: Sequence[Measurement] = [_tracker(markers or 3, inputs.robot, reading, inputs.project)]
    else:
        sensors = reading.measurements(inputs.robot, data or (), inputs.project)
    clearances = []
    if avoid is not None:
        from dynid.excitation.avoid import read_avoid

        urdf = inputs.robot_file if inputs.robot_file.endswith(".urdf") else None
        clearances = [read_avoid(avoid, inputs.robot, urdf)]
    with working("planning postures") as work:
        found = plan_postures(
            inputs.robot,
            sensors,
            count,
            accuracy=accuracy,
            bodies=_bodies(bodies, inputs.project),
            workspace=_box(workspace),
            candidates=pool,
            clearances=clearances,
            seed=seed,
            progress=work.report,
        )
    if output is not None:
        found.to_csv(output)
        wrote(output)
    if as_json:
        print(json.dumps(found.to_dict(), indent=2))
        return
    show(found.summary())
    if output is None:
        show("next:\n  - write the postures for the robot: -o postures.csv")
    else:
        show(f"next:\n  - measure them, and add the columns of the measurement to {output}: dynid geometry fit")


@geometry.command()
@with_robot(modelling=_MODELLING)
def fit(
    inputs: Inputs,
    data: Data = None,
    frame: Frame = None,
    distance: Distance = None,
    units: options.Units = None,
    joints: options.Joints = None,
    places: Places = None,
    surface: SurfaceOption = None,
    in_hand: InHand = None,
    noise: Noise = None,
    bodies: Bodies = None,
    kinds: Annotated[
        str | None,
        typer.Option(
            metavar="KINDS",
            help="Errors that may exist, separated by commas: position, rotation, zero, slide_zero, gear, "
            "eccentricity, compliance, bending. [all but gear]",
        ),
    ] = None,
    plain: Annotated[bool, typer.Option("--keep-outliers", help="Set no posture aside.")] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Save the calibration into this file (.json).")
    ] = None,
    report: options.ResultReport = None,
    require: options.Require = None,
    as_json: Json = False,
) -> None:
    """Find where the joints really are from measurements of any mixture of sensors.

    Prints the verdict, errors at places that were left out of the fit, and the largest differences from the file. In a
    folder with dynid.toml, its section [geometry] has files and settings; options override it.

    Example: dynid geometry fit tx40 sockets --frame link6 --distance hole_0,hole_1=0.05 -o geometry.json

    Example: dynid geometry fit tx40 tracker.csv --frame link6 --report geometry.html
    """
    from dynid.geometry.calibrate import calibrate_geometry
    from dynid.geometry.unknowns import GeometryModel

    chosen = _section(inputs.project)
    if inputs.project is not None:
        output = output or inputs.project.beside(chosen.output)
        report = report or inputs.project.beside(chosen.report)
    wanted, page = required(require), result_page(report)
    if output is not None and output.suffix != ".json":
        raise WrongFormat(f"a calibration is saved as .json, not '{output}'", "output")
    check_outputs(output, page)
    model = None if kinds is None else GeometryModel.only(*values.names(kinds))
    reading = _Reading(frame, distance, units, joints, places, surface, in_hand, noise)
    read = reading.measurements(inputs.robot, data or (), inputs.project)
    check_outputs(output, page)  # measurements are not overwritten
    with working("calibrating") as work:
        found = calibrate_geometry(
            inputs.robot,
            read,
            model,
            bodies=_bodies(bodies, inputs.project),
            robust=not plain,
            progress=work.report,
        )
    found = replace(found, notes=(*found.notes, *read.notes))
    verdict = judged(found, page, read)
    if output is not None:
        found = replace(found, judgement=replace(verdict.judgement(), checked=found.held_out is not None))
        found.save(output)
        wrote(output)
    if as_json:
        print(json.dumps(found.to_dict() | {"verdict": verdict.to_dict()}, indent=2))
    else:
        show("\n".join(verdict_lines(verdict, page)[:_LINES]))
        show(found.summary())
        show("\n".join(_next(found, verdict, inputs, output, data or ())))
    check_required(wanted, verdict)


@geometry.command()
def check(
    estimate: Estimate = None,
    data: Data = None,
    frame: Frame = None,
    distance: Distance = None,
    units: options.Units = None,
    joints: options.Joints = None,
    places: Places = None,
    surface: SurfaceOption = None,
    in_hand: InHand = None,
    noise: Noise = None,
    report: options.ResultReport = None,
    require: options.Require = None,
    project: options.ProjectOption = None,
    as_json: Json = False,
) -> None:
    """Try a calibration on measurements: errors with the geometry of the file and with the identified one, and verdict.

    Measurements that were not fitted, of another day or with another sensor, say most.

    Example: dynid geometry check geometry.json other.csv
    """
    from dynid.geometry.at_postures import posture_errors

    found, used = _saved(estimate, project)
    wanted, page = required(require), result_page(report)
    reading = _Reading(
        frame or (_section(used).frame if used is not None else None) or found.frames[0],
        *(distance, units, joints, places, surface, in_hand, noise),
    )
    read = reading.measurements(found.robot, data or (), used)
    check_outputs(page)
    verdict = judged(found, page, read)
    errors = posture_errors(found, read)
    if as_json:
        rows = [
            {"sensor": e.sensor, "postures": len(e.q), "before": _rms(e.before), "after": _rms(e.after)} for e in errors
        ]
        print(json.dumps({"errors": rows, "notes": list(read.notes), "verdict": verdict.to_dict()}, indent=2))
    else:
        show("\n".join(verdict_lines(verdict, page)))
        for e in errors:
            show(
                f"{e.sensor}: {len(e.q)} postures of {e.frame}, {1e3 * _rms(e.before):.3g} -> "
                f"{1e3 * _rms(e.after):.3g} mm (root mean square)"
            )
        show("\n".join(f"note: {note}" for note in read.notes))
    check_required(wanted, verdict)


@geometry.command()
def export(
    estimate: Estimate = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Robot file (.urdf, .xml, .sdf), or table, to write."),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option("--table", help=f"A table in place of a robot file: {', '.join(_TABLES)}."),
    ] = None,
    template: Annotated[
        Path | None,
        typer.Option(
            help="File of the robot of which only origins of joints change. [that of the fit, if it is found]"
        ),
    ] = None,
    frame: Frame = None,
    checksum: Annotated[
        str | None, typer.Option(metavar="HASH", help="For kinematics-yaml: hash of the robot's own calibration.")
    ] = None,
    allow_infeasible: options.AllowInfeasible = False,
    untrusted: options.Untrusted = False,
    project: options.ProjectOption = None,
    as_json: Json = False,
) -> None:
    """Write the robot as it really is: URDF, MJCF or SDF, or a table for a controller.

    Meshes, frames and names of the original file stay. What a file cannot hold, such as compliance, is told.

    Example: dynid geometry export geometry.json -o calibrated.urdf

    Example: dynid geometry export geometry.json --table zeros -o zeros.csv
    """
    from dynid.export.label import Label, passed
    from dynid.geometry.files import write_calibrated

    if output is None:
        raise MissingArgument("name the file to write with -o, as in -o calibrated.urdf", "output")
    if table is not None and table not in _TABLES:
        raise UnknownName(
            f"table '{table}' is unknown: use {', '.join(_TABLES)}{did_you_mean(table, _TABLES)}", "table"
        )
    found, used = _saved(estimate, project)
    check_outputs(output)
    label = None if found.judgement is None else Label(found.judgement)
    if label is not None:
        passed(label, untrusted)
    if template is None and table is None:
        template = _original(found, output, estimate, used)
    count = found.joint_count
    warnings = write_calibrated(
        output,
        found.robot,
        found.unknowns[:count],
        found.values[:count],
        template=template,
        form=None if table is None else _TABLES[table],
        covariance=found.covariance[:count, :count],
        frame=frame or found.frames[0],
        bodies=found.bodies,
        label=label,
        checksum=checksum or "",
        allow_infeasible=allow_infeasible,
    )
    wrote(output)
    for warning in warnings:
        print(f"dynid: {warning}", file=sys.stderr)
    if as_json:
        content = {"output": str(output), "template": None if template is None else str(template)}
        print(json.dumps(content | {"warnings": warnings}, indent=2))
    elif template is not None:
        show(f"{template} with the origins of its joints as identified")


# -- inputs --------------------------------------------------------------------------------------------


def _section(project: Project | None) -> GeometrySection:
    """[geometry] of the project file; an empty one without a file."""
    from dynid.cli.project import GeometrySection

    return GeometrySection() if project is None else project.geometry


def _saved(estimate: Path | None, given: Path | None) -> tuple[GeometryEstimate, Project | None]:
    """The saved calibration, and the project file that names it."""
    from dynid.cli.project import find_project
    from dynid.geometry.estimate import GeometryEstimate

    project = find_project(given) if estimate is None or given is not None else None
    if estimate is None:
        if project is None:
            raise MissingArgument("no calibration is given: name ESTIMATE, or work in a folder with dynid.toml")
        estimate = project.beside(project.geometry.output)
        if estimate is None:
            raise MissingArgument(f"{project.path}: geometry.output names no saved calibration (.json): name ESTIMATE")
        if not estimate.is_file():
            raise MissingFile(f"there is no calibration '{estimate}' yet: run dynid geometry fit")
    remember_inputs(str(estimate))
    return GeometryEstimate.load(estimate), project


def _bodies(given: str | None, project: Project | None) -> Robot | None:
    """The robot whose masses load the joints."""
    from dynid.robot.load import load_robot

    chosen = _section(project).bodies
    if given is None and chosen is not None and project is not None:
        given = str(project.folder / chosen) if Path(chosen).suffix else chosen
    if given is None:
        return None
    remember_inputs(given)
    return load_robot(given)


def _distances(items: Sequence[str] | None) -> dict[tuple[str, str], float]:
    """Distances as written on the command line, A,B=METRES."""
    written: dict[str, float] = {}
    for item in items or ():
        pair, equals, length = item.rpartition("=")
        if not equals:
            raise InvalidValue(f"--distance takes A,B=METRES such as hole_0,hole_1=0.05, got '{item:.60}'", "distance")
        written[pair] = values.number(length, "--distance")
    return _pairs(written)


def _pairs(written: dict[str, float]) -> dict[tuple[str, str], float]:
    """Distances by the names of both sockets."""
    out: dict[tuple[str, str], float] = {}
    for pair, length in written.items():
        found = values.names(pair)
        if len(found) != 2 or not length > 0:
            raise InvalidValue(
                f"--distance takes two sockets and a length above zero, as hole_0,hole_1=0.05, got '{pair:.60}'",
                "distance",
            )
        out[found[0], found[1]] = length
    return out


def _box(text: str | None) -> list[list[float]] | None:
    """Two corners, X,Y,Z:X,Y,Z."""
    if text is None:
        return None
    corners = [values.numbers(part, "--workspace") or [] for part in text.split(":")]
    if [len(c) for c in corners] != [3, 3]:
        raise InvalidValue(f"--workspace takes X,Y,Z:X,Y,Z, got '{text:.60}'", "workspace")
    return corners


def _tracker(markers: int, robot: Robot, reading: _Reading, project: Project | None) -> Measurement:
    """A tracker that has not measured yet, and stands anywhere."""
    import numpy as np

    from dynid.geometry.measurements.points import Points

    frame = reading.frame or _section(project).frame
    if frame is None:
        raise MissingArgument("name the link or frame that will be measured with --frame", "frame")
    corners = 0.1 * np.vstack([np.eye(3), np.ones(3)])[:markers]
    return Points(np.zeros((1, robot.n)), frame, points=corners[None], known=corners, base=np.eye(4))


# -- outputs -------------------------------------------------------------------------------------------


def _rms(errors: Any) -> float:
    import numpy as np

    return float(np.sqrt(np.nanmean(errors**2)))


def _next(
    found: GeometryEstimate, verdict: Assessment, inputs: Inputs, output: Path | None, data: Sequence[str]
) -> Iterator[str]:
    """What to do next, with a command that works."""
    yield "next:"
    robot = [] if inputs.project is not None else [inputs.robot_file]
    frame = [] if inputs.project is not None else ["--frame", found.frames[0]]
    if verdict.verdict == "do not use":
        yield from (f"  - {x}" for x in dict.fromkeys(c.advice for c in verdict.against if c.advice) if x)
        words = ["plan", *robot, *frame, "--count", str(_COUNT), "-o", "postures.csv"]
        yield f"  - postures to measure: {shlex.join(['dynid', 'geometry', *words])}"
        return
    if output is None:
        words = ["fit", *robot, *data, *frame, "-o", _OUTPUT]
        yield f"  - save it, with the same options: {shlex.join(['dynid', 'geometry', *words])}"
        return
    original = Path(inputs.robot_file)
    ending = original.suffix if original.suffix.lower() in _ROBOT_FILES else ".urdf"
    words = ["export", str(output), "-o", f"{original.stem or 'robot'}.calibrated{ending}"]
    if original.suffix.lower() in _ROBOT_FILES:
        words += ["--template", str(original)]
    yield f"  - {shlex.join(['dynid', 'geometry', *words])}"


def _original(found: GeometryEstimate, output: Path, estimate: Path | None, project: Project | None) -> Path | None:
    """The file of the robot that was fitted, where it is found and of the format that is written."""
    places = [Path(), *([] if estimate is None else [estimate.parent])]
    names = [place / found.robot.source for place in places if found.robot.source and "\n" not in found.robot.source]
    if project is not None:
        names.insert(0, Path(project.robot_file))
    same = {".xml", ".mjcf"} if output.suffix.lower() in (".xml", ".mjcf") else {output.suffix.lower()}
    return next((x for x in names if x.suffix.lower() in same & set(_ROBOT_FILES) and x.is_file()), None)
