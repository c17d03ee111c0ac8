"""The number of independent rows of an autocorrelated residual."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.signals.autocorrelation import independent_rows


def first_order(rho: float, seed: int, size: int = 4000) -> np.ndarray:
    white = np.random.default_rng(seed).normal(size=size)
    out = np.zeros(size)
    for k in range(1, size):
        out[k] = rho * out[k - 1] + white[k]
    return out


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_a_first_order_process_has_its_known_share(rho: float) -> None:
    """(1 - rho) / (1 + rho) of the rows; the estimate of one series is right within a factor of 1.6."""
    expected = 4000 * (1 - rho) / (1 + rho)
    assert expected / 1.6 < independent_rows(first_order(rho, 1)) <= min(4000.0, 1.6 * expected)


def test_gaps_between_rows_are_no_steps_in_time() -> None:
    """Half of the samples of a process are left out, 500 at a time; the share of independent ones stays."""
    whole = first_order(0.9, 2, 40000)
    kept = np.flatnonzero(np.arange(40000) % 1000 < 500)
    share = independent_rows(whole[kept], kept) / len(kept)
    assert share == pytest.approx(1 / 19, rel=0.4)
    # Two runs: the end of the first and the start of the second are not neighbours.
    twice = np.concatenate([whole[:2000], whole[:2000]])
    index = np.concatenate([np.arange(2000), np.arange(2000)])
    assert independent_rows(twice, index) == pytest.approx(2 * independent_rows(whole[:2000]), rel=0.3)


def test_short_and_zero_residuals_count_every_row() -> None:
    assert independent_rows(np.zeros(100)) == 100.0
    assert independent_rows(np.ones(5)) == 5.0
