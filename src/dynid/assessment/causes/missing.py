"""Search for effects that are missing from the model: candidate columns tested against the residual torques.

With the residual c of a candidate column and y of the torques on the model, in rows over their noise:

    gamma = c . y / c . c,    F = gamma^2 c . c / ((y . y - gamma^2 c . c) / (n - b - 1)) ~ F(1, n - b - 1)

Sources: Seber and Lee, Linear Regression Analysis (2003), for partial F tests and forward selection; Holm, A Simple
Sequentially Rejective Multiple Test Procedure (1979).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.assessment.causes.candidates import TORQUE_DELAY, Candidate, Candidates, EffectCode
from dynid.assessment.given import check_observation
from dynid.errors import DynidError, InvalidValue, Mismatch, MissingData, NotIdentifiable
from dynid.hypothesis import corrected, f_ratio, probability
from dynid.identification.estimate import Estimate
from dynid.identification.observation import Observation, fold
from dynid.identification.row_stream import motion_blocks
from dynid.identification.stops import without_stops
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.results import Column, Result, Table, View, about, decimals, of_each
from dynid.signals.noise_color import independent_share
from dynid.signals.settings import Motion, prepare

__all__ = ["Effect", "MissingEffects", "missing_effects"]

Array = NDArray[np.float64]

# A candidate whose residual on the model is less than this share of it is a column of the model, up to rounding.
_NEW = 1e-6
_STANDSTILL = 1e-6
_RANK = 1e-12
_TINY = 1e-300


@dataclass(frozen=True)
class Effect(Result):
    """A candidate effect, and how much of the residual it explains."""

    code: EffectCode = field(metadata=about("Stable code of the kind of effect."))
    joint: str = field(metadata=about('Joint on which it acts; "all joints" for a delay of the torques.'))
    words: str = field(metadata=about("The effect in words."))
    coefficient: float = field(
        metadata=about(
            "Coefficient (SI units) and its standard deviation; for effects that were found, from one fit with "
            "all of them."
        )
    )
    std: float = field(
        metadata=about(
            "Coefficient (SI units) and its standard deviation; for effects that were found, from one fit with "
            "all of them."
        )
    )
    share: float = field(metadata=about("Share of the joint's residual power that the effect explains."))
    statistic: float = field(metadata=about("Partial F statistic."))
    p_value: float = field(metadata=about("p-value, corrected by Holm for all candidates tested together."))

    def __str__(self) -> str:
        """Return the effect in one line."""
        return (
            f"{self.joint}: {self.words} is missing (explains {100 * self.share:.0f} % of the residual; "
            f"{self.coefficient:.4g} +- {self.std:.2g})"
        )


@dataclass(frozen=True, eq=False)
class MissingEffects(Result):
    """Effects that are missing from a model."""

    views = MappingProxyType({"verdict": View("verdict", exact=True), "advice": View("advice", exact=True)})
    tables = (
        Table(
            "missing effects",
            "effect",
            (
                Column(
                    lambda m: [True] * len(m.effects) + [False] * len(m.candidates),
                    "missing",
                    "missing",
                    decimals,
                    bool,
                ),
                *of_each(
                    "_all",
                    code=str,
                    joint=str,
                    words=str,
                    coefficient=float,
                    std=float,
                    share=float,
                    statistic=float,
                    p_value=float,
                ),
            ),
        ),
    )

    effects: tuple[Effect, ...] = field(
        metadata=about(
            "Missing effects. Each was found beside those before it, so that one effect does not appear twice "
            "under the names of similar ones."
        )
    )
    candidates: tuple[Effect, ...] = field(
        metadata=about("All candidates, each tested alone, the largest statistic first.")
    )
    level: float = field(metadata=about("Significance level."))
    least_share: float = field(metadata=about("Smallest share of the residual that a missing effect explains."))

    @property
    def _all(self) -> tuple[Effect, ...]:
        return (*self.effects, *self.candidates)

    @property
    def verdict(self) -> str:
        """The result in one line."""
        if not self.effects:
            return f"none of {len(self.candidates)} candidate effects is missing"
        count = "one effect is" if len(self.effects) == 1 else f"{len(self.effects)} effects are"
        return f"{count} missing, first of all in {self.effects[0].joint}: {self.effects[0].words}"

    @property
    def advice(self) -> str:
        """Recommended next step."""
        if not self.effects:
            return "if the residual is still autocorrelated, look beyond the drives: elasticity, kinematics, cables"
        if self.effects[0].code == TORQUE_DELAY:
            return "set the delay of the signals, identify again, and repeat the search"
        return (
            "add the first one to the robot (with_drives, with_effects, with_terms), identify again, repeat the search"
        )

    def summary(self) -> str:
        """Return the missing effects as text, in the order in which they were found."""
        lines = [
            "missing effects (partial F tests)",
            "  null:      the model explains the torques up to noise",
            f"  verdict:   {self.verdict}",
            f"  advice:    {self.advice}",
        ]
        if self.effects:
            lines.append(f"  found, with p-values corrected (holm), significance level {self.level:g}:")
            lines += [f"    {i}. {e}, p-value {probability(e.p_value)}" for i, e in enumerate(self.effects, 1)]
        return "\n".join(lines)


def missing_effects(
    estimate: Estimate,
    recording: Recording | Observation,
    *,
    level: float = 0.05,
    least_share: float = 0.02,
    ripple: Sequence[float] = (),
    stribeck: float = 0.05,
    rows: float | None = None,
    max_effects: int = 10,
) -> MissingEffects:
    """Search a recording for effects that are missing from the model of an estimate.

    Candidates are computed from the cleaned states at full rate and decimated with the torques, as the regressor is.
    The base parameters are fitted again beside each of them. A candidate is a missing effect if it is significant
    among all candidates and explains enough of the residual of its joint.

    Parameters
    ----------
    estimate : Estimate
        Estimate whose model is tested.
    recording : Recording or Observation
        Recording with joint torques, or an observation of it that keeps its cleaned runs.
    level : float
        Significance level.
    least_share : float
        Smallest share of the joint's residual power that a missing effect explains.
    ripple : sequence of float
        Torque ripples to test, as periods per revolution of the joint.
    stribeck : float
        Velocity of the Stribeck friction, as a share of the joint's highest velocity.
    rows : float, optional
        Number of independent rows; by default all rows, or 85 % of decimated rows. Give fewer if the residual is
        autocorrelated even with the effects that were found.
    max_effects : int
        Largest number of missing effects.

    Returns
    -------
    MissingEffects

    Raises
    ------
    DataError
        If a run has no torques, a joint does not move, or the recording does not belong to the robot.
    """
    base = estimate.base
    if not 0 < level < 1 or not 0 <= least_share < 1 or stribeck <= 0:
        raise InvalidValue("level and least_share must lie between 0 and 1, and stribeck must be positive", "level")
    motions = _motions(estimate, recording)
    fastest = np.max([np.abs(m.v).max(axis=0) for m in motions], axis=0)
    kinds = Candidates(base.robot, estimate.parameters, stribeck * np.maximum(fastest, _STANDSTILL), ripple)
    factors, count = _factors(estimate, kinds, motions)
    if rows is not None:
        count *= rows / count.sum()
    search = _Search(factors, base.count, kinds.listed(base.channels), count)
    candidates = search.tested()
    effects: list[Effect] = []
    while len(effects) < max_effects:
        found = search.tested() if effects else candidates
        best = next((e for e in found if e.p_value < level and e.share >= least_share), None)
        if best is None:
            break
        effects.append(best)
        search.include(best)
    return MissingEffects(search.fitted(effects), candidates, level, least_share)


def _motions(estimate: Estimate, recording: Recording | Observation) -> Sequence[Motion]:
    """The cleaned runs of a recording, or those that an observation keeps."""
    robot = estimate.base.robot
    runs: Sequence[Motion | Run] = recording.motions if isinstance(recording, Observation) else recording.runs
    if not runs:
        raise MissingData("the observation does not keep its cleaned runs: give the recording instead")
    joints = runs[0].q.shape[1]
    if joints != robot.n:
        raise Mismatch(f"the recording has {joints} joints, robot '{robot.name}' {robot.n}")
    silent = [run.name for run in runs if run.torque is None]
    if silent:
        raise MissingData(f"run '{silent[0]}' has no torques")
    if isinstance(recording, Observation):
        check_observation(estimate, recording)
        return recording.motions
    motions = [prepare(run, estimate.signals) for run in recording.runs]
    return without_stops(estimate.base, motions, estimate.signals)[0]


def _factors(estimate: Estimate, candidates: Candidates, motions: Sequence[Motion]) -> tuple[list[Array], Array]:
    """Triangular factor of the whitened [W C y] per channel, and its number of independent rows."""
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
        raise NotIdentifiable(
            f"joint '{empty[0]}' never moves faster than min_velocity in this recording", "min_velocity"
        )
    return [f for f in factors if f is not None], count


class _Search:
    """Forward selection of candidates: one triangular factor of [W C_1 ... C_n y] per channel replaces the rows."""

    def __init__(self, factors: list[Array], b: int, candidates: list[Candidate], rows: Array) -> None:
        own = (len(candidates) - 1) // len(factors)
        self._channels = []
        for k, factor in enumerate(factors):
            wide = np.zeros((len(factor), b + len(candidates) + 1))
            wide[:, :b], wide[:, -2:] = factor[:, :b], factor[:, -2:]
            wide[:, b + k * own : b + (k + 1) * own] = factor[:, b:-2]
            self._channels.append(wide)
        self._candidates = candidates
        self._model = list(range(b))
        self._first = b
        self._rows = rows

    def include(self, effect: Effect) -> None:
        """Add an effect to the model."""
        candidate = Candidate(effect.code, effect.joint, effect.words)
        self._model.append(self._first + self._candidates.index(candidate))

    def tested(self) -> tuple[Effect, ...]:
        """All candidates that are not in the model yet, each tested beside it, the largest statistic first."""
        self._weigh()
        whole = fold(np.vstack(self._channels))
        sizes = np.linalg.norm(whole, axis=0)
        Q, R = scipy.linalg.qr(whole[:, self._model] / np.maximum(sizes[self._model], _TINY), mode="economic")
        if np.abs(np.diag(R)).min() <= _RANK:
            raise DynidError(
                "this recording does not excite all base parameters: use a richer motion", code="not_identifiable"
            )
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
            one = self._candidates[j - self._first]
            rows = np.vstack([part for part in self._channels if part[:, j].any()])
            before = rows[:, -1] - rows[:, self._model] @ on_model[:, -1]
            own = rows[:, j] - rows[:, self._model] @ on_model[:, i]
            share = 1.0 - float(np.sum((before - gamma[i] * own) ** 2) / np.sum(before**2))
            sigma = float(np.sqrt((power - explained[i]) / freedom) / left[j])
            figures = float(gamma[i]), sigma, share, tails[i][0], float(p_values[i])
            effects.append(Effect(one.code, one.joint, one.words, *figures))
        return tuple(sorted(effects, key=lambda e: -e.statistic))

    def fitted(self, effects: list[Effect]) -> tuple[Effect, ...]:
        """The effects in the model, with coefficients and standard deviations from one weighted fit of all of them."""
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
        """Divide the rows of each channel by its residual noise with the present model."""
        whole = fold(np.vstack(self._channels))
        sizes = np.linalg.norm(whole[:, self._model], axis=0)
        sizes = np.where(sizes > 0, sizes, 1.0)
        beta = np.linalg.lstsq(whole[:, self._model] / sizes, whole[:, -1], rcond=None)[0] / sizes
        for k, rows in enumerate(self._channels):
            noise = np.linalg.norm(rows[:, -1] - rows[:, self._model] @ beta)
            floor = _RANK * np.linalg.norm(rows[:, -1])
            self._channels[k] = rows * (np.sqrt(self._rows[k]) / max(float(noise), float(floor), _TINY))
