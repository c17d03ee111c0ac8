"""Parameters of a robot as files: JSON and TOML with names, units and standard deviations, YAML for ROS 2 nodes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DamagedFile, DataError, Duplicate, Mismatch, MissingData, MissingFile, UnknownName, WrongFormat
from dynid.export.contents import body_values, refuse_infeasible
from dynid.export.label import Label, label_of
from dynid.files import write_text
from dynid.quoting import one_line, toml_value, yaml_string
from dynid.reading import parse_json, parse_toml, read_text
from dynid.robot.drives import DRIVE_LAWS, DRIVE_SYMBOLS, DriveTerm
from dynid.robot.inertia import INERTIAL_SYMBOLS, inertia_from_com
from dynid.robot.model import Robot
from dynid.robot.parts import checked
from dynid.saved import envelope, opened

if TYPE_CHECKING:
    from dynid.identification.estimate import Estimate

__all__ = ["from_ros", "load_parameters", "to_ros", "to_toml", "write_parameters"]

Array = NDArray[np.float64]


# The parameters of a robot as those of a ROS 2 node: links with mass, centre and inertia, joints with their drives.


_NODE = "/**"  # any node
_WORDS = {law.symbol: law.key for law in DRIVE_LAWS.values()}
_SYMBOLS = {word: symbol for symbol, word in _WORDS.items()}
_UNITS = {False: "N m, rad, s", True: "N, m, s (prismatic)"}
_SLOPE, _CROSS = "_slope", "_cross_only"
_SETTINGS = {"rest": "spring_rest", "velocity": "stribeck_velocity"}
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_NOT_PLAIN = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}  # what YAML takes for other things


def to_ros(robot: Robot, label: Label | None = None) -> str:
    """Text of a parameter file for any node; the label of an estimate is comments."""
    bodies: Mapping[str, str] = {} if label is None else label.bodies
    lines = [] if label is None else [f"# {one_line(line)}" for line in label.head()]
    lines += [f"{_key(_NODE)}:", "  ros__parameters:", f"    robot: {yaml_string(robot.name)}"]
    lines.append(f"    joint_names: [{', '.join(map(yaml_string, robot.coordinates))}]")
    lines.append("    # kg, m; inertia about the centre of mass in link axes: xx, xy, xz, yy, yz, zz in kg m2")
    lines.append("    links:")
    for i in robot.parameter_links:
        link = robot.links[i]
        mass, com, tensor = body_values(link.inertia, link.name, "a ROS parameter file")
        lines += [f"      # {one_line(bodies[link.name])}"] if link.name in bodies else []
        lines += [f"      {_key(link.name)}:", f"        mass: {_float(mass)}", f"        com: {_floats(com)}"]
        lines.append(f"        inertia: {_floats(tensor[np.triu_indices(3)])}")
    for motor, section in ((False, "joints"), (True, "motors")):
        shafts: dict[str, list[str]] = {}
        terms = [t for t in robot.drives if t.motor == motor]
        units = [_UNITS[linear] for linear in sorted({t.linear for t in terms})]
        for term in terms:
            word = _WORDS.get(term.symbol, term.symbol)
            rows = shafts.setdefault(term.shaft, [])
            rows.append(f"{_key(word)}: {_float(term.value)}")
            setting = "" if term.function is not None else DRIVE_LAWS[term.symbol].setting
            rows += [f"{_SETTINGS[setting]}: {_float(getattr(term, setting))}"] if setting else []
            if term.slope:
                rows.append(f"{word}{_SLOPE}: {_float(term.slope)}")
            if term.cross_only:
                rows.append(f"{word}{_CROSS}: true")
        if shafts:
            lines += [f"    # {' and '.join(units)}", f"    {section}:"]
            for shaft, rows in shafts.items():
                lines += [f"      {_key(shaft)}:", *(f"        {row}" for row in rows)]
    return "\n".join(lines) + "\n"


def from_ros(data: Any, robot: Robot, path: str) -> tuple[dict[str, float], dict[str, dict[str, Any]]]:
    """Values of the standard parameters by name, and what is known of the drive terms."""
    given = _node(data, path)
    values: dict[str, float] = {}
    settings: dict[str, dict[str, Any]] = {}
    for link, body in _table(given, "links", path).items():
        where = f"'{path}', link '{link}'"
        mass, com = _numbers(body, "mass", (), where), _numbers(body, "com", (3,), where)
        xx, xy, xz, yy, yz, zz = _numbers(body, "inertia", (6,), where)
        pi = inertia_from_com(mass, com, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        values |= {f"{s}_{link}": float(x) for s, x in zip(INERTIAL_SYMBOLS, pi, strict=True)}
    for kind in ("joint", "motor"):
        for shaft, drive in _table(given, f"{kind}s", path).items():
            where = f"'{path}', {kind} '{shaft}'"
            if not isinstance(drive, Mapping):
                raise DamagedFile("expected a table of parameters", where=where)
            for word in drive:
                if word in _SETTINGS.values() or word.endswith((_SLOPE, _CROSS)):
                    continue
                symbol = str(_SYMBOLS.get(word, word))
                values[f"{symbol}_{shaft}"] = float(_numbers(drive, word, (), where))
                row = {"symbol": symbol, kind: shaft, "slope": drive.get(f"{word}{_SLOPE}", 0.0)}
                setting = DRIVE_LAWS[symbol].setting if symbol in DRIVE_LAWS else ""
                row |= {name: drive.get(key, 0.0) if setting == name else 0.0 for name, key in _SETTINGS.items()}
                settings[f"{symbol}_{shaft}"] = row | {"cross_only": drive.get(f"{word}{_CROSS}", False)}
    return values, settings


def _node(data: Any, path: str) -> Mapping[str, Any]:
    """The parameters of the one node in a file that has links."""
    nodes = data.values() if isinstance(data, Mapping) else ()
    found = [n["ros__parameters"] for n in nodes if isinstance(n, Mapping) and "ros__parameters" in n]
    found = [p for p in found if isinstance(p, Mapping) and "links" in p]
    if len(found) != 1:
        raise DamagedFile(f"'{path}' must have one node with ros__parameters and links in them, it has {len(found)}")
    return found[0]


def _table(given: Mapping[str, Any], key: str, path: str) -> Mapping[str, Any]:
    table = given.get(key, {})
    if not isinstance(table, Mapping):
        raise DamagedFile(f"'{path}': {key} must be a table")
    return table


def _numbers(given: Any, key: str, shape: tuple[int, ...], where: str) -> Array:
    if not isinstance(given, Mapping) or key not in given:
        raise MissingData(f"{where} has no '{key}'")
    return checked(given[key], shape, f"{where}: {key}", DataError)


# -- text ----------------------------------------------------------------------------------------------


def _float(value: float) -> str:
    """A number that YAML and ROS take for one with a fraction, exact to the last bit."""
    text = repr(float(value) + 0.0)
    head, sign, power = text.partition("e")
    return text if "." in head else f"{head}.0{sign}{power}"


def _floats(values: Iterable[float]) -> str:
    return f"[{', '.join(_float(v) for v in values)}]"


def _key(text: str) -> str:
    return text if _PLAIN.fullmatch(text) and text.lower() not in _NOT_PLAIN else yaml_string(text)


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
