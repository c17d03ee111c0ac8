"""The clock of a recording: seconds from its beginning, and whether its unit can be what it is said to be."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.recording.convert import TIME_UNITS
from dynid.recording.names import named_unit

__all__ = ["check_unit", "from_start"]

Array = NDArray[np.float64]

# Nobody identifies dynamics from samples a tenth of a second apart; clocks in ms step by 0.1 and more up to 10 kHz.
_LONGEST_STEP = 0.1
# Clocks that start later than this many seconds (three years) count from 1970, not from a start of the machine.
_UNIX = 1e8


def from_start(t: Array, start: float) -> Array:
    """Absolute stamps counted from `start`; clocks of the machine stay as they are."""
    return t - start if abs(start) >= _UNIX else t


def check_unit(file: str, column: str, t: Array, q: Array, v: Array | None, rate: float | None) -> None:
    """Raise where a clock, read as seconds, cannot be one; the message names the unit that it seems to have.

    Judged by the rate where one is given, by velocities against positions where there are some, else by the step.
    """
    named = named_unit("t", column)
    steps = np.diff(t)
    step = float(np.median(steps[steps > 0])) if np.any(steps > 0) else 0.0
    if step == 0.0:
        return
    if rate is not None:
        unit = _unit_of(step * rate)
        if unit is None and not 0.5 < step * rate < 2:
            raise DataError(f"{file}: '{column}' steps at {1 / step:.4g} Hz, rate={rate:g} is given: drop one")
    else:
        unit = _unit_from_motion(t, q, v) or (_unit_by_size(step) if step >= _LONGEST_STEP else "s")
    unit = named or unit or "s"
    if unit == "s":
        return
    raise DataError(
        f'{file}: \'{column}\' advances by {step:.4g} a sample, which cannot be seconds: give units={{"t": "{unit}"}} '
        "if it is a time, or time=None and rate= in Hz if it counts samples"
    )


def _unit_of(ratio: float) -> str | None:
    """The unit that makes a clock too fast by this ratio, within a factor of three."""
    for unit, count in TIME_UNITS.items():
        if abs(np.log10(ratio / count)) < 0.5:
            return unit
    return None


def _unit_by_size(step: float) -> str:
    """The unit by the step alone: rates of robots lie between 10 Hz and 10 kHz."""
    return "ms" if step < 100 else "us" if step < 1e5 else "ns"


def _unit_from_motion(t: Array, q: Array, v: Array | None) -> str | None:
    """The unit in which the distance travelled fits the velocities; None where the motion cannot tell.

    Distances are net ones over fifty stretches, so that noise of the samples averages out.
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
