"""The GPyTorch back end gives the numbers of the numpy version, and finds the same hyper-parameters."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from dynid.residual import exact, sparse
from dynid.residual.fit import fit_residual
from dynid.residual.posterior import basis_columns
from dynid.residual.problem import Problem
from dynid.residual.training import Training
from tests.support import hidden_effects
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
    warnings.simplefilter("ignore")  # GPyTorch's own, of torch
    torch = pytest.importorskip("torch", reason="torch is not installed (it comes with the gp extra)")
    gpytorch = pytest.importorskip("gpytorch", reason="gpytorch is not installed (it comes with the gp extra)")
    from dynid.residual import torch_backend

DEVICES = ["cpu"] + ["cuda"] * torch.cuda.is_available()
every_kind = pytest.mark.parametrize("kernel", KERNELS)
both_noises = pytest.mark.parametrize("noise", NOISES)
every_basis = pytest.mark.parametrize("degree", DEGREES)
every_device = pytest.mark.parametrize("device", DEVICES)


def plain(task: Problem) -> dict[str, Any]:
    """A problem as the plain arguments of the back end."""
    return {
        "parts": [(part.columns, part.shape, part.ard) for part in task.kernel.parts],
        "x": task.x, "y": task.y, "basis": task.basis, "reversal": task.reversal if task.noise.size == 2 else None,
    }  # fmt: skip


def close(ours: Any, theirs: Any, share: float) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=share * np.max(np.abs(theirs)))


@every_kind
@both_noises
@every_basis
@every_device
def test_likelihood_and_gradient_are_those_of_numpy(kernel: str, noise: str, degree: int, device: str) -> None:
    task = problem(kernel, noise, degree)
    theta = hyper_parameters(task)
    data = torch_backend.Data.of(**plain(task), device=device)
    assert data.size == task.size
    # A vague basis makes the dense matrix nearly singular, hence not to the last digit.
    digits = 1e-12 if degree < 0 else 1e-9
    for ours, theirs in zip(torch_backend.log_likelihood(data, theta), exact.log_likelihood(task, theta), strict=True):
        close(ours, theirs, digits)


@every_kind
@both_noises
@every_basis
@every_device
@pytest.mark.parametrize("chunk", [7, 1000])
def test_bound_and_gradients_are_those_of_numpy(kernel: str, noise: str, degree: int, device: str, chunk: int) -> None:
    task = problem(kernel, noise, degree)
    theta = hyper_parameters(task)
    z = scattered_points(task, theta, 6)
    data = torch_backend.Data.of(**plain(task), device=device)
    found = torch_backend.bound(data, theta, z, chunk)
    for ours, theirs in zip(found, sparse.bound(task, theta, z, True), strict=True):
        close(ours, theirs, 1e-10)


@every_kind
@both_noises
@every_basis
@every_device
def test_predictions_are_those_of_the_posterior(kernel: str, noise: str, degree: int, device: str) -> None:
    task = problem(kernel, noise, degree)
    theta, x, z = hyper_parameters(task), inputs(12, 7), inputs(9, 5)
    data = torch_backend.Data.of(**plain(task), device=device)
    h = basis_columns(degree, x)
    for points, theirs in ((None, exact_posterior(task, theta, degree)), (z, sparse_posterior(task, theta, z, degree))):
        ours = torch_backend.predict(data, theta, x, points, h, chunk=5)
        for a, b in zip(ours, theirs.predict(x), strict=True):
            close(a, b, 1e-8)


def test_gpytorchs_own_models_agree() -> None:
    """Marginal likelihood and sparse bound through GPyTorch's models rather than its kernels alone."""
    task = problem("ard", samples=40)
    theta, z = hyper_parameters(task), inputs(9, 5)
    x, y = torch.tensor(task.x), torch.tensor(task.y)
    columns = list(task.kernel.parts[0].columns)

    class Model(gpytorch.models.ExactGP):  # type: ignore[misc]
        def __init__(self, likelihood: Any, points: Array | None) -> None:
            super().__init__(x, y, likelihood)
            self.mean_module = gpytorch.means.ZeroMean()
            inner = gpytorch.kernels.RBFKernel(ard_num_dims=len(columns), active_dims=columns)
            self.inner = gpytorch.kernels.ScaleKernel(inner).double()
            self.inner.outputscale = float(np.exp(2 * theta[0]))
            inner.lengthscale = torch.tensor(np.exp(theta[1:-1]))
            if points is None:
                self.covar_module = self.inner
            else:
                self.covar_module = gpytorch.kernels.InducingPointKernel(self.inner, torch.tensor(points), likelihood)

        def forward(self, inputs: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(inputs), self.covar_module(inputs))

    for points, value in ((None, exact.log_likelihood(task, theta)[0]), (z, sparse.bound(task, theta, z)[0])):
        likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
        likelihood.noise = float(np.exp(2 * theta[-1]))
        model = Model(likelihood, points)
        model.train()
        likelihood.train()
        with gpytorch.settings.fast_computations(False, False, False):
            found = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)(model(x), y)
        # Its jitters differ from ours, 1e-8 of the prior variance.
        assert found.item() * len(y) == pytest.approx(value, rel=1e-6)


