"""The library of drives: armature and friction of servos and motors that were identified from recordings."""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from dynid.errors import ModelError, did_you_mean
from dynid.limits import file_limits
from dynid.patterns import matching_expression
from dynid.reading import parse_toml, read_regular
from dynid.robot.drives import DRIVE_LAWS, drive_kinds
from dynid.robot.model import Robot

__all__ = ["KnownDrive", "KnownValue", "known_drives", "load_drive", "with_known_drives"]

# What a file of the library may say of a drive, with its unit on a shaft that rotates and on one that translates.
_DRIVE = {symbol: DRIVE_LAWS[symbol].units for symbol in ("Ia", "fv", "fc")}
_MOTOR = {
    "torque_constant": ("N m/A", "N/A"),
    "resistance": ("Ohm", "Ohm"),
    "back_emf": ("N m s/rad", "N s/m"),
    "stall_torque": ("N m", "N"),
}
# A larger number is no float, or infinite.
_LARGEST = 1e300
_TEXTS = ("name", "description", "source", "study")
# Terms of a joint that a value of the library replaces.
_REPLACED = {
    "Ia": drive_kinds("inertia"),
    "fv": drive_kinds("viscous"),
    "fc": drive_kinds("coulomb", "stribeck"),
}


@dataclass(frozen=True)
class KnownValue:
    """A value with its standard deviation and unit.

    Attributes
    ----------
    value : float
        The value.
    std : float
        Its standard deviation.
    unit : str
        Unit of both.
    """

    value: float
    std: float
    unit: str


@dataclass(frozen=True)
class KnownDrive:
    """A servo or motor of the library.

    Attributes
    ----------
    name : str
        Name by which `load_robot` knows it.
    description : str
        What it is.
    source : str
        Recordings and method that its values come from.
    study : str
        Study that identified it, a module of `studies.reproduce`.
    date : date
        When it was identified.
    drive : dict of str to KnownValue
        Rotor inertia "Ia", viscous friction "fv" and Coulomb friction "fc" at the output shaft, where they were
        identified.
    motor : dict of str to KnownValue
        Torque constant, resistance, back-EMF and stall torque where they were identified; back-EMF and stall torque are
        `back_emf` and `torque_limit` of an actuator law.
    """

    name: str
    description: str
    source: str
    study: str
    date: datetime.date
    drive: dict[str, KnownValue]
    motor: dict[str, KnownValue]


def known_drives() -> dict[str, str]:
    """Servos and motors of the library.

    Returns
    -------
    dict of str to str
        Name and description of each, sorted by name.

    Examples
    --------
    >>> from dynid.robot import known_drives
    >>> known_drives()["xl330-m288"]
    'Dynamixel XL330-M288 position servo at 7.4 V'
    """
    return {name: load_drive(name).description for name in sorted(_names())}


def load_drive(name: str | Path) -> KnownDrive:
    """A servo or motor of the library.

    Parameters
    ----------
    name : str or Path
        One of `known_drives`, or the path of a .toml file of the same form.

    Returns
    -------
    KnownDrive

    Raises
    ------
    ModelError
        If there is none of this name, or the file is not valid.

    Examples
    --------
    >>> from dynid.robot import load_drive
    >>> load_drive("xl330-m288").drive["Ia"]
    KnownValue(value=0.001607, std=0.0001, unit='kg m2')
    """
    text = str(name)
    if text.lower().endswith(".toml"):
        path = Path(text)
        try:
            return _read(read_regular(path, file_limits().text_bytes), path.name)
        except FileNotFoundError:
            raise ModelError(f"there is no file '{text}'", code="file_missing") from None
        except OSError as error:
            raise ModelError(f"{path.name} cannot be read: {error.strerror}", code="file_missing") from None
    names = _names()
    if text not in names:
        hint = did_you_mean(text, names) or f"; the library has {', '.join(sorted(names))}"
        raise ModelError(f"no drive named '{text}' in the library{hint}", "drives", code="unknown_name")
    return _read((_folder() / f"{text}.toml").read_bytes(), f"{text}.toml")


