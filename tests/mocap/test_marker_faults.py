"""Gaps, exchanged names and spikes are found where they were put, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.mocap import Capture
from tests.support.capture_files import puppet, puppet_markers, puppet_motion, seen_markers, smooth


def _trial(seed: int, each: int = 4, noise: float = 1e-3) -> Capture:
    rng = np.random.default_rng(seed)
    robot = puppet()
    capture = seen_markers(robot, puppet_motion(rng, robot, 800), puppet_markers(rng, each))
    return replace(capture, positions=capture.positions + noise * rng.normal(size=capture.positions.shape))


@pytest.mark.parametrize("seed", range(4))
def test_a_clean_trial_has_no_faults(seed: int) -> None:
    """A millimetre of noise on a body that turns and swings is no fault."""
    trial = _trial(seed)
    assert trial.gaps() == trial.swaps() == trial.spikes() == trial.findings() == ()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("each", [1, 4])
def test_exchanged_names_are_found_and_put_right(seed: int, each: int) -> None:
    """By leaps alone where a segment has one marker, by distances too where it has four."""
    trial = _trial(seed, each)
    i, j = 0, len(trial.markers) // 2
    x = trial.positions.copy()
    x[300:420, [i, j]] = x[300:420, [j, i]]
    broken = replace(trial, positions=x)
    (swap,) = broken.swaps()
    assert {swap.first, swap.second} == {trial.markers[i], trial.markers[j]}
    assert (swap.start, swap.stop) == (300, 420)
    np.testing.assert_array_equal(broken.unswapped().positions, trial.positions)
    worst = broken.findings()[0]
    assert worst.severity == "error" and "frames 300 to 419" in worst.what and "unswapped" in worst.what_to_do


def test_an_exchange_that_happens_in_a_gap_is_found() -> None:
    """No leap can be seen then; the distances to the rest of the segments tell."""
    trial = _trial(5)
    x = trial.positions.copy()
    x[500:560, [2, 13]] = np.nan
    x[560:, [2, 13]] = x[560:, [13, 2]]
    x[560:570, 2] = np.nan
    broken = replace(trial, positions=x)
    (swap,) = broken.swaps()
    assert (swap.first, swap.second, swap.start, swap.stop) == (trial.markers[2], trial.markers[13], 560, 800)
    gaps = [(g.marker, g.start, g.stop, g.frames) for g in broken.gaps()]
    assert gaps == [(trial.markers[2], 500, 570, 70), (trial.markers[13], 500, 560, 60)]


def test_spikes_of_one_to_three_frames_are_found() -> None:
    """With their size; a fast swing of the whole body is none."""
    trial = _trial(6)
    x = trial.positions.copy()
    for length, marker in ((1, 3), (2, 8), (3, 17)):
        x[100 * length : 100 * length + length, marker] += [0.0, 0.06, 0.0]
    found = replace(trial, positions=x).spikes()
    assert [(s.marker, s.start, s.stop) for s in found] == [
        (trial.markers[3], 100, 101),
        (trial.markers[8], 200, 202),
        (trial.markers[17], 300, 303),
    ]
    assert all(0.05 < s.size < 0.07 for s in found)


def test_a_marker_that_is_never_seen_is_said_to_be() -> None:
    """And one that is away most of the time is worth a warning."""
    x = 0.1 * smooth(np.random.default_rng(0), 50, 6, 1.0).reshape(50, 2, 3)
    x[:, 0] = np.nan
    x[:30, 1] = np.nan
    capture = Capture("x", 100.0, ("A", "B"), x)
    never, mostly = capture.findings()
    assert never.what == "the marker is never seen" and never.severity == "warning"
    assert mostly.joint == "B" and mostly.how_much.startswith("30 of 50 frames, the longest gap 30 frames (0.30 s)")
