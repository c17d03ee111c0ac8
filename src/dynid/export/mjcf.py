"""Write a robot as MJCF (MuJoCo's format), from scratch or into the text of the file it came from."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ModelError
from dynid.export.contents import (
    infeasible_drives,
    lost_drives,
    number,
    numbers_text,
    own_term,
    plain_joint_terms,
    refuse_infeasible,
    with_mean_friction,
)
from dynid.export.label import Label, labelled
from dynid.export.template import Named, Template, match_template
from dynid.export.xmltext import Element, XmlText, document, open_tag
from dynid.files import writing
from dynid.robot.constraints import JointEquality, LoopKind
from dynid.robot.drives import TermKind, file_keys
from dynid.robot.inertia import consistency_room, inertia_to_com, inertia_to_spatial, inertia_violations, move_inertia
from dynid.robot.mjcf_files import include_files
from dynid.robot.mjcf_values import changing_setting, read_settings
from dynid.robot.model import Robot
from dynid.robot.parts import Joint, Link
from dynid.robot.posture import link_placements
from dynid.robot.spatial import clean, inverse_placement
from dynid.robot.xmlfile import read_xml

__all__ = [
    "DRIVE_KEYS",
    "Springs",
    "add_loops",
    "add_spring",
    "body_elements",
    "drive_attributes",
    "drive_warnings",
    "inertial_attributes",
    "joint_elements",
    "missing_meshes",
    "mjcf_content",
    "patched_mjcf",
    "pose_attributes",
    "with_included_bodies",
    "write_mjcf",
]

Array = NDArray[np.float64]


# What bodies and joints of MJCF are given, whether their file is new or an old one that changes.


DRIVE_KEYS = file_keys("mjcf")
_LEAST = 1e-13  # kg and kg m2; MuJoCo refuses moving bodies with less than 1e-14 of either


def inertial_attributes(pi: Array, name: str, warnings: list[str]) -> dict[str, str]:
    """The inertia of a link about its centre of mass, lifted by rounding where MuJoCo would stumble over it."""
    where = f"link '{name}'"
    if pi[0] == 0 and np.any(pi[1:4]):
        raise ModelError(f"{where} has a first moment but no mass, which MJCF cannot hold", code="unsupported")
    if pi[0] == 0:
        mass, com, tensor = np.asarray(_LEAST), np.zeros(3), inertia_to_spatial(pi)[3:, 3:]
    else:
        mass, com, tensor = inertia_to_com(pi)
    # MuJoCo wants positive principal values, the largest no more than the sum of the others, to the last bit.
    principal, room, rounding = consistency_room(pi)
    short = _LEAST * max(1.0, principal[2]) - room
    if mass < 0 or room < -rounding:
        laws = "; ".join(inertia_violations(pi))
        warnings.append(f"{where} is not physically consistent, MuJoCo will not load it: {laws}")
    elif pi[0] == 0 or short > 0:
        tensor = tensor + max(short, 0.0) * np.eye(3)
        added = f"{max(short, 0.0):.1g} kg m2" + (f" and {_LEAST:.1g} kg" if pi[0] == 0 else "")
        warnings.append(f"{where} has no mass or no extent; MuJoCo needs some, so it is written with {added} more")
    xx, xy, xz, yy, yz, zz = tensor[np.triu_indices(3)]
    full = numbers_text((xx, yy, zz, xy, xz, yz))
    return {"pos": numbers_text(com), "mass": number(float(mass)), "fullinertia": full}


def pose_attributes(h: Array) -> dict[str, str]:
    """pos and quat of a placement, left out where they are nothing."""
    h, out = clean(h), {}
    if np.any(h[:3, 3]):
        out["pos"] = numbers_text(h[:3, 3])
    if not np.array_equal(h[:3, :3], np.eye(3)):
        import pinocchio as pin

        turn = pin.Quaternion(h[:3, :3])
        out["quat"] = numbers_text((turn.w, turn.x, turn.y, turn.z))
    return out


def drive_attributes(robot: Robot, joint: Joint, degrees: bool = False) -> dict[str, str]:
    """Drive attributes of a joint, for those terms that the robot models."""
    out = {}
    for key, term in plain_joint_terms(robot, joint.name, DRIVE_KEYS).items():
        out[key] = number(term.value)
        if term.kind == TermKind.SPRING:
            turn = degrees and joint.kind == "revolute"
            out["springref"] = number(np.degrees(term.rest) if turn else term.rest)
    return out


def drive_warnings(robot: Robot) -> list[str]:
    """Drive terms that MJCF cannot hold, and those that MuJoCo reads otherwise."""
    out = lost_drives(robot, "MJCF", lambda t: t.kind in DRIVE_KEYS and own_term(robot, t))
    for term in robot.drives:
        if term.kind == TermKind.COULOMB and own_term(robot, term) and term.value < 0:
            out.append(f"{term.name} is negative ({term.value:.4g}): MuJoCo takes it for zero")
    return out


# Closed loops in MJCF: equality constraints between sites, and the assembled posture as a keyframe.

_COEFFICIENTS = 5  # of a polynomial in MJCF


def add_loops(root: ET.Element, robot: Robot, bodies: list[ET.Element], warnings: list[str]) -> None:
    """Write the loops of a robot. `bodies` has the element of each link.

    A rod is a tendon of constant length; MuJoCo measures its length from the one at zero positions.
    """
    if not robot.loops:
        return
    section = root.find("equality")
    if section is None:
        section = ET.SubElement(root, "equality")
    taken = {e.get("name") for e in root.iter("site")}
    at_zero = link_placements(robot.tree)
    for number_of, loop in enumerate(robot.loops, start=1):
        name = loop.name or f"loop{number_of}"
        if isinstance(loop, JointEquality):
            if len(loop.polynomial) > _COEFFICIENTS:
                warnings.append(f"{loop} is not written: its polynomial has a degree above 4, the largest in MJCF")
            else:
                _add_equality(root, section, loop, name)
            continue
        sites = []
        for frame in (loop.first, loop.second):
            site = frame.name
            while site in taken:
                site += f"_{number_of}"
            taken.add(site)
            ET.SubElement(bodies[frame.link], "site", {"name": site, **pose_attributes(frame.placement)})
            sites.append(site)
        if loop.kind != LoopKind.ROD:
            ET.SubElement(section, loop.kind.value, name=name, site1=sites[0], site2=sites[1])
            continue
        tendon = ET.SubElement(_tendons(root), "spatial", name=name)
        for site in sites:
            ET.SubElement(tendon, "site", site=site)
        ends = [(at_zero[f.link] @ f.placement)[:3, 3] for f in (loop.first, loop.second)]
        change = loop.length - float(np.linalg.norm(ends[0] - ends[1]))
        ET.SubElement(section, "tendon", name=name, tendon1=name, polycoef=f"{number(change)} 0 0 0 0")
    if robot.base == "floating":
        warnings.append("the assembled posture is not written: a keyframe would need the pose of the base")
        return
    assert robot.assembled is not None
    place = dict(zip(robot.tree_coordinates, robot.assembled, strict=True))
    for joint in robot.joints:
        if joint.mimic is not None:
            place[joint.name] = joint.mimic.ratio * place[joint.mimic.leader] + joint.mimic.offset
    order = [e.get("name") for e in root.iter("joint") if e.get("name") in place and e.get("type") is not None]
    key = ET.SubElement(root, "keyframe")
    ET.SubElement(key, "key", name="assembled", qpos=numbers_text([place[str(x)] for x in order]))


def _tendons(root: ET.Element) -> ET.Element:
    found = root.find("tendon")
    return ET.SubElement(root, "tendon") if found is None else found


def _add_equality(root: ET.Element, section: ET.Element, equality: JointEquality, name: str) -> None:
    """An equality between joints, as one between fixed tendons."""
    ends = {"tendon1": name}
    sums = [(name, equality.weights)]
    if equality.leaders:
        ends["tendon2"] = f"{name}_leaders"
        sums.append((ends["tendon2"], equality.leaders))
    for tendon, weights in sums:
        fixed = ET.SubElement(_tendons(root), "fixed", name=tendon)
        for joint, weight in weights.items():
            ET.SubElement(fixed, "joint", joint=joint, coef=number(weight))
    padded = [*equality.polynomial, *[0.0] * (_COEFFICIENTS - len(equality.polynomial))]
    ET.SubElement(section, "tendon", {"name": name, **ends, "polycoef": numbers_text(padded)})


# Springs between motors and links in MJCF: two joints with one axis, and tendons for what acts on their sum.

# Attributes of a joint that a fixed tendon has as well, by their names there.
_ON_LINK = {"damping": "damping", "frictionloss": "frictionloss", "stiffness": "stiffness", "springref": "springlength"}


@dataclass(frozen=True, eq=False)
class Springs:
    """Motors and springs of flexible joints, on the joint side.

    Attributes
    ----------
    motors : Robot
        A robot whose drive terms are those of the motors; its bodies are not used.
    stiffness : mapping of str to float
        Stiffness per flexible joint, N m/rad or N/m.
    damping : mapping of str to float
        Damping per flexible joint, N m s/rad or N s/m.
    """

    motors: Robot
    stiffness: Mapping[str, float]
    damping: Mapping[str, float]


def add_spring(root: ET.Element, body: ET.Element, robot: Robot, joint: Joint, springs: Springs) -> None:
    """Make the joint that was added to a body last the motor of a flexible joint, and add its deflection.

    The position of the link is the sum of both: what acts on the link is a fixed tendon over them.
    """
    element = body.findall("joint")[-1]
    motor = drive_attributes(springs.motors, joint)
    if joint.name not in springs.stiffness:  # a rigid joint has motor and link in one
        for key, value in motor.items():
            element.set(key, number(float(value) + float(element.get(key, "0"))))
        return
    if joint.mimic is not None or any(j.mimic is not None and j.mimic.leader == joint.name for j in robot.joints):
        raise ModelError(
            f"'{joint.name}' is flexible and coupled to another joint, which MJCF cannot hold", code="unsupported"
        )
    on_link = {_ON_LINK[key]: element.attrib.pop(key) for key in _ON_LINK if key in element.attrib}
    element.attrib.update(motor)
    deflection = {key: value for key, value in element.attrib.items() if key in ("type", "pos", "axis")}
    spring = {
        "stiffness": number(springs.stiffness[joint.name]),
        "damping": number(springs.damping[joint.name]),
    }
    name = f"{joint.name}_deflection"
    ET.SubElement(body, "joint", {"name": name} | deflection | spring)
    if on_link:
        section = root.find("tendon")
        section = ET.SubElement(root, "tendon") if section is None else section
        tendon = ET.SubElement(section, "fixed", {"name": f"{joint.name}_link"} | on_link)
        for each in (joint.name, name):
            ET.SubElement(tendon, "joint", joint=each, coef="1")


_WORLD = "world"  # MuJoCo's own body, a name that no other may have


def write_mjcf(
    robot: Robot,
    path: str | Path,
    *,
    template: str | Path | None = None,
    allow_infeasible: bool = False,
    label: Label | None = None,
    springs: Springs | None = None,
) -> list[str]:
    """Write a robot as MJCF (MuJoCo).

    Parameters
    ----------
    robot : Robot
        The robot to write.
    path : str or Path
        File to write. It is replaced whole or not at all.
    template : str or Path, optional
        MJCF file of the same robot. Its text is kept and only inertial elements and drive attributes that differ
        change: a moving body takes the inertia of all that is fixed to it. Without a template the file is made from the
        tree, with the link frames as body frames.
    allow_infeasible : bool, default False
        Write bodies and drives that are not physically consistent. They are refused otherwise.
    label : Label, optional
        What the file says of the estimate it is made of: the verdict at its top, what decided each body in its <body>.
    springs : Springs, optional
        Springs between motors and links. A flexible joint is written as two joints of one body: the
        motor, which has the name of the joint, and its deflection. Friction of the link is that of a tendon over both.

    Returns
    -------
    list of str
        Warnings for the reader of the file. MuJoCo does not load bodies that are not physically consistent.

    Raises
    ------
    ModelError
        If the parameters are refused, the template is a file of another robot, or springs are given with a template.
    """
    content, warnings = mjcf_content(robot, template=template, allow_infeasible=allow_infeasible, springs=springs)
    warnings += missing_meshes(content, path, template)
    with writing(path) as part:
        part.write_bytes(labelled(content, "body", label, template))
    return warnings


def mjcf_content(
    robot: Robot, *, template: str | Path | None, allow_infeasible: bool, springs: Springs | None = None
) -> tuple[bytes, list[str]]:
    """The file that `write_mjcf` writes, without its label, and its warnings."""
    found = refuse_infeasible(robot, allow_infeasible)
    if springs is not None:
        if template is not None:
            raise ModelError(
                "springs add joints, which a template has not: write a new file", "template", code="not_applicable"
            )
        refuse_infeasible(replace(springs.motors, links=robot.links), allow_infeasible)
    robot, told = with_mean_friction(robot, "MJCF")
    # From the tree, each body that MuJoCo refuses is warned of where it is written.
    warnings = (infeasible_drives(robot) if template is None else found) + told + drive_warnings(robot)
    if springs is not None:
        warnings += drive_warnings(springs.motors)
    if template is None:
        return document(_from_tree(robot, warnings, springs)), warnings
    return patched_mjcf(robot, Path(template), warnings).to_bytes(), warnings


def missing_meshes(content: str | bytes, path: str | Path, template: str | Path | None) -> list[str]:
    """A warning where a file is not in the folder of its template, which has its meshes."""
    apart = template is not None and Path(path).resolve().parent != Path(template).resolve().parent
    if apart and any("file" in e.attributes for e in XmlText(content).root.iter()):
        return [f"the file needs the meshes and textures beside '{template}': put it into that folder"]
    return []


# -- from the tree -----------------------------------------------------------------------------------


def _add_inertial(body: ET.Element, link: Link, warnings: list[str]) -> None:
    ET.SubElement(body, "inertial", inertial_attributes(link.inertia, link.name, warnings))


class _Carrier(NamedTuple):
    """Where a link is written: in a body, at `place` of its frame, behind joints that wait for a body of their own."""

    body: ET.Element
    place: Array
    waiting: tuple[tuple[Joint, Array], ...] = ()


def _from_tree(robot: Robot, warnings: list[str], springs: Springs | None) -> ET.Element:
    root = ET.Element("mujoco", model=robot.name)
    ET.SubElement(root, "compiler", angle="radian", autolimits="true")
    ET.SubElement(root, "option", gravity=numbers_text(robot.gravity))
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
        body = ET.SubElement(carrier.body, "body", {"name": names[i], **pose_attributes(place)})
        for each, at in waiting:
            _add_joint(body, robot, each, inverse_placement(place) @ at)
            if springs is not None:
                add_spring(root, body, robot, each, springs)
        _add_inertial(body, robot.links[i], warnings)
        carriers.append(_Carrier(body, np.eye(4)))
    _add_sites(robot, names, carriers, warnings)
    _add_equalities(root, robot)
    add_loops(root, robot, [carrier.body for carrier in carriers], warnings)
    if any(np.isfinite(j.limits.velocity) for j in robot.joints):
        warnings.append("MJCF has no place for velocity limits")
    order = [e.get("name", "") for e in world.iter("joint") if e.get("name") in robot.tree_coordinates]
    if tuple(order) != robot.tree_coordinates:
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
    if robot.base == "fixed" and inertia_violations(link.inertia):
        if np.any(link.inertia):
            warnings.append(
                f"the base '{link.name}' is not physically consistent; its inertia, which has no effect, is left out"
            )
    elif floating or np.any(link.inertia):
        _add_inertial(body, link, warnings)
    return body


def _only_between_joints(robot: Robot, i: int) -> bool:
    """Whether a link is nothing but the place between two joints of one body."""
    link = robot.links[i]
    carries = sum(j.parent == i for j in robot.joints)
    frames = [*robot.frames, *(f for loop in robot.loops for f in loop.frames)]
    return link.virtual and not np.any(link.inertia) and carries == 1 and all(f.link != i for f in frames)


def _add_joint(body: ET.Element, robot: Robot, joint: Joint, at: Array) -> None:
    """A joint whose frame has placement `at` in the frame of its body."""
    limits = joint.limits
    attributes = {"name": joint.name, "type": "hinge" if joint.kind == "revolute" else "slide"}
    if joint.kind == "revolute" and np.any(clean(at)[:3, 3]):
        attributes["pos"] = numbers_text(clean(at)[:3, 3])
    attributes["axis"] = numbers_text(clean(at[:3, :3] @ joint.axis))
    if np.isfinite([limits.lower, limits.upper]).any():
        attributes["range"] = numbers_text(np.clip([limits.lower, limits.upper], -1e9, 1e9))
    if np.isfinite(limits.effort):
        attributes["actuatorfrcrange"] = numbers_text([-limits.effort, limits.effort])
    ET.SubElement(body, "joint", attributes | drive_attributes(robot, joint))


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
        ET.SubElement(carriers[frame.link].body, "site", {"name": frame.name, **pose_attributes(frame.placement)})


def _add_equalities(root: ET.Element, robot: Robot) -> None:
    followers = [(j.name, j.mimic) for j in robot.joints if j.mimic is not None]
    if followers:
        section = ET.SubElement(root, "equality")
        for name, mimic in followers:
            line = numbers_text([mimic.offset, mimic.ratio, 0, 0, 0])
            ET.SubElement(section, "joint", joint1=name, joint2=mimic.leader, polycoef=line)


# Change the inertias and drives in the text of an MJCF file.


_NOTHING = {"pos": "0 0 0", "mass": "0", "diaginertia": "0 0 0"}
_TURNS = ("quat", "axisangle", "xyaxes", "zaxis", "euler")


def patched_mjcf(robot: Robot, path: Path, warnings: list[str]) -> XmlText:
    """The text of an MJCF file with the inertias and drives of a robot; included files with bodies are put into it."""
    root = read_xml(path)
    if root.tag != "mujoco":
        raise ModelError(
            f"the template '{path.name}' is not an MJCF file: its root element is <{root.tag}>",
            "template",
            code="file_format",
        )
    include_files(root, path, {path.resolve()})
    setting = changing_setting(root)
    if setting:
        raise ModelError(
            f"the template '{path.name}' has the compiler setting {setting}, which changes inertias after reading: "
            "write a new file, or remove the setting",
            "template",
            code="unsupported",
        )
    settings = read_settings(root)
    template = match_template(robot, path)
    file = with_included_bodies(XmlText.read(path), path.parent)
    bodies = Named(body_elements(file.root, template.robot.base == "floating"), path.name)
    targets = _targets(robot, template, bodies, warnings)
    for name, pi in targets.items():
        _give(file, bodies[name], inertial_attributes(pi, name, warnings))
    emptied = [x for names in template.fixed.values() for x in names if x not in targets]
    for name in emptied if targets else []:
        _take(file, bodies[name])
    if settings.inertia_from_geom == "true":
        for compiler in file.root.findall("compiler"):
            file.set(compiler, {}, drop=["inertiafromgeom"])
        for name, body in bodies.items():
            if name not in targets and name not in emptied:
                for old in _inertials(body):
                    file.remove(old)
    joints = Named(
        {name: e for body_name, body in bodies.items() for name, e in joint_elements(body_name, body)}, path.name
    )
    for k, joint in enumerate(robot.joints):
        values = _changed_drive(robot, template, k, settings.degrees)
        file.set(joints[joint.name], values)
    return file


def _targets(robot: Robot, template: Template, bodies: dict[str, Element], warnings: list[str]) -> dict[str, Array]:
    """The bodies that get an inertia. MuJoCo's world has none, but a body that stands on it may be the base."""
    out = {}
    for name, pi in template.bodies.items():
        if name in bodies:
            out[name] = pi
            continue
        base = robot.links[0].name
        frame = next((f for f in template.robot.frames if f.name == base and f.link == 0), None)
        if frame is not None and base in bodies:
            out[base] = move_inertia(pi, inverse_placement(np.asarray(frame.placement)))
        else:
            warnings.append(f"the inertia of the base '{base}' is left as the template has it")
            template.fixed[name].clear()
    return out


