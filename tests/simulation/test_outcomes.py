"""Loops that cannot go on say why; input that cannot be used is refused in a sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dynid
from dynid import controllers
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.engine import simulate
from dynid.simulation.integrators import INTEGRATORS, Integrator
from dynid.simulation.reference import Reference
from tests.support.closed_loops import TX40, refused, still, tx40_reference, wheel

RATE = 1000.0
LAW = controllers.pd(RATE, 100.0, 10.0)
WAVE = 0.4 * np.sin(2 * np.pi * 1.5 * np.arange(2000) / RATE)[:, None]


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_impossible_parameters_stop_the_run(integrator: Integrator) -> None:
    """A mass matrix that is not positive definite, as a bad estimate has it: at once, or where the arm gets to it."""
    pi = TX40.parameters.copy()
    pi[TX40.parameter_names.index("Ia_joint6")] = -1.0
    law = controllers.cascade(RATE, *controllers.bandwidth_gains(TX40, 8.0))
    run = simulate(TX40, ClosedLoop(controller=law, integrator=integrator), tx40_reference(RATE, 0.1), parameters=pi)
    assert not run.completed and "stopped at 0 s" in run.outcome and "positive definite" in run.outcome
    assert len(run.t) == len(run.q) == len(run.torque) == 0
    robot = dynid.load_robot("twolink")
    pi = robot.parameters.copy()
    # This first moment of link 2 enters with sin(q2): so much of it leaves a straight arm possible, a folded one not.
    pi[robot.parameter_names.index("my_link2")] = 1.0
    folding = np.linspace(0.0, 1.5, 1500)[:, None] * [0.0, 1.0]
    late = simulate(
        robot,
        ClosedLoop(controller=controllers.pd(RATE, 400.0, [40.0, 40.0]), integrator=integrator),
        folding,
        parameters=pi,
    )
    assert not late.completed and "positive definite" in late.outcome
    assert 10 < len(late.t) == len(late.reference) < 1500 and np.all(np.isfinite(late.q))


def test_friction_does_not_hide_impossible_parameters() -> None:
    """Viscous friction makes an implicit step solvable where the mass matrix is not positive definite."""
    pi = TX40.parameters.copy()
    pi[TX40.parameter_names.index("Ia_joint6")] = -0.0005
    assert np.linalg.eigvalsh(dynid.mass_matrix(TX40, np.zeros(6), pi))[0] < 0
    law = controllers.cascade(RATE, *controllers.bandwidth_gains(TX40, 8.0))
    run = simulate(TX40, ClosedLoop(controller=law, integrator="implicit"), tx40_reference(RATE, 0.1), parameters=pi)
    assert not run.completed and "positive definite" in run.outcome
    assert len(run.t) == len(run.a) == len(run.reference) == 0


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_an_unstable_controller_is_named(integrator: Integrator) -> None:
    """Negative gains: the state diverges; the samples until then are kept and finite."""
    law = controllers.pd(RATE, [-4000.0] * 6, [-200.0] * 6)
    run = simulate(TX40, ClosedLoop(controller=law, integrator=integrator), tx40_reference(RATE, 8.0))
    assert not run.completed and "unstable" in run.outcome, run.outcome
    assert 0 < len(run.t) < 8000 and np.all(np.isfinite(run.q)) and np.all(np.isfinite(run.torque))
    assert run.recording().runs[0].q.shape == run.q.shape


def test_an_unstable_function_is_named_too() -> None:
    law = controllers.function(RATE, 1, lambda t, q_ref, v_ref, a_ref, q, v: 1e3 * q + 1e3 * v)
    run = simulate(wheel(), ClosedLoop(controller=law), WAVE, initial=([0.1], [0.0]))
    assert "unstable" in run.outcome and 0 < len(run.t) < 2000


def test_limits_stop_the_run_where_asked() -> None:
    """Positions end at 6 rad and velocities at 20 rad/s: the joint is named, and only with stop_at_limits."""
    push = np.full((2000, 1), 30.0)
    slow = controllers.pd(RATE, 0.0, 5.0)
    path = still(1, RATE, 2.0)
    out = simulate(wheel(), ClosedLoop(controller=slow), path, disturbance=push, stop_at_limits=True)
    assert "'j1' exceeds its position limit" in out.outcome and out.q.max() <= 6.0 < 6.1
    fast = simulate(
        wheel(), ClosedLoop(controller=controllers.pd(RATE, 0.0, 0.0)), path, disturbance=push, stop_at_limits=True
    )
    assert "'j1' exceeds its velocity limit" in fast.outcome and np.abs(fast.v).max() <= 20.0
    assert simulate(wheel(), ClosedLoop(controller=slow), path, disturbance=push).completed


def custom(robot: dynid.Robot, function: Any) -> dynid.Robot:
    return robot.with_terms(robot.custom_term("wave", 0, function, 3.0))


def test_a_users_column_of_position_is_simulated() -> None:
    """Three times sin(q), tabulated, pulls as a spring would."""
    robot = custom(wheel(fv=2.0), lambda q, v, a: np.sin(q))
    run = simulate(robot, ClosedLoop(controller=LAW), still(1, RATE, 3.0, 0.4))
    q = run.q[-1, 0]
    assert 100 * (0.4 - q) == pytest.approx(3.0 * np.sin(q), rel=1e-5)


def bad_runs() -> dict[str, tuple[Any, tuple[str, ...]]]:
    path = tx40_reference(RATE, 0.1)
    two = dynid.load_robot("twolink")
    beyond = Reference(RATE, path.q + 4.0, path.v, path.a)
    run = dynid.Run(np.arange(50) / 300.0, np.zeros((50, 1)), reference=np.zeros((50, 1)), name="odd")
    return {
        "floating base": (
            lambda: simulate(wheel().with_base("floating"), ClosedLoop(controller=LAW), WAVE),
            ("floating", "fixed"),
        ),
        "no controller": (
            lambda: simulate(wheel(), ClosedLoop(), WAVE),
            ("no controller", "ClosedLoop(controller=...)"),
        ),
        "a bare controller": (lambda: simulate(wheel(), LAW, WAVE), ("dynid.ClosedLoop", "LinearController")),  # type: ignore[arg-type]
        "no law": (lambda: ClosedLoop(controller=lambda t: 0.0), ("dynid.controllers",)),  # type: ignore[arg-type]
        "no sensors": (lambda: ClosedLoop(sensors=1e-5), ("dynid.simulation.Sensors", "1e-05")),  # type: ignore[arg-type]
        "other joints": (lambda: simulate(two, ClosedLoop(controller=LAW), WAVE), ("controller has 1", "2")),
        "beyond limits": (
            lambda: simulate(TX40, ClosedLoop(controller=controllers.pd(RATE, [1.0] * 6, 1.0)), beyond),
            ("'joint1'", "beyond its limits"),
        ),
        "reference of another rate": (
            lambda: simulate(TX40, ClosedLoop(controller=controllers.pd(500.0, [1.0] * 6, 1.0)), path),
            ("1000 Hz", "500 Hz"),
        ),
        "record rate": (
            lambda: simulate(wheel(), ClosedLoop(controller=LAW), WAVE, rate=300.0),
            ("record", "1000 Hz", "300 Hz"),
        ),
        "record rate of zero": (
            lambda: simulate(wheel(), ClosedLoop(controller=LAW), WAVE, rate=0.0),
            ("positive", "0 Hz"),
        ),
        "run of another rate": (
            lambda: simulate(wheel(), ClosedLoop(controller=LAW), run),
            ("'odd'", "1000 Hz", "300 Hz"),
        ),
        "run without reference": (
            lambda: simulate(
                wheel(), ClosedLoop(controller=LAW), dynid.Run(np.arange(9) / RATE, np.zeros((9, 1)), name="mute")
            ),
            ("'mute'", "no reference"),
        ),
        "two runs": (
            lambda: simulate(wheel(), ClosedLoop(controller=LAW), dynid.Recording(("j1",), (run, run))),
            ("one run", "2"),
        ),
        "no reference": (lambda: simulate(wheel(), ClosedLoop(controller=LAW), None), ("reference", "positions")),
        "words": (lambda: simulate(wheel(), ClosedLoop(controller=LAW), "motion.csv"), ("reference", "neither")),
        "wrong width": (
            lambda: simulate(wheel(), ClosedLoop(controller=LAW), np.zeros((10, 2))),
            ("(10, 2)", "(K, 1)"),
        ),
        "NaN reference": (lambda: simulate(wheel(), ClosedLoop(controller=LAW), np.full((10, 1), np.nan)), ("finite",)),
        "uneven reference": (lambda: Reference(RATE, np.zeros((5, 1)), np.zeros((4, 1)), np.zeros((5, 1))), ("v", "4")),
        "too long": (lambda: simulate(wheel(), ClosedLoop(controller=LAW), WAVE, duration=9.0), ("2 s", "9 s")),
        "disturbance": (
            lambda: simulate(wheel(), ClosedLoop(controller=LAW), WAVE, disturbance=np.zeros((3, 1))),
            ("disturbance", "(3, 1)"),
        ),
        "torque limit": (
            lambda: simulate(wheel(), ClosedLoop(controller=LAW), WAVE, torque_limits=[-1.0]),
            ("torque_limits", "positive"),
        ),
        "torque limit in words": (
            lambda: simulate(wheel(), ClosedLoop(controller=LAW), WAVE, torque_limits="low"),
            ("'robot'", "'low'"),
        ),  # type: ignore[arg-type]
        "initial": (
            lambda: simulate(wheel(), ClosedLoop(controller=LAW), WAVE, initial=([0.0, 1.0], [0.0])),
            ("initial", "(1,)"),
        ),
        "parameters": (
            lambda: simulate(wheel(), ClosedLoop(controller=LAW), WAVE, parameters=[1.0]),
            ("10 parameters", "(1,)"),
        ),
        "integrator": (lambda: ClosedLoop(integrator="euler"), ("'euler'", "rk4")),  # type: ignore[arg-type]
        "no steps": (lambda: ClosedLoop(integrator="rk4", substeps=0), ("at least one step",)),
        "tolerance": (lambda: ClosedLoop(integrator="dopri5", tolerance=2.0), ("tolerance", "2")),
        "slope": (lambda: ClosedLoop(coulomb_slope=-1.0), ("coulomb", "-1")),
        "exact with RK4": (lambda: ClosedLoop(coulomb_slope="exact"), ("exact", "implicit")),
        "term over position and velocity": (
            lambda: simulate(custom(wheel(), lambda q, v, a: v**2 * np.sign(q)), ClosedLoop(controller=LAW), WAVE),
            ("'wave_j1'", "position", "velocity", "without"),
        ),
    }


@pytest.mark.parametrize("case", bad_runs())
def test_bad_input_is_refused(case: str) -> None:
    """One sentence that names the culprit."""
    call, words = bad_runs()[case]
    refused(call, *words)
