"""Graphs as one Python file that needs NumPy and nothing else, over any number of samples at once."""

from __future__ import annotations

from collections.abc import Iterator

from dynid.codegen.closed_form import Ratios, TwoBars
from dynid.codegen.functions import Function
from dynid.codegen.program import Program
from dynid.codegen.statements import MEANINGS, Notation, Texts, assignments, conditions, folded, head_lines, plain

__all__ = ["closed_functions", "closed_shared", "emit_numpy"]


# Functions of robots with closed loops in NumPy: close the loops of all samples at once, call the tree, project.

_TANGENT = '''
def _tangent(joints):
    """Residual (N, rows), inverse of the passive columns, slopes (N, passive, free), and which samples are closed."""
    rows = _loop_rows(joints)
    rest, columns = rows[:, 0], np.swapaxes(rows[:, 1:], 1, 2)
    passive, free = np.split(columns, [len(_PASSIVE)], axis=2)
    u, s, vt = np.linalg.svd(passive, full_matrices=False)
    regular = s[:, -1] > 1e-6 * s[:, 0]
    s = np.where(regular[:, None], s, 1.0)
    inverse = (np.swapaxes(vt, 1, 2) / s[:, None, :]) @ np.swapaxes(u, 1, 2)
    return rest, inverse, -inverse @ free, regular & (np.abs(rest).max(axis=1) <= 1e-9)
'''

# The iteration of `dynid.dynamics.kernels.assembly`, for many samples at once.
_ITERATION = '''
def _newton(joints):
    """Close the loops over the passive joints, in place; which samples converged."""
    moving, closed = np.arange(len(joints)), np.zeros(len(joints), dtype=bool)
    for _ in range(12):
        rest, inverse, _, _ = _tangent(joints[moving])
        x = -(inverse @ rest[:, :, None])[:, :, 0]
        size = np.abs(x).max(axis=1)
        kept = size < 1e3
        moving, x, size = moving[kept], x[kept], size[kept]
        joints[np.ix_(moving, _PASSIVE)] += x
        closed[moving[size <= 1e-7]] = True
        moving = moving[size > 1e-7]
        if not len(moving):
            break
    return closed


def _close(q, posture):
    """Joints of the tree (N, joints) and slopes at the independent joints q (N, free), on lines from the posture."""
    posture = np.asarray(posture, dtype=float).reshape(-1, len(ASSEMBLED))
    old = np.array(np.broadcast_to(posture, (len(q), len(ASSEMBLED))))
    _, _, slopes, good = _tangent(old)
    if not np.all(good):
        raise ValueError("posture: the loops are open there, or it is singular")
    left = np.abs(q - old[:, _FREE]).max(axis=1)
    length = np.minimum(0.2, left)
    active = np.arange(len(q))
    while len(active):
        last = left[active] <= length[active]
        share = np.where(last, 1.0, length[active] / np.where(last, 1.0, left[active]))
        joints = old[active]
        step = share[:, None] * (q[active] - joints[:, _FREE])
        along = (slopes[active] @ step[:, :, None])[:, :, 0]
        guess = joints[:, _PASSIVE] + along
        joints[:, _FREE] = np.where(last[:, None], q[active], joints[:, _FREE] + step)
        joints[:, _PASSIVE] = guess
        good = _newton(joints)
        longest = np.maximum(np.abs(step).max(axis=1), np.abs(along).max(axis=1))
        good &= np.abs(joints[:, _PASSIVE] - guess).max(axis=1) <= 0.25 * longest + 1e-7
        joints[~good] = old[active[~good]]
        _, _, at, closed = _tangent(joints)
        good &= closed
        done, bad = active[good], active[~good]
        old[done], slopes[done] = joints[good], at[good]
        left[done] *= 1.0 - share[good]
        length[done] = np.minimum(0.2, 2.0 * length[done])
        length[bad] = 0.5 * np.minimum(length[bad], left[bad])
        if np.any(length[bad] < 1e-5):
            k = bad[np.argmin(length[bad])]
            raise ValueError(f"sample {k} is at or beyond a singular posture, or the loops cannot close there")
        active = active[~(good & last)]
    return old, slopes
'''

