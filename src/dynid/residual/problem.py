"""Regression problem of one joint: features, targets, kernel, noise and basis, all in scaled units."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.residual.features import Features
from dynid.residual.kernel import Kernel
from dynid.residual.noise import Noise, reversal_at

__all__ = ["Problem", "Unfit"]

Array = NDArray[np.float64]

_LENGTHS = (0.03, 300.0)
_AMPLITUDES = (1e-3, 30.0)
_POWERS = (0.1, 100.0)  # of a rational quadratic; beyond it is a squared exponential
_NOISES = (3e-3, 3.0)
_REVERSALS = (-3.0, 3.0)


class Unfit(Exception):
    """The covariance matrix cannot be factorised at these hyper-parameters."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Targets y (N,) at features x (N, d) with kernel, noise and basis columns (N, b), each with a unit prior."""

    kernel: Kernel
    noise: Noise
    x: Array
    y: Array
    basis: Array
    reversal: Array

    @staticmethod
    def of(kernel: Kernel, noise: Noise, features: Features, x: Array, y: Array, basis: Array) -> Problem:
        """The problem with the reversal of the motion taken from its features."""
        return Problem(kernel, noise, x, y, basis, reversal_at(noise, features, x))

    @property
    def size(self) -> int:
        """Number of hyper-parameters of kernel and noise."""
        return self.kernel.size + self.noise.size

    def split(self, theta: Array) -> tuple[Array, Array]:
        """Hyper-parameters of the kernel and of the noise."""
        return theta[: self.kernel.size], theta[self.kernel.size :]

    def noise_variance(self, theta: Array) -> Array:
        """Noise variance (N,) for the hyper-parameters of the noise."""
        return self.noise.variance(theta, self.reversal)

    def noise_gradient(self, theta: Array, outer: Array) -> Array:
        """d F / d theta of the noise from outer = d F / d variance (N,)."""
        return self.noise.gradient(theta, self.reversal, outer)

    def rows(self, index: NDArray[np.intp]) -> Problem:
        """The problem of some samples."""
        return replace(self, x=self.x[index], y=self.y[index], basis=self.basis[index], reversal=self.reversal[index])

    def bounds(self) -> list[tuple[float, float]]:
        """Ranges of the hyper-parameters, as logarithms."""
        out = []
        for part in self.kernel.parts:
            out += [_AMPLITUDES] + [_LENGTHS] * part.scales + [_POWERS] * part.has_power
        out.append(_NOISES)
        logs = [(float(np.log(a)), float(np.log(b))) for a, b in out]
        return logs + [_REVERSALS] * (self.noise.size - 1)

    def start(self) -> Array:
        """Initial hyper-parameters: half of the variance in the kernel, long length scales, power 1, the rest noise."""
        theta = []
        for part in self.kernel.parts:
            theta += [np.log(0.7 / np.sqrt(len(self.kernel.parts)))]
            theta += [np.log(np.sqrt(len(part.columns)))] * part.scales + [0.0] * part.has_power
        return np.array([*theta, np.log(0.5), *[0.0] * (self.noise.size - 1)])
