"""What texts of generated code share: the head that tells what it is, and assignments with single uses in place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dynid.codegen.functions import Function
from dynid.codegen.graph import Node, reachable, use_counts
from dynid.codegen.program import Program

__all__ = ["MEANINGS", "Statements", "head_lines", "statements"]

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
}
_SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
# How tightly an expression holds together: a looser one inside a tighter one needs brackets.
_SUM, _PRODUCT, _ATOM = 0, 1, 2
_WIDTH = 96


@dataclass(frozen=True)
class Statements:
    """Assignments (name, expression) in order, then the expressions of the entries and of what must be positive."""

    assignments: tuple[tuple[str, str], ...]
    entries: tuple[str, ...]
    positive: tuple[str, ...]


def statements(function: Function, calls: Mapping[str, str]) -> Statements:
    """A function as lines of text; `calls` says how each kind of call is written, as "np.sin({})"."""
    uses = use_counts(function.outputs)
    texts: dict[int, tuple[str, int]] = {}
    assignments: list[tuple[str, str]] = []
    for node in reachable(function.outputs):
        text, grip = _expression(node, texts, calls)
        if node.kind not in ("const", "input") and (uses[node.index] > 1 or len(text) > _WIDTH):
            name = f"x{len(assignments)}"
            assignments.append((name, text))
            text, grip = name, _ATOM
        texts[node.index] = text, grip
    told = [x for x in function.positive if x.kind != "const" or x.value <= 0]
    return Statements(
        tuple(assignments),
        tuple(texts[x.index][0] for x in function.entries),
        tuple(texts[x.index][0] for x in told),
    )


def _expression(node: Node, texts: dict[int, tuple[str, int]], calls: Mapping[str, str]) -> tuple[str, int]:
    """Text of a node from that of its arguments, and how tightly it holds together."""
    if node.kind == "const":
        return repr(node.value), _ATOM if node.value >= 0 else _SUM
    if node.kind == "input":
        return f"{node.name}[{node.position}]", _ATOM
    parts = [texts[x.index] for x in node.args]
    if node.kind == "neg":
        return f"-{_held(parts[0], _ATOM)}", _SUM
    if node.kind in ("add", "sub"):
        # Brackets on the right keep the order of summation that was counted and tested.
        return f"{_held(parts[0], _SUM)} {_SYMBOLS[node.kind]} {_held(parts[1], _PRODUCT)}", _SUM
    if node.kind in ("mul", "div"):
        return f"{_held(parts[0], _PRODUCT)} {_SYMBOLS[node.kind]} {_held(parts[1], _ATOM)}", _PRODUCT
    return calls[node.kind].format(parts[0][0]), _ATOM


def _held(part: tuple[str, int], grip: int) -> str:
    text, own = part
    return text if own >= grip else f"({text})"


def head_lines(program: Program) -> list[str]:
    """What a reader should know: whose dynamics, from where, what the arrays hold, every parameter with its unit."""
    robot = program.robot
    flying = robot.base == "floating"
    positions = "base position, quaternion x y z w, " if flying else ""
    rates = "base twist in base axes (linear, angular), " if flying else ""
    out = [f"Dynamics of {robot.name}, written by dynid.", *program.notes, ""]
    out.append(f"q: {positions}{', '.join(robot.coordinates)}.")
    out.append(f"v, a: {rates}the joints in the same order.")
    out += [f"Channels: {', '.join(robot.channels)}.", ""]
    where = "the argument parms" if program.symbolic else "constants of the code"
    out.append(f"The {len(program.parameter_names)} {program.kind_of_parameters} parameters are {where}:")
    for i, (name, unit) in enumerate(zip(program.parameter_names, program.parameter_units, strict=True)):
        value = "" if program.parameter_values is None else f" = {float(program.parameter_values[i])!r}"
        out.append(f"  {i}: {name}{value}{f' {unit}' if unit else ''}")
    return out
