"""Causes of wrong measurements of geometry, put into measurements of an arm that Pinocchio places."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from numpy.typing import NDArray

from dynid.geometry import GeometryCauseCode, GeometryModel, Points, Sockets, find_geometry_causes
from dynid.geometry.evidence import fitted
from dynid.geometry.problem import Problem
from dynid.robot.load import load_robot

Array = NDArray[np.float64]
C = GeometryCauseCode
ROBOT = load_robot("tx40")
# Without what bends and what is eccentric: fewer unknowns, and faster.
MODEL = GeometryModel(eccentricity=0.0, compliance=0.0, bending=0.0)
LINK = ROBOT.links[-1].name
N = 36
MARKERS = np.array([[0.06, 0.0, 0.08], [-0.03, 0.05, 0.06]])


def _placed(q: Array) -> Array:
    """Placements (N, 4, 4) of the last link of an arm with errors of every joint."""
    rng, model = np.random.default_rng(3), ROBOT.to_pinocchio()
    for k in range(1, model.njoints):
        away = pin.SE3(pin.exp3(rng.normal(0, 3e-3, 3)), rng.normal(0, 5e-4, 3))
        model.jointPlacements[k] = model.jointPlacements[k] * away
    data, frame, out = model.createData(), model.getFrameId(LINK), []
    for one in q:
        pin.framesForwardKinematics(model, data, one)
        out.append(data.oMf[frame].homogeneous.copy())
    return np.array(out)


Q = np.random.default_rng(0).uniform(-1.8, 1.8, (N, 6))
AT = _placed(Q)


def _seen(at: Array = AT) -> Array:
    clean = np.einsum("nij,mj->nmi", at[:, :3, :3], MARKERS) + at[:, None, :3, 3]
    return clean + 1e-4 * np.random.default_rng(1).normal(size=clean.shape)


SEEN = _seen()


def _points(points: Array = SEEN, q: Array = Q) -> Points:
    return Points(q, LINK, points=points, noise=1e-4)


def _column(j: int, value: Array) -> Array:
    out = Q.copy()
    out[:, j] = value
    return out


def _moved() -> Points:
    points = SEEN.copy()
    points[20:] = points[20:] @ pin.exp3(np.array([0.0, 0.004, 0.0])).T + [0.003, 0.0, -0.002]
    return _points(points)


def _loose() -> Points:
    points = SEEN.copy()
    points[15:, 1] += AT[15:, :3, :3] @ [0.0, 0.003, 0.001]
    return _points(points)


def _exchanged() -> Points:
    points = SEEN.copy()
    points[24:] = points[24:, ::-1]
    return _points(points)


def _outliers() -> Points:
    points = SEEN.copy()
    points[[2, 9, 14, 21, 30, 33]] += 0.02 * np.random.default_rng(5).normal(size=(6, 1, 3))
    return _points(points)


def _backlash() -> Points:
    q = Q.copy()
    q[:, 1] += 1.5e-3 * np.sign(np.diff(Q[:, 1], prepend=Q[0, 1] - 1))
    return _points(_seen(_placed(q)))


def _drift() -> Points:
    return _points(SEEN + np.linspace(0, 1, N)[:, None, None] * np.array([0.002, -0.001, 0.0]))


def _shifted() -> Points:
    return _points(q=_column(2, np.concatenate([Q[:1, 2], Q[:-1, 2]])))


def _stuck() -> Points:
    return _points(q=_column(3, np.where((np.arange(N) >= 10) & (np.arange(N) < 18), Q[10, 3], Q[:, 3])))


KINDS = {
    "sign": (lambda: _points(q=_column(2, -Q[:, 2])), C.JOINT_SIGN, "'joint3' has the wrong sign"),
    "order": (lambda: _points(q=Q[:, [0, 2, 1, 3, 4, 5]]), C.JOINT_ORDER, "'joint2' and 'joint3' are exchanged"),
    "zero": (lambda: _points(q=_column(3, Q[:, 3] + np.pi / 2)), C.JOINT_ZERO, "the zero of 'joint4' is off by 90"),
    "degrees": (lambda: _points(q=_column(1, np.degrees(Q[:, 1]))), C.DEGREES, "'joint2' is in degrees"),
    "rows": (_shifted, C.ROWS_SHIFTED, "'joint3' is logged one row before the others"),
    "stuck": (_stuck, C.JOINT_STUCK, "'joint4' reads the same from posture 10 to 17"),
    "swapped": (_exchanged, C.MARKERS_SWAPPED, "marker 1 and marker 2 are exchanged from posture 24 on"),
    "moved": (_moved, C.MOVED, "the base or the tracker moved by"),
    "loose": (_loose, C.LOOSE, "marker 2 moved by 3.2 mm before posture 15"),
    "backlash": (_backlash, C.BACKLASH, "'joint2' stands 3"),
    "drift": (_drift, C.DRIFT, "the base or the tracker drifted by 2."),
    "millimetres": (lambda: _points(1e3 * SEEN), C.SCALE, "positions of points are in millimetres"),
    "scale": (lambda: _points(1.03 * SEEN), C.SCALE, "% too long"),
    "outliers": (_outliers, C.OUTLIERS, "6 postures (17 %) are gross errors"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_cause_is_named_with_its_place_and_size(kind: str) -> None:
    make, code, words = KINDS[kind]
    given = make()
    found = find_geometry_causes(ROBOT, given, MODEL)
    assert [c.code for c in found.causes] == [code]
    cause = found.causes[0]
    assert words in cause.words
    assert cause.probability > 0.9 and cause.advice
    # The advice can be tried: with it, the errors are those of the noise.
    assert cause.corrected is not None
    after = fitted(Problem.of(ROBOT, cause.corrected, MODEL))
    assert after.typical < 3e-4
    again = find_geometry_causes(ROBOT, cause.corrected, MODEL)
    assert cause.code not in [c.code for c in again.causes]


def test_nothing_is_named_in_good_measurements() -> None:
    found = find_geometry_causes(ROBOT, _points(), MODEL)
    assert not found.causes and found.wrong < 0.3
    assert found.scatter < 1.5


def test_markers_exchanged_in_all_postures_are_seen_where_it_is_known_where_they_sit() -> None:
    given = replace(_points(SEEN[:, ::-1]), known=MARKERS, known_std=1e-3)
    assert [c.code for c in find_geometry_causes(ROBOT, given, MODEL).causes] == [C.MARKERS_SWAPPED]
    # Where it is not known, names of markers are only names.
    assert not find_geometry_causes(ROBOT, _points(SEEN[:, ::-1]), MODEL).causes


def test_what_nothing_explains_is_said() -> None:
    noisy = _points(SEEN + 2e-3 * np.random.default_rng(2).normal(size=SEEN.shape))
    (cause,) = find_geometry_causes(ROBOT, noisy, MODEL).causes
    assert cause.code is C.UNKNOWN and "no cause that was tried" in cause.words


def test_a_joint_that_is_held_is_not_stuck() -> None:
    q = _column(3, np.where(np.arange(N) < 18, 0.4, Q[:, 3]))
    assert not find_geometry_causes(ROBOT, _points(_seen(_placed(q)), q), MODEL).causes


# -- sockets ----------------------------------------------------------------------------------------------


def _in_sockets() -> Sockets:
    """A ball in three sockets, in turn."""
    rng = np.random.default_rng(7)
    model = ROBOT.to_pinocchio()
    limits = model.upperPositionLimit
    center = np.array([0.3, 0.1, 0.4])
    apart = np.array([[0.0, 0.0, 0.0], [0.15, 0.0, 0.05], [0.0, 0.18, -0.05]])
    sockets = dict(zip("ABC", center + apart, strict=True))
    q: list[Array] = []
    while len(q) < 45:
        found = rng.uniform(-1.5, 1.5, 6)
        target = sockets["ABC"[len(q) % 3]]
        for _ in range(40):
            at = _placed(np.vstack([found, found + 1e-6 * np.eye(6)]))
            tip = at[:, :3, :3] @ MARKERS[0] + at[:, :3, 3]
            if np.linalg.norm(target - tip[0]) < 1e-8:
                break
            J = (tip[1:] - tip[0]).T / 1e-6
            found = found + np.clip(np.linalg.pinv(J, rcond=1e-2) @ (target - tip[0]), -0.3, 0.3)
        else:
            continue
        if np.all(np.abs(found) < limits):
            q.append(found)
    read = np.array(q) + 2e-4 * rng.normal(size=(45, 6))
    distances = {(a, b): float(np.linalg.norm(sockets[a] - sockets[b])) for a, b in ("AB", "BC", "AC")}
    names = ["ABC"[k % 3] for k in range(45)]
    return Sockets(read, LINK, socket=names, distances_known=distances, ball=tuple(MARKERS[0]), ball_std=1e-3)


@pytest.fixture(scope="module")
def sockets() -> Sockets:
    return _in_sockets()


def test_a_wrong_distance_of_sockets_is_named(sockets: Sockets) -> None:
    right = sockets.distances_known["B", "C"]
    wrong = replace(sockets, distances_known={**sockets.distances_known, ("B", "C"): right + 0.012})
    (cause,) = find_geometry_causes(ROBOT, wrong, MODEL).causes
    assert cause.code is C.SOCKET_DISTANCE and "sockets B and C" in cause.words
    assert cause.corrected is not None and isinstance(cause.corrected[0], Sockets)
    assert abs(cause.corrected[0].distances_known["B", "C"] - right) < 1e-3
    assert not find_geometry_causes(ROBOT, sockets, MODEL).causes


def test_postures_with_the_name_of_another_socket_are_named(sockets: Sockets) -> None:
    names = sockets.socket.copy()
    names[[4, 17]] = ["C", "A"]
    (cause,) = find_geometry_causes(ROBOT, replace(sockets, socket=names), MODEL).causes
    assert cause.code is C.SOCKET_LABEL and "postures 4, 17 say" in cause.words
    assert cause.corrected is not None and isinstance(cause.corrected[0], Sockets)
    assert (cause.corrected[0].socket == sockets.socket).all()


def test_sockets_that_moved_together_are_others_from_then_on(sockets: Sockets) -> None:
    rng = np.random.default_rng(0)
    # The robot's base turned by 10 mrad about its first axis: its reading of joint 1 is off from there on.
    q = sockets.q.copy()
    q[25:, 0] += 1e-2 + 1e-4 * rng.normal(size=20)
    (cause,) = find_geometry_causes(ROBOT, replace(sockets, q=q), MODEL).causes
    assert cause.code is C.MOVED and "before posture 25" in cause.words
    assert cause.corrected is not None and isinstance(cause.corrected[0], Sockets)
    assert set(cause.corrected[0].sockets) >= {"A", "A from posture 25"}
