"""Files of excitation trajectories: tables and ROS messages for controllers, and TOML files that store the design.

A file is written under a temporary name and renamed when it is complete.
"""

from __future__ import annotations

import csv
import io
import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import (
    DamagedFile,
    DataError,
    InvalidType,
    InvalidValue,
    Mismatch,
    MissingFile,
    TooFew,
    TooLarge,
    UnknownName,
    Unsupported,
    WrongFormat,
    named,
)
from dynid.excitation import basis as families
from dynid.excitation.basis import Basis
from dynid.excitation.criteria import Criterion, make_criterion
from dynid.excitation.excitation import Excitation
from dynid.excitation.limits import LIMIT_NAMES, MotionLimits
from dynid.excitation.problem import AnyClearance
from dynid.files import write_text
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.quoting import toml_key, toml_value, yaml_string
from dynid.reading import parse_json, parse_toml, read_text
from dynid.robot.model import Robot
from dynid.saved import envelope, opened

__all__ = [
    "check_rate",
    "check_suffix",
    "read_limits",
    "read_toml",
    "write_csv",
    "write_excitation",
    "write_joint_trajectory",
    "write_toml",
]

Array = NDArray[np.float64]

_KINDS: dict[str, Callable[..., Basis]] = {
    name: getattr(families, name) for name in families.__all__ if is_dataclass(getattr(families, name))
}
_SUFFIXES = (".csv", ".yaml", ".yml", ".json", ".toml")


def write_excitation(motion: Excitation, path: str | Path, rate: float) -> None:
    """Write a motion in the format that the suffix of the path names."""
    check_suffix(path)
    suffix = Path(path).suffix.lower()
    if suffix == ".csv":
        write_csv(motion, path, rate)
    elif suffix == ".toml":
        write_toml(motion, path)
    else:
        write_joint_trajectory(motion, path, rate)


def check_suffix(path: str | Path, known: Sequence[str] = _SUFFIXES) -> None:
    """Raise if the suffix of a path names no known format."""
    if Path(path).suffix.lower() not in known:
        raise WrongFormat(f"'{path}' names no known format: end it in {', '.join(known)}")


def _read_text(path: str | Path) -> str:
    try:
        return read_text(path)
    except FileNotFoundError:
        raise MissingFile(f"there is no file '{path}'") from None
    except (OSError, UnicodeDecodeError) as error:
        raise MissingFile(f"cannot read '{path}': {error}") from None


# -- files for controllers ------------------------------------------------------------------------


def write_csv(motion: Excitation, path: str | Path, rate: float) -> None:
    """Columns t, then q, v and a of every joint, with a header."""
    t, *signals = _points(motion, rate)
    names = motion.robot.coordinates
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(["t", *(f"{s}_{joint}" for s in "qva" for joint in names)])
    np.savetxt(out, np.column_stack([t, *signals]), "%.17g", ",")
    write_text(path, out.getvalue())


def write_joint_trajectory(motion: Excitation, path: str | Path, rate: float) -> None:
    """A trajectory_msgs/JointTrajectory in YAML (.yaml, .yml) or JSON (.json)."""
    check_suffix(path, (".yaml", ".yml", ".json"))
    t, q, v, a = _points(motion, rate)
    names = list(motion.robot.coordinates)
    stamps = [divmod(round(1e9 * x), 10**9) for x in t.tolist()]
    if Path(path).suffix.lower() == ".json":
        points = [
            {
                "positions": q[k].tolist(),
                "velocities": v[k].tolist(),
                "accelerations": a[k].tolist(),
                "time_from_start": {"sec": sec, "nanosec": nanosec},
            }
            for k, (sec, nanosec) in enumerate(stamps)
        ]
        header = {"stamp": {"sec": 0, "nanosec": 0}, "frame_id": ""}
        write_text(path, json.dumps({"header": header, "joint_names": names, "points": points}, indent=1) + "\n")
        return
    lines = [
        "header: {stamp: {sec: 0, nanosec: 0}, frame_id: ''}",
        f"joint_names: [{', '.join(map(yaml_string, names))}]",
        "points:",
    ]
    for k, (sec, nanosec) in enumerate(stamps):
        lines += [
            f"- positions: {_yaml_numbers(q[k])}",
            f"  velocities: {_yaml_numbers(v[k])}",
            f"  accelerations: {_yaml_numbers(a[k])}",
            f"  time_from_start: {{sec: {sec}, nanosec: {nanosec}}}",
        ]
    write_text(path, "\n".join([*lines, ""]))


