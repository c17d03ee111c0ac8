"""Checks of the clock of a run: jitter, noisy stamps, lost samples, repeated stamps, time that stops or runs back."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.data.context import Context, longest_true
from dynid.assessment.data.recording_check import RecordingCheck
from dynid.assessment.finding import Finding, FindingCode
from dynid.recording.run import Run
from dynid.robot.model import Robot
from dynid.signals.clock import EVEN, fit_clock

__all__ = ["CLOCK", "REPEATED_ROWS"]

Array = NDArray[np.float64]

SAMPLES_MISSING = FindingCode("samples_missing", "samples were lost", ("warning", "info"), signal="t")
TIME_NOT_ADVANCING = FindingCode("time_not_advancing", "the time never increases", "error", signal="t")
SAMPLING_UNEVEN = FindingCode("sampling_uneven", "the sampling is not uniform", ("warning", "info"), signal="t")
TIME_BACKWARDS = FindingCode("time_backwards", "the time runs backwards", "error", signal="t")
TIME_FROZEN = FindingCode("time_frozen", "the time stops while rows go on", "error", signal="t")
TIME_REPEATED = FindingCode("time_repeated", "time stamps occur twice", "error", signal="t")
ROWS_REPEATED = FindingCode("rows_repeated", "rows repeat the row before them", "info", signal="q")
STAMPS_NOISY = FindingCode(
    "stamps_noisy", "the source samples evenly, its time stamps are less accurate", "info", signal="t"
)

# Differentiated velocities have about the relative error of a time step; a tenth affects every estimate.
_UNEVEN = 0.1
# A time stamp repeated this often in a row is not a double entry: the clock stopped.
_STANDING = 3
# Fewer lost samples than this share are interpolated without harm, unless they are lost at once.
_LOST_SHARE = 0.001
_LOST_AT_ONCE = 5
# A tenth of rows that repeat the row before them during motion means that the log is faster than its source.
_REPEATED_SHARE = 0.1


def check_clock(robot: Robot, run: Run, context: Context) -> Iterator[Finding]:
    """Find time stamps that are uneven, lost, repeated or out of order."""
    steps = np.diff(run.t)
    forward = steps[steps > 0]
    if not forward.size:
        yield context.found(
            TIME_NOT_ADVANCING,
            run,
            None,
            "The time does not advance in the whole run.",
            f"{len(run)} samples at one instant or backwards",
            "Choose the right time column, or give the sampling rate instead.",
        )
        return
    step = float(np.median(forward))
    yield from _backwards(run, context, steps, step)
    yield from _standing(run, context, steps)
    yield from _lost(run, context, steps, step)
    if np.all(steps > 0):
        clock = fit_clock(run)
        if clock.recovered:
            yield context.found(
                STAMPS_NOISY,
                run,
                None,
                "The source samples evenly and its time stamps are less accurate: the even clock is used.",
                f"{1e3 * clock.noise:.3g} milliseconds of noise at a step of {1e3 * clock.step:.5g} milliseconds, "
                f"{clock.late} late stamps, {clock.lost} lost samples",
                "Nothing; stamps of the source itself would be better.",
            )
            return
    near = forward[forward < 1.5 * step]
    uneven = float(np.percentile(np.abs(near - step), 95)) / step if near.size else 0.0
    if uneven > EVEN:
        yield context.found(
            SAMPLING_UNEVEN,
            run,
            None,
            "The sampling is not uniform.",
            f"{100 * uneven:.3g} percent of a step of {1e3 * step:.4g} milliseconds (95th percentile)",
            "The signals are resampled by their time stamps. A log at a fixed rate would be better.",
            severity="warning" if uneven > _UNEVEN else "info",
        )


def _backwards(run: Run, context: Context, steps: Array, step: float) -> Iterator[Finding]:
    """Find time that runs backwards."""
    back = np.flatnonzero(steps < 0)
    if back.size:
        yield context.found(
            TIME_BACKWARDS,
            run,
            None,
            f"The time runs backwards, first at row {back[0] + 1}.",
            f"{back.size} times, by {1e3 * -steps[back].min():.4g} milliseconds at most",
            "Split the run there if two logs were joined, or sort the rows by time and drop late ones.",
            _after(steps < 0),
        )


def _standing(run: Run, context: Context, steps: Array) -> Iterator[Finding]:
    """Find time that stops, or time stamps that occur twice."""
    still = steps == 0
    if not still.any():
        return
    row = int(np.argmax(still)) + 1
    longest = longest_true(still)
    if longest >= _STANDING:
        yield context.found(
            TIME_FROZEN,
            run,
            None,
            f"The time stops while rows go on, first at row {row}.",
            f"{int(still.sum())} rows at the time of the row before, {longest} in a row",
            "Drop these rows, or use a clock with a finer resolution.",
            _after(still),
        )
    else:
        yield context.found(
            TIME_REPEATED,
            run,
            None,
            f"Time stamps occur twice, first at row {row}.",
            f"{int(still.sum())} repeated stamps",
            "Drop one row of each pair.",
            _after(still),
        )


def _lost(run: Run, context: Context, steps: Array, step: float) -> Iterator[Finding]:
    """Find lost samples."""
    # A late time stamp makes one step long and the next short: count over three steps, so that it is not "lost".
    long = np.flatnonzero(steps > 1.5 * step)
    lost = np.zeros(long.size)
    for i, k in enumerate(long):
        window = steps[max(0, k - 1) : k + 2]
        window = window[(window > 0) & ((window == steps[k]) | (window <= 1.5 * step))]
        lost[i] = max(0.0, np.round(window.sum() / step) - len(window))
    if not lost.any():
        return
    worst = int(np.argmax(lost))
    total, gaps = lost.sum(), int(np.count_nonzero(lost))
    around = np.zeros(len(run), dtype=bool)
    around[long[lost > 0]] = around[long[lost > 0] + 1] = True
    serious = total > _LOST_SHARE * len(run) or lost.max() >= _LOST_AT_ONCE
    yield context.found(
        SAMPLES_MISSING,
        run,
        None,
        f"Samples are missing, most of them at row {long[worst] + 1}.",
        f"{total:.6g} samples lost in {gaps} gaps, the longest of {steps[long[worst]]:.4g} seconds",
        "Short gaps are interpolated; split the run at long ones.",
        around,
        severity="warning" if serious else "info",
    )


def _after(steps: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Rows (N,) after marked steps (N - 1,)."""
    return np.concatenate([[False], steps])


