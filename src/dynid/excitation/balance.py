"""Balance of a robot on the ground: contact forces can only push.

At rest the centre of mass must lie above the polygon of contact. In motion it is the zero-moment point that must: the
point of the ground about which the ground's reaction has no moment along the ground.

With the wrench (f, n) of the ground at the base origin, n - p x f has no x and y for

    p = ((height f_x - n_y) / f_z, (n_x + height f_y) / f_z, height).

Source: Vukobratovic and Borovac, Zero-Moment Point - Thirty Five Years of Its Life (2004).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, spatial

from dynid.dynamics.functions import gravity_torque, inverse_dynamics, potential_energy
from dynid.dynamics.gradient import regressor_adjoint
from dynid.errors import InvalidShape, InvalidValue, MissingData, NotApplicable
from dynid.excitation.excitation import Excitation
from dynid.robot.model import Robot

__all__ = ["Balance", "MovingSupport", "SupportPolygon", "verify_balance", "zero_moment_point"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Balance:
    """The zero-moment point along a motion.

    Attributes
    ----------
    times : array, shape (N,)
        Times, s.
    point : array, shape (N, 2)
        Zero-moment point, m; NaN where the ground would have to pull.
    margin : array, shape (N,)
        Distance inside the support polygon, m; minus infinity where the ground would have to pull.
    """

    times: Array
    point: Array
    margin: Array

    @property
    def kept(self) -> bool:
        """Whether the point stays inside the polygon."""
        return bool(np.all(self.margin >= 0))

    @property
    def worst(self) -> tuple[float, float]:
        """Smallest margin (m) and its time (s)."""
        k = int(np.argmin(self.margin))
        return float(self.margin[k]), float(self.times[k])


def zero_moment_point(robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, height: float = 0.0) -> Array:
    """Zero-moment point (N, 2), m, in the plane z = `height` of the base frame; NaN where the ground must pull."""
    wrench = inverse_dynamics(_standing(robot), *(np.atleast_2d(np.asarray(x, dtype=float)) for x in (q, v, a)))[:, :6]
    fx, fy, fz, mx, my, _ = wrench.T
    push = np.where(fz > 0, fz, np.nan)
    # m - p x f has no x and y for p = (x, y, height).
    return np.column_stack([(height * fx - my) / push, (mx + height * fy) / push])


class SupportPolygon:
    """Clearance: the centre of mass stays above the convex polygon of the contacts (static balance).

    One value per edge: the distance from it over the radius of the largest inscribed circle. For dynamic balance use
    `MovingSupport`.

    Parameters
    ----------
    robot : Robot
        Robot with a fixed or instrumented base whose z axis points up.
    polygon : array, shape (k, 2)
        Points of contact in x and y of the base frame, m; their convex hull counts.
    margin : float
        Distance to keep from the edges, m.
    height : float
        Height of the ground in the base frame, m.
    label : str
        Name of the limit.
    """

    def __init__(
        self, robot: Robot, polygon: ArrayLike, *, margin: float = 0.0, height: float = 0.0, label: str = "balance"
    ) -> None:
        standing = _standing(robot)
        corners = np.array(polygon, dtype=float)
        if corners.ndim != 2 or corners.shape[1] != 2 or not np.all(np.isfinite(corners)):
            raise InvalidShape(
                f"the support polygon needs points of shape (k, 2), finite, got shape {corners.shape}", "polygon"
            )
        try:
            hull = spatial.ConvexHull(corners)
        except (spatial.QhullError, ValueError):
            raise InvalidValue(
                "the support polygon needs three points that do not lie on one line", "polygon"
            ) from None
        # Qhull may list an edge several times, and its normals point outwards.
        planes = np.unique(np.round(-hull.equations, 12), axis=0)
        self.robot, self.label, self.margin, self.height = robot, label, float(margin), float(height)
        self.corners = corners[hull.vertices]
        self.normals, self._offsets = planes[:, :2], planes[:, 2]
        radius = _inner_radius(self.normals, self._offsets)
        if not 0 <= margin < radius:
            raise InvalidValue(
                f"a margin of {margin:g} m leaves nothing of a support polygon with an inner radius of {radius:g} m",
                "margin",
            )
        self._scale = radius - self.margin
        self._along = [standing.with_gravity(-axis) for axis in np.eye(3)[:2]]
        self._mass = sum(float(standing.links[i].inertia[0]) for i in standing.parameter_links)
        if not self._mass > 0:
            raise MissingData(f"robot '{robot.name}' has a mass of {self._mass:g} kg, so no centre of mass to balance")

    def center_of_mass(self, q: ArrayLike) -> Array:
        """x and y (N, 2) of the centre of mass in the base frame."""
        q = np.atleast_2d(np.asarray(q, dtype=float))
        # Under a gravity of -1 along an axis the potential energy is mass times coordinate.
        return np.column_stack([potential_energy(robot, q) for robot in self._along]) / self._mass

    def inside(self, points: ArrayLike) -> Array:
        """Distance (N, edge) of points (N, 2) from the edges in metres, positive inside, margin not subtracted."""
        return np.asarray(points, dtype=float) @ self.normals.T + self._offsets

    def values(self, q: Array) -> Array:
        """Distance from every edge (N, edge), margin subtracted, over the inscribed radius."""
        return np.asarray((self.inside(self.center_of_mass(q)) - self.margin) / self._scale)

    def gradients(self, q: Array, which: NDArray[np.intp]) -> Array:
        """Derivative (N, n) of value `which` (N,) at each posture."""
        q = np.atleast_2d(np.asarray(q, dtype=float))
        slopes = np.stack([gravity_torque(robot, q)[:, -robot.n :] for robot in self._along], axis=1) / self._mass
        return np.asarray(np.einsum("ni,nij->nj", self.normals[np.asarray(which)], slopes) / self._scale)


class MovingSupport(SupportPolygon):
    """Clearance: the zero-moment point of a moving robot stays inside the polygon (dynamic balance).

    One value per edge: the moment about it, which is linear in the base wrench, over weight times the radius of the
    largest inscribed circle. Parameters as for `SupportPolygon`.
    """

    moving = True

    def _edges(self) -> Array:
        """Coefficients (edge, 6) over the wrench (f, m) on the base."""
        weight = self._mass * abs(float(self.robot.gravity[2]))
        out = np.zeros((len(self.normals), 6))
        out[:, 0], out[:, 1] = self.height * self.normals[:, 0], self.height * self.normals[:, 1]
        out[:, 2] = self._offsets - self.margin
        out[:, 3], out[:, 4] = self.normals[:, 1], -self.normals[:, 0]
        return out / (weight * self._scale)

    def values_in_motion(self, q: Array, v: Array, a: Array) -> Array:
        """Value of every edge (N, edge) along a motion."""
        wrench = inverse_dynamics(_standing(self.robot), q, v, a)[:, :6]
        return np.asarray(wrench @ self._edges().T)

    def gradients_in_motion(self, q: Array, v: Array, a: Array, which: NDArray[np.intp]) -> tuple[Array, Array, Array]:
        """Derivatives (N, n) over q, v and a of value `which` (N,) at each sample."""
        robot = _standing(self.robot)
        G = np.zeros((len(q), len(robot.channels), len(robot.layout)))
        G[:, :6] = self._edges()[which][:, :, None] * robot.parameters
        return regressor_adjoint(robot, G, q, v, a)


def verify_balance(support: SupportPolygon, motion: Excitation, *, rate: float = 200.0) -> Balance:
    """Zero-moment point of a whole motion at a rate (Hz), against a support polygon with its margin."""
    t, q, v, a = motion.sample(rate)
    point = zero_moment_point(support.robot, q, v, a, height=support.height)
    margin = support.inside(point).min(axis=1) - support.margin
    return Balance(t, point, np.where(np.isnan(margin), -np.inf, margin))


def _standing(robot: Robot) -> Robot:
    """The robot without drives on an instrumented base."""
    if robot.base == "floating":
        raise NotApplicable("balance needs a robot with a fixed base, its foot; fix the base first")
    if robot.gravity[2] >= 0 or np.any(np.abs(robot.gravity[:2]) > 1e-9 * abs(robot.gravity[2])):
        raise NotApplicable(
            f"the ground must be level: gravity points to -z of the base, not to {robot.gravity.tolist()}"
        )
    return replace(robot, base="instrumented", drives=(), transmission=None)


def _inner_radius(normals: Array, offsets: Array) -> float:
    """Radius of the largest circle within all edges (a small linear program)."""
    A = np.column_stack([-normals, np.ones(len(normals))])
    found = optimize.linprog([0.0, 0.0, -1.0], A_ub=A, b_ub=offsets, bounds=[(None, None), (None, None), (0, None)])
    return float(found.x[2])
