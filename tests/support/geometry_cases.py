"""Measurements of each class, made from a robot whose true geometry is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dynid.geometry.measurements.boards import Board
from dynid.geometry.measurements.camera import BoardImages
from dynid.geometry.measurements.contacts import PointContacts
from dynid.geometry.measurements.inclination import Inclination
from dynid.geometry.measurements.lengths import Lengths
from dynid.geometry.measurements.measurement import Measurement
from dynid.geometry.measurements.points import Points
from dynid.geometry.measurements.poses import Poses
from dynid.geometry.measurements.sockets import Sockets
from dynid.geometry.measurements.touches import Surface, Touches
from dynid.robot.spatial import inverse_placement
from tests.support.geometry_truth import Truth, any_placement, near, points_of

Array = NDArray[np.float64]

FRAME = "link7"
BOARD = Board("charuco", 8, 6, 0.04, 0.03)
LENS = np.array([900.0, 905.0, 640.0, 360.0, -0.12, 0.05, 1e-3, -8e-4, 0.01])
# Without the sixth power of the distortion, which is not estimated by default.
LOW = np.array([1, 1, 1, 1, 1, 1, 1, 1, 0.0])
TIP = np.array([0.02, -0.03, 0.15])


@dataclass
class Case:
    """A measurement, and what is true of it.

    `base` is given where it is unknown to the measurement; `sharp` is one that shows the tool's position well.
    """

    measurement: Measurement
    base: Array | None = None
    parts: dict[str, Array] = field(default_factory=dict)
    sharp: bool = True


Make = Callable[[Truth, np.random.Generator, int], Case]


def markers(truth: Truth, rng: np.random.Generator, count: int) -> Case:
    q, base, local = truth.postures(count, rng), any_placement(rng), 0.1 * rng.normal(size=(3, 3))
    frames = base @ truth.frames(q, FRAME)
    seen = np.stack([points_of(frames, c) for c in local], axis=1)
    seen += 2e-4 * rng.normal(size=seen.shape)
    seen[rng.random(seen.shape[:2]) < 0.2] = np.nan
    return Case(Points(q, FRAME, points=seen), base, {f"marker {k + 1}": c for k, c in enumerate(local)})


def _poses(truth: Truth, rng: np.random.Generator, count: int, in_hand: bool) -> Case:
    q, base, mount = truth.postures(count, rng), any_placement(rng), any_placement(rng, 0.2)
    found = base @ truth.frames(q, FRAME) @ mount
    poses = np.array([inverse_placement(x) if in_hand else x for x in found])
    poses = np.array([near(rng, x, 0.0, 2e-3) for x in poses])
    poses[:, :3, 3] += 5e-4 * rng.normal(size=(count, 3))
    poses[3] = np.nan
    return Case(Poses(q, FRAME, poses=poses, in_hand=in_hand), base, {"mount": mount})


def poses_to_hand(truth: Truth, rng: np.random.Generator, count: int) -> Case:
    return _poses(truth, rng, count, False)


def poses_in_hand(truth: Truth, rng: np.random.Generator, count: int) -> Case:
    return _poses(truth, rng, count, True)


def reached(
    truth: Truth, rng: np.random.Generator, count: int, away: Callable[[Array], Array], noise: float = 2e-4
) -> Array:
    """Postures at which something that is true of them is zero, but for noise."""
    out: list[Array] = []
    for _ in range(50 * count):
        q = truth.postures(1, rng)[0]
        off = noise * rng.normal(size=len(away(q[None])))
        for _ in range(25):
            r = away(q[None]) - off
            if np.abs(r).max() < 1e-10:
                break
            slope = np.array([(away((q + 1e-6 * e)[None]) - off - r) / 1e-6 for e in np.eye(len(q))]).T
            step = np.linalg.pinv(slope, rcond=1e-6) @ r
            q = q - step * min(1.0, 0.5 / np.abs(step).max())
        if np.abs(away(q[None]) - off).max() < 1e-9 and np.abs(q).max() < 3:
            out.append(q)
        if len(out) == count:
            break
    assert len(out) == count
    return np.array(out)


def touches(truth: Truth, rng: np.random.Generator, count: int) -> Case:
    """A known and an unknown plane, an unknown line, a known one and an unknown point, in equal parts."""
    normals = {"table": np.array([0.0, 0, 1]), "wall": np.array([0.9, 0.3, 0.1]) / np.linalg.norm([0.9, 0.3, 0.1])}
    lines = {"edge": np.array([0.0, 1, 0.2]) / np.linalg.norm([0, 1, 0.2]), "rod": np.array([1.0, 0, 0])}
    at = {
        "table": np.array([0.3, 0, 0.4]),
        "wall": np.array([0.5, 0, 0.4]),
        "edge": np.array([0.4, 0.1, 0.5]),
        "rod": np.array([0.4, 0.3, 0.6]),
        "pin": np.array([0.35, -0.2, 0.5]),
    }
    each, q, surface = count // 5, [], []
    for name, point in at.items():
        if name in normals:
            block = normals[name][None]
        elif name in lines:
            block = np.linalg.svd(lines[name][None])[2][1:]
        else:
            block = np.eye(3)

        def away(rows: Array, block: Array = block, point: Array = point) -> Array:
            return np.asarray(block @ (points_of(truth.frames(rows, FRAME), TIP)[0] - point))

        q.append(reached(truth, rng, each, away))
        surface += [name] * each
    rows = np.concatenate(q)
    surfaces = {
        "table": Surface("plane", at["table"], normals["table"]),
        "wall": "plane",
        "edge": "line",
        "rod": Surface("line", at["rod"] + 0.1 * lines["rod"], 3 * lines["rod"]),
        "pin": "point",
    }
    found = Touches(rows, FRAME, surface=surface, surfaces=surfaces, tip=TIP + 0.003)
    return Case(found, None, {"tip": TIP})


def wires(truth: Truth, rng: np.random.Generator, count: int) -> Case:
    """Two anchors, one of them known, and a wire whose encoder has no zero."""
    q = truth.postures(count, rng)
    anchors = {"left": np.array([0.8, 0.6, 0.1]), "right": np.array([0.7, -0.9, 0.3])}
    which = rng.choice(["left", "right"], count)
    point = points_of(truth.frames(q, FRAME), TIP)
    lengths = np.linalg.norm(point - np.array([anchors[a] for a in which]), axis=1) - 0.123
    lengths += 2e-4 * rng.normal(size=count)
    lengths[2] = np.nan
    known = {"left": tuple(anchors["left"])}
    found = Lengths(
        q,
        FRAME,
        lengths=lengths,
        anchor=which,
        known=known,
        point=TIP,
        point_std=1e-4,
        offset_std=np.inf,  # type: ignore[arg-type]
    )
    return Case(found, None, {"right": anchors["right"], "offset": np.array([0.123])})


def bar(truth: Truth, rng: np.random.Generator, count: int) -> Case:
    """A ball bar of known length about an unknown ball."""
    at = np.array([0.4, 0.1, 0.2])

    def away(rows: Array) -> Array:
        return np.array([np.linalg.norm(points_of(truth.frames(rows, FRAME), TIP)[0] - at) - 0.35])

    q = reached(truth, rng, count, away)
    found = Lengths(q, FRAME, lengths=np.array(0.35), point=TIP, point_std=1e-4, offset_std=1e-5)
    return Case(found, None, {"anchor": at}, sharp=False)


def project(corners: Array, lens: Array = LENS) -> Array:
    """OpenCV's model, written out for corners (..., 3) in the camera."""
    fx, fy, cx, cy, k1, k2, p1, p2, k3 = lens
    x, y = corners[..., 0] / corners[..., 2], corners[..., 1] / corners[..., 2]
    r = x**2 + y**2
    s = 1 + k1 * r + k2 * r**2 + k3 * r**3
    return np.stack(
        [
            fx * (x * s + 2 * p1 * x * y + p2 * (r + 2 * x**2)) + cx,
            fy * (y * s + p1 * (r + 2 * y**2) + 2 * p2 * x * y) + cy,
        ],
        axis=-1,
    )


