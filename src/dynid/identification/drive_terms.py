"""The drive terms of the default model: every one with a physical meaning is in it from the start.

Each joint whose torque is measured has a rotor inertia, viscous friction of both directions, Coulomb friction and an
offset. The velocity of Stribeck friction is not linear, and near rest filters and counts of encoders make the sign of a
velocity uncertain, so that the recorded Coulomb friction rises smoothly where that of the robot is a step. Both enter
through a short list of velocities, one column each, and the joints that need one follow from the marginal likelihood.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError
from dynid.identification.observation import Observation, fold
from dynid.identification.row_stream import Block
from dynid.parameters.base import BaseParameters
from dynid.robot.drives import FRICTION_SYMBOLS, DriveTerm, TermKind
from dynid.robot.model import Robot
from dynid.robot.parts import checked

__all__ = [
    "VelocityLaw",
    "carried",
    "free_joints",
    "picked",
    "rich_robot",
    "sharp",
    "velocity_laws",
    "widened",
    "with_laws",
]

Array = NDArray[np.float64]

# Friction of a joint. Viscous friction of joints that share a motor forms one matrix, which has no directions.
_RICH, _COUPLED = "viscous-asymmetric+coulomb+offset", "viscous+coulomb+offset"
# Velocities of the laws relative to the velocity that a joint exceeds during 5 % of the time, a factor of 1.5 apart.
_STRIBECK = tuple(0.02 * 1.5**k for k in range(10))
# Widths of the smooth step, on the same scale: about the velocities that are left out as too slow.
_SMOOTH = tuple(0.004 * 1.5**k for k in range(5))


def free_joints(robot: Robot, channels: Sequence[str]) -> tuple[int, ...]:
    """Joints whose torque is measured and whose friction is not modelled on the motor side."""
    held = np.array([name not in channels for name in robot.coordinates])
    for term in robot.drives:
        if term.motor and not term.cross_only and term.symbol != "Ia":
            held |= np.abs(term.direction[[name not in robot.passive for name in robot.tree_coordinates]]) > 0.5
    return tuple(int(j) for j in np.flatnonzero(~held))


def rich_robot(robot: Robot, free: Sequence[int]) -> Robot:
    """The robot with all drive terms on the joints that are free to have them; the others keep theirs."""
    if not free:
        return robot
    names = [robot.coordinates[j] for j in free]
    owners = {robot.tree_coordinates.index(name) for name in names}

    def replaced(term: DriveTerm) -> bool:
        return term.owner in owners and term.kind != TermKind.STRIBECK

    own = {"Ia", *FRICTION_SYMBOLS}
    kept = [t for t in robot.drives if t.symbol in own and not t.motor and t.function is None and not replaced(t)]
    coupled = {j for t in robot.drives if t.cross_only for j in np.flatnonzero(t.direction)}
    laws = {name: _COUPLED if robot.tree_coordinates.index(name) in coupled else _RICH for name in names}
    rich = robot.with_drives(laws, rotor_inertia=names)
    return rich.with_terms(*(t for t in kept if t.name not in rich.parameter_names))


@dataclass(frozen=True, eq=False)
class VelocityLaw:
    """Stribeck friction of a joint at one velocity, or Coulomb friction that the recording shows smooth up to one.

    `trial` is the same term under a name of its own, for a robot that has all laws side by side. The column of the
    smooth step takes the place of that of the sharp one; the robot keeps the sharp one.
    """

    joint: int
    term: DriveTerm
    trial: DriveTerm

    @property
    def words(self) -> str:
        """The law in words."""
        unit = "m/s" if self.term.linear else "rad/s"
        if self.term.is_coulomb:
            return f"the recording blurs the step of Coulomb friction below {1 / self.term.slope:.2g} {unit}"
        return f"Stribeck friction below {self.term.velocity:.2g} {unit}"


def velocity_laws(robot: Robot, free: Sequence[int], fast: Array) -> list[VelocityLaw]:
    """The laws of joints that exceed the velocities `fast` (joint,) during 5 % of the time."""
    given = {t.owner for t in robot.drives if t.kind == TermKind.STRIBECK}
    out = []
    for joint in free:
        name, highest = robot.coordinates[joint], float(fast[joint])
        if highest <= 0 or robot.tree_coordinates.index(name) in given:
            continue
        terms = [robot.joint_term(name, "fs", velocity=share * highest) for share in _STRIBECK]
        step = next(t for t in robot.drives if t.name == f"fc_{name}")
        if not step.slope:
            terms += [replace(step, slope=1 / (share * highest), value=0.0) for share in _SMOOTH]
        out += [VelocityLaw(joint, x, replace(x, shaft=f"{x.shaft} law {k}")) for k, x in enumerate(terms)]
    return out


def with_laws(robot: Robot, laws: Sequence[VelocityLaw]) -> Robot:
    """The robot with velocity laws as they are recorded; a smooth step keeps the a-priori value of the sharp one."""
    own = {law.term.name: law.term for law in laws}
    drives = [replace(own.pop(t.name), value=t.value) if t.name in own else t for t in robot.drives]
    return replace(robot, drives=(*drives, *own.values()))


def sharp(observation: Observation, laws: Sequence[VelocityLaw]) -> Observation:
    """The observation as one of the robot whose Coulomb friction is a step, where the recording has it smooth."""
    smooth = {law.term.name for law in laws if law.term.is_coulomb}
    drives = tuple(replace(t, slope=0.0) if t.name in smooth else t for t in observation.robot.drives)
    return replace(observation, base=replace(observation.base, robot=replace(observation.robot, drives=drives)))


def widened(base: BaseParameters, robot: Robot, own: Sequence[str]) -> BaseParameters:
    """The base parameters of a robot with further terms, each of which is a base parameter by itself.

    Laws of the same joint that differ little in their velocity are nearly collinear, so that the rank of a regressor
    with all of them is not clear from samples. Their functions are independent, which is all that is needed here.
    """
    place = {name: i for i, name in enumerate(robot.parameter_names)}
    names = base.robot.parameter_names
    old = np.array([place[name] for name in names])
    added = [place[name] for name in own if name not in set(names)]
    matrix = np.zeros((base.count + len(added), len(place)))
    matrix[: base.count, old] = base.matrix
    matrix[np.arange(base.count, len(matrix)), added] = 1.0
    matrix.flags.writeable = False
    return replace(
        base,
        robot=robot,
        matrix=matrix,
        kept=(*(int(old[i]) for i in base.kept), *added),
        dependent=tuple(int(old[i]) for i in base.dependent),
        without_effect=tuple(int(old[i]) for i in base.without_effect),
    )


def picked(observation: Observation, base: BaseParameters, columns: Sequence[int]) -> Observation:
    """The observation with some of its columns (b,), as one of these base parameters."""
    index = np.array(columns)
    rows = np.append(index, observation.base.count)

    def blocks() -> Iterator[Block]:
        for block in observation.blocks():
            yield Block(block.channel, block.W[:, index], block.y, block.index)

    still = observation.standstill
    if still is not None:
        still = replace(still, unknown=still.unknown[index], rows=still.rows[:, rows])
    passes = observation.passes
    return replace(
        observation,
        base=base,
        factors=tuple(fold(np.asfortranarray(f[:, rows])) for f in observation.factors),
        blocks=blocks if observation.streams else observation.blocks,
        standstill=still,
        time_blocks=tuple(tuple(fold(np.asfortranarray(f[:, rows])) for f in part) for part in observation.time_blocks),
        passes=None if passes is None else replace(passes, base=base),  # type: ignore[type-var]
    )


def carried(robot: Robot, other: Robot, prior: ArrayLike) -> Array:
    """A-priori parameters of a robot as those of the same robot with other drive terms."""
    given = checked(prior, (len(robot.layout),), "prior", DataError)
    values = dict(zip(robot.parameter_names, given, strict=True))
    return np.array([values.get(n, own) for n, own in zip(other.parameter_names, other.parameters, strict=True)])
