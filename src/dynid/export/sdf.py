"""Write a robot as SDF (Gazebo's format), from scratch or into the text of the file it came from."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ModelError
from dynid.export.contents import (
    body_values,
    lost_drives,
    lost_loops,
    number,
    numbers_text,
    own_term,
    plain_joint_terms,
    refuse_infeasible,
    rpy_angles,
    with_mean_friction,
)
from dynid.export.label import Label, labelled
from dynid.export.template import Named, Template, match_template
from dynid.export.xmltext import Element, XmlText, document
from dynid.files import writing
from dynid.robot.drives import TermKind, file_keys
from dynid.robot.model import Robot
from dynid.robot.parts import Joint
from dynid.robot.spatial import inverse_placement

__all__ = ["write_sdf"]

Array = NDArray[np.float64]
Children = Mapping[str, Any]  # tag -> text, or children again

_KEYS = file_keys("sdf")
_TENSOR = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
_LEAST = 1e-13  # kg and kg m2: a link without an inertial element would weigh a kilogram, one of no mass is refused


def write_sdf(
    robot: Robot,
    path: str | Path,
    *,
    template: str | Path | None = None,
    allow_infeasible: bool = False,
    label: Label | None = None,
) -> list[str]:
    """Write a robot as SDF (Gazebo).

    Parameters
    ----------
    robot : Robot
        The robot to write.
    path : str or Path
        File to write. It is replaced whole or not at all.
    template : str or Path, optional
        SDF file of the same robot. Its text is kept and only inertial and dynamics elements that differ change: a
        moving link takes the inertia of its whole body, links on fixed joints lose theirs. Without a template the file
        is made from the tree; a base that is not floating is fixed to the world.
    allow_infeasible : bool, default False
        Write bodies and drives that are not physically consistent. They are refused otherwise.
    label : Label, optional
        What the file says of the estimate it is made of: the verdict at its top, what decided each body in its <link>.

    Returns
    -------
    list of str
        Warnings for the reader of the file. Drive terms without a place in SDF are named.

    Raises
    ------
    ModelError
        If the parameters are refused, or the template is a file of another robot.
    """
    warnings = refuse_infeasible(robot, allow_infeasible) + lost_loops(robot, "SDF")
    robot, told = with_mean_friction(robot.tree, "SDF")
    warnings += told + lost_drives(robot, "SDF", lambda t: t.kind in _KEYS and own_term(robot, t))
    if template is not None:
        content = _from_template(robot, Path(template), warnings)
    else:
        content = document(_from_tree(robot, warnings))
    with writing(path) as part:
        part.write_bytes(labelled(content, "link", label, template))
    return warnings


def _pose(h: Array) -> str:
    return numbers_text([*h[:3, 3], *rpy_angles(h[:3, :3])])


def _inertial(pi: Array, name: str, warnings: list[str] | None) -> Children:
    """The content of an inertial element; a link without mass gets the least that is one."""
    mass, com, tensor = body_values(pi, name, "SDF")
    if not np.any(pi):
        mass, tensor = _LEAST, _LEAST * np.eye(3)
        if warnings is not None:
            least = f"{_LEAST:.1g} kg and kg m2"
            warnings.append(f"link '{name}' has no mass; SDF needs some, so it is written with {least}")
    return {
        "pose": numbers_text([*com, 0, 0, 0]),
        "mass": number(mass),
        "inertia": {tag: number(tensor[i]) for tag, i in _TENSOR.items()},
    }


def _dynamics(robot: Robot, joint: str) -> dict[str, str]:
    """Damping, friction and spring of a joint's own drive, where they are modelled."""
    out = {}
    for key, term in plain_joint_terms(robot, joint, _KEYS).items():
        out[key] = number(term.value)
        if term.kind == TermKind.SPRING:
            out["spring_reference"] = number(term.rest)
    return out


# -- from the tree -----------------------------------------------------------------------------------


def _add(parent: ET.Element, children: Children) -> None:
    for tag, content in children.items():
        element = ET.SubElement(parent, tag)
        if isinstance(content, str):
            element.text = content
        else:
            _add(element, content)


def _from_tree(robot: Robot, warnings: list[str]) -> ET.Element:
    if not np.array_equal(robot.gravity, [0, 0, -9.81]):
        given = ", ".join(number(v) for v in robot.gravity)
        warnings.append(f"an SDF model has no place for gravity: load the file with gravity=({given})")
    if robot.base == "instrumented":
        warnings.append('SDF has no measured base: load the file with base="instrumented"')
    names = _Names(warnings)
    links = [names.of(x.name, "link") for x in robot.links]
    joints = {j.name: names.of(j.name, "joint") for j in robot.joints}
    follows = any(j.mimic is not None for j in robot.joints)
    root = ET.Element("sdf", version="1.11" if follows else "1.7")
    model = ET.SubElement(root, "model", name=robot.name)
    for i, link in enumerate(robot.links):
        element = ET.SubElement(model, "link", name=links[i])
        if i > 0:
            joint = robot.joints[i - 1]
            pose = ET.SubElement(element, "pose", relative_to=links[joint.parent])
            pose.text = _pose(joint.placement @ joint.mount)
        _add(
            element,
            {"inertial": _inertial(link.inertia, link.name, None if i == 0 and robot.base == "fixed" else warnings)},
        )
    if robot.base != "floating":
        tie = ET.SubElement(model, "joint", name=names.of(f"{links[0]}_to_world", "joint"), type="fixed")
        _add(tie, {"parent": "world", "child": links[0]})
    for i, joint in enumerate(robot.joints):
        _add_joint(model, robot, joint, (joints, links[joint.parent], links[i + 1]))
    for frame in robot.frames:
        element = ET.SubElement(model, "frame", name=names.of(frame.name, "frame"), attached_to=links[frame.link])
        _add(element, {"pose": _pose(frame.placement)})
    return root


