"""The arms of the da Vinci Research Kit as robots: with their linkages as closed loops, or with couplings by hand."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.robot.constraints import Loop, LoopKind
from dynid.robot.drives import DriveTerm
from dynid.robot.elements import ForceElement
from dynid.robot.model import Robot
from dynid.robot.parts import Frame, Joint, Link, Mimic
from studies.reproduce.study import published

__all__ = ["Form", "mtm", "psm"]

Array = NDArray[np.float64]

_AXIS = np.array([0.0, 0.0, 1.0])
_SYMBOLS = {"I": ("Ia",), "f": ("fv", "fc", "off")}


class Form(StrEnum):
    """How the parallelograms are described."""

    LOOPS = "loops"  # bars on passive joints, closed by pins
    COUPLINGS = "couplings"  # every bar follows the driven joints by ratios that are worked out by hand


def psm(form: Form = Form.LOOPS, *, instrument: bool = True) -> Robot:
    """Patient side manipulator: eight bodies, and the shafts of the instrument unless left out, in motor positions."""
    known = published("dvrk")["psm"]
    robot = _arm("psm", known, form, instrument)
    if not instrument:
        return robot
    return robot.with_terms(robot.joint_term(known["spring"], "k"))


def mtm(form: Form = Form.LOOPS) -> Robot:
    """Master tool manipulator: nine bodies, with the spring of the gimbal."""
    known = published("dvrk")["mtm"]
    spring = known["element"]
    far, near = spring["arms"]
    angle = np.radians(spring["angle"])
    points = ((far, 0.0, 0.0), (near * np.cos(angle), -near * np.sin(angle), 0.0))
    element = ForceElement(spring["name"], tuple(spring["links"]), points, stiffness=0.0, rest=spring["rest"])
    return _arm("mtm", known, form, instrument=True).with_elements(element)


def _arm(name: str, known: Mapping[str, Any], form: Form, instrument: bool) -> Robot:
    links, joints = [Link("base", np.zeros(10))], []
    for row in known["links"]:
        parts = _parts(row, form)
        parent = next(i for i, link in enumerate(links) if link.name == row["parent"])
        place = _place(row)
        for i, (joint, mimic) in enumerate(parts):
            last = i == len(parts) - 1
            kind: Any = "prismatic" if row.get("slides") else "revolute"
            joints.append(Joint(joint, kind, parent, place, _AXIS, mimic=mimic))
            links.append(Link(row["name"] if last else f"{row['name']}_{i}", np.zeros(10), virtual=not last))
            parent, place = len(links) - 1, np.eye(4)
    for motor in known.get("motors", ()) if instrument else ():
        joints.append(Joint(motor, "revolute", 0, np.eye(4), _AXIS))
        links.append(Link(f"shaft of {motor}", np.zeros(10), virtual=True))
    robot = Robot(name, tuple(links), tuple(joints))
    robot = robot.with_terms(*_terms(robot, known, form, instrument))
    if form == Form.COUPLINGS:
        return robot
    pins = [
        Loop(LoopKind.CONNECT, _frame(robot, x["first"], x["at"]), _frame(robot, x["second"], x["on"]), name=x["name"])
        for x in known["pins"]
    ]
    return robot.with_loops(pins, passive=[row["name"] for row in known["links"] if row.get("passive")])


def _parts(row: Mapping[str, Any], form: Form) -> list[tuple[str, Mimic | None]]:
    """Joints in line that move a link: one per joint that it follows, then its own."""
    if row.get("passive") and form == Form.LOOPS:
        return [(row["name"], None)]
    out: list[tuple[str, Mimic | None]] = [
        (f"{row['name']}_{joint}", Mimic(joint, ratio)) for joint, ratio in row.get("follows", {}).items()
    ]
    return out + ([(row["joint"], None)] if "joint" in row else [])


def _terms(robot: Robot, known: Mapping[str, Any], form: Form, instrument: bool) -> list[DriveTerm]:
    """Friction and rotors of links and shafts."""
    shafts = [(row["name"], _motion(row, form), row["terms"]) for row in known["links"] if "terms" in row]
    if instrument:
        shafts += [(row["name"], row["over"], row["terms"]) for row in known["shafts"]]
    out = []
    for name, over, terms in shafts:
        direction = np.array([over.get(joint, 0.0) for joint in robot.tree_coordinates])
        owner = int(np.flatnonzero(direction)[-1])
        out += [DriveTerm(symbol, name, direction, owner) for t in terms for symbol in _SYMBOLS[t]]
    return out


def _motion(row: Mapping[str, Any], form: Form) -> dict[str, float]:
    """Velocity of the shaft of a link per velocity of the joints."""
    if row.get("passive") and form == Form.LOOPS:
        return {row["name"]: 1.0}
    return {**row.get("follows", {}), **({row["joint"]: 1.0} if "joint" in row else {})}


def _frame(robot: Robot, link: str, at: list[float]) -> Frame:
    place = np.eye(4)
    place[:3, 3] = at
    return Frame(f"pin on {link}", robot.link_index(link), place)


def _place(row: Mapping[str, Any]) -> Array:
    """Placement of a modified Denavit-Hartenberg row, behind that of the fixed frame ahead of it."""
    place = _modified(row["a"], np.pi * row["alpha"], row["d"], np.pi * row["theta"])
    ahead = row.get("ahead")
    return place if ahead is None else _modified(ahead["a"], 0.0, 0.0, np.pi * ahead["theta"]) @ place


def _modified(a: float, alpha: float, d: float, theta: float) -> Array:
    ca, sa, ct, st = np.cos(alpha), np.sin(alpha), np.cos(theta), np.sin(theta)
    return np.array([[ct, -st, 0, a], [st * ca, ct * ca, -sa, -d * sa], [st * sa, ct * sa, ca, d * ca], [0, 0, 0, 1.0]])
