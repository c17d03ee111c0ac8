"""A robot with flexible joints, divided into what moves with the links and what moves with the motors.

With the motor position theta and the link position q of a flexible joint, both on the joint side,

    Y(q, q', q'') pi + link friction = k (theta - q) + d (theta' - q')
    torque = Ia theta'' + motor friction + k (theta - q) + d (theta' - q').

Bodies, springs, force elements and the friction of the link are terms of the link side; rotor inertia, friction and
offset of the drive are terms of the motor side. A rigid joint has both on one side.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.functions import regressor
from dynid.errors import ModelError
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.robot.drives import DriveTerm, TermKind, parse_friction
from dynid.robot.model import Robot

__all__ = ["FlexibleModel"]

Array = NDArray[np.float64]

# Terms that act on the links, whatever the joint: springs and force elements.
_ON_LINKS = (TermKind.SPRING, TermKind.CUSTOM)


@dataclass(frozen=True, eq=False)
class FlexibleModel:
    """A robot some of whose joints are flexible.

    Attributes
    ----------
    robot : Robot
        The robot. Its rotor inertias, friction and offsets act on the motors of flexible joints.
    joints : tuple of str
        The flexible joints, which are put into the order of the robot.
    link_friction : str
        Friction of the links of flexible joints, as for `Robot.with_drives`; "none" for none.

    Raises
    ------
    ModelError
        If the robot has a moving base or closed loops, or a joint is unknown.
    """

    robot: Robot
    joints: tuple[str, ...]
    link_friction: str = "viscous+coulomb"

    def __post_init__(self) -> None:
        if self.robot.base != "fixed" or self.robot.loops:
            raise ModelError(f"flexible joints need a fixed base and no closed loops; see robot '{self.robot.name}'")
        unknown = [joint for joint in self.joints if joint not in self.robot.coordinates]
        if unknown:
            raise ModelError(f"no joint named '{unknown[0]}', the joints are {', '.join(self.robot.coordinates)}")
        object.__setattr__(self, "joints", tuple(name for name in self.robot.coordinates if name in self.joints))
        if "off" in parse_friction(self.link_friction):
            raise ModelError("an offset of the link side is that of the two encoders: leave it out of link_friction")

    @cached_property
    def flexible(self) -> NDArray[np.intp]:
        """Indices of the flexible joints, in the order of the robot."""
        return np.array([k for k, name in enumerate(self.robot.coordinates) if name in self.joints], dtype=np.intp)

    @cached_property
    def links(self) -> Robot:
        """The link side: bodies, springs, force elements, link friction, and all terms of rigid joints."""
        slopes = [max((t.slope for t in self.robot.drives if t.owner == i), default=0.0) for i in range(self.robot.n)]
        own: list[DriveTerm] = []
        for i in self.flexible:
            for symbol in parse_friction(self.link_friction):
                term = self.robot.joint_term(int(i), symbol)
                own.append(replace(term, slope=slopes[i]) if term.is_coulomb else term)
        kept = tuple(t for t in self.robot.drives if not self._of_motors(t))
        return replace(self.robot, drives=(*kept, *own))

    @cached_property
    def motors(self) -> Robot:
        """The terms of the motors of flexible joints; the bodies of this robot are not used."""
        return replace(self.robot, drives=tuple(t for t in self.robot.drives if self._of_motors(t)))

    def _of_motors(self, term: DriveTerm) -> bool:
        """Whether a term acts on the motor of a flexible joint."""
        return term.kind not in _ON_LINKS and bool(np.any(term.direction[self.flexible]))

    @cached_property
    def motor_columns(self) -> NDArray[np.intp]:
        """Columns of the regressor of `motors` that are terms of motors."""
        return np.array([k for k, p in enumerate(self.motors.layout) if not p.inertial], dtype=np.intp)

    @cached_property
    def motor_names(self) -> tuple[str, ...]:
        """Names of the parameters of motors."""
        return tuple(self.motors.parameter_names[k] for k in self.motor_columns)

    @cached_property
    def base(self) -> BaseParameters:
        """Base parameters of the link side: the rotor inertia of a flexible joint is not grouped with its link."""
        return base_parameters(self.links, channels="torque")

    @cached_property
    def link_friction_columns(self) -> tuple[int, ...]:
        """Base parameters that are friction of the links of flexible joints."""
        own = {f"{symbol}_{name}" for symbol in parse_friction(self.link_friction) for name in self.joints}
        names = self.links.parameter_names
        return tuple(k for k, column in enumerate(self.base.kept) if names[column] in own)

    def link_friction_slopes(self, beta: Array, v: Array) -> Array:
        """Slopes (N, flexible joint) of the link friction at velocities (N, joint), at least zero where it jumps."""
        terms = {t.name: t for t in self.links.drives}
        slopes = np.zeros_like(v)
        for k in self.link_friction_columns:
            term = terms[self.links.parameter_names[self.base.kept[k]]]
            if term.kind == TermKind.VISCOUS:
                slopes[:, term.owner] += beta[k]
            elif term.kind == TermKind.COULOMB:
                slopes[:, term.owner] += beta[k] * term.slope * (1.0 - np.tanh(term.slope * v[:, term.owner]) ** 2)
        return np.maximum(slopes[:, self.flexible], 0.0)

    def link_rows(self, q: Array, v: Array, a: Array) -> Array:
        """Regressor (N, joint, b) of the torques of the link side, for the base parameters."""
        return self.base.regressor(q, v, a)

    def motor_rows(self, q: Array, v: Array, a: Array) -> Array:
        """Regressor (N, joint, m) of the torques of motors, at their positions, velocities and accelerations."""
        return np.ascontiguousarray(regressor(self.motors, q, v, a)[..., self.motor_columns])
