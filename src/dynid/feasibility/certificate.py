"""Infeasibility certificates: proofs that no feasible robot has given base parameters.

Every constraint b requires C_b(pi) to lie in a cone, so its product with a multiplier Z_b of the dual cone is not
negative, and neither is the sum of all products. If that sum depends on pi only through beta = K pi and is negative at
the given beta, then these base parameters are infeasible. The proof is checked by adding up.

    sum of <Z_b, C_b(pi)> = constant + y . K pi < 0 at K pi = beta,    Z_b in the dual cones.

Sources: Boyd and Vandenberghe, Convex Optimization (2004), sections 5.8 and 5.9 (theorems of alternatives); Sousa
(2014), section 3.3, for the test of base parameters as a semidefinite program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.feasibility.cone import Block, smat, svec, svec_indices
from dynid.feasibility.sets import FeasibleSet

if TYPE_CHECKING:
    from dynid.parameters.base import BaseParameters

__all__ = ["Certificate", "block_unit", "cone_scale"]

Array = NDArray[np.float64]

# Multipliers below this share of the largest one are not listed among the reasons.
_COUNTS = 1e-3
_RANK = 1e-12
_PROJECTIONS = 100


@dataclass(frozen=True, eq=False)
class Certificate:
    """Proof that base parameters are infeasible: one multiplier per constraint.

    Attributes
    ----------
    multipliers : tuple of ndarray
        Elements of the dual cones, one per block of the feasible set.
    value : float
        Sum of products at the given base parameters. It is negative, while it is not negative for a feasible robot.
    defect : float
        Remaining dependence on other parameters due to rounding errors, in units of their typical size or of the size
        that the given values require.
    reasons : tuple of str
        Constraints with the largest multipliers, in descending order.
    """

    multipliers: tuple[Array, ...]
    value: float
    defect: float
    reasons: tuple[str, ...]

    @property
    def reach(self) -> float:
        """Size of the parameters, in multiples of their typical size, beyond which the proof does not apply."""
        return -self.value / self.defect if self.defect > 0 else np.inf

    @property
    def holds(self) -> bool:
        """Whether the proof applies to all robots with parameters up to a hundred times the typical size."""
        return self.value < 0 and self.reach > 100

    @staticmethod
    def of(
        feasible: FeasibleSet, base: BaseParameters, beta: Array, rounding: float, duals: Sequence[Array]
    ) -> Certificate:
        """Project the multipliers of a solver onto the dual cones and compute the sum of products."""
        blocks = feasible.blocks
        multipliers = _repaired(feasible, base, duals)
        constant = sum(float(b.constant @ z) for b, z in zip(blocks, multipliers, strict=True))
        slope = np.zeros(len(feasible.scale))
        for block, z in zip(blocks, multipliers, strict=True):
            slope += block.matrix.T @ z
        scaled = slope * feasible.scale
        # slope = K' y in the least-squares sense; the remainder depends on more than beta.
        K = base.matrix * feasible.scale[: feasible.size]
        y = np.linalg.lstsq(K.T, scaled[: feasible.size], rcond=None)[0]
        left = np.concatenate([scaled[: feasible.size] - K.T @ y, scaled[feasible.size :]])
        value = constant + float(y @ beta) + rounding * float(np.abs(y).sum())
        weight = np.array([float(z @ block_unit(b)) for b, z in zip(blocks, multipliers, strict=True)])
        order = np.argsort(-np.abs(weight), kind="stable")
        reasons = tuple(blocks[i].label for i in order if abs(weight[i]) > _COUNTS * abs(weight[order[0]]))
        size = max(1.0, float(np.abs(np.linalg.lstsq(K, beta, rcond=None)[0]).max()))
        return Certificate(tuple(multipliers), value, size * float(np.abs(left).sum()), reasons)


def block_unit(block: Block) -> Array:
    """The element of the cone in which the slack of a block is measured: its own unit, or one in SI units."""
    if block.unit is not None:
        return block.unit
    return svec(np.eye(len(smat(block.constant)))) if block.cone == "psd" else np.ones(block.rows)


def _repaired(feasible: FeasibleSet, base: BaseParameters, duals: Sequence[Array]) -> list[Array]:
    """Multipliers inside their cones whose sum depends on beta alone, up to rounding: alternating projections."""
    dependent = len(base.dependent)
    free = base.join(np.zeros((dependent, base.count)), np.eye(dependent)).T
    directions = scipy.linalg.block_diag(free, np.eye(feasible.extra))
    directions = directions / np.linalg.norm(directions / feasible.scale[:, None], axis=0)
    weights = [cone_scale(block) for block in feasible.blocks]
    rows = np.vstack([(b.matrix @ directions) / w[:, None] for b, w in zip(feasible.blocks, weights, strict=True)])
    basis, strength, _ = np.linalg.svd(rows, full_matrices=False)
    basis = basis[:, strength > _RANK * strength[0]] if len(strength) else basis
    cuts = np.cumsum([b.rows for b in feasible.blocks])[:-1]
    scaled = np.concatenate([z * w for z, w in zip(duals, weights, strict=True)])
    for _ in range(_PROJECTIONS):
        scaled = scaled - basis @ (basis.T @ scaled)
        parts = [_inside(b.cone, z) for b, z in zip(feasible.blocks, np.split(scaled, cuts), strict=True)]
        moved = np.linalg.norm(np.concatenate(parts) - scaled)
        scaled = np.concatenate(parts)
        if moved <= 1e-15 * np.linalg.norm(scaled):
            break
    return [z / w for z, w in zip(parts, weights, strict=True)]


def cone_scale(block: Block) -> Array:
    """Row weights (rows,) that preserve the cone and scale the unit of the block to one."""
    if block.cone == "zero":
        return np.ones(block.rows)
    unit = block_unit(block)
    if block.cone == "nonnegative":
        return unit
    root = np.sqrt(np.diag(smat(unit)))
    rows, columns, _ = svec_indices(len(root))
    return root[rows] * root[columns]


def _inside(cone: str, dual: Array) -> Array:
    """The nearest element of the dual cone."""
    if cone == "nonnegative":
        return np.maximum(dual, 0.0)
    if cone == "psd":
        values, vectors = np.linalg.eigh(smat(dual))
        return svec((vectors * np.maximum(values, 0.0)) @ vectors.T)
    return dual
