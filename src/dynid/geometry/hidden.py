"""Errors of joints that measurements do not show, and which sensor or motion would show them.

An unknown is hidden where its derivatives are zero, or combinations of those of the sensors' unknowns. Another sensor
is tried by its derivatives at the same postures.

Source: `dynid.geometry.base`; own derivation of the comparison.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dynid.geometry.base import base_geometry
from dynid.geometry.measurements.measurement import Measurement, Part, Space
from dynid.geometry.measurements.points import Points
from dynid.geometry.problem import Problem
from dynid.geometry.tangents import Placed, Tangent

__all__ = ["Remedy", "remedies"]

Array = NDArray[np.float64]

# Points that show a full pose (m), postures that are tried, and how little a joint moves that hardly moves (rad, m).
_CORNERS, _POSTURES, _STILL = 0.1 * np.eye(3), 60, 0.1


@dataclass(frozen=True)
class Remedy:
    """Something more to measure.

    Attributes
    ----------
    words : str
        What it is.
    shows : tuple of str
        Unknowns that are hidden without it.
    """

    words: str
    shows: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _InBase(Measurement):
    """Three points of the frame in the robot's base, all known."""

    kind: ClassVar[str] = "in base"

    @property
    def std(self) -> Array:
        """Of each coordinate."""
        return np.full(9, 2e-4)

    def parts(self) -> tuple[Part, ...]:
        """Nothing is unknown."""
        return ()

    def residual(self, space: Space) -> Tangent:
        """Positions of the points."""
        seen = [space.frames[self.frame].point(c) for c in _CORNERS]
        return Tangent(np.concatenate([s.value for s in seen], axis=1), np.concatenate([s.slope for s in seen], axis=1))

    def started(self, frames: Mapping[str, Placed]) -> Self:
        """Itself."""
        return self


def remedies(problem: Problem) -> tuple[Remedy, ...]:
    """What would show errors that measurements hide, the least effort first.

    Parameters
    ----------
    problem : Problem
        The measurements.

    Returns
    -------
    tuple of Remedy
        Empty where nothing is hidden.
    """
    shown = base_geometry(problem)
    left = {problem.geometry.unknowns[k].name for k in shown.without_effect}
    out = []
    for joint in problem.geometry.chain:
        name = problem.geometry.robot.joints[joint].name
        reach = max(float(np.ptp(p.reading(joint))) for p in problem.postures)
        mine = tuple(u.name for u in problem.geometry.unknowns if u.owner == name and u.name in left)
        if reach < _STILL and mine:
            out.append(Remedy(f"postures between which {name} moves", mine))
    first = problem.measurements[0]
    some = np.linspace(0, len(first.q) - 1, min(len(first.q), _POSTURES)).astype(int)
    q, frame = first.q[some], first.frame
    known = np.tile(_CORNERS, (len(q), 1, 1))
    pose = Points(q, frame, "full pose", points=known, known=_CORNERS, base=np.eye(4))
    tried = (
        (f"full poses of {frame} rather than points: three markers or more, or a board", pose),
        (f"base and tool in one frame: points that are known on {frame} and on the base", _InBase(q, frame, "in base")),
    )
    for words, more in tried:
        found = base_geometry(Problem(problem.geometry, (*problem.measurements, more)))
        still = {problem.geometry.unknowns[k].name for k in found.without_effect}
        new = tuple(u.name for u in problem.geometry.unknowns if u.name in left - still)
        if new:
            out.append(Remedy(words, new))
            left = still
    return tuple(out)
