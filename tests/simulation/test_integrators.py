"""Integrators: their order, their agreement, their stability under steep friction, and exact sticking."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid import controllers
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.engine import simulate
from dynid.simulation.integrators import Integrator
from dynid.simulation.simulation import Simulation
from tests.support.closed_loops import TX40, Array, pendulum, refused, still, tx40_reference, wheel

RATE = 500.0
EACH: tuple[Integrator, ...] = ("rk4", "semi-implicit", "dopri5", "implicit")


def simulated(
    integrator: Integrator, substeps: int | None = 1, slope: float = 2.0, tolerance: float = 1e-8
) -> Simulation:
    """A loop of two links over half a second with gentle friction."""
    robot = dynid.load_robot("twolink").with_drives("viscous+coulomb")
    pi = robot.parameters.copy()
    for name, value in {"fv_joint1": 2.0, "fc_joint1": 1.5, "fv_joint2": 0.5, "fc_joint2": 0.5}.items():
        pi[robot.parameter_names.index(name)] = value
    robot = robot.with_parameters(pi)
    law = controllers.pd(RATE, [60, 30], [6, 3])
    t = np.arange(250) / RATE
    reference = 0.5 * np.sin(2 * np.pi * 2.0 * t)[:, None] * [1.0, -1.2]
    return simulate(
        robot,
        ClosedLoop(controller=law, integrator=integrator, substeps=substeps, tolerance=tolerance, coulomb_slope=slope),
        reference,
    )


def apart(one: Simulation, other: Simulation) -> float:
    return float(max(np.abs(one.q - other.q).max(), np.abs(one.v - other.v).max()))


@pytest.mark.parametrize(("integrator", "order"), [("rk4", 4), ("semi-implicit", 1), ("implicit", 1)])
def test_order_of_convergence(integrator: Integrator, order: int) -> None:
    """Half the step, an error 2^order times smaller, within 15 %."""
    truth = simulated("dopri5", tolerance=1e-13)
    coarse, fine = (apart(simulated(integrator, k), truth) for k in (4, 8))
    assert coarse / fine == pytest.approx(2**order, rel=0.15)


def test_tolerance_of_dormand_prince_is_kept() -> None:
    """Where steps are chosen, the error follows the tolerance; RK4 with many steps comes to the same states."""
    truth = simulated("rk4", 256, slope=500.0)
    loose, tight = (apart(simulated("dopri5", slope=500.0, tolerance=x), truth) for x in (1e-4, 1e-9))
    assert 1e-7 < loose < 1e-2 and tight < 1e-8 and tight < loose / 1000


def test_all_agree_on_an_arm_with_moderate_friction() -> None:
    """The coupled TX40: first-order methods within their step's error of the adaptive one."""
    law = controllers.cascade(1000.0, *controllers.bandwidth_gains(TX40, 8.0))
    path = tx40_reference(1000.0, 0.5)
    runs = {
        i: simulate(TX40, ClosedLoop(controller=law, integrator=i, substeps=10, coulomb_slope=5.0), path) for i in EACH
    }
    assert all(run.completed for run in runs.values())
    for name, bound in {"rk4": 1e-9, "semi-implicit": 1e-3, "implicit": 1e-3}.items():
        assert np.abs(runs[name].q - runs["dopri5"].q).max() < bound, name


def test_implicit_steps_are_stable_however_steep_friction_is() -> None:
    """Slope 1e6 and steps of 1 ms: the states of exact sticking, where explicit steps are far off."""
    law = controllers.cascade(1000.0, *controllers.bandwidth_gains(TX40, 8.0))
    path = tx40_reference(1000.0, 1.0)
    steep, exact = (
        simulate(TX40, ClosedLoop(controller=law, integrator="implicit", coulomb_slope=c), path) for c in (1e6, "exact")
    )  # type: ignore[arg-type]
    assert steep.completed and np.abs(steep.q - exact.q).max() < 1e-6
    explicit = simulate(TX40, ClosedLoop(controller=law, integrator="rk4", substeps=1, coulomb_slope=1e6), path)
    assert np.abs(explicit.q - exact.q).max() > 1e-4


@pytest.mark.slow
def test_explicit_steps_are_as_many_as_friction_needs() -> None:
    """By default RK4 holds a still wrist still, where one step a period chatters; a hopeless slope is refused."""
    law = controllers.pd(2000.0, [2000, 2000, 600, 300, 300, 100], [60, 60, 20, 8, 8, 3])
    law = law.with_feedforward("gravity", TX40)
    path = still(6, 2000.0, 0.5, 0.3)
    for integrator in ("rk4", "semi-implicit"):
        for slope in (100.0, "auto"):
            loop = ClosedLoop(controller=law, integrator=integrator, coulomb_slope=slope)  # type: ignore[arg-type]
            assert np.abs(simulate(TX40, loop, path).q - path.q).max() < 1e-9
    assert (
        np.abs(simulate(TX40, ClosedLoop(controller=law, integrator="rk4", substeps=1), path).q - path.q).max() > 1e-5
    )
    refused(
        lambda: simulate(TX40, ClosedLoop(controller=law, integrator="rk4", coulomb_slope=1e8), path),
        "steep",
        "rk4",
        "implicit",
    )


