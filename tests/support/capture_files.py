"""C3D files for the tests, written by other programs than the reader, and bodies that move in front of cameras."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from dynid import Robot
from dynid.mocap.capture import Capture
from dynid.robot.parts import Joint, Limits, Link

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Platform:
    """A plate as a C3D file describes it: type, corners (3, 4) and origin (3,) in mm, channels (K, n), matrix."""

    kind: int
    corners: Array
    origin: Array
    channels: Array
    units: tuple[str, ...]
    matrix: Array | None = None


def corners_mm(centre: tuple[float, float], half: tuple[float, float] = (230.0, 250.0), angle: float = 0.0) -> Array:
    """Corners of a level plate whose z axis points into the floor, turned by `angle` about the vertical."""
    # Seen from above with z down, x to the right means y towards the viewer: quadrants run the other way round.
    local = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]]) * half
    c, s = np.cos(angle), np.sin(angle)
    flat = np.column_stack([local[:, 0], -local[:, 1]]) @ np.array([[c, s], [-s, c]])
    return np.vstack([flat.T + np.array(centre)[:, None], np.zeros(4)])


def write_ezc3d(
    path: Path,
    markers: dict[str, Array],
    rate: float,
    subsamples: int = 1,
    analogs: dict[str, Array] | None = None,
    platforms: tuple[Platform, ...] = (),
    unit: str = "mm",
    extra: dict[str, tuple[str, Any]] | None = None,
) -> Any:
    """Write a file with ezc3d: markers (N, 3) in `unit`, NaN as gaps; returns the module that can read it too."""
    ezc3d = pytest.importorskip("ezc3d")
    file = ezc3d.c3d()
    positions = np.stack(list(markers.values()), axis=1)
    count = len(positions)
    points = np.ones((4, positions.shape[1], count))
    points[:3] = positions.transpose(2, 1, 0)
    residuals = np.where(np.isnan(points[0]), -1.0, 0.0)[None]
    file["parameters"]["POINT"]["UNITS"]["value"] = [unit]
    file["parameters"]["POINT"]["RATE"]["value"] = [rate]
    file["parameters"]["POINT"]["LABELS"]["value"] = list(markers)
    file["data"]["points"] = points
    file["data"]["meta_points"]["residuals"] = residuals
    columns = dict(analogs or {})
    units = ["V"] * len(columns)
    first = []
    for k, platform in enumerate(platforms):
        first.append(len(columns) + 1)
        columns |= {f"P{k + 1}.{i}": x for i, x in enumerate(platform.channels.T)}
        units += list(platform.units)
    if columns:
        file["parameters"]["ANALOG"]["RATE"]["value"] = [rate * subsamples]
        file["parameters"]["ANALOG"]["LABELS"]["value"] = list(columns)
        file["parameters"]["ANALOG"]["UNITS"]["value"] = units
        file["data"]["analogs"] = np.stack(list(columns.values()))[None]
    if platforms:
        width = max(p.channels.shape[1] for p in platforms)
        channel = np.zeros((width, len(platforms)))
        for k, platform in enumerate(platforms):
            channel[: platform.channels.shape[1], k] = first[k] + np.arange(platform.channels.shape[1])
        matrices = [np.eye(6) if p.matrix is None else p.matrix for p in platforms]
        _add_integers(ezc3d, file, "USED", [len(platforms)], [1])
        _add_integers(ezc3d, file, "TYPE", [p.kind for p in platforms], [len(platforms)])
        file.add_parameter("FORCE_PLATFORM", "CORNERS", np.stack([p.corners for p in platforms], axis=2))
        file.add_parameter("FORCE_PLATFORM", "ORIGIN", np.stack([p.origin for p in platforms], axis=1))
        numbers = [int(x) for x in channel.ravel(order="F")]
        _add_integers(ezc3d, file, "CHANNEL", numbers, list(channel.shape))
        file.add_parameter("FORCE_PLATFORM", "CAL_MATRIX", np.stack(matrices, axis=2))
    for name, (group, value) in (extra or {}).items():
        file.add_parameter(group, name, value)
    file.write(str(path))
    return ezc3d


def _add_integers(ezc3d: Any, file: Any, name: str, values: list[int], shape: list[int]) -> None:
    """A parameter of force plates as integers; the writer's own way makes floats of them."""
    parameter = ezc3d.ezc3d.Parameter(name, "")
    parameter.set(ezc3d.ezc3d.VecInt(values), shape)
    file.parameters.add_parameter("FORCE_PLATFORM", parameter)


