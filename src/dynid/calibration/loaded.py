"""Runs of an arm with and without a load on one of its links, as rows of one linear problem.

A body fixed to a link adds its ten inertial parameters p to those of the link. The base parameters of the loaded arm
are beta + K_L p, where K_L are the columns of the base matrix that belong to the link. Rows of both runs form one
linear system, in which the load adds ten columns to the rows of the loaded run.

    [W_1, 0, 0] (beta, f, p) = y_1,    [W_2, W_2 K_f, W_2 K_L] (beta, f, p) = y_2

Source: Khalil, Gautier and Lemoine, Identification of the Payload Inertial Parameters of Industrial Manipulators
(2007).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynid.errors import UnknownName
from dynid.identification.observation import Observation, fold
from dynid.parameters.base import BaseParameters
from dynid.parameters.loads import load_columns
from dynid.patterns import matching_names

__all__ = ["LoadedRows", "drive_columns", "loaded_rows", "without_span"]

Array = NDArray[np.float64]

# Directions weaker than this share of the strongest unit column are rounding.
_WEAKEST = 1e-10


def drive_columns(base: BaseParameters, patterns: Sequence[str]) -> Array:
    """Columns (b, f) of the base matrix that belong to drive parameters named by patterns."""
    robot = base.robot
    found: list[int] = []
    for pattern in patterns:
        named = matching_names(pattern, [p.name for p in robot.layout if not p.inertial])
        mine = [i for i, p in enumerate(robot.layout) if p.name in named]
        if not mine:
            drives = [p.name for p in robot.layout if not p.inertial]
            listed = ", ".join(drives) if drives else "none"
            raise UnknownName(f"no drive parameter is named '{pattern}', there are {listed}", "patterns")
        found += [i for i in mine if i not in found]
    return base.matrix[:, found]


@dataclass(frozen=True, eq=False)
class LoadedRows:
    """Rows of every channel [W, W K_f, W K_L, y]: the arm, changed drive parameters, the load, and the measurement.

    `unloaded` (k, b + 1) and `loaded` (m, b + 1) are the factors of each channel; the columns of the first that belong
    to the load are zero. `changed` (b, f) and `load` (b, 10) are the columns of the base matrix they come from.
    """

    base: BaseParameters
    unloaded: tuple[Array, ...]
    loaded: tuple[Array, ...]
    changed: Array
    load: Array

    @property
    def arm(self) -> int:
        """Number of columns in front of those of the load."""
        return self.base.count + self.changed.shape[1]

    @cached_property
    def channels(self) -> tuple[Array, ...]:
        """Rows of each channel over all columns, folded."""
        out = []
        for before, after in zip(self.unloaded, self.loaded, strict=True):
            W = after[:, :-1]
            width = self.changed.shape[1] + self.load.shape[1]
            rows = [
                np.hstack([before[:, :-1], np.zeros((len(before), width)), before[:, -1:]]),
                np.hstack([W, W @ self.changed, W @ self.load, after[:, -1:]]),
            ]
            out.append(fold(np.asfortranarray(np.vstack(rows))))
        return tuple(out)

    def stacked(self, weights: Array) -> Array:
        """All channels' rows, each times its weight."""
        return np.vstack([w * rows for w, rows in zip(weights, self.channels, strict=True)])

    def with_loaded(self, factors: tuple[Array, ...]) -> LoadedRows:
        """The same arm with a part of the loaded rows."""
        return replace(self, loaded=factors)


def loaded_rows(
    unloaded: Observation | None, loaded: Observation, link: str, free: Sequence[str] = (), beta: Array | None = None
) -> LoadedRows:
    """Rows of a loaded observation beside those of an unloaded one, or less the torques of a known arm `beta` (b,)."""
    base = loaded.base
    changed, load = drive_columns(base, free), load_columns(base, link)
    if beta is None:
        assert unloaded is not None
        return LoadedRows(base, unloaded.factors, loaded.factors, changed, load)
    empty = tuple(np.zeros((0, base.count + 1)) for _ in loaded.factors)
    return LoadedRows(base, empty, tuple(less(f, beta) for f in loaded.factors), changed, load)


def less(factor: Array, beta: Array) -> Array:
    """A factor of [W y] with the torques of known base parameters taken off y."""
    out = factor.copy()
    out[:, -1] -= factor[:, :-1] @ beta
    return out


def without_span(rows: Array, columns: int) -> Array:
    """The last columns of `rows`, with the span of the first `columns` projected out, folded."""
    lead, rest = rows[:, :columns], rows[:, columns:]
    norms = np.linalg.norm(lead, axis=0)
    used = lead[:, norms > 0] / norms[norms > 0]
    if used.shape[1]:
        u, s, _ = np.linalg.svd(used, full_matrices=False)
        u = u[:, s > _WEAKEST * s[0]]
        for _ in range(2):
            rest = rest - u @ (u.T @ rest)
    return fold(np.asfortranarray(rest))


def channel_residuals(observation: Observation, betas: Sequence[Array]) -> list[Array]:
    """Residual of every channel for base parameters `betas`, one vector per channel, in order of time."""
    out: list[list[Array]] = [[] for _ in observation.factors]
    for block in observation.blocks():
        out[block.channel].append(block.y - block.W @ betas[block.channel])
    return [np.concatenate(rows) if rows else np.zeros(0) for rows in out]


def short_of_rows(channels: Sequence[str], rows: Sequence[int], worth: Sequence[float]) -> list[str]:
    """A note if autocorrelation leaves fewer than half of the rows of a channel independent."""
    poor = [
        f"{c} ({w:.0f} of {n} independent)" for c, n, w in zip(channels, rows, worth, strict=True) if n and w < 0.5 * n
    ]
    return (
        [f"residuals are autocorrelated, which the standard deviations account for: rows of {', '.join(poor)}"]
        if poor
        else []
    )
