"""Checks of the predicted torques, on fitted and on unseen motion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.verdict.assessment import Check, CheckCode, Result
from dynid.assessment.verdict.evidence import Evidence
from dynid.assessment.verdict.grade import graded, unchecked
from dynid.hypothesis import probability
from dynid.identification.validation_errors import REPEATED

__all__ = [
    "check_agreement",
    "check_errors",
    "check_excitation",
    "check_growth",
    "check_payload",
    "check_prior",
    "check_uncertainty",
    "check_unseen",
]

Array = NDArray[np.float64]

# Error of a joint as a share of the torque that counts: a good rigid model of a real joint leaves up to a fifth,
# because of friction; at a half, it explains less than three quarters of the power.
_ERROR, _LARGE_ERROR = 0.2, 0.5
# Errors below these shares of the torque are small, whatever they are compared with: growth, disagreement and a better
# a-priori model are of no concern, or of less.
_SMALL, _MODERATE = 0.03, 0.1
# Errors on unseen motion over those of the fit. They differ because the bandwidths of the motions differ.
_GROWTH, _LARGE_GROWTH = 2.5, 5.0
# Errors on unseen motion over those of the same model with parameters fitted to that motion.
_DISAGREEMENT, _LARGE_DISAGREEMENT = 1.5, 3.0
# A payload is reported if it explains this share of the reducible errors, and is significant.
_PAYLOAD_SHARE, _PAYLOAD_EFFECT, _SIGNIFICANCE = 0.5, 1.15, 1e-3
# Errors of the estimate over those of the a-priori model on unseen motion; a twentieth counts as equal.
_PRIOR, _WORSE = 1.05, 1.3
# Standard deviation of predicted torques as a share of the torques: 95 % of the errors that it causes are below twice
# that, the limits of the error itself.
_UNCERTAIN, _VERY_UNCERTAIN = _ERROR / 2, _LARGE_ERROR / 2
# Condition number beyond which uncertain torques are explained by poor excitation.
_CONDITION = 100.0


def check_unseen(evidence: Evidence) -> Check:
    """Check by content, not by name, that the motion for validation is not the fitted one."""
    if evidence.given is not None and evidence.given.partitions and np.isnan(evidence.repeated):
        return Check(
            CheckCode.UNSEEN_MOTION,
            "warned",
            "whether the motion for validation was fitted is not known: of the fitted motion too little is kept",
            advice="validate on longer runs, or identify from fewer partitions",
        )
    return check_repeated(evidence.repeated)


def check_repeated(share: float) -> Check:
    """Check the share of the motion for validation that repeats the fitted one; NaN where it is not known."""
    code, unit = CheckCode.UNSEEN_MOTION, "of the motion"
    if np.isnan(share):
        return unchecked(code, "the fitted or the unseen motion is not known")
    if share <= REPEATED:
        return Check(code, "passed", "the motion for validation is not the fitted one", share, REPEATED, None, unit)
    words = f"{100 * share:.0f} % of the motion for validation repeats the fitted motion: it is not unseen"
    return Check(code, "warned", words, share, REPEATED, None, unit, "validate on a recording of another motion")


def check_errors(evidence: Evidence) -> Check:
    """Check the torque error of each joint on unseen motion, relative to the torques that count."""
    code, unit, torques = CheckCode.VALIDATION_ERROR, "of the torque, without noise", evidence.torques
    worst = torques.worst
    error, channel = float(torques.relative[worst]), torques.channels[worst]
    if evidence.validation is None:
        words = f"no unseen motion was given: the error of '{channel}' on the fitted motion is {torques.words(worst)}"
        failed = error > _LARGE_ERROR
        advice = "validate on a recording of another motion"
        return Check(code, "failed" if failed else "warned", words, error, _ERROR, _LARGE_ERROR, unit, advice)
    with np.errstate(invalid="ignore"):
        middle = 100 * float(np.nanmedian(torques.errors / np.where(torques.size > 0, torques.size, np.nan)))
    return graded(
        code,
        error,
        _ERROR,
        _LARGE_ERROR,
        unit,
        f"the error of predicted torques in '{channel}', the worst joint, is {torques.words(worst)} (median of all "
        f"joints {middle:.1f} %)",
        f"look for effects that the model of '{channel}' misses: friction terms, drive gain, payload",
    )


def check_growth(evidence: Evidence) -> Check:
    """Check the errors on unseen motion against those of the fit; overfitting makes them grow."""
    code = CheckCode.ERROR_GROWTH
    if evidence.validation is None:
        return unchecked(code, "no unseen motion was given")
    fitted = np.fmax(evidence.estimate.rms, 1e-9 * np.fmax(evidence.validation.rmse, 1e-300))
    moved = np.array(evidence.estimate.rows) > 0
    ratio, worst = _largest(np.where(moved, evidence.validation.rmse / fitted, np.nan), evidence)
    channel = evidence.validation.channels[worst]
    words = f"errors on unseen motion are {ratio:.2f} times those of the fit in '{channel}', the worst joint"
    if ratio == 0:
        words = "errors on unseen motion are small"
    advice = "record longer and richer motion, or identify fewer parameters"
    return graded(code, ratio, _GROWTH, _LARGE_GROWTH, "times the fit's error", words, advice)


def check_agreement(evidence: Evidence) -> Check:
    """Check whether the unseen motion is explained by the same parameters."""
    code, refit = CheckCode.PARAMETER_AGREEMENT, evidence.refit
    if refit is None:
        return unchecked(code, "the recording of unseen motion was not given")
    left = np.maximum(refit.left, 1e-12 * np.maximum(refit.errors, 1e-300))
    ratio, worst = _largest(refit.errors / left, evidence)
    channel = evidence.estimate.base.channels[worst]
    if refit.p_value >= _SIGNIFICANCE or ratio <= _DISAGREEMENT:
        words = "the estimate explains unseen motion as well as parameters fitted to it"
        if refit.p_value < _SIGNIFICANCE and ratio > 0:
            words += f" ({ratio:.2f} times their error in '{channel}', the worst joint)"
        ratio = min(ratio, _DISAGREEMENT)
    else:
        words = (
            f"unseen motion needs other parameters: in '{channel}' the error is {ratio:.1f} times that of parameters "
            f"fitted to it (p-value {probability(refit.p_value)})"
        )
    advice = "find out what changed between the recordings (load, temperature, sensor zero), or record longer"
    return graded(code, ratio, _DISAGREEMENT, _LARGE_DISAGREEMENT, "times the least error", words, advice)


def _largest(ratio: Array, evidence: Evidence) -> tuple[float, int]:
    """The largest ratio of the channels whose error is not small, and its channel; 0 where all errors are small."""
    counted = np.where(_matters(evidence), np.nan_to_num(ratio, nan=0.0), 0.0)
    worst = int(np.argmax(counted))
    return float(counted[worst]), worst


def _matters(evidence: Evidence) -> NDArray[np.bool_]:
    """Channels whose error on unseen motion is not small."""
    return np.asarray(np.nan_to_num(evidence.torques.relative, nan=0.0) > _SMALL)


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
    # No robot carries more than itself; a motion that hardly shows a mass could give any.
    heaviest = float(sum(max(link.inertia[0], 0.0) for link in base.robot.links)) or np.inf
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
        if gone > found[0] and 0 < mass < heaviest:
            found = (gone, link, mass)
    gone, link, mass = found
    share = min(gone / excess, 1.0) if excess > 0 else 0.0
    loaded = share > _PAYLOAD_SHARE and effect > _PAYLOAD_EFFECT and refit.p_value < _SIGNIFICANCE
    if not loaded or not _matters(evidence).any():
        words = "no payload on a body explains the errors on unseen motion"
        value = min(effect, _PAYLOAD_EFFECT) if share > _PAYLOAD_SHARE else 1.0
        return Check(code, "passed", words, value, _PAYLOAD_EFFECT, None, "times the noise")
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
    found = graded(code, ratio, _PRIOR, _WORSE, "times the a-priori error", words, "keep the a-priori model")
    moderate = float(evidence.torques.relative[evidence.torques.worst]) <= _MODERATE
    return replace(found, result="warned") if found.result == "failed" and moderate else found


def check_uncertainty(evidence: Evidence) -> Check:
    """Check the standard deviation of predicted torques that parameter uncertainty causes.

    Uncertain torques along the recorded motion are a failure. Elsewhere within the joint limits they call for care: the
    estimate may be used for motions like the recorded ones.
    """
    code = CheckCode.PREDICTION_UNCERTAINTY
    along, within = evidence.motion_std, evidence.range_std
    share = within if within is not None else along
    if share is None:
        return unchecked(code, "the covariance of the estimate, or motion of a floating base, is not known")
    worst = int(np.argmax(share))
    where = "along the recorded motion" if within is None else "within the joint limits"
    words = (
        f"{where} the predicted torque of '{evidence.estimate.base.channels[worst]}', the worst joint, has a "
        f"standard deviation of {100 * share[worst]:.3g} %"
    )
    failed = along is not None and float(along.max()) > _VERY_UNCERTAIN
    if failed and along is not None and within is not None:
        words += f", and up to {100 * along.max():.3g} % along the recorded motion"
    result: Result = "failed" if failed else "warned" if share[worst] > _UNCERTAIN else "passed"
    advice = "" if result == "passed" else "run a designed excitation over the whole range of the joints"
    return Check(code, result, words, float(share[worst]), _UNCERTAIN, None, "of the torque", advice)


def check_excitation(evidence: Evidence) -> Check:
    """Check whether parameters that the motion hardly distinguishes make predicted torques uncertain.

    Two parameters that are nearly collinear do no harm where they are collinear in all torques.
    """
    code, condition = CheckCode.EXCITATION, evidence.estimate.condition_number
    share = evidence.range_std if evidence.range_std is not None else evidence.motion_std
    words = f"the motion excites the weakest combination of parameters {condition:.3g} times less than the strongest"
    if share is None:
        return unchecked(code, f"{words}; whether that matters for torques is not known")
    uncertain = float(share.max()) > _UNCERTAIN
    if condition > _CONDITION:
        effect = "which makes predicted torques uncertain" if uncertain else "which predicted torques hardly show"
        words += f", {effect}; most uncertain: {', '.join(evidence.weakest[:4])}"
    poor = condition > _CONDITION and uncertain
    advice = "run a designed excitation" if poor else ""
    return Check(code, "warned" if poor else "passed", words, condition, _CONDITION, None, "condition number", advice)
