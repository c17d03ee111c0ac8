"""Gaussian processes against the books' formulas in dense matrices, gradients against differences, corner cases."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from dynid.errors import UnknownName
from dynid.residual import exact, sparse
from dynid.residual.kernel import parse_kernel
from dynid.residual.posterior import Block, Posterior, basis_columns
from dynid.residual.problem import Problem, Unfit
from tests.support.errors import expect_error
from tests.support.gp_cases import (
    DEGREES,
    KERNELS,
    NOISES,
    Array,
    exact_posterior,
    features,
    hyper_parameters,
    inputs,
    posterior,
    problem,
    scattered_points,
    sparse_posterior,
)

every_kind = pytest.mark.parametrize("kernel", KERNELS)
both_noises = pytest.mark.parametrize("noise", NOISES)
every_basis = pytest.mark.parametrize("degree", DEGREES)
# Every kernel without and with the rest, and one kernel with all of it: differences of many numbers take long.
some_of_each = pytest.mark.parametrize(
    ("kernel", "noise", "degree"),
    [(k, *rest) for k in KERNELS for rest in (("even", -1), ("reversal", 1))]
    + [("ard+friction", "even", 0), ("ard+friction", "even", 1), ("ard+friction", "reversal", -1)],
)


def covariance(task: Problem, theta: Array, x: Array, z: Array) -> Array:
    """The sum of parts, from the distance of every pair of samples."""
    out = np.zeros((len(x), len(z)))
    start = 0
    for part in task.kernel.parts:
        count = len(part.columns) if part.ard else 1
        amplitude, lengths = np.exp(theta[start]), np.exp(theta[start + 1 : start + 1 + count])
        powers = np.exp(theta[start + 1 + count]) if part.shape == "rational-quadratic" else np.nan
        r = np.linalg.norm((x[:, None] - z[None])[:, :, list(part.columns)] / lengths, axis=2)
        shape = {
            "se": np.exp(-(r**2) / 2),
            "matern32": (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r),
            "matern52": (1 + np.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-np.sqrt(5) * r),
            "exponential": np.exp(-r),
            "rational-quadratic": (1 + r**2 / (2 * powers)) ** -powers,
        }
        out += amplitude**2 * shape[part.shape]
        start += 1 + count + (part.shape == "rational-quadratic")
    return out


def noise_matrix(task: Problem, theta: Array) -> Array:
    """Even, or by the direction of the first joint."""
    noise = theta[task.kernel.size :]
    rise = noise[1] * (1 - task.x[:, 6] ** 2) if len(noise) == 2 else np.zeros(len(task.y))
    return np.diag(np.exp(2 * (noise[0] + rise)))


def slopes(function: Callable[[Array], float], at: Array, step: float = 1e-3) -> Array:
    """Derivatives by differences of fourth order: error step^4, and rounding of the function over the step."""
    out = np.zeros(at.size)
    for i, e in enumerate(np.eye(at.size)):
        d = step * e.reshape(at.shape)
        near, far = function(at + d) - function(at - d), function(at + 2 * d) - function(at - 2 * d)
        out[i] = (8 * near - far) / (12 * step)
    return out


@every_kind
@both_noises
@every_basis
def test_likelihood_and_predictions_are_those_of_a_joint_gaussian(kernel: str, noise: str, degree: int) -> None:
    task = problem(kernel, noise, degree)
    theta = hyper_parameters(task)
    x = inputs(12, 7)
    h, H = basis_columns(degree, x), task.basis
    C = covariance(task, theta, task.x, task.x) + H @ H.T + noise_matrix(task, theta)
    expected = multivariate_normal(np.zeros(len(C)), C).logpdf(task.y)
    # A vague basis makes the dense matrix nearly singular, hence not to the last digit.
    assert exact.log_likelihood(task, theta)[0] == pytest.approx(expected, rel=1e-9)
    k = covariance(task, theta, x, task.x) + h @ H.T
    mean = k @ np.linalg.solve(C, task.y)
    prior = covariance(task, theta, x, x) + h @ h.T
    variance = np.diag(prior - k @ np.linalg.solve(C, k.T))
    found = exact_posterior(task, theta, degree).predict(x)
    np.testing.assert_allclose(found[0], mean, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(found[1], variance, rtol=1e-7, atol=1e-8)


@both_noises
@every_basis
def test_bound_is_that_of_the_dense_formula(noise: str, degree: int) -> None:
    task = problem("ard+friction", noise, degree)
    theta, z = hyper_parameters(task), inputs(9, 5)
    prior = task.kernel.variance(task.split(theta)[0])
    Kuu = covariance(task, theta, z, z) + 1e-8 * prior * np.eye(len(z))
    Kuf = covariance(task, theta, z, task.x)
    Q, D = Kuf.T @ np.linalg.solve(Kuu, Kuf), noise_matrix(task, theta)
    fit = multivariate_normal(np.zeros(len(Q)), Q + task.basis @ task.basis.T + D).logpdf(task.y)
    expected = fit - 0.5 * np.sum((prior - np.diag(Q)) / np.diag(D))
    assert sparse.bound(task, theta, z)[0] == pytest.approx(expected, rel=1e-9)


@some_of_each
def test_gradients_are_the_slopes(kernel: str, noise: str, degree: int) -> None:
    task = problem(kernel, noise, degree, samples=20)
    theta = hyper_parameters(task)
    # Points well apart: the bound bends too sharply for differences where two nearly meet.
    z = scattered_points(task, theta, 6)
    gradient = exact.log_likelihood(task, theta)[1]
    expected = slopes(lambda t: exact.log_likelihood(task, t)[0], theta)
    np.testing.assert_allclose(gradient, expected, atol=1e-7 * np.abs(expected).max())
    _, gradient, places = sparse.bound(task, theta, z, True)
    expected = slopes(lambda t: sparse.bound(task, t, z)[0], theta)
    np.testing.assert_allclose(gradient, expected, atol=1e-7 * np.abs(expected).max())
    expected = slopes(lambda p: sparse.bound(task, theta, p)[0], z)
    np.testing.assert_allclose(places.ravel(), expected, atol=1e-7 * np.abs(expected).max())


@every_kind
@both_noises
@every_basis
def test_points_at_all_samples_give_the_exact_process(kernel: str, noise: str, degree: int) -> None:
    task = problem(kernel, noise, degree)
    theta, x = hyper_parameters(task), inputs(12, 7)
    value, gradient = exact.log_likelihood(task, theta)
    low, low_gradient, _ = sparse.bound(task, theta, task.x)
    # The jitter of 1e-8 over a noise variance of some 0.05 at thirty samples.
    assert low == pytest.approx(value, abs=1e-4)
    np.testing.assert_allclose(low_gradient, gradient, atol=1e-4 * np.abs(gradient).max())
    ours, theirs = sparse_posterior(task, theta, task.x, degree), exact_posterior(task, theta, degree)
    for a, b in zip(ours.predict(x), theirs.predict(x), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


@every_kind
@both_noises
def test_bound_stays_below_the_likelihood_and_rises_with_points(kernel: str, noise: str) -> None:
    task = problem(kernel, noise)
    theta = hyper_parameters(task)
    values = [sparse.bound(task, theta, task.x[:m])[0] for m in (1, 5, 10, 20, 30)]
    assert np.all(np.diff(values) > 0)
    assert values[-2] < exact.log_likelihood(task, theta)[0]
    assert values[-1] <= exact.log_likelihood(task, theta)[0] + 1e-9


def grown(task: Problem, theta: Array, first: int, sizes: list[int]) -> Block:
    """The exact block of the first samples, extended by the others a few at a time."""
    kernel_theta, noise_theta = task.split(theta)
    block = exact.condition(task.rows(np.arange(first)), theta)
    have = first
    for more in sizes:
        new = np.arange(have, have + more)
        corner = task.kernel.matrix(kernel_theta, task.x[new])
        corner[np.diag_indices(more)] += task.noise_variance(noise_theta)[new]
        cross = task.kernel.matrix(kernel_theta, block.points, task.x[new])
        block = exact.extend(block, cross, corner, task.x[new], task.y[: have + more])
        have += more
    return block


@every_kind
@both_noises
def test_extending_is_conditioning_on_all_data(kernel: str, noise: str) -> None:
    task = problem(kernel, noise)
    theta, x = hyper_parameters(task), inputs(12, 7)
    block = grown(task, theta, 10, [1, 1, 7, 11])
    whole = exact.condition(task, theta)
    np.testing.assert_array_equal(block.points, whole.points)
    np.testing.assert_allclose(block.weights, whole.weights, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(block.reduction, whole.reduction, rtol=1e-9, atol=1e-9)
    for a, b in zip(posterior(task, theta, block, -1).predict(x), exact_posterior(task, theta).predict(x), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@every_basis
def test_statistics_of_parts_of_the_data_add_up(degree: int) -> None:
    task = problem("ard+friction", "reversal", degree)
    theta, z = hyper_parameters(task), inputs(9, 5)
    whole = sparse.gather(task, theta, z)
    pieces = [sparse.gather(task.rows(rows), theta, z) for rows in np.array_split(np.arange(30), 4)]
    summed = pieces[0] + pieces[1] + pieces[2] + pieces[3]
    np.testing.assert_allclose(summed.information, whole.information, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(summed.information_vector, whole.information_vector, rtol=1e-10, atol=1e-10)


@every_kind
@pytest.mark.parametrize("make", [exact_posterior, lambda task, theta: sparse_posterior(task, theta, task.x[:9])])
def test_far_from_the_data_the_prior_is_left(kernel: str, make: Callable[[Problem, Array], Posterior]) -> None:
    task = problem(kernel)
    found = make(task, hyper_parameters(task))
    # A rational quadratic falls like a power of the distance alone, here between 1 and 3.
    far = 1e14 if "rational" in kernel else 1e3
    mean, variance = found.predict(task.x + far)
    np.testing.assert_allclose(mean, 0.0, atol=1e-12)
    np.testing.assert_allclose(variance, found.prior_variance, rtol=1e-12)
    np.testing.assert_allclose(found.uncertainty(task.x + far), 1.0, rtol=1e-12)
    assert np.all(found.uncertainty(task.x[:9]) < 0.9)


def test_a_rational_quadratic_of_large_power_is_a_squared_exponential() -> None:
    """To a share of the square of s over the power, and of power 1/2 it is a multiquadric."""
    many, se = parse_kernel("rational-quadratic", features(), 0), parse_kernel("ard", features(), 0)
    theta = 0.2 * np.random.default_rng(3).normal(size=se.size) + 0.5
    x, z = inputs(10, 1), inputs(8, 2)
    k = se.matrix(theta, x, z)
    np.testing.assert_allclose(many.matrix(np.append(theta, np.log(1e7)), x, z), k, atol=1e-6)
    s = -2 * np.log(k / np.exp(2 * theta[0]))
    found = many.matrix(np.append(theta, np.log(0.5)), x, z)
    np.testing.assert_allclose(found, np.exp(2 * theta[0]) / np.sqrt(1 + s), rtol=1e-10)


def test_an_exponential_has_a_kink_and_no_slope_in_it() -> None:
    """Samples given twice, or nearly so, leave gradients finite; covariances of near ones keep their digits."""
    kernel = parse_kernel("exponential", features(), 0)
    theta = np.zeros(kernel.size)
    x = inputs(6, 1)
    near = x.copy()
    near[:, 0] += 1e-10
    np.testing.assert_allclose(1 - np.diag(kernel.matrix(theta, x, near)), 1e-10, rtol=1e-4)
    outer = np.ones((6, 6))
    for z in (x, near):
        gradient, places = kernel.gradients(theta, x, z.copy(), outer)
        own, _ = kernel.gradients(theta, x, None, outer)
        np.testing.assert_allclose(gradient, own, rtol=1e-6)
        assert np.all(np.isfinite(places)) and np.abs(places).max() < 10.0


@pytest.mark.parametrize("shape", ["matern32", "matern52", "exponential", "rational-quadratic"])
def test_equal_length_scales_are_one_for_all(shape: str) -> None:
    many, one = parse_kernel(shape, features(), 0), parse_kernel(f"{shape}-iso", features(), 0)
    power = [0.4] * (shape == "rational-quadratic")
    x, z = inputs(10, 1), inputs(8, 2)
    assert (one.size, many.size) == (2 + len(power), 7 + len(power))
    k = one.matrix(np.array([0.1, 0.3, *power]), x, z)
    np.testing.assert_allclose(many.matrix(np.array([0.1, *[0.3] * 6, *power]), x, z), k, rtol=1e-12)


def test_words_that_are_no_kernel_are_refused_with_those_that_are() -> None:
    for word in ("cubic", "se-iso", "ard-iso", "own-iso", "rational_quadratic", ""):
        with expect_error(UnknownName, "kernel"):
            parse_kernel(f"se+{word}", features(), 0)


def test_chosen_points_are_those_of_largest_variance_left() -> None:
    task = problem("ard+friction", samples=40)
    theta = task.split(hyper_parameters(task))[0]
    chosen = sparse.choose_points(task.kernel, theta, task.x, 12)
    assert len(set(chosen.tolist())) == 12
    K = task.kernel.matrix(theta, task.x)
    for i in range(1, 12):
        before = chosen[:i]
        left = np.diag(K - K[:, before] @ np.linalg.solve(K[np.ix_(before, before)], K[before]))
        assert left[chosen[i]] == pytest.approx(left.max(), rel=1e-9)
    np.testing.assert_array_equal(sparse.choose_points(task.kernel, theta, task.x, 5), chosen[:5])


def test_chosen_points_are_never_twice_the_same_place_and_never_more_than_there_are() -> None:
    task = problem("ard", samples=10)
    theta = task.split(hyper_parameters(task))[0]
    twice = np.vstack([task.x, task.x, task.x])
    chosen = sparse.choose_points(task.kernel, theta, twice, 25)
    assert sorted(chosen % 10) == list(range(10))
    assert len(sparse.choose_points(task.kernel, theta, task.x, 99)) == 10


def local_models(count: int) -> Posterior:
    """Exact models of thirty samples each about centers of their own."""
    task = problem("ard")
    theta = hyper_parameters(task)
    centers = 1.5 * inputs(count, 11)
    rows = [problem("ard", seed=s) for s in range(count)]
    blocks = tuple(exact.condition(r, theta) for r in rows)
    kernel_theta, noise_theta = task.split(theta)
    return Posterior(task.kernel, kernel_theta, task.noise, noise_theta, 2.0, blocks, centers)


@pytest.mark.parametrize("count", [2, 3, 4, 9])
def test_shares_of_local_models_sum_to_one_without_jumps(count: int) -> None:
    found = local_models(count)
    path = found.centers[0] + np.linspace(-0.5, 1.5, 4001)[:, None] * (found.centers[1] - found.centers[0])
    share = found.shares(path)
    assert np.all(share >= 0)
    np.testing.assert_allclose(share.sum(axis=1), 1.0, rtol=1e-12)
    assert np.all(np.count_nonzero(share, axis=1) <= 3)
    steps = np.abs(np.diff(share, axis=0)).max()
    halves = np.abs(np.diff(share[::2], axis=0)).max()
    # What changes without jumps changes half as much on half the way.
    assert steps < 0.6 * halves
    assert share[1000].argmax() == 0 and share[3000].argmax() == 1


def test_far_away_local_models_still_share() -> None:
    found = local_models(9)
    x = np.vstack([np.full(8, 1e4), np.full(8, -1e4)])
    np.testing.assert_allclose(found.shares(x).sum(axis=1), 1.0)
    np.testing.assert_allclose(found.uncertainty(x), 1.0, rtol=1e-9)


def test_a_tie_of_many_local_models_is_shared_by_all() -> None:
    found = local_models(5)
    tied = Posterior(
        found.kernel, found.theta, found.noise, found.noise_theta, 1.0, found.blocks, np.tile(found.centers[0], (5, 1))
    )
    np.testing.assert_allclose(tied.shares(inputs(4, 0)), 0.2)


def test_local_models_mix_as_distributions_do() -> None:
    found = local_models(4)
    x = inputs(6, 21)
    share = found.shares(x)
    each = [
        Posterior(found.kernel, found.theta, found.noise, found.noise_theta, 2.0, (b,), found.centers[:1]).predict(x)
        for b in found.blocks
    ]
    means, variances = np.array([e[0] for e in each]).T, np.array([e[1] for e in each]).T
    mean = np.sum(share * means, axis=1)
    variance = np.sum(share * (variances + (means - mean[:, None]) ** 2), axis=1)
    np.testing.assert_allclose(found.mean(x), mean, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.predict(x)[1], variance, rtol=1e-9)


@both_noises
@every_basis
def test_samples_given_twice_count_as_half_the_noise(noise: str, degree: int) -> None:
    task = problem("ard+friction", noise, degree)
    theta, x = hyper_parameters(task), inputs(12, 7)
    halved = theta.copy()
    halved[task.kernel.size] -= 0.5 * np.log(2)
    twice = task.rows(np.tile(np.arange(30), 2))
    for a, b in zip(
        exact_posterior(twice, theta, degree).predict(x), exact_posterior(task, halved, degree).predict(x), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)
    z = np.vstack([task.x[:5], task.x[:5]])  # points given twice: only the jitter tells them apart
    doubled, once = sparse.bound(task, theta, z), sparse.bound(task, theta, task.x[:5])
    assert doubled[0] == pytest.approx(once[0], abs=1e-4)


@pytest.mark.parametrize("constant", [0.0, 2.0])
def test_targets_that_never_change(constant: float) -> None:
    task = problem("ard", "even", 0)
    still = Problem(task.kernel, task.noise, task.x, np.full(30, constant), task.basis, task.reversal)
    theta = hyper_parameters(task)
    value, gradient = exact.log_likelihood(still, theta)
    assert np.isfinite(value) and np.all(np.isfinite(gradient))
    # The basis takes the constant but for its prior, of standard deviation 30.
    np.testing.assert_allclose(exact_posterior(still, theta, 0).mean(inputs(5, 7)), constant, atol=2e-3 * constant)
    np.testing.assert_allclose(
        sparse_posterior(still, theta, task.x[:6], 0).mean(inputs(5, 7)), constant, atol=2e-3 * constant
    )


@every_kind
@both_noises
def test_one_sample(kernel: str, noise: str) -> None:
    task = problem(kernel, noise, samples=1)
    theta = hyper_parameters(task)
    prior, scatter = task.kernel.variance(task.split(theta)[0]), noise_matrix(task, theta)[0, 0]
    expected = -0.5 * (task.y[0] ** 2 / (prior + scatter) + np.log(2 * np.pi * (prior + scatter)))
    assert exact.log_likelihood(task, theta)[0] == pytest.approx(expected, rel=1e-12)
    assert sparse.bound(task, theta, task.x)[0] == pytest.approx(expected, rel=1e-6)
    for found in (exact_posterior(task, theta), sparse_posterior(task, theta, task.x)):
        mean, variance = found.predict(task.x)
        assert mean[0] == pytest.approx(task.y[0] * prior / (prior + scatter), rel=1e-6)
        assert variance[0] == pytest.approx(prior * scatter / (prior + scatter), rel=1e-6)


def test_hyper_parameters_of_no_use_are_refused() -> None:
    task = problem("ard")
    twice = task.rows(np.tile(np.arange(30), 2))
    theta = task.start()
    theta[-1] = -400.0  # no noise at all on samples given twice
    with pytest.raises(Unfit):
        exact.log_likelihood(twice, theta)


def test_start_lies_within_the_bounds() -> None:
    f = features()
    for name in KERNELS:
        for noise in NOISES:
            task = problem(name, noise)
            assert task.kernel.size == parse_kernel(name, f, 1).size
            low, high = np.array(task.bounds()).T
            assert np.all((low < task.start()) & (task.start() < high))
