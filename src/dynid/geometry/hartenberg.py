"""Denavit-Hartenberg tables of a calibrated chain, with standard deviations.

From the z axis of the base over the joint axes to that of the tool, each axis follows from the one before by

    Rz(theta) Tz(d) Tx(a) Rx(alpha)                   where the axes are not parallel
    Rz(theta) Tz(d) Tx(a) Rx(alpha) Ry(beta)          where they are parallel in the file (Hayati), d held
    Tx(a) Ty(b) Rx(alpha) Ry(beta)                    where they are one in the file, theta and d held

with the position of a joint added to its theta, or to d where it slides. Between nearly parallel axes the common
normal, and with it theta, a and d of plain tables, has no place of its own: their standard deviations are then large.
A standard table ends each row with alpha, a modified one (Craig, Khalil) begins it with the a and alpha before.

Sources: Denavit and Hartenberg, A Kinematic Notation for Lower-Pair Mechanisms (1955); Hayati and Mirmirani, Improving
the Absolute Positioning Accuracy of Robot Manipulators (1985); Khalil and Dombre, Modeling, Identification and Control
of Robots (2002), chapter 11.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.frames import frame_on_link
from dynid.errors import InvalidShape, NotApplicable, UnknownName
from dynid.geometry.real import HELD, RealRobot
from dynid.geometry.tangents import Tangent, cross, dot, norm
from dynid.geometry.unknowns import Unknown
from dynid.robot.model import Robot
from dynid.robot.spatial import axis_rotation, inverse_placement, placement

__all__ = ["SYMBOLS", "DhRow", "DhTable", "checked_covariance", "dh_table"]

Array = NDArray[np.float64]

SYMBOLS = ("theta", "d", "a", "b", "alpha", "beta")
_UNITS = {"theta": "rad", "d": "m", "a": "m", "b": "m", "alpha": "rad", "beta": "rad"}
# Axes of the file are parallel within this angle (rad), and one within this distance (m).
_PARALLEL, _ONE = 0.02, 1e-3
# Axes that meet within this distance (m) have a normal of either sign.
_TOUCH = 1e-6


@dataclass(frozen=True)
class DhRow:
    """One row of a table.

    Attributes
    ----------
    joint : str
        Joint whose position is added to theta or d; "base" for the row before the first joint and "tool" for that
        after the last.
    kind : str
        "revolute" or "prismatic"; empty for base and tool.
    values : dict of str to float
        Parameters (rad and m) by their symbol, those of `SYMBOLS` that the row has.
    std : dict of str to float
        Their standard deviations; zero for those that are held.
    """

    joint: str
    kind: str
    values: dict[str, float]
    std: dict[str, float]


@dataclass(frozen=True, eq=False)
class DhTable:
    """A Denavit-Hartenberg table.

    Attributes
    ----------
    convention : {"standard", "modified"}
        Order of the parameters of a row: theta, d, a, b, alpha, beta or a, b, alpha, beta, theta, d.
    rows : tuple of DhRow
        From the base to the tool.
    covariance : ndarray, shape (R, R)
        Of all values, row by row.
    notes : tuple of str
        Which axes are parallel, and what that means.
    """

    convention: Literal["standard", "modified"]
    rows: tuple[DhRow, ...]
    covariance: Array
    notes: tuple[str, ...]

    def placement(self, positions: ArrayLike) -> Array:
        """Placement (4, 4) of the tool in the base, for positions of the table's joints, followers included.

        Parameters
        ----------
        positions : array_like, shape (joints,)
            Positions (rad or m) as the encoders read.

        Returns
        -------
        ndarray, shape (4, 4)
        """
        left, out = list(np.asarray(positions, dtype=float)), np.eye(4)
        for row in self.rows:
            value = {s: row.values.get(s, 0.0) for s in SYMBOLS}
            if row.kind:
                value["theta" if row.kind == "revolute" else "d"] += left.pop(0)
            turn = placement(axis_rotation((0, 0, 1), value["theta"]), (0.0, 0.0, value["d"]))
            bent = axis_rotation((1, 0, 0), value["alpha"]) @ axis_rotation((0, 1, 0), value["beta"])
            move = placement(bent, (value["a"], value["b"], 0.0))
            out = out @ turn @ move if self.convention == "standard" else out @ move @ turn
        return out

    def text(self) -> str:
        """The table as text: each value with its standard deviation, in m and rad, and the notes."""
        used = [s for s in SYMBOLS if any(s in row.values for row in self.rows)]
        cells = [["joint", *(f"{s} ({_UNITS[s]})" for s in used)]]
        for row in self.rows:
            cells.append([row.joint, *(_cell(row, s) for s in used)])
        widths = [max(len(line[k]) for line in cells) for k in range(len(cells[0]))]
        lines = ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in cells]
        return "\n".join([*lines, "", *self.notes]) + "\n"


def _cell(row: DhRow, symbol: str) -> str:
    if symbol not in row.values:
        return ""
    std = row.std[symbol]
    more = "" if std == 0 or not np.isfinite(std) else f" +- {std:.2g}"
    return f"{row.values[symbol] + 0.0:.9g}{more}"


def dh_table(
    robot: Robot,
    unknowns: Sequence[Unknown],
    values: ArrayLike,
    covariance: ArrayLike | None = None,
    *,
    frame: str,
    convention: Literal["standard", "modified"] = "standard",
    hayati: bool = True,
) -> DhTable:
    """Denavit-Hartenberg table of the chain from the base to a frame, with standard deviations.

    Parameters
    ----------
    robot : Robot
        The robot of the file.
    unknowns : sequence of Unknown
        What differs; kinds that depend on the posture are left out.
    values : array_like, shape (K,)
        By how much.
    covariance : array_like, shape (K, K), optional
        Covariance of the values; standard deviations are zero without it.
    frame : str
        Link or frame that is the tool.
    convention : {"standard", "modified"}
        Standard, or modified as by Craig and Khalil.
    hayati : bool
        Use Hayati's angle beta between joints whose axes are parallel in the file. Without it theta, d and a of nearly
        parallel axes change by metres and radians with the smallest tilt, and have standard deviations of that size.

    Returns
    -------
    DhTable

    Raises
    ------
    UnknownName
        For another convention.
    NotApplicable
        If two axes are exactly parallel and `hayati` is false, or if no joint carries the frame.

    Examples
    --------
    >>> import dynid
    >>> from dynid.geometry import Unknown, dh_table
    >>> robot = dynid.load_robot("puma560")
    >>> longer = Unknown("position", "joint3", "x", "m")
    >>> table = dh_table(robot, [longer], [0.001], [[1e-8]], frame="link6")
    >>> [f"{row.joint}: {row.values['a']:.4f} +- {row.std['a']:.4f} m" for row in table.rows if row.std.get("a")]
    ['joint2: 0.4328 +- 0.0001 m']
    """
    if convention not in ("standard", "modified"):
        raise UnknownName(f"convention '{convention}' is unknown: use standard or modified", "convention")
    chain = _chain(robot, frame)
    if not chain:
        raise NotApplicable(f"no joint of robot '{robot.name}' carries '{frame}'", "frame")
    x = np.array([v if u.kind in HELD else 0.0 for u, v in zip(unknowns, np.asarray(values, float), strict=True)])
    c = checked_covariance(covariance, len(x))
    nominal = _lines(RealRobot(robot, tuple(unknowns), np.zeros(len(x))), chain, frame)
    lines = _lines(RealRobot(robot, tuple(unknowns), x), chain, frame)
    names = ["base", *(robot.joints[i].name for i in chain), "tool"]
    steps, notes = _steps(lines, nominal, names, hayati)
    held = np.array([u.kind in HELD for u in unknowns], dtype=bool)
    return _table(robot, chain, steps, (c * np.outer(held, held), convention), notes)


def checked_covariance(covariance: ArrayLike | None, count: int) -> Array:
    """A covariance (K, K) of the unknowns; zero where none is given."""
    c = np.zeros((count, count)) if covariance is None else np.asarray(covariance, dtype=float)
    if c.shape != (count, count):
        raise InvalidShape(f"covariance must have shape ({count}, {count}), got {c.shape}", "covariance")
    return c


def _chain(robot: Robot, frame: str) -> list[int]:
    """Joints that carry a frame, from the base on."""
    out: list[int] = []
    link = frame_on_link(robot, frame)[0]
    while link > 0:
        out.insert(0, link - 1)
        link = robot.joints[link - 1].parent
    return out


@dataclass(frozen=True, eq=False)
class _Line:
    """An axis: a point on it and its direction; of base and tool also the direction of x."""

    point: Tangent
    direction: Tangent
    x: Tangent | None = None


def _lines(real: RealRobot, chain: list[int], frame: str) -> list[_Line]:
    """Axes of base, joints and tool at zero positions of all joints."""
    robot, width = real.robot, len(real.values)
    # Followers stand where their encoders read zero.
    rest = _at_zero(robot)
    where = RealRobot(rest, real.unknowns, real.values).place(
        np.zeros((1, rest.n)), [*(rest.links[i + 1].name for i in chain), frame]
    )
    zero, one = np.zeros((3, width)), np.eye(3)
    out = [_Line(Tangent(np.zeros(3), zero), Tangent(one[2], zero), Tangent(one[0], zero))]
    for i in chain:
        joint, placed = robot.joints[i], where[robot.links[i + 1].name]
        back = inverse_placement(np.asarray(joint.mount))
        point, direction = placed.point(back[:3, 3]), placed.vector(back[:3, :3] @ joint.axis)
        out.append(_Line(point[0], direction[0]))
    tool = where[frame]
    out.append(_Line(tool.point(np.zeros(3))[0], tool.vector(one[2])[0], tool.vector(one[0])[0]))
    return out


def _at_zero(robot: Robot) -> Robot:
    """The robot with every joint on its own, so that all can stand at zero."""
    joints = tuple(replace(j, mimic=None) for j in robot.joints)
    return replace(robot, joints=joints, drives=(), transmission=None)


def _atan2(y: Tangent, x: Tangent) -> Tangent:
    square = x.value**2 + y.value**2
    slope = (y.slope * x.value[..., None] - x.slope * y.value[..., None]) / square[..., None]
    return Tangent(np.arctan2(y.value, x.value), slope)


def _scaled(scalar: Tangent, vector: Tangent) -> Tangent:
    """A vector times a scalar, both with derivatives."""
    slope = scalar.slope[None, :] * vector.value[:, None] + scalar.value * vector.slope
    return Tangent(scalar.value * vector.value, slope)


@dataclass(frozen=True, eq=False)
class _Frame:
    """Axes x, z and origin of a frame."""

    x: Tangent
    z: Tangent
    origin: Tangent

    @property
    def y(self) -> Tangent:
        return cross(self.z, self.x)


Step = dict[str, Tangent]


def _steps(lines: list[_Line], nominal: list[_Line], names: list[str], hayati: bool) -> tuple[list[Step], list[str]]:
    """Parameters from each axis to the next, with those to the tool at last; and notes."""
    width = lines[0].point.slope.shape[1]
    at, was = _start(lines[0]), _start(nominal[0])
    out: list[Step] = []
    notes = []
    for k, line in enumerate(lines[1:]):
        # The file decides on forms and signs, so that its table and that of the real robot compare.
        flat = nominal[k + 1] if hayati else line
        ends = k in (0, len(lines) - 2)
        form = _form(nominal[k], nominal[k + 1]) if hayati or ends else "plain"
        before = was if hayati else at
        if form == "plain" and not np.any(np.cross(at.z.value, line.direction.value)):
            raise NotApplicable(
                f"the axes of {names[k]} and {names[k + 1]} are exactly parallel, which only beta can hold", "hayati"
            )
        sign = _sign(before, flat) if form == "plain" else 1.0
        # The row before the tool holds its length.
        depth = float(dot(flat.point - before.origin, before.z).value) if k > 0 and ends else 0.0
        if hayati:
            _, was = _advance(was, flat, form, sign, depth, width)
        step, at = _advance(at, line, form, sign, depth, width)
        out.append(step)
        if form != "plain":
            notes.append(_NOTES[form].format(names[k], names[k + 1]))
        elif abs(np.sin(step["alpha"].value)) < np.sin(_PARALLEL):
            tilt = abs(float(np.sin(step["alpha"].value)))
            notes.append(_NOTES["near"].format(names[k], names[k + 1], tilt))
    last = lines[-1].x
    assert last is not None
    out.append({"theta": _atan2(dot(last, at.y), dot(last, at.x)), "d": dot(lines[-1].point - at.origin, at.z)})
    return out, notes


def _start(line: _Line) -> _Frame:
    assert line.x is not None
    return _Frame(line.x, line.direction, line.point)


_NOTES = {
    "parallel": "The axes of {} and {} are parallel in the file: Hayati's beta takes the place of d.",
    "one": "The axes of {} and {} are one in the file: a, b, alpha and beta take the place of theta, d, a and alpha.",
    "near": "The axes of {} and {} are parallel within {:.2g} rad: theta, d and a are known as badly as they say.",
}


def _form(a: _Line, b: _Line) -> str:
    """How an axis of the file follows from the one before."""
    if np.linalg.norm(np.cross(a.direction.value, b.direction.value)) > np.sin(_PARALLEL):
        return "plain"
    away = b.point.value - a.point.value
    away = away - a.direction.value * (a.direction.value @ away)
    return "one" if np.linalg.norm(away) < _ONE else "parallel"


def _sign(frame: _Frame, line: _Line) -> float:
    """Sign of the common normal: the one along which the next axis lies, or that is nearer to x."""
    away = line.point.value - frame.origin.value
    normal = np.cross(frame.z.value, line.direction.value)
    along = float(normal @ away) / float(np.linalg.norm(normal))
    if abs(along) > _TOUCH:
        return float(np.sign(along))
    return -1.0 if float(normal @ frame.x.value) < 0 else 1.0


def _advance(frame: _Frame, line: _Line, form: str, sign: float, depth: float, width: int) -> tuple[Step, _Frame]:
    """Parameters from a frame to an axis, and the frame on it."""
    z, n = frame.z, line.direction
    if form in ("parallel", "one"):
        return _parallel(frame, line, form == "one", depth, width)
    normal = cross(z, n)
    length = norm(normal)
    x = _scaled(Tangent(np.array(sign), np.zeros(width)) / length, normal)
    away = line.point - frame.origin
    square = length * length
    d = dot(cross(away, n), normal) / square
    t = dot(cross(away, z), normal) / square
    step = {
        "theta": _atan2(dot(x, frame.y), dot(x, frame.x)),
        "d": d,
        "a": dot(away, x),
        "alpha": _atan2(dot(normal, x), dot(z, n)),
    }
    return step, _Frame(x, n, line.point + _scaled(t, n))


def _parallel(frame: _Frame, line: _Line, one: bool, depth: float, width: int) -> tuple[Step, _Frame]:
    """The same with beta, for axes that are parallel: the axis is met in the plane at a given depth."""
    z, n = frame.z, line.direction
    nothing = Tangent(np.array(0.0), np.zeros(width))
    start = frame.origin + z * depth
    t = dot(start - line.point, z) / dot(n, z)
    origin = line.point + _scaled(t, n)
    r = origin - start
    step = {"theta": nothing, "d": nothing + depth}
    if one:
        x = frame.x
        step |= {"a": dot(r, frame.x), "b": dot(r, frame.y)}
    else:
        length = norm(r)
        flat = r - _scaled(dot(r, z), z)
        x = _scaled(Tangent(np.array(1.0), np.zeros(width)) / length, flat)
        step |= {"theta": _atan2(dot(x, frame.y), dot(x, frame.x)), "a": length}
    y = cross(z, x)
    up, aside, over = dot(n, z), dot(n, y), dot(n, x)
    root = norm(Tangent(np.stack([up.value, aside.value]), np.stack([up.slope, aside.slope])))
    step |= {"alpha": _atan2(-aside, up), "beta": _atan2(over, root)}
    # x of the new frame: cos(beta) x + sin(beta) (sin(alpha) y - cos(alpha) z)
    bent = _scaled(root, x) - _scaled(over / root, _scaled(up, z) + _scaled(aside, y))
    return step, _Frame(bent, n, origin)


def _table(
    robot: Robot,
    chain: list[int],
    steps: list[Step],
    of: tuple[Array, Literal["standard", "modified"]],
    notes: list[str],
) -> DhTable:
    """Rows of the convention from the parameters between the axes."""
    covariance, convention = of
    kinds = ["", *(robot.joints[i].kind for i in chain)]
    names = ["base", *(robot.joints[i].name for i in chain)]
    groups: list[tuple[str, str, Step]] = []
    if convention == "standard":
        groups = [(n, k, s) for n, k, s in zip(names, kinds, steps[:-1], strict=True)]
        groups.append(("tool", "", steps[-1]))
    else:
        before: Step = {}
        for name, kind, step in zip([*names, "tool"], [*kinds, ""], steps, strict=True):
            groups.append((name, kind, before | {s: step[s] for s in ("theta", "d")}))
            before = {s: t for s, t in step.items() if s not in ("theta", "d")}
    slopes = np.array([t.slope for _, _, step in groups for t in step.values()])
    own = slopes @ covariance @ slopes.T
    std = iter(np.sqrt(np.maximum(np.diag(own), 0.0)))
    rows = []
    for name, kind, step in groups:
        errors = {s: float(next(std)) for s in step}
        rows.append(DhRow(name, kind, {s: float(t.value) for s, t in step.items()}, errors))
    return DhTable(convention, tuple(rows), own, tuple(notes))
