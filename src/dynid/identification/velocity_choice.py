"""Stribeck friction and smooth Coulomb friction of every joint, for method "auto".

Their velocities enter nonlinearly. A short list of them, relative to the velocities of the joint, gives one column
each, so that every alternative is a linear model. A law is taken only where it is better with a confidence of 95 %, and
its velocity is then searched between those of the list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
# Velocities around that of a law that was taken, which lie between those of the list.
_BETWEEN = (0.6, 0.8, 1.25, 1.7)


@dataclass(frozen=True, eq=False)
class _Law:
    """A law of one joint: its velocity, the term that it adds, and the parameter that this term takes the place of."""

    velocity: float
    unit: str
    term: DriveTerm
    replaces: str = ""

    @property
    def words(self) -> str:
        return f"{'smooth Coulomb' if self.replaces else 'Stribeck'}, {self.velocity:.2g} {self.unit}"

    def trial(self, number: int) -> DriveTerm:
        """The term under a name of its own, for a robot that has all of them."""
        return replace(self.term, shaft=f"{self.term.shaft} law {number}")

    def at(self, velocity: float) -> _Law:
        """The same law with another velocity."""
        other = replace(self.term, slope=1.0 / velocity) if self.replaces else replace(self.term, velocity=velocity)
        return replace(self, velocity=velocity, term=other)


def choose_velocity_laws(
    robot: Robot, free: Sequence[int], seen: Observation, count: int, weight: float, choices: list[Choice]
) -> Robot:
    """The robot with the velocity laws that surely predict better; `seen` is an observation of the robot.

    The velocity of a law that was taken is then searched between the values of the list.
    """
    fast = np.quantile(np.abs(np.vstack([motion.v for motion in seen.motions])), _FAST, axis=0)
    laws = {joint: list(_laws(robot, joint, float(fast[joint]))) for joint in free if fast[joint] > 0}
    if not laws:
        return robot
    chosen: dict[int, _Law] = {}
    compared = _Compared(robot, laws, seen, count, weight)
    for joint, of_joint in laws.items():
        best, losses = compared.loss(chosen), {law: compared.loss(chosen | {joint: law}) for law in of_joint}
        least = min(losses, key=lambda law: losses[law].error)
        better = losses[least].surely_better_than(best)
        what = f"velocity law of {robot.coordinates[joint]}"
        choices.append(Choice(what, "none", best.error, not better))
        choices += [Choice(what, law.words, found.error, better and law is least) for law, found in losses.items()]
        if better:
            chosen[joint] = least
    if not chosen:
        return robot
    between = {joint: [law, *(law.at(share * law.velocity) for share in _BETWEEN)] for joint, law in chosen.items()}
    compared = _Compared(robot, between, seen, count, weight)
    for joint, of_joint in between.items():
        losses = {law: compared.loss(chosen | {joint: law}) for law in of_joint}
        chosen[joint] = min(losses, key=lambda law: losses[law].error)
        what = f"velocity law of {robot.coordinates[joint]}, finer"
        choices += [Choice(what, law.words, found.error, law is chosen[joint]) for law, found in losses.items()]
    replaced = [law.replaces for law in chosen.values() if law.replaces]
    robot = robot.without(*replaced) if replaced else robot
    return robot.with_terms(*(law.term for law in chosen.values()))


class _Compared:
    """Laws of several joints on the same parts of the time: every alternative is a choice of columns."""

    def __init__(
        self, robot: Robot, laws: Mapping[int, Sequence[_Law]], seen: Observation, count: int, weight: float
    ) -> None:
        self._names, self._weight = frozenset(robot.parameter_names), weight
        self._trials = {law: law.trial(k) for of_joint in laws.values() for k, law in enumerate(of_joint)}
        self._robot = robot.with_terms(*self._trials.values())
        base = base_parameters(self._robot, channels=seen.base.channels)
        self._parts = parts_of(observe_motions(base, seen.motions, seen.signals, seen.device), count)

    def loss(self, chosen: Mapping[int, _Law]) -> Loss:
        """Cross-validated torque errors with the chosen law of every joint."""
        replaced = {law.replaces for law in chosen.values()}
        names = self._names - replaced | {self._trials[law].name for law in chosen.values()}
        every = np.eye(len(self._robot.layout))
        return self._parts.cross_validated(
            self._weight, every[:, [name in names for name in self._robot.parameter_names]]
        )


def _laws(robot: Robot, joint: int, fast: float) -> Iterator[_Law]:
    """The laws of a joint that exceeds the velocity `fast` during 5 % of the time."""
    name = robot.coordinates[joint]
    linear = any(j.name == name and j.kind == "prismatic" for j in robot.joints)
    unit = "m/s" if linear else "rad/s"
    stribeck = _Law(fast, unit, robot.joint_term(joint, "fs", velocity=fast))
    yield from (stribeck.at(share * fast) for share in _STRIBECK)
    coulomb = next((t for t in robot.drives if t.name == f"fc_{name}" and not t.slope), None)
    if coulomb is not None:
        yield from (_Law(fast, unit, coulomb, coulomb.name).at(share * fast) for share in _SMOOTH)
