"""A segment of a table put in its place, and cut in two where a skeleton bends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.human.landmarks import Body
from dynid.human.table import SegmentShare
from dynid.robot.inertia import inertia_from_com

__all__ = ["PlacedSegment", "cut", "place_segment"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PlacedSegment:
    """A segment between two points: mass, ends (2, 3), axes (3, 3), centre and radii as shares of its length.

    Axes are the sagittal, transverse and longitudinal one.
    """

    name: str
    mass: float
    ends: Array
    axes: Array
    centre: float
    radii: Array

    @property
    def length(self) -> float:
        return float(np.linalg.norm(self.ends[1] - self.ends[0]))

    @property
    def inertia(self) -> Array:
        """Ten numbers in the frame of the ends."""
        return self._body(self.mass, self.centre, np.square(self.radii))

    def _body(self, mass: float, centre: float, squares: Array) -> Array:
        """A body whose centre divides the ends, with squared radii of gyration about the axes."""
        tensor = mass * self.length**2 * (self.axes.T * squares) @ self.axes
        middle = self.ends[0] + centre * (self.ends[1] - self.ends[0])
        return inertia_from_com(mass, middle, 0.5 * (tensor + tensor.T))


def place_segment(segment: SegmentShare, body: Body, side: str | None, mass: float) -> PlacedSegment:
    """A segment of a table between its landmarks, its sagittal axis as far forward as the longitudinal one allows."""
    ends = np.array(body.ends(segment, side))
    span = ends[1] - ends[0]
    length = float(np.linalg.norm(span))
    if length < 1e-6:
        raise DataError(f"segment '{segment.name}' has no length: its joints lie in one place", code="invalid_model")
    along = span / length
    forward, left, _ = body.axes
    # A foot points forward itself: there the transverse axis points to the side, and the sagittal one up.
    lies = abs(along @ forward) > 0.7
    across = left if lies else forward
    across = across - (across @ along) * along
    across = across / np.linalg.norm(across)
    other = np.cross(along, across)
    axes = np.array([other, across, along] if lies else [across, other, along])
    return PlacedSegment(segment.name, mass, ends, axes, segment.centre, np.array(segment.radii))


def cut(segment: PlacedSegment, links: Sequence[int], heights: Sequence[float], up: Array) -> list[tuple[int, Array]]:
    """Parts of a segment by link: what lies above height k belongs to link k + 1. The parts add up to the segment.

    Mass is distributed along the length with a linear density whose centroid is the segment's own centre of mass. Where
    its moment about the centre exceeds that of the radii of gyration, it is contracted towards the centre; otherwise
    slices have a thickness.
    """
    levels = segment.ends @ up
    across = [(h - levels[0]) / (levels[1] - levels[0]) for h in heights]
    # A joint at an end of the segment, up to rounding, cuts nothing off.
    cuts = sorted({0.0, 1.0, *(float(s) for s in across if 1e-9 < s < 1.0 - 1e-9)})
    middles = [0.5 * (a + b) for a, b in pairwise(cuts)]
    owner = [links[sum(levels[0] + s * (levels[1] - levels[0]) > h for h in heights)] for s in middles]
    if len(set(owner)) == 1:
        return [(owner[0], segment.inertia)]
    slope = 12.0 * (segment.centre - 0.5)
    if abs(slope) > 2.0:
        raise DataError(
            f"segment '{segment.name}' has its centre too near an end to be cut at a joint of the skeleton",
            code="invalid_model",
        )
    sagittal, transverse, longitudinal = np.square(segment.radii)
    moment = 0.5 * (sagittal + transverse - longitudinal)
    line = 1.0 / 12.0 - (segment.centre - 0.5) ** 2
    draw = min(1.0, np.sqrt(moment / line))
    slice_squares = np.array([sagittal - draw**2 * line, transverse - draw**2 * line, longitudinal])
    parts = []
    for (a, b), link in zip(pairwise(cuts), owner, strict=True):
        total = np.zeros(10)
        # Two points of Gauss integrate mass, first and second moment of a straight-line density exactly.
        for node in (-1.0, 1.0):
            s = 0.5 * (a + b) + 0.5 * (b - a) * node / np.sqrt(3.0)
            mass = segment.mass * 0.5 * (b - a) * (1.0 + slope * (s - 0.5))
            total += segment._body(mass, segment.centre + draw * (s - segment.centre), slice_squares)
        parts.append((link, total))
    return parts