def _yaml_numbers(values: Array) -> str:
    """Numbers for YAML 1.1, which ROS reads: 1e-05 would be a string there, 1.0e-05 is a number."""
    texts = [repr(x) for x in values.tolist()]
    return f"[{', '.join(x if '.' in x else x.replace('e', '.0e') for x in texts)}]"


def _points(motion: Excitation, rate: float) -> tuple[Array, Array, Array, Array]:
    """Samples of a motion at a sufficient rate."""
    check_rate(motion.basis, rate)
    return motion.sample(rate)


# Rows of a written motion: more than a day at 100 Hz.
_MOST_ROWS = 10_000_000


def check_rate(basis: Basis, rate: float) -> None:
    """Raise if a sampling rate is too low for the motions of a family, or gives a file too large to write."""
    least = 2 * basis.size / basis.duration
    if not (np.isfinite(rate) and rate > 0):
        raise InvalidValue(f"the rate must be positive, got {rate}", "rate")
    if rate < least:
        raise TooFew(f"a rate of {rate:g} Hz has too few points for this motion; give at least {least:.3g} Hz", "rate")
    if rate * basis.duration > _MOST_ROWS:
        most = _MOST_ROWS / basis.duration
        raise TooLarge(f"a rate of {rate:g} Hz gives more than {_MOST_ROWS} rows; give at most {most:.3g} Hz", "rate")


# -- the design itself ---------------------------------------------------------------------------


def write_toml(motion: Excitation, path: str | Path) -> None:
    """Write family, coefficients, limits and criterion; every number is read back exactly."""
    names = motion.robot.coordinates
    goal = motion.criterion
    judged: dict[str, Any] = {
        "name": goal.name,
        "samples": motion.samples,
        "noise": goal.noise,
        "friction": _counts_friction(goal),
    }
    if len(goal.known) or np.any(goal.size != 1) or goal.weights is not None:
        judged |= {"parameters": list(goal.base.names), "sizes": goal.size, "known": goal.known}
    if goal.weights is not None:
        judged |= {"weights": goal.weights}
    if goal.base.channels != motion.robot.coordinates:
        judged |= {"channels": list(goal.base.channels)}
    tables = {
        "family": _family_data(motion.basis),
        "coefficients": dict(zip(names, motion.coefficients, strict=True)),
        "limits": {name: getattr(motion.limits, name) for name in LIMIT_NAMES},
        "criterion": judged,
    }
    head = envelope("excitation") | {
        "robot": motion.robot.name,
        "joints": list(names),
        "seconds": motion.seconds,
        "notes": list(motion.notes),
    }
    lines = [f"{key} = {_toml(value)}" for key, value in head.items()]
    for name, table in tables.items():
        lines += _toml_table(name, table)
    write_text(path, "\n".join([*lines, ""]))


