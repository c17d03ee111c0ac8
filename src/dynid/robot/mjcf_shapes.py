"""Meshes of MJCF files, and boxes around geoms."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ModelError
from dynid.robot.extent import mesh_box, moved_box, round_box
from dynid.robot.mjcf_values import SHAPE_SIZES, Settings
from dynid.robot.spatial import inverse_placement
from dynid.robot.xmlfile import numbers

__all__ = ["MeshAsset", "geom_box", "mesh_files"]

Array = NDArray[np.float64]


class MeshAsset(NamedTuple):
    """The file of a mesh, its scale (3,), and where the scaled mesh is in the frame of its geom (4, 4)."""

    file: Path
    scale: Array
    reference: Array


def mesh_files(root: ET.Element, settings: Settings, folder: Path) -> dict[str, MeshAsset]:
    """Every mesh that has a file, by name."""
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
            reference = _reference(settings, given, scale)
        except ModelError:  # its size and place are then not known
            continue
        name = given.get("name") or Path(given["file"]).stem
        out[name] = MeshAsset(folder / below / given["file"], scale, reference)
    return out


def _reference(settings: Settings, given: Mapping[str, str], scale: Array) -> Array:
    """Placement of a scaled mesh by its refpos and refquat, which MuJoCo undoes before it scales."""
    frame = {key: given["ref" + key] for key in ("pos", "quat") if "ref" + key in given}
    back = inverse_placement(settings.pose(frame, "mesh, reference"))
    if "quat" in frame and np.ptp(scale) > 0:
        raise ModelError(
            "mesh, refquat: a mesh that is turned and then scaled by axis is not supported", code="unsupported"
        )
    back[:3, 3] *= scale
    return back


def geom_box(settings: Settings, given: Mapping[str, str], meshes: Mapping[str, MeshAsset]) -> Array | None:
    """Box (2, 3) of a geom in the frame of its body; None where it cannot be read."""
    kind = given.get("type", "sphere")
    try:
        if kind == "mesh" and given.get("mesh") in meshes:
            mesh = meshes[given["mesh"]]
            box = mesh_box(mesh.file, mesh.scale)
            return None if box is None else moved_box(box, settings.pose(given, "geom") @ mesh.reference)
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
