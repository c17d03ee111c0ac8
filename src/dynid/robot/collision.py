"""Collision shapes of a URDF file, on the links of the robot that was read from it."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import coal  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray

from dynid.errors import ModelError
from dynid.robot.model import Robot
from dynid.robot.spatial import placement, rpy_rotation
from dynid.robot.xmlfile import attribute, numbers, read_xml

__all__ = ["PRIMITIVES", "CollisionShape", "carriers", "collision_shapes"]

Array = NDArray[np.float64]

# Attributes of each primitive, with how many numbers they hold.
PRIMITIVES = {
    "box": (("size", 3),),
    "sphere": (("radius", 1),),
    "cylinder": (("radius", 1), ("length", 1)),
    "capsule": (("radius", 1), ("length", 1)),
}


@dataclass(frozen=True, eq=False)
class CollisionShape:
    """A primitive with its sizes, or a mesh with its vertices (N, 3), at `placement` (4, 4) in link number `link`."""

    link: int
    placement: Array
    kind: str
    size: Array
    vertices: Array | None
    where: str


def carriers(robot: Robot) -> dict[str, tuple[int, Array]]:
    """For every link and frame name: the link that carries it, and its placement there."""
    out = {f.name: (f.link, np.asarray(f.placement)) for f in robot.frames}
    return out | {link.name: (i, np.eye(4)) for i, link in enumerate(robot.links)}


def collision_shapes(path: str | Path, robot: Robot, packages: Sequence[str | Path] = ()) -> Iterator[CollisionShape]:
    """Shapes of a URDF file, those of links on fixed joints on the link that carries them.

    Meshes named `package://NAME/...` are looked for in folders `packages` and in those above the file.
    """
    file, known = Path(path), carriers(robot)
    for link in read_xml(file).findall("link"):
        name = attribute(link, "name", "a link")
        for element in link.findall("collision"):
            if name not in known:
                raise ModelError(
                    f"{file.name} has a link '{name}', robot '{robot.name}' has not: load it from that file"
                )
            body, place = known[name]
            where = f"link '{name}', collision"
            geometry = element.find("geometry")
            if geometry is None or not len(geometry):
                raise ModelError(f"{where} has no shape")
            shape = geometry[0]
            if shape.tag != "mesh" and shape.tag not in PRIMITIVES:
                raise ModelError(f"{where}: shape '{shape.tag}' is unknown, use {', '.join(PRIMITIVES)} or mesh")
            vertices = _vertices(shape, where, file, packages) if shape.tag == "mesh" else None
            size = [_positive(shape, key, count, where) for key, count in PRIMITIVES.get(shape.tag, ())]
            yield CollisionShape(
                body,
                place @ _origin(element, where),
                shape.tag,
                np.concatenate(size) if size else np.zeros(0),
                vertices,
                where,
            )


def _origin(collision: ET.Element, where: str) -> Array:
    origin = collision.find("origin")
    if origin is None:
        return np.eye(4)
    xyz = numbers(origin.get("xyz", "0 0 0"), 3, f"{where}, origin xyz")
    return placement(rpy_rotation(*numbers(origin.get("rpy", "0 0 0"), 3, f"{where}, origin rpy")), xyz)


def _positive(shape: ET.Element, key: str, count: int, where: str) -> Array:
    values = numbers(attribute(shape, key, f"{where}, {shape.tag}"), count, f"{where}, {shape.tag} {key}")
    if np.any(values <= 0):
        raise ModelError(f"{where}, {shape.tag} {key}: must be positive, found '{shape.get(key)}'")
    return values


def _vertices(shape: ET.Element, where: str, file: Path, packages: Sequence[str | Path]) -> Array:
    named = attribute(shape, "filename", f"{where}, mesh")
    scale = numbers(shape.get("scale", "1 1 1"), 3, f"{where}, mesh scale")
    found = next((p for p in _candidates(named, file, packages) if p.is_file()), None)
    if found is None:
        raise ModelError(f"{where}: mesh '{named}' of {file.name} is not there; give the folder of its package")
    try:
        return np.array(coal.MeshLoader().load(str(found), scale).vertices())
    except ValueError:
        raise ModelError(f"{where}: mesh '{found}' cannot be read") from None


def _candidates(named: str, file: Path, packages: Sequence[str | Path]) -> list[Path]:
    """Where a mesh may lie."""
    kind, _, rest = named.rpartition("://")
    if kind not in ("package", "model"):
        return [file.parent / rest]
    above = [Path(p) for p in packages] + list(file.absolute().parents)
    inner = rest.partition("/")[2]
    # A package folder may itself be given, or be named otherwise than the package.
    return [folder / part for folder in above for part in (rest, inner) if part]
