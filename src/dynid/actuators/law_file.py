"""Laws of actuators as text and as TOML files."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import (
    DamagedFile,
    DataError,
    InvalidType,
    InvalidValue,
    Mismatch,
    MissingArgument,
    MissingData,
    MissingFile,
    MissingPackage,
    UnknownName,
    did_you_mean,
    named,
)
from dynid.patterns import matching_expression
from dynid.reading import read_toml
from dynid.robot.actuator_law import PER_JOINT, ActuatorLaw
from dynid.robot.mjcf_values import NEEDS_MUJOCO

__all__ = ["law_from_dict", "law_of_file", "law_to_dict", "load_law"]

_SETTINGS = ("rate", "timestep", "hold", "delayed", "velocity_target")


def load_law(text: str | Path, joints: Sequence[str]) -> ActuatorLaw:
    """A law from "pd:KP,KD", from "torque" (no law: torques are logged), or from a TOML file.

    Parameters
    ----------
    text : str or Path
        In a file, every attribute of `ActuatorLaw` is a key: one number, one per joint, or a table of numbers by
        regular expressions of joint names; "rate", "timestep", "hold", "delayed" and "velocity_target" may be given
        too.
    joints : sequence of str
        Joints of the robot.

    Returns
    -------
    ActuatorLaw
    """
    given = str(text)
    if given == "torque":
        return ActuatorLaw(joints)
    match = re.fullmatch(r"pd:([^,]+),([^,]+)", given)
    if match:
        try:
            return ActuatorLaw(joints, kp=float(match[1]), kd=float(match[2]))
        except ValueError:
            raise InvalidValue(f"the law '{given}' needs two numbers, such as pd:20,1.5") from None
    if given.startswith("pd:") or not given.endswith(".toml"):
        raise UnknownName(f"the law '{given}' is not known: give pd:KP,KD, torque, or a TOML file with kp and kd")
    try:
        data = read_toml(given)
    except (OSError, UnicodeDecodeError) as error:
        raise MissingFile(f"the law '{given}' cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise DamagedFile(f"{given} is not a TOML file: {error}") from None
    try:
        return law_from_dict(data.get("law", data), joints)
    except DataError as error:
        raise error.at(given) from None


def law_of_file(path: str | Path, joints: Sequence[str]) -> ActuatorLaw:
    """The law of the position actuators of an MJCF file.

    Raises a DataError if a joint has none.
    """
    servos = {}
    if Path(path).suffix.lower() in (".xml", ".mjcf"):
        try:
            from dynid.robot.mjcf_compiled import position_servos
        except ImportError:
            raise MissingPackage(f"the law of '{Path(path).name}' {NEEDS_MUJOCO}") from None
        servos = position_servos(Path(path))
    missing = [joint for joint in joints if joint not in servos]
    if missing:
        raise MissingData(
            f"'{Path(path).name}' has no position actuator on joint '{missing[0]}': give the law as pd:KP,KD or a TOML "
            "file"
        )
    kp, kd, limit = np.array([servos[joint] for joint in joints]).T
    return ActuatorLaw(joints, kp=kp, kd=kd, torque_limit=limit)


def law_from_dict(data: Mapping[str, Any], joints: Sequence[str]) -> ActuatorLaw:
    """A law from plain data, as in a TOML file."""
    if not isinstance(data, Mapping):
        raise InvalidType("a law is a table of kp, kd and what else it has")
    known = (*PER_JOINT, *_SETTINGS)
    for key in data:
        if key not in known and key != "joints":
            raise UnknownName(f"a law has no '{key}'{did_you_mean(key, known)}: it has {', '.join(known)}")
    given = data.get("joints", list(joints))
    if not isinstance(given, list) or not all(isinstance(x, str) for x in given):
        raise InvalidType(f"{named('joints')} of a law are a list of names")
    if given != list(joints):
        raise Mismatch(f"the law is that of {', '.join(given)}, not of {', '.join(joints)}")
    fields = {key: _numbers(key, value, joints) for key, value in data.items() if key in PER_JOINT}
    return ActuatorLaw(joints, **fields, **{key: data[key] for key in _SETTINGS if key in data})


def law_to_dict(law: ActuatorLaw) -> dict[str, Any]:
    """A law as plain data; fields that have no effect are left out."""
    plain = ActuatorLaw(law.joints)
    out: dict[str, Any] = {"joints": list(law.joints)}
    for field in PER_JOINT:
        if not np.array_equal(getattr(law, field), getattr(plain, field)):
            out[field] = getattr(law, field).tolist()
    for key in _SETTINGS:
        if getattr(law, key) != getattr(plain, key):
            out[key] = getattr(law, key)
    return out


def _numbers(key: str, value: Any, joints: Sequence[str]) -> Any:
    """One number per joint where a table gives them by pattern."""
    if not isinstance(value, Mapping):
        return value
    out: dict[str, float] = {}
    for pattern, number in value.items():
        try:
            found = matching_expression(pattern, joints)
        except ValueError as error:
            raise InvalidValue(f"'{pattern}' of {key} is not a regular expression: {error}", key) from None
        if not found:
            raise UnknownName(f"no joint matches '{pattern}' of {key}; the joints are {', '.join(joints)}", key)
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise InvalidType(f"{key} of '{pattern}' is a number, not {number!r:.40}", key)
        out |= dict.fromkeys(found, number)
    missing = [j for j in joints if j not in out]
    if missing:
        raise MissingArgument(f"{key} says nothing about joint '{missing[0]}'", key)
    return [out[j] for j in joints]
