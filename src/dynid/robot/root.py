"""Change of the base link: a humanoid modelled from its stance foot, for example."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ModelError
from dynid.robot.inertia import move_inertia
from dynid.robot.mechanism import BaseKind
from dynid.robot.model import Robot
from dynid.robot.parts import Frame, Joint, Link
from dynid.robot.spatial import inverse_placement

__all__ = ["rooted_at"]

Array = NDArray[np.float64]


def rooted_at(robot: Robot, frame: str, *, base: BaseKind = "instrumented") -> Robot:
    """The same robot with another link as its base.

    Joints between the old and the new base are reversed. Names, positions, limits and drives are kept; joints are in
    the order of the new tree.

    Parameters
    ----------
    robot : Robot
        The robot.
    frame : str
        Name of a link, or of a frame on a link. It becomes the base frame. The gravity vector is not rotated, so its
        z axis should point upwards.
    base : {"fixed", "floating", "instrumented"}
        Type of the new base.

    Returns
    -------
    Robot

    Raises
    ------
    ModelError
        If there is no such link or frame, or the robot has custom terms (they depend on the order of the joints).
    """
    body, on_body = _find(robot, frame)
    back = inverse_placement(on_body)
    touching: list[list[int]] = [[] for _ in robot.links]
    for j, joint in enumerate(robot.joints):
        touching[joint.parent].append(j)
        touching[j + 1].append(j)
    first = robot.links[body]
    number = {body: 0}
    links: list[Link] = [replace(first, inertia=move_inertia(first.inertia, back))]
    joints: list[Joint] = []

    def walk(at: int) -> None:
        for j in sorted(touching[at]):
            joint = robot.joints[j]
            other = joint.parent if at == j + 1 else j + 1
            if other in number:
                continue
            if at == j + 1:
                start, far = inverse_placement(joint.mount), inverse_placement(joint.placement)
                joint = replace(joint, axis=-joint.axis, mount=far)
            else:
                start = joint.placement
            joints.append(replace(joint, parent=number[at], placement=back @ start if at == body else start))
            links.append(robot.links[other])
            number[other] = len(links) - 1
            walk(other)

    walk(body)
    frames = tuple(
        Frame(f.name, number[f.link], back @ f.placement if f.link == body else f.placement) for f in robot.frames
    )
    order = [robot.coordinates.index(joint.name) for joint in joints if joint.mimic is None]
    if any(term.function is not None for term in robot.drives):
        raise ModelError(
            f"robot '{robot.name}' has custom terms, which depend on the order of its joints; remove them first",
            code="not_applicable",
        )
    drives = tuple(replace(t, direction=t.direction[order], owner=order.index(t.owner)) for t in robot.drives)
    transmission = robot.transmission
    if transmission is not None:
        transmission = replace(transmission, coupling=transmission.coupling[order])
    return replace(
        robot,
        links=tuple(links),
        joints=tuple(joints),
        frames=frames,
        drives=drives,
        transmission=transmission,
        base=base,
    )


def _find(robot: Robot, name: str) -> tuple[int, Array]:
    """Link index and placement on that link of a frame or link."""
    for f in robot.frames:
        if f.name == name:
            return f.link, np.array(f.placement)
    return robot.link_index(name), np.eye(4)
