"""Contacts of a robot with its surroundings: where they are, which motion they prevent, and their Jacobians."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.frames import base_placement, frame_jacobian, placement_in_base
from dynid.errors import DataError, ModelError
from dynid.robot.model import Robot

__all__ = ["Contact", "ContactKind", "as_contacts", "check_rank", "contact_jacobian", "foot_velocities"]

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
    >>> from dynid.identification.legs import Contact
    >>> Contact(frame="FL_foot", radius=0.02).rows
    3
    """

    frame: str
    kind: ContactKind = ContactKind.POINT
    radius: float = 0.0
    axis: int = 1

    def __post_init__(self) -> None:
        if self.kind not in list(ContactKind):
            raise DataError(f"contact '{self.frame}' is '{self.kind}': use {', '.join(ContactKind)}")
        object.__setattr__(self, "kind", ContactKind(self.kind))
        if self.radius < 0 or (self.radius > 0 and self.kind is not ContactKind.POINT):
            raise DataError(f"contact '{self.frame}': only a point has a radius, and it is not negative")
        if self.axis not in (0, 1, 2):
            raise DataError(f"contact '{self.frame}': the axis of a line is 0, 1 or 2, got {self.axis}")

    @property
    def rows(self) -> int:
        """Number of components of its force and moment."""
        return _ROWS[self.kind]


def as_contacts(robot: Robot, feet: Sequence[Contact | str]) -> tuple[Contact, ...]:
    """Contacts from frames or contacts, each known to the robot and named once."""
    if isinstance(feet, str) or not feet:
        raise DataError("feet is a list of frames or contacts, and at least one is needed")
    out = tuple(foot if isinstance(foot, Contact) else Contact(frame=foot) for foot in feet)
    known = [x.name for x in robot.links] + [x.name for x in robot.frames]
    for contact in out:
        if contact.frame not in known:
            raise ModelError(
                f"robot '{robot.name}' has no link or frame '{contact.frame}' for a foot, known: {', '.join(known)}"
            )
    names = [contact.frame for contact in out]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"foot '{twice}' is named twice")
    if robot.base != "floating":
        raise DataError(f"robot '{robot.name}' has a {robot.base} base; legs need a floating one: base='floating'")
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
        raise DataError(f"robot '{robot.name}' has no gravity, so no direction is up")
    turned = base_placement(robot, q)[:, :3, :3] @ placement_in_base(robot, q, frame)[:, :3, :3]
    return np.asarray(np.einsum("nji,j->ni", turned, -gravity / size))


def foot_velocities(robot: Robot, q: Array, v: Array, contact: Contact) -> Array:
    """Linear velocity (N, 3) in m/s of the point of contact, in the axes of its frame."""
    point = replace(contact, kind=ContactKind.POINT)
    return np.asarray(np.einsum("nij,nj->ni", _one(robot, q, point), v))


def check_rank(robot: Robot, q: Array, contacts: Sequence[Contact]) -> None:
    """Raise a DataError if the Jacobian of contacts has less than full rank in most of the samples."""
    rows = sum(contact.rows for contact in contacts)
    chosen = q[:: max(1, len(q) // _RANK_SAMPLES)]
    singular = np.linalg.svd(contact_jacobian(robot, chosen, contacts), compute_uv=False)
    full = min(rows, robot.nv)
    rank = int(np.median(np.count_nonzero(singular > _RANK * singular[:, :1], axis=1)))
    if rank < full or rows > robot.nv:
        names = ", ".join(contact.frame for contact in contacts)
        raise DataError(
            f"the contact Jacobian of {names} has rank {rank} instead of {rows}: two of these feet are at one place, "
            "their kind transmits more than their legs can move, or a leg is straight"
        )
