"""What generated functions must equal: the same function of dynid.dynamics, and motion to compare them on."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid import Robot
from dynid.parameters.base import random_states

Array = NDArray[np.float64]


needs_compiler = pytest.mark.skipif(
    not any(shutil.which(name) for name in ("cc", "gcc", "clang")), reason="no C compiler on this machine"
)


def states(robot: Robot, samples: int, seed: int = 0) -> dict[str, Array]:
    """Random q, v, a over the whole space and torques of order ten; the robot's own parameters as parms."""
    q, v, a = random_states(robot, samples, seed)
    tau = 10 * np.random.default_rng(seed + 1).normal(size=v.shape)
    return {"q": q, "v": v, "a": a, "tau": tau, "parms": robot.parameters}


def expected(robot: Robot, name: str, at: dict[str, Array]) -> Array:
    """The same result from the compiled kernels, which work in base coordinates and know nothing of the graph."""
    q, v, a = at["q"], at["v"], at["a"]
    if name == "drive_torque":
        rigid = robot.without("*") if robot.drives else robot
        whole = dynid.inverse_dynamics(robot, q, v, a) - dynid.inverse_dynamics(rigid, q, v, a)
        return whole[:, len(robot.channels) - robot.n :]
    arguments = {"regressor": (q, v, a), "inverse_dynamics": (q, v, a), "gravity_torque": (q,), "mass_matrix": (q,)}
    if name == "forward_dynamics":
        return dynid.forward_dynamics(robot, q, v, at["tau"])
    return np.asarray(getattr(dynid.dynamics, name)(robot, *arguments.get(name, (q, v))))


def difference(ours: Array, theirs: Array) -> float:
    """Largest difference, as a share of the largest number; where all should be zero, of a tenth of a unit."""
    return float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 0.1))
