"""Which effect is missing from the model: candidate columns tested against what the model leaves of the torques."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.assessment.tests.candidates import ALL_JOINTS, Candidates
from dynid.errors import DataError, DynidError
from dynid.hypothesis import corrected, f_ratio
from dynid.identification.estimate import Estimate
from dynid.identification.observation import fold, motion_blocks
from dynid.recording.recording import Recording
from dynid.signals.noise_color import independent_share
from dynid.signals.settings import Motion, prepare

__all__ = ["Effect", "MissingEffects", "missing_effects"]

Array = NDArray[np.float64]

# A candidate of which the model leaves less than this share is one of its own columns, up to rounding.
_NEW = 1e-6
_STANDSTILL = 1e-6
_RANK = 1e-12
_TINY = 1e-300


@dataclass(frozen=True)
class Effect:
    """A candidate: its coefficient (SI) with standard deviation, and how much it explains.

    Coefficients of effects that were found are of one fit with all of them. `share` is the part of the joint's residual
    power that went when the candidate joined the model. `statistic` is its partial F, `p_value` corrected
    by Holm for all candidates tested beside it.
    """

    joint: str
    words: str
    coefficient: float
    std: float
    share: float
    statistic: float
    p_value: float

    def __str__(self) -> str:
        return (
            f"{self.joint}: {self.words} is missing (explains {100 * self.share:.0f} % of the residual; "
            f"{self.coefficient:.4g} +- {self.std:.2g})"
        )


@dataclass(frozen=True, eq=False)
class MissingEffects:
    """What the model lacks, in the order in which it explains the residual.

    `effects` were found one after the other, each beside those before it, so that an effect does not appear a second
    time under the name of a similar one. `candidates` are all that were tested, each alone, the most telling first.
    """

    effects: tuple[Effect, ...]
    candidates: tuple[Effect, ...]
    level: float
    least_share: float

    @property
    def verdict(self) -> str:
        if not self.effects:
            return f"none of {len(self.candidates)} candidate effects is missing"
        count = "one effect is" if len(self.effects) == 1 else f"{len(self.effects)} effects are"
        return f"{count} missing, first of all in {self.effects[0].joint}: {self.effects[0].words}"

    @property
    def advice(self) -> str:
        if not self.effects:
            return "if the residual still remembers its past, look beyond the drives: elasticity, kinematics, cables"
        if self.effects[0].joint == ALL_JOINTS:
            return "set the delay of the signals, identify again, and ask again"
        return "add the first one to the robot (with_drives, with_terms, custom_term), identify again, and ask again"

    def summary(self) -> str:
        """A ranked table in words."""
        lines = [
            "missing effects (partial F tests)",
            "  null:      the torque needs nothing beside the model",
            f"  verdict:   {self.verdict}",
            f"  advice:    {self.advice}",
        ]
        if self.effects:
            lines.append(f"  found, p-values corrected (holm) against {self.level:g}:")
            lines += [f"    {i}. {e}, p = {e.p_value:.2g}" for i, e in enumerate(self.effects, 1)]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "advice": self.advice,
            "level": self.level,
            "least_share": self.least_share,
            "effects": [asdict(e) for e in self.effects],
            "candidates": [asdict(e) for e in self.candidates],
        }


def missing_effects(
    estimate: Estimate,
    recording: Recording,
    *,
    level: float = 0.05,
    least_share: float = 0.02,
    ripple: Sequence[float] = (),
    stribeck: float = 0.05,
    rows: float | None = None,
    most: int = 10,
) -> MissingEffects:
    """Search the recording for effects that the model of the estimate lacks.

    Candidates are built from the cleaned states at full rate and decimated with the torques, as the regressor is. The
    base parameters are fitted anew beside each one. An effect is named if it is significant at `level` among all
    candidates and explains at least `least_share` of its joint's residual; at most `most` are. `ripple` lists torque
    waves by their periods a turn of the joint. `stribeck` is the speed of the extra friction near standstill, as a
    share of the joint's highest. `rows` is the number of independent rows; give fewer than there are if the residual
    remembers its past even with the effects that were found.
    """
    base = estimate.base
    if len(recording.joints) != base.robot.n:
        raise DataError(f"the recording has {len(recording.joints)} joints, robot '{base.robot.name}' {base.robot.n}")
    if not 0 < level < 1 or not 0 <= least_share < 1 or stribeck <= 0:
        raise DataError("level and least_share lie between 0 and 1, and stribeck is positive")
    silent = [run.name for run in recording.runs if run.torque is None]
    if silent:
        raise DataError(f"run '{silent[0]}' has no torques")
    motions = [prepare(run, estimate.signals) for run in recording.runs]
    speed = np.max([np.abs(m.v).max(axis=0) for m in motions], axis=0)
    kinds = Candidates(base.robot, estimate.parameters, stribeck * np.maximum(speed, _STANDSTILL), ripple)
    factors, count = _factors(estimate, kinds, motions)
    if rows is not None:
        count *= rows / count.sum()
    search = _Search(factors, base.count, kinds.names(base.channels), count)
    candidates = search.tested()
    effects: list[Effect] = []
    while len(effects) < most:
        found = search.tested() if effects else candidates
        best = next((e for e in found if e.p_value < level and e.share >= least_share), None)
        if best is None:
            break
        effects.append(best)
        search.include(best)
    return MissingEffects(search.fitted(effects), candidates, level, least_share)


def _factors(estimate: Estimate, candidates: Candidates, motions: list[Motion]) -> tuple[list[Array], Array]:
    """Triangular factor of the whitened [W C y] a channel, and the number of independent rows of each."""
    base = estimate.base
    factors: list[Array | None] = [None] * len(base.channels)
    count = np.zeros(len(base.channels))
    for motion in motions:
        extra = candidates.decimated(motion, base.channels)
        step = int(np.prod(motion.decimate))
        for block in motion_blocks(base, motion, estimate.signals):
            k = block.channel
            rows = np.column_stack([block.W, extra[k][block.index // step], block.y]) / estimate.noise[k]
            before = factors[k]
            factors[k] = fold(rows if before is None else np.vstack([before, rows]))
            share = independent_share() if step > 1 else 1.0
            count[k] += share * len(rows)
    empty = [c for c, f in zip(base.channels, factors, strict=True) if f is None]
    if empty:
        raise DataError(f"joint '{empty[0]}' never moves faster than min_velocity in this recording")
    return [f for f in factors if f is not None], count


class _Search:
    """Candidates beside a model that grows: one triangular factor of [W C_1 ... C_n y] holds all that is asked."""

    def __init__(self, factors: list[Array], b: int, names: list[tuple[str, str]], rows: Array) -> None:
        own = (len(names) - 1) // len(factors)
        self._channels = []
        for k, factor in enumerate(factors):
            wide = np.zeros((len(factor), b + len(names) + 1))
            wide[:, :b], wide[:, -2:] = factor[:, :b], factor[:, -2:]
            wide[:, b + k * own : b + (k + 1) * own] = factor[:, b:-2]
            self._channels.append(wide)
        self._names = names
        self._model = list(range(b))
        self._first = b
        self._rows = rows

    def include(self, effect: Effect) -> None:
        self._model.append(self._first + self._names.index((effect.joint, effect.words)))

    def tested(self) -> tuple[Effect, ...]:
        """All candidates that are not in the model yet, each beside it, the most telling first."""
        self._weigh()
        whole = fold(np.vstack(self._channels))
        sizes = np.linalg.norm(whole, axis=0)
        Q, R = scipy.linalg.qr(whole[:, self._model] / np.maximum(sizes[self._model], _TINY), mode="economic")
        if np.abs(np.diag(R)).min() <= _RANK:
            raise DynidError("this recording does not show all base parameters: search in a richer motion")
        rest = whole - Q @ (Q.T @ whole)
        rest -= Q @ (Q.T @ rest)
        left = np.linalg.norm(rest, axis=0)
        new = [j for j in range(self._first, len(left) - 1) if j not in self._model and left[j] > _NEW * sizes[j]]
        if not new:
            return ()
        y = rest[:, -1]
        power = float(y @ y)
        freedom = float(self._rows.sum()) - len(self._model) - 1
        gamma = rest[:, new].T @ y / left[new] ** 2
        explained = np.minimum((gamma * left[new]) ** 2, power)
        tails = [f_ratio(float(e), 1, power - float(e), freedom) for e in explained]
        p_values = corrected([p for _, _, p in tails])
        on_model = scipy.linalg.solve_triangular(R, Q.T @ whole[:, [*new, -1]]) / sizes[self._model][:, None]
        effects = []
        for i, j in enumerate(new):
            joint, words = self._names[j - self._first]
            rows = np.vstack([part for part in self._channels if part[:, j].any()])
            before = rows[:, -1] - rows[:, self._model] @ on_model[:, -1]
            own = rows[:, j] - rows[:, self._model] @ on_model[:, i]
            share = 1.0 - float(np.sum((before - gamma[i] * own) ** 2) / np.sum(before**2))
            sigma = float(np.sqrt((power - explained[i]) / freedom) / left[j])
            effects.append(Effect(joint, words, float(gamma[i]), sigma, share, tails[i][0], float(p_values[i])))
        return tuple(sorted(effects, key=lambda e: -e.statistic))

    def fitted(self, effects: list[Effect]) -> tuple[Effect, ...]:
        """The effects in the model with coefficients and deviations of one fit of all, each channel by its noise."""
        if not effects:
            return ()
        self._weigh()
        whole = fold(np.vstack(self._channels))
        sizes = np.maximum(np.linalg.norm(whole[:, self._model], axis=0), _TINY)
        Q, R = scipy.linalg.qr(whole[:, self._model] / sizes, mode="economic")
        inverse = scipy.linalg.solve_triangular(R, np.eye(len(R))) / sizes[:, None]
        value, sigma = inverse @ (Q.T @ whole[:, -1]), np.linalg.norm(inverse, axis=1)
        last = slice(-len(effects), None)
        return tuple(
            replace(e, coefficient=float(c), std=float(s))
            for e, c, s in zip(effects, value[last], sigma[last], strict=True)
        )

    def _weigh(self) -> None:
        """Divide each channel's rows by its noise beside the present model: what was found is no longer noise."""
        whole = fold(np.vstack(self._channels))
        sizes = np.maximum(np.linalg.norm(whole[:, self._model], axis=0), _TINY)
        beta = np.linalg.lstsq(whole[:, self._model] / sizes, whole[:, -1], rcond=None)[0] / sizes
        for k, rows in enumerate(self._channels):
            noise = np.linalg.norm(rows[:, -1] - rows[:, self._model] @ beta)
            floor = _RANK * np.linalg.norm(rows[:, -1])
            self._channels[k] = rows * (np.sqrt(self._rows[k]) / max(float(noise), float(floor), _TINY))