def _changed_drive(robot: Robot, template: Template, number: int, degrees: bool) -> dict[str, str]:
    """Drive attributes that must change; what a follower has is felt by the joint it follows, and counted there."""
    joint = robot.joints[number]
    leader = joint if joint.mimic is None else next(j for j in robot.joints if j.name == joint.mimic.leader)
    terms = plain_joint_terms(robot, leader.name, DRIVE_KEYS)
    changed = {key for key, t in terms.items() if template.value(leader.name, t.symbol) != t.value}
    if joint.mimic is not None:
        return {key: "0" for key in terms if key in changed}
    keys = changed | ({"springref"} if "stiffness" in changed else set())
    return {key: value for key, value in drive_attributes(robot, joint, degrees).items() if key in keys}


# -- the text of the file ------------------------------------------------------------------------------


def with_included_bodies(file: XmlText, folder: Path) -> XmlText:
    """The file with the content of those included files in it that hold bodies; others stay included."""
    for element in file.root.iter("include"):
        inner = with_included_bodies(XmlText.read(folder / (element.get("file") or "")), folder)
        if any(e.tag == "body" or "inertiafromgeom" in e.attributes for e in inner.root.iter()):
            content = inner.source[inner.root.inner : inner.root.stop].strip()
            file.replace(element.start, element.end, content.replace("\r\n", "\n").replace("\n", file.newline))
    return XmlText(file.text(), file.mark, file.encoding) if file.changed else file


