"""Friction that builds up over a distance after each reversal: the joint bends its contacts before it slides.

    df/dq = (sign(v) - f) sign(v) / distance

Source: Dahl, A Solid Friction Model (1968), with an exponent of one; Armstrong-Helouvry, Dupont and Canudas de Wit
(1994) for its place among friction models.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

__all__ = ["PRESLIDING_DISTANCES", "friction_state"]

Array = NDArray[np.float64]

# Distances (rad) that are tried: gears and bearings of arms take a tenth of a degree or two to slide.
PRESLIDING_DISTANCES = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032)


def friction_state(q: Array, v: Array, distance: float) -> Array:
    """Share of Coulomb friction that acts, from -1 to 1, by the law of Dahl.

    Parameters
    ----------
    q, v : ndarray, shape (N, joint)
        Positions and velocities, in order of time; of v only the signs count.
    distance : float
        Distance (rad or m) in which the difference to full friction falls to 1/e.

    Returns
    -------
    ndarray, shape (N, joint)

    Examples
    --------
    >>> import numpy as np
    >>> q = np.array([[0.0], [0.01], [0.02], [0.015]])
    >>> friction_state(q, np.array([[1.0], [1.0], [1.0], [-1.0]]), 0.01)[:, 0].round(3).tolist()
    [1.0, 1.0, 1.0, 0.213]
    """
    out = np.sign(v)
    for j in range(q.shape[1]):
        turns = np.flatnonzero(out[1:, j] != out[:-1, j]) + 1
        edges = [0, *turns.tolist(), len(q)]
        state = float(out[0, j])
        for start, stop in pairwise(edges):
            along, side = q[start:stop, j], float(out[start, j])
            if side == 0.0:  # at rest friction stays
                out[start:stop, j] = state
                continue
            gone = np.abs(along - q[max(start - 1, 0), j])
            out[start:stop, j] = side - (side - state) * np.exp(-gone / distance)
            state = float(out[stop - 1, j])
    return out
