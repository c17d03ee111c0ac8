"""The robot in three dimensions, moved by postures."""

from __future__ import annotations

import numpy as np
from nicegui import ui
from nicegui.elements.scene.scene_object3d import Object3D
from numpy.typing import NDArray

from dynid.robot.model import Robot
from dynid.studio.drawing import bars, ellipsoids, poses, reach

__all__ = ["RobotScene"]

Array = NDArray[np.float64]
BODY, GHOST, INERTIA, ALARM = "#4a6fa5", "#d9822b", "#2a9d8f", "#c0392b"


class RobotScene:
    """One robot in a scene: bars, frames, inertias; a second one may stand beside it as its ghost."""

    def __init__(self, scene: ui.scene, robot: Robot, color: str = BODY, opacity: float = 1.0) -> None:
        self.robot, self._color, self._opacity = robot, color, opacity
        size = reach(robot)
        self.thickness = 0.03 * size
        self._links: list[Object3D] = []
        self._bars: list[Object3D] = []
        self._frames: list[Object3D] = []
        self._inertias: list[Object3D] = []
        with scene:
            for i in range(len(robot.links)):
                with scene.group() as group:
                    self._links.append(group)
                    self._bars.append(scene.sphere(1.3 * self.thickness).material(color, opacity))
                    self._frames.append(scene.axes_helper(0.18 * size).visible(False))
                    for bar in (b for b in bars(robot) if b.link == i):
                        # Cylinders of the scene lie along y.
                        turn = bar.rotation @ np.array([[1.0, 0, 0], [0, 0, -1.0], [0, 1.0, 0]])
                        solid = scene.cylinder(self.thickness, self.thickness, bar.length).material(color, opacity)
                        self._bars.append(solid.rotate_R(turn.tolist()).move(*map(float, 0.5 * (bar.start + bar.end))))
                    for shape in (e for e in ellipsoids(robot) if e.link == i):
                        body = scene.sphere(1.0).material(INERTIA, 0.45).scale(*map(float, shape.semi_axes))
                        body.rotate_R(shape.rotation.tolist()).move(*map(float, shape.centre)).visible(False)
                        self._inertias.append(body)
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

    def alarm(self, on: bool) -> None:
        """Paint the robot as touching itself."""
        for solid in self._bars:
            solid.material(ALARM if on else self._color, self._opacity)

    def remove(self) -> None:
        for group in self._links:
            for child in list(group.children):
                child.delete()
            group.delete()
