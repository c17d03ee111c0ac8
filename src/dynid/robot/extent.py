"""Extent of links: the box around the shapes of a link in a model file, in the frame of the link.

Only corners of meshes are needed, and robots are loaded often: STL and OBJ files are read here with NumPy, in 0.1 s for
the 24 meshes of a humanoid where the loader of coal takes 1.3 s. Meshes of other formats are not read.
"""

from __future__ import annotations

import logging
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import ModelError
from dynid.reading import read_regular
from dynid.robot.inside import check_inside, is_inside
from dynid.robot.mechanism import Mechanism
from dynid.robot.sdf_frames import read_pose
from dynid.robot.spatial import placement, rpy_rotation
from dynid.robot.xmlfile import numbers

__all__ = [
    "carriers",
    "find_mesh",
    "joined_boxes",
    "mesh_box",
    "moved_box",
    "round_box",
    "sdf_boxes",
    "urdf_boxes",
    "with_extents",
]

Array = NDArray[np.float64]
R = TypeVar("R", bound=Mechanism)
logger = logging.getLogger("dynid")

_HEADER = 84  # bytes of a binary STL file before its triangles
_TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


def carriers(robot: Mechanism) -> dict[str, tuple[int, Array]]:
    """Index of the carrying link and placement on it, by the name of every link and frame."""
    out = {f.name: (f.link, np.asarray(f.placement)) for f in robot.frames}
    return out | {link.name: (i, np.eye(4)) for i, link in enumerate(robot.links)}


def with_extents(robot: R, boxes: Mapping[str, Array | None]) -> R:
    """The robot with the extent of each link.

    `boxes` holds the box of each link of the file with shapes, None where a shape could not be read: what is fixed to
    a link belongs to it, and a link with a shape of unknown size has no extent.
    """
    known = carriers(robot)
    found: dict[int, list[Array | None]] = {}
    for name, box in boxes.items():
        if name not in known:  # it stands in the world of a floating robot
            continue
        link, place = known[name]
        found.setdefault(link, []).append(None if box is None else moved_box(box, place))
    links = [replace(x, extent=joined_boxes(found.get(i, ()))) for i, x in enumerate(robot.links)]
    return replace(robot, links=tuple(links))


def moved_box(box: ArrayLike, h: ArrayLike) -> Array:
    """Box (2, 3) around a box whose own frame has placement `h` (4, 4)."""
    lower, upper = np.asarray(box, dtype=float)
    h = np.asarray(h, dtype=float)
    middle = h[:3, :3] @ (0.5 * (lower + upper)) + h[:3, 3]
    half = np.abs(h[:3, :3]) @ (0.5 * (upper - lower))
    return np.array([middle - half, middle + half])


def joined_boxes(boxes: Iterable[Array | None]) -> Array | None:
    """Box (2, 3) around boxes; None if there is none or one of them is not known."""
    given = list(boxes)
    known = [box for box in given if box is not None]
    if not known or len(known) < len(given):
        return None
    both = np.array(known)
    return np.array([both[:, 0].min(axis=0), both[:, 1].max(axis=0)])


def round_box(half: ArrayLike) -> Array:
    """Box (2, 3) with half edges (3,) around the origin."""
    x = np.abs(np.asarray(half, dtype=float))
    return np.array([-x, x])


# -- URDF ----------------------------------------------------------------------------------------------


def urdf_boxes(root: ET.Element, path: Path) -> dict[str, Array | None]:
    """Box of each link of a URDF file with shapes: the collision shapes, or the visual ones where it has no others."""
    out = {}
    for link in root.findall("link"):
        shapes = link.findall("collision") or link.findall("visual")
        if shapes:
            out[link.get("name", "")] = joined_boxes([_urdf_box(shape, path) for shape in shapes])
    return out


def _urdf_box(element: ET.Element, path: Path) -> Array | None:
    """Box of a collision or visual element in the frame of its link; None where it cannot be read."""
    geometry, origin = element.find("geometry"), element.find("origin")
    if geometry is None or not len(geometry):
        return None
    try:
        box = _urdf_shape(geometry[0], path)
        if box is None or origin is None:
            return box
        rpy = numbers(origin.get("rpy", "0 0 0"), 3, "rpy")
        return moved_box(box, placement(rpy_rotation(*rpy), numbers(origin.get("xyz", "0 0 0"), 3, "xyz")))
    except ModelError as error:  # shapes matter here for the extent only: a wrong one makes it unknown
        logger.info("the size of a shape is not known: %s", error)
        return None


