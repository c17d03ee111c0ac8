"""Plausibility of bodies: mass, centre of mass, radius of gyration and density against the size of the link.

A body that exists in the space of its link obeys four limits, whatever its shape. Its centre of mass lies in that
space; its mass is on average no further from the centre than half the diagonal; it is not denser than solid metal in
the volume of the link; and it is not more compact than a ball of solid metal with its mass. Physical consistency alone
does not hold this: a link with its mass three metres away is consistent.

Figures of an estimate have a standard deviation. A body is implausible only if its figure is beyond the limit by more
than three of them, or if the a-priori body is implausible and the data did not correct it. A mass is also implausible
if it is far from the a-priori one although the data leave it open: the body imitates a term that is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.batch import as_parameters
from dynid.results import Result, about
from dynid.robot.inertia import inertia_to_pseudo
from dynid.robot.link_size import LinkSize, link_sizes
from dynid.robot.model import Robot

__all__ = ["BodyCode", "BodyFinding", "implausible_bodies"]

Array = NDArray[np.float64]
Origin = Literal["model", "estimate", "open", "prior"]
Severity = Literal["error", "warning"]

_SIGMAS = 3.0
# Solid steel, and platinum: parts of robots are not denser than the one, and no material is much denser than the other.
_STEEL, _PLATINUM = 7850.0, 21450.0  # kg/m3
# Foam, and air: the box around a link holds more than its walls, but not less than these.
_FOAM, _AIR = 10.0, 1.2  # kg/m3
_POINT = 1e9  # kg/m3, beyond all matter of robots: a body without inertia
# Collision shapes leave out covers and cables: centre outside by this share of half the diagonal of the link.
_OUTSIDE, _FAR_OUTSIDE = 0.25, 1.0
# Without shapes, place and size of the link are guesses: a joint frame may lie anywhere on its axis.
_OUTSIDE_GUESS, _FAR_OUTSIDE_GUESS = 2.0, 4.0
# Root mean square distance of the mass from its centre, over half the diagonal: at most 1 for a shape that encloses it.
_WIDE, _TOO_WIDE = 1.5, 3.0
# Mass over that of the prior, for the body and for all bodies: beyond, one of the two is wrong.
_MASS, _TOTAL = 4.0, 3.0
# Share of one body in the mass of at least three.
_SHARE = 0.9
# A-priori masses below this share of the total are placeholders: nothing is compared with them.
_PLACEHOLDER = 0.01
_LEAST = 1e-12  # kg
_STEP = 1e-6


class BodyCode(StrEnum):
    """What is implausible about a body; messages may be reworded, codes are not."""

    NO_MASS = "no_mass"
    MASS = "mass"
    TOTAL_MASS = "total_mass"
    MASS_SHARE = "mass_share"
    CENTRE_OF_MASS = "centre_of_mass"
    RADIUS_OF_GYRATION = "radius_of_gyration"
    DENSITY = "density"
    COMPACTNESS = "compactness"


_FILE_ADVICE = {
    BodyCode.NO_MASS: "give the link its mass, or fix its joint",
    BodyCode.MASS: "check the unit and the decimal point of the mass",
    BodyCode.TOTAL_MASS: "check the unit and the decimal point of the masses",
    BodyCode.MASS_SHARE: "check the unit and the decimal point of the mass",
    BodyCode.CENTRE_OF_MASS: "check the origin of the inertia and its unit (m, not mm)",
    BodyCode.RADIUS_OF_GYRATION: "check the inertia and its unit (kg m2): it is too large for this link",
    BodyCode.DENSITY: "check the mass against the size of the link",
    BodyCode.COMPACTNESS: "check the inertia and its unit (kg m2): it is too small for this mass",
}
_ESTIMATE_ADVICE = "check link lengths, and gains and signs of the torques"
_OPEN_ADVICE = "identify rotor inertias too, or check gains and units of the torques: the body imitates what is missing"


@dataclass(frozen=True)
class BodyFinding(Result):
    """An implausible figure of a body."""

    code: BodyCode = field(metadata=about("What is implausible."))
    link: str = field(metadata=about('Name of the link; "" for all links together.'))
    figure: float = field(metadata=about("The figure, in `unit`."))
    limit: float = field(metadata=about("Figures beyond it are implausible."))
    unit: str = field(metadata=about("Unit of figure and limit."))
    std: float = field(metadata=about("Standard deviation of the figure; 0 for a model that is not estimated."))
    origin: Origin = field(
        metadata=about(
            "Whose figure it is: that of a model, that of an estimate, a mass of an estimate that its data "
            "leave open, or that of the a-priori model, which the data of an estimate did not change."
        )
    )
    severity: Severity = field(
        metadata=about('"error" if no body of this link could have the figure, "warning" if no usual one has it.')
    )
    what: str = field(metadata=about("The finding in words."))
    what_to_do: str = field(metadata=about("Recommended remedy."))


@dataclass(frozen=True)
class _Figure:
    """A figure of the parameters, its limits, and how it is said; beyond is above them, or below them if `least`."""

    code: BodyCode
    link: str
    value: Callable[[Array], float]  # of the standard parameters
    limit: float
    failure: float
    unit: str
    words: Callable[[float], str]
    columns: tuple[int, ...]  # parameters that it depends on
    least: bool = False

    def beyond(self, value: float, limit: float, reach: float = 0.0) -> bool:
        """Whether a figure is beyond a limit by more than a reach."""
        return value + reach < limit if self.least else value - reach > limit


def implausible_bodies(
    robot: Robot,
    parameters: ArrayLike | None = None,
    *,
    covariance: ArrayLike | None = None,
    prior: ArrayLike | None = None,
) -> tuple[BodyFinding, ...]:
    """Bodies that no robot of this size would have.

    Parameters
    ----------
    robot : Robot
        The robot, with the shapes of its links where its file has them.
    parameters : array_like, shape (p,), optional
        Standard parameters; by default those of the robot.
    covariance : array_like, shape (p, p), optional
        Their covariance, for an estimate: figures that are beyond a limit within their uncertainty are not reported.
    prior : array_like, shape (p,), optional
        A-priori standard parameters of an estimate: masses are compared with them, and figures that the data leave
        open are reported if they are implausible in the prior.

    Returns
    -------
    tuple of BodyFinding
        Those of the a-priori model last, errors first.

    Examples
    --------
    >>> import dynid
    >>> robot = dynid.load_robot("tx40")
    >>> dynid.assessment.implausible_bodies(robot)
    ()
    >>> heavy = robot.parameters.copy()
    >>> heavy[0] = 8513.0
    >>> dynid.assessment.implausible_bodies(robot, heavy)[0].link
    'link1'
    """
    pi = as_parameters(robot, parameters)
    uncertainty = None if covariance is None else np.asarray(covariance, dtype=float)
    before = None if prior is None else as_parameters(robot, prior)
    out = []
    for figure in _figures(robot, pi, before):
        value = figure.value(pi)
        if not figure.beyond(value, figure.limit):
            continue
        if uncertainty is None:
            out.append(_finding(figure, value, 0.0, "model", figure.beyond(value, figure.failure)))
            continue
        std = _std(figure, pi, uncertainty)
        reach = _SIGMAS * std
        if figure.beyond(value, figure.limit, reach):
            out.append(_finding(figure, value, std, "estimate", figure.beyond(value, figure.failure, reach)))
            continue
        # The data leave it open; only the a-priori body can be called implausible. An inertia that is too small changes
        # no torque, and textbooks have point masses.
        known = None if before is None or figure.code == BodyCode.COMPACTNESS else _a_priori(figure, before)
        if known is not None and figure.beyond(known, figure.limit):
            out.append(_finding(figure, value, std, "prior", figure.beyond(known, figure.failure)))
        elif figure.code in (BodyCode.MASS, BodyCode.TOTAL_MASS):
            out.append(_finding(figure, value, std, "open", failed=False))
    return tuple(sorted(out, key=lambda f: (f.origin == "prior", f.severity != "error", not f.link)))


def _a_priori(figure: _Figure, prior: Array) -> float | None:
    """The figure of the a-priori body; a link without a-priori mass has none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        value = figure.value(prior)
    return value if np.isfinite(value) else None


