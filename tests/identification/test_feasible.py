"""Identification over possible robots only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import dynid
from dynid.errors import DataError, DynidError, InvalidValue, UnknownName
from dynid.feasibility import fit as fit_module
from dynid.feasibility.constraints import Ellipsoids, Fixed, Inertia, Mass, Signs
from dynid.feasibility.fit import Fit
from dynid.feasibility.sets import feasible_set
from dynid.identification.estimate import Estimate
from dynid.identification.estimators.feasible import FeasibleOptions, feasible
from dynid.identification.observation import Observation
from dynid.identification.observing import observe
from dynid.identification.pipeline import estimate_from, identify
from tests.support.errors import Error, expect_error
from tests.support.synthetic import EXACT, arm, base_of, motion, observation_of, record


def noisy(level: float = 2.0, samples: int = 300, seed: int = 0) -> Observation:
    """So much noise that plain least squares returns an impossible robot."""
    robot = arm()
    base = base_of(robot)
    _, q, v, a = motion(robot, 3, samples=samples)
    W = base.regressor(q, v, a)
    noise = level * np.random.default_rng(seed).normal(size=W.shape[:2])
    return observation_of(base, W, W @ base.values() + noise)


def cost(observation: Observation, estimate: Estimate, noise: np.ndarray) -> float:
    return float(np.linalg.norm(observation.residual_norms(estimate.beta) / noise))


def test_noise_makes_least_squares_impossible_and_not_the_feasible_fit() -> None:
    """The unconstrained estimate is refused with a proof, the feasible one obeys every law and costs a little."""
    seen = noisy()
    free, held = estimate_from(seen, "wls"), estimate_from(seen, "feasible", excess=0.0)
    assert free.feasibility().status == "infeasible"
    assert held.standard is not None
    possible = feasible_set(held.robot, "full")
    # The margin of 1e-6 is kept up to the solver's tolerance.
    assert possible.violations(held.standard, 1e-7) == []
    for i in held.robot.parameter_links:
        assert np.linalg.eigvalsh(dynid.inertia.inertia_to_pseudo(held.identified_robot.links[i].inertia))[0] > 0
    np.testing.assert_allclose(held.base.values(held.parameters), held.beta, atol=1e-12)
    assert 1.0 < cost(seen, held, free.noise) / cost(seen, free, free.noise) < 1.1
    assert any("constraints are active" in note for note in held.notes)


def test_possible_optimum_is_that_of_least_squares() -> None:
    """Where plain least squares is possible, constraints change nothing."""
    seen = noisy(level=0.01)
    for objective in ("ols", "wls"):
        free = estimate_from(seen, objective, noise_model="white")
        held = estimate_from(seen, "feasible", objective=objective, excess=0.0, noise_model="white")
        assert free.feasibility()
        np.testing.assert_allclose(held.beta, free.beta, atol=0.02 * float(free.std.min()), rtol=0)
        np.testing.assert_allclose(held.std, free.std, rtol=1e-3)


def test_semi_allows_more_than_full() -> None:
    """The larger set fits better; it may break the triangle inequality, the smaller may not."""
    seen = noisy()
    noise = estimate_from(seen, "wls").noise
    semi, full = (
        estimate_from(seen, "feasible", constraints=c, metric="euclidean", excess=0.0) for c in ("semi", "full")
    )
    assert cost(seen, semi, noise) < cost(seen, full, noise)
    broken = [
        dynid.inertia.inertia_violations(semi.identified_robot.links[i].inertia) for i in semi.robot.parameter_links
    ]
    assert any("triangle" in law for laws in broken for law in laws)


def test_known_mass_and_shapes_are_kept() -> None:
    """Constraints with equalities and with unknowns of their own go through the estimator."""
    seen = noisy(level=0.5)
    ball = np.diag([-1.0, -1.0, -1.0, 1.0])
    balls = [np.diag([-1.0, -1.0, -1.0, 0.09]), np.diag([-4.0, -4.0, -4.0, 0.09])]
    laws = ["full", Mass(6.0, 6.0), Fixed({"mz_link3": 0.05}), Ellipsoids("link2", [ball]), Ellipsoids("link3", balls)]
    found = estimate_from(seen, "feasible", constraints=laws)
    value = dict(zip(found.robot.parameter_names, found.parameters, strict=True))
    assert sum(value[f"m_link{k}"] for k in (1, 2, 3)) == pytest.approx(6.0, abs=1e-7)
    assert value["mz_link3"] == pytest.approx(0.05, abs=1e-8)
    assert np.all(np.isfinite(found.std))


@pytest.mark.parametrize("metric", ["euclidean", "pullback", "entropic"])
def test_a_strong_prior_wins(metric: str) -> None:
    """With a large weight the estimate is the prior, with a small one the data's."""
    seen = noisy(level=0.1)
    prior = 2.0 * seen.robot.parameters
    near = estimate_from(seen, "feasible", prior=prior, metric=metric, weight=1e13)
    far = estimate_from(seen, "feasible", prior=prior, metric=metric, weight=1e-4)
    truth = seen.base.values()
    there = seen.base.values(prior)
    assert np.linalg.norm(near.beta - there) < 1e-3 * np.linalg.norm(there)
    assert np.linalg.norm(far.beta - truth) < 0.1 * np.linalg.norm(there - truth)


