"""F tests of a model against a smaller one: which terms are needed.

    F = ((RSS of the smaller model - RSS) / k) / (RSS / (n - b)) ~ F(k, n - b)

for k columns left out of b, and n independent rows.

Source: Seber and Lee, Linear Regression Analysis (2003), chapter on hypothesis testing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.assessment.causes.residuals import independent_rows
from dynid.errors import InvalidValue, MissingArgument, MissingData, UnknownName, named
from dynid.hypothesis import Correction, Hypothesis, HypothesisTest, TestCode, f_ratio
from dynid.identification.estimators.least_squares import joint_noise, ols
from dynid.identification.estimators.solution import solve_factor
from dynid.identification.observation import Observation
from dynid.patterns import matching_names

__all__ = ["f_test", "terms_needed"]

Array = NDArray[np.float64]

_NESTED = Hypothesis(
    TestCode.NESTED_MODELS,
    "nested models (F test)",
    "the parameters {names} are zero",
    "these terms are not significant",
    "these terms are significant",
    "remove them: the other parameters then have smaller standard deviations",
    "keep them",
)
_TERMS = Hypothesis(
    TestCode.DRIVE_TERMS,
    "drive terms (F tests)",
    "all drive terms are zero",
    "no drive term is significant",
    "significant drive terms",
    "remove the terms",
    "keep these; each of the others can be removed, but test them together before removing several (f_test)",
)


def f_test(
    observation: Observation,
    names: str | Sequence[str],
    *,
    noise: ArrayLike | None = None,
    rows: float | None = None,
    level: float = 0.05,
) -> HypothesisTest:
    """Test whether some base parameters are jointly zero.

    Parameters
    ----------
    observation : Observation
        Rows of regressor and torques.
    names : str or sequence of str
        Names of base parameters, with wildcards such as "off_*".
    noise : array_like, shape (channel,), optional
        Standard deviation of the torque noise per channel (N m or N); by default that of ordinary least squares.
    rows : float, optional
        Number of independent rows; by default `independent_rows`. Give fewer if the residual is autocorrelated.
    level : float
        Significance level.

    Returns
    -------
    HypothesisTest

    Raises
    ------
    DataError
        If no base parameter matches, or all of them would be removed.
    """
    dropped = _matching(observation, names)
    if len(dropped) == observation.base.count:
        raise InvalidValue("all base parameters would be removed: no model is left", "names")
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
    """Test each drive term that is a base parameter by itself, beside all others.

    Terms that are regrouped with link inertias, as rotor inertias often are, cannot be tested separately and are left
    out.

    Parameters
    ----------
    observation : Observation
        Rows of regressor and torques.
    noise : array_like, shape (channel,), optional
        Standard deviation of the torque noise per channel (N m or N); by default that of ordinary least squares.
    rows : float, optional
        Number of independent rows; by default `independent_rows`.
    level : float
        Significance level.
    correction : {"holm", "bonferroni", "benjamini-hochberg", "none"}
        Correction of the p-values for the number of terms.

    Returns
    -------
    HypothesisTest
        With one detail per drive term.

    Raises
    ------
    DataError
        If no drive term is a base parameter by itself.
    """
    base, layout = observation.base, observation.robot.layout
    own = [
        i
        for i, (j, row) in enumerate(zip(base.kept, base.matrix, strict=True))
        if not layout[j].inertial and np.count_nonzero(row) == 1
    ]
    if not own:
        raise MissingData(f"robot '{observation.robot.name}' has no drive term that is a base parameter by itself")
    factor = _whitened(observation, noise)
    total = independent_rows(observation) if rows is None else rows
    tails = [_drop(factor, [i], total) for i in own]
    return _TERMS.judge_each([base.names[i] for i in own], tails, level, correction)


def _drop(factor: Array, dropped: list[int], rows: float) -> tuple[float, str, float]:
    """F test of the dropped columns, which come last in one triangular factor, so that no sums are subtracted."""
    b, k = factor.shape[1] - 1, len(dropped)
    order = [i for i in range(b) if i not in dropped] + dropped + [b]
    y = scipy.linalg.qr(factor[:, order], mode="r")[0][:, -1]
    return f_ratio(float(np.sum(y[b - k : b] ** 2)), k, float(np.sum(y[b : b + 1] ** 2)), rows - b)


def _whitened(observation: Observation, noise: ArrayLike | None) -> Array:
    """Triangular factor of all rows divided by the noise of their channel."""
    std = joint_noise(observation, ols(observation).beta) if noise is None else np.asarray(noise, dtype=float)
    if std.shape != (len(observation.rows),) or not np.all(std > 0):
        raise InvalidValue(f"{named('noise')} must be {len(observation.rows)} positive numbers, one per channel")
    factor = observation.stacked(1.0 / std)
    solve_factor(factor, observation.base)  # refuses a motion that does not excite all parameters
    return factor


def _matching(observation: Observation, names: str | Sequence[str]) -> list[int]:
    """Indices of the base parameters that match the patterns."""
    base = observation.base
    found: set[int] = set()
    for pattern in [names] if isinstance(names, str) else names:
        hits = {base.names.index(name) for name in matching_names(pattern, base.names)}
        if not hits:
            raise UnknownName(
                f"no base parameter matches '{pattern}'; names look like {', '.join(base.names[:3])}, ...", "names"
            )
        found |= hits
    if not found:
        raise MissingArgument("name at least one base parameter to test", "names")
    return sorted(found)