def _finding(figure: _Figure, value: float, std: float, origin: Origin, failed: bool) -> BodyFinding:
    severity: Severity = "error" if failed else "warning"
    what, advice = figure.words(value), _FILE_ADVICE[figure.code]
    if origin == "prior":
        what += "; this is the a-priori body, which the recording does not determine"
        advice = f"correct the a-priori model: {advice}"
    elif origin == "open":
        what += ", and the recording does not determine it"
        advice = _OPEN_ADVICE
    elif origin == "estimate":
        advice = _ESTIMATE_ADVICE
    return BodyFinding(figure.code, figure.link, value, figure.limit, figure.unit, std, origin, severity, what, advice)


def _std(figure: _Figure, pi: Array, covariance: Array) -> float:
    """Standard deviation of a figure, linearised; infinite where a parameter that it depends on is not known."""
    columns = list(figure.columns)
    size = max(float(np.abs(pi[columns]).max()), 1e-12)
    gradient = np.empty(len(columns))
    for k, j in enumerate(columns):
        ends = []
        for sign in (-1.0, 1.0):
            moved = pi.copy()
            moved[j] += sign * _STEP * size
            ends.append(figure.value(moved))
        gradient[k] = (ends[1] - ends[0]) / (2 * _STEP * size)
    part = covariance[np.ix_(columns, columns)]
    used = gradient != 0
    if not np.all(np.isfinite(part[np.ix_(used, used)])):
        return np.inf
    return float(np.sqrt(max(gradient[used] @ part[np.ix_(used, used)] @ gradient[used], 0.0)))


