"""Is this term needed: F tests of a model against a smaller one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.assessment.tests.residuals import independent_rows
from dynid.errors import DataError
from dynid.hypothesis import Correction, Hypothesis, HypothesisTest, f_ratio
from dynid.identification.estimators.ols import ols
from dynid.identification.estimators.solution import solve_factor
from dynid.identification.estimators.wls import joint_noise
from dynid.identification.observation import Observation

__all__ = ["f_test", "terms_needed"]

Array = NDArray[np.float64]

_NESTED = Hypothesis(
    "nested models (F test)",
    "the torques do not need {names}",
    "the data do not ask for these terms",
    "the data ask for these terms",
    "leave them out: the rest is then known better",
    "keep them",
)
_TERMS = Hypothesis(
    "drive terms (F tests)",
    "the torques do not need any drive term",
    "the data ask for none of the drive terms",
    "the data ask for",
    "leave the terms out",
    "keep these; each of the others can be left out, but test them together before leaving out several (f_test)",
)


def f_test(
    observation: Observation,
    names: str | Sequence[str],
    *,
    noise: ArrayLike | None = None,
    rows: float | None = None,
    level: float = 0.05,
) -> HypothesisTest:
    """Whether the base parameters that match `names` (wildcards such as "off_*") can be zero together.

    `noise` (channel,) weighs the joints, by default that of least squares. `rows` is the number of independent rows, by
    default what white noise leaves of them (`independent_rows`); give fewer if the residual remembers its past.
    """
    dropped = _matching(observation, names)
    if len(dropped) == observation.base.count:
        raise DataError("all base parameters would be dropped: nothing is left of the model")
    tail = _drop(_whitened(observation, noise), dropped, independent_rows(observation) if rows is None else rows)
    shown = ", ".join(observation.base.names[i] for i in dropped)
    return replace(_NESTED, null=_NESTED.null.format(names=shown)).judge(*tail, level)


def terms_needed(
    observation: Observation,
    *,
    noise: ArrayLike | None = None,
    rows: float | None = None,
    level: float = 0.05,
    correction: Correction = "holm",
) -> HypothesisTest:
    """Every drive term that is a base parameter of its own, tested alone: is it needed beside all others?

    Terms regrouped with link inertias, as a rotor inertia often is, cannot be told apart and are not in the table.
    """
    base, layout = observation.base, observation.robot.layout
    own = [
        i
        for i, (j, row) in enumerate(zip(base.kept, base.matrix, strict=True))
        if not layout[j].inertial and np.count_nonzero(row) == 1
    ]
    if not own:
        raise DataError(f"robot '{observation.robot.name}' has no drive term that is a base parameter of its own")
    factor = _whitened(observation, noise)
    total = independent_rows(observation) if rows is None else rows
    tails = [_drop(factor, [i], total) for i in own]
    return _TERMS.judge_each([base.names[i] for i in own], tails, level, correction)


def _drop(factor: Array, dropped: list[int], rows: float) -> tuple[float, str, float]:
    """F test of the dropped columns, which come last in one triangular factor: no difference of sums is taken."""
    b, k = factor.shape[1] - 1, len(dropped)
    order = [i for i in range(b) if i not in dropped] + dropped + [b]
    y = scipy.linalg.qr(factor[:, order], mode="r")[0][:, -1]
    return f_ratio(float(np.sum(y[b - k : b] ** 2)), k, float(np.sum(y[b : b + 1] ** 2)), rows - b)


def _whitened(observation: Observation, noise: ArrayLike | None) -> Array:
    deviation = joint_noise(observation, ols(observation).beta) if noise is None else np.asarray(noise, dtype=float)
    if deviation.shape != (len(observation.rows),) or not np.all(deviation > 0):
        raise DataError(f"noise must be {len(observation.rows)} positive numbers, one a channel")
    factor = observation.stacked(1.0 / deviation)
    solve_factor(factor, observation.base)  # refuses a motion that does not show all parameters
    return factor


def _matching(observation: Observation, names: str | Sequence[str]) -> list[int]:
    base = observation.base
    found: set[int] = set()
    for pattern in [names] if isinstance(names, str) else names:
        hits = {i for i, name in enumerate(base.names) if fnmatchcase(name, pattern)}
        if not hits:
            raise DataError(
                f"no base parameter matches '{pattern}'; they are named as {', '.join(base.names[:3])}, ..."
            )
        found |= hits
    if not found:
        raise DataError("name at least one base parameter to test")
    return sorted(found)
