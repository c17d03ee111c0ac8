"""Mass, centre of mass and momentum of the whole robot, in the world frame.

With the momentum h_0 = (p, k) at the base origin, the base rows of M(q) v for the robot on a floating base,

    p = m e x c of a rotation about an axis e,    k about the centre = k - c x p,    about the world R k + r x R p.

Source: Orin, Goswami and Lee, Centroidal Dynamics of a Humanoid Robot (2013).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.assembly import assemble, of_given_shape
from dynid.dynamics.batch import as_batch, as_parameters, run
from dynid.dynamics.frames import base_placement
from dynid.dynamics.tree import compile_robot
from dynid.errors import ModelError, UnknownName
from dynid.robot.inertia import INERTIAL_SYMBOLS
from dynid.robot.model import Robot
from dynid.robot.parts import Link

__all__ = ["center_of_mass", "momentum", "total_mass"]

Array = NDArray[np.float64]

_FLOATING: WeakKeyDictionary[Robot, Robot] = WeakKeyDictionary()


def total_mass(robot: Robot, parameters: ArrayLike | None = None) -> float:
    """Total mass of the links in the standard parameters, which excludes the base link of a fixed base.

    Parameters
    ----------
    robot : Robot
        The robot.
    parameters : array_like, shape (p,), optional
        Standard parameters, `robot.parameters` if not given.

    Returns
    -------
    float
        Mass (kg).
    """
    pi = as_parameters(robot, parameters)
    masses = [p.inertial and p.symbol == INERTIAL_SYMBOLS[0] for p in robot.layout]
    return float(pi[masses].sum())


def center_of_mass(robot: Robot, q: ArrayLike, parameters: ArrayLike | None = None) -> Array:
    """Centre of mass of the whole robot, without the base link of a fixed base.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (N, nq) or (nq,)
        Configurations (rad or m).
    parameters : array_like, shape (p,), optional
        Standard parameters, `robot.parameters` if not given.

    Returns
    -------
    ndarray, shape (N, 3) or (3,)
        Centre of mass in the world frame (m).

    Raises
    ------
    ModelError
        If the total mass is not positive.
    """
    if robot.loops:
        return of_given_shape(q, center_of_mass(robot.tree, assemble(robot, q).q, parameters))
    (q,), _, single = as_batch(robot, q=q)
    world = base_placement(robot, q)
    out = np.einsum("nij,nj->ni", world[:, :3, :3], _center(robot, q, as_parameters(robot, parameters)))
    out += world[:, :3, 3]
    return out[0] if single else out


def momentum(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    parameters: ArrayLike | None = None,
    *,
    about: Literal["center", "origin"] = "center",
) -> Array:
    """Linear and angular momentum of all links in world axes, without the rotors.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (N, nq) or (nq,)
        Configurations (rad or m).
    v : array_like, shape (N, nv) or (nv,)
        Velocities (rad/s or m/s).
    parameters : array_like, shape (p,), optional
        Standard parameters, `robot.parameters` if not given.
    about : {"center", "origin"}
        Reference point of the angular momentum: the centre of mass or the world origin.

    Returns
    -------
    ndarray, shape (N, 6) or (6,)
        Linear (kg m/s) and angular (kg m2/s) momentum.
    """
    if robot.loops:
        x = assemble(robot, q, v)
        return of_given_shape(q, momentum(robot.tree, x.q, x.v, parameters, about=about))
    if about not in ("center", "origin"):
        raise UnknownName(f"about must be center or origin, got '{about}'", "about")
    (q, v), _, single = as_batch(robot, q=q, v=v)
    pi = as_parameters(robot, parameters)
    first = 0 if robot.base == "floating" else 6
    h = _momentum(robot, q, np.pad(v, ((0, 0), (first, 0))), pi)
    world = base_placement(robot, q)
    turn = world[:, :3, :3]
    if about == "center":
        h[:, 3:] -= np.cross(_center(robot, q, pi), h[:, :3])
    linear, angular = (np.einsum("nij,nj->ni", turn, x) for x in (h[:, :3], h[:, 3:]))
    if about == "origin":
        angular += np.cross(world[:, :3, 3], linear)
    out = np.hstack([linear, angular])
    return out[0] if single else out


def _center(robot: Robot, q: Array, pi: Array) -> Array:
    """Centre of mass c (N, 3) in the base frame, from the linear momentum m w x c of rotations about x and z."""
    mass = total_mass(robot, pi)
    if not mass > 0:
        raise ModelError(
            f"robot '{robot.name}' has no mass, so that its centre of mass is not defined", code="missing_data"
        )
    turn = np.zeros((2, len(q), 6 + robot.n))
    turn[0, :, 3] = turn[1, :, 5] = 1.0
    about_x, about_z = (_momentum(robot, q, w, pi)[:, :3] for w in turn)
    return np.column_stack([about_z[:, 1], -about_z[:, 0], -about_x[:, 1]]) / mass


def _momentum(robot: Robot, q: Array, v: Array, pi: Array) -> Array:
    """Momentum (N, 6) at the base origin in base axes: the base rows of M v, v (N, 6 + n) with the base twist first.

    M v is the torque at the acceleration v, without velocity and gravity.
    """
    from dynid.dynamics.kernels import inverse

    floating = _floating(robot)
    if robot.base != "floating":
        q = np.hstack([np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (len(q), 1)), q])
    if robot.base == "fixed":
        pi = np.concatenate([np.zeros(len(floating.layout) - len(pi)), pi])
    model = compile_robot(floating)
    out = np.zeros((len(q), len(floating.channels)))
    tree = model.tree._replace(gravity=np.zeros(3))
    run(inverse.inverse_dynamics, len(q), (tree, model.inertias(floating, pi), q, np.zeros_like(v), v), (out,))
    return out[:, :6]


def _floating(robot: Robot) -> Robot:
    """The robot with a floating base; the base link of a fixed robot becomes massless."""
    if robot.base == "floating":
        return robot
    if robot not in _FLOATING:
        base = robot.links[0]
        if robot.base == "fixed":
            base = Link(base.name, np.zeros(10))
        _FLOATING[robot] = replace(robot, base="floating", links=(base, *robot.links[1:]))
    return _FLOATING[robot]
