"""Torque ripple over the joint position: the spectrum of a residual over position instead of time.

    power(order) = |sum over bins of (sum of the residual in the bin) exp(-i order position)|^2

Source: own rule: a line over the median of its neighbours, in a Fourier transform over the position.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["ripple_orders"]

Array = NDArray[np.float64]

# Bins of position per revolution, and orders that are searched: periods per revolution.
_BINS = 2048
_LOWEST, _HIGHEST = 3.0, 400.0
# Revolutions over which the spectrum is computed: orders are a quarter apart.
_TURNS = 4
# A peak over the median power of its neighbours: candidates only, which are tested like all others.
_STANDS_OUT = 6.0
_NEIGHBOURS = 60
# The joint must move over at least this many periods.
_PERIODS = 2.0


def ripple_orders(residual: Sequence[Array], position: Sequence[Array], most: int = 2) -> list[float]:
    """Orders (periods per revolution) of the strongest ripples in residuals (N,) over positions (N,), if any.

    The residual is summed in bins of position, and the sums are transformed. A ripple is a line of this spectrum,
    whatever the velocity; noise is not, so a line is judged by the orders around it.
    """
    size = _BINS * _TURNS
    power = np.zeros(size // 2 + 1)
    for e, q in zip(residual, position, strict=True):
        bins = np.floor(q * _BINS / (2 * np.pi)).astype(np.int64) % size
        power += np.abs(np.fft.rfft(np.bincount(bins, e, size))) ** 2
    reach = max((float(np.ptp(q)) for q in position), default=0.0)
    lowest = max(_LOWEST, _PERIODS * 2 * np.pi / max(reach, 1e-9))
    order = np.arange(len(power)) / _TURNS
    inside = (order >= lowest) & (order <= _HIGHEST)
    if inside.sum() < _NEIGHBOURS:
        return []
    found: list[float] = []
    left = np.where(inside, power, 0.0)
    for _ in range(most):
        at = int(np.argmax(left))
        near = slice(max(0, at - _NEIGHBOURS), at + _NEIGHBOURS)
        around = power[near][inside[near]]
        if left[at] <= _STANDS_OUT * float(np.median(around)):
            break
        found.append(float(order[at]))
        width = int(np.ceil(_TURNS * 2 * np.pi / max(reach, 1e-9)))
        left[max(0, at - width) : at + width + 1] = 0.0
    return found