_TWO_BARS = '''
def _two_bars(bars, branch, serial, signs, first, second):
    """Both joints that turn two bars, NaN where the bars do not meet; angles are those closest to the ones before."""
    x, y, ux, uy, wx, wy, before, other = np.moveaxis(bars, -1, 0)
    one, two, apart = np.hypot(ux, uy), np.hypot(wx, wy), np.hypot(x, y)
    area = (one + two + apart) * (one + two - apart) * (apart + one - two) * (apart - one + two)
    along = 0.5 * (1.0 + (one - two) * (one + two) / apart**2)
    across = 0.5 * branch * np.sqrt(np.where(area >= 0.0, area, np.nan)) / apart**2
    ax, ay = along * x - across * y, along * y + across * x
    alpha = np.arctan2(ux * ay - uy * ax, ux * ax + uy * ay)
    beta = np.arctan2(wx * (ay - y) - wy * (ax - x), wx * (ax - x) + wy * (ay - y))
    found = signs[0] * (alpha - before), signs[1] * (beta - other - (alpha if serial else 0.0))
    return tuple(new - 2 * np.pi * np.round((new - old) / (2 * np.pi)) for new, old in zip(found, (first, second)))
'''

_CLOSED_FORM = '''
def _close(q, posture):
    """Joints of the tree (N, joints) and slopes at the independent joints q (N, free), in closed form."""
    posture = np.asarray(posture, dtype=float).reshape(-1, len(ASSEMBLED))
    joints = np.array(np.broadcast_to(posture, (len(q), len(ASSEMBLED))))
    joints[:, _FREE] = q
STEPS
    good = np.all(np.isfinite(joints), axis=1)
    slopes = np.zeros((len(q), len(_PASSIVE), len(_FREE)))
    _, _, slopes[good], good[good] = _tangent(joints[good])
    if not np.all(good):
        k = np.argmin(good)
        raise ValueError(f"sample {k} is at or beyond a singular posture, or the loops cannot close there")
    return joints, slopes
'''

_MOTION = '''
class _Motion:
    """Motion of the tree for given q and, where they are given, v and a; `full` is its velocity per velocity."""

    def __init__(self, posture, q, v=None, a=None, parms=None):
        given = [np.asarray(x, dtype=float) for x in (q, v, a, parms) if x is not None]
        self.samples = np.broadcast_shapes(*(x.shape[:-1] for x in given))
        q, v, a, self.parms = (
            None if x is None else np.broadcast_to(x, (*self.samples, np.shape(x)[-1])).reshape(-1, np.shape(x)[-1])
            for x in (q, v, a, parms)
        )
        if q.shape[1] != _BASE_Q + len(_FREE) or any(x is not None and x.shape[1] != _NV for x in (v, a)):
            raise ValueError(f"expected {_BASE_Q + len(_FREE)} positions and {_NV} velocities and accelerations")
        if not np.all(np.isfinite(q)):
            raise ValueError("q has values that are not finite")
        self.joints, self.slopes = _close(q[:, _BASE_Q:], posture)
        self.q = np.hstack([q[:, :_BASE_Q], self.joints])
        base, count = _NV - len(_FREE), len(ASSEMBLED)
        self.full = np.zeros((len(q), base + count, _NV))
        self.full[:, range(base), range(base)] = 1.0
        self.full[:, [base + i for i in _FREE], range(base, _NV)] = 1.0
        self.full[:, [base + i for i in _PASSIVE], base:] = self.slopes
        if v is not None:
            self.v = self._moved(v)
            self.a = self._moved(np.zeros_like(v) if a is None else a)
            self.a[:, [base + i for i in _PASSIVE]] += self._drift(self.v)

    def _moved(self, x):
        return (self.full @ x[:, :, None])[:, :, 0]

    def _drift(self, v):
        drift = _loop_drift(self.joints, v[:, v.shape[1] - len(ASSEMBLED) :])
        return -(_tangent(self.joints)[1] @ drift[:, :, None])[:, :, 0]

    def rates(self):
        """Rate of `full`: the drift is quadratic in v, so that differences are exact."""
        out, base = np.zeros_like(self.full), _NV - len(_FREE)
        for j in range(base, _NV):
            e = self.full[:, :, j]
            out[:, [base + i for i in _PASSIVE], j] = 0.25 * (self._drift(self.v + e) - self._drift(self.v - e))
        return out

    def project(self, rows):
        """Torque rows of the robot from those of the tree; those of the base stay as they are."""
        first, base = rows.shape[1] - len(ASSEMBLED), _NV - len(_FREE)
        joints = np.einsum("kij,ki...->kj...", self.full[:, base:, base:], rows[:, first:])
        return self._shaped(np.concatenate([rows[:, :first], joints], axis=1))

    def matrix(self, rows):
        return self._shaped(np.swapaxes(self.full, 1, 2) @ rows)

    def accelerate(self, mass, bias, tau):
        mass = np.swapaxes(self.full, 1, 2) @ mass @ self.full
        tau = np.broadcast_to(np.asarray(tau, dtype=float), (*self.samples, _NV)).reshape(-1, _NV)
        bias = self.project(bias).reshape(len(tau), -1)
        try:
            np.linalg.cholesky(mass)
        except np.linalg.LinAlgError:
            raise ValueError("the mass matrix is not positive definite: no physical robot moves so") from None
        return self._shaped(np.linalg.solve(mass, (tau - bias[:, bias.shape[1] - _NV :])[:, :, None])[:, :, 0])

    def _shaped(self, out):
        return out.reshape(*self.samples, *out.shape[1:])


def assemble(q, v, a, posture=ASSEMBLED):
    """Positions, velocities and accelerations of all joints of the tree, each (..., joints)."""
    x = _Motion(posture, q, v, a)
    first = x.v.shape[1] - len(ASSEMBLED)
    return x._shaped(x.joints), x._shaped(x.v[:, first:]), x._shaped(x.a[:, first:])
'''


