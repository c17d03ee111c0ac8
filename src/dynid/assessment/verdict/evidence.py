"""Data of an assessment: the estimate, its recordings, and everything that several checks share, computed once."""

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
    """Base parameters (b,) fitted to the unseen motion, and how much smaller their errors are.

    `errors` (channel,) are the rms errors of the estimate, `left` those of the new parameters. `statistic` is the
    squared Mahalanobis distance between the two, chi2 with `freedom` if both recordings have the same parameters.
    """

    beta: Array
    errors: Array
    left: Array
    statistic: float
    freedom: int


@dataclass(frozen=True, eq=False)
class Evidence:
    """An estimate with the recordings it was identified from and is assessed by, as far as they are given.

    `given` is a validation without its recording. `observation` and `unseen_observation` are the cleaned rows of
    `recording` and `unseen` where they were computed before; otherwise they are computed here, once.
    """

    estimate: Estimate
    given: Validation | None = None
    recording: Recording | None = None
    observation: Observation | None = None
    unseen: Recording | None = None
    unseen_observation: Observation | None = None
    findings: tuple[Finding, ...] | None = None
    diagnosis: Diagnosis | None = None

    @property
    def finite(self) -> bool:
        """Whether the parameters are finite; methods that abort early have none."""
        return all(bool(np.all(np.isfinite(x))) for x in (self.estimate.beta, self.estimate.noise, self.estimate.rms))

    @cached_property
    def motions(self) -> tuple[Motion, ...]:
        """Cleaned runs of the fitted recording; () where they are not known."""
        if self.observation is not None and self.observation.motions:
            return self.observation.motions
        return self._cleaned(self.recording)

    @cached_property
    def fitted(self) -> Observation | None:
        """Rows that the estimate was identified from."""
        if self.observation is not None and (self.observation.motions or self.recording is None):
            return self.observation
        return self._observed(self.motions)

    @cached_property
    def held_out(self) -> Observation | None:
        """Rows of the unseen motion; None where they are too few to fit parameters."""
        if self.unseen_observation is not None:
            return self.unseen_observation
        try:
            return self._observed(self._unseen_motions)
        except DataError:
            return None

    @cached_property
    def validation(self) -> Validation | None:
        """Errors on unseen motion."""
        return self.given if self.given is not None else self.validated(self.estimate)

    @cached_property
    def fit_validation(self) -> Validation | None:
        """Errors on the fitted motion; None where it is not known."""
        return _validation(self.estimate, self.fitted) if self.fitted is not None and self.motions else None

    def validated(self, estimate: Estimate) -> Validation | None:
        """Errors of an estimate on the unseen motion, from the rows at hand if they suit it; None without motion."""
        seen = self.held_out
        suits = estimate.base.names == self.estimate.base.names and estimate.signals == self.estimate.signals
        if seen is not None and seen.motions and suits:
            return _validation(estimate, seen)
        return None if self.unseen is None else estimate.validate(self.unseen)

    @cached_property
    def _unseen_motions(self) -> tuple[Motion, ...]:
        """Cleaned runs of the unseen motion."""
        return self._cleaned(self.unseen)

    def _cleaned(self, recording: Recording | None) -> tuple[Motion, ...]:
        """Cleaned runs of a recording; () without one."""
        if recording is None:
            return ()
        for run in recording.runs:
            check_run(self.estimate.robot, run, self.estimate.base.channels)
        return tuple(prepare(run, self.estimate.signals) for run in recording.runs)

    def _observed(self, motions: tuple[Motion, ...]) -> Observation | None:
        """Rows of cleaned runs; None without runs."""
        return observe_motions(self.estimate.base, motions, self.estimate.signals) if motions else None

    @cached_property
    def noise(self) -> Array:
        """Standard deviation of the rows per channel (channel,)."""
        return np.maximum(self.estimate.noise, 1e-12 * max(float(np.max(self.estimate.noise, initial=0.0)), 1e-300))

    @cached_property
    def information(self) -> Array | None:
        """Information matrix (b, b) of the fitted rows; None where it is not known."""
        if self.fitted is not None:
            factor = self.fitted.stacked(1.0 / self.noise)[:, :-1]
            return np.asarray(factor.T @ factor)
        try:
            return np.asarray(np.linalg.inv(self.estimate.covariance))
        except np.linalg.LinAlgError:
            return None

    @property
    def condition(self) -> float:
        """Condition number of the fitted regressor: that of the estimate."""
        return self.estimate.condition_number

    @cached_property
    def covariance(self) -> Array | None:
        """Covariance (b, b) of the base parameters from the data alone, without the effect of constraints."""
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
    def std(self) -> Array:
        """Standard deviations (b,) of the base parameters from the data alone."""
        return self.estimate.std if self.covariance is None else np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @cached_property
    def weakest(self) -> tuple[str, ...]:
        """Names of the base parameters, the one with the strongest correlation to the others first."""
        if self.information is None or self.covariance is None:
            return ()
        own = np.diag(self.information) * np.diag(self.covariance)
        return tuple(self.estimate.base.names[i] for i in np.argsort(-own))

    @property
    def raw_step(self) -> float:
        """Sampling period (s) of the fitted recording."""
        if self.recording is None:
            return float(np.median([1.0 / m.rate for m in self.motions]))
        return float(np.median([run.step for run in self.recording.runs]))

    @cached_property
    def fastest(self) -> tuple[Array, Array] | None:
        """Largest velocities and accelerations (joint,) of the fitted recording."""
        if not self.motions:
            return None
        return (
            np.max([np.abs(m.v).max(axis=0) for m in self.motions], axis=0),
            np.max([np.abs(m.a).max(axis=0) for m in self.motions], axis=0),
        )

    @cached_property
    def refit(self) -> Refit | None:
        """Base parameters fitted to the unseen motion; those that it does not excite are taken from the estimate."""
        if self.held_out is None or self.information is None:
            return None
        beta, seen = self.estimate.beta, self.held_out
        factor = seen.stacked(1.0 / self.noise)
        R, e = factor[:, :-1], factor[:, -1] - factor[:, :-1] @ beta
        size = np.maximum(np.linalg.norm(R, axis=0), 1e-300)
        step, _, rank, _ = np.linalg.lstsq(R / size, e, rcond=1e-6)
        change = step / size
        left = seen.residual_norms(beta + change)
        # The covariance of the difference is the sum of both, in the directions that the unseen motion excites.
        own = R.T @ R
        both = own + self.information
        unit = 1.0 / np.sqrt(np.maximum(np.diag(both), 1e-300))
        inverse = np.linalg.pinv(both * np.outer(unit, unit), rcond=1e-12, hermitian=True) * np.outer(unit, unit)
        statistic = float(change @ own @ inverse @ self.information @ change)
        root = np.sqrt(np.maximum(seen.rows, 1))
        return Refit(beta + change, seen.residual_norms(beta) / root, left / root, statistic, int(rank))

    @cached_property
    def missing(self) -> MissingEffects | None:
        """Effects that are missing from the model; None where they cannot be searched for."""
        if self.diagnosis is not None and self.diagnosis.missing is not None:
            return self.diagnosis.missing
        if not self.motions or any(m.torque is None for m in self.motions):
            return None
        if set(self.estimate.base.channels) - set(self.estimate.robot.coordinates):
            return None
        try:
            assert self.fitted is not None
            return missing_effects(self.estimate, self.fitted)
        except DynidError:
            return None

    @cached_property
    def tested(self) -> Diagnosis | None:
        """Tests of the residual and the drive terms: those that were given, or all that need no controller."""
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


def _validation(estimate: Estimate, seen: Observation) -> Validation:
    """Errors of an estimate on the rows of an observation that keeps its motions."""
    time = np.cumsum([0.0, *(m.t[-1] - m.t[0] for m in seen.motions)])
    clock = np.concatenate([m.t - m.t[0] + t for m, t in zip(seen.motions, time, strict=False)])
    parts: list[list[tuple[Array, Array, Array]]] = [[] for _ in estimate.base.channels]
    for block in seen.blocks():
        parts[block.channel].append((block.y, block.W @ estimate.beta, clock[block.index]))
    empty = [c for c, part in zip(estimate.base.channels, parts, strict=True) if not part]
    if empty:
        raise DataError(f"joint '{empty[0]}' never moves faster than min_velocity in this recording")
    joined = ([np.concatenate(x) for x in zip(*part, strict=True)] for part in parts)
    return validation_of(estimate.robot, estimate.base.channels, *zip(*joined, strict=True))
