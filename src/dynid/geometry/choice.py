"""A choice of N among many candidate postures: greedy at first, then by exchange.

    i, a:  minimise  trace(B C),    d:  maximise  log det M,    e:  maximise  the smallest eigenvalue of V'M V,
    M = P + sum over chosen postures of A_k'A_k,    C = M^-1,    (M - A'A)^-1 = C + U U',    U = C A' (I - A C A')^-1/2

with the rows A_k of a posture over their noise and the prior P. Unknowns are in units of what is expected of them. A
posture is taken out where that costs least and replaced by the best of all others. A C A' and A C B C A' of every
candidate follow each step by its low rank, so that one look at all exchanges of a posture costs as much as one product
of all rows with a few vectors.

Sources: Fedorov, Theory of Optimal Experiments (1972), for the exchange; Mitchell, An Algorithm for the Construction of
"D-Optimal" Experimental Designs (1974), for DETMAX; Meyer and Nachtsheim, The Coordinate-Exchange Algorithm (1995), for
updates of low rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["CRITERIA", "Choice"]

Array = NDArray[np.float64]

CRITERIA = ("i", "d", "e", "a")
_PASSES = 30
# Relative gain below which an exchange is rounding.
_GAIN = 1e-7
# Candidates whose eigenvalues are computed in place of one posture: those with the most along the worst direction.
_LOOKED_AT = 40


@dataclass(frozen=True, eq=False)
class _State:
    """Covariance (X, X) of a choice, with A C A' (N, r, r) and A C B C A' of every candidate."""

    C: Array
    seen: Array
    shown: Array


@dataclass(frozen=True, eq=False)
class Choice:
    """Candidates and what a choice among them is for.

    Attributes
    ----------
    rows : ndarray, shape (N, r, X)
        Rows of each candidate over their noise.
    prior : ndarray, shape (X, X)
        Information without any posture, of full rank.
    criterion : str
        One of `CRITERIA`.
    weight : ndarray, shape (X, X)
        B: whose mean variance counts, for "i" and "a".
    directions : ndarray, shape (X, m)
        V: what counts for "e".
    """

    rows: Array
    prior: Array
    criterion: str
    weight: Array
    directions: Array

    def information(self, which: Sequence[int] | NDArray[np.intp]) -> Array:
        """M of a choice."""
        rows = self.rows[np.asarray(which, dtype=int)].reshape(-1, len(self.prior))
        return np.asarray(self.prior + rows.T @ rows)

    def value(self, which: Sequence[int] | NDArray[np.intp]) -> float:
        """The criterion of a choice, to be made small."""
        M = self.information(which)
        if self.criterion == "e":
            return -float(np.linalg.eigvalsh(self.directions.T @ M @ self.directions)[0])
        if self.criterion == "d":
            return -float(np.linalg.slogdet(M)[1])
        return float(np.sum(_inverse(M) * self.weight))

    def grown(self, which: Sequence[int], count: int) -> list[int]:
        """The choice with the best candidates added one by one, up to `count`."""
        out = list(which)
        state = self._state(out)
        while len(out) < count:
            best = self._best(out, state)
            state = self._with(state, best)
            out.append(best)
        return out

    def exchanged(self, which: Sequence[int]) -> list[int]:
        """The choice with postures exchanged, each for the best of all others, until none gains."""
        out = list(which)
        value = self.value(out)
        for _ in range(_PASSES):
            before = value
            state = self._state(out)
            for old in [out[k] for k in np.argsort(self._losses(out, state))]:
                others = [k for k in out if k != old]
                without = self._without(state, old)
                best = self._best(others, without)
                if best == old:
                    continue
                new = self.value([*others, best])
                if new < value - _GAIN * abs(value):
                    out[out.index(old)] = best
                    state, value = self._with(without, best), new
            if value >= before - _GAIN * abs(before):
                break
        return out

    # -- low-rank steps ------------------------------------------------------------------------------------

    @cached_property
    def _flat(self) -> Array:
        return self.rows.reshape(-1, self.rows.shape[2])

    def _state(self, which: Sequence[int]) -> _State:
        C = _inverse(self.information(which))
        if self.criterion == "e":
            return _State(C, np.zeros(0), np.zeros(0))
        moved = (self._flat @ C).reshape(self.rows.shape)
        seen = moved @ np.swapaxes(self.rows, 1, 2)
        if self.criterion == "d":
            return _State(C, seen, np.zeros(0))
        return _State(C, seen, moved @ self.weight @ np.swapaxes(moved, 1, 2))

    def _with(self, state: _State, k: int) -> _State:
        return self._stepped(state, k, 1.0)

    def _without(self, state: _State, k: int) -> _State:
        return self._stepped(state, k, -1.0)

    def _stepped(self, state: _State, k: int, sign: float) -> _State:
        """The state with a candidate taken in (1) or out (-1)."""
        A = self.rows[k]
        around = state.C @ A.T
        root = np.linalg.cholesky(np.eye(len(A)) + sign * A @ around)
        U = np.linalg.solve(root, around.T).T
        C = state.C - sign * U @ U.T
        if self.criterion == "e":
            return replace(state, C=C)
        P = (self._flat @ U).reshape(*self.rows.shape[:2], -1)
        back = np.swapaxes(P, 1, 2)
        seen = state.seen - sign * P @ back
        if self.criterion == "d":
            return replace(state, C=C, seen=seen)
        W = (self._flat @ (state.C @ (self.weight @ U))).reshape(P.shape)
        cross = W @ back
        shown = state.shown - sign * (cross + np.swapaxes(cross, 1, 2)) + P @ (U.T @ self.weight @ U) @ back
        return _State(C, seen, shown)

    def _best(self, taken: Sequence[int], state: _State) -> int:
        """The best candidate beside those taken."""
        if self.criterion == "e":
            return self._best_eigenvalue(taken, state)
        inner = np.eye(self.rows.shape[1]) + state.seen
        if self.criterion == "d":
            gains = np.linalg.slogdet(inner)[1]
        else:
            gains = np.einsum("nii->n", np.linalg.solve(inner, state.shown))
        gains[list(taken)] = -np.inf
        return int(np.argmax(gains))

    def _best_eigenvalue(self, taken: Sequence[int], state: _State) -> int:
        V = self.directions
        M = V.T @ self.information(taken) @ V
        worst = V @ np.linalg.eigh(M)[1][:, 0]
        along = ((self.rows @ worst) ** 2).sum(1)
        along[list(taken)] = -1.0
        free = len(along) - len(taken)
        looked = np.sort(np.argsort(-along, kind="stable")[: min(_LOOKED_AT, free)])
        rows = self.rows[looked] @ V
        least = np.linalg.eigvalsh(M + np.swapaxes(rows, 1, 2) @ rows)[:, 0]
        return int(looked[np.argmax(least)])

    def _losses(self, which: Sequence[int], state: _State) -> Array:
        """What each chosen posture is worth, by the state with all of them; of no use for "e", where all are zero."""
        if self.criterion == "e":
            return np.zeros(len(which))
        inner = np.eye(self.rows.shape[1]) - state.seen[which]
        if self.criterion == "d":
            return np.asarray(-np.linalg.slogdet(inner)[1])
        return np.asarray(np.einsum("nii->n", np.linalg.solve(inner, state.shown[which])))


def _inverse(M: Array) -> Array:
    """Inverse of a positive definite matrix of very different scales."""
    scale = 1 / np.sqrt(np.diag(M))
    root = np.linalg.cholesky(M * np.outer(scale, scale))
    half = np.linalg.solve(root, np.diag(scale))
    return np.asarray(half.T @ half)
