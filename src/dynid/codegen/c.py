"""Graphs as C99: one header and one source, nothing but math.h."""

from __future__ import annotations

from collections.abc import Iterator
from math import factorial

from dynid.codegen.c_linkage import closed_bodies, closed_declarations, closed_macros, closed_solver
from dynid.codegen.functions import Function
from dynid.codegen.graph import reachable
from dynid.codegen.program import Program
from dynid.codegen.statements import MEANINGS, Notation, Texts, conditions, folded, head_lines, title_lines

__all__ = ["SINE_COSINE", "emit_c"]


# Sine and cosine of one angle together, as C that the compiler can put in line.
#
# The angle is brought to [-pi/4, pi/4] by subtracting a multiple of pi/2 in three parts, the first two of 33 bits so
# that
# their products with the multiple are exact (Cody and Waite 1980); there the Taylor series to x^15 and x^16 are exact
# to
# rounding. No branch depends on the quadrant. Angles beyond 1e5, and what is no number, go to the library.


def _series(first: int) -> str:
    """Seven terms in z = x^2 of alternating 1/n! from n = first on, grouped so that they can run side by side."""
    sign = 1 if first % 4 in (0, 1) else -1
    terms = [sign * (-1) ** k / factorial(first + 2 * k) for k in range(7)]
    pairs = [f"({terms[k]!r} + z * {terms[k + 1]!r})" for k in (0, 2, 4)]
    return f"({pairs[0]} + z2 * {pairs[1]})\n                    + z4 * ({pairs[2]} + z2 * {terms[6]!r})"


SINE_COSINE = f"""static inline void sine_cosine(double x, double *s, double *c)
{{
    static const double turn[4] = {{1.0, 0.0, -1.0, 0.0}};
    if (!(fabs(x) < 100000.0)) {{
        *s = sin(x);
        *c = cos(x);
        return;
    }}
    /* Added before the cut, 131072 makes it a rounding for either sign. */
    const int k = (int)(x * 0.6366197723675814 + 131072.5) - 131072;
    const double n = (double)k, here = turn[k & 3], back = turn[(k + 3) & 3];
    const double r = ((x - n * 1.5707963267341256) - n * 6.077100506303966e-11) - n * 2.0222662487959506e-21;
    const double z = r * r, z2 = z * z, z4 = z2 * z2;
    const double odd = {_series(3)};
    const double even = {_series(4)};
    const double sine = r + r * z * (odd), cosine = (1.0 - 0.5 * z) + z2 * (even);
    *s = here * sine + back * cosine;
    *c = here * cosine - back * sine;
}}
"""


_HELPERS = {
    "sign": "static double sign(double x)\n{\n    return (double)((x > 0.0) - (x < 0.0));\n}\n",
    "step": "static double step(double x)\n{\n    return x > 0.0 ? 1.0 : 0.0;\n}\n",
    "ramp": "static double ramp(double x)\n{\n    return x > 0.0 ? x : 0.0;\n}\n",
}
_NOTATION = Notation({kind: f"{kind}({{}})" for kind in ("sin", "cos", "tanh", "exp", *_HELPERS)})
# What could end a comment early, or carry it on.
_UNSAFE = r"/\*|\*/|\\"


def emit_c(program: Program) -> dict[str, str]:
    """Text of NAME.h and NAME.c."""
    return {f"{program.name}.h": _header(program), f"{program.name}.c": _source(program)}


