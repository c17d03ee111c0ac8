"""Clearance of a robot from itself and from obstacles.

Links are covered by convex shapes: those of a URDF file (meshes by their convex hull) or some given by hand. coal
gives the distance of two shapes, its nearest points x1, x2 and the direction u from one to the other; the distance
changes with the joints as u' (J2 - J1), the Jacobians of these two points.

    d = u . (x2 - x1),    d(d)/dq = u' (J2 - J1)

Source: Gilbert, Johnson and Keerthi, A Fast Procedure for Computing the Distance between Complex Objects in
Three-Dimensional Space (1988), for distances of convex shapes; coal computes them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import coal  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import spatial

from dynid.dynamics.batch import as_batch
from dynid.dynamics.frames import frame_jacobian, frame_placement
from dynid.errors import (
    DataError,
    Duplicate,
    DynidError,
    InvalidValue,
    MissingArgument,
    MissingData,
    ModelError,
    NotApplicable,
    UnknownName,
    keyword,
)
from dynid.robot.collision import collision_shapes
from dynid.robot.extent import carriers
from dynid.robot.model import Robot
from dynid.robot.parts import checked, checked_placement
from dynid.robot.spatial import placement as make_placement

__all__ = ["Collision", "LeftOut", "LinkShape", "Obstacle"]

Array = NDArray[np.float64]
log = logging.getLogger("dynid")

SIZES = {"box": 3, "sphere": 1, "cylinder": 2, "capsule": 2}
# Largest value: pairs that are farther apart need no exact distance.
_FAR = 2.0
_SMALLEST_SCALE = 0.05
_POSTURES = 200
# If a pair is in contact in more than this share of random postures, its shapes overlap, not the links.
_ALWAYS = 0.95
# coal's tolerances, tried in turn: the tightest fails occasionally (its distance is then the largest float).
_TOLERANCES = (1e-7, 1e-5, 1e-3)
_FAILED = 1e100


def _check_shape(shape: LinkShape | Obstacle, what: str) -> None:
    if shape.kind not in SIZES:
        raise UnknownName(f"{what}: shape '{shape.kind}' is unknown, use {', '.join(SIZES)}", "kind")
    size = checked(np.atleast_1d(shape.size), (SIZES[shape.kind],), f"{what}: size of a {shape.kind}", DataError)
    if np.any(size <= 0):
        raise InvalidValue(f"{what}: sizes of a {shape.kind} must be positive, got {size.tolist()}", "size")
    object.__setattr__(shape, "size", size)
    object.__setattr__(shape, "placement", checked_placement(shape.placement, f"{what}: placement", DataError))


@dataclass(frozen=True, eq=False)
class LinkShape:
    """A convex shape fixed to a link or a named frame.

    Parameters
    ----------
    link : str
        Link or named frame.
    kind : {"box", "sphere", "cylinder", "capsule"}
    size : array
        In m. Box: three edges; sphere: radius; cylinder and capsule: radius and length along z, without the caps.
    placement : array, shape (4, 4)
        Placement in the link or frame.
    """

    link: str
    kind: str
    size: ArrayLike
    placement: ArrayLike = field(default_factory=lambda: np.eye(4))

    def __post_init__(self) -> None:
        _check_shape(self, f"shape of '{self.link}'")

    @classmethod
    def capsule(cls, link: str, start: ArrayLike, end: ArrayLike, radius: float) -> LinkShape:
        """All points within `radius` of the segment between two points of the link."""
        one, two = (checked(x, (3,), f"shape of '{link}': end of a capsule", DataError) for x in (start, end))
        length = float(np.linalg.norm(two - one))
        if length == 0:
            return cls(link, "sphere", radius, make_placement(translation=one))
        z = (two - one) / length
        x = np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
        x /= np.linalg.norm(x)
        turn = np.column_stack([x, np.cross(z, x), z])
        return cls(link, "capsule", (radius, length), make_placement(turn, 0.5 * (one + two)))


@dataclass(frozen=True, eq=False)
class Obstacle:
    """A convex shape fixed in the base frame.

    Parameters
    ----------
    name : str
        Name of the obstacle.
    kind : str
        Kind of shape, as for `LinkShape`.
    size : array_like
        Dimensions in m, as for `LinkShape`.
    placement : array, shape (4, 4)
        Placement in the base frame, m.
    """

    name: str
    kind: str
    size: ArrayLike
    placement: ArrayLike = field(default_factory=lambda: np.eye(4))

    def __post_init__(self) -> None:
        _check_shape(self, f"obstacle '{self.name}'")


@dataclass(frozen=True)
class LeftOut:
    """Two links, or a link and an obstacle, whose distance is not checked, and why; `adjacent` if joined."""

    first: str
    second: str
    reason: str
    adjacent: bool = False


class _Solid:
    """A shape in coal: the link that carries it (-1: the world), its placement there, and its bounding box."""

    def __init__(self, owner: str, body: int, geometry: Any, where: Array) -> None:
        self.owner, self.body, self.geometry, self.where = owner, body, geometry, where
        geometry.computeLocalAABB()
        low, high = np.array(geometry.aabb_local.min_), np.array(geometry.aabb_local.max_)
        self.middle, self.half = 0.5 * (low + high), 0.5 * (high - low)
        self.radius = float(np.linalg.norm(self.half))


class Collision:
    """Clearance: links keep a distance from each other and from obstacles.

    One value per pair of shapes: (d - distance) / scale, at most 2. Without `pairs` all pairs are checked but adjacent
    links, and pairs that touch at the zero posture or nearly always; the attribute `left_out` lists these.

    Parameters
    ----------
    robot : Robot
        Robot whose base does not float.
    urdf : str or Path, optional
        URDF file with collision shapes; meshes are replaced by their convex hull.
    distance : float
        Distance to keep, m.
    pairs : sequence of (str, str), optional
        Names of links and obstacles to check.
    obstacles : sequence of Obstacle
    package_dirs : sequence of str or Path
        Folders in which package:// paths of meshes are searched.
    shapes : sequence of LinkShape
        Further shapes of links.
    scale : float, optional
        Unit of the values, m. Default: `distance`, at least 0.05.
    label : str
        Name of the limit.
    seed : int
        Seed of the random postures that decide which pairs are left out.
    """

    def __init__(
        self,
        robot: Robot,
        urdf: str | Path | None = None,
        *,
        distance: float = 0.02,
        pairs: Sequence[tuple[str, str]] | None = None,
        obstacles: Sequence[Obstacle] = (),
        package_dirs: Sequence[str | Path] = (),
        shapes: Sequence[LinkShape] = (),
        scale: float | None = None,
        label: str = "collision",
        seed: int = 0,
    ) -> None:
        self._given = (robot, urdf)
        self._options = {
            "distance": distance, "pairs": pairs, "obstacles": obstacles, "package_dirs": package_dirs,
            "shapes": shapes, "scale": scale, "label": label, "seed": seed,
        }  # fmt: skip
        if robot.base == "floating":
            raise NotApplicable("collisions are checked for robots with a fixed base; fix the base first")
        if not (np.isfinite(distance) and distance >= 0):
            raise InvalidValue(f"the clearance must be a distance in metres, at least zero, got {distance}", "distance")
        if scale is not None and not (np.isfinite(scale) and scale > 0):
            raise InvalidValue(f"the scale of a clearance must be a positive length in metres, got {scale}", "scale")
        self.robot, self.label, self.distance = robot, label, float(distance)
        self.scale = float(scale) if scale is not None else max(self.distance, _SMALLEST_SCALE)
        links = _of_file(urdf, robot, package_dirs) if urdf is not None else []
        links += [_of_link(shape, robot) for shape in shapes]
        if not links:
            where = f"{Path(urdf).name} has no collision shapes" if urdf is not None else "no shapes are given"
            raise MissingArgument(
                f"give some as {keyword('shapes')}, such as [LinkShape.capsule('link2', start, end, radius)]",
                where=where,
            )
        taken = [link.name for link in robot.links] + [o.name for o in obstacles]
        if len(set(taken)) < len(taken):
            raise Duplicate(
                f"two obstacles, or an obstacle and a link, are named '{max(taken, key=taken.count)}'", "obstacles"
            )
        world = [_Solid(o.name, -1, _coal(o.kind, np.asarray(o.size)), np.asarray(o.placement)) for o in obstacles]
        self._solids = links + world
        self._requests = [_request(tolerance) for tolerance in _TOLERANCES]
        self.left_out: tuple[LeftOut, ...] = ()
        self._set_pairs(_moving_pairs(self._solids) if pairs is None else self._named_pairs(pairs))
        if pairs is None:
            self._leave_out(np.random.default_rng(seed))
        if not len(self._pairs):
            raise MissingData(
                "no pair of shapes is left whose distance changes; give shapes for more links or obstacles", "shapes"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._given, self._options)

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Names of the pair of each value; a link with several shapes occurs several times."""
        return tuple((self._solids[i].owner, self._solids[j].owner) for i, j in self._pairs)

    # -- values and gradients --------------------------------------------------------------------

    def values(self, q: Array) -> Array:
        """(d - distance) / scale of every pair (N, k), at most 2."""
        reach = self.distance + _FAR * self.scale
        return np.asarray((self._distances(q, reach) - self.distance) / self.scale)

    def gradients(self, q: Array, which: NDArray[np.intp]) -> Array:
        """Derivative (N, n) of the value of pair `which` (N,) at each posture."""
        (q,), samples, _ = as_batch(self.robot, q=q)
        turn, shift = self._places(q)
        pairs = self._pairs[np.asarray(which)]
        frames, result = [coal.Transform3s() for _ in self._solids], coal.DistanceResult()
        apart, direction, points = np.empty(samples), np.empty((samples, 3)), np.empty((2, samples, 3))
        for m, (k, (i, j)) in enumerate(zip(which, pairs, strict=True)):
            for s in (i, j):
                frames[s].setTransform(turn[m, s], shift[m, s])
            apart[m] = self._measure(k, frames[i], frames[j], result)
            direction[m] = result.normal
            points[0, m], points[1, m] = result.getNearestPoint1(), result.getNearestPoint2()
        out = np.zeros((samples, self.robot.n))
        body = np.array([solid.body for solid in self._solids])
        for side, sign in ((0, -1.0), (1, 1.0)):
            carrier = body[pairs[:, side]]
            for b in np.unique(carrier[carrier > 0]):
                rows = np.flatnonzero(carrier == b)
                slope = _point_slopes(self.robot, q[rows], self.robot.links[b].name, points[side, rows])
                out[rows] += sign * np.einsum("ni,nij->nj", direction[rows], slope)
        out[apart >= self.distance + _FAR * self.scale] = 0.0
        return out / self.scale

    def distances(self, q: ArrayLike) -> Array:
        """Distance of every pair (N, k) in metres, negative where they overlap."""
        return self._distances(q, np.inf)

    def closest(self, q: ArrayLike) -> tuple[float, tuple[str, str]]:
        """Smallest distance (m) over postures (N, n), and the names of that pair."""
        d = self.distances(q)
        return float(d.min()), self.pairs[int(np.argmin(d.min(axis=0)))]

    # -- distances -------------------------------------------------------------------------------

    def _places(self, q: Array) -> tuple[Array, Array]:
        """Rotation (N, s, 3, 3) and position (N, s, 3) of every shape in the base frame."""
        links = {
            b: frame_placement(self.robot, q, self.robot.links[b].name) for b in {x.body for x in self._solids} - {-1}
        }
        links[-1] = np.broadcast_to(np.eye(4), (len(q), 4, 4))
        h = np.stack([links[solid.body] @ solid.where for solid in self._solids], axis=1)
        return np.ascontiguousarray(h[:, :, :3, :3]), np.ascontiguousarray(h[:, :, :3, 3])

    def _distances(self, q: ArrayLike, reach: float) -> Array:
        """Distances (N, k), at most `reach`: most pairs are beyond it by their bounding boxes."""
        (q,), samples, _ = as_batch(self.robot, q=q)
        turn, shift = self._places(q)
        out = np.full((samples, len(self._pairs)), reach)
        near = np.ones(out.shape, dtype=bool) if np.isinf(reach) else self._bounds(turn, shift) < reach
        frames, result = [coal.Transform3s() for _ in self._solids], coal.DistanceResult()
        set_at = [-1] * len(frames)
        pairs = self._pairs.tolist()
        for m, k in np.argwhere(near).tolist():
            for s in pairs[k]:
                if set_at[s] != m:
                    frames[s].setTransform(turn[m, s], shift[m, s])
                    set_at[s] = m
            i, j = pairs[k]
            out[m, k] = self._measure(k, frames[i], frames[j], result)
        return np.minimum(out, reach)

    def _measure(self, k: int, one: Any, two: Any, result: Any) -> float:
        """Distance of pair k with its shapes at these placements; `result` receives the nearest points."""
        for request in self._requests:
            result.clear()
            d = float(self._measures[k](one, two, request, result))
            if abs(d) < _FAILED:
                return d
        raise DynidError(
            f"coal finds no distance between {' and '.join(self.pairs[k])}; give simpler shapes",
            "shapes",
            code="not_converged",
        )

    def _bounds(self, turn: Array, shift: Array) -> Array:
        """Lower bounds (N, k) of the distances: from the bounding sphere of either shape to the box of the other."""
        middle = np.array([solid.middle for solid in self._solids])
        half = np.array([solid.half for solid in self._solids])
        radius = np.array([solid.radius for solid in self._solids])
        center = shift + np.einsum("nsij,sj->nsi", turn, middle)
        i, j = self._pairs.T
        between = center[:, j] - center[:, i]
        out = []
        for one, other in ((i, j), (j, i)):
            inside = np.abs(np.einsum("nkji,nkj->nki", turn[:, one], between))
            out.append(np.linalg.norm(np.maximum(inside - half[one], 0.0), axis=2) - radius[other])
        return np.maximum(out[0], out[1])

    # -- pairs -----------------------------------------------------------------------------------

    def _set_pairs(self, pairs: Sequence[tuple[int, int]]) -> None:
        self._pairs = np.array(pairs, dtype=np.intp).reshape(-1, 2)
        self._measures = [coal.ComputeDistance(self._solids[i].geometry, self._solids[j].geometry) for i, j in pairs]

    def _named_pairs(self, named: Sequence[tuple[str, str]]) -> list[tuple[int, int]]:
        """Pairs of shapes of pairs of names."""
        out = []
        owners = dict.fromkeys(solid.owner for solid in self._solids)
        for pair in named:
            for name in pair:
                if name not in owners:
                    raise UnknownName(
                        f"pair {pair}: '{name}' has no shape, those that have are {', '.join(owners)}", "pairs"
                    )
            one, two = ([s for s, solid in enumerate(self._solids) if solid.owner == name] for name in pair)
            if (self._solids[one[0]].body <= 0 and self._solids[two[0]].body <= 0) or pair[0] == pair[1]:
                raise NotApplicable(f"pair {pair}: these two do not move relative to each other", "pairs")
            out += [(i, j) for i in one for j in two]
        return out

    def _leave_out(self, rng: np.random.Generator) -> None:
        """Leave out pairs whose distance does not depend on the motion in a useful manner."""
        low, high = _ranges(self.robot)
        zero = np.zeros(self.robot.n)
        reachable = bool(np.all((low <= zero) & (zero <= high)))
        q = np.vstack([zero, rng.uniform(low, high, (_POSTURES, self.robot.n))])
        # Slightly more than the clearance, so that a shape that slides along another counts as close.
        d = self._distances(q, self.distance + 1e-6)
        names = list(dict.fromkeys(self.pairs))
        reasons: dict[tuple[str, str], str] = {}
        adjacent: set[tuple[str, str]] = set()
        for name in names:
            columns = [k for k, pair in enumerate(self.pairs) if pair == name]
            bodies = [self._solids[s].body for s in self._pairs[columns[0]]]
            smallest = d[:, columns].min(axis=1)
            close = int(np.sum(smallest[1:] < self.distance + 1e-9))
            if -1 in bodies:
                # Obstacles are real: one is left out only if no posture is clear of it.
                if close == _POSTURES:
                    reasons[name] = f"closer than {self.distance:g} m in all of {_POSTURES} random postures"
            elif _adjacent(self.robot, *bodies):
                reasons[name] = "adjacent links"
                adjacent.add(name)
            elif reachable and smallest[0] <= 0:
                reasons[name] = "touch at the zero posture"
            elif close >= _ALWAYS * _POSTURES:
                reasons[name] = f"closer than {self.distance:g} m in {close} of {_POSTURES} random postures"
        self.left_out = tuple(LeftOut(*name, reason, name in adjacent) for name, reason in reasons.items())
        for left in self.left_out:
            say = log.debug if left.adjacent else log.warning
            say("no clearance is checked between '%s' and '%s': %s", left.first, left.second, left.reason)
        kept = [k for k, pair in enumerate(self.pairs) if pair not in reasons]
        self._set_pairs([(int(i), int(j)) for i, j in self._pairs[kept]])


