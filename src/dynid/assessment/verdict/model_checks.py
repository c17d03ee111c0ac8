"""Checks of the model itself: convergence, physical consistency, mass matrix, domain of validity."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.model.physical import mass_matrices
from dynid.assessment.model.plausible import implausible_bodies
from dynid.assessment.verdict.assessment import Check, CheckCode
from dynid.assessment.verdict.evidence import Evidence
from dynid.assessment.verdict.grade import graded, unchecked
from dynid.errors import DynidError
from dynid.identification.bodies import total_mass
from dynid.identification.domain import friction_scale, friction_std
from dynid.identification.estimate import Estimate
from dynid.identification.loads import state
from dynid.robot.consistency import physical_violations
from dynid.signals.domain import Domain

__all__ = [
    "check_bodies",
    "check_consistency",
    "check_domain",
    "check_evidence",
    "check_mass_matrix",
    "check_simulation",
    "check_solver",
    "check_unidentified_mass",
]


Array = NDArray[np.float64]

_POSES = 500
# A recording is the fitted one if at least this share of its motion is in the estimate's fingerprint.
_FITTED = 0.5
# The limit of velocity is named where the standard deviation of torques at the robot's own limit is this much larger.
_GROWN = 2.0
# Standard deviations below this share of the torque are small, whatever they are compared with.
_SMALL = 0.03
# Unseen motion is named if it is outside of the domain in more than this share of its samples. By its definition a
# recording is outside of its own domain in one of a hundred.
_OUTSIDE = 0.05


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
        wrong = physical_violations(estimate.robot, estimate.standard)
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


def check_domain(evidence: Evidence) -> Check:
    """Say up to which velocity and load the verdict holds; that the motion was slow is no reason against the estimate.

    Named is the joint whose torque becomes the most uncertain at its velocity limit, where no recording shows its
    friction; without such a joint, the slowest one.
    """
    estimate, code = evidence.estimate, CheckCode.DOMAIN
    domain = estimate.domain
    if domain is None or not domain.joints:
        return unchecked(code, "the estimate does not hold the motion that it was identified from")
    growth, std = _at_velocity_limit(estimate, domain)
    limited = np.isfinite(domain.velocity_limit) & (domain.velocity_limit > 0)
    share = np.divide(domain.velocity, domain.velocity_limit, out=np.full(len(limited), np.inf), where=limited)
    slow = bool(np.any(growth > _GROWN))
    # Of a joint that stands still the check of standstill speaks.
    at_rest = [c for c, rows in zip(estimate.base.channels, estimate.rows, strict=True) if not rows]
    still = np.isin(domain.joints, at_rest)
    worst = int(np.argmax(growth) if slow else np.lexsort((domain.velocity, share, still))[0])
    words = f"the model holds up to {_reach(domain, worst)}"
    if limited[worst]:
        words += f", {100 * share[worst]:.0f} % of its velocity limit"
    if slow:
        unit, force = domain.units[worst], _force(domain, worst)
        words += (
            f", where unknown friction gives its torque a standard deviation of {std[worst]:.2g} {force} "
            f"until a recording at up to {domain.velocity_limit[worst]:.3g} {unit}/s shows it"
        )
    words += _unseen_outside(evidence, domain)
    return Check(code, "passed", words, float(share[worst]) if limited[worst] else None, unit="of the velocity limit")


def _reach(domain: Domain, j: int) -> str:
    """Velocity and load up to which a joint was recorded, in words."""
    load = f" and {domain.load[j]:.3g} {_force(domain, j)}" if np.isfinite(domain.load[j]) else ""
    return f"{domain.velocity[j]:.3g} {domain.units[j]}/s{load} in '{domain.joints[j]}'"


def _force(domain: Domain, j: int) -> str:
    """Unit of the torque or force of a joint."""
    return "N" if domain.units[j] == "m" else "N m"


def _at_velocity_limit(estimate: Estimate, domain: Domain) -> tuple[Array, Array]:
    """Standard deviation of torques at the velocity limit, as a multiple of that within the domain, and in N m or N.

    Both (joint,) are zero where limit or torque are not known.
    """
    dry, change = friction_scale(estimate, domain)
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.fmax(estimate.rms, _SMALL * estimate.rms / estimate.relative_error)
        limit = np.where(np.isfinite(domain.velocity_limit), domain.velocity_limit, 0.0)
        excess = np.maximum(limit / domain.velocity - 1.0, 0.0)
    growth, std = np.zeros((2, len(domain.joints)))
    for k, channel in enumerate(estimate.base.channels):
        if channel in domain.joints and estimate.rows[k]:
            j = domain.joints.index(channel)
            std[j] = np.hypot(inside[k], friction_std(dry[k], change[k], excess[j], domain.crossing[j]))
            growth[j] = std[j] / inside[k] if inside[k] > 0 else 0.0
    return growth, std


def _unseen_outside(evidence: Evidence, domain: Domain) -> str:
    """How much of the unseen motion is outside of the domain, in words; "" where it is little or not known."""
    robot, motions = evidence.estimate.robot, evidence.held_out_motions
    if not motions:
        return ""
    outside = np.concatenate([domain.beyond(*state(robot, motion)).any(axis=1) for motion in motions])
    if outside.mean() <= _OUTSIDE:
        return ""
    with np.errstate(divide="ignore", invalid="ignore"):
        faster = np.nan_to_num(Domain.of_motions(robot, motions).velocity / domain.velocity)
    worst = int(np.argmax(faster))
    return (
        f" (unseen motion is outside of the recorded range in {100 * outside.mean():.0f} % of its samples, "
        f"with {faster[worst]:.2g} times the velocity in '{domain.joints[worst]}')"
    )


# Checks of the bodies of an estimate: whether they are plausible, and how much of their mass the data do not show.

_UNIT = "implausible figures"
# Reduction of the sum of squares by which a wall of the plausible box holds more than noise: 99.9 % of chi-squared with
# one degree of freedom.
_PUSHED = 10.8
_WALL_ADVICE = "check tools, gains and units of the torques, and link lengths: a body imitates what is missing"


def check_bodies(evidence: Evidence) -> Check:
    """Check mass, centre of mass, radius of gyration and density of every body against the size of its link."""
    estimate, code = evidence.estimate, CheckCode.PLAUSIBLE_BODIES
    if estimate.standard is None:
        return unchecked(code, f"method '{estimate.method}' estimates combinations, not bodies")
    if estimate.standard_covariance is None:
        return unchecked(code, "the standard deviations of the bodies are not known")
    found = implausible_bodies(
        estimate.robot,
        estimate.standard,
        covariance=estimate.standard_covariance,
        prior=estimate.robot.parameters,
    )
    pushed = [wall for wall in estimate.walls if wall.gain > _PUSHED]
    if pushed and not any(f.severity == "error" and f.origin != "prior" for f in found):
        more = f", and {len(pushed) - 1} more" if len(pushed) > 1 else ""
        words = f"{pushed[0]}: something is not in the model{more}"
        return Check(code, "warned", words, float(len(pushed)), 0, None, "walls", _WALL_ADVICE)
    if not found:
        return Check(code, "passed", "every body is plausible for the size of its link", 0, 0, 0, _UNIT)
    first, more = found[0], f", and {len(found) - 1} more" if len(found) > 1 else ""
    own = [f for f in found if f.origin != "prior"]
    if not own and first.severity == "warning":
        words = f"every body that the recording determines is plausible; a priori, {first.what}{more}"
        return Check(code, "passed", words, 0, 0, 0, _UNIT)
    return Check(
        code=code,
        result="failed" if own and first.severity == "error" else "warned",
        words=first.what + more,
        figure=float(len(found)),
        limit=0,
        failure=None,
        unit=_UNIT,
        advice=first.what_to_do,
    )


def check_unidentified_mass(evidence: Evidence) -> Check:
    """Give the share of the total mass that the recording does not determine.

    The torques of this motion do not show it, so that it is no reason for distrust; bodies taken one by one need it.
    """
    mass, code = total_mass(evidence.estimate), CheckCode.UNIDENTIFIED_MASS
    if not mass.after > 0:
        return unchecked(code, "the bodies of this robot have no mass")
    words = f"total mass {mass.sentence}"
    return Check(code, "passed", words, mass.open_share, None, None, "of the total mass")


# Check of simulated motion: the estimate must not simulate worse than the a-priori model.

_HORIZON = 0.5  # s; later, errors of open-loop simulations depend more on gravity than on the model
# Errors of the estimate over those of the a-priori model, as for predicted torques.
_WORSE, _MUCH_WORSE = 1.05, 1.3
# Errors relative to those of a constant velocity are the unexplained share of all accelerations. Up to a fifth, the
# limit for predicted torques, an a-priori model that is even better is no reason against the estimate.
_MATERIAL = 0.2
_MOST = 0.5


def check_simulation(evidence: Evidence) -> Check:
    """Check the error of simulated motion, half a second after measured states, against the a-priori model."""
    code, found = CheckCode.SIMULATION_ERROR, evidence.simulation
    if found is None:
        return unchecked(code, "the recording of unseen motion was not given")
    if found.identified is None:
        return unchecked(code, f"the unseen motion was not simulated: {found.reason}")
    comparison = found.compare(_HORIZON)
    if comparison is None:
        why = found.reason or f"too few starts are followed by {_HORIZON:g} s of motion"
        return unchecked(code, f"simulated motion was not compared with the a-priori model: {why}")
    # Where both models are worse than a constant velocity, offsets and noise of the torques move them, not the model.
    # A model most of whose simulations end early is another matter.
    prior_share = comparison.share / comparison.ratio
    if min(comparison.share, prior_share) > 1.0 and found.identified.failed() <= _MOST:
        why = "neither model follows this motion better than a constant velocity does"
        return unchecked(code, f"simulated motion says little here: {why} ({comparison.words})")
    # The lower end of the interval: what is worse by chance is not called worse.
    figure = comparison.low if comparison.share > _MATERIAL else min(comparison.low, 1.0)
    words = f"errors of positions that are simulated {_HORIZON:g} s ahead of measured states are {comparison.words}"
    failed = sum(count for ending, count in found.identified.counts().items() if ending.ended_early)
    if failed:
        words += f"; {failed} of {len(found.identified.endings)} simulations ended early"
    return graded(
        code,
        figure,
        _WORSE,
        _MUCH_WORSE,
        "times the a-priori error",
        words,
        "do not simulate with this model; look for wrong friction, gains or gravity, or keep the a-priori model",
    )
