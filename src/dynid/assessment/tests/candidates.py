"""Effects that models of drives often lack, as torque columns of one joint, with the words that name them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.functions import inverse_dynamics
from dynid.robot.model import Robot
from dynid.signals.filters import decimate
from dynid.signals.settings import Motion

__all__ = ["ALL_JOINTS", "Candidates"]

Array = NDArray[np.float64]

ALL_JOINTS = "all joints"


@dataclass(frozen=True, eq=False)
class Candidates:
    """Candidate columns of a robot's joints, the same number for each, and one column of all: a delay of the torques.

    `parameters` (p,) give the torque whose derivative shows a delay. `stribeck` (joint,) are the speeds below which
    extra friction near standstill acts. `ripple` are torque waves by their periods a turn.
    """

    robot: Robot
    parameters: Array
    stribeck: Array
    ripple: Sequence[float] = ()

    def decimated(self, motion: Motion, joints: Sequence[str]) -> list[Array]:
        """Columns (rows, candidate + 1) of each joint along a cleaned run, decimated as its torques are."""
        torque = inverse_dynamics(self.robot, motion.q, motion.v, motion.a, self.parameters)
        # torque(t - d) = torque - d torque' + ...: the coefficient is the delay in seconds.
        late = -np.gradient(torque, 1.0 / motion.rate, axis=0)
        out = []
        for joint in joints:
            own = self.columns(joint, motion.q, motion.v, motion.a)
            shared = late[:, self.robot.coordinates.index(joint)]
            out.append(decimate(np.column_stack([*own.values(), shared]), motion.decimate))
        return out

    def names(self, joints: Sequence[str]) -> list[tuple[str, str]]:
        """Joint and words of every candidate: joint by joint, then the delay."""
        still = np.zeros((1, self.robot.n))
        own = [(joint, words) for joint in joints for words in self.columns(joint, still, still, still)]
        return [*own, (ALL_JOINTS, "a delay of the torque (s)")]

    def columns(self, joint: str, q: Array, v: Array, a: Array) -> dict[str, Array]:
        """Name and column (N,) of every candidate of a joint."""
        joints = self.robot.coordinates
        j = joints.index(joint)
        x, s, sign = q[:, j], v[:, j], np.sign(v[:, j])
        found = {
            "an offset, or Coulomb friction that differs by direction,": np.ones(len(x)),
            "Coulomb friction": sign,
            "viscous friction": s,
            "rotor inertia": a[:, j],
            "viscous friction that differs by direction": np.abs(s),
            "friction that grows with the square of the speed": s * np.abs(s),
            "extra friction near standstill (Stribeck)": sign * np.exp(-((s / self.stribeck[j]) ** 2)),
            "a spring": x,
            "a torque that follows sin q (gravity, counterbalance)": np.sin(x),
            "a torque that follows cos q (gravity, counterbalance)": np.cos(x),
        }
        for order in self.ripple:
            found[f"a ripple sin {order:g} q"] = np.sin(order * x)
            found[f"a ripple cos {order:g} q"] = np.cos(order * x)
        for i, other in enumerate(joints):
            if i != j:
                found[f"viscous friction of {other}'s speed"] = v[:, i]
                found[f"Coulomb friction of {other}'s speed"] = np.sign(v[:, i])
                found[f"inertia that turns with {other}"] = a[:, i]
                found[f"Coulomb friction of a shaft that turns with the sum of it and {other}"] = np.sign(s + v[:, i])
                found[f"Coulomb friction of a shaft that turns with the difference of it and {other}"] = np.sign(
                    s - v[:, i]
                )
        return found
