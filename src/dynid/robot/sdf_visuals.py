"""Visible shapes of SDF files."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ModelError
from dynid.robot.extent import carriers
from dynid.robot.model import Robot
from dynid.robot.sdf import only_model
from dynid.robot.sdf_frames import Scope, child_text, read_pose
from dynid.robot.spatial import inverse_placement
from dynid.robot.visual_shape import VisualShape, hex_color
from dynid.robot.xmlfile import numbers

__all__ = ["sdf_visuals"]

Array = NDArray[np.float64]

# Elements of each primitive and the size of each.
_PRIMITIVES = {
    "box": (("size", 3),),
    "sphere": (("radius", 1),),
    "cylinder": (("radius", 1), ("length", 1)),
    "capsule": (("radius", 1), ("length", 1)),
    "ellipsoid": (("radii", 3),),
}
# What has no body: the ground, and a shape that is left empty on purpose.
_BODILESS = ("plane", "empty")


def sdf_visuals(root: ET.Element, path: Path, robot: Robot) -> list[VisualShape]:
    """The visual elements of the links of an SDF file, nested models included."""
    known, scope = carriers(robot), Scope(only_model(root, path.name))
    out = []
    for name, link in scope.links.items():
        for element in link.findall("visual"):
            geometry = element.find("geometry")
            if geometry is None or not len(geometry):
                raise ModelError(f"link '{name}', visual has no shape")
            if name in known and geometry[0].tag not in _BODILESS:
                out.append(_shape(element, geometry[0], name, known[name], scope))
    return out


def _shape(element: ET.Element, shape: ET.Element, link: str, carrier: tuple[int, Array], scope: Scope) -> VisualShape:
    body, place = carrier
    where = f"link '{link}', visual"
    if shape.tag != "mesh" and shape.tag not in _PRIMITIVES:
        raise ModelError(
            f"shape '{shape.tag}' is unknown, use {', '.join(_PRIMITIVES)} or mesh", code="unsupported", where=where
        )
    if shape.find("submesh") is not None:
        raise ModelError("a part of a mesh (submesh) is not drawn", code="unsupported", where=where)
    relative, pose = read_pose(element, where)
    if relative:
        frame = scope.find(relative, scope.prefix(link), where)
        pose = inverse_placement(scope.pose(link)) @ scope.pose(frame) @ pose
    size = [_sizes(shape, key, count, where) for key, count in _PRIMITIVES.get(shape.tag, ())]
    diffuse = (element.findtext("material/diffuse") or "").split()
    opaque = ["1"] if len(diffuse) == 3 else []  # the opacity may be left out
    return VisualShape(
        link=body,
        placement=place @ pose,
        kind=shape.tag,
        size=np.concatenate(size) if size else np.zeros(0),
        mesh=child_text(shape, "uri", f"{where}, mesh") if shape.tag == "mesh" else "",
        scale=numbers((shape.findtext("scale") or "1 1 1").strip(), 3, f"{where}, mesh scale"),
        color=hex_color(" ".join(diffuse + opaque), f"{where}, diffuse") if diffuse else None,
    )


def _sizes(shape: ET.Element, key: str, count: int, where: str) -> Array:
    text = child_text(shape, key, f"{where}, {shape.tag}")
    values = numbers(text, count, f"{where}, {shape.tag} {key}")
    if np.any(values <= 0):
        raise ModelError(f"{where}, {shape.tag} {key}: must be positive, found '{text}'")
    return values
