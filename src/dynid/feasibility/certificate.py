"""Proof that no possible robot has given base parameters, which anyone can check by adding up.

Every constraint b says C_b(pi) lies in a cone, so its product with a multiplier Z_b of the dual cone is not negative,
and neither is the sum of all products. Multipliers for which that sum depends on pi only through beta = K pi, and is
negative at the beta in question, prove that it is impossible.
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

# A multiplier below this share of the largest does not belong to the reasons.
_COUNTS = 1e-3
_RANK = 1e-12
_PROJECTIONS = 100


@dataclass(frozen=True, eq=False)
class Certificate:
    """Multipliers, one a constraint, and what their sum comes to.

    `value` is the sum of products for every robot with these base parameters: it is negative, though no possible robot
    has a negative one. `defect` is what rounding leaves of the dependence on other parameters, in units of their
    typical size, or of what the given values need at least: a possible robot would need parameters `reach` times that
    size to escape.
    """

    multipliers: tuple[Array, ...]
    value: float
    defect: float
    reasons: tuple[str, ...]

    @property
    def reach(self) -> float:
        return -self.value / self.defect if self.defect > 0 else np.inf

    @property
    def holds(self) -> bool:
        """Whether the proof covers all robots with parameters up to a hundred times that size."""
        return self.value < 0 and self.reach > 100

    @staticmethod
    def of(
        possible: FeasibleSet, base: BaseParameters, beta: Array, rounding: float, duals: Sequence[Array]
    ) -> Certificate:
        """Put a solver's multipliers exactly into their dual cones and add everything up."""
        blocks = possible.blocks
        multipliers = _repaired(possible, base, duals)
        constant = sum(float(b.constant @ z) for b, z in zip(blocks, multipliers, strict=True))
        slope = np.zeros(len(possible.scale))
        for block, z in zip(blocks, multipliers, strict=True):
            slope += block.matrix.T @ z
        scaled = slope * possible.scale
        # slope = K' y as far as possible; what is left depends on more than beta.
        K = base.matrix * possible.scale[: possible.size]
        y = np.linalg.lstsq(K.T, scaled[: possible.size], rcond=None)[0]
        left = np.concatenate([scaled[: possible.size] - K.T @ y, scaled[possible.size :]])
        value = constant + float(y @ beta) + rounding * float(np.abs(y).sum())
        weight = np.array([float(z @ block_unit(b)) for b, z in zip(blocks, multipliers, strict=True)])
        order = np.argsort(-np.abs(weight), kind="stable")
        reasons = tuple(blocks[i].label for i in order if abs(weight[i]) > _COUNTS * abs(weight[order[0]]))
        size = max(1.0, float(np.abs(np.linalg.lstsq(K, beta, rcond=None)[0]).max()))
        return Certificate(tuple(multipliers), value, size * float(np.abs(left).sum()), reasons)


def block_unit(block: Block) -> Array:
    """The element of the cone that a block's slack is measured in: its own, or one in SI units."""
    if block.unit is not None:
        return block.unit
    return svec(np.eye(len(smat(block.constant)))) if block.cone == "psd" else np.ones(block.rows)


def _repaired(possible: FeasibleSet, base: BaseParameters, duals: Sequence[Array]) -> list[Array]:
    """Multipliers inside their cones whose sum depends on beta alone, up to rounding: projections in turn."""
    dependent = len(base.dependent)
    free = base.join(np.zeros((dependent, base.count)), np.eye(dependent)).T
    directions = scipy.linalg.block_diag(free, np.eye(possible.extra))
    directions = directions / np.linalg.norm(directions / possible.scale[:, None], axis=0)
    weights = [cone_scale(block) for block in possible.blocks]
    rows = np.vstack([(b.matrix @ directions) / w[:, None] for b, w in zip(possible.blocks, weights, strict=True)])
    basis, strength, _ = np.linalg.svd(rows, full_matrices=False)
    basis = basis[:, strength > _RANK * strength[0]] if len(strength) else basis
    cuts = np.cumsum([b.rows for b in possible.blocks])[:-1]
    scaled = np.concatenate([z * w for z, w in zip(duals, weights, strict=True)])
    for _ in range(_PROJECTIONS):
        scaled = scaled - basis @ (basis.T @ scaled)
        parts = [_inside(b.cone, z) for b, z in zip(possible.blocks, np.split(scaled, cuts), strict=True)]
        moved = np.linalg.norm(np.concatenate(parts) - scaled)
        scaled = np.concatenate(parts)
        if moved <= 1e-15 * np.linalg.norm(scaled):
            break
    return [z / w for z, w in zip(parts, weights, strict=True)]


def cone_scale(block: Block) -> Array:
    """Row weights (rows,) that keep the cone as it is and bring the block's unit to one."""
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