def _add_joint(model: ET.Element, robot: Robot, joint: Joint, names: tuple[Mapping[str, str], str, str]) -> None:
    joints, parent, child = names
    limits = joint.limits
    free = joint.kind == "revolute" and not np.isfinite([limits.lower, limits.upper]).any()
    kind = "continuous" if free else joint.kind
    element = ET.SubElement(model, "joint", name=joints[joint.name], type=kind)
    # A joint's pose is that of its frame on the child.
    _add(element, {"parent": parent, "child": child, "pose": _pose(inverse_placement(np.asarray(joint.mount)))})
    axis = ET.SubElement(element, "axis")
    _add(axis, {"xyz": numbers_text(joint.axis)})
    bounds = {tag: getattr(limits, tag) for tag in ("lower", "upper", "effort", "velocity")}
    finite = {tag: number(x) for tag, x in bounds.items() if np.isfinite(x)}
    if finite:
        _add(axis, {"limit": finite})
    values = _dynamics(robot, joint.name)
    if values:
        _add(axis, {"dynamics": values})
    if joint.mimic is not None:
        mimic = ET.SubElement(axis, "mimic", joint=joints[joint.mimic.leader], axis="axis")
        _add(mimic, {"multiplier": number(joint.mimic.ratio), "offset": number(joint.mimic.offset), "reference": "0"})


class _Names:
    """Names that SDF takes: no two alike in a model, whatever they name, none of its own words, on one line."""

    def __init__(self, warnings: list[str]) -> None:
        self._taken = {"world"}
        self._warnings = warnings

    def of(self, name: str, what: str) -> str:
        out = " ".join(name.split()).replace("::", ".")
        if out.startswith("__") and out.endswith("__"):
            out = out.strip("_")
        out = out or what
        if out in self._taken:
            out = f"{out}_{what}"
        while out in self._taken:
            out += "_"
        self._taken.add(out)
        if out != name:
            self._warnings.append(f"{what} '{name}' is written as '{out}': SDF does not take that name here")
        return out


# -- into a template ---------------------------------------------------------------------------------


def _from_template(robot: Robot, path: Path, warnings: list[str]) -> bytes:
    template = match_template(robot, path)
    file = XmlText.read(path)
    if file.root.tag != "sdf":
        raise ModelError(
            f"the template '{path.name}' is not an SDF file: its root element is <{file.root.tag}>",
            "template",
            code="file_format",
        )
    links, joints = (Named(_scoped(file, tag), path.name) for tag in ("link", "joint"))
    for name, pi in template.bodies.items():
        if name not in links:  # the world carries it all
            warnings.append(f"the inertia of the base '{name}' is left as the template has it")
            continue
        _patch(file, links[name], {"inertial": _inertial(pi, name, warnings)})
        for other in template.fixed[name]:
            _patch(file, links[other], {"inertial": _inertial(np.zeros(10), other, None)})
    for joint in robot.joints:
        values = _changed_dynamics(robot, template, joint)
        axis = joints[joint.name].find("axis")
        if values and axis is not None:
            _patch(file, axis, {"dynamics": values})
        elif values:
            _patch(file, joints[joint.name], {"axis": {"xyz": "0 0 1", "dynamics": values}})
    return file.to_bytes()


def _changed_dynamics(robot: Robot, template: Template, joint: Joint) -> dict[str, str]:
    """What must change in a joint's dynamics; what a follower has is counted in the joint that it follows."""
    leader = joint.mimic.leader if joint.mimic is not None else joint.name
    terms = plain_joint_terms(robot, leader, _KEYS)
    changed = {key for key, t in terms.items() if template.value(leader, t.symbol) != t.value}
    if joint.mimic is not None:
        return {key: "0" for key in terms if key in changed}
    keys = changed | ({"spring_reference"} if "spring_stiffness" in changed else set())
    return {key: value for key, value in _dynamics(robot, joint.name).items() if key in keys}


def _scoped(file: XmlText, tag: str) -> dict[str, Element]:
    """Links or joints of the model with joints, under their scoped names."""
    out: dict[str, Element] = {}

    def collect(model: Element, prefix: str) -> None:
        for element in model.findall(tag):
            out[prefix + (element.get("name") or "")] = element
        for inner in model.findall("model"):
            collect(inner, f"{prefix}{inner.get('name')}::")

    models = [m for top in (file.root, *file.root.findall("world")) for m in top.findall("model")]
    if len(models) > 1:
        models = [m for m in models if next(m.iter("joint"), None) is not None]
    collect(models[0], "")
    return out


def _lines(children: Children) -> Iterable[str]:
    for tag, content in children.items():
        if isinstance(content, str):
            yield f"<{tag}>{content}</{tag}>"
        else:
            inner = "".join(f"\n  {line}" for block in _lines(content) for line in block.split("\n"))
            yield f"<{tag}>{inner}\n</{tag}>"


def _patch(file: XmlText, element: Element, children: Children) -> None:
    """Give an element these children: those that it has change where they are, the others are put in."""
    missing = {}
    for tag, content in children.items():
        old = element.find(tag)
        if old is None:
            missing[tag] = content
        elif isinstance(content, str):
            file.set_content(old, content)
            file.set(old, {}, drop=["relative_to", "degrees", "rotation_format"])
        else:
            _patch(file, old, content)
    file.insert(element, list(_lines(missing)))
