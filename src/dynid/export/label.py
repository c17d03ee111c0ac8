"""Label: what an exported file says of the estimate it was made of, and the gate that every such file passes.

The verdict with its first reasons, the domain in which it holds, the total mass, and per body what decided it. A file
of a robot that is no estimate has no label.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynid.errors import DataError, keyword
from dynid.export.xmltext import marked, unmarked
from dynid.identification.bodies import body_origins, total_mass
from dynid.identification.estimate import Estimate
from dynid.identification.judgement import Judgement
from dynid.parameters.base import ParameterClass

if TYPE_CHECKING:
    from dynid.robot.parts import Parameter

__all__ = ["Label", "label_of", "labelled", "passed"]


@dataclass(frozen=True)
class Label:
    """What an exported file says of the estimate it was made of.

    Attributes
    ----------
    judgement : Judgement
        The verdict and its first reasons.
    domain : tuple of str
        Sentences on the motion for which it holds.
    mass : str
        Total mass, and how much of it the recording determines.
    bodies : mapping of str to str
        What decided each body, by link.
    """

    judgement: Judgement = field(default_factory=Judgement)
    domain: tuple[str, ...] = ()
    mass: str = ""
    bodies: Mapping[str, str] = field(default_factory=dict)

    def head(self) -> list[str]:
        """Verdict, reasons, domain and total mass, one line each."""
        found = self.judgement
        lines = [f"verdict: {found.grade}", *(f"reason: {reason}" for reason in found.reasons)]
        if found.grade != "not assessed":
            unseen = "data that were not used for the fit"
            lines.append(f"checked on {unseen}" if found.checked else f"not checked on {unseen}")
        lines += [f"domain: {sentence}" for sentence in self.domain]
        return [*lines, f"total mass: {self.mass}"] if self.mass else lines

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
            "total_mass": self.mass,
            "bodies": dict(self.bodies),
        }

    def without_bodies(self) -> Label:
        """The label of a file that holds no standard parameters of bodies."""
        return replace(self, mass="", bodies={})

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
    return Label(source.judgement or Judgement(), _domain(source), total_mass(source).sentence, _bodies(source))


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