def test_auto_takes_rk4_until_friction_is_too_steep_for_it() -> None:
    """The states of RK4 with gentle friction, those of eight implicit steps with steep one; its steps are its own."""
    assert apart(simulated("auto", None), simulated("rk4", None)) == 0.0
    steep = simulated("auto", None, slope=1e5)
    assert apart(steep, simulated("implicit", 8, slope=1e5)) == 0.0
    refused(lambda: ClosedLoop(integrator="auto", substeps=2), "auto", "substeps")


def test_steep_friction_of_one_joint_has_its_closed_form() -> None:
    """A wheel that friction stops: decelerates by fc over inertia, stops at v J / fc, and stays."""
    robot = wheel(0.5, fc=2.0)
    nothing = controllers.pd(1000.0, 0.0, 0.0)
    for coulomb in ("exact", 1e7):
        run = simulate(
            robot,
            ClosedLoop(controller=nothing, integrator="implicit", substeps=4, coulomb_slope=coulomb),
            still(1, 1000.0, 1.0),
            initial=([0.0], [1.6]),
        )
        moving = run.t < 1.6 * 0.5 / 2.0
        np.testing.assert_allclose(run.v[moving, 0], 1.6 - 4.0 * run.t[moving], atol=1e-9)
        assert np.abs(run.v[~moving]).max() < 1e-6
        if coulomb == "exact":
            assert np.all(run.v[run.t > 0.4005] == 0.0) and np.ptp(run.q[run.t > 0.4005]) == 0.0


def held(robot: dynid.Robot, torque: Array) -> Simulation:
    """From rest at zero under constant torques for 0.2 s, friction exact."""
    law = controllers.function(1000.0, robot.n, lambda *_: torque)
    return simulate(
        robot, ClosedLoop(controller=law, integrator="implicit", coulomb_slope="exact"), still(robot.n, 1000.0, 0.2)
    )


def test_exact_sticking_holds_below_its_bound_and_slips_above() -> None:
    """A joint that carries 9.81 * 2 N m with 5 N m of dry friction."""
    robot = pendulum(fc=5.0)
    for torque in (9.81 * 2 - 4.999, 9.81 * 2, 9.81 * 2 + 4.999):
        run = held(robot, np.array([torque]))
        assert np.all(run.q == 0.0) and np.all(run.v == 0.0)
    for excess in (-5.001, 5.001):
        run = held(robot, np.array([9.81 * 2 + excess]))
        assert np.sign(excess) * run.q[-1, 0] > 0


def test_asymmetric_friction_sticks_between_its_two_bounds() -> None:
    """2 N m forwards, 6 N m backwards."""
    robot = wheel(fcp=2.0, fcn=6.0)
    assert np.all(held(robot, np.array([1.999])).v == 0.0) and np.all(held(robot, np.array([-5.999])).v == 0.0)
    assert held(robot, np.array([2.001])).q[-1, 0] > 0 and held(robot, np.array([-6.001])).q[-1, 0] < 0


def test_coupled_shafts_stick_together() -> None:
    """Motor 6 of the TX40 turns joints 5 and 6: its friction holds a pair of torques no joint alone would."""
    pi = TX40.parameters.copy()
    names = TX40.parameter_names
    pi[names.index("fc_motor6")] = 2.0
    robot = TX40.with_parameters(pi)
    gravity = dynid.dynamics.gravity_torque(robot, np.zeros(6))
    # Both joints of the shaft pushed in the same direction: own bounds 3.4092 and 1.8313, and 2 between them.
    inside = gravity + np.array([0, 0, 0, 0, 3.4092 + 1.9, 1.8313 + 1.9])
    run = held(robot, inside)
    assert np.all(run.v == 0.0) and np.all(run.q == 0.0)
    # What is left for the shaft differs between the joints: it holds their common part only.
    assert np.abs(held(robot, gravity + np.array([0, 0, 0, 0, 3.4092 + 2.1, 1.8313 + 2.1])).q[-1, 4:]).min() > 0
    loose = replace(robot, drives=tuple(t for t in robot.drives if t.name != "fc_motor6"))
    assert np.abs(held(loose, inside).q[-1, 4:]).min() > 0


def test_negative_friction_of_a_bad_estimate_still_runs() -> None:
    """A Coulomb value below zero pushes; implicit steps take it as the explicit ones do."""
    robot = wheel(fc=-0.5, fv=1.0)
    law = controllers.pd(1000.0, 20.0, 2.0)
    path = 0.5 * np.sin(2 * np.pi * np.arange(500) / 1000.0)[:, None]
    runs = [
        simulate(robot, ClosedLoop(controller=law, integrator=i, coulomb_slope=20.0), path) for i in ("rk4", "implicit")
    ]  # type: ignore[arg-type]
    assert runs[0].completed and np.abs(runs[0].q - runs[1].q).max() < 2e-3
