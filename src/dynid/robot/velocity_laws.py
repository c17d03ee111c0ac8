"""Friction laws with a velocity of their own: columns of drive terms that can be stored, simulated and bounded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Stribeck"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Stribeck:
    """Friction that fades as a joint moves faster: sign(v) exp(-(v / velocity)^2) on that joint.

    It is the `function` of a custom drive term. Its coefficient is not negative, since friction dissipates energy.

    Attributes
    ----------
    joint : int
        Index of the joint among the coordinates of the robot.
    velocity : float
        Stribeck velocity in rad/s or m/s.

    Examples
    --------
    >>> import dynid
    >>> from dynid.robot.velocity_laws import Stribeck
    >>> robot = dynid.load_robot("twolink")
    >>> term = robot.custom_term("fs", 0, Stribeck(joint=0, velocity=0.1), 2.0, unit="N m")
    >>> "fs_joint1" in robot.with_terms(term).parameter_names
    True
    """

    joint: int
    velocity: float

    def __call__(self, q: Array, v: Array, a: Array) -> Array:
        """Torques (N, n) per unit of the coefficient."""
        out = np.zeros(np.shape(v))
        s = np.asarray(v)[:, self.joint]
        out[:, self.joint] = np.sign(s) * np.exp(-((s / self.velocity) ** 2))
        return out
