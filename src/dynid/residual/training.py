"""Hyper-parameters by marginal likelihood, and the posterior by one of four methods: exact, subset, sparse, local.

    theta = argmax of log p(y | theta) (`exact`), or of its lower bound (`sparse`), by L-BFGS from several starts

Source: Rasmussen and Williams, Gaussian Processes for Machine Learning (2006), chapter 5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import DataError, InvalidValue, MissingPackage, TooLarge, UnknownName, named
from dynid.residual import exact, sparse
from dynid.residual.posterior import Block, Posterior
from dynid.residual.problem import Problem, Unfit

__all__ = ["Training", "hyper_parameters", "posterior"]

Array = NDArray[np.float64]

METHODS = ("auto", "exact", "subset", "sparse", "local")
LIBRARIES = ("numpy", "gpytorch")
# Most rows of an exact model chosen by "auto", points of the other methods, and most rows of any exact model.
_EXACT_ROWS = 1500
_POINTS = {"subset": 1000, "sparse": 200, "local": 200}
_MOST = 20_000
# Rows used by the search from several starts.
_FIRST_ROWS = 200
_ITERATIONS = 60


@dataclass(frozen=True)
class Training:
    """How a Gaussian process is fitted.

    Parameters
    ----------
    method : {"auto", "exact", "subset", "sparse", "local"}
        Exact inference with all rows, with a subset of `points` rows, with `points` inducing points, or with local
        exact models of about `points` rows each. "auto" is exact up to 1500 rows per joint, then sparse.
    points : int, optional
        Default: 1000 for "subset", 200 for "sparse" and "local".
    rows : int or None
        Most rows from which hyper-parameters are found; None uses all.
    restarts : int
        Additional random starts of that search.
    move_points : bool
        Whether positions of inducing points are optimised too.
    library : {"numpy", "gpytorch"}
        Library of the search; "gpytorch" needs the extra `gp`.
    device : {"cpu", "cuda"}
        Device for "gpytorch".
    seed : int
        Seed of random starts and of clustering.
    """

    method: str = "auto"
    points: int | None = None
    rows: int | None = 600
    restarts: int = 2
    move_points: bool = False
    library: str = "numpy"
    device: str = "cpu"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise UnknownName(f"unknown method '{self.method}': use {', '.join(METHODS)}", "method")
        if self.library not in LIBRARIES:
            raise UnknownName(f"unknown library '{self.library}': use {' or '.join(LIBRARIES)}", "library")
        if self.points is not None and self.points < 1:
            raise InvalidValue(f"{named('points')} must be positive, got {self.points}")
        if self.rows is not None and self.rows < 2:
            raise InvalidValue(f"hyper-parameters need at least two rows, got {self.rows}", "rows")
        if self.restarts < 0:
            raise InvalidValue(f"restarts must not be negative, got {self.restarts}", "restarts")

    def method_for(self, rows: int) -> str:
        """Inference method for so many rows."""
        if self.method != "auto":
            return self.method
        return "exact" if rows <= _EXACT_ROWS else "sparse"

    def points_for(self, method: str) -> int:
        """Number of points of a method."""
        return self.points or _POINTS[method]


def hyper_parameters(problem: Problem, training: Training) -> tuple[Array, float]:
    """Hyper-parameters of largest marginal likelihood, and the log likelihood per row."""
    rng = np.random.default_rng(training.seed)
    bounds = problem.bounds()
    low, high = np.array(bounds).T
    first = stratified_rows(problem, _FIRST_ROWS)
    starts = [problem.start()]
    starts += [np.clip(starts[0] + rng.normal(0, 1.0, problem.size), low, high) for _ in range(training.restarts)]
    found = [maximise(lambda theta: exact.log_likelihood(first, theta), start, bounds) for start in starts]
    best = max(found, key=lambda x: x[1])
    if not np.isfinite(best[1]):
        raise Unfit("no hyper-parameters give a positive definite covariance matrix")
    whole = problem if training.rows is None else stratified_rows(problem, training.rows)
    if training.library == "gpytorch":
        return _with_torch(whole, best[0], training)
    if len(whole.y) > len(first.y):
        if len(whole.y) > _MOST:
            raise TooLarge(f"{len(whole.y)} rows are too many for an exact likelihood; lower training.rows", "rows")
        best = maximise(lambda theta: exact.log_likelihood(whole, theta), best[0], bounds)
    return best[0], best[1] / len(whole.y)


def posterior(problem: Problem, theta: Array, training: Training, scale: float, degree: int) -> Posterior:
    """Posterior of the data; moving inducing points may change the hyper-parameters too."""
    method = training.method_for(len(problem.y))
    kernel = problem.kernel
    centers = np.zeros((1, problem.x.shape[1]))
    statistics = None
    if method == "exact":
        if len(problem.y) > _MOST:
            raise TooLarge(
                f"{len(problem.y)} rows are too many for an exact model: use subset, sparse or local", "method"
            )
        blocks: tuple[Block, ...] = (exact.condition(problem, theta),)
    elif method == "local":
        blocks, centers = _local(problem, theta, training.points_for(method), training.seed)
    else:
        kernel_theta, _ = problem.split(theta)
        count = training.points_for(method)
        if method == "subset":
            blocks = (exact.condition(problem.rows(sparse.choose_rows(kernel, kernel_theta, problem.x, count)), theta),)
        else:
            points = problem.x[sparse.choose_points(kernel, kernel_theta, problem.x, count)]
            if training.move_points:
                points, theta = _moved(problem, theta, points)
            statistics = sparse.gather(problem, theta, points)
            blocks = (sparse.condition(kernel, problem.split(theta)[0], points, statistics),)
    kernel_theta, noise_theta = problem.split(theta)
    return Posterior(kernel, kernel_theta, problem.noise, noise_theta, scale, blocks, centers, degree, statistics)


def maximise(
    function: Callable[[Array], tuple[float, Array]],
    start: Array,
    bounds: list[tuple[float, float]],
    max_iterations: int = _ITERATIONS,
) -> tuple[Array, float]:
    """Maximiser and maximum of a function with its gradient; minus infinity if it cannot be computed at the start."""

    def negative(theta: Array) -> tuple[float, Array]:
        try:
            value, gradient = function(theta)
        except Unfit:
            return 1e30, np.zeros_like(theta)
        return -value, -gradient

    found = scipy.optimize.minimize(
        negative, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": max_iterations}
    )
    return np.asarray(found.x), -float(found.fun) if found.fun < 1e30 else -np.inf


def stratified_rows(problem: Problem, count: int) -> Problem:
    """At most `count` rows, one drawn at random from each of as many intervals, against aliasing."""
    n = len(problem.y)
    if n <= count:
        return problem
    places = np.arange(count) + np.random.default_rng(0).uniform(size=count)
    return problem.rows((places * n / count).astype(np.intp))


def _moved(problem: Problem, theta: Array, points: Array) -> tuple[Array, Array]:
    """Inducing points and hyper-parameters that maximise the bound together."""
    columns = sorted({c for part in problem.kernel.parts for c in part.columns})
    size, shape = problem.size, (len(points), len(columns))

    def function(values: Array) -> tuple[float, Array]:
        places = points.copy()
        places[:, columns] = values[size:].reshape(shape)
        value, gradient, moved = sparse.bound(problem, values[:size], places, True)
        return value, np.append(gradient, moved[:, columns].ravel())

    bounds = problem.bounds() + [(-20.0, 20.0)] * (shape[0] * shape[1])
    best, _ = maximise(function, np.append(theta, points[:, columns].ravel()), bounds)
    points = points.copy()
    points[:, columns] = best[size:].reshape(shape)
    return points, best[:size]


def _local(problem: Problem, theta: Array, count: int, seed: int) -> tuple[tuple[Block, ...], Array]:
    """Exact models of neighbouring rows, about `count` each, and the centres of these."""
    part, part_theta = problem.kernel.parts[0], problem.kernel.split(problem.split(theta)[0])[0]
    places = part.scaled(part_theta, problem.x)
    wanted = max(1, round(len(problem.y) / count))
    _, label = scipy.cluster.vq.kmeans2(places, wanted, minit="++", seed=seed)
    groups = [np.flatnonzero(label == g) for g in range(wanted)]
    groups = [g for g in groups if g.size]
    blocks = tuple(exact.condition(problem.rows(g), theta) for g in groups)
    return blocks, np.array([problem.x[g].mean(axis=0) for g in groups])


def _with_torch(problem: Problem, start: Array, training: Training) -> tuple[Array, float]:
    """Hyper-parameters by GPyTorch, from the likelihood of all rows, or for a sparse model from its bound."""
    try:
        from dynid.residual.torch_backend import fit_hyper_parameters
    except ModuleNotFoundError as missing:
        raise MissingPackage(
            f"library 'gpytorch' needs the extra 'gp' ({missing.name} is not installed)", "library"
        ) from None
    parts = [(part.columns, part.shape, part.ard) for part in problem.kernel.parts]
    points = None
    if training.method == "sparse":
        kernel_theta, _ = problem.split(start)
        points = problem.x[sparse.choose_points(problem.kernel, kernel_theta, problem.x, training.points_for("sparse"))]
    reversal = problem.reversal if problem.noise.size == 2 else None
    method = "exact" if points is None else "sparse"
    try:
        found = fit_hyper_parameters(
            parts, problem.x, problem.y, start, _ITERATIONS, method, points, training.device,
            basis=problem.basis, reversal=reversal, bounds=problem.bounds(),
        )  # fmt: skip
    except ValueError as wrong:
        raise DataError(f"gpytorch: {wrong}", code="not_converged") from None
    return found.theta, found.value / len(problem.y)
