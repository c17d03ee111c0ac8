"""Motions in another time, with ramps, and one after another."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid.errors import Infeasible, InvalidShape, InvalidValue, Mismatch, MissingArgument, NotApplicable
from dynid.excitation.basis import Basis, Fourier, PointToPoint, Stretched, at_rest
from dynid.excitation.criteria import make_criterion
from dynid.excitation.design import FAMILIES
from dynid.excitation.excitation import Excitation
from dynid.excitation.limits import MotionLimits, motion_limits
from dynid.excitation.planners import point_to_point
from dynid.excitation.sequencing import Joined, Motion, retimed, sequence, shortest_duration, with_ramps
from tests.support.errors import expect_error

Array = NDArray[np.float64]

WIDE = {"*": {"lower": -10.0, "upper": 10.0, "velocity": 5.0, "torque": 1e4}}


@cache
def _parts() -> tuple[dynid.Robot, object]:
    robot = dynid.load_robot("tx40")
    return robot, make_criterion(dynid.base_parameters(robot, channels="torque"), "d")


def motion(basis: Basis, limits: dict[str, dict[str, float]] | None = None, seed: int = 0) -> Excitation:
    """A random motion of a family, within a rad or two of the middle."""
    robot, goal = _parts()
    t = np.linspace(0.0, basis.duration, 200)
    size = np.abs(basis.values(t)).max(axis=0).clip(0.1)
    X = np.random.default_rng(seed).normal(size=(robot.n, basis.size)) / size / np.sqrt(basis.size)
    held: MotionLimits = motion_limits(robot, WIDE | (limits or {}))
    return Excitation(robot=robot, basis=basis, coefficients=X, limits=held, criterion=goal)  # type: ignore[arg-type]


def check_smooth(whole: Motion, times: Array, orders: int = 3) -> None:
    """Continuous positions, speeds and accelerations at these times."""
    step = 1e-9
    before, after = whole.at(times - step), whole.at(times + step)
    for x, y in list(zip(before, after, strict=True))[:orders]:
        # Twice the step times the next derivative, some ten to hundred per second.
        np.testing.assert_allclose(x, y, atol=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_retimed_keeps_the_path(family: str) -> None:
    """In 27 s what was designed for 20: speeds times 20/27, accelerations times its square."""
    first = motion(FAMILIES[family](20.0, 5))
    second = retimed(first, 27.0)
    t = np.linspace(0.0, 20.0, 101)[:-1] + 0.01
    for order, (x, y) in enumerate(zip(first.at(t), second.at(t * 27 / 20), strict=True)):
        np.testing.assert_allclose(y, x * (20 / 27) ** order, rtol=1e-9, atol=1e-9)
    assert second.duration == 27.0
    assert second.basis.periodic == first.basis.periodic and second.basis.size == first.basis.size
    np.testing.assert_allclose(second.basis.breakpoints, np.array(first.basis.breakpoints) * 27 / 20)
    jerks = [m.basis.values(s * t, 3) for m, s in ((first, 1.0), (second, 1.35))]
    np.testing.assert_allclose(jerks[1], jerks[0] / 1.35**3, rtol=1e-6, atol=1e-9)


def test_retimed_twice_is_retimed_once() -> None:
    first = motion(Fourier(20.0, 3))
    twice = retimed(retimed(first, 27.0), 10.0)
    assert twice.basis == Stretched(first.basis, 10.0)
    assert twice.notes == ("retimed from 20 s to 27 s", "retimed from 27 s to 10 s")


@pytest.mark.parametrize("duration", [0.0, -1.0, np.inf, np.nan])
def test_bad_durations(duration: float) -> None:
    with expect_error(InvalidValue, "duration"):
        retimed(motion(Fourier(20.0, 3)), duration)


@pytest.mark.parametrize("kind", ["velocity", "acceleration", "jerk"])
@pytest.mark.parametrize("family", ["fourier", "cubic", "double-s"])
def test_shortest_duration_by_each_limit(kind: str, family: str) -> None:
    """The motion just keeps the limit in that time, and no longer in a per mille less."""
    limits = {"*": {"lower": -10.0, "upper": 10.0, "velocity": 1e6, "torque": 1e9, kind: 2.0}}
    found = motion(FAMILIES[family](10.0, 5), limits)
    T = shortest_duration(found)
    assert 0 <= retimed(found, T).slacks[kind] < 2e-3
    assert retimed(found, 0.998 * T).slacks[kind] < 0


@pytest.mark.parametrize("kind", ["torque", "power"])
def test_shortest_duration_by_torque_and_power(kind: str) -> None:
    """As for speeds; torques of rest do not change with time."""
    slow = motion(at_rest(Fourier(1e4, 5)), {"*": {"velocity": 1e3, "torque": 1e9}})
    _, q, v, a = slow.sample(0.2)
    rest = np.abs(dynid.inverse_dynamics(slow.robot, q, v, a)).max(axis=0)
    names = slow.robot.coordinates
    bounds = {n: {"torque": float(1.5 * x + 1)} for n, x in zip(names, rest, strict=True)}
    if kind == "power":
        bounds = {n: {"power": 5.0} for n in names}
    wide = {"lower": -10.0, "upper": 10.0, "velocity": 1e3, "torque": 1e9}
    found = motion(at_rest(Fourier(10.0, 5)), {n: wide | bounds[n] for n in names})
    T = shortest_duration(found)
    assert 0 <= retimed(found, T).slacks[kind] < 1e-3
    assert retimed(found, 0.995 * T).slacks[kind] < 0


def test_no_duration_helps() -> None:
    found = motion(at_rest(Fourier(10.0, 5)))
    narrow = replace(found.limits, upper=found.limits.lower + 0.1)
    with expect_error(Infeasible):
        shortest_duration(replace(found, limits=narrow))
    with expect_error(Infeasible):
        shortest_duration(replace(found, limits=replace(found.limits, torque=np.full(6, 1e-3))))
    with expect_error(NotApplicable):
        shortest_duration(replace(found, coefficients=np.zeros_like(found.coefficients)))


def test_ramps_lead_from_rest_to_rest() -> None:
    inner = motion(Fourier(10.0, 5))
    whole = with_ramps(inner, 1.5)
    assert whole.duration == pytest.approx(13.0)
    ends = whole.at([0.0, whole.duration])
    np.testing.assert_allclose(ends[1:], 0.0, atol=1e-9)
    check_smooth(whole, np.array([1.5, 11.5]))
    t = np.linspace(0.0, 10.0, 33)
    for x, y in zip(whole.at(1.5 + t), inner.at(t), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-9)
    # The gentlest ramp is a quartic: its fifth coefficient is nothing.
    for ramp in (whole.parts[0], whole.parts[2]):
        assert isinstance(ramp, Excitation)
        np.testing.assert_allclose(ramp.coefficients[:, 5], 0.0, atol=1e-9)
    t, q, v, _ = whole.sample(1000.0)
    np.testing.assert_allclose(np.diff(q, axis=0), np.diff(t)[:, None] * (v[1:] + v[:-1]) / 2, atol=1e-6)


def test_ramps_between_given_postures() -> None:
    inner = motion(Fourier(10.0, 3))
    start, end = np.full(6, 0.1), np.full(6, -0.2)
    whole = with_ramps(inner, 3.0, start=start, end=end)
    np.testing.assert_allclose(whole.at([0.0, whole.duration])[0], [start, end], atol=1e-9)
    check_smooth(whole, np.array([3.0, 13.0]))


def test_no_ramps_at_rest() -> None:
    assert with_ramps(motion(at_rest(Fourier(10.0, 5))), 1.0).duration == pytest.approx(10.0)


def test_bad_ramps() -> None:
    inner = motion(Fourier(10.0, 5))
    for seconds in (0.0, np.nan):
        with expect_error(InvalidValue, "seconds"):
            with_ramps(inner, seconds)
    with expect_error(InvalidShape, "posture"):
        with_ramps(inner, 1.0, start=[0.0])
    with expect_error(Infeasible, "seconds"):
        with_ramps(inner, 0.1, start=np.full(6, 9.0))
    with expect_error(Infeasible, "seconds"):
        with_ramps(inner, 0.1, end=np.full(6, 9.0))


def test_sequence_joins_motions() -> None:
    """A designed motion, ramps about another and a path, with moves within all limits between them."""
    first = motion(at_rest(Fourier(10.0, 5)))
    second = with_ramps(motion(Fourier(8.0, 3), seed=1), 2.0)
    steps = point_to_point(np.random.default_rng(2).uniform(-1, 1, (3, 6)), _with_rates(first.limits))
    whole = sequence([first, second, steps])
    assert len(whole.parts) == 5
    assert whole.duration == pytest.approx(sum(part.duration for part in whole.parts))
    check_smooth(whole, whole.starts[1:])
    np.testing.assert_allclose(whole.at(whole.starts[1:])[1], 0.0, atol=1e-6)
    for move in whole.parts[1::2]:
        assert isinstance(move, Excitation)
        assert 0 <= min(move.slacks.values()) < 1e-3
    t, q, v, a = whole.sample(100.0)
    assert q.shape == v.shape == a.shape == (len(t), 6)
    assert t[-1] == whole.duration


def _with_rates(limits: MotionLimits) -> MotionLimits:
    return replace(limits, acceleration=np.full(6, 10.0), jerk=np.full(6, 100.0))


def test_sequence_with_given_limits() -> None:
    """Then moves are those of the planner, which asks nothing of the motions."""
    limits = _with_rates(motion(Fourier(10.0, 5)).limits)
    points = np.random.default_rng(2).uniform(-1, 1, (4, 6))
    whole = sequence([point_to_point(points[:2], limits), point_to_point(points[2:], limits)], limits=limits)
    np.testing.assert_allclose(whole.duration, point_to_point(points, limits).duration)
    with expect_error(MissingArgument, "limits"):
        sequence([point_to_point(points[:2], limits), point_to_point(points[2:], limits)])


def test_sequence_repeats_periods_without_a_move() -> None:
    """A period in motion joins itself, and a motion that starts where the last one ends follows at once."""
    period = motion(Fourier(10.0, 5))
    whole = sequence([period, period])
    assert whole.parts == (period, period)
    check_smooth(whole, np.array([10.0]))


def test_bad_sequences() -> None:
    moving, resting = motion(Fourier(10.0, 5)), motion(PointToPoint(10.0, 4))
    with expect_error(MissingArgument, "motions"):
        sequence([])
    with expect_error(NotApplicable, "motions"):
        sequence([moving, resting])
    with expect_error(NotApplicable, "motions"):
        sequence([resting, moving])
    narrow = point_to_point(np.zeros((2, 2)), MotionLimits(*(np.array([s, s]) for s in (-1.0, 1, 1, 1, 1, 1, 1))))
    with expect_error(Mismatch, "motions"):
        sequence([resting, narrow])
    with expect_error(InvalidValue, "rate"):
        Joined((resting,)).sample(-1.0)