def check_repeated_rows(robot: Robot, run: Run, context: Context) -> Iterator[Finding]:
    """Find rows that repeat the row before them although the robot moves."""
    cleaned = context.cleaned(run)
    if cleaned is None or not cleaned.moving.any():
        return
    same = np.all(run.q[1:] == run.q[:-1], axis=1)
    for other in (run.v, run.torque):
        if other is not None:
            same &= np.all(other[1:] == other[:-1], axis=1)
    # Rows of a robot at rest may repeat: count only between rows that differ.
    changes = np.flatnonzero(~same)
    if changes.size < 2:
        return
    lengths = np.diff(changes)
    usual = float(np.median(lengths))
    repeated = int((lengths[lengths <= 3 * usual + 1] - 1).sum())
    if usual >= 2 or repeated > _REPEATED_SHARE * len(same):
        yield context.found(
            ROWS_REPEATED,
            run,
            None,
            "Rows repeat the row before them while the robot moves: the log is faster than its source.",
            f"{100 * repeated / len(same):.3g} percent of the rows repeat",
            "They are dropped before filtering. Record at the rate of the source to save space.",
        )


CLOCK = RecordingCheck(
    name="clock",
    finds="uneven sampling; lost samples and the number of gaps; time stamps that repeat, stop or run backwards",
    advice="use the recorded time stamps; split the run at long gaps",
    codes=(
        TIME_NOT_ADVANCING,
        TIME_BACKWARDS,
        TIME_FROZEN,
        TIME_REPEATED,
        SAMPLES_MISSING,
        SAMPLING_UNEVEN,
        STAMPS_NOISY,
    ),
    of_run=check_clock,
    joints=False,
)


REPEATED_ROWS = RecordingCheck(
    name="repeated-rows",
    finds="rows that repeat because the log is faster than its source",
    advice="drop repeated rows",
    codes=(ROWS_REPEATED,),
    of_run=check_repeated_rows,
)
