"""Checks of what is predicted: how far torques are off, on motion that was fitted and on motion that was not."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.assessment.verdict.assessment import Check
from dynid.assessment.verdict.evidence import Evidence
from dynid.assessment.verdict.grade import graded, unchecked
from dynid.parameters.base import random_states

__all__ = ["check_agreement", "check_errors", "check_growth", "check_load", "check_prior", "check_uncertainty"]

Array = NDArray[np.float64]

# Share of a joint's torque that may stay unexplained: a fifth is what friction of real joints leaves to a good rigid
# model; half means that the joint's model explains less than three quarters of the power.
_ERROR, _LARGE_ERROR = 0.2, 0.5
# Errors on unseen motion over those of the fit. Motions differ, and with them what filters let through.
_GROWTH, _LARGE_GROWTH = 2.5, 5.0
# Errors on unseen motion over what the same model can do there with parameters of its own.
_DISAGREEMENT, _LARGE_DISAGREEMENT = 1.5, 3.0
# A load is named if it explains this share of the errors that other parameters would take away, beyond chance.
_LOAD_SHARE, _LOAD_EFFECT, _CHANCE = 0.5, 1.15, 1e-3
# Identified over a-priori errors on unseen motion; within a twentieth the two are as good.
_PRIOR, _WORSE = 1.05, 1.3
# Deviation of predicted torques, as a share of them, anywhere within the joint limits. Twenty seconds of well designed
# motion of simulated arms stay below 0.013, a few seconds of it go beyond 0.04.
_UNCERTAIN, _VERY_UNCERTAIN = 0.03, 0.3
_STATES = 400


def check_errors(evidence: Evidence) -> Check:
    """The share of each joint's torque that is not explained on unseen motion."""
    name, estimate = "error on unseen motion", evidence.estimate
    if evidence.validation is None:
        worst = int(np.argmax(estimate.relative_error))
        error = float(estimate.relative_error[worst])
        words = (
            f"no unseen motion was given: the error of {100 * error:.1f} % in '{estimate.base.channels[worst]}' is of "
            "motion that was fitted"
        )
        found = graded(name, error, _ERROR, _LARGE_ERROR, "of the torque", words)
        return Check(
            name,
            "failed" if found.result == "failed" else "warned",
            words,
            error,
            _ERROR,
            _LARGE_ERROR,
            "of the torque",
            "validate on a recording of another motion",
        )
    relative = evidence.validation.relative
    worst = int(np.argmax(relative))
    channel = evidence.validation.channels[worst]
    return graded(
        name,
        float(relative[worst]),
        _ERROR,
        _LARGE_ERROR,
        "of the torque",
        f"predicted torques are off by {100 * relative[worst]:.1f} % in '{channel}', the worst joint "
        f"(median {100 * float(np.median(relative)):.1f} %)",
        f"look at what '{channel}' misses: friction terms, gain of the drive, load",
    )


def check_growth(evidence: Evidence) -> Check:
    """Errors on unseen motion against those of the fit: an estimate that learned its noise grows."""
    name = "growth of the error"
    if evidence.validation is None:
        return unchecked(name, "no unseen motion was given")
    fitted = np.maximum(evidence.estimate.rms, 1e-9 * np.maximum(evidence.validation.rmse, 1e-300))
    ratio = evidence.validation.rmse / fitted
    worst = int(np.argmax(ratio))
    return graded(
        name,
        float(ratio[worst]),
        _GROWTH,
        _LARGE_GROWTH,
        "times the fit's error",
        f"errors on unseen motion are {ratio[worst]:.2f} times those of the fit in "
        f"'{evidence.validation.channels[worst]}', the worst joint",
        "record longer and richer motion, or identify fewer parameters",
    )


def check_agreement(evidence: Evidence) -> Check:
    """Whether unseen motion asks for the same parameters."""
    name, refit = "agreement of both recordings", evidence.refit
    if refit is None:
        return unchecked(name, "the recording of unseen motion was not given")
    left = np.maximum(refit.left, 1e-12 * np.maximum(refit.errors, 1e-300))
    ratio = refit.errors / left
    worst = int(np.argmax(ratio))
    channel = evidence.estimate.base.channels[worst]
    words = (
        f"unseen motion is explained as well as by parameters of its own ({ratio[worst]:.2f} times their error in "
        f"'{channel}', the worst joint)"
        if ratio[worst] <= _DISAGREEMENT
        else f"unseen motion asks for other parameters: in '{channel}' the error is {ratio[worst]:.1f} times what the "
        "same model could do there"
    )
    advice = "find out what changed between the recordings (load, temperature, sensor zero), or record longer"
    return graded(name, float(ratio[worst]), _DISAGREEMENT, _LARGE_DISAGREEMENT, "times the least error", words, advice)


