"""Hyper-parameters of large sets through GPyTorch, on a processor or a graphics card.

Takes plain arrays and hyper-parameters in the order of `Problem`, and imports nothing else of this package: a computer
that has only numpy, scipy, torch and gpytorch can load it from its file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import gpytorch
import numpy as np
import torch
from gpytorch.constraints import Positive
from gpytorch.kernels import AdditiveKernel, MaternKernel, RBFKernel, RQKernel, ScaleKernel
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

__all__ = ["Data", "Found", "bound", "fit_hyper_parameters", "log_likelihood", "predict"]

Array = NDArray[np.float64]
# Columns, shape ("se", "rational-quadratic" or one of _ORDERS) and whether each column has a length scale of its own.
Part = tuple[Sequence[int], str, bool]
# Orders of the Matern shapes.
_ORDERS = {"exponential": 0.5, "matern32": 1.5, "matern52": 2.5}

# Added to the diagonal of the points' own covariance, as a share of it; the same as in `sparse`.
_JITTER = 1e-8
# Samples of which the sparse bound holds covariances at a time.
_CHUNK = 16384
# Value of the objective where the covariance matrix cannot be factorised, far above any negative log likelihood.
_NOWHERE = 1e15


@dataclass(frozen=True, eq=False)
class Data:
    """Targets y (N,) at x (N, d), basis (N, b) and reversal (N,) of `Problem`, or None, as tensors on a device."""

    parts: tuple[Part, ...]
    x: Any
    y: Any
    basis: Any
    reversal: Any

    @staticmethod
    def of(
        parts: Sequence[Part], x: ArrayLike, y: ArrayLike, basis: ArrayLike | None = None,
        reversal: ArrayLike | None = None, device: str = "cpu",
    ) -> Data:  # fmt: skip
        where = _device(device)

        def tensor(a: ArrayLike) -> Any:
            return torch.as_tensor(np.ascontiguousarray(a, dtype=np.float64), device=where)

        samples = len(np.asarray(y))
        h = np.zeros((samples, 0)) if basis is None else basis
        r = None if reversal is None else tensor(reversal)
        return Data(tuple((tuple(c), s, bool(a)) for c, s, a in parts), tensor(x), tensor(y), tensor(h), r)

    @property
    def size(self) -> int:
        """Hyper-parameters: those of the parts, log noise, and its rise at reversals where those are given."""
        kernel = sum(1 + _scales(columns, ard) + _has_power(shape) for columns, shape, ard in self.parts)
        return kernel + (1 if self.reversal is None else 2)

    def rows(self, index: slice) -> Data:
        reversal = None if self.reversal is None else self.reversal[index]
        return replace(self, x=self.x[index], y=self.y[index], basis=self.basis[index], reversal=reversal)

    def tensor(self, a: ArrayLike) -> Any:
        """An array as a tensor beside the data."""
        return torch.as_tensor(np.array(a, dtype=np.float64), device=self.x.device)


@dataclass(frozen=True, eq=False)
class Found:
    """Hyper-parameters `theta` of the highest `value` met, in `evaluations`; `message` says why the search ended.

    `points` (m, d) are the inducing points, moved with `move_points`; `history` holds the value of each evaluation.
    """

    theta: Array
    value: float
    evaluations: int
    message: str
    points: Array | None = None
    history: tuple[float, ...] = field(default=(), repr=False)


def fit_hyper_parameters(
    parts: Sequence[Part], x: ArrayLike, y: ArrayLike, theta: ArrayLike, max_iterations: int = 100,
    method: str = "exact", points: ArrayLike | None = None, device: str = "cpu", *, basis: ArrayLike | None = None,
    reversal: ArrayLike | None = None, bounds: Sequence[tuple[float, float]] | None = None,
    optimiser: str = "lbfgs", rate: float = 0.05, move_points: bool = False, chunk: int = _CHUNK,
) -> Found:  # fmt: skip
    """Hyper-parameters of largest likelihood, from the start `theta`: those of the parts, then log noise.

    A part has a log amplitude, log length scales and, if it is a rational quadratic, a log power.

    `method` "exact" maximises the log marginal likelihood, "sparse" its lower bound with inducing `points` (m, d).
    `optimiser` "lbfgs" makes at most `max_iterations` quasi-Newton iterations, "adam" exactly that many at a learning
    rate `rate`. `bounds` are ranges of the hyper-parameters. With `move_points` the points are optimised too.
    """
    data = Data.of(parts, x, y, basis, reversal, device)
    start = np.array(theta, dtype=float)
    if start.shape != (data.size,):
        raise ValueError(f"these parts and this noise have {data.size} hyper-parameters, got {start.shape}")
    if method == "exact":
        if move_points:
            raise ValueError("only a sparse fit has points to move")
        z = None
    elif method == "sparse":
        if points is None:
            raise ValueError("a sparse fit needs inducing points")
        z = np.array(points, dtype=float)
    else:
        raise ValueError(f"method is 'exact' or 'sparse', not '{method}'")
    moving = z if move_points else None
    search = _Search(data, z, moving is not None, chunk, len(start))
    first = start if moving is None else np.concatenate([start, moving.ravel()])
    ranges = None
    if bounds is not None:
        ranges = list(bounds) + [(-np.inf, np.inf)] * (len(first) - len(start))
    if optimiser == "lbfgs":
        message = _quasi_newton(search, first, ranges, max_iterations)
    elif optimiser == "adam":
        message = _adam(search, first, ranges, max_iterations, rate)
    else:
        raise ValueError(f"optimiser is 'lbfgs' or 'adam', not '{optimiser}'")
    if search.best is None:
        raise ValueError("the covariance matrix is not positive definite at any hyper-parameters tried")
    at = search.best
    moved = at[len(start) :].reshape(moving.shape) if moving is not None else z
    history = tuple(search.history)
    return Found(at[: len(start)], max(history), len(history), message, moved, history)


def log_likelihood(data: Data, theta: ArrayLike) -> tuple[float, Array]:
    """Log marginal likelihood and its gradient, the basis integrated out: what `exact.log_likelihood` gives."""
    t = data.tensor(theta).requires_grad_()
    kernel, variance = _covariance(data, t)
    with _dense():
        K = kernel(data.x).to_dense()
    D = variance(data)
    with torch.no_grad():
        full = K + data.basis @ data.basis.T if data.basis.shape[1] else K.clone()
        full.diagonal().add_(D)
        L = torch.linalg.cholesky(full)
        del full
        alpha = torch.cholesky_solve(data.y[:, None], L)
        logs = L.diagonal().log().sum()
        value = -0.5 * data.y @ alpha[:, 0] - logs - 0.5 * len(data.y) * np.log(2 * np.pi)
        # d F / d K, from which the graph of the covariance function goes on.
        outer = torch.cholesky_inverse(L).mul_(-0.5)
        del L
        outer.addmm_(alpha, alpha.T, alpha=0.5)
    torch.autograd.backward([K, D], [outer, outer.diagonal().clone()])
    return float(value), t.grad.cpu().numpy()


def bound(data: Data, theta: ArrayLike, points: ArrayLike, chunk: int = _CHUNK) -> tuple[float, Array, Array]:
    """Titsias' collapsed bound and its gradients over theta and the points (m, d): what `sparse.bound` gives.

    Of N samples only `chunk` are held against the points at a time.
    """
    t, z = data.tensor(theta).requires_grad_(), data.tensor(points).requires_grad_()
    kernel, variance = _covariance(data, t)
    with _dense():
        K = kernel(z).to_dense()
    prior = kernel(z[:1], diag=True)[0]
    L = torch.linalg.cholesky(K + _JITTER * prior * torch.eye(len(z), dtype=K.dtype, device=K.device))
    # The terms of the samples are sums over them: gathered first without a graph, then again with one, a chunk at a
    # time, to propagate the gradient of the bound.
    held = [a.detach().requires_grad_() for a in (L, prior)]
    total: list[Any] | None = None
    with torch.no_grad():
        for some in _chunks(data, chunk):
            sums = _sums(some, kernel, variance, z, *held)
            total = list(sums) if total is None else [a + b for a, b in zip(total, sums, strict=True)]
    assert total is not None
    total = [a.detach().requires_grad_() for a in total]
    value = _from_sums(len(data.y), *total)
    value.backward()
    slopes = [a.grad for a in total]
    for some in _chunks(data, chunk):
        again, noise = _covariance(data, t)
        torch.autograd.backward(_sums(some, again, noise, z, *held), slopes)
    torch.autograd.backward([L, prior], [a.grad for a in held])
    return float(value.detach()), t.grad.cpu().numpy(), z.grad.cpu().numpy()


def predict(
    data: Data, theta: ArrayLike, x: ArrayLike, points: ArrayLike | None = None, basis: ArrayLike | None = None,
    chunk: int = _CHUNK,
) -> tuple[Array, Array]:  # fmt: skip
    """Mean and variance (Q,) of the function at x (Q, d), from all data or through inducing `points`.

    `basis` (Q, b) are the columns of the basis at x.
    """
    t = data.tensor(theta)
    kernel, variance = _covariance(data, t)
    asked = data.tensor(x)
    h = data.tensor(basis) if basis is not None else data.basis.new_zeros(len(asked), 0)
    if h.shape != (len(asked), data.basis.shape[1]):
        raise ValueError(f"the basis has {data.basis.shape[1]} columns, got {tuple(h.shape)} for {len(asked)} queries")
    z = data.x if points is None else data.tensor(points)
    means, variances = [], []
    with torch.no_grad(), _dense():
        prior = kernel(z[:1], diag=True)[0]
        K = kernel(z).to_dense()
        if points is None:
            K += data.basis @ data.basis.T
            K.diagonal().add_(variance(data))
            L = torch.linalg.cholesky(K)
            weights = torch.cholesky_solve(data.y[:, None], L)[:, 0]
        else:
            L, LS, weights = _whitened(data, kernel, variance, z, K, prior, chunk)
        for i in range(0, len(asked), chunk):
            k, hi = kernel(z, asked[i : i + chunk]).to_dense(), h[i : i + chunk]
            if points is None:
                k += data.basis @ hi.T
                left = prior + hi.square().sum(1) - torch.linalg.solve_triangular(L, k, upper=False).square().sum(0)
            else:
                explained = torch.linalg.solve_triangular(L, k, upper=False)
                k = torch.cat([explained, hi.T])
                left = prior - explained.square().sum(0)
                left += torch.linalg.solve_triangular(LS, k, upper=False).square().sum(0)
            means.append(k.T @ weights)
            variances.append(left.clamp_min(0.0))
    return torch.cat(means).cpu().numpy(), torch.cat(variances).cpu().numpy()


def _whitened(data: Data, kernel: Any, variance: Any, z: Any, K: Any, prior: Any, chunk: int) -> tuple[Any, Any, Any]:
    """Factors of the points' covariance and of the information in their whitened values, and the values' mean."""
    K.diagonal().add_(_JITTER * prior)
    L = torch.linalg.cholesky(K)
    sums = [_sums(some, kernel, variance, z, L, prior)[:2] for some in _chunks(data, chunk)]
    S, vector = (torch.stack(a).sum(0) for a in zip(*sums, strict=True))
    S.diagonal().add_(1.0)
    LS = torch.linalg.cholesky(S)
    return L, LS, torch.cholesky_solve(vector[:, None], LS)[:, 0]


def _sums(some: Data, kernel: Any, variance: Callable[[Data], Any], z: Any, L: Any, prior: Any) -> tuple[Any, ...]:
    """V D^-1 V', V D^-1 y, y' D^-1 y, log |D| and what the points leave unexplained, over some samples."""
    with _dense():
        Kuf = kernel(z, some.x).to_dense()
    D = variance(some)
    explained = torch.linalg.solve_triangular(L, Kuf, upper=False)
    V = torch.cat([explained, some.basis.T])
    VD = V / D
    left = ((prior - explained.square().sum(0)) / D).sum()
    return VD @ V.T, VD @ some.y, (some.y.square() / D).sum(), D.log().sum(), left


def _from_sums(samples: int, information: Any, vector: Any, square: Any, logs: Any, left: Any) -> Any:
    S = information + torch.eye(len(vector), dtype=vector.dtype, device=vector.device)
    LS = torch.linalg.cholesky(S)
    c = torch.linalg.solve_triangular(LS, vector[:, None], upper=False)
    logs = logs + 2 * LS.diagonal().log().sum()
    return -0.5 * (samples * np.log(2 * np.pi) + logs + square - c.square().sum() + left)


def _covariance(data: Data, theta: Any) -> tuple[Any, Callable[[Data], Any]]:
    """GPyTorch's kernel and the variance of the noise as functions of a tensor of hyper-parameters."""
    kernels, i = [], 0
    for columns, shape, ard in data.parts:
        end = i + 1 + _scales(columns, ard)
        kernels.append(_part(columns, shape, ard, theta[i], theta[i + 1 : end], theta[end : end + 1]))
        i = end + _has_power(shape)
    noise = theta[i:]

    def variance(some: Data) -> Any:
        if some.reversal is None:
            return torch.exp(2 * noise[0]).expand(len(some.y))
        return torch.exp(2 * noise[0] + 2 * noise[1] * some.reversal)

    return kernels[0] if len(kernels) == 1 else AdditiveKernel(*kernels), variance


