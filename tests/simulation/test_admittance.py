"""A robot under admittance control answers pushes as the mass, damper and spring that were asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.signal

import dynid
from dynid import controllers
from dynid.errors import InvalidShape, InvalidType, InvalidValue, NotApplicable
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.engine import simulate
from dynid.simulation.sensors import Sensors
from dynid.simulation.simulation import Simulation
from tests.support.errors import expect_error

RATE = 1000.0
ROBOT = dynid.load_robot("twolink").without("fc*").with_gravity([0.0, -9.81, 0.0])
A, D, K = np.array([2.0, 0.5]), np.array([8.0, 1.5]), np.array([30.0, 12.0])
T = np.arange(1200) / RATE
EXACT = Sensors(velocity="exact")


def pushed(push: np.ndarray, path: np.ndarray, law: Any = None, robot: dynid.Robot = ROBOT) -> Simulation:
    """A simulation under external torques (K, 2), which the sensor measures."""
    if law is None:
        law = controllers.admittance(RATE, ROBOT, A, D, K, lambda t: push[round(t * RATE)])
    loop = ClosedLoop(controller=law, sensors=EXACT, integrator="rk4", substeps=2)
    return simulate(robot, loop, path, disturbance=push)


def ideal(push: np.ndarray) -> np.ndarray:
    """The response of A e'' + D e' + K e = torque, joint by joint."""
    found = [scipy.signal.lsim(([1.0], [a, d, k]), p, T)[1] for a, d, k, p in zip(A, D, K, push.T, strict=True)]
    return np.column_stack(found)


PUSHES: dict[str, Callable[[], np.ndarray]] = {
    "step": lambda: np.outer(T > 0.1, [3.0, -2.0]),
    "waves": lambda: np.column_stack([4 * np.sin(9 * T), 2 * np.sin(15 * T + 1) - 2 * np.sin(1.0)]),
}


@pytest.mark.parametrize("name", list(PUSHES))
def test_the_response_is_that_of_mass_damper_and_spring(name: str) -> None:
    """About a point at rest; the tenth of a millimetre left over is the tick that the torque is held."""
    push, path = PUSHES[name](), np.tile([0.4, 0.8], (len(T), 1))
    run, expect = pushed(push, path), ideal(push)
    assert np.abs(expect).max() > 0.05
    assert np.abs(run.q - path - expect).max() < 5e-3 * np.abs(expect).max()


def test_the_response_adds_to_a_motion() -> None:
    """Along a path, and against no push the path itself."""
    push, path = PUSHES["step"](), 0.3 * np.column_stack([1 - np.cos(4 * T), 1 - np.cos(6 * T)])
    run, alone = pushed(push, path), pushed(0 * push, path)
    np.testing.assert_allclose(alone.q, path, atol=2e-3)
    np.testing.assert_allclose(run.q - alone.q, ideal(push), atol=2e-3)


def test_inertia_is_shaped_which_impedance_cannot() -> None:
    """The first acceleration after a push is the torque over A, whatever the mass matrix of the arm."""
    push, path = np.outer(T > -1, [3.0, 0.0]), np.tile([0.4, 0.8], (len(T), 1))
    own = np.linalg.solve(dynid.mass_matrix(ROBOT, path[:1])[0], push[0])
    run = pushed(push, path)
    start = 2 * (run.q[20] - run.q[0]) / T[20] ** 2
    np.testing.assert_allclose(start, [3.0 / A[0], 0.0], atol=0.06)
    assert np.abs(own - [3.0 / A[0], 0.0]).max() > 0.5
    soft = pushed(push, path, controllers.impedance(RATE, ROBOT, K, D))
    assert np.abs(2 * (soft.q[20] - soft.q[0]) / T[20] ** 2 - own).max() < 0.2 * np.abs(own).max()


def test_every_simulation_starts_at_rest() -> None:
    """The same law twice gives the same motion twice."""
    push, path = PUSHES["step"](), np.tile([0.4, 0.8], (len(T), 1))
    law = controllers.admittance(RATE, ROBOT, A, D, K, lambda t: push[round(t * RATE)])
    np.testing.assert_array_equal(pushed(push, path, law).q, pushed(push, path, law).q)


def test_bad_settings_are_refused() -> None:
    push = np.zeros(2)
    for given, error in (
        ({"inertia": 0.0}, (InvalidValue, "inertia")),
        ({"damping": -1.0}, (InvalidValue, "inertia")),
        ({"stiffness": [1.0, 2.0, 3.0]}, (InvalidShape, "")),
        ({"external": push}, (InvalidType, "external")),
        ({"slope": 0.0}, (InvalidValue, "slope")),
        ({"model": ROBOT.with_base("floating")}, (NotApplicable, "")),
    ):
        good: dict[str, Any] = {"inertia": 1.0, "damping": 1.0, "stiffness": 1.0, "external": lambda t: push}
        with expect_error(*error):
            controllers.admittance(RATE, **{"model": ROBOT, **good, **given})
    law = controllers.admittance(RATE, ROBOT, A, D, K, lambda t: [np.nan, 0.0])
    with expect_error(InvalidShape, "external"):
        pushed(np.zeros((len(T), 2)), np.zeros((len(T), 2)), law)
