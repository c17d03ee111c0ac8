"""Shapes of the robot's file for the view: meshes of the workspace, as STL that the page asks for."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DynidError, ModelError
from dynid.robot.extent import find_mesh
from dynid.robot.mjcf_files import included_files
from dynid.robot.model import Robot
from dynid.robot.visuals import MeshFile, VisualShape, meshes_as_stl, stl_box, visual_shapes
from dynid.studio.workspace import Workspace

__all__ = ["MESH_FILES", "DrawnShape", "Dress", "Meshes", "copy_companions"]

Array = NDArray[np.float64]

MESH_FILES = (".stl", ".obj", ".dae", ".glb", ".ply")
# Bytes of a mesh that is read, and triangles of all meshes of a robot, which a browser draws without a graphics card.
MESH_LIMIT, TRIANGLES = 64 * 2**20, 500_000
# Robot files that can hold shapes.
_SHAPED = (".urdf", ".mjcf", ".xml", ".sdf")
# Folder of the workspace for meshes whose place in the file leads out of it.
_FOLDER = "meshes"


@dataclass(frozen=True, eq=False)
class DrawnShape:
    """A shape of the view.

    Attributes
    ----------
    link : int
        Index of its link.
    placement : ndarray, shape (4, 4)
        Where it is on the link.
    kind, size : str, ndarray
        Primitive with its dimensions (m), or "mesh".
    url : str
        Address of a mesh.
    color : str or None
        "#rrggbb"; None where the file gives none.
    box : ndarray, shape (2, 3)
        Corners of the box around it, in its own frame (m).
    """

    link: int
    placement: Array
    kind: str
    size: Array
    url: str
    color: str | None
    box: Array


@dataclass(frozen=True, eq=False)
class Dress:
    """The shapes of a robot, and why some are not there.

    Attributes
    ----------
    shapes : tuple of DrawnShape
        What is drawn.
    absent : tuple of str
        Names of mesh files that are not in the workspace.
    problems : tuple of str
        Sentences on shapes that cannot be drawn.
    """

    shapes: tuple[DrawnShape, ...] = ()
    absent: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def corners(self) -> dict[int, Array]:
        """Corners (N, 3) of the boxes around the shapes, by the index of their link."""
        out: dict[int, list[Array]] = {}
        for shape in self.shapes:
            corners = np.array(list(product(*shape.box.T)))
            out.setdefault(shape.link, []).append(corners @ shape.placement[:3, :3].T + shape.placement[:3, 3])
        return {link: np.vstack(points) for link, points in out.items()}

    def words(self) -> str:
        """What is missing, for people; empty if nothing is."""
        said = list(self.problems)
        if self.absent:
            more = f" and {len(self.absent) - 3} more" if len(self.absent) > 3 else ""
            said.insert(0, f"Drop these files to see the shapes: {', '.join(self.absent[:3])}{more}")
        return ". ".join(said)


@dataclass
class Meshes:
    """Meshes of a workspace, read once each.

    Parameters
    ----------
    workspace : Workspace
        Only meshes inside its folder are read.
    """

    workspace: Workspace
    _content: dict[str, bytes] = field(default_factory=dict)
    _read: dict[tuple[str, int, tuple[float, ...]], str] = field(default_factory=dict)

    def content(self, key: str) -> bytes | None:
        """The STL file of an address; None where there is none."""
        return self._content.get(key)

    def dress(self, name: str, robot: Robot) -> Dress:
        """The shapes of a robot file of the workspace; built-in robots and TOML files have none."""
        if not name.lower().endswith(_SHAPED):
            return Dress()
        file = self.workspace.existing(name)
        try:
            shapes = visual_shapes(file, robot)
        except DynidError as error:
            return Dress(problems=(f"The shapes are not drawn: {error}",))
        found = {s.mesh: mesh_file(s.mesh, file, self.workspace) for s in shapes if s.mesh}
        absent = tuple(dict.fromkeys(mesh.rpartition("/")[2] for mesh, path in found.items() if path is None))
        small, problems = self._small({s: path for s in shapes if (path := found.get(s.mesh)) is not None})
        urls = self._urls(small, problems)
        drawn = [
            DrawnShape(s.link, s.placement, s.kind, s.size, urls.get(s, ""), s.color, self._box(s, urls))
            for s in shapes
            if s.kind != "mesh" or s in urls
        ]
        return Dress(tuple(drawn), absent, tuple(dict.fromkeys(problems)))

    def _box(self, shape: VisualShape, urls: Mapping[VisualShape, str]) -> Array:
        """The box (2, 3) around a shape."""
        if shape in urls:
            return stl_box(self._content[_key(urls[shape])])
        # Edges, semi-axes, or radius and length; a capsule is longer by its ends.
        half = 0.5 * shape.size if shape.kind == "box" else 1.0 * shape.size
        if len(half) < 3:
            half = shape.size[[0, 0, 0]]
        if len(shape.size) == 2:
            half[2] = 0.5 * shape.size[1] + (shape.size[0] if shape.kind == "capsule" else 0.0)
        return np.array([-half, half])

    def _small(self, found: Mapping[VisualShape, Path]) -> tuple[dict[VisualShape, Path], list[str]]:
        """The meshes that are read, and sentences on those that are too large."""
        small = {s: p for s, p in found.items() if p.stat().st_size <= MESH_LIMIT}
        large = {p.name for s, p in found.items() if s not in small}
        return small, [f"{name} has more than {MESH_LIMIT >> 20} MB and is not drawn" for name in sorted(large)]

    def _urls(self, found: Mapping[VisualShape, Path], problems: list[str]) -> dict[VisualShape, str]:
        """Addresses of the meshes; those that were not read before are."""
        keys = {s: (str(p), p.stat().st_mtime_ns, tuple(map(float, s.scale))) for s, p in found.items()}
        fresh = {key: MeshFile(Path(key[0]), np.array(key[2])) for key in keys.values() if key not in self._read}
        for key, stl in zip(fresh, meshes_as_stl(list(fresh.values()), TRIANGLES), strict=True):
            if isinstance(stl, str):
                problems.append(stl)
                continue
            self._read[key] = hashlib.sha256(stl).hexdigest()[:24]
            self._content[self._read[key]] = stl
        return {s: f"/meshes/{self._read[key]}.stl" for s, key in keys.items() if key in self._read}


def _key(url: str) -> str:
    return url.removeprefix("/meshes/").removesuffix(".stl")


def mesh_file(named: str, robot_file: Path, workspace: Workspace) -> Path | None:
    """The file of a mesh inside the workspace: where the robot file says, or by its plain name as it was dropped."""
    plain, root = named.replace("\\", "/").rpartition("/")[2], workspace.folder.resolve()
    try:
        told = find_mesh(named, robot_file)
    except ModelError:
        told = None
    for path in (told, workspace.folder / _FOLDER / plain, workspace.folder / plain):
        if path is not None and plain and path.is_file() and path.resolve().is_relative_to(root):
            return path
    return None


def copy_companions(robot_file: Path, robot: Robot, workspace: Workspace) -> None:
    """Copy included files and meshes of a robot file from anywhere on this computer into the workspace.

    They are found there again: at the same place beside the robot file, or in the folder of meshes.
    """
    if not robot_file.name.lower().endswith(_SHAPED):
        return
    for included in included_files(robot_file):
        _copy(included, Path(os.path.relpath(included, robot_file.resolve().parent)), workspace)
    try:
        shapes = visual_shapes(robot_file, robot)
    except ModelError:
        return  # the view says what is wrong with them
    for named in dict.fromkeys(s.mesh for s in shapes if s.mesh):
        try:
            found = find_mesh(named, robot_file)
        except ModelError:
            continue
        if found is not None and found.stat().st_size <= MESH_LIMIT:
            _copy(found, Path(named.rpartition("://")[2]), workspace)


def _copy(source: Path, place: Path, workspace: Workspace) -> None:
    """Copy a file to its place in the workspace, or into the folder of meshes where that leads out of it."""
    target = workspace.folder / place
    if not target.resolve().is_relative_to(workspace.folder.resolve()):
        target = workspace.folder / _FOLDER / source.name
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
