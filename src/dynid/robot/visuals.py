"""Visual shapes of a URDF file, and its meshes as STL for whoever draws the robot.

Meshes of all formats are read by coal, which Pinocchio brings along: no further package is needed. It runs in a process
of its own, because a damaged file may end it.
"""

from __future__ import annotations

import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.child import read_in_child
from dynid.errors import ModelError
from dynid.robot.collision import PRIMITIVES, positive_sizes, shape_origin
from dynid.robot.extent import carriers
from dynid.robot.model import Robot
from dynid.robot.xmlfile import attribute, numbers, read_xml

__all__ = ["MeshFile", "VisualShape", "meshes_as_stl", "stl_box", "stl_bytes", "visual_shapes"]

Array = NDArray[np.float64]

_TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
_HEADER = 80  # bytes of text before the number of triangles


@dataclass(frozen=True, eq=False)
class VisualShape:
    """A visible shape of a link.

    Attributes
    ----------
    link : int
        Index of the link of the robot that carries it.
    placement : ndarray, shape (4, 4)
        Where it is on that link.
    kind : str
        "mesh", or a primitive: box, sphere, cylinder, capsule.
    size : ndarray
        Dimensions of a primitive (m), in the order of `dynid.robot.collision.PRIMITIVES`.
    mesh : str
        Name of the mesh in the file; empty for a primitive.
    scale : ndarray, shape (3,)
        Scale of the mesh.
    color : str or None
        "#rrggbb"; None where the file gives none.
    """

    link: int
    placement: Array
    kind: str
    size: Array
    mesh: str
    scale: Array
    color: str | None


@dataclass(frozen=True, eq=False)
class MeshFile:
    """A mesh to be read: its file and its scale (3,)."""

    path: Path
    scale: Array


def visual_shapes(path: str | Path, robot: Robot) -> list[VisualShape]:
    """Visual shapes of a URDF file; shapes of links on fixed joints belong to the link that carries them.

    Parameters
    ----------
    path : str or Path
        The URDF file.
    robot : Robot
        The robot that was loaded from it; joints may be locked.

    Returns
    -------
    list of VisualShape
        Shapes of links that the robot does not have, such as those of the world, are left out.

    Raises
    ------
    ModelError
        If the file cannot be read or a shape is malformed.
    """
    file, known = Path(path), carriers(robot)
    root = read_xml(file)
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
        raise ModelError(f"{where}: shape '{shape.tag}' is unknown, use {', '.join(PRIMITIVES)} or mesh")
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
    rgba = numbers(color.get("rgba", ""), 4, "material, rgba")
    return "#" + "".join(f"{round(255 * float(x)):02x}" for x in np.clip(rgba[:3], 0.0, 1.0))


def meshes_as_stl(meshes: Sequence[MeshFile], most_triangles: int) -> list[bytes | str]:
    """Read meshes (STL, OBJ, DAE and what else assimp knows) and return them as binary STL, in m.

    Parameters
    ----------
    meshes : sequence of MeshFile
        The meshes; one process reads all of them.
    most_triangles : int
        Triangles of all meshes together; a mesh beyond that is left out.

    Returns
    -------
    list of bytes or str
        Each mesh, or a sentence on why it was left out.
    """
    if not meshes:
        return []
    wanted = [[str(m.path.resolve()), [float(x) for x in m.scale]] for m in meshes]
    largest = max((m.path for m in meshes), key=lambda p: p.stat().st_size)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        try:
            said = read_in_child(f"{__name__}:convert", largest, folder, [wanted, most_triangles], error=ModelError)
        except ModelError as error:
            return [str(error)] * len(meshes)
        return [words or (folder / f"{k}.stl").read_bytes() for k, words in enumerate(said)]


def convert(path: Path, folder: Path, argument: Any) -> list[str]:
    """The child: write every mesh as NUMBER.stl into the folder; returns a sentence, or "", for each."""
    import coal  # type: ignore[import-untyped]

    wanted, left = argument
    said = []
    for k, (file, scale) in enumerate(wanted):
        name = Path(file).name
        try:
            mesh = coal.MeshLoader().load(file, np.array(scale))
            corners = np.array(mesh.vertices())
            triangles = np.array([[t[0], t[1], t[2]] for t in (mesh.tri_indices(i) for i in range(mesh.num_tris))])
        except ValueError:
            said.append(f"{name} cannot be read")
            continue
        if len(triangles) > left:
            said.append(f"{name} has {len(triangles)} triangles, which are too many to draw")
            continue
        left -= len(triangles)
        if np.prod(scale) < 0:  # a mirrored mesh is inside out
            triangles = triangles[:, ::-1]
        (folder / f"{k}.stl").write_bytes(stl_bytes(corners[triangles.astype(int)]))
        said.append("")
    return said


def stl_bytes(corners: Array) -> bytes:
    """A binary STL file of triangles (N, 3, 3) in m, with their normals."""
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    out = np.zeros(len(corners), dtype=_TRIANGLE)
    out["normal"] = normals / np.where(lengths > 0, lengths, 1.0)
    out["corners"] = corners
    return bytes(_HEADER) + len(corners).to_bytes(4, "little") + out.tobytes()


def stl_box(stl: bytes) -> Array:
    """Box (2, 3) around the triangles of a file of `stl_bytes`."""
    corners = np.frombuffer(stl, _TRIANGLE, offset=_HEADER + 4)["corners"].reshape(-1, 3).astype(float)
    return np.array([corners.min(axis=0), corners.max(axis=0)]) if len(corners) else np.zeros((2, 3))
