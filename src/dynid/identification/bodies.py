"""Bodies of an estimate: what decided each, and how much of the total mass the recording determines.

A mass is determined where the recording leaves at most half of its a-priori variance, or where it was given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.frames import frame_placement
from dynid.feasibility.prior import consistent_prior
from dynid.identification.estimate import Estimate
from dynid.identification.known import prior_covariance, remaining_covariances
from dynid.parameters.base import ParameterClass
from dynid.robot.model import Robot

__all__ = ["BodyOrigin", "Decided", "TotalMass", "body_origins", "body_values_and_slopes", "total_mass"]

Array = NDArray[np.float64]

# Shares of the a-priori variance that are left: below the first (half the standard deviation) the data decide, above
# the second the data say less than the prior.
_DATA, _PRIOR = 0.25, 0.5
_DIAGONAL = (4, 6, 9)  # Ixx, Iyy, Izz among the ten parameters of a body
_WALLS = {"mass": "mass", "centre": "centre of mass", "gyration radius": "inertia"}


class Decided(StrEnum):
    """What decided a value of an estimate."""

    DATA = "the data"
    BOTH = "data and prior"
    PRIOR = "the prior"
    COMBINATION = "data and other bodies together"
    BOX = "the box"
    GIVEN = "the mass that was given"
    NOTHING = "nothing"


_DETERMINED = {Decided.DATA, Decided.BOTH, Decided.GIVEN}


@dataclass(frozen=True)
class BodyOrigin:
    """A quantity of a body: its a-priori value, its value now, and what decided each of its components.

    Attributes
    ----------
    link : str
        Name of the link.
    what : {"mass", "centre of mass", "inertia"}
        The quantity. Inertia is that about the centre of mass in link axes: xx, yy, zz.
    unit : str
        SI unit.
    prior, prior_std, value : tuple of float
        A-priori value and its standard deviation, and the value now; one entry for a mass and three otherwise.
    decided : tuple of Decided
        What decided each component.
    limit : str
        The limit it lies at, in words, where the box decided.
    """

    link: str
    what: str
    unit: str
    prior: tuple[float, ...]
    prior_std: tuple[float, ...]
    value: tuple[float, ...]
    decided: tuple[Decided, ...]
    limit: str = ""

    @property
    def by(self) -> str:
        """What decided the quantity, in words; of components that differ, which."""
        axes = ("",) if len(self.value) == 1 else ("xx", "yy", "zz") if self.what == "inertia" else ("x", "y", "z")
        places: dict[Decided, list[str]] = {}
        for axis, decided in zip(axes, self.decided, strict=True):
            places.setdefault(decided, []).append(axis)
        if len(places) == 1:
            return str(self.decided[0])
        return " and ".join(f"{decided} ({', '.join(names)})" for decided, names in places.items())

    @property
    def sentence(self) -> str:
        """The quantity with its numbers in one sentence."""
        prior = f"{_shown(self.prior)} +- {_shown(self.prior_std)} {self.unit}"
        limit = f", at its limit of {self.limit}" if self.limit else ""
        values = f"{self.what} {_shown(self.value)} {self.unit}, a priori {prior}"
        return f"{values}, decided by {self.by}{limit}"


def body_origins(estimate: Estimate) -> tuple[BodyOrigin, ...]:
    """What decided mass, centre of mass and inertia of every body.

    "The data" where less than half of the a-priori standard deviation is left, "data and prior" where the data halve
    the variance. Elsewhere, "data and other bodies together" where the value lies more than the a-priori standard
    deviation from its prior: the data show a combination with other bodies, and the value has its share of that. "The
    prior" where it lies within. "The box" where the value lies at a limit, "the mass that was given" where one was.
    A method without a prior determines only what is identifiable alone.

    Parameters
    ----------
    estimate : Estimate
        The estimate.

    Returns
    -------
    tuple of BodyOrigin
        Mass, and of a body with mass the centre of mass and the inertia, in the order of the links.
    """
    robot, prior = estimate.robot, consistent_prior(estimate.robot).parameters
    here, there = prior_covariance(estimate), prior_covariance(estimate, prior)
    left = remaining_covariances(estimate)
    alone = np.array([estimate.base.classes[n] == ParameterClass.IDENTIFIABLE for n in robot.parameter_names])
    out = []
    for link, columns in _columns(robot).items():
        own = np.ix_(columns, columns)
        value, slope = body_values_and_slopes(estimate.parameters[columns])
        before, before_slope = body_values_and_slopes(prior[columns])
        count = min(len(value), len(before))
        variance, wide = (_variances(m[:count], c[own]) for m, c in ((slope, here), (before_slope, there)))
        share = np.max([_variances(slope[:count], c[own]) for c in left], axis=0) / variance
        given = estimate.standard is not None
        if not given:
            share[np.any(np.abs(slope[:count][:, ~alone[columns]]) > 0, axis=1)] = 1.0
        std = np.sqrt(np.minimum(variance, wide))
        far = np.abs(value[:count] - before[:count]) > std
        bodiless = not given and not robot.parameters[columns[0]] > 0
        decided = [_decided(s, f, bodiless) for s, f in zip(np.nan_to_num(share, nan=1.0), far, strict=True)]
        out += _origins(link, before, std, value, decided)
    return tuple(_at_walls(x, estimate) for x in out)


def _columns(robot: Robot) -> dict[str, list[int]]:
    """Places of the ten parameters of each body, by link."""
    out: dict[str, list[int]] = {}
    for j, p in enumerate(robot.layout):
        if p.inertial:
            out.setdefault(p.owner, []).append(j)
    return out


def body_values_and_slopes(pi: Array) -> tuple[Array, Array]:
    """Mass, centre of mass and diagonal of the inertia about it (7,) of ten parameters, and their derivatives (7, 10).

    A body without mass has its mass alone.
    """
    m, h = float(pi[0]), pi[1:4]
    slopes = np.zeros((7, 10))
    slopes[0, 0] = 1.0
    if not m > 0:
        return pi[:1], slopes[:1]
    slopes[1:4, 0], slopes[1:4, 1:4] = -h / m**2, np.eye(3) / m
    across = h @ h - h**2  # sum of the squares of the other two components
    slopes[4:, 0] = across / m**2
    slopes[4:, 1:4] = -2.0 * (1.0 - np.eye(3)) * h / m
    slopes[[4, 5, 6], _DIAGONAL] = 1.0
    return np.concatenate([[m], h / m, pi[list(_DIAGONAL)] - across / m]), slopes


def _variances(slopes: Array, covariance: Array) -> Array:
    """Variances of quantities with these derivatives by the parameters."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.einsum("ij,jk,ik->i", slopes, covariance, slopes))


