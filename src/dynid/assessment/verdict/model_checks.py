"""Checks of the model itself: did the method end, can such bodies be, does it move as a machine does."""

from __future__ import annotations

from dynid.assessment.model.physical import mass_matrices
from dynid.assessment.verdict.assessment import Check
from dynid.assessment.verdict.evidence import Evidence
from dynid.assessment.verdict.grade import graded, unchecked
from dynid.errors import DynidError
from dynid.feasibility.sets import feasible_set

__all__ = ["check_motion", "check_possible", "check_solver"]

_POSES = 500
_ROUNDING = 1e-6


def check_solver(evidence: Evidence) -> Check:
    """Whether the method came to its end."""
    estimate = evidence.estimate
    words = f"method '{estimate.method}': {estimate.status}"
    if estimate.converged:
        return Check("solver", "passed", words)
    return Check("solver", "failed", words, advice="change the start or the options of the method, or use another one")


def check_possible(evidence: Evidence) -> Check:
    """Whether bodies and drives with these values can exist."""
    estimate, name = evidence.estimate, "physically possible"
    if estimate.standard is not None:
        # Values that a constraint holds lie on it, up to what the solver leaves.
        wrong = feasible_set(estimate.robot).violations(estimate.standard, _ROUNDING)
        if not wrong:
            return Check(name, "passed", "every body and drive of the estimate can exist", 0, 0, 0, "impossible parts")
        words = f"no such robot can exist, against {'; '.join(wrong[:3])}"
        return graded(name, len(wrong), 0, 0, "impossible parts", words, "use method 'feasible'")
    try:
        verdict = estimate.feasibility()
    except DynidError as error:
        return unchecked(name, str(error))
    if verdict.answer == "feasible":
        return Check(name, "passed", "a robot with these base parameters can exist", 0, 0, 0, "impossible parts")
    if verdict.answer != "infeasible":
        return Check(name, "warned", "whether a robot with these base parameters can exist is undecided")
    return Check(
        name,
        "warned",
        f"no robot has these base parameters, against {'; '.join(verdict.reasons[:3]) or 'the bodies together'}",
        float(max(len(verdict.reasons), 1)),
        0,
        None,
        "impossible parts",
        "use method 'feasible'; if its errors are clearly larger, gains or signs of the torques are wrong",
    )


def check_motion(evidence: Evidence) -> Check:
    """Whether the mass matrix is positive definite wherever the robot can be."""
    estimate, name = evidence.estimate, "moves as a machine does"
    if set(estimate.base.channels) - set(estimate.robot.coordinates):
        return unchecked(name, "the mass matrix of a robot on a moving base is not judged")
    found = mass_matrices(estimate.robot, estimate.parameters, poses=_POSES)
    bad = 1.0 - found.ratio
    words = (
        f"the mass matrix is positive definite at {found.poses} of {found.poses} random poses"
        if bad == 0
        else f"the mass matrix is not positive definite at {found.poses - found.positive} of {found.poses} random "
        "poses: the model cannot be simulated"
    )
    return graded(name, bad, 0.0, 0.0, "of the poses", words, "use method 'feasible'")
