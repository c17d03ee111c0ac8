"""Functions of robots with closed loops in C: close the loops, call the functions of the tree, project the result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from dynid.codegen.closed_form import Ratios
from dynid.codegen.functions import Function
from dynid.codegen.linkage import Linkage
from dynid.codegen.operations import count_operations
from dynid.codegen.program import Program

__all__ = [
    "ASSEMBLE",
    "COLUMNS",
    "ITERATION",
    "MOTION",
    "POSITIVE",
    "PROJECT",
    "RATES",
    "SOLVER",
    "START",
    "STATUS",
    "TWO_BARS",
    "closed_bodies",
    "closed_declarations",
    "closed_macros",
    "closed_solver",
]


# C text of closed loops: the passive joints in closed form or by Newton steps, and what projects torques and matrices.
#
# The iteration is that of `dynid.dynamics.kernels.assembly` with a bound on the number of its steps. `NAME_` stands for
# the prefix of the macros; the sizes in capitals are constants that the source defines before these texts.

SOLVER = """
/* Rows of the loops at a posture: residual, columns of the passive joints (orthonormal after factor), columns of the
   independent joints. The triangle belongs to the orthonormal columns; slopes: passive joint per independent joint. */
struct closure {
    double rows[(1 + JOINTS) * ROWS];
    double triangle[PASSIVE * PASSIVE];
    double slopes[PASSIVE * FREE];
};

static void copy(int count, const double *from, double *to)
{
    for (int i = 0; i < count; i++) {
        to[i] = from[i];
    }
}

static double product(const double *x, const double *y)
{
    double sum = 0.0;
    for (int r = 0; r < ROWS; r++) {
        sum += x[r] * y[r];
    }
    return sum;
}

/* Gram-Schmidt, done twice; 0 in a singular posture. */
static int factor(struct closure *w)
{
    for (int j = 0; j < PASSIVE; j++) {
        double *column = w->rows + (1 + j) * ROWS;
        const double whole = product(column, column);
        for (int i = 0; i < j; i++) {
            w->triangle[i * PASSIVE + j] = 0.0;
        }
        for (int k = 0; k < 2; k++) {
            for (int i = 0; i < j; i++) {
                const double *before = w->rows + (1 + i) * ROWS;
                const double share = product(before, column);
                w->triangle[i * PASSIVE + j] += share;
                for (int r = 0; r < ROWS; r++) {
                    column[r] -= share * before[r];
                }
            }
        }
        const double left = product(column, column);
        if (!(left > 1e-12 * whole)) {
            return 0;
        }
        const double size = sqrt(left);
        w->triangle[j * PASSIVE + j] = size;
        for (int r = 0; r < ROWS; r++) {
            column[r] /= size;
        }
    }
    return 1;
}

/* Motion x of the passive joints whose columns times x add up to -y, by least squares. */
static void solve(const struct closure *w, const double *y, double *x)
{
    for (int i = PASSIVE - 1; i >= 0; i--) {
        double sum = -product(w->rows + (1 + i) * ROWS, y);
        for (int j = i + 1; j < PASSIVE; j++) {
            sum -= w->triangle[i * PASSIVE + j] * x[j];
        }
        x[i] = sum / w->triangle[i * PASSIVE + i];
    }
}

/* Slopes at an assembled posture. */
static int tangent(struct closure *w, const double *joints)
{
    double x[PASSIVE];
    loop_rows(joints, w->rows);
    for (int r = 0; r < ROWS; r++) {
        if (!(fabs(w->rows[r]) <= 1e-9)) {
            return NAME_BROKEN;
        }
    }
    if (!factor(w)) {
        return NAME_SINGULAR;
    }
    for (int j = 0; j < FREE; j++) {
        solve(w, w->rows + (1 + PASSIVE + j) * ROWS, x);
        for (int i = 0; i < PASSIVE; i++) {
            w->slopes[i * FREE + j] = x[i];
        }
    }
    return NAME_CLOSED;
}
"""

ITERATION = """
static int newton(struct closure *w, double *joints)
{
    for (int k = 0; k < 12; k++) {
        double x[PASSIVE], size = 0.0;
        loop_rows(joints, w->rows);
        if (!factor(w)) {
            return NAME_SINGULAR;
        }
        solve(w, w->rows, x);
        for (int i = 0; i < PASSIVE; i++) {
            if (!(fabs(x[i]) < 1e3)) {
                return NAME_BROKEN;
            }
            joints[passive_joint[i]] += x[i];
            size = fmax(size, fabs(x[i]));
        }
        if (size <= 1e-7) { /* the next step would be below rounding */
            return NAME_CLOSED;
        }
    }
    return NAME_BROKEN;
}

