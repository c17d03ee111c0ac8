"""Derivatives of the inverse dynamics against Pinocchio's, on random trees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from numpy.typing import NDArray

from dynid import Robot
from dynid.dynamics.kernels.derivatives import inverse_derivatives
from dynid.dynamics.tree import compile_robot
from tests.support.compare import difference
from tests.support.random_robots import mimic_map, random_motion, random_robot

Array = NDArray[np.float64]

# Two algorithms in double precision, as for the inverse dynamics themselves.
SAME = 1e-9


def ours(robot: Robot, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array, Array]:
    """Torques, mass matrices, and derivatives of the torques by q and v, without drives."""
    model, n = compile_robot(robot), robot.n
    tau, (M, Dq, Dv) = np.zeros((len(q), n)), np.full((3, len(q), n, n), np.nan)
    inverse_derivatives(model.tree, model.inertias(robot, robot.parameters), q, v, a, 0, len(q), tau, M, Dq, Dv)
    return tau, M, Dq, Dv


def pinocchios(model: pin.Model, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array, Array]:
    out: tuple[list[Array], ...] = ([], [], [], [])
    data = model.createData()
    for row in zip(q, v, a, strict=True):
        found = pin.computeRNEADerivatives(model, data, *row)
        upper = np.triu(found[2])
        for x, y in zip(out, (data.tau, upper + np.triu(upper, 1).T, found[0], found[1]), strict=True):
            x.append(np.array(y))
    tau, M, Dq, Dv = map(np.array, out)
    return tau, M, Dq, Dv


@pytest.mark.parametrize("seed", range(8))
def test_derivatives_match_pinocchio(seed: int) -> None:
    """Revolute and prismatic joints, branches, link frames that stand off the joint frames."""
    robot = random_robot(seed, 3 + seed)
    q, v, a = random_motion(robot, seed)
    for x, y in zip(ours(robot, q, v, a), pinocchios(robot.to_pinocchio(), q, v, a), strict=True):
        assert difference(x, y) < SAME


@pytest.mark.parametrize("seed", range(4))
def test_mimic_joints_share_their_coordinate(seed: int) -> None:
    """With all positions G q + offset, torques are G' tau and every derivative is G' D G."""
    robot = random_robot(seed, 6, mimics=2)
    free = replace(robot, joints=tuple(replace(j, mimic=None) for j in robot.joints))
    G, offset = mimic_map(robot)
    q, v, a = random_motion(robot, seed)
    tau, *matrices = pinocchios(free.to_pinocchio(), q @ G.T + offset, v @ G.T, a @ G.T)
    found, *ours_of_them = ours(robot, q, v, a)
    assert difference(found, tau @ G) < SAME
    for x, y in zip(ours_of_them, matrices, strict=True):
        assert difference(x, G.T @ y @ G) < SAME
