"""The order of fitted friction models, the selected one first.

    aic = n log(RSS / N) + 2 k,    bic = n log(RSS / N) + k log n

for N rows, of which n are independent, and k parameters.

Sources: Akaike, A New Look at the Statistical Model Identification (1974); Schwarz, Estimating the Dimension of a Model
(1978); Holm, A Simple Sequentially Rejective Multiple Test Procedure (1979), for the p-values of several larger models;
Hastie, Tibshirani and Friedman, The Elements of Statistical Learning (2009), chapter 7, for one standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dynid.friction.nested import NestedTest, nested_test
from dynid.friction.result import ModelFit
from dynid.friction.rows import FrictionRows
from dynid.friction.separable import SeparableFit
from dynid.friction.solve import held_out_errors
from dynid.hypothesis import corrected

__all__ = ["CRITERIA", "Criterion", "ranked"]

Array = NDArray[np.float64]
Criterion = Literal["f-test", "aic", "bic", "cross-validation"]
Test = Callable[[ModelFit, ModelFit], NestedTest]

CRITERIA = ("f-test", "aic", "bic", "cross-validation")


def ranked(
    rows: FrictionRows,
    fits: list[ModelFit],
    solved: Mapping[str, SeparableFit],
    effective: float,
    criterion: Criterion,
    level: float,
) -> list[ModelFit]:
    """The fits in order, the selected one first, each with its test against the largest fitted model it contains."""

    def test(small: ModelFit, large: ModelFit) -> NestedTest:
        sums = (small.rss, min(large.rss, small.rss))
        counts = (small.parameter_count, large.parameter_count)
        theta = solved[small.model.name].theta
        return nested_test(rows, small.model, large.model, sums, counts, effective, theta)

    tested = [_tested(fit, fits, test) for fit in fits]
    if criterion == "cross-validation":
        errors = {f.name: held_out_errors(rows, f.model, solved[f.name].theta) for f in tested}
        tested = [replace(f, held_out_rms=float(np.sqrt(np.mean(errors[f.name])))) for f in tested]
        return _first(_simplest(tested, errors), sorted(tested, key=lambda f: f.held_out_rms))
    if criterion != "f-test":
        return sorted(tested, key=lambda f: getattr(f, criterion))
    ends = [_climbed(root, tested, test, level) for root in tested if not any(f.model in root.model for f in tested)]
    # Nested tests cannot compare chains without a common model.
    return _first(min(ends, key=lambda f: f.bic), sorted(tested, key=lambda f: f.bic))


def _first(chosen: ModelFit, order: list[ModelFit]) -> list[ModelFit]:
    """The order with the chosen fit in front."""
    return [chosen, *(f for f in order if f is not chosen)]


def _tested(fit: ModelFit, fits: list[ModelFit], test: Test) -> ModelFit:
    """The fit with its test against the largest fitted model that it contains."""
    inside = [f for f in fits if f.model in fit.model]
    if not inside:
        return fit
    before = max(inside, key=lambda f: (f.parameter_count, -f.rss))
    found = test(before, fit)
    return replace(fit, against=before.model.name, statistic=found.statistic, p_value=found.p_value)


def _simplest(fits: list[ModelFit], errors: Mapping[str, Array]) -> ModelFit:
    """The smallest model whose held-out error is larger than the smallest one by at most its standard error.

    A t test of 5 % in place of one standard error left out terms that other motion of two of three real arms needs.
    """
    best = min(fits, key=lambda f: f.held_out_rms)

    def close(fit: ModelFit) -> bool:
        excess = errors[fit.name] - errors[best.name]
        return bool(excess.mean() <= excess.std(ddof=1) / np.sqrt(len(excess)))

    return min((f for f in fits if close(f)), key=lambda f: (f.parameter_count, f.held_out_rms))


def _climbed(root: ModelFit, fits: list[ModelFit], test: Test, level: float) -> ModelFit:
    """From a smallest model, move to the most significant larger one until none is significant."""
    here = root
    while True:
        larger = [f for f in fits if here.model in f.model]
        if not larger:
            return here
        found = [test(here, f) for f in larger]
        adjusted = corrected([min(1.0, max(0.0, t.p_value)) for t in found])
        steps = [(t.log_p, f) for t, f, p in zip(found, larger, adjusted, strict=True) if p < level]
        if not steps:
            return here
        # The smallest model on the path to the most significant one; larger ones are tested again from there.
        here = _next(steps)


def _next(steps: list[tuple[float, ModelFit]]) -> ModelFit:
    """The smallest significant model that is, or is contained in, the most significant one."""
    by_size = sorted({f.parameter_count for _, f in steps})
    for size in by_size:
        own = [(p, f) for p, f in steps if f.parameter_count == size]
        best = min(own, key=lambda x: x[0])[1]
        strongest = min(steps, key=lambda x: x[0])[1]
        if best is strongest or best.model in strongest.model:
            return best
    return min(steps, key=lambda x: x[0])[1]
