"""Starts for what nobody knows: where the base stands in a tracker and where markers sit on the robot.

    minimise  sum |R (o_i + R_i c_m) + t - y_im|^2

in turn over (R, t), Kabsch's solution, and over the markers c, from rotations spread over all directions.

Source: Kabsch, A solution for the best rotation to relate two sets of vectors (1976).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.geometry.tangents import rotations
from dynid.robot.spatial import placement

__all__ = ["hand_eye", "nearest_rotation", "register", "spread_rotations"]

Array = NDArray[np.float64]

# Postures that a start is computed from, and steps of the alternation.
_POSTURES, _STEPS = 200, 60
# Orders of contraction: looking for them takes longer than these sums.
_TWO, _THREE = ["einsum_path", (0, 1)], ["einsum_path", (0, 1), (0, 1)]


def nearest_rotation(matrix: Array) -> Array:
    """Rotations (..., 3, 3) nearest to matrices."""
    u, _, vt = np.linalg.svd(matrix)
    flip = np.ones((*matrix.shape[:-2], 3))
    flip[..., 2] = np.sign(np.linalg.det(u @ vt))
    return np.asarray((u * flip[..., None, :]) @ vt)


def spread_rotations() -> Array:
    """The 24 rotations of a cube, and these between them: 48 rotations of which one is within 45 degrees of any."""
    cube = [
        np.column_stack([s * np.eye(3)[i], t * np.eye(3)[j], np.cross(s * np.eye(3)[i], t * np.eye(3)[j])])
        for i in range(3)
        for j in range(3)
        if i != j
        for s in (1, -1)
        for t in (1, -1)
    ]
    between = rotations(np.pi / 4 * np.array([1, 1, 1]) / np.sqrt(3))
    return np.array([*cube, *(between @ r for r in cube)])


def register(
    rotation: Array, origin: Array, points: Array, known: Array | None, base: Array | None
) -> tuple[Array, Array, Array]:
    """Rotation (3, 3) and origin (3,) of the base in the tracker, and markers (M, 3) in their frame.

    Parameters
    ----------
    rotation, origin : ndarray, shape (N, 3, 3), (N, 3)
        The frame in the base.
    points : ndarray, shape (N, M, 3)
        Measured markers.
    known : ndarray, shape (M, 3), optional
        Markers, where they are known.
    base : ndarray, shape (4, 4), optional
        The base, where it is known.
    """
    some = np.linspace(0, len(points) - 1, min(len(points), _POSTURES)).astype(int)
    r, o, y = rotation[some], origin[some], points[some]
    seen = np.isfinite(y).all(2)
    y, w = np.where(seen[..., None], y, 0.0), seen / max(seen.sum(), 1)
    turn = spread_rotations() if base is None else base[None, :3, :3]
    count = len(turn)
    c = np.zeros((count, y.shape[1], 3)) if known is None else np.tile(known, (count, 1, 1))
    # Without markers at the start, origins stand for them: each start takes the shift that fits best.
    shift = np.zeros((count, 3)) if base is None else np.tile(base[:3, 3], (count, 1))
    each = np.maximum(seen.sum(0), 1)
    for step in range(_STEPS):
        at = o[:, None] + np.einsum("nij,smj->snmi", r, c, optimize=_TWO)
        if base is None:
            mean_y, mean_at = np.einsum("nm,nmi->i", w, y), np.einsum("nm,snmi->si", w, at)
            if step:
                away = np.einsum("nm,nmi,snmj->sij", w, y - mean_y, at - mean_at[:, None, None], optimize=_THREE)
                turn = nearest_rotation(away)
            shift = mean_y - np.einsum("sij,sj->si", turn, mean_at)
        if known is None:
            back = np.einsum("sji,snmj->snmi", turn, y - shift[:, None, None], optimize=_TWO) - o[:, None]
            c = np.einsum("nji,snmj,nm->smi", r, back, seen, optimize=_THREE) / each[:, None]
    at = np.einsum("sij,snmj->snmi", turn, o[:, None] + np.einsum("nij,smj->snmi", r, c)) + shift[:, None, None]
    best = int(np.argmin(np.einsum("nm,snmi->s", w, (at - y) ** 2)))
    return turn[best], shift[best], c[best]


def hand_eye(
    rotation: Array, origin: Array, poses: Array, base: Array | None, mount: Array | None
) -> tuple[Array, Array]:
    """Placements B and M (4, 4) with B F M = X, where they are not known: rotations in turn, then positions.

    Parameters
    ----------
    rotation, origin : ndarray, shape (N, 3, 3), (N, 3)
        The frames F.
    poses : ndarray, shape (N, 4, 4)
        The measured X.
    base, mount : ndarray, shape (4, 4), optional
        B and M, where they are known.
    """
    some = np.linspace(0, len(poses) - 1, min(len(poses), _POSTURES)).astype(int)
    r, o, x, y = rotation[some], origin[some], poses[some, :3, :3], poses[some, :3, 3]
    m = spread_rotations() if mount is None else mount[None, :3, :3]
    b = np.tile(np.eye(3) if base is None else base[:3, :3], (len(m), 1, 1))
    for _ in range(_STEPS):
        if base is None:
            b = nearest_rotation(np.einsum("nij,snkj->sik", x, r @ m[:, None]))
        if mount is None:
            m = nearest_rotation(np.einsum("snji,njk->sik", b[:, None] @ r, x))
    best = int(np.argmax(np.einsum("nij,snij->s", x, b[:, None] @ r @ m[:, None])))
    b, m = b[best], m[best]
    # B (R p_M + o) + p_B = y: linear in what is unknown of both positions.
    right, columns = y - o @ b.T, []
    if base is None:
        columns.append(np.tile(np.eye(3), (len(r), 1, 1)))
    else:
        right = right - base[:3, 3]
    if mount is None:
        columns.append(b @ r)
    else:
        right = right - (b @ r) @ mount[:3, 3]
    found = np.linalg.lstsq(np.concatenate(columns, axis=2).reshape(-1, 3 * len(columns)), right.ravel(), rcond=None)[0]
    at = placement(b, found[:3]) if base is None else base
    return at, placement(m, found[-3:]) if mount is None else mount
