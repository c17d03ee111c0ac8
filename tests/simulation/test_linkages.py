"""Simulation of controlled linkages with closed loops."""

import numpy as np
import pytest
import scipy

import dynid
from dynid import ClosedLoop
from dynid.dynamics import kinetic_energy, potential_energy
from dynid.errors import Mismatch, NotApplicable
from tests.support.errors import expect_error
from tests.support.linkages import InMujoco, parallelogram, stuck


def _free(rate=1000.0, n=1):
    return dynid.controllers.pd(rate, np.zeros(n), np.zeros(n))


# Compiling the simulation of linkages takes minutes.
pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("make", "start", "reach"),
    [(lambda: dynid.load_robot("fourbar").without("f*"), -0.6, 4.0), (parallelogram, 0.5, 1.5)],
    ids=["fourbar", "parallelogram"],
)
def test_free_swing_keeps_its_energy_and_equals_another_integrator(make, start, reach):
    robot = make()
    loop = ClosedLoop(controller=_free(), integrator="dopri5", tolerance=1e-11)
    done = dynid.simulate(robot, loop, np.full((10_000, 1), start))
    assert done.completed
    assert np.ptp(done.q) > reach
    assert np.ptp(kinetic_energy(robot, done.q, done.v) + potential_energy(robot, done.q)) < 1e-8

    def rate(_, x):
        return [x[1], dynid.forward_dynamics(robot, x[:1], x[1:], [0.0])[0]]

    end = scipy.integrate.solve_ivp(rate, (0, 1), [start, 0.0], rtol=1e-10, atol=1e-10).y[:, -1]
    assert [done.q[1000, 0], done.v[1000, 0]] == pytest.approx(end, abs=1e-6)


@pytest.mark.parametrize("integrator", ["auto", "implicit"])
def test_friction_in_passive_joints(integrator):
    robot = dynid.load_robot("fourbar").with_drives({"crank": "viscous+coulomb", "rocker": "viscous+coulomb"})
    values = dict(zip(robot.parameter_names, robot.parameters, strict=True))
    values |= {"fv_rocker": 0.1, "fc_rocker": 0.2}
    robot = robot.with_parameters([values[name] for name in robot.parameter_names]).with_smooth_coulomb(20.0)
    loop = ClosedLoop(controller=_free(2000.0), integrator=integrator)
    done = dynid.simulate(robot, loop, np.full((1000, 1), -0.6))

    def rate(_, x):
        return [x[1], dynid.forward_dynamics(robot, x[:1], x[1:], [0.0])[0]]

    end = scipy.integrate.solve_ivp(rate, (0, 0.4995), [-0.6, 0.0], rtol=1e-9, atol=1e-9).y[:, -1]
    near = 1e-6 if integrator == "auto" else 2e-2
    assert [done.q[-1, 0], done.v[-1, 0]] == pytest.approx(end, abs=near)


def test_energy_audit_of_a_controlled_linkage(tmp_path):
    """Energies against MuJoCo's of the whole tree; what is lost is the friction of all joints, by a fine trapezoid."""
    pytest.importorskip("mujoco")
    robot = dynid.load_robot("fourbar").with_drives({"crank": "viscous", "rocker": "viscous"}, rotor_inertia=["crank"])
    values = {"fv_crank": 0.05, "fv_rocker": 0.2, "Ia_crank": 0.02}
    pairs = zip(robot.parameter_names, robot.parameters, strict=True)
    robot = robot.with_parameters([values.get(name, x) for name, x in pairs])
    t = np.arange(2000) / 1000.0
    push = dynid.controllers.function(1000.0, 1, lambda t, *_: [1.5 * np.cos(3 * t)])
    done = dynid.simulate(robot, ClosedLoop(controller=push, integrator="dopri5"), np.full((2000, 1), -0.6))
    audit = dynid.simulation.energy_audit(done)
    motion = dynid.dynamics.assemble(robot, done.q, done.v)
    power = 0.05 * motion.v[:, 0] ** 2 + 0.2 * motion.v[:, 2] ** 2
    lost = scipy.integrate.cumulative_simpson(power, x=t, initial=0.0)
    assert lost[-1] > 0.1
    np.testing.assert_allclose(audit.lost, lost, atol=1e-5 * lost[-1])
    assert audit.passive() and np.ptp(audit.work) > 0.5
    other = InMujoco(robot.without("*"), tmp_path)
    theirs = np.array([other.energy(q, v) for q, v in zip(motion.q[::200], motion.v[::200], strict=True)])
    rotor = 0.5 * 0.02 * done.v[::200, 0] ** 2
    np.testing.assert_allclose(audit.kinetic[::200], theirs[:, 0] + rotor, rtol=1e-9)
    np.testing.assert_allclose(np.diff(audit.potential[::200]), np.diff(theirs[:, 1]), atol=1e-9)


def test_free_swing_of_a_palletizer_passes_its_audit():
    robot = dynid.load_robot("palletizer").without("f*")
    loop = ClosedLoop(controller=_free(n=4), integrator="dopri5", tolerance=1e-11)
    done = dynid.simulate(robot, loop, np.tile(robot.home, (300, 1)))
    audit = dynid.simulation.energy_audit(done)
    assert np.ptp(audit.kinetic) > 1.0 and np.ptp(audit.total) < 1e-8 * np.ptp(audit.kinetic) and audit.passive()


def test_computed_torque_follows_its_reference():
    robot = dynid.load_robot("palletizer").with_smooth_coulomb(50.0)
    t = np.arange(1000)[:, None] / 1000.0
    w = np.array([2.0, 3.0, 4.0, 5.0])
    reference = dynid.simulation.Reference(
        1000.0, 0.3 * (1 - np.cos(w * t)), 0.3 * w * np.sin(w * t), 0.3 * w**2 * np.cos(w * t)
    )
    controller = dynid.controllers.computed_torque(1000.0, robot, kp=400.0, kd=40.0)
    done = dynid.simulate(robot, ClosedLoop(controller=controller), reference)
    assert done.completed
    assert done.q == pytest.approx(reference.q, abs=2e-3)
    torque = dynid.inverse_dynamics(robot, done.q, done.v, done.a)
    assert torque == pytest.approx(done.torque, abs=1e-6 * np.abs(torque).max())


def test_singular_posture_ends_a_simulation():
    path, push = np.full((2000, 1), 0.2), np.full((2000, 1), 5.0)
    done = dynid.simulate(stuck(), ClosedLoop(controller=_free()), path, disturbance=push)
    assert not done.completed
    assert "singular posture of loop 'pin' between frames 'coupler_end' and 'rocker_end'" in done.outcome


def test_refused():
    robot = dynid.load_robot("fourbar")
    effects = dynid.simulation.UnmodeledEffects(stiction=0.1, stribeck_velocity=0.1)
    with expect_error(NotApplicable, "unmodeled"):
        dynid.simulate(robot, ClosedLoop(controller=_free()), np.zeros((10, 1)), unmodeled=effects)
    other = dynid.controllers.computed_torque(
        1000.0, dynid.load_robot("twolink").locked({"joint2": 0.0}), kp=1.0, kd=1.0
    )
    with expect_error(Mismatch, "controller"):
        dynid.simulate(robot, ClosedLoop(controller=other), np.zeros((10, 1)))