def check_load(evidence: Evidence) -> Check:
    """Whether the errors on unseen motion are those of a mass that one of the bodies carried there."""
    name, refit, seen = "load on unseen motion", evidence.refit, evidence.held_out
    if refit is None or seen is None:
        return unchecked(name, "the recording of unseen motion was not given")
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
    chance = float(scipy.stats.chi2.sf(refit.statistic, refit.freedom))
    loaded = share > _LOAD_SHARE and effect > _LOAD_EFFECT and chance < _CHANCE
    if not loaded:
        words = "errors on unseen motion do not look like those of a load that one body carried there"
        return Check(
            name, "passed", words, effect if share > _LOAD_SHARE else 1.0, _LOAD_EFFECT, None, "times the noise"
        )
    return Check(
        name,
        "failed" if effect > _LARGE_DISAGREEMENT else "warned",
        f"errors on unseen motion are those of a load on '{link}' that was not there before (about {mass:.2g} kg, "
        f"{100 * share:.0f} % of what other parameters would explain)",
        effect,
        _LOAD_EFFECT,
        _LARGE_DISAGREEMENT,
        "times the noise",
        "identify and validate with the same payload, or give the payload to the robot",
    )


def check_prior(evidence: Evidence) -> Check:
    """Whether the estimate predicts better than the a-priori model did."""
    name, seen, estimate = "better than the a-priori model", evidence.held_out, evidence.estimate
    if seen is None:
        return unchecked(name, "the recording of unseen motion was not given")
    prior = estimate.base.values()
    if not np.any(prior):
        return unchecked(name, "the robot has no a-priori parameters")
    weights = 1.0 / evidence.noise
    ours, theirs = (float(np.linalg.norm(weights * seen.residual_norms(b))) for b in (estimate.beta, prior))
    ratio = ours / theirs if theirs > 0 else np.inf
    words = (
        f"errors on unseen motion are {100 * ratio:.0f} % of those of the a-priori model"
        if ratio <= _PRIOR
        else f"the a-priori model predicts better: its errors are {100 / ratio:.0f} % of the estimate's"
    )
    return graded(name, ratio, _PRIOR, _WORSE, "times the a-priori error", words, "keep the a-priori model")


def check_uncertainty(evidence: Evidence) -> Check:
    """Deviation of predicted torques over the whole workspace that the parameters' uncertainty makes."""
    name, estimate = "certainty within the limits", evidence.estimate
    robot = estimate.robot
    if robot.base == "floating":
        return unchecked(name, "the motion of a floating base has no limits")
    W = estimate.base.regressor(*_states_within(evidence))
    covariance = evidence.spread
    if covariance is None:
        return unchecked(name, "the covariance of the estimate is not known")
    variance = np.einsum("nci,ij,ncj->nc", W, covariance, W)
    torque = np.sqrt(np.mean((W @ estimate.beta) ** 2, axis=0))
    share = np.sqrt(np.maximum(variance.mean(axis=0), 0.0)) / np.where(torque > 0, torque, np.inf)
    worst = int(np.argmax(share))
    return graded(
        name,
        float(share[worst]),
        _UNCERTAIN,
        _VERY_UNCERTAIN,
        "of the torque",
        f"within its limits the torque of '{estimate.base.channels[worst]}', the worst joint, is known to "
        f"{100 * share[worst]:.3g} % (one deviation)",
        "run a designed excitation over the whole range of the joints",
    )


def _states_within(evidence: Evidence) -> tuple[Array, Array, Array]:
    """States all over the joint limits, as fast as the recordings or, where these are not given, as random ones."""
    robot = evidence.estimate.robot
    q, v, a = random_states(robot, _STATES, seed=0)
    limits = [robot.limits[c] for c in robot.coordinates]
    rng = np.random.default_rng(1)
    for j, limit in enumerate(limits):
        if np.isfinite(limit.lower) and np.isfinite(limit.upper):
            q[:, j] = rng.uniform(limit.lower, limit.upper, _STATES)
    reach = evidence.reach
    if reach is not None:
        speed, acceleration = reach
        v, a = rng.uniform(-1, 1, v.shape) * speed, rng.uniform(-1, 1, a.shape) * acceleration
    return q, v, a
