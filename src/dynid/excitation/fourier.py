"""Truncated Fourier series with exact derivatives.

    q_i(t) = offset_i + sum over l of a_il / (l w) sin(l w t) - b_il / (l w) cos(l w t),    w = 2 pi f

Source: Swevers, Ganseman, Tukel, De Schutter and Van Brussel, Optimal Robot Excitation and Identification (1997).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["fourier", "random_fourier"]

Array = NDArray[np.float64]


def fourier(a: ArrayLike, b: ArrayLike, offset: ArrayLike, frequency: float, t: Array) -> tuple[Array, Array, Array]:
    """q, v, a (N, n) of q = offset + sum a/(lw) sin(lwt) - b/(lw) cos(lwt), with a, b (joint, harmonic), w = 2 pi f."""
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    w = 2 * np.pi * frequency * np.arange(1, a.shape[1] + 1)
    s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    q = np.asarray(offset) + s @ (a / w).T - c @ (b / w).T
    return q, c @ a.T + s @ b.T, c @ (b * w).T - s @ (a * w).T


def random_fourier(
    lower: Array, upper: Array, velocity: Array, period: float, t: Array, seed: int, harmonics: int = 5
) -> tuple[Array, Array, Array]:
    """A random periodic motion (q, v, a) that uses 90 % of the position ranges or 60 % of the velocity limits."""
    rng = np.random.default_rng(seed)
    n = len(lower)
    a, b = rng.normal(size=(2, n, harmonics))
    fine = np.linspace(0.0, period, 500)
    q, v, _ = fourier(a, b, 0.0, 1.0 / period, fine)
    scale = np.minimum(0.9 * (upper - lower) / np.ptp(q, axis=0), 0.6 * velocity / np.abs(v).max(axis=0))
    center = 0.5 * (lower + upper) - 0.5 * scale * (q.max(axis=0) + q.min(axis=0))
    return fourier(a * scale[:, None], b * scale[:, None], center, 1.0 / period, t)
