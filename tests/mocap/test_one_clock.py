"""Plates and cameras on one clock: nothing folds back, nothing is shifted, gaps stay gaps."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import Duplicate, InvalidShape, InvalidValue, MissingData, NotFinite, TooFew, UnknownName
from dynid.mocap import Capture, Plate
from dynid.mocap.resample import resample
from dynid.mocap.trial import Channels
from tests.support.errors import expect_error


@pytest.mark.parametrize(("rate", "new"), [(1000.0, 100.0), (1000.0, 120.0), (100.0, 250.0), (2000.0, 60.0)])
def test_slow_waves_pass_and_fast_ones_do_not_fold(rate: float, new: float) -> None:
    """Flat to 1e-4 (80 dB) below 0.36 of the lower rate, gone beyond half of it."""
    lower = min(rate, new)
    t = np.arange(0, 4, 1 / rate)
    times = np.arange(0.5, 3.5, 1 / new)
    for share in (0.0, 0.05, 0.2, 0.35):
        wave = np.cos(2 * np.pi * share * lower * t + 0.3)
        got = resample(wave, rate, times, new)
        np.testing.assert_allclose(got, np.cos(2 * np.pi * share * lower * times + 0.3), atol=2e-4)
    for share in (0.51, 0.7, 0.95, 1.3):
        if share * lower < rate / 2:
            wave = np.cos(2 * np.pi * share * lower * t)
            assert np.abs(resample(wave, rate, times, new)).max() < 2e-4


def test_lines_stay_lines_up_to_the_ends_and_outside_is_nothing() -> None:
    """Constant and linear signals are exact everywhere; times outside give NaN."""
    x = np.column_stack([np.full(200, 3.0), np.linspace(-1, 5, 200)])
    times = np.array([-0.01, 0.0, 0.013, 1.0, 1.99, 2.2])
    got = resample(x, 100.0, times, 40.0)
    assert np.isnan(got[[0, 5]]).all()
    np.testing.assert_allclose(got[1:5, 0], 3.0, atol=1e-12)
    np.testing.assert_allclose(got[1:5, 1], -1 + 6 * times[1:5] * 100 / 199, atol=1e-9)


def test_the_same_clock_changes_nothing() -> None:
    """No filter where none is needed."""
    x = np.random.default_rng(0).normal(size=(50, 2))
    np.testing.assert_array_equal(resample(x, 100.0, np.arange(50) / 100, 100.0), x)
    with expect_error(NotFinite, "x"):
        resample([1.0, np.nan, 2.0], 1.0, [0.5])
    with expect_error(TooFew, "x"):
        resample([1.0], 1.0, [0.5])


def _capture() -> Capture:
    t, fast = np.arange(300) / 100.0, np.arange(3000) / 1000.0
    x = np.stack([np.column_stack([np.sin(2 * t), np.cos(2 * t), t]), np.column_stack([t, t, t])], axis=1)
    x[100:110, 1] = np.nan
    wrench = np.column_stack([np.sin(2 * np.pi * 3 * fast)] * 6)
    plate = Plate("plate1", 1000.0, wrench, np.eye(4))
    return Capture(
        "x", 100.0, ("A", "B"), x, Channels(("emg",), ("V",), 1000.0, wrench[:, :1]), (plate,), events=(("Go", 1.0),)
    )


def test_a_capture_on_one_clock_has_equal_rates_and_its_gaps() -> None:
    """Cameras up, plates and channels down, a shifted clock taken into account."""
    capture = _capture().resampled(150.0, delay=0.02)
    plate = capture.plates[0]
    assert capture.rate == plate.rate == capture.analogs.rate == 150.0
    assert len(capture.t) == len(plate.wrench) == len(capture.analogs.values)
    inside = slice(20, -20)
    np.testing.assert_allclose(capture["A"][inside, 0], np.sin(2 * capture.t)[inside], atol=1e-4)
    expected = np.sin(2 * np.pi * 3 * (capture.t + 0.02))
    np.testing.assert_allclose(plate.wrench[inside, 2], expected[inside], atol=1e-3)
    missing = np.isnan(capture["B"][:, 0])
    np.testing.assert_array_equal(missing, (capture.t > 0.99 + 1e-9) & (capture.t < 1.10 - 1e-9))
    assert capture.events == (("Go", 1.0),)


def test_wrenches_of_all_plates_add_up_at_the_cameras() -> None:
    """In the laboratory, about its origin."""
    capture = _capture()
    shifted = np.eye(4)
    shifted[:3, 3] = [0.5, 0.2, 0.1]
    two = Plate("plate2", 500.0, np.tile([0.0, 0.0, 100.0, 1.0, 2.0, 3.0], (1500, 1)), shifted)
    both = Capture("x", 100.0, capture.markers, capture.positions, plates=(*capture.plates, two)).wrench()
    alone = capture.wrench()
    np.testing.assert_allclose((both - alone)[:-1], np.tile([0, 0, 100.0, 21.0, -48.0, 3.0], (299, 1)), atol=1e-9)
    with expect_error(MissingData):
        Capture("x", 100.0, capture.markers, capture.positions).wrench()


def test_captures_that_cannot_be_are_refused() -> None:
    """Shapes, rates, names, channels."""
    with expect_error(InvalidShape, "positions"):
        Capture("x", 100.0, ("A",), np.zeros((5, 2, 3)))
    with expect_error(InvalidValue, "rate"):
        Capture("x", 0.0)
    with expect_error(Duplicate, "markers"):
        Capture("x", 1.0, ("A", "A"), np.zeros((5, 2, 3)))
    with expect_error(UnknownName, "marker"):
        _capture()["C"]
    with expect_error(UnknownName, "name"):
        _capture().analogs["x"]
    with expect_error(InvalidShape, "wrench"):
        Plate("p", 1.0, np.zeros((3, 5)), np.eye(4))