def read_toml(path: str | Path, robot: Robot, clearances: tuple[AnyClearance, ...] = ()) -> Excitation:
    """Read a motion, for a robot with the same joints."""
    try:
        data = parse_toml(_read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise DamagedFile(f"'{path}' is not a saved motion: {error}") from None
    data = opened(data, "excitation", f"'{path}'")
    try:
        return _excitation(data, path, robot, clearances)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise DamagedFile(f"'{path}' is damaged: {type(error).__name__} {error}") from None


def _excitation(
    data: Mapping[str, Any], path: str | Path, robot: Robot, clearances: tuple[AnyClearance, ...]
) -> Excitation:
    names = list(robot.coordinates)
    if data["joints"] != names:
        raise Mismatch(
            f"'{path}' moves the joints {', '.join(data['joints'])}, but robot '{robot.name}' has {', '.join(names)}"
        )
    try:
        basis = _family(data["family"])
    except DataError as error:
        raise DamagedFile(f"'{path}' is damaged: {error}") from None
    coefficients = np.array([data["coefficients"][n] for n in names], dtype=float)
    limits = MotionLimits(**{name: np.array(data["limits"][name], dtype=float) for name in LIMIT_NAMES})
    if coefficients.shape != (robot.n, basis.size) or not np.all(np.isfinite(coefficients)):
        raise DamagedFile(f"'{path}' is damaged: a joint needs {basis.size} finite coefficients")
    if any(getattr(limits, name).shape != (robot.n,) for name in LIMIT_NAMES):
        raise DamagedFile(f"'{path}' is damaged: a limit needs {robot.n} numbers")
    base = base_parameters(robot, channels=data["criterion"].get("channels", "torque"))
    criterion = _criterion(data["criterion"], base, path)
    return Excitation(
        robot=robot,
        basis=basis,
        coefficients=coefficients,
        limits=limits,
        criterion=criterion,
        clearances=clearances,
        seconds=float(data["seconds"]),
        notes=tuple(data["notes"]),
        samples=int(data["criterion"]["samples"]),
    )


def _criterion(data: Mapping[str, Any], base: BaseParameters, path: str | Path) -> Criterion:
    """The criterion of a file."""
    more: dict[str, Any] = {}
    if "parameters" in data:
        if data["parameters"] != list(base.names):
            raise Mismatch(f"'{path}' was designed for other base parameters than those of '{base.robot.name}'", "base")
        more = {"sizes": data["sizes"], "known": np.array(data["known"], dtype=float).reshape(-1, base.count)}
    if "weights" in data:
        more["weights"] = np.array(data["weights"], dtype=float)
    return make_criterion(base, data["name"], noise=data["noise"], friction=bool(data["friction"]), **more)


def _counts_friction(goal: Criterion) -> bool:
    """Whether friction columns count in a criterion."""
    return len({column for _, columns in goal.parts for column in columns}) == goal.base.count


def _family_data(basis: Basis) -> dict[str, Any]:
    kind = type(basis).__name__
    if _KINDS.get(kind) is not type(basis):
        raise Unsupported(
            f"{named('family')} '{kind}' is not one of dynid's and cannot be saved as TOML; write a .csv instead"
        )
    settings = {f.name: getattr(basis, f.name) for f in fields(basis) if f.init}
    return {"kind": kind} | {
        key: _family_data(value) if type(value).__name__ in _KINDS else value for key, value in settings.items()
    }


def _family(data: Mapping[str, Any]) -> Basis:
    """A basis from its table: nested tables are families, lists of lists are arrays, lists are tuples."""
    settings: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, Mapping):
            settings[key] = _family(value)
        elif isinstance(value, list):
            settings[key] = np.array(value, dtype=float) if isinstance(value[0], list) else tuple(value)
        elif key != "kind":
            settings[key] = value
    if data["kind"] not in _KINDS:
        raise UnknownName(f"family '{data['kind']}' is unknown: use {', '.join(_KINDS)}")
    return _KINDS[data["kind"]](**settings)


def _toml_table(name: str, table: Mapping[str, Any]) -> list[str]:
    plain = {k: v for k, v in table.items() if not isinstance(v, Mapping)}
    lines = ["", f"[{name}]", *(f"{toml_key(k)} = {_toml(v)}" for k, v in plain.items())]
    for key, value in table.items():
        if isinstance(value, Mapping):
            lines += _toml_table(f"{name}.{toml_key(key)}", value)
    return lines


def _toml(value: Any) -> str:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple) and value and isinstance(value[0], list):
        return "[\n" + "".join(f"  {_toml(row)},\n" for row in value) + "]"
    return toml_value(value)


# -- limits --------------------------------------------------------------------------------------


def read_limits(source: str) -> dict[str, dict[str, float]]:
    """Limits by joint pattern from a TOML or JSON file, or from JSON text: {"joint*": {"velocity": 1.5}}."""
    if source.lstrip().startswith("{"):
        where, data = "the limits", _parsed(parse_json, source, "the limits are")
    else:
        check_suffix(source, (".toml", ".json"))
        load = parse_toml if Path(source).suffix.lower() == ".toml" else parse_json
        where, data = f"'{source}'", _parsed(load, _read_text(source), f"'{source}' is")
    for pattern, entries in data.items():
        if not isinstance(entries, dict):
            raise InvalidType(f"'{pattern}' needs a table of limits, such as velocity = 1.5", "limits", where=where)
        for key, value in entries.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise InvalidType(
                    f"limit '{key}' of '{pattern}' must be a number, got {value!r:.40}", "limits", where=where
                )
    return data


def _parsed(load: Callable[[str], Any], text: str, what: str) -> dict[str, Any]:
    try:
        data = load(text)
    except ValueError as error:
        raise DamagedFile(f"{what} not valid: {error}", "limits") from None
    if not isinstance(data, dict):
        raise InvalidType(f"{what} not a table of joints", "limits")
    return data
