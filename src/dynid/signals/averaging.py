"""Repetitions of one motion on one clock, and their mean run.

Runs that were started by hand are shifted in time against each other. The shift is the one with the least distance of
the positions: by whole samples at first, then by fractions along the slope. Runs that differ more than a robot that
repeats its motion are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import ConflictingArguments, Mismatch, NotApplicable, TooFew
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.signals.settings import Signals, uniform
from dynid.signals.shift import REACH, shifted

__all__ = ["Repetitions", "repetitions"]

Array = NDArray[np.float64]

# Two runs are the same motion if their positions differ by less than this share of the motion. A robot that repeats a
# motion differs by its repeatability, about a thousandth; different motions differ by about one.
_SAME = 0.05
# Shares by which rates of the same recorder may differ, and that the runs must have in common.
_RATE, _COMMON = 0.01, 0.5
# Steps of the shift along the slope, and shifts in samples that are not worth an interpolation.
_STEPS, _WHOLE = 5, 0.01


@dataclass(frozen=True, eq=False)
class Repetitions:
    """Runs of one motion on one clock.

    Attributes
    ----------
    runs : tuple of Run
        The runs, shifted and cut to the time that all have.
    mean : Run
        Their mean, sample by sample.
    shifts : tuple of float
        Seconds by which each run lags the first.
    torque_std : ndarray, shape (joint,), or None
        Standard deviation of the torques of one run around the mean, in N m or N, pooled over time.
    position_std : ndarray, shape (joint,)
        The same of the positions, in rad or m.
    freedom : int
        Degrees of freedom per sample: repetitions less one. The mean has been subtracted.
    """

    runs: tuple[Run, ...]
    mean: Run
    shifts: tuple[float, ...]
    torque_std: Array | None
    position_std: Array
    freedom: int

    @property
    def count(self) -> int:
        """Number of repetitions K."""
        return len(self.runs)


def repetitions(recording: Recording, signals: Signals | None = None) -> Repetitions:
    """Bring the runs of a recording, which repeat one motion, onto one clock, and average them.

    Parameters
    ----------
    recording : Recording
        At least two runs of the same motion, on a fixed base, with positions and torques.
    signals : Signals, optional
        How uneven clocks are resampled.

    Returns
    -------
    Repetitions

    Raises
    ------
    DataError
        If there is one run only, or if the runs have other signals, rates or motions.

    Examples
    --------
    >>> import dynid
    >>> from dynid.cli.demo import synthetic_recording
    >>> from dynid.signals.averaging import repetitions
    >>> run = synthetic_recording(dynid.load_robot("twolink"), 0, duration=5.0)
    >>> repetitions(run + run).shifts
    (0.0, 0.0)
    """
    settings = signals or Signals()
    if settings.period is not None:
        raise ConflictingArguments(
            "periods within a run and repetitions of a run cannot be averaged together: leave period out", "period"
        )
    if len(recording.runs) < 2:
        raise TooFew("an average needs at least two runs of the same motion, got one")
    even = [uniform(_plain(run), settings) for run in recording.runs]
    rate = even[0][1]
    for run, other in even[1:]:
        if abs(other - rate) > _RATE * rate:
            raise Mismatch(f"run '{run.name}' has {other:.6g} samples per second and '{even[0][0].name}' {rate:.6g}")
    runs = [run for run, _ in even]
    lags = [0.0, *(_lag(runs[0], run) for run in runs[1:])]
    aligned = _cut(runs, lags)
    for run, lag in zip(aligned[1:], lags[1:], strict=True):
        _check_same(aligned[0], run, lag / rate)
    torques = None if runs[0].torque is None else np.array([run.torque for run in aligned])
    positions = np.array([run.q for run in aligned])
    mean = replace(
        aligned[0], q=positions.mean(axis=0), torque=None if torques is None else torques.mean(axis=0), name="mean"
    )
    return Repetitions(
        tuple(aligned),
        mean,
        tuple(lag / rate for lag in lags),
        None if torques is None else _pooled(torques),
        _pooled(positions),
        len(aligned) - 1,
    )


def _plain(run: Run) -> Run:
    """Positions and torques of a run; a DataError if it has a base that moves or wrenches."""
    if run.base is not None or run.wrench is not None or run.wrenches:
        raise NotApplicable(
            f"run '{run.name}' has a base that moves or wrenches; only positions and torques are averaged"
        )
    return Run(run.t, run.q, torque=run.torque, name=run.name)


def _pooled(x: Array) -> Array:
    """Standard deviation (joint,) of x (run, sample, joint) around the mean of the runs, unbiased in the variance."""
    return np.asarray(np.sqrt(np.mean(np.var(x, axis=0, ddof=1), axis=0)))


def _lag(first: Run, other: Run) -> float:
    """Samples by which a run lags the first: the least mean squared distance of what both have."""
    a, b = first.q, other.q
    size = np.std(a, axis=0)
    unit = np.where(size > 0, 1.0 / np.where(size > 0, size, 1.0), 0.0)
    centre = a.mean(axis=0)
    a, b = (a - centre) * unit, (b - centre) * unit
    lags = np.arange(-(len(a) - 1), len(b))
    product = sum(scipy.signal.correlate(b[:, j], a[:, j]) for j in range(a.shape[1]))
    ones_a, ones_b = np.ones(len(a)), np.ones(len(b))
    common = scipy.signal.correlate(ones_b, ones_a)
    own = scipy.signal.correlate(ones_b, np.sum(a**2, axis=1)) + scipy.signal.correlate(np.sum(b**2, axis=1), ones_a)
    enough = common > _COMMON * min(len(a), len(b))
    distance = np.where(enough, (own - 2.0 * product) / np.maximum(common, 1.0), np.inf)
    lag = float(lags[int(np.argmin(distance))])
    for _ in range(_STEPS):
        at = np.arange(max(0.0, np.ceil(-lag)), min(len(a), np.floor(len(b) - lag)))
        moved = np.column_stack([np.interp(at + lag, np.arange(len(b)), x) for x in b.T])
        slope = np.gradient(moved, axis=0)
        lag += float(np.sum(slope * (a[at.astype(int)] - moved)) / max(np.sum(slope**2), 1e-300))
    return lag


def _cut(runs: Sequence[Run], lags: Sequence[float]) -> list[Run]:
    """The runs advanced by their lags (samples), over the time that all have; clock and name of the first."""
    whole = [round(lag) for lag in lags]
    rest = [lag - w for lag, w in zip(lags, whole, strict=True)]
    # Interpolation reflects the ends of a run, which are left out where it is needed.
    edge = REACH if any(abs(x) > _WHOLE for x in rest) else 0
    start = max(0, *(-w for w in whole)) + edge
    stop = min(len(run) - w for run, w in zip(runs, whole, strict=True)) - edge
    if stop - start < _COMMON * len(runs[0]):
        raise Mismatch("the runs have less than half of the motion of the first in common")
    out = []
    t = runs[0].t[start:stop]
    for run, w, x in zip(runs, whole, rest, strict=True):
        if (run.torque is None) != (runs[0].torque is None):
            raise Mismatch(f"run '{run.name}' has other signals than '{runs[0].name}': torques in all runs or in none")
        delay = x * run.step if abs(x) > _WHOLE else 0.0
        q = shifted(run.t, run.q, delay)[start + w : stop + w]
        torque = None if run.torque is None else shifted(run.t, run.torque, delay)[start + w : stop + w]
        out.append(Run(t, q, torque=torque, name=run.name))
    return out


def _check_same(first: Run, other: Run, shift: float) -> None:
    """Raise a DataError if a run is another motion than the first."""
    motion = float(np.linalg.norm(first.q - first.q.mean(axis=0)))
    share = float(np.linalg.norm(other.q - first.q)) / max(motion, 1e-300)
    if share > _SAME:
        raise Mismatch(
            f"run '{other.name}' is not the motion of '{first.name}': after a shift of {shift:.3g} s the positions "
            f"still differ by {100 * share:.0f} % of the motion"
        )
