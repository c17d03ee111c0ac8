"""Torques and mass matrices of the models printed in theses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.functions import gravity_torque, inverse_dynamics, mass_matrix
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.robot.load import load_robot
from studies.reproduce.excitation import iiwa_motion
from studies.reproduce.structure import form_row
from studies.reproduce.study import Figure, number, numbers, published

__all__ = ["figures"]

Array = NDArray[np.float64]

_SIX = "printed to six decimals"
_FOUR = "printed to four decimals"


def figures() -> Iterator[Figure]:
    yield from _wam()
    yield from _iiwa()


def printed_order(title: str, base: BaseParameters) -> list[int]:
    """Index in `base` of each printed base parameter of a case of `structure`."""
    case = next(c for c in published("structure")["case"] if c["title"] == title)
    position = {int(j): k for k, j in enumerate(base.kept)}
    rows = [form_row(case, base.robot, text) for text in case["expressions"]]
    return [next(position[int(j)] for j in np.flatnonzero(row) if j in position) for row in rows]


def standard_vector(base: BaseParameters, order: list[int], printed: ArrayLike) -> Array:
    """A standard vector with the printed base values; dependent parameters are zero."""
    beta = np.empty(base.count)
    beta[order] = printed
    return base.join(beta)


def _wam() -> Iterator[Figure]:
    section = "WAM, printed base parameters (Sousa 2014, Tables 4.6 to 4.9)"
    golden, values = published("wam_golden"), published("wam_base_values")
    robot = load_robot("wam7")
    base = base_parameters(robot)
    order = printed_order("WAM", base)
    cad = np.array(values["cad"])
    known = np.isfinite(cad)
    worst = np.abs(base.values()[order] - cad)[known].max()
    yield Figure(
        section,
        "built-in inertias against the CAD column",
        "0",
        f"{worst:.1e}",
        float(worst),
        5e-5,
        "the column is printed to four decimals",
    )
    q, v, a = (np.array(golden["state"][k]) for k in "qva")
    for name, column in {"wls": "WLS", "feasible": "beta*", "feasible_extra": "beta*e"}.items():
        pi = standard_vector(base, order, values[name])
        torque = inverse_dynamics(robot, q, v, a, pi)
        yield from numbers(section, f"torque {column}", golden["torque"][name], torque, 1e-6, _SIX)
        if name in golden["gravity"]:
            gravity = gravity_torque(robot, q, pi)
            yield from numbers(section, f"gravity {column}", golden["gravity"][name], gravity, 1e-6, _SIX)
        eigenvalues = np.linalg.eigvalsh(mass_matrix(robot, q, pi))
        for which, k in {"smallest": 0, "largest": -1}.items():
            expected = golden[f"{which}_eigenvalue"].get(name)
            if expected is not None:
                label = f"{which} eigenvalue of M, {column}"
                yield number(section, label, expected, eigenvalues[k], 1e-6, _SIX)


def _iiwa() -> Iterator[Figure]:
    section = "iiwa, printed base parameters (Halper 2024, Table 4.1) along its trajectories"
    golden = published("iiwa_golden")
    base = base_parameters(load_robot("iiwa14"))
    yield from _iiwa_sigma(section, golden, base)
    yield from _iiwa_mass(section, golden, base)


def _iiwa_sigma(section: str, golden: dict[str, Any], base: BaseParameters) -> Iterator[Figure]:
    """The printed relative standard deviations follow from the trajectory, up to a common noise level."""
    values = published("iiwa_base_values")
    order = printed_order("iiwa", base)
    w = base.regressor(*iiwa_motion("used", golden["sigma"]["duration"])).reshape(-1, base.count)
    r = np.linalg.qr(w, mode="r")
    std = np.linalg.norm(np.linalg.inv(r), axis=1)[order]  # sqrt of diag((W'W)^-1)
    predicted = np.log(std / np.abs(values["value"]))
    printed = np.log(np.array(values["sigma"]))
    correlation = np.corrcoef(predicted, printed)[0, 1]
    expected = golden["sigma"]["log_correlation"]
    yield number(
        section, "log correlation of the sigma column", expected, correlation, 5e-5, "printed to four decimals"
    )
    ratio = np.std(predicted - printed)
    expected = golden["sigma"]["log_ratio_std"]
    yield number(section, "scatter of log sigma ratios", expected, ratio, 5e-4, "printed to three decimals")


def _iiwa_mass(section: str, golden: dict[str, Any], base: BaseParameters) -> Iterator[Figure]:
    """Smallest eigenvalue of M with Table 4.1, along both trajectories and over random poses."""
    robot, table = base.robot, golden["smallest_eigenvalue"]
    pi = standard_vector(base, printed_order("iiwa", base), published("iiwa_base_values")["value"])

    def smallest(q: Array) -> float:
        return float(np.linalg.eigvalsh(mass_matrix(robot, q, pi)).min())

    four = "printed to four decimals"
    yield number(
        section, "smallest eigenvalue of M, Table A.2", table["test"], smallest(iiwa_motion("test", 20)[0]), 5e-5, four
    )
    lower = np.array([x.lower for x in robot.limits.values()])
    upper = np.array([x.upper for x in robot.limits.values()])
    poses = np.random.default_rng(0).uniform(lower, upper, (table["random_poses"], robot.n))
    for name, ours in {"used": smallest(iiwa_motion("used", 20)[0]), "random": smallest(poses)}.items():
        low, high = table[f"{name}_low"], table[f"{name}_high"]
        outside = max(low - ours, ours - high, 0.0)
        # Random poses differ from the published ones, so the minimum differs slightly.
        tolerance, reason = (5e-5, _FOUR) if name == "used" else (4e-4, "the minimum over another random sample")
        label = f"smallest eigenvalue of M, {'Table A.1' if name == 'used' else 'random poses within limits'}"
        yield Figure(section, label, f"{low} to {high}", f"{ours:.5f}", outside, tolerance, reason)
