"""What no candidate explains: a residual that returns with the state of its joint, on motion that was not fitted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.causes.cause_code import UNKNOWN
from dynid.assessment.causes.cause_groups import Model
from dynid.assessment.causes.cause_source import CauseSource

__all__ = ["LEFTOVER", "Leftover", "largest_leftover"]

Array = NDArray[np.float64]

# Steps over which the residual is averaged, per variable, and blocks of time that are left out in turn where there is
# one recording only.
_STEPS, _PARTS, _BLOCKS = 12, 4, 20
# Rows by which every mean is drawn to zero: autocorrelated rows count as fewer.
_SHRINK = 20.0
# Share of the residual that returns on motion that was not fitted, and its size relative to the torque, from which it
# is told. Of good recordings of three plants less than 0.1 and 0.4 % return.
_RETURNS, _SIZE = 0.2, 0.01
_VARIABLES = ("position", "velocity", "acceleration", "load")


@dataclass(frozen=True)
class Leftover:
    """The residual of one channel that follows from the state of its joint.

    `variable` explains most alone; the residual is largest between `low` and `high`. `share` is what all variables
    explain of the residual power where it was not fitted, `effect` their torque relative to that of the joint.
    """

    channel: int
    variable: str
    low: float
    high: float
    share: float
    effect: float


def largest_leftover(model: Model, residual: list[Array]) -> Leftover | None:
    """The leftover of the channel where it matters most, if it returns anywhere."""
    found = [_leftover(model, residual[k], k) for k in range(len(residual))]
    told = [x for x in found if x.share >= _RETURNS and x.effect >= _SIZE]
    return max(told, key=lambda x: x.effect, default=None)


def _leftover(model: Model, r: Array, channel: int) -> Leftover:
    rows = model.rows
    joint, index = rows.joints[channel], rows.index[channel]
    states = [np.concatenate([getattr(m, s)[:, joint] for m in rows.motions])[index] for s in "qva"]
    variables = [*states, np.concatenate(model.load)[index, joint]]
    steps = [_steps(x) for x in variables]
    parts = _parts(model, index)
    power = max(float(np.sum(r**2)), 1e-300)
    share = [_returning(r, [s], parts) / power for s in steps]
    whole = max(_returning(r, steps, parts) / power, *share)
    best = int(np.argmax(share))
    mean = np.abs(_means(r, steps[best]))
    inside = variables[best][steps[best] == int(np.argmax(mean))]
    size = float(np.sqrt(max(whole, 0.0) * power / max(float(np.sum(rows.y[channel] ** 2)), 1e-300)))
    return Leftover(channel, _VARIABLES[best], float(inside.min()), float(inside.max()), whole, size)


def _steps(x: Array) -> NDArray[np.int64]:
    """The step of each row: all hold as many."""
    edges = np.quantile(x, np.arange(1, _STEPS) / _STEPS)
    return np.searchsorted(edges, x, side="right").astype(np.int64)


def _parts(model: Model, index: NDArray[np.int64]) -> NDArray[np.int64]:
    """The recording of each row, or every fourth block of time of a single one."""
    rows = model.rows
    if max(rows.groups) > 0:
        return np.minimum(np.array(rows.groups)[rows.run_of(index)], 1)
    return (np.arange(len(index)) * _BLOCKS // len(index)) % _PARTS


def _means(r: Array, step: NDArray[np.int64]) -> Array:
    count = np.bincount(step, minlength=_STEPS)
    return np.asarray(np.bincount(step, r, _STEPS) / (count + _SHRINK))


def _returning(r: Array, steps: list[NDArray[np.int64]], parts: NDArray[np.int64]) -> float:
    """Power of the residual that means over the steps explain in each part, when they come from the others."""
    gain = 0.0
    for part in np.unique(parts):
        here = parts == part
        left, fitted = r[here].copy(), r[~here].copy()
        for step in steps:
            mean = _means(fitted, step[~here])
            fitted -= mean[step[~here]]
            left -= mean[step[here]]
        gain += float(np.sum(r[here] ** 2) - np.sum(left**2))
    return gain


LEFTOVER = CauseSource(name="leftover", codes=(UNKNOWN,))
