"""Parameters of a robot as files: JSON and TOML with names, units and standard deviations, YAML for ROS 2 nodes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DamagedFile, Duplicate, Mismatch, MissingFile, UnknownName, WrongFormat
from dynid.export.contents import refuse_infeasible
from dynid.export.label import Label, label_of
from dynid.export.ros_parameters import from_ros, to_ros
from dynid.files import write_text
from dynid.quoting import toml_value
from dynid.reading import parse_json, parse_toml, read_text
from dynid.robot.drives import DRIVE_SYMBOLS, DriveTerm
from dynid.robot.model import Robot
from dynid.saved import envelope, opened

if TYPE_CHECKING:
    from dynid.identification.estimate import Estimate

__all__ = ["load_parameters", "to_toml", "write_parameters"]

Array = NDArray[np.float64]

_FORMS = {".json": "json", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml"}


def write_parameters(
    source: Robot | Estimate,
    path: str | Path,
    *,
    allow_infeasible: bool = False,
    form: str | None = None,
    untrusted: bool = False,
) -> list[str]:
    """Write the parameters of a robot or an estimate as JSON, TOML or YAML.

    JSON and TOML hold every standard parameter with its unit and, of an estimate, its class ("identifiable", "combined"
    or "unidentifiable" from this recording), the standard deviations, the base parameters with their expressions, the
    verdict with its reasons and domain, and what decided each body.
    YAML is a ROS 2 parameter file: mass, centre of mass and inertia about it per link, friction and the other drive
    terms per joint.

    Parameters
    ----------
    source : Robot or Estimate
        What to write.
    path : str or Path
        File to write; its ending names the format (.json, .toml, .yaml).
    allow_infeasible : bool, default False
        Write parameters that are not physically consistent. They are refused otherwise.
    form : {"json", "toml", "yaml"}, optional
        Format, where the ending does not name it.
    untrusted : bool, default False
        Write an estimate whose verdict is "do not use". It is refused otherwise.

    Returns
    -------
    list of str
        The verdict where it is not "trusted", and what the file cannot hold.

    Raises
    ------
    DataError
        If the format is unknown, or the verdict on the estimate is "do not use".
    ModelError
        If the parameters are refused.
    """
    form = _form(path) if form is None else form
    if form not in _FORMS.values():
        raise UnknownName(
            f"parameters are written as {', '.join(sorted(set(_FORMS.values())))}, not as '{form}'", "form"
        )
    label = label_of(source, untrusted)
    robot = source if isinstance(source, Robot) else source.identified_robot
    warnings = [] if label is None else label.warnings
    warnings += refuse_infeasible(robot, allow_infeasible) + _not_in_the_file(robot)
    if form == "yaml":
        text = to_ros(robot, label)
    else:
        content = _content(source, label)
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n" if form == "json" else to_toml(content)
    write_text(path, text)
    return warnings


def load_parameters(path: str | Path, robot: Robot) -> Robot:
    """Read parameters that `write_parameters` wrote onto a robot.

    Parameters
    ----------
    path : str or Path
        JSON, TOML or YAML file.
    robot : Robot
        The robot they belong to. Drive terms that only the file has are added.

    Returns
    -------
    Robot
        The robot with the values of the file.

    Raises
    ------
    DataError
        If parameters of file and robot differ; they are named.
    """
    form = _form(path)
    data = _read(Path(path), form)
    values, settings = from_ros(data, robot, str(path)) if form == "yaml" else _plain(data, str(path))
    robot = _with_terms(robot, settings)
    missing = [n for n in robot.parameter_names if n not in values]
    unknown = [n for n in values if n not in robot.parameter_names]
    if missing or unknown:
        words = [f"it has no {', '.join(missing[:8])}"] * bool(missing)
        words += [f"the robot has no {', '.join(unknown[:8])}"] * bool(unknown)
        raise Mismatch(f"'{path}' does not fit robot '{robot.name}': {'; '.join(words)}")
    return robot.with_parameters([values[n] for n in robot.parameter_names])


def _form(path: str | Path) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in _FORMS:
        raise WrongFormat(f"'{path}' is no parameter file by its ending: use {', '.join(_FORMS)}")
    return _FORMS[suffix]


def _not_in_the_file(robot: Robot) -> list[str]:
    """What a robot must bring itself: the functions of its own terms and the coupling of its motors."""
    out = []
    custom = [t.name for t in robot.drives if t.function is not None]
    if custom:
        out.append(
            f"the file has the values of {', '.join(custom)}, but not their functions: load it onto a robot with them"
        )
    if robot.transmission is not None:
        motors = ", ".join(robot.transmission.motors)
        out.append(f"the file has no transmission: load it onto a robot with the coupling of {motors}")
    return out


# -- what the files hold -------------------------------------------------------------------------------


def _content(source: Robot | Estimate, label: Label | None) -> dict[str, Any]:
    robot = source if isinstance(source, Robot) else source.identified_robot
    std = None if isinstance(source, Robot) else source.standard_std
    parameters = []
    terms = {t.name: t for t in robot.drives}
    for i, (p, value) in enumerate(zip(robot.layout, robot.parameters, strict=True)):
        row: dict[str, Any] = {"name": p.name, "value": float(value), "unit": p.unit}
        if std is not None:
            row["std"] = float(std[i])
        if not isinstance(source, Robot):
            row["class"] = source.parameter_classes[p.name].value
        if not p.inertial:
            term = terms[p.name]
            row |= {"symbol": p.symbol, "motor" if term.motor else "joint": p.owner}
            row |= {k: getattr(term, k) for k in ("rest", "slope", "velocity") if getattr(term, k)}
            row |= {"cross_only": True} if term.cross_only else {}
        parameters.append(row)
    out: dict[str, Any] = envelope("parameters") | {
        "robot": robot.name,
        "base": robot.base,
        "joints": list(robot.coordinates),
    }
    if not isinstance(source, Robot):
        out |= {"method": source.method, "status": source.status}
    out |= {} if label is None else label.to_dict()
    out["parameters"] = parameters
    if not isinstance(source, Robot):
        rows = zip(source.base.names, source.base.expressions, source.beta, source.std, strict=True)
        out["base_parameters"] = [
            {"name": n, "expression": e, "value": float(b), "std": float(s)} for n, e, b, s in rows
        ]
    return out


def to_toml(content: dict[str, Any]) -> str:
    """TOML of a table whose lists of tables stand last."""
    plain = {k: v for k, v in content.items() if not _tables(v)}
    lines = [f"{k} = {toml_value(v)}" for k, v in plain.items()]
    for key, rows in ((k, v) for k, v in content.items() if _tables(v)):
        for row in rows:
            lines += ["", f"[[{key}]]", *(f"{k} = {toml_value(v)}" for k, v in row.items())]
    return "\n".join(lines) + "\n"


def _tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


# -- reading -------------------------------------------------------------------------------------------


def _read(path: Path, form: str) -> Any:
    try:
        text = read_text(path)
    except FileNotFoundError:
        raise MissingFile(f"there is no file '{path}'") from None
    except (OSError, UnicodeDecodeError) as error:
        raise MissingFile(f"'{path}' cannot be read: {error}") from None
    try:
        if form == "json":
            return parse_json(text)
        if form == "toml":
            return parse_toml(text)
        import yaml

        return yaml.safe_load(text)
    except ValueError as error:  # of json and tomllib
        raise DamagedFile(f"'{path}' is not {form.upper()}: {error}") from None
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "yaml":
            raise
        raise DamagedFile(f"'{path}' is not YAML: {error}") from None


def _plain(data: Any, path: str) -> tuple[dict[str, float], dict[str, dict[str, Any]]]:
    """Values by name, and what is known of the drive terms."""
    data = opened(data, "parameters", f"'{path}'")
    if not isinstance(data.get("parameters"), list):
        raise DamagedFile(f"'{path}' is a damaged table of parameters: parameters: it must be a list")
    values: dict[str, float] = {}
    settings: dict[str, dict[str, Any]] = {}
    for row in data["parameters"]:
        try:
            name, value = str(row["name"]), float(row["value"])
        except (KeyError, TypeError, ValueError):
            raise DamagedFile(f"'{path}' has a parameter without a name and a number: {row!r:.80}") from None
        if name in values:
            raise Duplicate(f"'{path}' has the parameter '{name}' twice")
        values[name] = value
        if "symbol" in row:
            settings[name] = row
    return values, settings


def _with_terms(robot: Robot, settings: dict[str, dict[str, Any]]) -> Robot:
    """The robot with the drive terms of the file that it does not have yet, at the rest and slope of the file."""
    known = {t.name: t for t in robot.drives}
    added, changed = [], {}
    for name, row in settings.items():
        rest, slope, velocity = (float(row.get(what, 0.0)) for what in ("rest", "slope", "velocity"))
        term = known.get(name) or _new_term(robot, row)
        if term is None:
            continue
        if (term.rest, term.slope, term.velocity) != (rest, slope, velocity) and term.function is None:
            changed[name] = term = replace(term, rest=rest, slope=slope, velocity=velocity)
        if name not in known:
            added.append(term)
    kept = tuple(changed.get(t.name, t) for t in robot.drives)
    return replace(robot, drives=(*kept, *added))


def _new_term(robot: Robot, row: dict[str, Any]) -> DriveTerm | None:
    """A term by its symbol and shaft; None where the robot has no such shaft."""
    symbol = row["symbol"]
    if symbol not in DRIVE_SYMBOLS:
        return None
    velocity = float(row.get("velocity", 0.0))
    if row.get("joint") in robot.coordinates:
        return robot.joint_term(row["joint"], symbol, velocity=velocity)
    if robot.transmission is not None and row.get("motor") in robot.transmission.motors:
        return robot.motor_term(row["motor"], symbol, cross_only=bool(row.get("cross_only", False)), velocity=velocity)
    return None
