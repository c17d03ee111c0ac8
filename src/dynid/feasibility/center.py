"""Analytic centre of the feasible standard parameters with given base parameters.

The analytic centre maximises the sum of log det over all matrix constraints and of log over all linear constraints. It
does not depend on units, frames or scales of the links. The sum is self-concordant, so that Newton's method finds its
maximum to rounding from any interior point.

    maximise sum of log det C_b(x) + sum of log c_i(x) over x with K pi = beta,    y <- y + step / (1 + decrement)

where the decrement is the size of the Newton step in the metric of the Hessian.

Source: Nesterov and Nemirovskii, Interior-Point Polynomial Algorithms in Convex Programming (1994); Boyd and
Vandenberghe, Convex Optimization (2004), chapter 9, for self-concordance and the damped step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from dynid.errors import DataError, DynidError, MissingArgument
from dynid.feasibility.certificate import block_unit
from dynid.feasibility.cone import Block, ConeProgram, smat
from dynid.feasibility.constraints import Constraints
from dynid.feasibility.queries import is_feasible
from dynid.feasibility.sets import FeasibleSet, feasible_set
from dynid.robot.inertia import INERTIAL_SYMBOLS
from dynid.robot.parts import checked
from dynid.threads import one_blas_thread

if TYPE_CHECKING:
    from dynid.parameters.base import BaseParameters

__all__ = ["analytic_center"]

Array = NDArray[np.float64]

_RANK = 1e-10
_ROUNDING = 1e-12
# Margin, in units of each constraint, below which the set has no interior.
_ROOM = 1e-7
# Beyond this many typical sizes, the set is taken to be unbounded.
_FAR = 1e8
_ITERATIONS = 100
# Newton decrement at convergence: the sum is then half its square below the maximum.
_DECREMENT = 1e-7


def analytic_center(base: BaseParameters, beta: ArrayLike | None, constraints: Constraints = "full") -> Array:
    """Analytic centre of the feasible standard parameters with given base parameters.

    Parameters that affect neither torques nor constraints keep their a-priori values. Base parameters seldom bound all
    masses and sizes: constraints such as `Mass` and `Ellipsoids` must bound them, otherwise there is no centre.

    Parameters
    ----------
    base : BaseParameters
        Base parameters of the robot.
    beta : array_like, shape (b,), or None
        Values of the base parameters; None for the a-priori values.
    constraints : str, constraint or sequence
        "full", "semi", or constraints of `dynid.feasibility.constraints`.

    Returns
    -------
    ndarray, shape (p,)
        Standard parameters, SI units.

    Raises
    ------
    DataError
        For wrong shapes.
    DynidError
        If the base parameters are infeasible or on the boundary, or the feasible set is unbounded; the message names
        the unbounded parameters.
    """
    given = base.values() if beta is None else beta
    values = checked(given, (base.count,), f"base parameters of robot '{base.robot.name}'", DataError)
    feasible = feasible_set(base.robot, constraints)
    with one_blas_thread():  # small matrices: several threads are slower
        room = _Room.of(feasible, base, values)
        start = room.inside()
        if start is None:
            raise DynidError(_no_room(base, values, constraints), code="infeasible")
        end, found = _newton(room, start)
    if not found:
        raise DynidError(_endless(feasible, room.directions @ (end - start)), "constraints", code="not_identifiable")
    return np.asarray((room.offset + room.directions @ end)[: feasible.size])


@dataclass(frozen=True, eq=False)
class _Room:
    """The unknowns x = offset + directions @ y with the given base values; blocks are over y."""

    feasible: FeasibleSet
    offset: Array
    directions: Array
    blocks: tuple[Block, ...]

    @staticmethod
    def of(feasible: FeasibleSet, base: BaseParameters, beta: Array) -> _Room:
        scale = feasible.scale
        equal = [b for b in feasible.blocks if b.cone == "zero"]
        cones = [b for b in feasible.blocks if b.cone != "zero"]
        if not cones:
            raise MissingArgument("an analytic centre needs inequality constraints, such as full", "constraints")
        torque = np.column_stack([base.matrix, np.zeros((base.count, feasible.extra))])
        rows = np.vstack([torque, *(b.matrix.toarray() for b in equal)])
        target = np.concatenate([beta, *(-b.constant for b in equal)])
        prior = np.concatenate([base.robot.parameters, np.zeros(feasible.extra)])
        size = np.linalg.norm(rows * scale, axis=1)
        left, strength, right = np.linalg.svd(rows * scale / size[:, None])
        rank = int(np.sum(strength > _RANK * strength[0]))
        miss = (target - rows @ prior) / size
        found = left[:, :rank].T @ miss
        if np.linalg.norm(miss - left[:, :rank] @ found) > _ROOM * np.linalg.norm(target / size):
            raise DynidError(
                f"base parameters of '{base.robot.name}' contradict an equality among the constraints",
                "constraints",
                code="infeasible",
            )
        offset = prior + scale * (right[:rank].T @ (found / strength[:rank]))
        free = scale[:, None] * right[rank:].T
        # Directions that affect no constraint are left out.
        seen = np.vstack([(b.matrix @ free) / np.abs(block_unit(b)).max() for b in cones])
        _, strength, right = np.linalg.svd(seen, full_matrices=False)
        directions = free @ right[: int(np.sum(strength > _RANK * strength.max(initial=0.0)))].T
        return _Room(
            feasible, offset, directions, tuple(_without_rounding(b, offset, directions, scale) for b in cones)
        )

    def inside(self) -> Array | None:
        """An interior point y with nearly the largest margin, at most one; None if the set has no interior."""
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
    """The block over directions, with rounding errors set to zero."""
    matrix = block.matrix @ directions
    matrix[np.abs(matrix) < _ROUNDING * (abs(block.matrix) @ scale)[:, None]] = 0.0
    return Block(block.cone, sparse.csr_array(matrix), block.value(offset), block.label, block.unit)


def _newton(room: _Room, y: Array) -> tuple[Array, bool]:
    """Maximise the sum of logarithms from an interior point; False, with a distant point, where it has no maximum.

    A Newton decrement below one proves that there is a maximum. Without a maximum the iterates diverge.
    """
    far = _FAR * max(1.0, float(np.abs(y).max(initial=0.0)))
    for _ in range(_ITERATIONS):
        rows, rest = _barrier(room, y)
        step = np.linalg.lstsq(rows, rest, rcond=None)[0]
        decrement = float(np.linalg.norm(rows @ step))
        # For a decrement below one the full step stays inside; otherwise this share of it does.
        y = y + (step if decrement < 0.25 else step / (1.0 + decrement))
        if decrement < _DECREMENT:
            return y, True
        if np.abs(y).max() > far:
            return y, False
    raise DynidError(f"the analytic centre did not converge in {_ITERATIONS} iterations", code="not_converged")


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


def _endless(feasible: FeasibleSet, direction: Array) -> str:
    """Error message for an unbounded direction (p + extra,)."""
    length = np.abs(direction / feasible.scale)[: feasible.size]
    moving = [q for q, x in zip(feasible.robot.layout, length, strict=True) if x > 0.01 * length.max()]
    names = [q.name for q in sorted(moving, key=lambda q: q.symbol != "m")]
    shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    kinds = {q.symbol for q in moving}
    cures = ["a mass bound (Mass)"] if "m" in kinds else []
    if kinds & set(INERTIAL_SYMBOLS[4:]):
        cures.append("a bound on the links' size (Ellipsoids)")
    return (
        f"there is no analytic centre: neither the base parameters nor the constraints bound {shown}; "
        f"add {' and '.join(cures or ['bounds on them (Bounds)'])} to the constraints"
    )


def _no_room(base: BaseParameters, beta: Array, constraints: Constraints) -> str:
    """Error message for base parameters without interior."""
    test = is_feasible(base, beta, constraints)
    reasons = f" ({'; '.join(test.reasons)})" if test.reasons else ""
    if test.status == "infeasible":
        return f"these base parameters are infeasible{reasons}; use nearest_feasible first"
    return (
        f"these base parameters are on the boundary of the feasible set, their margin is {test.margin:.1e}{reasons}; "
        "there is no analytic centre, use standard_parameters or base parameters with a larger margin"
    )
