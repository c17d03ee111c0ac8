"""Covariance functions: sums of stationary parts, each over some columns of the features.

With s the sum of squared scaled differences and r = sqrt(s):

    se           exp(-s / 2)                               exponential          exp(-r)
    matern32     (1 + sqrt(3) r) exp(-sqrt(3) r)           rational-quadratic   (1 + s / (2 power))^-power
    matern52     (1 + sqrt(5) r + 5 s / 3) exp(-sqrt(5) r)

Source: Rasmussen and Williams, Gaussian Processes for Machine Learning (2006), chapter 4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from dynid.errors import UnknownName
from dynid.residual.features import Features
from dynid.residual.layout import SHAPES

__all__ = ["Kernel", "Part", "parse_kernel"]

Array = NDArray[np.float64]

# Ending of a shape's name for one length scale.
_ONE = "-iso"
# Distances of an exponential, in length scales, below which it has no slope: there the kink leaves nothing to follow.
_KINK = 1e-7


@dataclass(frozen=True)
class Part:
    """amplitude^2 g(s) with s the sum of squared differences over `columns`, each divided by its length scale.

    All columns share one length scale, or have one each with `ard` (automatic relevance determination).
    Hyper-parameters: log amplitude, log length scales, and log power of a rational quadratic.
    """

    columns: tuple[int, ...]
    shape: str
    ard: bool

    @property
    def size(self) -> int:
        """Number of hyper-parameters."""
        return 1 + self.scales + self.has_power

    @property
    def scales(self) -> int:
        """Number of length scales."""
        return len(self.columns) if self.ard else 1

    @property
    def has_power(self) -> bool:
        """Whether the shape has a power, the last hyper-parameter."""
        return self.shape == "rational-quadratic"

    def lengths(self, theta: Array) -> Array:
        """Length scale of each column."""
        return np.broadcast_to(np.exp(theta[1 : 1 + self.scales]), (len(self.columns),))

    def power(self, theta: Array) -> float:
        """The power of a rational quadratic; 1, and without effect, of other shapes."""
        return float(np.exp(theta[-1])) if self.has_power else 1.0

    def scaled(self, theta: Array, x: Array) -> Array:
        """The columns over their length scales."""
        return x[:, self.columns] / self.lengths(theta)


@dataclass(frozen=True)
class Kernel:
    """A sum of parts; the hyper-parameters are those of the parts, one after the other."""

    name: str
    parts: tuple[Part, ...]

    @property
    def size(self) -> int:
        """Number of hyper-parameters."""
        return sum(part.size for part in self.parts)

    @property
    def columns(self) -> tuple[int, ...]:
        """All columns that at least one part depends on."""
        return tuple(sorted({c for part in self.parts for c in part.columns}))

    def split(self, theta: Array) -> list[Array]:
        """Hyper-parameters of every part."""
        return np.split(theta, np.cumsum([part.size for part in self.parts])[:-1])

    def variance(self, theta: Array) -> float:
        """k(x, x), the same everywhere."""
        return float(sum(np.exp(2 * t[0]) for t in self.split(theta)))

    def variance_gradient(self, theta: Array) -> Array:
        """d k(x, x) / d theta."""
        out = np.zeros(self.size)
        starts = np.cumsum([0, *(part.size for part in self.parts)])[:-1]
        out[starts] = [2 * np.exp(2 * t[0]) for t in self.split(theta)]
        return out

    def matrix(self, theta: Array, x: Array, z: Array | None = None) -> Array:
        """k (N, M) between rows of x and of z, or of x with itself."""
        out = None
        for part, t in zip(self.parts, self.split(theta), strict=True):
            k = np.exp(2 * t[0]) * _shape(part, t, _distances(part, t, x, z))[0]
            out = k if out is None else out + k
        assert out is not None
        return out

    def gradient(self, theta: Array, x: Array, z: Array | None, outer: Array) -> Array:
        """d F / d theta from outer = d F / d k (N, M)."""
        return self.gradients(theta, x, z, outer, False)[0]

    def gradients(
        self, theta: Array, x: Array, z: Array | None, outer: Array, places: bool = True
    ) -> tuple[Array, Array]:
        """d F / d theta, and d F / d z (M, d) with `places`."""
        w = x if z is None else z
        pieces, moved = [], np.zeros_like(w) if places else np.zeros((0, 0))
        for part, t in zip(self.parts, self.split(theta), strict=True):
            amplitude = np.exp(2 * t[0])
            value, slope, bend = _shape(part, t, _distances(part, t, x, z))
            value *= outer
            slope *= amplitude * outer
            columns, lengths = list(part.columns), part.lengths(t)
            a, b = x[:, columns], w[:, columns]
            rows, sums = slope.sum(axis=1), slope.sum(axis=0)
            weighted = slope.T @ a
            per = (a**2).T @ rows + (b**2).T @ sums - 2 * np.einsum("jm,jm->m", b, weighted)
            per *= -2 / lengths**2
            last = [] if bend is None else [amplitude * np.sum(bend * outer)]
            pieces.append(np.concatenate([[2 * amplitude * value.sum()], per if part.ard else [per.sum()], last]))
            if places:
                moved[:, columns] += 2 * (sums[:, None] * b - weighted) / lengths**2
        return np.concatenate(pieces), moved


def parse_kernel(name: str, features: Features, joint: int) -> Kernel:
    """A kernel from words joined by '+', for one joint.

    Over positions, velocities and accelerations of all joints:

    - se: squared exponential with one length scale;
    - ard: squared exponential with one length scale per column;
    - matern32, matern52: Matern with one length scale per column;
    - exponential: exponential, the Matern of order 1/2, with one length scale per column;
    - rational-quadratic: rational quadratic with one length scale per column and a power;
    - matern32-iso, matern52-iso, exponential-iso, rational-quadratic-iso: the same with one length scale.

    Squared exponential over fewer columns, with one length scale each:

    - friction: velocity and direction of motion of the joint itself;
    - own: position, velocity and direction of the joint itself;
    - load: positions of all joints, velocity and direction of the joint itself, for load-dependent friction.
    """
    own = {"friction": features.velocities(joint), "own": features.own(joint), "load": features.load(joint)}
    whole = {"se": ("se", False), "ard": ("se", True)}
    for shape in SHAPES:
        if shape not in whole:
            whole |= {shape: (shape, True), shape + _ONE: (shape, False)}
    parts = []
    for word in name.split("+"):
        if word in own:
            parts.append(Part(own[word], "se", True))
        elif word in whole:
            parts.append(Part(features.motion, *whole[word]))
        else:
            raise UnknownName(f"unknown kernel '{word}': use {', '.join([*whole, *own])}, joined by '+'", "kernel")
    return Kernel(name, tuple(parts))


def _distances(part: Part, theta: Array, x: Array, z: Array | None) -> Array:
    a = part.scaled(theta, x)
    if part.shape == "exponential":
        # Its kink needs the distance of close samples to more digits than a difference of squares has.
        return np.asarray(cdist(a, a if z is None else part.scaled(theta, z), "sqeuclidean"))
    if z is None:
        square = np.einsum("ij,ij->i", a, a)
        s = a @ (-2 * a.T)
        s += square
        s += square[:, None]
        np.fill_diagonal(s, 0.0)
    else:
        b = part.scaled(theta, z)
        s = a @ (-2 * b.T)
        s += np.einsum("ij,ij->i", b, b)
        s += np.einsum("ij,ij->i", a, a)[:, None]
    return np.maximum(s, 0.0, out=s)


def _shape(part: Part, theta: Array, s: Array) -> tuple[Array, Array, Array | None]:
    """Values of g(s) and dg/ds, and of dg/d log power where there is one."""
    if part.shape == "se":
        s *= -0.5
        g = np.exp(s, out=s)
        return g, -0.5 * g, None
    if part.has_power:
        power = part.power(theta)
        s /= 2 * power
        u = 1 + s
        g = np.exp(-power * np.log1p(s))
        return g, -0.5 * g / u, power * g * (s / u - np.log1p(s))
    r = np.sqrt(s)
    if part.shape == "exponential":
        g = np.exp(-r)
        return g, np.where(r > _KINK, -0.5 * g / np.maximum(r, _KINK), 0.0), None
    if part.shape == "matern32":
        r *= np.sqrt(3)
        e = np.exp(-r)
        return (1 + r) * e, -1.5 * e, None
    r *= np.sqrt(5)
    e = np.exp(-r)
    return (1 + r + r**2 / 3) * e, -5 / 6 * (1 + r) * e, None