def _header(program: Program) -> str:
    robot, guard = program.robot, program.name.upper()
    lines = [*_comment(head_lines(program)), "", f"#ifndef {guard}_H", f"#define {guard}_H", ""]
    sizes = {
        "NQ": robot.nq,
        "NV": robot.nv,
        "CHANNELS": len(robot.channels),
        "PARAMETERS": len(program.parameter_names),
    }
    lines += [f"#define {guard}_{what} {size}" for what, size in sizes.items()]
    lines += closed_macros(program) if program.linkage else []
    lines += ["", "#ifdef __cplusplus", f"#define {guard}_RESTRICT", 'extern "C" {', "#else"]
    lines += [f"#define {guard}_RESTRICT restrict", "#endif", ""]
    for words, signature in closed_declarations(program) if program.linkage else ():
        lines += [*_comment(words), f"{signature};", ""]
    for function in program.functions:
        lines += [*_comment(_words(program, function)), f"{_signature(program, function)};", ""]
    return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""])


def _source(program: Program) -> str:
    lines = [*_comment(title_lines(program)), "", f'#include "{program.name}.h"', "", "#include <math.h>", ""]
    linkage = program.linkage
    inner = linkage.inner if linkage else ()
    used = {x.kind for f in (*program.functions, *inner) for x in reachable(f.outputs)}
    inline = program.sines == "inline"
    lines += [SINE_COSINE] if inline and used & {"sin", "cos"} else []
    lines += [text for kind, text in _HELPERS.items() if kind in used]
    for function in inner:
        prefix = "" if function.name.startswith("loop_") else "tree_"
        lines += [_signature(program, function, f"static void {prefix}{function.name}("), "{"]
        lines += [*_body(function, inline), "}", ""]
    lines += [closed_solver(program)] if linkage else []
    for function in program.functions:
        body = closed_bodies(program, function) if linkage else _body(function, inline)
        lines += [_signature(program, function), "{", *body, "}", ""]
    return "\n".join(lines)


def _words(program: Program, function: Function) -> list[str]:
    shape = " x ".join(map(str, function.shape)) + (", row by row" if len(function.shape) > 1 else "")
    out = [f"{MEANINGS[function.name]}: {function.result} ({shape})."]
    if program.linkage:
        out.append("Returns a status.")
    if function.positive:
        out.append("Returns 0, or 1 where the mass matrix is not positive definite and the result means nothing.")
    return [*out, f"{program.operations(function)}{' in the tree' if program.linkage else ''}."]


def _signature(program: Program, function: Function, start: str = "") -> str:
    """Signature of a public function, or of an inner one with its own start."""
    guard = f"{program.name.upper()}_RESTRICT"
    closed = program.linkage is not None and not start
    kind = "int" if function.positive or closed else "void"
    start = start or f"{kind} {program.name}_{function.name}("
    arguments = [f"const double *{guard} {x.name}" for x in function.arguments]
    arguments += [f"double *{guard} posture"] if closed else []
    arguments.append(f"double *{guard} {function.result}")
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
    places: dict[int, list[int]] = {}
    for i, node in enumerate(function.entries):
        places.setdefault(node.index, []).append(i)
    texts = Texts(function, _NOTATION, named=("tanh", "exp", *_HELPERS))
    angles: dict[int, int] = {}
    for node in order:
        if inline_sines and node.kind in ("sin", "cos"):
            angle = node.args[0]
            if angle.index not in angles:
                k = angles[angle.index] = len(angles)
                yield f"    double s{k}, c{k};"
                yield f"    sine_cosine({texts[angle]}, &s{k}, &c{k});"
            texts.set(node, f"{node.kind[0]}{angles[angle.index]}")
        elif assignment := texts.add(node):
            yield f"    const double {assignment};"
        # Results are stored as soon as they are known: held back to the end they would all need a place meanwhile.
        for i in places.get(node.index, ()):
            yield f"    {function.result}[{i}] = {texts[node]};"
    if function.positive:
        tests = [f"{texts[x]} > 0.0" for x in conditions(function)]
        yield "    return !(" + "\n             && ".join(tests or ["1"]) + ");"


def _comment(lines: list[str]) -> list[str]:
    """A block comment that nothing in the lines can end early."""
    return ["/*", *(f" * {x}".rstrip() for x in folded(lines, _UNSAFE)), " */"]
