"""What cannot be a measurement is told in one sentence that names the argument."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dynid.errors import DynidError, InvalidShape, InvalidValue, MissingData, NotIdentifiable, TooFew, UnknownName
from dynid.geometry import BoardImages, Inclination, Lengths, PointContacts, Poses, Surface, Touches
from dynid.geometry.measurements.measurement import Measurement
from dynid.geometry.problem import Problem
from dynid.geometry.unknowns import GeometryModel
from tests.support.errors import expect_error
from tests.support.geometry_cases import BOARD, FRAME
from tests.support.geometry_truth import robot_of

Q = np.linspace(-1, 1, 28).reshape(4, 7)
EYES = np.tile(np.eye(4), (4, 1, 1))
FLIPPED = EYES * np.array([1, 1, -1, 1])
PIXELS = np.zeros((4, 35, 2))
LENS = (900, 900, 640, 360)
DOWN = np.tile([0.0, 0, 9.81], (4, 1))
UNSEEN = np.full((4, 4, 4), np.nan)

WRONG: dict[str, tuple[Callable[[], object], str, type[DynidError]]] = {
    "shape of poses": (lambda: Poses(Q, FRAME, poses=EYES[:3]), "poses", InvalidShape),
    "mirrored": (lambda: Poses(Q, FRAME, poses=FLIPPED), "poses", InvalidValue),
    "base": (lambda: Poses(Q, FRAME, poses=EYES, base=np.eye(3)), "base", InvalidShape),
    "mount": (lambda: Poses(Q, FRAME, poses=EYES, mount=2 * np.eye(4)), "mount", InvalidValue),
    "noise": (lambda: Poses(Q, FRAME, poses=EYES, noise=(0.0, 1e-3)), "noise", InvalidValue),
    "exact": (lambda: Poses(Q, FRAME, poses=EYES, base_std=(0, 0)), "base_std", InvalidValue),
    "no surface": (
        lambda: Touches(Q, FRAME, surface=["tabel"] * 4, surfaces={"table": "plane"}),
        "surfaces",
        UnknownName,
    ),
    "kind of surface": (lambda: Surface("plain"), "kind", UnknownName),  # type: ignore[arg-type]
    "no direction": (lambda: Surface("line", direction=np.zeros(3)), "direction", InvalidValue),
    "two coordinates": (lambda: Touches(Q, FRAME, tip=np.zeros(2)), "surface", InvalidShape),
    "lengths": (lambda: Lengths(Q, FRAME, lengths=np.ones(3)), "lengths", InvalidShape),
    "anchor": (
        lambda: Lengths(Q, FRAME, lengths=np.ones(4), known={"left": (0, 0, 0)}),
        "known",
        UnknownName,
    ),
    "corners": (
        lambda: BoardImages(Q, FRAME, corners=PIXELS[:, 1:], board=BOARD.corners, intrinsics=LENS),  # type: ignore[arg-type]
        "corners",
        InvalidShape,
    ),
    "solid board": (
        lambda: BoardImages(Q, FRAME, corners=PIXELS[:, :4], board=np.eye(4)[:, :3]),
        "board",
        InvalidValue,
    ),
    "intrinsics": (
        lambda: BoardImages(Q, FRAME, corners=PIXELS, board=BOARD.corners, intrinsics=LENS[:3]),  # type: ignore[arg-type]
        "intrinsics",
        InvalidShape,
    ),
    "name of an intrinsic": (
        lambda: BoardImages(Q, FRAME, corners=PIXELS, board=BOARD.corners, intrinsics_std={"f": 1}),
        "intrinsics_std",
        UnknownName,
    ),
    "touching": (
        lambda: PointContacts(Q, points={"a": (FRAME, (0, 0, 0))}, touching=[("a", "b")] * 4),
        "touching",
        UnknownName,
    ),
    "touches itself": (
        lambda: PointContacts(Q, points={"a": (FRAME, (0, 0, 0))}, touching=[("a", "a")] * 4),
        "touching",
        UnknownName,
    ),
    "readings": (lambda: Inclination(Q, FRAME, readings=DOWN[:, :2]), "readings", InvalidShape),
    "no gravity": (lambda: Inclination(Q, FRAME, readings=0 * DOWN), "readings", InvalidValue),
    "no reference": (
        lambda: Inclination(Q, FRAME, readings=DOWN, gravity=np.zeros(3)),
        "gravity",
        InvalidValue,
    ),
}

UNSTARTED: dict[str, tuple[Callable[[], Measurement], type[DynidError], str]] = {
    "never seen": (lambda: Poses(Q, FRAME, poses=UNSEEN), TooFew, ""),
    "two touches": (
        lambda: Touches(Q, FRAME, surface=["a", "a", "b", "b"], surfaces={"a": "line", "b": "plane"}),
        TooFew,
        "",
    ),
    "few lengths": (
        lambda: Lengths(Q, FRAME, lengths=np.array([1, 1, np.nan, np.nan])),
        TooFew,
        "",
    ),
    "no reading": (lambda: Inclination(Q, FRAME, readings=np.nan * DOWN), MissingData, "readings"),
    "camera": (
        lambda: BoardImages(Q, FRAME, corners=np.nan * PIXELS, board=BOARD.corners),
        NotIdentifiable,
        "intrinsics",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments(name: str) -> None:
    make, argument, kind = WRONG[name]
    with expect_error(kind, argument):
        make()


@pytest.mark.parametrize("name", UNSTARTED)
def test_what_shows_no_start(name: str) -> None:
    make, kind, argument = UNSTARTED[name]
    with expect_error(kind, argument):
        Problem.of(robot_of("iiwa14"), [make()], GeometryModel())