def _decided(share: float, far: bool, bodiless: bool) -> Decided:
    """What decided a value with this share of its a-priori variance left, far from its prior or not."""
    if share < _DATA:
        return Decided.DATA
    if bodiless:
        return Decided.NOTHING
    if share <= _PRIOR:
        return Decided.BOTH
    return Decided.COMBINATION if far else Decided.PRIOR


def _origins(link: str, before: Array, std: Array, value: Array, decided: Sequence[Decided]) -> list[BodyOrigin]:
    """The quantities of a body that both its prior and its estimate have."""
    parts = (("mass", "kg", slice(0, 1)), ("centre of mass", "m", slice(1, 4)), ("inertia", "kg m2", slice(4, 7)))
    out = []
    for what, unit, at in parts:
        if decided[at]:
            prior, wide, now = (tuple(x[at].tolist()) for x in (before, std, value))
            out.append(BodyOrigin(link, what, unit, prior, wide, now, tuple(decided[at])))
    return out


def _at_walls(origin: BodyOrigin, estimate: Estimate) -> BodyOrigin:
    """The quantity, decided by the box where the estimate lies at a wall for it."""
    if origin.what == "mass" and origin.link in estimate.known_masses.links:
        return replace(origin, decided=(Decided.GIVEN,))
    for wall in estimate.walls:
        if wall.link == origin.link and _WALLS.get(wall.what) == origin.what:
            unit = "kg" if wall.what == "mass" else "m"
            name = " of the gyration radius" if wall.what == "gyration radius" else ""
            limit = f"{wall.limit:.3g} {unit}{name}"
            return replace(origin, decided=(Decided.BOX,) * len(origin.decided), limit=limit)
    return origin


def _shown(values: Sequence[float]) -> str:
    """A number, or three in parentheses; what rounding left of zero is zero."""
    text = ", ".join(f"{round(x, 15) + 0.0:.3g}" for x in values)
    return text if len(values) == 1 else f"({text})"


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
    def sentence(self) -> str:
        """Both masses, and how much of the identified one the recording determines."""
        return f"{self.after:.3g} kg, a priori {self.before:.3g} kg; {self.words}"

    @property
    def words(self) -> str:
        """Whether it was given, and how much of it the recording determines, in words."""
        determined = "all of it is determined by the recording"
        if self.open_links:
            named = ", ".join(self.open_links[:4]) + (" and more" if len(self.open_links) > 4 else "")
            determined = f"{100 * self.open_share:.0f} % of it is not determined by the recording ({named})"
        return f"{self.given}, {determined}" if self.given else determined


def total_mass(estimate: Estimate) -> TotalMass:
    """Return the mass of all bodies of an estimate beside that of its a-priori model."""
    robot, after = estimate.robot, estimate.identified_robot
    masses = [j for j, p in enumerate(robot.layout) if p.inertial and p.symbol == "m"]
    values = np.maximum(estimate.parameters[masses], 0.0)
    links = tuple(x.link for x in body_origins(estimate) if x.what == "mass" and not _DETERMINED & set(x.decided))
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
