"""A robot as plain data, complete: what a saved estimate stores so that it can be used without the robot's file."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np

from dynid.errors import DataError, Mismatch, MissingArgument, ModelError
from dynid.results import Codec, Reading
from dynid.robot.constraints import Constraint, JointEquality, Loop
from dynid.robot.drives import DriveTerm, Transmission
from dynid.robot.effects import EffectColumn
from dynid.robot.elements import Gas, LineForce, Step
from dynid.robot.model import Robot
from dynid.robot.parts import Frame, Joint, Limits, Link, Merge, Mimic

__all__ = ["ROBOT", "robot_from_dict", "robot_to_dict", "stored_robot"]

_LINE_FORCE, _EFFECT = "line_force", "effect"
# Types of fields that the classes themselves do not check, by their annotation.
_SCALARS: dict[Any, Any] = {"str": str, "int": int, "bool": bool, "float": (int, float)}
_Part = TypeVar("_Part")


def robot_to_dict(robot: Robot) -> dict[str, Any]:
    """Convert a robot to plain data that JSON can hold.

    Parameters
    ----------
    robot : Robot
        Any robot. Of custom drive terms, force elements and effects are stored. Any other Python function is not, only
        the fact that there is one.

    Returns
    -------
    dict
        Every field of the robot, of its links, joints, frames, drive terms and transmission, under the name of the
        field. Arrays are lists, infinite limits are None.

    Examples
    --------
    >>> import dynid
    >>> from dynid.robot.serialize import robot_from_dict, robot_to_dict
    >>> data = robot_to_dict(dynid.load_robot("tx40"))
    >>> robot_from_dict(data).n
    6
    """
    return {
        "name": robot.name,
        "base": robot.base,
        "gravity": robot.gravity.tolist(),
        "source": robot.source,
        "notes": list(robot.notes),
        "links": [_plain(x) for x in robot.links],
        "joints": [_plain(x) for x in robot.joints],
        "drives": [_plain(x) for x in robot.drives],
        "transmission": None if robot.transmission is None else _plain(robot.transmission),
        "frames": [_plain(x) for x in robot.frames],
        "merged": [_plain(x) for x in robot.merged],
        "loops": [_plain(x) for x in robot.loops],
        "passive": list(robot.passive),
        "assembled": None if robot.assembled is None else robot.assembled.tolist(),
        "postures": {name: dict(values) for name, values in robot.postures.items()},
    }


def robot_from_dict(data: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]] | None = None) -> Robot:
    """Rebuild a robot from what `robot_to_dict` returned.

    Parameters
    ----------
    data : mapping
        The stored robot.
    functions : mapping of str to callable, optional
        The Python function of each custom drive term, by the name of the term.

    Returns
    -------
    Robot
        The same robot; all numbers are equal to the bit.

    Raises
    ------
    ModelError
        If the data are not those of a robot, or if a custom drive term has no function in `functions`.
    """
    try:
        bare = Robot(
            name=_text(data["name"], "name of the robot"),
            links=tuple(_made(Link, x) for x in data["links"]),
            joints=tuple(_joint(x) for x in data["joints"]),
            gravity=np.array(data["gravity"], dtype=float),
            base=data["base"],
            transmission=None if data["transmission"] is None else _transmission(data["transmission"]),
            frames=tuple(_made(Frame, x) for x in data["frames"]),
            merged=tuple(_made(Merge, x) for x in data["merged"]),
            source=_text(data["source"], "source"),
            loops=tuple(_loop(x) for x in data["loops"]),
            passive=tuple(_text(x, "passive joint") for x in data["passive"]),
            assembled=None if data["assembled"] is None else np.array(data["assembled"], dtype=float),
            postures={name: _posture(values) for name, values in data["postures"].items()},
            notes=tuple(_text(x, "note") for x in data["notes"]),
        )
        return replace(bare, drives=tuple(_drive_term(x, functions or {}, bare) for x in data["drives"]))
    except (KeyError, TypeError, AttributeError, ValueError, IndexError, OverflowError, DataError) as error:
        raise ModelError(f"the stored robot is incomplete or damaged: {error}", code="file_damaged") from None


def _plain(part: Any) -> dict[str, Any]:
    """The fields of a part of a robot as plain data."""
    out: dict[str, Any] = {}
    for x in fields(part):
        value = getattr(part, x.name)
        if isinstance(value, np.ndarray):
            value = value.tolist()
        elif isinstance(value, Limits | Mimic | Frame):
            value = _plain(value)
        elif isinstance(value, tuple):
            value = list(value)
        elif isinstance(value, float) and math.isinf(value):
            value = None
        elif isinstance(value, LineForce):
            value = {"law": _LINE_FORCE, **_plain_line(value)}
        elif isinstance(value, EffectColumn):
            value = {"law": _EFFECT, "column": value.to_dict()}
        elif x.name == "function":
            value = value is not None
        out[x.name] = value
    return out


def _made(kind: type[_Part], data: Mapping[str, Any]) -> _Part:
    """A part of a robot from its stored fields; the class checks its arrays, this function the other types."""
    for x in fields(kind):  # type: ignore[arg-type]
        if x.name in data and x.type in _SCALARS:
            value = data[x.name]
            if not isinstance(value, _SCALARS[x.type]) or isinstance(value, bool) != (x.type == "bool"):
                raise TypeError(f"{x.name} of a {kind.__name__} must be of type {x.type}, got {value!r:.40}")
            if x.type == "float":
                float(value)  # an integer may be too large
    return kind(**data)


def _text(value: Any, what: str) -> str:
    """A stored text."""
    if not isinstance(value, str):
        raise TypeError(f"the {what} must be text, got {value!r:.40}")
    return value


def _posture(values: Mapping[str, Any]) -> dict[str, float]:
    return {_text(name, "joint of a posture"): float(value) for name, value in values.items()}


def _joint(data: Mapping[str, Any]) -> Joint:
    limits = _made(Limits, {name: value for name, value in data["limits"].items() if value is not None})
    mimic = None if data["mimic"] is None else _made(Mimic, data["mimic"])
    joint = _made(Joint, {**data, "limits": limits, "mimic": mimic})
    # The axis was of unit length when it was stored; scaling it again could change its last bit.
    axis = np.array(data["axis"], dtype=float)
    axis.flags.writeable = False
    object.__setattr__(joint, "axis", axis)
    return joint


def _drive_term(data: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]], bare: Robot) -> DriveTerm:
    name = f"{data['symbol']}_{data['shaft']}"
    law = data["function"]
    if isinstance(law, Mapping):
        if law["law"] not in (_LINE_FORCE, _EFFECT):
            raise ModelError(f"the law '{law['law']}' of '{name}' is unknown", code="unknown_name")
        line = law["law"] == _LINE_FORCE
        column = _line_force(law) if line else EffectColumn.from_dict(law["column"], bare.tree)
        return _made(DriveTerm, {**data, "function": column})
    if law and name not in functions:
        raise ModelError(
            f"the custom drive term '{name}' is a Python function, which no file can store: give the robot that has it",
            code="unsupported",
        )
    return _made(DriveTerm, {**data, "function": functions[name] if law else None})


def _plain_line(line: LineForce) -> dict[str, Any]:
    """A force element as plain data."""
    return {
        "parameter": line.law,
        "chains": [[_plain(step) for step in steps] for steps in line.chains],
        "ends": [end.tolist() for end in line.ends],
        "rest": line.rest,
        "gas": None if line.gas is None else _plain(line.gas),
    }


def _line_force(data: Mapping[str, Any]) -> LineForce:
    first, second = (tuple(_made(Step, step) for step in steps) for steps in data["chains"])
    gas = None if data["gas"] is None else _made(Gas, data["gas"])
    return LineForce(data["parameter"], (first, second), (data["ends"][0], data["ends"][1]), data["rest"], gas)


def _loop(data: Mapping[str, Any]) -> Constraint:
    if "polynomial" in data:
        return _made(JointEquality, {**data, "polynomial": tuple(data["polynomial"])})
    return _made(Loop, {**data, "first": _made(Frame, data["first"]), "second": _made(Frame, data["second"])})


def _transmission(data: Mapping[str, Any]) -> Transmission:
    return _made(Transmission, {**data, "motors": tuple(_text(x, "motor") for x in data["motors"])})


def stored_robot(data: Mapping[str, Any], reading: Reading) -> Robot:
    """The stored robot, with the Python functions of custom drive terms of the one that the caller gave."""
    given, where = reading.given, reading.where
    functions = {} if given is None else {t.name: t.function for t in given.drives if t.function is not None}
    try:
        stored = robot_from_dict(data, functions)
    except ModelError as error:
        if given is None:
            raise MissingArgument(
                f"{where} cannot be loaded alone: {error}, {reading.loader}(path, robot=...)"
            ) from None
        raise Mismatch(f"{where} was made for another robot or other drive terms than '{given.name}'") from None
    if given is not None and not _same_structure(stored, given):
        raise Mismatch(f"{where} was made for another robot or other drive terms than '{given.name}'")
    return stored


def _same_structure(one: Robot, other: Robot) -> bool:
    """Whether two robots have the same kinematics and the same parameters, whatever their values."""
    if one.parameter_names != other.parameter_names or one.channels != other.channels:
        return False
    return len(one.joints) == len(other.joints) and all(
        a.kind == b.kind
        and a.parent == b.parent
        and np.allclose(a.placement, b.placement, atol=1e-9)
        and np.allclose(a.mount, b.mount, atol=1e-9)
        and np.allclose(a.axis, b.axis, atol=1e-9)
        for a, b in zip(one.joints, other.joints, strict=True)
    )


# How the robot of a result is stored.
ROBOT = Codec(dict[str, Any], robot_to_dict, stored_robot, complete=True)
