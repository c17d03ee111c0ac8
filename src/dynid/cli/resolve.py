"""Inputs of a command from its arguments, its options and the project file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dynid.cli import complete, options, values
from dynid.cli.inputs import Inputs, load_estimate
from dynid.errors import ConflictingArguments, MissingArgument, MissingFile, UnknownName
from dynid.patterns import matching_names

if TYPE_CHECKING:
    from dynid.cli.project import Project
    from dynid.friction.selection import FrictionSelection
    from dynid.identification.estimate import Estimate
    from dynid.recording.log_format import LogFormat
    from dynid.robot.model import Robot

__all__ = ["Subject", "locked", "resolve"]

Subject = Literal["robot", "estimate", "either", "friction"]


def resolve(
    subject: Subject, taken: Mapping[str, Any], data: Sequence[str], *, logs: bool, files: bool
) -> tuple[Inputs, list[str]]:
    """The inputs, and the log files that were given on the command line."""
    from dynid.cli.project import find_project

    name: str | None = taken["subject"]
    project = find_project(taken["project"]) if "project" in taken else None
    data = list(data)
    if project is not None and name is not None and files and _is_log(name, subject):
        data, name = [name, *data], None
    if name is not None and subject != "estimate" and not name.endswith(".json") and taken.get("project") is None:
        project = None  # a command that names its robot does not depend on the folder it is run in
    estimate, path, selection = None, None, None
    if subject == "estimate" or (subject == "either" and _is_estimate(name, project)):
        path = _estimate_file(name, project)
        estimate = load_estimate(path)
        robot, whole, file = estimate.robot, None, ""
    elif subject == "friction" and name is not None and name.lower().endswith(".json"):
        selection = _selection(name)
        robot, whole, file = selection.robot, None, ""
    else:
        file = _robot_file(name, project)
        robot, whole = _robot(file, project, taken)
    log, reading = None, {}
    if logs:
        reading = _reading(taken)
        log = _log_format(project, estimate or selection, reading, from_project=not data)
    given = [values.source(x) for x in data]
    if not given and project is not None:
        given = project.logs("identify")
    inputs = Inputs(
        robot=robot,
        robot_file=file,
        project=project,
        estimate=estimate,
        estimate_file=path,
        selection=selection,
        log=log,
        data=tuple(given),
        given=bool(data),
        cleaning=_cleaning(taken),
        reading=reading,
        whole=whole,
        modelling={
            n: values.names(v) if n == "lock" else v for n in options.MODELLING if (v := taken.get(n)) not in (None, [])
        },
        base_given=taken.get("base") is not None or (project is not None and project.robot.base is not None),
    )
    return inputs, data


def _is_log(name: str, subject: Subject) -> bool:
    """Whether a first argument is a log and not a robot or an estimate."""
    suffix = Path(name).suffix.lower()
    if subject != "robot" and suffix == ".json":
        return False
    if subject == "estimate":
        return True
    if "=" in name or Path(name).is_dir():
        return True
    return suffix != "" and suffix not in complete.ROBOT_FILES


def _is_estimate(name: str | None, project: Project | None) -> bool:
    """Whether MODEL is an estimate; left out, that of the project file where there is one."""
    if name is not None:
        return name.lower().endswith(".json")
    output = None if project is None else project.output
    return output is not None and output.suffix == ".json" and output.is_file()


def _estimate_file(name: str | None, project: Project | None) -> Path:
    if name is not None:
        return Path(name)
    if project is None:
        raise MissingArgument("no estimate is given: name ESTIMATE, or work in a folder with dynid.toml")
    if project.output is None or project.output.suffix != ".json":
        raise MissingArgument(f"{project.path}: identify.output names no saved estimate (.json): name ESTIMATE")
    if not project.output.is_file():
        raise MissingFile(f"there is no estimate '{project.output}' yet: run dynid identify")
    return project.output


def _robot_file(name: str | None, project: Project | None) -> str:
    if name is not None:
        return name
    if project is None:
        raise MissingArgument("no robot is given: name ROBOT, or write a project file with dynid init")
    return project.robot_file


def _selection(name: str) -> FrictionSelection:
    """A saved friction selection with its robot and log format."""
    from dynid.friction.selection import FrictionSelection

    return FrictionSelection.load(name)


def _robot(file: str, project: Project | None, taken: Mapping[str, Any]) -> tuple[Robot, Robot | None]:
    """The robot with its joints locked, and the whole one if some are."""
    from dynid.robot.load import load_robot

    section = (
        {}
        if project is None
        else project.robot.model_dump(exclude={"file", "lock", "mass", "link_mass"}, exclude_none=True)
    )
    fields = section | {n: taken[n] for n in options.MODELLING if n != "lock" and taken[n] not in (None, [])}
    robot = load_robot(file, **fields)
    held: list[str] | dict[str, float] = [] if project is None else project.robot.lock
    if taken["lock"] is not None:
        held = values.names(taken["lock"])
    return (locked(robot, held), robot) if held else (robot, None)


def _reading(taken: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of the log format that options give."""
    out: dict[str, Any] = {}
    for name in ("columns", "units"):
        if taken[name]:
            out[name] = values.key_values(taken[name], f"--{name}")
    for name in ("scale", "sign", "offset"):
        if taken[name]:
            out[name] = values.key_numbers(taken[name], f"--{name}")
    for name in ("rate", "motor_side", "bad_rows", "topic"):
        if taken[name] is not None:
            out[name] = taken[name]
    if taken["time"] is not None:
        out["time"] = values.time_column(taken["time"])
    if taken["gain"] is not None:
        out["gain"] = values.number_or_per_joint(taken["gain"], "--gain")
    if taken["joints"] is not None:
        out["joints"] = tuple(map(values.name_or_number, values.names(taken["joints"])))
    if taken["rows"] is not None:
        out["rows"] = values.row_range(taken["rows"], "--rows")
    return out


