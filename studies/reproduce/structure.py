"""Counts of standard, effective and base parameters, and every published grouping."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.parameters.base import BaseParameters, base_parameters
from dynid.robot.load import load_robot
from dynid.robot.model import Robot
from studies.reproduce.expression import linear_form
from studies.reproduce.study import Figure, number, published

__all__ = ["figures"]

_EXACT = "a count is exact"
_NAME = re.compile(r"([A-Za-z]+?)_?(\d+)")


def figures(source: str = "") -> Iterator[Figure]:
    """Every case, or those of one source, such as "Krishnamoorthi 2018"."""
    for case in published("structure")["case"]:
        if not case["source"].startswith(source):
            continue
        robot = case_robot(case)
        base = base_parameters(robot, channels=case.get("channels"))
        section = f"{case['title']} ({case['source']})"
        counts = {"standard": len(robot.layout), "effective": base.effective_count, "base": base.count}
        for what, ours in counts.items():
            if what in case:
                yield number(section, f"{what} parameters", case[what], ours, 0.0, _EXACT)
        exact = base_parameters(robot, method="recursive").count if robot.base == "fixed" else None
        if exact is not None:
            yield number(section, "base parameters, recursive method", case["base"], exact, 0.0, _EXACT)
        for text in case.get("expressions", ()):
            yield _grouping(section, case, base, text)
        for text, value in case.get("values", {}).items():
            yield from _value(section, case, base, text, value)


def case_robot(case: Mapping[str, Any]) -> Robot:
    """The built-in robot of a case, with the drives and the base the publication used."""
    robot = load_robot(case["robot"], base=case.get("base_kind"))
    if "friction" in case or "rotor_inertia" in case:
        robot = robot.with_drives(case.get("friction"), rotor_inertia=case.get("rotor_inertia"))
    return robot.without(*case["drop"]) if "drop" in case else robot


def form_row(case: Mapping[str, Any], robot: Robot, text: str) -> NDArray[np.float64]:
    """A published combination as a row over the robot's standard parameters."""
    symbols = case.get("symbols", {})
    labels = {label: i for i, label in enumerate(robot.parameter_labels)}
    row = np.zeros(len(labels))
    for name, weight in linear_form(text, case.get("constants")).items():
        match = _NAME.fullmatch(name)
        assert match, f"'{name}' in the published data is no parameter"
        row[labels[f"{symbols.get(match[1], match[1])}_{match[2]}"]] += weight
    return row


def _match(base: BaseParameters, row: NDArray[np.float64]) -> int | None:
    """Index of our combination with the same representative: the only kept column of the published one."""
    found = [k for k, j in enumerate(base.kept) if row[j]]
    return found[0] if len(found) == 1 and row[base.kept[found[0]]] == 1.0 else None


def _grouping(section: str, case: Mapping[str, Any], base: BaseParameters, text: str) -> Figure:
    """The published combination against ours with the same representative, coefficient by coefficient."""
    row = form_row(case, base.robot, text)
    k = _match(base, row)
    if k is None:
        return Figure(section, text, text, "(none)", np.inf, case["tolerance"], case["reason"])
    difference = float(np.abs(row - base.matrix[k]).max())
    return Figure(section, text, text, base.expressions[k], difference, case["tolerance"], case["reason"])


def _value(section: str, case: Mapping[str, Any], base: BaseParameters, text: str, value: float) -> Iterator[Figure]:
    """The published value of a combination. One with another representative must lie in our row space."""
    row = form_row(case, base.robot, text)
    k = _match(base, row)
    if k is None:
        inside = np.linalg.lstsq(base.matrix.T, row, rcond=None)[0] @ base.matrix
        outside = float(np.abs(row - inside).max())
        name, shown = f"{text} is identifiable", f"{outside:.1e} outside"
        yield Figure(section, name, "in the row space", shown, outside, 1e-9, "rounding")
    ours = row @ base.robot.parameters if k is None else base.values()[k]
    yield number(section, f"value of {text}", value, float(ours), case["value_tolerance"], case["value_reason"])
