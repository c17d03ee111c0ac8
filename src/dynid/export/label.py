"""Label: what an exported file says of the estimate it was made of, and the gate that every such file passes.

The verdict with its first reasons, the domain in which it holds, and per body what decided it. A file of a robot that
is no estimate has no label.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError, keyword
from dynid.export.xmltext import marked, unmarked
from dynid.feasibility.prior import consistent_prior
from dynid.identification.estimate import Estimate
from dynid.identification.judgement import Judgement
from dynid.identification.known import prior_covariance, remaining_covariances
from dynid.parameters.base import ParameterClass
from dynid.robot.model import Robot

if TYPE_CHECKING:
    from dynid.robot.parts import Parameter

__all__ = ["BodyOrigin", "Decided", "Label", "body_origins", "body_values_and_slopes", "label_of", "labelled", "passed"]

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


@dataclass(frozen=True)
class Label:
    """What an exported file says of the estimate it was made of.

    Attributes
    ----------
    judgement : Judgement
        The verdict and its first reasons.
    domain : tuple of str
        Sentences on the motion for which it holds.
    bodies : mapping of str to str
        What decided each body, by link.
    """

    judgement: Judgement = field(default_factory=Judgement)
    domain: tuple[str, ...] = ()
    bodies: Mapping[str, str] = field(default_factory=dict)

    def head(self) -> list[str]:
        """Verdict, reasons and domain, one line each."""
        found = self.judgement
        lines = [f"verdict: {found.grade}", *(f"reason: {reason}" for reason in found.reasons)]
        if found.grade != "not assessed":
            motion = "motion that was not used for the fit"
            lines.append(f"checked on {motion}" if found.checked else f"not checked on {motion}")
        return [*lines, *(f"domain: {sentence}" for sentence in self.domain)]

    def lines(self) -> list[str]:
        """Head, then one line per body."""
        return [*self.head(), *(f"{link}: {words}" for link, words in self.bodies.items())]

    def to_dict(self) -> dict[str, Any]:
        """Return the label as plain data, for files without comments."""
        return {
            "verdict": self.judgement.grade,
            "reasons": list(self.judgement.reasons),
            "checked": self.judgement.checked,
            "domain": list(self.domain),
            "bodies": dict(self.bodies),
        }

    def without_bodies(self) -> Label:
        """The label of a file that holds no standard parameters of bodies."""
        return replace(self, bodies={})

    @property
    def warnings(self) -> list[str]:
        """What whoever writes the file is told: nothing of a trusted estimate, else one sentence."""
        if self.judgement.grade == "trusted":
            return []
        if self.judgement.grade == "not assessed":
            return ["this estimate was not assessed, so nothing says whether it can be trusted"]
        return [f"the verdict on this estimate is '{self.judgement.grade}'{_because(self.judgement)}"]


def label_of(source: object, untrusted: bool = False) -> Label | None:
    """The label of a file that is made of an estimate, which passes the gate; None of a robot that is none.

    Parameters
    ----------
    source : Robot or Estimate
        What the file is made of.
    untrusted : bool, default False
        Write the file although the verdict is "do not use".

    Returns
    -------
    Label or None

    Raises
    ------
    DataError
        If the verdict is "do not use".
    """
    if not isinstance(source, Estimate):
        return None
    passed(Label(source.judgement or Judgement()), untrusted)  # before anything is computed
    return Label(source.judgement or Judgement(), _domain(source), _bodies(source))


def passed(label: Label, untrusted: bool) -> Label:
    """The label, unless its verdict is "do not use": then only `untrusted` lets its file be written."""
    if label.judgement.grade == "do not use" and not untrusted:
        because = _because(label.judgement)
        raise DataError(
            f"not written, because the verdict is 'do not use'{because}; {keyword('untrusted', True)} writes it",
            code="untrusted",
        )
    return label


def labelled(content: bytes, tag: str, label: Label | None, template: str | Path | None) -> bytes:
    """An XML file with its label; without one, it does not keep that of a template whose values it replaced."""
    return unmarked(content, template) if label is None else marked(content, tag, label.bodies, label.head())


def _because(judgement: Judgement) -> str:
    """The first reason, as the end of a sentence."""
    return f": {judgement.reasons[0]}" if judgement.reasons else ""


def _domain(estimate: Estimate) -> tuple[str, ...]:
    """Sentences on the motion for which the estimate holds."""
    return () if estimate.domain is None else estimate.domain.sentences()


# -- what decided each body ----------------------------------------------------------------------------


def body_origins(estimate: Estimate) -> tuple[BodyOrigin, ...]:
    """What decided mass, centre of mass and inertia of every body.

    "The data" where less than half of the a-priori standard deviation is left. Elsewhere, "data and other bodies
    together" where the value lies more than the a-priori standard deviation from its prior: the data show a combination
    with other bodies, and the value has its share of that. "Data and prior" or "the prior" where it lies within, as the
    data halve the variance or not. "The box" where the value lies at a limit, "the mass that was given" where one was.
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
    if far:
        return Decided.COMBINATION
    return Decided.BOTH if share <= _PRIOR else Decided.PRIOR


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


def _bodies(estimate: Estimate) -> dict[str, str]:
    """What decided each link, and the drive parameters of the joint that moves it which are not identifiable alone."""
    sentences: dict[str, list[str]] = {}
    for origin in body_origins(estimate):
        sentences.setdefault(origin.link, []).append(origin.sentence)
    for wall in estimate.walls:
        if wall.what == "total mass":
            total = f"total mass at its limit of {wall.limit:.3g} kg, the data want {wall.value:.3g} kg"
            sentences.setdefault(wall.link or estimate.robot.links[0].name, []).append(total)
    for link, words in _drives(estimate):
        sentences.setdefault(link, []).append(words)
    return {link: _sentences(found) for link, found in sentences.items()}


def _drives(estimate: Estimate) -> list[tuple[str, str]]:
    """Drive parameters that are not identifiable, or only in combination, by the link that their joint moves."""
    robot, classes = estimate.robot, estimate.parameter_classes
    carrier = {joint.name: robot.links[i + 1].name for i, joint in enumerate(robot.joints)}
    words = {
        ParameterClass.UNIDENTIFIABLE: "not identifiable from this recording",
        ParameterClass.COMBINED: "identifiable only in combination",
    }
    found: dict[tuple[str, ParameterClass], list[Parameter]] = {}
    for p in robot.layout:
        # A motor of a coupled drive belongs to no single link.
        if not p.inertial and p.owner in carrier and classes[p.name] in words:
            found.setdefault((carrier[p.owner], classes[p.name]), []).append(p)
    return [(link, f"{words[kind]}: {', '.join(p.name for p in own)}") for (link, kind), own in found.items()]


def _sentences(parts: Iterable[str]) -> str:
    return " ".join(f"{part[:1].upper()}{part[1:]}." for part in parts)


def _shown(values: Sequence[float]) -> str:
    """A number, or three in parentheses; what rounding left of zero is zero."""
    text = ", ".join(f"{round(x, 15) + 0.0:.3g}" for x in values)
    return text if len(values) == 1 else f"({text})"
