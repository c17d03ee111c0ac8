"""Identified actuators in files: JSON, which holds everything, and TOML, which people and other programs read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from dynid.actuators.estimate import ActuatorEstimate
from dynid.actuators.law_file import law_from_dict, law_to_dict
from dynid.actuators.unknowns import Quantity, Unknown
from dynid.errors import DataError, DynidError
from dynid.files import write_text
from dynid.identification.estimate_file import json_text, plain_data
from dynid.quoting import one_line, toml_key, toml_value
from dynid.reading import read_json
from dynid.robot.serialize import robot_from_dict, robot_to_dict
from dynid.signals.fingerprint import Fingerprint

__all__ = ["load_actuators", "save_actuators"]

_FORMAT = "dynid actuators 1"
_PLAIN = {"rate": float, "rows": int, "horizon": float, "iterations": int, "converged": bool, "seconds": float}


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
        raise DataError(f"identified actuators are written as .toml or .json, not '{path.name}'")


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
    try:
        data = read_json(path)
    except (OSError, ValueError) as error:
        raise DataError(f"the actuators '{path}' cannot be read: {error}") from None
    if not isinstance(data, Mapping) or data.get("format") != _FORMAT:
        raise DataError(f"'{path}' does not hold actuators of this version ('{_FORMAT}')")
    try:
        return _from_dict(data)
    except DynidError as error:
        raise DataError(f"'{path}' is damaged: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise DataError(f"'{path}' is damaged: {type(error).__name__} {error}") from None


def _to_dict(estimate: ActuatorEstimate) -> dict[str, Any]:
    numbers = {f.name: getattr(estimate, f.name) for f in fields(estimate)}
    numbers["unknowns"] = [
        {f.name: getattr(x, f.name) for f in fields(x)} | {"quantity": str(x.quantity)} for x in estimate.unknowns
    ]
    numbers["robot"] = robot_to_dict(estimate.robot)
    numbers["law"] = law_to_dict(estimate.law)
    numbers["fingerprint"] = estimate.fingerprint.to_dict()
    return {"format": _FORMAT, **numbers}


def _from_dict(data: Mapping[str, Any]) -> ActuatorEstimate:
    robot = robot_from_dict(data["robot"])
    law = law_from_dict(data["law"], data["law"]["joints"]).of(robot.coordinates)
    unknowns = tuple(
        Unknown(
            **(
                x
                | {
                    "quantity": Quantity(x["quantity"]),
                    "joints": tuple(x["joints"]),
                    "parameters": tuple(x["parameters"]),
                }
            )
        )
        for x in data["unknowns"]
    )
    for x in unknowns:
        if not all(isinstance(word, str) for word in (x.unit, x.group, x.expression)):
            raise TypeError(f"unit, group and expression of the unknown '{x.label}' are texts")
        if not set(x.joints) <= set(law.joints) or not set(x.parameters) <= set(robot.parameter_names):
            raise ValueError(f"the robot has nothing for the unknown '{x.label}'")
    count, n = len(unknowns), law.n
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("values", "std", "at_bound", "effective_rows"), (count,))
    shapes |= {"covariance": (count, count), "rms": (n,), "prior_rms": (n,), "kp_change": (n,), "kp_change_std": (n,)}
    rest: dict[str, Any] = {name: kind(data[name]) for name, kind in _PLAIN.items()}
    for name, shape in shapes.items():
        rest[name] = np.array(data[name], dtype=bool if name == "at_bound" else float)
        if rest[name].shape != shape:
            raise ValueError(f"{name} has shape {rest[name].shape}, not {shape}")
    if np.isnan(rest["covariance"]).any():
        raise ValueError("the covariance has an entry that is no number")
    rest |= {"fingerprint": Fingerprint.from_dict(data["fingerprint"]), "notes": tuple(map(str, data["notes"]))}
    return ActuatorEstimate(robot=robot, law=law, unknowns=unknowns, **rest)


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
