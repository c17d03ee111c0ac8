"""Graphs as C99: one header and one source, nothing but math.h."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from dynid.codegen.c_sines import SINE_COSINE
from dynid.codegen.functions import Function
from dynid.codegen.graph import Node, reachable, use_counts
from dynid.codegen.operations import count_operations
from dynid.codegen.program import Program

__all__ = ["emit_c"]

_HELPERS = {
    "sign": "static double sign(double x)\n{\n    return (double)((x > 0.0) - (x < 0.0));\n}\n",
    "step": "static double step(double x)\n{\n    return x > 0.0 ? 1.0 : 0.0;\n}\n",
    "ramp": "static double ramp(double x)\n{\n    return x > 0.0 ? x : 0.0;\n}\n",
}
_SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
# How tightly an expression holds together: a looser one inside a tighter one needs brackets.
_SUM, _PRODUCT, _ATOM = 0, 1, 2
_WIDTH = 96
_MEANINGS = {
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


def emit_c(program: Program) -> dict[str, str]:
    """Text of NAME.h and NAME.c."""
    return {f"{program.name}.h": _header(program), f"{program.name}.c": _source(program)}


def _header(program: Program) -> str:
    robot, guard = program.robot, program.name.upper()
    lines = [*_comment(_head(program)), "", f"#ifndef {guard}_H", f"#define {guard}_H", ""]
    sizes = {
        "NQ": robot.nq,
        "NV": robot.nv,
        "CHANNELS": len(robot.channels),
        "PARAMETERS": len(program.parameter_names),
    }
    lines += [f"#define {guard}_{what} {size}" for what, size in sizes.items()]
    lines += ["", "#ifdef __cplusplus", f"#define {guard}_RESTRICT", 'extern "C" {', "#else"]
    lines += [f"#define {guard}_RESTRICT restrict", "#endif", ""]
    for function in program.functions:
        lines += [*_comment(_words(program, function)), f"{_signature(program, function)};", ""]
    return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""])


def _source(program: Program) -> str:
    lines = [*_comment(_head(program, short=True)), "", f'#include "{program.name}.h"', "", "#include <math.h>", ""]
    used = {x.kind for f in program.functions for x in reachable(f.outputs)}
    inline = program.sines == "inline"
    lines += [SINE_COSINE] if inline and used & {"sin", "cos"} else []
    lines += [text for kind, text in _HELPERS.items() if kind in used]
    for function in program.functions:
        lines += [_signature(program, function), "{", *_body(function, inline), "}", ""]
    return "\n".join(lines)


def _head(program: Program, short: bool = False) -> list[str]:
    robot = program.robot
    out = [f"Dynamics of {robot.name}, written by dynid.", *program.notes]
    if short:
        return out
    out += [
        "",
        f"q: {_positions(program)}.",
        f"v, a: {_rates(program)}.",
        f"Channels: {', '.join(robot.channels)}.",
        "",
    ]
    kind, where = program.kind_of_parameters, "the argument parms" if program.symbolic else "constants of the code"
    out.append(f"The {len(program.parameter_names)} {kind} parameters are {where}:")
    for i, (name, unit) in enumerate(zip(program.parameter_names, program.parameter_units, strict=True)):
        value = "" if program.parameter_values is None else f" = {float(program.parameter_values[i])!r}"
        out.append(f"  {i}: {name}{value}{f' {unit}' if unit else ''}")
    return out


def _positions(program: Program) -> str:
    base = "base position, quaternion x y z w, " if program.robot.base == "floating" else ""
    return base + ", ".join(program.robot.coordinates)


def _rates(program: Program) -> str:
    base = "base twist in base axes (linear, angular), " if program.robot.base == "floating" else ""
    return base + "the joints in the same order"


def _words(program: Program, function: Function) -> list[str]:
    shape = " x ".join(map(str, function.shape)) + (", row by row" if len(function.shape) > 1 else "")
    out = [f"{_MEANINGS[function.name]}: {function.result} ({shape})."]
    if function.positive:
        out.append("Returns 0, or 1 where the mass matrix is not positive definite and the result means nothing.")
    return [*out, f"{count_operations(function.outputs)}."]


def _signature(program: Program, function: Function) -> str:
    guard = f"{program.name.upper()}_RESTRICT"
    kind = "int" if function.positive else "void"
    arguments = [f"const double *{guard} {x.name}" for x in function.arguments]
    arguments.append(f"double *{guard} {function.result}")
    start = f"{kind} {program.name}_{function.name}("
    return start + f",\n{' ' * len(start)}".join(arguments) + ")"


def _body(function: Function, inline_sines: bool) -> Iterator[str]:
    outputs = function.outputs
    # Sines and cosines come first, in pairs: a call in the middle would push everything alive out of the registers.
    trigonometric = sorted(
        (x for x in reachable(outputs) if x.kind in ("sin", "cos")), key=lambda x: (x.args[0].index, x.kind)
    )
    order = reachable([*trigonometric, *outputs])
    read = {x.name for x in order if x.kind == "input"}
    for argument in function.arguments:
        if argument.name not in read:
            yield f"    (void){argument.name};"
    uses = use_counts(outputs)
    places: dict[int, list[int]] = {}
    for i, node in enumerate(function.entries):
        places.setdefault(node.index, []).append(i)
    texts: dict[int, tuple[str, int]] = {}
    count = 0
    angles: dict[int, int] = {}
    for node in order:
        if inline_sines and node.kind in ("sin", "cos"):
            angle = node.args[0].index
            if angle not in angles:
                k = angles[angle] = len(angles)
                yield f"    double s{k}, c{k};"
                yield f"    sine_cosine({texts[angle][0]}, &s{k}, &c{k});"
            text, grip = f"{node.kind[0]}{angles[angle]}", _ATOM
        else:
            text, grip = _expression(node, texts)
        plain = node.kind in ("const", "input") or (inline_sines and node.kind in ("sin", "cos"))
        if not plain and (uses[node.index] > 1 or len(text) > _WIDTH or node.kind in _HELPERS or node.kind == "tanh"):
            yield f"    const double x{count} = {text};"
            text, grip = f"x{count}", _ATOM
            count += 1
        texts[node.index] = text, grip
        # Results are stored as soon as they are known: held back to the end they would all need a place meanwhile.
        for i in places.get(node.index, ()):
            yield f"    {function.result}[{i}] = {text};"
    if function.positive:
        tests = [f"{texts[x.index][0]} > 0.0" for x in function.positive if x.kind != "const" or x.value <= 0]
        yield "    return !(" + "\n             && ".join(tests or ["1"]) + ");"


def _expression(node: Node, texts: dict[int, tuple[str, int]]) -> tuple[str, int]:
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
    return f"{node.kind}({parts[0][0]})", _ATOM


def _held(part: tuple[str, int], grip: int) -> str:
    text, own = part
    return text if own >= grip else f"({text})"


def _comment(lines: list[str]) -> list[str]:
    """A block comment that nothing in the lines can end early."""
    out = []
    for line in lines:
        plain = re.sub(r"[^\x20-\x7e]|/\*|\*/|\\", "?", line)
        out += textwrap.wrap(plain, 110, subsequent_indent="    ", break_long_words=False) or [""]
    return ["/*", *(f" * {x}".rstrip() for x in out), " */"]
