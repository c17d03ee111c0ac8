"""Effects that are often missing from drive models, as torque columns of one joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.functions import inverse_dynamics
from dynid.robot.model import Robot
from dynid.signals.filters import decimate
from dynid.signals.settings import Motion

__all__ = ["Candidate", "Candidates", "EffectCode"]

Array = NDArray[np.float64]


class EffectCode(StrEnum):
    """Stable code of a kind of effect; descriptions may be reworded, codes are not."""

    OFFSET = "offset"
    COULOMB = "coulomb"
    VISCOUS = "viscous"
    ROTOR_INERTIA = "rotor_inertia"
    VISCOUS_ASYMMETRIC = "viscous_asymmetric"
    VISCOUS_QUADRATIC = "viscous_quadratic"
    STRIBECK = "stribeck"
    SPRING = "spring"
    GRAVITY_SIN = "gravity_sin"
    GRAVITY_COS = "gravity_cos"
    RIPPLE_SIN = "ripple_sin"
    RIPPLE_COS = "ripple_cos"
    COUPLED_VISCOUS = "coupled_viscous"
    COUPLED_COULOMB = "coupled_coulomb"
    COUPLED_INERTIA = "coupled_inertia"
    COULOMB_OF_SUM = "coulomb_of_sum"
    COULOMB_OF_DIFFERENCE = "coulomb_of_difference"
    TORQUE_DELAY = "torque_delay"


@dataclass(frozen=True)
class Candidate:
    """A candidate effect: its code, the joint on which it acts, and the effect in words."""

    code: EffectCode
    joint: str
    words: str


@dataclass(frozen=True, eq=False)
class Candidates:
    """Candidate columns of a robot: the same number for each joint, and one column of all joints, a torque delay.

    `parameters` (p,) give the torque whose time derivative is the column of the delay. `stribeck` (joint,) are the
    velocities below which Stribeck friction acts. `ripple` lists torque ripples as periods per revolution.
    """

    robot: Robot
    parameters: Array
    stribeck: Array
    ripple: Sequence[float] = ()

    def decimated(self, motion: Motion, joints: Sequence[str]) -> list[Array]:
        """Columns (rows, candidate + 1) of each joint along a cleaned run, decimated like its torques."""
        torque = inverse_dynamics(self.robot, motion.q, motion.v, motion.a, self.parameters)
        # torque(t - d) = torque - d torque' + ...: the coefficient is the delay in seconds.
        late = -np.gradient(torque, 1.0 / motion.rate, axis=0)
        out = []
        for joint in joints:
            own = self.columns(joint, motion.q, motion.v, motion.a)
            shared = late[:, self.robot.coordinates.index(joint)]
            out.append(decimate(np.column_stack([*(column for _, column in own), shared]), motion.decimate))
        return out

    def listed(self, joints: Sequence[str]) -> list[Candidate]:
        """All candidates: joint by joint, then the delay."""
        still = np.zeros((1, self.robot.n))
        own = [candidate for joint in joints for candidate, _ in self.columns(joint, still, still, still)]
        return [*own, Candidate(EffectCode.TORQUE_DELAY, "all joints", "a delay of the torque (s)")]

    def columns(self, joint: str, q: Array, v: Array, a: Array) -> list[tuple[Candidate, Array]]:
        """Candidates of a joint, each with its column (N,)."""
        joints = self.robot.coordinates
        j = joints.index(joint)
        x, s, sign = q[:, j], v[:, j], np.sign(v[:, j])
        found: list[tuple[EffectCode, str, Array]] = [
            (EffectCode.OFFSET, "an offset, or Coulomb friction that differs by direction,", np.ones(len(x))),
            (EffectCode.COULOMB, "Coulomb friction", sign),
            (EffectCode.VISCOUS, "viscous friction", s),
            (EffectCode.ROTOR_INERTIA, "rotor inertia", a[:, j]),
            (EffectCode.VISCOUS_ASYMMETRIC, "viscous friction that differs by direction", np.abs(s)),
            (EffectCode.VISCOUS_QUADRATIC, "friction that grows with the square of the velocity", s * np.abs(s)),
            (EffectCode.STRIBECK, "Stribeck friction near standstill", sign * np.exp(-((s / self.stribeck[j]) ** 2))),
            (EffectCode.SPRING, "a spring", x),
            (EffectCode.GRAVITY_SIN, "a torque proportional to sin q (gravity, counterbalance)", np.sin(x)),
            (EffectCode.GRAVITY_COS, "a torque proportional to cos q (gravity, counterbalance)", np.cos(x)),
        ]
        for order in self.ripple:
            found.append((EffectCode.RIPPLE_SIN, f"a ripple sin {order:g} q", np.sin(order * x)))
            found.append((EffectCode.RIPPLE_COS, f"a ripple cos {order:g} q", np.cos(order * x)))
        for i, other in enumerate(joints):
            if i == j:
                continue
            shaft = "Coulomb friction of a shaft that turns with the"
            found += [
                (EffectCode.COUPLED_VISCOUS, f"viscous friction from the velocity of {other}", v[:, i]),
                (EffectCode.COUPLED_COULOMB, f"Coulomb friction from the velocity of {other}", np.sign(v[:, i])),
                (EffectCode.COUPLED_INERTIA, f"inertia that turns with {other}", a[:, i]),
                (EffectCode.COULOMB_OF_SUM, f"{shaft} sum of it and {other}", np.sign(s + v[:, i])),
                (EffectCode.COULOMB_OF_DIFFERENCE, f"{shaft} difference of it and {other}", np.sign(s - v[:, i])),
            ]
        return [(Candidate(code, joint, words), column) for code, words, column in found]
