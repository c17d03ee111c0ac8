"""The feasible set of a robot: its constraints as cones over the standard parameters.

    the set of all pi with C_b(pi) = constant_b + matrix_b pi in cone_b for every block b of every constraint

Source: Sousa and Cortesao (2014), and the sources of `constraints`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError
from dynid.feasibility.cone import Block, ConeProgram
from dynid.feasibility.constraints import Constraints, constraint_set, link_scales
from dynid.robot.inertia import inertia_violations
from dynid.robot.model import Robot
from dynid.robot.parts import checked

__all__ = ["FeasibleSet", "feasible_set"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FeasibleSet:
    """Constraints of one robot as cones. Made by `feasible_set`.

    Attributes
    ----------
    robot : Robot
        The robot.
    blocks : tuple of Block
        Cone constraints over the p standard parameters and the extra unknowns.
    extra : int
        Number of auxiliary unknowns (unions of ellipsoids).
    """

    robot: Robot
    blocks: tuple[Block, ...]
    extra: int

    @property
    def size(self) -> int:
        """Number of standard parameters."""
        return len(self.robot.layout)

    @cached_property
    def scale(self) -> Array:
        """Typical size of every unknown, shape (p + extra,), SI units."""
        sizes = link_scales(self.robot)
        prior = np.abs(self.robot.parameters)
        groups = np.array([p.group for p in self.robot.layout])
        out = np.ones(self.size + self.extra)
        for i, parameter in enumerate(self.robot.layout):
            if parameter.inertial:
                mass, length = sizes[parameter.owner]
                out[i] = mass * length ** {"m": 0, "mx": 1, "my": 1, "mz": 1}.get(parameter.symbol, 2)
            else:
                same = prior[groups == parameter.group]
                out[i] = same.max() or 1.0
        return out

    def program(self) -> ConeProgram:
        """A cone program over the unknowns of this set, with its blocks as constraints."""
        program = ConeProgram(self.size + self.extra, self.scale)
        program.require(*self.blocks)
        return program

    def violations(self, parameters: ArrayLike, tolerance: float = 1e-9) -> list[str]:
        """Constraints that a standard vector violates.

        Constraints with auxiliary unknowns (unions of ellipsoids) need a solver and are not checked.

        Parameters
        ----------
        parameters : array_like, shape (p,)
            Standard parameters.
        tolerance : float
            Violations up to this size, in the unit of each constraint, are not reported.

        Returns
        -------
        list of str
            One message per violated constraint.
        """
        pi = checked(parameters, (self.size,), f"parameters of robot '{self.robot.name}'", DataError)
        found = []
        for block in self.blocks:
            if block.matrix.indices.size and block.matrix.indices.max() >= self.size:
                continue
            slack = block.slack(np.concatenate([pi, np.zeros(block.matrix.shape[1] - self.size)]))
            if slack < -tolerance:
                found.append(f"{block.label}: broken by {-slack:.3g}{self._why(block, pi)}")
        return found

    def _why(self, block: Block, pi: Array) -> str:
        """Violated conditions of the inertia of a link, in parentheses."""
        if block.cone != "psd":
            return ""
        columns = np.unique(block.matrix.indices)
        owners = {self.robot.layout[c].owner for c in columns if self.robot.layout[c].inertial}
        if len(owners) != 1:
            return ""
        first = self.robot.parameter_names.index(f"m_{owners.pop()}")
        laws = inertia_violations(pi[first : first + 10])
        return f" ({'; '.join(laws)})" if laws else ""

    def slack(self, x: Array) -> float:
        """Smallest slack of all inequalities at unknowns (p + extra,), in the units of the blocks."""
        return min((b.slack(x) for b in self.blocks if b.cone != "zero"), default=np.inf)


def feasible_set(robot: Robot, constraints: Constraints = "full") -> FeasibleSet:
    """Feasible set of a robot.

    Parameters
    ----------
    robot : Robot
        The robot.
    constraints : str, constraint or sequence
        "full", "semi", or constraints of `dynid.feasibility.constraints`.

    Returns
    -------
    FeasibleSet

    Raises
    ------
    DataError
        For unknown constraints, links or parameters.

    Examples
    --------
    >>> import dynid
    >>> robot = dynid.load_robot("twolink")
    >>> dynid.feasibility.feasible_set(robot).violations(-robot.parameters)[0]
    'link1: pseudo-inertia positive definite: broken by 2 (mass -1 kg is not positive)'
    """
    parts = constraint_set(constraints)
    extra = sum(c.extra for c in parts)
    p = len(robot.layout)
    blocks: list[Block] = []
    moved = p
    for part in parts:
        for block in part.blocks(robot):
            blocks.append(block.widened(p + extra, moved, part.extra) if part.extra else block.widened(p + extra))
        moved += part.extra
    return FeasibleSet(robot, tuple(blocks), extra)
