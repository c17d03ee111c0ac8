"""Lengths of a wire or a ball bar from anchors to a point of the robot.

    |p_F(q) + R_F(q) c - a| - l - o = 0

with the point c of the robot, the anchors a in its base, measured lengths l (one for all of a bar), and an offset o:
the zero of a wire's encoder, or the error of a bar's length.

Source: Driels and Swayze, Automated partial pose measurement system for manipulator calibration experiments (1994), for
the wire; Hollerbach, Khalil and Gautier, Model Identification, Springer Handbook of Robotics (2016), chapter 8, for the
bar.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dynid.errors import InvalidShape, TooFew, UnknownName, did_you_mean
from dynid.geometry.measurements.measurement import Labels, Measurement, Part, Space, free_point, labels, three
from dynid.geometry.tangents import Placed, Tangent, norm, stacked

__all__ = ["Lengths"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Lengths(Measurement):
    """Lengths from anchors to a point of the robot.

    Attributes
    ----------
    lengths : ndarray, shape (N,), or float
        Measured lengths (m), not a number where none was read; one number is the length of a bar.
    anchor : sequence of str
        Anchor of each posture; one for all by default.
    known : mapping of str to (float, float, float)
        Anchors in the robot's base (m), those that are known.
    known_std : float
        Standard deviation of each of their coordinates (m).
    point : ndarray, shape (3,)
        The point in the frame (m).
    point_std : float
        Standard deviation of each of its coordinates (m).
    offset_std : float, optional
        Standard deviation of an error that all lengths share (m), infinite where a wire has no zero or the length of
        a bar is unknown; no such error by default.
    noise : float
        Standard deviation of a length (m).
    offset : float
        Start of that error (m).
    starts : mapping
        Start of each anchor (m); found by itself.
    """

    lengths: Array = ()  # type: ignore[assignment]
    anchor: Labels = ()  # type: ignore[assignment]
    known: Mapping[str, tuple[float, float, float]] = ()  # type: ignore[assignment]
    known_std: float = 1e-4
    point: Array = (0.0, 0.0, 0.0)  # type: ignore[assignment]
    point_std: float = 5e-3
    offset_std: float | None = None
    noise: float = 2e-4
    offset: float = 0.0
    starts: Mapping[str, Array] = ()  # type: ignore[assignment]

    kind: ClassVar[str] = "lengths"
    about: ClassVar[str] = "lengths of a wire or a ball bar from an anchor to a point of the robot"
    rows: ClassVar[tuple[str, ...]] = ("lengths", "anchor")

    def __post_init__(self) -> None:
        super().__post_init__()
        count = len(self.q)
        given = np.array(self.lengths, dtype=float)
        lengths = np.full(count, given) if given.ndim == 0 else given
        if lengths.shape != (count,):
            raise InvalidShape(f"lengths has shape {lengths.shape} for {count} postures", "lengths")
        object.__setattr__(self, "lengths", lengths)
        names = self.anchor if len(self.anchor) else ["anchor"] * count
        object.__setattr__(self, "anchor", labels(names, count, "anchor"))
        object.__setattr__(self, "known", {n: three(a, "known") for n, a in dict(self.known).items()})
        object.__setattr__(self, "point", three(self.point, "point"))
        object.__setattr__(self, "starts", dict(self.starts))
        for name in self.known:
            if name not in self.anchors:
                raise UnknownName(f"no length is from anchor '{name}'{did_you_mean(name, self.anchors)}", "known")

    @property
    def anchors(self) -> list[str]:
        """Names of the anchors that a length is from."""
        return sorted(set(self.anchor.tolist()))

    @property
    def std(self) -> Array:
        """The noise of a length."""
        return np.full(1, self.noise)

    def parts(self) -> tuple[Part, ...]:
        """The point, the anchors, and the offset if there is one."""
        found = [free_point("point", self.point, self.point_std)]
        for name in self.anchors:
            place = str(self.place[self.anchor == name][0])
            start = self.starts.get(name, np.zeros(3))
            found.append(
                free_point(name, self.known[name], self.known_std, place)
                if name in self.known
                else free_point(name, start, place=place)
            )
        if self.offset_std is not None:
            found.append(Part("offset", np.array([self.offset]), np.array([self.offset_std]), ("offset",), ("m",)))
        return tuple(found)

    def residual(self, space: Space) -> Tangent:
        """Predicted less measured length."""
        point = space.frames[self.frame].point(space.values("point"))
        anchors = stacked([space.values(name) for name in self.anchors])
        away = norm(point - anchors[np.searchsorted(self.anchors, self.anchor)]) - self.lengths
        if self.offset_std is not None:
            away = away - space.values("offset")[:, 0]
        return Tangent(away.value[:, None], away.slope[:, None])

    def started(self, frames: Mapping[str, Placed]) -> Self:
        """Anchors and an offset that are unknown, found as centres of spheres."""
        frame, free = frames[self.frame], self.offset_std == np.inf
        at = frame.point(self.point).value
        read = np.isfinite(self.lengths)
        starts, offset, most = {}, self.offset, 0
        from_known = [self.known.get(name, (np.nan,) * 3) for name in self.anchor.tolist()]
        away = (np.linalg.norm(at - np.array(from_known), axis=1) - self.lengths)[read]
        if free and np.isfinite(away).any():
            offset, free = float(np.nanmedian(away)), False
        for name in self.anchors:
            rows = (self.anchor == name) & read
            if name in self.known:
                continue
            if rows.sum() < 3 + free:
                raise TooFew(f"{rows.sum()} lengths are from anchor '{name}': an unknown one needs {3 + free}")
            starts[name], found = _sphere(at[rows], self.lengths[rows] + (0.0 if free else offset), free)
            # Without a known anchor the offset is that of the anchor with the most lengths.
            if free and rows.sum() > most:
                offset, most = found, int(rows.sum())
        return replace(self, starts=starts, offset=offset)

    def some(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> Self:
        """The measurement at some of its postures, with the known anchors that are left."""
        left = set(self.anchor[rows].tolist())
        known = {name: at for name, at in self.known.items() if name in left}
        return super(Lengths, replace(self, known=known)).some(rows)


def _sphere(points: Array, lengths: Array, free: bool) -> tuple[Array, float]:
    """The anchor of lengths to points, and an offset of the lengths if it is `free`: linear first, then exact.

    The points may lie near a plane, of which the lengths do not show the side: both sides are tried.
    """
    from scipy.optimize import least_squares

    def away(x: Array) -> Array:
        return np.linalg.norm(points - x[:3], axis=1) - lengths - (x[3] if free else 0.0)

    middle = points.mean(0)
    p = points - middle
    # |p|^2 - l^2 = 2 p . a + 2 l o + (o^2 - |a|^2)
    columns = [2 * p, np.ones((len(p), 1)), *([2 * (lengths - lengths.mean())[:, None]] if free else [])]
    first = np.linalg.lstsq(np.hstack(columns), (p**2).sum(1) - lengths**2, rcond=1e-8)[0][:3]
    normal = np.linalg.svd(p)[2][2]
    flat = first - normal * (normal @ first)
    height = np.sqrt(max(float(np.mean(lengths**2 - ((p - flat) ** 2).sum(1))), 0.0))
    tries = [first, *(flat + s * height * normal for s in (1, -1))]
    fits = [least_squares(away, np.append(a + middle, [0.0] * free)) for a in tries]
    best = min(fits, key=lambda fit: float(fit.cost))
    return best.x[:3], float(best.x[3]) if free else 0.0
