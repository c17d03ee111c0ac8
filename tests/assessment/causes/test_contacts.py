"""Moments at which something touches the robot, and what must not be taken for them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy

from dynid.assessment.causes.cause_rows import CauseRows, cause_rows
from dynid.assessment.causes.kinds.contacts import find_contacts
from dynid.identification.observing import observe
from tests.assessment.causes.test_causes import SIGNALS, causes, only
from tests.support.synthetic import arm, record

Array = np.ndarray
SAMPLES, RATE = 4000, 400.0  # of each of the two runs of test_causes


def bump(at: float, width: float, size: float) -> Array:
    """A push of half a parabola (SAMPLES,)."""
    t = np.arange(SAMPLES) / RATE
    return size * np.clip(1.0 - ((t - at) / width) ** 2, 0.0, None)


def test_bumps_are_named_with_their_times() -> None:
    push = bump(3.2, 0.15, 6.0) + bump(7.9, 0.1, -4.0)
    cause = causes(lambda q, v, torque, run: (q, torque + (run == 0) * only(1, push))).causes[0]
    assert (cause.code, cause.joints, cause.unit) == ("contact", ("joint2",), "N m")
    assert cause.size == pytest.approx(6.0, rel=0.25)
    times = [float(x) for x in cause.words.split("t = ")[1].split(" s,")[0].split(",")]
    assert times == pytest.approx([3.2, 7.9], abs=0.5) and "run" not in cause.words


def test_bumps_of_several_runs_are_told_with_their_run() -> None:
    push = bump(3.2, 0.15, 6.0)
    words = causes(lambda q, v, torque, run: (q, torque + only(1, push))).causes[0].words
    assert "t = 3.0 s of 'run0' and 3.0 s of 'run1'" in words


@pytest.mark.parametrize("size", [20.0, 3.0])
def test_other_causes_are_found_beside_a_bump(size: float) -> None:
    """Without its rows the ripple has its size."""
    push = bump(3.2, 0.15, size)
    found = causes(lambda q, v, t, run: (q, t + (run == 0) * only(0, push) + only(1, 0.5 * np.sin(17 * q[:, 1]))))
    assert [c.code for c in found.causes] == ["contact", "ripple"]
    assert found.causes[1].size == pytest.approx(0.5, rel=0.1)


def test_no_joint_loses_most_of_its_rows() -> None:
    """Zeros beside moments are no background that a residual stands out from."""
    rows, residual = of_noise(lambda rng, n: np.zeros(n), 0)
    residual[1][:5] = 1.0
    found = find_contacts(rows, residual)
    assert found is None or max(np.mean(found.near[i]) for i in rows.index) < 0.5


def of_noise(make: Callable[[np.random.Generator, int], Array], seed: int) -> tuple[CauseRows, list[Array]]:
    recording = record(arm(), (0, 1), samples=SAMPLES)
    rows = cause_rows([observe(arm(), recording, signals=SIGNALS)])
    rng = np.random.default_rng(seed)
    count = sum(len(m.t) for m in rows.motions)
    return rows, [make(rng, count)[i] for i in rows.index]


NOISES: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "white": lambda rng, n: rng.standard_normal(n),
    "heavy tails": lambda rng, n: rng.standard_t(3, n),
    "slow": lambda rng, n: np.asarray(scipy.signal.lfilter([1.0], [1.0, -0.985], rng.standard_normal(n))),  # 1 Hz
    "peaks of each period": lambda rng, n: np.sin(2 * np.pi * np.arange(n) / RATE / 5.0) ** 9,
}


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("seed", range(3))
def test_noise_is_no_contact(noise: str, seed: int) -> None:
    assert find_contacts(*of_noise(NOISES[noise], seed)) is None


def test_a_short_recording_has_no_moments() -> None:
    rows, residual = of_noise(NOISES["white"], 0)
    later = np.arange(sum(len(m.t) for m in rows.motions)) >= 3 * RATE
    cut = [r[~later[i]] for r, i in zip(residual, rows.index, strict=True)]
    for part in cut:
        part[:3] = 100.0
    assert find_contacts(rows.without(later), cut) is None
