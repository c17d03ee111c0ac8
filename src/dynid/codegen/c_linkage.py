"""Functions of robots with closed loops in C: close the loops, call the functions of the tree, project the result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from dynid.codegen.c_assembly import (
    ASSEMBLE,
    COLUMNS,
    ITERATION,
    MOTION,
    POSITIVE,
    PROJECT,
    RATES,
    SOLVER,
    START,
    TWO_BARS,
)
from dynid.codegen.closed_form import Ratios
from dynid.codegen.functions import Function
from dynid.codegen.linkage import Linkage
from dynid.codegen.operations import count_operations
from dynid.codegen.program import Program

__all__ = ["STATUS", "closed_bodies", "closed_declarations", "closed_macros", "closed_solver"]

# What every function returns. Unless it is CLOSED, no result is written; unless it is CLOSED or INDEFINITE, the posture
# stays as it was.
STATUS = {
    "CLOSED": (0, "the result is valid"),
    "SINGULAR": (1, "the target is at or beyond a singular posture"),
    "BROKEN": (2, "the loops cannot close at the target, or they are open at the given posture"),
    "FAR": (3, "the target is too far from the given posture for the number of strides, or is not a number"),
    "INDEFINITE": (4, "the mass matrix is not positive definite"),
}
_STRIDES = 64


def closed_macros(program: Program) -> list[str]:
    """Sizes and codes for the header."""
    robot, guard = program.robot, program.name.upper()
    out = [f"#define {guard}_JOINTS {len(robot.tree_coordinates)}", f"#define {guard}_PASSIVE {len(robot.passive)}", ""]
    out += [f"#define {guard}_{code} {number} /* {words} */" for code, (number, words) in STATUS.items()]
    if _linkage(program).steps:
        return out
    out += ["", "/* Most steps of a call, of at most 0.2 rad or m each; a step takes 12 Newton steps at most. */"]
    return [*out, f"#ifndef {guard}_STRIDES", f"#define {guard}_STRIDES {_STRIDES}", "#endif"]


def closed_declarations(program: Program) -> list[tuple[list[str], str]]:
    """Comment and signature of the functions that every linkage has."""
    guard, linkage = program.name.upper(), _linkage(program)
    start = (
        "The posture in which the robot is assembled, which chooses the branch: posture (joints of the tree). The "
        "caller keeps the posture; each of the functions below moves it to q."
    )
    words = [
        "motion of all joints of the tree: joint_v, joint_a (joints of the tree), and slopes (passive joint x joint, "
        "row by row), the velocity of a passive joint per velocity of a joint. Returns a status.",
        "Passive joints in closed form."
        if linkage.steps
        else f"One Newton step: {count_operations(linkage.rows.outputs)}, and a solution by least squares.",
    ]
    arguments = [f"const double *{guard}_RESTRICT {x}" for x in "qva"]
    arguments += [f"double *{guard}_RESTRICT {x}" for x in ("posture", "joint_v", "joint_a", "slopes")]
    first = f"int {program.name}_assemble("
    return [
        ([start], f"void {program.name}_start(double *posture)"),
        (words, first + f",\n{' ' * len(first)}".join(arguments) + ")"),
    ]


def closed_solver(program: Program) -> str:
    """The iteration and the two functions of every linkage."""
    robot, names = program.robot, program.robot.tree_coordinates
    tree, guard = robot.tree, program.name.upper()
    used = {f.name for f in program.functions}
    sizes = {
        "JOINTS": len(names),
        "FREE": robot.n,
        "PASSIVE": len(robot.passive),
        "ROWS": _linkage(program).drift.shape[0],
        "BASE_Q": robot.nq - robot.n,
        "BASE": robot.nv - robot.n,
        "NV": robot.nv,
        "TREE_NQ": tree.nq,
        "TREE_NV": tree.nv,
    }
    assert robot.assembled is not None
    free, passive = ([names.index(x) for x in group] for group in (robot.coordinates, robot.passive))
    lines = ["enum {", *(f"    {key} = {value}," for key, value in sizes.items()), "};", ""]
    lines += [f"static const int free_joint[FREE] = {_list(free)};"]
    lines += [f"static const int passive_joint[PASSIVE] = {_list(passive)};"]
    lines += [f"static const double assembled[JOINTS] = {_list(float(x) for x in robot.assembled)};", SOLVER]
    lines += [*_closed_form(program), MOTION] if _linkage(program).steps else [ITERATION, MOTION]
    (_, start), (_, assemble) = closed_declarations(program)
    lines += [start, START, assemble, ASSEMBLE, PROJECT]
    if used & {"mass_matrix", "coriolis_matrix", "forward_dynamics"}:
        lines.append(COLUMNS)
    if "coriolis_matrix" in used:
        lines.append(RATES)
    if "forward_dynamics" in used:
        lines.append(POSITIVE)
    return "\n".join(lines).replace("NAME_", f"{guard}_")


def _closed_form(program: Program) -> Iterator[str]:
    """The function that closes the loops without an iteration."""
    steps = _linkage(program).steps
    if not all(isinstance(step, Ratios) for step in steps):
        yield TWO_BARS
    yield "static int close_loops(const double *target, double *posture, struct closure *w)\n{"
    yield "    double joints[JOINTS];\n    copy(JOINTS, posture, joints);"
    yield "    for (int j = 0; j < FREE; j++) {\n        if (!(fabs(target[j]) <= 1e9)) {"
    yield "            return NAME_FAR;\n        }\n        joints[free_joint[j]] = target[j];\n    }"
    for step in steps:
        if isinstance(step, Ratios):
            terms = "".join(f" + {ratio!r} * target[{j}]" for j, ratio in step.terms)
            yield f"    joints[{step.joint}] = {step.constant!r}{terms};"
            continue
        name, (i, k) = step.bars.name, step.joints
        yield f"    static const double {name}_signs[2] = {_list(step.signs)};"
        yield f"    double {name}_found[8];\n    {name}(joints, {name}_found);"
        given = f"{name}_found, {step.branch!r}, {int(step.serial)}, {name}_signs, joints + {i}, joints + {k}"
        yield f"    if (!two_bars({given})) {{\n        return NAME_BROKEN;\n    }}"
    yield "    const int status = tangent(w, joints);"
    yield "    if (status == NAME_CLOSED) {\n        copy(JOINTS, joints, posture);\n    }"
    yield "    return status;\n}"


def closed_bodies(program: Program, function: Function) -> Iterator[str]:
    """Lines of a function of the linkage: close the loops, call the functions of the tree, project."""
    guard, parts = program.name.upper(), _linkage(program).parts(function.name)
    own = {x.name for x in function.arguments}
    read = {x.name for part in parts for x in part.arguments}
    yield "    struct closure w;"
    yield "    const int status = close_loops(q + BASE_Q, posture, &w);"
    yield f"    if (status != {guard}_CLOSED) {{\n        return status;\n    }}"
    yield "    double tree_q[TREE_NQ];"
    yield "    copy(BASE_Q, q, tree_q);\n    copy(JOINTS, posture, tree_q + BASE_Q);"
    if "v" in read:
        yield "    double tree_v[TREE_NV];\n    copy(BASE, v, tree_v);"
    if "a" in read:
        a = "a" if "a" in own else "still"
        if a == "still":
            yield "    static const double still[NV] = {0.0};"
        yield f"    double tree_a[TREE_NV];\n    copy(BASE, {a}, tree_a);"
        yield f"    move_joints(&w, posture, v + BASE, {a} + BASE, tree_v + BASE, tree_a + BASE);"
    elif "v" in read:
        yield "    move_all(&w, v + BASE, tree_v + BASE);"
    for part in parts:
        inputs = [x.name if x.name == "parms" else f"tree_{x.name}" for x in part.arguments]
        yield f"    double tree_{part.result}[{int(np.prod(part.shape))}];"
        yield f"    tree_{part.name}({', '.join([*inputs, f'tree_{part.result}'])});"
    yield from _projected(program, function, parts)
    yield f"    return {guard}_CLOSED;"


def _projected(program: Program, function: Function, parts: Sequence[Function]) -> Iterator[str]:
    if function.name in ("mass_matrix", "coriolis_matrix"):
        yield "    double half[TREE_NV * NV];"
        yield f"    columns(&w, tree_{function.result}, half);"
        if function.name == "coriolis_matrix":
            yield "    add_rates(&w, posture, v + BASE, tree_M, half);"
        yield f"    project(&w, BASE, NV, half, {function.result});"
    elif function.name == "forward_dynamics":
        rows = parts[0].shape[0] - len(program.robot.passive)
        first = f"{rows - program.robot.nv} + " if rows > program.robot.nv else ""
        yield f"    double half[TREE_NV * NV], M[NV * NV], bias[{rows}];"
        yield "    columns(&w, tree_M, half);\n    project(&w, BASE, NV, half, M);"
        yield f"    project(&w, {rows - program.robot.n}, 1, tree_tau, bias);"
        yield "    if (!factor_positive(M)) {"
        yield f"        return {program.name.upper()}_INDEFINITE;\n    }}"
        yield f"    for (int i = 0; i < NV; i++) {{\n        a[i] = tau[i] - bias[{first}i];\n    }}"
        yield "    solve_positive(M, a);"
    else:
        columns = function.shape[1] if len(function.shape) == 2 else 1
        head = function.shape[0] - program.robot.n
        yield f"    project(&w, {head}, {columns}, tree_{function.result}, {function.result});"


def _linkage(program: Program) -> Linkage:
    assert program.linkage is not None
    return program.linkage


def _list(numbers: Iterable[float]) -> str:
    return "{" + ", ".join(repr(x) for x in numbers) + "}"
