"""Friction terms and rotor inertia of every joint, and the weight of the prior, for method "auto".

The usual laws (none, offset, viscous, Coulomb and their sums) compete freely: the best of them is taken, or one with
fewer terms that predicts equally well. Viscous friction per direction is taken only where it is better with a
confidence of 95 %: terms that fit a little of everything predict faster motion badly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError
from dynid.feasibility.prior import consistent_prior
from dynid.identification.estimators.solution import Choice
from dynid.identification.parts import Loss, Parts
from dynid.robot.drives import TermKind, parse_friction
from dynid.robot.model import Robot
from dynid.robot.parts import checked

__all__ = [
    "Drives",
    "carried",
    "choose_drives",
    "drive_columns",
    "free_joints",
    "largest_weight",
    "rich_robot",
    "with_drives",
]

Array = NDArray[np.float64]

# Weights of the prior from least squares to the prior itself.
_WEIGHTS = 10.0 ** np.arange(-6.0, 7.0)
# Friction of a joint: what the command line and `Robot.with_drives` call it.
_FRICTIONS = (
    "none",
    "offset",
    "viscous",
    "coulomb",
    "viscous+coulomb",
    "coulomb+offset",
    "viscous+coulomb+offset",
)
_RICH = "viscous-asymmetric+coulomb+offset"
# Models whose errors differ by no more than this share predict equally well: the one with fewer terms is taken.
_EQUAL = 0.002
# Rotor inertias that predict equally well are taken if the prior may weigh this many times more with them.
_FAR_MORE = 10.0
_SWEEPS = 3


@dataclass(frozen=True)
class Drives:
    """Friction of each joint by name and whether it has a rotor inertia; None where the robot's own terms stay."""

    friction: tuple[str | None, ...]
    rotor: tuple[bool | None, ...]

    def changed(self, joint: int, friction: str, rotor: bool) -> Drives:
        return Drives(
            (*self.friction[:joint], friction, *self.friction[joint + 1 :]),
            (*self.rotor[:joint], rotor, *self.rotor[joint + 1 :]),
        )

    def words(self, joint: int) -> str:
        name = self.friction[joint]
        return "as given" if name is None else name + (" + rotor inertia" if self.rotor[joint] else "")


def free_joints(robot: Robot, channels: Sequence[str]) -> tuple[int, ...]:
    """Joints whose torque is measured and whose friction is not modelled on the motor side."""
    held = np.array([name not in channels for name in robot.coordinates])
    for term in robot.drives:
        if term.motor and not term.cross_only and term.symbol != "Ia":
            held |= np.abs(term.direction[[name not in robot.passive for name in robot.tree_coordinates]]) > 0.5
    return tuple(int(j) for j in np.flatnonzero(~held))


def rich_robot(robot: Robot, free: Sequence[int]) -> Robot:
    """The robot with all drive terms on the joints that are free to choose."""
    return with_drives(robot, _start(robot, free, _RICH, True))


def _start(robot: Robot, free: Sequence[int], friction: str, rotor: bool) -> Drives:
    """The same friction and rotor inertia on all joints that are free to choose."""
    return Drives(
        tuple(friction if j in free else None for j in range(robot.n)),
        tuple(rotor if j in free else None for j in range(robot.n)),
    )


def with_drives(robot: Robot, drives: Drives) -> Robot:
    """The robot with chosen drive terms; joints that are not free to choose keep theirs."""
    free = [j for j, name in enumerate(drives.friction) if name is not None]
    if not free:
        return robot
    names = robot.coordinates
    owners = {robot.tree_coordinates.index(names[j]) for j in free}
    chosen = [t.name for t in robot.drives if t.kind == TermKind.STRIBECK and t.owner in owners]
    robot = robot.without(*chosen) if chosen else robot
    kept = [t for t in robot.drives if not t.motor and t.function is None and t.owner not in owners and t.symbol != "k"]
    friction = {names[j]: str(drives.friction[j]) for j in free}
    rotors = [names[j] for j in free if drives.rotor[j]]
    return robot.with_drives(friction, rotor_inertia=rotors).with_terms(*kept)


def drive_columns(rich: Robot, drives: Drives) -> Array:
    """Matrix (p, k) from the parameters of a model with chosen drive terms to those of the robot with all terms."""
    columns = []
    for i, parameter in enumerate(rich.layout):
        unit = np.zeros(len(rich.layout))
        unit[i] = 1.0
        joint = rich.coordinates.index(parameter.owner) if parameter.owner in rich.coordinates else -1
        name = None if parameter.inertial or joint < 0 else drives.friction[joint]
        if name is None or parameter.symbol == "k":
            columns.append(unit)
        elif parameter.symbol == "Ia":
            if drives.rotor[joint]:
                columns.append(unit)
        elif parameter.symbol == "fvp":
            other = rich.parameter_names.index(f"fvn_{parameter.owner}")
            if "viscous-asymmetric" in name:
                columns += [unit, np.eye(len(unit))[other]]
            elif "viscous" in name:
                unit[other] = 1.0
                columns.append(unit)
        elif (
            (parameter.symbol == "fc" and "coulomb" in name)
            or (parameter.symbol == "off" and "offset" in name)
            or parameter.symbol not in ("fvn", "fc", "off")
        ):
            columns.append(unit)
    return np.array(columns).T


