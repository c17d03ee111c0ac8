"""Robots of the benchmark with their true parameters, and their reference motions.

Complete built-in robots are used as they are. Additions and repairs are listed here and in
docs/study-reports/benchmark.md; added limits, rotor inertias and bodies are plausible values, not measured ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid.controllers import bandwidth_gains, cascade
from dynid.errors import DataError
from dynid.excitation.basis import random_fourier
from dynid.montecarlo.scenario import Scenario
from dynid.parameters.base import base_parameters
from dynid.robot.inertia import INERTIAL_SYMBOLS, inertia_from_com
from dynid.robot.load import load_robot
from dynid.robot.model import Robot
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.reference import Reference

__all__ = ["benchmark_robot", "held_out", "make_scenario"]

Array = NDArray[np.float64]

RATE = 1000.0
DURATION = 8.0
_ARM, _WRIST = 10.0, 20.0  # Hz, closed-loop bandwidth of the first three joints and of the others
_CANDIDATES = 20
# Light wrists need integration steps shorter than a control period: their friction is stiff.
_LOOP = ClosedLoop(integrator="rk4", substeps=4, coulomb_slope=100.0)

_PUMA_LINK1 = (13.0, (0.0, 0.1, 0.0), (0.30, 0.35, 0.30))
_PUMA_LINK3 = (4.8, (-0.0203, -0.0141, 0.07), (0.066, 0.076, 0.0125))
# Masses, centres and principal inertias of the widely used public URDF of the arm, which has the same frames.
_IIWA_LINKS = (
    (4.0, (0.0, -0.03, 0.12), (0.1, 0.09, 0.02)),
    (4.0, (0.0003, 0.059, 0.042), (0.05, 0.018, 0.044)),
    (3.0, (0.0, 0.03, 0.13), (0.08, 0.075, 0.01)),
    (2.7, (0.0, 0.067, 0.034), (0.03, 0.01, 0.029)),
    (1.7, (0.0001, 0.021, 0.076), (0.02, 0.018, 0.005)),
    (1.8, (0.0, 0.0006, 0.0004), (0.005, 0.0036, 0.0047)),
    (0.3, (0.0, 0.0, 0.02), (0.001, 0.001, 0.001)),
)
_IIWA_ROTORS = (0.4, 0.4, 0.3, 0.3, 0.2, 0.1, 0.1)
_WAM_ROTORS = {"Ia_motor1": 0.145, "Ia_motor2": 0.062, "Ia_motor4": 0.027, "Ia_motor6": 0.0026}
_WAM_RANGES = ((-2.6, 2.6), (-2.0, 2.0), (-2.7, 2.7), (-0.9, 3.1), (-4.7, 1.2), (-1.6, 1.6), (-2.2, 2.2))
_WAM_VELOCITIES = (3.0, 3.0, 4.0, 4.0, 6.0, 6.0, 6.0)


def _tx40() -> Robot:
    return load_robot("tx40").without("Ia_motor6")


def _puma560() -> Robot:
    return _with_bodies(load_robot("puma560"), {"link1": _PUMA_LINK1, "link3": _PUMA_LINK3})


def _wam7() -> Robot:
    robot = load_robot("wam7")
    limits = zip(robot.coordinates, _WAM_RANGES, _WAM_VELOCITIES, strict=True)
    robot = robot.with_limits({name: {"position": reach, "velocity": velocity} for name, reach, velocity in limits})
    return _with_values(robot, _WAM_ROTORS)


def _iiwa14() -> Robot:
    robot = load_robot("iiwa14").with_drives(rotor_inertia=True)
    robot = _with_bodies(robot, {f"link{i}": body for i, body in enumerate(_IIWA_LINKS, start=1)})
    return _with_values(robot, {f"Ia_{name}": ia for name, ia in zip(robot.coordinates, _IIWA_ROTORS, strict=True)})


def _twolink() -> Robot:
    robot = load_robot("twolink")
    rod = (1.0, (-0.5, 0.0, 0.0), (0.002, 0.084, 0.084))
    return _with_bodies(robot, {"link1": rod, "link2": rod})


_MADE: dict[str, Callable[[], Robot]] = {
    "tx40": _tx40,
    "puma560": _puma560,
    "wam7": _wam7,
    "iiwa14": _iiwa14,
    "twolink": _twolink,
}


def benchmark_robot(name: str) -> Robot:
    """A complete and physically consistent robot by name; inconsistent published values are repaired."""
    robot = _MADE[name]() if name in _MADE else load_robot(name)
    ends = [x for limits in robot.limits.values() for x in (limits.lower, limits.upper, limits.velocity)]
    if not np.all(np.isfinite(ends)):
        raise DataError(
            f"robot '{name}' needs limits of position and velocity for every joint; its motions are designed from them"
        )
    return robot


def make_scenario(robot: Robot) -> Scenario:
    """The robot under a cascade controller of given bandwidth, along the best conditioned of twenty random motions."""
    bandwidth = np.where(np.arange(robot.n) < 3, _ARM, _WRIST)
    law = cascade(RATE, *bandwidth_gains(robot, bandwidth))
    t = np.arange(0.0, DURATION, 1.0 / RATE)
    base = base_parameters(robot)

    def condition(seed: int) -> float:
        w = base.regressor(*_motion(robot, seed, t[::50])).reshape(-1, base.count)
        return float(np.linalg.cond(w / np.linalg.norm(w, axis=0)))

    best = min(range(_CANDIDATES), key=condition)
    return Scenario(robot, replace(_LOOP, controller=law), Reference(RATE, *_motion(robot, best, t)))


def held_out(robot: Robot) -> tuple[Array, Array, Array]:
    """q, v, a (N, n) of a motion that no estimate uses."""
    return _motion(robot, _CANDIDATES, np.arange(0.0, DURATION, 0.02))


def _motion(robot: Robot, seed: int, t: Array) -> tuple[Array, Array, Array]:
    limits = [robot.limits[name] for name in robot.coordinates]
    lower, upper, velocity = (np.array([getattr(x, k) for x in limits]) for k in ("lower", "upper", "velocity"))
    return random_fourier(lower, upper, velocity, DURATION, t, seed)


def _with_bodies(robot: Robot, bodies: dict[str, tuple[float, tuple[float, ...], tuple[float, ...]]]) -> Robot:
    """A robot with other links: mass, centre of mass and principal inertias about it."""
    values: dict[str, float] = {}
    for link, (mass, centre, principal) in bodies.items():
        ten = inertia_from_com(mass, centre, np.diag(principal))
        values |= {f"{s}_{link}": float(x) for s, x in zip(INERTIAL_SYMBOLS, ten, strict=True)}
    return _with_values(robot, values)


def _with_values(robot: Robot, values: dict[str, float]) -> Robot:
    old = dict(zip(robot.parameter_names, robot.parameters, strict=True))
    return robot.with_parameters(list((old | values).values()))
