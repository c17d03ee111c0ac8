"""A fitted friction model as drive terms of a robot."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.functions import gravity_torque
from dynid.errors import ModelError
from dynid.friction.pieces import REFERENCE_TEMPERATURE, Features, Piece
from dynid.friction.result import ModelFit
from dynid.friction.rows import joint_index, without_friction
from dynid.robot.drives import DriveTerm
from dynid.robot.model import Robot
from dynid.simulation.unmodeled import UnmodeledEffects

__all__ = ["for_simulation", "with_friction"]

Array = NDArray[np.float64]

_PLAIN = ("coulomb", "viscous", "offset", "coulomb-asymmetric", "viscous-asymmetric")


class FrictionColumn:
    """One column of a piece as a function of q, v, a (N, n) that gives (N, n)."""

    def __init__(self, piece: Piece, k: int, theta: Array, joint: int, robot: Robot | None, warmth: float) -> None:
        self.piece, self.k, self.theta, self.joint, self.robot, self.warmth = piece, k, theta, joint, robot, warmth

    def __call__(self, q: Array, v: Array, a: Array) -> Array:
        load = None if self.robot is None else gravity_torque(self.robot, q)[:, -self.robot.n :][:, self.joint]
        speed = v[:, self.joint]
        features = Features(speed, load, np.full(len(speed), self.warmth))
        out = np.zeros(np.shape(v))
        out[:, self.joint] = self.piece.columns(features, self.theta)[:, self.k]
        return out


def for_simulation(robot: Robot, joint: str, fit: ModelFit) -> tuple[Robot, UnmodeledEffects]:
    """A robot with the plain part of a model, and the rest as what `simulate` knows beyond rigid models.

    The compiled simulation has Coulomb friction, sharp or smooth, viscous friction, offsets, and Stribeck friction
    that fades with the square of the speed; other models are refused.
    """
    place = joint_index(robot, joint)
    foreign = [p.name for p in fit.model.pieces if p.name not in (*_PLAIN, "tanh", "stribeck")]
    if foreign:
        raise ModelError(f"the simulation does not know '{foreign[0]}', which friction model '{fit.name}' has")
    stiction, speed = np.zeros(robot.n), np.full(robot.n, 0.05)
    plain = with_friction(robot, joint, fit, None, "rigid")
    if "stribeck" in fit.model.names:
        stiction[place], speed[place] = fit.parameters["fs"], fit.parameters["vs"]
        plain = plain.without(f"fs_{robot.coordinates[place]}")
    return plain, UnmodeledEffects(stiction=stiction, stribeck_speed=speed)


def with_friction(robot: Robot, joint: str, fit: ModelFit, temperature: float | None, load: str) -> Robot:
    """The robot with a model as its friction of a joint: plain terms where there are such, columns for the rest.

    Inner parameters stay as fitted; the linear ones can be identified anew. Friction that depends on temperature is
    that of `temperature` (deg C). Friction that grows with the load of gravity needs the robot's own masses.
    """
    place = joint_index(robot, joint)
    model, values = fit.model, fit.parameters
    if model.needs("temperature") and temperature is None:
        raise ModelError(f"friction model '{model.name}' depends on temperature: say at which (deg C) the robot is")
    if model.needs("load") and load != "gravity":
        raise ModelError(
            f"friction model '{model.name}' was fitted with the load of moving bodies, which no drive term holds; fit "
            "it with load='gravity' to put it on a robot"
        )
    bare = without_friction(robot, place)
    warmth = REFERENCE_TEMPERATURE if temperature is None else float(temperature)
    terms: list[DriveTerm] = []
    for piece in model.ordered:
        theta = np.array([values[x.name] for x in piece.inner])
        carried = replace(bare, drives=()) if piece.needs == "load" else None
        for k, symbol in enumerate(piece.symbols):
            if piece.name in _PLAIN:
                terms.append(bare.joint_term(place, symbol, values[symbol]))
            elif piece.name == "tanh":
                terms.append(replace(bare.joint_term(place, symbol, values[symbol]), slope=values["slope"]))
            else:
                column: Any = FrictionColumn(piece, k, theta, place, carried, warmth)
                name = symbol if symbol not in ("fv", "fc") else f"{symbol}_{piece.name}"
                terms.append(bare.custom_term(name, place, column, values[symbol], piece.units[k]))
    return bare.with_terms(*terms)
