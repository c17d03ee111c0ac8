"""Simulated legs and a servo arm with known actuators, integrated by MuJoCo, identified from their encoders."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import dynid
from dynid.actuators import ActuatorEstimate, ActuatorLaw, identify_actuators
from studies.reproduce.actuator_plants import CONTROL, chirps, given_robot, legs, logged, servo_arm, truth
from studies.reproduce.study import Figure

__all__ = ["figures", "full_figures"]

Array = NDArray[np.float64]

_FEW, _MANY = range(2), range(20)
_DELAY = 5e-4  # s, the accuracy that is asked for
_WITHIN = 0.95  # of the values within three standard deviations; nominal 0.997
_REASON = "nominal 0.997"


@dataclass(frozen=True, eq=False)
class _Case:
    """An estimate and the true values of its unknowns; the delay is one of them."""

    found: ActuatorEstimate
    true: Array
    delay: int


def figures() -> Iterator[Figure]:
    """Two seeds of each robot."""
    return _figures(_FEW)


def full_figures() -> Iterator[Figure]:
    """Twenty seeds of each robot."""
    return _figures(_MANY)


def _figures(seeds: range) -> Iterator[Figure]:
    kinds = {
        "legs, PD law known": _legs,
        "legs, DC motors at their limit": _motors,
        "arm of six servos, gains unknown": _servos,
    }
    for kind, make in kinds.items():
        cases = [make(seed) for seed in seeds]
        z = np.concatenate([(c.found.values - c.true) / c.found.std for c in cases])
        away = max(abs(c.found.values[c.delay] - c.true[c.delay]) for c in cases)
        stalled = sum(not c.found.converged for c in cases)
        share = float(np.mean(np.abs(z) < 3.0))
        narrow = float(np.mean(np.abs(z) < 1.96))
        yield Figure(kind, "within 1.96 std", "0.95", f"{narrow:.3f}", abs(narrow - 0.95), np.inf, "for the record")
        yield Figure(
            kind, "within 3 std", f">= {_WITHIN:g}", f"{share:.3f} of {len(z)}", max(0.0, _WITHIN - share), 0.0, _REASON
        )
        shown = f"{1e3 * away:.3f} ms"
        yield Figure(kind, "largest error of the delay", f"<= {1e3 * _DELAY:g} ms", shown, away, _DELAY, "asked for")
        yield Figure(kind, "fits that stall", "0", str(stalled), stalled, 0.0, "none may")


def _robot() -> dynid.Robot:
    with tempfile.TemporaryDirectory() as folder:
        return given_robot(str(Path(folder) / "legs.xml"))


def _delay(seed: int) -> float:
    """Whole control periods up to 15 ms."""
    return float(np.random.default_rng(1000 + seed).integers(0, 16)) / CONTROL


def _legs(seed: int) -> _Case:
    robot, delay = _robot(), _delay(seed)
    law = ActuatorLaw(robot.coordinates, kp=20.0, kd=1.5, rate=CONTROL)
    log = logged(legs(truth(seed)), law.changed(delay=delay), chirps(10.0, seed), ratio=100)
    return _Case(identify_actuators(robot, log, law), np.append(truth(seed).T.ravel(), delay), 18)


def _motors(seed: int) -> _Case:
    robot, delay = _robot(), _delay(seed)
    law = ActuatorLaw(robot.coordinates, kp=40.0, kd=1.0, rate=CONTROL, no_load_velocity=12.0)
    stall = np.random.default_rng(2000 + seed).uniform(4.0, 7.0, 6)
    plant = law.changed(delay=delay, stall_torque=stall)
    log = logged(legs(truth(seed)), plant, chirps(8.0, seed, amplitude=0.8), ratio=100)
    unknown = ("armature", "damping", "friction", "delay", "stall_torque")
    found = identify_actuators(robot, log, law, unknown=unknown)
    return _Case(found, np.concatenate([truth(seed).T.ravel(), [delay], stall]), 18)


def _servos(seed: int) -> _Case:
    robot, log, law, true = servo_arm(seed, _delay(seed))
    unknown = ("armature", "damping", "friction", "delay", "gain")
    found = identify_actuators(robot, log, law, unknown=unknown)
    return _Case(found, true, 18)
