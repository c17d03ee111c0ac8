"""One Python file for PyTorch or JAX: constants, recursions, and the functions that were asked for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dynid.codegen.drive_terms import refuse_custom
from dynid.codegen.functions import FUNCTIONS, Function, arguments_of
from dynid.codegen.program import Program
from dynid.codegen.statements import MEANINGS, folded, head_lines, plain
from dynid.codegen.tensor_library import TensorLibrary, constants_text, numbers
from dynid.codegen.tree_text import TREE_TEXT, Columns, tree_constants
from dynid.errors import Unsupported
from dynid.robot.drives import LAW_OF_KIND, DriveTerm, TermKind
from dynid.robot.model import Robot

__all__ = [
    "LAW_FIELDS",
    "TENSOR_FUNCTIONS",
    "drive_constants",
    "drive_text",
    "law_text",
    "tensor_file",
    "tensor_function",
]


# Drive terms as Python text over tensors: terms of one kind are computed together.

Array = NDArray[np.float64]

# Steps of the motion s of a shaft; sign has derivative zero.
_SHARP = {
    "side": "np.sign(s)",
    "positive": "0.5 * (np.abs(np.sign(s)) + np.sign(s))",
    "negative": "0.5 * (np.sign(s) - np.abs(np.sign(s)))",
}
_SMOOTH = {
    "side": 'np.tanh(_constant("{name}_slope", q) * s)',
    "positive": '0.5 + 0.5 * np.tanh(_constant("{name}_slope", q) * s)',
    "negative": '0.5 * np.tanh(_constant("{name}_slope", q) * s) - 0.5',
}


def _groups(robot: Robot) -> dict[str, list[DriveTerm]]:
    """Terms of one kind, of one form, by name."""
    refuse_custom(robot)
    out: dict[str, list[DriveTerm]] = {}
    for term in robot.drives:
        linear = LAW_OF_KIND[term.kind].linear
        form = "_smooth" if term.slope else "_coupling" if linear and term.cross_only else ""
        out.setdefault(f"{term.kind.name.lower()}{form}", []).append(term)
    return out


def drive_constants(robot: Robot) -> dict[str, Array]:
    """Directions of the shafts (term, joint) of each group, and what else its terms have."""
    out = {}
    for name, terms in _groups(robot).items():
        out[name] = np.array([term.direction for term in terms])
        if terms[0].kind == TermKind.INERTIA:
            out[f"{name}_matrix"] = _mass_per_rotor(robot, out[name], name.endswith("_coupling"))
        setting = LAW_OF_KIND[terms[0].kind].setting
        for own in filter(None, (setting, "slope" if terms[0].slope else "")):
            out[f"{name}_{own}"] = np.array([[getattr(term, own)] for term in terms])
    return out


def _mass_per_rotor(robot: Robot, directions: Array, coupling: bool) -> Array:
    """Mass matrix of unit rotor inertias (term, nv, nv)."""
    size = robot.nv - robot.n if robot.base == "floating" else 0
    d = np.pad(directions, ((0, 0), (size, 0)))
    out = d[:, :, None] * d[:, None, :]
    return out * (1.0 - np.eye(d.shape[1])) if coupling else out


def drive_text(robot: Robot, columns: Columns) -> str:
    """The functions `_drive_torque` and `_mass`, which calls `_rigid_mass`."""
    index = {name: i for i, name in enumerate(robot.parameter_names)}
    drives = ["", "", "def _drive_torque(q, v, a, parms):"]
    drives += ['    """Friction, rotor inertia, offsets and springs of the joints."""']
    drives += [f"    q, v, a = (x[len(x) - {robot.n} :] for x in (q, v, a))"]
    drives += ["    out = np.zeros_like(v)"]
    mass = ["    return out", "", "", "def _mass(placed, parms):", '    """Mass matrix, with rotors."""']
    mass += ["    out = _samples_first(_rigid_mass(placed, parms))"]
    for name, terms in _groups(robot).items():
        kind = terms[0].kind
        law = LAW_OF_KIND[kind]
        x = law.motion
        values = f"_take(parms, {[columns.of(index[term.name]) for term in terms]!r})"
        sides = {k: text.format(name=name) for k, text in (_SMOOTH if terms[0].slope else _SHARP).items()}
        drives += [f'    d, values = _constant("{name}", q), {values}', f"    s = d @ {x}"]
        drives += [f"    out = out + d.swapaxes(0, 1) @ (values * ({law.text.format(name=name, **sides)}))"]
        if name.endswith("_coupling"):
            drives += [f"    out = out - (d.swapaxes(0, 1) ** 2 @ values) * {x}"]
        if kind == TermKind.INERTIA:
            mass += [f'    out = out + np.einsum("tn,tij->nij", {values}, _constant("{name}_matrix", out))']
    return "\n".join([*drives, *mass, "    return out", ""])


# The law of the actuators as Python functions over tensors, the same lines for PyTorch and JAX.

# What the torque of an instant depends on. The delay is what the caller keeps of the commands.
LAW_FIELDS = (
    *("kp", "kd", "gain", "bias", "backlash", "torque_limit", "back_emf", "stall_torque", "no_load_velocity"),
    "load_friction",
)

_TORQUE = '''

def actuator_torque(command, q, v, command_velocity=0.0, feedforward=0.0, law=LAW):
    """Torque of the actuators: tau (..., {n}) of command (..., {n}), q (..., {nq}), v (..., {nv}).

    The command is the one that is in effect, DELAY seconds old, and so are its velocity and the torque that is fed
    forward. `law` holds the values of LAW that differ, one number per joint each.
    """
    command, q, v = _same(command=(command, {n}), q=(q, {nq}), v=(v, {nv}))
    law = _law_values(law, q)
    command_velocity, feedforward = _array(command_velocity, q), _array(feedforward, q)
    q, v = q[..., {nq} - {n} :], v[..., {nv} - {n} :]
    error = command - (q + law["bias"])
    error = error - _within(error, -0.5 * law["backlash"], 0.5 * law["backlash"])
    torque = law["gain"] * (law["kp"] * error + law["kd"] * (command_velocity - v) + feedforward)
    torque = _within(torque, -law["torque_limit"], law["torque_limit"]) - law["back_emf"] * v
    # The line of a DC motor. Joints without one have infinite ends, which no product may see: inf * 0 is NaN.
    limited = law["stall_torque"] < float("inf")
    stall = np.where(limited, law["stall_torque"], 0.0)
    ratio = v / law["no_load_velocity"]
    low = np.where(limited, -stall * (1.0 + ratio), -float("inf"))
    high = np.where(limited, stall * (1.0 - ratio), float("inf"))
    return _within(torque, low, high)


def _same(**given):
    """Arrays of one type, from their values and sizes by name."""
    first = _array(next(iter(given.values()))[0])
    return tuple(_sized(name, _array(x, first), size) for name, (x, size) in given.items())


def _law_values(given, like):
    """All values of the law, those of LAW where others are not given."""
    for name in given:
        if name not in LAW:
            raise ValueError(f"the law has no '{{name}}', only {{', '.join(LAW)}}")
    return {{name: _array(x, like) for name, x in {{**LAW, **given}}.items()}}


def _within(x, low, high):
    return np.minimum(np.maximum(x, low), high)
'''
_DYNAMICS = '''

def forward_dynamics_under_law(command, q, v, command_velocity=0.0, feedforward=0.0, law=LAW, parms=VALUES):
    """Acceleration under a command: a (..., {nv}) of command (..., {n}), q (..., {nq}), v (..., {nv}).

    The actuators deliver `actuator_torque`, less the friction load_friction |tau| sign(v).
    """
    command, q, v = _same(command=(command, {n}), q=(q, {nq}), v=(v, {nv}))
    torque = actuator_torque(command, q, v, command_velocity, feedforward, law)
    slope, rate = _array(SLOPES, q), v[..., {nv} - {n} :]
    side = np.where(slope > 0.0, np.tanh(slope * rate), np.sign(rate))
    torque = torque - _law_values(law, q)["load_friction"] * np.abs(torque) * side{base}
    return forward_dynamics(q, v, torque, parms)
'''
_BASE = """
    none = np.zeros_like(v[..., :6]) + 0.0 * torque[..., :1]
    torque = np.concatenate((none, torque), -1)"""


def law_text(program: Program) -> str:
    """Values of the law, its torque, and the forward dynamics under it."""
    law, robot = program.law, program.robot
    assert law is not None
    text = "\n\n# The law of the actuators, one number per joint; see actuator_torque.\nLAW = {\n"
    text += "".join(f'    "{name}": {numbers(getattr(law, name))},\n' for name in LAW_FIELDS)
    text += f"}}\n# Seconds between a command and its effect; what is delayed is the {law.delayed}.\n"
    text += f"DELAY = {numbers(law.delay)}\n"
    if law.velocity_target == "command":
        text += "# command_velocity is the derivative of the command.\n"
    text += "# Slope (s/rad or s/m) of tanh in place of the sign of a velocity; 0 for the sign itself.\n"
    text += f"SLOPES = {numbers(_slopes(robot))}\n"
    sizes = {"n": robot.n, "nq": robot.nq, "nv": robot.nv}
    return text + (_TORQUE + _DYNAMICS).format(**sizes, base=_BASE if robot.nv > robot.n else "")


def _slopes(robot: Robot) -> np.ndarray:
    """Slope of the Coulomb friction of each joint, which the friction under load shares."""
    out = np.zeros(robot.n)
    for term in robot.drives:
        if term.is_coulomb and np.count_nonzero(term.direction) == 1:
            out[np.flatnonzero(term.direction)] = term.slope
    return out


# What could end a string early, or hide code in it.
_UNSAFE = r'"|\\'

_SHARED = '''

def _given(**given):
    """Values with their samples along the last axis, from values (..., size) and sizes by name; axes of the samples."""
    first = _array(next(iter(given.values()))[0])
    arrays = {name: _sized(name, _array(x, first), size) for name, (x, size) in given.items()}
    samples = np.broadcast_shapes(*(x.shape[:-1] for x in arrays.values()))
    out = []
    for name, x in arrays.items():
        if name != "parms" or x.ndim > 1:
            x = np.broadcast_to(x, (*samples, x.shape[-1]))
        out.append(_columns(x.reshape(-1, x.shape[-1])))
    return *out, samples


def _sized(name, x, size):
    if x.ndim < 1 or x.shape[-1] != size:
        raise ValueError(f"{name} must have shape (..., {size}), got {tuple(x.shape)}")
    return x


def _fixed(parms):
    """The parameters, and behind them the numbers that are fixed."""
    return np.concatenate((parms, np.zeros_like(parms[:1]) + _constant("fixed", parms)), 0)


def _with_drives(torque, drives):
    first = len(torque) - len(drives)
    return np.concatenate((torque[:first], torque[first:] + drives), 0) if first else torque + drives


def _rows(out, samples):
    return out.swapaxes(0, 1).reshape(*samples, len(out))
'''
# Lines of each function, after its arguments were checked.
_LINES = {
    "inverse_dynamics": (
        "torque = _rigid_torque(_place(q), q, v, a, parms)",
        "return _rows(_with_drives(torque, _drive_torque(q, v, a, parms)), samples)",
    ),
    "gravity_torque": (
        'still = np.zeros_like(q[:1]) + _constant("still", q)',
        "return _rows(_rigid_torque(_place(q), q, still, still, parms), samples)",
    ),
    "coriolis_torque": (
        "return _rows(_rigid_torque(_place(q), q, v, np.zeros_like(v), parms, gravity=False), samples)",
    ),
    "bias_torque": ("return _rows(_rigid_torque(_place(q), q, v, np.zeros_like(v), parms), samples)",),
    "drive_torque": ("return _rows(_drive_torque(q, v, a, parms), samples)",),
    "mass_matrix": (
        "out = _mass(_place(q), parms)",
        "return out.reshape(*samples, *out.shape[1:])",
    ),
    "forward_dynamics": (
        "placed, still = _place(q), np.zeros_like(v)",
        "torque = _rigid_torque(placed, q, v, still, parms)",
        "torque = _with_drives(torque, _drive_torque(q, v, still, parms))",
        "rest = (tau - torque[len(torque) - len(tau) :]).swapaxes(0, 1)",
        "return _solve(_mass(placed, parms), rest).reshape(*samples, len(tau))",
    ),
}
TENSOR_FUNCTIONS = tuple(_LINES)


def tensor_function(robot: Robot, name: str, count: int) -> Function:
    """The function as the caller sees it, without a graph; `count` is the number of parameters."""
    if name not in _LINES:
        hint = "the derivative of inverse_dynamics with respect to parms" if name == "regressor" else "not needed there"
        raise Unsupported(f"{name} is not written for PyTorch and JAX ({hint}): use {', '.join(_LINES)}")
    names, result = FUNCTIONS[name]
    shape: tuple[int, ...] = (robot.nv,) if name == "forward_dynamics" else (len(robot.channels),)
    if name == "drive_torque":
        shape = (robot.n,)
    if name == "mass_matrix":
        shape = (robot.nv, robot.nv)
    return Function(name, arguments_of(robot, names, count), result, shape, ())


def tensor_file(program: Program, library: TensorLibrary) -> str:
    """Text of the file, but for what only one library has."""
    robot = program.robot
    text = '"""' + "\n".join(folded(head_lines(program), _UNSAFE)) + f'\n"""\n\n{library.imports}\n\n'
    text += f"JOINTS = {_names(robot.coordinates)}\nCHANNELS = {_names(robot.channels)}\n"
    assert program.parameter_values is not None
    text += f"PARAMETERS = {_names(program.parameter_names)}\nVALUES = {numbers(program.parameter_values)}\n"
    columns = Columns(robot, program.places)
    constants, arrays = tree_constants(robot, columns)
    drives = drive_text(robot, columns)
    text += "\n# The robot: its tree, and where the numbers of its links stand among the parameters.\n"
    text += "".join(f"{name} = {value!r}\n" for name, value in constants.items())
    arrays |= {"fixed": np.array(columns.fixed)[:, None], "still": np.zeros((robot.nv, 1))} | drive_constants(robot)
    text += constants_text("_CONSTANTS", arrays)
    text += library.helpers + library.spelled(_SHARED + TREE_TEXT + drives)
    for function in program.functions:
        text += library.spelled("\n\n" + "\n".join(_function(function)) + "\n")
    if program.law is not None:
        text += library.spelled(law_text(program))
    return text


def _function(function: Function) -> Iterator[str]:
    own = [x for x in function.arguments if x.name != "parms"]
    yield f"def {function.name}({', '.join(x.name for x in own)}, parms=VALUES):"
    shapes = ", ".join(f"{x.name} (..., {x.size})" for x in function.arguments)
    result = ", ".join(map(str, function.shape))
    yield f'    """{MEANINGS[function.name].capitalize()}: {function.result} (..., {result})'
    yield f"    of {shapes}."
    if function.name == "forward_dynamics":
        yield ""
        yield "    The result is NaN where the mass matrix is not positive definite: no physical robot moves so."
    yield '    """'
    names = ", ".join(x.name for x in function.arguments)
    yield f"    {names}, samples = _given({', '.join(f'{x.name}=({x.name}, {x.size})' for x in function.arguments)})"
    yield "    parms = _fixed(parms)"
    yield from (f"    {line}" for line in _LINES[function.name])


def _names(names: tuple[str, ...]) -> str:
    return repr(tuple(plain(x, _UNSAFE) for x in names))
