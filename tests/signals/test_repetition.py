"""Motions that are read in chunks and kept in part: their own parts are recognised, or are said to be unknown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid.signals.fingerprint import (
    SEGMENT,
    STRETCH,
    Fingerprint,
    MotionSampler,
    fingerprint,
    sampling_rate,
    stretches,
)
from dynid.signals.repetition import Repetition, SeenMotion, repeated_share
from dynid.signals.settings import Motion, prepare

Array = NDArray[np.float64]
SIGNALS = dynid.Signals()


def long_run(seed: int, seconds: float = 600.0, rate: float = 100.0, joints: int = 3) -> dynid.Run:
    """Sums of many sines, which do not repeat."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, seconds, 1.0 / rate)
    w = 2 * np.pi * rng.uniform(0.05, 0.6, (12, joints))
    phase, size = rng.uniform(0, 2 * np.pi, (12, joints)), rng.uniform(0.1, 0.3, (12, joints))
    q = np.zeros((len(t), joints))
    for k in range(12):
        q += size[k] * np.sin(w[k] * t[:, None] + phase[k])
    return dynid.Run(t, q)


def cleaned(run: dynid.Run, chunk: int | None = None) -> list[Motion]:
    step = chunk or len(run)
    return [prepare(run.rows(a, min(a + step, len(run))), SIGNALS) for a in range(0, len(run), step)]


def sampled(motions: list[Motion], rate: float) -> list[Array]:
    sampler = MotionSampler(rate)
    for motion in motions:
        sampler.add(motion)
    return sampler.runs


def partial(run: dynid.Run, most: int) -> Fingerprint:
    """The fingerprint that keeps about this many samples."""
    rate = sampling_rate(run.t[-1])
    runs = sampled(cleaned(run, 6000), rate)
    kept, between = stretches(runs, most)
    return Fingerprint.of_positions(rate, kept, sum(map(len, kept)) / sum(map(len, runs)), between / rate)


def test_chunks_give_the_positions_of_the_whole() -> None:
    """Also where ends are trimmed between two chunks; the low-pass of a chunk knows nothing of the next."""
    run = long_run(1)
    rate = sampling_rate(run.t[-1])
    (whole,) = sampled(cleaned(run), rate)
    (parts,) = sampled(cleaned(run, 6000), rate)
    assert abs(len(whole) - len(parts)) <= 1
    count = min(len(whole), len(parts))
    error = (whole[:count] - parts[:count]) / np.std(whole, axis=0)
    # Segments match below five percent; the rms within any segment stays well below.
    worst = max(np.sqrt(np.mean(error[k : k + SEGMENT] ** 2)) for k in range(0, count - SEGMENT, 5))
    assert worst < 0.025


def test_a_clock_that_jumps_begins_a_run() -> None:
    first, second = long_run(1, 60.0), long_run(2, 60.0)
    later = replace(second, t=second.t + first.t[-1] + 5.0)
    assert len(sampled([*cleaned(first), *cleaned(later)], 25.0)) == 2
    assert len(sampled([*cleaned(first), *cleaned(second)], 25.0)) == 2  # its clock begins again


def test_stretches_are_bounded_and_evenly_spaced() -> None:
    runs = [np.arange(10_000.0)[:, None], np.arange(3000.0)[:, None]]
    kept, between = stretches(runs, 20_000)
    assert between == 0 and [len(run) for run in kept] == [10_000, 3000]
    kept, between = stretches(runs, 2500)
    assert sum(map(len, kept)) <= 2500 + 2 * STRETCH and all(len(run) == STRETCH for run in kept)
    assert between == kept[1][0, 0] - kept[0][-1, 0] - 1 == 1300 - STRETCH


@pytest.mark.parametrize("start", [0, 7_000, 21_000])
@pytest.mark.parametrize("disguise", ["cut", "slower", "noise"])
def test_a_part_of_what_is_kept_in_part_is_recognised(start: int, disguise: str) -> None:
    run = long_run(1, 900.0)
    known = partial(run, 3000)
    assert known.share < 0.7 and known.gap > 5.0
    part = run.rows(start, start + 25_000)
    part = replace(part, t=part.t - part.t[0])
    if disguise == "slower":
        part = dynid.Run(part.t[::3], part.q[::3])
    elif disguise == "noise":
        part = replace(part, q=part.q + 1e-3 * np.random.default_rng(0).normal(size=part.q.shape))
    assert repeated_share(known, cleaned(part)) > 0.7
    assert repeated_share(known, cleaned(long_run(9, 250.0))) == 0.0


def test_a_run_that_may_lie_in_a_gap_is_unknown() -> None:
    run = long_run(1, 900.0)
    known = partial(run, 1000)
    assert known.gap > 80.0
    hidden = run.rows(5500, 8500)  # within a gap
    assert np.isnan(repeated_share(known, cleaned(hidden)))
    assert np.isnan(repeated_share(known, cleaned(long_run(9, 40.0))))
    assert repeated_share(known, cleaned(long_run(9, 400.0))) == 0.0


def test_repetitions_add_up() -> None:
    known = fingerprint(cleaned(long_run(1, 100.0)))
    seen = SeenMotion(known)
    old, new = (seen.compare(fingerprint(cleaned(long_run(s, 100.0)), known.rate).positions) for s in (1, 2))
    assert old.repeated == old.moving > 0 and new.repeated == 0
    assert seen.share(old + new) == pytest.approx(0.5, abs=0.05)
    assert seen.share(Repetition()) == 0.0


def test_the_first_comparison_loses_no_match(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same segments repeat with and without it."""
    run = long_run(1, 120.0)
    known = fingerprint(cleaned(run))
    other = fingerprint(cleaned(run.rows(3333, 9999)), known.rate).positions
    found = SeenMotion(known).compare(other)
    monkeypatch.setattr(
        SeenMotion, "_near", lambda self, segments, *_: np.ones((len(segments), len(self.fitted.runs)), dtype=bool)
    )
    assert found == SeenMotion(known).compare(other)
    assert found.repeated > 0.8 * found.moving


def test_what_is_kept_survives_as_plain_data() -> None:
    known = partial(long_run(1, 900.0), 1000)
    data = known.to_dict()
    again = Fingerprint.from_dict(data)
    assert (again.share, again.gap) == (known.share, known.gap)
    for wrong in ({"share": 0.0}, {"share": 2.0}, {"gap": -1.0}, {"gap": float("inf")}):
        with pytest.raises(ValueError, match="share of the motion"):
            Fingerprint.from_dict(data | wrong)
