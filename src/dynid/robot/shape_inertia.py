"""Inertia of links from their collision or visual shapes, for URDF and SDF files that give none.

Volumes of meshes are integrated by coal, which Pinocchio brings along: no further package is needed.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import coal  # type: ignore[import-untyped]
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from dynid.errors import ModelError, named
from dynid.robot.extent import find_mesh
from dynid.robot.inertia import move_inertia
from dynid.robot.notes import quoted
from dynid.robot.sdf_frames import read_pose
from dynid.robot.spatial import placement, rpy_rotation
from dynid.robot.xmlfile import attribute, numbers

__all__ = ["ShapeInertia", "sdf_shapes", "shapes_inertia", "with_shapes"]

Array = NDArray[np.float64]

_WATER = 1000.0  # kg/m3, the default of SDF and MuJoCo


@dataclass(frozen=True)
class ShapeInertia:
    """How inertias are computed from shapes.

    Attributes
    ----------
    source : {"collision", "visual"}
        Which shapes.
    density : float or None
        Density of all shapes (kg/m3); 1000 if neither is given.
    shape_mass : float or None
        Mass (kg) of all links whose inertia is computed, together.

    Raises
    ------
    ModelError
        For other shapes, both a density and a mass, or values that are not positive.
    """

    source: Literal["collision", "visual"]
    density: float | None = None
    shape_mass: float | None = None

    def __post_init__(self) -> None:
        if self.source not in ("collision", "visual"):
            raise ModelError(
                f"{named('inertia_from')} '{self.source}' is unknown: use collision or visual", code="unknown_name"
            )
        if self.density is not None and self.shape_mass is not None:
            raise ModelError("give density or shape_mass, not both", "density", code="conflicting")
        for what in ("density", "shape_mass"):
            value = getattr(self, what)
            if value is not None and not (np.isfinite(value) and value > 0):
                raise ModelError(f"{what} must be positive, got {value:g}", code="invalid_value")


def with_shapes(
    inertias: dict[str, Array], links: Mapping[str, Sequence[ET.Element]], path: Path, wanted: ShapeInertia
) -> list[str]:
    """Set the inertia of links from their shapes; returns a sentence on them.

    `links` holds the shapes, in the notation of URDF, of each link without an inertia.
    """
    found = {
        name: shapes_inertia(shapes, path, f"link '{name}', {wanted.source}")
        for name, shapes in links.items()
        if shapes
    }
    volume = sum(float(pi[0]) for pi in found.values())
    if not found:
        raise ModelError(
            f"{path.name} has no link without inertia that has {wanted.source} shapes",
            "inertia_from",
            code="missing_data",
        )
    density = wanted.density if wanted.density is not None else _WATER
    if wanted.shape_mass is not None:
        density = wanted.shape_mass / volume
    for name, pi in found.items():
        inertias[name] = density * pi
    names = quoted("link", list(found))
    return [f"the inertia of {names} was computed from {wanted.source} shapes with a density of {density:.4g} kg/m3"]


def shapes_inertia(shapes: Sequence[ET.Element], path: Path, where: str) -> Array:
    """Inertial parameters (10,) of shapes at a density of 1, in the frame of their link."""
    total = np.zeros(10)
    for element in shapes:
        geometry, origin = element.find("geometry"), element.find("origin")
        if geometry is None or not len(geometry):
            raise ModelError(f"{where} has no shape")
        place = np.eye(4)
        if origin is not None:
            rpy = numbers(origin.get("rpy", "0 0 0"), 3, f"{where}, origin rpy")
            place = placement(rpy_rotation(*rpy), numbers(origin.get("xyz", "0 0 0"), 3, f"{where}, origin xyz"))
        total += move_inertia(_solid(geometry[0], path, where), place)
    return total


def sdf_shapes(link: ET.Element, source: str, where: str) -> list[ET.Element]:
    """The shapes of an SDF link in the notation of URDF."""
    out = []
    for element in link.findall(source):
        relative, place = read_pose(element, where)
        geometry = element.find("geometry")
        if relative or geometry is None or not len(geometry):
            raise ModelError(
                "a shape without geometry or in the frame of another link is not supported",
                code="unsupported",
                where=where,
            )
        shape = geometry[0]
        given = {child.tag: (child.text or "").strip() for child in shape}
        given["filename"] = given.pop("uri", "")
        out.append(ET.Element(source))
        ET.SubElement(ET.SubElement(out[-1], "geometry"), shape.tag, given)
        pose = {"xyz": place[:3, 3], "rpy": pin.rpy.matrixToRpy(place[:3, :3])}
        ET.SubElement(out[-1], "origin", {key: " ".join(repr(float(x)) for x in value) for key, value in pose.items()})
    return out


def _solid(shape: ET.Element, path: Path, where: str) -> Array:
    """Inertial parameters of a shape at a density of 1, in its own frame."""

    def size(key: str, count: int = 1) -> Array:
        values = numbers(attribute(shape, key, f"{where}, {shape.tag}"), count, f"{where}, {shape.tag} {key}")
        if np.any(values <= 0):
            raise ModelError(f"{where}, {shape.tag} {key}: must be positive, found '{shape.get(key)}'")
        return values

    if shape.tag == "mesh":
        return _mesh(shape, path, where)
    if shape.tag == "box":
        x, y, z = size("size", 3)
        volume, unit = x * y * z, pin.Inertia.FromBox(1.0, x, y, z)
    elif shape.tag == "sphere":
        r = size("radius")[0]
        volume, unit = 4 / 3 * np.pi * r**3, pin.Inertia.FromSphere(1.0, r)
    elif shape.tag in ("cylinder", "capsule"):
        r, length = size("radius")[0], size("length")[0]
        volume, unit = np.pi * r**2 * length, pin.Inertia.FromCylinder(1.0, r, length)
        if shape.tag == "capsule":
            volume, unit = volume + 4 / 3 * np.pi * r**3, pin.Inertia.FromCapsule(1.0, r, length)
    else:
        raise ModelError(
            f"the inertia of a {shape.tag} is not computed: use box, sphere, cylinder or mesh",
            code="unsupported",
            where=where,
        )
    return volume * np.asarray(unit.toDynamicParameters())


def _mesh(shape: ET.Element, path: Path, where: str) -> Array:
    named = attribute(shape, "filename", f"{where}, mesh")
    scale = numbers(shape.get("scale", "1 1 1"), 3, f"{where}, mesh scale")
    found = find_mesh(named, path)
    if found is None:
        raise ModelError(
            f"mesh '{named}' was not found, so its inertia cannot be computed", code="file_missing", where=where
        )
    try:
        mesh = coal.MeshLoader().load(str(found), scale)
    except ValueError:
        raise ModelError(f"mesh '{named}' cannot be read", code="file_damaged", where=where) from None
    open_edges = _open_edges(mesh)
    if open_edges:
        raise ModelError(f"mesh '{named}' is not closed ({open_edges} open edges), so it has no volume", where=where)
    volume = float(mesh.computeVolume())
    if volume == 0:
        raise ModelError(f"mesh '{named}' has no volume", where=where)
    tensor, moment = np.array(mesh.computeMomentofInertia()), volume * np.array(mesh.computeCOM())
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = tensor
    # A mesh whose faces look inwards has a negative volume.
    return np.sign(volume) * np.array([volume, *moment, xx, xy, yy, xz, yz, zz])


def _open_edges(mesh: coal.BVHModelBase) -> int:
    """Number of edges without a second triangle in the other direction; corners at one place are one corner."""
    corners = np.asarray(mesh.vertices())
    size = max(float(np.ptp(corners, axis=0).max()), 1e-12)
    _, number = np.unique(np.round(corners / size, 6), axis=0, return_inverse=True)
    triangles = [mesh.tri_indices(i) for i in range(mesh.num_tris)]
    corner = number.ravel()[np.array([[t[0], t[1], t[2]] for t in triangles], dtype=np.int64)]
    edges: Counter[tuple[int, int]] = Counter()
    for a, b in ((0, 1), (1, 2), (2, 0)):
        for i, j in zip(corner[:, a].tolist(), corner[:, b].tolist(), strict=True):
            if i != j:
                edges[(min(i, j), max(i, j))] += 1 if i < j else -1
    return sum(count != 0 for count in edges.values())
