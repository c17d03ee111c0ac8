"""Unknown sensor errors and their effect on recorded signals.

What was recorded is taken as torque(t) = gain * true(t - delay) + offset and q = true + encoder offset; velocities as
gain * true + offset. Gravity is the nominal one, turned by two small angles about axes perpendicular to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynid.errors import MissingArgument, MissingData, NotApplicable, UnknownName
from dynid.recording.run import Run
from dynid.robot.model import Robot
from dynid.signals.shift import shifted

__all__ = [
    "LINEAR",
    "VELOCITY",
    "WORDS",
    "Unknown",
    "Unknowns",
    "corrected_run",
    "neutral",
    "units_of",
]

Array = NDArray[np.float64]
Values = dict[str, Array]

# Kinds of error with their units on a revolute joint, and prefixes of the names of single unknowns.
WORDS = {
    "delay": "s",
    "torque_gain": "",
    "torque_offset": "N m",
    "encoder_offset": "rad",
    "tilt": "rad",
    "velocity_gain": "",
    "velocity_offset": "rad/s",
    "wrench_delay": "s",
    "wrench_offset": "N",
}
_PRISMATIC = {"N m": "N", "rad": "m", "rad/s": "m/s"}
LINEAR = ("torque_offset", "wrench_offset")
VELOCITY = ("velocity_gain", "velocity_offset")
_COMMON = ("delay", "torque_gain")
_BASE_PARTS = ("fx", "fy", "fz", "mx", "my", "mz")


@dataclass(frozen=True)
class Unknown:
    """One scalar unknown: its kind, the array entries of that kind that it fills, and its name."""

    word: str
    members: tuple[int, ...]
    name: str

    @property
    def linear(self) -> bool:
        return self.word in LINEAR


@dataclass(frozen=True)
class Unknowns:
    """All unknowns of the sensors except those of velocities, which follow from positions alone."""

    robot: Robot
    entries: tuple[Unknown, ...]

    @cached_property
    def start(self) -> Array:
        """Initial values (k,): perfect sensors, on a slightly tilted base.

        Exactly upright, first moments of links that turn about vertical axes would have no effect at all.
        """
        first = {"torque_gain": 1.0, "tilt": 0.02}
        return np.array([first.get(e.word, 0.0) for e in self.entries])

    def values(self, theta: Array) -> Values:
        """All arrays by their words, where `theta` (k,) fills in the unknown entries."""
        out = neutral(self.robot)
        for entry, value in zip(self.entries, theta, strict=True):
            out[entry.word][list(entry.members)] = value
        return out

    def without(self, gone: Sequence[Unknown]) -> Unknowns:
        return replace(self, entries=tuple(e for e in self.entries if e not in gone))


def neutral(robot: Robot) -> Values:
    """Values of perfect sensors by kind: per joint, two tilt angles, six wrench offsets and the wrench delay."""
    size = {"tilt": 2, "wrench_delay": 1, "wrench_offset": 6}
    out = {word: np.zeros(size.get(word, robot.n)) for word in WORDS}
    out["torque_gain"] += 1.0
    out["velocity_gain"] += 1.0
    return out


def units_of(robot: Robot, word: str) -> tuple[str, ...]:
    """Unit of every entry of one kind of error; that of a prismatic joint is N, m or m/s."""
    unit = WORDS[word]
    if word == "tilt":
        return (unit, unit)
    if word == "wrench_delay":
        return (unit,)
    if word == "wrench_offset":
        return ("N",) * 3 + ("N m",) * 3
    sliding = (robot.channel_units[name] == "N" for name in robot.coordinates)
    return tuple(_PRISMATIC.get(unit, unit) if s else unit for s in sliding)


def read_unknowns(
    robot: Robot,
    estimate: Sequence[str] | Mapping[str, str | Sequence[str]],
    reference: str | Sequence[str] | None,
    channels: Sequence[str],
) -> tuple[Unknowns, tuple[str, ...]]:
    """The unknowns of the requested kinds, and the kinds of velocity errors, which are estimated separately."""
    if isinstance(estimate, str):
        estimate = tuple(word.strip() for word in estimate.split(","))
    asked = {w.replace("-", "_"): which for w, which in _asked(estimate).items()}
    if not asked:
        raise MissingArgument(f"nothing is to be estimated: name some of {', '.join(WORDS)}")
    fixed = _joints(robot, () if reference is None else reference, "reference")
    entries: list[Unknown] = []
    for word, which in asked.items():
        if word not in WORDS:
            raise UnknownName(f"'{word}' is no error of a sensor: use {', '.join(WORDS)}")
        _check_word(robot, word, channels)
        if word == "tilt":
            entries += [Unknown(word, (k,), f"tilt {'xy'[k]}") for k in range(2)]
        elif word == "wrench_delay":
            entries.append(Unknown(word, (0,), "wrench_delay"))
        elif word == "wrench_offset":
            entries += [
                Unknown(word, (k,), f"{word} {part}")
                for k, part in enumerate(_BASE_PARTS)
                if f"base.{part}" in channels
            ]
        elif word not in VELOCITY:
            entries += _of_joints(robot, word, which, fixed if word == "torque_gain" else [], channels)
    return Unknowns(robot, tuple(entries)), tuple(w for w in asked if w in VELOCITY)


def corrected_run(run: Run, values: Values, periodic: bool, scaled: bool = True) -> Run:
    """A run as perfect sensors would have recorded it; without `scaled`, torque gains and offsets stay in."""
    torque, wrench = run.torque, run.wrench
    if torque is not None:
        torque = shifted(run.t, torque, values["delay"], periodic)
        if scaled:
            torque = (torque - values["torque_offset"]) / values["torque_gain"]
    if wrench is not None:
        wrench = shifted(run.t, wrench, values["wrench_delay"][0], periodic)
        if scaled:
            wrench = wrench - values["wrench_offset"]
    named = {name: shifted(run.t, x, values["wrench_delay"][0], periodic) for name, x in run.wrenches.items()}
    v = None if run.v is None else (run.v - values["velocity_offset"]) / values["velocity_gain"]
    return replace(run, q=run.q - values["encoder_offset"], v=v, torque=torque, wrench=wrench, wrenches=named)


def _asked(estimate: Sequence[str] | Mapping[str, str | Sequence[str]]) -> dict[str, str | Sequence[str]]:
    return dict(estimate) if isinstance(estimate, Mapping) else dict.fromkeys(estimate, "all")


def _check_word(robot: Robot, word: str, channels: Sequence[str]) -> None:
    if word == "tilt" and (robot.base == "floating" or not np.any(robot.gravity)):
        raise NotApplicable("a tilt of the base needs a base that stands still and gravity that is not zero")
    if word.startswith("wrench") and not any(c.startswith("base.") for c in channels):
        raise MissingData(f"'{word}' needs a measured base wrench among the channels")


def _of_joints(
    robot: Robot, word: str, which: str | Sequence[str], fixed: list[int], channels: Sequence[str]
) -> list[Unknown]:
    measured = [j for j, name in enumerate(robot.coordinates) if word == "encoder_offset" or name in channels]
    if which == "common":
        if word not in _COMMON:
            raise NotApplicable(f"one '{word}' for all joints makes no sense: name joints, or 'all'")
        return [Unknown(word, tuple(j for j in measured if j not in fixed), word)]
    chosen = measured if which == "all" else _joints(robot, which, word)
    lost = [robot.coordinates[j] for j in chosen if j not in measured]
    if lost:
        raise MissingData(f"'{word}' of joint '{lost[0]}' is asked for, whose torque is not measured")
    return [Unknown(word, (j,), f"{word} {robot.coordinates[j]}") for j in chosen if j not in fixed]


def _joints(robot: Robot, names: str | Sequence[str], where: str) -> list[int]:
    out = []
    for name in (names,) if isinstance(names, str) else names:
        if name not in robot.coordinates:
            raise UnknownName(f"{where} names no joint '{name}', the joints are {', '.join(robot.coordinates)}")
        out.append(robot.coordinates.index(name))
    return out
