"""Parameters by the link that they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from dynid.robot.model import Robot

__all__ = ["by_link", "links_of_parameters"]

T = TypeVar("T")


def links_of_parameters(robot: Robot) -> list[str]:
    """The link of each standard parameter; drive parameters belong to the link that their joint moves.

    A motor of a coupled drive belongs to no single link, and has a group of its own.
    """
    moved = {joint.name: robot.links[i + 1].name for i, joint in enumerate(robot.joints)}
    return [p.owner if p.inertial else moved.get(p.owner, p.owner) for p in robot.layout]


def by_link(links: Sequence[str], rows: Sequence[T]) -> dict[str, list[T]]:
    """Rows by their link, in the order in which links first appear."""
    out: dict[str, list[T]] = {}
    for link, row in zip(links, rows, strict=True):
        out.setdefault(link, []).append(row)
    return out
