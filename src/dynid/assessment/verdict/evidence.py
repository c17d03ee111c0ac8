"""Data of an assessment: the estimate, its recordings, and everything that several checks share, computed once."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.assessment.causes.cause import Cause, Causes
from dynid.assessment.causes.cause_search import find_causes
from dynid.assessment.causes.diagnosis import Diagnosis
from dynid.assessment.causes.missing import MissingEffects, missing_effects
from dynid.assessment.causes.nested import terms_needed
from dynid.assessment.causes.residuals import residual_tests
from dynid.assessment.data.channels import POSITION_RESOLUTION
from dynid.assessment.data.computed import TORQUE_COMPUTED
from dynid.assessment.data.limits import POSITION_UNIT
from dynid.assessment.data.order import JOINT_ORDER, TORQUE_ORDER
from dynid.assessment.data.spikes import TORQUE_SPIKES
from dynid.assessment.data.torque import FRICTION_SIGN, TORQUE_SIGN, TORQUE_UNSIGNED
from dynid.assessment.data.zeros import POSITION_ZERO
from dynid.assessment.finding import Finding
from dynid.assessment.model.horizon import SimulationError
from dynid.assessment.model.horizon_simulation import simulation_error_of_motions
from dynid.assessment.verdict.torques import Torques, states_within, torques_of, torques_of_fit
from dynid.errors import DataError, DynidError, NotIdentifiable
from dynid.hypothesis import HypothesisTest
from dynid.identification.estimate import Estimate
from dynid.identification.loads import check_run
from dynid.identification.observation import Observation
from dynid.identification.observing import observe_motions
from dynid.identification.stops import without_stops
from dynid.identification.validation import repeated_motion
from dynid.identification.validation_errors import Validation, validation_of
from dynid.recording.recording import Recording
from dynid.signals.fingerprint import fingerprint
from dynid.signals.repetition import repeated_share
from dynid.signals.settings import Motion, prepare

__all__ = ["Evidence", "Refit"]

Array = NDArray[np.float64]

# Findings that spoil a joint: torques that are wrong, or positions whose accelerations are noise. Findings on torques
# that no drive made, and on joints that are not those of the robot.
_SPOILED = frozenset(
    {
        TORQUE_SIGN,
        TORQUE_UNSIGNED,
        FRICTION_SIGN,
        TORQUE_SPIKES,
        TORQUE_COMPUTED,
        POSITION_RESOLUTION,
    }
)
_OTHER_JOINTS = frozenset({POSITION_ZERO, POSITION_UNIT, JOINT_ORDER, TORQUE_ORDER})


@dataclass(frozen=True, eq=False)
class Refit:
    """Base parameters (b,) fitted to the unseen motion, and how much smaller their errors are.

    `errors` (channel,) are the rms errors of the estimate, `left` those of the new parameters, with the degrees of
    freedom that the fit takes. `p_value` is that of the hypothesis that both recordings have the same parameters.
    """

    beta: Array
    errors: Array
    left: Array
    p_value: float


@dataclass(frozen=True, eq=False)
class Evidence:
    """An estimate with the recordings it was identified from and is assessed by, as far as they are given.

    `given` is a validation without its recording, or, with `unseen`, one of a data set of which that is a part.
    `recording` may be a part of a data set, too. `observation` and `unseen_observation` are the cleaned rows of
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
        """Rows of the fitted motion in the model of the estimate: the same whether they were computed before or not."""
        return self._observed(self.motions) if self.motions else self.observation

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

    @cached_property
    def simulation(self) -> SimulationError | None:
        """Errors of simulated unseen motion by horizon; None without unseen motion."""
        motions = self.held_out_motions
        return simulation_error_of_motions(self.estimate, motions) if motions else None

    @property
    def held_out_motions(self) -> tuple[Motion, ...]:
        """Cleaned runs of the unseen motion, from the rows at hand if they keep them; () without any."""
        seen = self.held_out
        return seen.motions if seen is not None and seen.motions else self._unseen_motions

    def _cleaned(self, recording: Recording | None) -> tuple[Motion, ...]:
        """Cleaned runs of a recording; () without one."""
        if recording is None:
            return ()
        for run in recording.runs:
            check_run(self.estimate.robot, run, self.estimate.base.channels)
        signals = self.estimate.signals
        motions, _ = without_stops(self.estimate.base, [prepare(run, signals) for run in recording.runs], signals)
        return tuple(motions)

    def _observed(self, motions: tuple[Motion, ...]) -> Observation | None:
        """Rows of cleaned runs; None without runs."""
        return observe_motions(self.estimate.base, motions, self.estimate.signals) if motions else None

    @cached_property
    def noise(self) -> Array:
        """Standard deviation of the rows per channel (channel,)."""
        return np.maximum(self.estimate.noise, 1e-12 * max(float(np.max(self.estimate.noise, initial=0.0)), 1e-300))

    @cached_property
    def torques(self) -> Torques:
        """How large the errors and torques of unseen motion are; those of the fit where none was given."""
        estimate, found = self.estimate, self.validation
        if found is None:
            with np.errstate(divide="ignore", invalid="ignore"):
                size = np.where(estimate.relative_error > 0, estimate.rms / estimate.relative_error, np.inf)
            return torques_of_fit(estimate.robot, estimate.base.channels, estimate.rms, size)
        return torques_of(estimate.robot, found)

    @cached_property
    def range_std(self) -> Array | None:
        """Standard deviation of predicted torques at random states within the joint limits; None where unknown.

        It is a share of the torques that count (channel,). The motion of a floating base has no limits.
        """
        estimate = self.estimate
        if estimate.robot.base == "floating":
            return None
        W = estimate.base.regressor(*states_within(estimate.robot, self.fastest))
        return self._torque_std(W.transpose(1, 0, 2), np.full(W.shape[1], len(W)))

    @cached_property
    def motion_std(self) -> Array | None:
        """Standard deviation of predicted torques along the unseen motion, or else the fitted one; None where unknown.

        It is a share of the torques that count (channel,).
        """
        seen = self.held_out or self.fitted
        return None if seen is None else self._torque_std([f[:, :-1] for f in seen.factors], np.array(seen.rows))

    def _torque_std(self, rows: Iterable[Array], count: NDArray[np.int64]) -> Array | None:
        """Root mean square of the standard deviation of torques, from regressor rows or their factor per channel."""
        known = np.isfinite(np.diag(self.estimate.covariance))
        C = self.estimate.covariance[np.ix_(known, known)]
        if not np.all(np.isfinite(C)):
            return None
        parts = list(rows)
        variance = np.array([np.einsum("ni,ij,nj", W[:, known], C, W[:, known]) for W in parts])
        size = np.sqrt(np.array([np.sum((W @ self.estimate.beta) ** 2) for W in parts]) / np.maximum(count, 1))
        size = np.maximum(size, self.torques.floor)
        std = np.sqrt(np.maximum(variance, 0.0) / np.maximum(count, 1))
        return np.asarray(std / np.where(size > 0, size, np.inf))

    @cached_property
    def weakest(self) -> tuple[str, ...]:
        """Names of the base parameters, the one with the largest standard deviation for its size first."""
        estimate = self.estimate
        size = np.maximum(np.abs(estimate.beta), 1e-300)
        return tuple(estimate.base.names[i] for i in np.argsort(-estimate.std / size))

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
        seen, estimate = self.held_out, self.estimate
        if seen is None:
            return None
        # Rows that are correlated are worth fewer independent ones: their noise counts for more.
        rows = np.maximum(np.array(seen.rows, dtype=float), 1.0)
        worth = np.ones(len(rows))
        if estimate.independent_rows:
            worth = np.clip(np.array(estimate.independent_rows) / np.maximum(estimate.rows, 1), 1e-3, 1.0)
        factor = seen.stacked(1.0 / self.noise)
        R, e = factor[:, :-1], factor[:, -1] - factor[:, :-1] @ estimate.beta
        length = np.linalg.norm(R, axis=0)
        size = np.where(length > 0, length, 1.0)
        solved = np.linalg.lstsq(R / size, e, rcond=1e-6)
        change, rank = solved[0] / size, int(solved[2])
        independent = float(worth @ rows)
        freedom = max(independent - rank, 1.0)
        left = seen.residual_norms(estimate.beta + change) / np.sqrt(rows)
        left *= np.sqrt(independent / freedom) if independent > 2 * rank else 1.0
        # The difference of both estimates has the sum of their covariances, in the directions that this motion excites.
        noise = np.maximum(left, 1e-12 * np.maximum(np.linalg.norm(seen.torque_norms()), 1e-300))
        R = seen.stacked(np.sqrt(worth) / noise)[:, :-1]
        known = np.isfinite(np.diag(estimate.covariance))
        R, change_known = R[:, known], change[known]
        z = R @ change_known
        C = np.where(np.isfinite(estimate.covariance), estimate.covariance, 0.0)[np.ix_(known, known)]
        statistic = float(z @ np.linalg.solve(np.eye(len(R)) + R @ C @ R.T, z))
        p_value = float(scipy.stats.f.sf(statistic / max(rank, 1), max(rank, 1), freedom))
        return Refit(estimate.beta + change, seen.residual_norms(estimate.beta) / np.sqrt(rows), left, p_value)

    @cached_property
    def fitted_share(self) -> float:
        """Share of the motion of the fitted recording, as it was given, that the estimate was identified from."""
        known = self.estimate.fingerprint
        return 1.0 if known is None or not self.motions else repeated_share(known, self.motions)

    @cached_property
    def repeated(self) -> float:
        """Share of the unseen motion that repeats the fitted motion; NaN where one of them is not known."""
        if self.given is not None and (self.unseen is None or self.estimate.fingerprint is not None):
            return self.given.repeated
        motions = self._unseen_motions
        if not motions and self.unseen_observation is not None:
            motions = self.unseen_observation.motions
        if not motions:
            return math.nan
        fitted = self.estimate.fingerprint or (fingerprint(self.motions) if self.motions else None)
        return math.nan if fitted is None else repeated_share(fitted, motions)

    @cached_property
    def causes(self) -> Causes | None:
        """Causes of the residual on fitted and unseen motion; None where they cannot be searched for."""
        known = None if self.diagnosis is None else self.diagnosis.causes
        if self.fitted is None or not self.motions:
            return known
        # Both motions together tell more than a diagnosis of the fitted one.
        unseen = [self.held_out] if self.held_out is not None and self.held_out.motions else []
        if known is not None and not unseen:
            return known
        try:
            return find_causes(self.estimate, [self.fitted, *unseen])
        except DynidError:
            return None

    @cached_property
    def spoiled_joints(self) -> frozenset[str]:
        """Joints whose torque or position is spoiled, by the findings: what is found there follows from that."""
        told = {f.joint for f in self.findings or () if f.severity != "info" and f.code in _SPOILED}
        return frozenset(self.estimate.base.channels if "" in told else told)

    @cached_property
    def told_causes(self) -> tuple[Cause, ...]:
        """Causes that do not follow from what findings say of their joints, or of all joints where they act in all."""
        if self.causes is None or self.other_joints:
            return ()
        every = self.estimate.base.channels
        return tuple(c for c in self.causes.causes if not self.spoiled_joints.issuperset(c.joints or every))

    @cached_property
    def other_joints(self) -> bool:
        """Whether the findings say that the joints of the log are not those of the robot: causes follow from that."""
        return any(f.severity == "error" and f.code in _OTHER_JOINTS for f in self.findings or ())

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
        """Tests of the residual and the drive terms: those that were given, or all that need no controller.

        The causes are those of the verdict, whatever was given.
        """
        if self.diagnosis is not None:
            return replace(self.diagnosis, causes=self.causes)
        if self.fitted is None or not self.estimate.converged:
            return None
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
        return Diagnosis(tuple(tests), self.missing, tuple(untested), self.causes)


def _validation(estimate: Estimate, seen: Observation) -> Validation:
    """Errors of an estimate on the rows of an observation that keeps its motions."""
    time = np.cumsum([0.0, *(m.t[-1] - m.t[0] for m in seen.motions)])
    clock = np.concatenate([m.t - m.t[0] + t for m, t in zip(seen.motions, time, strict=False)])
    parts: list[list[tuple[Array, Array, Array]]] = [[] for _ in estimate.base.channels]
    for block in seen.blocks():
        parts[block.channel].append((block.y, block.W @ estimate.beta, clock[block.index]))
    if not any(parts):
        raise NotIdentifiable("no joint moves faster than min_velocity in this recording", "min_velocity")
    nothing = (np.zeros(0),) * 3
    joined = ([np.concatenate(x) for x in zip(*(part or [nothing]), strict=True)] for part in parts)
    found = validation_of(estimate.robot, estimate.base.channels, *zip(*joined, strict=True))
    return replace(found, repeated=repeated_motion(estimate, seen.motions))
