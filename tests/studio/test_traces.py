"""Extremes per pixel column: the same as those of all samples, whatever the range."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynid.errors import DataError
from dynid.studio.traces import MOST_COLUMNS, Extremes, Trace


def by_hand(values: np.ndarray, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
    """Extremes of a range from its samples alone."""
    part = values[start:stop]
    low, high = np.full(values.shape[1], np.nan), np.full(values.shape[1], np.nan)
    for k, column in enumerate(part.T):
        there = column[~np.isnan(column)]
        if there.size:
            low[k], high[k] = there.min(), there.max()
    return low, high


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 700), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.1, 0.9]))
def test_extremes_of_any_range_are_those_of_its_samples(size: int, seed: int, missing: float) -> None:
    """Ranges of all lengths, empty ones included, with values that are missing."""
    random = np.random.default_rng(seed)
    values = random.normal(size=(size, 2))
    values[random.random(values.shape) < missing] = np.nan
    ends = np.sort(random.integers(0, size + 1, (12, 2)), axis=1)
    ends = np.vstack([ends, [[0, size], [0, 0], [size, size]]])
    low, high = Extremes(values).between(ends[:, 0], ends[:, 1])
    expected = [by_hand(values, a, b) for a, b in ends]
    np.testing.assert_array_equal(low, [x[0] for x in expected])
    np.testing.assert_array_equal(high, [x[1] for x in expected])


@settings(max_examples=40, deadline=None)
@given(
    st.integers(50, 4000),
    st.integers(1, 60),
    st.floats(0, 0.9),
    st.floats(0.05, 1.2),
    st.integers(0, 2**32 - 1),
)
def test_a_window_is_that_of_a_search_through_all_samples(
    size: int, columns: int, start: float, span: float, seed: int
) -> None:
    """Uneven clocks with gaps and stamps that run backwards; each sample is in the column of its time."""
    random = np.random.default_rng(seed)
    t = np.cumsum(random.choice([0.0, 0.001, 0.002, 0.5, -0.001], size, p=[0.05, 0.6, 0.3, 0.02, 0.03]))
    trace = Trace(t, random.normal(size=(size, 1)))
    total = trace.t[-1] - trace.t[0]
    a = trace.t[0] + start * total
    b = a + max(span * total, 1e-3)
    found = trace.window(a, b, columns)
    inside = (trace.t >= a) & (trace.t <= b)
    if found.whole:
        assert inside.sum() <= 2 * columns
        kept = (found.times >= a) & (found.times <= b)
        np.testing.assert_array_equal(found.low[kept], trace.values[inside])
        np.testing.assert_array_equal(found.low, found.high)
        return
    edges = np.linspace(a, b, columns + 1)
    column = np.clip(np.searchsorted(edges, trace.t, "right") - 1, 0, columns - 1)
    for k in range(columns):
        there = trace.values[inside & (column == k), 0]
        expected = (np.nan, np.nan) if not there.size else (there.min(), there.max())
        np.testing.assert_array_equal((found.low[k, 0], found.high[k, 0]), expected)


def test_a_spike_of_one_sample_in_a_million_is_seen_at_every_zoom() -> None:
    t = np.arange(1_000_000) / 1000.0
    values = np.sin(t)[:, None]
    values[712_345] = 50.0
    trace = Trace(t, values)
    for span in (1000.0, 100.0, 10.0, 1.0, 0.01):
        found = trace.window(t[712_345] - 0.3 * span, t[712_345] + 0.7 * span, 1000)
        assert np.nanmax(found.high) == 50.0
        seen = found.times[np.nanargmax(found.high[:, 0])]
        assert abs(seen - t[712_345]) <= span / 1000


def test_missing_values_are_gaps_and_no_values_at_all_are_none() -> None:
    t = np.arange(1000) / 100.0
    values = np.sin(t)[:, None]
    values[300:500] = np.nan
    found = Trace(t, values).window(0.0, 10.0, 100)
    assert np.isnan(found.low[30:50, 0]).all() and np.isfinite(found.low[[29, 50], 0]).all()
    beyond = Trace(t, values).window(50.0, 60.0, 100)
    assert beyond.whole and len(beyond.times) == 1  # the last sample, from which a line would come
    nothing = Trace(np.zeros(0), np.zeros((0, 2))).window(0.0, 1.0, 10)
    assert nothing.whole and nothing.low.shape == (0, 2)


def test_lines_come_from_and_go_to_samples_outside_the_window() -> None:
    t = np.arange(100.0)
    found = Trace(t, t[:, None]).window(10.5, 12.5, 500)
    assert found.whole and found.times.tolist() == [10.0, 11.0, 12.0, 13.0]


@pytest.mark.parametrize(
    ("start", "stop", "columns"),
    [
        (1.0, 1.0, 10),
        (2.0, 1.0, 10),
        (np.nan, 1.0, 10),
        (0.0, np.inf, 10),
        (0.0, 1.0, 0),
        (0.0, 1.0, MOST_COLUMNS + 1),
    ],
)
def test_views_that_cannot_be_shown_are_refused(start: float, stop: float, columns: int) -> None:
    with pytest.raises(DataError):
        Trace(np.arange(5.0), np.zeros((5, 1))).window(start, stop, columns)


def test_a_pose_is_that_of_the_last_sample_before() -> None:
    trace = Trace(np.array([0.0, 1.0, 2.0]), np.zeros((3, 1)))
    assert [trace.row(x) for x in (-1.0, 0.0, 0.99, 1.0, 5.0)] == [0, 0, 0, 1, 2]
