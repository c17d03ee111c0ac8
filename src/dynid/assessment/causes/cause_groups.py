"""A candidate cause as torque columns, and what all candidates are computed from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.causes.cause_code import CauseCode
from dynid.assessment.causes.cause_rows import CauseRows
from dynid.dynamics.functions import inverse_dynamics
from dynid.robot.drives import TermKind, drive_kinds
from dynid.robot.model import Robot

__all__ = ["Group", "Model"]

Array = NDArray[np.float64]

_VELOCITY_TERMS = drive_kinds("viscous", "coulomb", "stribeck")
_VISCOUS_TERMS = drive_kinds("viscous")


@dataclass(frozen=True, eq=False)
class Group:
    """A candidate cause: columns (m, c) per channel, None where it has no effect.

    The first `core` columns measure the cause; further ones are parameters that only this cause makes visible. The
    size is the norm of the core coefficients times `scale`, with its sign where there is one core column; `least` is
    the smallest size that matters, `most` the largest that it can have. `words` says what it is, given the size and its
    standard deviation as text. `option` is the effect with which a robot has it, see `dynid.robot.effects`. What a
    link carries from a sample on has `link` and `start`.
    """

    code: CauseCode
    joints: tuple[int, ...]
    words: Callable[[str, float], str]
    columns: tuple[Array | None, ...]
    unit: str
    scale: float = 1.0
    least: float = 0.0
    most: float = np.inf
    core: int = 1
    option: str = ""
    link: str = ""
    start: int = 0

    @property
    def count(self) -> int:
        """Number of columns."""
        return max(c.shape[1] for c in self.columns if c is not None)


@dataclass(frozen=True, eq=False)
class Model:
    """The estimate along the motions: torques at full rate, as a whole, of the bodies, and of friction."""

    robot: Robot
    parameters: Array
    rows: CauseRows

    def torque(self, parameters: Array) -> tuple[Array, ...]:
        """Torques (N, joint) of each motion."""
        return tuple(inverse_dynamics(self.robot, m.q, m.v, m.a, parameters) for m in self.rows.motions)

    @cached_property
    def whole(self) -> tuple[Array, ...]:
        """Torques of each motion."""
        return self.torque(self.parameters)

    @cached_property
    def residual(self) -> tuple[Array, ...]:
        """Measured torques less those of the estimate, (N, joint) of each motion at full rate."""
        return tuple(np.asarray(m.torque) - x for m, x in zip(self.rows.motions, self.whole, strict=True))

    @cached_property
    def friction(self) -> tuple[Array, ...]:
        """Friction torques of each motion."""
        return self._of(_VELOCITY_TERMS)

    @cached_property
    def viscous(self) -> tuple[Array, ...]:
        """Torques of viscous friction of each motion."""
        return self._of(_VISCOUS_TERMS)

    def _of(self, kinds: frozenset[TermKind]) -> tuple[Array, ...]:
        names = {t.name for t in self.robot.drives if t.kind in kinds}
        kept = np.array([name in names for name in self.robot.parameter_names])
        return self.torque(np.where(kept, self.parameters, 0.0))

    @cached_property
    def bodies(self) -> Robot:
        """The robot without drives."""
        return replace(self.robot, drives=())

    @cached_property
    def body_parameters(self) -> Array:
        """Inertial parameters."""
        return self.parameters[[p.inertial for p in self.robot.layout]]

    @cached_property
    def load(self) -> tuple[Array, ...]:
        """Torques (N, joint) of the bodies of each motion."""
        return tuple(inverse_dynamics(self.bodies, m.q, m.v, m.a, self.body_parameters) for m in self.rows.motions)

    @cached_property
    def torque_rows(self) -> list[Array]:
        """Torque (m,) of the estimate in the rows of each channel."""
        beta = self.rows.base.values(self.parameters)
        return [W @ beta for W in self.rows.W]

    def only(self, channel: int, column: Array) -> tuple[Array | None, ...]:
        """Columns of a cause that acts on the torque of one channel only."""
        column = column if column.ndim == 2 else column[:, None]
        return tuple(column if k == channel else None for k in range(len(self.rows.W)))

    def everywhere(self, columns: Sequence[Array]) -> tuple[Array | None, ...]:
        """Columns of a cause that acts on all channels."""
        return tuple(c if c.ndim == 2 else c[:, None] for c in columns)
