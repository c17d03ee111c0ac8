"""Rows of all recordings of an estimate, as the search for causes needs them: in memory, per channel, in time order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import MissingData, NotApplicable, NotIdentifiable
from dynid.identification.observation import Observation
from dynid.parameters.base import BaseParameters
from dynid.signals.filters import decimate
from dynid.signals.settings import Motion

__all__ = ["CauseRows", "away_from_reversals", "cause_rows"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]

# Friction steps where a joint reverses, at an instant and with a width that models know roughly. Rows with less than
# this share of the highest velocity, and rows this near to a reversal, are left out.
_SLOW = 0.05
_ROWS_FROM_REVERSAL = 2.5
# Share of the fast samples of a joint that must be left without its reversals; else they are not left out.
_LEAST_LEFT = 0.1
# Rows per channel and numbers of the regressor that are kept; beyond, rows are thinned evenly.
_MOST_ROWS, _MOST_NUMBERS = 2500, 3_000_000


@dataclass(frozen=True, eq=False)
class CauseRows:
    """Rows of each channel: W (m, b), y (m,) and the sample of each row among those of all motions, in order.

    `first` is the number of the first sample of each motion. `groups` numbers the recording of each motion: 0 for the
    fitted one, 1 for the unseen one.
    """

    base: BaseParameters
    W: tuple[Array, ...]
    y: tuple[Array, ...]
    index: tuple[Index, ...]
    motions: tuple[Motion, ...]
    groups: tuple[int, ...]
    first: Index

    @property
    def joints(self) -> tuple[int, ...]:
        """Number of the joint of each channel."""
        return tuple(self.base.robot.coordinates.index(c) for c in self.base.channels)

    def run_of(self, index: Index) -> Index:
        """Number of the motion of each sample."""
        return np.searchsorted(self.first, index, side="right") - 1

    def without(self, samples: NDArray[np.bool_]) -> CauseRows:
        """The rows without those at some samples (N,)."""
        kept = [~samples[i] for i in self.index]
        return replace(
            self,
            W=tuple(x[k] for x, k in zip(self.W, kept, strict=True)),
            y=tuple(x[k] for x, k in zip(self.y, kept, strict=True)),
            index=tuple(x[k] for x, k in zip(self.index, kept, strict=True)),
        )

    def sampled(self, made: Callable[[Array, Array, Array], Array]) -> list[Array]:
        """Rows of each channel of a smooth function of q, v and a that returns (N, joint, ...)."""
        states = [np.concatenate([getattr(m, s) for m in self.motions]) for s in "qva"]
        return self.picked(states, made)

    def picked(self, signals: Sequence[Array], made: Callable[..., Array]) -> list[Array]:
        """Rows of each channel of a function of signals (N, joint), evaluated at the samples of the rows only."""
        samples = np.unique(np.concatenate(self.index))
        value = made(*(x[samples] for x in signals))
        at = [np.searchsorted(samples, i) for i in self.index]
        return [value[i, j] for i, j in zip(at, self.joints, strict=True)]

    def decimated(self, columns: Sequence[Array]) -> list[Array]:
        """Rows (m, c) of each channel of columns (N, c) per motion at full rate, decimated as the torques are."""
        thin = [decimate(c, m.decimate) for m, c in zip(self.motions, columns, strict=True)]
        return self.from_grid(thin)

    def from_grid(self, columns: Sequence[Array]) -> list[Array]:
        """Rows (m, c) of each channel of columns (M, c) per motion that were decimated already."""
        out = []
        for index in self.index:
            run = self.run_of(index)
            rows = np.empty((len(index), *columns[0].shape[1:]))
            for r, column in enumerate(columns):
                mine = run == r
                factors = self.motions[r].decimate
                step = int(np.prod(factors)) if factors else 1
                rows[mine] = column[(index[mine] - self.first[r]) // step]
            out.append(rows)
        return out


def cause_rows(observations: Sequence[Observation], reversals: bool = False) -> CauseRows:
    """Collect the rows of the fitted observation and, where it is given, of the unseen one.

    Rows at which joints reverse are left out unless `reversals` is given.

    Raises a DataError if an observation does not keep its motions, or has channels other than joint torques.
    """
    base = observations[0].base
    if set(base.channels) - set(base.robot.coordinates) or base.robot.base == "floating":
        raise NotApplicable("causes are searched for in joint torques only")
    if any(not o.motions or any(m.torque is None for m in o.motions) for o in observations):
        raise MissingData("the observation does not keep its cleaned runs: give the recording instead", "observations")
    motions = tuple(m for o in observations for m in o.motions)
    groups = tuple(k for k, o in enumerate(observations) for _ in o.motions)
    lengths = np.array([len(m.t) for m in motions])
    first = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    parts: list[list[tuple[Array, Array, Index]]] = [[] for _ in base.channels]
    start = 0
    total = sum(o.total_rows for o in observations)
    every = max(1, total // (_MOST_ROWS * len(base.channels)), -(-total * base.count // _MOST_NUMBERS))
    for observation in observations:
        fast = np.concatenate(away_from_reversals(observation.motions))
        joint = [base.robot.coordinates.index(c) for c in base.channels]
        for block in observation.blocks():
            kept = reversals | fast[block.index, joint[block.channel]]
            keep = np.flatnonzero(kept)[::every]
            parts[block.channel].append((block.W[keep], block.y[keep], start + block.index[keep]))
        start += sum(len(m.t) for m in observation.motions)
    empty = [c for c, part in zip(base.channels, parts, strict=True) if not part]
    if empty:
        raise NotIdentifiable(
            f"joint '{empty[0]}' never moves faster than min_velocity in this recording", "min_velocity"
        )
    joined = [tuple(np.concatenate(x) for x in zip(*part, strict=True)) for part in parts]
    W, y, index = zip(*joined, strict=True)
    return CauseRows(base, W, y, index, motions, groups, first)


def away_from_reversals(motions: Sequence[Motion]) -> list[NDArray[np.bool_]]:
    """Samples (N, joint) of each motion at which a joint moves fast enough and did not just reverse.

    A joint that reverses all the time has no such samples: those at which it moves fast enough are taken.
    """
    fastest = np.max([np.abs(m.v).max(axis=0) for m in motions], axis=0)
    fast = [np.abs(m.v) > _SLOW * fastest for m in motions]
    away = [x & ~_near_reversals(m) for m, x in zip(motions, fast, strict=True)]
    left, of = (np.sum([x.sum(axis=0) for x in each], axis=0) for each in (away, fast))
    return [np.where(left < _LEAST_LEFT * of, f, a) for f, a in zip(fast, away, strict=True)]


def _near_reversals(motion: Motion) -> NDArray[np.bool_]:
    """Samples (N, joint) of rows that the decimation mixes with a reversal."""
    step = int(np.prod(motion.decimate)) if motion.decimate else 1
    turns = np.zeros(motion.v.shape, dtype=bool)
    if step > 1:
        turns[1:] = np.sign(motion.v[1:]) != np.sign(motion.v[:-1])
        turns = scipy.ndimage.maximum_filter1d(turns, 2 * int(_ROWS_FROM_REVERSAL * step) + 1, axis=0)
    return turns
