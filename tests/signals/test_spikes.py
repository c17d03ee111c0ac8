"""Spikes of the torque: what is one, what is none, and what takes its place."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid.signals.settings import prepare
from dynid.signals.spikes import dropout_note, spikes_of, without_dropouts
from tests.support.check_data import recorded, spoiled

Array = NDArray[np.float64]


def torque(rate: float = 200.0, noise: float = 0.05, seed: int = 0) -> Array:
    """Torques of two joints for 20 s: a smooth load with steps of friction, and a slow load."""
    t = np.arange(0.0, 20.0, 1.0 / rate)
    x = np.column_stack([3.0 * np.sin(2.0 * t) + 2.0 * np.sign(np.cos(3.0 * t)), 10.0 + np.sin(0.7 * t)])
    return x + noise * np.random.default_rng(seed).standard_normal(x.shape)


@pytest.mark.parametrize("rate", [20.0, 200.0, 1000.0])
@pytest.mark.parametrize("noise", [0.0, 0.05, 0.5])
def test_friction_and_noise_are_no_spikes(rate: float, noise: float) -> None:
    assert not spikes_of(torque(rate, noise)).any()


def test_noise_of_a_wide_distribution_is_no_spike() -> None:
    """Where large errors are usual, none of them is a spike."""
    x = np.random.default_rng(0).laplace(size=(5000, 1))
    assert spikes_of(x).mean() < 2e-4


@pytest.mark.parametrize("width", [1, 2])
def test_dropouts_are_replaced_by_their_neighbours_and_other_spikes_are_not(width: int) -> None:
    clean = torque()
    dirty = clean.copy()
    rows = np.arange(100, 3900, 97)
    for k in range(width):
        dirty[rows + k, 0] = 60.0
        dirty[rows[::2] + k, 1] = 0.0
    found = spikes_of(dirty)
    assert set(np.flatnonzero(found[:, 1])) == {r + k for r in rows[::2] for k in range(width)}
    assert found[:, 0].sum() == width * len(rows)
    repaired, count = without_dropouts(dirty)
    assert list(count) == [0, width * len(rows[::2])]
    # The noise is 0.05, and the load moves by 0.004 per sample.
    assert np.abs(repaired - clean)[found[:, 1], 1].max() < 0.3
    assert np.array_equal(repaired[~found[:, 1]], dirty[~found[:, 1]])
    assert without_dropouts(clean)[0] is clean


def test_ends_of_a_run() -> None:
    x = torque()
    x[0], x[-1] = 50.0, -50.0
    found = spikes_of(x)
    assert found[0].all() and found[-1].all() and found.sum() == 4


def test_coarse_torques_and_short_runs_have_none() -> None:
    """A channel that flickers between two of its few values, and a run that is too short to know its noise."""
    x = torque()
    flickers = np.round(x / 4.0) * 4.0
    flickers[::50] += 4.0
    assert not spikes_of(flickers).any()
    x[10] = 1e3
    assert not spikes_of(x[:40]).any()


def test_huge_numbers_do_no_harm() -> None:
    x = torque()
    x[::2] = 1.7e308
    x[1::2] = -1.7e308
    assert spikes_of(x).shape == x.shape


def test_identification_is_not_misled_by_dropouts_and_says_what_it_replaced() -> None:
    """A hundredth of the torques is zero: parameters stay where they are, and the estimate has a note."""
    robot = dynid.load_robot("twolink", friction="viscous+coulomb")
    recording = recorded(robot)

    def with_dropouts(torque: Array) -> Array:
        torque[np.random.default_rng(1).random(torque.shape) < 0.01] = 0.0
        return torque

    bad = spoiled(recording, torque=with_dropouts)
    before = dynid.identify(robot, recording, "wls")
    after = dynid.identify(robot, bad, "wls")
    kept = dynid.identify(robot, bad, "wls", signals=dynid.Signals(dropouts=False))
    assert np.abs(after.beta - before.beta).max() < 0.2 * np.abs(kept.beta - before.beta).max()
    assert any("drops to zero" in note for note in after.notes)
    assert not any("drops to zero" in note for note in (*before.notes, *kept.notes))
    counts = prepare(bad.runs[0], dynid.Signals()).dropouts
    assert counts is not None and counts.sum() > 0
    assert prepare(bad.runs[0], dynid.Signals(dropouts=False)).dropouts is None


def test_note() -> None:
    words = "samples at which the torque drops to zero were replaced: b (3), c (1)"
    assert dropout_note({"a": 0, "b": 3, "c": 1}) == (words,)
    assert dropout_note({"a": 0}) == ()