def _log_format(
    project: Project | None,
    saved: Estimate | FrictionSelection | None,
    reading: Mapping[str, Any],
    *,
    from_project: bool,
) -> LogFormat:
    """How logs are read: options over the project file; for other logs of a saved result, over its own format."""
    from dynid.recording.log_format import LogFormat

    known: dict[str, Any] = {}
    if saved is not None and saved.log_format is not None and not (project is not None and from_project):
        # Rows are those of the logs that were identified from.
        known = saved.log_format.model_dump(exclude_unset=True, exclude={"rows"})
    elif project is not None:
        known = project.log.model_dump(exclude_unset=True)
    for name, value in reading.items():
        before = known.get(name)
        known[name] = before | value if isinstance(value, dict) and isinstance(before, dict) else value
    if "rate" in reading and "time" not in reading and "time" in known and project is not None:
        raise ConflictingArguments(
            f"--rate is for logs without a time column, {project.path} names one: give --time none as well", "rate"
        )
    if "time" in reading and reading["time"] is not None and "rate" not in reading:
        known.pop("rate", None)
    return LogFormat(**known)


def _cleaning(taken: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of `Signals` that options give."""
    readers = {"cutoff": values.cutoff, "decimate": values.decimation, "min_velocity": values.min_velocity}
    given = {name: taken[name] for name in options.CLEANING if taken.get(name) is not None}
    return {name: readers[name](value) if name in readers else value for name, value in given.items()}


def locked(robot: Robot, joints: Sequence[str] | Mapping[str, float]) -> Robot:
    """The robot with joints held still.

    Parameters
    ----------
    robot : Robot
        The robot.
    joints : sequence of str or mapping of str to float
        Names or patterns of joints, held at zero or at NAME=VALUE; or positions (rad or m) by name or pattern.
    """
    pairs = joints.items() if isinstance(joints, Mapping) else (_name_and_value(x) for x in joints)
    held: dict[str, float] = {}
    for pattern, value in pairs:
        found = matching_names(pattern, robot.coordinates)
        if not found:
            raise UnknownName(
                f"--lock: no joint fits '{pattern}', the robot has {', '.join(robot.coordinates)}", "lock"
            )
        held |= dict.fromkeys(found, value)
    return robot.locked(held)


def _name_and_value(text: str) -> tuple[str, float]:
    name, equals, value = text.partition("=")
    return name, values.number(value, "--lock") if equals else 0.0
