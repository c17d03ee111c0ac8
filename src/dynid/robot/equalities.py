"""Equalities between joints of a model file: mimic joints, locked joints, and constraints for the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from dynid.errors import ModelError
from dynid.robot.constraints import JointEquality
from dynid.robot.model import Robot
from dynid.robot.parts import Mimic

__all__ = ["with_equalities"]

_SAME = 1e-9  # of the largest term: two equalities that mean the same


def with_equalities(
    robot: Robot, equalities: Iterable[JointEquality]
) -> tuple[Robot, dict[str, float], list[JointEquality]]:
    """The robot with joints that follow others as mimic joints; the first of two joints follows the other.

    Also returns the positions of the joints to be locked, and the equalities that are neither of the two: those over
    more than two joints and polynomials, each over independent joints that are not locked.
    """
    follows: dict[str, Mimic] = {}
    held: dict[str, float] = {}
    left = list(equalities)
    while True:
        todo, left, wide = left, [], []
        for equality in todo:
            reduced, value = equality.substituted(lambda name: _root(name, follows, held))
            if reduced is None:
                scale = max(map(abs, (*equality.weights.values(), *equality.polynomial)))
                if abs(value) > _SAME * (1 + scale):
                    raise ModelError(f"{equality} contradicts the other equalities")
            elif not reduced.linear or len(reduced.weights) > 2:
                left.append(equality)
                wide.append(reduced)
            else:
                (first, weight), *others = reduced.weights.items()
                if others:
                    follows[first] = Mimic(others[0][0], -others[0][1] / weight, value / weight)
                else:
                    held[first] = value / weight
        if len(left) == len(todo):
            break
    direct = {name: Mimic(*_root(name, follows, {})) for name in follows}
    joints = tuple(replace(j, mimic=direct.get(j.name, j.mimic)) for j in robot.joints)
    return replace(robot, joints=joints), held, wide


def _root(name: str, follows: Mapping[str, Mimic], held: Mapping[str, float]) -> tuple[str, float, float]:
    """The independent joint that a joint follows, ratio and offset; an empty name where that joint is locked."""
    ratio, offset = 1.0, 0.0
    while name in follows:
        up = follows[name]
        name, ratio, offset = up.leader, ratio * up.ratio, ratio * up.offset + offset
    if not np.isfinite(ratio):
        raise ModelError(f"joint '{name}' follows with a ratio that is not finite", "ratio", code="invalid_value")
    return ("", 0.0, ratio * held[name] + offset) if name in held else (name, ratio, offset)
