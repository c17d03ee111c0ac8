"""Weighted least squares of all rows, beside which candidate causes are tested, included and taken out again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.assessment.causes.cause_code import DRIVE_EFFECT, CauseCode
from dynid.assessment.causes.cause_groups import Group
from dynid.assessment.causes.cause_rows import CauseRows
from dynid.assessment.causes.kinds.lags import Lag, lagged_rows
from dynid.signals.autocorrelation import independent_rows

__all__ = ["ALTERNATIVE", "MOST_ALTERNATIVES", "Step", "Stepwise"]

Array = NDArray[np.float64]

# A column of which less than this share is left beside the model cannot be told from it.
_NEW = 3e-3
_RANK = 1e-9
# A group whose columns, per SI unit, are smaller than this share of the torques is rounding.
_NO_EFFECT = 1e-7
_TINY = 1e-300
_WEIGHTINGS = 2
# Candidates that are compared in detail, and blocks of time for standard deviations.
_COMPARED = 25
_BLOCKS = 20
# An alternative gains this share of what the best candidate does, or the second where it also corrects unseen motion as
# well, and keeps at most the third beside that one.
ALTERNATIVE, _PERHAPS, _BESIDE, MOST_ALTERNATIVES = 0.8, 0.5, 0.2, 2
# Part of a torque that parameters cannot imitate, and standard deviations from zero, from which it matters.
_UNEXPLAINED, _SIGMAS = 0.003, 4.0
# Elasticity and backlash that are as clear as this count from a smaller share of a noisy residual and a smaller part
# that parameters cannot imitate: good recordings reach six standard deviations, 0.02 and 0.3 % of the torque.
_CLEAR_SIGMAS, _CLEAR_SHARE, _CLEAR = 8.0, 0.05, 0.005
# Gains and geometry are imitated by parameters: they count from this effect if they are this clear. Good recordings
# reach four standard deviations.
_IMITATED_EFFECT, _IMITATED_SIGMAS = 0.03, 5.0
# Sizes of a lag that are tried around the one found, and by how much the logarithm of the residual must be smaller for
# a low-pass of first and second order than for a delay, the simpler explanation. Kinds that differ by less than the
# last number are not told from each other.
_REFINED, _SIMPLER, _ALIKE = (0.7, 0.85, 1.0, 1.2, 1.45), (0.0, 0.05, 0.15), 0.05


@dataclass(frozen=True, eq=False)
class Step:
    """A candidate beside the model, with everything that decides whether it is a cause.

    `size`, `std`, `share`, `unexplained`, `effect` and `p_value` are those of a `Cause`. `statistic` is twice the gain
    of the log-likelihood over independent rows, `gain` the same less the number of columns times their logarithm.
    `saving` is the decrease of the logarithm of the residual power, summed over channels, and `agreement` the median of
    the share over them.
    """

    group: Group
    size: float
    std: float
    share: float
    unexplained: float
    effect: float
    p_value: float
    statistic: float
    gain: float
    saving: float
    agreement: float

    @property
    def relevant(self) -> bool:
        """Whether it is large enough to matter, and well determined."""
        needs = self.group.code.relevance
        if (needs.positive and self.size <= 0) or abs(self.size) > self.group.most:
            return False
        if needs.imitated and self.effect >= _IMITATED_EFFECT:
            # Parameters imitate most of it, so that its share of the residual is small however large it is.
            return abs(self.size) >= max(self.group.least, _IMITATED_SIGMAS * self.std)
        clear = self.share >= _CLEAR_SHARE and self.unexplained >= _CLEAR and self.size >= _CLEAR_SIGMAS * self.std
        if clear and needs.clear:
            return True
        return (
            self.share >= needs.share
            and (bool(self.group.joints) or self.agreement >= needs.agreement)
            and self.unexplained >= needs.unexplained
            and self.effect >= needs.effect
            and abs(self.size) >= max(self.group.least, needs.sigmas * self.std)
        )

    @property
    def misses_law(self) -> bool:
        """Whether friction near standstill, for which the model has laws, differs from them by an amount that matters.

        Such laws were needed, and their shape is fitted where signals are least exact: it counts from half the size.
        """
        return self.unexplained >= 0.5 * DRIVE_EFFECT and abs(self.size) >= _SIGMAS * self.std


class Stepwise:
    """The model with the groups that were included. The rows of each channel are weighted by its residual."""

    def __init__(self, rows: CauseRows, included: Sequence[Group] = ()) -> None:
        self._rows = rows
        self._included = list(included)
        self._power = np.array([float(np.sqrt(np.mean(y**2))) for y in rows.y])
        self._ends = np.cumsum([0, *(len(y) for y in rows.y)])
        every = np.unique(np.concatenate(rows.index))
        edges = every[(np.arange(1, _BLOCKS) * len(every)) // _BLOCKS]
        self._block = np.concatenate([np.searchsorted(edges, i, side="right") for i in rows.index])
        self._fit()

    @property
    def relative(self) -> Array:
        """Residual of each channel relative to its torque."""
        return self._noise / np.maximum(self._power, _TINY)

    @property
    def residuals(self) -> list[Array]:
        """Residual (m,) of each channel, in N m or N."""
        return self._split(self._r / self._w)

    @property
    def beta(self) -> Array:
        """Base parameters (b,) beside the included groups."""
        stacked = self._columns() * self._w[:, None]
        size = np.linalg.norm(stacked, axis=0)
        size = np.where(size > 0, size, 1.0)
        y = np.concatenate(self._rows.y) * self._w
        found = np.linalg.lstsq(stacked / size, y, rcond=_RANK)[0] / size
        return np.asarray(found[: self._rows.base.count])

    def best(self, groups: Sequence[Group], level: float) -> Step | None:
        """The relevant and significant group with the largest gain, if any."""
        return max(self._candidates(groups, level), key=lambda s: s.gain, default=None)

    def alternatives(self, best: Step, groups: Sequence[Group], level: float, share: float = _PERHAPS) -> list[Step]:
        """Relevant groups of other kinds that explain nearly as much as the best one, and nothing beside it."""
        near: dict[CauseCode, Step] = {}
        for step in sorted(self._candidates(groups, level), key=lambda s: -s.gain):
            if step.gain >= share * best.gain and step.group.code != best.group.code:
                near.setdefault(step.group.code, step)
        beside = Stepwise(self._rows, [*self._included, best.group])
        left = [(step, *beside._solved(step.group)[1:]) for step in near.values()]
        same = [
            step
            for step, coefficient, rank in left
            if not rank or beside._step(step.group, coefficient, rank, len(groups)).statistic < _BESIDE * step.statistic
        ]
        return same

    def _candidates(self, groups: Sequence[Group], level: float) -> list[Step]:
        """The relevant and significant ones of the groups that explain most."""
        ranked = []
        for group in groups:
            if not any(group is g for g in self._included):
                power, coefficient, rank = self._solved(group)
                if rank:
                    ranked.append((power, rank, group, coefficient))
        ranked.sort(key=lambda x: -x[0])
        steps = [self._step(g, c, k, len(groups)) for _, k, g, c in ranked[:_COMPARED]]
        return [s for s in steps if s.p_value < level and s.relevant]

    def sharpened(self, best: Step, near: Sequence[Group], tested: int) -> Step:
        """The step of the group near the best one that explains most."""
        solved = [(group, *self._solved(group)) for group in near]
        group, _, coefficient, rank = max(solved, key=lambda x: x[1])
        better = self._step(group, coefficient, rank, tested)
        return better if better.statistic > best.statistic else best

    def strongest(self, groups: Sequence[Group], tested: int) -> Step | None:
        """The group with a positive size that explains most, if any."""
        solved = [(group, *self._solved(group)) for group in groups]
        positive = [x for x in solved if x[3] and x[2][0] > 0]
        if not positive:
            return None
        group, _, coefficient, rank = max(positive, key=lambda x: x[1])
        return self._step(group, coefficient, rank, tested)

    def all(self, groups: Sequence[Group], tested: int) -> list[Step]:
        """All groups that the model does not contain, each beside it."""
        solved = [(group, *self._solved(group)) for group in groups]
        return [self._step(group, coefficient, rank, tested) for group, _, coefficient, rank in solved if rank]

    def smallest(self, group: Group) -> float:
        """Smallest size of a group that parameters imitate for the most part which would be relevant."""
        _, coefficient, rank = self._solved(group)
        if not rank:
            return np.inf
        return max(group.least, _IMITATED_SIGMAS * self._step(group, coefficient, rank, 1).std)

    def include(self, group: Group) -> None:
        """Add a group to the model."""
        self._included.append(group)
        self._fit()

    def needed(self, found: list[Step], tested: int) -> list[Step]:
        """The steps that still matter beside all others; what a later one explains better is taken out again."""
        kept = list(found)
        for step in found[:-1]:
            rest = Stepwise(self._rows, [g for g in self._included if g is not step.group])
            _, coefficient, rank = rest._solved(step.group)
            again = rest._step(step.group, coefficient, max(rank, 1), tested)
            if rank and again.relevant:
                kept[kept.index(step)] = again
            else:
                kept.remove(step)
                vars(self).update(vars(rest))
        return kept

    def without_lag(self, step: Step, lags: Sequence[tuple[Lag, Group]], away: CauseRows) -> list[tuple[Step, Lag]]:
        """The step and the lag of the kind that explains best, and of those that explain nearly as well.

        The size is that at which these rows are explained best. The kind is told from rows away from reversals:
        friction that is smoother there than in the model looks like a low-pass.
        """
        tried: list[tuple[float, Step, Lag]] = []
        for order in (0, 1, 2):
            solved = [self._step(g, *self._solved(g)[1:], 1) for lag, g in lags if lag.order == order]
            if not solved:
                continue
            top = max(solved, key=lambda x: x.statistic)
            size = top.size if top.size * step.size > 0 else step.size
            sizes = [Lag(order, 1e-3 * size * factor) for factor in _REFINED]
            fits = [(self._left(self._rows, lag), lag) for lag in sizes if lag.seconds > 0 or not order]
            if fits:
                lag = min(fits, key=lambda x: x[0])[1]
                group = replace(top.group, code=lag.code)
                exact = replace(top, group=group, size=1e3 * lag.seconds, std=step.std)
                tried.append((self._left(away, lag) + _SIMPLER[order], exact, lag))
        least = min(left for left, _, _ in tried)
        near = sorted((x for x in tried if x[0] < least + _ALIKE), key=lambda x: x[0])
        kinds = {lag.code: (step, lag) for _, step, lag in reversed(near)}
        return list(reversed(kinds.values()))

    def _left(self, rows: CauseRows, lag: Lag) -> float:
        """Mean logarithm of the residual of rows that are lagged alike."""
        other = Stepwise(lagged_rows(rows, lag), self._included)
        count = np.diff(other._ends)
        return float(np.sum(count * np.log(np.maximum(other._noise, _TINY))) / np.sum(count))

    def _columns(self) -> Array:
        """All columns of the model, stacked over the channels."""
        parts = []
        for k, W in enumerate(self._rows.W):
            more = [g.columns[k] for g in self._included]
            wide = [np.zeros((len(W), g.count)) if c is None else c for g, c in zip(self._included, more, strict=True)]
            parts.append(np.column_stack([W, *wide]))
        return np.vstack(parts)

    def _fit(self) -> None:
        """Fit the model."""
        noise = np.maximum(self._power, _TINY)
        stacked = self._columns()
        size = np.maximum(np.linalg.norm(stacked, axis=0), _TINY)
        y = np.concatenate(self._rows.y)
        for _ in range(_WEIGHTINGS):
            w = np.repeat(1.0 / noise, np.diff(self._ends))
            Q, R = scipy.linalg.qr(stacked / size * w[:, None], mode="economic")
            if np.abs(np.diag(R)).min() <= _RANK * np.abs(np.diag(R)).max():
                Q, R, _ = scipy.linalg.qr(stacked / size * w[:, None], mode="economic", pivoting=True)
                Q = np.ascontiguousarray(Q[:, np.abs(np.diag(R)) > _RANK * abs(R[0, 0])])
            r = y * w - Q @ (Q.T @ (y * w))
            rms = np.array([np.sqrt(np.mean(part**2)) for part in self._split(r)]) * noise
            noise = np.maximum(rms, np.maximum(1e-9 * self._power, _TINY))
        self._w, self._noise, self._Q, self._r = w, noise, Q, r
        self._rss = np.array([float(p @ p) for p in self._split(r)])
        self._size_of_torque = float(np.linalg.norm(y * w))

    def _split(self, x: Array) -> list[Array]:
        """The part of each channel."""
        return [x[a:b] for a, b in zip(self._ends[:-1], self._ends[1:], strict=True)]

    def _solved(self, group: Group) -> tuple[float, Array, int]:
        """Explained power, coefficients and rank of a group beside the model."""
        c = group.count
        gram, cross, along = np.zeros((c, c)), np.zeros((self._Q.shape[1], c)), np.zeros(c)
        for k, part in enumerate(group.columns):
            if part is None:
                continue
            rows = slice(self._ends[k], self._ends[k + 1])
            weighted = part * self._w[rows, None]
            gram += weighted.T @ weighted
            cross += self._Q[rows].T @ weighted
            along += weighted.T @ self._r[rows]
        size = np.sqrt(np.maximum(np.diag(gram), _TINY))
        if size.max() < _NO_EFFECT * self._size_of_torque:
            return 0.0, np.zeros(c), 0
        values, vectors = np.linalg.eigh((gram - cross.T @ cross) / np.outer(size, size))
        good = values > _NEW**2
        if not good.any():
            return 0.0, np.zeros(c), 0
        part = vectors[:, good].T @ (along / size)
        coefficient = vectors[:, good] @ (part / values[good]) / size
        return float(np.sum(part**2 / values[good])), coefficient, int(good.sum())

    def _step(self, group: Group, coefficient: Array, rank: int, tested: int) -> Step:
        """A group with everything that decides whether it is a cause, of `tested` candidates."""
        effect = np.zeros(len(self._r))
        full = np.zeros(len(self._rss))
        for k, part in enumerate(group.columns):
            if part is not None:
                rows = slice(self._ends[k], self._ends[k + 1])
                effect[rows] = part @ coefficient * self._w[rows]
                full[k] = float(np.sqrt(np.mean((part[:, : group.core] @ coefficient[: group.core]) ** 2)))
        rest = effect - self._Q @ (self._Q.T @ effect)
        after = self._split(self._r - rest)
        weighted = zip(self._rows.y, self._split(self._w), strict=True)
        floor = 1e-12 * np.array([float(np.sum((y * w) ** 2)) for y, w in weighted]) + _TINY
        rss = np.maximum([float(p @ p) for p in after], floor)
        before = np.maximum(self._rss, floor)
        # The residual with the cause has the autocorrelation of the noise; without it, that of the cause too.
        count = np.array([independent_rows(p, i) for p, i in zip(after, self._rows.index, strict=True)])
        statistic = float(np.sum(count * np.log(before / rss)))
        share = 1.0 - rss / before
        scale = 1.0 / np.maximum(self._power, _TINY)
        new = np.array([np.sqrt(np.mean(p**2)) for p in self._split(rest / self._w)]) * scale
        size, std = self._size(group, coefficient, rest, self._r - rest)
        return Step(
            group=group,
            size=size,
            std=std,
            share=float(share[int(np.argmax(share * (new > _UNEXPLAINED)))]),
            unexplained=float(new.max()),
            effect=float((full * scale).max()),
            p_value=float(min(1.0, scipy.stats.chi2.sf(max(statistic, 0.0), rank) * tested)),
            statistic=statistic,
            gain=statistic - rank * float(np.log(count.sum())),
            saving=float(np.sum(np.log(before / rss))),
            agreement=float(np.median(share)),
        )

    def _size(self, group: Group, coefficient: Array, effect: Array, residual: Array) -> tuple[float, float]:
        """Size of a cause and its standard deviation, from blocks of time.

        The standard deviation is that of the amplitude along the torque of the cause, so that directions of a group
        without effect do not count.
        """
        core = coefficient[: group.core]
        value = (float(np.linalg.norm(core)) if group.core > 1 else float(core[0])) * group.scale
        amplitude = float(np.linalg.norm(effect))
        if amplitude == 0.0:
            return value, np.inf
        scores = np.bincount(self._block, effect / amplitude * residual, _BLOCKS)
        std = float(np.sqrt(np.sum(scores**2) * _BLOCKS / (_BLOCKS - 1)))
        return value, abs(value) * std / amplitude
