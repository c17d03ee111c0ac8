"""How far two results are apart, on the scale of the results."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def difference(ours: ArrayLike, theirs: ArrayLike) -> float:
    """Largest difference of two arrays of one shape, relative to the largest entry of `theirs`.

    Quantities of the random robots are of order one and more in SI units; where one vanishes (the torque of a
    joint along gravity) the difference is taken as it is.
    """
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape, f"shapes differ: {ours.shape} and {theirs.shape}"
    assert np.all(np.isfinite(ours))
    return float(np.abs(ours - theirs).max(initial=0.0) / max(1.0, np.abs(theirs).max(initial=0.0)))
