"""Reader of SDF files (the format of Gazebo): one model, poses relative to any frame, nested models with scoped names.

As the format defines, a model without a joint to the world has a floating base, and a link without an inertial element
has a mass of one kilogram. Links keep the frames of the file.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ModelError
from dynid.robot.drives import FileDrives
from dynid.robot.extent import sdf_boxes, with_extents
from dynid.robot.inertia import inertia_from_com, move_inertia
from dynid.robot.model import Robot
from dynid.robot.parts import Frame, Joint, Limits, Link, Merge, Mimic, fold_mimics, read_limits
from dynid.robot.sdf_frames import MODEL, WORLD, Scope, child_text, read_pose
from dynid.robot.spatial import clean, inverse_placement
from dynid.robot.urdf import check_tree
from dynid.robot.xmlfile import attribute, numbers

__all__ = ["read_sdf"]

Array = NDArray[np.float64]

_MOVING = ("revolute", "continuous", "prismatic")
_FAR = 1e15  # SDF writes 1e16 or inf where there is no limit


def read_sdf(root: ET.Element, path: Path) -> tuple[Robot, FileDrives]:
    """Robot and drive values of an SDF file."""
    if root.tag != "sdf":
        raise ModelError(f"{path.name} is not an SDF file: its root element is <{root.tag}>, not <sdf>")
    version = _version(root, path.name)
    model, gravity = _one_model(root, path.name)
    scope = Scope(model)
    tree = _Tree(scope, version)
    base = tree.base
    fixed = tree.tied or (model.findtext("static") or "").strip() in ("true", "1")
    turn = np.eye(3)
    if fixed and base != WORLD:  # gravity is expressed in the base frame
        turn = clean((scope.in_world @ scope.pose(base))[:3, :3])
    robot = Robot(
        name=model.get("name") or path.stem,
        links=tuple(tree.links),
        joints=tuple(tree.joints),
        gravity=turn.T @ gravity,
        base="fixed" if fixed else "floating",
        frames=tuple(tree.frames),
        merged=tuple(tree.merged),
    )
    return with_extents(robot, sdf_boxes(scope.links, path)), tree.drives


def _version(root: ET.Element, file: str) -> tuple[int, ...]:
    text = root.get("version", "")
    try:
        return tuple(int(x) for x in text.split("."))
    except ValueError:
        raise ModelError(f"{file} has no SDF version: '{text}'") from None


def _one_model(root: ET.Element, file: str) -> tuple[ET.Element, Array]:
    """The model of a file and the gravity of its world; among several models, the one with joints."""
    gravity = np.array([0.0, 0.0, -9.81])
    models = root.findall("model")
    for world in root.findall("world"):
        models += world.findall("model")
        gravity = numbers(world.findtext("gravity", "0 0 -9.8"), 3, "world, gravity")
    if len(models) > 1:
        models = [m for m in models if next(m.iter("joint"), None) is not None]
    if not models:
        raise ModelError(f"{file} has no model")
    if len(models) > 1:
        names = ", ".join(f"'{m.get('name', '')}'" for m in models)
        raise ModelError(f"{file} has several models with joints ({names}): only one is supported")
    return models[0], gravity


class _Tree:
    """Links and joints of a model; joints in the order of the file, with parents before children."""

    def __init__(self, scope: Scope, version: tuple[int, ...]) -> None:
        self.scope, self.version = scope, version
        self.ends = {name: self._ends(name, joint) for name, joint in scope.joints.items()}
        self.tied = any(parent == WORLD for parent, _ in self.ends.values())
        names = [*([WORLD] if self.tied else []), *scope.links]
        if not scope.links:
            raise ModelError("the model has no links")
        check_tree([(name, *ends) for name, ends in self.ends.items()], names)
        inertia = {name: _inertia(link, name) for name, link in scope.links.items()}
        inertia[WORLD] = np.zeros(10)
        self.base = self._base(names)
        self.links = [Link(self.base, inertia[self.base])]
        self.joints: list[Joint] = []
        self.frames: list[Frame] = []
        self.merged: list[Merge] = []
        self.drives: FileDrives = {}
        mimics = self._mimics()
        on = {self.base: 0}  # link of the file -> index of the link that holds it
        body = {self.base: self.base}
        todo = [name for name, (parent, _) in self.ends.items() if not (parent == WORLD != self.base)]
        while todo:
            name = next(x for x in todo if self.ends[x][0] in on)
            todo.remove(name)
            parent, child = self.ends[name]
            if scope.joints[name].get("type") == "fixed":
                on[child], body[child] = on[parent], body[parent]
                self._merge(name, child, on[child], body[child], inertia[child])
            else:
                self.joints.append(self._joint(name, on[parent], body[parent], child, mimics.get(name)))
                self.links.append(Link(child, inertia[child]))
                on[child], body[child] = len(self.links) - 1, child
                self.drives[name] = self._drive(name)
        for name in scope.frames:
            link = scope.body(name)
            place = inverse_placement(scope.pose(body[link])) @ scope.pose(name)
            self.frames.append(Frame(name, on[link], clean(place)))

    def _ends(self, name: str, joint: ET.Element) -> tuple[str, str]:
        kind = joint.get("type", "")
        if kind not in (*_MOVING, "fixed"):
            kinds = ", ".join(_MOVING)
            raise ModelError(f"joint '{name}' is of kind '{kind}', which is not supported: use {kinds} or fixed")
        prefix = self.scope.prefix(name)
        parent, child = (child_text(joint, end, f"joint '{name}'") for end in ("parent", "child"))
        first = WORLD if parent == WORLD else self.scope.body(self.scope.find(parent, prefix, f"joint '{name}'"))
        return first, self.scope.body(self.scope.find(child, prefix, f"joint '{name}'"))

    def _base(self, names: list[str]) -> str:
        """The root of the tree; the link itself where the world carries one link only, on a fixed joint."""
        children = {child for _, child in self.ends.values()}
        root = next(name for name in names if name not in children)
        on_world = [name for name, (parent, _) in self.ends.items() if parent == WORLD]
        if len(on_world) == 1 and self.scope.joints[on_world[0]].get("type") == "fixed":
            return self.ends[on_world[0]][1]
        return root

    def _merge(self, joint: str, link: str, number: int, into: str, pi: Array) -> None:
        place = clean(inverse_placement(self.scope.pose(into)) @ self.scope.pose(link))
        carrier = self.links[number]
        self.links[number] = Link(carrier.name, carrier.inertia + move_inertia(pi, place))
        self.frames.append(Frame(link, number, place))
        self.merged.append(Merge(link, joint, carrier.name, float(pi[0])))

    def _joint(self, name: str, parent: int, body: str, child: str, mimic: Mimic | None) -> Joint:
        scope, element = self.scope, self.scope.joints[name]
        at, where = scope.pose(name), f"joint '{name}'"
        axis = element.find("axis")
        direction = np.array([0.0, 0.0, 1.0])
        if axis is not None:
            xyz = axis.find("xyz")
            direction = numbers(axis.findtext("xyz", "0 0 1"), 3, f"{where}, axis")
            named = "" if xyz is None else xyz.get("expressed_in", "")
            if self.version < (1, 5) or (axis.findtext("use_parent_model_frame") or "").strip() in ("true", "1"):
                named = MODEL
            if named:
                frame = scope.find(named, scope.prefix(name), where)
                direction = clean(at[:3, :3].T @ scope.pose(frame)[:3, :3] @ direction)
        if np.linalg.norm(direction) < 1e-9:
            raise ModelError(f"{where} has a zero axis")
        kind = "prismatic" if element.get("type") == "prismatic" else "revolute"
        before = clean(inverse_placement(scope.pose(body)) @ at)
        mount = clean(inverse_placement(at) @ scope.pose(child))
        limits = Limits() if element.get("type") == "continuous" else _limits(axis, name)
        if element.get("type") == "continuous" and axis is not None:
            both = _limits(axis, name)
            limits = Limits(velocity=both.velocity, effort=both.effort)
        return Joint(name, kind, parent, before, direction, mount, limits, mimic)  # type: ignore[arg-type]

    def _drive(self, name: str) -> dict[str, float]:
        """Damping and friction of a joint."""
        dynamics = self.scope.joints[name].find("axis/dynamics")
        out = {}
        for symbol, tag in (("fv", "damping"), ("fc", "friction")):
            text = "0" if dynamics is None else dynamics.findtext(tag, "0")
            out[symbol] = float(numbers(text, 1, f"joint '{name}', {tag}")[0])
        return out

    def _mimics(self) -> dict[str, Mimic]:
        direct = {}
        for name, joint in self.scope.joints.items():
            mimic = joint.find("axis/mimic")
            if mimic is None or joint.get("type") == "fixed":
                continue
            where = f"joint '{name}', mimic"
            leader = self.scope.prefix(name) + attribute(mimic, "joint", where)
            if leader not in self.scope.joints or self.scope.joints[leader].get("type") == "fixed":
                raise ModelError(f"{where} refers to '{leader}', which is not a moving joint")
            given = [float(numbers(mimic.findtext(tag, d), 1, f"{where} {tag}")[0]) for tag, d in _MIMIC.items()]
            ratio, offset, reference = given
            direct[name] = Mimic(leader, ratio, offset - ratio * reference)
        return fold_mimics(direct)


_MIMIC = {"multiplier": "1", "offset": "0", "reference": "0"}


def _inertia(link: ET.Element, name: str) -> Array:
    """Inertial parameters of a link in its own frame; the defaults of SDF are 1 kg and a unit tensor."""
    inertial, where = link.find("inertial"), f"link '{name}'"
    if inertial is None:
        return inertia_from_com(1.0, np.zeros(3), np.eye(3))
    if inertial.get("auto") in ("true", "1"):
        raise ModelError(f"{where} has an automatic inertia (auto), which is not supported: write its values")
    mass = numbers(inertial.findtext("mass", "1"), 1, f"{where}, mass")[0]
    tensor = np.zeros((3, 3))
    for tag, (i, j) in _TENSOR.items():
        text = inertial.findtext(f"inertia/{tag}", "1" if i == j else "0")
        tensor[i, j] = tensor[j, i] = numbers(text, 1, f"{where}, {tag}")[0]
    _, place = read_pose(inertial, where)
    return move_inertia(inertia_from_com(mass, np.zeros(3), tensor), place)


_TENSOR = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}


def _limits(axis: ET.Element | None, name: str) -> Limits:
    limit = None if axis is None else axis.find("limit")
    if limit is None:
        return Limits()

    def given(tag: str, missing: float) -> float:
        text = limit.findtext(tag, "").strip()
        try:
            value = float(text) if text else missing
        except ValueError:
            raise ModelError(f"joint '{name}', limit {tag}: expected a number, found '{text}'") from None
        return float(np.copysign(np.inf, value)) if abs(value) >= _FAR else value

    values: dict[str, Any] = {"position": (given("lower", -np.inf), given("upper", np.inf))}
    for ours in ("velocity", "effort"):
        value = given(ours, np.inf)
        values[ours] = value if value >= 0 else np.inf  # -1 means no limit
    return read_limits(name, values)
