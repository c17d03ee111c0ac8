"""Effects that are often missing from drive models, as torque columns of one joint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.functions import inverse_dynamics
from dynid.robot.model import Robot
from dynid.signals.filters import decimate
from dynid.signals.settings import Motion

__all__ = ["EFFECTS", "TORQUE_DELAY", "Candidate", "Candidates", "EffectCode", "EffectKind", "JointMotion"]

Array = NDArray[np.float64]


class EffectCode(str):
    """Stable code of a kind of effect; descriptions may be reworded, codes are not.

    Parameters
    ----------
    code : str
        The code itself, in small letters.
    meaning : str
        What it is, in a few words for a table.
    """

    meaning: str

    def __new__(cls, code: str, meaning: str = "") -> EffectCode:
        """Make a code with what is known of it."""
        self = super().__new__(cls, code)
        self.meaning = meaning
        return self


@dataclass(frozen=True, eq=False)
class JointMotion:
    """Motion (N,) of a joint: q, v and a, the velocity `slow` below which Stribeck friction acts, and a second thing.

    `order` is that of a ripple, in periods per revolution; `other_v` and `other_a` (N,) are those of another joint.
    """

    q: Array
    v: Array
    a: Array
    slow: float
    order: float
    other_v: Array
    other_a: Array


@dataclass(frozen=True)
class EffectKind:
    """A kind of effect: its code, in words (with {} for the order or the other joint), and its column.

    There is one of each joint, one of each joint and order of a ripple, or one of each joint and another one.
    """

    code: EffectCode
    words: str
    column: Callable[[JointMotion], Array]
    per: Literal["joint", "order", "other"] = "joint"


TORQUE_DELAY = EffectCode("torque_delay", "delay of the torques of all joints")
_SHAFT = "Coulomb friction of a shaft that turns with the"
EFFECTS = (
    EffectKind(
        EffectCode("offset", "constant offset, or Coulomb friction that differs by direction"),
        "an offset, or Coulomb friction that differs by direction,",
        lambda x: np.ones(len(x.q)),
    ),
    EffectKind(EffectCode("coulomb", "Coulomb friction"), "Coulomb friction", lambda x: np.sign(x.v)),
    EffectKind(EffectCode("viscous", "viscous friction"), "viscous friction", lambda x: x.v),
    EffectKind(EffectCode("rotor_inertia", "rotor inertia"), "rotor inertia", lambda x: x.a),
    EffectKind(
        EffectCode("viscous_asymmetric", "viscous friction that differs by direction"),
        "viscous friction that differs by direction",
        lambda x: np.abs(x.v),
    ),
    EffectKind(
        EffectCode("viscous_quadratic", "friction proportional to the square of the velocity"),
        "friction that grows with the square of the velocity",
        lambda x: x.v * np.abs(x.v),
    ),
    EffectKind(
        EffectCode("stribeck", "Stribeck friction near standstill"),
        "Stribeck friction near standstill",
        lambda x: np.sign(x.v) * np.exp(-((x.v / x.slow) ** 2)),
    ),
    EffectKind(EffectCode("spring", "torque proportional to q"), "a spring", lambda x: x.q),
    EffectKind(
        EffectCode("gravity_sin", "torque proportional to sin q (gravity, counterbalance)"),
        "a torque proportional to sin q (gravity, counterbalance)",
        lambda x: np.sin(x.q),
    ),
    EffectKind(
        EffectCode("gravity_cos", "torque proportional to cos q"),
        "a torque proportional to cos q (gravity, counterbalance)",
        lambda x: np.cos(x.q),
    ),
    EffectKind(
        EffectCode("ripple_sin", "torque ripple sin kq, for each k in `ripple`"),
        "a ripple sin {} q",
        lambda x: np.sin(x.order * x.q),
        "order",
    ),
    EffectKind(
        EffectCode("ripple_cos", "torque ripple cos kq"), "a ripple cos {} q", lambda x: np.cos(x.order * x.q), "order"
    ),
    EffectKind(
        EffectCode("coupled_viscous", "viscous friction from the velocity of another joint"),
        "viscous friction from the velocity of {}",
        lambda x: x.other_v,
        "other",
    ),
    EffectKind(
        EffectCode("coupled_coulomb", "Coulomb friction from the velocity of another joint"),
        "Coulomb friction from the velocity of {}",
        lambda x: np.sign(x.other_v),
        "other",
    ),
    EffectKind(
        EffectCode("coupled_inertia", "inertia that turns with another joint"),
        "inertia that turns with {}",
        lambda x: x.other_a,
        "other",
    ),
    EffectKind(
        EffectCode("coulomb_of_sum", "Coulomb friction of a shaft that turns with the sum of two joints"),
        f"{_SHAFT} sum of it and {{}}",
        lambda x: np.sign(x.v + x.other_v),
        "other",
    ),
    EffectKind(
        EffectCode("coulomb_of_difference", "Coulomb friction of a shaft that turns with the difference of two joints"),
        f"{_SHAFT} difference of it and {{}}",
        lambda x: np.sign(x.v - x.other_v),
        "other",
    ),
)


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
        return [*own, Candidate(TORQUE_DELAY, "all joints", "a delay of the torque (s)")]

    def columns(self, joint: str, q: Array, v: Array, a: Array) -> list[tuple[Candidate, Array]]:
        """Candidates of a joint, each with its column (N,)."""
        joints = self.robot.coordinates
        j = joints.index(joint)
        nothing = np.zeros(0)
        own = JointMotion(q[:, j], v[:, j], a[:, j], float(self.stribeck[j]), 0.0, nothing, nothing)
        ripples = [(f"{order:g}", replace(own, order=order)) for order in self.ripple]
        pairs = [(x, replace(own, other_v=v[:, i], other_a=a[:, i])) for i, x in enumerate(joints) if i != j]
        motions = {"joint": [("", own)], "order": ripples, "other": pairs}
        return [
            (Candidate(kind.code, joint, kind.words.format(name)), kind.column(motion))
            for per, each in motions.items()
            for name, motion in each
            for kind in EFFECTS
            if kind.per == per
        ]
