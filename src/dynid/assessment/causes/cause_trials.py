"""What the correction of a cause gains on motion that is not in the fit: the model fitted with it and without."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.causes.cause import Trial
from dynid.assessment.causes.cause_groups import Group
from dynid.assessment.causes.cause_rows import CauseRows
from dynid.identification.observation import fold

__all__ = ["parts_of", "try_cause"]

Array = NDArray[np.float64]

# Without unseen motion, each of these parts is left out of a fit, in blocks of time.
_PARTS, _BLOCKS = 4, 20
_WEIGHTINGS, _RANK, _TINY = 2, 1e-6, 1e-300


def try_cause(rows: CauseRows, group: Group, before: Sequence[Group], corrected: CauseRows | None = None) -> Trial:
    """Fit the model without and with a cause, where the groups `before` are in it already.

    `corrected` are the rows where the correction changes them and not the model.
    """
    # What differs between recordings is seen in both only.
    unseen = max(rows.groups) > 0 and not any(g.code.between for g in (group, *before))
    without = _errors(rows, before, unseen)
    with_it = _errors(rows, [*before, group], unseen) if corrected is None else _errors(corrected, before, unseen)
    joint = int(np.argmax(without - with_it))
    return Trial(rows.base.channels[joint], float(without[joint]), float(with_it[joint]), unseen)


def _errors(rows: CauseRows, groups: Sequence[Group], unseen: bool) -> Array:
    """Errors (channel,) of parts of the rows that are not in the fit, relative to the torque of the channel."""
    parts = parts_of(rows, unseen)
    factors = [[_factor(rows, groups, k, part) for part in parts] for k in range(len(rows.y))]
    count = np.array([[int(part[k].sum()) for part in parts] for k in range(len(rows.y))])
    size = np.array([max(float(np.linalg.norm(y)) / np.sqrt(len(y)), _TINY) for y in rows.y])
    judged = [1] if unseen else range(len(parts))
    squares = np.zeros(len(size))
    for p in judged:
        fitted = [i for i in range(len(parts)) if i != p]
        beta = _fit([np.vstack([own[i] for i in fitted]) for own in factors], count[:, fitted].sum(axis=1), size)
        squares += [np.sum((own[p][:, -1] - own[p][:, :-1] @ beta) ** 2) for own in factors]
    return np.asarray(np.sqrt(squares / np.maximum(count[:, list(judged)].sum(axis=1), 1)) / size)


def parts_of(rows: CauseRows, unseen: bool) -> list[list[NDArray[np.bool_]]]:
    """Rows of each channel in each part: the recordings, or every fourth block of time."""
    if unseen:
        of = [np.minimum(np.array(rows.groups)[rows.run_of(i)], 1) for i in rows.index]
        return [[x == p for x in of] for p in range(2)]
    every = np.unique(np.concatenate(rows.index))
    edges = every[(np.arange(1, _BLOCKS) * len(every)) // _BLOCKS]
    of = [np.searchsorted(edges, i, side="right") % _PARTS for i in rows.index]
    return [[x == p for x in of] for p in range(_PARTS)]


def _factor(rows: CauseRows, groups: Sequence[Group], channel: int, part: Sequence[NDArray[np.bool_]]) -> Array:
    """Triangular factor of the model, the groups and the torques in some rows of a channel."""
    keep = part[channel]
    columns = [rows.W[channel][keep]]
    for group in groups:
        own = group.columns[channel]
        columns.append(np.zeros((int(keep.sum()), group.count)) if own is None else own[keep])
    return fold(np.column_stack([*columns, rows.y[channel][keep]]))


def _fit(factors: Sequence[Array], count: NDArray[np.int64], size: Array) -> Array:
    """Least squares of all channels, each weighted by its residual."""
    noise, beta = size, np.zeros(factors[0].shape[1] - 1)
    for _ in range(_WEIGHTINGS):
        stack = np.vstack([f / s for f, s in zip(factors, noise, strict=True)])
        length = np.maximum(np.linalg.norm(stack[:, :-1], axis=0), _TINY)
        beta = np.linalg.lstsq(stack[:, :-1] / length, stack[:, -1], rcond=_RANK)[0] / length
        left = np.array([np.linalg.norm(f[:, -1] - f[:, :-1] @ beta) for f in factors])
        noise = np.maximum(left / np.sqrt(np.maximum(count, 1)), 1e-9 * size)
    return np.asarray(beta)
