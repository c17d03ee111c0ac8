"""Visible shapes of URDF files."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ModelError
from dynid.robot.collision import PRIMITIVES, positive_sizes, shape_origin
from dynid.robot.extent import carriers
from dynid.robot.model import Robot
from dynid.robot.visual_shape import VisualShape, hex_color
from dynid.robot.xmlfile import attribute, numbers

__all__ = ["urdf_visuals"]

Array = NDArray[np.float64]


def urdf_visuals(root: ET.Element, path: Path, robot: Robot) -> list[VisualShape]:
    """The visual elements of the links of a URDF file."""
    known = carriers(robot)
    materials = {m.get("name", ""): _color(m, {}) for m in root.findall("material")}
    out = []
    for link in root.findall("link"):
        name = attribute(link, "name", "a link")
        if name not in known:
            continue
        body, place = known[name]
        for element in link.findall("visual"):
            out.append(_shape(element, body, place, f"link '{name}', visual", materials))
    return out


def _shape(
    element: ET.Element, body: int, place: Array, where: str, materials: Mapping[str, str | None]
) -> VisualShape:
    geometry = element.find("geometry")
    if geometry is None or not len(geometry):
        raise ModelError(f"{where} has no shape")
    shape, material = geometry[0], element.find("material")
    if shape.tag != "mesh" and shape.tag not in PRIMITIVES:
        raise ModelError(
            f"shape '{shape.tag}' is unknown, use {', '.join(PRIMITIVES)} or mesh", code="unsupported", where=where
        )
    size = [positive_sizes(shape, key, count, where) for key, count in PRIMITIVES.get(shape.tag, ())]
    return VisualShape(
        link=body,
        placement=place @ shape_origin(element, where),
        kind=shape.tag,
        size=np.concatenate(size) if size else np.zeros(0),
        mesh=attribute(shape, "filename", f"{where}, mesh") if shape.tag == "mesh" else "",
        scale=numbers(shape.get("scale", "1 1 1"), 3, f"{where}, mesh scale"),
        color=None if material is None else _color(material, materials),
    )


def _color(material: ET.Element, known: Mapping[str, str | None]) -> str | None:
    """The color of a material, or of the one of the same name; None where there is none."""
    color = material.find("color")
    if color is None:
        return known.get(material.get("name", ""))
    return hex_color(color.get("rgba", ""), "material, rgba")
