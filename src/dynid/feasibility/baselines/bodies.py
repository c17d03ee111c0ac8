"""Bodies by mass, centre of mass and tensor about it, in the order of the standard parameters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.robot.inertia import TENSOR_INDEX, inertia_from_com, inertia_to_com

__all__ = ["physical_of", "standard_of", "tensor_of"]

Array = NDArray[np.float64]


def tensor_of(entries: Array) -> Array:
    """The tensor (3, 3) of its six entries."""
    out = np.empty((3, 3))
    for value, (i, j) in zip(entries, TENSOR_INDEX, strict=True):
        out[i, j] = out[j, i] = value
    return out


def physical_of(pi: Array, bodies: list[int]) -> Array:
    """Parameters (p,) with mass, centre and tensor about it in place of the ten standard ones of each link."""
    out = np.array(pi)
    for c in bodies:
        mass, com, tensor = inertia_to_com(pi[c : c + 10])
        out[c : c + 10] = [mass, *com, *(tensor[i, j] for i, j in TENSOR_INDEX)]
    return out


def standard_of(mu: Array, bodies: list[int]) -> Array:
    """Standard parameters (p,) of physical ones."""
    out = np.array(mu)
    for c in bodies:
        out[c : c + 10] = inertia_from_com(mu[c], mu[c + 1 : c + 4], tensor_of(mu[c + 4 : c + 10]))
    return out
