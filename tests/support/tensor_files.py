"""Generated files of tensors: loaded as modules, and PyTorch played by NumPy where PyTorch is not installed.

The stand-in has the few names that a generated file uses, on arrays with the methods of tensors. It knows no gradients:
it shows that the text of the file computes the right numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dynid
from dynid import Robot, generate_code
from dynid.robot import ActuatorLaw
from tests.support.random_robots import random_robot

ROBOTS = {
    "tx40": lambda: dynid.load_robot("tx40"),
    "tree": lambda: random_robot(2, 5),
    "prismatic": lambda: random_robot(3, 4, kinds="prpp"),
    "all drives": lambda: random_robot(5, 3, drives=True),
    "smooth": lambda: random_robot(5, 3, drives=True).with_smooth_coulomb(20.0),
    "floating": lambda: random_robot(6, 4, base="floating", rotors=True),
    "floating followers": lambda: random_robot(8, 5, base="floating", mimics=2, drives=True),
    "instrumented": lambda: random_robot(7, 4, base="instrumented", rotors=True),
    "followers": lambda: random_robot(4, 5, mimics=2),
}


class Tensor(np.ndarray):
    """An array with the methods of a tensor that generated files call."""

    device = "cpu"

    def contiguous(self) -> Tensor:
        return self

    def is_floating_point(self) -> bool:
        return bool(np.issubdtype(self.dtype, np.floating))

    def to(self, dtype: Any) -> Tensor:
        return self.astype(dtype)

    def expand(self, *shape: int) -> Tensor:
        return tensor(np.broadcast_to(self, shape))

    def movedim(self, source: int, target: int) -> Tensor:
        return tensor(np.moveaxis(self, source, target))

    def new_zeros(self, *shape: int) -> Tensor:
        return tensor(np.zeros(shape), dtype=self.dtype)


def tensor(x: Any, dtype: Any = None, device: Any = None) -> Tensor:
    return np.asarray(x, dtype=dtype).view(Tensor)


class Module:
    """Values by name, as torch.nn.Module keeps them."""

    def register_parameter(self, name: str, value: Any) -> None:
        setattr(self, name, value)

    register_buffer = register_parameter


def _cholesky(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    failed = np.linalg.eigvalsh(matrix)[..., 0] <= 0
    safe = np.where(failed[..., None, None], np.eye(matrix.shape[-1]), matrix)
    return tensor(np.linalg.cholesky(safe)), tensor(failed.astype(int))


def _of_tensors(function: Callable[..., Any]) -> Callable[..., Tensor]:
    return lambda *given: tensor(function(*given))


def torch_by_numpy() -> ModuleType:
    """A module `torch` whose tensors are arrays."""
    out = ModuleType("torch")
    same = ("stack", "sum", "sin", "cos", "tanh", "exp", "sign", "abs", "where", "minimum", "maximum", "concatenate")
    same += ("einsum", "ones_like", "zeros_like", "broadcast_to")
    for name in same:
        setattr(out, name, _of_tensors(getattr(np, name)))
    out.__dict__.update(
        tensor=tensor,
        as_tensor=tensor,
        is_tensor=lambda x: isinstance(x, Tensor),
        get_default_dtype=lambda: np.float64,
        inference_mode=lambda on: nullcontext(),
        float64=np.float64,
        broadcast_shapes=np.broadcast_shapes,
        broadcast_tensors=lambda *x: [tensor(y) for y in np.broadcast_arrays(*x)],
        linalg=SimpleNamespace(cholesky_ex=_cholesky),
        cholesky_solve=lambda x, factor: tensor(np.linalg.solve(factor @ np.swapaxes(factor, -1, -2), x)),
        nn=SimpleNamespace(Module=Module, Parameter=lambda x: x),
    )
    return out


def module_of(robot: Any, language: str, functions: Any = "all", **options: Any) -> ModuleType:
    """The generated file, imported."""
    (text,) = generate_code(robot, functions, language=language, **options).files.values()
    module = ModuleType("generated")
    exec(compile(text, "generated.py", "exec"), module.__dict__)
    return module


def by_numpy(monkeypatch: pytest.MonkeyPatch, robot: Robot, **options: Any) -> ModuleType:
    """The file for PyTorch, with NumPy in its place."""
    monkeypatch.setitem(sys.modules, "torch", torch_by_numpy())
    return module_of(robot, "torch", **options)


def law_of(robot: Robot) -> ActuatorLaw:
    """Every field of a law, with limits on some joints only."""
    x = np.arange(robot.n)
    return ActuatorLaw(
        robot.coordinates,
        kp=100.0 + x,
        kd=2.0 + 0.1 * x,
        gain=0.9,
        delay=0.01,
        bias=0.01 * x,
        backlash=0.02,
        torque_limit=np.where(x % 2, 40.0, np.inf),
        back_emf=0.3,
        stall_torque=np.where(x % 3, 60.0, np.inf),
        no_load_velocity=np.where(x % 3, 5.0, np.inf),
        load_friction=0.05,
    )


def torque_of(law: ActuatorLaw, command: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The law joint by joint, as its docstring has it."""
    out = np.empty(q.shape)
    for k, j in np.ndindex(q.shape):
        e = command[k, j] - (q[k, j] + law.bias[j])
        half = law.backlash[j] / 2
        e = e - half if e > half else e + half if e < -half else 0.0
        u = law.gain[j] * (law.kp[j] * e - law.kd[j] * v[k, j])
        u = min(max(u, -law.torque_limit[j]), law.torque_limit[j]) - law.back_emf[j] * v[k, j]
        share = v[k, j] / law.no_load_velocity[j]
        out[k, j] = min(max(u, -law.stall_torque[j] * (1 + share)), law.stall_torque[j] * (1 - share))
    return out