def closed_shared(program: Program) -> str:
    """Constants, and how the loops close: in closed form, or by an iteration."""
    robot, names = program.robot, program.robot.tree_coordinates
    assert robot.assembled is not None
    free, passive = ([names.index(x) for x in group] for group in (robot.coordinates, robot.passive))
    text = (
        "\n\n# Joints of the tree in the posture in which the robot is assembled, and which of them are coordinates.\n"
    )
    text += f"ASSEMBLED = ({''.join(f'{float(x)!r}, ' for x in robot.assembled).rstrip()})\n"
    text += f"_FREE, _PASSIVE = {free!r}, {passive!r}\n_BASE_Q, _NV = {robot.nq - robot.n}, {robot.nv}\n\n"
    assert program.linkage is not None
    steps = program.linkage.steps
    close = _ITERATION
    if steps:
        two = "" if all(isinstance(step, Ratios) for step in steps) else f"{_TWO_BARS}\n"
        close = two + _CLOSED_FORM.replace("STEPS", "\n".join(map(_step, steps)))
    return f"{text}{_TANGENT}\n{close}\n{_MOTION}"


def _step(step: Ratios | TwoBars) -> str:
    """The lines of one step of the closed form."""
    if isinstance(step, Ratios):
        terms = "".join(f" + {ratio!r} * q[:, {j}]" for j, ratio in step.terms)
        return f"    joints[:, {step.joint}] = {step.constant!r}{terms}"
    i, k = step.joints
    old = f"joints[:, {i}], joints[:, {k}]"
    given = f"_{step.bars.name}(joints), {step.branch!r}, {step.serial!r}, {step.signs!r}, {old}"
    return f"    {old} = _two_bars({given})"


