"""Judge an estimate: every check that its recordings allow, and one verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from threadpoolctl import threadpool_limits

from dynid.assessment.finding import Finding
from dynid.assessment.tests.diagnosis import Diagnosis
from dynid.assessment.verdict.assessment import Assessment, Check
from dynid.assessment.verdict.data_checks import (
    check_data,
    check_delay,
    check_excitation,
    check_feedback,
    check_residual,
    check_rows,
    check_signs,
)
from dynid.assessment.verdict.error_checks import (
    check_agreement,
    check_errors,
    check_growth,
    check_load,
    check_prior,
    check_uncertainty,
)
from dynid.assessment.verdict.evidence import Evidence
from dynid.assessment.verdict.model_checks import check_motion, check_possible, check_solver
from dynid.identification.estimate import Estimate
from dynid.identification.validation import Validation
from dynid.recording.recording import Recording

__all__ = ["CHECKS", "assess", "assess_evidence", "evidence_of"]

CHECKS: tuple[Callable[[Evidence], Check], ...] = (
    check_solver,
    check_errors,
    check_growth,
    check_agreement,
    check_load,
    check_prior,
    check_possible,
    check_motion,
    check_signs,
    check_excitation,
    check_rows,
    check_uncertainty,
    check_delay,
    check_residual,
    check_feedback,
    check_data,
)


def assess(
    estimate: Estimate,
    validation: Validation | Recording | None = None,
    *,
    recording: Recording | None = None,
    findings: Iterable[Finding] | None = None,
    diagnosis: Diagnosis | None = None,
) -> Assessment:
    """Say whether an estimate can be trusted, and why.

    `validation` is motion that it has not seen: a recording, or what `estimate.validate` gave, which leaves out the
    checks that need the motion itself. `recording` is what it was identified from; it shows delays, residuals and, by
    `dynid.check`, what is wrong with the data (`findings`, where that ran before). `diagnosis` adds tests that need the
    controller. What cannot be checked is said, and without unseen motion nothing is trusted.
    """
    return assess_evidence(evidence_of(estimate, validation, recording, findings, diagnosis))


def evidence_of(
    estimate: Estimate,
    validation: Validation | Recording | None = None,
    recording: Recording | None = None,
    findings: Iterable[Finding] | None = None,
    diagnosis: Diagnosis | None = None,
) -> Evidence:
    """All that a assessment looks at."""
    unseen = validation if isinstance(validation, Recording) else None
    given = validation if isinstance(validation, Validation) else None
    if findings is None and recording is not None:
        from dynid.assessment.data.battery import check

        both = [recording] if unseen is None else [recording, unseen]
        findings = [f for one in both for f in check(estimate.robot, one)]
    listed = None if findings is None else tuple(findings)
    return Evidence(estimate, given, recording, unseen, listed, diagnosis)


def assess_evidence(evidence: Evidence) -> Assessment:
    """The verdict on what was gathered; of an estimate without values only how its method ended."""
    with threadpool_limits(1, "blas"):
        checks = tuple(check(evidence) for check in (CHECKS if evidence.finite else (check_solver,)))
    return Assessment(evidence.estimate.robot.name, evidence.estimate.method, checks)
