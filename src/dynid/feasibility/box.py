"""The plausible box: bodies that an engineer would believe, as linear and matrix inequalities.

Physical consistency alone lets a link of an arm of three kilograms weigh two tonnes, if that explains a torque that is
not in the model. The box keeps every body near what is known before and inside the space of its link:

- the mass lies between 0.2 and 4 times the a-priori mass; the last links of a fixed robot may also carry a tool, of a
  quarter of its mass and one link's length away,
- the mass lies, on average, within the reach of the link: the second moment about the middle of the link is at most
  mass times reach squared, which bounds the centre of mass and the radius of gyration from above,
- the radius of gyration is at least a fifth of the size of the link, or nearly that of an a-priori body that is more
  compact: [[tr S - r^2 m, h'], [h, m 1]] is positive semidefinite, with first moments h and second moments S about the
  origin,
- masses that are known stay within 6 % of their value.

The box always holds the a-priori bodies. All sides are linear in the inertial parameters. A wall of the box against
which the data push is a finding.

    low <= m <= high,    tr S - 2 c.h + c.c m <= reach^2 m,    [[tr S - r^2 m, h'], [h, m 1]] >= 0

with second moments S, tr S = tr(I)/2, and the middle c of the link.

Source: own rules, in the form of Wensing, Kim and Slotine (2018), whose density-realizable bodies inside an ellipsoid
are the same inequality for a sphere about c; the third is Schur's complement of tr S - |h|^2 / m >= r^2 m.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dynid.feasibility.columns import columns_of
from dynid.feasibility.cone import Block, svec
from dynid.feasibility.constraints import Constraints, constraint_set
from dynid.feasibility.fit import Fit
from dynid.feasibility.prior import Prior
from dynid.feasibility.sets import FeasibleSet, feasible_set
from dynid.robot.link_size import link_sizes
from dynid.robot.model import Robot

__all__ = [
    "MASS_RANGE",
    "PlausibleBox",
    "Quantity",
    "Side",
    "Wall",
    "boxed_set",
    "last_links",
    "plausible_box",
    "wall_notes",
    "walls_of",
]

Array = NDArray[np.float64]

# Mass over that of the prior: of the file, of links that have none beside others that do, and of files without any.
MASS_RANGE, _ASSUMED, _UNKNOWN = (0.2, 4.0), (0.02, 20.0), (1e-3, 1e3)
# Radius of gyration over the size of the link, where a uniform rod has 0.29, and over that of a compact a-priori body.
_COMPACT, _AS_COMPACT = 0.2, 0.9
# Reach over half the diagonal of the link, and over that of an a-priori body that reaches further. Collision shapes
# leave out covers and cables; without shapes the size is a guess that already includes the neighbouring links.
_REACH, _AS_FAR = 1.5, 1.1
# Mass of a tool that a file does not know, over that of all bodies.
_TOOL = 0.25
# Least size of a link, over the mean size of those that are not zero; in m where all joints are in one place.
_SHORT = 0.3
# Known masses: weighed, or from a data sheet.
_KNOWN = 0.06
# A side is a wall where the remaining slack is less than its force, in the units of its block.
_TOUCHING = 1e-4
# Walls that notes tell one by one.
_TOLD = 3


class Quantity(StrEnum):
    """What a side of the box bounds."""

    MASS = "mass"
    REACH = "centre"
    GYRATION = "gyration radius"
    TOTAL = "total mass"


@dataclass(frozen=True, eq=False)
class Side:
    """One inequality of the box.

    Attributes
    ----------
    link : str
        Name of the link; "" for all links together.
    what : Quantity
        What is bounded.
    limit : float
        Its limit, in kg or m.
    block : Block
        The inequality.
    """

    link: str
    what: Quantity
    limit: float
    block: Block


@dataclass(frozen=True)
class Wall:
    """A side of the box at which the estimate ends, and beyond which the data would move it.

    Attributes
    ----------
    link : str
        Name of the link; "" for all links together.
    what : str
        "mass", "centre", "gyration radius" or "total mass".
    value : float
        The estimate without the box, in kg or m.
    limit : float
        Where the box ends, in kg or m.
    force : float
        By how much the sum of squared torque errors, in units of independent noise, falls per relative change of the
        limit.
    """

    link: str
    what: str
    value: float
    limit: float
    force: float

    @property
    def gain(self) -> float:
        """About by how much that sum falls without the wall: half the force times the relative distance."""
        return 0.5 * self.force * abs(self.value / self.limit - 1.0) if self.limit > 0 else 0.0

    def __str__(self) -> str:
        whose = f"of {self.link}" if self.link else "of all bodies"
        unit = "kg" if self.what in (Quantity.MASS, Quantity.TOTAL) else "m"
        return (
            f"the data want a {self.what} {whose} of {self.value:.3g} {unit}, the box ends at {self.limit:.3g} {unit}"
        )


@dataclass(frozen=True, eq=False)
class PlausibleBox:
    """Constraint that keeps bodies plausible. Made by `plausible_box`; `notes` tell where a file widens it."""

    sides: tuple[Side, ...]
    notes: tuple[str, ...] = ()
    extra: int = field(default=0, init=False)

    def blocks(self, robot: Robot) -> list[Block]:
        """Cones over the standard parameters."""
        return [side.block for side in self.sides]


def plausible_box(
    robot: Robot, prior: Prior, *, mass: float | None = None, link_masses: Mapping[str, float] | None = None
) -> PlausibleBox:
    """The box around the bodies of a prior.

    Parameters
    ----------
    robot : Robot
        The robot.
    prior : Prior
        Its a-priori bodies, physically consistent.
    mass : float, optional
        Known total mass in kg of the bodies that the parameters describe.
    link_masses : mapping of str to float, optional
        Known masses in kg by link.

    Returns
    -------
    PlausibleBox

    Examples
    --------
    >>> import dynid
    >>> from dynid.feasibility import consistent_prior
    >>> from dynid.feasibility.box import plausible_box
    >>> robot = dynid.load_robot("twolink")
    >>> box = plausible_box(robot, consistent_prior(robot))
    >>> [f"{side.link} {side.what} {side.limit:.3g}" for side in box.sides][:2]
    ['link1 mass 0.2', 'link1 mass 4']
    """
    given = dict(link_masses or {})
    sizes, lengths = link_sizes(robot), _lengths(robot)
    carries, total = last_links(robot), prior.mass(robot)
    sides: list[Side] = []
    compact: list[str] = []
    for i in robot.parameter_links:
        name = robot.links[i].name
        first = robot.parameter_names.index(f"m_{name}")
        expected = float(prior.parameters[first])
        low, high = _UNKNOWN if prior.complete else _ASSUMED if name in prior.assumed else MASS_RANGE
        tool = 0.0
        if name in given:
            expected, low, high = given[name], 1.0 - _KNOWN, 1.0 + _KNOWN
        elif name in carries:
            tool = _TOOL * total
        sides += _mass_sides(robot, name, Quantity.MASS, low * expected, high * expected + tool, [first])
        body, middle = prior.parameters[first : first + 10], sizes[name].box.mean(axis=0)
        further = max(lengths.values()) if tool else 0.0
        reach = max(_REACH * max(sizes[name].half, 0.5 * lengths[name]) + further, _AS_FAR * _gyration(body, middle))
        radius = min(_COMPACT * lengths[name], _AS_COMPACT * _gyration(body))
        compact += [name] if radius < _COMPACT * lengths[name] else []
        sides += _shape_sides(robot, name, expected, middle, reach, radius)
    if mass is not None:
        columns = [i for i, p in enumerate(robot.layout) if p.inertial and p.symbol == "m"]
        sides += _mass_sides(robot, "", Quantity.TOTAL, (1 - _KNOWN) * mass, (1 + _KNOWN) * mass, columns)
    notes = [f"a-priori bodies more compact than a fifth of their link: {', '.join(compact)}"] if compact else []
    return PlausibleBox(tuple(sides), tuple(notes))


def boxed_set(robot: Robot, constraints: Constraints, box: PlausibleBox | None) -> FeasibleSet:
    """The feasible set of a robot inside a box; the blocks of the box come last."""
    parts = constraint_set(constraints)
    return feasible_set(robot, parts if box is None else (*parts, box))


def walls_of(box: PlausibleBox, found: Fit, unboxed: Callable[[], Array]) -> tuple[Wall, ...]:
    """Sides of the box against which the data push a fit; `unboxed` gives the parameters (p,) without the box."""
    robot, last = found.feasible.robot, len(found.feasible.blocks)
    unknowns = found.solution.x[: found.feasible.size + found.feasible.extra]
    own = slice(last - len(box.sides), last)
    touched = []
    for side, block, dual in zip(box.sides, found.feasible.blocks[own], found.solution.duals[own], strict=True):
        force = float(np.linalg.norm(dual * (1.0 if block.unit is None else block.unit)))
        if block.slack(unknowns) < min(force, _TOUCHING):
            touched.append((side, force))
    if not touched:
        return ()
    wanted = unboxed()
    walls = [Wall(s.link, s.what.value, _figure(s, wanted, robot), s.limit, 2.0 * f) for s, f in touched]
    return tuple(sorted(walls, key=lambda wall: -wall.gain))


def wall_notes(walls: Sequence[Wall]) -> list[str]:
    """The walls that hold most, in sentences."""
    more = [f"{len(walls) - _TOLD} more walls of the plausible box are touched"] if len(walls) > _TOLD else []
    return [str(wall) for wall in walls[:_TOLD]] + more


def last_links(robot: Robot) -> frozenset[str]:
    """Links of a robot on a fixed base that carry no other, and so perhaps a tool."""
    if robot.base != "fixed":
        return frozenset()
    carrying = {joint.parent for joint in robot.joints}
    return frozenset(robot.links[i].name for i in robot.parameter_links if i not in carrying)


def _lengths(robot: Robot) -> dict[str, float]:
    """Size in m of every link: the diagonal of its shapes, else the distance of its joints, where that is not tiny."""
    out = {}
    for name, size in link_sizes(robot).items():
        out[name] = 2.0 * size.half if size.shaped else float(np.linalg.norm(size.box[1] - size.box[0]))
    typical = float(np.mean([x for x in out.values() if x > 0])) if any(out.values()) else 1.0
    return {name: max(x, _SHORT * typical) for name, x in out.items()}


def _mass_sides(robot: Robot, link: str, what: Quantity, low: float, high: float, columns: Sequence[int]) -> list[Side]:
    """Bounds of a sum of masses."""
    row = columns_of(robot, np.ones((1, len(columns))), columns)
    words = f"{link}: mass" if link else "total mass"
    unit = np.array([high])
    return [
        Side(link, what, low, Block("nonnegative", row, np.array([-low]), f"{words} >= {low:.3g}", unit)),
        Side(link, what, high, Block("nonnegative", -row, np.array([high]), f"{words} <= {high:.3g}", unit)),
    ]


def _shape_sides(robot: Robot, link: str, mass: float, middle: Array, reach: float, radius: float) -> list[Side]:
    """The mass lies within reach of the middle of the link, and is not concentrated in a point."""
    first = robot.parameter_names.index(f"m_{link}")
    columns = range(first, first + 10)
    # Columns m, h, Ixx, Ixy, Iyy, Ixz, Iyz, Izz; the trace of the second moments is half that of the inertia.
    trace = np.array([0, 0, 0, 0, 0.5, 0, 0.5, 0, 0, 0.5])
    about = trace + np.array([middle @ middle, *(-2.0 * middle), 0, 0, 0, 0, 0, 0])
    inside = -about
    inside[0] += reach**2
    ball = Block(
        "nonnegative",
        columns_of(robot, inside[None], columns),
        np.zeros(1),
        f"{link}: mass within reach",
        np.array([mass * reach**2]),
    )
    compact = _not_compact(robot, link, columns, mass, radius, trace)
    return [Side(link, Quantity.REACH, reach, ball), Side(link, Quantity.GYRATION, radius, compact)]


def _not_compact(robot: Robot, link: str, columns: range, mass: float, radius: float, trace: Array) -> Block:
    """The matrix inequality of the least radius of gyration."""
    parts = np.zeros((10, 4, 4))
    parts[:, 0, 0] = trace / radius**2
    parts[0, 0, 0] -= 1.0
    for k in range(3):
        parts[0, k + 1, k + 1] = 1.0
        parts[k + 1, 0, k + 1] = parts[k + 1, k + 1, 0] = 1.0 / radius
    matrix = sparse.csr_array(columns_of(robot, svec(parts).T, columns))
    return Block("psd", matrix, np.zeros(10), f"{link}: radius of gyration >= {radius:.2g} m", svec(mass * np.eye(4)))


def _figure(side: Side, parameters: Array, robot: Robot) -> float:
    """The bounded figure of parameters, in kg or m."""
    if side.what is Quantity.TOTAL:
        return float(sum(x for x, p in zip(parameters, robot.layout, strict=True) if p.inertial and p.symbol == "m"))
    first = robot.parameter_names.index(f"m_{side.link}")
    body = parameters[first : first + 10]
    if side.what is Quantity.MASS:
        return float(body[0])
    if abs(body[0]) < 1e-12:
        return 0.0
    return _gyration(body, link_sizes(robot)[side.link].box.mean(axis=0) if side.what is Quantity.REACH else None)


def _gyration(body: Array, about: Array | None = None) -> float:
    """Root mean square distance in m of the mass of a body from a point, by default its centre of mass."""
    point = body[1:4] / body[0] if about is None else about
    second = 0.5 * (body[4] + body[6] + body[9]) - 2.0 * point @ body[1:4] + point @ point * body[0]
    return float(np.sqrt(max(second / body[0], 0.0)))
