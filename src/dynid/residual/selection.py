"""Which kernel a joint deserves, by how well it predicts what it was not shown, and how far to trust it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.residual import exact
from dynid.residual.blend import Blend
from dynid.residual.problem import Problem, Unfit
from dynid.residual.training import Training, maximise, posterior, spread_rows

__all__ = ["Score", "choose", "judge"]

Array = NDArray[np.float64]

# Rows that hyper-parameters, what is learned and its assessment come from: enough to rank kernels.
_TUNE, _LEARN, _JUDGE = 110, 250, 200
_ITERATIONS = 25
# A fold with fewer rows says nothing.
_FEWEST = 4
# A learned part that takes off less than this share of the held-out squared error is not worth computing.
_WORTH = 0.001


@dataclass(frozen=True)
class Score:
    """How a kernel does on folds it was not shown, in shares of the scatter that the rigid model leaves there.

    The learned part is taken times `trust`: the share of it that suits the folds best, times the share of their
    squared error that this would explain. Its variance is taken times `spread`, which fits the held-out errors.
    `density`: mean log predictive density; `error`: rms error over that of the rigid model alone, `shown`: the same on
    rows it was fitted to; `coverage` of 95 % intervals before their variance was mended.
    """

    kernel: str
    density: float
    error: float
    shown: float
    trust: float
    spread: float
    coverage: float


def judge(
    problem: Problem, targets: Array, folds: NDArray[np.intp], training: Training, degree: int
) -> tuple[Score, Array]:
    """Fit on all folds but one and predict that one, for each; a score, and the squared error taken off each fold.

    `targets` (folds, N) are what is to be learned where a fold is held out. What is taken off is in shares of the mean
    squared error that the rigid model leaves.
    """
    plain = Training(method="exact", seed=training.seed)
    wanted, given, variances, shown, left = [], [], [], 0.0, 0.0
    for fold in _judged(folds):
        one = replace(problem, y=targets[fold])
        known = one.rows(_some(np.flatnonzero(folds != fold), _LEARN))
        hidden = one.rows(_some(np.flatnonzero(folds == fold), _JUDGE))
        fitted = posterior(known, _tuned(known), plain, 1.0, degree)
        mean, variance = fitted.predict(hidden.x)
        wanted.append(hidden.y)
        given.append(mean * Blend()(variance / fitted.prior_variance))
        variances.append(variance + fitted.noise_variance(hidden.reversal))
        shown += float(np.sum((known.y - fitted.mean(known.x)) ** 2))
        left += float(np.sum(known.y**2))
    # Every fold counts the same, however many rows it has.
    both = np.array([np.mean(y * f) for y, f in zip(wanted, given, strict=True)])
    learned, missed = (np.array([np.mean(x**2) for x in xs]) for xs in (given, wanted))
    trust = _trust(both.sum(), learned.sum(), missed.sum())
    taken = (2 * trust * both - trust**2 * learned) / missed.mean()
    y, f, total = (np.concatenate(x) for x in (wanted, given, variances))
    error = y - trust * f
    spread = float(np.mean(error**2 / total))
    score = Score(
        problem.kernel.name,
        density=float(-0.5 * np.mean(np.log(2 * np.pi * spread * total) + error**2 / (spread * total))),
        error=float(np.sqrt(max(1.0 - taken.mean(), 0.0))),
        shown=float(np.sqrt(shown / left)),
        trust=trust,
        spread=spread,
        coverage=float(np.mean(np.abs(error) < 1.96 * np.sqrt(total))),
    )
    return score, taken


def choose(
    problems: Sequence[Problem], targets: Array, folds: NDArray[np.intp], training: Training, degree: int
) -> tuple[Score | None, tuple[Score, ...], tuple[str, ...]]:
    """The simplest kernel that is not surely worse than the best, or none where the rigid model is as good.

    Problems stand simplest first. Sure is what exceeds one standard error over the folds. With scores and warnings.
    """
    if len(_judged(folds)) < 2:
        return None, (), (f"{len(folds)} rows are too few to choose a kernel by",)
    found = []
    for problem in problems:
        try:
            found.append(judge(problem, targets, folds, training, degree))
        except Unfit:
            continue
    scores = tuple(score for score, _ in found)
    if not found:
        return None, scores, ("no kernel could be fitted; the rigid model is kept",)
    _, most = max(found, key=lambda x: _sure(x[1]))
    worth = [x for x in found if _sure(x[1]) > 0 and x[1].mean() > _WORTH and _sure(most - x[1]) <= 0]
    best = worth[0][0] if worth else None
    notes = []
    by_name = {s.kernel: s for s in scores}
    if "se" in by_name and "ard" in by_name:
        one, many = by_name["se"], by_name["ard"]
        if many.shown < one.shown and many.error > 1.02 * one.error:
            notes.append(
                f"a length scale a column over-fits: error shown {many.shown:.2f} (one length scale: {one.shown:.2f}), "
                f"held out {many.error:.2f} ({one.error:.2f})"
            )
    if best is None:
        least = min(score.error for score in scores)
        notes.append(f"nothing to gain: held-out error {least:.2f} of the rigid model's")
    elif best.shown < 0.5 * best.error:
        notes.append(f"over-fits: error {best.shown:.2f} of the rigid model's where shown, {best.error:.2f} held out")
    return best, scores, tuple(notes)


def _sure(taken: Array) -> float:
    """Mean over the folds less one standard error of it."""
    return float(taken.mean() - taken.std(ddof=1) / np.sqrt(len(taken)))


def _tuned(problem: Problem) -> Array:
    """Hyper-parameters of large marginal likelihood from some rows and steps."""
    some = spread_rows(problem, _TUNE)
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
    """Folds with enough rows to say something."""
    number, count = np.unique(folds, return_counts=True)
    return np.asarray(number[count >= _FEWEST])


def _some(index: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    return index if len(index) <= count else index[np.linspace(0, len(index) - 1, count).astype(np.intp)]