def _urdf_shape(shape: ET.Element, path: Path) -> Array | None:
    if shape.tag == "mesh":
        scale = numbers(shape.get("scale", "1 1 1"), 3, "scale")
        found = find_mesh(shape.get("filename", ""), path)
        return None if found is None else mesh_box(found, scale)
    if shape.tag == "box":
        return round_box(0.5 * numbers(shape.get("size"), 3, "size"))
    if shape.tag not in ("sphere", "cylinder", "capsule"):
        return None
    radius = numbers(shape.get("radius"), 1, "radius")[0]
    half = radius if shape.tag == "sphere" else 0.5 * numbers(shape.get("length"), 1, "length")[0]
    return round_box((radius, radius, half + radius if shape.tag == "capsule" else half))


# -- SDF -----------------------------------------------------------------------------------------------


def sdf_boxes(links: Mapping[str, ET.Element], path: Path) -> dict[str, Array | None]:
    """Box of each link of an SDF file with shapes, by the name of the link; as `urdf_boxes`."""
    out = {}
    for name, link in links.items():
        shapes = link.findall("collision") or link.findall("visual")
        if shapes:
            out[name] = joined_boxes([_sdf_box(shape, path) for shape in shapes])
    return out


def _sdf_box(element: ET.Element, path: Path) -> Array | None:
    geometry = element.find("geometry")
    if geometry is None or not len(geometry):
        return None
    shape = geometry[0]
    # The same shapes as in URDF, with elements in the place of attributes.
    given = {child.tag: (child.text or "").strip() for child in shape}
    given["filename"] = given.pop("uri", "")
    try:
        relative, place = read_pose(element, "a shape")
        box = _urdf_shape(ET.Element(shape.tag, given), path)
    except ModelError:
        return None
    return None if box is None or relative else moved_box(box, place)


# -- meshes --------------------------------------------------------------------------------------------


def find_mesh(named: str, file: Path, packages: Sequence[str | Path] = ()) -> Path | None:
    """The file of a mesh: beside the robot file, or in the folders of packages and above the robot file.

    None where there is none; a ModelError where it is outside these folders, or is no regular file.
    """
    kind, _, rest = named.rpartition("://")
    if kind not in ("package", "model"):
        path = file.parent / rest
        check_inside(named, path, file)
        return path if path.is_file() else None
    inner = rest.partition("/")[2]
    # The root of the file system is no place of packages.
    for folder in [Path(p) for p in packages] + list(file.absolute().parents)[:-1]:
        # The package folder itself may be given, or may have another name than the package.
        for part in (rest, inner):
            path = folder / part
            if part and is_inside(path, folder / file.name, above=0) and path.is_file():
                return path
    return None


def mesh_box(path: Path, scale: ArrayLike = (1.0, 1.0, 1.0)) -> Array | None:
    """Box (2, 3) around an STL or OBJ mesh, in m; None for other formats and for files that cannot be read."""
    try:
        content = read_regular(path)
    except OSError:
        return None
    reader = {".stl": _stl_corners, ".obj": _obj_corners}.get(path.suffix.lower())
    corners = None if reader is None else reader(content)
    if corners is None or not corners.size or not np.all(np.isfinite(corners)):
        return None
    scaled = np.array([corners.min(axis=0), corners.max(axis=0)]) * np.asarray(scale, dtype=float)
    return np.sort(scaled, axis=0)


def _stl_corners(content: bytes) -> Array | None:
    count = int.from_bytes(content[_HEADER - 4 : _HEADER], "little")
    if len(content) == _HEADER + count * _TRIANGLE.itemsize:
        triangles = np.frombuffer(content, _TRIANGLE, count, _HEADER)
        return np.asarray(triangles["corners"].reshape(-1, 3), dtype=float)
    return _listed_corners(content, b"vertex")


def _obj_corners(content: bytes) -> Array | None:
    return _listed_corners(content, b"v")


def _listed_corners(content: bytes, word: bytes) -> Array | None:
    """Corners of a text file, in the lines that start with a word."""
    rows = [line.split()[1:4] for line in content.splitlines() if line.split()[:1] == [word]]
    try:
        return np.array(rows, dtype=float).reshape(-1, 3)
    except ValueError:
        return None
