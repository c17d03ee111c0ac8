"""Predicted torques of a residual, and motion with missing values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import InvalidShape

__all__ = ["Prediction", "fill_missing"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Prediction:
    """Predicted torques along a motion.

    Attributes
    ----------
    torque : array, shape (N, n)
        `rigid` + `learned`, in N m (N for prismatic joints).
    rigid : array, shape (N, n)
        Torque of the rigid model.
    learned : array, shape (N, n)
        Learned torque, faded and bounded.
    std : array, shape (N, n)
        The standard deviation of a measured torque about `torque`; NaN where no variance is computed.
    share : array, shape (N, n)
        Share of the learned torque that was used, 0 to 1.
    valid : array of bool, shape (N,)
        False where q, v or a is not finite. The torque is then that of the rigid model alone, with missing velocities
        and accelerations replaced by zero and missing positions by the last finite ones.
    """

    torque: Array
    rigid: Array
    learned: Array
    std: Array
    share: Array
    valid: NDArray[np.bool_]


def fill_missing(n: int, home: Array, *given: ArrayLike) -> tuple[list[Array], NDArray[np.bool_]]:
    """q, v, a (N, n) with missing values replaced, and which rows (N,) were complete."""
    arrays = [np.atleast_2d(np.array(x, dtype=float)) for x in given]
    shape = (len(arrays[0]), n)
    if any(x.shape != shape for x in arrays):
        raise InvalidShape(f"q, v and a must each be (N, {n}), got {', '.join(str(x.shape) for x in arrays)}")
    finite = [np.isfinite(x) for x in arrays]
    valid = np.all(finite, axis=(0, 2))
    if not valid.all():
        q = np.vstack([home, arrays[0]])
        known = np.vstack([np.ones(n, bool), finite[0]])
        last = np.maximum.accumulate(np.where(known, np.arange(len(q))[:, None], 0), axis=0)
        arrays[0] = np.take_along_axis(q, last, axis=0)[1:]
        arrays[1:] = [np.where(f, x, 0.0) for x, f in zip(arrays[1:], finite[1:], strict=True)]
    return arrays, np.asarray(valid)
