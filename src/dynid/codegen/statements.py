"""Parts shared by all emitters: the header of a file, and expressions with single-use terms written inline."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from dynid.codegen.functions import Function
from dynid.codegen.graph import Node, reachable, use_counts
from dynid.codegen.program import Program

__all__ = [
    "MEANINGS",
    "Notation",
    "Texts",
    "assignments",
    "conditions",
    "folded",
    "head_lines",
    "places",
    "plain",
    "title_lines",
]

MEANINGS = {
    "inverse_dynamics": "torque of every channel for a motion, drives included",
    "regressor": "coefficients of the parameters in the torques, channel by channel",
    "gravity_torque": "torque that holds the robot still against gravity, without drives",
    "coriolis_torque": "centrifugal and Coriolis torque",
    "bias_torque": "Coriolis and gravity torque together, without drives",
    "drive_torque": "friction, rotor inertia, offsets and springs, joint by joint",
    "mass_matrix": "mass matrix, rotor inertias included",
    "coriolis_matrix": "C with C v the Coriolis torque and dM/dt = C + C'",
    "forward_dynamics": "acceleration under given torques, drives included",
    "loop_rows": "residual of the loops, its columns of the passive joints and those of the independent joints",
    "loop_bars": "ends and lengths of two bars that close a loop, and the angles by which other joints turn them",
    "loop_drift": "second derivative of the residual without joint accelerations",
}
# How tightly an expression holds together: a looser one inside a tighter one needs brackets.
_SUM, _PRODUCT, _ATOM = 0, 1, 2
_WIDTH = 96


@dataclass(frozen=True)
class Notation:
    """How a language writes calls, as "np.sin({})", products, quotients, and one number of an argument.

    `first` is the place of the first number of an array.
    """

    calls: Mapping[str, str]
    element: str = "{}[{}]"
    first: int = 0
    product: str = "*"
    quotient: str = "/"


class Texts:
    """Texts of a function's nodes, given in order, arguments first; what is read once is written in place.

    A call of `named` gets a name in any case.
    """

    def __init__(self, function: Function, notation: Notation, named: Collection[str] = ()) -> None:
        self._uses = use_counts(function.outputs)
        self._notation, self._named = notation, named
        self._texts: dict[int, tuple[str, int]] = {}
        self._count = 0

    def add(self, node: Node) -> str:
        """The assignment "name = expression" that the node needs, or nothing where it is written in place."""
        text, _ = self._texts[node.index] = _expression(node, self._texts, self._notation)
        in_place = self._uses[node.index] <= 1 and len(text) <= _WIDTH and node.kind not in self._named
        if in_place or node.kind in ("const", "input"):
            return ""
        name = f"x{self._count}"
        self._count += 1
        self.set(node, name)
        return f"{name} = {text}"

    def set(self, node: Node, name: str) -> None:
        """Let a node go by a name that it was given elsewhere."""
        self._texts[node.index] = name, _ATOM

    def __getitem__(self, node: Node) -> str:
        return self._texts[node.index][0]


def assignments(function: Function, texts: Texts) -> Iterator[str]:
    """The assignments of everything that a function needs, in order."""
    return (line for node in reachable(function.outputs) if (line := texts.add(node)))


def conditions(function: Function) -> list[Node]:
    """What must be positive and is not known to be."""
    return [x for x in function.positive if x.kind != "const" or x.value <= 0]


def places(shape: tuple[int, ...]) -> list[str]:
    """Places of the entries of a result row by row, counted from one."""
    return [", ".join(str(i + 1) for i in place) for place in np.ndindex(shape)]


def _expression(node: Node, texts: dict[int, tuple[str, int]], notation: Notation) -> tuple[str, int]:
    """Text of a node from that of its arguments, and how tightly it holds together."""
    if node.kind == "const":
        return repr(node.value), _ATOM if node.value >= 0 else _SUM
    if node.kind == "input":
        return notation.element.format(node.name, node.position + notation.first), _ATOM
    parts = [texts[x.index] for x in node.args]
    if node.kind == "neg":
        return f"-{_held(parts[0], _ATOM)}", _SUM
    if node.kind in ("add", "sub"):
        # Brackets on the right keep the order of summation that was counted and tested.
        sign = "+" if node.kind == "add" else "-"
        return f"{_held(parts[0], _SUM)} {sign} {_held(parts[1], _PRODUCT)}", _SUM
    if node.kind in ("mul", "div"):
        sign = notation.product if node.kind == "mul" else notation.quotient
        return f"{_held(parts[0], _PRODUCT)} {sign} {_held(parts[1], _ATOM)}", _PRODUCT
    return notation.calls[node.kind].format(parts[0][0]), _ATOM


def _held(part: tuple[str, int], grip: int) -> str:
    text, own = part
    return text if own >= grip else f"({text})"


def title_lines(program: Program) -> list[str]:
    """Whose dynamics, and from where."""
    return [f"Dynamics of {program.robot.name}, written by dynid.", *program.notes]


def head_lines(program: Program) -> list[str]:
    """What a reader should know: the title, what the arrays hold, every parameter with its unit."""
    robot = program.robot
    flying = robot.base == "floating"
    positions = "base position, quaternion x y z w, " if flying else ""
    rates = "base twist in base axes (linear, angular), " if flying else ""
    out = [*title_lines(program), ""]
    out.append(f"q: {positions}{', '.join(robot.coordinates)}.")
    out.append(f"v, a: {rates}the joints in the same order.")
    if program.linkage:
        out.append(f"Joints of the tree: {', '.join(robot.tree_coordinates)}. Passive: {', '.join(robot.passive)}.")
        out.append("posture: the joints of the tree in a posture in which the loops close, from which q is reached.")
    out += [f"Channels: {', '.join(robot.channels)}.", ""]
    where = "the argument parms" if program.symbolic else "constants of the code"
    out.append(f"The {len(program.parameter_names)} {program.kind_of_parameters} parameters are {where}:")
    for i, (name, unit) in enumerate(zip(program.parameter_names, program.parameter_units, strict=True)):
        value = "" if program.parameter_values is None else f" = {float(program.parameter_values[i])!r}"
        out.append(f"  {i}: {name}{value}{f' {unit}' if unit else ''}")
    return out


def plain(text: str, unsafe: str) -> str:
    """Printable ASCII; anything else, and what matches `unsafe`, becomes "?"."""
    return re.sub(rf"[^\x20-\x7e]|{unsafe}", "?", text)


def folded(lines: Iterable[str], unsafe: str) -> list[str]:
    """Plain lines of a comment, no wider than a page as far as their words allow."""
    out = []
    for line in lines:
        out += textwrap.wrap(plain(line, unsafe), 110, subsequent_indent="    ", break_long_words=False) or [""]
    return out
