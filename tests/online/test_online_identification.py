"""OnlineIdentification against NumPy's least squares on rows that SciPy filters, and against the batch."""

from __future__ import annotations

import tracemalloc
from functools import cache

import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

import dynid
from dynid.errors import (
    ConflictingArguments,
    InvalidShape,
    InvalidValue,
    Mismatch,
    MissingArgument,
    NotApplicable,
    TooFew,
)
from dynid.identification.pipeline import identify
from dynid.online import OnlineIdentification
from dynid.online.identification import BLOCKS
from tests.support.errors import Error, expect_error
from tests.support.synthetic import EXACT, arm, base_of, record

Array = NDArray[np.float64]
RATE, CUTOFF = 200.0, 20.0


@cache
def moved(seconds: float = 20.0, seed: int = 0) -> tuple[Array, Array, Array]:
    """Times, positions and torques of two joints, with noise."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(seconds * RATE)) / RATE
    w = 2 * np.pi * rng.uniform(0.2, 1.5, (4, 2))
    phase, size = rng.uniform(0, 6, (4, 2)), rng.uniform(0.1, 0.5, (4, 2))
    angle = w[:, None] * t[:, None] + phase[:, None]
    q = np.sum(size[:, None] * np.sin(angle), axis=0)
    v = np.sum(size[:, None] * w[:, None] * np.cos(angle), axis=0)
    a = -np.sum(size[:, None] * w[:, None] ** 2 * np.sin(angle), axis=0)
    return t, q, dynid.inverse_dynamics(robot(), q, v, a) + 0.3 * rng.normal(size=q.shape)


@cache
def robot() -> dynid.Robot:
    return dynid.load_robot("twolink").with_drives("viscous+coulomb+offset", rotor_inertia=True)


def online(**settings: object) -> OnlineIdentification:
    return OnlineIdentification(robot(), rate=RATE, cutoff=CUTOFF, min_velocity=0.0, **settings)  # type: ignore[arg-type]


def oracle_rows(one: OnlineIdentification, q: Array, torque: Array, v: Array | None = None) -> tuple[Array, Array]:
    """Filtered rows W (m, channel, b) and y (m, channel) by convolution and SciPy's recursive filter."""
    filters = one.filters

    def through(x: Array, k: int) -> Array:
        return np.stack([np.convolve(column, filters.taps[k][::-1], "valid") for column in x.T], axis=1)

    states = (through(q, 0), through(q, 1), through(q, 2))
    if v is not None:
        states = (through(q, 0), through(v, 0), through(v, 1))
    Y = one.base.regressor(*states)
    y = torque[filters.lag : len(torque) - filters.lag]
    W, z = (scipy.signal.sosfilt(filters.sections, x, axis=0)[filters.step - 1 :: filters.step] for x in (Y, y))
    return W, z


def solved(W: Array, y: Array, weight: Array | float = 1.0) -> Array:
    """Least squares with the square root of the weight per row and channel."""
    root = np.sqrt(np.broadcast_to(weight, y.shape))
    return np.linalg.lstsq((W * root[:, :, None]).reshape(-1, W.shape[2]), (y * root).ravel(), rcond=None)[0]


