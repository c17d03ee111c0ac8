"""MJCF files (MuJoCo's format), read through Pinocchio."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pinocchio as pin

from dynid.errors import ModelError
from dynid.robot.model import Robot
from dynid.robot.parts import Mimic
from dynid.robot.pinocchio import robot_from_model

__all__ = ["read_mjcf"]


def read_mjcf(path: Path) -> tuple[Robot, pin.Model]:
    """Robot of an MJCF file and the Pinocchio model it went through.

    Joint equalities with a linear polynomial become mimic joints.
    """
    try:
        root = ET.parse(path).getroot()
    except ET.ParseError as error:
        raise ModelError(f"{path.name} is not well-formed XML: {error}") from None
    if root.tag != "mujoco":
        raise ModelError(f"{path.name} is not an MJCF file: its root element is <{root.tag}>, not <mujoco>")
    for joint in root.iter("joint"):
        kind = joint.get("type", "hinge")
        if kind not in ("hinge", "slide", "free"):
            raise ModelError(
                f"joint '{joint.get('name', '?')}' is of kind '{kind}', not supported: use hinge, slide or free"
            )
    try:
        with _quiet():
            model = pin.buildModelFromMJCF(str(path))
    except (RuntimeError, ValueError) as error:
        raise ModelError(f"{path.name} cannot be read as MJCF: {str(error).strip().splitlines()[0]}") from None
    robot = robot_from_model(model, root.get("model") or path.stem)
    return _with_equalities(robot, root), model


def _with_equalities(robot: Robot, root: ET.Element) -> Robot:
    mimics: dict[str, Mimic] = {}
    names = {j.name for j in robot.joints}
    for element in root.findall("equality/joint"):
        follower, leader = element.get("joint1", ""), element.get("joint2", "")
        for name in (follower, leader):
            if name not in names:
                raise ModelError(f"a joint equality refers to an unknown joint '{name}'")
        coefficients = [float(x) for x in element.get("polycoef", "0 1 0 0 0").split()]
        coefficients += [0.0] * (5 - len(coefficients))
        if any(coefficients[2:]):
            raise ModelError(f"joint '{follower}' follows '{leader}' by a polynomial that is not linear")
        mimics[follower] = Mimic(leader, coefficients[1], coefficients[0])
    if not mimics:
        return robot
    return replace(robot, joints=tuple(replace(j, mimic=mimics.get(j.name)) for j in robot.joints))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the parser's own chatter on standard error away; its exception says enough."""
    sys.stderr.flush()
    keep = os.dup(2)
    with tempfile.TemporaryFile() as sink:
        os.dup2(sink.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(keep, 2)
            os.close(keep)
