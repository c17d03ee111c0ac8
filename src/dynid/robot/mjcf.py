"""Reader of MJCF files (the format of MuJoCo).

Where MuJoCo is installed its compiler reads the file, otherwise a light reader takes what needs no compiler. Both give
the same robot: q is MuJoCo's qpos, reference positions included, except for a free base, whose quaternion is
(x, y, z, w) and whose velocity is in the body frame, and for ball joints. Links keep the frames of MuJoCo's bodies.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ModelError, keyword
from dynid.robot.chains import Step, add_chain, ball
from dynid.robot.constraints import JointEquality
from dynid.robot.drives import FileDrives
from dynid.robot.equalities import with_equalities
from dynid.robot.extent import joined_boxes, moved_box, with_extents
from dynid.robot.inertia import move_inertia
from dynid.robot.lock import lock_joints
from dynid.robot.mjcf_files import check_requests, include_files
from dynid.robot.mjcf_shapes import geom_box, mesh_files
from dynid.robot.mjcf_values import MACROS, NEEDS_MUJOCO, Item, body_items, changing_setting, read_settings
from dynid.robot.model import Robot
from dynid.robot.notes import chain_notes
from dynid.robot.parts import Frame, Joint, Limits, Link, Merge, read_limits
from dynid.robot.shafts import shaft_term
from dynid.robot.spatial import axis_rotation, clean, placement
from dynid.robot.xmlfile import attribute, choice, numbers

__all__ = ["read_light", "read_mjcf"]


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
    try:
        robot, drives = read_light(root, path, name, ignore_loops=ignore_loops)
    except ModelError as error:
        # The light reader names the element at fault, unless it asks for MuJoCo, which has refused the file.
        raise (refused if refused and NEEDS_MUJOCO in str(error) else error) from None
    return replace(robot, notes=(*([f"{reason}; it was read without MuJoCo"] if reason else []), *robot.notes)), drives


# Light reader of MJCF files, with the semantics of MuJoCo's compiler, for installations without MuJoCo.

Array = NDArray[np.float64]

# Attributes that act on a ball joint as a whole.
_PASSIVE = ("armature", "damping", "frictionloss", "stiffness", "range")


class _Hanging(NamedTuple):
    """A body still to be read; its pose is relative to placement `on` in link `carrier` (None for a free body)."""

    item: Item
    carrier: int | None
    on: Array


def read_light(root: ET.Element, path: Path, name: str, *, ignore_loops: bool) -> tuple[Robot, FileDrives]:
    """Robot and drive values of an MJCF file whose includes are resolved."""
    for element in root.iter():
        if element.tag in MACROS:
            raise ModelError(f"<{element.tag}> {NEEDS_MUJOCO}", code="missing_package")
    setting = changing_setting(root)
    if setting:
        raise ModelError(f"the compiler setting {setting} {NEEDS_MUJOCO}", code="missing_package")
    tree = _Tree(root, path.parent)
    robot = Robot(
        name=name,
        links=tuple(tree.links),
        joints=tuple(tree.joints),
        gravity=_gravity(root),
        base="floating" if tree.floating else "fixed",
        frames=tuple(tree.frames),
        merged=tuple(tree.merged),
    )
    equalities, notes = _equalities(root, tree.references, ignore_loops)
    robot, held, _ = with_equalities(with_extents(robot, tree.boxes), equalities)
    springs = tuple(shaft_term(robot, "k", name, {name: 1.0}, *spring) for name, spring in tree.springs.items())
    robot = replace(robot, drives=springs, notes=(*tree.notes, *notes, *_unread(root)))
    return lock_joints(robot, held) if held else robot, tree.drives


def _unread(root: ET.Element) -> list[str]:
    """A sentence on what needs MuJoCo to be read and was left out."""
    found = [tag for tag in ("actuator", "tendon", "keyframe") if any(len(e) for e in root.findall(tag))]
    found += ["gravity compensation"] if any("gravcomp" in e.attrib for e in root.iter("body")) else []
    return [f"what the file says of {', '.join(found)} was left out: its reading {NEEDS_MUJOCO}"] if found else []


def _gravity(root: ET.Element) -> Array:
    out = np.array([0.0, 0.0, -9.81])
    for option in root.findall("option"):
        if "gravity" in option.attrib:
            out = numbers(option.get("gravity"), 3, "option, gravity")
        if any(flag.get("gravity") == "disable" for flag in option.findall("flag")):
            return np.zeros(3)
    return out


def _equalities(
    root: ET.Element, references: Mapping[str, float], ignore_loops: bool
) -> tuple[list[JointEquality], list[str]]:
    """Linear equalities between joints, which MuJoCo defines relative to the reference positions."""
    out, notes = [], []
    for element in (e for section in root.findall("equality") for e in section):
        where = f"the {element.tag} equality of '{element.get('joint1', element.get('body1', ''))}'"
        if element.get("active") == "false":
            notes.append(f"{where} is not active and was left out")
            continue
        given = element.get("polycoef", "").split()
        given += ["0", "1", "0", "0", "0"][len(given) :]
        constant, ratio, *higher = numbers(" ".join(given), 5, f"{where}, polycoef")
        if element.tag != "joint" or (any(higher) and "joint2" in element.attrib):
            if not ignore_loops:
                raise ModelError(
                    f"{where} closes a loop, which {NEEDS_MUJOCO}; {keyword('ignore_loops', True)} leaves it out",
                    code="missing_package",
                )
            notes.append(f"{where} closes a loop, which was ignored")
            continue
        follower, leader = attribute(element, "joint1", where), element.get("joint2")
        if leader == follower:
            raise ModelError(f"{where} ties the joint to itself")
        for name in (follower, leader):
            if name is not None and name not in references:
                raise ModelError(f"a joint equality refers to an unknown joint '{name}'", code="unknown_name")
        value, given_name = references[follower] + constant, element.get("name", "")
        if leader is None:
            out.append(JointEquality({follower: 1.0}, (value,), name=given_name))
        else:
            line = value - ratio * references[leader], ratio
            out.append(JointEquality({follower: 1.0}, line, {leader: 1.0}, given_name))
    return out, notes


class _Tree:
    """Bodies and joints of a file, read depth first."""

    def __init__(self, root: ET.Element, folder: Path) -> None:
        self.settings = read_settings(root)
        self.boxes: dict[str, Array | None] = {}
        self._meshes = mesh_files(root, self.settings, folder)
        self.links = [Link("world", np.zeros(10))]
        self.joints: list[Joint] = []
        self.frames: list[Frame] = []
        self.merged: list[Merge] = []
        self.drives: FileDrives = {}
        self.references: dict[str, float] = {}
        self.springs: dict[str, tuple[float, float]] = {}  # stiffness and rest position
        self.notes: list[str] = []
        self._bodies: set[str] = set()
        items = [item for world in root.findall("worldbody") for item in body_items(self.settings, world, None)]
        tops = [item for item in items if item.element.tag == "body"]
        flying = [item for item in tops if any(e.tag == "freejoint" or e.get("type") == "free" for e in item.element)]
        moving = [item for item in tops if any(e.tag in ("joint", "freejoint") for e in item.element.iter())]
        if flying and len(moving) > 1:
            names = ", ".join(f"'{item.element.get('name', '')}'" for item in moving)
            raise ModelError(
                f"a free body and other moving bodies ({names}) {NEEDS_MUJOCO.replace('needs', 'need')}",
                code="missing_package",
            )
        self.floating = bool(flying)
        todo = [_Hanging(item, None if flying else 0, np.eye(4)) for item in flying or tops]
        while todo:
            todo = self._read(todo[0]) + todo[1:]

    def _read(self, body: _Hanging) -> list[_Hanging]:
        """Add one body to the tree; returns its child bodies, still to be read."""
        element, frame, childclass = body.item
        name = element.get("name") or f"body{len(self._bodies) + 1}"
        if name in self._bodies:
            raise ModelError(f"the file has two bodies named '{name}'", code="duplicate")
        self._bodies.add(name)
        where = f"body '{name}'"
        place = body.on @ frame @ self.settings.pose(element.attrib, where)
        items = list(body_items(self.settings, element, childclass))
        joints = [item for item in items if item.element.tag in ("joint", "freejoint")]
        static = body.carrier == 0 and not joints and not self.floating
        inertia = self._inertia(element, items, static, where)
        self._measure(name, items)
        if body.carrier is None:
            if len(joints) != 1:
                raise ModelError(f"{where} has other joints in addition to its free joint")
            self.links = [Link(name, inertia)]
            carrier, on = 0, np.eye(4)
        elif joints:
            carrier, on = self._hang(name, inertia, joints, body.carrier, place), np.eye(4)
        else:
            carrier, on = body.carrier, clean(place)
            link = self.links[carrier]
            self.links[carrier] = replace(link, inertia=link.inertia + move_inertia(inertia, on))
            self.frames.append(Frame(name, carrier, on))
            self.merged.append(Merge(name, f"{name}_fixed", link.name, float(inertia[0])))
        for item in items:
            if item.element.tag == "site" and item.element.get("name"):
                given = self.settings.attributes(item.element, item.childclass)
                pose = self.settings.pose(given, f"site '{given['name']}'")
                self.frames.append(Frame(given["name"], carrier, on @ item.pose @ pose))
        return [_Hanging(item, carrier, on) for item in items if item.element.tag == "body"]

    def _inertia(self, element: ET.Element, items: list[Item], static: bool, where: str) -> Array:
        """Inertial parameters of a body, given or summed over its shapes."""
        inertial, source = element.find("inertial"), self.settings.inertia_from_geom
        if inertial is not None and source != "true":
            return self.settings.inertial(inertial, where)
        total = np.zeros(10)
        for item in items:
            if item.element.tag != "geom" or source == "false":
                continue
            given = self.settings.attributes(item.element, item.childclass)
            shape = self.settings.shape_inertia(given, f"{where}, geom '{given.get('name', '')}'")
            if shape is not None:
                total += move_inertia(shape, item.pose)
            elif not static:
                raise ModelError(
                    f"{where} has the inertia of a {given.get('type', 'mesh')}, which {NEEDS_MUJOCO}; or give it an "
                    "<inertial> element",
                    code="missing_package",
                )
        return total

    def _measure(self, name: str, items: list[Item]) -> None:
        """Note the box around the shapes of a body: those that collide, or all where none does."""
        geoms = [item for item in items if item.element.tag == "geom"]
        given = [self.settings.attributes(item.element, item.childclass) for item in geoms]
        solid = [any(g.get(key, "1") != "0" for key in ("contype", "conaffinity")) for g in given]
        boxes = []
        for item, attributes, collides in zip(geoms, given, solid, strict=True):
            if collides or not any(solid):
                box = geom_box(self.settings, attributes, self._meshes)
                boxes.append(None if box is None else moved_box(box, item.pose))
        if boxes:
            self.boxes[name] = joined_boxes(boxes)

    def _hang(self, name: str, inertia: Array, items: list[Item], parent: int, place: Array) -> int:
        """Add a body with its joints, one after the other; all but the last carry a virtual link."""
        for k, item in enumerate(items):
            element = item.element
            given = self.settings.attributes(element, item.childclass)
            joint = element.get("name") or f"{name}_joint{k + 1 if len(items) > 1 else ''}"
            where = f"joint '{joint}'"
            kind = "free" if element.tag == "freejoint" else given.get("type", "hinge")
            choice(kind, ("hinge", "slide", "ball"), f"{where}, type")
            axis = item.pose[:3, :3] @ numbers(given.get("axis", "0 0 1"), 3, f"{where}, axis")
            if np.linalg.norm(axis) < 1e-9:
                raise ModelError(f"{where} has a zero axis")
            axis /= np.linalg.norm(axis)
            at = item.pose[:3, :3] @ numbers(given.get("pos", "0 0 0"), 3, f"{where}, pos") + item.pose[:3, 3]
            reference = float(numbers(given.get("ref", "0"), 1, f"{where}, ref")[0])
            last = k == len(items) - 1
            link = Link(name, inertia) if last else Link(f"{joint}.virtual", np.zeros(10), virtual=True)
            limits = {}
            back = np.eye(4)
            if kind == "ball":
                steps = ball(inertia[1:4] - inertia[0] * at if last else None)
                found = [key for key in _PASSIVE if given.get(key, "0").strip("0. ")]
                self.notes += chain_notes(f"ball joint '{joint}'", [joint + step.suffix for step in steps], found)
            else:
                steps = [Step("", "revolute" if kind == "hinge" else "prismatic", axis)]
                reference = self.settings.angle(reference) if kind == "hinge" else reference
                turn = axis_rotation(axis, -reference) if kind == "hinge" else None
                back = placement(turn, None if kind == "hinge" else -reference * axis)
                limits[""] = self._limits(given, kind, joint)
                self.references[joint] = reference
                self._read_drive(given, kind, joint)
            before = clean(place @ placement(None, at) @ back)
            add_chain(self.joints, self.links, joint, steps, parent, before, placement(None, -at), link, limits)
            parent, place = len(self.links) - 1, np.eye(4)
        return parent

    def _read_drive(self, given: Mapping[str, str], kind: str, joint: str) -> None:
        """Note armature, damping, friction and the spring of a joint."""
        for key in ("stiffness", "damping"):
            if len(given.get(key, "").split()) > 1:
                raise ModelError(f"a polynomial {key} {NEEDS_MUJOCO}", code="missing_package", where=f"joint '{joint}'")
        if "springdamper" in given:
            raise ModelError(f"springdamper {NEEDS_MUJOCO}", code="missing_package", where=f"joint '{joint}'")
        keys = {"Ia": "armature", "fv": "damping", "fc": "frictionloss", "k": "stiffness", "rest": "springref"}
        value = {
            symbol: float(numbers(given.get(key, "0"), 1, f"joint '{joint}', {key}")[0]) for symbol, key in keys.items()
        }
        self.drives[joint] = {symbol: value[symbol] for symbol in ("Ia", "fv", "fc")}
        if value["k"]:
            self.springs[joint] = value["k"], self.settings.angle(value["rest"]) if kind == "hinge" else value["rest"]

    def _limits(self, given: dict[str, str], kind: str, joint: str) -> Limits:
        limits: dict[str, Any] = {}
        for key, flag, ours in (("range", "limited", "position"), ("actuatorfrcrange", "actuatorfrclimited", "effort")):
            if key not in given:
                continue
            word = choice(given.get(flag, "auto"), ("true", "false", "auto"), f"joint '{joint}', {flag}")
            if word == "true" or (word == "auto" and self.settings.autolimits):
                limits[ours] = numbers(given[key], 2, f"joint '{joint}', {key}")
        if kind == "hinge" and "position" in limits:
            limits["position"] = [self.settings.angle(x) for x in limits["position"]]
        if "effort" in limits:
            limits["effort"] = min(abs(limits["effort"]))
        return read_limits(joint, limits)
