"""Motion of a robot under recorded torques, without feedback, from many starts at once.

Source: Moreau, Unilateral Contact and Dry Friction in Finite Freedom Dynamics (1988); the equations stand in
`dynid.dynamics.kernels.replay`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.assembly import assembly_where_closed, linkage
from dynid.dynamics.batch import for_kernel, run_each, thread_count
from dynid.robot.model import Robot
from dynid.simulation.plant import bolted, plant_arrays

__all__ = ["Ending", "Replay", "Starts", "replay"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class Ending(StrEnum):
    """How the simulation of one start ended."""

    COMPLETED = "completed"
    DIVERGED = "diverged"
    NOT_POSITIVE = "mass matrix not positive definite"
    OPEN = "at or beyond a singular posture of a closed loop"

    @property
    def ended_early(self) -> bool:
        """Whether the simulation did not reach its end."""
        return self is not Ending.COMPLETED


@dataclass(frozen=True, eq=False)
class Starts:
    """Where simulations start, in rows of a table of torques.

    Attributes
    ----------
    q, v : ndarray, shape (start, nq) and (start, nv)
        Initial state.
    first, last : ndarray of int, shape (start,)
        Row of the start, and the last row of its run.
    period : ndarray, shape (start,)
        Seconds between rows.
    marks : ndarray of int, shape (start, mark)
        Rows after the start at which positions are kept, increasing.
    """

    q: Array
    v: Array
    first: Index
    last: Index
    period: Array
    marks: Index

    def __len__(self) -> int:
        return len(self.first)

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Whether a mark lies in the run, shape (start, mark)."""
        return self.first[:, None] + self.marks <= self.last[:, None]


@dataclass(frozen=True, eq=False)
class Replay:
    """Positions (start, mark, nq) at the marks, NaN where they were not reached, and how every start ended."""

    q: Array
    endings: tuple[Ending, ...]


def replay(robot: Robot, parameters: ArrayLike | None, torque: Array, starts: Starts, parts: int = 1) -> Replay:
    """Simulate a robot under recorded torques from every start.

    Steps follow Moreau's midpoint rule: of second order, with dry friction that holds still exactly. A simulation ends
    early, as its ending says, where the mass matrix is not positive definite, a closed loop reaches a singular posture,
    or a joint moves by more than 1 rad or 1 m in one step.

    Parameters
    ----------
    robot : Robot
        The robot. An instrumented base is fixed; a floating one moves.
    parameters : array of shape (p,), or None
        Standard parameters that replace those of the robot.
    torque : array of shape (row, nv)
        Torques (N m or N) of the joints, after the wrench on a floating base; they are interpolated linearly.
    starts : Starts
        Initial states and rows.
    parts : int
        Integration steps between two rows.

    Returns
    -------
    Replay

    Raises
    ------
    DataError
        If a custom drive term cannot be simulated.
    """
    from dynid.dynamics.kernels import integrate
    from dynid.dynamics.kernels import replay as kernels
    from dynid.dynamics.kernels.drives import is_dry

    if robot.base == "instrumented":
        robot, parameters = bolted(robot, parameters), None
    out = np.full((len(starts), starts.marks.shape[1], starts.q.shape[1]), np.nan)
    joints = starts.q[:, -robot.n :]
    if robot.loops:
        zero = np.zeros_like(joints)
        joints = joints[assembly_where_closed(robot.with_base("fixed"), joints, zero, zero)[1]]
        if not len(joints):
            return Replay(out, (Ending.OPEN,) * len(starts))
    tree, inertia, drives, values = plant_arrays(robot, parameters, joints, floating=True)
    smooth = np.array([0.0 if is_dry.py_func(k) else x for k, x in zip(drives.kind, values, strict=True)])
    rows = kernels.Starts(starts.first, starts.last, starts.period, starts.marks)
    code, reached = np.zeros((2, len(starts)), np.int64)
    given = (for_kernel(torque), rows, for_kernel(starts.q), for_kernel(starts.v), parts)

    def plant() -> kernels.Plant:
        if not robot.loops:
            return kernels.Plant(tree, None, inertia, drives, values, smooth)
        moving = int(robot.base == "floating")
        loops = kernels.make_loops(linkage(robot, drives), moving)
        return kernels.Plant(
            tree.tree._replace(wrench_rows=6 * moving, moving=moving), loops, inertia, drives, values, smooth
        )

    edges = np.linspace(0, len(starts), min(thread_count(), len(starts)) + 1).astype(int)
    # One plant per thread: a linkage has work space.
    run_each(kernels.replay, [(plant(), *given, int(a), int(b), out, code, reached) for a, b in pairwise(edges)])
    names = {
        integrate.DONE: Ending.COMPLETED,
        integrate.NOT_POSITIVE: Ending.NOT_POSITIVE,
        integrate.DIVERGED: Ending.DIVERGED,
        kernels.OPEN: Ending.OPEN,
    }
    return Replay(out, tuple(names[int(c)] for c in code))
