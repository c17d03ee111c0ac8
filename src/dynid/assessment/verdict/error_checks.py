"""Checks of the predicted torques, on fitted and on unseen motion."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.assessment.verdict.assessment import Check, CheckCode
from dynid.assessment.verdict.evidence import Evidence
from dynid.assessment.verdict.grade import graded, unchecked
from dynid.parameters.base import random_states

__all__ = ["check_agreement", "check_errors", "check_growth", "check_payload", "check_prior", "check_uncertainty"]

Array = NDArray[np.float64]

# Unexplained share of a joint's torque: a good rigid model of a real joint leaves up to a fifth, because of friction;
# at a half, it explains less than three quarters of the power.
_ERROR, _LARGE_ERROR = 0.2, 0.5
# Errors on unseen motion over those of the fit. They differ because the bandwidths of the motions differ.
_GROWTH, _LARGE_GROWTH = 2.5, 5.0
# Errors on unseen motion over those of the same model with parameters fitted to that motion.
_DISAGREEMENT, _LARGE_DISAGREEMENT = 1.5, 3.0
# A payload is reported if it explains this share of the reducible errors, and is significant.
_PAYLOAD_SHARE, _PAYLOAD_EFFECT, _SIGNIFICANCE = 0.5, 1.15, 1e-3
# Errors of the estimate over those of the a-priori model on unseen motion; a twentieth counts as equal.
_PRIOR, _WORSE = 1.05, 1.3
# Standard deviation of predicted torques within the joint limits, as a share of the torques. Twenty seconds of well
# designed motion of simulated arms stay below 0.013, a few seconds of it exceed 0.04.
_UNCERTAIN, _VERY_UNCERTAIN = 0.03, 0.3
_STATES = 400


def check_errors(evidence: Evidence) -> Check:
    """Check the relative torque error of each joint on unseen motion."""
    code, unit, estimate = CheckCode.VALIDATION_ERROR, "of the torque", evidence.estimate
    if evidence.validation is None:
        worst = int(np.argmax(estimate.relative_error))
        error = float(estimate.relative_error[worst])
        words = (
            f"no unseen motion was given: the error of {100 * error:.1f} % in '{estimate.base.channels[worst]}' is "
            "that of the fitted motion"
        )
        failed = graded(code, error, _ERROR, _LARGE_ERROR, unit, words).result == "failed"
        advice = "validate on a recording of another motion"
        return Check(code, "failed" if failed else "warned", words, error, _ERROR, _LARGE_ERROR, unit, advice)
    relative = evidence.validation.relative
    worst = int(np.argmax(relative))
    channel = evidence.validation.channels[worst]
    return graded(
        code,
        float(relative[worst]),
        _ERROR,
        _LARGE_ERROR,
        unit,
        f"the error of predicted torques is {100 * relative[worst]:.1f} % in '{channel}', the worst joint "
        f"(median {100 * float(np.median(relative)):.1f} %)",
        f"look for effects that the model of '{channel}' misses: friction terms, drive gain, payload",
    )


def check_growth(evidence: Evidence) -> Check:
    """Check the errors on unseen motion against those of the fit; overfitting makes them grow."""
    code = CheckCode.ERROR_GROWTH
    if evidence.validation is None:
        return unchecked(code, "no unseen motion was given")
    fitted = np.maximum(evidence.estimate.rms, 1e-9 * np.maximum(evidence.validation.rmse, 1e-300))
    ratio = evidence.validation.rmse / fitted
    worst = int(np.argmax(ratio))
    return graded(
        code,
        float(ratio[worst]),
        _GROWTH,
        _LARGE_GROWTH,
        "times the fit's error",
        f"errors on unseen motion are {ratio[worst]:.2f} times those of the fit in "
        f"'{evidence.validation.channels[worst]}', the worst joint",
        "record longer and richer motion, or identify fewer parameters",
    )


def check_agreement(evidence: Evidence) -> Check:
    """Check whether the unseen motion is explained by the same parameters."""
    code, refit = CheckCode.PARAMETER_AGREEMENT, evidence.refit
    if refit is None:
        return unchecked(code, "the recording of unseen motion was not given")
    left = np.maximum(refit.left, 1e-12 * np.maximum(refit.errors, 1e-300))
    ratio = refit.errors / left
    worst = int(np.argmax(ratio))
    channel = evidence.estimate.base.channels[worst]
    words = (
        f"the estimate explains unseen motion as well as parameters fitted to it ({ratio[worst]:.2f} times their error "
        f"in '{channel}', the worst joint)"
        if ratio[worst] <= _DISAGREEMENT
        else f"unseen motion needs other parameters: in '{channel}' the error is {ratio[worst]:.1f} times that of "
        "parameters fitted to it"
    )
    advice = "find out what changed between the recordings (load, temperature, sensor zero), or record longer"
    return graded(code, float(ratio[worst]), _DISAGREEMENT, _LARGE_DISAGREEMENT, "times the least error", words, advice)


def check_payload(evidence: Evidence) -> Check:
    """Check whether a payload on one of the bodies explains the errors on unseen motion."""
    code, refit, seen = CheckCode.PAYLOAD, evidence.refit, evidence.held_out
    if refit is None or seen is None:
        return unchecked(code, "the recording of unseen motion was not given")
    base = evidence.estimate.base
    factor = seen.stacked(1.0 / np.maximum(refit.left, 1e-300))
    R, e = factor[:, :-1], factor[:, -1] - factor[:, :-1] @ evidence.estimate.beta
    power, best = float(e @ e), float(np.sum(np.asarray(seen.rows)))
    excess = power - best
    effect = float(np.sqrt(max(power, best) / best))
    names = base.robot.parameter_names
    found: tuple[float, str, float] = (0.0, "", 0.0)
    for i in base.robot.parameter_links:
        link = base.robot.links[i].name
        at = [k for k, n in enumerate(names) if n in {f"{s}_{link}" for s in ("m", "mx", "my", "mz")}]
        columns = R @ np.column_stack([base.values(row) for row in np.eye(len(names))[at]])
        size = np.linalg.norm(columns, axis=0)
        if not size.any():
            continue
        used = size > 1e-9 * size.max()
        step = np.linalg.lstsq(columns[:, used] / size[used], e, rcond=1e-8)[0]
        gone = power - float(np.sum((e - columns[:, used] / size[used] @ step) ** 2))
        mass = float(step[0] / size[used][0]) if used[0] else 0.0
        if gone > found[0] and mass > 0:
            found = (gone, link, mass)
    gone, link, mass = found
    share = gone / excess if excess > 0 else 0.0
    p_value = float(scipy.stats.chi2.sf(refit.statistic, refit.freedom))
    loaded = share > _PAYLOAD_SHARE and effect > _PAYLOAD_EFFECT and p_value < _SIGNIFICANCE
    if not loaded:
        words = "no payload on a body explains the errors on unseen motion"
        return Check(
            code, "passed", words, effect if share > _PAYLOAD_SHARE else 1.0, _PAYLOAD_EFFECT, None, "times the noise"
        )
    return Check(
        code,
        "failed" if effect > _LARGE_DISAGREEMENT else "warned",
        f"a payload on '{link}' of about {mass:.2g} kg, absent from the fitted motion, explains {100 * share:.0f} % of "
        "the reducible errors on unseen motion",
        effect,
        _PAYLOAD_EFFECT,
        _LARGE_DISAGREEMENT,
        "times the noise",
        "identify and validate with the same payload, or give the payload to the robot",
    )


def check_prior(evidence: Evidence) -> Check:
    """Check whether the estimate predicts unseen motion better than the a-priori model."""
    code, seen, estimate = CheckCode.PRIOR, evidence.held_out, evidence.estimate
    if seen is None:
        return unchecked(code, "the recording of unseen motion was not given")
    prior = estimate.base.values()
    if not np.any(prior):
        return unchecked(code, "the robot has no a-priori parameters")
    weights = 1.0 / evidence.noise
    ours, theirs = (float(np.linalg.norm(weights * seen.residual_norms(b))) for b in (estimate.beta, prior))
    ratio = ours / theirs if theirs > 0 else np.inf
    words = (
        f"errors on unseen motion are {100 * ratio:.0f} % of those of the a-priori model"
        if ratio <= _PRIOR
        else f"the a-priori model predicts better: its errors are {100 / ratio:.0f} % of the estimate's"
    )
    return graded(code, ratio, _PRIOR, _WORSE, "times the a-priori error", words, "keep the a-priori model")


def check_uncertainty(evidence: Evidence) -> Check:
    """Check the standard deviation of predicted torques within the joint limits that parameter uncertainty causes."""
    code, estimate = CheckCode.PREDICTION_UNCERTAINTY, evidence.estimate
    robot = estimate.robot
    if robot.base == "floating":
        return unchecked(code, "the motion of a floating base has no limits")
    W = estimate.base.regressor(*_states_within(evidence))
    covariance = evidence.covariance
    if covariance is None:
        return unchecked(code, "the covariance of the estimate is not known")
    variance = np.einsum("nci,ij,ncj->nc", W, covariance, W)
    torque = np.sqrt(np.mean((W @ estimate.beta) ** 2, axis=0))
    share = np.sqrt(np.maximum(variance.mean(axis=0), 0.0)) / np.where(torque > 0, torque, np.inf)
    worst = int(np.argmax(share))
    return graded(
        code,
        float(share[worst]),
        _UNCERTAIN,
        _VERY_UNCERTAIN,
        "of the torque",
        f"within the joint limits the predicted torque of '{estimate.base.channels[worst]}', the worst joint, has a "
        f"standard deviation of {100 * share[worst]:.3g} %",
        "run a designed excitation over the whole range of the joints",
    )


def _states_within(evidence: Evidence) -> tuple[Array, Array, Array]:
    """Random states within the joint limits, with the velocities and accelerations of the recording if it is given."""
    robot = evidence.estimate.robot
    q, v, a = random_states(robot, _STATES, seed=0)
    limits = [robot.limits[c] for c in robot.coordinates]
    rng = np.random.default_rng(1)
    for j, limit in enumerate(limits):
        if np.isfinite(limit.lower) and np.isfinite(limit.upper):
            q[:, j] = rng.uniform(limit.lower, limit.upper, _STATES)
    fastest = evidence.fastest
    if fastest is not None:
        velocity, acceleration = fastest
        v, a = rng.uniform(-1, 1, v.shape) * velocity, rng.uniform(-1, 1, a.shape) * acceleration
    return q, v, a
