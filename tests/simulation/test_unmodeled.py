"""Stiction, ripple and flexible joints against the same equations written out and integrated by others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.integrate

import dynid
from dynid import controllers
from dynid.simulation import UnmodeledEffects
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.engine import simulate
from dynid.simulation.sensors import Sensors
from dynid.simulation.simulation import Simulation
from tests.support.closed_loops import TX40, Array, pendulum, refused, still, tx40_reference, wheel

RATE, SLOPE = 1000.0, 50.0
EXACT = Sensors(velocity="exact")
BARE = dynid.load_robot("twolink").without("f*", "Ia*")
ROTORS, VISCOUS, COULOMB = np.array([0.3, 0.4]), np.array([0.8, 0.6]), np.array([0.5, 0.7])
STICTION, STRIBECK = np.array([0.4, 0.2]), 0.1
RIPPLE, HARMONICS, PHASE = np.array([0.3, 0.2]), np.array([6.0, 4.0]), np.array([0.2, 1.0])
STIFFNESS, DAMPING = np.array([2000.0, 900.0]), np.array([2.0, 1.0])
ALL = UnmodeledEffects(
    stiction=STICTION,
    stribeck_velocity=STRIBECK,
    ripple=RIPPLE,
    harmonics=HARMONICS,
    phase=PHASE,
    stiffness=STIFFNESS,
    damping=DAMPING,
)
TIME = np.arange(300) / RATE
PATH = np.column_stack([0.5 * np.sin(2 * np.pi * TIME) ** 2, -0.4 * np.sin(3 * np.pi * TIME)])
LAW = controllers.pd(RATE, [400, 200], [40, 20])


def two_link() -> dynid.Robot:
    """The two-link with rotors, viscous and Coulomb friction."""
    values = zip(ROTORS, VISCOUS, COULOMB, strict=True)
    terms = [
        BARE.joint_term(i, s, x) for i, row in enumerate(values) for s, x in zip(("Ia", "fv", "fc"), row, strict=True)
    ]
    return BARE.with_terms(*terms)


def run(effects: UnmodeledEffects | None, loop: ClosedLoop, robot: dynid.Robot | None = None) -> Simulation:
    done = simulate(robot or two_link(), replace(loop, controller=LAW), PATH, unmodeled=effects)
    assert done.completed
    return done


def test_flexible_joints_equal_an_integration_of_the_written_out_equations() -> None:
    """Links driven by springs, motors by torques: DOP853 at 1e-11 under the same held torques, all effects on.

    1e-8 leaves thirty times the measured difference.
    """

    def slope(_: float, x: Array, tau: Array) -> Array:
        q, v, motor, motor_v = x.reshape(4, 2)
        spring = STIFFNESS * (motor - q) + DAMPING * (motor_v - v)
        sign = np.tanh(SLOPE * motor_v)
        friction = VISCOUS * motor_v + COULOMB * sign + STICTION * np.exp(-((motor_v / STRIBECK) ** 2)) * sign
        ripple = RIPPLE * np.sin(HARMONICS * motor + PHASE)
        a = dynid.forward_dynamics(BARE, q, v, spring)
        return np.concatenate([v, a, motor_v, (tau - spring - friction - ripple) / ROTORS])

    done = run(ALL, ClosedLoop(integrator="dopri5", tolerance=1e-11, coulomb_slope=SLOPE))
    states = np.column_stack([done.q, done.v, done.motor_q, done.motor_v])
    assert np.abs(done.q - done.motor_q).max() > 1e-2
    x, worst = states[0], 0.0
    for state, tau in zip(states, done.torque, strict=True):
        worst = max(worst, np.abs(x - state).max())
        x = scipy.integrate.solve_ivp(slope, (0, 1 / RATE), x, "DOP853", args=(tau,), rtol=1e-11, atol=1e-11).y[:, -1]
    assert worst < 1e-8
    expected = [slope(0.0, x, tau)[2:4] for x, tau in zip(states, done.torque, strict=True)]
    np.testing.assert_allclose(done.a, expected, atol=1e-8)
    # Steps chosen for friction and the springs keep RK4 near it; the implicit one is of first order.
    fixed = run(ALL, ClosedLoop(integrator="rk4", coulomb_slope=SLOPE))
    assert np.abs(fixed.q - done.q).max() < 1e-5
    coarse, fine = (
        np.abs(run(ALL, ClosedLoop(integrator="implicit", substeps=k, coulomb_slope=SLOPE)).q - done.q).max()
        for k in (8, 16)
    )
    assert coarse < 1e-3 and coarse / fine == pytest.approx(2.0, rel=0.2)


def test_accelerations_of_an_implicit_run_are_those_of_its_states() -> None:
    """Not the mean of a step, whose stiff springs and friction it has smoothed."""
    done = run(ALL, ClosedLoop(integrator="implicit", substeps=4, coulomb_slope=SLOPE))
    spring = STIFFNESS * (done.motor_q - done.q) + DAMPING * (done.motor_v - done.v)
    np.testing.assert_allclose(done.a, dynid.forward_dynamics(BARE, done.q, done.v, spring), atol=1e-9)


def test_stiff_springs_come_to_the_rigid_robot() -> None:
    """Ten times stiffer, ten times closer."""
    rigid = run(None, ClosedLoop(integrator="dopri5", coulomb_slope=SLOPE))
    errors = []
    for stiffness in (1e4, 1e5, 1e6):
        effects = UnmodeledEffects(stiffness=stiffness, damping=0.05 * np.sqrt(stiffness))
        errors.append(np.abs(run(effects, ClosedLoop(integrator="dopri5", coulomb_slope=SLOPE)).q - rigid.q).max())
    np.testing.assert_allclose(np.divide(errors[:-1], errors[1:]), 10.0, rtol=0.1)
    assert errors[-1] < 2e-4
    # However stiff: implicit steps stay stable, and explicit ones are refused by number.
    stiff = run(UnmodeledEffects(stiffness=1e12), ClosedLoop(integrator="implicit", substeps=8, coulomb_slope=SLOPE))
    assert (
        np.abs(stiff.q - run(None, ClosedLoop(integrator="implicit", substeps=8, coulomb_slope=SLOPE)).q).max() < 1e-5
    )
    refused(lambda: run(UnmodeledEffects(stiffness=1e14), ClosedLoop(integrator="rk4")), "rk4", "steps", "implicit")


@pytest.mark.parametrize("integrator", ["rk4", "semi-implicit", "dopri5"])
def test_a_step_of_torque_swings_the_spring(integrator: str) -> None:
    """Two wheels on a spring: the twist is torque/(B w2) (1 - cos w t), w2 = K (1/I + 1/B)."""
    effects = UnmodeledEffects(stiffness=300.0, motor_inertia=0.2)
    push = controllers.function(RATE, 1, lambda *_: [3.0])
    done = simulate(
        wheel(0.5, Ia=7.0), ClosedLoop(controller=push, integrator=integrator), still(1, RATE, 0.5), unmodeled=effects
    )  # type: ignore[arg-type]
    w = np.sqrt(300 * (1 / 0.5 + 1 / 0.2))
    twist = 3.0 / (0.2 * w**2) * (1 - np.cos(w * done.t))
    # The given inertia replaces the rotor of the model. Euler's half step of phase is 2 % of the amplitude.
    tolerance = 3e-2 if integrator == "semi-implicit" else 1e-5
    np.testing.assert_allclose((done.motor_q - done.q)[:, 0], twist, atol=tolerance * twist.max())
    np.testing.assert_allclose(0.5 * done.q + 0.2 * done.motor_q, 1.5 * done.t[:, None] ** 2, atol=1e-3)


def test_encoders_are_on_the_motors_and_links_hang_in_the_springs() -> None:
    """A pendulum held by its motor: the link hangs lower by gravity over stiffness, from the first sample on."""
    law = controllers.pd(RATE, 500.0, 20.0).with_feedforward("gravity", pendulum())
    effects = UnmodeledEffects(stiffness=400.0, motor_inertia=0.1)
    done = simulate(pendulum(), ClosedLoop(controller=law, sensors=EXACT), still(1, RATE, 0.2, 0.5), unmodeled=effects)
    np.testing.assert_array_equal(done.measured_q, done.motor_q)
    np.testing.assert_array_equal(done.measured_v, done.motor_v)
    q = done.q[0, 0]
    assert done.motor_q[0, 0] == 0.5 and q == pytest.approx(0.5 - 9.81 * 2 * np.cos(q) / 400, abs=1e-12)
    # Feed-forward is for the motor's angle, not the link's: a little is missing, which the gain holds.
    assert np.abs(done.q - q).max() < 5e-3 and np.abs(done.run().q - done.motor_q).max() == 0
    given = simulate(
        pendulum(), ClosedLoop(controller=law), still(1, RATE, 0.2, 0.5), unmodeled=effects, initial=([0.7], [1.0])
    )
    assert given.motor_q[0, 0] == 0.7 and given.v[0, 0] == given.motor_v[0, 0] == 1.0


def test_disturbances_push_the_links() -> None:
    """A constant push of 4 N m against a stiffness of 400 in series with a gain of 500."""
    law = controllers.pd(RATE, 500.0, 40.0)
    effects = UnmodeledEffects(stiffness=400.0, damping=4.0, motor_inertia=0.3)
    path = still(1, RATE, 3.0)
    done = simulate(
        wheel(0.3), ClosedLoop(controller=law), path, unmodeled=effects, disturbance=np.full(path.q.shape, 4.0)
    )
    assert done.motor_q[-1, 0] == pytest.approx(4 / 500, rel=1e-5)
    assert done.q[-1, 0] == pytest.approx(4 / 500 + 4 / 400, rel=1e-5)


def test_one_joint_may_give_and_the_other_not() -> None:
    """The rigid one's motor is its link; a spring of 1e7 in its place comes to the same."""
    loop = ClosedLoop(integrator="dopri5", coulomb_slope=SLOPE)
    mixed = run(UnmodeledEffects(stiffness=[np.inf, 900.0]), loop)
    np.testing.assert_array_equal(mixed.motor_q[:, 0], mixed.q[:, 0])
    assert np.abs(mixed.motor_q - mixed.q)[:, 1].max() > 1e-2
    stiff = run(UnmodeledEffects(stiffness=[1e7, 900.0], damping=[100.0, 0.0]), loop)
    np.testing.assert_allclose(stiff.q, mixed.q, atol=3e-5)


