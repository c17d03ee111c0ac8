"""The same Gaussian processes in GPyTorch and in scikit-learn, for benchmarks/residual.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.residual import exact
from dynid.residual.problem import Problem

Array = NDArray[np.float64]
Work = Callable[[], object]

VARIANCES = {"none": "mean", "exact": "mean and variance", "fast": "mean and variance, fast_pred_var"}


def agree(what: str, ours: Array, theirs: Array, most: float) -> None:
    error = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
    if not error < most:
        raise SystemExit(f"{what}: results differ by {error:.1e}")


def gpytorch_model(problems: list[Problem], theta: list[Array]) -> tuple[Any, Any]:
    """One batch of exact processes, as many as there are problems."""
    import gpytorch
    import torch

    shape = torch.Size([len(problems)])
    columns = list(problems[0].kernel.parts[0].columns)
    x = torch.tensor(np.stack([p.x[:, columns] for p in problems]))
    y = torch.tensor(np.stack([p.y for p in problems]))

    class Exact(gpytorch.models.ExactGP):  # type: ignore[misc]
        def __init__(self, likelihood: Any) -> None:
            super().__init__(x, y, likelihood)
            self.mean_module = gpytorch.means.ZeroMean(batch_shape=shape)
            inner = gpytorch.kernels.RBFKernel(ard_num_dims=x.shape[-1], batch_shape=shape)
            self.covar_module = gpytorch.kernels.ScaleKernel(inner, batch_shape=shape)

        def forward(self, at: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(at), self.covar_module(at))

    likelihood = gpytorch.likelihoods.GaussianLikelihood(batch_shape=shape)
    model = Exact(likelihood).double()
    t = np.array(theta)
    model.covar_module.outputscale = torch.tensor(np.exp(2 * t[:, 0]))
    model.covar_module.base_kernel.lengthscale = torch.tensor(np.exp(t[:, None, 1:-1]))
    likelihood.noise = torch.tensor(np.exp(2 * t[:, -1:]))
    return model, likelihood


def gpytorch_singles(
    problems: list[Problem],
    theta: list[Array],
    rows: Array,
    expected: Array,
    variances: Sequence[str] = tuple(VARIANCES),
) -> dict[str, Work]:
    import gpytorch
    import torch

    columns = list(problems[0].kernel.parts[0].columns)
    queries = [torch.tensor(row[None, None, columns]).expand(len(problems), 1, -1) for row in rows]

    def work(variance: str) -> tuple[Work, Array]:
        model, likelihood = gpytorch_model(problems, theta)
        model.eval(), likelihood.eval()

        def run() -> Array:
            with (
                torch.no_grad(),
                gpytorch.settings.max_cholesky_size(100_000),
                gpytorch.settings.skip_posterior_variances(variance == "none"),
                gpytorch.settings.fast_pred_var(variance == "fast"),
            ):
                # Their exact variance factors all matrices anew for every sample: one is enough to time.
                found = [model(at) for at in (queries[:1] if variance == "exact" else queries)]
                if variance != "none":
                    [f.variance for f in found]
                return np.array([f.mean.numpy()[:, 0] for f in found])

        return run, run()  # the first call fills their caches

    out: dict[str, Work] = {}
    for variance in variances:
        name = VARIANCES[variance]
        out[f"GPyTorch: {name}"], found = work(variance)
        agree(f"GPyTorch, {name}", found, expected[: len(found)], 1e-6)
    return out


def gpytorch_step(problem: Problem, theta: Array, cholesky: bool) -> Work:
    import gpytorch

    model, likelihood = gpytorch_model([problem], [theta])
    model.train(), likelihood.train()
    loss = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)

    def run() -> float:
        with gpytorch.settings.max_cholesky_size(100_000 if cholesky else 800):
            model.zero_grad()
            value = loss(model(*model.train_inputs), model.train_targets).sum()
            value.backward()
        return float(value) * len(problem.x)

    if cholesky:
        agree("GPyTorch, likelihood", np.array([run()]), np.array([exact.log_likelihood(problem, theta)[0]]), 1e-6)
    return run


def sklearn_singles(problems: list[Problem], theta: list[Array], rows: Array, expected: Array) -> dict[str, Work]:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    columns = list(problems[0].kernel.parts[0].columns)
    models = [
        GaussianProcessRegressor(
            ConstantKernel(np.exp(2 * t[0])) * RBF(np.exp(t[1:-1])), alpha=np.exp(2 * t[-1]), optimizer=None
        ).fit(p.x[:, columns], p.y)
        for p, t in zip(problems, theta, strict=True)
    ]
    queries = [row[None, columns] for row in rows]

    def run(sure: bool) -> Array:
        found = [[model.predict(at, return_std=sure) for model in models] for at in queries]
        return np.array([[f[0][0] if sure else f[0] for f in each] for each in found])

    agree("scikit-learn", run(False), expected, 1e-6)
    return {
        "scikit-learn: mean": partial(run, False),
        "scikit-learn: mean and variance": partial(run, True),
    }
