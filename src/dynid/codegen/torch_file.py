"""One Python file for PyTorch: functions of tensors, and a module that holds the values."""

from __future__ import annotations

from collections.abc import Iterator

from dynid.codegen.program import Program
from dynid.codegen.tensor_file import tensor_file
from dynid.codegen.tensor_library import TensorLibrary

__all__ = ["emit_torch"]

_TORCH = TensorLibrary(
    module="torch",
    imports="import torch",
    helpers='''

def _array(x, like=None):
    """A tensor of floating-point numbers; what is no tensor gets the type of `like`."""
    if like is not None and not torch.is_tensor(x):
        return torch.as_tensor(x, dtype=like.dtype, device=like.device)
    x = torch.as_tensor(x)
    return x if x.is_floating_point() else x.to(torch.get_default_dtype())


_MADE = {}


def _constant(name, like):
    """A constant of the robot, made once per type and device."""
    key = name, like.dtype, like.device
    if key not in _MADE:
        with torch.inference_mode(False):
            _MADE[key] = torch.tensor(_CONSTANTS[name], dtype=like.dtype, device=like.device)
    return _MADE[key]


def _columns(x):
    return x.T.contiguous()


def _samples_first(x):
    return x.movedim(-1, 0).contiguous()


def _take(x, index):
    return x[index]


def _per_link(function, *arrays):
    """A function of all links at once."""
    return function(*arrays)


def _link_by_link(function, turned, *arrays):
    """A function of the rotation and the origin of the link before each link, stacked over the links."""
    links = [(_constant("identity", turned)[..., None].expand(3, 3, turned.shape[-1]), turned.new_zeros(3, 1))]
    for j, parent in enumerate(_PARENTS):
        links.append(function(*links[parent][:2], turned[:, :, j], *(x[:, j] for x in arrays)))
    return tuple(torch.stack(torch.broadcast_tensors(*x), -2) for x in zip(*links[1:]))


def _solve(matrix, x):
    """The solution, or NaN where the matrix is not positive definite."""
    factor, failed = torch.linalg.cholesky_ex(matrix)
    return torch.where(failed[..., None] == 0, torch.cholesky_solve(x[..., None], factor)[..., 0], float("nan"))
''',
)
_MODULE = '''

class Dynamics(torch.nn.Module):
    """The functions of this file as methods, with values of its own: {values}.

    `trainable` names those that are torch.nn.Parameter; the others are buffers. `forward` is {first}.
    """

    def __init__(self, trainable=(), dtype=torch.float64, device=None):
        super().__init__()
        values = {initial}
        for name in trainable:
            if name not in values:
                raise ValueError(f"'{{name}}' cannot be trained, only {{', '.join(values)}}")
        for name, value in values.items():
            value = torch.tensor(value, dtype=dtype, device=device)
            if name in trainable:
                self.register_parameter(name, torch.nn.Parameter(value))
            else:
                self.register_buffer(name, value)
'''


def emit_torch(program: Program) -> dict[str, str]:
    """Text of NAME.py."""
    return {f"{program.name}.py": tensor_file(program, _TORCH) + "\n".join(_module(program))}


def _module(program: Program) -> Iterator[str]:
    """Lines of the class."""
    law = program.law is not None
    first = "forward_dynamics_under_law" if law else program.functions[0].name
    held = "parms and the fields of LAW" if law else "parms"
    initial = '{"parms": VALUES, **LAW}' if law else '{"parms": VALUES}'
    yield _MODULE.format(values=held, initial=initial, first=first).rstrip("\n")
    for function in program.functions:
        own = ", ".join(x.name for x in function.arguments if x.name != "parms")
        yield f"\n    def {function.name}(self, {own}):"
        yield f"        return {function.name}({own}, self.parms)"
    if law:
        given = "command, q, v, command_velocity, feedforward"
        for name, more in (("actuator_torque", ""), ("forward_dynamics_under_law", ", self.parms")):
            yield f"\n    def {name}(self, command, q, v, command_velocity=0.0, feedforward=0.0):"
            yield f"        return {name}({given}, self._law(){more})"
        yield "\n    def _law(self):\n        return {name: getattr(self, name) for name in LAW}"
    yield f"\n    forward = {first}\n"
