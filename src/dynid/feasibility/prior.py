"""A physically consistent prior for every robot: its own bodies where they are consistent, uniform ones elsewhere.

Robots made from DH tables have no bodies, and robot files often hold massless links, inertias of zero or inertias that
no body has. A link without a mass becomes a uniform rod between its joints. A mass whose inertia is inconsistent keeps
its mass and centre of mass, and second moments that are too small are raised to those of a compact body. Known
masses are those of links, or of all bodies together.

    S = tr(I)/2 1 - I,    S = m (l l' / 12 + r^2 / 5 1) of a rod along l with radius r, and of a ball where l = 0

Source: own rules; Wensing, Kim and Slotine (2018), for second moments that some body has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from dynid.errors import (
    ConflictingArguments,
    DataError,
    Duplicate,
    InvalidType,
    InvalidValue,
    UnknownName,
    did_you_mean,
    named,
)
from dynid.feasibility.columns import links_named
from dynid.results import Result, about
from dynid.robot.inertia import inertia_from_pseudo, inertia_to_pseudo
from dynid.robot.model import Robot

__all__ = ["KnownMasses", "Prior", "check_bodies", "consistent_prior", "known_masses", "wide_bodies"]

Array = NDArray[np.float64]

# Radius of a rod relative to its length, and of a link without length relative to the mean of the others.
_SLENDER, _COMPACT = 0.2, 0.3
# Length of a link in m where no two joints are apart, and mass per length in kg/m: about that of robot arms.
_LENGTH, _MASS_PER_LENGTH = 0.3, 10.0
# Smallest second moment of a body about its centre of mass, relative to mass times the square of its length.
_FLAT = 1e-4
# Bodies whose uncertainty is that of the prior: least second moment relative to mass times square of the size, and
# least mass relative to that of the prior.
_WIDE, _LIGHT = 0.05, 1e-3


@dataclass(frozen=True, eq=False)
class Prior:
    """A-priori parameters with a physically consistent body for every link.

    Attributes
    ----------
    parameters : ndarray, shape (p,)
        Standard parameters, SI units.
    assumed : tuple of str
        Links that had no mass and became uniform rods.
    repaired : tuple of str
        Links whose inertia was inconsistent with their mass.
    complete : bool
        Whether no link of the robot had a mass, so that all bodies are assumed and only their proportions have a
        meaning.
    """

    parameters: Array
    assumed: tuple[str, ...]
    repaired: tuple[str, ...]
    complete: bool

    def scaled(self, robot: Robot, factor: float) -> Prior:
        """The prior with the bodies of all links multiplied by a factor."""
        inertial = np.array([p.inertial for p in robot.layout])
        return replace(self, parameters=np.where(inertial, factor, 1.0) * self.parameters)

    def mass(self, robot: Robot) -> float:
        """Mass in kg of all bodies."""
        return float(
            sum(x for x, p in zip(self.parameters, robot.layout, strict=True) if p.inertial and p.symbol == "m")
        )

    def weighing(self, robot: Robot, total: float | None, links: Mapping[str, float]) -> Prior:
        """The prior with bodies of known masses in kg: single links, and the others in proportion to the total."""
        masses = {p.owner: self.parameters[i] for i, p in enumerate(robot.layout) if p.inertial and p.symbol == "m"}
        rest = sum(mass for name, mass in masses.items() if name not in links)
        factor = 1.0 if total is None or rest <= 0 else (total - sum(links.values())) / rest
        if factor <= 0:
            raise ConflictingArguments(
                f"the given masses of links leave nothing of {total:g} kg for the others", "link_masses"
            )
        scale = [
            (links[p.owner] / masses[p.owner] if p.owner in links else factor) if p.inertial else 1.0
            for p in robot.layout
        ]
        return replace(self, parameters=self.parameters * np.array(scale))

    def notes(self) -> list[str]:
        """What was assumed, in sentences."""
        out = []
        if self.complete:
            out.append("the robot has no a-priori bodies: the prior is a uniform rod along each link")
        elif self.assumed:
            out.append(f"links without a-priori mass have a uniform rod as prior: {', '.join(self.assumed)}")
        if self.repaired:
            out.append(f"links with an inconsistent a-priori inertia were repaired: {', '.join(self.repaired)}")
        return out


def consistent_prior(robot: Robot, parameters: Array | None = None) -> Prior:
    """The a-priori parameters of a robot, with a physically consistent body for every link.

    Parameters
    ----------
    robot : Robot
        The robot.
    parameters : ndarray, shape (p,), optional
        A-priori standard parameters, SI units; by default those of the robot.

    Returns
    -------
    Prior

    Examples
    --------
    >>> import dynid
    >>> from dynid.feasibility import consistent_prior
    >>> rows = [(0.0, 0.0, 0.0, 0.0), (0.0, 0.5, 0.0, 0.0)]
    >>> consistent_prior(dynid.Robot.from_dh(rows, "modified", name="arm")).complete
    True
    """
    pi = np.array(robot.parameters if parameters is None else parameters, dtype=float)
    spans = {robot.links[i].name: _span(robot, i) for i in robot.parameter_links}
    lengths = [float(np.linalg.norm(b - a)) for a, b in spans.values()]
    typical = float(np.mean([x for x in lengths if x > 0])) if any(x > 0 for x in lengths) else _LENGTH
    first = {p.owner: i for i, p in enumerate(robot.layout) if p.inertial and p.symbol == "m"}
    masses = [float(pi[at]) for at in first.values() if pi[at] > 0]
    rods = {name: _rod(*spans[name], typical) for name in first}
    # Where some links have masses, the others are light: what the file leaves out is rarely heavy.
    share = 0.1 * float(np.median(masses)) / float(np.median([r[0] for r in rods.values()])) if masses else 1.0
    assumed, repaired = [], []
    for name, at in first.items():
        body = pi[at : at + 10]
        if body[0] <= 0:
            pi[at : at + 10] = share * rods[name]
            assumed.append(name)
            continue
        sound = _sound(body, max(float(np.linalg.norm(np.subtract(*spans[name]))), _COMPACT * typical))
        if sound is not None:
            pi[at : at + 10] = sound
            repaired.append(name)
    return Prior(pi, tuple(assumed), tuple(repaired), not masses)


def wide_bodies(robot: Robot, parameters: Array, prior: Array) -> Array:
    """Bodies (p,) with the masses and centres of mass of `parameters`, and none of them thin.

    The distance of pseudo-inertias is relative: a thin body would seem to be known as precisely as it is thin.
    """
    out = np.array(parameters, dtype=float)
    for at in (i for i, p in enumerate(robot.layout) if p.inertial and p.symbol == "m"):
        before, now = prior[at : at + 10], out[at : at + 10]
        mass = max(float(now[0]), _LIGHT * float(before[0]))
        center = now[1:4] / mass
        second = inertia_to_pseudo(now)[:3, :3] - mass * np.outer(center, center)
        values, vectors = np.linalg.eigh(second)
        # Mean square of the distance of the prior's mass from the frame of its link.
        square = float(np.trace(inertia_to_pseudo(before)[:3, :3])) / float(before[0])
        out[at : at + 10] = _body(mass, center, (vectors * np.maximum(values, _WIDE * mass * square)) @ vectors.T)
    return out


def _span(robot: Robot, link: int) -> tuple[Array, Array]:
    """Origin of the joint that moves a link, and the mean origin of the joints on it, in the frame of the link."""
    near = np.zeros(3)
    if link > 0:
        mount = robot.joints[link - 1].mount
        near = -mount[:3, :3].T @ mount[:3, 3]
    far = [joint.placement[:3, 3] for joint in robot.joints if joint.parent == link]
    return near, np.mean(far, axis=0) if far else near


def _rod(near: Array, far: Array, typical: float) -> Array:
    """Inertial parameters (10,) of a uniform rod between two points; a ball where they are one."""
    along = far - near
    length = float(np.linalg.norm(along))
    radius = max(_SLENDER * length, _COMPACT * typical)
    mass = _MASS_PER_LENGTH * max(length, 2 * radius)
    second = mass * (np.outer(along, along) / 12 + radius**2 / 5 * np.eye(3))
    return _body(mass, near + along / 2, second)


def _sound(body: Array, length: float) -> Array | None:
    """A body with its second moments about the centre of mass raised where they are too small; None if none is."""
    mass, center = body[0], body[1:4] / body[0]
    second = inertia_to_pseudo(body)[:3, :3] - mass * np.outer(center, center)
    values, vectors = np.linalg.eigh(second)
    least = _FLAT * mass * length**2
    if values[0] > min(least, 1e-3 * values[-1]) > 0:
        return None
    raised = np.maximum(values, max(least, 1e-2 * values[-1]))
    return _body(mass, center, (vectors * raised) @ vectors.T)


def _body(mass: float, center: Array, second: Array) -> Array:
    """Inertial parameters (10,) from mass, centre of mass and second moments about it."""
    pseudo = np.zeros((4, 4))
    pseudo[:3, :3] = second + mass * np.outer(center, center)
    pseudo[:3, 3] = pseudo[3, :3] = mass * center
    pseudo[3, 3] = mass
    return np.asarray(inertia_from_pseudo(pseudo))


@dataclass(frozen=True)
class KnownMasses(Result):
    """Masses that were given."""

    total: float | None = field(
        default=None, metadata=about("Mass of all moving bodies together.", unit="kg", finite=True)
    )
    links: dict[str, float] = field(
        default_factory=dict, metadata=about("Masses of single links by name.", unit="kg", finite=True)
    )

    def words(self, link: str | None = None) -> str:
        """What was given for a link, or for all bodies together; empty where nothing was."""
        mass = self.total if link is None else self.links.get(link)
        return "" if mass is None else f"weighs {mass:.4g} kg (given)"


def known_masses(
    robot: Robot, mass: float | None = None, link_masses: Mapping[str, float] | None = None
) -> KnownMasses:
    """The masses that are given for the bodies of a robot.

    Parameters
    ----------
    robot : Robot
        The robot.
    mass : float, optional
        Mass of all moving bodies together, kg.
    link_masses : mapping of str to float, optional
        Mass of links by name, kg; with wildcards, that of each link that matches.

    Returns
    -------
    KnownMasses
        Total, and mass by the name of the link.

    Raises
    ------
    DataError
        If a mass is not positive, a link is unknown or has two masses, or the total is smaller than the sum of the
        links.

    Examples
    --------
    >>> import dynid
    >>> from dynid.identification import known_masses
    >>> known_masses(dynid.load_robot("twolink"), 16.0, {"link2": 4.8}).links
    {'link2': 4.8}
    """
    check_bodies(mass, link_masses)
    links: dict[str, float] = {}
    for pattern, value in (link_masses or {}).items():
        for name in _bodies_named(robot, pattern):
            if links.setdefault(name, float(value)) != value:
                raise Duplicate(
                    f"{named('link_masses')} names '{name}' twice, with {links[name]:g} kg and with {value:g} kg"
                )
    least = sum(links.values())
    if mass is not None and mass < least * (1.0 - 1e-9):
        raise ConflictingArguments(
            f"{named('mass')} must be at least the {least:g} kg of the links whose mass is given, got {mass:g} kg"
        )
    return KnownMasses(None if mass is None else float(mass), links)


def _bodies_named(robot: Robot, pattern: str) -> list[str]:
    """Names of the bodies that match a pattern; an error that names those of the robot if there are none."""
    try:
        return links_named(robot, pattern)
    except DataError:
        names = [robot.links[i].name for i in robot.parameter_links]
        near = did_you_mean(pattern, names) or f": they are {', '.join(names)}"
        raise UnknownName(
            f"{named('link_masses')} names '{pattern}', which is no moving body of '{robot.name}'{near}"
        ) from None


def check_bodies(mass: object, link_masses: object, box: object = True) -> None:
    """Raise a DataError unless masses are positive numbers and box is True or False."""
    if mass is not None and not _is_mass(mass):
        raise InvalidValue(f"{named('mass')} must be a positive number of kg, got {mass!r:.40}")
    if isinstance(link_masses, Mapping):
        for name, value in link_masses.items():
            if not _is_mass(value):
                raise InvalidValue(
                    f"{named('link_masses')} must give positive numbers of kg, got {value!r:.40} for '{name}'"
                )
    elif link_masses is not None:
        raise InvalidType(f"{named('link_masses')} must be a mapping from link to kg, got {link_masses!r:.40}")
    if not isinstance(box, bool | np.bool_):
        raise InvalidType(f"{named('box')} must be True or False, got {box!r:.40}")


def _is_mass(value: object) -> bool:
    """Whether a value is a positive number."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    return isfinite(value) and bool(value > 0)