def closed_functions(program: Program, function: Function) -> Iterator[str]:
    """Lines of a function of the linkage."""
    assert program.linkage is not None
    names = [x.name for x in function.arguments]
    shapes = ", ".join(f"{x.name} (..., {x.size})" for x in function.arguments)
    yield f"def {function.name}({', '.join(names)}, posture=ASSEMBLED):"
    yield f'    """{MEANINGS[function.name].capitalize()}: {function.result} (..., '
    yield f"    {', '.join(map(str, function.shape))}) of {shapes}."
    yield ""
    yield "    The passive joints follow from the posture (joints of the tree) on a line to each sample."
    yield '    """'
    given = [f"{x}={x}" for x in names if x not in ("q", "tau")]
    yield f"    x = _Motion({', '.join(['posture', 'q', *given])})"
    for part in program.linkage.parts(function.name):
        yield f"    tree_{part.result} = _tree_{part.name}({', '.join(f'x.{y.name}' for y in part.arguments)})"
    if function.name == "mass_matrix":
        yield "    return x.matrix(tree_M @ x.full)"
    elif function.name == "coriolis_matrix":
        yield "    return x.matrix(tree_M @ x.rates() + tree_C @ x.full)"
    elif function.name == "forward_dynamics":
        yield "    return x.accelerate(tree_M, tree_tau, tau)"
    else:
        yield f"    return x.project(tree_{function.result})"


_NOTATION = Notation(
    {
        "sin": "np.sin({})",
        "cos": "np.cos({})",
        "tanh": "np.tanh({})",
        "exp": "np.exp({})",
        "sign": "np.sign({})",
        "step": "np.where({} > 0.0, 1.0, 0.0)",
        "ramp": "np.maximum({}, 0.0)",
    }
)
# What could end a string early, or hide code in it.
_UNSAFE = r'"|\\'
_SHARED = '''
def _columns(array, name, size):
    """The columns of an array (..., size), each over all samples."""
    array = np.asarray(array, dtype=float)
    if array.ndim < 1 or array.shape[-1] != size:
        raise ValueError(f"{name} must have shape (..., {size}), got {array.shape}")
    return np.moveaxis(array, -1, 0)


def _rows(entries, shape, *inputs):
    """Entries of every sample put together, (..., *shape)."""
    samples = np.broadcast_shapes(*(x.shape[1:] for x in inputs))
    out = np.empty((*samples, len(entries)))
    for i, entry in enumerate(entries):
        out[..., i] = entry
    return out.reshape(*samples, *shape)
'''


def emit_numpy(program: Program) -> dict[str, str]:
    """Text of NAME.py."""
    text = '"""' + "\n".join(folded(head_lines(program), _UNSAFE)) + '\n"""\n\nimport numpy as np\n\n'
    text += f"JOINTS = {_names(program.robot.coordinates)}\nCHANNELS = {_names(program.robot.channels)}\n"
    text += f"PARAMETERS = {_names(program.parameter_names)}\n"
    if program.parameter_values is not None:
        text += f"VALUES = ({''.join(f'{float(x)!r}, ' for x in program.parameter_values).rstrip()})\n"
    text += "\n" + _SHARED
    linkage = program.linkage
    if linkage:
        for function in linkage.inner:
            prefix = "_" if function.name.startswith("loop_") else "_tree_"
            text += "\n\n" + "\n".join(_function(function, prefix)) + "\n"
        text += closed_shared(program)
    for function in program.functions:
        text += "\n\n" + "\n".join(closed_functions(program, function) if linkage else _function(function)) + "\n"
    return {f"{program.name}.py": text}


def _function(function: Function, prefix: str = "") -> Iterator[str]:
    arguments = [x.name for x in function.arguments]
    yield f"def {prefix}{function.name}({', '.join(arguments)}):"
    shapes = ", ".join(f"{x.name} (..., {x.size})" for x in function.arguments)
    result = ", ".join(map(str, function.shape))
    meaning = MEANINGS[function.name.rstrip("0123456789")].capitalize()
    yield f'    """{meaning}: {function.result} (..., {result}) of {shapes}."""'
    for x in function.arguments:
        yield f'    {x.name} = _columns({x.name}, "{x.name}", {x.size})'
    texts = Texts(function, _NOTATION)
    yield from (f"    {line}" for line in assignments(function, texts))
    for node in conditions(function):
        yield f"    if not np.all({texts[node]} > 0.0):"
        yield '        raise ValueError("the mass matrix is not positive definite: no physical robot moves so")'
    yield "    entries = ("
    yield from (f"        {texts[node]}," for node in function.entries)
    yield "    )"
    yield f"    return _rows(entries, {function.shape!r}, {', '.join(arguments)})"


def _names(names: tuple[str, ...]) -> str:
    return repr(tuple(plain(x, _UNSAFE) for x in names))
