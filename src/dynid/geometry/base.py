"""Base geometric parameters: the combinations of geometric errors that measurements show.

    r = J x + ...,    J P has full column rank and J x = J P (P' x + C x_dependent)

The rank is that of the derivatives with the unknowns of the sensors projected out of them. Independent unknowns are
chosen from the tip to the base, so that what is known stands at the joints near the tool.

Sources: Everett, Driels and Mooring, Kinematic Modelling for Robot Calibration (1987), for the number 4 R + 2 P + 6 of
independent parameters with base and tool; Khalil, Gautier and Enguehard, Identifiable Parameters and Optimum
Configurations for Robots Calibration (1991), for the numerical way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.geometry.problem import Problem
from dynid.geometry.unknowns import Unknown, UnknownKind
from dynid.parameters.base import weighted_sum
from dynid.parameters.rank import left_to_right

__all__ = ["BaseGeometry", "base_geometry"]

Array = NDArray[np.float64]

# Share of its length by which a column must differ from combinations of others: far above rounding, far below the
# thousandth by which measured postures make columns differ.
_INDEPENDENT = 1e-7
# Weights below this are rounding.
_ZERO = 1e-6


@dataclass(frozen=True, eq=False)
class BaseGeometry:
    """Combinations of geometric errors that measurements show.

    Attributes
    ----------
    unknowns : tuple of Unknown
        Unknowns of the joints.
    kept : tuple of int
        Those that represent the combinations.
    weights : ndarray, shape (b, K)
        The combinations.
    without_effect : tuple of int
        Unknowns that no measurement depends on, or only as on unknowns of the sensors.
    total : int
        Rank with the unknowns of the sensors.
    """

    unknowns: tuple[Unknown, ...]
    kept: tuple[int, ...]
    weights: Array
    without_effect: tuple[int, ...]
    total: int

    @property
    def count(self) -> int:
        """Number of combinations."""
        return len(self.kept)

    @property
    def expressions(self) -> tuple[str, ...]:
        """Each combination in words: "y of joint4 - 0.33 x of joint5"."""
        out = []
        for row, k in zip(self.weights, self.kept, strict=True):
            others = [j for j in np.argsort(-np.abs(row), kind="stable") if j != k and row[j]]
            out.append(weighted_sum([(row[j], self.unknowns[j].name) for j in (k, *others)]))
        return tuple(out)


def base_geometry(problem: Problem, x: Array | None = None) -> BaseGeometry:
    """Base geometric parameters of measurements at their postures.

    Parameters
    ----------
    problem : Problem
        The measurements.
    x : ndarray, shape (X,), optional
        Unknowns at which derivatives are taken; zero by default.

    Returns
    -------
    BaseGeometry
    """
    x = np.zeros(len(problem.unknowns)) if x is None else x
    J = np.vstack([problem.ties(x)[1], *(r.slope.reshape(-1, len(x)) for r in problem.rows(x))])
    J = np.asarray(np.linalg.qr(J, mode="r"))
    of_joints = np.array([u.kind is not UnknownKind.SENSOR for u in problem.unknowns])
    lengths = np.linalg.norm(J, axis=0)
    J = J / np.where(lengths > 0, lengths, 1.0)
    own, mine = J[:, ~of_joints], J[:, of_joints]
    u, s, _ = np.linalg.svd(own, full_matrices=False)
    u = u[:, s > _INDEPENDENT * max(s.max(initial=0.0), 1e-300)]
    rest = mine - u @ (u.T @ mine)
    scan = list(range(mine.shape[1]))[::-1]
    kept = sorted(left_to_right(rest, scan, _INDEPENDENT))
    weights = np.zeros((len(kept), mine.shape[1]))
    if kept:
        scale = np.where(lengths[of_joints] > 0, lengths[of_joints], 1.0)
        weights = np.linalg.lstsq(rest[:, kept], rest, rcond=None)[0] * scale / scale[kept][:, None]
        size = np.abs(weights * scale[kept][:, None] / scale)
        weights[size < _ZERO] = 0.0
    silent = np.flatnonzero(np.linalg.norm(rest, axis=0) <= _INDEPENDENT)
    return BaseGeometry(
        problem.geometry.unknowns, tuple(kept), weights, tuple(int(k) for k in silent), len(kept) + u.shape[1]
    )
