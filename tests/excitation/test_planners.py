"""Moves in least time: known answers, second formulations, limits and ends of random ones."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from dynid import DataError
from dynid.errors import Infeasible, InvalidShape, InvalidValue, MissingData, UnknownName
from dynid.excitation.limits import MotionLimits
from dynid.excitation.planners import Path, Profile, double_s, point_to_point, trapezoid
from tests.support.errors import Error, expect_error

Array = NDArray[np.float64]

# Ends are reached through a dozen products of numbers up to a few hundred: far below this.
EXACT = 1e-9


def some_limits(n: int = 3) -> MotionLimits:
    ones = np.ones(n)
    scale = 1 + 0.3 * np.arange(n)
    return MotionLimits(-3 * ones, 3 * ones, 2 * scale, 8 / scale, 60 * ones, np.inf * ones, np.inf * ones)


def random_ends(seed: int) -> tuple[float, ...]:
    """q0, q1, v0, v1 and limits over some decades; speeds at the ends of both signs."""
    rng = np.random.default_rng(seed)
    v, a, j = 10 ** rng.uniform([-1, -0.5, 0], [1, 1.5, 2.5])
    q0, way = rng.uniform(-3, 3), 10 ** rng.uniform(-4, 1.5) * rng.choice([-1, 1])
    v0, v1 = v * rng.uniform(-1, 1, 2) * rng.choice([0, 1, 1], 2)
    return q0, q0 + way, v0, v1, v, a, j


def joints_of(profile: Profile) -> Array:
    return np.append(profile.starts, profile.duration)


def check_move(profile: Profile, ends: tuple[float, ...], smooth: int) -> None:
    """Ends are met, limits kept, and derivatives up to `smooth` continuous."""
    q0, q1, v0, v1, *limits = ends
    T = profile.duration
    for order, (start, end) in enumerate([(q0, q1), (v0, v1), (0.0, 0.0)][: smooth + 1]):
        scale = 1 + max(abs(start), abs(end))
        np.testing.assert_allclose(profile.at([0.0, T], order), [start, end], rtol=0, atol=EXACT * scale)
    t = np.sort(np.concatenate([np.linspace(0.0, T, 400), joints_of(profile)]))
    for order, limit in enumerate(limits[: smooth + 1], start=1):
        assert np.abs(profile.at(t, order)).max() <= limit * (1 + EXACT)
    # Each piece begins where the one before it ends: its polynomial is followed to its own end.
    for k, (start, end) in enumerate(pairwise(joints_of(profile))):
        if k + 1 == len(profile.starts):
            break
        s, (q, v, a, j) = end - start, profile.states[k]
        arrives = [q + v * s + a * s**2 / 2 + j * s**3 / 6, v + a * s + j * s**2 / 2, a + j * s]
        for order in range(smooth + 1):
            np.testing.assert_allclose(arrives[order], profile.states[k + 1, order], rtol=EXACT, atol=EXACT)


@pytest.mark.parametrize(
    ("v0", "velocity", "answer"),
    [
        (1.0, 5.0, (0.7333, 1.1433, 0.8333, 0.3333, 0.3333)),
        (1.0, 10.0, (1.0747, 0.0, 1.1747, 0.3333, 0.3333)),
        (7.0, 10.0, (0.4666, 0.0, 1.4718, 0.2321, 0.2321)),
        (7.5, 10.0, (0.0, 0.0, 2.6667, 0.0, 0.0973)),
    ],
)
def test_double_s_known_answers(v0: float, velocity: float, answer: tuple[float, ...]) -> None:
    """The four examples of Biagiotti and Melchiorri, section 3.4, printed with four digits."""
    found = double_s(0.0, 10.0, v0, 0.0, velocity, 10.0, 30.0)
    np.testing.assert_allclose((found.Ta, found.Tv, found.Td, found.Tj1, found.Tj2), answer, atol=1e-4)
    backwards = double_s(0.0, -10.0, -v0, 0.0, velocity, 10.0, 30.0)
    t = np.linspace(0.0, found.duration, 50)
    for order in range(4):
        np.testing.assert_allclose(backwards.at(t, order), -found.at(t, order), atol=1e-12)


def test_random_double_s() -> None:
    """Feasible ones keep ends and limits; the others are refused. All kinds of move occur."""
    kinds = {"cruise": 0, "peak": 0, "faster only": 0, "slower only": 0, "refused": 0}
    for seed in range(600):
        ends = random_ends(seed)
        try:
            profile = double_s(*ends)
        except DataError:
            kinds["refused"] += 1
            continue
        check_move(profile, ends, smooth=2)
        kind = (
            "cruise" if profile.Tv else "slower only" if not profile.Ta else "faster only" if not profile.Td else "peak"
        )
        kinds[kind] += 1
    assert min(kinds.values()) >= 5, kinds


def test_shortest_feasible_way() -> None:
    """To reach speed 2 from rest with acceleration 1 and jerk 4 takes 2 (2 + 1/4) / 2 = 2.25, a trapezoid 2."""
    only = double_s(0.0, 2.25, 0.0, 2.0, 5.0, 1.0, 4.0)
    assert (only.Ta, only.Tv, only.Td) == pytest.approx((2.25, 0.0, 0.0), abs=1e-6)
    assert trapezoid(0.0, 2.0, 0.0, 2.0, 5.0, 1.0).Ta == pytest.approx(2.0)
    with expect_error(Infeasible):
        double_s(0.0, 2.249, 0.0, 2.0, 5.0, 1.0, 4.0)
    with expect_error(Infeasible):
        trapezoid(0.0, 1.999, 0.0, 2.0, 5.0, 1.0)


def test_double_s_against_closed_formulas() -> None:
    """Position piece by piece as the books write it, for moves with a cruise and without."""
    for seed in range(200):
        q0, q1, v0, v1, v, a, j = random_ends(seed)
        q1, v0, v1 = q0 + abs(q1 - q0), abs(v0), abs(v1)
        try:
            p = double_s(q0, q1, v0, v1, v, a, j)
        except DataError:
            continue
        T, up, down = p.duration, j * p.Tj1, -j * p.Tj2
        top = v0 + (p.Ta - p.Tj1) * up
        assert top == pytest.approx(v1 - (p.Td - p.Tj2) * down, abs=EXACT)

        def position(t: float, p: Profile = p, e: tuple[float, ...] = (q0, q1, v0, v1, j, up, down, top)) -> float:
            q0, q1, v0, v1, j, up, down, top = e
            s, u = t - p.duration + p.Td, p.duration - t
            if t < p.Tj1:
                return q0 + v0 * t + j * t**3 / 6
            if t < p.Ta - p.Tj1:
                return q0 + v0 * t + up / 6 * (3 * t**2 - 3 * p.Tj1 * t + p.Tj1**2)
            if t < p.Ta:
                return q0 + (top + v0) * p.Ta / 2 - top * (p.Ta - t) + j * (p.Ta - t) ** 3 / 6
            if t < p.Ta + p.Tv:
                return q0 + (top + v0) * p.Ta / 2 + top * (t - p.Ta)
            if s < p.Tj2:
                return q1 - (top + v1) * p.Td / 2 + top * s - j * s**3 / 6
            if s < p.Td - p.Tj2:
                return q1 - (top + v1) * p.Td / 2 + top * s + down / 6 * (3 * s**2 - 3 * p.Tj2 * s + p.Tj2**2)
            return q1 - v1 * u - j * u**3 / 6

        t = np.linspace(0.0, T, 60)
        np.testing.assert_allclose(p.at(t), [position(x) for x in t], rtol=EXACT, atol=EXACT)


def test_random_trapezoids() -> None:
    kinds = {"cruise": 0, "peak": 0, "refused": 0}
    for seed in range(400):
        q0, q1, v0, v1, v, a, _ = random_ends(seed)
        try:
            profile = trapezoid(q0, q1, v0, v1, v, a)
        except DataError:
            kinds["refused"] += 1
            continue
        check_move(profile, (q0, q1, v0, v1, v, a), smooth=1)
        kinds["cruise" if profile.Tv else "peak"] += 1
        assert profile.Tj1 == profile.Tj2 == 0
    assert min(kinds.values()) > 10, kinds


def test_trapezoid_known_answers() -> None:
    """With a cruise 10 = 2/2 + 4*2 + 2/2 and so on; a triangle over 4 with acceleration 1 takes 2 + 2 s."""
    cruise = trapezoid(0.0, 10.0, 0.0, 0.0, 2.0, 2.0)
    assert (cruise.Ta, cruise.Tv, cruise.Td) == pytest.approx((1.0, 4.0, 1.0))
    triangle = trapezoid(1.0, -3.0, 0.0, 0.0, 5.0, 1.0)
    assert (triangle.Ta, triangle.Tv, triangle.Td) == pytest.approx((2.0, 0.0, 2.0))
    assert triangle.at(2.0, 1)[0] == pytest.approx(-2.0)
    assert trapezoid(0.0, 1.5, 1.0, 2.0, 2.0, 1.0).duration == pytest.approx(1.0)


def test_double_s_with_much_jerk_is_a_trapezoid() -> None:
    for seed in range(50):
        q0, q1, v0, v1, v, a, _ = random_ends(seed)
        try:
            slow, fast = double_s(q0, q1, v0, v1, v, a, 1e9), trapezoid(q0, q1, v0, v1, v, a)
        except DataError:
            continue
        # Rises of acceleration take up to 3e-8 s; where the acceleration is lowered, up to a hundredth of it is.
        assert fast.duration - 1e-6 <= slow.duration <= 1.02 * fast.duration + 1e-6


@pytest.mark.parametrize("plan", [lambda *x: double_s(*x), lambda *x: trapezoid(*x[:6])])
def test_no_way_no_time(plan: object) -> None:
    assert callable(plan)
    still = plan(0.7, 0.7, 0.0, 0.0, 1.0, 1.0, 1.0)
    assert still.duration == 0
    np.testing.assert_array_equal(still.at([0.0, 1.0]), [0.7, 0.7])
    np.testing.assert_array_equal(still.stretched(3.0).at([0.0, 1.0, 3.0]), 0.7)
    np.testing.assert_array_equal(still.stretched(3.0).at([0.0, 1.0], 1), 0.0)


@pytest.mark.parametrize(
    ("ends", "error"),
    [
        ((0.0, 0.1, 2.0, 0.0, 5.0, 1.0, 1.0), (Infeasible, "")),
        ((0.0, 0.1, 0.0, 2.0, 5.0, 1.0, 1.0), (Infeasible, "")),
        ((0.0, -0.1, -2.0, 0.0, 5.0, 1.0, 1.0), (Infeasible, "")),
        ((0.0, 0.0, 1.0, 0.0, 5.0, 1.0, 1.0), (Infeasible, "")),
        ((0.0, 1.0, 6.0, 0.0, 5.0, 1.0, 1.0), (Infeasible, "")),
        ((0.0, 1.0, 0.0, -6.0, 5.0, 1.0, 1.0), (Infeasible, "")),
        ((0.0, np.nan, 0.0, 0.0, 5.0, 1.0, 1.0), (InvalidValue, "")),
        ((0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0), (InvalidValue, "velocity")),
        ((0.0, 1.0, 0.0, 0.0, 5.0, np.inf, 1.0), (InvalidValue, "acceleration")),
        ((0.0, 1.0, 0.0, 0.0, 5.0, 1.0, -1.0), (InvalidValue, "jerk")),
    ],
)
def test_impossible_moves(ends: tuple[float, ...], error: Error) -> None:
    with expect_error(*error):
        double_s(*ends)
    if error[1] != "jerk":
        with expect_error(*error):
            trapezoid(*ends[:6])


def check_path(path: Path, points: Array, limits: MotionLimits, smooth: bool) -> None:
    q, v, a = path.at(path.times)
    np.testing.assert_allclose(q, points, atol=EXACT)
    np.testing.assert_allclose(v, 0.0, atol=EXACT)
    if smooth:
        np.testing.assert_allclose(a, 0.0, atol=EXACT * 100)
    t, q, v, a = path.sample(500.0)
    assert t[0] == 0 and t[-1] == path.duration
    assert np.all(np.abs(v) <= limits.velocity * (1 + EXACT))
    assert np.all(np.abs(a) <= limits.acceleration * (1 + EXACT))
    assert np.all((q <= limits.upper + EXACT) & (q >= limits.lower - EXACT))
    # Speed is the slope of the position: trapezoids of 2 ms steps are off by h^3/12 of the jerk, or h^2/8 of a jump.
    np.testing.assert_allclose(np.diff(q, axis=0), np.diff(t)[:, None] * (v[1:] + v[:-1]) / 2, atol=1e-5)


@pytest.mark.parametrize("profile", ["double-s", "trapezoid"])
def test_path_through_waypoints(profile: str) -> None:
    """Three joints through four waypoints: all arrive together, no later than the slowest must."""
    limits = some_limits()
    points = np.random.default_rng(1).uniform(-2.5, 2.5, (4, 3))
    points[2, 1] = points[1, 1]
    path = point_to_point(points, limits, profile=profile)
    check_path(path, points, limits, profile == "double-s")
    for move, length in zip(path.moves, np.diff(path.times), strict=True):
        np.testing.assert_allclose([p.duration for p in move], length, rtol=1e-12)
        jerk = max(np.abs(p.at(joints_of(p), 3)).max() for p in move)
        assert jerk <= 60 * (1 + EXACT)
        # The slowest joint is at one of its limits.
        peaks = [
            max(np.abs(p.at(joints_of(p), k)).max() / x[i] for k, x in ((1, limits.velocity), (2, limits.acceleration)))
            for i, p in enumerate(move)
        ]
        assert max(*peaks, jerk / 60) == pytest.approx(1.0)


def test_short_double_s_between_stops_is_the_fastest() -> None:
    """Over a way too short for its acceleration a move takes (32 h / j)^(1/3)."""
    limits = some_limits(1)
    path = point_to_point([[0.0], [0.01]], limits)
    assert path.duration == pytest.approx((32 * 0.01 / 60) ** (1 / 3), rel=1e-12)


def test_path_that_stays() -> None:
    path = point_to_point([[0.5, 1.0, 0.0]] * 3, some_limits())
    assert path.duration == 0
    np.testing.assert_array_equal(path.at([0.0, 1.0])[0], [[0.5, 1.0, 0.0]] * 2)


def test_bad_paths() -> None:
    limits = some_limits()
    good = np.zeros((2, 3))
    for bad in (np.zeros(3), np.zeros((1, 3)), np.zeros((2, 4)), np.full((2, 3), np.nan)):
        with expect_error(InvalidShape, "waypoints"):
            point_to_point(bad, limits)
    with expect_error(InvalidValue, "waypoints"):
        point_to_point([[0, 0, 0], [0, 4, 0]], limits)
    with expect_error(UnknownName, "profile"):
        point_to_point(good, limits, profile="cubic")  # type: ignore[arg-type]
    with expect_error(MissingData, "limits"):
        point_to_point(good, replace(limits, jerk=np.array([1.0, np.inf, 1.0])))
    with expect_error(MissingData, "limits"):
        point_to_point(good, replace(limits, acceleration=np.full(3, np.inf)), profile="trapezoid")
    with expect_error(InvalidValue, "rate"):
        point_to_point(good, limits).sample(0.0)