def test_a_prior_without_bodies_is_replaced_and_said_so() -> None:
    """Masses of zero are no prior: rods along the links are, and the data choose their mass."""
    seen = noisy(level=0.1)
    found = estimate_from(seen, "feasible", prior=np.zeros(len(seen.robot.layout)))
    assert "uniform rod" in found.notes[0] and "the data choose" in found.notes[1]
    masses = [found.parameters[found.robot.parameter_names.index(f"m_link{k}")] for k in (1, 2, 3)]
    assert 0.5 < sum(masses) / 6.0 < 2.0


def test_masses_that_the_data_do_not_show_stay_near_the_prior() -> None:
    """Noise pushes least squares out of the feasible set; the best fit needs heavy links, the nearest does not."""
    seen = noisy()
    prior = seen.robot.parameters
    at = [i for i, p in enumerate(seen.robot.layout) if p.inertial and p.symbol == "m"]
    best, near = estimate_from(seen, "feasible", excess=0.0), estimate_from(seen, "feasible")
    assert best.standard is not None and near.standard is not None
    spread = [np.abs(np.log(e.standard[at] / prior[at])).max() for e in (best, near)]
    assert spread[1] < 0.5 * spread[0] and spread[1] < np.log(2.0)
    noise = estimate_from(seen, "wls").noise
    # Noise alone moves the sum of squares by the number of base parameters.
    assert cost(seen, near, noise) ** 2 - cost(seen, best, noise) ** 2 < seen.base.count


def test_cross_validated_weight() -> None:
    """A prior that is right deserves a large weight, one that is wrong a small one, and both are noted."""
    seen = noisy(level=3.0)
    robot = seen.robot

    def chosen(prior: np.ndarray) -> float:
        note = estimate_from(seen, "feasible", weight="cv", prior=prior).notes[0]
        assert "cross-validation" in note
        return float(note.split()[-1])

    right = chosen(robot.parameters)
    wrong = chosen(3.0 * robot.parameters)
    assert wrong < right


def test_robust_objective_ignores_outliers() -> None:
    """A tenth of the rows far off move weighted least squares, not Tukey's loss."""
    robot = arm()
    base = base_of(robot)
    _, q, v, a = motion(robot, 3)
    W = base.regressor(q, v, a)
    rng = np.random.default_rng(0)
    y = W @ base.values() + 0.02 * rng.normal(size=W.shape[:2])
    y[rng.random(len(y)) < 0.1] += 20.0
    seen = observation_of(base, W, y)
    errors = {
        objective: np.abs(estimate_from(seen, "feasible", objective=objective).beta - base.values()).max()
        for objective in ("wls", "tukey", "huber")
    }
    assert errors["tukey"] < 0.02 < errors["wls"]
    assert errors["tukey"] < errors["huber"] < errors["wls"]


