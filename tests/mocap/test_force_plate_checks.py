"""Plates that are not zeroed, stand in another frame or run on another clock are found, in words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.assessment import Finding
from dynid.errors import InvalidValue, MissingData, NotIdentifiable, TooFew
from dynid.mocap import Capture, Plate
from dynid.robot.spatial import axis_rotation, placement
from tests.support.errors import expect_error

MASS, RATE, FAST = 80.0, 100.0, 1000.0
HALF = np.array([0.25, 0.2])


def _height(t: np.ndarray) -> np.ndarray:
    return 1.0 + 0.05 * np.sin(2 * np.pi * 0.7 * t) + 0.02 * np.sin(2 * np.pi * 1.3 * t + 1)


def _lift(t: np.ndarray) -> np.ndarray:
    a, b = 2 * np.pi * 0.7, 2 * np.pi * 1.3
    return -0.05 * a**2 * np.sin(a * t) - 0.02 * b**2 * np.sin(b * t + 1)


def _plate(force: np.ndarray, at: tuple[float, float] = (0.05, -0.03)) -> Plate:
    """A plate with z into the floor whose reaction `force` (K, 3), laboratory axes, acts at a point of it."""
    turn = axis_rotation((1, 0, 0), np.pi)
    where = placement(turn, [0.4, 0.3, 0.0])
    lever = np.array([*at, 0.0])
    moment = np.cross(lever, force)
    corners = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]]) * HALF
    flat = np.column_stack([corners, np.zeros(4)]) @ turn.T + where[:3, 3]
    return Plate("plate1", FAST, np.hstack([force @ turn, moment @ turn]), where, flat)


def _squats(lag: float = 0.0, seconds: float = 8.0, free: float = 0.0) -> Capture:
    """Squats on a plate whose clock lags by `lag` s, stepped on after `free` s."""
    rng = np.random.default_rng(0)
    t, fast = np.arange(0, seconds, 1 / RATE), np.arange(0, seconds, 1 / FAST)
    vertical = MASS * (9.81 + _lift(fast - lag)) * (fast >= free) + rng.normal(size=len(fast))
    force = np.column_stack([rng.normal(size=(len(fast), 2)), vertical])
    offsets = rng.uniform(-0.2, 0.2, (6, 3))
    x = offsets + np.column_stack([0 * t, 0 * t, _height(t)])[:, None] + 1e-3 * rng.normal(size=(len(t), 6, 3))
    return Capture("squats", RATE, tuple("ABCDEF"), x, plates=(_plate(force),))


def _plates(capture: Capture, mass: float | None = None) -> list[Finding]:
    return [f for f in capture.findings(mass) if f.joint.startswith("plate") or not f.joint]


def test_a_good_plate_has_nothing_to_say() -> None:
    """Neither loaded all the time nor stepped on later."""
    assert _plates(_squats(), MASS) == []
    assert _plates(_squats(free=2.0)) == []


def test_a_plate_that_is_not_zeroed_is_found_while_it_stands_free() -> None:
    """And `zeroed` takes the offset away."""
    capture = _squats(free=2.0)
    offset = np.array([4.0, -6.0, 12.0, 1.0, 0.5, 0.2])
    bad = replace(capture.plates[0], wrench=capture.plates[0].wrench + offset)
    (finding,) = _plates(replace(capture, plates=(bad,)))
    assert "not zeroed" in finding.what and finding.how_much == "14.0 N and 1.14 N m"
    good = bad.zeroed(0.0, 1.9)
    # A mean of 1900 samples of 1 N noise.
    np.testing.assert_allclose(good.wrench, capture.plates[0].wrench, atol=0.15)
    with expect_error(MissingData):
        bad.zeroed(100.0, 101.0)


def test_a_plate_that_is_always_loaded_is_judged_by_the_weight() -> None:
    """A sideways mean force, and a mean that is not the weight of a body of known mass."""
    capture = _squats()
    turn = capture.plates[0].placement[:3, :3]
    bad = replace(capture.plates[0], wrench=capture.plates[0].wrench + np.concatenate([turn.T @ [30, 0, 40], [0] * 3]))
    found = _plates(replace(capture, plates=(bad,)), MASS)
    assert [("horizontal" in f.what, "vertical" in f.what) for f in found] == [(True, False), (False, True)]
    # The squats begin and end at different speeds, which the mean shows too.
    fast = np.arange(0, 8.0, 1 / FAST)
    assert found[0].how_much.startswith("30.0 N along x")
    assert float(found[1].how_much.split()[0]) == pytest.approx(40 + MASS * _lift(fast).mean(), abs=0.2)
    with expect_error(InvalidValue, "mass"):
        capture.findings(-1.0)


def test_action_instead_of_reaction_and_another_upward_axis_are_found() -> None:
    """By the direction in which the weight is carried."""
    capture = _squats()
    plate = capture.plates[0]
    (down,) = (
        f for f in _plates(replace(capture, plates=(replace(plate, wrench=-plate.wrench),))) if f.severity == "error"
    )
    assert "points down" in down.what and "plates='action'" in down.what_to_do
    turned = replace(plate, placement=placement(axis_rotation((1, 0, 0), -np.pi / 2)) @ plate.placement, corners=None)
    (side,) = (f for f in _plates(replace(capture, plates=(turned,))) if f.severity == "error")
    assert "along +y" in side.what and "up=" in side.what_to_do and side.how_much.startswith("90 degrees")


def test_a_centre_of_pressure_beside_the_plate_is_found() -> None:
    """Moments in the wrong unit put it metres away."""
    capture = _squats()
    plate = capture.plates[0]
    bad = replace(plate, wrench=plate.wrench * [1, 1, 1, 1e3, 1e3, 1e3])
    found = [f for f in _plates(replace(capture, plates=(bad,))) if "beside the plate" in f.what]
    assert len(found) == 1 and found[0].severity == "error" and found[0].how_much.startswith("100 %")


@pytest.mark.parametrize("lag", [0.08, -0.05])
def test_a_clock_that_is_off_is_measured_and_put_right(lag: float) -> None:
    """The lag between force and acceleration, to a quarter of a frame; the shifted plate fits the motion again."""
    capture = _squats(lag)
    seconds, correlation = capture.clock_offset()
    assert seconds == pytest.approx(lag, abs=0.0025) and correlation > 0.95
    (finding,) = _plates(capture)
    assert ("lag" if lag > 0 else "lead") in finding.what and finding.how_much.startswith(f"{abs(1000 * lag):.0f} ms")
    expected = MASS * (9.81 + _lift(capture.t))
    shifted = capture.wrench(delay=seconds)[:, 2]
    inside = np.isfinite(shifted)
    inside[:30] = inside[-30:] = False
    rms = np.sqrt(np.mean((shifted - expected)[inside] ** 2))
    plain = np.sqrt(np.mean((capture.wrench()[:, 2] - expected)[inside] ** 2))
    assert rms < 5.0 < plain / 5
    known = capture.clock_offset(_height(capture.t))[0]
    assert known == pytest.approx(lag, abs=0.001)


def test_clocks_that_cannot_be_compared_say_why() -> None:
    """Without a plate, without motion, without time."""
    capture = _squats()
    with expect_error(MissingData):
        replace(capture, plates=()).clock_offset()
    with expect_error(TooFew):
        replace(capture, positions=capture.positions[:50]).clock_offset()
    with expect_error(NotIdentifiable):
        capture.clock_offset(np.ones(len(capture.t)))
