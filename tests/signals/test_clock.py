"""The clock of a source behind its time stamps, and which of the two is the better one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dynid import Run, Signals
from dynid.signals.clock import fit_clock
from dynid.signals.settings import prepare, uniform

Array = NDArray[np.float64]
STEP = 0.004
T = STEP * np.arange(5000)


def motion(t: Array) -> Array:
    """Two joints on encoders of 17 bits."""
    q = np.column_stack([np.sin(2 * t) + 0.2 * np.sin(9 * t), 0.7 * np.cos(3 * t)])
    count = 2 * np.pi / 2**17
    return np.asarray(count * np.round(q / count))


def run_of(stamps: Array, sampled: Array) -> Run:
    """Rows with these stamps, sampled at other times."""
    return Run(stamps, motion(sampled), torque=np.column_stack([np.sin(5 * sampled), np.cos(4 * sampled)]))


def accuracy(run: Run, offset: float = 0.0) -> float:
    """Root mean square error of the accelerations of the first joint after filtering."""
    done = prepare(run, Signals(cutoff=20.0, trim=0.5))
    true = -4 * np.sin(2 * (done.t - offset)) - 0.2 * 81 * np.sin(9 * (done.t - offset))
    return float(np.sqrt(np.mean((done.a[:, 0] - true) ** 2)))


def test_an_even_clock_is_left_alone() -> None:
    clock = fit_clock(run_of(T, T))
    assert not clock.uneven and not clock.recovered and clock.repeated == clock.lost == clock.late == 0


@pytest.mark.parametrize("seed", range(5))
def test_jittered_stamps_over_an_even_source(seed: int) -> None:
    """Stamps with noise of a fifth of a step: the even clock is found, and accelerations are as without noise."""
    rng = np.random.default_rng(seed)
    stamps = np.maximum.accumulate(T + 0.2 * STEP * rng.normal(size=T.size)) + 1e-9 * np.arange(T.size)
    run = run_of(stamps, T)
    clock = fit_clock(run)
    assert clock.recovered and abs(clock.share) < 0.1 and clock.lost == 0
    assert clock.noise == pytest.approx(0.2 * STEP, rel=0.1)
    assert accuracy(run) < 1.1 * accuracy(run_of(T, T))


@pytest.mark.parametrize("seed", range(5))
def test_uneven_sampling_with_right_stamps(seed: int) -> None:
    """The positions were taken at the times of the stamps: the stamps are used."""
    stamps = T + 0.2 * STEP * np.random.default_rng(seed).uniform(-1, 1, T.size)
    clock = fit_clock(run_of(stamps, stamps))
    assert clock.uneven and not clock.recovered and clock.share == pytest.approx(1.0, abs=0.1)
    np.testing.assert_array_equal(clock.times, stamps)


@pytest.mark.parametrize("seed", range(10))
def test_lost_samples_and_late_stamps_are_told_apart(seed: int) -> None:
    """One percent lost, some in bursts, two percent late by up to 0.9 steps: every number that is kept is right."""
    rng = np.random.default_rng(seed)
    keep = rng.random(T.size) > 0.01
    keep[:5] = True
    for k in rng.integers(100, T.size - 100, 5):
        keep[k : k + rng.integers(2, 8)] = False
    late = (rng.random(T.size) < 0.02) * rng.uniform(0.3, 0.9, T.size)
    stamps = (T + STEP * (late + 0.05 * np.abs(rng.normal(size=T.size))))[keep]
    stamps = np.maximum.accumulate(stamps) + 1e-9 * np.arange(stamps.size)
    run = run_of(stamps, T[keep])
    clock = fit_clock(run)
    true = np.flatnonzero(keep)
    assert clock.recovered
    assert clock.lost == true[-1] + 1 - true.size
    np.testing.assert_array_equal(clock.number, true[clock.rows])
    assert clock.rows.size > 0.99 * true.size
    assert abs(clock.late - np.count_nonzero(late[keep] > 0.5)) < 0.3 * np.count_nonzero(late[keep] > 0.5) + 5


@pytest.mark.parametrize("seed", range(3))
def test_a_reader_faster_than_its_source(seed: int) -> None:
    """Four readings per sample, not synchronous: repeated rows are dropped and the clock of the source is found."""
    offset = np.random.default_rng(seed).uniform(0, STEP / 4)
    read = np.arange(0.0, T[-1] - STEP, STEP / 4) * 1.0003 + offset
    read = read[read < T[-1]]
    sampled = STEP * np.floor(read / STEP)
    run = run_of(read, sampled)
    clock = fit_clock(run)
    assert clock.repeated == pytest.approx(0.75 * read.size, rel=0.01) and clock.recovered
    done = prepare(run, Signals(cutoff=20.0, trim=0.5))
    assert done.rate == pytest.approx(1 / STEP, rel=1e-4)
    assert accuracy(run, offset=STEP / 8) < 1.5 * accuracy(run_of(T, T))


def test_rows_of_a_robot_at_rest_are_not_dropped() -> None:
    """Half of the run at rest: its rows repeat, but not because the log is faster than its source."""
    q = motion(T)
    q[2000:4000] = q[2000]
    assert fit_clock(Run(T, q)).repeated == 0


def test_the_given_stamps_are_kept_on_request() -> None:
    """Without resampling, rows and stamps stay as they are."""
    run = run_of(np.repeat(T, 2) + np.tile([0.0, 0.5 * STEP], T.size), np.repeat(T, 2))
    assert len(prepare(run, Signals(cutoff=None, resample=None, trim=0.0)).t) == 2 * T.size
    assert len(prepare(run, Signals(cutoff=None, trim=0.0)).t) == T.size


def test_commands_survive_an_uneven_clock_as_steps() -> None:
    t = np.cumsum(np.random.default_rng(0).uniform(0.01, 0.03, 400))
    command = np.where(np.sin(t) > 0, 1.0, -1.0)[:, None]
    run, rate = uniform(Run(t, np.sin(t)[:, None], reference=command), Signals())
    assert run.reference is not None and run.reference.shape == run.q.shape
    assert set(np.unique(run.reference)) == {-1.0, 1.0}
    assert np.mean(run.reference[:, 0] == np.where(np.sin(run.t) > 0, 1.0, -1.0)) > 0.98
    assert rate == pytest.approx(50.0, rel=0.2)