@pytest.mark.parametrize(
    "loop",
    [ClosedLoop(coulomb_slope=SLOPE), ClosedLoop(integrator="implicit", substeps=4, coulomb_slope=SLOPE)],
    ids=["rk4", "implicit"],
)
def test_stiction_and_ripple_of_a_rigid_joint(loop: ClosedLoop) -> None:
    """inertia a = torque - friction - stiction - ripple, sample by sample."""
    effects = UnmodeledEffects(stiction=2.0, stribeck_velocity=0.3, ripple=1.5, harmonics=7.0, phase=0.4)
    wave = 0.8 * np.sin(2 * np.pi * np.arange(1000) / RATE)[:, None]
    done = simulate(
        wheel(0.5, fv=0.7, fc=1.0), replace(loop, controller=controllers.pd(RATE, 60.0, 5.0)), wave, unmodeled=effects
    )
    q, v = done.q, done.v
    friction = 0.7 * v + np.tanh(SLOPE * v) * (1.0 + 2.0 * np.exp(-((v / 0.3) ** 2)))
    np.testing.assert_allclose(0.5 * done.a, done.torque - friction - 1.5 * np.sin(7 * q + 0.4), atol=1e-9)
    np.testing.assert_array_equal(done.motor_q, q)


def test_exact_stiction_holds_until_it_breaks_away() -> None:
    """A torque that grows by 1 N m/s moves the wheel at Coulomb friction and stiction together, 3 N m, not before."""
    ramp = controllers.function(RATE, 1, lambda t, *_: [t])
    effects = UnmodeledEffects(stiction=2.0, stribeck_velocity=0.1)
    loop = ClosedLoop(integrator="implicit", coulomb_slope="exact")
    done = simulate(wheel(0.5, fc=1.0), replace(loop, controller=ramp), still(1, RATE, 4.0), unmodeled=effects)
    moving = done.v[:, 0] > 1e-9
    assert not moving[done.t < 3.0].any() and moving[done.t > 3.003].all()
    # Once it moves the stiction has gone: 0.5 a = torque - 1.
    late = done.t > 3.7
    np.testing.assert_allclose(np.diff(done.v[late, 0]) * RATE * 0.5, done.t[late][:-1] - 1.0, rtol=1e-3)


