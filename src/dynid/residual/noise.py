"""Noise of a measured torque: constant, or larger where a joint reverses its motion.

    variance = exp(2 t0),    or exp(2 t0 + 2 t1 (1 - s^2)) with s = tanh(v / velocity_scale)

Source: own model; Goldberg, Williams and Bishop, Regression with Input-Dependent Noise (1998), for the idea.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.errors import UnknownName, named
from dynid.residual.features import Features

__all__ = ["Noise", "parse_noise", "reversal_at"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Noise:
    """Variance exp(2 t0), or exp(2 t0 + 2 t1 (1 - s^2)) with s = tanh(v / velocity_scale) the direction of motion.

    The second form is largest at a reversal, where friction is modelled worst. `column` is the feature that holds the
    direction of motion, or -1 for even noise.
    """

    column: int = -1

    @property
    def size(self) -> int:
        """Number of hyper-parameters."""
        return 1 if self.column < 0 else 2

    def variance(self, theta: Array, reversal: Array) -> Array:
        """Variance (N,), scaled."""
        log = 2 * theta[0] + (2 * theta[1] * reversal if self.size == 2 else 0.0 * reversal)
        return np.asarray(np.exp(log))

    def gradient(self, theta: Array, reversal: Array, outer: Array) -> Array:
        """d F / d theta from outer = d F / d variance (N,)."""
        d = 2 * self.variance(theta, reversal) * outer
        return np.array([d.sum(), d @ reversal]) if self.size == 2 else np.array([d.sum()])


def reversal_at(noise: Noise, features: Features, x: Array) -> Array:
    """1 - s^2 (N,) at scaled features x (N, d), 0 for even noise."""
    c = noise.column
    if c < 0:
        return np.zeros(len(x))
    return np.asarray(1.0 - (x[:, c] * features.scale[c] + features.center[c]) ** 2)


def parse_noise(name: str, features: Features, joint: int) -> Noise:
    """Noise model by name: "even" or "reversal"."""
    if name == "even":
        return Noise()
    if name == "reversal":
        return Noise(features.count - features.n + joint)
    raise UnknownName(f"{named('noise')} must be 'even' or 'reversal', got '{name}'")
