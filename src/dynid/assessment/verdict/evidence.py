"""What a assessment looks at: the estimate, its recordings, and what is worked out of them once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.finding import Finding
from dynid.assessment.tests.diagnosis import Diagnosis
from dynid.assessment.tests.missing import MissingEffects, missing_effects
from dynid.assessment.tests.nested import terms_needed
from dynid.assessment.tests.residuals import residual_tests
from dynid.errors import DataError, DynidError
from dynid.hypothesis import HypothesisTest
from dynid.identification.estimate import Estimate
from dynid.identification.loads import check_run
from dynid.identification.observation import Observation, observe_motions
from dynid.identification.validation import Validation, validation_of
from dynid.recording.recording import Recording
from dynid.signals.settings import Motion, prepare

__all__ = ["Evidence", "Refit"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Refit:
    """What unseen motion asks for beside the estimate: base values (b,) that fit it, and how much better they do.

    `errors` (channel,) are the rms errors of the estimate, `left` those of the new values. `statistic` is the squared
    distance of the two in deviations, chi2 with `freedom` where both runs have the same parameters.
    """

    beta: Array
    errors: Array
    left: Array
    statistic: float
    freedom: int


@dataclass(frozen=True, eq=False)
class Evidence:
    """An estimate with the recordings it was found from and judged by, as far as they are given."""

    estimate: Estimate
    given: Validation | None = None
    recording: Recording | None = None
    unseen: Recording | None = None
    findings: tuple[Finding, ...] | None = None
    diagnosis: Diagnosis | None = None

    @property
    def finite(self) -> bool:
        """Whether the estimate has values at all; methods that abort early have none."""
        return all(bool(np.all(np.isfinite(x))) for x in (self.estimate.beta, self.estimate.noise, self.estimate.rms))

    @cached_property
    def motions(self) -> tuple[Motion, ...]:
        """The fitted recording, cleaned."""
        return self._cleaned(self.recording)

    @cached_property
    def fitted(self) -> Observation | None:
        """Rows that the estimate was found from."""
        return self._observed(self.motions)

    @cached_property
    def held_out(self) -> Observation | None:
        """Rows that it has not seen; None where they are too few to ask for parameters."""
        try:
            return self._observed(self._unseen_motions)
        except DataError:
            return None

    @cached_property
    def validation(self) -> Validation | None:
        """Errors on unseen motion."""
        if self.unseen is None:
            return self.given
        if self.held_out is None:
            return self.estimate.validate(self.unseen)
        time = np.cumsum([0.0, *(m.t[-1] - m.t[0] for m in self._unseen_motions)])
        clock = np.concatenate([m.t - m.t[0] + t for m, t in zip(self._unseen_motions, time, strict=False)])
        parts: list[list[tuple[Array, Array, Array]]] = [[] for _ in self.estimate.base.channels]
        for block in self.held_out.blocks():
            parts[block.channel].append((block.y, block.W @ self.estimate.beta, clock[block.index]))
        empty = [c for c, part in zip(self.estimate.base.channels, parts, strict=True) if not part]
        if empty:
            raise DataError(f"joint '{empty[0]}' never moves faster than min_velocity in this recording")
        joined = ([np.concatenate(x) for x in zip(*part, strict=True)] for part in parts)
        return validation_of(self.estimate.base.channels, *zip(*joined, strict=True))

    @cached_property
    def _unseen_motions(self) -> tuple[Motion, ...]:
        return self._cleaned(self.unseen)

    def _cleaned(self, recording: Recording | None) -> tuple[Motion, ...]:
        if recording is None:
            return ()
        for run in recording.runs:
            check_run(self.estimate.robot, run, self.estimate.base.channels)
        return tuple(prepare(run, self.estimate.signals) for run in recording.runs)

    def _observed(self, motions: tuple[Motion, ...]) -> Observation | None:
        return observe_motions(self.estimate.base, motions, self.estimate.signals) if motions else None

    @cached_property
    def noise(self) -> Array:
        """Deviation of each channel's rows (channel,)."""
        return np.maximum(self.estimate.noise, 1e-12 * max(float(np.max(self.estimate.noise, initial=0.0)), 1e-300))

    @cached_property
    def information(self) -> Array | None:
        """Information (b, b) of the rows that were fitted, over their noise; None where nothing tells it."""
        if self.fitted is not None:
            factor = self.fitted.stacked(1.0 / self.noise)[:, :-1]
            return np.asarray(factor.T @ factor)
        try:
            return np.asarray(np.linalg.inv(self.estimate.covariance))
        except np.linalg.LinAlgError:
            return None

    @cached_property
    def condition(self) -> float | None:
        """Condition number of the weighted base regressor with unit columns."""
        if self.information is None:
            return None
        size = np.sqrt(np.maximum(np.diag(self.information), 0.0))
        if not np.all(size > 0):
            return np.inf
        values = np.linalg.eigvalsh(self.information / np.outer(size, size))
        return float(np.sqrt(values[-1] / values[0])) if values[0] > 0 else np.inf

    @cached_property
    def spread(self) -> Array | None:
        """Covariance (b, b) of base values as the data alone give it, without what constraints took away."""
        if self.fitted is None:
            return self.estimate.covariance if np.all(np.isfinite(self.estimate.covariance)) else None
        factor = self.fitted.stacked(1.0 / self.noise)[:, :-1]
        size = np.linalg.norm(factor, axis=0)
        size = np.where(size > 0, size, 1.0)
        _, s, vt = np.linalg.svd(factor / size)
        s = np.concatenate([s, np.zeros(len(vt) - len(s))])
        root = vt / np.maximum(s, 1e-9 * s[0])[:, None] / size
        return np.asarray(root.T @ root)

    @cached_property
    def deviation(self) -> Array:
        """Standard deviations (b,) as the data alone give them."""
        return self.estimate.std if self.spread is None else np.sqrt(np.maximum(np.diag(self.spread), 0.0))

    @cached_property
    def weakest(self) -> tuple[str, ...]:
        """Names of base parameters in the order of how much of each the others can mimic, the most first."""
        if self.information is None or self.spread is None:
            return ()
        own = np.diag(self.information) * np.diag(self.spread)
        return tuple(self.estimate.base.names[i] for i in np.argsort(-own))

    @property
    def raw_step(self) -> float:
        """Time (s) between samples of the fitted recording."""
        assert self.recording is not None
        return float(np.median([run.step for run in self.recording.runs]))

    @cached_property
    def reach(self) -> tuple[Array, Array] | None:
        """Highest speeds and accelerations (joint,) of the fitted recording."""
        if not self.motions:
            return None
        return (
            np.max([np.abs(m.v).max(axis=0) for m in self.motions], axis=0),
            np.max([np.abs(m.a).max(axis=0) for m in self.motions], axis=0),
        )

    @cached_property
    def refit(self) -> Refit | None:
        """Base values of the unseen motion, pulled to the estimate by its own information where that motion is weak."""
        if self.held_out is None or self.information is None:
            return None
        beta, seen = self.estimate.beta, self.held_out
        factor = seen.stacked(1.0 / self.noise)
        R, e = factor[:, :-1], factor[:, -1] - factor[:, :-1] @ beta
        size = np.maximum(np.linalg.norm(R, axis=0), 1e-300)
        step, _, rank, _ = np.linalg.lstsq(R / size, e, rcond=1e-6)
        change = step / size
        left = seen.residual_norms(beta + change)
        # Both runs err: the covariance of the difference is the sum of theirs, on what the unseen motion shows.
        own = R.T @ R
        both = own + self.information
        unit = 1.0 / np.sqrt(np.maximum(np.diag(both), 1e-300))
        inverse = np.linalg.pinv(both * np.outer(unit, unit), rcond=1e-12, hermitian=True) * np.outer(unit, unit)
        statistic = float(change @ own @ inverse @ self.information @ change)
        root = np.sqrt(np.maximum(seen.rows, 1))
        return Refit(beta + change, seen.residual_norms(beta) / root, left / root, statistic, int(rank))

    @cached_property
    def missing(self) -> MissingEffects | None:
        """Effects that the fitted recording shows and the model lacks; None where they cannot be searched for."""
        if self.diagnosis is not None and self.diagnosis.missing is not None:
            return self.diagnosis.missing
        if self.recording is None or any(run.torque is None for run in self.recording.runs):
            return None
        if set(self.estimate.base.channels) - set(self.estimate.robot.coordinates):
            return None
        try:
            return missing_effects(self.estimate, self.recording)
        except DynidError:
            return None

    @cached_property
    def tested(self) -> Diagnosis | None:
        """Tests of the residual and the terms: those that were given, or all that do without the controller."""
        if self.diagnosis is not None or self.fitted is None or not self.estimate.converged:
            return self.diagnosis
        tests: list[HypothesisTest] = []
        untested: list[str] = []
        try:
            found = residual_tests(self.fitted, self.estimate.beta, self.noise)
            tests += [found.whiteness, found.normality, found.homoscedasticity]
        except DynidError as error:
            untested.append(f"residual: {error}")
        try:
            tests.append(terms_needed(self.fitted))
        except DynidError as error:
            untested.append(f"drive terms: {error}")
        return Diagnosis(tuple(tests), self.missing, tuple(untested))
