"""Dynamics functions of a robot as expression graphs: arguments in, one array out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.codegen.bodies import Bodies, joint_bodies, link_bodies
from dynid.codegen.composite import coriolis_matrix, mass_matrix
from dynid.codegen.drive_terms import drive_columns, drive_inertia, drive_torques, refuse_custom
from dynid.codegen.graph import Graph, Node
from dynid.codegen.newton_euler import Moving, down, motion, shift_of, torques
from dynid.codegen.simplify import simplified
from dynid.codegen.vectors import Vector, add, cross, dot, turn
from dynid.dynamics.tree import compile_robot
from dynid.errors import InvalidShape, UnknownName
from dynid.robot.model import Robot

__all__ = ["FUNCTIONS", "Argument", "Function", "arguments_of", "build_function", "regressor"]


# Columns of the regressor on the graph: torque of every channel per unit of each standard parameter.

Twist = tuple[Vector, Vector]


def regressor(
    robot: Robot, model: Bodies, q: Sequence[Node], v: Sequence[Node], a: Sequence[Node], wanted: Collection[int]
) -> list[list[Node]]:
    """Rows of Y (channel, parameter); columns outside `wanted` are left zero. `model` stands in link frames."""
    graph = model.graph
    tree = compile_robot(robot).tree
    first = len(robot.channels) - robot.n
    out = [[graph.zero] * len(robot.layout) for _ in robot.channels]
    moved, base, angles, sc = motion(model, q, v, a)
    zero = (graph.zero, graph.zero, graph.zero)
    units = [[graph.one if i == k else graph.zero for i in range(6)] for k in range(6)]
    # Twists of the channels in the frame of each body: the base's six where it has rows, then the supporting joints.
    twists: dict[int, list[tuple[int, float, Twist]]] = {
        -1: [(k, 1.0, ((e[0], e[1], e[2]), (e[3], e[4], e[5]))) for k, e in enumerate(units)] if model.wrench else []
    }
    for i, body in enumerate(model.bodies):
        reach = tuple(graph.const(x) for x in body.reach)
        carried = []
        p = tuple(graph.total([x]) for x in shift_of(body, angles[i]))
        for row, weight, (s, t) in twists[body.parent]:
            s = turn(graph, body.after.T, down(model, body, sc[i], add(s, cross(t, p))))  # type: ignore[arg-type]
            t = turn(graph, body.after.T, down(model, body, sc[i], t))
            carried.append((row, weight, (add(s, cross(t, reach)), t)))  # type: ignore[arg-type]
        along = turn(graph, body.after.T, (graph.zero, graph.zero, graph.one))
        own = (cross(along, reach), along) if body.revolute else (along, zero)  # type: ignore[arg-type]
        twists[i] = [*carried, (first + body.coordinate, body.ratio, own)]
    for i in range(-1, len(model.bodies)):
        column = int(tree.column[i + 1])
        if column < 0 or not any(column <= c < column + 10 for c in wanted):
            continue
        for row, weight, twist in twists[i]:
            for k, entry in enumerate(_columns(moved[i] if i >= 0 else base, *twist)):
                if column + k in wanted:
                    out[row][column + k] = out[row][column + k] + entry * weight
    for c, rows in drive_columns(robot, graph, q, v, a).items():
        if c in wanted:
            for r, entry in rows.items():
                out[first + r][c] = entry
    return out


def _columns(at: Moving, s: Vector, t: Vector) -> list[Node]:
    """Power of the wrench of each of the ten numbers on the twist (s, t)."""
    (_, uxy, uxz), (uyx, _, uyz), (uzx, uzy, _) = rows = at.u
    x2, y2, z2, wxy, wxz, wyz = at.products
    x, y, z = at.dw
    pushed = cross(at.a, t)
    first_moments = [dot(s, (rows[0][k], rows[1][k], rows[2][k])) + pushed[k] for k in range(3)]
    return [
        dot(s, at.a),
        *first_moments,
        dot(t, (x, wxz, -wxy)),
        dot(t, (-uzx, uzy, x2 - y2)),
        dot(t, (-wyz, y, wxy)),
        dot(t, (uyx, z2 - x2, -uyz)),
        dot(t, (y2 - z2, -uxy, uxz)),
        dot(t, (wyz, -wxz, z)),
    ]


Array = NDArray[np.float64]

# What each function is called with, besides the parameters, and the name of its result.
FUNCTIONS: dict[str, tuple[tuple[str, ...], str]] = {
    "inverse_dynamics": (("q", "v", "a"), "tau"),
    "regressor": (("q", "v", "a"), "Y"),
    "gravity_torque": (("q",), "tau"),
    "coriolis_torque": (("q", "v"), "tau"),
    "bias_torque": (("q", "v"), "tau"),
    "drive_torque": (("q", "v", "a"), "tau"),
    "mass_matrix": (("q",), "M"),
    "coriolis_matrix": (("q", "v"), "C"),
    "forward_dynamics": (("q", "v", "tau"), "a"),
}
_MEANINGS = {"q": "positions", "v": "velocities", "a": "accelerations", "tau": "torques", "parms": "parameters"}


@dataclass(frozen=True)
class Argument:
    """An input array of a function: its name in the graph, how many numbers it holds, and what they are."""

    name: str
    size: int
    meaning: str


@dataclass(frozen=True, eq=False)
class Function:
    """One function: arguments, and the entries of its result row by row.

    `shape` is (rows,) or (rows, columns). `positive` are nodes that must be positive for the result to mean anything:
    the pivots of a mass matrix. A function of a robot with closed loops has no entries: it calls those of the tree.
    """

    name: str
    arguments: tuple[Argument, ...]
    result: str
    shape: tuple[int, ...]
    entries: tuple[Node, ...]
    positive: tuple[Node, ...] = ()

    @property
    def outputs(self) -> tuple[Node, ...]:
        """All nodes that have to be computed: the entries, then what must be positive."""
        return (*self.entries, *self.positive)


@dataclass(frozen=True, eq=False)
class Request:
    """What a builder works with: the robot, its values in layout order, and the nodes of the arguments."""

    robot: Robot
    graph: Graph
    values: list[Node | float]
    columns: tuple[int, ...]  # of the regressor
    q: list[Node]
    v: list[Node]
    a: list[Node]
    tau: list[Node]

    @property
    def numeric(self) -> bool:
        return not any(isinstance(x, Node) for x in self.values)

    def recursion_bodies(self) -> Bodies:
        """Bodies for Newton-Euler: numbers where they cost least, symbols where they are given."""
        make = joint_bodies if self.numeric else link_bodies
        return make(self.robot, self.graph, self.values)


def arguments_of(robot: Robot, names: Sequence[str], symbols: int | None = None) -> tuple[Argument, ...]:
    """Arguments of these names, and the array of parameters where there are `symbols` of them."""
    sizes = {"q": robot.nq, "v": robot.nv, "a": robot.nv, "tau": robot.nv, "parms": symbols or 0}
    given = names if symbols is None else (*names, "parms")
    return tuple(Argument(k, sizes[k], _MEANINGS[k]) for k in given)


def build_function(
    name: str,
    robot: Robot,
    values: Sequence[float] | Array | None = None,
    symbols: Sequence[int] | None = None,
    columns: Sequence[int] | None = None,
    of_linkage: bool = False,
) -> Function:
    """The graph of one function of FUNCTIONS.

    Parameters are the numbers `values` (p,), or, where `symbols` lists places of the standard vector, the entries of an
    argument array `parms` in that order, all other places zero. `columns` are those a regressor has, all by default.
    With `of_linkage` the robot is the tree of a linkage, whose joints accelerate while its coordinates do not: Coriolis
    and bias torques then have the accelerations as an argument.
    """
    if name not in FUNCTIONS:
        raise UnknownName(f"no function is named '{name}', there are {', '.join(FUNCTIONS)}", "name")
    refuse_custom(robot)
    p = len(robot.layout)
    graph = Graph()
    names, result = FUNCTIONS[name]
    if of_linkage and name in ("coriolis_torque", "bias_torque"):
        names = (*names, "a")
    if symbols is not None:
        given: list[Node | float] = [0.0] * p
        for k, place in enumerate(symbols):
            given[place] = graph.input("parms", k)
    else:
        numbers = robot.parameters if values is None else np.asarray(values, dtype=float)
        if numbers.shape != (p,):
            raise InvalidShape(f"expected {p} standard parameters, got shape {numbers.shape}")
        given = [float(x) for x in numbers]
    if robot.base == "instrumented" and name in ("mass_matrix", "coriolis_matrix", "forward_dynamics"):
        # The base stands still: what moves is the robot on a fixed one.
        robot = robot.with_base("fixed")
        given = given[p - len(robot.layout) :]
    every = arguments_of(robot, ("q", "v", "a", "tau"))
    nodes = {x.name: graph.inputs(x.name, x.size) if x.name in names else [graph.zero] * x.size for x in every}
    chosen = tuple(range(p)) if columns is None else tuple(columns)
    shape, entries, positive = _BUILDERS[name](Request(robot, graph, given, chosen, **nodes))
    made = simplified([*entries, *positive])
    arguments = arguments_of(robot, names, None if symbols is None or name == "regressor" else len(symbols))
    return Function(name, arguments, result, shape, tuple(made[: len(entries)]), tuple(made[len(entries) :]))


Built = tuple[tuple[int, ...], list[Node], list[Node]]


def _vector(entries: Sequence[Node]) -> Built:
    return (len(entries),), list(entries), []


def _matrix(rows: Sequence[Sequence[Node]]) -> Built:
    return (len(rows), len(rows[0])), [x for row in rows for x in row], []


def _rigid(r: Request, v: list[Node], a: list[Node], gravity: bool = True) -> list[Node]:
    model = r.recursion_bodies()
    base, tau = torques(model, r.q, v, a, gravity)
    return [*base, *tau] if model.wrench else tau


def _with_drives(r: Request, tau: list[Node], a: list[Node]) -> list[Node]:
    first = len(tau) - r.robot.n
    drives = drive_torques(r.robot, r.graph, r.values, r.q, r.v, a)
    return tau[:first] + [x + y for x, y in zip(tau[first:], drives, strict=True)]


def _inverse_dynamics(r: Request) -> Built:
    return _vector(_with_drives(r, _rigid(r, r.v, r.a), r.a))


def _gravity_torque(r: Request) -> Built:
    still = [r.graph.zero] * r.robot.nv
    return _vector(_rigid(r, still, still))


def _coriolis_torque(r: Request) -> Built:
    return _vector(_with_rotors(r, _rigid(r, r.v, r.a, gravity=False)))


def _bias_torque(r: Request) -> Built:
    return _vector(_with_rotors(r, _rigid(r, r.v, r.a)))


def _with_rotors(r: Request, tau: list[Node]) -> list[Node]:
    """Torques and those that accelerate rotors; the accelerations are zero unless they are an argument."""
    rotors = [[r.graph.zero] * r.robot.n for _ in range(r.robot.n)]
    drive_inertia(r.robot, r.values, rotors)
    first, a = len(tau) - r.robot.n, r.a[len(r.a) - r.robot.n :]
    turning = [r.graph.total(x * y for x, y in zip(row, a, strict=True)) for row in rotors]
    return tau[:first] + [x + y for x, y in zip(tau[first:], turning, strict=True)]


def _drive_torque(r: Request) -> Built:
    return _vector(drive_torques(r.robot, r.graph, r.values, r.q, r.v, r.a))


def _regressor(r: Request) -> Built:
    rows = regressor(r.robot, link_bodies(r.robot, r.graph, None), r.q, r.v, r.a, set(r.columns))
    return _matrix([[row[c] for c in r.columns] for row in rows])


def _mass(r: Request) -> list[list[Node]]:
    out = mass_matrix(joint_bodies(r.robot, r.graph, r.values), r.q)
    drive_inertia(r.robot, r.values, out)
    return out


def _mass_matrix(r: Request) -> Built:
    return _matrix(_mass(r))


def _coriolis_matrix(r: Request) -> Built:
    return _matrix(coriolis_matrix(joint_bodies(r.robot, r.graph, r.values), r.q, r.v))


def _forward_dynamics(r: Request) -> Built:
    still = [r.graph.zero] * r.robot.nv
    bias = _with_drives(r, _rigid(r, r.v, still), still)
    x = [t - b for t, b in zip(r.tau, bias, strict=True)]
    pivots = _solve(_mass(r), x)
    return (len(x),), x, pivots


def _solve(mass: list[list[Node]], x: list[Node]) -> list[Node]:
    """Solve mass * y = x in place by mass = L' D L from the last row up, which keeps the zeros between branches.

    Gives the pivots D (Featherstone 2008, section 6.5).
    """
    n = len(x)
    lower = [row[:] for row in mass]
    pivots, inverse = [], []
    for k in range(n - 1, -1, -1):
        pivots.append(lower[k][k])
        inverse.append(lower[k][k].graph.div(1.0, lower[k][k]))
        scaled = [lower[k][i] * inverse[-1] for i in range(k)]
        for i in range(k):
            for j in range(i + 1):
                lower[i][j] = lower[i][j] - scaled[i] * lower[k][j]
        lower[k][:k] = scaled
    inverse.reverse()
    for k in range(n - 1, -1, -1):
        for i in range(k):
            x[i] = x[i] - lower[k][i] * x[k]
    for k in range(n):
        x[k] = x[k] * inverse[k]
        for i in range(k):
            x[k] = x[k] - lower[k][i] * x[i]
    return pivots


_BUILDERS: dict[str, Callable[[Request], Built]] = {
    "inverse_dynamics": _inverse_dynamics,
    "regressor": _regressor,
    "gravity_torque": _gravity_torque,
    "coriolis_torque": _coriolis_torque,
    "bias_torque": _bias_torque,
    "drive_torque": _drive_torque,
    "mass_matrix": _mass_matrix,
    "coriolis_matrix": _coriolis_matrix,
    "forward_dynamics": _forward_dynamics,
}
