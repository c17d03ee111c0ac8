"""Measured friction over velocity, averaged in bins of velocity."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["binned_friction"]

Array = NDArray[np.float64]

_BINS = 40


def binned_friction(velocity: Array, torque: Array) -> tuple[Array, Array, Array]:
    """Mean velocity, mean friction and its standard deviation per bin of velocity; the points themselves if few."""
    if len(velocity) <= 2 * _BINS:
        return velocity, torque, np.zeros_like(torque)
    edges = np.linspace(velocity.min(), velocity.max() * (1 + 1e-12), _BINS + 1)
    label = np.clip(np.searchsorted(edges, velocity, side="right") - 1, 0, _BINS - 1)
    found = []
    for k in range(_BINS):
        own = label == k
        # Both signs in one bin would average out.
        if own.sum() >= 5 and not (edges[k] < 0 < edges[k + 1]):
            found.append((velocity[own].mean(), torque[own].mean(), torque[own].std(ddof=1) / np.sqrt(own.sum())))
    table = np.array(found).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]
