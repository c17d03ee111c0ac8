"""A fitted friction model as drive terms of a robot."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.functions import gravity_torque
from dynid.errors import ModelError, keyword
from dynid.friction.pieces import REFERENCE_TEMPERATURE, Features, Piece
from dynid.friction.result import ModelFit
from dynid.friction.rows import is_prismatic, joint_index, without_friction
from dynid.robot.drives import DriveTerm
from dynid.robot.model import Robot

__all__ = ["with_friction"]

Array = NDArray[np.float64]

_PLAIN = ("coulomb", "viscous", "offset", "coulomb-asymmetric", "viscous-asymmetric")


class FrictionColumn:
    """One regressor column of a friction piece, as a function of q, v, a (N, n) of the tree that returns (N, n)."""

    def __init__(self, piece: Piece, k: int, theta: Array, joint: int, robot: Robot | None, temperature: float) -> None:
        self.piece, self.k, self.theta, self.joint = piece, k, theta, joint
        self.robot, self.temperature = robot, temperature

    def __call__(self, q: Array, v: Array, a: Array) -> Array:
        load = None if self.robot is None else gravity_torque(self.robot, q)[:, -self.robot.n :][:, self.joint]
        velocity = v[:, self.joint]
        features = Features(velocity, load, np.full(len(velocity), self.temperature))
        out = np.zeros(np.shape(v))
        out[:, self.joint] = self.piece.columns(features, self.theta)[:, self.k]
        return out


def with_friction(robot: Robot, joint: str, fit: ModelFit, temperature: float | None, load: str) -> Robot:
    """The robot with a fitted friction model on one joint, as drive terms: built-in ones where they exist, else custom.

    Nonlinear parameters are fixed at their fitted values; linear ones are parameters of the robot. Friction that
    depends on temperature is evaluated at `temperature` (deg C). Load-dependent friction uses the masses of the robot.
    """
    place = joint_index(robot, joint)
    model, values = fit.model, fit.parameters
    if model.needs("temperature") and temperature is None:
        raise ModelError(
            f"friction model '{model.name}' depends on temperature: give {keyword('temperature')} (deg C)",
            code="missing_argument",
        )
    if model.needs("load") and load != "gravity":
        raise ModelError(
            f"friction model '{model.name}' was fitted with the rigid-body load, which no drive term can express; fit "
            f"it with {keyword('load', 'gravity')} to apply it to a robot",
            code="unsupported",
        )
    if model.needs("load") and robot.loops:
        raise ModelError(
            f"friction model '{model.name}' depends on the load, which no drive term of a linkage can express",
            code="unsupported",
        )
    bare, owner = without_friction(robot, place), robot.tree_coordinates.index(joint)
    reference = REFERENCE_TEMPERATURE if temperature is None else float(temperature)
    units = model.units(prismatic=is_prismatic(robot, place))
    terms: list[DriveTerm] = []
    for piece in model.ordered:
        theta = np.array([values[x.name] for x in piece.inner])
        carried = replace(bare, drives=()) if piece.needs == "load" else None
        for k, symbol in enumerate(piece.symbols):
            if piece.name in _PLAIN:
                terms.append(bare.joint_term(joint, symbol, values[symbol]))
            elif piece.name == "tanh":
                terms.append(replace(bare.joint_term(joint, symbol, values[symbol]), slope=1.0 / values["vc"]))
            elif piece.name == "stribeck":
                terms.append(bare.joint_term(joint, symbol, values[symbol], velocity=values["vs"]))
            else:
                column: Any = FrictionColumn(piece, k, theta, owner, carried, reference)
                name = symbol if symbol not in ("fv", "fc") else f"{symbol}_{piece.name}"
                terms.append(bare.custom_term(name, joint, column, values[symbol], unit=units[symbol]))
    return bare.with_terms(*terms)
