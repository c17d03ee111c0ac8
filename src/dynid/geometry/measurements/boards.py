"""Corners of a calibration board found in images, by OpenCV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dynid.errors import (
    InvalidValue,
    MissingData,
    MissingFile,
    MissingPackage,
    UnknownName,
    did_you_mean,
    named,
    one_of,
)

__all__ = ["Board", "detect_board"]

Array = NDArray[np.float64]

_KINDS = ("charuco", "checkerboard", "apriltag")
# Corners that show the pose of a board.
_CORNERS = 4


@dataclass(frozen=True)
class Board:
    """A printed calibration board.

    Attributes
    ----------
    kind : {"charuco", "checkerboard", "apriltag"}
        What is printed.
    columns, rows : int
        Number of squares, or of tags, along x and y.
    square : float
        Side of a square (m); of tags, the distance between the same corner of two neighbours.
    marker : float
        Side of a marker or tag (m); none on a checkerboard.
    dictionary : str
        OpenCV's name of the set of markers, such as "4X4_50"; "APRILTAG_36h11" by default for tags.
    old : bool
        Whether the ChArUco board has the layout of OpenCV before 4.6, for an even number of rows.
    """

    kind: Literal["charuco", "checkerboard", "apriltag"]
    columns: int
    rows: int
    square: float
    marker: float = 0.0
    dictionary: str = ""
    old: bool = False

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise UnknownName(
                f"a board is a {one_of(_KINDS)}, not '{self.kind}'{did_you_mean(self.kind, _KINDS)}", "kind"
            )
        if not self.square > 0:
            raise InvalidValue(f"{named('square')} must be positive, got {self.square}")
        if self.kind != "checkerboard" and not 0 < self.marker < self.square:
            raise InvalidValue(f"{named('marker')} must be between zero and the square of {self.square} m")
        if self.kind == "checkerboard" and (self.columns + self.rows) % 2 == 0:
            raise InvalidValue(
                f"a checkerboard of {self.columns} x {self.rows} squares looks the same upside down: use one with an "
                "even and an odd number, or ChArUco",
                "rows",
            )

    @property
    def corners(self) -> Array:
        """Corners (M, 3) in the axes of the board (m): x along a row, y from row to row, z into the board."""
        if self.kind == "apriltag":
            x, y = np.meshgrid(np.arange(self.columns) * self.square, np.arange(self.rows) * self.square)
            first = np.column_stack([x.ravel(), y.ravel(), np.zeros(x.size)])
            around = self.marker * np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])
            return (first[:, None] + around).reshape(-1, 3)
        x, y = np.meshgrid(np.arange(1, self.columns) * self.square, np.arange(1, self.rows) * self.square)
        return np.column_stack([x.ravel(), y.ravel(), np.zeros(x.size)])


def detect_board(
    images: Sequence[str | Path | NDArray[Any]], board: Board, *, hidden: bool = False
) -> tuple[Array, Array]:
    """Corners of a board in images, for :class:`BoardImages`. Needs the extra `camera` (OpenCV without windows).

    Parameters
    ----------
    images : sequence of path or ndarray
        Files, or images (height, width) or (height, width, 3) in OpenCV's order of colours.
    board : Board
        What is printed.
    hidden : bool
        Whether images that do not show the board are left empty; an error by default.

    Returns
    -------
    corners : ndarray, shape (N, M, 2)
        Pixels, not numbers where a corner is hidden.
    board : ndarray, shape (M, 3)
        The corners in the axes of the board (m).

    Raises
    ------
    MissingPackage
        Without OpenCV.
    MissingFile
        If an image cannot be read.
    MissingData
        If the board is not found in an image.
    """
    try:
        import cv2
    except ModuleNotFoundError:
        raise MissingPackage("finding boards in images needs OpenCV: pip install dynid[camera]") from None
    corners = board.corners
    out = np.full((len(images), len(corners), 2), np.nan)
    for k, image in enumerate(images):
        name = f"image {k}" if isinstance(image, np.ndarray) else f"image {k} ('{Path(image).name}')"
        pixels = image if isinstance(image, np.ndarray) else cv2.imread(str(image))
        if pixels is None:
            raise MissingFile(f"{name} cannot be read", "images")
        gray = pixels if pixels.ndim == 2 else cv2.cvtColor(pixels, cv2.COLOR_BGR2GRAY)
        found = _found(cv2, gray, board)
        if len(found) >= _CORNERS:
            out[k, list(found)] = list(found.values())
        elif not hidden:
            raise MissingData(f"board not found in {name}", "images")
    return out, corners


def _found(cv2: Any, gray: NDArray[Any], board: Board) -> dict[int, Array]:
    """Pixels of the corners that are seen, by their number."""
    if board.kind == "checkerboard":
        return _checkers(cv2, gray, board)
    aruco = cv2.aruco
    usual = "APRILTAG_36h11" if board.kind == "apriltag" else "4X4_50"
    number = getattr(aruco, f"DICT_{board.dictionary or usual}", None)
    if number is None:
        raise UnknownName(f"OpenCV has no markers named '{board.dictionary}', such as 4X4_50", "dictionary")
    markers = aruco.getPredefinedDictionary(number)
    if board.kind == "charuco":
        layout = aruco.CharucoBoard((board.columns, board.rows), board.square, board.marker, markers)
        layout.setLegacyPattern(board.old)
        pixels, ids, *_ = aruco.CharucoDetector(layout).detectBoard(gray)
        return {} if ids is None else dict(zip(ids.ravel().tolist(), pixels.reshape(-1, 2), strict=True))
    settings = aruco.DetectorParameters()
    settings.cornerRefinementMethod = aruco.CORNER_REFINE_SUBPIX
    tags, ids, _ = aruco.ArucoDetector(markers, settings).detectMarkers(gray)
    out: dict[int, Array] = {}
    for tag, number in zip(tags, () if ids is None else ids.ravel().tolist(), strict=True):
        if number < board.columns * board.rows:
            out |= {4 * number + j: pixel for j, pixel in enumerate(tag.reshape(4, 2))}
    return out


def _checkers(cv2: Any, gray: NDArray[Any], board: Board) -> dict[int, Array]:
    """Inner corners of a checkerboard, the first of them beside the dark square of a corner of the board."""
    columns, rows = board.columns - 1, board.rows - 1
    seen, pixels = cv2.findChessboardCornersSB(gray, (columns, rows))
    if not seen:
        return {}
    grid = pixels.reshape(rows, columns, 2).astype(float)
    along, down = grid[0, -1] - grid[0, 0], grid[-1, 0] - grid[0, 0]
    if along[0] * down[1] < along[1] * down[0]:  # seen from behind
        grid = grid[::-1]
    first = _beyond(gray, grid[0, 0], grid[1, 1])
    last = _beyond(gray, grid[-1, -1], grid[-2, -2])
    if first > last:
        grid = grid[::-1, ::-1]
    return dict(enumerate(grid.reshape(-1, 2)))


def _beyond(gray: NDArray[Any], corner: Array, inner: Array) -> float:
    """Brightness in the middle of the square beyond a corner."""
    x, y = np.rint(corner + (corner - inner) / 2).astype(int)
    height, width = gray.shape
    return float(gray[np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)])
