"""Boards in images: detection by OpenCV, homographies and intrinsics."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from numpy.typing import NDArray

from dynid.errors import InvalidValue, MissingData, MissingPackage
from dynid.geometry import Board, BoardImages, detect_board
from dynid.geometry.measurements.homography import board_poses, intrinsics_from
from tests.support.errors import expect_error
from tests.support.geometry_cases import LENS, project

Array = NDArray[np.float64]

CAMERA = np.array([[900, 0, 640], [0, 900, 360], [0, 0, 1.0]])
# Pixels per square of the printed board.
PRINTED = 100


def ahead(board: Array, vector: list[float]) -> Array:
    """Pose of a board with its middle 0.6 m before the camera."""
    pose = np.eye(4)
    pose[:3, :3] = pin.exp3(np.array([0, 0, vector[2]])) @ pin.exp3(np.array([vector[0], vector[1], 0]))
    pose[:3, 3] = np.array([0, 0, 0.6]) - pose[:3, :3] @ board.mean(0)
    return pose


def rendered(cv2: Any, board: Board, pose: Array) -> NDArray[np.uint8]:
    """An image of a printed board."""
    shape = board.rows * PRINTED, board.columns * PRINTED
    if board.kind == "checkerboard":
        rows, columns = np.indices(shape) // PRINTED
        flat = np.where((rows + columns) % 2, 255, 0).astype(np.uint8)
    elif board.kind == "charuco":
        markers = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_4X4_50)
        layout = cv2.aruco.CharucoBoard((board.columns, board.rows), board.square, board.marker, markers)
        flat = layout.generateImage(shape[::-1])
    else:
        markers = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_APRILTAG_36h11)
        flat, size = np.full(shape, 255, np.uint8), round(board.marker / board.square * PRINTED)
        for k in range(board.rows * board.columns):
            at = PRINTED * (k // board.columns), PRINTED * (k % board.columns)
            flat[at[0] : at[0] + size, at[1] : at[1] + size] = cv2.aruco.generateImageMarker(markers, k, size)
    flat = np.pad(flat, PRINTED, constant_values=255)
    scale, edge = board.square / PRINTED, PRINTED - 0.5
    metres = np.array([[scale, 0, -edge * scale], [0, scale, -edge * scale], [0, 0, 1]])
    mapped = CAMERA @ np.column_stack([pose[:3, 0], pose[:3, 1], pose[:3, 3]]) @ metres
    out: NDArray[np.uint8] = cv2.warpPerspective(flat, mapped, (1280, 720), flags=cv2.INTER_AREA, borderValue=180)
    return out


BOARDS = [
    Board("charuco", 8, 6, 0.04, 0.03),
    Board("checkerboard", 8, 7, 0.04),
    Board("apriltag", 4, 3, 0.07, 0.05),
]


@pytest.mark.parametrize("board", BOARDS, ids=lambda b: b.kind)
@pytest.mark.parametrize("vector", [[0.3, 0.2, 0.1], [-0.3, 0.4, 3.0]], ids=["upright", "upside down"])
def test_corners_are_found_in_their_order(board: Board, vector: list[float]) -> None:
    cv2 = pytest.importorskip("cv2")
    pose = ahead(board.corners, vector)
    found, corners = detect_board([rendered(cv2, board, pose)], board)
    seen = (corners @ pose[:3, :3].T + pose[:3, 3]) @ CAMERA.T
    # Corners of neighbours are 40 pixels and more apart.
    assert np.abs(found[0] - seen[:, :2] / seen[:, 2:]).max() < 1


@pytest.mark.parametrize("board", BOARDS, ids=lambda b: b.kind)
def test_an_image_without_the_board_is_named(board: Board) -> None:
    cv2 = pytest.importorskip("cv2")
    good, empty = rendered(cv2, board, ahead(board.corners, [0.3, 0.2, 0.1])), np.full((720, 1280), 128, np.uint8)
    with expect_error(MissingData, "images"):
        detect_board([good, empty], board)
    found, _ = detect_board([good, empty], board, hidden=True)
    assert np.isfinite(found[0]).all() and np.isnan(found[1]).all()


def test_without_opencv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cv2", None)
    with expect_error(MissingPackage):
        detect_board([], BOARDS[0])


def test_a_checkerboard_that_looks_the_same_upside_down() -> None:
    with expect_error(InvalidValue, "rows"):
        Board("checkerboard", 8, 6, 0.04)


def _seen(lens: Array, count: int) -> tuple[Array, Array, Array]:
    rng, board = np.random.default_rng(0), BOARDS[0].corners
    poses = np.array([ahead(board, rng.uniform(-0.6, 0.6, 3).tolist()) for _ in range(count)])
    corners = np.einsum("nij,mj->nmi", poses[:, :3, :3], board) + poses[:, None, :3, 3]
    return poses, project(corners, lens), board


def test_poses_and_intrinsics_from_homographies_are_exact() -> None:
    poses, pixels, board = _seen(LENS, 8)
    pixels[0, 4:] = np.nan
    pixels[1, 3:] = np.nan
    found = board_poses(pixels, board, LENS)
    # The first four corners lie on a line: neither they nor three of them show the pose.
    assert np.isnan(found[:2]).all()
    assert np.allclose(found[2:], poses[2:], atol=1e-8)
    plain = LENS * np.array([1, 1, 1, 1, 0, 0, 0, 0, 0])
    assert np.allclose(intrinsics_from(_seen(plain, 4)[1], board), plain, rtol=1e-6, atol=1e-6)


def test_pixels_become_metres_at_the_board() -> None:
    _, pixels, board = _seen(LENS, 3)
    seen = BoardImages(np.zeros((3, 7)), "link7", corners=pixels, board=board, intrinsics=LENS)
    away = np.tile([0.6, 0.8], (3, 35))
    away[1] = np.nan
    found = seen.distances(away)
    assert found[[0, 2]] == pytest.approx(1 * 0.6 / 902.5) and np.isnan(found[1])
