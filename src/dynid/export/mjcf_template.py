"""Change the inertias and drives in the text of an MJCF file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ModelError
from dynid.export.contents import plain_joint_terms
from dynid.export.mjcf_parts import DRIVE_KEYS, drive_attributes, inertial_attributes
from dynid.export.template import Named, Template, match_template
from dynid.export.xmltext import Element, XmlText, open_tag
from dynid.robot.inertia import move_inertia
from dynid.robot.mjcf_files import include_files
from dynid.robot.mjcf_values import changing_setting, read_settings
from dynid.robot.model import Robot
from dynid.robot.spatial import inverse_placement
from dynid.robot.xmlfile import read_xml

__all__ = ["patched_mjcf"]

Array = NDArray[np.float64]

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
    file = _with_included_bodies(XmlText.read(path), path.parent)
    bodies = Named(_bodies(file.root, template.robot.base == "floating"), path.name)
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
    joints = Named({name: e for body_name, body in bodies.items() for name, e in _joints(body_name, body)}, path.name)
    for number, joint in enumerate(robot.joints):
        values = _changed_drive(robot, template, number, settings.degrees)
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


def _with_included_bodies(file: XmlText, folder: Path) -> XmlText:
    """The file with the content of those included files in it that hold bodies; others stay included."""
    for element in file.root.iter("include"):
        inner = _with_included_bodies(XmlText.read(folder / (element.get("file") or "")), folder)
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


def _bodies(root: Element, floating: bool) -> dict[str, Element]:
    """All bodies, or those of the flying tree; the ones without a name are counted as our reader counts them."""
    tops = root.findall("worldbody")
    if floating:
        bodies = [e for world in tops for e in _parts(world) if e.tag == "body"]
        tops = [b for b in bodies if any(e.tag == "freejoint" or e.get("type") == "free" for e in b.children)]
    out: dict[str, Element] = {}
    for body in (b for top in tops for b in top.iter("body")):
        out[body.get("name") or f"body{len(out) + 1}"] = body
    return out


def _joints(name: str, body: Element) -> list[tuple[str, Element]]:
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
