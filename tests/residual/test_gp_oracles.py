"""Likelihoods, bounds, gradients and predictions against GPy's, and scikit-learn's where it is installed."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from dynid.residual import exact, sparse
from dynid.residual.kernel import Part
from dynid.residual.problem import Problem
from tests.support.gp_cases import (
    DEGREES,
    KERNELS,
    NOISES,
    Array,
    exact_posterior,
    hyper_parameters,
    inputs,
    problem,
    scattered_points,
    sparse_posterior,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore", ImportWarning)  # GPy misses matplotlib; nothing is plotted here
    GPy = pytest.importorskip("GPy", reason="GPy is not installed (it comes with the dev extra)")

# GPy's sum of parts over some of the columns has fewer inputs than there are columns, as it should.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Your kernel has a different input dimension"),
    pytest.mark.filterwarnings("ignore:overflow encountered in expm1"),  # in its transform of large numbers
]
every_kind = pytest.mark.parametrize("kernel", KERNELS)
both_noises = pytest.mark.parametrize("noise", NOISES)
every_basis = pytest.mark.parametrize("degree", DEGREES)

# GPy adds this to the variance of the noise, and to the diagonal of the points' covariance.
GPY_JITTER = 1e-8
VAGUE = 30.0**2


def gpy_part(part: Part, t: Array) -> Any:
    """GPy's kernel; its rational quadratic has no power beside the length scale, which takes the root of it here."""
    shapes = {"se": GPy.kern.RBF, "matern32": GPy.kern.Matern32, "matern52": GPy.kern.Matern52}
    shapes |= {"exponential": GPy.kern.Exponential, "rational-quadratic": GPy.kern.RatQuad}
    lengths, more = np.exp(t[1 : 1 + part.scales]), {}
    if part.shape == "rational-quadratic":
        lengths, more = lengths * np.exp(t[-1] / 2), {"power": np.exp(t[-1])}
    columns = list(part.columns)
    return shapes[part.shape](len(columns), np.exp(2 * t[0]), lengths, ARD=part.ard, active_dims=columns, **more)


def gpy_slopes(p: Any) -> Array:
    """Gradient of one of GPy's kernels over the logarithms of ours."""
    lengths = p.lengthscale.values * p.lengthscale.gradient
    slopes = np.append(2 * p.variance.values * p.variance.gradient, lengths)
    if isinstance(p, GPy.kern.RatQuad):
        slopes = np.append(slopes, p.power.values * p.power.gradient + 0.5 * lengths.sum())
    return slopes


def gpy_kernel(task: Problem, theta: Array) -> Any:
    """GPy's sum, with the basis as a bias and a linear kernel after the parts."""
    parts = [
        gpy_part(part, t) for part, t in zip(task.kernel.parts, task.kernel.split(task.split(theta)[0]), strict=True)
    ]
    d = task.x.shape[1]
    extra = [GPy.kern.Bias(d, VAGUE)] * (task.basis.shape[1] > 0)
    extra += [GPy.kern.Linear(d, VAGUE)] * (task.basis.shape[1] > 1)
    whole = parts[0]
    for more in [*parts[1:], *extra]:
        whole = whole + more
    return whole


def logarithmic(task: Problem, theta: Array, model: Any, per_sample: Array) -> Array:
    """GPy's gradients over variances and lengths as ours over logarithms; of the noise by the chain rule."""
    count = len(task.kernel.parts)
    parts = [model.kern] if isinstance(model.kern, GPy.kern.src.stationary.Stationary) else model.kern.parts[:count]
    pieces = [gpy_slopes(p) for p in parts]
    noise = task.noise_variance(task.split(theta)[1])
    columns = [2 * noise, 2 * noise * task.reversal][: task.noise.size]
    return np.concatenate([*pieces, [per_sample @ c for c in columns]])


def gpy_exact(task: Problem, theta: Array) -> Any:
    model = GPy.models.GPHeteroscedasticRegression(task.x, task.y[:, None], gpy_kernel(task, theta))
    model.het_Gauss.variance = (task.noise_variance(task.split(theta)[1]) - GPY_JITTER)[:, None]
    return model


@every_kind
@both_noises
@every_basis
def test_exact_process_is_that_of_gpy(kernel: str, noise: str, degree: int) -> None:
    task = problem(kernel, noise, degree, samples=50)
    theta, x = hyper_parameters(task), inputs(20, 7)
    model = gpy_exact(task, theta)
    value, gradient = exact.log_likelihood(task, theta)
    # With a basis the dense matrix has entries up to 1e4 beside a noise of 0.1: digits are lost on both sides.
    digits = 1e-10 if degree < 0 else 1e-8
    assert value == pytest.approx(np.ravel(model.log_likelihood())[0], rel=digits)
    expected = logarithmic(task, theta, model, model.het_Gauss.variance.gradient.ravel())
    np.testing.assert_allclose(gradient, expected, atol=digits * np.abs(expected).max())
    mean, variance = model._raw_predict(x)
    found = exact_posterior(task, theta, degree).predict(x)
    np.testing.assert_allclose(found[0], mean[:, 0], atol=10 * digits)
    np.testing.assert_allclose(found[1], variance[:, 0], atol=10 * digits)


@every_kind
def test_even_noise_is_that_of_gpys_plain_regression(kernel: str) -> None:
    task = problem(kernel, samples=50)
    theta = hyper_parameters(task)
    whole = gpy_kernel(task, theta)
    scatter = float(np.exp(2 * theta[-1]))
    model = GPy.models.GPRegression(task.x, task.y[:, None], whole, noise_var=scatter - GPY_JITTER)
    value, gradient = exact.log_likelihood(task, theta)
    assert value == pytest.approx(np.ravel(model.log_likelihood())[0], rel=1e-10)
    expected = logarithmic(task, theta, model, np.full(50, float(model.likelihood.variance.gradient[0]) / 50))
    np.testing.assert_allclose(gradient, expected, atol=1e-10 * np.abs(expected).max())


