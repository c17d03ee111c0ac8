"""The robot in three dimensions, moved by postures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from nicegui import ui
from nicegui.elements.scene.scene_object3d import Object3D
from numpy.typing import NDArray

from dynid.robot.model import Robot
from dynid.robot.skeleton import bars, poses
from dynid.studio.drawing import ellipsoids, reach
from dynid.studio.meshes import DrawnShape

__all__ = ["RobotScene"]

Array = NDArray[np.float64]
BODY, GHOST, INERTIA, ALARM = "#4a6fa5", "#d9822b", "#2a9d8f", "#c0392b"
# Of shapes whose file gives no color, and of all shapes while the inertias inside are shown.
_SHAPE, _SEE_THROUGH = "#9fb0c4", 0.3
# Cylinders of the scene lie along y, those of robot files along z.
_UPRIGHT = np.array([[1.0, 0, 0], [0, 0, -1.0], [0, 1.0, 0]])


class RobotScene:
    """One robot in a scene: bars or shapes, frames, inertias; a second one may stand beside it as its ghost."""

    def __init__(self, scene: ui.scene, robot: Robot, color: str = BODY, opacity: float = 1.0) -> None:
        self.robot, self._scene, self._color, self._opacity = robot, scene, color, opacity
        size = reach(robot)
        self.thickness = 0.03 * size
        self._links: list[Object3D] = []
        self._bars: list[Object3D] = []
        self._bar_links: list[int] = []
        self._shapes: list[tuple[Object3D, str]] = []
        self._dressed: set[int] = set()
        self._shape_opacity, self._alarmed = opacity, False
        self._frames: list[Object3D] = []
        self._inertias: list[Object3D] = []
        with scene:
            for i in range(len(robot.links)):
                with scene.group() as group:
                    self._links.append(group)
                    self._bars.append(scene.sphere(1.3 * self.thickness).material(color, opacity))
                    self._frames.append(scene.axes_helper(0.18 * size).visible(False))
                    for bar in (b for b in bars(robot) if b.link == i):
                        turn = bar.rotation @ _UPRIGHT
                        solid = scene.cylinder(self.thickness, self.thickness, bar.length).material(color, opacity)
                        self._bars.append(solid.rotate_R(turn.tolist()).move(*map(float, 0.5 * (bar.start + bar.end))))
                    for shape in (e for e in ellipsoids(robot) if e.link == i):
                        body = scene.sphere(1.0).material(INERTIA, 0.45).scale(*map(float, shape.semi_axes))
                        body.rotate_R(shape.rotation.tolist()).move(*map(float, shape.centre)).visible(False)
                        self._inertias.append(body)
                self._bar_links += [i] * (len(self._bars) - len(self._bar_links))
        self.move(np.zeros(robot.n))

    def move(self, q: Array, shift: Array | None = None) -> None:
        """Show a posture (n,), or (nq,) with its floating base, moved aside by `shift` metres."""
        aside = np.zeros(3) if shift is None else shift
        for group, pose in zip(self._links, poses(self.robot, np.asarray(q)), strict=True):
            group.move(*map(float, pose[:3, 3] + aside))
            group.rotate_R(pose[:3, :3].tolist())

    def show_frames(self, on: bool) -> None:
        for frame in self._frames:
            frame.visible(on)

    def show_inertias(self, on: bool) -> None:
        for solid in self._inertias:
            solid.visible(on)

    def put_on(self, shapes: Sequence[DrawnShape]) -> None:
        """Add the shapes of the robot's file; links that have some show no bars."""
        scene = self._scene
        with scene:
            for shape in shapes:
                color = self._color if self._color == GHOST else shape.color or _SHAPE
                with self._links[shape.link]:
                    for solid, place in _solids(scene, shape):
                        solid.material(color, self._opacity, side="both")
                        solid.rotate_R(place[:3, :3].tolist()).move(*map(float, place[:3, 3]))
                        self._shapes.append((solid, color))
                self._dressed.add(shape.link)

    def show_shapes(self, on: bool, see_through: bool) -> None:
        """Show the shapes of the robot's file, so that inertias inside are seen if asked for, or bars."""
        for solid, _ in self._shapes:
            solid.visible(on)
        for solid, link in zip(self._bars, self._bar_links, strict=True):
            solid.visible(not (on and link in self._dressed))
        self._shape_opacity = _SEE_THROUGH if see_through else self._opacity
        self._paint()

    def alarm(self, on: bool) -> None:
        """Paint the robot as touching itself."""
        if on != self._alarmed:
            self._alarmed = on
            self._paint()

    def _paint(self) -> None:
        for solid in self._bars:
            solid.material(ALARM if self._alarmed else self._color, self._opacity)
        for solid, color in self._shapes:
            solid.material(ALARM if self._alarmed else color, self._shape_opacity, side="both")

    def remove(self) -> None:
        for group in self._links:
            for child in list(group.children):
                child.delete()
            group.delete()


def _solids(scene: ui.scene, shape: DrawnShape) -> list[tuple[Object3D, Array]]:
    """The solids of a shape and their placements (4, 4) on its link."""
    place, upright = shape.placement, np.eye(4)
    upright[:3, :3] = _UPRIGHT
    if shape.url:
        return [(scene.stl(shape.url), place)]
    size = [float(x) for x in shape.size]
    if shape.kind == "box":
        wide, deep, high = size
        return [(scene.box(wide, deep, high), place)]
    if shape.kind == "sphere":
        return [(scene.sphere(size[0]), place)]
    if shape.kind == "ellipsoid":
        return [(scene.sphere(1.0).scale(*size), place)]
    solids: list[tuple[Object3D, Array]] = [(scene.cylinder(size[0], size[0], size[1], 32), place @ upright)]
    if shape.kind == "capsule":
        for end in (-0.5, 0.5):
            moved = place.copy()
            moved[:3, 3] += end * size[1] * place[:3, 2]
            solids.append((scene.sphere(size[0]), moved))
    return solids
