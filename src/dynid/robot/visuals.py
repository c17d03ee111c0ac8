"""Visible shapes of a robot file, and its meshes as STL for whoever draws the robot.

Meshes of all formats are read by coal, which Pinocchio brings along: no further package is needed. It runs in a process
of its own, because a damaged file may end it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.child import read_in_child
from dynid.errors import ModelError
from dynid.robot.mjcf_visuals import mjcf_visuals
from dynid.robot.model import Robot
from dynid.robot.sdf_visuals import sdf_visuals
from dynid.robot.urdf_visuals import urdf_visuals
from dynid.robot.visual_shape import VisualShape
from dynid.robot.xmlfile import read_xml

__all__ = ["MeshFile", "VisualShape", "meshes_as_stl", "stl_box", "stl_bytes", "visual_shapes"]

Array = NDArray[np.float64]

_TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
_HEADER = 80  # bytes of text before the number of triangles


@dataclass(frozen=True, eq=False)
class MeshFile:
    """A mesh to be read: its file and its scale (3,)."""

    path: Path
    scale: Array


def visual_shapes(path: str | Path, robot: Robot) -> list[VisualShape]:
    """Visible shapes of a URDF, MJCF or SDF file; shapes of links on fixed joints belong to the link that carries them.

    Parameters
    ----------
    path : str or Path
        The file.
    robot : Robot
        The robot that was loaded from it; joints may be locked.

    Returns
    -------
    list of VisualShape
        Shapes of links that the robot does not have, such as those of the world, are left out. Of an MJCF file these
        are the shapes that MuJoCo's viewer shows.

    Raises
    ------
    ModelError
        If the file cannot be read or a shape is malformed.
    """
    file = Path(path)
    root = read_xml(file)
    if root.tag not in _READERS:
        raise ModelError(
            f"{file.name} is neither a URDF, an MJCF nor an SDF file: its root element is <{root.tag}>",
            code="file_format",
        )
    return _READERS[root.tag](root, file, robot)


_READERS = {"robot": urdf_visuals, "mujoco": mjcf_visuals, "sdf": sdf_visuals}


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
