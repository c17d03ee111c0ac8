"""What the tests of this folder share: pieces of URDF, motions, and how a refusal must look."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pinocchio as pin
import pytest
from numpy.typing import NDArray

import dynid
from dynid import Robot

Array = NDArray[np.float64]
Load = Callable[..., Robot]


def link(name: str, mass: float) -> str:
    """A link whose every inertial number follows from its mass: centre of mass off the origin, axes turned."""
    return (
        f'<link name="{name}"><inertial><origin xyz="{0.1 * mass} -0.05 {0.02 * mass}" rpy="0.3 {0.1 * mass} -0.7"/>'
        f'<mass value="{mass}"/><inertia ixx="{0.03 * mass}" ixy="0.001" ixz="-0.002" iyy="0.04" iyz="0.003" '
        f'izz="{0.02 * mass + 0.02}"/></inertial></link>'
    )


def joint(name: str, kind: str, parent: str, child: str, more: str = "") -> str:
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{more}</joint>'


def urdf(*elements: str) -> str:
    return f'<robot name="robot">{"".join(elements)}</robot>'


def one_joint(kind: str = "continuous", more: str = "", mass: float = 1.0) -> str:
    """The smallest robot: links a and b with joint j between them."""
    return urdf(link("a", 1.0), link("b", mass), joint("j", kind, "a", "b", more))


def motion(robot: Robot, seed: int = 0, samples: int = 5) -> Array:
    """q, v, a of a few samples of the joints, (3, samples, n)."""
    return np.random.default_rng(seed).uniform(-1.5, 1.5, (3, samples, robot.n))


def pinocchio_q(model: pin.Model, q: Array) -> Array:
    """Joint angles as Pinocchio stores them: cosine and sine of an unbounded joint."""
    out: list[float] = []
    for j, x in zip(model.joints[1:], q, strict=True):
        out += [x] if j.nq == 1 else [math.cos(x), math.sin(x)]
    return np.array(out)


def refused(call: Callable[[], object], *words: str) -> None:
    """The call ends in a dynid error of one line that holds every one of the words."""
    with pytest.raises(dynid.DynidError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) > 10
    for word in words:
        assert word in message, f"'{word}' is not in: {message}"
