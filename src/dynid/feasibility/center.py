"""The most central robot with given base parameters: as far as possible from every boundary at once.

The analytic centre maximises the sum of log det over all matrix constraints and of log over all linear ones. It has no
unit and does not depend on the frame or the scale of any link. The sum is self-concordant, so Newton's method finds its
maximum to rounding from any point inside (Nesterov and Nemirovski 1994).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from threadpoolctl import threadpool_limits

from dynid.errors import DataError, DynidError
from dynid.feasibility.certificate import block_unit
from dynid.feasibility.cone import Block, ConeProgram, smat
from dynid.feasibility.constraints import Constraints
from dynid.feasibility.queries import is_feasible
from dynid.feasibility.sets import FeasibleSet, feasible_set
from dynid.robot.inertia import INERTIAL_SYMBOLS
from dynid.robot.parts import checked

if TYPE_CHECKING:
    from dynid.parameters.base import BaseParameters

__all__ = ["analytic_center"]

Array = NDArray[np.float64]

_RANK = 1e-10
_ROUNDING = 1e-12
# Margin, in units of each constraint, below which base parameters leave no room for a centre.
_ROOM = 1e-7
# A way this many typical sizes long never ends.
_FAR = 1e8
_ITERATIONS = 100
# Newton's decrement at which the centre is found: the sum is then half its square from its maximum.
_DECREMENT = 1e-7


def analytic_center(base: BaseParameters, beta: ArrayLike | None, constraints: Constraints = "full") -> Array:
    """Standard parameters (p,) with base values beta (b,), as far inside all constraints as possible.

    `beta` None takes the robot's own. Parameters that no torque and no constraint shows keep their a-priori values.
    Base parameters seldom bound all masses and sizes: without constraints that do there is no centre, and the error
    says which parameters run away.
    """
    given = base.values() if beta is None else beta
    values = checked(given, (base.count,), f"base parameters of robot '{base.robot.name}'", DataError)
    possible = feasible_set(base.robot, constraints)
    with threadpool_limits(1, "blas"):  # small matrices: more threads only get in each other's way
        room = _Room.of(possible, base, values)
        start = room.inside()
        if start is None:
            raise DynidError(_no_room(base, values, constraints))
        end, found = _newton(room, start)
    if not found:
        raise DynidError(_endless(possible, room.directions @ (end - start)))
    return np.asarray((room.offset + room.directions @ end)[: possible.size])


@dataclass(frozen=True, eq=False)
class _Room:
    """All unknowns x = offset + directions @ y that have the base values; blocks are over y."""

    possible: FeasibleSet
    offset: Array
    directions: Array
    blocks: tuple[Block, ...]

    @staticmethod
    def of(possible: FeasibleSet, base: BaseParameters, beta: Array) -> _Room:
        scale = possible.scale
        equal = [b for b in possible.blocks if b.cone == "zero"]
        cones = [b for b in possible.blocks if b.cone != "zero"]
        if not cones:
            raise DataError("a centre needs constraints to be in the middle of, such as full")
        torque = np.column_stack([base.matrix, np.zeros((base.count, possible.extra))])
        rows = np.vstack([torque, *(b.matrix.toarray() for b in equal)])
        target = np.concatenate([beta, *(-b.constant for b in equal)])
        prior = np.concatenate([base.robot.parameters, np.zeros(possible.extra)])
        size = np.linalg.norm(rows * scale, axis=1)
        left, strength, right = np.linalg.svd(rows * scale / size[:, None])
        rank = int(np.sum(strength > _RANK * strength[0]))
        miss = (target - rows @ prior) / size
        found = left[:, :rank].T @ miss
        if np.linalg.norm(miss - left[:, :rank] @ found) > _ROOM * np.linalg.norm(target / size):
            raise DynidError(f"base parameters of '{base.robot.name}' contradict an equality among the constraints")
        offset = prior + scale * (right[:rank].T @ (found / strength[:rank]))
        free = scale[:, None] * right[rank:].T
        # Directions that no constraint sees stay where they are.
        seen = np.vstack([(b.matrix @ free) / np.abs(block_unit(b)).max() for b in cones])
        _, strength, right = np.linalg.svd(seen, full_matrices=False)
        directions = free @ right[: int(np.sum(strength > _RANK * strength.max(initial=0.0)))].T
        return _Room(
            possible, offset, directions, tuple(_without_rounding(b, offset, directions, scale) for b in cones)
        )

    def inside(self) -> Array | None:
        """A y with about the largest smallest slack, at most one, or None where there is none inside."""
        program = ConeProgram(self.directions.shape[1])
        (t,) = program.more(1)
        for block in self.blocks:
            slack = sparse.csr_array(-block_unit(block)[:, None])
            matrix = sparse.csr_array(sparse.hstack([block.matrix, slack]))
            program.require(Block(block.cone, matrix, block.constant, block.label, block.unit))
        cap = sparse.csr_array(([-1.0], ([0], [t])), shape=(1, program.unknowns))
        program.require(Block("nonnegative", cap, np.ones(1), "cap"))
        cost = np.zeros(program.unknowns)
        cost[t] = -1.0
        program.minimise_linear(cost)
        for tolerance in (1e-5, 1e-9):
            y = program.solve(tolerance=tolerance).x[:t]
            if np.all(np.isfinite(y)) and min(b.slack(y) for b in self.blocks) > _ROOM:
                return y
        return None


def _without_rounding(block: Block, offset: Array, directions: Array, scale: Array) -> Block:
    """The block over directions, with entries that only rounding leaves set to zero."""
    matrix = block.matrix @ directions
    matrix[np.abs(matrix) < _ROUNDING * (abs(block.matrix) @ scale)[:, None]] = 0.0
    return Block(block.cone, sparse.csr_array(matrix), block.value(offset), block.label, block.unit)


def _newton(room: _Room, y: Array) -> tuple[Array, bool]:
    """Maximise the sum of logarithms from a point inside; False where it has no maximum, with a point far away.

    A decrement below one anywhere proves that there is a maximum. Without one it stays above, and the steps run away.
    """
    far = _FAR * max(1.0, float(np.abs(y).max(initial=0.0)))
    for _ in range(_ITERATIONS):
        rows, rest = _barrier(room, y)
        step = np.linalg.lstsq(rows, rest, rcond=None)[0]
        decrement = float(np.linalg.norm(rows @ step))
        # Within a decrement of one the whole step stays inside; before, this share of it does.
        y = y + (step if decrement < 0.25 else step / (1.0 + decrement))
        if decrement < _DECREMENT:
            return y, True
        if np.abs(y).max() > far:
            return y, False
    raise DynidError(f"the most central robot was not found in {_ITERATIONS} iterations")


def _barrier(room: _Room, y: Array) -> tuple[Array, Array]:
    """Rows A and rest e: A'e is the gradient of the sum of logarithms, -A'A its Hessian.

    For a matrix C = L L' the rows are L^-1 dC L^-T and the rest is the identity.
    """
    parts, rest = [], []
    for block in room.blocks:
        value, slope = block.value(y), block.matrix.toarray()
        if block.cone == "nonnegative":
            parts.append(slope / value[:, None])
            rest.append(np.ones(block.rows))
        else:
            inverse = np.linalg.inv(np.linalg.cholesky(smat(value)))
            parts.append(np.array([(inverse @ smat(column) @ inverse.T).ravel() for column in slope.T]).T)
            rest.append(np.eye(len(inverse)).ravel())
    return np.vstack(parts), np.concatenate(rest)


def _endless(possible: FeasibleSet, way: Array) -> str:
    """What to say of a way (p + extra,) that never meets a boundary."""
    length = np.abs(way / possible.scale)[: possible.size]
    moving = [q for q, x in zip(possible.robot.layout, length, strict=True) if x > 0.01 * length.max()]
    names = [q.name for q in sorted(moving, key=lambda q: q.symbol != "m")]
    shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    kinds = {q.symbol for q in moving}
    cures = ["a mass bound (Mass)"] if "m" in kinds else []
    if kinds & set(INERTIAL_SYMBOLS[4:]):
        cures.append("a bound on the links' size (Ellipsoids)")
    return (
        f"there is no most central robot: neither the base parameters nor the constraints bound {shown}; "
        f"add {' and '.join(cures or ['bounds on them (Bounds)'])} to the constraints"
    )


def _no_room(base: BaseParameters, beta: Array, constraints: Constraints) -> str:
    verdict = is_feasible(base, beta, constraints)
    reasons = f" ({'; '.join(verdict.reasons)})" if verdict.reasons else ""
    if verdict.answer == "infeasible":
        return f"no possible robot has these base parameters{reasons}; take the nearest ones that are possible first"
    return (
        f"these base parameters leave no room inside the constraints, their margin is {verdict.margin:.1e}{reasons}; "
        "a robot on the boundary has no centre, take standard_parameters or base parameters farther inside"
    )