# -- figures -------------------------------------------------------------------------------------------


def _figures(robot: Robot, pi: Array, prior: Array | None) -> list[_Figure]:
    """All figures of bodies with a mass, and the massless ones."""
    first = {p.owner: i for i, p in enumerate(robot.layout) if p.inertial and p.symbol == "m"}
    sizes = link_sizes(robot)
    out: list[_Figure] = []
    for name, at in first.items():
        if pi[at] > 0:
            out += _of_body(name, at, sizes[name])
        elif not sizes[name].between_joints:
            words = f"link '{name}' moves, but has no mass"
            out.append(
                _Figure(BodyCode.NO_MASS, name, _mass(at), _LEAST, -_LEAST, "kg", _saying(words), (at,), least=True)
            )
    masses = list(first.values())
    out += _of_masses(first, masses, pi)
    if prior is not None:
        # A prior that is implausible itself is no measure.
        wrong = {f.link for f in implausible_bodies(robot, prior)}
        out += _against_prior({name: at for name, at in first.items() if name not in wrong}, masses, prior)
    return out


def _of_body(name: str, at: int, size: LinkSize) -> list[_Figure]:
    """Centre of mass, radius of gyration and densities of a body against the size of its link."""
    columns = tuple(range(at, at + 10))
    near, far = (_OUTSIDE, _FAR_OUTSIDE) if size.shaped else (_OUTSIDE_GUESS, _FAR_OUTSIDE_GUESS)
    where = "its shapes" if size.shaped else "the space between its joints"

    def outside(x: Array) -> float:
        return size.outside(x[at + 1 : at + 4] / x[at])

    def radius(x: Array) -> float:
        return float(np.sqrt(max(_second(x[at : at + 10]), 0.0) / x[at]))

    def compact(x: Array) -> float:
        ball = np.sqrt(5.0 / 3.0) * radius(x)
        density = float(x[at] / (4.0 / 3.0 * np.pi * max(ball, 1e-9) ** 3))
        # Textbooks have point masses; a link with a shape is none.
        return density if density < _POINT or size.shaped else 0.0

    def words_outside(value: float) -> str:
        return f"the centre of mass of '{name}' lies {value:.3g} m outside {where} (limit {near * size.half:.3g} m)"

    def words_radius(value: float) -> str:
        return (
            f"the radius of gyration of '{name}' is {value:.3g} m, but the link reaches {size.half:.3g} m from its "
            f"middle (limit {_WIDE * size.half:.3g} m)"
        )

    def words_compact(value: float) -> str:
        if value > _POINT:
            return f"'{name}' is a point: its inertia about its centre of mass is zero"
        return (
            f"'{name}' is as compact as a ball of {value:.3g} kg/m3, denser than solid steel (limit {_STEEL:.4g} kg/m3)"
        )

    out = [
        _Figure(
            BodyCode.CENTRE_OF_MASS, name, outside, near * size.half, far * size.half, "m", words_outside, columns[:4]
        ),
        _Figure(
            BodyCode.RADIUS_OF_GYRATION,
            name,
            radius,
            _WIDE * size.half,
            _TOO_WIDE * size.half,
            "m",
            words_radius,
            columns,
        ),
        _Figure(BodyCode.COMPACTNESS, name, compact, _STEEL, np.inf, "kg/m3", words_compact, columns),
    ]
    if not size.volume > 0:
        return out
    volume = size.volume

    def words_heavy(value: float) -> str:
        return (
            f"'{name}' has {value:.3g} kg/m3 in the space of its link, more than solid steel (limit {_STEEL:.4g} kg/m3)"
        )

    def words_light(value: float) -> str:
        return f"'{name}' has {value:.3g} kg/m3 in the space of its link, less than foam (limit {_FOAM:g} kg/m3)"

    def density(x: Array) -> float:
        return float(x[at]) / volume

    heavy = _Figure(BodyCode.DENSITY, name, density, _STEEL, _PLATINUM, "kg/m3", words_heavy, (at,))
    light = _Figure(BodyCode.DENSITY, name, density, _FOAM, _AIR, "kg/m3", words_light, (at,), least=True)
    return [*out, heavy, light] if size.shaped else [*out, heavy]


