"""The printed physical parameters of the iiwa, checked by the rules of their fit and for physical consistency."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.feasibility.baselines.nonlinear import rule_list, tensor_entries, violated_rules
from dynid.feasibility.constraints import Inertia, Notion
from dynid.feasibility.sets import feasible_set
from dynid.robot.inertia import inertia_to_com, inertia_to_spatial, inertia_violations
from dynid.robot.load import load_robot
from dynid.robot.model import Robot
from studies.reproduce.study import Figure, number, published

__all__ = ["figures"]

Array = NDArray[np.float64]

_HALF_DIGIT = 5e-4
_EXACT = "a verdict is exact"


def figures() -> Iterator[Figure]:
    robot, golden = load_robot("iiwa14"), published("iiwa_feasibility")
    tensors = [inertia_to_com(link.inertia)[2] for link in robot.links[1:]]
    yield from _rules(robot, golden, tensors)
    yield from _definiteness(robot, golden, tensors)
    yield from _laws(robot, tensors)


def _rules(robot: Robot, golden: dict[str, Any], tensors: list[Array]) -> Iterator[Figure]:
    section = "iiwa, physical parameters under their own rules (Halper 2024, Table 4.2 and 3.53)"
    rules = [rule_list(axis or None) for axis in golden["slender"]]
    entries = [tensor_entries(t) for t in tensors]
    triangle = [float(r[0].slacks(e).min()) for r, e in zip(rules, entries, strict=True)]
    expected = golden["triangle_slack_link4"]
    yield number(section, "(a) smallest slack of link 4", expected, triangle[3], 1e-9, "differences of printed digits")
    room = 3 * _HALF_DIGIT
    active = [i for i, slack in enumerate(triangle, start=1) if abs(slack) <= room]
    yield _same(section, "(a) active within rounding, links", golden["triangle_active"], active)
    skew = [np.abs(e[[1, 3, 4]]).max() / e[[0, 2, 5]].min() for e in entries]
    for i, ours in enumerate(skew):
        label = f"(c) largest other entry over smallest diagonal one, link {i + 1}"
        yield number(section, label, golden["skew"][i], ours, golden["skew_tolerance"][i], "as many digits as printed")
    for i, (expected, tolerance) in enumerate(zip(golden["slender_ratio"], golden["slender_tolerance"], strict=True)):
        diagonal = dict(zip("xyz", entries[i][[0, 2, 5]], strict=True))
        own = diagonal.pop(golden["slender"][i])
        label = f"({'f' if golden['slender'][i] == 'y' else 'e'}) ratio of link {i + 1}"
        yield number(section, label, expected, min(diagonal.values()) / own, tolerance, "as many digits as printed")
    for i, (link, tensor) in enumerate(zip(robot.links[1:], tensors, strict=True)):
        found = violated_rules(float(link.inertia[0]), tensor, golden["slender"][i] or None, _HALF_DIGIT)
        letters = [x.code for x in found if x.code not in ("mass", "definite")]
        yield _same(section, f"rules violated by link {i + 1}", golden["broken"][i], letters)


def _definiteness(robot: Robot, golden: dict[str, Any], tensors: list[Array]) -> Iterator[Figure]:
    section = "iiwa, positive definiteness of the printed tensors (Halper 2024, Table 4.2)"
    for i, tensor in enumerate(tensors):
        label, ours = f"smallest principal inertia of link {i + 1}", float(np.linalg.eigvalsh(tensor)[0])
        tolerance = golden["eigenvalue_tolerance"][i]
        yield number(section, label, golden["smallest_eigenvalue"][i], ours, tolerance, "as many digits as printed")
    verdicts = {
        "spatial inertia": [
            i
            for i, link in enumerate(robot.links[1:], start=1)
            if np.linalg.eigvalsh(inertia_to_spatial(link.inertia))[0] <= 0
        ],
        "sanity rules": [
            i for i, t in enumerate(tensors, start=1) if any(x.code == "definite" for x in violated_rules(1.0, t))
        ],
        "semi constraint set": _infeasible(robot, "semi"),
    }
    for name, links in verdicts.items():
        yield _same(
            section, f"links without positive definite inertia, by {name}", golden["not_positive_definite"], links
        )


def _laws(robot: Robot, tensors: list[Array]) -> Iterator[Figure]:
    """The triangle inequality in principal axes: rule (a), which tests it on the diagonal, is not sufficient."""
    section = "iiwa, the triangle inequality in principal axes (not required by the thesis)"
    principal = [np.linalg.eigvalsh(t) for t in tensors]
    broken = [i for i, e in enumerate(principal, start=1) if e[0] + e[1] < e[2]]
    inspected = [i for i, link in enumerate(robot.links[1:], start=1) if inertia_violations(link.inertia)]
    yield _same(section, "infeasible links, eigenvalues against link inspection", broken, inspected)
    yield _same(
        section, "infeasible links, eigenvalues against the full constraint set", broken, _infeasible(robot, "full")
    )


def _infeasible(robot: Robot, notion: Notion) -> list[int]:
    """Indices of the links that violate the constraint."""
    sets = [feasible_set(robot, (Inertia(notion, links=link.name, margin=0.0),)) for link in robot.links[1:]]
    return [i for i, own in enumerate(sets, start=1) if own.violations(robot.parameters)]


def _same(section: str, name: str, expected: Sequence[Any], ours: Sequence[Any]) -> Figure:
    """A figure that is a list of links or rules."""
    shown = [", ".join(map(str, x)) or "none" for x in (expected, ours)]
    return Figure(section, name, shown[0], shown[1], float(list(expected) != list(ours)), 0.0, _EXACT)
