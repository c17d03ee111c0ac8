"""A camera and a flat board: pixels of its corners, and poses and intrinsics from the board's homographies.

    x = X/Z, y = Y/Z, r2 = x^2 + y^2,    radial = 1 + k1 r2 + k2 r2^2 + k3 r2^3
    u = fx (x radial + 2 p1 x y + p2 (r2 + 2 x^2)) + cx,    v = fy (y radial + p1 (r2 + 2 y^2) + 2 p2 x y) + cy

with a corner (X, Y, Z) in the camera, as in OpenCV. A homography H maps the board's plane to the image, and

    H = K (r1, r2, t),    h1' B h2 = 0,    h1' B h1 = h2' B h2,    B = K'^-1 K^-1

Source: Zhang, A Flexible New Technique for Camera Calibration (2000); Hartley, In Defense of the Eight-Point Algorithm
(1997), for the scaling of coordinates; Brown, Close-Range Camera Calibration (1971).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.errors import NotIdentifiable
from dynid.geometry.measurements.starts import nearest_rotation
from dynid.geometry.tangents import Tangent, components

__all__ = ["INTRINSICS", "board_poses", "homographies", "intrinsics_from", "pixels"]

Array = NDArray[np.float64]

INTRINSICS = ("fx", "fy", "cx", "cy", "k1", "k2", "p1", "p2", "k3")
# Steps that take the distortion out of a pixel.
_STEPS = 20


def pixels(corner: Tangent, intrinsics: Tangent) -> Tangent:
    """Pixels (N, M, 2) of corners (N, M, 3) in the camera, with intrinsics (9,) as `INTRINSICS` names them."""
    fx, fy, cx, cy, k1, k2, p1, p2, k3 = (intrinsics[k] for k in range(9))
    x, y = corner[:, :, 0] / corner[:, :, 2], corner[:, :, 1] / corner[:, :, 2]
    r2, xy = x * x + y * y, x * y * 2.0
    radial = r2 * (r2 * (r2 * k3 + k2) + k1) + 1.0
    u = x * radial + xy * p1 + (r2 + x * x * 2.0) * p2
    v = y * radial + (r2 + y * y * 2.0) * p1 + xy * p2
    return components([u * fx + cx, v * fy + cy])


def _normalized(image: Array, intrinsics: Array) -> Array:
    """Coordinates (..., 2) at distance one of pixels, without distortion."""
    f, c = intrinsics[:2], intrinsics[2:4]
    k1, k2, p1, p2, k3 = intrinsics[4:]
    bent = (image - c) / f
    out = bent
    for _ in range(_STEPS):
        x, y = out[..., 0], out[..., 1]
        r2 = x * x + y * y
        radial = 1 + r2 * (k1 + r2 * (k2 + r2 * k3))
        shift = np.stack([2 * p1 * x * y + p2 * (r2 + 2 * x * x), p1 * (r2 + 2 * y * y) + 2 * p2 * x * y], axis=-1)
        out = (bent - shift) / radial[..., None]
    return np.asarray(out)


def homographies(image: Array, board: Array) -> Array:
    """Homographies (N, 3, 3) from a plane (M, 2) to images (N, M, 2), not numbers where too few corners are seen."""
    out = np.full((len(image), 3, 3), np.nan)
    for k, corners in enumerate(image):
        seen = np.isfinite(corners).all(1)
        a, b = board[seen], corners[seen]
        # Four corners, no three of them needed on a line: those on one line show no plane.
        if len(a) < 4 or np.linalg.svd(a - a.mean(0), compute_uv=False)[1] < 1e-6 * np.ptp(board):
            continue
        from_a, from_b = _scaling(a), _scaling(b)
        p, q = _mapped(from_a, a), _mapped(from_b, b)
        one, zero = np.column_stack([p, np.ones(len(p))]), np.zeros((len(p), 3))
        rows = [np.hstack([one, zero, -q[:, :1] * one]), np.hstack([zero, one, -q[:, 1:] * one])]
        values, vectors = np.linalg.svd(np.concatenate(rows))[1:]
        if values[7] > 1e-9 * values[0]:
            out[k] = np.linalg.solve(from_b, vectors[8].reshape(3, 3)) @ from_a
    return out


def board_poses(image: Array, board: Array, intrinsics: Array) -> Array:
    """Poses (N, 4, 4) of a flat board (M, 3) in the camera, not numbers where its homography cannot be found."""
    middle, axes = plane_of(board)
    found = homographies(_normalized(image, intrinsics), (board - middle) @ axes[:2].T)
    out = np.tile(np.eye(4), (len(image), 1, 1))
    seen = np.isfinite(found).all((1, 2))
    h = found[seen]
    h = h / np.sqrt(np.linalg.norm(h[:, :, 0], axis=1) * np.linalg.norm(h[:, :, 1], axis=1))[:, None, None]
    # The board is before the camera.
    h = h * np.sign(h[:, 2, 2])[:, None, None]
    turned = nearest_rotation(np.stack([h[..., 0], h[..., 1], np.cross(h[..., 0], h[..., 1])], axis=-1)) @ axes
    out[seen, :3, :3] = turned
    out[seen, :3, 3] = h[..., 2] - turned @ middle
    out[~seen] = np.nan
    return out


def plane_of(board: Array) -> tuple[Array, Array]:
    """Middle (3,) of corners and axes (3, 3) as rows, right-handed, the third across their plane."""
    middle = board.mean(0)
    axes = np.linalg.svd(board - middle)[2]
    axes[2] = np.cross(axes[0], axes[1])
    return middle, axes


def intrinsics_from(image: Array, board: Array) -> Array:
    """Intrinsics (9,) without distortion from images of a flat board in three or more directions.

    Raises
    ------
    NotIdentifiable
        If the images do not show them.
    """
    middle, axes = plane_of(board)
    seen = np.isfinite(image).all(2)
    if seen.any():
        center, size = image[seen].mean(0), float(np.abs(image[seen] - image[seen].mean(0)).max())
        h = homographies((image - center) / size, (board - middle) @ axes[:2].T)
        h = h[np.isfinite(h).all((1, 2))]
        h = h / np.linalg.norm(h, axis=(1, 2))[:, None, None]
        rows = np.concatenate([_products(h, 0, 1), _products(h, 0, 0) - _products(h, 1, 1)])
        # No skew: B12 is zero.
        b11, b22, b13, b23, b33 = np.linalg.svd(np.vstack([rows, np.zeros((5, 5))]))[2][4]
        scale = b33 - b13**2 / b11 - b23**2 / b22
        if len(h) >= 2 and scale / b11 > 0 and scale / b22 > 0:
            f = np.sqrt([scale / b11, scale / b22]) * size
            c = np.array([-b13 / b11, -b23 / b22]) * size + center
            return np.concatenate([f, c, np.zeros(5)])
    raise NotIdentifiable(
        "the images do not show the camera's intrinsics: give a start, or turn the board more", "intrinsics"
    )


def _products(h: Array, i: int, j: int) -> Array:
    """Coefficients (n, 5) of B11, B22, B13, B23, B33 in h_i' B h_j."""
    a, b = h[:, :, i], h[:, :, j]
    return np.column_stack(
        [
            a[:, 0] * b[:, 0],
            a[:, 1] * b[:, 1],
            a[:, 0] * b[:, 2] + a[:, 2] * b[:, 0],
            a[:, 1] * b[:, 2] + a[:, 2] * b[:, 1],
            a[:, 2] * b[:, 2],
        ]
    )


def _scaling(points: Array) -> Array:
    """Matrix that moves points (n, 2) to the origin, at a mean distance of root two."""
    middle = points.mean(0)
    s = np.sqrt(2) / np.linalg.norm(points - middle, axis=1).mean()
    return np.array([[s, 0, -s * middle[0]], [0, s, -s * middle[1]], [0, 0, 1]])


def _mapped(matrix: Array, points: Array) -> Array:
    return points * matrix[0, 0] + matrix[:2, 2]
