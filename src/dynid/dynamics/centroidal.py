"""Momentum and centre of mass of a whole robot, in the world."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.batch import as_batch, as_parameters, run
from dynid.dynamics.frames import base_placement
from dynid.dynamics.tree import compile_robot
from dynid.errors import DataError, ModelError
from dynid.robot.inertia import INERTIAL_SYMBOLS
from dynid.robot.model import Robot
from dynid.robot.parts import Link

__all__ = ["center_of_mass", "momentum", "total_mass"]

Array = NDArray[np.float64]

_FLYING: WeakKeyDictionary[Robot, Robot] = WeakKeyDictionary()


def total_mass(robot: Robot, parameters: ArrayLike | None = None) -> float:
    """Mass (kg) of all links among the standard parameters; the base of a fixed robot is none of them."""
    pi = as_parameters(robot, parameters)
    masses = [p.inertial and p.symbol == INERTIAL_SYMBOLS[0] for p in robot.layout]
    return float(pi[masses].sum())


def center_of_mass(robot: Robot, q: ArrayLike, parameters: ArrayLike | None = None) -> Array:
    """Centre of mass (N, 3) of the whole robot in the world; the base of a fixed robot does not count."""
    (q,), _, single = as_batch(robot, q=q)
    world = base_placement(robot, q)
    out = np.einsum("nij,nj->ni", world[:, :3, :3], _centre(robot, q, as_parameters(robot, parameters)))
    out += world[:, :3, 3]
    return out[0] if single else out


def momentum(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    parameters: ArrayLike | None = None,
    about: Literal["centre", "origin"] = "centre",
) -> Array:
    """Linear and angular momentum (N, 6) of all bodies in world axes, rotors left out.

    Angular momentum is about the centre of mass, or with about="origin" about the world's origin.
    """
    if about not in ("centre", "origin"):
        raise DataError(f"momentum is about the centre or the origin, not '{about}'")
    (q, v), _, single = as_batch(robot, q=q, v=v)
    pi = as_parameters(robot, parameters)
    first = 0 if robot.base == "floating" else 6
    h = _momentum(robot, q, np.pad(v, ((0, 0), (first, 0))), pi)
    world = base_placement(robot, q)
    turn = world[:, :3, :3]
    if about == "centre":
        h[:, 3:] -= np.cross(_centre(robot, q, pi), h[:, :3])
    linear, angular = (np.einsum("nij,nj->ni", turn, x) for x in (h[:, :3], h[:, 3:]))
    if about == "origin":
        angular += np.cross(world[:, :3, 3], linear)
    out = np.hstack([linear, angular])
    return out[0] if single else out


def _centre(robot: Robot, q: Array, pi: Array) -> Array:
    """Centre of mass (N, 3) in the base: turning the base about x and z moves the whole mass by w x c."""
    mass = total_mass(robot, pi)
    if not mass > 0:
        raise ModelError(f"robot '{robot.name}' has no mass, so no centre of it")
    turn = np.zeros((2, len(q), 6 + robot.n))
    turn[0, :, 3] = turn[1, :, 5] = 1.0
    about_x, about_z = (_momentum(robot, q, w, pi)[:, :3] for w in turn)
    return np.column_stack([about_z[:, 1], -about_z[:, 0], -about_x[:, 1]]) / mass


def _momentum(robot: Robot, q: Array, v: Array, pi: Array) -> Array:
    """Momentum (N, 6) at the base origin in base axes: the base rows of M v, v (N, 6 + n) with the base's twist first.

    M v is the torque without speed and gravity at the acceleration v.
    """
    from dynid.dynamics.kernels import inverse

    flying = _flying(robot)
    if robot.base != "floating":
        q = np.hstack([np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (len(q), 1)), q])
    if robot.base == "fixed":
        pi = np.concatenate([np.zeros(len(flying.layout) - len(pi)), pi])
    model = compile_robot(flying)
    out = np.zeros((len(q), len(flying.channels)))
    tree = model.tree._replace(gravity=np.zeros(3))
    run(inverse.inverse_dynamics, len(q), (tree, model.inertias(flying, pi), q, np.zeros_like(v), v), (out,))
    return out[:, :6]


def _flying(robot: Robot) -> Robot:
    """The robot with a base that can move; that of a fixed robot has no mass."""
    if robot.base == "floating":
        return robot
    if robot not in _FLYING:
        base = robot.links[0]
        if robot.base == "fixed":
            base = Link(base.name, np.zeros(10))
        _FLYING[robot] = replace(robot, base="floating", links=(base, *robot.links[1:]))
    return _FLYING[robot]
