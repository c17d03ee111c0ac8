"""Graphs as one Python file that needs NumPy and nothing else, over any number of samples at once."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from dynid.codegen.functions import Function
from dynid.codegen.program import Program
from dynid.codegen.statements import MEANINGS, head_lines, statements

__all__ = ["emit_numpy"]

_CALLS = {
    "sin": "np.sin({})",
    "cos": "np.cos({})",
    "tanh": "np.tanh({})",
    "sign": "np.sign({})",
    "step": "np.where({} > 0.0, 1.0, 0.0)",
    "ramp": "np.maximum({}, 0.0)",
}
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
    head = [_plain(line) for line in head_lines(program)]
    wrapped = [x for line in head for x in textwrap.wrap(line, 110, subsequent_indent="    ") or [""]]
    text = '"""' + "\n".join(wrapped) + '\n"""\n\nimport numpy as np\n\n'
    text += f"JOINTS = {_names(program.robot.coordinates)}\nCHANNELS = {_names(program.robot.channels)}\n"
    text += f"PARAMETERS = {_names(program.parameter_names)}\n"
    if program.parameter_values is not None:
        text += f"VALUES = ({''.join(f'{float(x)!r}, ' for x in program.parameter_values).rstrip()})\n"
    text += "\n" + _SHARED
    for function in program.functions:
        text += "\n\n" + "\n".join(_function(function)) + "\n"
    return {f"{program.name}.py": text}


def _function(function: Function) -> Iterator[str]:
    arguments = [x.name for x in function.arguments]
    yield f"def {function.name}({', '.join(arguments)}):"
    shapes = ", ".join(f"{x.name} (..., {x.size})" for x in function.arguments)
    result = ", ".join(map(str, function.shape))
    yield f'    """{MEANINGS[function.name].capitalize()}: {function.result} (..., {result}) of {shapes}."""'
    for x in function.arguments:
        yield f'    {x.name} = _columns({x.name}, "{x.name}", {x.size})'
    body = statements(function, _CALLS)
    for name, text in body.assignments:
        yield f"    {name} = {text}"
    for text in body.positive:
        yield f"    if not np.all({text} > 0.0):"
        yield '        raise ValueError("the mass matrix is not positive definite: no physical robot moves so")'
    yield "    entries = ("
    yield from (f"        {text}," for text in body.entries)
    yield "    )"
    yield f"    return _rows(entries, {function.shape!r}, {', '.join(arguments)})"


def _names(names: tuple[str, ...]) -> str:
    return repr(tuple(_plain(x) for x in names))


def _plain(text: str) -> str:
    """Letters that can end no string and hide no code."""
    return re.sub(r'[^\x20-\x7e]|"|\\', "?", text)
