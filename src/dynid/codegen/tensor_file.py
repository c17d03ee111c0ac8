"""One Python file for PyTorch or JAX: constants, recursions, and the functions that were asked for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynid.codegen.drive_text import drive_constants, drive_text
from dynid.codegen.functions import FUNCTIONS, Function, arguments_of
from dynid.codegen.law_text import law_text
from dynid.codegen.program import Program
from dynid.codegen.statements import MEANINGS, folded, head_lines, plain
from dynid.codegen.tensor_library import TensorLibrary, constants_text, numbers
from dynid.codegen.tree_text import TREE_TEXT, Columns, tree_constants
from dynid.errors import Unsupported
from dynid.robot.model import Robot

__all__ = ["TENSOR_FUNCTIONS", "tensor_file", "tensor_function"]

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
