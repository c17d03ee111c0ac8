"""Stribeck friction and smooth Coulomb friction of every joint, for method "auto".

Their velocities enter nonlinearly. A short list of them, relative to the velocities of the joint, gives one column
each, so that every alternative is a linear model. A law is taken only where it is better with a confidence of 95 %.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.identification.estimators.solution import Choice
from dynid.identification.observation import Observation, observe_motions
from dynid.identification.parts import Loss, parts_of
from dynid.parameters.base import base_parameters
from dynid.robot.drives import DriveTerm
from dynid.robot.model import Robot

__all__ = ["choose_velocity_laws"]

Array = NDArray[np.float64]

# Velocities of the laws relative to the velocity that a joint exceeds during 5 % of the time.
_STRIBECK, _SMOOTH, _FAST = (0.05, 0.15, 0.5), (0.03, 0.1, 0.3), 0.95


@dataclass(frozen=True, eq=False)
class _Law:
    """A law of one joint in words, the term that it adds, and the parameter that this term takes the place of."""

    words: str
    term: DriveTerm
    replaces: str = ""

    def trial(self, number: int) -> DriveTerm:
        """The term under a name of its own, for a robot that has all of them."""
        return replace(self.term, shaft=f"{self.term.shaft} law {number}")


def choose_velocity_laws(
    robot: Robot, free: Sequence[int], seen: Observation, count: int, weight: float, choices: list[Choice]
) -> Robot:
    """The robot with the velocity laws that surely predict better; `seen` is an observation of the robot."""
    fast = np.quantile(np.abs(np.vstack([motion.v for motion in seen.motions])), _FAST, axis=0)
    laws = {joint: list(_laws(robot, joint, float(fast[joint]))) for joint in free if fast[joint] > 0}
    if not laws:
        return robot
    trials = {law: law.trial(k) for of_joint in laws.values() for k, law in enumerate(of_joint)}
    rich = robot.with_terms(*trials.values())
    base = base_parameters(rich, channels=seen.base.channels)
    parts = parts_of(observe_motions(base, seen.motions, seen.signals), count)

    def loss(names: frozenset[str]) -> Loss:
        every = np.eye(len(rich.layout))
        return parts.cross_validated(weight, every[:, [name in names for name in rich.parameter_names]])

    names = frozenset(robot.parameter_names)
    best = loss(names)
    for joint, of_joint in laws.items():
        changed = {law: names - {law.replaces} | {trials[law].name} for law in of_joint}
        losses = {law: loss(changed[law]) for law in of_joint}
        least = min(losses, key=lambda law: losses[law].error)
        better = losses[least].surely_better_than(best)
        what = f"velocity law of {robot.coordinates[joint]}"
        choices.append(Choice(what, "none", best.error, not better))
        choices += [Choice(what, law.words, found.error, better and law is least) for law, found in losses.items()]
        if better:
            best, names = losses[least], changed[least]
            robot = robot.without(least.replaces) if least.replaces else robot
            robot = robot.with_terms(least.term)
    return robot


def _laws(robot: Robot, joint: int, fast: float) -> Iterator[_Law]:
    """The laws of a joint that exceeds the velocity `fast` during 5 % of the time."""
    name = robot.coordinates[joint]
    linear = any(j.name == name and j.kind == "prismatic" for j in robot.joints)
    unit = "m/s" if linear else "rad/s"
    for share in _STRIBECK:
        term = robot.joint_term(joint, "fs", velocity=share * fast)
        yield _Law(f"Stribeck, {share * fast:.2g} {unit}", term)
    coulomb = next((t for t in robot.drives if t.name == f"fc_{name}" and not t.slope), None)
    for share in _SMOOTH if coulomb is not None else ():
        assert coulomb is not None
        term = replace(coulomb, slope=1.0 / (share * fast))
        yield _Law(f"smooth Coulomb, {share * fast:.2g} {unit}", term, coulomb.name)
