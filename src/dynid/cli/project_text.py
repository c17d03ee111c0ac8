"""The text of project files: a new one with what was guessed, and the one that runs a command again."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynid.cli.routes import actuator_law
from dynid.errors import DynidError
from dynid.quoting import toml_key, toml_value
from dynid.robot.angles import rounded_angles
from dynid.robot.load import USUAL_FRICTION, load_robot

if TYPE_CHECKING:
    from dynid.assessment.data.route import Route
    from dynid.cli.inputs import Inputs
    from dynid.cli.values import HeldOut, Source
    from dynid.recording.recording import Recording
    from dynid.robot.model import Robot

__all__ = ["project_text", "rerun_text"]

# Signals that logs usually have, and what they are needed for.
_USUAL = {
    "q": "positions; needed",
    "v": "velocities; differentiated from the positions without them",
    "torque": "joint torques; needed unless there are currents",
    "current": "motor currents; --gain turns them into torques",
}


def project_text(
    inputs: Inputs,
    recordings: Sequence[Recording],
    problem: DynidError | None,
    held_out: HeldOut,
    folder: Path,
    found: Route | None = None,
    gains: tuple[float, ...] | None = None,
) -> str:
    """The text of dynid.toml.

    Parameters
    ----------
    inputs : Inputs
        Robot, log format and logs that were given.
    recordings : sequence of Recording
        The logs that could be read, in their order.
    problem : DynidError or None
        Why the next log could not be read.
    held_out : HeldOut
        What options keep for validation.
    folder : Path
        Folder of the project file; paths are written relative to it.
    found : Route, optional
        What the logs are good for.
    gains : tuple of float, optional
        Gains of the currents by the masses of the robot file.

    Returns
    -------
    str
        TOML with comments.
    """
    sources = inputs.data
    if found is not None and found.goal == "payload":  # runs with a payload are named by the command
        sources = tuple(x for i, x in enumerate(sources) if i not in found.loaded)
    parts = [
        "# Project file of dynid; paths are relative to this file. Options of commands override it.",
        *([] if found is None else [f"# {found.reason[0].upper()}{found.reason[1:]}."]),
        *_robot_lines(inputs, folder, recordings),
        *_log_lines(inputs, recordings, problem, gains),
        *_run_lines(sources, held_out, folder),
        *(_actuator_lines(inputs) if found is not None and found.goal == "actuators" else []),
        *_identify_lines(),
        *_loop_lines(),
    ]
    return "\n".join(parts) + "\n"


def rerun_text(
    inputs: Inputs,
    method: str,
    held_out: HeldOut,
    masses: Mapping[str, Any],
    settings: Mapping[str, Any],
    loop: Mapping[str, Any],
) -> str:
    """The text of a project file with which `dynid identify` computes an estimate again.

    Parameters
    ----------
    inputs : Inputs
        Robot, log format and logs of the command.
    method : str
        Estimation method.
    held_out : HeldOut
        What the command validated on.
    masses, settings, loop : mapping
        Further keys of [robot], [identify] and [loop]; those that are None are left out.

    Returns
    -------
    str
        TOML; paths are relative to the current folder.
    """
    here, project, file = Path(), inputs.project, inputs.robot_file
    robot = {} if project is None else project.robot.model_dump(exclude={"file"}, exclude_none=True)
    robot = (
        {"file": _relative(file, here) if Path(file).suffix else file} | robot | dict(inputs.modelling) | dict(masses)
    )
    runs: dict[str, Any] = {"identify": [_entry(x, here) for x in inputs.data]}
    runs |= {"validate": [_entry(x, here) for x in held_out.logs] or None}
    runs |= {"validate_rows": held_out.rows, "validate_share": held_out.share}
    cleaning = ({} if project is None else project.identify.signals()) | dict(inputs.cleaning)
    # The file has no empty values: both of these are spelled "none" there.
    cleaning |= {name: "none" for name in ("cutoff", "decimate") if name in cleaning and cleaning[name] in (None, ())}
    lines = ["# dynid identify with this file, in the folder that paths are relative to, computes the estimate again."]
    for name, table in (("robot", robot), ("runs", runs), ("identify", {"method": method} | cleaning | dict(settings))):
        lines += ["", f"[{name}]", *_pairs(table)]
    lines += ["", "[log]", *([] if inputs.log is None else inputs.log.to_toml().splitlines())]
    if any(x is not None for x in loop.values()):
        lines += ["", "[loop]", *_pairs(loop)]
    return "\n".join(lines) + "\n"


def _pairs(table: Mapping[str, Any]) -> list[str]:
    """Lines of a section; values that are None or empty are left out."""
    return [f"{toml_key(k)} = {toml_value(v)}" for k, v in table.items() if v is not None and v not in ([], {})]


def _robot_lines(inputs: Inputs, folder: Path, recordings: Sequence[Recording]) -> list[str]:
    """The section [robot]."""
    given = inputs.modelling
    file = inputs.robot_file
    lines = ["", "[robot]", f"file = {toml_value(_relative(file, folder) if Path(file).suffix else file)}"]
    whole = inputs.whole if inputs.whole is not None else inputs.robot
    laws = _friction(whole)
    if given.get("friction") is not None:
        lines.append(f"friction = {toml_value(given['friction'])}")
    elif laws:
        lines.append(f"# friction: the file's own ({', '.join(laws)})")
    else:
        what = "Friction of the robot file is a start" if _known_friction(inputs) else "The robot file has no friction"
        lines += [
            f"# {what}. Method auto has it in every joint; others take {USUAL_FRICTION}.",
            'friction = "auto"',
        ]
    if given.get("rotor_inertia") is not None:
        lines.append(f"rotor_inertia = {toml_value(given['rotor_inertia'])}")
    elif not any(p.symbol == "Ia" for p in whole.layout):
        lines.append("# rotor_inertia = true    # the robot file has none; geared drives have them")
    if given.get("snap_angles") is None and rounded_angles(file):
        lines.append("snap_angles = true        # angles such as 1.5708 are meant as multiples of pi/2")
    for name in (
        "drives",
        "effects",
        "base",
        "gravity",
        "snap_angles",
        "ignore_loops",
        "inertia_from",
        "density",
        "shape_mass",
    ):
        if given.get(name) is not None:
            lines.append(f"{name} = {toml_value(given[name])}")
    if given.get("base") is None and recordings and inputs.robot.base == "floating":
        runs = [run for recording in recordings for run in recording.runs]
        if all(run.base is None and run.imu is None for run in runs):
            lines.append('base = "fixed"           # the logs have no motion of the base: it must be held')
    if given.get("lock"):
        lines.append(f"lock = {toml_value(given['lock'])}")
    else:
        lines.append(
            f"# lock = []               # joints that do not move; the robot has {', '.join(whole.coordinates)}"
        )
    lines.append(
        "# mass = 16.0             # kg, moving bodies together, from data sheet or scales: keeps bodies in proportion"
    )
    return lines


def _known_friction(inputs: Inputs) -> bool:
    """Whether the robot file has values of damping or friction, which terms of friction start from."""
    given = {
        name: value for name, value in inputs.modelling.items() if name not in ("friction", "rotor_inertia", "lock")
    }
    robot = load_robot(inputs.robot_file, **given, friction=USUAL_FRICTION)
    return any(value for p, value in zip(robot.layout, robot.parameters, strict=True) if not p.inertial)


def _friction(robot: Robot) -> list[str]:
    """Symbols of the friction terms."""
    return sorted({p.symbol for p in robot.layout if not p.inertial and p.symbol not in ("Ia", "k")})


def _log_lines(
    inputs: Inputs, recordings: Sequence[Recording], problem: DynidError | None, gains: tuple[float, ...] | None
) -> list[str]:
    """The section [log]: the format that all logs share, and comments on what was not found."""
    assert inputs.log is not None
    lines, log = ["", "[log]"], inputs.log
    formats = [r.log_format.replaced({"rows": None}) for r in recordings if r.log_format is not None]
    if problem is not None:
        lines.append(f"# Not read: {problem}")
    elif formats and all(f == formats[0] for f in formats):
        lines.append("# As the logs were read.")
        log = formats[0].replaced({"rows": log.rows})
    elif formats:
        how = "as given" if log.columns is not None else "recognised by their names in each log"
        lines.append(f"# The headers of the logs differ; columns are {how}.")
    lines += log.to_toml().splitlines()
    if gains is not None:
        lines += [
            "# N m/A, or N/A: with these the currents fit the masses of the robot file, which bodies then keep.",
            f"gain = {toml_value(list(gains))}",
        ]
    unread = list(dict.fromkeys(name for r in recordings for name in r.unread_columns))
    if unread:
        lines.append(f"# Columns that were not used: {', '.join(unread)}")
    missing = _missing(recordings)
    lines += [f"# Not found: {signal} ({what})." for signal, what in missing.items()]
    if problem is not None or "torque" in missing:
        lines += [
            '# time = "t"             # name or number (from 0) of the time column, or rate = 1000 (Hz) without one',
            '# columns = { q = "1:7", torque = ["tau_1", "tau_2"] }    # by number, name, or pattern such as "q_{i}"',
            '# units = { q = "deg" }',
            "# sign = { torque = -1 }",
            "# gain = 10.5            # N m/A, for currents",
        ]
    return lines


def _missing(recordings: Sequence[Recording]) -> dict[str, str]:
    """Usual signals that no log has."""
    if not recordings:
        return {}
    found = {s for s in _USUAL for r in recordings for run in r.runs if getattr(run, s) is not None}
    if "torque" in found or "current" in found:
        found |= {"torque", "current"}
    return {s: what for s, what in _USUAL.items() if s not in found}


def _run_lines(sources: Sequence[Source], held_out: HeldOut, folder: Path) -> list[str]:
    """The section [runs]: the last of several logs validates, or a share of the only one, unless options say other."""
    fit = [_entry(source, folder) for source in sources]
    unseen = [_entry(source, folder) for source in held_out.logs]
    if not unseen and held_out.share is None and held_out.rows is None and len(fit) > 1:
        fit, unseen = fit[:-1], fit[-1:]
    lines = ["", "[runs]", f"identify = {toml_value(fit)}"]
    if unseen:
        lines.append(f"validate = {toml_value(unseen)}")
    if held_out.rows is not None:
        lines.append(f"validate_rows = {toml_value(held_out.rows)}")
    if held_out.share is not None:
        lines.append(f"validate_share = {held_out.share}")
    elif not unseen and held_out.rows is None:
        lines.append("validate_share = 0.25    # of each run, its end; better: validate = [a log of other motion]")
    return lines


def _entry(source: Source, folder: Path) -> str | dict[str, str]:
    if isinstance(source, str):
        return _relative(source, folder)
    return {signal: _relative(str(path), folder) for signal, path in source.items()}


def _relative(path: str, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


def _actuator_lines(inputs: Inputs) -> list[str]:
    law = actuator_law(inputs)
    what = (
        "the position actuators of the robot file" if law == "file" else "gains are unknown too; known ones: pd:KP,KD"
    )
    return [
        "",
        "[actuators]",
        f"law = {toml_value(law)}".ljust(25) + f"# {what}",
        'output = "actuators.toml"',
    ]


def _identify_lines() -> list[str]:
    return [
        "",
        "[identify]",
        'method = "auto"          # all drive terms, plausible bodies; others: dynid identify --help',
        'output = "estimate.json"',
        "# cutoff = 20            # low-pass of positions in Hz; found from the data if left out",
    ]


def _loop_lines() -> list[str]:
    return [
        "",
        "# [loop]                 # for methods that simulate the closed loop",
        '# controller = "loop.toml"',
        "# velocity_cutoff = 100",
    ]
