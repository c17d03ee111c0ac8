"""Columns of two joints that were exchanged: each plausible pair is exchanged back, and the model fitted again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.causes.cause_code import CauseCode
from dynid.assessment.causes.cause_rows import CauseRows, away_from_reversals
from dynid.assessment.causes.cause_source import CauseSource
from dynid.signals.filters import lowpass
from dynid.signals.settings import Motion

__all__ = ["JOINTS_SWAPPED", "POSITIONS_SWAPPED", "SWAPPED", "TORQUES_SWAPPED", "Swap", "best_swap"]

Array = NDArray[np.float64]

POSITIONS_SWAPPED = CauseCode(
    "positions_swapped",
    "the positions of two joints were exchanged",
    "exchange the position columns of the two joints",
    "",
    check="torque_scale",
    fatal=True,
)
TORQUES_SWAPPED = CauseCode(
    "torques_swapped",
    "the torques of two joints were exchanged",
    "exchange the torque columns of the two joints",
    "",
    check="torque_scale",
    fatal=True,
)
JOINTS_SWAPPED = CauseCode(
    "joints_swapped",
    "two joints were exchanged",
    "exchange the columns of the two joints, or their order in the robot description",
    "",
    check="torque_scale",
    fatal=True,
)

# Samples on which orders are compared, and pairs that are tried at most.
_SAMPLES = 500
_PAIRS = 12
# A pair is tried if a joint of it has a residual of this share of its torque.
_RESIDUAL = 0.015
# Sum over the channels of the logarithm of the residual power that an exchange must save; noise saves up to 0.2. The
# two joints themselves must keep less than this share of theirs.
_SAVING, _KEPT = 0.8, 0.7


@dataclass(frozen=True)
class Swap:
    """An exchange of two joints.

    `saving` is the decrease of the logarithm of the residual power, summed over channels; `share` the share of the
    residual power of the two joints that it explains; `effect` the residual of the worse one relative to its torque.
    """

    code: CauseCode
    joints: tuple[int, int]
    saving: float
    share: float
    effect: float


def best_swap(rows: CauseRows, relative: Array) -> Swap | None:
    """The exchange that explains the torques best, if any does clearly; `relative` (channel,) are relative errors."""
    n, joints = rows.base.robot.n, rows.joints
    by_joint = dict(zip(joints, relative, strict=True))
    pairs = [
        (i, j) for i in range(n) for j in range(i + 1, n) if max(by_joint.get(i, 0), by_joint.get(j, 0)) > _RESIDUAL
    ]
    if not pairs:
        return None
    pairs.sort(key=lambda p: -(by_joint.get(p[0], 0.0) + by_joint.get(p[1], 0.0)))
    states, torque, far = _thinned(rows)
    # A joint that is nowhere away from its reversals says nothing.
    pairs = [p for p in pairs if far[:, p].any(axis=0).all()]
    before = _left(rows, states, torque, far)
    found: Swap | None = None
    for i, j in pairs[:_PAIRS]:
        order = list(range(n))
        order[i], order[j] = j, i
        other = [x[:, order] for x in states]
        for code, q, y, good in (
            (JOINTS_SWAPPED, other, torque[:, order], far[:, order]),
            (POSITIONS_SWAPPED, other, torque, far[:, order]),
            (TORQUES_SWAPPED, states, torque[:, order], far),
        ):
            after = _left(rows, q, y, good)
            saving = float(np.sum(np.log(before)) - np.sum(np.log(after)))
            mine = [k for k, joint in enumerate(joints) if joint in (i, j)]
            kept = float(after[mine].sum() / before[mine].sum())
            if kept < _KEPT and saving > max(_SAVING, found.saving if found else 0.0):
                found = Swap(code, (i, j), saving, 1.0 - kept, float(np.sqrt(before[mine].max())))
    return found


def _thinned(rows: CauseRows) -> tuple[list[Array], Array, NDArray[np.bool_]]:
    """States and torques (N, joint) at evenly spaced samples, and where each joint is away from its reversals."""
    samples = np.unique(np.concatenate(rows.index))
    pick = samples[:: max(1, len(samples) // _SAMPLES)]
    states = [np.concatenate([getattr(m, s) for m in rows.motions])[pick] for s in "qva"]
    torque = np.concatenate([_calm(m) for m in rows.motions])[pick]
    return states, torque, np.concatenate(away_from_reversals(rows.motions))[pick]


def _calm(motion: Motion) -> Array:
    """Torques at full rate, low-passed as the decimation does."""
    assert motion.torque is not None
    step = int(np.prod(motion.decimate)) if motion.decimate else 1
    return lowpass(motion.torque, 0.4 * motion.rate / step, motion.rate) if step > 1 else motion.torque


def _left(rows: CauseRows, states: list[Array], torque: Array, far: NDArray[np.bool_]) -> Array:
    """Share of the torque's power that the model leaves in each channel, away from reversals."""
    base = rows.base
    W = base.regressor(*states)
    joints = list(rows.joints)
    y, good = torque[:, joints], far[:, joints].astype(float)
    count = np.maximum(good.sum(axis=0), 1.0)
    size = np.sqrt(np.sum(good * y**2, axis=0) / count)
    size = np.where(size > 0, size, 1.0)
    noise = size.copy()
    for _ in range(2):
        flat = (W * (good / noise)[:, :, None]).reshape(-1, base.count)
        unit = np.linalg.norm(flat, axis=0)
        unit = np.where(unit > 0, unit, 1.0)
        beta = np.linalg.lstsq(flat / unit, (y * good / noise).ravel(), rcond=1e-9)[0] / unit
        noise = np.maximum(np.sqrt(np.sum(good * (y - W @ beta) ** 2, axis=0) / count), 1e-9 * size)
    return np.asarray((noise / size) ** 2)


SWAPPED = CauseSource(name="swapped", codes=(JOINTS_SWAPPED, POSITIONS_SWAPPED, TORQUES_SWAPPED))
