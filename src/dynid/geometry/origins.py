"""New origins of joints in the text of a URDF, MJCF or SDF file; everything else stays as it is, byte by byte.

A file may have other link frames than the robot. With the placement A of each link frame of the robot in that of the
file, the joint of the file gets the placement

    P_file' = A_parent P' mount inverse(A_child) inverse(mount_file)

which moves all that it carries as in the robot. MuJoCo's joints have positions and axes in the frame of their body,

    body' = product of P' motion(ref) mount,    joint i:  K = mount_i product over later joints of P' motion(ref) mount

so the body is placed anew, and where one has several joints, each joint by the inverse of its K.

Source: own derivation, from products of exponentials.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ModelError
from dynid.export.contents import numbers_text, rpy_angles
from dynid.export.mjcf import body_elements, joint_elements, pose_attributes, with_included_bodies
from dynid.export.template import match_template, named_elements
from dynid.export.xmltext import Element, XmlText, open_tag
from dynid.robot.mjcf_files import include_files
from dynid.robot.mjcf_values import Item, Settings, body_items, changing_setting, read_settings
from dynid.robot.model import Robot
from dynid.robot.parts import Joint
from dynid.robot.posture import link_placements
from dynid.robot.sdf import only_model
from dynid.robot.sdf_frames import MODEL, WORLD, Scope, read_pose
from dynid.robot.spatial import axis_rotation, inverse_placement, placement
from dynid.robot.xmlfile import numbers, read_xml

__all__ = ["PATCHERS"]

Array = NDArray[np.float64]

# Frames of robot and file that are this near to each other are one, with its numbers rounded (m and rad).
_SAME = 1e-4
# Changes of a number that are only rounding.
_ROUNDING = 1e-12
_ROOTS = {"urdf": "robot", "mjcf": "mujoco", "sdf": "sdf"}


class _Moved:
    """The robot of a file, and where its joints shall be."""

    def __init__(self, robot: Robot, corrected: Robot, path: Path, form: str) -> None:
        root = read_xml(path)
        if root.tag != _ROOTS[form]:
            raise ModelError(
                f"the template '{path.name}' is not a {form.upper()} file: its root element is <{root.tag}>",
                "template",
                code="file_format",
            )
        self.root, self.path = root, path
        self.own = match_template(robot, path).robot
        self.number = {j.name: k for k, j in enumerate(self.own.joints)}
        self.targets = self._targets(robot, corrected)
        self.left = {j.name for j, new in zip(self.own.joints, self.targets, strict=True) if _differ(j.placement, new)}

    def _targets(self, robot: Robot, corrected: Robot) -> list[Array]:
        """Placement of each joint of the file."""
        link = {0: 0} | {i + 1: self.number[j.name] + 1 for i, j in enumerate(robot.joints)}
        for joint in robot.joints:
            if link[joint.parent] != self.own.joints[self.number[joint.name]].parent:
                raise ModelError(
                    f"joint '{joint.name}' hangs on another link in the template '{self.path.name}' than in the robot",
                    "template",
                    code="unsupported",
                )
        places = self._places(robot, link)
        out = [np.asarray(j.placement) for j in self.own.joints]
        for i, joint in enumerate(corrected.joints):
            k = self.number[joint.name]
            back = inverse_placement(np.asarray(self.own.joints[k].mount) @ places[i + 1])
            out[k] = places[joint.parent] @ joint.placement @ joint.mount @ back
        return out

    def _places(self, robot: Robot, link: Mapping[int, int]) -> list[Array]:
        """Placement of each link frame of the robot in that of the file.

        The base may stand elsewhere in the file: then the first links are laid on each other.
        """
        found = []
        for position in (0.0, 1.0):
            values = dict.fromkeys(robot.coordinates, position)
            found.append((link_placements(robot, values), link_placements(self.own, values)))
        out: list[list[Array]] = []
        for first in (0, 1):
            start = [_exact(theirs[link[first]] @ inverse_placement(ours[first])) for ours, theirs in found]
            both = [
                [inverse_placement(theirs[link[i]]) @ h @ our for i, our in enumerate(ours)]
                for h, (ours, theirs) in zip(start, found, strict=True)
            ]
            out.append([_exact(h) for h in both[0]])
            if np.abs(np.array(both[0]) - np.array(both[1])).max() < _SAME:
                break
        return out[-1]

    def paired(self, root: ET.Element, file: XmlText) -> dict[ET.Element, Element]:
        """The text of each element that the parser found."""
        parsed, text = list(root.iter()), list(file.root.iter())
        if [e.tag.rpartition("}")[2] for e in parsed] != [e.tag for e in text]:
            raise ModelError(
                f"the elements of the template '{self.path.name}' do not stand in its text",
                "template",
                code="unsupported",
            )
        return dict(zip(parsed, text, strict=True))

    def done(self, name: str) -> None:
        """Note that a joint is where it shall be."""
        self.left.discard(name)

    def check(self) -> None:
        """Refuse joints that nothing in the text places."""
        if self.left:
            name = next(j.name for j in self.own.joints if j.name in self.left)
            raise ModelError(
                f"joint '{name}' does not stand in the text of the template '{self.path.name}': it is one of several "
                "that a joint of the file became",
                "template",
                code="unsupported",
            )


def _differ(a: Array, b: Array) -> bool:
    return bool(np.abs(np.asarray(a) - np.asarray(b)).max() > _ROUNDING)


def _exact(h: Array) -> Array:
    """A placement; the identity where only the rounding of a file moves it."""
    return np.eye(4) if np.abs(h - np.eye(4)).max() < _SAME else h


# -- URDF --------------------------------------------------------------------------------------------


def _urdf(robot: Robot, corrected: Robot, path: Path) -> bytes:
    """The text of a URDF file with other origins of its joints."""
    moved = _Moved(robot, corrected, path, "urdf")
    file, own = XmlText.read(path), moved.own
    elements = named_elements(file.root.findall("joint"), path.name)
    on_link = {f.name: np.asarray(f.placement) for f in own.frames}
    for joint, new in zip(own.joints, moved.targets, strict=True):
        if joint.name not in moved.left or joint.name not in elements:
            continue
        element = elements[joint.name]
        parent = element.find("parent")
        name = "" if parent is None else parent.get("link") or ""
        # The link that carries the joint may be fixed to the one that moves.
        carrier = np.eye(4) if name == own.links[joint.parent].name else on_link[name]
        h = inverse_placement(carrier) @ new
        origin = {"xyz": numbers_text(h[:3, 3]), "rpy": numbers_text(rpy_angles(h[:3, :3]))}
        old = element.find("origin")
        if old is None:
            file.insert(element, [open_tag("origin", origin)], first=True)
        else:
            file.set(old, origin)
        moved.done(joint.name)
    moved.check()
    return file.to_bytes()


# -- MJCF --------------------------------------------------------------------------------------------


def _mjcf(robot: Robot, corrected: Robot, path: Path) -> bytes:
    """The text of an MJCF file with other poses of its bodies; included files with bodies are put into it."""
    moved = _Moved(robot, corrected, path, "mjcf")
    include_files(moved.root, path, {path.resolve()})
    setting = changing_setting(moved.root)
    if setting:
        raise ModelError(
            f"the template '{path.name}' has the compiler setting {setting}, which changes poses after reading",
            "template",
            code="unsupported",
        )
    settings = read_settings(moved.root)
    file = with_included_bodies(XmlText.read(path), path.parent)
    tree = ET.fromstring(file.source)
    text = moved.paired(tree, file)
    floating = moved.own.base == "floating"
    names = {id(element): name for name, element in body_elements(file.root, floating).items()}
    todo = [i for w in tree.findall("worldbody") for i in body_items(settings, w, None)]
    while todo:
        item = todo.pop()
        if item.element.tag != "body":
            continue
        inner = list(body_items(settings, item.element, item.childclass))
        todo += inner
        body = text[item.element]
        if id(body) in names:
            _place_body(moved, settings, file, (item, body), names[id(body)], (inner, text))
    moved.check()
    return file.to_bytes()


def _place_body(
    moved: _Moved,
    settings: Settings,
    file: XmlText,
    body: tuple[Item, Element],
    name: str,
    content: tuple[list[Item], Mapping[ET.Element, Element]],
) -> None:
    """Place a body, and where it has several joints, each of them."""
    item, element = body
    inner, text = content
    items = {id(text[i.element]): i for i in inner if i.element.tag == "joint"}
    found = [(joint, e) for joint, e in joint_elements(name, element) if id(e) in items]
    if not any(joint in moved.left for joint, _ in found):
        return
    own = [moved.own.joints[moved.number[joint]] for joint, _ in found]
    motions = []
    for joint, (_, e) in zip(own, found, strict=True):
        given = settings.attributes(items[id(e)].element, items[id(e)].childclass)
        reference = float(numbers(given.get("ref", "0"), 1, f"joint '{joint.name}', ref")[0])
        motions.append(_motion(joint, settings.angle(reference) if joint.kind == "revolute" else reference))
    was, old = _products(own, [np.asarray(j.placement) for j in own], motions)
    now, new = _products(own, [moved.targets[moved.number[j.name]] for j in own], motions)
    if _differ(was, now):
        pose = settings.pose(item.element.attrib, f"body '{name}'") @ inverse_placement(was) @ now
        attributes = {"pos": "0 0 0", "quat": "1 0 0 0"} | pose_attributes(pose)
        file.set(element, attributes, drop=["axisangle", "xyaxes", "zaxis", "euler"])
    for joint, (_, e), before, after in zip(own, found, old, new, strict=True):
        moved.done(joint.name)
        if _differ(before, after):
            h = inverse_placement(after @ items[id(e)].pose)
            values = {"axis": numbers_text(h[:3, :3] @ joint.axis)}
            if joint.kind == "revolute":
                values["pos"] = numbers_text(h[:3, 3])
            file.set(e, values)


def _products(joints: list[Joint], placements: list[Array], motions: list[Array]) -> tuple[Array, list[Array]]:
    """The body in the one that carries it, and in the frame of each of its joints, at their reference positions."""
    after: list[Array] = []
    h = np.eye(4)
    for joint, place, motion in zip(joints[::-1], placements[::-1], motions[::-1], strict=True):
        after.insert(0, np.asarray(joint.mount) @ h)
        h = place @ motion @ after[0]
    return h, after


def _motion(joint: Joint, position: float) -> Array:
    if joint.kind == "prismatic":
        return placement(None, position * joint.axis)
    return placement(axis_rotation(joint.axis, position))


# -- SDF ---------------------------------------------------------------------------------------------


def _sdf(robot: Robot, corrected: Robot, path: Path) -> bytes:
    """The text of an SDF file with other poses of its links, joints and frames."""
    moved = _Moved(robot, corrected, path, "sdf")
    file, own = XmlText.read(path), moved.own
    text, scope = moved.paired(moved.root, file), Scope(only_model(moved.root, path.name))
    poses = _poses(moved, scope)
    for tag, elements in (("link", scope.links), ("joint", scope.joints), ("frame", scope.frames)):
        for name, element in elements.items():
            reference, given = scope.given(name)
            _write_pose(file, text[element], given, inverse_placement(poses(reference)) @ poses(name))
            if tag == "link":
                _keep_content(file, text, scope, poses, name)
    for joint in own.joints:
        if joint.name in scope.joints:
            _turn_axis(file, text, scope, poses, joint, moved.root.get("version", ""))
            moved.done(joint.name)
    moved.check()
    return file.to_bytes()


def _poses(moved: _Moved, scope: Scope) -> Callable[[str], Array]:
    """Where each frame of the model shall be at zero positions."""
    own = moved.own
    bodies, joints = [scope.pose(own.links[0].name)], {}
    for joint, target in zip(own.joints, moved.targets, strict=True):
        joints[joint.name] = bodies[joint.parent] @ target
        bodies.append(joints[joint.name] @ joint.mount)
    index = {link.name: i for i, link in enumerate(own.links)}
    index |= {m.link: index[m.into] for m in own.merged if m.into in index}

    def pose(name: str) -> Array:
        if name in joints and name in scope.joints:
            return joints[name]
        if name in scope.links or name in scope.joints or name in scope.frames:
            i = index[scope.body(name)]
            return bodies[i] @ inverse_placement(scope.pose(own.links[i].name)) @ scope.pose(name)
        return scope.pose(name)

    return pose


def _write_pose(file: XmlText, element: Element, old: Array, new: Array) -> None:
    if not _differ(old, new):
        return
    content = numbers_text([*new[:3, 3], *rpy_angles(new[:3, :3])])
    pose = element.find("pose")
    if pose is None:
        file.insert(element, [f"<pose>{content}</pose>"], first=True)
    else:
        file.set_content(pose, content)
        file.set(pose, {}, drop=["degrees", "rotation_format"])


def _keep_content(
    file: XmlText, text: Mapping[ET.Element, Element], scope: Scope, poses: Callable[[str], Array], name: str
) -> None:
    """Keep shapes and sensors where they are on their link if their poses are relative to another frame."""
    where = f"link '{name}'"
    for element in scope.links[name].iter():
        pose = element.find("pose")
        if element is not scope.links[name] and pose is not None and pose.get("relative_to"):
            reference, given = read_pose(element, where)
            full = scope.find(reference, scope.prefix(name), where)
            on_link = inverse_placement(scope.pose(name)) @ scope.pose(full) @ given
            _write_pose(file, text[element], given, inverse_placement(poses(full)) @ poses(name) @ on_link)


def _turn_axis(
    file: XmlText,
    text: Mapping[ET.Element, Element],
    scope: Scope,
    poses: Callable[[str], Array],
    joint: Joint,
    version: str,
) -> None:
    """Turn an axis that is given in another frame than that of its joint."""
    axis = scope.joints[joint.name].find("axis")
    xyz = None if axis is None else axis.find("xyz")
    if axis is None or xyz is None:
        return
    frame = xyz.get("expressed_in", "")
    if tuple(int(v) for v in version.split(".")) < (1, 5):
        frame = MODEL
    if (axis.findtext("use_parent_model_frame") or "").strip() in ("true", "1"):
        frame = MODEL
    if not frame:
        return
    full = scope.find(frame, scope.prefix(joint.name), f"joint '{joint.name}'") if frame != WORLD else WORLD
    turned, before = (x[:3, :3] @ joint.axis for x in _relative(poses, scope, full, joint.name))
    if _differ(turned, before):
        file.set_content(text[xyz], numbers_text(turned))


def _relative(poses: Callable[[str], Array], scope: Scope, frame: str, joint: str) -> tuple[Array, Array]:
    """The joint in a frame, as it shall be and as it is."""
    return (
        inverse_placement(poses(frame)) @ poses(joint),
        inverse_placement(scope.pose(frame)) @ scope.pose(joint),
    )


PATCHERS: dict[str, Callable[[Robot, Robot, Path], bytes]] = {"urdf": _urdf, "mjcf": _mjcf, "sdf": _sdf}