@pytest.mark.slow
def test_linearised_covariance_agrees_with_the_bootstrap() -> None:
    """Directions off the active constraints spread as the sandwich says; those on them do not spread in it at all."""
    seen = noisy(level=0.3)
    linear = feasible(seen, FeasibleOptions(excess=0.0))
    drawn = estimate_from(seen, "feasible", excess=0.0, bootstrap=150, seed=1, noise_model="white")
    np.testing.assert_array_equal(linear.beta, drawn.beta)
    ratio = np.sqrt(np.diag(linear.covariance)) / drawn.std
    # 150 draws know a deviation to 6 %; a quarter of the parameters may sit next to a constraint.
    assert 0.9 < np.median(ratio) < 1.1
    assert np.quantile(ratio, 0.9) < 1.25
    same = estimate_from(seen, "feasible", bootstrap=5, seed=1)
    again = estimate_from(seen, "feasible", bootstrap=5, seed=1)
    np.testing.assert_array_equal(same.covariance, again.covariance)


def test_bootstrap_is_not_scaled_by_the_jackknife() -> None:
    """Draws of white noise give a covariance of white noise, whatever noise model is asked for."""
    seen = noisy(level=0.3)
    one, two = (
        estimate_from(seen, "feasible", bootstrap=5, seed=1, noise_model=model) for model in ("autocorrelated", "white")
    )
    np.testing.assert_array_equal(one.covariance, two.covariance)
    assert one.noise_model == "white"
    assert any("simulated white noise" in note for note in one.notes)


def test_huber_weights_have_the_shift_of_the_prior() -> None:
    plain, robust = (feasible(noisy(level=0.3), FeasibleOptions(objective=name)) for name in ("wls", "huber"))
    assert plain.shift is not None and robust.shift is not None
    sizes = np.linalg.norm(robust.shift), np.linalg.norm(plain.shift)
    assert 0.5 < sizes[0] / sizes[1] < 2.0
    assert robust.shift @ plain.shift > 0.7 * sizes[0] * sizes[1]


