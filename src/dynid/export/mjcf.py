"""Write a robot as MJCF (MuJoCo's format), from scratch or into the file it came from."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from dynid.errors import ModelError, writing
from dynid.robot.drives import DriveTerm, TermKind
from dynid.robot.inertia import inertia_to_com, inertia_to_spatial, inertia_violations
from dynid.robot.mjcf import _include
from dynid.robot.mjcf_values import read_settings
from dynid.robot.model import Robot
from dynid.robot.parts import Joint, Link
from dynid.robot.spatial import clean, inverse_placement
from dynid.robot.xmlfile import read_xml

__all__ = ["write_mjcf"]

Array = NDArray[np.float64]

_WORLD = "world"  # MuJoCo's own body, a name that no other may have
_LEAST = 1e-13  # kg and kg m2; MuJoCo refuses moving bodies with less than 1e-14 of either
_ATTRIBUTES = {
    TermKind.INERTIA: "armature",
    TermKind.VISCOUS: "damping",
    TermKind.COULOMB: "frictionloss",
    TermKind.SPRING: "stiffness",
}


def write_mjcf(robot: Robot, path: str | Path, template: str | Path | None = None) -> list[str]:
    """Write a robot into `path`; returns what a reader of the file should be warned of.

    Without `template` the file is made from the tree alone, with the frames of our links as MuJoCo's body frames.
    With it, that MJCF is copied and only inertial elements and the drive attributes the robot models change: a moving
    body takes the inertia of all that is fixed to it, and what is fixed loses its own.
    """
    warnings = _drive_warnings(robot)
    if template is None:
        root = _from_tree(robot, warnings)
    else:
        root = _from_template(robot, Path(template), warnings)
        apart = Path(path).resolve().parent != Path(template).resolve().parent
        if apart and root.find(".//*[@file]") is not None:
            warnings.append(f"the file needs the meshes and textures beside '{template}': put it into that folder")
    ET.indent(root, "  ")
    with writing(path):
        ET.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
    return warnings


# -- numbers and poses -------------------------------------------------------------------------------


def _text(values: Iterable[float]) -> str:
    """Numbers that read back to the last bit."""
    return " ".join(f"{float(v) + 0.0!r}".removesuffix(".0") for v in values)


def _pose(h: Array) -> dict[str, str]:
    """pos and quat of a placement, left out where they are nothing."""
    h, out = clean(h), {}
    if np.any(h[:3, 3]):
        out["pos"] = _text(h[:3, 3])
    if not np.array_equal(h[:3, :3], np.eye(3)):
        turn = pin.Quaternion(h[:3, :3])
        out["quat"] = _text((turn.w, turn.x, turn.y, turn.z))
    return out


# -- bodies ------------------------------------------------------------------------------------------


def _add_inertial(body: ET.Element, link: Link, warnings: list[str]) -> None:
    """The inertia of a link about its centre of mass, lifted by rounding where MuJoCo would stumble over it."""
    pi, where = link.inertia, f"link '{link.name}'"
    if pi[0] == 0 and np.any(pi[1:4]):
        raise ModelError(f"{where} has a first moment but no mass, which MJCF cannot hold")
    if pi[0] == 0:
        mass, com, tensor = np.asarray(_LEAST), np.zeros(3), inertia_to_spatial(pi)[3:, 3:]
    else:
        mass, com, tensor = inertia_to_com(pi)
    principal = np.linalg.eigvalsh(tensor)
    # MuJoCo wants positive principal values, the largest no more than the sum of the others, to the last bit.
    room = min(principal[0], principal[0] + principal[1] - principal[2])
    short = _LEAST * max(1.0, principal[2]) - room
    rounding = _LEAST + 1e-10 * np.abs(principal).max() + 1e-12 * np.abs(pi[4:]).max()
    if mass < 0 or room < -rounding:
        laws = "; ".join(inertia_violations(pi))
        warnings.append(f"{where} is physically impossible, MuJoCo will not load it: {laws}")
    elif pi[0] == 0 or short > 0:
        tensor = tensor + max(short, 0.0) * np.eye(3)
        added = f"{max(short, 0.0):.1g} kg m2" + (f" and {_LEAST:.1g} kg" if pi[0] == 0 else "")
        warnings.append(f"{where} has no mass or no extent; MuJoCo needs some, so it is written with {added} more")
    xx, xy, xz, yy, yz, zz = tensor[np.triu_indices(3)]
    attributes = {"pos": _text(com), "mass": _text([float(mass)]), "fullinertia": _text((xx, yy, zz, xy, xz, yz))}
    body.insert(0, ET.Element("inertial", attributes))


# -- drives ------------------------------------------------------------------------------------------


def _attribute(robot: Robot, term: DriveTerm) -> str | None:
    """Where a joint of MJCF keeps a drive term, None for one that it cannot hold."""
    own = np.array_equal(term.direction, np.eye(robot.n)[term.owner])
    return _ATTRIBUTES.get(term.kind) if own and not term.motor and not term.cross_only else None


def _drive(robot: Robot, joint: Joint, degrees: bool = False) -> dict[str, str]:
    """Drive attributes of a joint, for those terms that the robot models."""
    out = {}
    for term in robot.drives:
        key = _attribute(robot, term)
        if key is None or robot.coordinates[term.owner] != joint.name:
            continue
        out[key] = _text([term.value])
        if term.kind == TermKind.SPRING:
            turn = degrees and joint.kind == "revolute"
            out["springref"] = _text([np.degrees(term.rest) if turn else term.rest])
    return out


def _drive_warnings(robot: Robot) -> list[str]:
    out = []
    lost: dict[str, list[str]] = {}
    for term in robot.drives:
        if _attribute(robot, term) is None:
            lost.setdefault(term.symbol, []).append(term.shaft)
    if lost:
        terms = "; ".join(f"{symbol} of {', '.join(shafts)}" for symbol, shafts in lost.items())
        out.append(f"MJCF has no place for the drive terms {terms}")
    if robot.transmission is not None:
        out.append(
            f"MJCF joints know no transmission: the coupling of {', '.join(robot.transmission.motors)} is left out"
        )
    for term in robot.drives:
        if _attribute(robot, term) == "frictionloss" and term.value < 0:
            out.append(f"{term.name} is negative ({term.value:.4g}): MuJoCo takes it for zero")
    return out


# -- from the tree -----------------------------------------------------------------------------------


class _Carrier(NamedTuple):
    """Where a link is written: in a body, at `place` of its frame, behind joints that wait for a body of their own."""

    body: ET.Element
    place: Array
    waiting: tuple[tuple[Joint, Array], ...] = ()


def _from_tree(robot: Robot, warnings: list[str]) -> ET.Element:
    root = ET.Element("mujoco", model=robot.name)
    ET.SubElement(root, "compiler", angle="radian", autolimits="true")
    ET.SubElement(root, "option", gravity=_text(robot.gravity))
    world = ET.SubElement(root, "worldbody")
    names = _body_names(robot, warnings)
    carriers = [_Carrier(_base(robot, world, names[0], warnings), np.eye(4))]
    for i, joint in enumerate(robot.joints, start=1):
        carrier = carriers[joint.parent]
        before = carrier.place @ joint.placement
        place, waiting = before @ joint.mount, (*carrier.waiting, (joint, before))
        if _only_between_joints(robot, i):
            carriers.append(_Carrier(carrier.body, place, waiting))
            continue
        body = ET.SubElement(carrier.body, "body", {"name": names[i], **_pose(place)})
        for each, at in waiting:
            _add_joint(body, robot, each, inverse_placement(place) @ at)
        _add_inertial(body, robot.links[i], warnings)
        carriers.append(_Carrier(body, np.eye(4)))
    _add_sites(robot, names, carriers, warnings)
    _add_equalities(root, robot)
    if any(np.isfinite(j.limits.velocity) for j in robot.joints):
        warnings.append("MJCF has no place for velocity limits")
    order = [e.get("name", "") for e in world.iter("joint") if e.get("name") in robot.coordinates]
    if tuple(order) != robot.coordinates:
        warnings.append(f"MJCF has joints branch by branch: in the file they are {', '.join(order)}")
    return root


def _body_names(robot: Robot, warnings: list[str]) -> list[str]:
    """Names of the links, but for one that is called as MuJoCo's world."""
    names = [link.name for link in robot.links]
    if _WORLD in names:
        i = names.index(_WORLD)
        same = [f.name for f in robot.frames if f.link == i == 0 and np.array_equal(f.placement, np.eye(4))]
        names[i] = next(n for n in (*same, *(f"{_WORLD}{k}" for k in range(len(names) + 1))) if n not in names)
        if i > 0 or robot.base == "floating":
            warnings.append(f"link '{_WORLD}' is written as '{names[i]}': that name is MuJoCo's own")
    return names


