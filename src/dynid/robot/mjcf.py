"""Reader of MJCF files (the format of MuJoCo).

Where MuJoCo is installed its compiler reads the file, otherwise a light reader takes what needs no compiler. Both give
the same robot: q is MuJoCo's qpos, reference positions included, except for a free base, whose quaternion is
(x, y, z, w) and whose velocity is in the body frame, and for ball joints. Links keep the frames of MuJoCo's bodies.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from dynid.errors import ModelError
from dynid.robot.drives import FileDrives
from dynid.robot.mjcf_files import check_requests, include_files
from dynid.robot.mjcf_values import NEEDS_MUJOCO
from dynid.robot.model import Robot

__all__ = ["read_mjcf"]


def read_mjcf(root: ET.Element, path: Path, *, ignore_loops: bool = False) -> tuple[Robot, FileDrives]:
    """Robot and drive values of an MJCF file, through MuJoCo's compiler where it is installed."""
    if root.tag != "mujoco":
        raise ModelError(
            f"{path.name} is not an MJCF file: its root element is <{root.tag}>, not <mujoco>", code="file_format"
        )
    name, reason, refused = root.get("model") or path.stem, "", None
    include_files(root, path, {path.resolve()})
    check_requests(root, path)
    # MuJoCo writes a log file beside the user's data where a file holds NaN; the light reader names the element.
    nan = any("nan" in value.lower().split() for element in root.iter() for value in element.attrib.values())
    if find_spec("mujoco") is not None and not nan:
        from dynid.robot.mjcf_compiled import NotCompiled, read_compiled

        try:
            return read_compiled(path, name, ignore_loops=ignore_loops)
        except NotCompiled as error:
            refused, reason = error, str(error)
    from dynid.robot.mjcf_light import read_light

    try:
        robot, drives = read_light(root, path, name, ignore_loops=ignore_loops)
    except ModelError as error:
        # The light reader names the element at fault, unless it asks for MuJoCo, which has refused the file.
        raise (refused if refused and NEEDS_MUJOCO in str(error) else error) from None
    return replace(robot, notes=(*([f"{reason}; it was read without MuJoCo"] if reason else []), *robot.notes)), drives
