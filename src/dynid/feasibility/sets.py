"""The set of possible robots: constraints compiled for one robot, ready to be asked."""

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
    """All blocks of a constraint set over the standard parameters (p,) and `extra` further unknowns."""

    robot: Robot
    blocks: tuple[Block, ...]
    extra: int

    @property
    def size(self) -> int:
        """Number of standard parameters."""
        return len(self.robot.layout)

    @cached_property
    def scale(self) -> Array:
        """Typical size of every unknown (p + extra,)."""
        sizes = link_scales(self.robot)
        prior = np.abs(self.robot.parameters)
        units = np.array([p.unit for p in self.robot.layout])
        out = np.ones(self.size + self.extra)
        for i, parameter in enumerate(self.robot.layout):
            if parameter.inertial:
                mass, length = sizes[parameter.owner]
                out[i] = mass * length ** {"m": 0, "mx": 1, "my": 1, "mz": 1}.get(parameter.symbol, 2)
            else:
                same = prior[units == parameter.unit]
                out[i] = same.max() or 1.0
        return out

    def program(self) -> ConeProgram:
        """A cone program over the unknowns of this set, with its blocks required."""
        program = ConeProgram(self.size + self.extra, self.scale)
        program.require(*self.blocks)
        return program

    def violations(self, parameters: ArrayLike, tolerance: float = 1e-9) -> list[str]:
        """Which constraints a standard vector (p,) breaks, by how much, in words.

        Constraints with unknowns of their own (unions of ellipsoids) are not looked at here: they need a solver.
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
        """What a link's impossible inertia amounts to."""
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
        """Smallest slack of all blocks at unknowns (p + extra,), in the blocks' units; equalities count as zero."""
        return min((b.slack(x) for b in self.blocks if b.cone != "zero"), default=np.inf)


def feasible_set(robot: Robot, constraints: Constraints = "full") -> FeasibleSet:
    """Compile a constraint set for a robot."""
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
