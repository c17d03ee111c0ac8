"""Spikes of the torque, one or two samples far from their neighbours, and the repair of dropouts.

Controllers and noisy currents make spikes too, and the robot feels them: they stay. A sample that is exactly zero among
others that are not is a dropout of the log, which no drive made, and is replaced.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dynid.signals.grid import grid_step

__all__ = ["dropout_note", "spikes_of", "without_dropouts"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]

# A spike of up to two samples leaves the median of five as it is; a step of friction moves it.
_REACH = 2
_WINDOW = np.arange(-_REACH, _REACH + 1)
# Distance from that median: in standard deviations of the noise, of which normal noise never reaches ten; in steps of a
# quantised channel; and as a share of the range of usual torques, which dropouts need not reach.
_SIGMAS, _STEPS = 10.0, 10.0
_SHARE_OF_RANGE, _DROPOUT_SHARE = 0.3, 0.05
_USUAL = (5.0, 95.0)  # percentiles
_LARGEST = 1e100
# Fewer samples tell nothing of the usual noise; more than these are not needed to measure it.
_FEWEST, _MOST = 50, 20_000


def spikes_of(torque: Array) -> NDArray[np.bool_]:
    """Samples that are spikes of one or two samples.

    Parameters
    ----------
    torque : array of shape (N, joint)
        Raw torques, in the order of time.

    Returns
    -------
    ndarray of bool (N, joint)
    """
    found = np.zeros(torque.shape, dtype=bool)
    for j, (low, high) in enumerate(_usual(torque)):
        found[_far(torque[:, j], _SHARE_OF_RANGE * (high - low))[0], j] = True
    return found


def without_dropouts(torque: Array) -> tuple[Array, Index]:
    """Torques whose dropouts to zero are replaced by the median of their neighbours.

    Parameters
    ----------
    torque : array of shape (N, joint)
        Raw torques, in the order of time.

    Returns
    -------
    repaired : ndarray (N, joint)
    count : ndarray of int (joint,)
        Number of samples that were replaced.
    """
    count = np.zeros(torque.shape[1], dtype=np.int64)
    repaired = torque
    for j, (low, high) in enumerate(_usual(torque)):
        x = torque[:, j]
        if np.all(x):
            continue
        at, usual = _far(x, _DROPOUT_SHARE * (high - low))
        dropped = x[at] == 0.0
        if dropped.any():
            repaired = repaired.copy() if repaired is torque else repaired
            repaired[at[dropped], j] = usual[dropped]
            count[j] = dropped.sum()
    return repaired, count


def dropout_note(count: Mapping[str, int]) -> tuple[str, ...]:
    """One sentence on the samples that were replaced, by joint; () where there were none."""
    found = [f"{name} ({n})" for name, n in count.items() if n]
    return (f"samples at which the torque drops to zero were replaced: {', '.join(found)}",) if found else ()


def _usual(torque: Array) -> Array:
    """Range (joint, 2) of usual torques; none where there are too few samples, or numbers that overflow."""
    if len(torque) < _FEWEST or np.abs(torque).max(initial=0.0) > _LARGEST:
        return np.empty((0, 2))
    return np.percentile(torque[:: -(-len(torque) // _MOST)], _USUAL, axis=0).T


def _far(x: Array, least: float) -> tuple[Index, Array]:
    """Samples further than `least` and than noise and steps from the median of their neighbours, and that median."""
    jumps = np.abs(np.diff(x))
    if jumps.max() <= 0.5 * least:
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    last, least = len(x) - 1, max(least, _SIGMAS * _noise(x))
    # Within two samples of a spike there is a jump of at least half of it.
    near = np.flatnonzero(jumps > 0.5 * least)[:, None] + np.arange(1 - _REACH, 1 + _REACH)
    at = np.unique(near[(near >= 0) & (near <= last)])
    around = np.abs(at[:, None] + _WINDOW)  # reflected at both ends
    usual = np.median(x[last - np.abs(last - around)], axis=1)
    away = np.abs(x[at] - usual)
    far = away > least
    if far.any():
        far &= away > _STEPS * grid_step(x)
    return at[far], usual[far]


def _noise(x: Array) -> float:
    """Standard deviation of the noise, from samples and the mean of their neighbours."""
    k = np.arange(1, len(x) - 1, -(-len(x) // _MOST))
    return 1.4826 * float(np.median(np.abs(x[k] - 0.5 * (x[k - 1] + x[k + 1])))) / np.sqrt(1.5)
