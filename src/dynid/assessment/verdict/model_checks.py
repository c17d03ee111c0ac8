"""Checks of the model itself: convergence, physical consistency, mass matrix."""

from __future__ import annotations

from dynid.assessment.model.physical import mass_matrices
from dynid.assessment.verdict.assessment import Check, CheckCode
from dynid.assessment.verdict.evidence import Evidence
from dynid.assessment.verdict.grade import graded, unchecked
from dynid.errors import DynidError
from dynid.feasibility.sets import feasible_set

__all__ = ["check_consistency", "check_evidence", "check_mass_matrix", "check_solver"]

_POSES = 500
_ROUNDING = 1e-6
# A recording is the fitted one if at least this share of its motion is in the estimate's fingerprint.
_FITTED = 0.5


def check_solver(evidence: Evidence) -> Check:
    """Check that the method converged."""
    estimate = evidence.estimate
    words = f"method '{estimate.method}': {estimate.status}"
    if estimate.converged:
        return Check(CheckCode.SOLVER, "passed", words)
    advice = "change the start or the options of the method, or use another one"
    return Check(CheckCode.SOLVER, "failed", words, advice=advice)


def check_evidence(evidence: Evidence) -> Check:
    """Check that the fitted recording and unseen motion are there: an estimate is trusted on evidence only."""
    missing = []
    if not evidence.motions or evidence.findings is None:
        missing.append("the fitted recording")
    elif evidence.fitted_share < _FITTED:
        missing.append("the fitted recording (another one was given)")
    if evidence.unseen is None and evidence.unseen_observation is None:
        missing.append("unseen motion" if evidence.given is None else "the recording of unseen motion")
    if not missing:
        words = "the fitted recording and unseen motion were given"
        return Check(CheckCode.EVIDENCE, "passed", words, 0.0, 0.0, None, "missing recordings")
    words = f"not all checks could be made: {' and '.join(missing)} {'was' if len(missing) == 1 else 'were'} not given"
    advice = f"give {' and '.join(missing)}"
    return Check(CheckCode.EVIDENCE, "warned", words, float(len(missing)), 0.0, None, "missing recordings", advice)


def check_consistency(evidence: Evidence) -> Check:
    """Check that bodies and drives with these parameters are physically consistent."""
    estimate, code, unit = evidence.estimate, CheckCode.PHYSICALLY_CONSISTENT, "violated constraints"
    if estimate.standard is not None:
        # Parameters that a constraint holds lie on it, up to the solver's tolerance.
        wrong = feasible_set(estimate.robot).violations(estimate.standard, _ROUNDING)
        if not wrong:
            return Check(
                code, "passed", "all bodies and drives of the estimate are physically consistent", 0, 0, 0, unit
            )
        words = f"the parameters are not physically consistent: {'; '.join(wrong[:3])}"
        return graded(code, len(wrong), 0, 0, unit, words, "use method 'feasible'")
    try:
        verdict = estimate.feasibility()
    except DynidError as error:
        return unchecked(code, str(error))
    if verdict.status == "feasible":
        return Check(code, "passed", "the base parameters are physically consistent", 0, 0, 0, unit)
    if verdict.status != "infeasible":
        return Check(code, "warned", "whether the base parameters are physically consistent could not be decided")
    violated = "; ".join(verdict.reasons[:3]) or "the constraints of all bodies together"
    return Check(
        code=code,
        result="warned",
        words=f"the base parameters are not physically consistent: {violated}",
        figure=float(max(len(verdict.reasons), 1)),
        limit=0,
        unit=unit,
        advice="use method 'feasible'; if its errors are clearly larger, gains or signs of the torques are wrong",
    )


def check_mass_matrix(evidence: Evidence) -> Check:
    """Check that the mass matrix is positive definite within the joint limits."""
    estimate, code = evidence.estimate, CheckCode.MASS_MATRIX
    if set(estimate.base.channels) - set(estimate.robot.coordinates):
        return unchecked(code, "the mass matrix of a robot on a moving base is not checked")
    found = mass_matrices(estimate.robot, estimate.parameters, poses=_POSES)
    bad = 1.0 - found.ratio
    words = (
        f"the mass matrix is positive definite at {found.poses} of {found.poses} random poses"
        if bad == 0
        else f"the mass matrix is not positive definite at {found.poses - found.positive} of {found.poses} random "
        "poses: the model cannot be simulated"
    )
    return graded(code, bad, 0.0, 0.0, "of the poses", words, "use method 'feasible'")
