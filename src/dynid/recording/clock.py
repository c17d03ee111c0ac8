"""The clock of a recording: seconds from its beginning, and whether the unit that is assumed for it is plausible."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.errors import MissingArgument, keyword
from dynid.recording.names import named_unit
from dynid.recording.units import TIME_UNITS

__all__ = ["check_unit", "from_start"]

Array = NDArray[np.float64]

# Dynamics are not identified from samples 0.1 s apart; clocks in ms advance by 0.1 and more up to rates of 10 kHz.
_LONGEST_STEP = 0.1
# Clocks that start later than this many seconds (three years) count from 1970, not from power-on.
_UNIX = 1e8


def from_start(t: Array, start: float) -> Array:
    """Times (N,) since 1970 counted from `start` (s) instead; clocks that count from power-on stay as they are."""
    return t - start if abs(start) >= _UNIX else t


def check_unit(file: str, column: str, t: Array, q: Array, v: Array | None) -> None:
    """Raise DataError where a clock t (N,) cannot be in seconds; the message gives the unit that it seems to have.

    The unit follows from the name of the column, from velocities against positions where there are both, otherwise
    from the step.
    """
    named = named_unit("t", column)
    steps = np.diff(t)
    step = float(np.median(steps[steps > 0])) if np.any(steps > 0) else 0.0
    if step == 0.0:
        return
    unit = _unit_from_motion(t, q, v) or (_unit_by_size(step) if step >= _LONGEST_STEP else "s")
    unit = named or unit
    if unit == "s":
        return
    raise MissingArgument(
        f"'{column}' advances by {step:.4g} per sample, which cannot be seconds: give {keyword('units', {'t': unit})}"
        f" if it is a time, or {keyword('time', None)} and {keyword('rate')} in Hz if it counts samples",
        where=file,
    )


def _unit_of(ratio: float) -> str | None:
    """The unit of a clock that advances this many times faster than seconds, within a factor of three."""
    for unit, count in TIME_UNITS.items():
        if abs(np.log10(ratio / count)) < 0.5:
            return unit
    return None


def _unit_by_size(step: float) -> str:
    """The unit by the step alone: sampling rates of robots lie between 10 Hz and 10 kHz."""
    return "ms" if step < 100 else "us" if step < 1e5 else "ns"


def _unit_from_motion(t: Array, q: Array, v: Array | None) -> str | None:
    """The unit in which the distance travelled fits the velocities; None where the motion does not decide.

    Distances are net ones over fifty intervals, so that noise of the samples averages out.
    """
    if v is None or len(t) < 100:
        return None
    edges = np.linspace(0, len(t) - 1, 51).astype(int)
    travelled = np.abs(np.diff(q[edges], axis=0))
    area = np.concatenate([np.zeros((1, q.shape[1])), np.cumsum((v[1:] + v[:-1]) / 2 * np.diff(t)[:, None], axis=0)])
    expected = np.abs(np.diff(area[edges], axis=0))
    if travelled.sum() < 1e-3 or expected.sum() == 0:
        return None
    return _unit_of(float(expected.sum() / travelled.sum()))
