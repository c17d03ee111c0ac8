"""Simulation error by horizon: exact where the model is, in the right units, counted where it fails."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid.assessment.model.horizon import Comparison
from dynid.assessment.model.horizon_starts import track_of
from dynid.errors import InvalidValue
from dynid.excitation.basis import random_fourier
from dynid.identification.estimate import Estimate
from dynid.robot.parts import Joint, Link
from dynid.signals.settings import Signals, prepare
from dynid.simulation.replay import Ending
from tests.support.errors import expect_error
from tests.support.gantry import gantry
from tests.support.humanoids import dance, humanoid
from tests.support.linkages import stuck
from tests.support.noisy_loop import noisy_loop, perturbed
from tests.support.synthetic import EXACT, record

Array = NDArray[np.float64]
PLAIN = Signals(cutoff=None, trim=0.0, decimate=(), min_velocity=0.0, resample=None)


def estimate_of(robot: dynid.Robot, recording: dynid.Recording, parameters: Array, signals: Signals) -> Estimate:
    """An estimate of a recording whose standard parameters are these; the a-priori model is `robot`."""
    found = dynid.identify(robot, recording, "wls", signals=signals)
    return replace(found, standard=parameters, beta=found.base.values(parameters))


@pytest.fixture(scope="module")
def smooth() -> tuple[dynid.Robot, dynid.Recording]:
    """Exact motion and torques of a two-link arm without dry friction, 500 Hz."""
    robot = dynid.load_robot("twolink", friction="viscous")
    return robot, record(robot, (0, 1), samples=5000)


def test_the_error_of_the_true_model_is_zero(smooth: tuple[dynid.Robot, dynid.Recording]) -> None:
    """What is left is the integration of 2 s of motion; a wrong a-priori model is far away."""
    robot, recording = smooth
    wrong = robot.with_parameters(perturbed(robot))
    found = dynid.assessment.simulation_error(
        estimate_of(wrong, recording, robot.parameters, EXACT), recording, signals=EXACT
    )
    assert found.identified is not None and found.prior is not None and found.baseline is not None
    assert found.units == ("rad", "rad") and found.tools == ("link2",) and found.runs == 2
    assert found.identified.joint_quantiles(0.9).max() < 1e-4 and found.identified.tool_quantiles(0.9)[1] < 2e-5
    assert found.prior.joint_quantiles()[1].min() > 1e-3
    assert found.baseline.tool_quantiles()[1, 0] > 0.05
    comparison = found.compare(0.5)
    assert comparison is not None and comparison.high < 0.05 and comparison.share < 0.01
    assert found.halving < 0.05


@pytest.mark.parametrize(
    ("ratio", "low", "high", "words"),
    [
        (0.5, 0.4, 0.6, "0.5 times those of the a-priori model (95 % interval 0.4 to 0.6)"),
        (1e-6, 1e-6, 1e-6, "less than 0.001 times those of the a-priori model"),
        (1e6, 1e6, 1e6, "more than 1000 times those of the a-priori model"),
        (0.5, 1e-6, 0.6, "0.5 times those of the a-priori model (95 % interval less than 0.001 to 0.6)"),
    ],
)
def test_no_interval_is_told_where_a_model_diverges(ratio: float, low: float, high: float, words: str) -> None:
    assert Comparison(0.5, ratio, low, high, 1.0).words == words


def test_errors_are_those_of_a_simulation_by_hand(smooth: tuple[dynid.Robot, dynid.Recording]) -> None:
    """The first start, simulated with another integrator, and the tool by the geometry of the arm."""
    from scipy.integrate import solve_ivp

    robot, recording = smooth
    wrong = robot.with_parameters(perturbed(robot))
    found = dynid.assessment.simulation_error(
        estimate_of(robot, recording, wrong.parameters, EXACT), recording, signals=EXACT
    )
    motion = prepare(recording.runs[0], EXACT)
    assert motion.torque is not None

    def rate(t: float, x: Array) -> Array:
        torque = np.array([np.interp(t, motion.t, column) for column in motion.torque.T])  # type: ignore[union-attr]
        return np.concatenate([x[2:], dynid.forward_dynamics(wrong, x[:2], x[2:], torque)])

    start = np.concatenate([motion.q[0], motion.v[0]])
    end = solve_ivp(rate, (0.0, 0.5), start, rtol=1e-8, atol=1e-10, max_step=0.01).y[:2, -1]
    assert found.identified is not None
    np.testing.assert_allclose(found.identified.joints[0, 1], np.abs(end - motion.q[250]), rtol=1e-2, atol=1e-6)
    model = robot.to_pinocchio()
    import pinocchio as pin

    data, places = model.createData(), []
    for q in (end, motion.q[250]):
        pin.forwardKinematics(model, data, q)
        h = np.eye(4)
        h[:3, :3], h[:3, 3] = data.oMi[2].rotation, data.oMi[2].translation
        places.append((h @ robot.joints[1].mount)[:3, 3])
    assert found.identified.tools[0, 1, 0] == pytest.approx(np.linalg.norm(places[0] - places[1]), rel=1e-2)


def slide(mass: float) -> dynid.Robot:
    """A block on a horizontal slide without friction."""
    joint = Joint("slide", "prismatic", 0, np.eye(4), np.array([1.0, 0, 0]))
    inertia = np.array([mass, 0, 0, 0, 0.1, 0, 0.1, 0, 0, 0.1])
    return dynid.Robot("block", (Link("base", np.zeros(10)), Link("block", inertia)), (joint,))


def test_a_prismatic_joint_is_off_by_metres_of_its_formula() -> None:
    """Half the force times the time squared times the difference of the inverse masses."""
    t = np.arange(2001) * 1e-3
    force, mass, wrong = 3.0, 2.0, 2.5
    run = dynid.Run(t, (0.5 * force / mass * t**2)[:, None], torque=np.full((2001, 1), force))
    recording = dynid.Recording(("slide",), (run,))
    other = slide(wrong)
    found = dynid.assessment.simulation_error(
        estimate_of(slide(mass), recording, other.parameters, PLAIN), recording, signals=PLAIN, horizons=(0.1, 0.5)
    )
    assert found.identified is not None and found.units == ("m",)
    expected = [0.5 * force * h**2 * (1 / mass - 1 / wrong) for h in (0.1, 0.5)]
    np.testing.assert_allclose(found.identified.joint_quantiles()[:, 0], expected, rtol=0.02)
    np.testing.assert_allclose(found.identified.tool_quantiles()[:, 0], expected, rtol=0.02)


def test_models_that_cannot_be_simulated_are_counted() -> None:
    """A mass matrix that is not positive definite, and friction that drives; the a-priori model completes."""
    robot = gantry()
    recording = record(robot, samples=2000)
    names = list(robot.parameter_names)
    for name, value, ending in (("m_link1", -30.0, Ending.NOT_POSITIVE), ("fv_joint1", -1e4, Ending.DIVERGED)):
        parameters = robot.parameters.copy()
        parameters[names.index(name)] = value
        found = dynid.assessment.simulation_error(
            estimate_of(robot, recording, parameters, EXACT), recording, signals=EXACT
        )
        assert found.identified is not None and found.prior is not None
        assert found.identified.counts() == {ending: len(found.identified.endings)} and found.prior.failed() == 0
        assert np.isinf(found.identified.joint_quantiles()[0]).all()
        comparison = found.compare(0.5)
        assert comparison is not None and comparison.low > 1e3
        page = json.loads(json.dumps(found.to_dict()))
        assert page["models"]["identified"]["endings"] == {ending.value: found.starts[0]}
        assert f"{found.starts[0]} of {found.starts[0]} starts ended early" in found.summary()


def test_a_floating_base_is_simulated_with_its_wrench_only() -> None:
    robot = humanoid(limbs="A")
    moved = dance(robot, samples=3000)
    load = dynid.inverse_dynamics(robot, moved.q, moved.v, moved.a)
    run = dynid.Run(
        moved.t, moved.q[:, 7:], torque=load[:, 6:], wrench=load[:, :6], base=moved.q[:, :7], base_v=None, base_a=None
    )
    recording = dynid.Recording(robot.coordinates, (run,))
    estimate = dynid.identify(robot, recording, "ols", signals=EXACT)
    estimate = replace(estimate, standard=robot.parameters)
    found = dynid.assessment.simulation_error(estimate, recording, signals=EXACT)
    assert found.identified is not None and found.tools == ("handL",)
    assert found.identified.tool_quantiles()[0, 0] < 1e-3 < found.baseline.tool_quantiles()[0, 0]  # type: ignore[union-attr]
    torques_only = dynid.identify(robot, recording, "ols", signals=EXACT, channels="torque")
    bare = replace(recording, runs=(replace(run, wrench=None),))
    missing = dynid.assessment.simulation_error(torques_only, bare, signals=EXACT)
    assert not missing.simulated and "wrench" in missing.reason and "not simulated" in missing.summary()
    wrench_only = dynid.identify(robot, recording, "ols", signals=EXACT, channels="wrench")
    assert not dynid.assessment.simulation_error(wrench_only, recording, signals=EXACT).simulated


def test_rest_is_not_motion(smooth: tuple[dynid.Robot, dynid.Recording]) -> None:
    """Starts before a motion are left out; without any motion nothing is simulated."""
    robot, recording = smooth
    estimate = estimate_of(robot, recording, robot.parameters, EXACT)
    t = np.arange(2000) / 500.0
    q = np.tile([0.3, 0.2], (2000, 1))
    torque = dynid.inverse_dynamics(robot, q, 0 * q, 0 * q)
    still = dynid.Recording(robot.coordinates, (dynid.Run(t, q, torque=torque),))
    assert not dynid.assessment.simulation_error(estimate, still, signals=PLAIN).simulated
    moving = recording.runs[0]
    assert moving.torque is not None
    both = dynid.Run(
        np.arange(7000) / 500.0,
        np.vstack([np.tile(moving.q[0], (2000, 1)), moving.q]),
        torque=np.vstack([np.tile(moving.torque[0], (2000, 1)), moving.torque]),
    )
    alone = dynid.assessment.simulation_error(estimate, replace(recording, runs=(moving,)), signals=PLAIN)
    after = dynid.assessment.simulation_error(estimate, replace(recording, runs=(both,)), signals=PLAIN)
    assert alone.starts[0] <= after.starts[0] <= alone.starts[0] + 8  # from 2 s before the motion


def test_closed_loop_of_the_true_model_stays_on_the_motion() -> None:
    """The state of the controller is found from the measured motion; a wrong model is off by much more."""
    made = noisy_loop("twolink", noise=0.0, seconds=4.0)
    wrong = made.robot.with_parameters(perturbed(made.robot, 0.3))
    estimate = dynid.identify(wrong, made.recording, "wls", signals=made.signals)
    estimate = replace(estimate, standard=made.robot.parameters)
    found = dynid.assessment.simulation_error(estimate, made.recording, loop=made.loop, max_starts=8)
    assert found.loop == "closed" and found.identified is not None and found.prior is not None
    assert found.identified.joint_quantiles(0.9)[:2].max() < 1e-5
    assert found.prior.joint_quantiles()[:2].min() > 5 * found.identified.joint_quantiles()[:2].max()
    assert found.identified.whole_joints.max() < 1e-5
    unknown = replace(made.recording, runs=(replace(made.recording.runs[0], reference=None),))
    refused = dynid.assessment.simulation_error(estimate, unknown, loop=made.loop)
    assert not refused.simulated and "reference" in refused.reason


def test_fast_recordings_are_averaged() -> None:
    """Rows of 5 kHz are thinned to 1 kHz; torques are means, so none of their impulse is lost."""
    robot = slide(2.0)
    t = np.arange(5000) / 5000.0
    torque = np.random.default_rng(0).normal(size=(5000, 1))
    run = dynid.Run(t, 0.1 * t[:, None], torque=torque)
    track = track_of(robot, [prepare(run, PLAIN)])
    assert track.periods[0] == pytest.approx(1e-3, rel=1e-3) and len(track.q) == 1000
    assert track.torque[10, 0] == pytest.approx(torque[48:53, 0].mean())


def test_settings_are_checked(smooth: tuple[dynid.Robot, dynid.Recording]) -> None:
    robot, recording = smooth
    estimate = estimate_of(robot, recording, robot.parameters, EXACT)
    for wrong in ({"horizons": ()}, {"horizons": (0.0,)}, {"interval": 0.0}, {"max_starts": 0}):
        with expect_error(InvalidValue, "horizons"):
            dynid.assessment.simulation_error(estimate, recording, **wrong)  # type: ignore[arg-type]
    few = dynid.assessment.simulation_error(estimate, recording, signals=EXACT, max_starts=6)
    assert max(few.starts) <= 6


def linkage_motion(robot: dynid.Robot, reach: float) -> dynid.Recording:
    """Exact periodic motion of a linkage around its assembled posture, two runs at 500 Hz."""
    runs, limit = [], reach * np.ones(robot.n)
    for seed in (0, 1):
        t = np.arange(5000) / 500.0
        q, v, a = random_fourier(robot.home - limit, robot.home + limit, 3 * limit, 10.0, t, seed)
        runs.append(dynid.Run(t, q, torque=dynid.inverse_dynamics(robot, q, v, a)))
    return dynid.Recording(robot.coordinates, tuple(runs))


@pytest.mark.slow  # compiles the simulation of linkages
@pytest.mark.parametrize(("name", "reach", "tools"), [("fourbar", 1.0, 1), ("palletizer", 0.4, 4)])
def test_a_linkage_is_simulated(name: str, reach: float, tools: int) -> None:
    """The true model follows exact motion; positions of end links are those of the assembled tree."""
    robot = dynid.load_robot(name, friction="viscous")
    recording = linkage_motion(robot, reach)
    wrong = robot.with_parameters(perturbed(robot, 0.1))
    estimate = estimate_of(wrong, recording, robot.parameters, EXACT)
    found = dynid.assessment.simulation_error(estimate, recording, signals=EXACT)
    assert found.identified is not None and found.prior is not None and found.baseline is not None
    assert found.joints == robot.coordinates and len(found.tools) == tools and found.identified.failed() == 0
    assert found.identified.joint_quantiles()[:2].max() < 1e-4 and found.identified.tool_quantiles()[:2].max() < 1e-4
    assert found.prior.joint_quantiles()[1].max() > 1e-3 and found.baseline.tool_quantiles()[1].max() > 0.02


@pytest.mark.slow
def test_a_constant_velocity_beyond_a_singular_posture_is_counted_as_lost() -> None:
    """The crank of this linkage cannot turn on for two seconds; its end links are then nowhere."""
    robot = stuck()
    recording = linkage_motion(robot, 1.0)
    estimate = estimate_of(robot, recording, robot.parameters, EXACT)
    found = dynid.assessment.simulation_error(estimate, recording, signals=EXACT)
    assert found.baseline is not None and np.isinf(found.baseline.tools).any()
    assert np.isfinite(found.baseline.joints[:, 0]).all()
    assert found.identified is not None and found.identified.tool_quantiles()[0].max() < 1e-3
