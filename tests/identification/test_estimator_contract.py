"""Every estimator goes through the same battery: what a user may rely on whatever the method."""

from __future__ import annotations

from dataclasses import is_dataclass, replace
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.errors import ConflictingArguments, DynidError, InvalidShape, InvalidType, InvalidValue, TooFew, UnknownName
from dynid.identification.estimate import Estimate
from dynid.identification.estimators.least_squares import IrlsOptions, WlsOptions
from dynid.identification.estimators.registry import find_method, method_options, methods, own_methods
from dynid.identification.observation import Observation
from dynid.identification.observing import observe
from dynid.identification.pipeline import estimate_from, identify
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from tests.support.errors import Error, expect_error
from tests.support.synthetic import EXACT, arm, base_of, motion, observation_of, record

# Options with which a method goes through the battery, by a name of its own; any other method has its defaults.
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "wls": {"wls": {}, "wls iterated": {"iterations": 3, "freedom": "parameters"}},
    "irls": {"irls huber": {"loss": "huber"}, "irls tukey": {"loss": "tukey"}},
    # A prior this weak leaves ridge a least-squares method.
    "ridge": {"ridge": {"std": 1e6}},
    # The best fit itself: how far the prior may pull depends on the order of the samples.
    "feasible": {"feasible": {"excess": 0.0}, "feasible huber": {"objective": "huber", "excess": 0.0}},
}
# Those of the energy balance have a battery of their own, which needs motions.
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    name: (method.name, options)
    for method in methods().values()
    if method.takes == "observation" and not method.needs_runs
    for name, options in VARIANTS.get(method.name, {method.name: {}}).items()
}
every = pytest.mark.parametrize("name", METHODS)
# Two hundred robust fits under constraints take half a minute; each half of the method is among the others.
every_quick = pytest.mark.parametrize(
    "name", [pytest.param(m, marks=pytest.mark.slow) if m == "feasible huber" else m for m in METHODS]
)


def run(name: str, observation: Observation, **more: Any) -> Estimate:
    method, options = METHODS[name]
    return estimate_from(observation, method, **options, noise_model="white", **more)


def test_variants_are_those_of_methods() -> None:
    """A new method goes through the battery with its defaults, without any word here."""
    assert set(VARIANTS) < {method for method, _ in METHODS.values()}


@every
def test_recovers_noise_free_truth(name: str) -> None:
    """Without noise the answer is the truth, to rounding times the condition number."""
    robot = arm()
    estimate = run(name, observe(robot, record(robot, (0, 1)), signals=EXACT))
    # Condition number about 1e2, exact derivatives to 1e-12.
    np.testing.assert_allclose(estimate.beta, base_of(robot).values(), atol=1e-7)
    assert estimate.status == "solved"


@every
def test_order_of_runs_does_not_matter(name: str) -> None:
    """Runs are folded one after another; the result does not know which came first."""
    robot = arm()
    forward = run(name, observe(robot, record(robot, (0, 1, 2), noise=0.1), signals=EXACT))
    backward = run(name, observe(robot, record(robot, (2, 0, 1), noise=0.1), signals=EXACT))
    np.testing.assert_allclose(forward.beta, backward.beta, rtol=1e-5, atol=1e-7)


@every
def test_order_of_samples_does_not_matter(name: str) -> None:
    """Shuffled rows, same answer (stacking orders have fooled other tools)."""
    robot = arm()
    base = base_of(robot)
    _, q, v, a = motion(robot, 3)
    W = base.regressor(q, v, a)
    y = W @ base.values() + 0.1 * np.random.default_rng(0).normal(size=W.shape[:2])
    shuffle = np.random.default_rng(1).permutation(len(y))
    one, two = run(name, observation_of(base, W, y)), run(name, observation_of(base, W[shuffle], y[shuffle]))
    np.testing.assert_allclose(one.beta, two.beta, rtol=1e-5, atol=1e-7)


