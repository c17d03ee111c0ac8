"""Backlash: a residual that bursts where the load of a joint changes its sign, and is calm elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.causes.cause_groups import Model

__all__ = ["Bursts", "load_bursts"]

Array = NDArray[np.float64]

# Time after a change of sign in which a body crosses the gap and comes to rest, and before it, for the filters (s).
_AFTER, _BEFORE = 0.25, 0.05
# The residual power there over that elsewhere (good recordings: 1.3, backlash of half a degree: 40), and the share of
# rows that may lie there.
_RATIO, _MOST = 6.0, 0.6
_FEWEST = 5
# Shifts in time that give the distribution of the ratio by chance.
_SHIFTS = 400


@dataclass(frozen=True, eq=False)
class Bursts:
    """Joint with bursts, their power relative to the calm part, and the share of the residual power they hold.

    `near` (N,) are the samples of all motions at which they occur.
    """

    joint: int
    ratio: float
    share: float
    p_value: float
    near: NDArray[np.bool_]


def load_bursts(model: Model, residual: list[Array]) -> list[Bursts]:
    """Joints whose residual (m,) bursts at changes of sign of their load, the strongest first."""
    rows, found = model.rows, []
    load = np.concatenate(model.load)
    for k, j in enumerate(rows.joints):
        near = np.zeros(len(load), dtype=bool)
        crossings = 0
        for r, motion in enumerate(rows.motions):
            part = model.load[r][:, j]
            at = np.flatnonzero(np.sign(part[1:]) != np.sign(part[:-1]))
            crossings += len(at)
            start = rows.first[r]
            for c in at:
                low, high = c - int(_BEFORE * motion.rate), c + int(_AFTER * motion.rate)
                near[start + max(low, 0) : start + min(high, len(part))] = True
        power, flags = residual[k] ** 2, near[rows.index[k]]
        if crossings < _FEWEST or not 0.01 < flags.mean() < _MOST:
            continue
        ratio = _ratio(power, flags)
        if ratio < _RATIO:
            continue
        shifts = (np.arange(1, _SHIFTS) * len(power)) // _SHIFTS
        chance = np.array([_ratio(power, np.roll(flags, s)) for s in shifts])
        calm = power[~flags].mean()
        share = float((power[flags] - calm).sum() / power.sum())
        found.append(Bursts(j, ratio, share, float((1 + np.sum(chance >= ratio)) / _SHIFTS), near))
    return sorted(found, key=lambda b: -b.ratio)


def _ratio(power: Array, flags: NDArray[np.bool_]) -> float:
    return float(power[flags].mean() / max(power[~flags].mean(), 1e-300))