def _parts(body: Element) -> Iterator[Element]:
    """The elements of a body, those inside its <frame>s too."""
    for element in body.children:
        if element.tag == "frame":
            yield from _parts(element)
        else:
            yield element


def body_elements(root: Element, floating: bool) -> dict[str, Element]:
    """All bodies, or those of the flying tree; the ones without a name are counted as our reader counts them."""
    tops = root.findall("worldbody")
    if floating:
        bodies = [e for world in tops for e in _parts(world) if e.tag == "body"]
        tops = [b for b in bodies if any(e.tag == "freejoint" or e.get("type") == "free" for e in b.children)]
    out: dict[str, Element] = {}
    for body in (b for top in tops for b in top.iter("body")):
        out[body.get("name") or f"body{len(out) + 1}"] = body
    return out


def joint_elements(name: str, body: Element) -> list[tuple[str, Element]]:
    """Joints of a body with the names our reader gives them."""
    joints = [e for e in _parts(body) if e.tag in ("joint", "freejoint")]
    several = len(joints) > 1
    return [(e.get("name") or f"{name}_joint{k if several else ''}", e) for k, e in enumerate(joints, start=1)]


def _inertials(body: Element) -> list[Element]:
    return [e for e in _parts(body) if e.tag == "inertial"]


def _give(file: XmlText, body: Element, attributes: dict[str, str]) -> None:
    """Give a body an inertia, in the element it has if there is one."""
    old = body.findall("inertial")
    for other in _inertials(body):
        if other not in old[:1]:
            file.remove(other)
    if old:
        other_keys = {"diaginertia", "fullinertia"} - set(attributes)
        file.set(old[0], attributes, drop=[*_TURNS, *other_keys])
    else:
        file.insert(body, [open_tag("inertial", attributes)], first=True)


def _take(file: XmlText, body: Element) -> None:
    """Take the inertia from a body; its shapes must not bring it back."""
    if any(e.tag == "geom" for e in _parts(body)):
        _give(file, body, _NOTHING)
    else:
        for old in _inertials(body):
            file.remove(old)