def _base(robot: Robot, world: ET.Element, name: str, warnings: list[str]) -> ET.Element:
    """The body of the base link: a free one, one that stands still, or the world itself."""
    link, floating = robot.links[0], robot.base == "floating"
    if robot.base == "instrumented":
        warnings.append('MJCF has no measured base: load the file with base="instrumented"')
    if not floating and link.name == _WORLD and not np.any(link.inertia):
        return world
    body = ET.SubElement(world, "body", name=name)
    if floating:
        ET.SubElement(body, "freejoint")
    if floating or np.any(link.inertia):
        _add_inertial(body, link, warnings)
    return body


def _only_between_joints(robot: Robot, i: int) -> bool:
    """Whether a link is nothing but the place between two joints of one body."""
    link = robot.links[i]
    carries = sum(j.parent == i for j in robot.joints)
    return link.virtual and not np.any(link.inertia) and carries == 1 and all(f.link != i for f in robot.frames)


def _add_joint(body: ET.Element, robot: Robot, joint: Joint, at: Array) -> None:
    """A joint whose frame has placement `at` in the frame of its body."""
    limits = joint.limits
    attributes = {"name": joint.name, "type": "hinge" if joint.kind == "revolute" else "slide"}
    if joint.kind == "revolute" and np.any(clean(at)[:3, 3]):
        attributes["pos"] = _text(clean(at)[:3, 3])
    attributes["axis"] = _text(clean(at[:3, :3] @ joint.axis))
    if np.isfinite([limits.lower, limits.upper]).any():
        attributes["range"] = _text(np.clip([limits.lower, limits.upper], -1e9, 1e9))
    if np.isfinite(limits.effort):
        attributes["actuatorfrcrange"] = _text([-limits.effort, limits.effort])
    ET.SubElement(body, "joint", attributes | _drive(robot, joint))


