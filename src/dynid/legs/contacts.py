"""Contacts of a robot with its surroundings: their Jacobians, and what contact modes and sensors can identify."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.dynamics.frames import base_placement, frame_jacobian, placement_in_base
from dynid.dynamics.functions import regressor
from dynid.errors import (
    Duplicate,
    DynidError,
    InvalidValue,
    MissingArgument,
    ModelError,
    NotApplicable,
    UnknownName,
    keyword,
)
from dynid.markup import html_table
from dynid.parameters.base import BaseParameters, random_states, structure_of
from dynid.robot.model import Robot
from dynid.terminal import rendered, table_of

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "Contact",
    "ContactKind",
    "Gait",
    "LegSensors",
    "LegsTable",
    "as_contacts",
    "check_rank",
    "contact_jacobian",
    "legs_base_parameters",
    "legs_table",
    "standing_states",
    "usual_gaits",
]

Array = NDArray[np.float64]

# Singular values of a contact Jacobian below this share of the largest are zero.
_RANK = 1e-6
_RANK_SAMPLES = 50


class ContactKind(StrEnum):
    """What a contact transmits: a force, a force and two moments, or a force and three moments."""

    POINT = "point"
    LINE = "line"
    SURFACE = "surface"


_ROWS = {ContactKind.POINT: 3, ContactKind.LINE: 5, ContactKind.SURFACE: 6}


@dataclass(frozen=True, kw_only=True)
class Contact:
    """A place of the robot that can touch its surroundings, with an unknown force.

    Attributes
    ----------
    frame : str
        Link or named frame of the robot at the contact.
    kind : ContactKind or str
        "point" (three forces), "line" (a force and the moments across the line) or "surface" (force and moment).
    radius : float
        Radius (m) of a ball whose centre is the frame: the contact is that far below it, opposite to gravity.
    axis : int
        Axis of the frame (0, 1, 2) along which a line contact extends; it transmits no moment about that axis.

    Raises
    ------
    DataError
        If the kind is unknown, or the radius is negative or given for a contact that is no point.

    Examples
    --------
    >>> from dynid.legs import Contact
    >>> Contact(frame="FL_foot", radius=0.02).rows
    3
    """

    frame: str
    kind: ContactKind = ContactKind.POINT
    radius: float = 0.0
    axis: int = 1

    def __post_init__(self) -> None:
        if self.kind not in list(ContactKind):
            raise UnknownName(f"contact '{self.frame}' is '{self.kind}': use {', '.join(ContactKind)}", "kind")
        object.__setattr__(self, "kind", ContactKind(self.kind))
        if self.radius < 0 or (self.radius > 0 and self.kind is not ContactKind.POINT):
            raise InvalidValue(f"contact '{self.frame}': only a point has a radius, and it is not negative", "radius")
        if self.axis not in (0, 1, 2):
            raise InvalidValue(f"contact '{self.frame}': the axis of a line is 0, 1 or 2, got {self.axis}", "axis")

    @property
    def rows(self) -> int:
        """Number of components of its force and moment."""
        return _ROWS[self.kind]


def as_contacts(robot: Robot, feet: Sequence[Contact | str]) -> tuple[Contact, ...]:
    """Contacts from frames or contacts, each known to the robot and named once."""
    if isinstance(feet, str) or not feet:
        raise MissingArgument("feet is a list of frames or contacts, and at least one is needed", "feet")
    out = tuple(foot if isinstance(foot, Contact) else Contact(frame=foot) for foot in feet)
    known = [x.name for x in robot.links] + [x.name for x in robot.frames]
    for contact in out:
        if contact.frame not in known:
            raise ModelError(
                f"robot '{robot.name}' has no link or frame '{contact.frame}' for a foot, known: {', '.join(known)}",
                "frame",
                code="unknown_name",
            )
    names = [contact.frame for contact in out]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise Duplicate(f"foot '{twice}' is named twice", "feet")
    if robot.base != "floating":
        raise NotApplicable(
            f"robot '{robot.name}' has a {robot.base} base; legs need a floating one: {keyword('base', 'floating')}"
        )
    return out


def contact_jacobian(robot: Robot, q: Array, contacts: Sequence[Contact]) -> Array:
    """Jacobian (N, rows, nv) of the velocities that the contacts prevent, for q (N, nq)."""
    return np.concatenate([np.zeros((len(q), 0, robot.nv)), *(_one(robot, q, contact) for contact in contacts)], axis=1)


def _one(robot: Robot, q: Array, contact: Contact) -> Array:
    """Rows of one contact, in the axes of its frame."""
    full = frame_jacobian(robot, q, contact.frame, reference="local")
    if contact.kind is ContactKind.SURFACE:
        return full
    if contact.kind is ContactKind.LINE:
        return np.delete(full, 3 + contact.axis, axis=1)
    if not contact.radius:
        return full[:, :3]
    offset = -contact.radius * up_in_frame(robot, q, contact.frame)
    # Velocity of a point at an offset: v + w x r = v - r x w.
    return full[:, :3] - np.cross(offset[:, :, None], full[:, 3:], axis=1)


def up_in_frame(robot: Robot, q: Array, frame: str) -> Array:
    """Unit vectors (N, 3) against gravity in the axes of a frame."""
    gravity = np.asarray(robot.gravity, dtype=float)
    size = float(np.linalg.norm(gravity))
    if size == 0.0:
        raise NotApplicable(f"robot '{robot.name}' has no gravity, so no direction is up")
    turned = base_placement(robot, q)[:, :3, :3] @ placement_in_base(robot, q, frame)[:, :3, :3]
    return np.asarray(np.einsum("nji,j->ni", turned, -gravity / size))


def check_rank(robot: Robot, q: Array, contacts: Sequence[Contact]) -> None:
    """Raise a DataError if the Jacobian of contacts has less than full rank in most of the samples."""
    rows = sum(contact.rows for contact in contacts)
    chosen = q[:: max(1, len(q) // _RANK_SAMPLES)]
    singular = np.linalg.svd(contact_jacobian(robot, chosen, contacts), compute_uv=False)
    full = min(rows, robot.nv)
    rank = int(np.median(np.count_nonzero(singular > _RANK * singular[:, :1], axis=1)))
    if rank < full or rows > robot.nv:
        names = ", ".join(contact.frame for contact in contacts)
        raise InvalidValue(
            f"the contact Jacobian of {names} has rank {rank} instead of {rows}: two of these feet are at one place, "
            "their kind transmits more than their legs can move, or a leg is straight",
            "feet",
        )


Mode = tuple[Contact, ...]

# Step of the finite differences along the motion, of fourth order: truncation and rounding are both about 1e-12.
_STEP = 1e-3
# A base whose six velocities are determined by its standing legs: smallest singular value relative to the largest.
_DETERMINED = 1e-6


class LegSensors(StrEnum):
    """What is measured beside the encoders."""

    TORQUE = "torques"
    TORQUE_IMU = "torques + IMU"
    TORQUE_IMU_FORCE = "torques + IMU + foot forces"
    IMU_FORCE = "IMU + foot forces"


@dataclass(frozen=True, eq=False)
class Gait:
    """Contact modes that occur together.

    Attributes
    ----------
    name : str
        Name of the gait.
    modes : tuple of tuple of Contact
        Contacts of each mode; () is a flight.
    level : bool
        Whether the trunk stays level, as on a stand.
    """

    name: str
    modes: tuple[Mode, ...]
    level: bool = False


def standing_states(
    robot: Robot, mode: Mode, samples: int, seed: int, *, level: bool = False
) -> tuple[Array, Array, Array]:
    """Random q, v and a in which the contacts of a mode do not move: J v = 0 and J a + J' v = 0."""
    q, v, a = random_states(robot, samples, seed)
    if level:
        q[:, 3:7] = [0.0, 0.0, 0.0, 1.0]
    if not mode:
        return q, v, a
    J = contact_jacobian(robot, q, mode)
    inverse = np.linalg.pinv(J)
    v = v - np.einsum("nij,nj->ni", inverse, np.einsum("nij,nj->ni", J, v))
    turns = {k: contact_jacobian(robot, _moved(q, k * _STEP * v), mode) for k in (-2, -1, 1, 2)}
    rate = (8.0 * (turns[1] - turns[-1]) - (turns[2] - turns[-2])) / (12.0 * _STEP)
    wanted = -np.einsum("nij,nj->ni", rate, v)
    a = a + np.einsum("nij,nj->ni", inverse, wanted - np.einsum("nij,nj->ni", J, a))
    return q, v, a


