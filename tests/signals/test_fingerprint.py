"""The same motion is recognised in any disguise, and another motion is not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid.errors import Mismatch
from dynid.excitation.basis import random_fourier
from dynid.signals.fingerprint import Fingerprint, fingerprint
from dynid.signals.repetition import repeated_share
from dynid.signals.settings import Motion, prepare
from tests.support.errors import expect_error

Array = NDArray[np.float64]
SIGNALS = dynid.Signals()


def run(seed: int, seconds: float = 20.0, rate: float = 500.0, joints: int = 3, start: float = 0.0) -> dynid.Run:
    """A random sum of sines; noise of the encoders differs with the seed and the start."""
    rng = np.random.default_rng(seed)
    t = start + np.arange(0.0, seconds, 1.0 / rate)
    w = 2 * np.pi * rng.uniform(0.1, 1.0, (5, joints))
    phase, size = rng.uniform(0, 2 * np.pi, (5, joints)), rng.uniform(0.1, 0.5, (5, joints))
    q = np.sum(size * np.sin(w * t[:, None, None] + phase), axis=1)
    return dynid.Run(t - start, q + 1e-4 * np.random.default_rng([seed, len(t)]).normal(size=q.shape))


def cleaned(*runs: dynid.Run) -> list[Motion]:
    return [prepare(one, SIGNALS) for one in runs]


DISGUISES: dict[str, Callable[[dynid.Run], dynid.Run]] = {
    "the same": lambda r: r,
    "shifted by one sample": lambda r: dynid.Run(r.t[1:], r.q[:-1]),
    "half a sample late": lambda r: dynid.Run(r.t[:-1], 0.5 * (r.q[1:] + r.q[:-1])),
    "a part": lambda r: r.rows(3000, 7000),
    "three seconds": lambda r: r.rows(3000, 4500),
    "every fifth row": lambda r: dynid.Run(r.t[::5], r.q[::5]),
    "resampled to 93 Hz": lambda r: dynid.Run(
        np.arange(0.0, 19.9, 1 / 93.0),
        np.column_stack([np.interp(np.arange(0.0, 19.9, 1 / 93.0), r.t, x) for x in r.q.T]),
    ),
    "rounded": lambda r: dynid.Run(r.t, np.round(r.q, 3)),
    "another clock": lambda r: dynid.Run(r.t + 1234.5, r.q),
    "with noise": lambda r: dynid.Run(r.t, r.q + 1e-3 * np.random.default_rng(9).normal(size=r.q.shape)),
}


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("joints", [1, 3])
def test_the_fitted_motion_is_recognised(disguise: str, joints: int) -> None:
    fitted = run(1, joints=joints)
    assert repeated_share(fingerprint(cleaned(fitted)), cleaned(DISGUISES[disguise](fitted))) > 0.85


@pytest.mark.parametrize("seed", range(2, 12))
@pytest.mark.parametrize("joints", [1, 2, 6])
def test_another_motion_is_unseen(seed: int, joints: int) -> None:
    assert repeated_share(fingerprint(cleaned(run(1, joints=joints))), cleaned(run(seed, joints=joints))) == 0.0


def test_designed_motions_of_one_family_are_unseen() -> None:
    """Fourier series with the same base frequency differ by their coefficients only."""
    t, reach = np.arange(0.0, 20.0, 0.01), np.ones(6)
    one, other = (dynid.Run(t, random_fourier(-reach, reach, 2 * reach, 10.0, t, seed)[0]) for seed in (0, 1))
    assert repeated_share(fingerprint(cleaned(one)), cleaned(other)) == 0.0
    assert repeated_share(fingerprint(cleaned(one)), cleaned(one)) == 1.0


def test_the_repeated_share_is_measured() -> None:
    """A third of the recording is new; the rest was fitted."""
    old, new = run(1), run(5)
    q = np.vstack([old.q[:6666], old.q[6665] + np.cumsum(np.gradient(new.q, axis=0)[:3333], axis=0)])
    mixed = dynid.Run(np.arange(len(q)) / 500.0, q)
    assert repeated_share(fingerprint(cleaned(old)), cleaned(mixed)) == pytest.approx(0.66, abs=0.12)


def test_rest_matches_nothing() -> None:
    t = np.arange(0.0, 20.0, 0.01)
    still = dynid.Run(t, np.zeros((len(t), 2)))
    assert repeated_share(fingerprint(cleaned(still)), cleaned(still)) == 0.0


def test_a_fingerprint_is_small_and_survives_as_plain_data() -> None:
    known = fingerprint(cleaned(run(1), run(2, 5.0)))
    data = known.to_dict()
    again = Fingerprint.from_dict(data)
    assert again.rate == known.rate and len(str(data)) < 12_000
    for a, b in zip(known.positions, again.positions, strict=True):
        assert np.array_equal(a, b)
    data["runs"][0]["samples"] += 1
    with pytest.raises(ValueError, match="too few"):
        Fingerprint.from_dict(data)


def test_long_recordings_are_sampled_less_often() -> None:
    known = fingerprint(cleaned(run(1, 1000.0, 50.0)))
    assert known.rate < 10 and sum(map(len, known.runs)) <= 6000
    assert repeated_share(known, cleaned(run(1, 60.0, 50.0, start=300.0))) > 0.85


def test_robots_of_different_size_are_refused() -> None:
    with expect_error(Mismatch):
        repeated_share(fingerprint(cleaned(run(1, joints=2))), cleaned(run(1, joints=3)))