@pytest.mark.parametrize("measured", [False, True])
def test_sample_by_sample_equals_least_squares_on_the_same_rows(measured: bool) -> None:
    t, q, torque = moved()
    v = np.gradient(q, t, axis=0) if measured else None
    one, blocks = online(measured_velocity=measured), online(measured_velocity=measured)
    for k in range(len(t)):
        one.update(t[k], q[k], torque[k], None if v is None else v[k])
    W, y = oracle_rows(one, q, torque, v)
    want = solved(W, y)
    assert one.rows == (len(y),) * 2 and one.samples == len(t)
    np.testing.assert_allclose(one.estimate("ols").beta, want, rtol=1e-9, atol=1e-9 * np.abs(want).max())
    for part in np.array_split(np.arange(len(t)), 7):
        blocks.update_block(t[part], q[part], torque[part], None if v is None else v[part])
    for a, b in zip(one.observation().factors, blocks.observation().factors, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_shared_delay_causes_no_bias() -> None:
    """Without noise the truth comes out; torques that are two samples late would change inertia and friction."""
    t, q, torque = moved()
    rng = np.random.default_rng(0)
    rng.uniform(0.2, 1.5, (4, 2)), rng.uniform(0, 6, (4, 2)), rng.uniform(0.1, 0.5, (4, 2))
    clean = torque - 0.3 * rng.normal(size=q.shape)
    good, late = online(), online()
    good.update_block(t, q, clean)
    late.update_block(t[2:], q[2:], clean[:-2])
    truth = good.base.values()
    size = np.abs(truth).max()
    assert np.abs(good.estimate("ols").beta - truth).max() < 0.005 * size
    assert np.abs(late.estimate("ols").beta - truth).max() > 0.02 * size


def test_forgetting_weights_old_rows_less() -> None:
    """exp(-age / time constant), against weighted least squares; the number of rows is the sum of weights."""
    t, q, torque = moved()
    one = online(forgetting=3.0)
    one.update_block(t, q, torque)
    W, y = oracle_rows(one, q, torque)
    age = np.arange(len(y))[::-1, None] / one.filters.row_rate
    weight = np.exp(-age / 3.0)
    np.testing.assert_allclose(one.estimate("ols").beta, solved(W, y, weight), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(one.rows, weight.sum(), rtol=1e-9)


def test_a_window_keeps_the_last_seconds() -> None:
    t, q, torque = moved()
    one = online(window=8.0)
    one.update_block(t, q, torque)
    W, y = oracle_rows(one, q, torque)
    block = round(8.0 / BLOCKS * one.filters.row_rate)
    kept = (BLOCKS - 1) * block + len(y) % block
    assert one.rows == (kept, kept)
    np.testing.assert_allclose(one.estimate("ols").beta, solved(W[-kept:], y[-kept:]), rtol=1e-8, atol=1e-10)


def test_filters_begin_anew_after_gaps_and_bad_samples() -> None:
    """No row mixes samples across a gap: rows are those of the pieces."""
    t, q, torque = moved()
    one, first, second = online(), online(), online()
    broken = torque.copy()
    broken[2500, 1] = np.nan
    late = np.where(np.arange(len(t)) < 1200, t, t + 0.5)
    for k in range(len(t)):
        one.update(late[k], q[k], broken[k])
        if k % 1000 == 0:
            one.update(late[k], q[k], broken[k])
    assert one.left_out == {"repeated": 4, "unusable": 1, "gaps": 1}
    counts = [
        len(oracle_rows(first, q[part], torque[part])[1])
        for part in (slice(0, 1200), slice(1200, 2500), slice(2501, None))
    ]
    assert one.rows == (sum(counts),) * 2
    second.update_block(late, q, broken)
    for a, b in zip(one.observation().factors, second.observation().factors, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_joint_at_rest_keeps_its_a_priori_values() -> None:
    t, q, torque = moved()
    still = q.copy()
    still[:, 1] = 0.3
    one = OnlineIdentification(robot(), rate=RATE, cutoff=CUTOFF)
    one.update_block(t, still, torque)
    assert one.rows[1] == 0
    estimate = one.estimate()
    names = list(one.base.names)
    drive = names.index("fc_joint2")
    assert np.isinf(estimate.std[drive]) and estimate.beta[drive] == pytest.approx(one.base.values()[drive], abs=1e-6)
    assert np.isfinite(estimate.std[names.index("fc_joint1")])


@pytest.mark.parametrize("correlation", [0.0, 0.98])
def test_standard_deviations_hold_with_autocorrelated_noise(correlation: float) -> None:
    """Errors over many seeds in units of the standard deviation that each estimate gives."""
    t, q, _ = moved()
    states = q, np.gradient(q, t, axis=0), np.gradient(np.gradient(q, t, axis=0), t, axis=0)
    clean = dynid.inverse_dynamics(robot(), *states)
    base = base_of(robot())
    rng = np.random.default_rng(1)
    scores = []
    reference = OnlineIdentification(robot(), rate=RATE, cutoff=CUTOFF, min_velocity=0.0, base=base)
    reference.update_block(t, q, clean)
    truth = reference.estimate("wls").beta
    for _ in range(15):
        white = rng.normal(size=q.shape)
        noise = scipy.signal.lfilter([np.sqrt(1 - correlation**2)], [1.0, -correlation], white, axis=0)
        one = OnlineIdentification(robot(), rate=RATE, cutoff=CUTOFF, min_velocity=0.0, base=base)
        one.update_block(t, q, clean + noise)
        estimate = one.estimate()
        assert estimate.noise_model == "autocorrelated"
        scores.append((estimate.beta - truth) / estimate.std)
    assert 0.6 < np.sqrt(np.mean(np.square(scores))) < 1.5


def test_whole_recordings_equal_all_at_once() -> None:
    """Recordings added one by one give the estimate of all of them; forgetting prefers the new."""
    small = arm()
    recordings = [record(small, (seed,), noise=0.1) for seed in range(3)]
    one = OnlineIdentification(small)
    with expect_error(TooFew):
        one.estimate()
    for each in recordings:
        one.add(each, signals=EXACT)
    at_once = identify(small, recordings[0] + recordings[1] + recordings[2], "wls", signals=EXACT)
    estimate = one.estimate("wls")
    np.testing.assert_allclose(estimate.beta, at_once.beta, rtol=1e-8)
    np.testing.assert_allclose(estimate.std, at_once.std, rtol=0.6)
    assert estimate.rows == at_once.rows and one.seconds == pytest.approx(29.97)
    with expect_error(NotApplicable, "method"):
        one.estimate("irls")
    forgetful = OnlineIdentification(small, forgetting=0.5)
    forgetful.add(record(small, (0,)), signals=EXACT)
    forgetful.add(record(small.with_parameters(small.parameters * 1.5), (1,)), signals=EXACT)
    np.testing.assert_allclose(forgetful.estimate("ols").beta, 1.5 * base_of(small).values(), atol=1e-3)
    with expect_error(MissingArgument, "rate"):
        one.update(0.0, [0.0] * 3, [0.0] * 3)


def test_the_feasible_estimate_is_kept_for_a_while() -> None:
    t, q, torque = moved()
    one = online(feasible_every=5.0)
    one.update_block(t[:3000], q[:3000], torque[:3000])
    first = one.feasible()
    assert first.method == "feasible" and bool(first.feasibility())
    one.update_block(t[3000:3400], q[3000:3400], torque[3000:3400])
    assert one.feasible() is first
    assert one.feasible(max_age=0.0) is not first


def test_an_update_keeps_no_memory() -> None:
    """Objects of Python's call are gone after it; after thousands of samples nothing is left."""
    t, q, torque = moved()
    one = online()
    rows = [(float(t[k]), q[k], torque[k]) for k in range(len(t))]
    for row in rows[:1000]:
        one.update(*row)
    passing = np.zeros(len(rows) - 1100)
    tracemalloc.start()
    try:
        for row in rows[1000:1100]:
            one.update(*row)
        before = tracemalloc.get_traced_memory()[0]
        for k, row in enumerate(rows[1100:]):
            tracemalloc.reset_peak()
            start = tracemalloc.get_traced_memory()[0]
            one.update(*row)
            passing[k] = tracemalloc.get_traced_memory()[1] - start
        now = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert now - before < 1024 and np.median(passing) < 4096 and max(passing) < 8192


def test_the_compiled_part_creates_no_array() -> None:
    """One record per array at the border of Python, as many for 256 samples as for one: none inside."""
    from numba.core.runtime import _nrt_python, rtsys

    t, q, torque = moved()
    one = online()
    one.update_block(t[:500], q[:500], torque[:500])
    rows = one._rows
    assert rows is not None
    _nrt_python.memsys_enable_stats()
    try:
        counts = []
        for size in (1, 200):
            part = [np.ascontiguousarray(x[500 : 500 + size]) for x in (q, q, torque)]
            before = rtsys.get_allocation_stats()
            one._factors.fold(rows, rows._filter(*part, False))
            after = rtsys.get_allocation_stats()
            assert after.alloc - before.alloc == after.free - before.free
            counts.append(after.alloc - before.alloc)
    finally:
        _nrt_python.memsys_disable_stats()
    assert counts[0] == counts[1]


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"forgetting": 1.0, "window": 2.0}, (ConflictingArguments, "forgetting")),
        ({"forgetting": -1.0}, (InvalidValue, "")),
        ({"window": 0.0}, (InvalidValue, "")),
        ({"feasible_every": 0.0}, (InvalidValue, "feasible_every")),
    ],
)
def test_settings_that_cannot_be_used_are_refused(settings: dict[str, float], error: Error) -> None:
    with expect_error(*error):
        online(**settings)


def test_samples_that_do_not_fit_are_refused() -> None:
    one = online()
    with expect_error(InvalidShape):
        one.update(0.0, [0.0], [0.0, 0.0])
    with expect_error(ConflictingArguments, "measured_velocity"):
        one.update(0.0, [0.0, 0.0], [0.0, 0.0], [0.0, 0.0])
    t, q, torque = moved()
    with expect_error(Mismatch, "rate"):
        one.update_block(t * 1.05, q, torque)
    with expect_error(NotApplicable):
        OnlineIdentification(robot().with_base("floating"), rate=100.0)
