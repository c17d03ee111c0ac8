"""Least squares of one friction model on the rows of a joint, and its error on rows that were held out.

    argmin |y - W b - F f - C(theta) c|^2 over b, f >= 0, c >= 0, theta,    error = mean of (y - prediction)^2 held out

Sources: see `separable` for the fit; Stone, Cross-Validatory Choice and Assessment of Statistical Predictions (1974).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.errors import TooFew
from dynid.friction.models import FrictionModel
from dynid.friction.rows import FrictionRows
from dynid.friction.separable import Separable, SeparableFit

__all__ = ["held_out_errors", "solve"]

Array = NDArray[np.float64]

_FOLDS = 10
# Rows per block that is held out, at least.
_FEWEST = 10


def solve(
    rows: FrictionRows, model: FrictionModel, start: Array | None = None, kept: NDArray[np.bool_] | None = None
) -> SeparableFit:
    """Separable least squares of one model, from inner parameters `start` (m,) or from a grid over their range.

    `kept` (N,) are the rows to fit, by default all of them.
    """
    f = rows.features
    used = slice(None) if kept is None else kept
    fixed = rows.rows_of(model.fixed(f))
    problem = Separable(
        np.hstack([rows.W, fixed[:, : model.signed]])[used],
        fixed[used, model.signed :],
        rows.y[used],
        lambda theta: rows.rows_of(model.curved(f, theta))[used],
        lambda theta: np.array([rows.rows_of(s)[used] for s in model.slopes(f, theta)]),
    )
    low, high = model.bounds(rows.max_velocity)
    grids = (
        [x.grid(rows.max_velocity) for x in model.inner]
        if start is None
        else [start[k : k + 1] for k in range(len(start))]
    )
    return problem.solve(low, high, grids, [x.log for x in model.inner])


def held_out_errors(rows: FrictionRows, model: FrictionModel, start: Array) -> Array:
    """Mean square errors (fold,) on consecutive blocks of the rows of the joint, each predicted from the others.

    The rows of the other joints, which do not depend on this friction, stay in every fit.
    """
    if rows.own < _FOLDS * _FEWEST:
        raise TooFew(f"{rows.own} rows of joint '{rows.joint}' are too few for cross-validation")
    f, errors = rows.features, []
    for block in np.array_split(np.arange(rows.own), _FOLDS):
        kept = np.ones(len(rows.y), bool)
        kept[block] = False
        found = solve(rows, model, start, kept)
        columns = rows.rows_of(np.hstack([model.fixed(f), model.curved(f, found.theta)]))
        predicted = np.hstack([rows.W[block], columns[block]]) @ found.linear
        errors.append(float(np.mean((rows.y[block] - predicted) ** 2)))
    return np.array(errors)
