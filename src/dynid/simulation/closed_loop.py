"""The closed loop: a controller, the sensors it reads, and how the motion of the robot is integrated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, cast

import numpy as np
from numpy.typing import NDArray

from dynid.errors import (
    ConflictingArguments,
    InvalidShape,
    InvalidType,
    InvalidValue,
    TooLarge,
    keyword,
    named,
)
from dynid.robot.model import Robot
from dynid.simulation.integrators import Integrator, integration_method
from dynid.simulation.laws import CallableController, Controller, LinearController
from dynid.simulation.sensors import Sensors

if TYPE_CHECKING:
    from dynid.dynamics.kernels.integrate import Method

__all__ = ["ClosedLoop"]

Array = NDArray[np.float64]

# Largest decay exponent per step that keeps an explicit method stable, with a margin: RK4 is stable up to 2.78, Euler
# up to 2.
_STABLE = {"rk4": 2.5, "semi-implicit": 1.5}
_MAX_SUBSTEPS = 1000
_AUTO_SUBSTEPS = 8
# The slope "auto" is _STEEPNESS over the velocity that a shaft exceeds during 5 % of the time, so friction has 99.9 %
# of its value at 1 % of that velocity, where `Signals.min_velocity` begins to keep rows. A tenth of this steepness
# biases a slow linear axis by several standard deviations; ten times it, and noise decides the sign of measured
# velocities in "iv" (tests/identification/test_linear_axis.py). A shaft at rest, below _REST, has the slope of one that
# moves at 0.1 rad/s: steep enough to hold still, not too steep for explicit steps.
_STEEPNESS = 400.0
_RANGE = 0.95
_REST, _REST_SLOPE = 1e-4, 4000.0  # rad/s or m/s; s/rad or s/m


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
        Fixed steps per control period. By default as many as friction and flexible joints require for stability; with
        fewer, "rk4" and "semi-implicit" chatter near zero velocity. Not allowed with "auto".
    tolerance : float
        Relative and absolute error tolerance of "dopri5" per step.
    coulomb_slope : "auto", float, sequence of float or "exact"
        Slope k (s/rad; s/m for a prismatic joint) of tanh(k v), which replaces the sign of the velocity in Coulomb
        friction and the jump of custom terms, where these have no slope of their own: one number, or one per joint.
        "auto" takes 400 over the velocity that the reference of a joint exceeds during 5 % of the time, to two digits:
        friction is complete at 1 % of it. A joint at rest, below 1e-4 rad/s or m/s, has 4000. "exact" simulates
        sticking, and needs the "implicit" integrator.

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
    coulomb_slope: float | Sequence[float] | Literal["auto", "exact"] = "auto"

    def __post_init__(self) -> None:
        if self.controller is not None and not isinstance(self.controller, LinearController | CallableController):
            raise InvalidType(f"a controller is made by dynid.controllers, got {self.controller!r:.60}", "controller")
        if not isinstance(self.sensors, Sensors):
            raise InvalidType(f"sensors are given as dynid.simulation.Sensors, got {self.sensors!r:.60}", "sensors")
        self.integration(0.0)
        object.__setattr__(self, "coulomb_slope", _checked_slope(self.coulomb_slope))
        if self.coulomb_slope == "exact" and self.integrator != "implicit":
            raise ConflictingArguments(
                f"{keyword('coulomb_slope', 'exact')} needs the implicit integrator, not '{self.integrator}'"
            )

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
                raise ConflictingArguments(
                    "the integrator 'auto' chooses its own substeps; name an integrator to set them", "substeps"
                )
            explicit = decay <= _AUTO_SUBSTEPS * _STABLE["rk4"]
            name, substeps = ("rk4", None) if explicit else ("implicit", _AUTO_SUBSTEPS)
        return integration_method(name, _substeps(name, decay) if substeps is None else substeps, self.tolerance)

    def slopes(self, velocity: Array) -> Array:
        """Slope of the Coulomb friction of every joint.

        Parameters
        ----------
        velocity : array of shape (K, n)
            Velocities (rad/s or m/s) of the reference or, where there is none, of the recording.

        Returns
        -------
        array of shape (n,)
            Slopes (s/rad or s/m); 0 where friction is exact.

        Raises
        ------
        DataError
            If `coulomb_slope` has another number of joints.
        """
        given, n = self.coulomb_slope, velocity.shape[1]
        if given == "auto":
            return np.array([_slope_for(v) for v in velocity.T])
        if given == "exact":
            return np.zeros(n)
        if np.ndim(given) and np.size(given) != n:
            raise InvalidShape(f"{named('coulomb_slope')} has {np.size(given)} numbers, the robot {n} joints")
        return np.broadcast_to(np.asarray(given, dtype=float), (n,)).copy()

    def regularized(self, robot: Robot, velocity: Array) -> Robot:
        """The robot with the Coulomb friction that this loop simulates along a motion.

        Parameters
        ----------
        robot : Robot
        velocity : array of shape (K, n)
            Joint velocities (rad/s or m/s), as for `slopes`.

        Returns
        -------
        Robot
            With a slope on every Coulomb term that has none, or without any slope where friction is exact. With
            "auto", a term of a motor has the slope for the velocities of the motor.
        """
        if self.coulomb_slope == "exact":
            return robot.with_smooth_coulomb(0.0)
        slopes = self.slopes(velocity)
        free = np.array([name not in robot.passive for name in robot.tree_coordinates])
        drives = []
        for term in robot.drives:
            if term.jumps and term.slope == 0:
                of_motor = term.motor and self.coulomb_slope == "auto"
                owner = robot.tree_coordinates[term.owner]
                own = slopes[robot.coordinates.index(owner)] if owner in robot.coordinates else slopes.max()
                slope = _slope_for(velocity @ term.direction[free]) if of_motor else own
                term = replace(term, slope=float(slope))
            drives.append(term)
        changed = any(new is not old for new, old in zip(drives, robot.drives, strict=True))
        return replace(robot, drives=tuple(drives)) if changed else robot


def _checked_slope(given: object) -> float | tuple[float, ...] | Literal["auto", "exact"]:
    """A Coulomb slope, numbers as floats."""
    if isinstance(given, str) and given in ("auto", "exact"):
        return cast("Literal['auto', 'exact']", given)
    try:
        numbers = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        numbers = np.array(np.nan)
    if isinstance(given, bool | str) or numbers.ndim > 1 or not np.all(np.isfinite(numbers) & (numbers > 0)):
        raise InvalidValue(
            f"coulomb_slope is 'auto', 'exact', a positive number, or one per joint, got {given!r:.60}", "coulomb_slope"
        )
    return tuple(numbers.tolist()) if numbers.ndim else float(numbers)


def _slope_for(velocity: Array) -> float:
    """The slope "auto" for these velocities (K,) of a shaft, to two digits."""
    fast = float(np.quantile(np.abs(velocity), _RANGE))
    return float(f"{_STEEPNESS / fast:.2g}") if fast > _REST else _REST_SLOPE


def _substeps(integrator: Integrator, decay: float) -> int:
    """Steps per control period that keep an explicit method stable, with a margin."""
    count = int(np.ceil(max(1.0, decay / _STABLE.get(integrator, np.inf))))
    if count > _MAX_SUBSTEPS:
        raise TooLarge(
            f"friction or a spring is so steep that '{integrator}' needs {count} steps per control period: use the "
            "implicit integrator, a smaller slope or a softer spring",
            "integrator",
        )
    return count