/* Move from the posture to the target on a line, with the passive joints on their branch. A step follows the tangent;
   where its correction is large it is tried again with half the length, so that no step jumps to another branch. */
static int close_loops(const double *target, double *posture, struct closure *w)
{
    double old[JOINTS], joints[JOINTS], guess[PASSIVE], left = 0.0;
    copy(JOINTS, posture, old);
    copy(JOINTS, posture, joints);
    int status = tangent(w, old);
    if (status != NAME_CLOSED) {
        return status;
    }
    for (int j = 0; j < FREE; j++) {
        const double distance = fabs(target[j] - old[free_joint[j]]);
        if (!(distance <= 1e9)) {
            return NAME_FAR;
        }
        left = fmax(left, distance);
    }
    double length = fmin(0.2, left);
    for (int k = 0; k < NAME_STRIDES; k++) {
        const int last = left <= length;
        const double share = last ? 1.0 : length / left;
        double longest = 0.0, bend = 0.0;
        for (int j = 0; j < FREE; j++) {
            const int i = free_joint[j];
            joints[i] = last ? target[j] : old[i] + share * (target[j] - old[i]);
            longest = fmax(longest, fabs(joints[i] - old[i]));
        }
        for (int i = 0; i < PASSIVE; i++) {
            double sum = 0.0;
            for (int j = 0; j < FREE; j++) {
                sum += w->slopes[i * FREE + j] * (joints[free_joint[j]] - old[free_joint[j]]);
            }
            longest = fmax(longest, fabs(sum));
            guess[i] = old[passive_joint[i]] + sum;
            joints[passive_joint[i]] = guess[i];
        }
        status = newton(w, joints);
        for (int i = 0; i < PASSIVE; i++) {
            bend = fmax(bend, fabs(joints[passive_joint[i]] - guess[i]));
        }
        if (status == NAME_CLOSED && bend <= 0.25 * longest + 1e-7) {
            status = tangent(w, joints);
            if (status != NAME_CLOSED) {
                return status;
            }
            if (last) {
                copy(JOINTS, joints, posture);
                return NAME_CLOSED;
            }
            copy(JOINTS, joints, old);
            left -= share * left;
            length = fmin(0.2, 2.0 * length);
        } else {
            length = 0.5 * fmin(length, left);
            if (length < 1e-5) {
                return status == NAME_CLOSED ? NAME_SINGULAR : status;
            }
        }
    }
    return NAME_FAR;
}
"""

TWO_BARS = """
/* Both joints that turn two bars, from the vector between the fixed ends of the bars, the bars, and the angles by which
   other joints turn them; 0 where the bars do not meet. Angles are those closest to the ones before. */
static int two_bars(const double *bars, double branch, int serial, const double *signs, double *first, double *second)
{
    const double x = bars[0], y = bars[1], turn = 6.283185307179586;
    const double one = sqrt(bars[2] * bars[2] + bars[3] * bars[3]), two = sqrt(bars[4] * bars[4] + bars[5] * bars[5]);
    const double apart = sqrt(x * x + y * y);
    const double area = (one + two + apart) * (one + two - apart) * (apart + one - two) * (apart - one + two);
    if (!(area >= 0.0 && apart > 0.0)) {
        return 0;
    }
    const double along = 0.5 * (1.0 + (one - two) * (one + two) / (apart * apart));
    const double across = 0.5 * branch * sqrt(area) / (apart * apart);
    const double ax = along * x - across * y, ay = along * y + across * x, bx = ax - x, by = ay - y;
    const double alpha = atan2(bars[2] * ay - bars[3] * ax, bars[2] * ax + bars[3] * ay);
    const double beta = atan2(bars[4] * by - bars[5] * bx, bars[4] * bx + bars[5] * by);
    *first += remainder(signs[0] * (alpha - bars[6]) - *first, turn);
    *second += remainder(signs[1] * (beta - bars[7] - (serial ? alpha : 0.0)) - *second, turn);
    return 1;
}
"""

MOTION = """
/* Velocities of all joints for those of the independent ones. */
static void move_all(const struct closure *w, const double *x, double *all)
{
    for (int j = 0; j < FREE; j++) {
        all[free_joint[j]] = x[j];
    }
    for (int i = 0; i < PASSIVE; i++) {
        double sum = 0.0;
        for (int j = 0; j < FREE; j++) {
            sum += w->slopes[i * FREE + j] * x[j];
        }
        all[passive_joint[i]] = sum;
    }
}