@every
def test_units_of_torque_only_scale_the_answer(name: str) -> None:
    """Torques a thousand times larger give parameters a thousand times larger, and their deviations too."""
    robot = arm()
    base = base_of(robot)
    _, q, v, a = motion(robot, 3)
    W = base.regressor(q, v, a)
    y = W @ base.values() + 0.1 * np.random.default_rng(0).normal(size=W.shape[:2])
    # The plausible box knows the unit too, as its bodies are those of the file.
    free = {"box": False} if "box" in find_method(METHODS[name][0]).option_names else {}
    one, two = run(name, observation_of(base, W, y), **free), run(name, observation_of(base, W, 1000 * y), **free)
    # A prior of fixed size is the only thing that knows the unit; it is a millionth here.
    np.testing.assert_allclose(two.beta, 1000 * one.beta, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(two.std, 1000 * one.std, rtol=1e-3)


@every
def test_covariance_scales_with_the_noise(name: str) -> None:
    """Ten times the noise, ten times the deviation."""
    robot = arm()
    base = base_of(robot)
    _, q, v, a = motion(robot, 3)
    W = base.regressor(q, v, a)
    noise = np.random.default_rng(0).normal(size=W.shape[:2])
    quiet = run(name, observation_of(base, W, W @ base.values() + 0.01 * noise))
    loud = run(name, observation_of(base, W, W @ base.values() + 0.1 * noise))
    # Weights follow the residuals, which are not exactly proportional.
    np.testing.assert_allclose(loud.std, 10 * quiet.std, rtol=0.02)


@pytest.mark.slow
@every_quick
def test_sigma_agrees_with_monte_carlo(name: str) -> None:
    """Two hundred noisy repetitions spread as the reported deviations say, within 10 %."""
    robot = arm()
    base = base_of(robot)
    _, q, v, a = motion(robot, 3, samples=300)
    W = base.regressor(q, v, a)
    truth = base.values()
    clean = W @ truth
    rng = np.random.default_rng(5)
    # One noise for all rows is what OLS assumes, the same relative noise on every column what TLS does.
    level = np.full(3, 0.1) if name in ("ols", "tls") else np.array([0.3, 0.1, 0.03])
    # Constraints that a draw may touch make the spread smaller and the mean biased: less noise keeps off them.
    level = 0.1 * level if name.startswith("feasible") else level
    size = np.sqrt(np.mean(W**2, axis=(0, 1))) if name == "tls" else np.zeros(base.count)
    relative = level[0] / np.sqrt(np.mean(clean**2))
    # How far the iteration is driven does not change the spread.
    more = {"tolerance": 1e-3} if name.startswith("irls") else {}
    values, sigmas = [], []
    for _ in range(200):
        rows = W + relative * size * rng.normal(size=W.shape)
        observation = observation_of(base, rows, clean + level * rng.normal(size=clean.shape))
        estimate = run(name, observation, **more)
        values.append(estimate.beta)
        sigmas.append(estimate.std)
    spread = np.std(values, axis=0, ddof=1)
    ratio = np.mean(sigmas, axis=0) / spread
    # Over all parameters within 10 %; a single deviation of 200 draws is itself uncertain by 5 %, four times that here.
    assert abs(np.sqrt(np.mean(ratio**2)) - 1) < 0.1
    assert np.all(np.abs(ratio - 1) < 0.2)
    # And the mean is the truth within its own uncertainty, 4 deviations of the mean.
    assert np.all(np.abs(np.mean(values, axis=0) - truth) < 4 * spread / np.sqrt(200))


@every
def test_same_input_same_answer(name: str) -> None:
    """Nothing is left to chance."""
    robot = arm()
    recording = record(robot, (0,), noise=0.1)
    one, two = (run(name, observe(robot, recording, signals=EXACT)) for _ in range(2))
    assert np.array_equal(one.beta, two.beta) and np.array_equal(one.covariance, two.covariance)


@every
def test_motion_that_shows_too_little_is_refused(name: str) -> None:
    """A joint that stands still leaves parameters unseen; the message names some of them."""
    if find_method(METHODS[name][0]).has_prior:
        pytest.skip("the prior answers for what the motion does not show")
    robot = arm()
    t, q, v, a = motion(robot, 0)
    q[:, 2], v[:, 2], a[:, 2] = 0.3, 0.0, 0.0
    recording = Recording(robot.coordinates, (Run(t, q, torque=dynid.inverse_dynamics(robot, q, v, a)),))
    with expect_error(DynidError, code="not_identifiable"):
        run(name, observe(robot, recording, signals=EXACT))


@every
def test_too_few_samples_are_refused(name: str) -> None:
    """Fewer rows than parameters is an error, not a minimum-norm guess."""
    robot = arm()
    recording = record(robot, (0,)).between(0.0, 0.04)
    method, options = METHODS[name]
    with expect_error(TooFew):
        identify(robot, recording, method, signals=EXACT, **options)


def test_ill_conditioned_regressor_keeps_its_digits() -> None:
    """A condition number of 1e7 leaves at least six correct digits; normal equations would leave about two."""
    robot = arm()
    base = base_of(robot)
    _, q, v, a = motion(robot, 3)
    W = base.regressor(q, v, a)
    u, _, vt = np.linalg.svd(W.reshape(-1, base.count), full_matrices=False)
    bad = (u * np.geomspace(1.0, 1e-7, base.count)) @ vt
    W = 100 * bad.reshape(W.shape)
    truth = np.ones(base.count)
    y = W @ truth
    estimate = estimate_from(observation_of(base, W, y), "ols")
    assert np.linalg.cond(W.reshape(-1, base.count)) == pytest.approx(1e7, rel=0.05)
    assert np.abs(estimate.beta - truth).max() < 1e-6
    flat, right = W.reshape(-1, base.count), y.ravel()
    normal = np.linalg.solve(flat.T @ flat, flat.T @ right)
    assert np.abs(normal - truth).max() > 1e-5  # the reason why factors are folded


@every
def test_the_condition_number_is_that_of_the_weighted_regressor_with_unit_columns(name: str) -> None:
    """One definition for all methods: units of the parameters do not matter, the noise of the joints does."""
    robot = arm()
    base = base_of(robot)
    _, q, v, a = motion(robot, 3)
    W = base.regressor(q, v, a)
    std = np.array([0.01, 0.1, 1.0])
    y = W @ base.values() + std * np.random.default_rng(0).normal(size=W.shape[:2])
    estimate = run(name, observation_of(base, W, y))
    rows = (W / estimate.noise[:, None]).reshape(-1, base.count)
    expected = np.linalg.cond(rows / np.linalg.norm(rows, axis=0))
    assert estimate.condition_number == pytest.approx(expected, rel=1e-9)


def test_outliers_hurt_least_squares_and_not_robust_methods() -> None:
    """A hundredth of the rows far off moves OLS by many deviations, robust losses hardly."""
    robot = arm()
    base = base_of(robot)
    _, q, v, a = motion(robot, 3)
    W = base.regressor(q, v, a)
    rng = np.random.default_rng(0)
    y = W @ base.values() + 0.05 * rng.normal(size=W.shape[:2])
    hit = rng.random(y.shape) < 0.01
    y[hit] += 20.0
    truth = base.values()
    robust = [name for name, (method, _) in METHODS.items() if find_method(method).robust]
    error = {
        name: float(np.linalg.norm(run(name, observation_of(base, W, y)).beta - truth)) for name in ("ols", *robust)
    }
    assert {"irls huber", "irls tukey"} <= set(robust) and error["irls tukey"] < 0.1 * error["ols"]
    assert max(error[name] for name in robust) < 0.3 * error["ols"]


def test_correlated_joint_noise_is_whitened_by_gls() -> None:
    """Where joints share their noise, the full covariance halves the spread and reports it."""
    robot = arm()
    base = base_of(robot)
    _, q, v, a = motion(robot, 3, samples=300)
    W = base.regressor(q, v, a)
    mix = np.linalg.cholesky(np.array([[1.0, 0.95, 0.9], [0.95, 1.0, 0.95], [0.9, 0.95, 1.0]]))
    rng = np.random.default_rng(2)
    values: dict[str, list[np.ndarray]] = {"wls": [], "gls": []}
    for _ in range(60):
        y = W @ base.values() + 0.1 * rng.normal(size=W.shape[:2]) @ mix.T
        for name in values:
            values[name].append(run(name, observation_of(base, W, y)).beta)
    spread = {name: np.linalg.norm(np.std(v, axis=0)) for name, v in values.items()}
    assert spread["gls"] < 0.7 * spread["wls"]


def test_ridge_keeps_the_prior_where_the_motion_is_silent() -> None:
    """Parameters of a joint that stands still stay at their prior, the others are identified."""
    robot = arm()
    truth = robot.with_parameters(robot.parameters * 1.3)
    t, q, v, a = motion(robot, 0)
    q[:, 2], v[:, 2], a[:, 2] = 0.3, 0.0, 0.0
    torque = dynid.inverse_dynamics(truth, q, v, a) + 0.01 * np.random.default_rng(0).normal(size=q.shape)
    recording = Recording(robot.coordinates, (Run(t, q, torque=torque),))
    estimate = identify(robot, recording, "ridge", signals=EXACT, std=10.0)
    base = estimate.base
    friction = base.names.index("fv_joint3")
    assert estimate.beta[friction] == pytest.approx(base.values()[friction], rel=1e-3)
    seen = base.names.index("fv_joint1")
    assert estimate.beta[seen] == pytest.approx(1.3 * base.values()[seen], rel=1e-2)


@pytest.mark.parametrize(
    ("method", "options", "error"),
    [
        ("magic", {}, (UnknownName, "method")),
        ("ols", {"colour": 1}, (UnknownName, "colour")),
        ("irls", {"loss": "l7"}, (UnknownName, "loss")),
        ("wls", {"iterations": 0}, (InvalidValue, "iterations")),
        ("wls", {"freedom": "all"}, (UnknownName, "freedom")),
        ("ridge", {"prior": [1.0]}, (InvalidShape, "prior")),
        ("ridge", {"std": -1.0}, (InvalidValue, "std")),
    ],
)
def test_bad_options_name_the_culprit(method: str, options: dict[str, Any], error: Error) -> None:
    """One line that says what is wrong."""
    robot = arm()
    with expect_error(*error) as caught:
        identify(robot, record(robot), method, signals=EXACT, **options)
    assert "\n" not in str(caught.value)


def test_every_method_has_its_options() -> None:
    """One dataclass per method, whose defaults are valid; keywords and the dataclass give the same result."""
    kinds = {name: method.options for name, method in own_methods().items()}
    assert len(set(kinds.values())) == len(kinds)
    for name, kind in kinds.items():
        assert type(method_options(name)) is kind and is_dataclass(kind)
    robot = arm()
    seen = observe(robot, record(robot, noise=0.1), signals=EXACT)
    one = estimate_from(seen, "wls", iterations=3, freedom="none")
    two = estimate_from(seen, "wls", options=WlsOptions(iterations=3, freedom="none"))
    assert np.array_equal(one.beta, two.beta) and not np.array_equal(one.beta, estimate_from(seen, "wls").beta)


@pytest.mark.parametrize(
    ("method", "keywords", "error"),
    [
        (
            "wls",
            {"iteration": 3},
            (UnknownName, "iteration"),
        ),
        ("ols", {"iterations": 3}, (UnknownName, "iterations")),
        ("didim", {"max_iteration": 3}, (UnknownName, "max_iteration")),
        (
            "feasible",
            {"prior_weight": "cv"},
            (UnknownName, "prior_weight"),
        ),
        ("wls", {"options": IrlsOptions()}, (InvalidType, "options")),
        ("wls", {"options": WlsOptions(), "iterations": 3}, (ConflictingArguments, "options")),
        ("didim", {"tolerance": -1.0}, (InvalidValue, "tolerance")),
        ("ukf", {"alpha": 2.0}, (InvalidValue, "alpha")),
        ("pc-iv", {"weight": "cv"}, (InvalidValue, "weight")),
        ("feasible", {"solver": "magic"}, (UnknownName, "solver")),
        ("pc-didim", {"constraints": "fool"}, (UnknownName, "constraints")),
    ],
)
def test_options_are_checked_before_anything_runs(
    method: str, keywords: dict[str, Any], error: Error, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a signal is filtered nor a loop simulated for an option that is wrong."""

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("the work began before the options were checked")

    for module in ("observing", "experiment"):
        monkeypatch.setattr(f"dynid.identification.{module}.prepare", never)
    robot = arm()
    with expect_error(*error):
        identify(robot, record(robot), method, signals=EXACT, **keywords)


def test_errors_inside_a_method_are_not_taken_for_wrong_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """A TypeError of the program, whatever its text, reaches the caller as it is."""

    def broken(*_: Any) -> None:
        raise TypeError("got an unexpected keyword argument 'iterations'")

    monkeypatch.setitem(own_methods(), "wls", replace(find_method("wls"), function=broken))
    robot = arm()
    with pytest.raises(TypeError):
        identify(robot, record(robot), "wls", signals=EXACT)
