"""Families of motion: their derivatives, how smooth they are, how they begin and end."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from dynid.errors import InvalidValue, NotApplicable, UnknownName
from dynid.excitation.basis import (
    Basis,
    BSpline,
    CubicSpline,
    Fourier,
    FourierQuintic,
    Narrowed,
    PointToPoint,
    Quintic,
    Stretched,
    at_rest,
)
from dynid.excitation.design import FAMILIES, make_family
from tests.support.errors import expect_error

Array = NDArray[np.float64]

T = 7.0

# Every family with the highest derivative that is continuous inside; 9 where all are.
SMOOTH: dict[str, tuple[Basis, int]] = {
    "fourier": (Fourier(T, 4), 9),
    "high harmonics": (Fourier(T, (3, 7)), 9),
    "quintic polynomial": (Quintic(T), 9),
    "fourier-quintic": (FourierQuintic(T, 3), 9),
    "b-spline 3": (BSpline(T, 6, 3), 2),
    "b-spline 4": (BSpline(T, 6, 4), 3),
    "b-spline 5": (BSpline(T, 6, 5), 4),
    "cubic": (CubicSpline(T, 6), 2),
    "quintic": (PointToPoint(T, 4, "quintic"), 2),
    "trapezoid": (PointToPoint(T, 4, "trapezoid"), 1),
    "double-s": (PointToPoint(T, 4, "double-s"), 2),
    "postures": (PointToPoint(T, 4, "quintic", dwell=0.5), 2),
    "double-s postures": (PointToPoint(T, 4, "double-s", dwell=0.3), 2),
    "trapezoid postures": (PointToPoint(T, 4, "trapezoid", dwell=0.3), 1),
    "fourier at rest": (at_rest(Fourier(T, 4)), 9),
    "fourier-quintic at rest": (at_rest(FourierQuintic(T, 3)), 9),
    "b-spline at rest": (at_rest(BSpline(T, 6)), 4),
    "stretched": (Stretched(PointToPoint(3.0, 4), T), 2),
}
every_family = pytest.mark.parametrize("name", SMOOTH)


def scale(basis: Basis, order: int) -> float:
    """Largest value of a derivative, at least one."""
    return max(1.0, float(np.abs(basis.values(np.linspace(0.0, T, 500), order)).max()))


def between_joints(basis: Basis, margin: float) -> Array:
    """Random times at least a margin away from all joints."""
    t = np.random.default_rng(0).uniform(margin, T - margin, 300)
    return t[np.abs(t[:, None] - np.array(basis.breakpoints)).min(axis=1) > margin]


@every_family
@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives_against_differences(name: str, order: int) -> None:
    basis = SMOOTH[name][0]
    step = 1e-4
    t = between_joints(basis, 2 * step)
    assert len(t) > 100
    slope = (basis.values(t + step, order - 1) - basis.values(t - step, order - 1)) / (2 * step)
    # A step of 1e-4 costs 1e-8 / 6 of two derivatives more, each up to ten times the one before, and 1e-12 by rounding.
    assert np.abs(slope - basis.values(t, order)).max() < 1e-6 * scale(basis, order)


@every_family
def test_continuity_at_joints(name: str) -> None:
    """Derivatives are continuous up to the stated order, and where that is below the jerk the next one jumps."""
    basis, smooth = SMOOTH[name]
    step = 1e-8
    inner = np.array([t for t in basis.breakpoints if 1e-6 < t < T - 1e-6])
    assert len(inner) or smooth == 9
    for order in range(min(smooth, 3) + 1):
        jump = np.abs(basis.values(inner + step, order) - basis.values(inner - step, order)).max(initial=0.0)
        # Twice the step times the next derivative, which is up to a hundred times this one.
        assert jump < 1e-5 * scale(basis, order), order
    if smooth < 3:
        jump = np.abs(basis.values(inner + step, smooth + 1) - basis.values(inner - step, smooth + 1)).max()
        assert jump > 0.1 * scale(basis, smooth + 1)


@every_family
def test_joints_are_sorted_and_have_both_ends(name: str) -> None:
    basis = SMOOTH[name][0]
    joints = np.array(basis.breakpoints)
    assert np.all(np.diff(joints) > 0)
    np.testing.assert_allclose([joints[0], joints[-1]], [0.0, T])
    assert basis.duration == T


@pytest.mark.parametrize(("duration", "waypoints"), [(7.0, 7), (20.0, 10), (0.7, 9)])
def test_joints_of_many_segments_are_apart(duration: float, waypoints: int) -> None:
    """Also where the end of a segment and the start of the next are rounded differently."""
    for profile, pieces in (("quintic", 1), ("trapezoid", 3), ("double-s", 7)):
        joints = PointToPoint(duration, waypoints, profile).breakpoints  # type: ignore[arg-type]
        assert len(joints) == pieces * (waypoints - 1) + 1
        assert np.diff(joints).min() > 1e-3 and joints[-1] == duration


@every_family
def test_shapes_and_standing_still(name: str) -> None:
    """Values are (N, size), also for one time, and each family holds the constants."""
    basis = SMOOTH[name][0]
    assert basis.values(1.0).shape == (1, basis.size)
    t = np.linspace(0.0, T, 60)
    for order in range(4):
        assert basis.values(t, order).shape == (60, basis.size)
    B = basis.values(t)
    still = np.linalg.lstsq(B, np.ones(60), rcond=None)[0]
    np.testing.assert_allclose(B @ still, 1.0, atol=1e-8)


def test_double_s_has_bounded_jerk() -> None:
    """Of a unit segment in unit time: top speed 5/3, acceleration 25/4, jerk 375/8."""
    basis = PointToPoint(1.0, 2, "double-s")
    t = np.linspace(0.0, 1.0, 2001)
    peaks = [np.abs(basis.values(t, order)).max() for order in (1, 2, 3)]
    np.testing.assert_allclose(peaks, [5 / 3, 25 / 4, 375 / 8])


def test_trapezoid_by_thirds() -> None:
    basis = PointToPoint(1.0, 2, "trapezoid")
    np.testing.assert_allclose(basis.values([1 / 3, 1 / 2, 2 / 3])[:, 1], [1 / 4, 1 / 2, 3 / 4])
    np.testing.assert_allclose(basis.values([1 / 2], 1)[:, 1], 1.5)


@pytest.mark.parametrize("profile", ["quintic", "trapezoid", "double-s"])
@pytest.mark.parametrize("dwell", [0.0, 0.4])
def test_waypoints_are_met_at_rest(profile: str, dwell: float) -> None:
    """Waypoints are the coefficients; during the dwell nothing moves."""
    basis = PointToPoint(6.0, 4, profile, dwell)  # type: ignore[arg-type]
    np.testing.assert_allclose(basis.values([0.0, 2.0, 4.0, 6.0]), np.eye(4), atol=1e-12)
    np.testing.assert_allclose(basis.values([0.0, 2.0, 4.0, 6.0], 1), 0.0, atol=1e-12)
    if dwell:
        resting = np.linspace(2.0 + 2 * 0.6 + 1e-9, 4.0 - 1e-9, 20)
        np.testing.assert_allclose(basis.values(resting), np.eye(4)[[2] * 20], atol=1e-12)
        for order in (1, 2, 3):
            np.testing.assert_array_equal(basis.values(resting, order), 0.0)


def test_cubic_meets_its_waypoints_and_rests_at_its_ends() -> None:
    basis = CubicSpline(6.0, 4)
    np.testing.assert_allclose(basis.values([0.0, 2.0, 4.0, 6.0]), np.eye(4), atol=1e-12)
    np.testing.assert_allclose(basis.values([0.0, 6.0], 1), 0.0, atol=1e-12)


def test_control_points_bound_a_spline() -> None:
    B = BSpline(T, 6, 5).values(np.linspace(0.0, T, 200))
    assert B.min() >= 0
    np.testing.assert_allclose(B.sum(axis=1), 1.0)
    np.testing.assert_allclose(B[[0, -1]], np.eye(11)[[0, -1]], atol=1e-12)


@pytest.mark.parametrize("family", ["fourier", "fourier-quintic", "b-spline"])
def test_at_rest_families_rest_at_both_ends(family: str) -> None:
    basis = FAMILIES[family](T, 5)
    for order in (1, 2):
        np.testing.assert_allclose(basis.values([0.0, T], order), 0.0, atol=1e-10)
    # They still move: only the conditions are taken from the family.
    assert basis.size >= 6 and np.abs(basis.values([1.0, 2.0, 3.0], 1)).max() > 0.01


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "fourier-free"])
def test_first_coefficient_is_the_start_posture(family: str) -> None:
    basis = FAMILIES[family](T, 5)
    np.testing.assert_allclose(basis.values(0.0)[0], np.eye(basis.size)[0], atol=1e-10)
    np.testing.assert_allclose(basis.values([0.0, T], 1), 0.0, atol=1e-10)


def test_rest_of_chosen_orders_and_ends() -> None:
    """Speed alone, at the start alone: one condition and one coefficient less."""
    family = FourierQuintic(T, 3)
    basis = at_rest(family, orders=(1,), ends=("start",))
    assert basis.size == family.size - 1
    np.testing.assert_allclose(basis.values(0.0, 1), 0.0, atol=1e-12)
    assert np.abs(basis.values(T, 1)).max() > 0.1
    assert np.abs(basis.values(0.0, 2)).max() > 0.1


def test_at_rest_loses_as_many_coefficients_as_conditions() -> None:
    """Four of them, two where the end of a period is its start."""
    assert at_rest(FourierQuintic(T, 3)).size == FourierQuintic(T, 3).size - 4
    assert at_rest(BSpline(T, 6)).size == BSpline(T, 6).size - 4
    assert at_rest(Fourier(T, 5)).size == Fourier(T, 5).size - 2


def test_fourier_repeats_and_is_the_only_one_to_say_so() -> None:
    for basis, _ in SMOOTH.values():
        if basis.periodic:
            for order in range(4):
                ends = basis.values([0.0, T], order)
                np.testing.assert_allclose(ends[0], ends[1], atol=1e-9 * scale(basis, order))
    assert {name for name, (basis, _) in SMOOTH.items() if basis.periodic} == {
        "fourier",
        "high harmonics",
        "fourier at rest",
    }


def test_harmonics_selection() -> None:
    """Some harmonics are those columns of all of them; a number means all up to it."""
    t = np.linspace(0.0, T, 40)
    everything, some = Fourier(T, 7), Fourier(T, (3, 7))
    assert everything.size == 15 and some.size == 5
    for order in range(4):
        columns = everything.values(t, order)[:, [0, 3, 7, 7 + 3, 7 + 7]]
        np.testing.assert_allclose(some.values(t, order), columns, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(Fourier(T, 2).values(t), Fourier(T, (1, 2)).values(t))
    np.testing.assert_array_equal(Fourier(T, np.int64(2)).values(t), Fourier(T, 2).values(t))  # type: ignore[arg-type]


def test_fourier_coefficients_are_speeds() -> None:
    """v = a cos(l w t) + b sin(l w t)."""
    t, w = np.linspace(0.0, T, 40), 2 * np.pi / T
    expected = np.column_stack([0 * t, np.cos(2 * w * t), np.sin(2 * w * t)])
    np.testing.assert_allclose(Fourier(T, (2,)).values(t, 1), expected, atol=1e-12)


BAD: dict[str, tuple[Callable[[], object], str]] = {
    "no duration": (lambda: Fourier(0.0), (InvalidValue, "duration")),
    "negative duration": (lambda: Quintic(-1.0), (InvalidValue, "duration")),
    "endless": (lambda: BSpline(np.inf), (InvalidValue, "duration")),
    "not a number": (lambda: CubicSpline(np.nan), (InvalidValue, "duration")),
    "no duration of points": (lambda: PointToPoint(0.0), (InvalidValue, "duration")),
    "no duration of both": (lambda: FourierQuintic(0.0), (InvalidValue, "duration")),
    "no duration to stretch to": (lambda: Stretched(Fourier(T), 0.0), (InvalidValue, "duration")),
    "no harmonics": (lambda: Fourier(T, 0), (InvalidValue, "harmonics")),
    "negative harmonics": (lambda: Fourier(T, -2), (InvalidValue, "harmonics")),
    "empty harmonics": (lambda: Fourier(T, ()), (InvalidValue, "harmonics")),
    "harmonic 0": (lambda: Fourier(T, (0, 1)), (InvalidValue, "harmonics")),
    "twice the same": (lambda: Fourier(T, (2, 2)), (InvalidValue, "harmonics")),
    "half a harmonic": (lambda: Fourier(T, (1.5, 2)), (InvalidValue, "harmonics")),  # type: ignore[arg-type]
    "two and a half": (lambda: Fourier(T, 2.5), (InvalidValue, "harmonics")),  # type: ignore[arg-type]
    "no harmonics beside": (lambda: FourierQuintic(T, 0), (InvalidValue, "harmonics")),
    "no segment": (lambda: BSpline(T, 0), (InvalidValue, "segments")),
    "low degree": (lambda: BSpline(T, 5, 2), (InvalidValue, "segments")),
    "one waypoint of a spline": (lambda: CubicSpline(T, 1), (InvalidValue, "waypoints")),
    "one waypoint": (lambda: PointToPoint(T, 1), (InvalidValue, "waypoints")),
    "profile": (lambda: PointToPoint(T, 4, "cosine"), (UnknownName, "profile")),  # type: ignore[arg-type]
    "all dwell": (lambda: PointToPoint(T, 4, dwell=1.0), (InvalidValue, "dwell")),
    "negative dwell": (lambda: PointToPoint(T, 4, dwell=-0.1), (InvalidValue, "dwell")),
    "cannot rest": (lambda: at_rest(Narrowed(Quintic(T), np.eye(6)[:, 1:2])), (NotApplicable, "ends")),
    "unknown end": (lambda: at_rest(Quintic(T), ends=("finish",)), (InvalidValue, "ends")),
    "no end": (lambda: at_rest(Quintic(T), ends=()), (InvalidValue, "ends")),
    "no order": (lambda: at_rest(Quintic(T), orders=()), (InvalidValue, "ends")),
    "unknown family": (lambda: make_family("sine", T, 5), (UnknownName, "family")),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments(name: str) -> None:
    make, error = BAD[name]
    with expect_error(*error):
        make()
