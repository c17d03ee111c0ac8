"""Which of the WAM's printed parameter sets can be simulated: positive definite mass matrices and free falls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.model.free_fall import free_fall, passive_acceleration
from dynid.assessment.model.physical import mass_matrices
from dynid.parameters.base import base_parameters
from dynid.robot.load import load_robot
from dynid.robot.model import Robot
from studies.reproduce.dynamics import printed_order, standard_vector
from studies.reproduce.study import Figure, number, numbers, published

__all__ = ["model_figures"]

Array = NDArray[np.float64]

_SETS = ("ols", "wls", "nearest", "feasible", "feasible_extra")
_THREE = "printed to three decimals"


def model_figures() -> Iterator[Figure]:
    """Figures of the models of Table 4.9, without any recording."""
    golden, values = published("wam_audit"), published("wam_base_values")
    robot = load_robot("wam7")
    base = base_parameters(robot)
    order = printed_order("WAM", base)
    sets = {name: standard_vector(base, order, values[name]) for name in _SETS}
    yield from _positive_definite(robot, sets, golden["positive_definite"])
    yield from _accelerations(robot, sets, golden["acceleration"])
    yield from _death(robot, sets["wls"], golden["death"])
    yield from _energies(robot, sets, golden["energy"])


def _positive_definite(robot: Robot, sets: dict[str, Array], golden: dict[str, Any]) -> Iterator[Figure]:
    section = "WAM, share of poses with a positive definite mass matrix (Sousa 2014, section 6.1)"
    poses = golden["poses"]

    def figure(name: str, printed: str, pi: Array, rotors: bool) -> Figure:
        ours = mass_matrices(robot, pi, poses=poses, limits=False, rotor_inertia=rotors).ratio
        expected = float(printed)
        rounding = 0.5 * 10.0 ** -len(printed.partition(".")[2])
        sampling = 3 * np.sqrt(2 * expected * (1 - expected) / poses)
        reason = "rounding of the print, and three standard errors of two random samples"
        return number(section, name, expected, ours, float(rounding + sampling), reason)

    for name, printed in golden["sets"].items():
        yield figure(name, printed, sets[name], True)
    for rotors, table in golden["line"].items():
        for share, printed in zip(table["share"], table["ratio"], strict=True):
            pi = (1 - share) * sets["wls"] + share * sets["feasible"]
            yield figure(f"{share:g} of the path from wls to feasible, {rotors} rotors", printed, pi, rotors == "with")


def _accelerations(robot: Robot, sets: dict[str, Array], golden: dict[str, Any]) -> Iterator[Figure]:
    section = "WAM, first acceleration of a free fall from zero"
    still = np.zeros((1, robot.n))
    for name, expected in golden.items():
        ours = passive_acceleration(robot, sets[name], offsets=True)(still, still)
        yield from numbers(section, name, expected, ours, 5e-4, _THREE)


def _death(robot: Robot, pi: Array, golden: dict[str, Any]) -> Iterator[Figure]:
    section = "WAM, end of the free fall of wls (Sousa 2014, section 5.1.2)"
    settings = {name: golden[name] for name in ("rtol", "atol", "steepness")}
    died = free_fall(robot, pi, seconds=1.0, offsets=True, method="RK45", **settings).died
    ours = np.inf if died is None else died
    yield number(section, "time, s", golden["computed"], ours, 5e-5, "printed to four decimals")
    reason = "the thesis prints neither its smoothing of dry friction nor its integration tolerances"
    yield number(section, "time in the thesis, s", golden["thesis"], ours, 0.003, reason)


def _energies(robot: Robot, sets: dict[str, Array], golden: dict[str, Any]) -> Iterator[Figure]:
    section = "WAM, energy of a free fall (Sousa 2014, section 5.1.2)"
    seconds = golden["seconds"]
    samples = round(seconds / golden["step"])
    for name in ("nearest", "feasible", "feasible_extra"):
        fall = free_fall(robot, sets[name], seconds=seconds, samples=samples, offsets=True)
        start, end = golden[name]
        yield number(section, f"{name}, at the start, J", start, fall.energy[0], 5e-4, _THREE)
        ours = fall.energy[-1] if fall.died is None else np.inf
        yield number(section, f"{name}, after {seconds} s, J", end, ours, 5e-4, _THREE)
        reason = "the offsets do a little work"
        yield number(section, f"{name}, largest rise, J", 0.0, fall.rise, golden["rise"], reason)