def _of_masses(first: dict[str, int], masses: list[int], pi: Array) -> list[_Figure]:
    """Share of each body in the mass of at least three."""
    if np.count_nonzero(pi[masses] > 0) < 3:
        return []
    out = []
    for name, at in first.items():

        def share(x: Array, at: int = at) -> float:
            return float(x[at] / np.sum(np.maximum(x[masses], 0.0)))

        def words(value: float, name: str = name) -> str:
            return (
                f"'{name}' has {100 * value:.1f} % of the mass of all {len(masses)} bodies (limit {100 * _SHARE:g} %)"
            )

        out.append(_Figure(BodyCode.MASS_SHARE, name, share, _SHARE, np.inf, "", words, tuple(masses)))
    return out


def _against_prior(first: dict[str, int], masses: list[int], prior: Array) -> list[_Figure]:
    """Mass of each body and of all bodies over that of the prior, too large or too small."""
    total = float(np.sum(np.maximum(prior[masses], 0.0)))
    out: list[_Figure] = []
    if len(first) == len(masses) and np.all(prior[masses] > 0):
        out += _mass_ratios(BodyCode.TOTAL_MASS, "", tuple(masses), total, _TOTAL)
    for name, at in first.items():
        if prior[at] > _PLACEHOLDER * total:
            out += _mass_ratios(BodyCode.MASS, name, (at,), float(prior[at]), _MASS)
    return out


def _mass_ratios(code: BodyCode, name: str, columns: tuple[int, ...], known: float, limit: float) -> list[_Figure]:
    """A mass over the known one: at most `limit`, and at least its reciprocal."""
    whose = f"of '{name}'" if name else "of all bodies"

    def ratio(x: Array) -> float:
        return float(np.sum(x[list(columns)])) / known

    def heavy(value: float) -> str:
        return f"the mass {whose} is {value * known:.4g} kg, {known:.4g} kg a priori (limit {limit * known:.4g} kg)"

    def light(value: float) -> str:
        return f"the mass {whose} is {value * known:.4g} kg, {known:.4g} kg a priori (limit {known / limit:.4g} kg)"

    return [
        _Figure(code, name, ratio, limit, np.inf, "of the a-priori mass", heavy, columns),
        _Figure(code, name, ratio, 1 / limit, -np.inf, "of the a-priori mass", light, columns, least=True),
    ]


def _second(ten: Array) -> float:
    """Second moment about the centre of mass, summed over the axes: mass times the square of the mean distance."""
    return float(np.trace(inertia_to_pseudo(ten)[:3, :3]) - ten[1:4] @ ten[1:4] / ten[0])


def _mass(at: int) -> Callable[[Array], float]:
    return lambda x: float(x[at])


def _saying(words: str) -> Callable[[float], str]:
    return lambda _: words
