"""Identified actuators as TOML, which people and other programs read, and the reader of their JSON files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dynid.actuators.estimate import ActuatorEstimate
from dynid.actuators.law_file import law_to_dict
from dynid.files import write_text
from dynid.quoting import one_line, toml_key, toml_value

__all__ = ["load_actuators", "write_toml"]


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
    return ActuatorEstimate.load(path)


def write_toml(estimate: ActuatorEstimate, path: str | Path) -> None:
    """Write the law, which `load_law` reads, and values, standard deviations and units."""
    write_text(path, _toml(estimate))


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