def _scales(columns: Sequence[int], ard: bool) -> int:
    """Number of length scales of a part."""
    return len(columns) if ard else 1


def _has_power(shape: str) -> bool:
    """Whether the last hyper-parameter of a part is its power."""
    return shape == "rational-quadratic"


def _part(columns: Sequence[int], shape: str, ard: bool, amplitude: Any, lengths: Any, power: Any) -> Any:
    options = {
        "ard_num_dims": len(columns) if ard else None,
        "active_dims": tuple(columns),
        "lengthscale_constraint": Positive(torch.exp, torch.log),
    }
    if shape == "se":
        base = RBFKernel(**options)
    elif shape in _ORDERS:
        base = MaternKernel(nu=_ORDERS[shape], **options)
    elif _has_power(shape):
        base = RQKernel(alpha_constraint=Positive(torch.exp, torch.log), **options)
    else:
        raise ValueError(f"unknown shape '{shape}': use se, rational-quadratic, {', '.join(_ORDERS)}")
    scaled = ScaleKernel(base, outputscale_constraint=Positive(torch.exp, torch.log)).to(lengths)
    # Pieces of one tensor take the place of the modules' own parameters, so that its gradient is that of `Problem`.
    del base.raw_lengthscale, scaled.raw_outputscale
    base.raw_lengthscale, scaled.raw_outputscale = lengths[None], 2 * amplitude
    if _has_power(shape):
        del base.raw_alpha
        base.raw_alpha = power
    return scaled


