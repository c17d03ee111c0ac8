"""Identified flexible joints in files: JSON, which holds everything, and TOML, which people and programs read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import DataError, DynidError
from dynid.files import write_text
from dynid.identification.estimate_file import json_text, plain_data, read_json, stored_robot
from dynid.identification.flexible.estimate import FlexibleEstimate, Sides
from dynid.identification.flexible.rows import EncoderError
from dynid.identification.flexible.sides import FlexibleModel
from dynid.identification.flexible.stiffness_tests import StiffnessKind, StiffnessTest
from dynid.quoting import toml_key
from dynid.robot.model import Robot
from dynid.robot.serialize import robot_to_dict
from dynid.signals.settings import Signals

__all__ = ["flexible_to_dict", "load_flexible", "save_flexible"]

_FORMAT = "dynid flexible 1"


def flexible_to_dict(estimate: FlexibleEstimate) -> dict[str, Any]:
    """The complete estimate as plain data that JSON can hold; numbers that are not finite are words."""
    base = estimate.base
    plain: dict[str, Any] = plain_data(
        {
            "format": _FORMAT,
            "joints": {
                joint: {
                    "stiffness": estimate.stiffness[k],
                    "stiffness_std": estimate.stiffness_std[k],
                    "damping": estimate.damping[k],
                    "damping_std": estimate.damping_std[k],
                    "motor_inertia": estimate.motor_inertia[k],
                    "motor_inertia_std": estimate.motor_inertia_std[k],
                    "delay": estimate.delays[k],
                }
                for k, joint in enumerate(estimate.joints)
            },
            "base_parameters": [
                {"expression": text, "unit": unit, "value": x, "std": s}
                for text, unit, x, s in zip(base.expressions, base.units, estimate.beta, estimate.beta_std, strict=True)
            ],
            "motor_parameters": dict(estimate.motor_parameters),
            "tests": [
                {"joint": t.joint, "kind": t.kind.value, "size": t.size, "std": t.std, "p_value": t.p_value}
                for t in estimate.tests
            ],
            "notes": estimate.notes,
            "sides": estimate.sides.value,
            "link_friction": estimate.model.link_friction,
            "errors": [e.value for e in estimate.errors],
            "names": [*base.names, *estimate.model.motor_names],
            "x": estimate.x,
            "covariance": estimate.covariance,
            "freedom": estimate.freedom,
            "runs": estimate.runs,
            "delays": estimate.delays,
            "parameters": estimate.parameters,
            "noise": estimate.noise,
            "rows": estimate.rows,
            "iterations": estimate.iterations,
            "converged": estimate.converged,
            "signals": estimate.signals.to_dict(),
            "robot": robot_to_dict(estimate.robot),
        }
    )
    return plain


def save_flexible(estimate: FlexibleEstimate, path: str | Path) -> None:
    """Write an estimate as JSON, or its stiffness, damping and motors as TOML."""
    path = Path(path)
    if path.suffix == ".json":
        write_text(path, json_text(flexible_to_dict(estimate)) + "\n")
    elif path.suffix == ".toml":
        write_text(path, _toml(estimate))
    else:
        raise DataError(f"flexible joints are written as .json or .toml, not '{path.name}'")


def load_flexible(path: str | Path, robot: Robot | None = None) -> FlexibleEstimate:
    """Read the JSON file of identified flexible joints.

    Parameters
    ----------
    path : str or Path
        The file.
    robot : Robot, optional
        The robot, needed if it has terms that are functions, which no file holds.

    Returns
    -------
    FlexibleEstimate

    Raises
    ------
    DataError
        If the file cannot be read, is damaged, or belongs to another robot.
    """
    data, where = read_json(path, "saved flexible joints"), f"'{path}'"
    if not isinstance(data, Mapping) or data.get("format") != _FORMAT:
        raise DataError(f"{where} has no saved flexible joints ('{_FORMAT}')")
    try:
        return _estimate(data, stored_robot(data["robot"], robot, where, "load_flexible"), where)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{where} is damaged: {type(error).__name__} {error}") from None


def _estimate(data: Mapping[str, Any], robot: Robot, where: str) -> FlexibleEstimate:
    model = FlexibleModel(robot, tuple(data["joints"]), data["link_friction"])
    if list(data["names"]) != [*model.base.names, *model.motor_names]:
        raise DataError(f"{where} belongs to another robot: its base parameters differ")
    arrays = {name: np.array(data[name], dtype=float) for name in ("x", "covariance", "delays", "parameters", "noise")}
    found = FlexibleEstimate(
        model=model,
        sides=Sides(data["sides"]),
        freedom=float(data["freedom"]),
        runs=int(data["runs"]),
        errors=tuple(EncoderError(e) for e in data["errors"]),
        rows=tuple(data["rows"]),
        iterations=int(data["iterations"]),
        converged=bool(data["converged"]),
        signals=Signals.from_dict(data["signals"]),
        tests=tuple(
            StiffnessTest(
                str(t["joint"]), StiffnessKind(t["kind"]), float(t["size"]), float(t["std"]), float(t["p_value"])
            )
            for t in data["tests"]
        ),
        notes=tuple(data["notes"]),
        **arrays,
    )
    if found.x.shape != (found.unknowns.size,) or found.covariance.shape != (found.x.size, found.x.size):
        raise DynidError(f"{where} is damaged: {found.x.size} unknowns, {found.unknowns.size} expected")
    return found


def _toml(estimate: FlexibleEstimate) -> str:
    """Stiffness, damping and motors of every flexible joint, with standard deviations and units."""
    lines = ["# Flexible joints, on the joint side: stiffness k and damping d between motor and link.", ""]
    for k, joint in enumerate(estimate.joints):
        linear = estimate.robot.channel_units[joint] == "N"
        units = ("N/m", "N s/m", "kg") if linear else ("N m/rad", "N m s/rad", "kg m2")
        values = (
            ("stiffness", estimate.stiffness[k], estimate.stiffness_std[k], units[0]),
            ("damping", estimate.damping[k], estimate.damping_std[k], units[1]),
            ("motor_inertia", estimate.motor_inertia[k], estimate.motor_inertia_std[k], units[2]),
        )
        lines.append(f"[joints.{toml_key(joint)}]")
        for name, value, std, unit in values:
            lines += [f"{name} = {float(value):.6g}  # {unit}", f"{name}_std = {float(std):.3g}"]
        lines.append("")
    return "\n".join(lines)
