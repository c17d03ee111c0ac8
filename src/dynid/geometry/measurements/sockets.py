"""A ball on the robot that rests in sockets: the same unknown point for all postures in one socket.

    p_frame(q) + R_frame(q) b - s = 0,    |s_i - s_j| = d

with the ball b on the robot and the sockets s, in the base of the robot. No tracker is needed; known distances between
sockets give the scale.

Source: Hollerbach, Khalil and Gautier, Model Identification, Springer Handbook of Robotics (2016), chapter 8, on
calibration by end-point constraints; MUKCa, arXiv 2503.12584 (2025), for the tool with two sockets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dynid.errors import UnknownName
from dynid.geometry.measurements.measurement import Labels, Measurement, Part, Space, free_point, labels
from dynid.geometry.tangents import Placed, Tangent, norm, stacked

__all__ = ["Sockets"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sockets(Measurement):
    """A ball of the robot in sockets whose positions are unknown.

    Attributes
    ----------
    socket : sequence of str
        Socket of each posture.
    distances_known : mapping of (str, str) to float
        Distances (m) between centres of sockets.
    distance_std : float
        Standard deviation of these distances (m).
    ball : ndarray, shape (3,)
        Centre of the ball in the frame (m).
    ball_std : float
        Standard deviation of each of its coordinates (m).
    noise : float
        How well the ball sits, standard deviation per direction (m).
    starts : mapping
        Expected position of sockets in the base (m); found from the postures where it is not given.
    """

    socket: Labels = ()  # type: ignore[assignment]
    distances_known: Mapping[tuple[str, str], float] = ()  # type: ignore[assignment]
    distance_std: float = 1e-4
    ball: tuple[float, float, float] = (0.0, 0.0, 0.0)
    ball_std: float = 5e-3
    noise: float = 2e-4
    starts: Mapping[str, Array] = ()  # type: ignore[assignment]

    kind: ClassVar[str] = "sockets"
    about: ClassVar[str] = "a ball of the robot rests in sockets"
    rows: ClassVar[tuple[str, ...]] = ("socket",)
    contact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "socket", labels(self.socket, len(self.q), "socket"))
        object.__setattr__(self, "distances_known", dict(self.distances_known))
        unknown = {name for pair in self.distances_known for name in pair} - set(self.sockets)
        if unknown:
            raise UnknownName(f"a distance names socket '{min(unknown)}', which no posture is in", "distances_known")
        object.__setattr__(self, "starts", dict(self.starts))

    @property
    def sockets(self) -> list[str]:
        """Names of the sockets that a posture is in."""
        return sorted(set(self.socket.tolist()))

    @property
    def std(self) -> Array:
        """How well the ball sits, in three directions."""
        return np.full(3, self.noise)

    def parts(self) -> tuple[Part, ...]:
        """The ball, and every socket."""
        found = [free_point("ball", self.ball, self.ball_std)]
        for name in self.sockets:
            place = str(self.place[self.socket == name][0])
            found.append(free_point(f"socket {name}", self.starts.get(name, np.zeros(3)), place=place))
        return tuple(found)

    def residual(self, space: Space) -> Tangent:
        """The ball less its socket."""
        ball = space.frames[self.frame].point(space.values("ball"))
        names = self.sockets
        sockets = stacked([space.values(f"socket {name}") for name in names])
        return ball - sockets[np.searchsorted(names, self.socket)]

    def point(self, space: Space) -> Tangent:
        """The centre (N, 3) of the ball in the base of the robot (m)."""
        return space.frames[self.frame].point(space.values("ball"))

    def expected(self, space: Space) -> Self:
        """The same: nothing but postures is measured."""
        return self

    def ties(self, space: Space) -> tuple[Tangent, Array] | None:
        """Distances between sockets less the known ones."""
        known = self.distances_known
        if not known:
            return None
        away = [norm(space.values(f"socket {a}") - space.values(f"socket {b}")) - d for (a, b), d in known.items()]
        return stacked(away), np.full(len(known), self.distance_std)

    def started(self, frames: Mapping[str, Placed]) -> Self:
        """Sockets where the balls of their postures are on average."""
        ball = frames[self.frame].point(np.array(self.ball)).value
        found = {name: ball[self.socket == name].mean(0) for name in self.sockets}
        return replace(self, starts=found | dict(self.starts))

    def some(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> Self:
        """The measurement at some of its postures, with the distances between sockets that are left."""
        left = set(self.socket[rows].tolist())
        known = {pair: d for pair, d in self.distances_known.items() if set(pair) <= left}
        return super(Sockets, replace(self, distances_known=known)).some(rows)