/* Velocities and accelerations of all joints. */
static void move_joints(const struct closure *w, const double *joints, const double *v, const double *a,
                        double *joint_v, double *joint_a)
{
    double drift[ROWS], x[PASSIVE];
    move_all(w, v, joint_v);
    move_all(w, a, joint_a);
    loop_drift(joints, joint_v, drift);
    solve(w, drift, x);
    for (int i = 0; i < PASSIVE; i++) {
        joint_a[passive_joint[i]] += x[i];
    }
}
"""

START = """{
    copy(JOINTS, assembled, posture);
}
"""

ASSEMBLE = """{
    struct closure w;
    const int status = close_loops(q + BASE_Q, posture, &w);
    if (status != NAME_CLOSED) {
        return status;
    }
    move_joints(&w, posture, v + BASE, a + BASE, joint_v, joint_a);
    copy(PASSIVE * FREE, w.slopes, slopes);
    return NAME_CLOSED;
}
"""

PROJECT = """
/* Rows of the independent joints from those of all joints; the first rows, those of the base, stay as they are. */
static void project(const struct closure *w, int head, int count, const double *rows, double *out)
{
    copy(head * count, rows, out);
    for (int j = 0; j < FREE; j++) {
        double *to = out + (head + j) * count;
        copy(count, rows + (head + free_joint[j]) * count, to);
        for (int i = 0; i < PASSIVE; i++) {
            const double share = w->slopes[i * FREE + j];
            const double *from = rows + (head + passive_joint[i]) * count;
            for (int c = 0; share != 0.0 && c < count; c++) {
                to[c] += share * from[c];
            }
        }
    }
}
"""

COLUMNS = """
/* A matrix over the velocities of the tree, with its columns projected. */
static void columns(const struct closure *w, const double *matrix, double *half)
{
    for (int r = 0; r < TREE_NV; r++) {
        const double *row = matrix + r * TREE_NV;
        copy(BASE, row, half + r * NV);
        for (int j = 0; j < FREE; j++) {
            double sum = row[BASE + free_joint[j]];
            for (int i = 0; i < PASSIVE; i++) {
                sum += w->slopes[i * FREE + j] * row[BASE + passive_joint[i]];
            }
            half[r * NV + BASE + j] = sum;
        }
    }
}
"""

RATES = """
/* Add the mass matrix times the rate of the slopes. The drift g(v) is quadratic in v, so that column j of the rate
   is (g(v + e_j) - g(v - e_j)) / 4, without an error of differences. */
static void add_rates(const struct closure *w, const double *joints, const double *v, const double *mass, double *half)
{
    for (int j = 0; j < FREE; j++) {
        for (int side = -1; side <= 1; side += 2) {
            double moved[FREE], all[JOINTS], drift[ROWS], x[PASSIVE];
            copy(FREE, v, moved);
            moved[j] += side;
            move_all(w, moved, all);
            loop_drift(joints, all, drift);
            solve(w, drift, x);
            for (int r = 0; r < TREE_NV; r++) {
                for (int i = 0; i < PASSIVE; i++) {
                    half[r * NV + BASE + j] += 0.25 * side * mass[r * TREE_NV + BASE + passive_joint[i]] * x[i];
                }
            }
        }
    }
}
"""

POSITIVE = """
/* M = L L' in place; 0 where M is not positive definite. */
static int factor_positive(double *M)
{
    for (int k = 0; k < NV; k++) {
        for (int i = k; i < NV; i++) {
            double sum = M[i * NV + k];
            for (int j = 0; j < k; j++) {
                sum -= M[i * NV + j] * M[k * NV + j];
            }
            if (i == k && !(sum > 0.0)) {
                return 0;
            }
            M[i * NV + k] = i == k ? sqrt(sum) : sum / M[k * NV + k];
        }
    }
    return 1;
}

/* Solve L L' y = x in place. */
static void solve_positive(const double *L, double *x)
{
    for (int i = 0; i < NV; i++) {
        for (int j = 0; j < i; j++) {
            x[i] -= L[i * NV + j] * x[j];
        }
        x[i] /= L[i * NV + i];
    }
    for (int i = NV - 1; i >= 0; i--) {
        for (int j = i + 1; j < NV; j++) {
            x[i] -= L[j * NV + i] * x[j];
        }
        x[i] /= L[i * NV + i];
    }
}
"""


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
