"""Contacts and bumps: a residual that is large during a few short moments, and small at all others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.causes.cause_code import CauseCode
from dynid.assessment.causes.cause_rows import CauseRows
from dynid.assessment.causes.cause_source import CauseSource

__all__ = ["CONTACT", "CONTACTS", "Contacts", "find_contacts"]

Array = NDArray[np.float64]

CONTACT = CauseCode(
    "contact",
    "the torque leaves the model during a few moments only",
    "find out what touched the robot then, and cut these seconds out of the log",
    "1.5 % of the torque, 70 % of the residual in a twentieth of the time",
)

# Length of the moments that are compared (s). Noise, also of 1 Hz and heavy-tailed, and effects that belong to the
# robot fill many of them, because postures and velocities return; a bump fills one or two.
_WINDOW = 0.5
# The largest share of the time that counts as a few moments, and the least share of the residual power they hold.
_MOST_TIME, _LEAST_POWER = 0.05, 0.7
_FEWEST_WINDOWS = 20
# No joint loses more than this share of its rows with them.
_MOST_ROWS = 0.5
# Power of such a moment over that of the median.
_STANDS_OUT = 5.0


@dataclass(frozen=True, eq=False)
class Contacts:
    """Moments with a large residual.

    `starts` are their first times (s) in each run by name, `joint` the one with most of it. `share` is their part of
    its residual power, `size` its largest residual then (N m or N), and `relative` the root mean square of its residual
    over that of its torque. `saving` is the decrease of the logarithm of the residual power without them, summed over
    channels, and `near` (N,) are the samples of all motions in and beside them.
    """

    starts: dict[str, list[float]]
    joint: int
    share: float
    size: float
    relative: float
    saving: float
    near: NDArray[np.bool_]

    def words(self, name: str, unit: str) -> str:
        """The finding in one sentence."""
        when = [f"{', '.join(f'{t:.1f}' for t in times)} s" for times in self.starts.values()]
        if len(when) > 1:
            when = [f"{times} of '{run}'" for times, run in zip(when, self.starts, strict=True)]
        return (
            f"the torque leaves the model for moments only, up to {self.size:.2g} {unit} in '{name}' "
            f"at t = {' and '.join(when)}, as when something touches the robot"
        )


def find_contacts(rows: CauseRows, residual: list[Array]) -> Contacts | None:
    """The few moments that hold most of the residual (m,) of each channel, if they do."""
    t = np.concatenate([m.t for m in rows.motions])
    run = rows.run_of(np.arange(len(t)))
    window = np.floor((t - t[rows.first][run]) / _WINDOW).astype(np.int64)
    window += (window.max() + 1) * run  # each run has its own
    kept, window = np.unique(window, return_inverse=True)
    scale = np.array([max(float(np.sum(r**2)), 1e-300) for r in residual])
    power = np.array([np.bincount(window[i], r**2, len(kept)) for i, r in zip(rows.index, residual, strict=True)])
    filled = np.flatnonzero(np.sum([np.bincount(window[i], minlength=len(kept)) for i in rows.index], axis=0))
    if len(filled) < _FEWEST_WINDOWS:
        return None
    power = power[:, filled] / scale[:, None]
    # The moments of each joint: its windows with the largest power, as far as they stand out.
    largest = np.sort(power, axis=1)[:, -int(_MOST_TIME * len(filled)) :]
    least = np.maximum(largest[:, :1], _STANDS_OUT * np.median(power, axis=1)[:, None])
    moments = (power >= least) & (power > 0)
    shares = np.sum(power * moments, axis=1)
    if shares.max() < _LEAST_POWER:
        return None
    joint = int(np.argmax(shares))
    near = np.isin(window, filled[np.any(moments[shares >= _LEAST_POWER], axis=0)])
    index, torque = rows.index[joint], rows.y[joint]
    peak = float(np.abs(residual[joint][near[index]]).max())
    relative = float(np.sqrt(scale[joint] / max(float(np.sum(torque**2)), 1e-300)))
    starts: dict[str, list[float]] = {}
    for s in np.flatnonzero(near & ~np.concatenate([[False], near[:-1]])):
        starts.setdefault(rows.motions[run[s]].name, []).append(float(t[s]))
    margin = max(1, int(_WINDOW * rows.motions[0].rate))
    wide = np.convolve(near, np.ones(2 * margin + 1), mode="same") > 0.5
    if max(float(np.mean(wide[i])) for i in rows.index) > _MOST_ROWS:
        return None
    saving = float(-np.sum(np.log1p(-np.minimum(shares, 1.0 - 1e-12))))
    return Contacts(starts, rows.joints[joint], float(shares[joint]), peak, relative, saving, wide)


CONTACTS = CauseSource(name="contacts", codes=(CONTACT,))
