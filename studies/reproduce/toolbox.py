"""The 2-DOF worked example: standard parameters, and identification from noise-free samples."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynid.dynamics.functions import inverse_dynamics
from dynid.parameters.base import base_parameters, choose_channels, random_states
from dynid.robot.inertia import INERTIAL_SYMBOLS
from dynid.robot.load import load_robot
from studies.reproduce.structure import case_robot, form_row
from studies.reproduce.study import Figure, number, published

__all__ = ["figures"]

_SIX = "printed to six digits"
_TABLE_31 = "Table 3.1, standard parameters (Nguyen 2021)"


def figures() -> Iterator[Figure]:
    table = published("toolbox_2dof")
    robot = load_robot("box2")
    for link in robot.links:
        for symbol, expected, ours in zip(INERTIAL_SYMBOLS, table[link.name], link.inertia, strict=True):
            yield number(_TABLE_31, f"{symbol} of {link.name}", expected, float(ours), 1e-6, _SIX)
    for case in published("structure")["case"]:
        if case["robot"] != "box2" or "values" not in case:
            continue
        robot = case_robot(case)
        base = base_parameters(robot, channels=case.get("channels"))
        rows = choose_channels(robot, case.get("channels"))
        state = random_states(robot, table["samples"], seed=2021)
        torque = inverse_dynamics(robot, *state)[:, rows]
        w = base.regressor(*state).reshape(-1, base.count)
        beta = np.linalg.lstsq(w, torque.ravel(), rcond=None)[0]
        standard = base.join(beta)
        section = f"{case['source']}, identified from {table['samples']} random samples"
        for text, expected in case["values"].items():
            # A combination that can be identified has the same value on every standard vector with these base values.
            ours = float(form_row(case, robot, text) @ standard)
            yield number(section, text, expected, ours, 1e-6, _SIX)
