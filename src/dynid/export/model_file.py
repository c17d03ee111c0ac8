"""A robot or an estimate written as a model file, in the format that the ending of the path names."""

from __future__ import annotations

from pathlib import Path

from dynid.errors import NotApplicable, UnknownName, WrongFormat, did_you_mean
from dynid.export.endings import ENDINGS, TEMPLATES
from dynid.export.label import label_of
from dynid.export.mjcf import write_mjcf
from dynid.export.parameters import write_parameters
from dynid.export.sdf import write_sdf
from dynid.export.urdf import write_urdf
from dynid.identification.estimate import Estimate
from dynid.robot.model import Robot

__all__ = ["WRITERS", "checked_form", "write"]

WRITERS = {"urdf": write_urdf, "mjcf": write_mjcf, "sdf": write_sdf}


def write(
    source: Robot | Estimate,
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
    source : Robot or Estimate
        What to write; of an estimate, its `identified_robot`, and in JSON and TOML its standard deviations too. Files
        of an estimate hold its verdict with the first reasons, its domain, and what decided each body.
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
    form = checked_form(path, form, template)
    if form not in WRITERS:
        return write_parameters(source, path, allow_infeasible=allow_infeasible, form=form, untrusted=untrusted)
    label = label_of(source, untrusted)
    robot = source if isinstance(source, Robot) else source.identified_robot
    found = WRITERS[form](robot, path, template=template, allow_infeasible=allow_infeasible, label=label)
    return [*([] if label is None else label.warnings), *found]


def checked_form(path: str | Path, form: str | None, template: str | Path | None) -> str:
    """The format that is given or that the ending names, if there is such a one and it can have the template."""
    form = form or ENDINGS.get(Path(path).suffix.lower())
    known = list(dict.fromkeys(ENDINGS.values()))
    if form is None:
        raise WrongFormat(f"the ending of '{path}' names no format: use one of {', '.join(ENDINGS)}")
    if form not in known:
        raise UnknownName(f"format '{form}' is unknown: use {', '.join(known)}{did_you_mean(form, known)}", "form")
    if template is not None and form not in TEMPLATES:
        raise NotApplicable(f"a template is for {', '.join(TEMPLATES)}, not for {form}", "template")
    return form
