"""Total mass and centre of mass of a robot, identified and a priori."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.frames import frame_placement
from dynid.export.label import Decided, body_origins
from dynid.identification.estimate import Estimate
from dynid.robot.model import Robot

__all__ = ["TotalMass", "open_masses", "total_mass"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TotalMass:
    """Mass of all bodies together.

    Attributes
    ----------
    before, after : float
        A-priori and identified mass in kg.
    std : float or None
        Standard deviation of the identified mass in kg; None where the method does not estimate bodies.
    centre_before, centre_after : ndarray (3,) or None
        Centres of mass in the base frame at the home posture in m; None without mass.
    open_share : float
        Share of the identified mass that the recording does not determine.
    open_links : tuple of str
        Links with such a mass.
    given : str
        That the robot was weighed, in words; empty where its mass was not given.
    """

    before: float
    after: float
    std: float | None
    centre_before: Array | None
    centre_after: Array | None
    open_share: float
    open_links: tuple[str, ...]
    given: str = ""

    @property
    def words(self) -> str:
        """Whether it was given, and how much of it the recording determines, in words."""
        determined = "all of it is determined by the recording"
        if self.open_links:
            named = ", ".join(self.open_links[:4]) + (" and more" if len(self.open_links) > 4 else "")
            determined = f"{100 * self.open_share:.0f} % of it is not determined by the recording ({named})"
        return f"{self.given}, {determined}" if self.given else determined


def open_masses(estimate: Estimate) -> tuple[str, ...]:
    """Links whose mass the recording does not determine."""
    known = {Decided.DATA, Decided.BOTH, Decided.GIVEN}
    return tuple(x.link for x in body_origins(estimate) if x.what == "mass" and not known & set(x.decided))


def total_mass(estimate: Estimate) -> TotalMass:
    """Return the mass of all bodies of an estimate beside that of its a-priori model."""
    robot, after = estimate.robot, estimate.identified_robot
    masses = [j for j, p in enumerate(robot.layout) if p.inertial and p.symbol == "m"]
    values = np.maximum(estimate.parameters[masses], 0.0)
    links = open_masses(estimate)
    left = sum(float(x) for j, x in zip(masses, values, strict=True) if robot.layout[j].owner in links)
    std = None
    if estimate.standard_covariance is not None:
        variance = float(np.sum(estimate.standard_covariance[np.ix_(masses, masses)]))
        std = float(np.sqrt(variance)) if np.isfinite(variance) and variance >= 0 else None
    total = float(values.sum())
    return TotalMass(
        before=float(np.sum(robot.parameters[masses])),
        after=float(np.sum(estimate.parameters[masses])),
        std=std,
        centre_before=_centre(robot),
        centre_after=_centre(after),
        open_share=left / total if total > 0 else 0.0,
        open_links=links,
        given=estimate.known_masses.words(),
    )


def _centre(robot: Robot) -> Array | None:
    """Centre of mass (3,) in the base frame at the home posture; None without mass."""
    posture = robot.home if robot.base != "floating" else np.concatenate([[0, 0, 0, 0, 0, 0, 1], robot.home])
    mass, moment = 0.0, np.zeros(3)
    for i in robot.parameter_links:
        place = frame_placement(robot, posture, robot.links[i].name)
        inertia = robot.links[i].inertia
        mass += float(inertia[0])
        moment += place[:3, 3] * inertia[0] + place[:3, :3] @ inertia[1:4]
    return moment / mass if mass > 0 else None
