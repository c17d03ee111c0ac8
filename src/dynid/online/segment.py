"""Whitened rows of a payload between two changes: the last ones as they are, older ones folded.

    p = (X'X + diag(1 / PRIOR^2))^-1 X'y of the first four columns,    R'R = [X y]'[X y] of all rows

Source: Golub and Van Loan, Matrix Computations (4th edition 2013), for least squares from a factor of stacked rows.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.identification.observation import fold
from dynid.online.change import Change

__all__ = ["PRIOR", "WHOLE_PRIOR", "Candidate", "Rows", "Segment"]

Array = NDArray[np.float64]

# Standard deviations of mass (kg) and first moments (kg m) before any data: larger than any payload.
PRIOR = np.array([100.0, 30.0, 30.0, 30.0])
# The same with the inertia (kg m2). A heavy payload on a fast arm has torques of its inertia far above the noise.
WHOLE_PRIOR = np.r_[PRIOR, np.full(6, 10.0)]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of one instant: time, [X y] (m, 11) of the ten inertial parameters, and those of the arm (m, b)."""

    time: float
    own: Array
    arm: Array


class Segment:
    """Rows between two changes of the payload.

    Parameters
    ----------
    parameters : int
        Number of base parameters of the arm.
    window : int
        Number of instants that can be taken back.
    """

    def __init__(self, parameters: int, window: int) -> None:
        self.window = window
        self.since = np.nan
        self.recent: deque[Rows] = deque()
        self._factor = np.zeros((0, 11))
        self._carried = np.zeros((10, parameters))
        self._folded = 0

    @property
    def count(self) -> int:
        """Number of rows of all channels."""
        return self._folded + sum(len(x.own) for x in self.recent)

    def add(self, rows: Rows) -> None:
        """Take the rows of one instant."""
        if np.isnan(self.since):
            self.since = rows.time
        self.recent.append(rows)
        if len(self.recent) > self.window:
            old = self.recent.popleft()
            self._factor = fold(np.asfortranarray(np.vstack([self._factor, old.own])))
            self._carried += old.own[:, :10].T @ old.arm
            self._folded += len(old.own)

    def take_back(self, count: int) -> list[Rows]:
        """Remove and return the rows of the last instants."""
        out = [self.recent.pop() for _ in range(min(count, len(self.recent)))]
        return out[::-1]

    def factor(self) -> Array:
        """Triangular factor (<= 11, 11) of all rows [X y]."""
        return fold(np.asfortranarray(np.vstack([self._factor, *(x.own for x in self.recent)])))

    def carried(self) -> Array:
        """X'W (10, b) of all rows: how errors of the arm reach the payload."""
        out = self._carried.copy()
        for x in self.recent:
            out += x.own[:, :10].T @ x.arm
        return out

    def information(self, count: int = 10) -> tuple[Array, Array]:
        """Information and scores of the first `count` inertial parameters."""
        R = self.factor()
        return R[:, :count].T @ R[:, :count], R[:, :count].T @ R[:, 10]

    def moments(self) -> tuple[Array, Array]:
        """Mass and first moments (4,) with their covariance (4, 4), the inertia left out."""
        information, scores = self.information(len(PRIOR))
        covariance = np.asarray(np.linalg.inv(information + np.diag(1.0 / PRIOR**2)))
        return covariance @ scores, covariance


@dataclass(eq=False)
class Candidate:
    """A change that is to be confirmed: what the test found, when, the rows before it, and instants since then."""

    change: Change
    time: float
    old: Segment
    seen: int = 0
