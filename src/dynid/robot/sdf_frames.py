"""Names and poses of an SDF model: resolves poses that are relative to other frames."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from dynid.errors import ModelError
from dynid.robot.spatial import inverse_placement, placement, rpy_rotation
from dynid.robot.xmlfile import attribute, numbers

__all__ = ["MODEL", "WORLD", "Scope", "child_text", "read_pose"]

Array = NDArray[np.float64]

MODEL, WORLD = "__model__", "world"  # reserved names of SDF: the frame of the model, and the world


def child_text(element: ET.Element, tag: str, where: str) -> str:
    """The text of a required child element."""
    text = (element.findtext(tag) or "").strip()
    if not text:
        raise ModelError(f"{where} has no <{tag}>", code="missing_data")
    return text


def read_pose(element: ET.Element, where: str) -> tuple[str, Array]:
    """The frame that the pose of an element is relative to ("" for the default), and the pose (4, 4)."""
    pose = element.find("pose")
    if pose is None or not (pose.text or "").strip():
        return ("" if pose is None else pose.get("relative_to", "")), np.eye(4)
    if pose.get("frame"):
        raise ModelError(
            "the pose attribute 'frame' is older than SDF 1.7, use relative_to", code="unsupported", where=where
        )
    if pose.get("rotation_format", "euler_rpy") == "quat_xyzw":
        x, y, z, *quaternion = numbers(pose.text, 7, f"{where}, pose")
        i, j, k, w = np.array(quaternion) / np.linalg.norm(quaternion)
        rotation = np.asarray(pin.Quaternion(w, i, j, k).toRotationMatrix())
    else:
        x, y, z, *angles = numbers(pose.text, 6, f"{where}, pose")
        if pose.get("degrees") in ("true", "1"):
            angles = [float(np.radians(a)) for a in angles]
        rotation = rpy_rotation(*angles)
    return pose.get("relative_to", ""), placement(rotation, (x, y, z))


class Scope:
    """Links, joints and frames of a model and its nested models, by scoped name (inner::link)."""

    def __init__(self, model: ET.Element) -> None:
        self.links: dict[str, ET.Element] = {}
        self.joints: dict[str, ET.Element] = {}
        self.frames: dict[str, ET.Element] = {}
        self._given: dict[str, tuple[str, Array]] = {}  # name -> frame of its pose, pose
        self._attached: dict[str, str] = {}
        self._known: dict[str, Array] = {MODEL: np.eye(4)}
        self._collect(model, "")
        _, self.in_world = read_pose(model, "the model")
        self._known[WORLD] = inverse_placement(self.in_world)

    def _collect(self, model: ET.Element, prefix: str) -> None:
        name = prefix.removesuffix("::")
        if model.get("placement_frame"):
            raise ModelError(f"model '{model.get('name', '')}': placement_frame is not supported", code="unsupported")
        if model.find("include") is not None:
            raise ModelError(
                f"model '{model.get('name', '')}' includes another file, which is not supported", code="unsupported"
            )
        for tag, into in (("link", self.links), ("joint", self.joints), ("frame", self.frames)):
            for element in model.findall(tag):
                full = prefix + attribute(element, "name", f"a {tag}")
                if full == WORLD:
                    continue  # files older than SDF 1.8 may write the world as a link; it does not move
                if full in self._given:
                    raise ModelError(f"the model has two elements named '{full}'", code="duplicate")
                into[full] = element
                relative, pose = read_pose(element, f"{tag} '{full}'")
                if tag == "joint" and not relative:
                    relative = child_text(element, "child", f"joint '{full}'")
                if tag == "frame":
                    self._attached[full] = prefix + element.get("attached_to", MODEL)
                    relative = relative or element.get("attached_to", "")
                self._given[full] = (prefix + (relative or MODEL), pose)
        for inner in model.findall("model"):
            full = prefix + attribute(inner, "name", "a nested model")
            relative, pose = read_pose(inner, f"model '{full}'")
            self._given[f"{full}::{MODEL}"] = (prefix + (relative or MODEL), pose)
            self._given[full] = (f"{full}::{MODEL}", np.eye(4))
            self._collect(inner, f"{full}::")
            self._attached[full] = f"{full}::{MODEL}"
        canonical = model.get("canonical_link")
        first = next((n for n in self.links if n.startswith(prefix)), None)
        if canonical or first:
            self._attached[f"{name}::{MODEL}" if name else MODEL] = prefix + canonical if canonical else str(first)

    def prefix(self, name: str) -> str:
        """The scope of a name, with trailing colons."""
        return name.rpartition("::")[0] + "::" if "::" in name else ""

    def find(self, name: str, prefix: str, where: str) -> str:
        """The full name of an element called `name` inside a scope."""
        full = prefix + name
        if full not in self._given and full not in self._known:
            raise ModelError(f"{where} refers to '{full}', which the model does not have", code="unknown_name")
        return full

    def given(self, name: str) -> tuple[str, Array]:
        """Full name of the frame that the pose of an element is relative to, and that pose."""
        return self._given[name]

    def pose(self, name: str) -> Array:
        """Placement of a frame in the frame of the model."""
        chain: list[str] = []
        while name not in self._known:
            if name not in self._given:
                raise ModelError(
                    f"the pose of '{chain[-1] if chain else name}' is relative to an unknown frame '{name}'",
                    code="unknown_name",
                )
            if name in chain:
                raise ModelError(f"the pose of '{name}' is relative to itself")
            chain.append(name)
            name = self._given[name][0]
        for each in reversed(chain):
            relative, pose = self._given[each]
            self._known[each] = self._known[relative] @ pose
        return self._known[chain[0] if chain else name]

    def body(self, name: str) -> str:
        """The link to which a frame, joint or nested model is attached."""
        seen = []
        while name not in self.links:
            if name in seen:
                raise ModelError(f"frame '{name}' is attached to itself")
            seen.append(name)
            if name in self.joints:
                child = child_text(self.joints[name], "child", f"joint '{name}'")
                name = self.find(child, self.prefix(name), f"joint '{name}'")
            elif name in self._attached:
                name = self._attached[name]
            else:
                raise ModelError(f"frame '{name}' is not attached to any link of the model")
        return name
