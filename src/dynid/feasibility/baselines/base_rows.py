"""Ordinary least squares on some of the base parameters, from rows over the standard ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.errors import Mismatch, TooFew
from dynid.feasibility.baselines.result import checked_problem
from dynid.robot.inertia import TENSOR_INDEX, inertia_from_com, inertia_to_com

if TYPE_CHECKING:
    from dynid.parameters.base import BaseParameters

__all__ = ["BaseFit", "base_fit", "base_rows", "physical_of", "standard_of", "tensor_of"]

Array = NDArray[np.float64]


# Largest part of the rows, relative to their norm, that may depend on more than the base parameters.
_SPANNED = 1e-6


class BaseFit(NamedTuple):
    """Base parameters (b,), zero where they are not kept, and standard deviations (kept,) relative to the values."""

    beta: Array
    relative: Array
    residual: float


def base_rows(base: BaseParameters, R: ArrayLike, z: ArrayLike) -> tuple[Array, Array, Array]:
    """Checked rows over the standard (k, p) and the base parameters (k, b), and targets (k,)."""
    rows, target = checked_problem(base.robot, R, z)
    own = rows[:, list(base.kept)]
    if np.linalg.norm(rows - own @ base.matrix) > _SPANNED * np.linalg.norm(rows):
        raise Mismatch(f"the rows are not those of the base parameters of robot '{base.robot.name}'", "R")
    if len(rows) <= base.count:
        raise TooFew(f"{base.count} base parameters need more rows than that, got {len(rows)}", "R")
    return rows, own, target


def base_fit(rows: Array, target: Array, kept: list[int]) -> BaseFit:
    """Least squares on the kept base parameters; the noise is that of the residual."""
    q, r = scipy.linalg.qr(rows[:, kept], mode="economic")
    values = scipy.linalg.solve_triangular(r, q.T @ target)
    residual = float(np.linalg.norm(target - rows[:, kept] @ values))
    noise = residual / np.sqrt(len(rows) - len(kept))
    std = noise * np.linalg.norm(scipy.linalg.solve_triangular(r, np.eye(len(kept))), axis=1)
    beta = np.zeros(rows.shape[1])
    beta[kept] = values
    return BaseFit(beta, std / np.maximum(np.abs(values), 1e-300), residual)


# Bodies by mass, centre of mass and tensor about it, in the order of the standard parameters.


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
