"""Faults of the clock, each planted and found."""

from __future__ import annotations

import numpy as np

import dynid
from dynid import Recording
from tests.support.check_data import number, only, recorded, serious, spoiled
from tests.support.synthetic import arm

ROBOT = arm()
SOUND = recorded(ROBOT)


def kept(rows: np.ndarray) -> Recording:
    """The sound recording with only some of its rows."""
    run = SOUND.runs[0]
    return spoiled(SOUND, t=run.t[rows], q=run.q[rows], v=run.v[rows], torque=run.torque[rows])


def test_lost_samples_are_counted() -> None:
    """Seven samples in two gaps, the longer of 25 ms + 5 ms."""
    finding = only(
        dynid.check(ROBOT, kept(np.delete(np.arange(4000), [500, 501, *range(900, 905)]))),
        "",
        "samples_missing",
        "warning",
    )
    assert number(finding) == 7 and "2 gaps" in finding.how_much and "0.03 seconds" in finding.how_much


def test_late_stamps_are_not_lost_samples() -> None:
    """A stamp that comes late makes the next step shorter; nothing is missing."""
    t = SOUND.runs[0].t.copy()
    t[100::100] += 0.0035
    assert not any(f.code == "samples_missing" for f in dynid.check(ROBOT, spoiled(SOUND, t=t)))


def test_jitter_is_measured() -> None:
    """Steps of 5 ms and 6 ms mixed: a fifth of a step; a tenth of that is only worth mentioning."""
    rng = np.random.default_rng(0)
    for share, severity in ((0.2, "warning"), (0.02, "info")):
        steps = 0.005 * (1 + share * rng.integers(0, 2, 4000) * (rng.random(4000) < 0.6))
        t = np.cumsum(steps)
        q = np.column_stack([np.interp(t, SOUND.runs[0].t, x) for x in SOUND.runs[0].q.T])
        findings = dynid.check(ROBOT, spoiled(SOUND, t=t, q=q, v=None, torque=None))
        finding = next(f for f in findings if f.code == "sampling_uneven")
        assert finding.severity == severity and abs(number(finding) - 100 * share) < 1


def test_time_that_repeats_stands_or_runs_back() -> None:
    """Double stamps, a clock that stands, a clock that jumps back, and one that never advances."""
    t = SOUND.runs[0].t
    twice = t.copy()
    twice[[100, 300]] = t[[99, 299]]
    finding = only(dynid.check(ROBOT, spoiled(SOUND, t=twice)), "", "time_repeated")
    assert number(finding) == 2 and "row 100" in finding.what
    standing = t.copy()
    standing[100:110] = t[100]
    findings = serious(dynid.check(ROBOT, spoiled(SOUND, t=standing)))
    assert findings[0].code == "time_frozen" and number(findings[0]) == 9
    back = t.copy()
    back[2000:] -= 1.0
    findings = serious(dynid.check(ROBOT, spoiled(SOUND, t=back)))
    assert findings[0].code == "time_backwards" and "row 2000" in findings[0].what
    assert "995 milliseconds" in findings[0].how_much
    assert dynid.check(ROBOT, spoiled(SOUND, t=0 * t))[0].code == "time_not_advancing"


def test_rows_held_from_a_slower_source_are_found() -> None:
    """A source of 50 Hz in a log of 200 Hz: three of four rows repeat."""
    held = np.arange(4000) // 4 * 4
    run = SOUND.runs[0]
    slow = spoiled(SOUND, q=run.q[held], v=run.v[held], torque=run.torque[held])
    finding = next(f for f in dynid.check(ROBOT, slow) if f.code == "rows_repeated")
    assert abs(number(finding) - 75) < 1