def _moved(q: Array, turn: Array) -> Array:
    """Configurations after a small motion (N, nv); the position of the base does not matter."""
    rotation = scipy.spatial.transform.Rotation
    out = q.copy()
    out[:, 3:7] = (rotation.from_quat(q[:, 3:7]) * rotation.from_rotvec(turn[:, 3:6])).as_quat()
    out[:, 7:] += turn[:, 6:]
    return out


def mode_rows(robot: Robot, mode: Mode, sensors: LegSensors, q: Array, v: Array, a: Array) -> Array:
    """Equations (k, p) over the standard parameters that a mode and a set of sensors give for these states."""
    Y = regressor(robot, q, v, a)
    J = contact_jacobian(robot, q, mode)
    if sensors is LegSensors.TORQUE_IMU_FORCE:
        return Y.reshape(-1, Y.shape[2])
    if sensors is LegSensors.IMU_FORCE:
        return Y[:, :6].reshape(-1, Y.shape[2])
    if sensors is LegSensors.TORQUE and not _determined(J):
        return np.zeros((0, Y.shape[2]))
    if not mode:
        return Y.reshape(-1, Y.shape[2])
    u, _, _ = np.linalg.svd(np.swapaxes(J, 1, 2), full_matrices=True)
    free = u[:, :, J.shape[1] :]
    return np.einsum("nij,nip->njp", free, Y).reshape(-1, Y.shape[2])


