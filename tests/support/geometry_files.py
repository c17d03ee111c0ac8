"""Files of measurements on arms whose geometry differs from their file by known errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import dynid
from dynid.dynamics import frame_jacobian, frame_placement
from dynid.geometry import Geometry, GeometryModel, corrected_robot
from dynid.robot.model import Robot

__all__ = ["FRAME", "MODEL", "arm", "placements", "postures", "text", "truth", "write_sockets", "write_tracker"]

Array = NDArray[np.float64]

FRAME = "link6"
MODEL = GeometryModel(eccentricity=0, compliance=0, bending=0)
MARKERS = np.array([[0.1, 0.0, 0.05], [-0.06, 0.08, 0.1]])
# The base of the robot in the tracker.
_BASE = np.array([[0.0, -1.0, 0.0, 1.5], [1.0, 0.0, 0.0, -0.3], [0.0, 0.0, 1.0, 0.7], [0.0, 0.0, 0.0, 1.0]])

# Where the first socket of each place is, in the base.
_PLACES = ((0.25, -0.2, 0.35), (0.3, 0.2, 0.5), (0.2, 0.1, 0.65), (-0.2, 0.25, 0.45))


# Random starts of postures in one socket.
_TRIES = 400


def arm() -> Robot:
    """The robot of the file."""
    return dynid.load_robot("tx40")


def truth(seed: int = 0) -> Array:
    """Errors of a real arm: about 1 mm and 3 mrad per joint, zeros of 5 mrad."""
    found = Geometry(arm(), (FRAME,), MODEL).unknowns
    size = {"position": 1e-3, "rotation": 3e-3, "zero": 5e-3}
    rng = np.random.default_rng(seed)
    return np.array([size.get(u.kind.value, 0.0) for u in found]) * rng.normal(size=len(found))


def postures(count: int, seed: int = 0) -> Array:
    """Random postures."""
    return np.random.default_rng(seed).uniform(-1.4, 1.4, (count, 6))


def placements(q: Array, errors: Array | None = None) -> Array:
    """Placements (N, 4, 4) of the frame of the real arm."""
    geometry = Geometry(arm(), (FRAME,), MODEL)
    x = truth() if errors is None else errors
    found = geometry.place(geometry.postures(q), x, len(x))[FRAME]
    out = np.tile(np.eye(4), (len(q), 1, 1))
    out[:, :3, :3], out[:, :3, 3] = found.rotation, found.origin
    return out


def text(header: list[str], *columns: Array) -> str:
    """A table as CSV."""
    rows = np.column_stack(columns)
    lines = [",".join(header)] if header else []
    return "\n".join([*lines, *(",".join(f"{x:.12g}" for x in row) for row in rows)]) + "\n"


def write_tracker(
    path: Path, count: int = 40, *, seed: int = 0, scale: float = 1.0, degrees: bool = False, noise: float = 5e-5
) -> Array:
    """Write two markers of the real arm as a tracker sees them, and return the postures."""
    q = postures(count, seed)
    seen = np.einsum("ij,njk,mk->nmi", _BASE, placements(q), np.column_stack([MARKERS, np.ones(2)]))[..., :3]
    seen = seen + noise * np.random.default_rng(seed + 1).normal(size=seen.shape)
    header = [*arm().coordinates, *(f"{a}{m}" for m in (1, 2) for a in "xyz")]
    path.write_text(text(header, np.degrees(q) if degrees else q, scale * seen.reshape(count, 6)))
    return q


def write_sockets(
    folder: Path, places: int = 3, count: int = 12, *, distance: float = 0.05, noise: float = 5e-5
) -> None:
    """Write postures of the real arm whose origin of the frame rests in two sockets per place, as well as `noise`."""
    rng = np.random.default_rng(3)
    for k in range(places):
        start = np.array(_PLACES[k])
        for name, at in (("hole_0", start), ("hole_1", start + np.array([distance, 0.0, 0.0]))):
            q = _resting(at + noise * rng.normal(size=(_TRIES, 3)), count, rng)
            file = folder / f"place{k}" / f"{name}.csv"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text([], q))


def _resting(at: Array, count: int, rng: np.random.Generator) -> Array:
    """Postures whose frame has its origin at points (_TRIES, 3), by Gauss and Newton."""
    found = Geometry(arm(), (FRAME,), MODEL).unknowns
    real = corrected_robot(arm(), found, truth())
    q = rng.uniform(-1.4, 1.4, (_TRIES, 6))
    for _ in range(60):
        away = frame_placement(real, q, FRAME)[:, :3, 3] - at
        slope = frame_jacobian(real, q, FRAME)[:, :3]
        q = q - np.einsum("nij,nj->ni", np.linalg.pinv(slope, rcond=1e-3), away)
    good = (np.linalg.norm(away, axis=1) < 1e-9) & (np.abs(q).max(1) < np.pi)
    assert good.sum() >= count
    return q[good][:count]
