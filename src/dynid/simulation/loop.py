"""How the closed loop is computed: the integrator, its steps, and friction near rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from dynid.errors import DataError
from dynid.robot.model import Robot
from dynid.simulation.integrators import Integrator, integration_method

if TYPE_CHECKING:
    from dynid.dynamics.kernels.integrate import Method

__all__ = ["Loop"]

Coulomb = float | Literal["exact"]

# Decay by friction that one explicit step takes well (RK4 is stable up to 2.78, Euler up to 2), and steps a period.
_STABLE = {"rk4": 2.5, "semi-implicit": 1.5}
_MOST_STEPS = 1000
_AUTO_STEPS = 8


@dataclass(frozen=True, eq=False)
class Loop:
    """How the closed loop is computed.

    integrator: rk4, semi-implicit (both fixed steps), dopri5 (adaptive to `tolerance`), implicit (Euler, implicit in
    friction: stable however steep that is), or auto: rk4 unless friction is so steep that it would need more than eight
    steps a control period, then implicit with eight. substeps: fixed steps a control period, by default as many as
    friction and flexible joints need to be stable. coulomb: slope (s/rad) of the smooth step that stands for Coulomb
    friction where the robot has none of its own, or "exact", which sticks and needs "implicit".
    """

    integrator: Integrator = "rk4"
    substeps: int | None = None
    tolerance: float = 1e-8
    coulomb: Coulomb = 100.0

    def __post_init__(self) -> None:
        self.method(0.0)
        if self.coulomb == "exact":
            if self.integrator != "implicit":
                raise DataError(f"exact sticking needs the implicit integrator, not '{self.integrator}'")
        elif not (isinstance(self.coulomb, int | float) and self.coulomb > 0):
            raise DataError(f"coulomb is a positive slope or 'exact', got {self.coulomb!r}")

    def method(self, decay: float) -> Method:
        """The integrator for friction that decays by exp(-decay) in a control period, or a vibration as demanding."""
        name, steps = self.integrator, self.substeps
        if name == "auto":
            if steps is not None:
                raise DataError("the integrator 'auto' chooses its own substeps")
            few = decay <= _AUTO_STEPS * _STABLE["rk4"]
            name, steps = ("rk4", None) if few else ("implicit", _AUTO_STEPS)
        return integration_method(name, _substeps(name, decay) if steps is None else steps, self.tolerance)

    def robot(self, robot: Robot) -> Robot:
        """The robot as the loop sees it: sharp Coulomb steps made smooth, or all of them sharp where they are exact."""
        if self.coulomb == "exact":
            return robot.with_smooth_coulomb(0.0)
        sharp = [t.is_coulomb and t.slope == 0 for t in robot.drives]
        slope = float(self.coulomb)
        drives = (replace(t, slope=slope) if s else t for t, s in zip(robot.drives, sharp, strict=True))
        return replace(robot, drives=tuple(drives)) if any(sharp) else robot


def _substeps(integrator: Integrator, decay: float) -> int:
    """Steps a control period in which friction decays by exp(-decay), such that each is stable with room to spare."""
    count = int(np.ceil(max(1.0, decay / _STABLE.get(integrator, np.inf))))
    if count > _MOST_STEPS:
        raise DataError(
            f"friction or a spring is so steep that '{integrator}' needs {count} steps a control period: use the "
            "implicit integrator, a smaller slope or a softer spring"
        )
    return count
