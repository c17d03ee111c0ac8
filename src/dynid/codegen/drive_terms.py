"""Friction, rotor inertia, offsets and springs on the graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.codegen.graph import Graph, Node
from dynid.errors import ModelError
from dynid.robot.drives import DRIVE_LAWS, DriveTerm, TermKind
from dynid.robot.model import Robot

__all__ = ["drive_columns", "drive_inertia", "drive_torques", "refuse_custom"]


def refuse_custom(robot: Robot) -> None:
    """Raise where a drive term is a Python function, which no other language can call."""
    custom = [term.name for term in robot.drives if term.kind == TermKind.CUSTOM]
    if custom:
        raise ModelError(
            f"{', '.join(custom)}: a column given as a Python function cannot be written as code; "
            'leave it out with robot.without("NAME") and add its torque by hand',
            code="unsupported",
        )


def drive_columns(
    robot: Robot, graph: Graph, q: Sequence[Node], v: Sequence[Node], a: Sequence[Node]
) -> dict[int, dict[int, Node]]:
    """For each drive parameter (by its column) the torque of a unit on the joints it acts on."""
    refuse_custom(robot)
    q, v, a = q[-robot.n :], v[-robot.n :], a[-robot.n :]
    columns = {name: i for i, name in enumerate(robot.parameter_names)}
    out = {}
    for term in robot.drives:
        law = DRIVE_LAWS[term.symbol]
        x = {"q": q, "v": v, "a": a}[law.motion]
        on = _joints(term)
        shaft = graph.total(x[j] * float(term.direction[j]) for j in on) - term.rest
        rows = {}
        for j in on:
            d = float(term.direction[j])
            own = shaft - x[j] * d if term.cross_only and law.linear else shaft
            rows[j] = law.effort(GraphEffort(graph, term, own)) * d
        out[columns[term.name]] = rows
    return out


def drive_torques(
    robot: Robot, graph: Graph, values: Sequence[Node | float], q: Sequence[Node], v: Sequence[Node], a: Sequence[Node]
) -> list[Node]:
    """Torque of all drive terms on every joint; parameters that multiply the same motion are added first."""
    joints = q[-robot.n :], v[-robot.n :], a[-robot.n :]
    index = {name: i for i, name in enumerate(robot.parameter_names)}
    columns = drive_columns(robot, graph, q, v, a)
    factors: list[dict[int, Node]] = [{} for _ in range(robot.n)]
    rest = [graph.zero] * robot.n

    def gather(row: int, basis: Node, factor: Node | float) -> None:
        if basis.kind == "neg":
            basis, factor = basis.args[0], -factor
        if basis.kind == "mul" and basis.args[0].kind == "const":
            basis, factor = basis.args[1], basis.args[0] * factor
        if basis.kind == "const":
            basis, factor = graph.one, basis * factor
        factors[row][basis.index] = graph.add(factors[row].get(basis.index, graph.zero), factor)

    for term in robot.drives:
        value = values[index[term.name]]
        on = _joints(term)
        law = DRIVE_LAWS[term.symbol]
        if law.linear and (len(on) == 1 or not isinstance(value, Node)):
            x = joints["qva".index(law.motion)]
            for i in on:
                for j in on:
                    if not (term.cross_only and i == j):
                        gather(i, x[j], float(term.direction[i] * term.direction[j]) * value)
                gather(i, graph.one, value * (-term.rest * float(term.direction[i])))
        elif len(on) == 1:
            gather(on[0], columns[index[term.name]][on[0]], value)
        else:
            for row, entry in columns[index[term.name]].items():
                rest[row] = rest[row] + _product(graph, entry, value)
    nodes = graph.nodes
    return [
        graph.total(factor * nodes[basis] for basis, factor in factors[row].items()) + rest[row]
        for row in range(robot.n)
    ]


def drive_inertia(robot: Robot, values: Sequence[Node | float], mass: list[list[Node]]) -> None:
    """Add rotor inertias to a mass matrix, whose last rows are the joints."""
    refuse_custom(robot)
    index = {name: i for i, name in enumerate(robot.parameter_names)}
    first = len(mass) - robot.n
    for term in robot.drives:
        if term.kind != TermKind.INERTIA:
            continue
        on = _joints(term)
        for i in on:
            for j in on:
                if not (term.cross_only and i == j):
                    part = values[index[term.name]] * float(term.direction[i] * term.direction[j])
                    mass[first + i][first + j] = mass[first + i][first + j] + part


def _product(graph: Graph, entry: Node, value: Node | float) -> Node:
    """entry * value with a constant in front of the entry left in front, so that other rows can share the rest."""
    if entry.kind == "neg":
        return graph.neg(_product(graph, entry.args[0], value))
    if entry.kind == "mul" and entry.args[0].kind == "const":
        return graph.mul(entry.args[0], graph.mul(entry.args[1], value))
    return graph.mul(entry, value)


def _joints(term: DriveTerm) -> list[int]:
    """Joints that turn the shaft."""
    return [int(j) for j in np.flatnonzero(term.direction)]


@dataclass(frozen=True)
class GraphEffort:
    """What the effort of a term is made of, on the graph: `s` is the motion of its shaft."""

    graph: Graph
    term: DriveTerm
    s: Node

    @property
    def one(self) -> Node:
        """1."""
        return self.graph.one

    def positive(self) -> Node:
        """The motion where it is positive, else 0."""
        return self.graph.call("ramp", self.s)

    def negative(self) -> Node:
        """The motion where it is negative, else 0."""
        return -self.graph.call("ramp", -self.s)

    def step(self, low: float, high: float) -> Node:
        """A step at zero velocity."""
        if self.term.slope:
            smooth = self.graph.call("tanh", self.s * self.term.slope)
            return smooth * (0.5 * (high - low)) + 0.5 * (high + low)
        if low < 0.0 < high:
            return self.graph.call("sign", self.s)
        return self.graph.call("step", self.s) if high > 0.0 else -self.graph.call("step", -self.s)

    def fading(self) -> Node:
        """exp(-(s / velocity)^2)."""
        part = self.s * (1.0 / self.term.velocity)
        return self.graph.call("exp", -(part * part))
