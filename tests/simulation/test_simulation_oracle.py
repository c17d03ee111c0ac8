"""The closed loop against Pinocchio's forward dynamics, and against its own balance of energy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
import scipy.integrate

import dynid
from dynid import controllers
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.engine import simulate
from dynid.simulation.simulation import Simulation
from tests.support.closed_loops import TX40, Array, tx40_reference

SLOPE = 50.0
RATE = 1000.0


def coupled() -> dynid.Robot:
    """The TX40 with a rotor inertia, viscous and Coulomb friction on its coupled motor, and offsets."""
    values = {"Ia_motor6": 0.006, "fv_motor6": 0.5, "fc_motor6": 0.8, "off_joint2": 1.5, "off_joint5": -0.3}
    pi = TX40.parameters.copy()
    for name, value in values.items():
        pi[TX40.parameter_names.index(name)] = value
    return TX40.with_parameters(pi)


def friction(robot: dynid.Robot, v: Array) -> Array:
    """Friction and offsets of the coupled TX40, written out: joint by joint, and the shaft of motor 6 (v5 + v6)."""
    value = dict(zip(robot.parameter_names, robot.parameters, strict=True))
    out = np.zeros(v.shape)
    for i in range(6):
        name, velocity = f"joint{i + 1}", v[..., i]
        out[..., i] = (
            value[f"fv_{name}"] * velocity + value[f"fc_{name}"] * np.tanh(SLOPE * velocity) + value[f"off_{name}"]
        )
    shaft = v[..., 4] + v[..., 5]
    # Viscous friction of motor 6 is counted in the joints' own values but for what joins the two.
    out[..., 4] += value["fv_motor6"] * v[..., 5] + value["fc_motor6"] * np.tanh(SLOPE * shaft)
    out[..., 5] += value["fv_motor6"] * v[..., 4] + value["fc_motor6"] * np.tanh(SLOPE * shaft)
    return out


def run(robot: dynid.Robot, seconds: float, loop: ClosedLoop) -> Simulation:
    law = controllers.cascade(RATE, *controllers.bandwidth_gains(robot, [8, 8, 8, 12, 12, 12]))
    return simulate(robot, replace(loop, controller=law), tx40_reference(RATE, seconds))


def test_states_equal_an_integration_of_pinocchios_dynamics() -> None:
    """Span by span under the same held torques, DOP853 at 1e-11: states agree over 1.0 s, velocities included.

    1e-6 is asked for; 1e-8 leaves the adaptive method thirty times its measured difference. RK4 takes 40 steps a span
    through the friction steps, where the wrist's time constant is below a millisecond, to be within 1e-6.
    """
    robot = coupled()
    done = run(robot, 1.0, ClosedLoop(integrator="dopri5", tolerance=1e-11, coulomb_slope=SLOPE))
    fixed = run(robot, 1.0, ClosedLoop(integrator="rk4", substeps=40, coulomb_slope=SLOPE))
    assert np.abs(fixed.q - done.q).max() < 1e-6 and np.abs(fixed.v - done.v).max() < 1e-6
    assert done.completed and np.ptp(done.q, axis=0).min() > 0.3
    model = robot.to_pinocchio()
    data = model.createData()
    rotor = np.zeros((6, 6))
    rotor[4, 5] = rotor[5, 4] = 0.006

    def slope(_: float, x: Array, tau: Array) -> Array:
        q, v = x[:6], x[6:]
        M = pin.crba(model, data, q)
        M = np.triu(M) + np.triu(M, 1).T + rotor
        return np.concatenate([v, np.linalg.solve(M, tau - friction(robot, v) - pin.nle(model, data, q, v))])

    assert np.all(model.armature > 0)  # crba counts the rotors of the joints
    x = np.concatenate([done.q[0], done.v[0]])
    worst = 0.0
    for k, tau in enumerate(done.torque):
        worst = max(worst, np.abs(x - np.concatenate([done.q[k], done.v[k]])).max())
        # Each span starts where the last ended: errors add up as they do in ours.
        x = scipy.integrate.solve_ivp(slope, (0, 1 / RATE), x, "DOP853", args=(tau,), rtol=1e-11, atol=1e-11).y[:, -1]
    assert worst < 1e-8


def test_pinocchios_aba_agrees_without_the_coupling() -> None:
    """Without the coupled rotor its articulated-body algorithm gives the accelerations of the record."""
    robot = coupled().without("Ia_motor6")
    done = run(robot, 1.0, ClosedLoop(coulomb_slope=SLOPE))
    model = robot.to_pinocchio()
    data = model.createData()
    for k in range(0, 1000, 97):
        a = pin.aba(model, data, done.q[k], done.v[k], done.torque[k] - friction(robot, done.v[k]))
        np.testing.assert_allclose(done.a[k], a, atol=1e-8 * max(1.0, np.abs(a).max()))


@pytest.mark.parametrize("integrator", ["rk4", "dopri5"])
def test_energy_balance(integrator: str) -> None:
    """Work of the delivered torques is the change of energy plus what friction takes."""
    robot = coupled()
    # Held torques jump between spans: quadrature inside a span needs its own states, so ticks are short.
    law = controllers.cascade(20_000.0, *controllers.bandwidth_gains(robot, 8.0))
    done = simulate(
        robot, ClosedLoop(controller=law, integrator=integrator, coulomb_slope=SLOPE), tx40_reference(20_000.0, 1.0)
    )  # type: ignore[arg-type]
    h = 1 / 20_000.0
    work = np.sum(done.torque[:-1] * np.diff(done.q, axis=0))  # exact: the torque is constant over a span
    power = np.sum(friction(robot, done.v) * done.v, axis=1)
    lost = h * (np.sum(power) - 0.5 * (power[0] + power[-1]))
    energy = dynid.dynamics.kinetic_energy(robot, done.q, done.v) + dynid.dynamics.potential_energy(robot, done.q)
    assert lost > 1.0 and abs(work) > 1.0
    # The trapezoid of the friction power errs by 1e-7 of it.
    assert work == pytest.approx(energy[-1] - energy[0] + lost, rel=1e-6)
