"""Velocities and accelerations of samples as they arrive, with a delay of some samples."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import InvalidValue, UnknownName

__all__ = ["METHODS", "RunningDerivatives"]

Array = NDArray[np.float64]

# A time step this many times the last one is a gap; derivatives do not extend over it.
_GAP = 3.0
# Weights of a window of samples, one second apart, for the derivative at its middle.
METHODS: dict[str, Callable[[], Array]] = {
    "savgol": lambda: np.asarray(scipy.signal.savgol_coeffs(9, 3, deriv=1, use="dot")),
    "central5": lambda: np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / 12.0,
    "central": lambda: np.array([-0.5, 0.0, 0.5]),
}


class RunningDerivatives:
    """Derivatives over sliding windows of positions and of velocities: with windows of N the delay is N - 1 samples.

    A floating base comes first in q: its position is differentiated in the world frame, its rotation relative to the
    middle of the window.
    """

    def __init__(self, floating: bool, method: str = "savgol") -> None:
        if method not in METHODS:
            raise UnknownName(f"derivative '{method}' is unknown: use {', '.join(METHODS)}", "derivative")
        self._floating, self._weights = floating, METHODS[method]()
        self._first: deque[tuple[float, Array]] = deque(maxlen=len(self._weights))
        self._second: deque[tuple[float, Array, Array]] = deque(maxlen=len(self._weights))

    def push(self, t: float, q: Array) -> tuple[float, Array, Array, Array] | None:
        """Add a sample; returns the delayed sample t, q, v, a, or None while the windows fill."""
        first, second, middle = self._first, self._second, len(self._weights) // 2
        if len(first) > 1 and t - first[-1][0] > _GAP * (first[-1][0] - first[-2][0]):
            first.clear()
            second.clear()
        if self._floating:
            q = q.copy()
            size = np.linalg.norm(q[3:7])
            if not size > 0:
                raise InvalidValue(f"the quaternion of the base at {t:g} s is zero")
            q[3:7] /= size
        first.append((t, q))
        if len(first) < len(self._weights):
            return None
        window = np.array([x for _, x in first])
        second.append((first[middle][0], window[middle], self._slope(window, first[-1][0] - first[0][0])))
        if len(second) < len(self._weights):
            return None
        at, posture, velocity = second[middle]
        rate = (len(second) - 1) / (second[-1][0] - second[0][0])
        a = rate * (self._weights @ np.array([x for _, _, x in second]))
        if not self._floating:
            return at, posture, velocity, a
        v = velocity.copy()
        turn = _matrix(posture[3:7])
        v[:3], a[:3] = velocity[:3] @ turn, a[:3] @ turn
        a[:3] -= _cross(v[3:6], v[:3])
        return at, posture, v, a

    def _slope(self, window: Array, seconds: float) -> Array:
        """Velocity in the middle of a window; of a floating base linear in the world, angular in the base frame."""
        rate = (len(window) - 1) / seconds
        if not self._floating:
            return np.asarray(rate * (self._weights @ window))
        out = np.empty(window.shape[1] - 1)
        out[:3] = self._weights @ window[:, :3]
        out[3:6] = self._weights @ _seen_from(window[len(window) // 2, 3:7], window[:, 3:7])
        out[6:] = self._weights @ window[:, 7:]
        return np.asarray(rate * out)


def _seen_from(own: Array, others: Array) -> Array:
    """Rotation vectors (N, 3) from one unit quaternion (x, y, z, w) to others (N, 4)."""
    x, y, z, w = own
    # conj(own) * other, written as a matrix.
    back = np.array([[w, z, -y, -x], [-z, w, x, -y], [y, -x, w, -z], [x, y, z, w]])
    p = others @ back.T
    p = np.where(p[:, 3:] < 0, -p, p)
    sine = np.sqrt(np.sum(p[:, :3] ** 2, axis=1))
    small = sine < 1e-9
    angle = 2.0 * np.arctan2(sine, p[:, 3])
    return np.asarray(p[:, :3] * np.where(small, 2.0, angle / np.where(small, 1.0, sine))[:, None])


def _matrix(quaternion: Array) -> Array:
    x, y, z, w = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def _cross(a: Array, b: Array) -> Array:
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])
