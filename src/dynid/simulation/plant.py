"""Arrays of a robot for the compiled closed-loop kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.batch import as_parameters
from dynid.dynamics.functions import mass_matrix
from dynid.dynamics.tree import compile_robot
from dynid.errors import DataError
from dynid.robot.drives import TermKind
from dynid.robot.model import Robot

__all__ = ["bolted", "friction_rate", "plant_arrays"]

Array = NDArray[np.float64]

_NODES = 4097
_POSES = 16
_VISCOUS = (TermKind.VISCOUS, TermKind.VISCOUS_POSITIVE, TermKind.VISCOUS_NEGATIVE)


def plant_arrays(robot: Robot, parameters: ArrayLike | None, path: Array) -> tuple[Any, Array, Any, Array]:
    """(tree, inertias, drives, values) for the kernels; custom terms of one joint position become tables."""
    if robot.base != "fixed":
        robot, parameters = bolted(robot, parameters), None
    pi = as_parameters(robot, parameters)
    model = compile_robot(robot)
    drives, values = model.drives, pi[model.drive_columns]
    if model.custom:
        drives, values = _with_tables(robot, pi, path, drives, values)
    return model.tree, model.inertias(robot, pi), drives, np.ascontiguousarray(values)


def bolted(robot: Robot, parameters: ArrayLike | None) -> Robot:
    """The robot with these parameters and a fixed base."""
    return robot.with_parameters(as_parameters(robot, parameters)).with_base("fixed")


def friction_rate(robot: Robot, parameters: ArrayLike | None, path: Array) -> float:
    """Largest decay rate of a joint velocity by friction (1/s), over positions along the path.

    The steps of an explicit method must be shorter than about the inverse of this rate. It is 0 if a mass matrix is not
    positive definite.
    """
    robot = bolted(robot, parameters)
    pi = dict(zip(robot.parameter_names, robot.parameters, strict=True))
    F = np.zeros((robot.n, robot.n))
    for term in robot.drives:
        if term.kind in _VISCOUS or term.slope:
            part = pi[term.name] * (term.slope or 1.0) * np.outer(term.direction, term.direction)
            F += part - np.diag(np.diag(part)) if term.cross_only and term.kind == TermKind.VISCOUS else part
    M = mass_matrix(robot, path[:: max(1, len(path) // _POSES)])
    try:
        half = np.linalg.inv(np.linalg.cholesky(M))
    except np.linalg.LinAlgError:
        return 0.0
    return float(np.linalg.eigvalsh(half @ F @ half.transpose(0, 2, 1)).max(initial=0.0))


def _with_tables(robot: Robot, pi: Array, path: Array, drives: Any, values: Array) -> tuple[Any, Array]:
    """Add tables of the custom terms over the position range of the path; refuse those that need more than position."""
    from dynid.dynamics.kernels.drives import TABLE

    custom = compile_robot(robot).custom
    count = len(values)
    table, grid = np.zeros((count + len(custom), _NODES)), np.zeros((count + len(custom), 2))
    rng = np.random.default_rng(0)
    joints = []
    for k, (index, _) in enumerate(custom):
        term = robot.drives[index]
        assert term.function is not None
        j = term.owner
        span = max(0.5, 0.5 * float(np.ptp(path[:, j])))
        x = np.linspace(path[:, j].min() - span, path[:, j].max() + span, _NODES)
        q = np.zeros((_NODES, robot.n))
        q[:, j] = x
        zero = np.zeros_like(q)
        column = np.asarray(term.function(q, zero, zero), float)
        other = rng.normal(size=(3, _NODES, robot.n))
        other[0, :, j] = x
        moved = np.asarray(term.function(other[0], other[1], other[2]), float)
        scale = 1e-9 * (1 + np.abs(column).max())
        if np.abs(np.delete(column, j, axis=1)).max(initial=0.0) > scale or np.abs(moved - column).max() > scale:
            raise DataError(
                f"term '{term.name}' depends on more than the position of its joint and cannot be simulated; "
                "remove it with robot.without"
            )
        table[count + k] = column[:, j]
        joints.append(j)
        grid[count + k] = x[0], 1.0 / (x[1] - x[0])
    added = len(custom)
    drives = drives._replace(
        kind=np.append(drives.kind, np.full(added, TABLE)),
        column=np.append(drives.column, [c for _, c in custom]),
        start=np.append(drives.start, drives.start[-1] + 1 + np.arange(added)),
        joint=np.append(drives.joint, joints),
        weight=np.append(drives.weight, np.ones(added)),
        rest=np.append(drives.rest, np.zeros(added)),
        cross=np.append(drives.cross, np.zeros(added, np.int64)),
        slope=np.append(drives.slope, np.zeros(added)),
        table=table,
        grid=grid,
    )
    return drives, np.append(values, [pi[c] for _, c in custom])
