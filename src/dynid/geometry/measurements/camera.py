"""Images of a calibration board: pixels of its corners, with the camera or the board on the robot.

    (u, v)(B F(q) M c_m) - (u, v)_m = 0,    or of the inverse placement with the camera on the robot

with the projection of `homography`.

Source: Zhang, A Flexible New Technique for Camera Calibration (2000); Tabb and Ahmad Yousef, Solving the robot-world
hand-eye(s) calibration problem with iterative methods (2017), for the error in pixels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import InvalidShape, InvalidValue, UnknownName, did_you_mean, one_of
from dynid.geometry.measurements.handeye import HandEye
from dynid.geometry.measurements.homography import INTRINSICS, board_poses, intrinsics_from, pixels
from dynid.geometry.measurements.measurement import Part, Space
from dynid.geometry.tangents import Placed, Tangent

__all__ = ["BoardImages"]

Array = NDArray[np.float64]

# What is expected of a lens of which nothing is told; the sixth power of the distortion is left out.
_LENS = dict.fromkeys(INTRINSICS[:4], np.inf) | {"k1": 0.3, "k2": 0.3, "p1": 0.01, "p2": 0.01}
# How far corners may lie from their plane, over the size of the board.
_FLAT = 1e-2


@dataclass(frozen=True, eq=False)
class BoardImages(HandEye):
    """Corners of a flat board in images, with the board or the camera on the robot.

    Attributes
    ----------
    corners : ndarray, shape (N, M, 2)
        Pixels of the M corners, not numbers where one is hidden.
    board : ndarray, shape (M, 3)
        Corners in the axes of the board (m).
    intrinsics : sequence of float, optional
        fx, fy, cx, cy (pixels) and the distortion k1, k2, p1, p2, k3 of OpenCV, which may be left out; unknown if not
        given.
    intrinsics_std : mapping of str to float, optional
        Standard deviations of those that are not exact, such as {"fx": 5, "k1": inf}; none by default where intrinsics
        are given, otherwise all but k3.
    noise : float
        Standard deviation of a pixel in each direction.
    """

    corners: Array = ()  # type: ignore[assignment]
    board: Array = ()  # type: ignore[assignment]
    intrinsics: Array | None = None
    intrinsics_std: Mapping[str, float] | None = None
    noise: float = 0.3

    kind: ClassVar[str] = "images"
    about: ClassVar[str] = "corners of a calibration board in camera images, the camera or the board on the robot"
    rows: ClassVar[tuple[str, ...]] = ("corners",)

    def __post_init__(self) -> None:
        spread = self.intrinsics_std
        if spread is None:
            spread = _LENS if self.intrinsics is None else {}
        for name in spread:
            if name not in INTRINSICS:
                known = f"{did_you_mean(name, INTRINSICS)}: use {one_of(INTRINSICS)}"
                raise UnknownName(f"no intrinsic of a camera is named '{name}'{known}", "intrinsics_std")
        object.__setattr__(self, "intrinsics_std", dict(spread))
        super().__post_init__()
        if self.intrinsics is not None:
            object.__setattr__(self, "intrinsics", _nine(self.intrinsics))
        board, corners = np.array(self.board, dtype=float), np.array(self.corners, dtype=float)
        if board.ndim != 2 or board.shape[1] != 3 or len(board) < 4:
            raise InvalidShape(f"board must be a table of four or more corners (M, 3), got {board.shape}", "board")
        size = np.linalg.svd(board - board.mean(0), compute_uv=False)
        if size[2] > _FLAT * size[0] or size[1] <= _FLAT * size[0]:
            raise InvalidValue("the corners of the board must lie in a plane, and not on a line", "board")
        if corners.shape != (len(self.q), len(board), 2):
            raise InvalidShape(
                f"corners must have shape ({len(self.q)}, {len(board)}, 2), got {corners.shape}", "corners"
            )
        corners[~np.isfinite(corners).all(2)] = np.nan
        object.__setattr__(self, "corners", corners)
        object.__setattr__(self, "board", board)

    @property
    def std(self) -> Array:
        """The noise of both coordinates of every corner."""
        return np.full(2 * len(self.board), self.noise)

    def parts(self) -> tuple[Part, ...]:
        """The base, what is mounted on the robot, and intrinsics that are not exact."""
        free = self._free
        if not free:
            return super().parts()
        start = np.zeros(9) if self.intrinsics is None else self.intrinsics
        std = np.array([(self.intrinsics_std or {})[INTRINSICS[k]] for k in free])
        names, units = tuple(INTRINSICS[k] for k in free), tuple("px" if k < 4 else "" for k in free)
        return (*super().parts(), Part("intrinsics", start[free], std, names, units))

    @property
    def _free(self) -> list[int]:
        """Which intrinsics are not exact."""
        return [k for k, name in enumerate(INTRINSICS) if name in (self.intrinsics_std or {})]

    def residual(self, space: Space) -> Tangent:
        """Predicted less measured pixels, corner after corner."""
        sensed, free = self.sensed(space), self._free
        # A pixel changes with the twist of the board and with the intrinsics: 6 + k columns, chained to all unknowns.
        width = 6 + len(free)
        twist = np.eye(3, width), np.eye(3, width, 3)
        local = Placed(sensed.rotation[:, None], sensed.origin[:, None], twist[0], twist[1])
        assert self.intrinsics is not None
        lens = Tangent(self.intrinsics.copy(), np.zeros((9, width)))
        chain = [sensed.turn, sensed.shift]
        if free:
            found = space.values("intrinsics")
            lens.value[free] = found.value[0]
            lens.slope[free, 6:] = np.eye(len(free))
            chain.append(np.broadcast_to(found.slope, (len(self.q), *found.slope.shape[1:])))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            seen = pixels(local.point(self.board), lens)
        count = len(self.q)
        slope = seen.slope.reshape(count, -1, width) @ np.concatenate(chain, axis=1)
        return Tangent((seen.value - self.corners).reshape(count, -1), slope)

    def started(self, frames: Mapping[str, Placed]) -> Self:
        """Intrinsics, base and mount that are unknown, found from homographies of the board."""
        known = self
        if self.intrinsics is None:
            found = intrinsics_from(self.corners, self.board)
            known = replace(self, intrinsics=found)
        return known.placed(frames, known._poses())

    def _poses(self) -> Array:
        assert self.intrinsics is not None
        return board_poses(self.corners, self.board, self.intrinsics)

    def distances(self, residual: Array) -> Array:
        """Root mean square over the corners seen, at the distance of the board: error in pixels times depth over focal
        length."""
        assert self.intrinsics is not None
        away = np.sum(residual.reshape(len(residual), -1, 2) ** 2, axis=2)
        seen = np.isfinite(away)
        poses = self._poses()
        depth = poses[:, 2, 3] + poses[:, 2, :3] @ self.board.mean(0)
        # Where too few corners show the depth of a board, that of the others stands for it.
        depth = np.where(np.isfinite(depth), depth, np.nanmedian(depth)) / self.intrinsics[:2].mean()
        size = np.sqrt(np.nansum(away, axis=1) / np.maximum(seen.sum(1), 1))
        return np.where(seen.any(1), size * depth, np.nan)


def _nine(given: ArrayLike) -> Array:
    """Intrinsics with a distortion of zero where it is left out."""
    out = np.array(given, dtype=float)
    if out.ndim != 1 or not 4 <= len(out) <= 9:
        raise InvalidShape(
            f"intrinsics has shape {out.shape}: give fx, fy, cx, cy and k1, k2, p1, p2, k3 as far as known",
            "intrinsics",
        )
    out = np.concatenate([out, np.zeros(9 - len(out))])
    if not (np.isfinite(out).all() and (out[:2] > 0).all()):
        raise InvalidValue("the focal lengths must be positive, and all intrinsics numbers", "intrinsics")
    return out
