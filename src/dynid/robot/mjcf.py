"""Reader of MJCF files (the format of MuJoCo), with the semantics of MuJoCo's compiler.

q is MuJoCo's qpos, reference positions included, except for a free base: its quaternion is (x, y, z, w) and its
velocity is in the body frame. Links keep the frames of MuJoCo's bodies.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ModelError
from dynid.robot.drives import FileDrives
from dynid.robot.extent import joined_boxes, moved_box, with_extents
from dynid.robot.inertia import move_inertia
from dynid.robot.mjcf_shapes import geom_box, mesh_files
from dynid.robot.mjcf_values import read_settings
from dynid.robot.model import Robot
from dynid.robot.parts import Frame, Joint, Limits, Link, Merge, Mimic, fold_mimics, read_limits
from dynid.robot.spatial import axis_rotation, clean, placement
from dynid.robot.xmlfile import attribute, choice, numbers, read_xml

__all__ = ["include_files", "read_mjcf"]

Array = NDArray[np.float64]

# Elements that MuJoCo's compiler expands into bodies and joints.
_MACROS = ("attach", "composite", "flexcomp", "replicate")


class _Item(NamedTuple):
    """An element of a body, the pose of its enclosing <frame>s in the body, and the active default class."""

    element: ET.Element
    pose: Array
    childclass: str | None


class _Hanging(NamedTuple):
    """A body still to be read; its pose is relative to placement `on` in link `carrier` (None for a free body)."""

    item: _Item
    carrier: int | None
    on: Array


def read_mjcf(root: ET.Element, path: Path) -> tuple[Robot, FileDrives]:
    """Robot and drive values of an MJCF file. Joint equalities become mimic joints."""
    if root.tag != "mujoco":
        raise ModelError(f"{path.name} is not an MJCF file: its root element is <{root.tag}>, not <mujoco>")
    include_files(root, path.parent, {path.resolve()})
    for element in root.iter():
        if element.tag in _MACROS:
            raise ModelError(f"<{element.tag}> is not supported: save the model from MuJoCo and load that file")
    tree = _Tree(root, path.parent)
    mimics = _mimics(root, tree.references)
    robot = Robot(
        name=root.get("model") or path.stem,
        links=tuple(tree.links),
        joints=tuple(replace(j, mimic=mimics.get(j.name)) for j in tree.joints),
        gravity=_gravity(root),
        base="floating" if tree.floating else "fixed",
        frames=tuple(tree.frames),
        merged=tuple(tree.merged),
    )
    return with_extents(robot, tree.boxes), tree.drives


def include_files(element: ET.Element, folder: Path, seen: set[Path]) -> None:
    """Replace <include> elements by the content of their files."""
    content = []
    for child in element:
        if child.tag != "include":
            include_files(child, folder, seen)
            content.append(child)
            continue
        name = attribute(child, "file", "an include")
        path = (folder / name).resolve()
        if path in seen:
            raise ModelError(f"'{name}' is included twice")
        if not path.is_file():
            raise ModelError(f"the included file '{name}' does not exist")
        seen.add(path)
        inner = read_xml(path)
        include_files(inner, folder, seen)
        content += list(inner)
    element[:] = content


def _gravity(root: ET.Element) -> Array:
    out = np.array([0.0, 0.0, -9.81])
    for option in root.findall("option"):
        if "gravity" in option.attrib:
            out = numbers(option.get("gravity"), 3, "option, gravity")
        if any(flag.get("gravity") == "disable" for flag in option.findall("flag")):
            return np.zeros(3)
    return out


def _mimics(root: ET.Element, references: dict[str, float]) -> dict[str, Mimic]:
    """Mimic joints from joint equalities, which MuJoCo defines relative to the reference positions."""
    out: dict[str, Mimic] = {}
    for element in (e for section in root.findall("equality") for e in section):
        if element.get("active") == "false":
            continue
        if element.tag != "joint":
            raise ModelError(f"equality <{element.tag}> is not supported: only linear joint equalities are")
        follower = attribute(element, "joint1", "a joint equality")
        leader = attribute(element, "joint2", f"the equality of joint '{follower}'")
        for name in (follower, leader):
            if name not in references:
                raise ModelError(f"a joint equality refers to an unknown joint '{name}'")
        given = element.get("polycoef", "").split()
        given += ["0", "1", "0", "0", "0"][len(given) :]
        constant, ratio, *higher = numbers(" ".join(given), 5, f"equality of joint '{follower}', polycoef")
        if any(higher):
            raise ModelError(f"the equality between joints '{follower}' and '{leader}' is not linear")
        if follower in out:
            raise ModelError(f"joint '{follower}' follows two joints, '{out[follower].leader}' and '{leader}'")
        out[follower] = Mimic(leader, ratio, references[follower] + constant - ratio * references[leader])
    return fold_mimics(out)


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
        self._bodies: set[str] = set()
        items = [item for world in root.findall("worldbody") for item in self._items(world, None)]
        tops = [item for item in items if item.element.tag == "body"]
        if not tops:
            raise ModelError("the file has no bodies")
        flying = [item for item in tops if any(e.tag == "freejoint" or e.get("type") == "free" for e in item.element)]
        moving = [item for item in tops if any(e.tag in ("joint", "freejoint") for e in item.element.iter())]
        if flying and len(moving) > 1:
            names = ", ".join(f"'{item.element.get('name', '')}'" for item in moving)
            raise ModelError(
                f"a free body and other moving bodies ({names}) are not supported: the file must hold one tree"
            )
        self.floating = bool(flying)
        todo = [_Hanging(item, None if flying else 0, np.eye(4)) for item in flying or tops]
        while todo:
            todo = self._read(todo[0]) + todo[1:]

    def _items(self, body: ET.Element, childclass: str | None, pose: Array | None = None) -> Iterator[_Item]:
        """The elements of a body, including those inside its <frame>s."""
        pose = np.eye(4) if pose is None else pose
        inner = body.get("childclass", childclass)
        for element in body:
            if element.tag == "frame":
                here = self.settings.pose(element.attrib, f"frame '{element.get('name', '')}'")
                yield from self._items(element, inner, pose @ here)
            else:
                yield _Item(element, pose, inner)

    def _read(self, body: _Hanging) -> list[_Hanging]:
        """Add one body to the tree; returns its child bodies, still to be read."""
        element, frame, childclass = body.item
        name = element.get("name") or f"body{len(self._bodies) + 1}"
        if name in self._bodies:
            raise ModelError(f"the file has two bodies named '{name}'")
        self._bodies.add(name)
        where = f"body '{name}'"
        place = body.on @ frame @ self.settings.pose(element.attrib, where)
        items = list(self._items(element, childclass))
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

    def _inertia(self, element: ET.Element, items: list[_Item], static: bool, where: str) -> Array:
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
                    f"{where} has the inertia of a {given.get('type', 'mesh')}, which is not computed here: give it an "
                    '<inertial> element, as MuJoCo saves it with saveinertial="true"'
                )
        return total

    def _measure(self, name: str, items: list[_Item]) -> None:
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

    def _hang(self, name: str, inertia: Array, items: list[_Item], parent: int, place: Array) -> int:
        """Add a body with its joints, one after the other; all but the last carry a virtual link."""
        for k, item in enumerate(items):
            element = item.element
            given = self.settings.attributes(element, item.childclass)
            joint = element.get("name") or f"{name}_joint{k + 1 if len(items) > 1 else ''}"
            where = f"joint '{joint}'"
            kind = "free" if element.tag == "freejoint" else given.get("type", "hinge")
            if kind not in ("hinge", "slide"):
                raise ModelError(f"{where} is of kind '{kind}', not supported: use hinge, slide or one free base")
            axis = item.pose[:3, :3] @ numbers(given.get("axis", "0 0 1"), 3, f"{where}, axis")
            if np.linalg.norm(axis) < 1e-9:
                raise ModelError(f"{where} has a zero axis")
            axis /= np.linalg.norm(axis)
            at = item.pose[:3, :3] @ numbers(given.get("pos", "0 0 0"), 3, f"{where}, pos") + item.pose[:3, 3]
            reference = float(numbers(given.get("ref", "0"), 1, f"{where}, ref")[0])
            if kind == "hinge":
                reference = self.settings.angle(reference)
                back = placement(axis_rotation(axis, -reference), None)
            else:
                back = placement(None, -reference * axis)
            before = clean(place @ placement(None, at) @ back)
            self.joints.append(
                Joint(
                    joint,
                    "revolute" if kind == "hinge" else "prismatic",
                    parent,
                    before,
                    axis,
                    placement(None, -at),
                    self._limits(given, kind, joint),
                )
            )
            last = k == len(items) - 1
            self.links.append(Link(name, inertia) if last else Link(f"{joint}.virtual", np.zeros(10), virtual=True))
            self.references[joint] = reference
            self.drives[joint] = {
                symbol: float(numbers(given.get(key, "0"), 1, f"{where}, {key}")[0])
                for symbol, key in (("Ia", "armature"), ("fv", "damping"), ("fc", "frictionloss"))
            }
            parent, place = len(self.links) - 1, np.eye(4)
        return parent

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
