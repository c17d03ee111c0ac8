"""A robot or an estimate written as a model file, in the format that the ending of the path names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dynid.errors import NotApplicable, UnknownName, WrongFormat, did_you_mean
from dynid.export.endings import ENDINGS, TEMPLATES
from dynid.export.label import Label, label_of
from dynid.export.mjcf import write_mjcf
from dynid.export.mjcf_springs import springs_of
from dynid.export.parameters import write_parameters
from dynid.export.sdf import write_sdf
from dynid.export.urdf import write_urdf
from dynid.identification.estimate import Estimate
from dynid.identification.flexible.estimate import FlexibleEstimate
from dynid.robot.model import Robot

__all__ = ["write"]

_WRITERS = {"urdf": write_urdf, "mjcf": write_mjcf, "sdf": write_sdf}


def write(
    source: Robot | Estimate | FlexibleEstimate,
    path: str | Path,
    *,
    form: str | None = None,
    template: str | Path | None = None,
    allow_infeasible: bool = False,
    untrusted: bool = False,
) -> list[str]:
    """Write a robot, or the robot that an estimate identified, as a model file.

    Parameters
    ----------
    source : Robot, Estimate or FlexibleEstimate
        What to write; of an estimate, its `identified_robot`, and in JSON and TOML its standard deviations too. Files
        of an estimate hold its verdict with the first reasons, its domain, and what decided each body. Of flexible
        joints MJCF has motors and springs; other model files have the link side.
    path : str or Path
        File to write. Its ending names the format: .urdf, .xml or .mjcf, .sdf, .yaml (ROS 2 parameters), .json, .toml.
    form : str, optional
        Format where the ending does not name it: urdf, mjcf, sdf, yaml, json or toml.
    template : str or Path, optional
        URDF, MJCF or SDF file of the same robot; its text is kept and only inertias and drives change.
    allow_infeasible : bool, default False
        Write parameters that are not physically consistent. They are refused otherwise.
    untrusted : bool, default False
        Write the model of an estimate whose verdict is "do not use". It is refused otherwise.

    Returns
    -------
    list of str
        Warnings: the verdict where it is not "trusted", and drive terms that the format cannot hold.

    Raises
    ------
    DataError
        If the format is unknown, a template is given for a format without one, the parameters are refused,
        or the verdict on the estimate is "do not use".

    Examples
    --------
    >>> import tempfile, dynid
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     warnings = dynid.export.write(dynid.load_robot("twolink"), f"{folder}/arm.urdf")
    >>> print(warnings[1])
    URDF has no place for the drive terms Ia of joint1, joint2
    """
    form = form or ENDINGS.get(Path(path).suffix.lower())
    known = list(dict.fromkeys(ENDINGS.values()))
    if form is None:
        raise WrongFormat(f"the ending of '{path}' names no format: use one of {', '.join(ENDINGS)}")
    if form not in known:
        raise UnknownName(f"format '{form}' is unknown: use {', '.join(known)}{did_you_mean(form, known)}", "form")
    if template is not None and form not in TEMPLATES:
        raise NotApplicable(f"a template is for {', '.join(TEMPLATES)}, not for {form}", "template")
    if isinstance(source, FlexibleEstimate):
        return _write_flexible(source, path, form, template, allow_infeasible)
    if form not in _WRITERS:
        return write_parameters(source, path, allow_infeasible=allow_infeasible, form=form, untrusted=untrusted)
    label = label_of(source, untrusted)
    robot = source if isinstance(source, Robot) else source.identified_robot
    found = _WRITERS[form](robot, path, template=template, allow_infeasible=allow_infeasible, label=label)
    return [*_said(label), *found]


def _said(label: Label | None) -> list[str]:
    """What the label tells whoever writes the file."""
    return [] if label is None else label.warnings


def _write_flexible(
    source: FlexibleEstimate, path: str | Path, form: str, template: str | Path | None, allow_infeasible: bool
) -> list[str]:
    """Write flexible joints with their springs, or the link side of a format that has no place for them."""
    links, label = source.identified_robot, label_of(source)
    told = _said(label)
    settings: dict[str, Any] = {"template": template, "allow_infeasible": allow_infeasible, "label": label}
    if form == "mjcf":
        return [*told, *write_mjcf(links, path, springs=springs_of(source), **settings)]
    if form in ("json", "toml"):
        source.save(path)
        return []
    warning = f"{form.upper()} has no place for springs between motors and links: the file has the link side only"
    if form not in _WRITERS:
        return [*told, *write_parameters(links, path, allow_infeasible=allow_infeasible, form=form), warning]
    return [*told, *_WRITERS[form](links, path, **settings), warning]