def test_a_larger_weight_of_the_prior_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the solver fails with the weight of the best fit, a larger one is tried, and the notes say so."""
    tried: list[float] = []

    def failing(*args: Any, **keywords: Any) -> Fit:
        tried.append(args[5])
        if len(tried) == 1:
            raise DynidError("no solution")
        return fit(*args, **keywords)

    fit = fit_module.fit
    monkeypatch.setattr(fit_module, "fit", failing)
    notes = feasible(noisy(level=0.3)).notes
    assert tried[1] == pytest.approx(1.7 * tried[0])
    assert sum("the solver failed with the weight" in note for note in notes) == 1


def test_a_constraint_is_no_knowledge() -> None:
    """A friction that the data want negative sits at zero; its standard deviation is that of the data, not zero."""
    robot = arm()
    base = base_of(robot)
    _, q, v, a = motion(robot, 3)
    W = base.regressor(q, v, a)
    truth = base.values()
    truth[base.names.index("fv_joint2")] = -1.0
    y = W @ truth + 0.05 * np.random.default_rng(0).normal(size=W.shape[:2])
    seen = observation_of(base, W, y)
    found = estimate_from(seen, "feasible", noise_model="white")
    i = base.names.index("fv_joint2")
    assert abs(found.beta[i]) < 1e-6
    assert found.std[i] == pytest.approx(estimate_from(seen, "wls", noise_model="white").std[i], rel=0.2)
    assert any("fv_joint2 not negative" in note for note in found.notes)


def test_motion_that_shows_too_little_leaves_the_prior() -> None:
    """A joint that stands still: its own parameters keep their a-priori values, and a note says so."""
    robot = arm()
    t, q, v, a = motion(robot, 0)
    q[:, 2], v[:, 2], a[:, 2] = 0.3, 0.0, 0.0
    run = dynid.Run(t, q, torque=dynid.inverse_dynamics(robot, q, v, a))
    found = estimate_from(observe(robot, dynid.Recording(robot.coordinates, (run,)), signals=EXACT), "feasible")
    i = robot.parameter_names.index("fv_joint3")
    # The pull of the prior is so weak that the solver feels it with two digits only.
    assert found.parameters[i] == pytest.approx(robot.parameters[i], rel=1e-2)
    assert "does not excite all base parameters" in found.notes[0]


def test_saved_and_loaded_with_its_standard_parameters(tmp_path: Path) -> None:
    """The standard vector belongs to the estimate and comes back with it."""
    robot = arm()
    estimate = identify(robot, record(robot, (0,), noise=1.0), "feasible", signals=EXACT)
    estimate.save(tmp_path / "estimate.json")
    back = Estimate.load(tmp_path / "estimate.json", robot)
    np.testing.assert_array_equal(back.parameters, estimate.parameters)
    assert back.standard is not None


def test_written_robot_moves_as_estimated(tmp_path: Path) -> None:
    """URDF in Pinocchio and MJCF in MuJoCo give the torques of the estimate, to 1e-9."""
    mujoco = pytest.importorskip("mujoco")
    estimate = estimate_from(noisy(), "feasible")
    robot = estimate.identified_robot
    assert dynid.export.write(estimate, tmp_path / "arm.urdf") is not None
    _, q, v, a = motion(robot, 9, samples=50)
    bare = robot.without("fv_*", "fc_*", "off_*", "Ia_*")
    torque = dynid.inverse_dynamics(bare, q, v, a)
    model = pin.buildModelFromUrdf(str(tmp_path / "arm.urdf"))
    data = model.createData()
    zero = pin.neutral(model)
    from_urdf = np.array([pin.rnea(model, data, pin.integrate(model, zero, q[k]), v[k], a[k]) for k in range(len(q))])
    size = np.abs(torque).max()
    assert np.abs(from_urdf - torque).max() < 1e-9 * size
    dynid.export.write(estimate, tmp_path / "arm.xml")
    loaded = mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))
    loaded.dof_frictionloss[:] = 0.0
    state = mujoco.MjData(loaded)
    carried = robot.without("fc_*", "off_*")
    torque = dynid.inverse_dynamics(carried, q, v, a)
    for k in range(len(q)):
        state.qpos, state.qvel, state.qacc = q[k], v[k], a[k]
        mujoco.mj_inverse(loaded, state)
        assert np.abs(state.qfrc_inverse - torque[k]).max() < 1e-9 * size


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"objective": "lsq"}, (UnknownName, "objective")),
        ({"constraints": "fool"}, (UnknownName, "constraints")),
        ({"weight": -1.0}, (InvalidValue, "weight")),
        ({"weight": "much"}, (InvalidValue, "weight")),
        ({"metric": "taxi"}, (UnknownName, "metric")),
        ({"prior": [1.0]}, (DataError, "")),
        ({"solver": "magic"}, (UnknownName, "solver")),
        ({"bootstrap": 1}, (InvalidValue, "bootstrap")),
        (
            {"constraints": ["full", Mass(upper=1.0), Mass(lower=2.0)], "box": False},
            (DynidError, "constraints", "infeasible"),
        ),
        ({"excess": -1.0}, (InvalidValue, "excess")),
        ({"excess": "much"}, (InvalidValue, "excess")),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], error: Error) -> None:
    """One line that names the culprit."""
    seen = noisy(samples=60)
    with expect_error(*error) as error:
        estimate_from(seen, "feasible", **options)
    assert "\n" not in str(error.value)


def test_scs_agrees_with_clarabel() -> None:
    """The second solver finds the same base values, to its own tolerance."""
    pytest.importorskip("scs")
    seen = noisy()
    laws = (Inertia("full", margin=1e-3), Signs())
    one, two = (estimate_from(seen, "feasible", constraints=laws, weight=1e-3, solver=s) for s in ("clarabel", "scs"))
    np.testing.assert_allclose(two.beta, one.beta, atol=0.02 * float(one.std.max()))