def choose_drives(
    parts: Parts, robot: Robot, free: Sequence[int], choices: list[Choice], report: Callable[[float], None]
) -> tuple[Drives, float]:
    """The drive terms of each joint that predict best, and the largest weight of the prior that predicts as well."""
    rich = parts.robot

    def loss(drives: Drives, weight: float) -> Loss:
        return parts.cross_validated(weight, drive_columns(rich, drives))

    options = [(name, rotor) for name in _FRICTIONS for rotor in (False, True)]
    same = [_start(robot, free, *option) for option in options] if free else [_start(robot, free, "", False)]
    drives, weight = min(((drives, w) for drives in same for w in _WEIGHTS), key=lambda trial: loss(*trial).error)
    best = loss(drives, weight)
    for sweep in range(_SWEEPS if free else 0):
        before = drives
        for k, joint in enumerate(free):
            report((sweep + k / len(free)) / _SWEEPS)
            for option in options:
                trial = loss(drives.changed(joint, *option), weight)
                if trial.error < best.error:
                    drives, best = drives.changed(joint, *option), trial
        weight, best = min(((w, loss(drives, w)) for w in _WEIGHTS), key=lambda found: found[1].error)
        if drives == before:
            break
    for joint in free:
        trials = {option: loss(drives.changed(joint, *option), weight) for option in options}
        best = min(trials.values(), key=lambda trial: trial.error)
        good = [option for option, trial in trials.items() if trial.error <= (1 + _EQUAL) * best.error]
        taken = min(good, key=lambda option: (_terms_of(option), trials[option].error))
        for rotor in (False, True):
            trials[_RICH, rotor] = loss(drives.changed(joint, _RICH, rotor), weight)
        richer = min(((_RICH, rotor) for rotor in (False, True)), key=lambda option: trials[option].error)
        if trials[richer].surely_better_than(best):
            taken = richer
        drives = drives.changed(joint, *taken)
        what = f"friction of {robot.coordinates[joint]}"
        choices += [
            Choice(what, drives.changed(joint, *option).words(joint), trial.error, False)
            for option, trial in trials.items()
        ]

    def weighed(drives: Drives) -> dict[float, Loss]:
        return {float(w): loss(drives, w) for w in _WEIGHTS}

    drives, losses = _with_rotors(drives, weighed, free, robot)
    words = {f"friction of {robot.coordinates[j]}": drives.words(j) for j in free}
    choices[:] = [replace(c, chosen=c.option == words[c.what]) if c.what in words else c for c in choices]
    weight = largest_weight(losses, robot)
    choices += [
        Choice("weight of the prior (without constraints)", f"{w:g}", found.error, w == weight)
        for w, found in losses.items()
    ]
    return drives, weight


def _with_rotors(
    drives: Drives, weighed: Callable[[Drives], dict[float, Loss]], free: Sequence[int], robot: Robot
) -> tuple[Drives, dict[float, Loss]]:
    """Add rotor inertias that let the bodies stay near those of the file, and losses of the result by weight.

    Where the motion does not tell a rotor inertia from the inertia of a link, both predict equally well. A drive that
    the file says nothing of is then more likely than a body with many times its inertia: rotor inertias are taken if
    the prior may weigh ten times more with them, and the prediction is as good.
    """
    losses = weighed(drives)
    if consistent_prior(robot).complete:  # no bodies to stay near to
        return drives, losses
    while candidates := [drives.changed(j, str(drives.friction[j]), True) for j in free if not drives.rotor[j]]:
        trials = [(candidate, weighed(candidate)) for candidate in candidates]
        kept = {candidate: largest_weight(found, robot) for candidate, found in trials}
        best = min(losses.values(), key=lambda found: found.error)
        good = [(c, found) for c, found in trials if found[kept[c]].as_good_as(best)]
        taken, found = max(good, key=lambda trial: kept[trial[0]], default=(drives, losses))
        if taken is drives or kept[taken] < _FAR_MORE * largest_weight(losses, robot):
            break
        drives, losses = taken, found
    return drives, losses


def largest_weight(losses: Mapping[float, Loss], robot: Robot) -> float:
    """The largest weight of the prior that predicts as well as the best.

    Bodies of a robot file are knowledge, which is kept as long as it costs no more than noise. Bodies that were assumed
    are not: then the best weight is taken.
    """
    best = min(losses.values(), key=lambda found: found.error)
    assumed = consistent_prior(robot).complete
    return max(w for w, found in losses.items() if (found is best if assumed else found.as_good_as(best)))


def _terms_of(option: tuple[str, bool]) -> int:
    """Number of parameters of a friction model and a rotor inertia."""
    return len(parse_friction(option[0])) + option[1]


def carried(robot: Robot, other: Robot, prior: ArrayLike) -> Array:
    """A-priori parameters of a robot as those of the same robot with other drive terms."""
    given = checked(prior, (len(robot.layout),), "prior", DataError)
    values = dict(zip(robot.parameter_names, given, strict=True))
    own = dict(zip(other.parameter_names, other.with_drives().parameters, strict=True))
    return np.array([values.get(name, own[name]) for name in other.parameter_names])
