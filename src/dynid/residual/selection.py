"""Choice of a kernel by cross-validation, and the share of the learned torque that held-out data support."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.residual import exact
from dynid.residual.blend import Blend
from dynid.residual.problem import Problem, Unfit
from dynid.residual.training import Training, maximise, posterior, stratified_rows

__all__ = ["Score", "choose", "judge"]

Array = NDArray[np.float64]

# Rows for hyper-parameters, for training and for validation of one fold: enough to rank kernels.
_TUNE, _LEARN, _JUDGE = 110, 250, 200
_ITERATIONS = 25
# Folds with fewer rows are left out.
_FEWEST = 4
# A learned torque that removes less than this share of the held-out squared error is not used.
_WORTH = 0.001


@dataclass(frozen=True)
class Score:
    """Cross-validation of one kernel.

    Attributes
    ----------
    kernel : str
    density : float
        Mean log predictive density of held-out rows, scaled by the rms of the targets.
    error : float
        Rms error on held-out rows over that of the rigid model alone.
    training_error : float
        The same on the rows that the kernel was fitted to.
    trust : float
        Factor on the learned torque, 0 to 1: the one that suits the held-out folds best, times the share of their
        squared error that this explains.
    variance_factor : float
        Factor on the predictive variance that fits the held-out errors.
    coverage : float
        Share of held-out rows within the 95 % intervals, before their variance was corrected.
    """

    kernel: str
    density: float
    error: float
    training_error: float
    trust: float
    variance_factor: float
    coverage: float


def judge(
    problem: Problem, targets: Array, folds: NDArray[np.intp], training: Training, degree: int
) -> tuple[Score, Array]:
    """Cross-validate one kernel: its score, and the squared error (folds,) that it removes from each held-out fold.

    `targets` (folds, N) are the targets of all rows while a fold is held out. The squared error removed is a share of
    the mean squared error of the rigid model.
    """
    plain = Training(method="exact", seed=training.seed)
    wanted, given, variances, unexplained, total_square = [], [], [], 0.0, 0.0
    for fold in _judged(folds):
        one = replace(problem, y=targets[fold])
        known = one.rows(_some(np.flatnonzero(folds != fold), _LEARN))
        hidden = one.rows(_some(np.flatnonzero(folds == fold), _JUDGE))
        fitted = posterior(known, _tuned(known), plain, 1.0, degree)
        mean, variance = fitted.predict(hidden.x)
        wanted.append(hidden.y)
        given.append(mean * Blend()(variance / fitted.prior_variance))
        variances.append(variance + fitted.noise_variance(hidden.reversal))
        unexplained += float(np.sum((known.y - fitted.mean(known.x)) ** 2))
        total_square += float(np.sum(known.y**2))
    # Every fold counts the same, however many rows it has.
    both = np.array([np.mean(y * f) for y, f in zip(wanted, given, strict=True)])
    learned, missed = (np.array([np.mean(x**2) for x in xs]) for xs in (given, wanted))
    trust = _trust(both.sum(), learned.sum(), missed.sum())
    taken = (2 * trust * both - trust**2 * learned) / missed.mean()
    y, f, total = (np.concatenate(x) for x in (wanted, given, variances))
    error = y - trust * f
    factor = float(np.mean(error**2 / total))
    score = Score(
        problem.kernel.name,
        density=float(-0.5 * np.mean(np.log(2 * np.pi * factor * total) + error**2 / (factor * total))),
        error=float(np.sqrt(max(1.0 - taken.mean(), 0.0))),
        training_error=float(np.sqrt(unexplained / total_square)),
        trust=trust,
        variance_factor=factor,
        coverage=float(np.mean(np.abs(error) < 1.96 * np.sqrt(total))),
    )
    return score, taken


def choose(
    problems: Sequence[Problem], targets: Array, folds: NDArray[np.intp], training: Training, degree: int
) -> tuple[Score | None, tuple[Score, ...], tuple[str, ...]]:
    """The simplest kernel that is not significantly worse than the best, or None where the rigid model is as good.

    Problems are ordered simplest first. A difference is significant if it exceeds one standard error over the folds.
    Returns the chosen score, the scores of all kernels, and notes.
    """
    if len(_judged(folds)) < 2:
        return None, (), (f"{len(folds)} rows are too few for the choice of a kernel",)
    found = []
    for problem in problems:
        try:
            found.append(judge(problem, targets, folds, training, degree))
        except Unfit:
            continue
    scores = tuple(score for score, _ in found)
    if not found:
        return None, scores, ("no kernel could be fitted; the rigid model is kept",)
    _, most = max(found, key=lambda x: _lower_mean(x[1]))
    worth = [x for x in found if _lower_mean(x[1]) > 0 and x[1].mean() > _WORTH and _lower_mean(most - x[1]) <= 0]
    best = worth[0][0] if worth else None
    notes = []
    by_name = {s.kernel: s for s in scores}
    if "se" in by_name and "ard" in by_name:
        one, many = by_name["se"], by_name["ard"]
        if many.training_error < one.training_error and many.error > 1.02 * one.error:
            notes.append(
                f"one length scale per column over-fits: training error {many.training_error:.2f} "
                f"(one for all: {one.training_error:.2f}), held-out error {many.error:.2f} ({one.error:.2f})"
            )
    if best is None:
        least = min(score.error for score in scores)
        notes.append(f"no learned torque: held-out error {least:.2f} of the rigid model's at best")
    elif best.training_error < 0.5 * best.error:
        notes.append(
            f"over-fits: training error {best.training_error:.2f} of the rigid model's, held-out error {best.error:.2f}"
        )
    return best, scores, tuple(notes)


def _lower_mean(taken: Array) -> float:
    """Mean over the folds minus its standard error."""
    return float(taken.mean() - taken.std(ddof=1) / np.sqrt(len(taken)))


def _tuned(problem: Problem) -> Array:
    """Hyper-parameters of large marginal likelihood, from few rows and iterations."""
    some = stratified_rows(problem, _TUNE)
    start, bounds = problem.start(), problem.bounds()
    theta, value = maximise(lambda x: exact.log_likelihood(some, x), start, bounds, _ITERATIONS)
    if not np.isfinite(value):
        raise Unfit("no hyper-parameters give a positive definite covariance matrix")
    return theta


def _trust(both: float, learned: float, missed: float) -> float:
    """b / f, at most 1, times b^2 / (f m), for sums of products b, squares learned f and squares missed m."""
    if both <= 0 or learned <= 0:
        return 0.0
    return float(min(both / learned, 1.0) * min(both**2 / (learned * missed), 1.0))


def _judged(folds: NDArray[np.intp]) -> NDArray[np.intp]:
    """Folds with enough rows."""
    number, count = np.unique(folds, return_counts=True)
    return np.asarray(number[count >= _FEWEST])


def _some(index: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    return index if len(index) <= count else index[np.linspace(0, len(index) - 1, count).astype(np.intp)]
