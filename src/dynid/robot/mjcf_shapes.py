"""Boxes around the geoms of MJCF files."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ModelError
from dynid.robot.extent import mesh_box, moved_box, round_box
from dynid.robot.mjcf_values import SHAPE_SIZES, Settings
from dynid.robot.xmlfile import numbers

__all__ = ["geom_box", "mesh_files"]

Array = NDArray[np.float64]


def mesh_files(root: ET.Element, settings: Settings, folder: Path) -> dict[str, tuple[Path, Array]]:
    """File and scale of every mesh, by name."""
    below = Path()
    for compiler in root.findall("compiler"):
        below = Path(compiler.get("meshdir") or compiler.get("assetdir") or below)
    out = {}
    for mesh in root.iterfind("asset/mesh"):
        given = settings.attributes(mesh, None)
        if "file" not in given:
            continue
        try:
            scale = numbers(given.get("scale", "1 1 1"), 3, "mesh, scale")
        except ModelError:  # the extents are then not known
            continue
        out[given.get("name") or Path(given["file"]).stem] = (folder / below / given["file"], scale)
    return out


def geom_box(settings: Settings, given: Mapping[str, str], meshes: Mapping[str, tuple[Path, Array]]) -> Array | None:
    """Box (2, 3) of a geom in the frame of its body; None where it cannot be read."""
    kind = given.get("type", "sphere")
    try:
        if kind == "mesh" and given.get("mesh") in meshes:
            box = mesh_box(*meshes[given["mesh"]])
            return None if box is None else moved_box(box, settings.pose(given, "geom"))
        if kind not in SHAPE_SIZES or "mesh" in given:
            return None
        place, size = settings.shape(given, kind, "geom")
    except ModelError:
        return None
    if kind == "sphere":
        half = np.full(3, size[0])
    elif kind in ("capsule", "cylinder"):
        half = np.array([size[0], size[0], size[1] + (size[0] if kind == "capsule" else 0.0)])
    else:
        half = size
    return moved_box(round_box(half), place)