def _device(name: str) -> Any:
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f"unknown device '{name}': use cpu or cuda") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError("torch finds no graphics card on this computer: use device cpu")
    return device


def _dense() -> Any:
    """GPyTorch's kernels in full, never lazily approximated."""
    return gpytorch.settings.lazily_evaluate_kernels(False)


def _chunks(data: Data, size: int) -> Iterator[Data]:
    return (data.rows(slice(i, i + size)) for i in range(0, len(data.y), size))


class _Search:
    """The negative of the objective, with the best argument so far."""

    def __init__(self, data: Data, points: Array | None, moving: bool, chunk: int, size: int) -> None:
        self.data, self.points, self.moving, self.chunk, self.size = data, points, moving, chunk, size
        self.best: Array | None = None
        self.history: list[float] = []

    def __call__(self, at: Array) -> tuple[float, Array]:
        try:
            value, gradient = self._objective(at)
        except torch.linalg.LinAlgError:
            return _NOWHERE, np.zeros_like(at)
        if not self.history or value > max(self.history):
            self.best = at.copy()
        self.history.append(value)
        return -value, -gradient

    def _objective(self, at: Array) -> tuple[float, Array]:
        if self.points is None:
            return log_likelihood(self.data, at)
        theta = at[: self.size]
        points = at[self.size :].reshape(self.points.shape) if self.moving else self.points
        value, gradient, places = bound(self.data, theta, points, self.chunk)
        return value, np.append(gradient, places.ravel()) if self.moving else gradient


def _quasi_newton(search: _Search, first: Array, ranges: Any, max_iterations: int) -> str:
    found = minimize(search, first, jac=True, method="L-BFGS-B", bounds=ranges, options={"maxiter": max_iterations})
    return str(found.message)


def _adam(search: _Search, first: Array, ranges: Any, max_iterations: int, rate: float) -> str:
    at = torch.tensor(first, requires_grad=True)
    adam = torch.optim.Adam([at], lr=rate)
    low, high = torch.tensor(np.array(ranges).T) if ranges is not None else (None, None)
    for _ in range(max_iterations):
        at.grad = torch.from_numpy(search(at.detach().numpy().copy())[1])
        adam.step()
        if ranges is not None:
            with torch.no_grad():
                at.clamp_(low, high)
    search(at.detach().numpy().copy())
    return f"{max_iterations} iterations made"
