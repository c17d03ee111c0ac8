"""Arrays of a robot for the compiled closed-loop kernel."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.assembly import assemble, linkage
from dynid.dynamics.batch import as_parameters
from dynid.dynamics.functions import mass_matrix
from dynid.dynamics.tree import compile_robot
from dynid.errors import NotApplicable
from dynid.robot.drives import BARELY, DriveTerm, drive_kinds
from dynid.robot.model import Robot

__all__ = ["bolted", "damping", "friction_rate", "plant_arrays"]

Array = NDArray[np.float64]

_NODES = 16385
_POSES = 16
_FASTEST = 1e3  # rad/s or m/s; a velocity table is constant beyond
_VISCOUS = drive_kinds("viscous")


def plant_arrays(
    robot: Robot, parameters: ArrayLike | None, path: Array, *, floating: bool = False
) -> tuple[Any, Array, Any, Array]:
    """(tree or linkage, inertias, drives, values) for the kernels; custom terms of one joint are tables over the path.

    The base is fixed, unless it floats and `floating` is set.
    """
    if robot.base == "instrumented" or (robot.base == "floating" and not floating):
        robot, parameters = bolted(robot, parameters), None
    pi = as_parameters(robot, parameters)
    tree, path = robot.tree, assemble(robot.with_base("fixed"), path).q if robot.loops else path
    model = compile_robot(tree)
    drives, values = model.drives, pi[model.drive_columns]
    if model.custom:
        drives, values = _with_tables(tree, pi, path, drives, values)
    kinematics = linkage(robot, drives) if robot.loops else model.tree
    return kinematics, model.inertias(tree, pi), drives, np.ascontiguousarray(values)


def bolted(robot: Robot, parameters: ArrayLike | None) -> Robot:
    """The robot with these parameters and a fixed base."""
    return robot.with_parameters(as_parameters(robot, parameters)).with_base("fixed")


def damping(drives: Any, values: Array, size: int) -> Array:
    """Slopes of friction with respect to velocity (size, size), each term where it is steepest."""
    from dynid.dynamics.kernels import drives as kinds

    F = np.zeros((size, size))
    for t, kind in enumerate(drives.kind):
        steepest = drives.slope[t]
        if kind in _VISCOUS:
            steepest = 1.0
        elif kind == kinds.CURVE:
            steps = np.diff(drives.table[t]) / np.diff(_curve_nodes(drives.grid[t]))
            steepest = drives.rest[t] * drives.slope[t] + steps.max(initial=0.0)
        elif not kinds.is_dry.py_func(kind):
            continue
        shaft = slice(drives.start[t], drives.start[t + 1])
        d = np.zeros(size)
        d[drives.joint[shaft]] = drives.weight[shaft]
        part = values[t] * steepest * np.outer(d, d)
        F += part - np.diag(np.diag(part)) if drives.cross[t] else part
    return F


def friction_rate(robot: Robot, parameters: ArrayLike | None, path: Array) -> float:
    """Largest decay rate of a joint velocity by friction (1/s), over positions along the path.

    The steps of an explicit method must be shorter than about the inverse of this rate. It is 0 if a mass matrix is not
    positive definite.
    """
    robot = bolted(robot, parameters)
    _, _, drives, values = plant_arrays(robot, None, path)
    poses = path[:: max(1, len(path) // _POSES)]
    F, M = damping(drives, values, len(robot.tree_coordinates)), mass_matrix(robot, poses)
    if robot.loops:
        N = assemble(robot, poses).jacobian
        F = np.swapaxes(N, 1, 2) @ F @ N
    try:
        half = np.linalg.inv(np.linalg.cholesky(M))
    except np.linalg.LinAlgError:
        return 0.0
    return float(np.linalg.eigvalsh(half @ F @ half.transpose(0, 2, 1)).max(initial=0.0))


class _Table(NamedTuple):
    """A custom column as a table: kind, values at the nodes, (first node, nodes per unit), half the jump at zero."""

    kind: int
    column: Array
    grid: tuple[float, float]
    jump: float = 0.0


def _with_tables(robot: Robot, pi: Array, path: Array, drives: Any, values: Array) -> tuple[Any, Array]:
    """Add the custom terms as tables over the position or the velocity of their joints."""
    custom = compile_robot(robot).custom
    terms = [robot.drives[index] for index, _ in custom]
    tables = [_tabulated(term, path) for term in terms]
    count, added = len(values), len(custom)
    table, grid = np.zeros((count + added, _NODES)), np.zeros((count + added, 2))
    table[count:], grid[count:] = [x.column for x in tables], [x.grid for x in tables]
    drives = drives._replace(
        kind=np.append(drives.kind, [x.kind for x in tables]),
        column=np.append(drives.column, [c for _, c in custom]),
        start=np.append(drives.start, drives.start[-1] + 1 + np.arange(added)),
        joint=np.append(drives.joint, [t.owner for t in terms]),
        weight=np.append(drives.weight, np.ones(added)),
        rest=np.append(drives.rest, [x.jump for x in tables]),
        cross=np.append(drives.cross, np.zeros(added, np.int64)),
        slope=np.append(drives.slope, [t.slope if x.jump else 0.0 for t, x in zip(terms, tables, strict=True)]),
        table=table,
        grid=grid,
    )
    return drives, np.append(values, [pi[c] for _, c in custom])


def _tabulated(term: DriveTerm, path: Array) -> _Table:
    """A custom term as a table over the position of its joint along the path, or over the velocity of its joint.

    A column that jumps at zero velocity is a continuous one plus half the jump times the sign of the velocity. A term
    that depends on more than one of the two is refused.
    """
    from dynid.dynamics.kernels.drives import CURVE, CURVE_SCALE, TABLE

    j = term.owner
    span = max(0.5, 0.5 * float(np.ptp(path[:, j])))
    x = np.linspace(path[:, j].min() - span, path[:, j].max() + span, _NODES)
    column = _column_over(term, x, 0)
    if column is not None:
        return _Table(TABLE, column, (x[0], 1.0 / (x[1] - x[0])))
    ends = np.arcsinh(_FASTEST / CURVE_SCALE)
    grid = -ends, (_NODES - 1) / (2 * ends)
    velocities = _curve_nodes(grid)
    velocities[_NODES // 2] = BARELY
    column, sides = _column_over(term, velocities, 1), _column_over(term, np.array([BARELY, -BARELY]), 1)
    if column is None or sides is None:
        raise NotApplicable(
            f"term '{term.name}' depends on more than the position or the velocity of its joint and cannot be "
            "simulated; remove it with robot.without"
        )
    jump = 0.5 * (sides[0] - sides[1])
    return _Table(CURVE, column - jump * np.sign(velocities), grid, float(jump))


def _column_over(term: DriveTerm, x: Array, which: int) -> Array | None:
    """Torques (len(x),) of a custom term on its joint, whose position (0) or velocity (1) is x.

    None if the term also depends on something else or acts on other joints.
    """
    assert term.function is not None
    j, n = term.owner, len(term.direction)
    plain, other = np.zeros((3, len(x), n)), np.random.default_rng(0).normal(size=(3, len(x), n))
    plain[which, :, j] = other[which, :, j] = x
    column, moved = (np.asarray(term.function(*given), dtype=float) for given in (plain, other))
    scale = 1e-9 * (1 + np.abs(column).max())
    if np.abs(np.delete(column, j, axis=1)).max(initial=0.0) > scale or np.abs(moved - column).max() > scale:
        return None
    return column[:, j]


def _curve_nodes(grid: Any) -> Array:
    """Velocities of the nodes of a velocity table."""
    from dynid.dynamics.kernels.drives import CURVE_SCALE

    return np.asarray(CURVE_SCALE * np.sinh(grid[0] + np.arange(_NODES) / grid[1]))
