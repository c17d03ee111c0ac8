"""Graphs as one Python file that needs NumPy and nothing else, over any number of samples at once."""

from __future__ import annotations

from collections.abc import Iterator

from dynid.codegen.functions import Function
from dynid.codegen.numpy_linkage import closed_functions, closed_shared
from dynid.codegen.program import Program
from dynid.codegen.statements import MEANINGS, Notation, Texts, assignments, conditions, folded, head_lines, plain

__all__ = ["emit_numpy"]

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
