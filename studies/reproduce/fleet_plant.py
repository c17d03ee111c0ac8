"""A simulated fleet: torques of the bodies by Pinocchio, drives and sensors written out here.

All units run the same program on a date, so Pinocchio's torque regressor of that motion, times the inertial parameters
of each unit, gives their torques. No dynamics of the package take part. Units differ in their bodies and drives;
friction follows the temperature of the joints along a curve; torque noise is coloured.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta

import numpy as np
import pinocchio as pin
import scipy
from numpy.typing import NDArray

from dynid.fleet.entries import FleetEntry
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.load import load_robot
from dynid.robot.model import Robot

__all__ = ["FRICTION", "Fleet", "Plan", "Unit", "fleet_robot"]

Array = NDArray[np.float64]

FRICTION = "viscous+coulomb+offset"
_JOINTS = 4
_RATE, _SECONDS = 25.0, 12.0
# Per joint: Coulomb friction (N m), viscous friction (N m s/rad), standard deviation of the torque noise (N m).
_COULOMB = np.array([4.0, 6.0, 3.0, 1.2])
_VISCOUS = np.array([5.0, 7.0, 3.0, 1.0])
_NOISE = np.array([0.8, 1.2, 0.6, 0.25])
_FIRST = date(2026, 1, 5)


def _urdf() -> str:
    """A four-joint arm with links of 8, 6, 4 and 2 kg."""
    links = ['<link name="base"/>']
    joints = []
    shapes = ((8.0, (0.0, 0.02, 0.1)), (6.0, (0.2, 0.0, 0.03)), (4.0, (0.16, 0.02, 0.0)), (2.0, (0.01, 0.0, 0.08)))
    axes = ("0 0 1", "0 1 0", "0 1 0", "1 0 0")
    places = ("0 0 0.1", "0 0 0.3", "0.4 0 0", "0.35 0 0")
    for k, ((mass, (x, y, z)), axis, place) in enumerate(zip(shapes, axes, places, strict=True), start=1):
        parent = "base" if k == 1 else f"link{k - 1}"
        inertia = (
            f'ixx="{0.008 * mass:g}" ixy="0.002" ixz="0.001" iyy="{0.012 * mass:g}" iyz="0.0015" izz="{0.01 * mass:g}"'
        )
        links.append(
            f'<link name="link{k}"><inertial><origin xyz="{x} {y} {z}"/><mass value="{mass}"/><inertia {inertia}/>'
            "</inertial></link>"
        )
        joints.append(
            f'<joint name="joint{k}" type="revolute"><parent link="{parent}"/><child link="link{k}"/>'
            f'<origin xyz="{place}"/><axis xyz="{axis}"/>'
            '<limit lower="-3" upper="3" velocity="5" effort="300"/></joint>'
        )
    return f'<robot name="fleet arm">{"".join(links)}{"".join(joints)}</robot>'


def fleet_robot(folder: str) -> Robot:
    """The robot as users have it: the nominal URDF with friction."""
    path = f"{folder}/arm.urdf"
    with open(path, "w", encoding="utf-8") as file:
        file.write(_urdf())
    return load_robot(path, friction=FRICTION)


@dataclass(frozen=True)
class Plan:
    """What happens to the fleet: units by number, dates by number."""

    drifting: int = 41
    drift_joint: int = 1
    drift_share: float = 0.5
    drift_start: int = 6
    loaded: tuple[tuple[int, int, float], ...] = ((7, 9, 0.9), (63, 13, 0.6))
    centre: tuple[float, float, float] = (0.05, 0.02, 0.12)

    @property
    def truth(self) -> set[tuple[int, str]]:
        """Units with what changed in them."""
        return {(self.drifting, f"joint{self.drift_joint + 1}"), *((u, "payload") for u, _, _ in self.loaded)}


@dataclass(eq=False)
class Unit:
    """One unit: its own bodies and drives."""

    coulomb: Array
    viscous: Array
    offset: Array
    warmth: Array
    parameters: Array


@dataclass(eq=False)
class Fleet:
    """A fleet of one seed."""

    seed: int
    units: int = 100
    dates: int = 20
    plan: Plan | None = field(default_factory=Plan)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.made = [self._unit() for _ in range(self.units)]
        # The hall is warm and cold over weeks; every joint heats up by what it did before.
        weeks = np.arange(self.dates)
        hall = (
            24.0
            + 7.0 * np.sin(2 * np.pi * weeks / 9.0 + self.random.uniform(0, 6))
            + self.random.normal(0, 2, self.dates)
        )
        self.temperature = hall[None, :, None] + self.random.normal(0, 3, (self.units, self.dates, _JOINTS))
        self.motions = [_motion(np.random.default_rng([self.seed, k])) for k in range(self.dates)]
        self.scatter = 1.0 + 0.01 * self.random.normal(size=(self.units, self.dates, 2, _JOINTS))

    def _unit(self) -> Unit:
        model = pin.buildModelFromXML(_urdf())
        for body in list(model.inertias)[1:]:
            body.mass *= 1.0 + 0.01 * self.random.normal()
            body.lever = body.lever + 0.002 * self.random.normal(size=3)
            body.inertia = body.inertia * (1.0 + 0.02 * self.random.normal())
        factors = 1.0 + 0.15 * self.random.normal(size=(2, _JOINTS))
        coulomb, viscous = _COULOMB * factors[0], _VISCOUS * factors[1]
        offset = 0.3 * self.random.normal(size=_JOINTS)
        warmth = 1.0 + 0.15 * self.random.normal(size=_JOINTS)
        bodies = np.concatenate([body.toDynamicParameters() for body in list(model.inertias)[1:]])
        return Unit(coulomb, viscous, offset, warmth, bodies)

    def day(self, number: int) -> date:
        """The date of this number: one a week."""
        return _FIRST + timedelta(days=7 * number)

    def entry(self, unit: int, number: int) -> FleetEntry:
        """One recording of one unit."""
        me = self.made[unit]
        random = np.random.default_rng([self.seed, unit, number])
        t, q, v, regressor = self.motions[number]
        torque = regressor @ self.bodies(unit, number)
        coulomb, viscous = self.friction(unit, number)
        torque += coulomb * np.tanh(v / 0.004) + viscous * v + me.offset
        white = random.normal(size=(len(t) + 50, _JOINTS))
        colored = scipy.signal.lfilter([np.sqrt(1 - 0.7**2)], [1.0, -0.7], white, axis=0)[50:]
        run = Run(t, q + 1e-5 * random.normal(size=q.shape), torque=torque + _NOISE * colored, name=f"unit{unit}")
        names = tuple(f"joint{k}" for k in range(1, _JOINTS + 1))
        sensed = self.temperature[unit, number] + 0.3 * random.normal(size=_JOINTS)
        warm = dict(zip(names, sensed.tolist(), strict=True))
        return FleetEntry(f"arm{unit:03d}", self.day(number), Recording(names, (run,)), warm)

    def bodies(self, unit: int, number: int) -> Array:
        """Inertial parameters of a unit on a date, ten per link, with what it carries."""
        out = self.made[unit].parameters.copy()
        if self.plan is None:
            return out
        for who, since, mass in self.plan.loaded:
            if who == unit and number >= since:
                body = pin.Inertia(mass, np.array(self.plan.centre), mass * 0.1**2 / 6 * np.eye(3))
                out[-10:] += body.toDynamicParameters()
        return out

    def friction(self, unit: int, number: int) -> tuple[Array, Array]:
        """Coulomb and viscous friction of a unit on a date: warm grease is thin, along a curve."""
        me = self.made[unit]
        above = me.warmth * (self.temperature[unit, number] - 24.0)
        coulomb = me.coulomb * (1.0 - 0.006 * above) * self.scatter[unit, number, 0]
        viscous = me.viscous * np.exp(-0.015 * above) * self.scatter[unit, number, 1]
        if self.plan is not None and unit == self.plan.drifting and number > self.plan.drift_start:
            share = (number - self.plan.drift_start) / (self.dates - 1 - self.plan.drift_start)
            coulomb[self.plan.drift_joint] *= 1.0 + self.plan.drift_share * share
        return coulomb, viscous

    def entries(self, dates: int | None = None) -> list[FleetEntry]:
        """All recordings, or those of the first dates."""
        return [self.entry(u, d) for u in range(self.units) for d in range(dates or self.dates)]

    def truth(self, unit: int, number: int) -> Array:
        """Standard parameters of a unit on a date: per joint ten inertial ones, then its friction and offset."""
        coulomb, viscous = self.friction(unit, number)
        bodies = self.bodies(unit, number).reshape(_JOINTS, 10)
        drives = np.column_stack([viscous, coulomb, self.made[unit].offset])
        return np.hstack([bodies, drives]).ravel()


def _motion(random: np.random.Generator) -> tuple[Array, Array, Array, Array]:
    """Time, positions, velocities and torque regressor of a Fourier series, entered at another time on every date."""
    t = np.arange(0.0, _SECONDS, 1.0 / _RATE)
    plan = np.random.default_rng(5)  # one plan for the whole fleet
    a, b = plan.normal(size=(2, 5, _JOINTS)) / np.arange(1, 6)[:, None] ** 0.7
    size = 1.1 / np.sqrt(np.sum(a**2 + b**2, axis=0) / 2)
    angle = 2 * np.pi * 0.1 * np.arange(1, 6)
    phase = angle * (t + random.uniform(0, 10))[:, None]
    s, c, w = np.sin(phase), np.cos(phase), angle[:, None]
    q = (s @ a + c @ b) * size
    v = (c @ (w * a) - s @ (w * b)) * size
    acceleration = -(s @ (w**2 * a) + c @ (w**2 * b)) * size
    model = pin.buildModelFromXML(_urdf())
    data = model.createData()
    rows = zip(q, v, acceleration, strict=True)
    regressor = np.array([np.array(pin.computeJointTorqueRegressor(model, data, *row)) for row in rows])
    return t, q, v, regressor
