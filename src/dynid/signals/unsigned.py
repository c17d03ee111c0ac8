"""Torques or currents without their sign."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["is_unsigned"]

Array = NDArray[np.float64]

# Share of the rows in which a joint moves in each direction, beyond which it moves in both directions.
_BOTH_DIRECTIONS = 0.1
# A torque that gravity keeps on one side stays away from zero. The magnitude of one that changes its sign is below the
# first share of the largest in more than the second share of the rows: 3 % of them for a sine.
_NEAR_ZERO, _ROWS = 0.05, 0.01


def is_unsigned(v: Array, torque: Array) -> bool:
    """Whether torques are without sign: they never become negative although the joints move in both directions.

    Gravity may keep the torque of a joint on one side. So every joint that moves in both directions must have a torque
    that is never negative, and at least half of them a torque that is often near zero.

    Parameters
    ----------
    v, torque : ndarray, shape (K, n)
        Velocities and torques, currents or other efforts.

    Returns
    -------
    bool

    Examples
    --------
    >>> import numpy as np
    >>> v = np.sin(np.linspace(0, 20, 400))[:, None]
    >>> is_unsigned(v, 2 * v), is_unsigned(v, abs(2 * v)), is_unsigned(v, 2 * v + 5)
    (False, True, False)
    """
    moving = np.minimum(np.mean(v > 0, axis=0), np.mean(v < 0, axis=0)) > _BOTH_DIRECTIONS
    moving &= np.ptp(torque, axis=0) > 0
    if not moving.any() or np.any(torque[:, moving] < 0):
        return False
    near = np.mean(torque[:, moving] <= _NEAR_ZERO * torque[:, moving].max(axis=0), axis=0)
    return bool(2 * np.count_nonzero(near > _ROWS) >= near.size)