@every_device
@pytest.mark.parametrize("method", ["exact", "sparse"])
@pytest.mark.parametrize("degree", [-1, 1])
def test_a_search_ends_where_the_numpy_one_does(method: str, degree: int, device: str) -> None:
    task = problem("se", "reversal", degree, samples=60)
    z = inputs(12, 5) if method == "sparse" else None

    def down(theta: Array) -> tuple[float, Array]:
        value, gradient = exact.log_likelihood(task, theta) if z is None else sparse.bound(task, theta, z)[:2]
        return -value, -gradient

    theirs = minimize(down, task.start(), jac=True, method="L-BFGS-B", bounds=task.bounds(), options={"maxiter": 200})
    found = torch_backend.fit_hyper_parameters(
        **plain(task),
        theta=task.start(),
        max_iterations=200,
        method=method,
        points=z,
        device=device,
        bounds=task.bounds(),
    )
    assert found.value == pytest.approx(-theirs.fun, abs=1e-6)
    # Where the likelihood is flat to its tolerance of 2e-9 the place is known to the root of that.
    np.testing.assert_allclose(found.theta, theirs.x, atol=2e-3)
    assert found.value == pytest.approx(-down(found.theta)[0], rel=1e-9)
    low, high = np.array(task.bounds()).T
    assert np.all((found.theta >= low) & (found.theta <= high))


def test_adam_climbs_to_nearly_the_same_height_within_the_bounds() -> None:
    task = problem("friction", samples=60)
    best = torch_backend.fit_hyper_parameters(**plain(task), theta=task.start(), bounds=task.bounds())
    found = torch_backend.fit_hyper_parameters(
        **plain(task), theta=task.start(), max_iterations=200, bounds=task.bounds(), optimiser="adam"
    )
    assert found.evaluations == 201
    assert best.value - 0.05 < found.value <= best.value + 1e-6
    tight = [(t - 0.1, t + 0.1) for t in task.start()]
    held = torch_backend.fit_hyper_parameters(
        **plain(task), theta=task.start(), max_iterations=20, bounds=tight, optimiser="adam"
    )
    assert np.all(np.abs(held.theta - task.start()) <= 0.1 + 1e-12)


def test_points_that_may_wander_raise_the_bound() -> None:
    task = problem("ard", samples=60)
    z = inputs(6, 5)
    arguments = {**plain(task), "theta": task.start(), "steps": 40, "method": "sparse", "points": z}
    still = torch_backend.fit_hyper_parameters(**arguments, bounds=task.bounds())
    moved = torch_backend.fit_hyper_parameters(**arguments, bounds=task.bounds(), move_points=True)
    np.testing.assert_array_equal(still.points, z)
    assert moved.value > still.value + 1.0
    assert moved.value == pytest.approx(sparse.bound(task, moved.theta, moved.points)[0], rel=1e-9)
    assert moved.value < exact.log_likelihood(task, exact_best(task))[0]


def exact_best(task: Problem) -> Array:
    theta: Array = torch_backend.fit_hyper_parameters(**plain(task), theta=task.start(), bounds=task.bounds()).theta
    return theta


def test_a_search_passes_over_places_without_a_factor() -> None:
    task = problem("ard")
    twice = task.rows(np.tile(np.arange(30), 2))
    hopeless = task.start()
    hopeless[-1] = -400.0  # no noise at all on samples given twice
    with pytest.raises(ValueError, match="not positive definite"):
        torch_backend.fit_hyper_parameters(**plain(twice), theta=hopeless, max_iterations=3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "quick"}, "method is"),
        ({"method": "sparse"}, "needs inducing points"),
        ({"optimiser": "luck"}, "optimiser is"),
        ({"move_points": True}, "only a sparse fit"),
        ({"theta": np.zeros(3)}, "8 hyper-parameters"),
        ({"device": "abacus"}, "unknown device"),
        ({"parts": [((0, 1, 2, 3, 4, 5), "cubic", True)]}, "unknown shape"),
    ],
)
def test_what_makes_no_sense_is_refused(changes: dict[str, Any], message: str) -> None:
    task = problem("ard")
    with pytest.raises(ValueError, match=message):
        torch_backend.fit_hyper_parameters(**{**plain(task), "theta": task.start(), **changes})


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a graphics card")
def test_a_missing_graphics_card_is_said_to_be_missing() -> None:
    task = problem("ard")
    with pytest.raises(ValueError, match="no graphics card"):
        torch_backend.fit_hyper_parameters(**plain(task), theta=task.start(), device="cuda")


def test_it_loads_from_its_file_without_the_package() -> None:
    """A machine with a graphics card may have none of what the rest of the package needs."""
    source = importlib.util.find_spec("dynid.residual.torch_backend")
    assert source is not None and source.origin is not None
    code = f"""
import sys, importlib.util
spec = importlib.util.spec_from_file_location("torch_backend", {str(Path(source.origin))!r})
module = importlib.util.module_from_spec(spec)
sys.modules["torch_backend"] = module
spec.loader.exec_module(module)
print([m for m in sys.modules if m.split(".")[0] in ("dynid", "numba", "pinocchio")])
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_same_call_gives_the_same_predictions() -> None:
    """fit_residual with GPyTorch for the search: torques agree to a share of their standard deviation."""
    _, q, v, a = hidden_effects.states(7)
    found = [
        fit_residual(
            hidden_effects.estimate(), hidden_effects.recording(0), kernel="own",
            training=Training(method="exact", restarts=0, rows=None, library=library),
        ).predict(q, v, a)
        for library in ("numpy", "gpytorch")
    ]  # fmt: skip
    assert np.abs(found[0].torque - found[1].torque).max() < 0.05 * found[0].std.min()
