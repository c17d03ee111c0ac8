"""Energy of simulated motions: the work of the drives is stored by the robot or dissipated by friction."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
import dynid.simulation
from dynid import controllers
from dynid.simulation import UnmodeledEffects
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.engine import simulate
from tests.support.closed_loops import TX40, pendulum, refused, still, tx40_reference, wheel

FREE = controllers.function(1000.0, 1, lambda *_: [0.0])


def test_a_flexible_arm_without_friction_keeps_its_energy() -> None:
    """Coupled rotors, springs in the joints, ripple and offsets: work is the change of energy to 1e-8 of it."""
    values = {"Ia_motor6": 0.006, "off_joint2": 1.5, "off_joint5": -0.3}
    robot = TX40.with_parameters([values.get(k, x) for k, x in zip(TX40.parameter_names, TX40.parameters, strict=True)])
    robot = robot.without("f*")
    law = controllers.cascade(1000.0, *controllers.bandwidth_gains(robot, 5.0))
    effects = UnmodeledEffects(
        stiffness=[2e4, 2e4, 8e3, 3e3, 3e3, 1e3], ripple=0.5, harmonics=[5, 4, 3, 2, 1, 0], phase=0.3
    )
    done = simulate(
        robot,
        ClosedLoop(controller=law, integrator="dopri5", tolerance=1e-10),
        tx40_reference(1000.0, 0.5),
        unmodeled=effects,
    )
    audit = dynid.simulation.energy_audit(done)
    assert done.completed and audit.elastic.max() > 0.01 and np.ptp(audit.work) > 1.0
    assert np.abs(audit.lost).max() < 1e-7 * np.ptp(audit.work)
    assert audit.passive() and audit.rise < 1e-7 * np.ptp(audit.work)
    # Without the springs' share the balance does not close.
    assert np.ptp(audit.lost + audit.elastic) > 1e-3 * np.ptp(audit.work)


def test_damping_takes_what_is_lost() -> None:
    """A damped spring between two wheels: D (w - v)^2 over time, by a fine trapezoid."""
    push = controllers.function(10_000.0, 1, lambda t, *_: [3.0 * np.cos(20 * t)])
    effects = UnmodeledEffects(stiffness=300.0, damping=0.5, motor_inertia=0.2)
    done = simulate(wheel(0.5), ClosedLoop(controller=push), still(1, 10_000.0, 0.5), unmodeled=effects)
    audit = dynid.simulation.energy_audit(done)
    power = 0.5 * (done.motor_v - done.v)[:, 0] ** 2
    lost = np.append(0.0, np.cumsum(0.5 * (power[1:] + power[:-1])) / 10_000.0)
    np.testing.assert_allclose(audit.lost, lost, atol=1e-5 * lost[-1])
    np.testing.assert_allclose(audit.elastic, 150.0 * (done.motor_q - done.q)[:, 0] ** 2)


def test_a_passive_fall_only_loses() -> None:
    """No torque: the total energy never rises, friction or not; a model that pushes instead of braking is caught."""
    path = still(1, 1000.0, 2.0, 1.0)
    free, braked, pushed = (
        dynid.simulation.energy_audit(
            simulate(pendulum(**drive), ClosedLoop(controller=FREE, integrator="dopri5"), path)
        )
        for drive in ({}, {"fv": 1.0, "fc": 2.0}, {"fv": -0.1})
    )
    assert np.ptp(free.kinetic) > 10 and np.ptp(free.total) < 1e-6 and free.passive()
    assert braked.passive() and np.all(np.diff(braked.total) < 1e-9) and braked.lost[-1] > 1.0
    assert not pushed.passive() and pushed.rise > 1.0
    np.testing.assert_allclose(braked.total[0] - braked.total, braked.lost)


def test_parameters_and_disturbances_count() -> None:
    """The audit uses the parameters that were simulated."""
    path = still(1, 1000.0, 0.5)
    robot = wheel(0.5)
    heavy = robot.parameters.copy()
    heavy[robot.parameter_names.index("Izz_arm")] = 2.0
    done = simulate(
        robot,
        ClosedLoop(controller=FREE, integrator="dopri5"),
        path,
        parameters=heavy,
        disturbance=np.full(path.q.shape, 4.0),
    )
    audit = dynid.simulation.energy_audit(done)
    np.testing.assert_allclose(audit.kinetic, done.v[:, 0] ** 2)
    np.testing.assert_allclose(audit.work, 4 * (done.q - done.q[0])[:, 0])
    assert audit.lost == pytest.approx(0.0, abs=1e-9)


def test_what_cannot_be_audited_is_refused() -> None:
    """A thinned record, a single sample, a term without energy."""
    path = still(1, 1000.0, 0.1)
    refused(
        lambda: dynid.simulation.energy_audit(simulate(wheel(), ClosedLoop(controller=FREE), path, rate=500.0)),
        "one sample per 2 control periods",
    )
    wrong = simulate(wheel(), ClosedLoop(controller=controllers.function(1000.0, 1, lambda *_: [1e12])), path)
    refused(lambda: dynid.simulation.energy_audit(wrong), "two samples")