def _images(truth: Truth, rng: np.random.Generator, count: int, in_hand: bool, known: bool) -> Case:
    mount = any_placement(rng, 0.1)
    middle = BOARD.corners.mean(0)
    ahead = np.eye(4)
    ahead[:3, 3] = np.array([0, 0, 0.6]) - middle
    middle_q = truth.postures(1, rng)[0]
    first = truth.frames(middle_q[None], FRAME)[0] @ mount
    # The sensed pose of the board is `ahead` at the first posture.
    base = (inverse_placement(ahead) if in_hand else ahead) @ inverse_placement(first)
    rows, images = [], []
    for _ in range(400 * count):
        q = middle_q + 0.35 * rng.normal(size=7)
        found = base @ truth.frames(q[None], FRAME)[0] @ mount
        pose = inverse_placement(found) if in_hand else found
        corners = BOARD.corners @ pose[:3, :3].T + pose[:3, 3]
        if corners[:, 2].min() < 0.2:
            continue
        pixels = project(corners, LENS if known else LENS * LOW)
        inside = (pixels > 0).all(1) & (pixels < [1280, 720]).all(1)
        if pose[2, 2] > 0.4 and inside.mean() > 0.5:
            pixels += 0.2 * rng.normal(size=pixels.shape)
            rows.append(q)
            images.append(np.where(inside[:, None], pixels, np.nan))
        if len(rows) == count:
            break
    assert len(rows) == count
    lens = {
        "intrinsics": LENS + np.array([5, -5, 3, 3, 0, 0, 0, 0, 0]),
        "intrinsics_std": dict.fromkeys(("fx", "fy", "cx", "cy"), 5.0),
    }
    found = BoardImages(
        np.array(rows), FRAME, corners=np.array(images), board=BOARD.corners, in_hand=in_hand, noise=0.2,
        **(lens if known else {}),  # type: ignore[arg-type]
    )  # fmt: skip
    return Case(found, base, {"mount": mount, "intrinsics": LENS[:4] if known else LENS[:8]})


