"""Collision geometry of a URDF file, assigned to the links of the robot that was loaded from it."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import coal  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray

from dynid.errors import ModelError
from dynid.robot.extent import carriers, find_mesh
from dynid.robot.model import Robot
from dynid.robot.spatial import placement, rpy_rotation
from dynid.robot.xmlfile import attribute, numbers, read_xml

__all__ = ["PRIMITIVES", "CollisionShape", "collision_shapes", "positive_sizes", "shape_origin"]

Array = NDArray[np.float64]

# Attributes of each primitive and the size of each.
PRIMITIVES = {
    "box": (("size", 3),),
    "sphere": (("radius", 1),),
    "cylinder": (("radius", 1), ("length", 1)),
    "capsule": (("radius", 1), ("length", 1)),
}


@dataclass(frozen=True, eq=False)
class CollisionShape:
    """A primitive with its dimensions, or a mesh with its vertices (N, 3), at `placement` (4, 4) on link `link`."""

    link: int
    placement: Array
    kind: str
    size: Array
    vertices: Array | None
    where: str


def collision_shapes(path: str | Path, robot: Robot, packages: Sequence[str | Path] = ()) -> Iterator[CollisionShape]:
    """Collision shapes of a URDF file; shapes of links on fixed joints belong to the link that carries them.

    Meshes named `package://NAME/...` are searched in the folders `packages` and in the parent folders of the file.
    """
    file, known = Path(path), carriers(robot)
    for link in read_xml(file).findall("link"):
        name = attribute(link, "name", "a link")
        for element in link.findall("collision"):
            if name not in known:
                raise ModelError(
                    f"{file.name} has a link '{name}', but robot '{robot.name}' does not: "
                    "load the robot from that file",
                    code="mismatch",
                )
            body, place = known[name]
            where = f"link '{name}', collision"
            geometry = element.find("geometry")
            if geometry is None or not len(geometry):
                raise ModelError(f"{where} has no shape")
            shape = geometry[0]
            if shape.tag != "mesh" and shape.tag not in PRIMITIVES:
                raise ModelError(
                    f"shape '{shape.tag}' is unknown, use {', '.join(PRIMITIVES)} or mesh",
                    code="unsupported",
                    where=where,
                )
            vertices = _vertices(shape, where, file, packages) if shape.tag == "mesh" else None
            size = [positive_sizes(shape, key, count, where) for key, count in PRIMITIVES.get(shape.tag, ())]
            yield CollisionShape(
                body,
                place @ shape_origin(element, where),
                shape.tag,
                np.concatenate(size) if size else np.zeros(0),
                vertices,
                where,
            )


def shape_origin(element: ET.Element, where: str) -> Array:
    """Placement (4, 4) of a collision or visual element on its link."""
    origin = element.find("origin")
    if origin is None:
        return np.eye(4)
    xyz = numbers(origin.get("xyz", "0 0 0"), 3, f"{where}, origin xyz")
    return placement(rpy_rotation(*numbers(origin.get("rpy", "0 0 0"), 3, f"{where}, origin rpy")), xyz)


def positive_sizes(shape: ET.Element, key: str, count: int, where: str) -> Array:
    """An attribute of a primitive: `count` positive numbers."""
    values = numbers(attribute(shape, key, f"{where}, {shape.tag}"), count, f"{where}, {shape.tag} {key}")
    if np.any(values <= 0):
        raise ModelError(f"{where}, {shape.tag} {key}: must be positive, found '{shape.get(key)}'")
    return values


def _vertices(shape: ET.Element, where: str, file: Path, packages: Sequence[str | Path]) -> Array:
    named = attribute(shape, "filename", f"{where}, mesh")
    scale = numbers(shape.get("scale", "1 1 1"), 3, f"{where}, mesh scale")
    found = find_mesh(named, file, packages)
    if found is None:
        raise ModelError(
            f"mesh '{named}' of {file.name} was not found; give the folder of its package",
            code="file_missing",
            where=where,
        )
    try:
        return np.array(coal.MeshLoader().load(str(found), scale).vertices())
    except ValueError:
        raise ModelError(f"mesh '{found}' cannot be read", code="file_damaged", where=where) from None
