"""URDF files: checked here so that errors name the culprit, then read through Pinocchio."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from dynid.errors import ModelError
from dynid.robot.inertia import inertia_from_com, move_inertia
from dynid.robot.model import Robot
from dynid.robot.parts import Frame, Merge, Mimic
from dynid.robot.pinocchio import robot_from_model
from dynid.robot.spatial import placement, rpy_rotation

__all__ = ["read_urdf"]

Array = NDArray[np.float64]

_MOVING = ("revolute", "continuous", "prismatic")


def _numbers(text: str | None, count: int, where: str) -> Array:
    try:
        values = np.array([float(x) for x in (text or "").split()])
    except ValueError:
        values = np.zeros(0)
    if values.shape != (count,) or not np.all(np.isfinite(values)):
        raise ModelError(f"{where}: expected {count} finite number{'s'[: count > 1]}, found '{text}'")
    return values


def _origin(element: ET.Element | None, where: str) -> Array:
    if element is None:
        return np.eye(4)
    xyz = _numbers(element.get("xyz", "0 0 0"), 3, f"{where}, origin xyz")
    rpy = _numbers(element.get("rpy", "0 0 0"), 3, f"{where}, origin rpy")
    return placement(rpy_rotation(*rpy), xyz)


def _attribute(element: ET.Element | None, key: str, where: str) -> str:
    value = element.get(key) if element is not None else None
    if not value:
        raise ModelError(f"{where} lacks '{key}'")
    return value


def link_inertia(link: ET.Element) -> Array:
    """Ten numbers of a URDF link in its own frame; zero where it has no inertial block."""
    inertial = link.find("inertial")
    if inertial is None:
        return np.zeros(10)
    where = f"link '{link.get('name')}'"
    mass = inertial.find("mass")
    m = _numbers(_attribute(mass, "value", f"{where}, mass"), 1, f"{where}, mass")[0]
    tensor_element = inertial.find("inertia")
    if tensor_element is None:
        raise ModelError(f"{where} has a mass but no inertia")
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    xx, xy, xz, yy, yz, zz = (_numbers(tensor_element.get(k, "0"), 1, f"{where}, inertia {k}")[0] for k in names)
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    # The tensor is about the centre of mass, in the axes of the inertial frame.
    return move_inertia(inertia_from_com(m, np.zeros(3), tensor), _origin(inertial.find("origin"), where))


def _check_joint(joint: ET.Element, links: set[str]) -> tuple[str, str, str]:
    name = joint.get("name")
    if not name:
        raise ModelError("a joint has no name")
    where = f"joint '{name}'"
    kind = joint.get("type", "")
    if kind not in (*_MOVING, "fixed"):
        raise ModelError(
            f"{where} is of kind '{kind}', which is not supported: use revolute, continuous, prismatic, fixed or mimic"
        )
    ends = []
    for end in ("parent", "child"):
        link = _attribute(joint.find(end), "link", f"{where}, {end}")
        if link not in links:
            raise ModelError(f"{where} refers to an unknown link '{link}'")
        ends.append(link)
    _origin(joint.find("origin"), where)
    axis = joint.find("axis")
    if kind != "fixed" and axis is not None:
        direction = _numbers(axis.get("xyz"), 3, f"{where}, axis")
        if np.linalg.norm(direction) < 1e-9:
            raise ModelError(f"{where} has a zero axis")
    limit = joint.find("limit")
    if kind in ("revolute", "prismatic"):
        if limit is None:
            raise ModelError(f"{where} is {kind} and has no limit element (a continuous joint needs none)")
        lower, upper = (_numbers(limit.get(k, "0"), 1, f"{where}, limit {k}")[0] for k in ("lower", "upper"))
        if lower > upper:
            raise ModelError(f"{where} has its lower limit {lower:g} above its upper limit {upper:g}")
    return name, ends[0], ends[1]


def _check_tree(joints: list[tuple[str, str, str]], links: list[str]) -> str:
    """Every link but one hangs on exactly one joint, and all of them on the root."""
    carrier: dict[str, tuple[str, str]] = {}
    for name, parent, child in joints:
        if child in carrier:
            raise ModelError(
                f"link '{child}' hangs on two joints, '{carrier[child][0]}' and '{name}': loops are not supported"
            )
        carrier[child] = (name, parent)
    roots = [link for link in links if link not in carrier]
    if not roots:
        raise ModelError(f"the joints form a loop: every link hangs on another (start at '{joints[0][0]}')")
    if len(roots) > 1:
        raise ModelError(f"the links are not connected: '{roots[0]}' and '{roots[1]}' both have no parent")
    for link in links:
        seen = [link]
        while seen[-1] in carrier:
            joint, parent = carrier[seen[-1]]
            if parent in seen:
                raise ModelError(f"joint '{joint}' closes a loop through link '{parent}'")
            seen.append(parent)
    return roots[0]


def _mimics(joints: dict[str, ET.Element]) -> dict[str, Mimic]:
    """Leader, ratio and offset of every mimic joint, chains followed to their independent joint."""
    direct: dict[str, Mimic] = {}
    for name, element in joints.items():
        mimic = element.find("mimic")
        if mimic is None or element.get("type") == "fixed":
            continue
        where = f"joint '{name}', mimic"
        leader = _attribute(mimic, "joint", where)
        if leader not in joints:
            raise ModelError(f"{where} refers to an unknown joint '{leader}'")
        if joints[leader].get("type") == "fixed":
            raise ModelError(f"{where} follows '{leader}', which is fixed")
        ratio = _numbers(mimic.get("multiplier", "1"), 1, f"{where} multiplier")[0]
        offset = _numbers(mimic.get("offset", "0"), 1, f"{where} offset")[0]
        direct[name] = Mimic(leader, float(ratio), float(offset))
    out = {}
    for name, mimic_of in direct.items():
        m, seen = mimic_of, {name}
        while m.leader in direct:
            if m.leader in seen:
                raise ModelError(f"joint '{name}' mimics itself through '{m.leader}'")
            seen.add(m.leader)
            up = direct[m.leader]
            m = Mimic(up.leader, m.ratio * up.ratio, m.ratio * up.offset + m.offset)
        out[name] = m
    return out


def read_urdf(path: Path) -> tuple[Robot, pin.Model]:
    """Robot of a URDF file and the Pinocchio model it went through."""
    try:
        root = ET.parse(path).getroot()
    except ET.ParseError as error:
        raise ModelError(f"{path.name} is not well-formed XML: {error}") from None
    if root.tag != "robot":
        raise ModelError(f"{path.name} is not a URDF file: its root element is <{root.tag}>, not <robot>")
    links: dict[str, ET.Element] = {}
    for link in root.findall("link"):
        name = _attribute(link, "name", "a link")
        if name in links:
            raise ModelError(f"{path.name} has two links named '{name}'")
        links[name] = link
    if not links:
        raise ModelError(f"{path.name} has no links")
    inertia = {name: link_inertia(link) for name, link in links.items()}
    edges, joints = [], {}
    for joint in root.findall("joint"):
        edge = _check_joint(joint, set(links))
        if edge[0] in joints:
            raise ModelError(f"{path.name} has two joints named '{edge[0]}'")
        edges.append(edge)
        joints[edge[0]] = joint
    _check_tree(edges, list(links))
    mimics = _mimics(joints)
    text = ET.tostring(root, encoding="unicode")
    model = pin.buildModelFromXML(text)
    robot = robot_from_model(model, root.get("name") or path.stem)
    return _with_file_inertias(robot, model, inertia, edges, mimics), model


def _with_file_inertias(
    robot: Robot,
    model: pin.Model,
    inertia: dict[str, Array],
    edges: list[tuple[str, str, str]],
    mimics: dict[str, Mimic],
) -> Robot:
    """Inertias summed from the file, link by link: Pinocchio divides by the mass and loses negative ones."""
    carrier = {child: (joint, parent) for joint, parent, child in edges}
    number = {link.name: i for i, link in enumerate(robot.links)}
    where: dict[str, Frame] = {f.name: f for f in robot.frames}
    total = [np.zeros(10) for _ in robot.links]
    merged = []
    for name, pi in inertia.items():
        if name in number:
            total[number[name]] += pi
            continue
        frame = where[name]
        total[frame.link] += move_inertia(pi, frame.placement)
        merged.append(Merge(name, carrier[name][0], robot.links[frame.link].name, float(pi[0])))
    links = tuple(replace(link, inertia=t) for link, t in zip(robot.links, total, strict=True))
    joints = tuple(replace(j, mimic=mimics.get(j.name)) for j in robot.joints)
    return replace(robot, links=links, joints=joints, merged=tuple(merged))
