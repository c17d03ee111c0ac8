"""Independent chains of a robot on a fixed base, such as the legs on a bolted trunk."""

from __future__ import annotations

from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from dynid.errors import NotApplicable
from dynid.robot.model import Robot

__all__ = ["Chain", "independent_chains"]

Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Chain:
    """A part of a robot whose motion does not depend on that of the other parts.

    Attributes
    ----------
    robot : Robot
        The part as a robot of its own, on a fixed base.
    joints : ndarray of int, shape (n,)
        Its joints among the independent joints of the whole robot.
    parameters : ndarray of int, shape (p,)
        Its standard parameters among those of the whole robot.
    """

    robot: Robot
    joints: Index
    parameters: Index


_CHAINS: WeakKeyDictionary[Robot, tuple[Chain, ...]] = WeakKeyDictionary()


def independent_chains(robot: Robot) -> tuple[Chain, ...]:
    """Parts of a robot on a fixed base that move independently of each other.

    A floating or instrumented base is fixed. Joints that mimic each other, and joints on a common shaft of a drive
    term, belong to one part.

    Parameters
    ----------
    robot : Robot
        A robot without closed loops.

    Returns
    -------
    tuple of Chain
        In the order of their first joints.

    Raises
    ------
    DataError
        If the robot has closed loops.
    """
    if robot.loops:
        raise NotApplicable(f"robot '{robot.name}' has closed loops: its actuators cannot be simulated as a tree")
    found = _CHAINS.get(robot)
    if found is None:
        found = _CHAINS[robot] = _split(robot)
    return found


def _split(robot: Robot) -> tuple[Chain, ...]:
    """The chains of a robot."""
    names = {name: i for i, name in enumerate(robot.coordinates)}
    group = list(range(robot.n))  # number of the chain of every independent joint

    def join(joints: list[int]) -> None:
        old, new = {group[i] for i in joints}, min(group[i] for i in joints)
        group[:] = [new if g in old else g for g in group]

    leader = [names[j.name if j.mimic is None else j.mimic.leader] for j in robot.joints]
    for i, joint in enumerate(robot.joints):
        if joint.parent > 0:
            join([leader[i], leader[joint.parent - 1]])
    for term in robot.drives:
        join([term.owner, *np.flatnonzero(term.direction).tolist()])
    return tuple(_part(robot, leader, [i for i in range(robot.n) if group[i] == g]) for g in sorted(set(group)))


def _part(robot: Robot, leader: list[int], joints: list[int]) -> Chain:
    """The chain with these independent joints."""
    chosen = [i for i in range(len(robot.joints)) if leader[i] in joints]
    body = {0: 0} | {i + 1: k + 1 for k, i in enumerate(chosen)}
    drives = [
        replace(t, direction=t.direction[joints], owner=joints.index(t.owner))
        for t in robot.drives
        if t.owner in joints
    ]
    part = Robot(
        robot.name,
        (robot.links[0], *(robot.links[i + 1] for i in chosen)),
        tuple(replace(robot.joints[i], parent=body[robot.joints[i].parent]) for i in chosen),
        tuple(drives),
        robot.gravity,
        source=robot.source,
    )
    column = {name: k for k, name in enumerate(robot.parameter_names)}
    return Chain(part, np.array(joints, np.int64), np.array([column[x] for x in part.parameter_names], np.int64))