def with_known_drives(robot: Robot, drives: str | Path | Mapping[str, str | Path]) -> Robot:
    """A copy whose joints have armature and friction of the library; their own terms of that kind are replaced.

    What the library does not say of a drive stays: the STS3215 has friction, but no armature.

    Parameters
    ----------
    robot : Robot
        The robot.
    drives : str, Path or mapping
        Name of a drive for all joints that move independently, or a mapping from regular expressions of joint names to
        names of drives. The first expression that matches a whole name decides.

    Returns
    -------
    Robot

    Raises
    ------
    ModelError
        If a drive is not known, an expression matches no joint, or a drive that rotates would move a joint that
        translates.
    """
    chosen = drives if isinstance(drives, Mapping) else {".*": drives}
    found: dict[str, KnownDrive] = {}
    for pattern, name in chosen.items():
        drive = load_drive(name)
        try:
            joints = matching_expression(pattern, robot.coordinates)
        except (ValueError, TypeError):
            raise ModelError(
                f"drives: '{pattern}' is no regular expression of joint names", "drives", code="invalid_value"
            ) from None
        if not joints:
            raise ModelError(
                f"drives: no joint matches '{pattern}', the joints are {', '.join(robot.coordinates)}",
                "drives",
                code="unknown_name",
            )
        found = dict.fromkeys(joints, drive) | found
    gone = {joint: set().union(*(_REPLACED[symbol] for symbol in x.drive)) for joint, x in found.items()}
    kept = [t for t in robot.drives if t.motor or t.kind not in gone.get(t.shaft, ())]
    new = []
    for joint, drive in found.items():
        linear = next(j.kind for j in robot.joints if j.name == joint) == "prismatic"
        for symbol, value in drive.drive.items():
            if value.unit != _DRIVE[symbol][linear]:
                raise ModelError(
                    f"drive '{drive.name}' has {symbol} in {value.unit}, which joint '{joint}' cannot have",
                    "drives",
                    code="mismatch",
                )
            new.append(robot.joint_term(joint, symbol, value.value))
    return replace(robot, drives=(*kept, *new))


def _folder() -> Any:
    return resources.files("dynid.robot.drives_library")


def _names() -> list[str]:
    return [x.name.removesuffix(".toml") for x in _folder().iterdir() if x.name.endswith(".toml")]


# -- reading a file ------------------------------------------------------------------------------------


def _read(data: bytes, file: str) -> KnownDrive:
    try:
        page = parse_toml(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ModelError(f"{file} is not valid TOML: {error}", code="file_damaged") from None
    unknown = set(page) - {*_TEXTS, "date", "drive", "motor"}
    if unknown:
        raise ModelError(f"{file} has an unknown key '{min(unknown)}'", code="unknown_name")
    for key in _TEXTS:
        if not isinstance(page.get(key), str) or not page[key].strip():
            raise ModelError(f"{file} needs a text '{key}'", code="missing_data")
    if not isinstance(page.get("date"), datetime.date):
        raise ModelError(f"{file} needs a date, such as date = 2026-01-31", code="missing_data")
    drive, motor = _values(page, "drive", _DRIVE, file), _values(page, "motor", _MOTOR, file)
    if not drive:
        raise ModelError(f"{file} needs a table [drive] with {', '.join(_DRIVE)}", code="missing_data")
    texts = {key: page[key].strip() for key in _TEXTS}
    return KnownDrive(**texts, date=page["date"], drive=drive, motor=motor)


def _values(
    page: Mapping[str, Any], table: str, units: Mapping[str, tuple[str, str]], file: str
) -> dict[str, KnownValue]:
    rows = page.get(table, {})
    if not isinstance(rows, Mapping):
        raise ModelError(f"{table} must be a table", code="invalid_type", where=file)
    out = {}
    for key, row in rows.items():
        where = f"{file}: {key} of [{table}]"
        if key not in units:
            raise ModelError(f"{where} is unknown: use {', '.join(units)}", code="unknown_name")
        if not isinstance(row, Mapping) or set(row) != {"value", "std", "unit"}:
            raise ModelError(f"{where} needs value, std and unit, and nothing else", code="invalid_value")
        for number in (row["value"], row["std"]):
            if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= _LARGEST:
                raise ModelError(f"{where} needs numbers that are not negative", code="invalid_value")
        if row["unit"] not in units[key]:
            raise ModelError(
                f"{where} is in {' or '.join(dict.fromkeys(units[key]))}, not in '{row['unit']}'", code="invalid_value"
            )
        out[key] = KnownValue(float(row["value"]), float(row["std"]), row["unit"])
    return out
