"""Small robots with known answers, and what several tests of the closed loop need."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid import Robot
from dynid.excitation.basis import random_fourier
from dynid.robot import Joint, Limits, Link
from dynid.simulation.reference import Reference

Array = NDArray[np.float64]
TX40 = dynid.load_robot("tx40")


def refused(call: Callable[[], object], *words: str) -> None:
    """The call ends in a dynid error of one line that holds every one of the words."""
    with pytest.raises(dynid.DynidError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message and len(message) > 10
    for word in words:
        assert word in message, f"'{word}' is not in: {message}"


def wheel(inertia: float = 0.5, **drive: float) -> Robot:
    """One vertical axis: no gravity acts, so torque = inertia a + friction."""
    return _one(inertia, np.array([0.0, 0.0, 1.0]), **drive)


def pendulum(inertia: float = 0.5, lever: float = 2.0, **drive: float) -> Robot:
    """One horizontal axis with mass times distance `lever`: torque = inertia a + 9.81 lever cos(q) + friction."""
    return _one(inertia, np.array([0.0, -1.0, 0.0]), lever, **drive)


def _one(inertia: float, axis: Array, lever: float = 0.0, **drive: float) -> Robot:
    numbers = np.array([5.0, lever, 0, 0, inertia, 0, inertia, 0, 0, inertia])
    robot = Robot(
        name="one",
        links=(Link("base", np.zeros(10)), Link("arm", numbers)),
        joints=(Joint("j1", "revolute", 0, np.eye(4), axis, limits=Limits(-6.0, 6.0, 20.0, 50.0)),),
        gravity=np.array([0.0, 0.0, -9.81]),
    )
    return robot.with_terms(*(robot.joint_term(0, symbol, value) for symbol, value in drive.items()))


def tx40_reference(rate: float, seconds: float, seed: int = 0) -> Reference:
    """A wide random motion of the TX40, the first `seconds` of an 8 s period."""
    limits = [TX40.limits[c] for c in TX40.coordinates]
    lower, upper, speed = np.array([[x.lower, x.upper, x.velocity] for x in limits]).T
    return Reference(rate, *random_fourier(lower, upper, speed, 8.0, np.arange(round(seconds * rate)) / rate, seed))


def still(n: int, rate: float, seconds: float, at: float = 0.0) -> Reference:
    """A reference that does not move."""
    q = np.full((round(seconds * rate), n), at)
    return Reference(rate, q, 0 * q, 0 * q)