def _add_sites(robot: Robot, names: list[str], carriers: list[_Carrier], warnings: list[str]) -> None:
    """Frames that are not a body's own; MJCF has one site of a name."""
    written: set[str] = set()
    for frame in robot.frames:
        if frame.name == names[frame.link] and np.array_equal(frame.placement, np.eye(4)):
            continue
        if frame.name in written:
            warnings.append(f"a second frame named '{frame.name}' is left out")
            continue
        written.add(frame.name)
        ET.SubElement(carriers[frame.link].body, "site", {"name": frame.name, **_pose(frame.placement)})


def _add_equalities(root: ET.Element, robot: Robot) -> None:
    followers = [(j.name, j.mimic) for j in robot.joints if j.mimic is not None]
    if followers:
        section = ET.SubElement(root, "equality")
        for name, mimic in followers:
            line = _text([mimic.offset, mimic.ratio, 0, 0, 0])
            ET.SubElement(section, "joint", joint1=name, joint2=mimic.leader, polycoef=line)


# -- into a template ---------------------------------------------------------------------------------


def _from_template(robot: Robot, template: Path, warnings: list[str]) -> ET.Element:
    root = read_xml(template)
    if root.tag != "mujoco":
        raise ModelError(f"the template '{template.name}' is not an MJCF file: its root element is <{root.tag}>")
    _include(root, template.parent, {template.resolve()})
    settings = read_settings(root)
    if settings.inertia_from_geom == "true":
        for compiler in root.findall("compiler"):
            compiler.attrib.pop("inertiafromgeom", None)
        for body in root.iter("body"):
            _drop_inertial(body)
    bodies = _bodies(root, robot.base == "floating")
    joints = {name: joint for body_name, body in bodies.items() for name, joint in _joints(body_name, body)}
    for joint in robot.joints:
        if joint.name not in joints:
            raise ModelError(f"the template '{template.name}' has no joint '{joint.name}'")
        values = _drive(robot, joint, settings.degrees)
        if joint.mimic is not None:  # what it has is felt by the joint it follows, and counted there
            leader = robot.joints[[j.name for j in robot.joints].index(joint.mimic.leader)]
            values = {key: "0" for key in _drive(robot, leader) if key != "springref"}
        joints[joint.name].attrib.update(values)
    for merge in robot.merged:
        if merge.link in bodies and _joints(merge.link, bodies[merge.link]):
            raise ModelError(f"body '{merge.link}' moves in the template '{template.name}', but not in the robot")
    for link in robot.links[robot.base == "fixed" :]:  # bodies that stand still stay as they are
        if link.name in bodies:
            _drop_inertial(bodies[link.name])
            _add_inertial(bodies[link.name], link, warnings)
            _empty_fixed_bodies(bodies[link.name])
        elif robot.base == "instrumented" and link is robot.links[0]:
            warnings.append(f"the inertia of the base '{link.name}' is left as the template has it")
        elif not link.virtual:
            raise ModelError(f"the template '{template.name}' has no body '{link.name}'")
    return root


