"""A standing robot: its foot becomes the base, and the outline of its soles the support polygon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.frames import frame_placement, link_of_frame
from dynid.errors import ConflictingArguments, Infeasible, InvalidShape, InvalidValue, UnknownName, keyword
from dynid.excitation.balance import MovingSupport
from dynid.excitation.sizes import typical_sizes
from dynid.parameters.base import base_parameters
from dynid.robot.model import Robot
from dynid.robot.root import rooted_at

__all__ = ["Standing", "stand_on"]

Array = NDArray[np.float64]

# Largest difference of soles on one floor in height (m) and in the direction of their normals (rad).
_LEVEL = 5e-3


@dataclass(frozen=True, eq=False)
class Standing:
    """A robot that stands on its feet, as `stand_on` returns it.

    Attributes
    ----------
    robot : Robot
        The robot on an instrumented base, its first foot.
    support : MovingSupport
        Clearance for `design_excitation` and `select_postures`: the zero-moment point stays above the soles.
    feet : tuple of str
    held : mapping of str to float
        Joints that do not move, with their positions.
    """

    robot: Robot
    support: MovingSupport
    feet: tuple[str, ...]
    held: Mapping[str, float]

    def posture(self, values: Mapping[str, float] | None = None) -> Array:
        """Joint positions (n,) in the order of the standing robot: those named, zero elsewhere."""
        q = np.zeros(self.robot.n)
        for name, value in (values or {}).items():
            if name not in self.robot.coordinates:
                raise UnknownName(f"'{name}' is not a moving joint: use {', '.join(self.robot.coordinates)}")
            q[self.robot.coordinates.index(name)] = value
        return q

    def prior(self, channels: str | Sequence[str] = "wrench") -> dict[str, Array]:
        """Options of `design_excitation` for a prior standard deviation of every parameter, its typical size.

        Not all parameters of a whole body are identifiable in balance. With a prior the determinant stays finite and
        measures the information that the motion adds.
        """
        sizes = typical_sizes(base_parameters(self.robot, channels=channels))
        return {"sizes": sizes, "known": np.diag(1.0 / sizes)}


def stand_on(
    robot: Robot,
    feet: str | Sequence[str],
    soles: ArrayLike,
    *,
    held: Mapping[str, float] | None = None,
    margin: float = 0.0,
) -> Standing:
    """Put a robot with a floating base on one foot or several.

    Several feet on the ground close a kinematic loop, so all joints between them must be held.

    Parameters
    ----------
    robot : Robot
    feet : str or sequence of str
        Links or named frames in the ground plane, z upwards; the first becomes the base.
    soles : array, shape (k, 2)
        Corners of a sole in x and y of its foot, m.
    held : mapping of str to float, optional
        Joints that do not move, with their positions.
    margin : float
        Distance to keep from the edge of the soles' convex hull, m.

    Returns
    -------
    Standing

    Raises
    ------
    DataError
        If feet are not on one floor, or joints between them are not held.
    """
    names = (feet,) if isinstance(feet, str) else tuple(feet)
    if not names or len(set(names)) < len(names):
        raise InvalidValue("a robot needs at least one foot, each named once", "feet")
    corners = np.asarray(soles, dtype=float)
    if corners.ndim != 2 or corners.shape[1] != 2 or not np.all(np.isfinite(corners)):
        raise InvalidShape(f"soles need corners of shape (k, 2), finite, got shape {corners.shape}", "soles")
    kept = dict(held or {})
    body = robot.locked(kept) if kept else robot
    standing = rooted_at(body, names[0])
    outline = [corners]
    for name in names[1:]:
        loose = _joints_to(standing, link_of_frame(standing, name))
        if loose:
            raise ConflictingArguments(
                f"'{names[0]}' and '{name}' are both on the ground, so {', '.join(loose)} between them cannot move "
                "independently; "
                f"hold them with {keyword('held')}, or stand on one foot"
            )
        place = frame_placement(standing, np.zeros(standing.n), name)
        if abs(place[2, 3]) > _LEVEL or np.linalg.norm(place[:2, 2]) > _LEVEL or place[2, 2] < 0:
            raise Infeasible(
                f"'{names[0]}' and '{name}' are not on one floor in this posture: {1000 * abs(place[2, 3]):.0f} mm"
                f" and {np.degrees(np.arccos(np.clip(place[2, 2], -1, 1))):.1f} degrees apart",
                "posture",
            )
        outline.append(corners @ place[:2, :2].T + place[:2, 3])
    support = MovingSupport(standing, np.vstack(outline), margin=margin)
    return Standing(standing, support, names, kept)


def _joints_to(robot: Robot, body: int) -> list[str]:
    """Joints between the base and a body."""
    out: list[str] = []
    while body:
        joint = robot.joints[body - 1]
        out.insert(0, joint.name)
        body = joint.parent
    return out
