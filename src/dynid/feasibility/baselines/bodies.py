"""Bodies by mass, centre of mass and tensor about it, in the order of the standard parameters; their derivatives."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.robot.inertia import inertia_from_com, inertia_to_com

__all__ = ["ENTRIES", "physical_of", "standard_of", "standard_slope", "tensor_of"]

Array = NDArray[np.float64]

# Row and column of Ixx, Ixy, Iyy, Ixz, Iyz, Izz.
ENTRIES = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))


def tensor_of(entries: Array) -> Array:
    """The tensor (3, 3) of its six entries."""
    out = np.empty((3, 3))
    for value, (i, j) in zip(entries, ENTRIES, strict=True):
        out[i, j] = out[j, i] = value
    return out


def physical_of(pi: Array, bodies: list[int]) -> Array:
    """Parameters (p,) with mass, centre and tensor about it in place of the ten standard ones of each link."""
    out = np.array(pi)
    for c in bodies:
        mass, com, tensor = inertia_to_com(pi[c : c + 10])
        out[c : c + 10] = [mass, *com, *(tensor[i, j] for i, j in ENTRIES)]
    return out


def standard_of(mu: Array, bodies: list[int]) -> Array:
    """Standard parameters (p,) of physical ones."""
    out = np.array(mu)
    for c in bodies:
        out[c : c + 10] = inertia_from_com(mu[c], mu[c + 1 : c + 4], tensor_of(mu[c + 4 : c + 10]))
    return out


def standard_slope(mu: Array) -> Array:
    """Jacobian (10, 10) of a link's standard parameters with respect to its physical ones."""
    mass, com = mu[0], mu[1:4]
    out = np.eye(10)
    steiner = (com @ com) * np.eye(3) - np.outer(com, com)
    out[1:4, 0], out[4:, 0] = com, [steiner[i, j] for i, j in ENTRIES]
    for k in range(3):
        unit = np.eye(3)[k]
        change = mass * (2.0 * com[k] * np.eye(3) - np.outer(unit, com) - np.outer(com, unit))
        out[1:4, 1 + k], out[4:, 1 + k] = mass * unit, [change[i, j] for i, j in ENTRIES]
    return out
