"""Causes that bodies imitate: told from weight by what is known of the bodies.

A counterbalance acts as weight does. First moments that are free imitate it, and no residual shows it; but bodies with
such moments are far from those of the robot file, and often no bodies at all. With the rows W and y in units of
independent noise, the base parameters K pi and the columns C of a candidate,

    y = W K (pi_0 + R u) + C c + e,    u ~ N(0, 1),    c ~ N(0, diag(s)^2),
    log p(y | C) = -log det T - |rest|^2 / 2,    T'T = 1 + [W K R, C s]'[W K R, C s],    rest what T leaves of y,

R holds the directions of every body relative to its own pseudo-inertia, so that the bodies cost what they differ from
the file; a factor of all of them, and the drives, are free. The likelihood is summed over widths of that prior. A
candidate must be far more likely than none and than wrong geometry, and it must lower the error of a physically
consistent robot on motion that is not in the fit.

Sources: MacKay, Bayesian Interpolation (1992), for the evidence of models; Lee, Wensing and Park (2020), for the metric
of the bodies. Own idea: causes that free parameters imitate are compared with the bodies held near the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.assessment.causes.cause import Trial
from dynid.assessment.causes.cause_groups import Group, Model
from dynid.assessment.causes.cause_rows import CauseRows
from dynid.assessment.causes.cause_trials import parts_of
from dynid.assessment.causes.kinds.drives import CLOCK_RATE, GRAVITY, SPRING
from dynid.assessment.causes.kinds.geometry import (
    ENCODER_OFFSET,
    PLACEMENT,
    POSITION_GAIN,
    TILT,
    geometry_groups,
    vertical,
)
from dynid.assessment.causes.stepwise import Stepwise
from dynid.errors import DynidError
from dynid.feasibility.box import boxed_set, plausible_box
from dynid.feasibility.fit import fit
from dynid.feasibility.prior import consistent_prior
from dynid.identification.estimators.options import known_masses
from dynid.identification.observation import Observation, fold
from dynid.identification.posterior import ParameterPrior, parameter_prior
from dynid.signals.autocorrelation import independent_rows

__all__ = ["Imitated", "imitated_cause"]

Array = NDArray[np.float64]

# What may be named, and what competes with it.
_NAMED = frozenset({GRAVITY, SPRING})
_RIVALS = frozenset({TILT, ENCODER_OFFSET, POSITION_GAIN, PLACEMENT, CLOCK_RATE})
# Odds against nothing, for every candidate, from which a cause is named; those within which two are not told apart,
# and how many others are said.
_ODDS, _ALIKE, _MOST = np.log(1000.0), np.log(20.0), 1
# Widths of the prior of the bodies relative to the usual one, and the number of parameters that this one counts as.
_WIDTHS, _USUAL = (0.5, 1.0, 2.0, 4.0), 10.0
# A factor of all bodies, and drives relative to their usual prior: neither is at issue.
_ANY, _DRIVES = 1e4, 5.0
# Typical size of a rival over the least that counts, of a spring or counterbalance over the torque of its joint, and of
# causes that were found already.
_TYPICAL, _SHARE, _FOUND = 10.0, 0.5, 10.0
# Bodies whose torques differ from the recorded ones by more than this factor are in another unit.
_UNIT = 4.0
# A joint on the base whose axis is vertical within a usual tilt (rad) has no weight that somebody would balance.
_UPRIGHT = 0.2
# Times that wrong geometry is computed with the bodies found beside it.
_PASSES = 3
_RANK, _TINY = 1e-9, 1e-300


@dataclass(frozen=True, eq=False)
class Imitated:
    """A cause that bodies imitate.

    `odds` is the logarithm of its odds against nothing; `alternatives` explain alike. `size` and `std` hold beside
    bodies near the file, and `parameters` (p,) are these bodies and drives. `effect` is its torque relative to that of
    its joint.
    """

    group: Group
    odds: float
    size: float
    std: float
    effect: float
    parameters: Array
    alternatives: tuple[Group, ...]
    trial: Trial


def imitated_cause(
    model: Model,
    seen: Observation,
    search: Stepwise,
    groups: Sequence[Group],
    found: Sequence[Group],
) -> Imitated | None:
    """The spring or counterbalance that is far more likely than bodies far from the file, if any.

    `groups` are all candidates, `found` those that are in the search already.
    """
    robot = model.robot
    bodies = consistent_prior(robot)
    if bodies.complete or any(g.code.fatal for g in found):
        return None  # nothing is known of the bodies, or their weight is wrong
    prior = parameter_prior(seen, bodies, known_masses(robot, None, None))
    named = _compared(model.rows, prior, search, groups, found)
    if named is None:
        return None
    # The columns of wrong geometry are those of the bodies: an estimate that is wrong has wrong ones.
    parameters = prior.mean
    for _ in range(_PASSES):
        fresh = {_key(g): g for g in geometry_groups(Model(robot, parameters, model.rows))}
        named = _compared(model.rows, prior, search, *([fresh.get(_key(g), g) for g in x] for x in (groups, found)))
        if named is None:
            return None
        parameters = named[0].solved()[2]
    held, wanted, odds = named
    found = held.found
    first, *others = (int(k) for k in np.argsort(-odds))
    group = wanted[first]
    near = [wanted[k] for k in others if odds[k] > odds[first] - _ALIKE]
    try:
        trial = replace(_trial(model.rows, prior, held, group, found), strain=held.strain(first))
    except DynidError:  # no consistent robot was found
        return None
    if not trial.gains:
        return None
    coefficient, covariance, parameters = held.solved(first)
    core, own = coefficient[: group.core], covariance[: group.core, : group.core]
    length = max(float(np.linalg.norm(core)), _TINY)
    k = model.rows.joints.index(group.joints[0])
    power = [float(np.mean(x**2)) for x in (_columns([group], k, len(model.rows.y[k])) @ coefficient, model.rows.y[k])]
    return Imitated(
        group=group,
        odds=float(odds[first]),
        size=group.scale * (length if group.core > 1 else float(core[0])),
        std=group.scale * float(np.sqrt(core @ own @ core)) / length,
        effect=float(np.sqrt(power[0] / max(power[1], _TINY))),
        parameters=parameters,
        alternatives=tuple(near[:_MOST]),
        trial=trial,
    )


def _compared(
    rows: CauseRows, prior: ParameterPrior, search: Stepwise, groups: Sequence[Group], found: Sequence[Group]
) -> tuple[_Held, list[Group], Array] | None:
    """The candidates beside bodies near the file, with their odds, where one that may be named is the most likely."""
    taken = {(g.code, g.joints) for g in found}
    wanted = [g for g in groups if g.code in _NAMED | _RIVALS and (g.code, g.joints) not in taken]
    robot = prior.robot
    wanted = [g for g in wanted if g.code != GRAVITY or not vertical(robot, g.joints[0], _UPRIGHT)]
    wanted = [_shifted(g) if g.code == SPRING else g for g in wanted]
    if not wanted:
        return None
    held = _Held(rows, prior, search, wanted, found)
    if not held.same_unit:
        return None
    odds = np.array([held.odds(k) for k in range(len(wanted))])
    first = int(np.argmax(odds))
    if odds[first] < _ODDS + np.log(len(wanted)) or wanted[first].code not in _NAMED:
        return None
    return held, wanted, odds


def _key(group: Group) -> tuple[str, tuple[int, ...], int]:
    """What distinguishes candidates of wrong geometry."""
    return group.code, group.joints, group.core


def _shifted(group: Group) -> Group:
    """A spring with its rest, as the option that adds it has it."""
    return replace(
        group,
        columns=tuple(None if c is None else np.column_stack([c[:, 0], np.ones(len(c))]) for c in group.columns),
    )


class _Held:
    """Rows of model, causes that were found and candidates, folded once, with the prior of the bodies."""

    def __init__(
        self,
        rows: CauseRows,
        prior: ParameterPrior,
        search: Stepwise,
        groups: Sequence[Group],
        found: Sequence[Group],
    ) -> None:
        self._prior, self._base, self.found = prior, rows.base, tuple(found)
        residuals = search.residuals
        worth = np.array([independent_rows(r, i) / len(r) for r, i in zip(residuals, rows.index, strict=True)])
        noise = np.array([max(float(np.sqrt(np.mean(r**2))), _TINY) for r in residuals])
        self.weight = np.sqrt(worth) / noise
        parts: list[Array] = []
        for k, (W, y) in _numbered(rows):
            parts.append(fold(self.weight[k] * np.column_stack([W, _columns([*found, *groups], k, len(W)), y])))
        F = fold(np.vstack(parts))
        b, more = self._base.count, sum(g.count for g in found)
        self._W, self._more, self._C, self._y = F[:, :b], F[:, b : b + more], F[:, b + more : -1], F[:, -1]
        length = np.linalg.norm(self._y)
        self._more = self._more * (_FOUND * length / np.maximum(np.linalg.norm(self._more, axis=0), _TINY))
        ends = np.cumsum([0, *(g.count for g in groups)])
        self._own = [slice(a, z) for a, z in pairwise(ends)]
        self._sizes = np.concatenate([self._typical(rows, g) for g in groups]) if groups else np.zeros(0)
        self._reduced = {width: self._marginal(width) for width in _WIDTHS}
        self._none = self._total([self._evidence(width, slice(0, 0)) for width in _WIDTHS])

    @property
    def same_unit(self) -> bool:
        """Whether the bodies of the file explain torques of the size that was recorded."""
        inertial = np.array([p.inertial for p in self._prior.robot.layout])
        W = self._W @ self._base.matrix
        bodies, drives = W[:, inertial] @ self._prior.mean[inertial], W[:, ~inertial]
        left = [x - drives @ np.linalg.lstsq(drives, x, rcond=1e-8)[0] for x in (self._y, bodies)]
        power = [float(np.linalg.norm(x)) for x in left]
        return bool(power[1] > 0 and 1 / _UNIT < power[0] / power[1] < _UNIT)

    def odds(self, k: int) -> float:
        """Logarithm of the odds of candidate k against nothing."""
        return self._total([self._evidence(width, self._own[k]) for width in _WIDTHS]) - self._none

    def strain(self, k: int) -> float:
        """Share that remains beside candidate k of the misfit of bodies near the file beyond that of free ones."""
        F, own = self._reduced[1.0][1], self._own[k]
        _, z = _bayes(F[:, [*range(own.start, own.stop), F.shape[1] - 1]])
        none = float(F[:, -1] @ F[:, -1])
        free = np.column_stack([self._W, self._more, self._C[:, own]])
        free = free / np.maximum(np.linalg.norm(free, axis=0), _TINY)
        rest = self._y - free @ np.linalg.lstsq(free, self._y, rcond=_RANK)[0]
        least = float(rest @ rest)
        return float(np.sqrt(max(none - float(z @ z) - least, 0.0) / max(none - least, _TINY)))

    def solved(self, k: int | None = None) -> tuple[Array, Array, Array]:
        """Coefficients and covariance of candidate k, or of none, and the parameters (p,) beside it."""
        own = slice(0, 0) if k is None else self._own[k]
        width = max(_WIDTHS, key=lambda x: self._evidence(x, own))
        F = self._reduced[width][1]
        T, z = _bayes(F[:, [*range(own.start, own.stop), F.shape[1] - 1]])
        inverse = scipy.linalg.solve_triangular(T, np.eye(len(T))) * self._sizes[own][:, None]
        c, K, mean, root = inverse @ z, self._base.matrix, self._prior.mean, self._root(width)
        rest = self._y - self._W @ (K @ mean) - self._C[:, own] @ c
        T, z = _bayes(np.column_stack([self._W @ (K @ root), self._more, rest]))
        return c, inverse @ inverse.T, mean + root @ scipy.linalg.solve_triangular(T, z)[: root.shape[1]]

    def _root(self, width: float) -> Array:
        """Directions (p, k) of the prior times their scales."""
        prior = self._prior
        factor = {"bodies": width, "assumed bodies": width, "tool": 1.0, "all bodies": _ANY}
        return prior.directions * np.array([prior.scales[g] * factor.get(g, _DRIVES) for g in prior.groups])

    def _marginal(self, width: float) -> tuple[float, Array]:
        """Logarithm of the evidence of the prior, and rows of the candidates and y beside it."""
        K, root = self._base.matrix, self._root(width)
        stack = np.column_stack(
            [self._W @ (K @ root), self._more, self._C * self._sizes, self._y - self._W @ (K @ self._prior.mean)]
        )
        k = root.shape[1] + self._more.shape[1]
        F = fold(np.vstack([np.eye(k, stack.shape[1]), stack]))
        # How probable the width is: that of so many parameters of the usual one.
        known = -0.5 * _USUAL * (np.log(width**2) + 1.0 / width**2 - 1.0)
        return float(known - np.sum(np.log(np.abs(np.diag(F)[:k])))), F[k:, k:]

    def _evidence(self, width: float, own: slice) -> float:
        value, F = self._reduced[width]
        T, z = _bayes(F[:, [*range(own.start, own.stop), F.shape[1] - 1]])
        return value - float(np.sum(np.log(np.abs(np.diag(T))))) - 0.5 * (float(F[:, -1] @ F[:, -1]) - float(z @ z))

    def _total(self, values: Sequence[float]) -> float:
        return float(np.logaddexp.reduce(values))

    def _typical(self, rows: CauseRows, group: Group) -> Array:
        """A-priori size (c,) of the coefficients of a candidate."""
        if group.code in _RIVALS:
            return np.full(group.count, _TYPICAL * group.least / group.scale)
        k = rows.joints.index(group.joints[0])
        column, y = group.columns[k], rows.y[k]
        assert column is not None
        size = np.sqrt(np.mean(column**2, axis=0) / max(float(np.mean(y**2)), _TINY))
        return np.asarray(_SHARE / np.maximum(size, _TINY))


def _bayes(rows: Array) -> tuple[Array, Array]:
    """Triangle T and right side z of columns with unit prior; the last column is y."""
    n = rows.shape[1] - 1
    F = fold(np.vstack([np.eye(n, n + 1), rows]))
    return F[:n, :n], F[:n, n]


def _trial(rows: CauseRows, prior: ParameterPrior, held: _Held, group: Group, found: Sequence[Group]) -> Trial:
    """What the cause does to the error of a physically consistent robot on motion that is not in its fit."""
    unseen = max(rows.groups) > 0 and not any(g.code.between for g in found)
    before, after = (_errors(rows, prior, held, each, unseen) for each in (found, [*found, group]))
    joint = int(np.argmax(before - after))
    return Trial(rows.base.channels[joint], float(before[joint]), float(after[joint]), unseen)


def _errors(rows: CauseRows, prior: ParameterPrior, held: _Held, groups: Sequence[Group], unseen: bool) -> Array:
    """Errors (channel,) of a consistent robot in parts of the rows not in the fit, relative to the torque there."""
    K, parts = rows.base.matrix, parts_of(rows, unseen)
    allowed = boxed_set(prior.robot, "full", plausible_box(prior.robot, prior.bodies))
    own, targets = prior.rows(prior.directions * prior.sizes(prior.scales))
    stacks = [np.column_stack([_columns(groups, k, len(W)), W, y]) for k, (W, y) in _numbered(rows)]
    c, channels = sum(g.count for g in groups), range(len(stacks))
    squares, count = np.zeros(len(stacks)), np.zeros(len(stacks))
    for p in [1] if unseen else range(len(parts)):
        fitted = [np.any([x[k] for i, x in enumerate(parts) if i != p], axis=0) for k in channels]
        F = fold(np.vstack([held.weight[k] * stacks[k][fitted[k]] for k in channels]))
        # The causes are free: the bodies are fitted to what these leave.
        rest = F[c:, c:]
        R, z = np.vstack([rest[:, :-1] @ K, own]), np.concatenate([rest[:, -1], targets])
        beta = K @ fit(allowed, R, z, prior.mean, weight=0.0).parameters
        free = np.linalg.lstsq(F[:c, :c], F[:c, -1] - F[:c, c:-1] @ beta, rcond=None)[0] if c else np.zeros(0)
        x = np.concatenate([free, beta])
        judged = [stacks[k][parts[p][k]] for k in channels]
        squares += [float(np.sum((s[:, -1] - s[:, :-1] @ x) ** 2)) for s in judged]
        count += [len(s) for s in judged]
    size = np.array([max(float(np.sqrt(np.mean(y**2))), _TINY) for y in rows.y])
    return np.asarray(np.sqrt(squares / np.maximum(count, 1)) / size)


def _numbered(rows: CauseRows) -> Iterable[tuple[int, tuple[Array, Array]]]:
    """Number, W and y of each channel."""
    return enumerate(zip(rows.W, rows.y, strict=True))


def _columns(groups: Sequence[Group], channel: int, rows: int) -> Array:
    """Columns (m, c) of some groups in a channel; zero where they do not act."""
    own = [(g.columns[channel], g.count) for g in groups]
    return np.hstack([np.zeros((rows, 0)), *(np.zeros((rows, n)) if c is None else c for c, n in own)])