def images_to_hand(truth: Truth, rng: np.random.Generator, count: int) -> Case:
    return _images(truth, rng, count, False, True)


def images_in_hand(truth: Truth, rng: np.random.Generator, count: int) -> Case:
    return _images(truth, rng, count, True, False)


def contacts(truth: Truth, rng: np.random.Generator, count: int) -> Case:
    """The tip touches points of two other links."""
    points = {
        "tip": (FRAME, TIP),
        "rod": ("link2", np.array([0.35, 0.1, 0.1])),
        "foot": ("link1", np.array([0.3, 0.3, 0])),
    }
    touching = [("tip", "foot") if k % 2 else ("rod", "tip") for k in range(count)]
    q = []
    for k in range(2):
        (a, u), (b, v) = (points[name] for name in touching[k])

        def away(rows: Array, a: str = a, b: str = b, u: Array = u, v: Array = v) -> Array:
            return np.asarray(points_of(truth.frames(rows, a), u)[0] - points_of(truth.frames(rows, b), v)[0])

        q.append(reached(truth, rng, count // 2, away))
    rows = np.stack(q, axis=1).reshape(-1, 7)
    moved = {name: (frame, at + 5e-4 * rng.normal(size=3)) for name, (frame, at) in points.items()}
    return Case(PointContacts(rows, points=moved, touching=touching), None, {"tip": TIP}, sharp=False)


def _inclination(truth: Truth, rng: np.random.Generator, count: int, full: bool) -> Case:
    q, mount = truth.postures(count, rng), any_placement(rng)[:3, :3]
    down = np.array([0.05, -0.03, -1.0]) if full else np.array([0.0, 0, -1])
    down = 9.81 * down / np.linalg.norm(down)
    seen = -(np.swapaxes(truth.frames(q, FRAME)[:, :3, :3] @ mount, 1, 2) @ down)
    bias, scale = np.array([0.2, -0.1, 0.15]), np.array([1.01, 0.98, 1.005])
    seen = seen * scale + bias if full else seen / 9.81
    seen += (9.81 if full else 1.0) * 1e-3 * rng.normal(size=seen.shape)
    seen[4] = np.nan
    more = {"tilt_std": 0.1, "bias_std": 0.3, "scale_std": 0.05} if full else {}
    parts = {"bias": bias, "scale": scale} if full else {}
    return Case(Inclination(q, FRAME, readings=seen, **more), None, parts, sharp=False)  # type: ignore[arg-type]


def directions(truth: Truth, rng: np.random.Generator, count: int) -> Case:
    return _inclination(truth, rng, count, False)


def accelerations(truth: Truth, rng: np.random.Generator, count: int) -> Case:
    return _inclination(truth, rng, count, True)


def sockets(truth: Truth, rng: np.random.Generator, count: int) -> Case:
    """A ball in two sockets of known distance."""
    at = {"a": np.array([0.4, 0.1, 0.4]), "b": np.array([0.45, -0.2, 0.45])}
    q = []
    for point in at.values():

        def away(rows: Array, point: Array = point) -> Array:
            return np.asarray(points_of(truth.frames(rows, FRAME), TIP)[0] - point)

        q.append(reached(truth, rng, count // 2, away))
    rows = np.concatenate(q)
    names = ["a"] * (count // 2) + ["b"] * (count // 2)
    known = {("a", "b"): float(np.linalg.norm(at["a"] - at["b"]))}
    found = Sockets(rows, FRAME, socket=names, distances_known=known, ball=tuple(TIP))  # type: ignore[arg-type]
    return Case(found, None, {f"socket {name}": point for name, point in at.items()} | {"ball": TIP}, sharp=False)


CASES: dict[str, Make] = {
    f.__name__: f
    for f in (
        *(markers, sockets, poses_to_hand, poses_in_hand, touches, wires, bar, images_to_hand, images_in_hand),
        *(contacts, directions, accelerations),
    )
}
