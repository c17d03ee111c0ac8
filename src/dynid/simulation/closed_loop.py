"""The closed loop: a controller, the sensors it reads, and how the motion of the robot is integrated."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from dynid.errors import DataError
from dynid.robot.model import Robot
from dynid.simulation.integrators import Integrator, integration_method
from dynid.simulation.laws import CallableController, Controller, LinearController
from dynid.simulation.sensors import Sensors

if TYPE_CHECKING:
    from dynid.dynamics.kernels.integrate import Method

__all__ = ["ClosedLoop"]

# Largest decay exponent per step that keeps an explicit method stable, with a margin: RK4 is stable up to 2.78, Euler
# up to 2.
_STABLE = {"rk4": 2.5, "semi-implicit": 1.5}
_MAX_SUBSTEPS = 1000
_AUTO_SUBSTEPS = 8


@dataclass(frozen=True, eq=False, kw_only=True)
class ClosedLoop:
    """A controller, its sensors, and the numerical integration of the robot's motion.

    One object describes the loop wherever it is simulated: `dynid.simulate`, the closed-loop methods of
    `dynid.identify`, `dynid.stats.diagnose` and Monte Carlo scenarios.

    Attributes
    ----------
    controller : Controller or None
        The control law, from `dynid.controllers`. None is enough for the methods ml, ekf and ukf, which do not
        simulate the controller.
    sensors : Sensors
        Encoder noise and resolution, velocity measurement, delay. Ideal encoders by default.
    integrator : {"auto", "rk4", "semi-implicit", "dopri5", "implicit"}
        "rk4" and "semi-implicit" (Euler) take fixed steps. "dopri5" adapts its steps to `tolerance`. "implicit" (Euler,
        implicit in friction) is stable however steep friction is. "auto" is "rk4", unless friction is so steep that it
        would need more than eight steps per control period; then it is "implicit" with eight steps.
    substeps : int or None
        Fixed steps per control period. By default as many as friction and flexible joints require for stability. Not
        allowed with "auto".
    tolerance : float
        Relative and absolute error tolerance of "dopri5" per step.
    coulomb_slope : float or "exact"
        Slope k (s/rad; s/m for a prismatic joint) of tanh(k v), which replaces the sign of the velocity in Coulomb
        friction terms that have no slope of their own. "exact" simulates sticking, and needs the "implicit" integrator.

    Raises
    ------
    DataError
        If a field is not valid, or if the integrator does not allow the given substeps or slope.

    Examples
    --------
    >>> import dynid
    >>> robot = dynid.load_robot("twolink")
    >>> kp, kv = dynid.controllers.bandwidth_gains(robot, 5.0)
    >>> loop = dynid.ClosedLoop(controller=dynid.controllers.cascade(1000.0, kp, kv))
    >>> loop.integrator
    'auto'
    """

    controller: Controller | None = None
    sensors: Sensors = field(default_factory=Sensors)
    integrator: Integrator = "auto"
    substeps: int | None = None
    tolerance: float = 1e-8
    coulomb_slope: float | Literal["exact"] = 100.0

    def __post_init__(self) -> None:
        if self.controller is not None and not isinstance(self.controller, LinearController | CallableController):
            raise DataError(f"a controller is made by dynid.controllers, got {self.controller!r:.60}")
        if not isinstance(self.sensors, Sensors):
            raise DataError(f"sensors are given as dynid.simulation.Sensors, got {self.sensors!r:.60}")
        self.integration(0.0)
        if self.coulomb_slope == "exact":
            if self.integrator != "implicit":
                raise DataError(f"coulomb_slope='exact' needs the implicit integrator, not '{self.integrator}'")
        elif not (isinstance(self.coulomb_slope, int | float) and self.coulomb_slope > 0):
            raise DataError(f"coulomb_slope is a positive number or 'exact', got {self.coulomb_slope!r}")

    def integration(self, decay: float) -> Method:
        """Integration method for friction that decays a velocity by exp(-decay) in one control period.

        Parameters
        ----------
        decay : float
            Decay exponent per control period, at the steepest point of friction. A vibration is given by the decay that
            needs the same number of steps.

        Returns
        -------
        Method
            Coefficients and step counts for the compiled kernels.
        """
        name, substeps = self.integrator, self.substeps
        if name == "auto":
            if substeps is not None:
                raise DataError("the integrator 'auto' chooses its own substeps; name an integrator to set them")
            explicit = decay <= _AUTO_SUBSTEPS * _STABLE["rk4"]
            name, substeps = ("rk4", None) if explicit else ("implicit", _AUTO_SUBSTEPS)
        return integration_method(name, _substeps(name, decay) if substeps is None else substeps, self.tolerance)

    def regularized(self, robot: Robot) -> Robot:
        """The robot with the Coulomb friction that this loop simulates.

        Parameters
        ----------
        robot : Robot

        Returns
        -------
        Robot
            With `coulomb_slope` on every Coulomb term that has no slope, or without any slope where it is "exact".
        """
        if self.coulomb_slope == "exact":
            return robot.with_smooth_coulomb(0.0)
        sharp = [t.is_coulomb and t.slope == 0 for t in robot.drives]
        slope = float(self.coulomb_slope)
        drives = (replace(t, slope=slope) if s else t for t, s in zip(robot.drives, sharp, strict=True))
        return replace(robot, drives=tuple(drives)) if any(sharp) else robot


def _substeps(integrator: Integrator, decay: float) -> int:
    """Steps per control period that keep an explicit method stable, with a margin."""
    count = int(np.ceil(max(1.0, decay / _STABLE.get(integrator, np.inf))))
    if count > _MAX_SUBSTEPS:
        raise DataError(
            f"friction or a spring is so steep that '{integrator}' needs {count} steps per control period: use the "
            "implicit integrator, a smaller slope or a softer spring"
        )
    return count
