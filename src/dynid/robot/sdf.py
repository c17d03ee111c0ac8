"""Reader of SDF files (the format of Gazebo): one model, poses relative to any frame, nested models with scoped names.

As the format defines, a model without a joint to the world has a floating base, and a link without an inertial element
has a mass of one kilogram. Links keep the frames of the file.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ModelError
from dynid.robot.chains import Step, add_chain, ball, screw
from dynid.robot.constraints import Loop
from dynid.robot.drives import FileDrives
from dynid.robot.extent import sdf_boxes, with_extents
from dynid.robot.inertia import inertia_from_com, move_inertia
from dynid.robot.loop_joints import CLOSING, closing_loops, with_closing_loops
from dynid.robot.model import Robot
from dynid.robot.notes import chain_notes
from dynid.robot.parts import Frame, Joint, Limits, Link, Merge, Mimic, fold_mimics, read_limits
from dynid.robot.sdf_frames import MODEL, WORLD, Scope, child_text, read_pose
from dynid.robot.shafts import shaft_term
from dynid.robot.shape_inertia import ShapeInertia, sdf_shapes, with_shapes
from dynid.robot.spatial import clean, inverse_placement
from dynid.robot.urdf import check_tree
from dynid.robot.xmlfile import attribute, numbers

__all__ = ["only_model", "read_sdf"]

Array = NDArray[np.float64]

_SIMPLE = ("revolute", "continuous", "prismatic")
_MOVING = (*_SIMPLE, "ball", "universal", "revolute2", "screw")
_FAR = 1e15  # SDF writes 1e16 or inf where there is no limit


def read_sdf(
    root: ET.Element, path: Path, *, ignore_loops: bool = False, shapes: ShapeInertia | None = None
) -> tuple[Robot, FileDrives]:
    """Robot and drive values of an SDF file; `shapes` asks for inertias of links that give none."""
    if root.tag != "sdf":
        raise ModelError(
            f"{path.name} is not an SDF file: its root element is <{root.tag}>, not <sdf>", code="file_format"
        )
    version = _version(root, path.name)
    model, gravity = only_model(root, path.name), _gravity(root)
    scope = Scope(model)
    inertia, notes = _inertias(scope, path, shapes)
    tree = _Tree(scope, version, ignore_loops, inertia)
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
        notes=(*notes, *tree.notes),
    )
    springs = [shaft_term(robot, "k", name, {name: 1.0}, *spring) for name, spring in tree.springs.items()]
    robot = with_extents(replace(robot, drives=tuple(springs)), sdf_boxes(scope.links, path))
    return with_closing_loops(robot, tree.loops) if tree.loops else robot, tree.drives


def _version(root: ET.Element, file: str) -> tuple[int, ...]:
    text = root.get("version", "")
    try:
        return tuple(int(x) for x in text.split("."))
    except ValueError:
        raise ModelError(f"{file} has no SDF version: '{text}'", code="file_damaged") from None


def only_model(root: ET.Element, file: str) -> ET.Element:
    """The model of a file; among several models, the one with joints."""
    models = [*root.findall("model"), *root.findall("world/model")]
    if len(models) > 1:
        models = [m for m in models if next(m.iter("joint"), None) is not None]
    if not models:
        raise ModelError(f"{file} has no model", code="missing_data")
    if len(models) > 1:
        names = ", ".join(f"'{m.get('name', '')}'" for m in models)
        raise ModelError(f"{file} has several models with joints ({names}): only one is supported", code="unsupported")
    return models[0]


def _gravity(root: ET.Element) -> Array:
    """Gravity of the world of a file, or of the earth."""
    gravity = np.array([0.0, 0.0, -9.81])
    for world in root.findall("world"):
        gravity = numbers(world.findtext("gravity", "0 0 -9.8"), 3, "world, gravity")
    return gravity


class _Tree:
    """Links and joints of a model; joints in the order of the file, with parents before children."""

    def __init__(self, scope: Scope, version: tuple[int, ...], ignore_loops: bool, inertia: dict[str, Array]) -> None:
        self.scope, self.version = scope, version
        self.notes: list[str] = []
        self.springs: dict[str, tuple[float, float]] = {}  # stiffness and rest position
        self.ends = {name: self._ends(name, joint) for name, joint in scope.joints.items()}
        self.gears = {n: self.ends.pop(n) for n in list(self.ends) if scope.joints[n].get("type") == "gearbox"}
        closing = self._closing(ignore_loops)
        self.tied = any(parent == WORLD for parent, _ in self.ends.values())
        names = [*([WORLD] if self.tied else []), *scope.links]
        if not scope.links:
            raise ModelError("the model has no links", code="missing_data")
        check_tree([(name, *ends) for name, ends in self.ends.items()], names)
        inertia = {**inertia, WORLD: np.zeros(10)}
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
                self._hang(name, on[parent], body[parent], Link(child, inertia[child]), mimics.get(name))
                on[child], body[child] = len(self.links) - 1, child
        self.loops = [loop for name, ends in closing.items() for loop in self._loop(name, ends, on, body)]
        for name in scope.frames:
            link = scope.body(name)
            place = inverse_placement(scope.pose(body[link])) @ scope.pose(name)
            self.frames.append(Frame(name, on[link], clean(place)))

    def _ends(self, name: str, joint: ET.Element) -> tuple[str, str]:
        kind = joint.get("type", "")
        if kind not in (*_MOVING, "fixed", "gearbox"):
            kinds = ", ".join((*_MOVING, "gearbox"))
            raise ModelError(
                f"joint '{name}' is of kind '{kind}', which is not supported: use {kinds} or fixed", code="unsupported"
            )
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

    def _closing(self, ignore_loops: bool) -> dict[str, tuple[str, str]]:
        """Take out the joints that close loops, those to a link that another joint carries already, and return them."""
        carried: set[str] = set()
        out = {}
        for name, (parent, child) in list(self.ends.items()):
            if child in carried:
                del self.ends[name]
                if ignore_loops:
                    self.notes.append(f"joint '{name}' closes a loop at link '{child}' and was left out")
                else:
                    out[name] = parent, child
            carried.add(child)
        return out

    def _loop(self, name: str, ends: tuple[str, str], on: dict[str, int], body: dict[str, str]) -> list[Loop]:
        """The constraints of a joint that closes a loop."""
        scope, kind = self.scope, self.scope.joints[name].get("type", "")
        frames = [Frame(link, on[link], inverse_placement(scope.pose(body[link])) @ scope.pose(name)) for link in ends]
        if kind not in CLOSING:  # the joint stays in the tree with an end of no mass, which is welded to the link
            self._hang(name, on[ends[0]], body[ends[0]], Link(f"{name}.virtual", np.zeros(10), virtual=True), None)
            frames[0], kind = Frame(name, len(self.links) - 1, np.eye(4)), "fixed"
        axis = np.array([0.0, 0.0, 1.0]) if kind in ("ball", "fixed") else self._axis(name, "axis")
        return closing_loops(name, kind, frames[0], frames[1], axis)

    def _hang(self, name: str, parent: int, body: str, link: Link, mimic: Mimic | None) -> None:
        """Add a link and its joint, or the chain of joints that it becomes."""
        scope, element = self.scope, self.scope.joints[name]
        at, kind = scope.pose(name), element.get("type", "")
        before = clean(inverse_placement(scope.pose(body)) @ at)
        mount = np.eye(4) if link.virtual else clean(inverse_placement(at) @ scope.pose(link.name))
        limits = {}
        if kind == "ball":
            steps = ball(mount[:3, :3] @ link.inertia[1:4] + link.inertia[0] * mount[:3, 3])
            self.notes += chain_notes(f"ball joint '{name}'", [name + step.suffix for step in steps], [])
        elif kind in ("universal", "revolute2"):
            steps = [Step(f"_{k}", "revolute", self._axis(name, tag)) for k, tag in ((1, "axis"), (2, "axis2"))]
            limits = {"_1": _limits(element.find("axis"), name), "_2": _limits(element.find("axis2"), name)}
            self._drive(f"{name}_1", element.find("axis"))
            self._drive(f"{name}_2", element.find("axis2"))
        else:
            axis = element.find("axis")
            limits = {"": _limits(axis, name)}
            if kind == "continuous":
                limits = {"": Limits(velocity=limits[""].velocity, effort=limits[""].effort)}
            direction = self._axis(name, "axis")
            steps = [Step("", "prismatic" if kind == "prismatic" else "revolute", direction)]
            if kind == "screw":
                steps = screw(direction, _lead(element, name))
            self._drive(name, axis)
        add_chain(self.joints, self.links, name, steps, parent, before, mount, link, limits)
        if mimic is not None:
            self.joints[-1] = replace(self.joints[-1], mimic=mimic)

    def _axis(self, name: str, tag: str) -> Array:
        """Axis of a joint in the joint frame."""
        scope, where = self.scope, f"joint '{name}'"
        at, axis = scope.pose(name), self.scope.joints[name].find(tag)
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
        return direction

    def _drive(self, name: str, axis: ET.Element | None) -> None:
        """Note damping, friction and spring of a joint."""
        dynamics = None if axis is None else axis.find("dynamics")
        out = {}
        for symbol, tag in _DYNAMICS.items():
            text = "0" if dynamics is None else dynamics.findtext(tag, "0")
            out[symbol] = float(numbers(text, 1, f"joint '{name}', {tag}")[0])
        self.drives[name] = {symbol: out[symbol] for symbol in ("fv", "fc")}
        if out["k"]:
            self.springs[name] = out["k"], out["rest"]

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
        for name, (parent, child) in self.gears.items():
            (first, one), (second, two) = (self._geared(name, *x) for x in ((parent, "axis"), (child, "axis2")))
            ratio = float(
                numbers(self.scope.joints[name].findtext("gearbox_ratio", "1"), 1, f"joint '{name}', ratio")[0]
            )
            direct[second] = Mimic(first, -ratio * one * two)
        return fold_mimics(direct)

    def _geared(self, name: str, link: str, tag: str) -> tuple[str, float]:
        """The joint between a link of a gearbox and its reference body, and the sign of its angle."""
        scope, where = self.scope, f"joint '{name}', gearbox_reference_body"
        word = child_text(scope.joints[name], "gearbox_reference_body", f"joint '{name}'")
        body = scope.body(scope.find(word, scope.prefix(name), where))
        for joint, ends in self.ends.items():
            if ends in ((body, link), (link, body)):
                axes = [scope.pose(n)[:3, :3] @ self._axis(n, t) for n, t in ((name, tag), (joint, "axis"))]
                along = float(axes[0] @ axes[1]) / float(np.linalg.norm(axes[0]) * np.linalg.norm(axes[1]))
                return joint, float(np.sign(along)) * (1.0 if ends == (body, link) else -1.0)
        raise ModelError(f"no joint holds '{link}' on '{body}'", where=where)


def _lead(joint: ET.Element, name: str) -> float:
    """Translation per angle of a screw (m/rad): a pitch in m per turn, or the older one in -rad/m."""
    where = f"joint '{name}', screw_thread_pitch"
    pitch, older = joint.findtext("screw_thread_pitch"), joint.findtext("thread_pitch")
    if pitch is None and older is not None:
        value = float(numbers(older, 1, where)[0])
        return -1 / value if value else 0.0
    return float(numbers(pitch or "1", 1, where)[0]) / (2 * np.pi)


_DYNAMICS = {"fv": "damping", "fc": "friction", "k": "spring_stiffness", "rest": "spring_reference"}
_MIMIC = {"multiplier": "1", "offset": "0", "reference": "0"}


def _inertias(scope: Scope, path: Path, shapes: ShapeInertia | None) -> tuple[dict[str, Array], list[str]]:
    """Inertial parameters of all links; those marked auto come from their collision shapes, as SDF defines."""
    out = {name: _inertia(link, name) for name, link in scope.links.items()}
    notes = []
    missing: dict[str, list[ET.Element]] = {}
    for name, link in scope.links.items():
        inertial = link.find("inertial")
        if inertial is not None and inertial.get("auto") in ("true", "1"):
            where = f"link '{name}', density"
            density = float(numbers(inertial.findtext("density", "1000"), 1, where)[0])
            found = {name: sdf_shapes(link, "collision", f"link '{name}', collision")}
            notes += with_shapes(out, found, path, ShapeInertia("collision", density))
        elif inertial is None and shapes is not None:
            missing[name] = sdf_shapes(link, shapes.source, f"link '{name}', {shapes.source}")
    if shapes is not None:
        notes += with_shapes(out, missing, path, shapes)
    return out, notes


def _inertia(link: ET.Element, name: str) -> Array:
    """Inertial parameters of a link in its own frame; the defaults of SDF are 1 kg and a unit tensor."""
    inertial, where = link.find("inertial"), f"link '{name}'"
    if inertial is None:
        return inertia_from_com(1.0, np.zeros(3), np.eye(3))
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
            raise ModelError(
                f"joint '{name}', limit {tag}: expected a number, found '{text}'", code="file_damaged"
            ) from None
        return float(np.copysign(np.inf, value)) if abs(value) >= _FAR else value

    values: dict[str, Any] = {"position": (given("lower", -np.inf), given("upper", np.inf))}
    for ours in ("velocity", "effort"):
        value = given(ours, np.inf)
        values[ours] = value if value >= 0 else np.inf  # -1 means no limit
    return read_limits(name, values)