def _parts(body: ET.Element) -> Iterator[ET.Element]:
    """The elements of a body, those inside its <frame>s too."""
    for element in body:
        if element.tag == "frame":
            yield from _parts(element)
        else:
            yield element


def _bodies(root: ET.Element, floating: bool) -> dict[str, ET.Element]:
    """All bodies, or those of the flying tree; the ones without a name are counted as our reader counts them."""
    tops = root.findall("worldbody")
    if floating:
        bodies = [e for world in tops for e in _parts(world) if e.tag == "body"]
        tops = [b for b in bodies if any(e.tag == "freejoint" or e.get("type") == "free" for e in b)]
    out: dict[str, ET.Element] = {}
    for body in (b for top in tops for b in top.iter("body")):
        out[body.get("name") or f"body{len(out) + 1}"] = body
    return out


def _joints(name: str, body: ET.Element) -> list[tuple[str, ET.Element]]:
    """Joints of a body with the names our reader gives them."""
    joints = [e for e in _parts(body) if e.tag in ("joint", "freejoint")]
    several = len(joints) > 1
    return [(e.get("name") or f"{name}_joint{k if several else ''}", e) for k, e in enumerate(joints, start=1)]


def _drop_inertial(body: ET.Element) -> None:
    for element in (body, *body.iterfind("frame")):
        for old in element.findall("inertial"):
            element.remove(old)


def _empty_fixed_bodies(body: ET.Element) -> None:
    """Take the inertia from the bodies fixed to this one; their shapes must not bring it back."""
    for child in _parts(body):
        if child.tag == "body" and not any(e.tag in ("joint", "freejoint") for e in _parts(child)):
            _drop_inertial(child)
            if any(e.tag == "geom" for e in _parts(child)):
                child.insert(0, ET.Element("inertial", pos="0 0 0", mass="0", diaginertia="0 0 0"))
            _empty_fixed_bodies(child)