def test_smooth_stiction_takes_the_slope_of_coulomb_friction() -> None:
    """The robot's own where it has one, the loop's where not."""
    effects = UnmodeledEffects(stiction=2.0, stribeck_velocity=1.0)
    wave = 0.3 * np.sin(2 * np.pi * np.arange(300) / RATE)[:, None]
    law = controllers.pd(RATE, 60.0, 5.0)
    for robot, slope in ((wheel(fc=1.0).with_smooth_coulomb(20.0), 20.0), (wheel(fc=1.0), 80.0)):
        done = simulate(robot, ClosedLoop(controller=law, coulomb_slope=80.0), wave, unmodeled=effects)
        friction = np.tanh(slope * done.v) * (1.0 + 2.0 * np.exp(-(done.v**2)))
        np.testing.assert_allclose(0.5 * done.a, done.torque - friction, atol=1e-9)


def test_nothing_unmodelled_is_the_rigid_robot_to_the_last_bit() -> None:
    """With effects that are all off, and for every integrator."""
    path = tx40_reference(RATE, 0.2)
    law = controllers.cascade(RATE, *controllers.bandwidth_gains(TX40, 8.0))
    for name in ("rk4", "dopri5", "implicit"):
        loop = ClosedLoop(integrator=name)  # type: ignore[arg-type]
        plain, none = (
            simulate(TX40, replace(loop, controller=law), path, unmodeled=x) for x in (None, UnmodeledEffects())
        )
        for field in ("q", "v", "torque", "measured_q", "motor_q"):
            np.testing.assert_array_equal(getattr(plain, field), getattr(none, field))
        np.testing.assert_allclose(plain.a, none.a, atol=1e-9)
        np.testing.assert_array_equal(plain.motor_v, plain.v)


