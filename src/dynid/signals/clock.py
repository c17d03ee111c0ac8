"""The clock of a run: an even source clock behind noisy time stamps, repeated rows, lost samples, late stamps.

A drive samples on an even clock, and a reader on another computer stamps what arrives. The time stamps then have noise
that the samples do not have. Differentiated twice, it is often the largest noise of an acceleration. If, on the
contrary, the robot is sampled at uneven times and stamped right, the stamps must be used. The positions decide: with a
right clock a smooth motion is smooth.

    stamp_i = start + step number_i + error_i,    share = sum of x_i y_i / sum of x_i^2, x = D^4(v error), y = D^4 q

with fourth differences D^4 on the even clock. Where the robot was sampled late by the error, q moves by v error.

Source: own derivation.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.recording.run import Run

__all__ = ["EVEN", "SourceClock", "fit_clock"]

Array = NDArray[np.float64]

# Steps of an even clock differ by less than this share.
EVEN = 0.01
# A log is faster than its source if this share of its rows repeat the row before, or the usual row occurs twice.
_REPEATED_SHARE = 0.1
# Steps longer than the usual one by this share, according to their noise, may hide lost samples; rows on either side
# decide.
_LONG_STEP, _WINDOW = (0.3, 0.6), 20
_LOW = 0.1  # quantile of the errors of time stamps in a window: stamps are late more often than early
# Rows over which the step of the source is measured, so that single losses do not matter.
_LAG = 50
_FEWEST = 50
# Fewer rows than this between two gaps, or after the last one, are left out.
_ISLAND = 3
# A stamp is late if it is this share of a step behind the even clock.
_LATE = 0.5
# Share of the stamp errors that the positions show: closer to zero than this, the source is even and the stamps are
# wrong. Far below zero, neither clock is right. The share must be known to a quarter.
_HALF, _KNOWN = 0.5, 0.25


@dataclass(frozen=True, eq=False)
class SourceClock:
    """What the time stamps of a run say about the clock of its source.

    Attributes
    ----------
    rows : ndarray of int (M,)
        Rows that are used: those with new values and, on a recovered clock, with a number that is known.
    number : ndarray of int (M,)
        Number of each of these rows on the even clock; lost samples leave numbers out.
    start, step : float
        Time of number zero and step of the even clock, in s.
    stamps : ndarray (M,)
        Time stamps of these rows.
    repeated : int
        Rows that were dropped because they repeat the row before.
    lost : int
        Samples that are missing.
    late : int
        Time stamps that are more than half a step late.
    share : float
        Share of the stamp errors that the positions show: 1 where the robot was sampled at the times of the stamps, 0
        where it was sampled on the even clock; NaN where the positions do not tell.
    uneven : bool
        Whether the time stamps differ from an even clock by more than a percent of the step.
    """

    rows: NDArray[np.int64]
    number: NDArray[np.int64]
    start: float
    step: float
    stamps: Array
    repeated: int
    lost: int
    late: int
    share: float
    uneven: bool

    @property
    def recovered(self) -> bool:
        """Whether the even clock is the better one: the stamps are uneven, the samples are not."""
        return self.uneven and bool(abs(self.share) < _HALF)

    @property
    def errors(self) -> Array:
        """Errors (M,) of the time stamps against the even clock, in s."""
        return np.asarray(self.stamps - self.start - self.step * self.number)

    @property
    def noise(self) -> float:
        """Standard deviation of the time stamps against the even clock, in s."""
        return float(np.std(self.errors))

    @property
    def times(self) -> Array:
        """Times (M,) of the rows on the better clock, in s."""
        return np.asarray(self.start + self.step * self.number) if self.recovered else self.stamps


def fit_clock(run: Run) -> SourceClock:
    """Fit an even clock to the time stamps of a run, whose time must increase.

    Parameters
    ----------
    run : Run
        The run.

    Returns
    -------
    SourceClock
    """
    rows = _new_rows(run)
    stamps = run.t[rows]
    steps = np.diff(stamps)
    step = float(np.mean(steps))
    uneven = float(np.abs(steps - step).max()) > EVEN * step
    repeated = len(run.t) - len(rows)
    if not uneven or len(rows) < _FEWEST:
        return SourceClock(rows, np.arange(len(rows)), stamps[0], step, stamps, repeated, 0, 0, np.nan, uneven)
    lag = _LAG if len(rows) > 2 * _LAG else 1
    number = _numbers(stamps, float(np.median((stamps[lag:] - stamps[:-lag]) / lag)))
    start, step = _line(number, stamps)
    # An uneven source has no clock of its own: the errors grow far beyond one step.
    usual = _usual(stamps - step * number)
    if usual > _LATE * step:
        return SourceClock(rows, number, start, step, stamps, repeated, 0, 0, np.nan, uneven)
    number = _placed(number, stamps, start, step, usual)
    start, step = _line(number, stamps)
    errors = stamps - start - step * number
    late = int(np.count_nonzero(errors > _LATE * step))
    # Next to lost samples it is open which sample a late stamp belongs to: these rows are left out.
    gaps = np.flatnonzero(np.diff(number) > 1) + 1
    edge = np.zeros(len(number), dtype=bool)
    edge[gaps] = edge[gaps - 1] = True
    sure = ~(edge & (np.abs(errors) > 3.0 * usual + 1e-3 * step))
    for first, last in itertools.pairwise([*gaps, len(number)]):
        sure[first:last] &= last - first >= _ISLAND
    end = int(np.flatnonzero(sure)[-1])
    lost = int(number[end]) - end
    # A clock that is wrong by half a step over many rows is none.
    levels = [abs(float(np.median(x))) for x in np.array_split(errors, max(1, len(errors) // _LAG))]
    steady = max(levels) < _LATE * step
    share = _seen_share(run.q[rows[sure]], number[sure], errors[sure], step) if steady else np.nan
    if abs(share) < _HALF:
        rows, number, stamps = rows[sure], number[sure], stamps[sure]
    return SourceClock(rows, number, start, step, stamps, repeated, lost, late, share, uneven)


def _line(number: NDArray[np.int64], stamps: Array) -> tuple[float, float]:
    """Start and step of the even clock through the stamps; late stamps do not move it."""
    step, start = np.polyfit(number, stamps, 1)
    errors = stamps - step * number
    intime = np.abs(errors - np.median(errors)) <= 3.0 * _usual(errors) + 1e-3 * step
    if np.count_nonzero(intime) >= _FEWEST:
        step, start = np.polyfit(number[intime], stamps[intime], 1)
    return float(start), float(step)


def _placed(number: NDArray[np.int64], stamps: Array, start: float, step: float, usual: float) -> NDArray[np.int64]:
    """The numbers with every loss after the rows that came before it: no stamp is early beyond the usual errors."""
    lost = np.diff(number) - 1
    allowed = min(0.5, max(0.1, 5.0 * usual / step))
    out = np.arange(len(number))
    placed = pending = 0
    for i in range(1, len(number)):
        pending += int(lost[i - 1])
        if pending:
            ahead = (start - stamps[i]) / step + i + placed + pending
            early = min(max(0, int(np.ceil(ahead - allowed))), pending)
            placed, pending = placed + pending - early, early
        out[i] = i + placed
    return out


def _usual(errors: Array) -> float:
    """Standard deviation of errors without outliers."""
    return float(1.4826 * np.median(np.abs(errors - np.median(errors))))


def _new_rows(run: Run) -> NDArray[np.int64]:
    """Rows with new values; all rows unless the log is faster than its source."""
    same = np.ones(len(run.t) - 1, dtype=bool)
    for x in (run.q, run.v, run.torque, run.wrench, run.base, *run.wrenches.values()):
        if x is not None and x.shape[1]:
            same &= np.all(x[1:] == x[:-1], axis=1)
    every = np.arange(len(run.t))
    # A robot at rest may repeat its rows for long: count only between rows that differ.
    changes = np.flatnonzero(~same)
    if changes.size < _FEWEST:
        return every
    lengths = np.diff(changes)
    usual = float(np.median(lengths))
    repeated = int((lengths[lengths <= 3 * usual + 1] - 1).sum())
    if usual < 2 and repeated <= _REPEATED_SHARE * len(same):
        return every
    return every[np.concatenate([[True], ~same])]


def _numbers(stamps: Array, step: float) -> NDArray[np.int64]:
    """Number of each sample on an even clock. A lost sample makes all later stamps late, a late stamp only itself."""
    steps = np.diff(stamps)
    beyond = float(np.clip(2.5 * _usual(steps) / step, *_LONG_STEP))
    long = np.flatnonzero(steps > (1.0 + beyond) * step)
    error = stamps - stamps[0] - step * np.arange(len(stamps))
    lost = np.zeros(len(stamps), dtype=np.int64)
    total = 0
    for k, following in zip(long.tolist(), [*long[1:].tolist(), len(stamps) - 1], strict=False):
        first = max(0, k + 1 - _WINDOW)
        before = error[first : k + 1] - step * lost[first : k + 1]
        after = error[k + 1 : min(following + 1, k + 1 + _WINDOW)] - step * total
        missing = round(float(np.quantile(after, _LOW) - np.quantile(before, _LOW)) / step)
        # Late stamps in a row look like a loss until the first one in time.
        recent = int(total - lost[max(0, k - _WINDOW)])
        if missing < 0:
            missing = -min(-missing, recent)
            near = slice(max(0, k - _WINDOW), k + 1)
            lost[near] = np.minimum(lost[near], total + missing)
        total += missing
        lost[k + 1 :] = total
    return np.arange(len(stamps)) + lost


def _seen_share(q: Array, number: NDArray[np.int64], errors: Array, step: float) -> float:
    """Share of the errors of the stamps that positions (M, joint) show, NaN where they do not tell.

    If samples were taken `share` times the error late, their fourth differences on the even clock are those of
    velocity times error; a smooth motion has next to none.
    """
    apart = number[4:] - number[:-4] == 4
    weights = np.array([1.0, -4.0, 6.0, -4.0, 1.0])

    def fourth(x: Array) -> Array:
        return np.asarray(sum(w * x[m : len(x) - 4 + m] for m, w in enumerate(weights)))[apart]

    # Velocities over several samples, so that noise of the positions and their errors in time do not enter twice.
    reach = 5
    wide = np.clip(np.arange(len(q))[:, None] + np.array([-reach, reach]), 0, len(q) - 1)
    v = (q[wide[:, 1]] - q[wide[:, 0]]) / (step * (number[wide[:, 1]] - number[wide[:, 0]]))[:, None]
    x, y = fourth(v * errors[:, None]), fourth(q)
    size = np.median(np.abs(y), axis=0)
    size = np.where(size > 0, size, np.sqrt(np.mean(y**2, axis=0)))
    usable = (size > 0) & (np.ptp(q, axis=0) > 0)
    if not usable.any() or len(y) < _FEWEST:
        return float("nan")
    x, y = (z[:, usable] / size[usable] for z in (x, y))
    power = float(np.sum(x * x))
    if power == 0:
        return float("nan")
    share = float(np.sum(x * y)) / power
    known = np.sqrt(np.sum((x * (y - share * x)) ** 2)) / power
    return share if known < _KNOWN else float("nan")