def smooth(rng: np.random.Generator, count: int, width: int, scale: float) -> Array:
    """Smooth random columns (count, width)."""
    t = np.linspace(0, 1, count)[:, None, None]
    waves = rng.normal(size=(1, width, 4)) * np.sin(
        2 * np.pi * rng.uniform(0.5, 3, (1, width, 4)) * t + rng.uniform(0, 6, (1, width, 4))
    )
    return scale * waves.sum(axis=2)


def puppet(limits: Limits | None = None) -> Robot:
    """A floating trunk with two legs and one arm: eight revolute joints about different axes."""
    inertia = np.array([2.0, 0.0, 0.0, 0.2, 0.05, 0.0, 0.05, 0.0, 0.0, 0.02])

    def joint(name: str, parent: int, at: tuple[float, float, float], axis: tuple[float, float, float]) -> Joint:
        place = np.eye(4)
        place[:3, 3] = at
        return Joint(name, "revolute", parent, place, np.array(axis), limits=limits or Limits(-2.5, 2.5))

    joints = (
        joint("hip_l", 0, (0, 0.1, 0), (1, 0, 0)),
        joint("hip_l_flex", 1, (0, 0, 0), (0, 1, 0)),
        joint("knee_l", 2, (0, 0, -0.4), (0, 1, 0)),
        joint("hip_r", 0, (0, -0.1, 0), (1, 0, 0)),
        joint("hip_r_flex", 4, (0, 0, 0), (0, 1, 0)),
        joint("knee_r", 5, (0, 0, -0.4), (0, 1, 0)),
        joint("shoulder", 0, (0, 0.2, 0.5), (1, 0, 0)),
        joint("elbow", 7, (0, 0, -0.3), (0, 1, 0)),
    )
    links = tuple(Link(name, inertia) for name in ("trunk", *(f"{j.name}_link" for j in joints)))
    return Robot("puppet", links, joints, base="floating")


def puppet_markers(rng: np.random.Generator, each: int = 3) -> dict[str, tuple[str, Array]]:
    """Markers on every segment that has a length of its own, `each` of them within a decimetre."""
    segments = [
        "trunk",
        "hip_l_flex_link",
        "knee_l_link",
        "hip_r_flex_link",
        "knee_r_link",
        "shoulder_link",
        "elbow_link",
    ]
    return {f"{s}.{k}": (s, rng.uniform(-0.12, 0.12, 3)) for s in segments for k in range(each)}


def puppet_motion(rng: np.random.Generator, robot: Robot, count: int) -> Array:
    """Poses (count, nq) of a smooth motion, the base turning right round."""
    q = np.zeros((count, robot.nq))
    angles = smooth(rng, count, 3, 0.15)
    angles[:, 2] += np.linspace(0, 7, count)
    q[:, :3] = smooth(rng, count, 3, 0.05) + np.array([0, 0, 1.0])
    q[:, 3:7] = Rotation.from_euler("xyz", angles).as_quat()
    q[:, 7:] = smooth(rng, count, robot.n, 0.25)
    return q


def seen_markers(robot: Robot, q: Array, attachments: dict[str, tuple[str, Array]], rate: float = 100.0) -> Capture:
    """Markers of a motion by dynid's own frames, which the solver does not use."""
    from dynid.dynamics import frame_placement

    tracks = []
    for frame, offset in attachments.values():
        h = frame_placement(robot, q, frame)
        tracks.append(h[:, :3, :3] @ offset + h[:, :3, 3])
    return Capture("trial", rate, tuple(attachments), np.stack(tracks, axis=1))
