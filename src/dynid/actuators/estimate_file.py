"""Identified actuators in files: JSON, which holds everything, and TOML, which people and other programs read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import model_validator

from dynid.actuators.causes import ActuatorCauses
from dynid.actuators.estimate import ActuatorEstimate
from dynid.actuators.law_file import law_from_dict, law_to_dict
from dynid.actuators.unknowns import Quantity, Unknown
from dynid.errors import DamagedFile, DynidError, WrongFormat, WrongVersion
from dynid.files import write_text
from dynid.identification.estimate_file import json_text, plain_data, read_json
from dynid.quoting import one_line, toml_key, toml_value
from dynid.robot.serialize import robot_from_dict, robot_to_dict
from dynid.schema import Count, Finite, Flag, Matrix, Number, Stored, checked, is_square
from dynid.signals.fingerprint import Fingerprint

__all__ = ["load_actuators", "save_actuators"]

_FORMAT = "dynid actuators 4"


def save_actuators(estimate: ActuatorEstimate, path: str | Path) -> None:
    """Write identified actuators.

    Parameters
    ----------
    estimate : ActuatorEstimate
    path : str or Path
        A JSON file holds the whole estimate with its robot. A TOML file holds the law, which `load_law` reads, and
        values, standard deviations and units.

    Raises
    ------
    DataError
        If the ending is another one.
    """
    path = Path(path)
    if path.suffix == ".json":
        write_text(path, json_text(plain_data(_to_dict(estimate))) + "\n")
    elif path.suffix == ".toml":
        write_text(path, _toml(estimate))
    else:
        raise WrongFormat(f"identified actuators are written as .toml or .json, not '{path.name}'")


class _StoredUnknown(Stored):
    """One unknown; the names are those of `Unknown`."""

    quantity: Quantity
    joints: list[str]
    parameters: list[str]
    unit: str
    group: str
    expression: str

    @model_validator(mode="after")
    def _has_a_label(self) -> _StoredUnknown:
        if not (self.joints or self.parameters):
            raise ValueError("an unknown has joints or parameters")
        return self


class _StoredActuators(Stored):
    """Everything that the JSON file holds; the names are those of `ActuatorEstimate`."""

    format: str
    robot: dict[str, Any]
    law: dict[str, Any]
    unknowns: list[_StoredUnknown]
    values: list[Finite]
    std: list[Number]
    prior_values: list[Number]
    covariance: Matrix
    within_tick: list[Finite]
    at_bound: list[Flag]
    rms: list[Number]
    prior_rms: list[Number]
    kp_change: list[Number]
    kp_change_std: list[Number]
    kd_change: list[Number]
    kd_change_std: list[Number]
    negative_delay: Finite
    rate: Finite
    rows: Count
    effective_rows: list[Number]
    horizon: Finite
    iterations: Count
    converged: Flag
    seconds: Finite
    fingerprint: dict[str, Any]
    notes: list[str]
    causes: dict[str, Any] | None

    @model_validator(mode="after")
    def _sizes_agree(self) -> _StoredActuators:
        count = len(self.unknowns)
        for name in ("values", "std", "prior_values", "within_tick", "at_bound", "effective_rows"):
            if len(getattr(self, name)) != count:
                raise ValueError(f"{name} has {len(getattr(self, name))} entries for {count} unknowns")
        if not is_square(self.covariance, count):
            raise ValueError(f"covariance is not a {count} x {count} matrix")
        return self


def load_actuators(path: str | Path) -> ActuatorEstimate:
    """Read the JSON file of identified actuators.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    ActuatorEstimate

    Raises
    ------
    DataError
        If the file cannot be read or holds something else.
    """
    data = read_json(path, "saved actuators")
    if not isinstance(data, Mapping) or data.get("format") != _FORMAT:
        raise WrongVersion(f"'{path}' does not hold actuators of this version ('{_FORMAT}')")
    damaged = f"'{path}' holds damaged actuators"
    stored = checked(_StoredActuators, data, damaged)
    try:
        return _from_stored(stored)
    except (KeyError, TypeError, ValueError, DynidError) as error:
        raise DamagedFile(f"{damaged}: {error}") from None


def _to_dict(estimate: ActuatorEstimate) -> dict[str, Any]:
    numbers = {f.name: getattr(estimate, f.name) for f in fields(estimate)}
    numbers["unknowns"] = [
        {name: getattr(x, name) for name in _StoredUnknown.model_fields} | {"quantity": str(x.quantity)}
        for x in estimate.unknowns
    ]
    numbers["robot"] = robot_to_dict(estimate.robot)
    numbers["law"] = law_to_dict(estimate.law)
    numbers["causes"] = None if estimate.causes is None else estimate.causes.to_dict()
    numbers["fingerprint"] = estimate.fingerprint.to_dict()
    return {"format": _FORMAT, **numbers}


def _from_stored(stored: _StoredActuators) -> ActuatorEstimate:
    robot = robot_from_dict(stored.robot)
    law = law_from_dict(stored.law, stored.law["joints"]).of(robot.coordinates)
    for name in ("rms", "prior_rms", "kp_change", "kp_change_std", "kd_change", "kd_change_std"):
        if len(getattr(stored, name)) != law.n:
            raise ValueError(f"{name} has {len(getattr(stored, name))} entries for {law.n} joints")
    unknowns = tuple(
        Unknown(x.quantity, tuple(x.joints), tuple(x.parameters), x.unit, x.group, x.expression)
        for x in stored.unknowns
    )
    for x in unknowns:
        if not set(x.joints) <= set(law.joints) or not set(x.parameters) <= set(robot.parameter_names):
            raise ValueError(f"the robot has nothing for the unknown '{x.label}'")
    built: dict[str, Any] = {
        "robot": robot,
        "law": law,
        "unknowns": unknowns,
        "fingerprint": Fingerprint.from_dict(stored.fingerprint),
        "notes": tuple(stored.notes),
        "causes": None if stored.causes is None else ActuatorCauses.from_dict(stored.causes),
        "at_bound": np.array(stored.at_bound, dtype=bool),
    }
    for name, value in stored:
        if name not in ("format", *built):
            built[name] = np.array(value, dtype=float) if isinstance(value, list) else value
    return ActuatorEstimate(**built)


def _toml(estimate: ActuatorEstimate) -> str:
    """The law, then every unknown with its standard deviation, then the errors of the simulation."""
    lines = [
        f"# Identified actuators of {one_line(estimate.robot.name)}. SI units; positions in rad or m.",
        "",
        "[law]",
    ]
    for key, value in law_to_dict(estimate.law).items():
        lines.append(f"{key} = {_value(value)}")
    for x, value, std, bound in zip(estimate.unknowns, estimate.values, estimate.std, estimate.at_bound, strict=True):
        lines += ["", "[[unknown]]", f"quantity = {_value(str(x.quantity))}"]
        lines.append(f"joints = {_value(list(x.joints))}" if x.joints else f"parameter = {_value(x.parameters[0])}")
        lines += [f"value = {_value(float(value))}", f"std = {_value(float(std))}", f"unit = {_value(x.unit)}"]
        if bound:
            lines.append("at_bound = true")
        if x.expression:
            lines.append(f"combination = {_value(x.expression)}")
    lines += [
        "",
        "# Position error of the simulated runs, root mean square (rad or m): identified, and as given.",
        "[error]",
    ]
    for joint, rms, prior in zip(estimate.law.joints, estimate.rms, estimate.prior_rms, strict=True):
        lines.append(f"{toml_key(joint)} = {_value([float(rms), float(prior)])}")
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    """A TOML value."""
    if isinstance(value, list):
        return "[" + ", ".join(_value(x) for x in value) + "]"
    return toml_value(float(f"{value:.8g}") if isinstance(value, float) else value)
