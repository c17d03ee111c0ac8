"""The verdict on an identified geometry, and measurements that are refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from dynid.assessment.verdict.assessment import CheckCode
from dynid.dynamics.frames import frame_placement
from dynid.errors import InvalidShape, InvalidValue, MissingData, NotApplicable, TooFew
from dynid.geometry import (
    GeometryCause,
    GeometryCauseCode,
    GeometryCauses,
    GeometryEstimate,
    GeometryModel,
    Points,
    assess_geometry,
    calibrate_geometry,
)
from dynid.robot.load import load_robot
from tests.support.errors import expect_error

Array = NDArray[np.float64]
ROBOT = load_robot("tx40")
LINK = ROBOT.links[-1].name
MODEL = GeometryModel(eccentricity=0.0, compliance=0.0, bending=0.0)
ZEROS = np.array([0.01, -0.02, 0.015, 0.01, -0.01, 0.02])
MARKERS = np.array([[0.06, 0.0, 0.08], [-0.03, 0.05, 0.06]])
NOTHING = GeometryCauses((), 0.02, 1.0, 5e-4)


def _points(q: Array, zeros: Array = ZEROS, noise: float = 1e-4) -> Points:
    at = frame_placement(ROBOT, q + zeros, LINK)
    seen = np.einsum("nij,mj->nmi", at[:, :3, :3], MARKERS) + at[:, None, :3, 3]
    return Points(q, LINK, points=seen + noise * np.random.default_rng(1).normal(size=seen.shape), noise=1e-4)


def _postures(count: int, reach: float = 2.0) -> Array:
    return np.random.default_rng(0).uniform(-reach, reach, (count, 6))


@pytest.fixture(scope="module")
def good() -> tuple[GeometryEstimate, Points]:
    points = _points(_postures(30))
    return calibrate_geometry(ROBOT, points, MODEL), points


def test_good_measurements_are_trusted(good: tuple[GeometryEstimate, Points]) -> None:
    found = assess_geometry(*good)
    assert found.verdict == "trusted", found.summary()
    assert any("left out" in reason for reason in found.reasons)
    assert {c.result for c in found.checks} == {"passed"}


def test_without_measurements_no_cause_is_searched(good: tuple[GeometryEstimate, Points]) -> None:
    found = assess_geometry(good[0])
    skipped = {c.code for c in found.checks if c.result == "not checked"}
    codes = {CheckCode.RESIDUAL, CheckCode.EXCITATION, CheckCode.PREDICTION_UNCERTAINTY, CheckCode.DOMAIN}
    assert skipped == codes and found.trusted


def test_positions_in_millimetres_are_calibrated_and_not_trusted() -> None:
    """Residuals of a million standard deviations leave covariances that can be factored."""
    given = _points(_postures(30))
    given = replace(given, points=1e3 * given.points)
    found = assess_geometry(calibrate_geometry(ROBOT, given, MODEL, held_out=False), given)
    assert found.verdict == "do not use" and "millimetres" in found.reasons[0]


def test_markers_that_are_known_and_exchanged_are_calibrated_and_not_trusted() -> None:
    """No posture agrees with what is known of the markers: all of them cannot be set aside."""
    given = replace(_points(_postures(30)), known=MARKERS[::-1], known_std=1e-3)
    estimate = calibrate_geometry(ROBOT, given, MODEL, held_out=False)
    assert all(len(s.set_aside) < 15 for s in estimate.sensors) and np.isfinite(estimate.std).all()
    found = assess_geometry(estimate, given)
    assert not found.trusted and "marker 1 and marker 2 are exchanged" in found.reasons[0]


def test_a_named_cause_decides(good: tuple[GeometryEstimate, Points]) -> None:
    cause = GeometryCause(
        code=GeometryCauseCode.MOVED,
        words="the base moved by 4 mm before posture 12",
        probability=0.99,
        gain=40.0,
        before=2e-3,
        after=3e-4,
        tool=3e-3,
        advice="fasten it",
    )
    check = assess_geometry(*good, GeometryCauses((cause,), 0.99, 1.0, 5e-4)).check(CheckCode.RESIDUAL)
    assert check.result == "failed" and check.words.startswith("the base moved") and check.advice == "fasten it"
    # Small and uncertain: told as such.
    small = replace(cause, probability=0.6, before=3.2e-4, tool=4e-4)
    check = assess_geometry(*good, GeometryCauses((small,), 0.6, 1.0, 5e-4)).check(CheckCode.RESIDUAL)
    assert check.result == "warned" and check.words.startswith("perhaps the base moved")
    nobody = replace(cause, code=GeometryCauseCode.UNKNOWN)
    assert (
        assess_geometry(*good, GeometryCauses((nobody,), 0.9, 4.0, 5e-4)).check(CheckCode.RESIDUAL).result == "warned"
    )


def _with(good: tuple[GeometryEstimate, Points], **changes: object) -> dict[CheckCode, str]:
    estimate, points = good
    changed = replace(estimate, **changes)
    return {c.code: c.result for c in assess_geometry(changed, points, NOTHING).checks if c.result != "passed"}


def test_checks_see_what_they_are_for(good: tuple[GeometryEstimate, Points]) -> None:
    estimate, _ = good
    assert _with(good) == {}
    assert _with(good, converged=False) == {CheckCode.SOLVER: "failed"}
    assert _with(good, heavy_tails=True) == {CheckCode.OUTLIERS: "warned"}
    (sensor,) = estimate.sensors
    assert _with(good, sensors=(replace(sensor, noise=5.0),)) == {CheckCode.NOISE: "warned"}
    assert _with(good, sensors=(replace(sensor, noise=50.0),)) == {CheckCode.NOISE: "failed"}
    assert _with(good, sensors=(replace(sensor, set_aside=(1, 2, 3)),)) == {CheckCode.OUTLIERS: "warned"}
    held = estimate.held_out
    assert held is not None
    worse = replace(held, after=3 * held.after)
    assert _with(good, held_out=worse)[CheckCode.ERROR_GROWTH] == "warned"
    assert _with(good, held_out=replace(held, after=1.5 * held.before))[CheckCode.PRIOR] == "failed"
    assert _with(good, held_out=None)[CheckCode.PRIOR] == "warned"


@pytest.mark.parametrize(("symbol", "value"), [("zero", np.pi / 2), ("x", 0.1)])
def test_an_offset_of_a_quarter_turn_and_a_link_that_is_10_cm_longer_are_absurd(
    good: tuple[GeometryEstimate, Points], symbol: str, value: float
) -> None:
    estimate, points = good
    values = estimate.values.copy()
    k = next(i for i, u in enumerate(estimate.unknowns) if u.symbol == symbol and u.owner == "joint3")
    values[k] = value
    check = assess_geometry(replace(estimate, values=values), points, NOTHING).check(CheckCode.PLAUSIBLE_GEOMETRY)
    assert check.result == "failed" and f"{symbol} of joint3" in check.words


def test_few_and_similar_postures_are_not_trusted() -> None:
    few = _points(_postures(7))
    found = assess_geometry(calibrate_geometry(ROBOT, few, MODEL), few, NOTHING)
    assert found.check(CheckCode.EXCITATION).result == "warned"
    assert found.check(CheckCode.ERROR_GROWTH).result == "failed"
    similar = _points(0.5 + _postures(30, 0.1))
    found = assess_geometry(calibrate_geometry(ROBOT, similar, MODEL), similar, NOTHING)
    assert found.check(CheckCode.DOMAIN).result == "warned" and "too similar" in found.check(CheckCode.DOMAIN).advice


# -- measurements that are refused ------------------------------------------------------------------------


def test_no_posture() -> None:
    with expect_error(TooFew, "q"):
        Points(np.zeros((0, 6)), LINK, points=np.zeros((0, 1, 3)))
    with expect_error(MissingData, "measurements"):
        calibrate_geometry(ROBOT, ())


def test_fewer_postures_than_the_sensors_need() -> None:
    with expect_error(TooFew):
        calibrate_geometry(ROBOT, _points(_postures(1)), MODEL)


def test_a_marker_that_was_never_seen() -> None:
    given = _points(_postures(10))
    points = given.points.copy()
    points[:, 1] = np.nan
    with expect_error(MissingData, "markers"):
        calibrate_geometry(ROBOT, replace(given, points=points), MODEL)


def test_degrees() -> None:
    given = _points(_postures(10))
    with expect_error(InvalidValue, "q"):
        calibrate_geometry(ROBOT, replace(given, q=np.degrees(given.q)), MODEL)
    q = given.q.copy()
    q[:, 4] = np.degrees(q[:, 4])
    with expect_error(InvalidValue, "q"):
        calibrate_geometry(ROBOT, replace(given, q=q), MODEL)


def test_joints_are_missing() -> None:
    given = _points(_postures(10))
    with expect_error(InvalidShape, "q"):
        calibrate_geometry(ROBOT, replace(given, q=given.q[:, :5]), MODEL)


def test_robots_with_loops_are_refused_by_name() -> None:
    robot = load_robot("fourbar")
    q = np.zeros((5, robot.n))
    points = Points(q, robot.links[-1].name, points=np.zeros((5, 1, 3)))
    with expect_error(NotApplicable, "robot"):
        calibrate_geometry(robot, points)
