"""Assess an estimate: every check that its recordings allow, and one verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dynid.assessment.causes.diagnosis import Diagnosis
from dynid.assessment.finding import Finding
from dynid.assessment.given import check_observation
from dynid.assessment.verdict.assessment import Assessment, Check
from dynid.assessment.verdict.cause_checks import (
    check_change,
    check_delay,
    check_flexibility,
    check_geometry,
    check_residual,
    check_torque_scale,
)
from dynid.assessment.verdict.data_checks import (
    check_cutoff,
    check_data,
    check_feedback,
    check_instruments,
    check_rows,
    check_signs,
    check_standstill,
)
from dynid.assessment.verdict.error_checks import (
    check_agreement,
    check_errors,
    check_excitation,
    check_growth,
    check_payload,
    check_prior,
    check_uncertainty,
    check_unseen,
)
from dynid.assessment.verdict.evidence import Evidence
from dynid.assessment.verdict.model_checks import (
    check_bodies,
    check_consistency,
    check_domain,
    check_evidence,
    check_mass_matrix,
    check_simulation,
    check_solver,
    check_unidentified_mass,
)
from dynid.identification.estimate import Estimate
from dynid.identification.observation import Observation
from dynid.identification.validation_errors import Validation
from dynid.recording.dataset import DataSet
from dynid.recording.recording import Recording
from dynid.threads import one_blas_thread

__all__ = ["CHECKS", "assess", "assess_evidence", "evidence_of", "part_of"]

# Samples of a data set that are held for checks, some of which take three kilobytes per sample of seven joints.
_SAMPLES = 100_000

CHECKS: tuple[Callable[[Evidence], Check], ...] = (
    check_solver,
    check_evidence,
    check_unseen,
    check_errors,
    check_growth,
    check_agreement,
    check_payload,
    check_prior,
    check_simulation,
    check_consistency,
    check_bodies,
    check_unidentified_mass,
    check_mass_matrix,
    check_signs,
    check_excitation,
    check_rows,
    check_uncertainty,
    check_geometry,
    check_torque_scale,
    check_flexibility,
    check_change,
    check_delay,
    check_residual,
    check_feedback,
    check_instruments,
    check_data,
    check_cutoff,
    check_standstill,
    check_domain,
)


def assess(
    estimate: Estimate,
    validation: Validation | Recording | DataSet | Observation | None = None,
    *,
    recording: Recording | DataSet | None = None,
    observation: Observation | None = None,
    findings: Iterable[Finding] | None = None,
    diagnosis: Diagnosis | None = None,
) -> Assessment:
    """Assess whether an estimate can be trusted, and why.

    Everything that was computed before can be passed on and is not computed again. Checks without the necessary data
    are reported as not checked. Without the fitted recording or unseen motion the verdict is at best "use with care".

    Parameters
    ----------
    estimate : Estimate
        Estimate to assess.
    validation : Recording, DataSet, Observation or Validation, optional
        Motion that was not used for the estimate: the recording, an observation of it with the estimate's base
        parameters and signal settings, or the result of `estimate.validate`. With the last, the checks that need the
        motion itself are left out. The errors of a data set are those of all partitions; checks that need the motion
        itself use evenly spaced chunks.
    recording : Recording or DataSet, optional
        Recording that the estimate was identified from. It is needed for the checks of data, delay and residual, which
        use evenly spaced chunks of a data set.
    observation : Observation, optional
        Observation of `recording` that the estimate was identified from; by default it is computed from `recording`.
    findings : iterable of Finding, optional
        Findings of `dynid.check` on the recordings; by default `recording`, and `validation` where it is a
        recording, are checked here.
    diagnosis : Diagnosis, optional
        Hypothesis tests of `dynid.stats.diagnose`; those with the controller are needed for the check of feedback.

    Returns
    -------
    Assessment

    Raises
    ------
    DataError
        If a recording does not fit the robot, or an observation does not belong to the estimate.

    Examples
    --------
    >>> import dynid
    >>> from dynid.cli.demo import synthetic_recording
    >>> robot = dynid.load_robot("twolink", friction="viscous+coulomb")
    >>> fitted, unseen = (synthetic_recording(robot, seed, 10.0) for seed in (0, 1))
    >>> dynid.assess(dynid.identify(robot, fitted, "feasible"), unseen, recording=fitted).verdict
    'trusted'
    """
    return assess_evidence(
        evidence_of(
            estimate, validation, recording=recording, observation=observation, findings=findings, diagnosis=diagnosis
        )
    )


def evidence_of(
    estimate: Estimate,
    validation: Validation | Recording | DataSet | Observation | None = None,
    *,
    recording: Recording | DataSet | None = None,
    observation: Observation | None = None,
    findings: Iterable[Finding] | None = None,
    diagnosis: Diagnosis | None = None,
    unseen: Recording | None = None,
) -> Evidence:
    """Collect the data of an assessment; for the parameters see `assess`.

    `unseen` is a part of the data set that a given validation was computed on.
    """
    if isinstance(validation, DataSet):
        unseen = part_of(validation)
        validation = estimate.validate(validation)
    elif isinstance(validation, Recording):
        unseen = validation
    if isinstance(recording, DataSet):
        recording = part_of(recording)
    if findings is None and recording is not None:
        from dynid.assessment.data.battery import check

        both = [recording] if unseen is None else [recording, unseen]
        ordered = estimate.signals.ordered
        findings = [f for one in both for f in check(estimate.robot, one, ordered=ordered)]
    seen = validation if isinstance(validation, Observation) else None
    return Evidence(
        estimate=estimate,
        given=validation if isinstance(validation, Validation) else None,
        recording=recording,
        observation=None if observation is None else check_observation(estimate, observation),
        unseen=unseen,
        unseen_observation=None if seen is None else check_observation(estimate, seen),
        findings=None if findings is None else tuple(findings),
        diagnosis=diagnosis,
    )


def part_of(dataset: DataSet) -> Recording:
    """Evenly spaced chunks of a data set, for the checks that need the motion itself."""
    return dataset.sample(_SAMPLES)[0]


def assess_evidence(evidence: Evidence) -> Assessment:
    """Run all checks; of an estimate without finite parameters only the check of convergence."""
    with one_blas_thread():
        checks = tuple(check(evidence) for check in (CHECKS if evidence.finite else (check_solver,)))
    return Assessment(evidence.estimate.robot.name, evidence.estimate.method, checks)
