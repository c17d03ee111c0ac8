"""Energy: its regressors, the power that changes it, and motions that keep it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import dynid
from dynid import Robot
from tests.support.compare import difference
from tests.support.random_robots import displaced, random_motion, random_robot, robots

Array = NDArray[np.float64]

examples = settings(max_examples=30, deadline=None, derandomize=True)
seeds = st.integers(0, 2**16)


def frictionless(robot: Robot) -> Robot:
    """Without friction and offsets: rotors and springs stay, both of which store energy."""
    return robot.without("f*", "off*")


def energy(robot: Robot, q: Array, v: Array) -> Array:
    return dynid.dynamics.kinetic_energy(robot, q, v) + dynid.dynamics.potential_energy(robot, q)


@examples
@given(robots(bases=("fixed", "floating"), drives=True, mimics=3), seeds)
def test_kinetic_energy_is_half_the_mass_matrix_form(robot: Robot, seed: int) -> None:
    """The kinetic energy regressor times pi equals v'Mv/2, coupled and cross-only rotors included."""
    q, v, _ = random_motion(robot, seed)
    T = dynid.dynamics.kinetic_energy_regressor(robot, q, v) @ robot.parameters
    assert np.array_equal(T, dynid.dynamics.kinetic_energy(robot, q, v))
    half = 0.5 * np.einsum("ki,kij,kj->k", v, dynid.mass_matrix(robot, q), v)
    assert difference(T, half) < 1e-12  # sums of some hundred rounded terms


@examples
@given(robots(bases=("fixed", "floating"), drives=True, mimics=3), seeds)
def test_slope_of_potential_energy_is_the_static_torque(robot: Robot, seed: int) -> None:
    """dU/dq column by column of the regressor equals the regressor of a robot at rest, springs included."""
    robot = frictionless(robot)
    q, v, _ = random_motion(robot, seed, samples=2)
    still = np.zeros_like(v)
    Y = dynid.regressor(robot, q, still, still)
    step = 1e-5  # truncation 1e-10 and rounding 1e-16 / step, times energies of some hundred joules
    for i, direction in enumerate(np.eye(robot.nv)):
        ahead, behind = (
            dynid.dynamics.potential_energy_regressor(
                robot, displaced(robot, q, np.tile(s * step * direction, (len(q), 1)))
            )
            for s in (1, -1)
        )
        assert difference((ahead - behind) / (2 * step), Y[:, i]) < 1e-7


@examples
@given(robots(drives=True, mimics=3), seeds)
def test_power_balance(robot: Robot, seed: int) -> None:
    """Along any motion the energy of a frictionless robot grows by exactly the power v.tau of its torques."""
    robot = frictionless(robot)
    q, v, a = random_motion(robot, seed)
    step = 1e-5
    ahead, behind = (energy(robot, displaced(robot, q, s * step * v), v + s * step * a) for s in (1, -1))
    tau = dynid.inverse_dynamics(robot, q, v, a)[:, -robot.nv :]  # an instrumented base stands still: no power there
    # Central differences: truncation 1e-10, rounding 1e-11, times energies that may exceed the power a hundredfold.
    assert difference((ahead - behind) / (2 * step), np.sum(v * tau, axis=1)) < 1e-6


@examples
@given(robots(drives=True), seeds)
def test_friction_takes_power_away(robot: Robot, seed: int) -> None:
    """Joint and motor friction of every kind, and nothing else, takes power from the motion, at any velocity."""
    only = robot.without("Ia*", "off*", "k*")
    # Viscous terms that keep only the coupling between joints belong with the joints' own: not friction by themselves.
    only = only.without(*(t.name for t in only.drives if t.cross_only and t.symbol == "fv"))
    q, v, a = random_motion(only, seed)
    with_friction = dynid.inverse_dynamics(only, q, v, a)
    lost = np.sum(v * (with_friction - dynid.inverse_dynamics(only.without("f*"), q, v, a))[:, -only.nv :], axis=1)
    assert np.all(lost > 0)


def rates(robot: Robot, state: tuple[Array, Array], tau: Array) -> tuple[Array, Array]:
    """dq/dt and dv/dt; the quaternion is normalised first, so that the flow stays defined around the sphere."""
    q, v = state[0].copy(), state[1]
    if robot.base != "floating":
        return v, dynid.forward_dynamics(robot, q, v, tau)
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    dq = np.zeros_like(q)
    u, w = q[:, 3:6], q[:, 6:7]
    turn = v[:, 3:6]
    linear = v[:, :3]
    dq[:, :3] = linear + 2 * np.cross(u, np.cross(u, linear) + w * linear)  # to world axes
    dq[:, 3:6] = 0.5 * (w * turn + np.cross(u, turn))
    dq[:, 6] = -0.5 * np.sum(u * turn, axis=1)
    dq[:, 7:] = v[:, 6:]
    return dq, dynid.forward_dynamics(robot, q, v, tau)


def simulate(robot: Robot, q: Array, v: Array, duration: float, steps: int) -> list[tuple[Array, Array]]:
    """States of a free motion by the classical Runge-Kutta method."""
    h, tau = duration / steps, np.zeros_like(v)
    states = [(q, v)]
    for _ in range(steps):
        k1 = rates(robot, (q, v), tau)
        k2 = rates(robot, (q + h / 2 * k1[0], v + h / 2 * k1[1]), tau)
        k3 = rates(robot, (q + h / 2 * k2[0], v + h / 2 * k2[1]), tau)
        k4 = rates(robot, (q + h * k3[0], v + h * k3[1]), tau)
        q = q + h / 6 * (k1[0] + 2 * k2[0] + 2 * k3[0] + k4[0])
        v = v + h / 6 * (k1[1] + 2 * k2[1] + 2 * k3[1] + k4[1])
        if robot.base == "floating":
            q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
        states.append((q, v))
    return states


@pytest.mark.parametrize("base", ["fixed", "floating", "instrumented"])
def test_free_motion_keeps_its_energy(base: str) -> None:
    """The energy drift of a frictionless motion is the integrator's: it falls with the fourth power of the step."""
    robot = frictionless(random_robot(21, 4, kinds="rrpr", base=base, drives=True))
    q, v, _ = random_motion(robot, 22, samples=3)

    def drift(steps: int) -> float:
        states = simulate(robot, q, 0.3 * v, 0.5, steps)
        values = np.array([energy(robot, *state) for state in states])
        assert np.ptp(dynid.dynamics.kinetic_energy(robot, *states[-1])) > 1.0  # the robot does move
        return difference(values, np.broadcast_to(values[0], values.shape))

    coarse, fine = drift(200), drift(400)
    assert fine < 1e-6
    assert fine < coarse / 12  # 16 for fourth order, less what higher orders add


def test_friction_slows_a_free_motion() -> None:
    """With viscous friction the energy of a simulated motion falls at every step, and ends far lower."""
    robot = random_robot(31, 4, kinds="rrrp")
    robot = robot.with_terms(*(robot.joint_term(i, s, 2.0) for i in range(robot.n) for s in ("fv", "k")))
    q, v, _ = random_motion(robot, 32, samples=3)
    values = np.array([energy(robot, *state) for state in simulate(robot, q, v, 1.0, 500)])
    assert np.all(np.diff(values, axis=0) < 0)
    assert np.all(values[0] - values[-1] > 1.0)
