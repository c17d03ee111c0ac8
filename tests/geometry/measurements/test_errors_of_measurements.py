"""What cannot be a measurement is told in one sentence that names the argument."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dynid.errors import DynidError
from dynid.geometry import BoardImages, Inclination, Lengths, PointContacts, Poses, Surface, Touches
from dynid.geometry.measurements.measurement import Measurement
from dynid.geometry.problem import Problem
from dynid.geometry.unknowns import GeometryModel
from tests.support.geometry_cases import BOARD, FRAME
from tests.support.geometry_truth import robot_of

Q = np.linspace(-1, 1, 28).reshape(4, 7)
EYES = np.tile(np.eye(4), (4, 1, 1))
FLIPPED = EYES * np.array([1, 1, -1, 1])
PIXELS = np.zeros((4, 35, 2))
LENS = (900, 900, 640, 360)
DOWN = np.tile([0.0, 0, 9.81], (4, 1))
UNSEEN = np.full((4, 4, 4), np.nan)

WRONG: dict[str, tuple[Callable[[], object], str, str]] = {
    "shape of poses": (lambda: Poses(Q, FRAME, poses=EYES[:3]), "poses", "must have shape (4, 4, 4), got (3, 4, 4)"),
    "mirrored": (lambda: Poses(Q, FRAME, poses=FLIPPED), "poses", "pose 0 is no placement"),
    "base": (lambda: Poses(Q, FRAME, poses=EYES, base=np.eye(3)), "base", "base must be a 4x4 matrix"),
    "mount": (lambda: Poses(Q, FRAME, poses=EYES, mount=2 * np.eye(4)), "mount", "mount is no placement"),
    "noise": (lambda: Poses(Q, FRAME, poses=EYES, noise=(0.0, 1e-3)), "noise", "noise must be positive"),
    "exact": (lambda: Poses(Q, FRAME, poses=EYES, base_std=(0, 0)), "base_std", "base_std must be positive"),
    "no surface": (
        lambda: Touches(Q, FRAME, surface=["tabel"] * 4, surfaces={"table": "plane"}),
        "surfaces",
        "a posture touches 'tabel', which is no surface; did you mean table?",
    ),
    "kind of surface": (lambda: Surface("plain"), "kind", "a surface is a plane, line or point, not 'plain'"),  # type: ignore[arg-type]
    "no direction": (lambda: Surface("line", direction=np.zeros(3)), "direction", "direction of a line has no length"),
    "two coordinates": (lambda: Touches(Q, FRAME, tip=np.zeros(2)), "surface", "surface has 0 entries for 4 postures"),
    "lengths": (lambda: Lengths(Q, FRAME, lengths=np.ones(3)), "lengths", "lengths has shape (3,) for 4 postures"),
    "anchor": (
        lambda: Lengths(Q, FRAME, lengths=np.ones(4), known={"left": (0, 0, 0)}),
        "known",
        "no length is from anchor 'left'",
    ),
    "corners": (
        lambda: BoardImages(Q, FRAME, corners=PIXELS[:, 1:], board=BOARD.corners, intrinsics=LENS),  # type: ignore[arg-type]
        "corners",
        "corners must have shape (4, 35, 2), got (4, 34, 2)",
    ),
    "solid board": (
        lambda: BoardImages(Q, FRAME, corners=PIXELS[:, :4], board=np.eye(4)[:, :3]),
        "board",
        "the corners of the board must lie in a plane",
    ),
    "intrinsics": (
        lambda: BoardImages(Q, FRAME, corners=PIXELS, board=BOARD.corners, intrinsics=LENS[:3]),  # type: ignore[arg-type]
        "intrinsics",
        "intrinsics has shape (3,): give fx, fy, cx, cy",
    ),
    "name of an intrinsic": (
        lambda: BoardImages(Q, FRAME, corners=PIXELS, board=BOARD.corners, intrinsics_std={"f": 1}),
        "intrinsics_std",
        "no intrinsic of a camera is named 'f'",
    ),
    "touching": (
        lambda: PointContacts(Q, points={"a": (FRAME, (0, 0, 0))}, touching=[("a", "b")] * 4),
        "touching",
        "posture 0 has no point 'b'",
    ),
    "touches itself": (
        lambda: PointContacts(Q, points={"a": (FRAME, (0, 0, 0))}, touching=[("a", "a")] * 4),
        "touching",
        "at posture 0 point 'a' touches itself",
    ),
    "readings": (lambda: Inclination(Q, FRAME, readings=DOWN[:, :2]), "readings", "readings must have shape (4, 3)"),
    "no gravity": (lambda: Inclination(Q, FRAME, readings=0 * DOWN), "readings", "reading 0 has no length"),
    "no reference": (
        lambda: Inclination(Q, FRAME, readings=DOWN, gravity=np.zeros(3)),
        "gravity",
        "gravity has no length",
    ),
}

UNSTARTED: dict[str, tuple[Callable[[], Measurement], str]] = {
    "never seen": (lambda: Poses(Q, FRAME, poses=UNSEEN), "poses saw its target in no posture"),
    "two touches": (
        lambda: Touches(Q, FRAME, surface=["a", "a", "b", "b"], surfaces={"a": "line", "b": "plane"}),
        "plane 'b' is touched in 2 postures: an unknown one needs 3",
    ),
    "few lengths": (
        lambda: Lengths(Q, FRAME, lengths=np.array([1, 1, np.nan, np.nan])),
        "2 lengths are from anchor 'anchor': an unknown one needs 3",
    ),
    "no reading": (lambda: Inclination(Q, FRAME, readings=np.nan * DOWN), "inclination has no reading"),
    "camera": (
        lambda: BoardImages(Q, FRAME, corners=np.nan * PIXELS, board=BOARD.corners),
        "the images do not show the camera's intrinsics",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments(name: str) -> None:
    make, argument, sentence = WRONG[name]
    with pytest.raises(DynidError) as caught:
        make()
    assert sentence in str(caught.value) and caught.value.argument == argument
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", UNSTARTED)
def test_what_shows_no_start(name: str) -> None:
    make, sentence = UNSTARTED[name]
    with pytest.raises(DynidError) as caught:
        Problem.of(robot_of("iiwa14"), [make()], GeometryModel())
    assert sentence in str(caught.value)