def _request(tolerance: float) -> Any:
    out = coal.DistanceRequest()
    out.enable_signed_distance = True
    out.gjk_tolerance = out.epa_tolerance = tolerance
    return out


def _again(given: tuple[Any, ...], options: dict[str, Any]) -> Collision:
    return Collision(*given, **options)


def _moving_pairs(solids: list[_Solid]) -> list[tuple[int, int]]:
    """All pairs of shapes on different links, or of a link that moves and an obstacle."""
    return [
        (i, j)
        for i, one in enumerate(solids)
        for j, two in enumerate(solids[i + 1 :], start=i + 1)
        if one.body != two.body and max(one.body, two.body) > 0 and not (one.body == 0 and two.body == -1)
    ]


def _adjacent(robot: Robot, one: int, two: int) -> bool:
    """Whether one link is the parent of the other, virtual links between them not counted."""
    up = max(one, two)
    while up > 0:
        up = robot.joints[up - 1].parent
        if not robot.links[up].virtual:
            break
    return up == min(one, two)


def _ranges(robot: Robot) -> tuple[Array, Array]:
    """Position ranges (n,) of the joints; half a revolution or a metre to either side where there are none."""
    kinds = {j.name: j.kind for j in robot.joints}
    wide = np.array([np.pi if kinds[name] == "revolute" else 1.0 for name in robot.coordinates])
    low, high = (np.array([getattr(limit, end) for limit in robot.limits.values()]) for end in ("lower", "upper"))
    low, high = np.where(np.isfinite(low), low, np.minimum(-wide, high)), np.where(np.isfinite(high), high, wide)
    return low, np.maximum(low, high)