def _determined(J: Array) -> bool:
    """Whether contacts at rest determine the velocity of the base from that of the joints."""
    if J.shape[1] < 6:
        return False
    singular = np.linalg.svd(J[:, :, :6], compute_uv=False)
    return bool(np.median(singular[:, -1] / singular[:, 0]) > _DETERMINED)


def legs_base_parameters(
    robot: Robot,
    modes: Sequence[Mode],
    *,
    sensors: LegSensors = LegSensors.TORQUE_IMU,
    level: bool = False,
    seed: int = 0,
) -> BaseParameters:
    """Base parameters that contact modes identify together.

    Parameters
    ----------
    robot : Robot
        The robot, with a floating base.
    modes : sequence of tuple of Contact
        Contacts of each mode; () is a flight.
    sensors : LegSensors
        What is measured beside the encoders. Without an inertial unit, a mode counts only if its feet determine the
        motion of the base.
    level : bool
        Whether the trunk stays level.
    seed : int
        Seed of the random motion.

    Returns
    -------
    BaseParameters
        Its channels are the modes.

    Raises
    ------
    DynidError
        If nothing is identifiable, or the rank is not clear.
    """
    p = len(robot.layout)
    factor = np.zeros((0, p))
    for k, mode in enumerate(modes):
        rows = max(1, robot.nv - sum(contact.rows for contact in mode))
        states = standing_states(robot, mode, max(4 * p // rows, 40), seed + k, level=level)
        block = mode_rows(robot, mode, sensors, *states)
        if len(block):
            factor = scipy.linalg.qr(np.vstack([factor, block]), mode="r")[0][:p]
    if not len(factor):
        raise DynidError(
            f"nothing of '{robot.name}' is identifiable: its feet never determine the motion of its base",
            code="not_identifiable",
        )
    return structure_of(robot, factor, tuple(mode_name(mode) for mode in modes))


def mode_name(mode: Mode) -> str:
    """Name of a contact mode."""
    return "+".join(contact.frame for contact in mode) or "flight"


def usual_gaits(robot: Robot, feet: Sequence[Contact | str]) -> tuple[Gait, ...]:
    """Gaits of a robot with any number of feet: held at the trunk, standing, lifting, trotting, all of them.

    Parameters
    ----------
    robot : Robot
        The robot, with a floating base.
    feet : sequence of Contact or str
        Its feet; those of a trot are every other diagonal: the first and the last, and those between them.

    Returns
    -------
    tuple of Gait
    """
    on = as_contacts(robot, feet)
    held = Gait("trunk held, legs in the air", ((Contact(frame=robot.links[0].name, kind=ContactKind.SURFACE),),), True)
    stand = Gait(f"stand on {len(on)}", (on,))
    lifts = Gait("lifts", tuple(tuple(c for c in on if c is not up) for up in on))
    gaits = [held, stand, lifts]
    if len(on) == 4:
        gaits.append(Gait("trot", ((on[0], on[3]), (on[1], on[2]))))
    return (*gaits, Gait("jump", ((),)), Gait("stand + lifts", (*stand.modes, *lifts.modes)))


@dataclass(frozen=True, eq=False)
class LegsTable:
    """Number of identifiable combinations by gait and by sensors.

    Attributes
    ----------
    robot : Robot
        The robot.
    gaits : tuple of str
        The gaits.
    sensors : tuple of LegSensors
        The sets of sensors.
    counts : ndarray of int (gait, sensors)
        Number of base parameters; 0 where nothing is identifiable.
    mass : ndarray of bool (gait, sensors)
        Whether the mass of the whole robot is identifiable.
    structures : mapping of (str, LegSensors) to BaseParameters
        The base parameters where there are any.
    """

    robot: Robot
    gaits: tuple[str, ...]
    sensors: tuple[LegSensors, ...]
    counts: NDArray[np.int_]
    mass: NDArray[np.bool_]
    structures: Mapping[tuple[str, LegSensors], BaseParameters]

    def _cells(self) -> list[tuple[str, ...]]:
        return [
            (gait, *(f"{n}{'*' if m else ''}" if n else "-" for n, m in zip(counts, mass, strict=True)))
            for gait, counts, mass in zip(self.gaits, self.counts, self.mass, strict=True)
        ]

    def to_frame(self) -> pl.DataFrame:
        """The counts as a table.

        Returns
        -------
        polars.DataFrame
            One row per gait and set of sensors: gait, sensors, count and mass (whether the total mass is identifiable).
        """
        import polars as pl

        rows = [
            (gait, str(sensor), int(self.counts[i, j]), bool(self.mass[i, j]))
            for i, gait in enumerate(self.gaits)
            for j, sensor in enumerate(self.sensors)
        ]
        return pl.DataFrame(rows, schema={"gait": str, "sensors": str, "count": int, "mass": bool}, orient="row")

    def summary(self) -> str:
        """The table; a star marks sets that identify the total mass.

        Returns
        -------
        str
        """
        table = table_of(
            f"{self.robot.name}: identifiable combinations of {len(self.robot.layout)} parameters",
            "gait",
            *self.sensors,
            text=("gait",),
        )
        for row in self._cells():
            table.add_row(*row)
        return rendered(table, "* with the total mass; - nothing, because the motion of the base is unknown")

    def to_dict(self) -> dict[str, dict[str, int]]:
        """Counts by gait and by sensors.

        Returns
        -------
        dict
        """
        return {
            gait: {str(s): int(n) for s, n in zip(self.sensors, row, strict=True)}
            for gait, row in zip(self.gaits, self.counts, strict=True)
        }

    def _repr_html_(self) -> str:
        return html_table(f"{self.robot.name}: identifiable combinations", ("gait", *self.sensors), self._cells())


def legs_table(
    robot: Robot,
    feet: Sequence[Contact | str],
    gaits: Sequence[Gait] | None = None,
    sensors: Sequence[LegSensors] = tuple(LegSensors),
    *,
    seed: int = 0,
) -> LegsTable:
    """Identifiable combinations of a legged robot by gait and by sensors.

    Parameters
    ----------
    robot : Robot
        The robot, with a floating base.
    feet : sequence of Contact or str
        Its feet.
    gaits : sequence of Gait, optional
        The gaits, by default `usual_gaits`.
    sensors : sequence of LegSensors
        The sets of sensors, by default all.
    seed : int
        Seed of the random motion.

    Returns
    -------
    LegsTable
    """
    on = as_contacts(robot, feet)
    chosen = usual_gaits(robot, on) if gaits is None else tuple(gaits)
    if not chosen:
        raise MissingArgument("no gait is given", "gaits")
    total = total_mass_row(robot)
    counts = np.zeros((len(chosen), len(sensors)), dtype=int)
    mass = np.zeros(counts.shape, dtype=bool)
    found: dict[tuple[str, LegSensors], BaseParameters] = {}
    q = random_states(robot, 8, seed)[0]
    for i, gait in enumerate(chosen):
        for j, kind in enumerate(sensors):
            try:
                base = legs_base_parameters(robot, gait.modes, sensors=kind, level=gait.level, seed=seed)
            except DynidError:
                if kind is not LegSensors.TORQUE or any(
                    _determined(contact_jacobian(robot, q, mode)) for mode in gait.modes
                ):
                    raise
                continue
            found[gait.name, kind] = base
            counts[i, j] = base.count
            mass[i, j] = shows(base, total)
    return LegsTable(robot, tuple(g.name for g in chosen), tuple(sensors), counts, mass, found)


def total_mass_row(robot: Robot) -> Array:
    """Row (p,) that sums all masses."""
    return np.array([1.0 if p.inertial and p.symbol == "m" else 0.0 for p in robot.layout])


def shows(base: BaseParameters, row: Array) -> bool:
    """Whether a combination (p,) of standard parameters follows from the base parameters."""
    rest = row - base.matrix.T @ np.linalg.lstsq(base.matrix.T, row, rcond=None)[0]
    return bool(np.linalg.norm(rest) < 1e-6 * np.linalg.norm(row))
