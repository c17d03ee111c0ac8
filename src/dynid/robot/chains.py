"""Joints with several degrees of freedom, as chains of revolute and prismatic joints with virtual links between them.

A ball joint is three revolute joints, a floating joint three prismatic ones and a ball, a screw a revolute joint whose
slide mimics it: every part of dynid then works on them without a further kind of joint. Three angles are singular
where the middle one reaches 90 degrees, so the middle axis is the one that usually turns least: that along the body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.robot.parts import UNLIMITED, Joint, Limits, Link, Mimic
from dynid.robot.spatial import axis_rotation

__all__ = ["Step", "add_chain", "ball", "ball_angles", "floating", "planar", "screw", "translations"]

Array = NDArray[np.float64]
_LETTERS = "xyz"


class Step(NamedTuple):
    """One joint of a chain: what its name adds to that of the whole, kind, axis, and its ratio to the first step."""

    suffix: str
    kind: Literal["revolute", "prismatic"]
    axis: Array
    ratio: float | None = None


def ball(along: ArrayLike | None = None) -> list[Step]:
    """Three rotations; the middle one about the axis nearest to `along`, the direction in which the body lies."""
    direction = np.abs(np.asarray(along if along is not None else np.zeros(3), dtype=float))
    middle = int(np.argmax(direction)) if direction.max() > 1e-6 else 1
    order = ((middle + 2) % 3, middle, (middle + 1) % 3)
    return [Step(f"_r{_LETTERS[i]}", "revolute", np.eye(3)[i]) for i in order]


def ball_angles(steps: Sequence[Step], rotation: ArrayLike) -> list[float]:
    """The three angles of a ball (rad) that make a rotation matrix."""
    r = np.asarray(rotation, dtype=float)
    first, middle, last = (step.axis for step in steps)  # a right-handed triple
    # The image of the last axis gives the first two angles; what then remains is the third.
    image = r @ last
    one = float(np.arctan2(-(middle @ image), last @ image))
    level = axis_rotation(first, -one) @ image
    two = float(np.arctan2(first @ level, last @ level))
    left = axis_rotation(middle, -two) @ axis_rotation(first, -one) @ r
    three = float(np.arctan2(middle @ left @ first, first @ left @ first))
    return [one, two, three]


def translations() -> list[Step]:
    """Three translations."""
    return [Step(f"_{_LETTERS[i]}", "prismatic", np.eye(3)[i]) for i in range(3)]


def floating() -> list[Step]:
    """Three translations and three rotations."""
    return [*translations(), *ball()]


def planar(normal: ArrayLike) -> list[Step]:
    """Two translations in the plane with that normal, and the rotation about it."""
    z = np.asarray(normal, dtype=float) / np.linalg.norm(normal)
    start = int(np.argmin(np.abs(z))) if np.count_nonzero(z) > 1 else (int(np.argmax(np.abs(z))) + 1) % 3
    x = np.eye(3)[start]
    x = x - z * (z @ x)
    x /= np.linalg.norm(x)
    return [Step("_x", "prismatic", x), Step("_y", "prismatic", np.cross(z, x)), Step("_rz", "revolute", z)]


def screw(axis: ArrayLike, lead: float) -> list[Step]:
    """A rotation and the translation that follows it, `lead` metres per radian."""
    direction = np.asarray(axis, dtype=float)
    return [Step("", "revolute", direction), Step("_slide", "prismatic", direction, lead)]


def add_chain(
    joints: list[Joint],
    links: list[Link],
    name: str,
    steps: Sequence[Step],
    parent: int,
    place: Array,
    mount: Array,
    link: Link,
    limits: Mapping[str, Limits] | None = None,
) -> list[str]:
    """Add the joints of a chain from link `parent` to `link`; returns their names. `limits` are by suffix."""
    known = limits or {}
    names = [name + step.suffix for step in steps]
    for k, step in enumerate(steps):
        last = k == len(steps) - 1
        mimic = None if step.ratio is None else Mimic(names[0], step.ratio)
        joints.append(
            Joint(
                names[k],
                step.kind,
                parent,
                place if k == 0 else np.eye(4),
                step.axis,
                mount if last else np.eye(4),
                known.get(step.suffix, UNLIMITED),
                mimic,
            )
        )
        links.append(link if last else Link(f"{names[k]}.virtual", np.zeros(10), virtual=True))
        parent = len(links) - 1
    return names
