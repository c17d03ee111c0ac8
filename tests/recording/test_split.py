"""Parts of a recording: by rows, and split into what is identified from and what is held out."""

from __future__ import annotations

import numpy as np
import pytest

from dynid import Recording, Run
from dynid.errors import InvalidValue, TooFew
from tests.support.errors import expect_error
from tests.support.log_files import motion

LONG, SHORT = motion(samples=100), motion(samples=40)
NAMES = ("a", "b", "c")


def recording() -> Recording:
    return Recording(NAMES, (LONG, SHORT))


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 0.9])
def test_the_last_share_of_every_run_is_held_out(share: float) -> None:
    """Every sample is in one of the two parts, none in both, and the order stays."""
    fit, held_out = recording().split(share)
    for run, before, after in zip((LONG, SHORT), fit.runs, held_out.runs, strict=True):
        assert len(after) == round(share * len(run))
        for signal in ("t", "q", "v", "torque"):
            joined = np.concatenate([getattr(before, signal), getattr(after, signal)])
            assert np.array_equal(joined, getattr(run, signal))
    assert fit.joints == held_out.joints == NAMES


def test_a_quarter_is_held_out_by_default() -> None:
    assert [part.samples for part in recording().split()] == [105, 35]


def test_given_rows_are_held_out_and_both_sides_are_kept_apart() -> None:
    fit, held_out = recording().split(rows=(30, 60))
    assert [len(run) for run in held_out.runs] == [30, 10]
    assert [len(run) for run in fit.runs] == [30, 40, 30]
    assert [run.name for run in fit.runs] == ["run#1", "run#2", "run"]
    assert np.array_equal(fit.runs[1].q, LONG.q[60:]) and np.array_equal(held_out.runs[1].q, SHORT.q[30:])
    fit, held_out = recording().split(rows=(-10, None))
    assert [len(run) for run in held_out.runs] == [10, 10] and fit.samples == 120


def test_rows_of_every_run() -> None:
    part = recording().rows(50, 80)
    assert len(part.runs) == 1 and np.array_equal(part.runs[0].torque, LONG.torque[50:80])
    assert recording().rows(stop=-5).samples == 130 and recording().rows().samples == 140
    with expect_error(TooFew):
        recording().rows(99)


def test_splits_that_leave_nothing_are_refused() -> None:
    for share in (0.0, 1.0, -0.5, float("nan")):
        with expect_error(InvalidValue, "share"):
            recording().split(share)
    with expect_error(TooFew):
        recording().split(rows=(200, 300))
    with expect_error(TooFew):
        recording().split(rows=(None, None))
    tiny = Recording(("a",), (Run(np.arange(3.0), np.ones((3, 1))),))
    with expect_error(TooFew):
        tiny.split()