def test_bad_effects_are_refused() -> None:
    """One sentence each, with the culprit."""
    for name, value in (
        ("stiction", -1.0), ("stribeck_velocity", 0.0), ("ripple", np.nan), ("harmonics", np.inf), ("phase", "east"),
        ("stiffness", 0.0), ("damping", -1.0), ("damping", np.inf), ("motor_inertia", 0.0), ("stiffness", [[1.0]]),
    ):  # fmt: skip
        refused(lambda name=name, value=value: UnmodeledEffects(**{name: value}), name)  # type: ignore[misc]
    path = still(1, RATE, 0.1)
    law = controllers.pd(RATE, 1.0, 1.0)
    refused(
        lambda: simulate(wheel(), ClosedLoop(controller=law), path, unmodeled=UnmodeledEffects(stiction=[1.0, 2.0])),
        "stiction",
        "(1)",
    )
    refused(
        lambda: simulate(wheel(), ClosedLoop(controller=law), path, unmodeled=UnmodeledEffects(stiffness=100.0)),
        "j1",
        "motor_inertia",
    )
    soft = UnmodeledEffects(stiffness=3.0, motor_inertia=1.0)
    refused(lambda: simulate(pendulum(), ClosedLoop(controller=law), path, unmodeled=soft), "soft", "gravity")
    refused(lambda: simulate(wheel(), ClosedLoop(controller=law), path, unmodeled="all"), "UnmodeledEffects")  # type: ignore[arg-type]
    fine = replace(soft, stiffness=3000.0)
    assert simulate(pendulum(), ClosedLoop(controller=law), path, unmodeled=fine).completed
