"""Force elements: springs, counterbalance cylinders and gas springs between two points of the robot.

The force acts along the line between a point on one link and a point on another. With the length l(q) of the line, the
joint torques that hold the element are f(l) dl/dq, where f is its tension. Tension is linear in stiffness, preload and
pressure, which are ordinary parameters of the robot: custom drive terms with a `LineForce` as their column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import ModelError
from dynid.robot.drives import DriveTerm
from dynid.robot.mechanism import Mechanism
from dynid.robot.parts import checked

__all__ = ["ForceElement", "Gas", "LineForce", "Step", "element_terms"]

Array = NDArray[np.float64]
Law = Literal["stiffness", "preload", "pressure"]
UNITS: dict[Law, str] = {"stiffness": "N/m", "preload": "N", "pressure": "Pa"}

# Share of the reference volume below which gas is not compressed further: no cylinder gets there, but positions beyond
# the limits of the joints, at which columns are evaluated too, may.
_SMALLEST_VOLUME = 0.01
_SHORTEST = 1e-9  # m; the direction of a shorter line is not defined


@dataclass(frozen=True)
class Gas:
    """Gas in a cylinder whose piston moves along the line.

    Attributes
    ----------
    area : float
        Area of the piston (m2).
    volume : float
        Volume of the gas (m3) at `length`.
    length : float
        Length of the line (m) at which the gas has that volume and the pressure of the parameter.
    exponent : float
        Polytropic exponent: 1 for slow (isothermal) motion, 1.4 for fast (adiabatic) motion of air or nitrogen.
    pulls : bool
        Whether the pressure pulls the points together (gas on the side of the rod, whose volume falls with the
        length), and does not push them apart.
    """

    area: float
    volume: float
    length: float
    exponent: float = 1.0
    pulls: bool = False

    def __post_init__(self) -> None:
        for name in ("area", "volume", "length", "exponent"):
            value = float(checked(getattr(self, name), (), f"gas spring: {name}"))
            if value <= 0:
                raise ModelError(f"gas spring: {name} must be positive, got {value:g}", code="invalid_value")
            object.__setattr__(self, name, value)

    def tension(self, length: Array) -> Array:
        """Tension (N) per unit of the pressure."""
        sign = 1.0 if self.pulls else -1.0
        return np.asarray(sign * self.area * self._compression(length) ** self.exponent)

    def energy(self, length: Array) -> Array:
        """Energy (J) per unit of the pressure, zero at the length of reference."""
        squeezed, n = self._compression(length), self.exponent
        if n == 1.0:
            return np.asarray(self.volume * np.log(squeezed))
        return np.asarray(self.volume * (squeezed ** (n - 1.0) - 1.0) / (n - 1.0))

    def _compression(self, length: Array) -> Array:
        """Volume at the length of reference over that at these lengths."""
        sign = 1.0 if self.pulls else -1.0
        volume = self.volume - sign * self.area * (length - self.length)
        return np.asarray(self.volume / np.maximum(volume, _SMALLEST_VOLUME * self.volume))


@dataclass(frozen=True)
class ForceElement:
    """A force along the line between two points on two links.

    Only the values that are given become parameters: `stiffness_NAME`, `preload_NAME` and `pressure_NAME`. Tension,
    which pulls the points together, is positive.

    Attributes
    ----------
    name : str
        Name of the element.
    links : tuple of 2 str
        Links, or named frames, that the ends are fixed to.
    points : tuple of 2 tuples
        The ends (m) in the frames of these links.
    stiffness : float or None
        Tension per length beyond `rest` (N/m).
    rest : float
        Length (m) at which a spring has no tension.
    preload : float or None
        Constant tension (N).
    pressure : float or None
        Pressure (Pa) of the gas at the length of reference; needs `gas`.
    gas : Gas or None
        Geometry of the gas spring.

    Raises
    ------
    ModelError
        If nothing is given, or pressure without gas.

    Examples
    --------
    >>> import dynid
    >>> from dynid.robot.elements import ForceElement
    >>> spring = ForceElement("spring", ("base", "link2"), ((0, 0.3, 0), (0.2, 0, 0)), stiffness=800.0, rest=0.2)
    >>> robot = dynid.load_robot("twolink").with_elements(spring)
    >>> "stiffness_spring" in robot.parameter_names
    True
    """

    name: str
    links: tuple[str, str]
    points: tuple[Sequence[float], Sequence[float]] = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    stiffness: float | None = None
    rest: float = 0.0
    preload: float | None = None
    pressure: float | None = None
    gas: Gas | None = None

    def __post_init__(self) -> None:
        where = f"element '{self.name}'"
        if len(self.links) != 2 or len(self.points) != 2:
            raise ModelError(f"{where} needs two links and two points", code="invalid_shape")
        if self.stiffness is None and self.preload is None and self.pressure is None:
            raise ModelError(f"{where} needs a stiffness, a preload or a pressure", code="missing_argument")
        if (self.pressure is None) != (self.gas is None):
            raise ModelError(
                "a pressure needs the geometry of the gas, and the gas a pressure",
                "pressure",
                code="missing_argument",
                where=where,
            )


@dataclass(frozen=True, eq=False)
class Step:
    """One joint between the link that both ends have in common and an end of the line.

    `before` (4, 4) leads from the joint before to this one; the position of the joint is ratio q[coordinate] + offset.
    """

    before: Array
    axis: Array
    slides: bool
    coordinate: int
    ratio: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "before", checked(self.before, (4, 4), "line force: placement"))
        object.__setattr__(self, "axis", checked(self.axis, (3,), "line force: axis"))


@dataclass(frozen=True, eq=False)
class LineForce:
    """Torques of a force along a line, per unit of one parameter: the column of a drive term.

    Attributes
    ----------
    law : {"stiffness", "preload", "pressure"}
        The parameter.
    chains : tuple of 2 tuples of Step
        Joints from the common link to either end.
    ends : tuple of 2 ndarrays, shape (3,)
        The ends (m) in the frame after the last joint of their chain.
    rest : float
        Length (m) without tension of a spring.
    gas : Gas or None
        Geometry of the gas of a pressure.
    """

    law: Law
    chains: tuple[tuple[Step, ...], tuple[Step, ...]]
    ends: tuple[Array, Array]
    rest: float = 0.0
    gas: Gas | None = field(default=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ends", tuple(checked(x, (3,), "line force: end") for x in self.ends))

    def __call__(self, q: Array, v: Array, a: Array) -> Array:
        """Torques (N, n) per unit of the parameter."""
        length, slope = self.length(q)
        return self._tension(length)[:, None] * slope

    def energy(self, q: Array) -> Array:
        """Energy (N,) per unit of the parameter."""
        length, _ = self.length(q)
        if self.law == "stiffness":
            return 0.5 * (length - self.rest) ** 2
        return length if self.gas is None else self.gas.energy(length)

    def length(self, q: ArrayLike) -> tuple[Array, Array]:
        """Length of the line (N,) in m, and its derivative (N, n) with respect to the joint positions."""
        q = np.asarray(q, dtype=float)
        (p0, j0), (p1, j1) = (self._end(i, q) for i in (0, 1))
        line = p1 - p0
        length = np.linalg.norm(line, axis=1)
        if np.any(length < _SHORTEST):
            raise ModelError(
                f"the ends of a line force meet at sample {int(np.argmin(length))}: it has no direction",
                code="not_applicable",
            )
        return length, np.einsum("ki,kij->kj", line / length[:, None], j1 - j0)

    def restricted(self, free: NDArray[np.bool_], posture: Array) -> LineForce:
        """The same line where only some joints are free; the others stand at `posture` (n,)."""
        number = np.cumsum(free) - 1
        chains, ends = [], []
        for steps, end in zip(self.chains, self.ends, strict=True):
            kept, before = [], np.eye(4)
            for step in steps:
                if free[step.coordinate]:
                    kept.append(_renumbered(step, before @ step.before, int(number[step.coordinate])))
                    before = np.eye(4)
                else:
                    value = np.array([step.ratio * posture[step.coordinate] + step.offset])
                    before = before @ step.before @ _motion(step, value)[0]
            chains.append(tuple(kept))
            ends.append((before @ np.append(end, 1.0))[:3])
        return LineForce(self.law, (chains[0], chains[1]), (ends[0], ends[1]), self.rest, self.gas)

    def _tension(self, length: Array) -> Array:
        if self.law == "stiffness":
            return length - self.rest
        return np.ones_like(length) if self.gas is None else self.gas.tension(length)

    def _end(self, which: int, q: Array) -> tuple[Array, Array]:
        """Position (N, 3) and Jacobian (N, 3, n) of an end in the frame of the common link."""
        count, n = q.shape
        place = np.broadcast_to(np.eye(4), (count, 4, 4))
        axes = []
        for step in self.chains[which]:
            place = place @ step.before
            axes.append((step, place[:, :3, :3] @ step.axis, place[:, :3, 3]))
            place = place @ _motion(step, step.ratio * q[:, step.coordinate] + step.offset)
        end = (place @ np.append(self.ends[which], 1.0))[:, :3]
        jacobian = np.zeros((count, 3, n))
        for step, axis, origin in axes:
            rate = axis if step.slides else np.cross(axis, end - origin)
            jacobian[:, :, step.coordinate] += step.ratio * rate
        return end, jacobian


def element_terms(robot: Mechanism, element: ForceElement) -> tuple[DriveTerm, ...]:
    """Drive terms of an element, one per given value. Like all terms they are over the joints of the tree."""
    robot = robot.tree
    where = f"element '{element.name}'"
    bodies, ends = [], []
    for link, point in zip(element.links, element.points, strict=True):
        body, place = _body(robot, link, where)
        bodies.append(body)
        ends.append((place @ np.append(checked(point, (3,), f"{where}: point on '{link}'"), 1.0))[:3])
    paths = [_path(robot, body) for body in bodies]
    common = 0
    while common < min(map(len, paths)) and paths[0][common] == paths[1][common]:
        common += 1
    if len(paths[0]) == len(paths[1]) == common:
        raise ModelError(f"no joint lies between '{element.links[0]}' and '{element.links[1]}'", where=where)
    chains, at = [], []
    for path, end in zip(paths, ends, strict=True):
        steps, mount = _steps(robot, path[common:])
        chains.append(steps)
        at.append((mount @ np.append(end, 1.0))[:3])
    owner = max(step.coordinate for steps in chains for step in steps)
    values: dict[Law, float | None] = {
        "stiffness": element.stiffness,
        "preload": element.preload,
        "pressure": element.pressure,
    }
    out = []
    for law, value in values.items():
        if value is not None:
            rest, gas = (element.rest if law == "stiffness" else 0.0), (element.gas if law == "pressure" else None)
            line = LineForce(law, (chains[0], chains[1]), (at[0], at[1]), float(rest), gas)
            direction = np.zeros(robot.n)
            out.append(DriveTerm(law, element.name, direction, owner, value, function=line, unit=UNITS[law]))
    return tuple(out)


def _body(robot: Mechanism, name: str, where: str) -> tuple[int, Array]:
    """Link that a link or frame of this name belongs to, and its placement there."""
    for i, link in enumerate(robot.links):
        if link.name == name:
            return i, np.eye(4)
    for frame in robot.frames:
        if frame.name == name:
            return frame.link, frame.placement
    raise ModelError(
        f"no link or frame named '{name}', the links are {', '.join(x.name for x in robot.links)}",
        code="unknown_name",
        where=where,
    )


def _path(robot: Mechanism, body: int) -> list[int]:
    """Joints from the base to a link."""
    path: list[int] = []
    while body:
        path.insert(0, body - 1)
        body = robot.joints[body - 1].parent
    return path


def _steps(robot: Mechanism, path: Sequence[int]) -> tuple[tuple[Step, ...], Array]:
    """Joints of a path as steps, and the frame of its last link after the last of them."""
    out, mount = [], np.eye(4)
    for j in path:
        joint = robot.joints[j]
        leader = joint.name if joint.mimic is None else joint.mimic.leader
        ratio, offset = (1.0, 0.0) if joint.mimic is None else (joint.mimic.ratio, joint.mimic.offset)
        coordinate = robot.coordinates.index(leader)
        before = mount @ joint.placement
        out.append(Step(before, joint.axis, joint.kind == "prismatic", coordinate, ratio, offset))
        mount = joint.mount
    return tuple(out), mount


def _motion(step: Step, position: Array) -> Array:
    """Placements (N, 4, 4) of a joint at positions (N,)."""
    out = np.broadcast_to(np.eye(4), (len(position), 4, 4)).copy()
    if step.slides:
        out[:, :3, 3] = position[:, None] * step.axis
        return out
    x, y, z = step.axis
    k = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    sine, versed = np.sin(position)[:, None, None], (1.0 - np.cos(position))[:, None, None]
    out[:, :3, :3] = np.eye(3) + sine * k + versed * (k @ k)
    return out


def _renumbered(step: Step, before: Array, coordinate: int) -> Step:
    return Step(before, step.axis, step.slides, coordinate, step.ratio, step.offset)
