"""Joint positions in tables: which columns they are, and in which unit.

An angle is in degrees where it lies outside the joint's range, or beyond one and a half turns, as radians and inside as
degrees; a slide likewise in millimetres.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynid.errors import InvalidValue, MissingJoints, TooFew, UnknownName, did_you_mean, keyword
from dynid.geometry.formats.piece import UNITS, Settings
from dynid.reading import whole_number
from dynid.recording.names import Group, groups, named_unit
from dynid.recording.table import Table, shown

__all__ = ["joint_columns", "joint_positions", "positions_of"]

Array = NDArray[np.float64]

# Words of columns that name or number joints and say nothing else, and units.
_PLAIN = {"q", "j", "joint", "joints", "axis", "a", "position", "positions", "pos", "angle", "theta", "actual"}
_PLAIN |= {"rad", "deg", "degrees", "m", "mm"}
# Beyond this an angle of an arm is not in radians, and beyond the second surely not.
_TURNS, _SURELY = 3 * np.pi, 30.0
# How far a joint may be beyond its range: ranges of files are narrower than those of robots by rounding.
_BEYOND = 0.05
_LONG = 10.0


def joint_columns(table: Table, settings: Settings) -> dict[int, str]:
    """Columns of a table with joint positions, by the place of the joint among the independent ones.

    Raises
    ------
    UnknownName
        If a joint column that was named is not there.
    MissingJoints
        If a joint that moves the frame has no column.
    """
    names, robot, needed = table.names, settings.robot, settings.carrying
    if settings.joints:
        columns = [_column(name, names, table.file) for name in settings.joints]
        return dict(zip(_in_order(len(columns), settings, table.file), columns, strict=True))
    if not table.header:
        return dict(zip(_in_order(len(names), settings, table.file), names, strict=True))
    exact = {k: name for k, name in enumerate(robot.coordinates) if name in names}
    if set(needed) <= set(exact):
        return exact
    found = groups(names, robot.coordinates, bare=True, first=True)
    for group in sorted((g for g in found if _of_positions(g)), key=lambda g: -len(g.columns)):
        if not group.numbered and all(robot.coordinates[k] in group.columns for k in needed):
            return {k: group.columns[name] for k, name in enumerate(robot.coordinates) if name in group.columns}
        if group.numbered and len(group.columns) in (len(needed), robot.n):
            columns = [group.columns[key] for key in sorted(group.columns, key=lambda x: (x is None, x))]
            at = _in_order(len(columns), settings, table.file)
            settings.note(f"{columns[0]} ... {columns[-1]} are the joints in the robot's order", table.file)
            return dict(zip(at, columns, strict=True))
    missing = [robot.coordinates[k] for k in needed if k not in exact]
    raise MissingJoints(
        f"there are no positions of {shown(missing)}, which move '{settings.frame}': the columns are {shown(names)}; "
        f"name the joint columns in the robot's order, {keyword('joints')}",
        missing,
        where=table.file,
    )


def _column(name: str, names: Sequence[str], file: str) -> str:
    """A column by its name, or by its number from 0."""
    if name in names:
        return name
    number = whole_number(name)
    if number is not None and number < len(names):
        return names[number]
    raise UnknownName(
        f"there is no column '{name}' among {shown(names)}{did_you_mean(name, names)}", "joints", where=file
    )


def _of_positions(group: Group) -> bool:
    """Whether columns may be joint positions."""
    return not group.doubles and (group.signal == "q" or set(group.words) <= _PLAIN)


def _in_order(count: int, settings: Settings, file: str) -> tuple[int, ...]:
    """The joints that so many columns in order are."""
    needed, n = settings.carrying, settings.robot.n
    if count == len(needed):
        return needed
    if count == n:
        return tuple(range(n))
    joints = ", ".join(settings.robot.coordinates[k] for k in needed)
    raise MissingJoints(
        f"{count} columns of joint positions cannot be told apart: the robot has {n} joints, and '{settings.frame}' is "
        f"moved by {len(needed)}, {joints}",
        where=file,
    )


def joint_positions(table: Table, columns: dict[int, str], settings: Settings) -> Array:
    """Joint positions (N, n) in rad and m; joints without a column stand at zero."""
    values = table.values(list(columns.values()))
    if not len(values):
        raise TooFew("there is no posture", "q", where=table.file)
    named = {k: unit for k, name in columns.items() if (unit := named_unit("q", name)) is not None}
    return positions_of(values, tuple(columns), settings, table.file, named)


def positions_of(
    values: Array, at: Sequence[int], settings: Settings, file: str, named: dict[int, str] | None = None
) -> Array:
    """Joint positions (N, n) in rad and m from columns (N, k) of some joints, with units guessed and told."""
    robot, q = settings.robot, np.zeros((len(values), settings.robot.n))
    if not len(values):
        raise TooFew("there is no posture", "q", where=file)
    kinds = {j.name: j.kind for j in robot.joints}
    for what, kind in (("q", "revolute"), ("slide", "prismatic")):
        mine = [c for c, k in enumerate(at) if kinds[robot.coordinates[k]] == kind]
        if mine:
            unit = _unit(what, values[:, mine], [at[c] for c in mine], settings, file, named or {})
            q[:, [at[c] for c in mine]] = UNITS[what][unit] * values[:, mine]
    still = [robot.coordinates[k] for k in range(robot.n) if k not in at]
    if still:
        settings.note(f"there are no positions of {shown(still)}: they count as zero", file)
    return q


def _unit(what: str, values: Array, at: Sequence[int], settings: Settings, file: str, named: dict[int, str]) -> str:
    """Unit of columns: as stated, as their names say, or as the ranges of the joints say."""
    si, other = list(UNITS[what])[:2]
    words = {"q": "angles", "slide": "slides"}[what]
    largest = float(np.nanmax(np.abs(values), initial=0.0))
    surely = _SURELY if what == "q" else _LONG
    if what in settings.units:
        unit = settings.units[what]
        if unit == si and largest > surely:
            raise InvalidValue(
                f"{words} of the joints reach {largest:.4g} {si}, so they are in {other}: "
                f"{keyword('units', {what: other})}",
                "units",
                where=file,
            )
        return unit
    said = {unit for k, unit in named.items() if k in at and unit in UNITS[what]}
    if said:
        return said.pop()
    limits = [settings.robot.limits[settings.robot.coordinates[k]] for k in at]
    low, high = np.array([x.lower for x in limits]), np.array([x.upper for x in limits])

    def outside(factor: float) -> float:
        x = factor * values
        return float(np.mean(((x < low - _BEYOND) | (x > high + _BEYOND)).any(axis=1)))

    beyond, inside = outside(1.0), outside(UNITS[what][other])
    limit = _TURNS if what == "q" else _LONG
    if (largest > limit or beyond > 0.5) and inside <= beyond:
        settings.note(
            f"{words} of the joints are read as {other}: as {si} they are beyond what the robot reaches", file
        )
        return other
    settings.note(f"{words} of the joints are read as {si}", file)
    if beyond > 0:
        settings.note("postures lie outside the joint ranges of the robot file", file)
    return si
