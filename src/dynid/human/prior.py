"""Anthropometric priors: a table scaled to a skeleton gives every link the inertia of its segments."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from itertools import pairwise, takewhile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.errors import Duplicate, InvalidValue, MissingArgument, MissingData, NotApplicable, UnknownName, named
from dynid.human.landmarks import SIDES, Body, measured_body
from dynid.human.segments import cut, place_segment
from dynid.human.table import CENTRAL, PAIRED, TRUNK, AnthropometricTable, anthropometric_table
from dynid.robot.inertia import inertia_from_com, move_inertia
from dynid.robot.model import Robot
from dynid.robot.parts import Link
from dynid.robot.posture import link_placements
from dynid.robot.spatial import inverse_placement

__all__ = [
    "SEGMENTS",
    "check_height",
    "check_weight",
    "segment_links",
    "with_anthropometric_prior",
    "with_segments",
    "with_virtual_links",
]

Array = NDArray[np.float64]

SEGMENTS = (*CENTRAL, *(f"{side}_{name}" for side in SIDES for name in PAIRED))
# Radius of gyration of the small ball that a link without a segment gets, as a share of the segment's length.
_BALL = 0.1


def with_anthropometric_prior(
    robot: Robot,
    sex: str,
    weight: float,
    *,
    height: float | None = None,
    table: str | Path | AnthropometricTable = "de-leva",
    segments: Mapping[str, str | Sequence[str] | None] | None = None,
    pose: Mapping[str, float] | None = None,
    virtual_share: float = 0.0,
) -> Robot:
    """Give a skeleton the inertias of an anthropometric table for a person of this sex and weight.

    Lengths are measured on the skeleton, which is rooted in the trunk and upright at q = 0 or in the given `pose`.
    Links without a segment become virtual: no mass and no parameters.

    Parameters
    ----------
    robot : Robot
        The skeleton.
    sex : {"male", "female"}
        Sex, which selects the columns of the table.
    weight : float
        Body mass, kg.
    height : float, optional
        Body height, m; scales head, hands and feet only. By default it is estimated from the other lengths.
    table : str, Path or AnthropometricTable, default "de-leva"
        Anthropometric table.
    segments : mapping of str to str, sequence of str or None, optional
        Segment of each link, such as {"l_femur": "left_thigh"}; a link may have several segments, or None for none.
        By default segments are found from the names of the links.
    pose : mapping of str to float, optional
        Joint values, rad, of the upright posture.
    virtual_share : float, default 0.0
        Share of a segment's mass given to each virtual link before it, as a small ball about its joint, so that all
        links are physically consistent.

    Returns
    -------
    Robot
        The skeleton with inertias.

    Raises
    ------
    DataError
        If a segment is missing, unknown or named twice, or a value is out of range.
    """
    check_weight(weight)
    if height is not None:
        check_height(height)
    if not (isinstance(virtual_share, int | float) and 0.0 <= virtual_share < 0.1):
        raise InvalidValue(
            f"the share of links without a segment must lie in [0, 0.1), got {virtual_share!r:.60}", "virtual_share"
        )
    numbers = anthropometric_table(table, sex)
    links = segment_links(robot, segments)
    places = link_placements(robot, pose)
    origins = {name: places[i][:3, 3] for name, i in links.items()}
    body = measured_body(numbers, origins, height)
    return with_segments(robot, links, body, numbers, weight, places, virtual_share)


def segment_links(robot: Robot, segments: Mapping[str, str | Sequence[str] | None] | None = None) -> dict[str, int]:
    """Index of the link of each segment, from `segments` or from common names of links."""
    found: dict[str, int] = {}
    given = dict(segments or {})
    for name in given:
        robot.link_index(name)
    for i, link in enumerate(robot.links):
        wanted = given[link.name] if link.name in given else _known(link.name) if segments is None else None
        names = () if wanted is None else (wanted,) if isinstance(wanted, str) else tuple(wanted)
        if not names and link.inertia[0] > 0 and link.name not in given:
            raise MissingArgument(
                f"link '{link.name}' has mass but is no known segment: say which in segments, or None for no mass",
                "segments",
            )
        for segment in names:
            if segment not in SEGMENTS:
                raise UnknownName(
                    f"segment '{segment}' is unknown, use {', '.join(SEGMENTS)}",
                    "segments",
                    where=f"link '{link.name}'",
                )
            if segment in found:
                raise Duplicate(
                    f"segment '{segment}' is both '{robot.links[found[segment]].name}' and '{link.name}'", "segments"
                )
            found[segment] = i
    missing = [name for name in SEGMENTS if name not in found]
    if missing:
        raise MissingData(f"robot '{robot.name}' has no link for segments: {', '.join(missing)}", "segments")
    return found


@cache
def _aliases() -> dict[str, str]:
    text = (resources.files("dynid.human") / "data" / "names.toml").read_text(encoding="utf-8")
    return {alias: segment for segment, aliases in tomllib.loads(text).items() for alias in aliases}


def _known(link: str) -> str | None:
    """The segment that the name of a link stands for, if any."""
    words = [w for w in re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", link).lower()) if w]
    side = next((s for w in words for s in SIDES if w in (s, s[0])), None)
    plain = "".join(w for w in words if w not in ("left", "right", "l", "r", "middle", "link", "body"))
    full = "".join(w for w in words if w not in ("left", "right", "l", "r", "link", "body"))
    segment = _aliases().get(full, _aliases().get(plain))
    if segment is None or (segment in PAIRED and side is None):
        return None
    return f"{side}_{segment}" if segment in PAIRED else segment


def with_segments(
    robot: Robot,
    links: Mapping[str, int],
    body: Body,
    table: AnthropometricTable,
    weight: float,
    places: Array,
    virtual_share: float = 0.0,
) -> Robot:
    """Give links the inertia of their segments; mass shares are normalised to add up to the weight.

    The trunk is divided at the joints of the skeleton: the part beyond a joint belongs to the link beyond it.
    """
    inertia = np.zeros((len(robot.links), 10))
    for name, i in links.items():
        side, _, kind = name.partition("_") if name not in CENTRAL else ("", "", name)
        segment = table.segments[kind]
        placed = place_segment(segment, body, side or None, weight * segment.mass / table.total)
        pieces = [(i, placed.inertia)]
        if kind in TRUNK:
            pieces = cut(placed, *_trunk(robot, links, places, body.axes[2]), body.axes[2])
        carriers = _leading(robot, i, set(links.values())) if virtual_share else []
        for k, part in pieces:
            kept = (1.0 - virtual_share * len(carriers)) * part
            inertia[k] += move_inertia(kept, inverse_placement(places[k]))
        mass = virtual_share * placed.mass
        ball = inertia_from_com(mass, np.zeros(3), mass * (_BALL * placed.length) ** 2 * np.eye(3))
        for k in carriers:
            inertia[k] += ball
    new = (
        replace(link, inertia=pi, virtual=bool(i and not np.any(pi)))
        for i, (link, pi) in enumerate(zip(robot.links, inertia, strict=True))
    )
    return replace(robot, links=tuple(new))


def _trunk(robot: Robot, links: Mapping[str, int], places: Array, up: Array) -> tuple[list[int], list[float]]:
    """Links of the trunk from below, and the heights of the joints between them."""
    chain = list(dict.fromkeys(links[name] for name in TRUNK))
    joints = [upper if lower in _ancestors(robot, upper) else lower for lower, upper in pairwise(chain)]
    heights = [float(places[i][:3, 3] @ up) for i in joints]
    if any(a > b for a, b in pairwise(heights)):
        raise NotApplicable(
            f"robot '{robot.name}': the joints of the trunk do not lie above each other in this pose", "pose"
        )
    return chain, heights


def _ancestors(robot: Robot, link: int) -> list[int]:
    """Links that carry a link, the nearest first."""
    out = []
    while link:
        link = robot.joints[link - 1].parent
        out.append(link)
    return out


def _leading(robot: Robot, link: int, own: set[int]) -> list[int]:
    """Links without a segment between a link and the segment that carries it."""
    return list(takewhile(lambda i: i not in own, _ancestors(robot, link)))


def with_virtual_links(robot: Robot) -> Robot:
    """Mark links without mass and inertia, except the base, as virtual: they have no parameters.

    Robot files cannot express that a link only separates two joints of one body.

    Parameters
    ----------
    robot : Robot
        The robot.

    Returns
    -------
    Robot
        The robot with virtual links.
    """

    def seen(i: int, link: Link) -> Link:
        return replace(link, virtual=True) if i and not np.any(link.inertia) else link

    return replace(robot, links=tuple(seen(i, link) for i, link in enumerate(robot.links)))


def check_weight(weight: float) -> None:
    """Raise an error if a weight (kg) is out of range."""
    _between("weight", weight, 1.0, 700.0, "kg")


def check_height(height: float) -> None:
    """Raise an error if a height (m) is out of range."""
    _between("height", height, 0.3, 3.0, "m")


def _between(what: str, value: float, least: float, most: float, unit: str) -> None:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not (number and least <= value <= most):
        raise InvalidValue(f"{named(what)} must lie between {least:g} and {most:g} {unit}, got {value!r:.60}")
