"""Files of a calibrated robot: URDF, MJCF and SDF, tables, and the kinematics of Universal Robots' driver."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from numpy.typing import ArrayLike

from dynid.errors import MissingArgument, NotApplicable, UnknownName, WrongFormat, did_you_mean
from dynid.export.endings import TEMPLATES
from dynid.export.label import Label, labelled
from dynid.export.mjcf import missing_meshes
from dynid.export.model_file import WRITERS
from dynid.files import write_text, writing
from dynid.geometry.corrected import corrected_robot, lost_errors
from dynid.geometry.hartenberg import dh_table
from dynid.geometry.origins import PATCHERS
from dynid.geometry.tables import ur_kinematics, zero_offsets, zeros_text
from dynid.geometry.unknowns import Unknown
from dynid.robot.model import Robot

__all__ = ["write_calibrated"]

_ENDINGS = {".urdf": "urdf", ".xml": "mjcf", ".mjcf": "mjcf", ".sdf": "sdf", ".yaml": "ur", ".yml": "ur"}
_TABLES = ("dh", "mdh", "zeros", "ur")
_TAGS = {"urdf": "link", "mjcf": "body", "sdf": "link"}


def write_calibrated(
    path: str | Path,
    robot: Robot,
    unknowns: Sequence[Unknown],
    values: ArrayLike,
    *,
    template: str | Path | None = None,
    form: str | None = None,
    covariance: ArrayLike | None = None,
    frame: str | None = None,
    bodies: Robot | None = None,
    label: Label | None = None,
    checksum: str = "",
    allow_infeasible: bool = False,
) -> list[str]:
    """Write a calibrated robot as a robot file or as a table.

    Parameters
    ----------
    path : str or Path
        File to write. Its ending names the format: .urdf, .xml or .mjcf, .sdf, .yaml (kinematics of Universal Robots).
    robot : Robot
        The robot of the file, before its calibration.
    unknowns : sequence of Unknown
        What differs.
    values : array_like, shape (K,)
        By how much.
    template : str or Path, optional
        URDF, MJCF or SDF file of the same robot. Its text is kept, with meshes, frames, fixed links and comments, and
        only the origins of joints change. Without it the file is made from the tree.
    form : str, optional
        Format where the ending does not name it: urdf, mjcf, sdf, ur, dh (Denavit-Hartenberg), mdh (modified), or zeros
        (zero offsets as CSV).
    covariance : array_like, shape (K, K), optional
        Covariance of the values, for tables.
    frame : str, optional
        Link or frame that is the tool; for tables of a chain, and for sentences on what the file cannot hold.
    bodies : Robot, optional
        Robot whose bodies load the joints, the same by default.
    label : Label, optional
        What a robot file says of the estimate at its top.
    checksum : str
        Hash of the robot's own calibration, for "ur".
    allow_infeasible : bool
        Write bodies that are not physically consistent, where there is no template.

    Returns
    -------
    list of str
        Warnings: errors of the geometry that the file cannot hold, with what they do to the tool, and those of the
        format.

    Raises
    ------
    WrongFormat, UnknownName
        If nothing names the format.
    NotApplicable
        If a template is given for a table.
    MissingArgument
        If a table of a chain has no frame.
    ModelError
        If the template is a file of another robot.

    Examples
    --------
    >>> import dynid, tempfile
    >>> from dynid.geometry import Unknown, write_calibrated
    >>> robot = dynid.load_robot("twolink")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     longer = Unknown("position", "joint2", "x", "m")
    ...     warnings = write_calibrated(f"{folder}/arm.urdf", robot, [longer], [0.001])
    ...     back = dynid.load_robot(f"{folder}/arm.urdf")
    >>> round(float(back.joints[1].placement[0, 3] - robot.joints[0].mount[0, 3]), 6)
    0.001
    """
    form = _form(path, form, template)
    told = [] if frame is None else lost_errors(robot, unknowns, values, frame, bodies=bodies)
    if form in _TABLES:
        write_text(path, _table(form, robot, unknowns, values, covariance, frame, checksum))
        return [] if form == "zeros" else told
    corrected = corrected_robot(robot, unknowns, values)
    if template is None:
        return told + WRITERS[form](corrected, path, allow_infeasible=allow_infeasible, label=label)
    content = PATCHERS[form](robot, corrected, Path(template))
    with writing(path) as part:
        part.write_bytes(labelled(content, _TAGS[form], label, template))
    return told + (missing_meshes(content, path, template) if form == "mjcf" else [])


def _form(path: str | Path, form: str | None, template: str | Path | None) -> str:
    """The format that is given or that the ending names."""
    form = form or _ENDINGS.get(Path(path).suffix.lower())
    known = [*TEMPLATES, *_TABLES]
    if form is None:
        raise WrongFormat(f"the ending of '{path}' names no format: give one of {', '.join(known)}", "form")
    if form not in known:
        raise UnknownName(f"format '{form}' is unknown: use {', '.join(known)}{did_you_mean(form, known)}", "form")
    if template is not None and form not in TEMPLATES:
        raise NotApplicable(f"a template is for {', '.join(TEMPLATES)}, not for {form}", "template")
    return form


def _table(
    form: str,
    robot: Robot,
    unknowns: Sequence[Unknown],
    values: ArrayLike,
    covariance: ArrayLike | None,
    frame: str | None,
    checksum: str,
) -> str:
    if form == "zeros":
        return zeros_text(zero_offsets(robot, unknowns, values, covariance))
    if frame is None:
        raise MissingArgument(f"format '{form}' is of a chain: name the link or frame that it carries", "frame")
    if form == "ur":
        return ur_kinematics(robot, unknowns, values, frame, checksum=checksum)
    convention: Literal["standard", "modified"] = "standard" if form == "dh" else "modified"
    return dh_table(robot, unknowns, values, covariance, frame=frame, convention=convention).text()
