"""What every model file has in common: numbers as text, bodies about their centre of mass, what is refused or lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ModelError, keyword
from dynid.robot.consistency import drive_violations, link_violations
from dynid.robot.drives import DriveTerm, TermKind
from dynid.robot.inertia import inertia_to_com, inertia_to_spatial
from dynid.robot.model import Robot
from dynid.robot.spatial import clean

__all__ = [
    "body_values",
    "infeasible_drives",
    "infeasible_links",
    "lost_drives",
    "lost_loops",
    "number",
    "numbers_text",
    "own_term",
    "plain_joint_terms",
    "refuse_infeasible",
    "rpy_angles",
    "with_mean_friction",
]

Array = NDArray[np.float64]

_APART = 0.2


# -- numbers -----------------------------------------------------------------------------------------


def number(value: float) -> str:
    """The shortest text that reads back to the same bits."""
    return f"{float(value) + 0.0!r}".removesuffix(".0")


def numbers_text(values: Iterable[float]) -> str:
    return " ".join(number(v) for v in values)


def rpy_angles(r: Array) -> Array:
    """Fixed-axis angles (3,) of a rotation; also next to a pitch of a right angle they give it back to rounding."""
    r = clean(r)
    yaw = np.arctan2(r[1, 0], r[0, 0]) if np.hypot(r[0, 0], r[1, 0]) > 1e-12 else 0.0
    # With the yaw taken out, what is left turns about y and x alone, whatever the yaw was.
    c, s = np.cos(yaw), np.sin(yaw)
    along, across = c * r[0] + s * r[1], c * r[1] - s * r[0]
    return np.array([np.arctan2(-across[2], across[1]), np.arctan2(-r[2, 0], along[0]), yaw])


# -- bodies ------------------------------------------------------------------------------------------


def body_values(pi: Array, link: str, words: str) -> tuple[float, Array, Array]:
    """Mass, centre of mass (3,) and tensor (3, 3) about it; a massless body keeps its tensor about the origin."""
    if pi[0] == 0 and np.any(pi[1:4]):
        raise ModelError(f"link '{link}' has a first moment but no mass, which {words} cannot hold", code="unsupported")
    if pi[0] == 0:
        return 0.0, np.zeros(3), inertia_to_spatial(pi)[3:, 3:]
    mass, com, tensor = inertia_to_com(pi)
    return float(mass), com, tensor


def infeasible_links(robot: Robot) -> list[str]:
    """Links that break the laws of physics, in words. One without mass and inertia breaks none."""
    found = link_violations(robot, robot.parameters)
    return [f"link '{name}' is not physically consistent: {'; '.join(laws)}" for name, laws in found.items()]


def infeasible_drives(robot: Robot) -> list[str]:
    """Friction coefficients and rotor inertias below zero, alone or together where they are coupled, in words."""
    terms, out = {t.name: t for t in robot.drives}, []
    for name, words in drive_violations(robot, robot.parameters).items():
        if name in terms:
            side, value = "motor" if terms[name].motor else "joint", terms[name].value
            what = f"{side} '{terms[name].shaft}' is not physically consistent: {name} = {value:.4g} is negative"
        else:
            what = f"{name} are not physically consistent: {words}"
        out.append(what)
    return out


def refuse_infeasible(robot: Robot, allow: bool) -> list[str]:
    """Violations of physical consistency, as warnings where they are allowed, else as an error."""
    found = infeasible_links(robot) + infeasible_drives(robot)
    if found and not allow:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise ModelError(
            f"not written: {found[0]}{more}; {keyword('allow_infeasible', True)} writes it all the same",
            code="untrusted",
        )
    return found


# -- drives ------------------------------------------------------------------------------------------


def own_term(robot: Robot, term: DriveTerm) -> bool:
    """Whether a term acts on one joint as a plain law of its motion: what joints of model files can have.

    Smooth Coulomb friction is written as a step: its value is the same beyond the velocities of the step.
    """
    plain = np.array_equal(term.direction, np.eye(len(term.direction))[term.owner]) and term.function is None
    return plain and not term.motor and not term.cross_only


def with_mean_friction(robot: Robot, words: str) -> tuple[Robot, list[str]]:
    """The robot with one viscous and one Coulomb coefficient per joint, for formats without directions, and warnings.

    They are the means of both directions. Differences beyond a fifth of the mean are warned of.
    """
    drives, apart = list(robot.drives), list[str]()
    for symbol in ("fv", "fc"):
        ahead = [t for t in robot.drives if t.symbol == f"{symbol}p" and own_term(robot, t)]
        back = {t.owner: t for t in robot.drives if t.symbol == f"{symbol}n" and own_term(robot, t)}
        both = {t.owner for t in robot.drives if t.symbol == symbol}
        for term in (t for t in ahead if t.owner in back and t.owner not in both):
            other = back[term.owner]
            mean = 0.5 * (term.value + other.value)
            drives[drives.index(term)] = replace(term, symbol=symbol, value=mean)
            drives.remove(other)
            if abs(term.value - other.value) > _APART * abs(mean):
                apart.append(f"{symbol}_{term.shaft}")
    told = f"{words} has no friction that differs between directions: {', '.join(apart)} is the mean of both"
    return replace(robot, drives=tuple(drives)), [told] if apart else []


def plain_joint_terms(robot: Robot, joint: str, keys: dict[TermKind, str]) -> dict[str, DriveTerm]:
    """The terms of a joint that a format has a key for, by that key."""
    return {
        keys[t.kind]: t
        for t in robot.drives
        if t.kind in keys and robot.tree_coordinates[t.owner] == joint and own_term(robot, t)
    }


def lost_drives(robot: Robot, words: str, kept: Callable[[DriveTerm], bool]) -> list[str]:
    """Warnings that name each drive term a format has no place for, with its joints, and the coupling of motors."""
    lost: dict[str, list[str]] = {}
    steps: list[str] = []
    for term in robot.drives:
        if not kept(term):
            symbol = f"{term.symbol} (smooth)" if term.slope else term.symbol
            lost.setdefault(symbol, []).append(term.shaft)
        elif term.slope:
            steps.append(term.shaft)
    out = []
    if steps:
        out.append(f"{words} has no smooth Coulomb friction: fc (smooth) of {', '.join(steps)} is written as a step")
    if lost:
        terms = "; ".join(f"{symbol} of {', '.join(shafts)}" for symbol, shafts in lost.items())
        out.append(f"{words} has no place for the drive terms {terms}")
    if robot.transmission is not None:
        motors = ", ".join(robot.transmission.motors)
        out.append(f"{words} joints know no transmission: the coupling of {motors} is left out")
    return out


def lost_loops(robot: Robot, words: str) -> list[str]:
    """A warning that names the loops of a robot, for a format that has no place for them."""
    if not robot.loops:
        return []
    names = ", ".join(str(loop) for loop in robot.loops)
    return [f"{words} has no place for closed loops: the file holds the tree only, without {names}"]