def _point_slopes(robot: Robot, q: Array, link: str, points: Array) -> Array:
    """Jacobian (N, 3, n) of points (N, 3) that move with a link: J_v + J_w x (x - o)."""
    jacobian = frame_jacobian(robot, q, link)
    arm = points - frame_placement(robot, q, link)[:, :3, 3]
    return np.asarray(jacobian[:, :3] + np.cross(jacobian[:, 3:], arm[:, :, None], axis=1))


# -- shapes ----------------------------------------------------------------------------------------


def _coal(kind: str, size: Array) -> Any:
    x = [float(s) for s in np.atleast_1d(size)]
    return {"box": coal.Box, "sphere": coal.Sphere, "cylinder": coal.Cylinder, "capsule": coal.Capsule}[kind](*x)


def _of_link(shape: LinkShape, robot: Robot) -> _Solid:
    known = carriers(robot)
    if shape.link not in known:
        raise ModelError(
            f"a shape is given for '{shape.link}', known links and frames are {', '.join(known)}",
            "shapes",
            code="unknown_name",
        )
    body, place = known[shape.link]
    geometry = _coal(shape.kind, np.asarray(shape.size))
    return _Solid(robot.links[body].name, body, geometry, place @ np.asarray(shape.placement))


def _of_file(path: str | Path, robot: Robot, packages: Sequence[str | Path]) -> list[_Solid]:
    """The collision shapes of a URDF file on the links of the robot read from it."""
    out = []
    for shape in collision_shapes(path, robot, packages):
        solid = _coal(shape.kind, shape.size) if shape.vertices is None else _hull(shape.vertices, shape.where)
        out.append(_Solid(robot.links[shape.link].name, shape.link, solid, shape.placement))
    return out


def _hull(points: Array, where: str) -> Any:
    """Convex hull of a mesh, with faces oriented outwards for coal."""
    try:
        hull = spatial.ConvexHull(points)
    except (spatial.QhullError, ValueError):
        raise ModelError("the mesh does not span a volume", where=where) from None
    number = {int(v): i for i, v in enumerate(hull.vertices)}
    corners, faces = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
    for v in hull.vertices:
        corners.append(points[v])
    for (a, b, c), plane in zip(hull.simplices, hull.equations, strict=True):
        outward = np.cross(points[b] - points[a], points[c] - points[a]) @ plane[:3] > 0
        faces.append(coal.Triangle(*(number[int(v)] for v in ((a, b, c) if outward else (a, c, b)))))
    return coal.Convex(corners, faces)
