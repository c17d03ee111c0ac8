"""A body that stands: its foot becomes the base, and the outline of its soles what the pressure centre must stay in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.frames import frame_placement, link_of_frame
from dynid.errors import DataError
from dynid.excitation.balance import MovingSupport
from dynid.excitation.sizes import typical_sizes
from dynid.parameters.base import base_parameters
from dynid.robot.model import Robot
from dynid.robot.root import rooted_at

__all__ = ["Standing", "stand_on"]

Array = NDArray[np.float64]

# Soles that differ by more than this in height (m) or in the direction of their axes do not stand on one floor.
_LEVEL = 5e-3


@dataclass(frozen=True, eq=False)
class Standing:
    """A robot on an instrumented base, its foot, with the support that keeps its pressure centre under it.

    `support` is a clearance for `design_excitation` and `select_postures`. `held` are the joints that do not move.
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
                raise DataError(f"'{name}' is no joint that moves: use {', '.join(self.robot.coordinates)}")
            q[self.robot.coordinates.index(name)] = value
        return q

    def prior(self, channels: str | Sequence[str] = "wrench") -> dict[str, Array]:
        """Options of `design_excitation`: every parameter is known as well as its typical size before the motion.

        A whole body in balance cannot show all of its parameters. With these the determinant is about what the motion
        adds, and finite.
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
    """The robot standing on one foot or several: links or named frames in the ground plane, z upwards.

    `soles` (k, 2) are corners of a sole in its foot's own x and y (m); `margin` is kept from the edge of their hull.
    `held` are joints that do not move, with their values. Feet that stand at once close a loop: all joints between
    them must be held, as no joint of a leg can then move alone.
    """
    names = (feet,) if isinstance(feet, str) else tuple(feet)
    if not names or len(set(names)) < len(names):
        raise DataError("a robot stands on at least one foot, each named once")
    corners = np.asarray(soles, dtype=float)
    if corners.ndim != 2 or corners.shape[1] != 2 or not np.all(np.isfinite(corners)):
        raise DataError(f"soles need corners of shape (k, 2), finite, got shape {corners.shape}")
    kept = dict(held or {})
    body = robot.locked(kept) if kept else robot
    standing = rooted_at(body, names[0])
    outline = [corners]
    for name in names[1:]:
        loose = _joints_to(standing, link_of_frame(standing, name))
        if loose:
            raise DataError(
                f"'{names[0]}' and '{name}' both stand, so {', '.join(loose)} between them cannot move one by one; "
                "hold them with held=, or stand on one foot"
            )
        place = frame_placement(standing, np.zeros(standing.n), name)
        if abs(place[2, 3]) > _LEVEL or np.linalg.norm(place[:2, 2]) > _LEVEL or place[2, 2] < 0:
            raise DataError(
                f"'{names[0]}' and '{name}' do not stand on one floor in this posture: {1000 * abs(place[2, 3]):.0f} mm"
                f" and {np.degrees(np.arccos(np.clip(place[2, 2], -1, 1))):.1f} degrees apart"
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