class PerSample(GPy.likelihoods.HeteroscedasticGaussian):  # type: ignore[misc]
    """Noise of every sample's own; GPy 1.15 gives its sparse gradient one axis too many."""

    def exact_inference_gradients(self, dL_dKdiag: Array, Y_metadata: Any = None) -> Array:
        return np.reshape(super().exact_inference_gradients(dL_dKdiag, Y_metadata), (-1, 1))


@every_kind
@both_noises
@pytest.mark.parametrize("own", [True, False])
def test_bound_is_that_of_gpys_sparse_regression(kernel: str, noise: str, own: bool) -> None:
    """With points at places of their own, or at samples."""
    task = problem(kernel, noise, samples=50)
    theta, x = hyper_parameters(task), inputs(20, 7)
    # The same jitter on both sides takes a prior variance of one, and points apart make it small in what follows.
    starts = np.cumsum([0, *(part.size for part in task.kernel.parts)])[:-1]
    theta[starts] -= 0.5 * np.log(task.kernel.variance(task.split(theta)[0]))
    z = scattered_points(task, theta, 8, None if own else task.x)
    whole = gpy_kernel(task, theta)
    scatter = task.noise_variance(task.split(theta)[1])
    if noise == "even":
        likelihood = GPy.likelihoods.Gaussian(variance=scatter[0])
    else:
        metadata = {"output_index": np.arange(50)[:, None]}
        likelihood = PerSample(metadata, variance=scatter[:, None])
    model = GPy.core.SparseGP(
        task.x, task.y[:, None], z.copy(), whole, likelihood,
        inference_method=GPy.inference.latent_function_inference.VarDTC(),
        Y_metadata=None if noise == "even" else metadata,
    )  # fmt: skip
    model.parameters_changed()
    value, gradient, moving = sparse.bound(task, theta, z, True)
    assert value == pytest.approx(np.ravel(model.log_likelihood())[0], rel=1e-8)
    over = np.ravel(likelihood.variance.gradient)
    expected = logarithmic(task, theta, model, over if noise == "reversal" else np.full(50, over[0] / 50))
    # Our jitter grows with the prior variance and GPy's does not: 1e-8 of slopes over it.
    np.testing.assert_allclose(gradient, expected, atol=1e-6 * np.abs(expected).max())
    moved = model.Z.gradient
    np.testing.assert_allclose(moving, moved, atol=1e-6 * np.abs(moved).max())
    mean, variance = model._raw_predict(x)
    found = sparse_posterior(task, theta, z).predict(x)
    np.testing.assert_allclose(found[0], mean[:, 0], atol=1e-7)
    np.testing.assert_allclose(found[1], np.ravel(variance), atol=1e-7)


# Its rational quadratic has one length scale.
SKLEARN = ["se", "ard", "matern32", "matern52", "matern32+se", "exponential", "exponential-iso+rational-quadratic-iso"]


@pytest.mark.parametrize("kernel", SKLEARN)
@both_noises
def test_exact_process_is_that_of_scikit_learn(kernel: str, noise: str) -> None:
    gp = pytest.importorskip("sklearn.gaussian_process", reason="scikit-learn is not installed")
    task = problem(kernel, noise, samples=50)
    theta, x = hyper_parameters(task), inputs(20, 7)
    seen = list(task.kernel.parts[0].columns)  # scikit-learn's kernels see all columns they are given
    whole: Any = None
    order: list[int] = []  # places of its hyper-parameters, which stand by name, in ours
    for part, t in zip(task.kernel.parts, task.kernel.split(task.split(theta)[0]), strict=True):
        lengths, start = np.exp(t[1:]) if part.ard else float(np.exp(t[1])), len(order)
        order += range(start, start + part.size)
        if part.shape == "se":
            shape = gp.kernels.RBF(lengths)
        elif part.shape == "rational-quadratic":
            shape = gp.kernels.RationalQuadratic(lengths, alpha=np.exp(t[2]))
            order[start + 1 :] = [start + 2, start + 1]
        else:
            shape = gp.kernels.Matern(lengths, nu={"exponential": 0.5, "matern32": 1.5, "matern52": 2.5}[part.shape])
        product = gp.kernels.ConstantKernel(np.exp(2 * t[0])) * shape
        whole = product if whole is None else whole + product
    scatter = task.noise_variance(task.split(theta)[1])
    model = gp.GaussianProcessRegressor(whole, alpha=scatter, optimizer=None).fit(task.x[:, seen], task.y)
    expected, slopes = model.log_marginal_likelihood(model.kernel_.theta, eval_gradient=True)
    value, gradient = exact.log_likelihood(task, theta)
    assert value == pytest.approx(expected, rel=1e-10)
    starts = np.cumsum([0, *(part.size for part in task.kernel.parts)])[:-1]
    slopes[starts] *= 2  # over the logarithm of the variance, ours over that of the amplitude
    np.testing.assert_allclose(gradient[order], slopes, atol=1e-10 * np.abs(slopes).max())
    mean, std = model.predict(x[:, seen], return_std=True)
    found = exact_posterior(task, theta).predict(x)
    np.testing.assert_allclose(found[0], mean, atol=1e-10)
    np.testing.assert_allclose(found[1], std**2, atol=1e-10)
