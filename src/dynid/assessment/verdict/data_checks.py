"""Checks of the data behind an estimate: excitation, signs, feedback, findings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.data.torque import FRICTION_SIGN, TORQUE_SIGN
from dynid.assessment.data.velocity import VELOCITY_SIGN
from dynid.assessment.finding import Finding
from dynid.assessment.verdict.assessment import Check, CheckCode, Result
from dynid.assessment.verdict.evidence import Evidence
from dynid.assessment.verdict.grade import graded, unchecked
from dynid.errors import DynidError
from dynid.hypothesis import TestCode
from dynid.identification.estimators.registry import is_feedback_free
from dynid.identification.observation import Observation
from dynid.identification.observing import observe_motions
from dynid.robot.drives import TermKind, drive_kinds
from dynid.signals.settings import prepare

__all__ = [
    "check_cutoff",
    "check_data",
    "check_feedback",
    "check_instruments",
    "check_rows",
    "check_signs",
    "check_standstill",
]

Array = NDArray[np.float64]


# Rows per parameter: with fewer than twenty, more than a twentieth of the noise is fitted.
_ROWS, _FEW_ROWS = 20.0, 3.0
# Standard deviations below zero from which the sign of a friction or rotor inertia counts as wrong.
_SIGMAS = 4.0
_FRICTION = drive_kinds("viscous", "coulomb", "stribeck")
_WRONG_SIGN = (VELOCITY_SIGN, TORQUE_SIGN, FRICTION_SIGN)


def check_rows(evidence: Evidence) -> Check:
    """Check the number of rows per parameter."""
    estimate = evidence.estimate
    count = sum(estimate.rows) / max(estimate.base.count, 1)
    words = f"{count:.0f} rows per parameter were fitted" if count >= 1 else "fewer rows than parameters were fitted"
    # The larger the better: the reciprocals are compared.
    code = CheckCode.RECORDING_LENGTH
    found = graded(code, 1 / count, 1 / _ROWS, 1 / _FEW_ROWS, "", words, "record longer")
    return Check(code, found.result, words, count, _ROWS, _FEW_ROWS, "rows per parameter", found.advice)


def check_signs(evidence: Evidence) -> Check:
    """Check for negative friction and rotor inertia, which torques of the wrong sign cause."""
    code, unit, estimate = CheckCode.SIGNS, "standard deviations below zero", evidence.estimate
    values = dict(zip(estimate.base.names, zip(estimate.beta, estimate.std, strict=True), strict=True))
    lowest, worst = np.inf, ""
    for term in estimate.robot.drives:
        # A coupling between joints may have either sign.
        if term.kind not in (*_FRICTION, TermKind.INERTIA) or term.name not in values or term.cross_only:
            continue
        value, sigma = values[term.name]
        column = estimate.base.names.index(term.name)
        # The sign is known only where the base parameter is this parameter alone.
        if np.count_nonzero(np.abs(estimate.base.matrix[column]) > 1e-9) > 1:
            continue
        size = value / sigma if sigma > 0 else (0.0 if value >= 0 else -np.inf)
        if size < lowest:
            lowest, worst = float(size), term.name
    turned = [f for f in evidence.findings or () if f.severity == "error" and f.code in _WRONG_SIGN]
    figure = max(-lowest, 0.0) if worst else 0.0
    if turned:
        words = f"'{turned[0].joint}': {_plain(turned[0])} ({turned[0].how_much})"
        return Check(code, "failed", words, figure, _SIGMAS, 2 * _SIGMAS, unit, turned[0].what_to_do)
    if figure > _SIGMAS:
        words = f"'{worst}' is {figure:.0f} standard deviations below zero: it drives the joint instead of braking it"
    else:
        words = "no friction or rotor inertia has the wrong sign"
    return graded(code, figure, _SIGMAS, 2 * _SIGMAS, unit, words, "check the sign of the torques")


def check_feedback(evidence: Evidence) -> Check:
    """Check whether noise that feedback brings into the torques biases the estimate."""
    code, diagnosis = CheckCode.FEEDBACK, evidence.diagnosis
    test = None if diagnosis is None else diagnosis.test(TestCode.EXOGENEITY)
    if test is None:
        return unchecked(code, "bias by feedback can only be tested with the controller (dynid.stats.diagnose)")
    harmless = not test.rejected or is_feedback_free(evidence.estimate.method)
    words = f"{test.verdict}" + ("; the method is not affected by it" if test.rejected and harmless else "")
    return Check(
        code=code,
        result="passed" if harmless else "warned",
        words=words,
        figure=test.p_value,
        limit=test.level,
        unit="p-value",
        advice="" if harmless else test.advice,
    )


def check_instruments(evidence: Evidence) -> Check:
    """Check whether simulated instruments are valid: methods that use them are biased where they are not."""
    code, diagnosis = CheckCode.INSTRUMENTS, evidence.diagnosis
    test = None if diagnosis is None else diagnosis.test(TestCode.INSTRUMENT_VALIDITY)
    if test is None:
        return unchecked(code, "the validity of instruments can only be tested with the controller")
    advice = test.advice if test.rejected else ""
    result: Result = "warned" if test.rejected else "passed"
    return Check(code, result, test.verdict, test.p_value, test.level, None, "p-value", advice)


def check_data(evidence: Evidence) -> Check:
    """Check for errors and warnings among the findings on the recordings."""
    code = CheckCode.DATA
    if evidence.findings is None:
        return unchecked(code, "the fitted recording was not given")
    errors = [f for f in evidence.findings if f.severity == "error"]
    warnings = [f for f in evidence.findings if f.severity == "warning"]
    if not errors and not warnings:
        return Check(code, "passed", "no problem was found in the recordings", 0, 0, None, "findings")
    # The check of signs tells of wrong signs: another finding is told here, if there is one.
    found = [*errors, *warnings]
    first = next((f for f in found if f.severity != "error" or f.code not in _WRONG_SIGN), found[0])
    where = f"'{first.joint}': " if first.joint else ""
    more = len(errors) + len(warnings) - 1
    return Check(
        code=code,
        result="failed" if errors else "warned",
        words=f"{where}{_plain(first)} ({first.how_much})" + (f", and {more} more" if more else ""),
        figure=float(more + 1),
        limit=0,
        unit="findings",
        advice=first.what_to_do,
    )


def _plain(finding: Finding) -> str:
    """The message of a finding without its full stop."""
    return finding.what.rstrip(".")


# Checks of the signals behind an estimate: the cut-off of their low-pass, and joints that stand still.
#
# An error on unseen motion cannot show that a low-pass removed a part of the motion, because the same filter removes it
# from the unseen motion too. A fit to less filtered signals shows it.


# Change of predicted torques with twice the cut-off, as a share of the torque. An inertia that is wrong by more than
# this changes predictions by as much at high accelerations.
_CHANGE, _LARGE_CHANGE = 0.02, 0.1
# Standard errors beyond which a change is significant.
_SIGNIFICANT = 3.0
# Largest cut-off as a share of the sampling rate.
_HIGHEST = 0.45
# Singular values of a fit, relative to the largest, that noise decides.
_RANK = 1e-6


def check_cutoff(evidence: Evidence) -> Check:
    """Check whether signals with twice the cut-off give other parameters: then the low-pass removed motion."""
    code = CheckCode.CUTOFF
    if evidence.recording is None or not evidence.motions or evidence.fitted is None:
        return unchecked(code, "the fitted recording was not given")
    if not any(motion.cutoff for motion in evidence.motions):
        return unchecked(code, "the positions were not filtered")
    try:
        change = _change(evidence)
    except DynidError as error:
        return unchecked(code, f"there is no fit to signals with twice the cut-off: {error}")
    share = np.where(change[0] > _SIGNIFICANT * change[1], change[0], 0.0)
    worst = int(np.argmax(share))
    words = (
        "signals with twice the cut-off give the same parameters"
        if share[worst] <= _CHANGE
        else f"with twice the cut-off the predicted torque of '{evidence.estimate.base.channels[worst]}' changes by "
        f"{100 * share[worst]:.2g} %: the low-pass of the positions removes a part of the motion"
    )
    advice = "give a higher cut-off to the signal settings (cutoff), or choose it automatically"
    return graded(code, float(share[worst]), _CHANGE, _LARGE_CHANGE, "of the torque", words, advice)


def _change(evidence: Evidence) -> tuple[Array, Array]:
    """Change of predicted torques (channel,) with twice the cut-off and its standard error, as shares of the torque."""
    estimate, fitted = evidence.estimate, evidence.fitted
    assert evidence.recording is not None and fitted is not None
    wider = []
    for run, motion in zip(evidence.recording.runs, evidence.motions, strict=True):
        # Torques and rows stay as they were: only the positions are filtered less.
        cutoff = None if motion.cutoff is None else min(2.0 * motion.cutoff, _HIGHEST * motion.rate)
        wider.append(prepare(run, replace(estimate.signals, cutoff=cutoff, decimate=motion.decimate)))
    other = observe_motions(estimate.base, wider, estimate.signals)
    own, _ = _fit(fitted, evidence.noise)
    changed, root = _fit(other, evidence.noise)
    torque = np.maximum(fitted.torque_norms(), 1e-300)
    rows = np.maximum(np.array(other.rows, dtype=float), 1.0)
    # Noise of the torques is what is left of them with the wider signals; correlated rows count less.
    noise = float(np.max(other.residual_norms(changed) / np.sqrt(rows) / evidence.noise))
    alone = np.array(estimate.independent_rows) if estimate.independent_rows else rows
    noise *= float(np.sqrt(np.max(rows / np.maximum(np.minimum(alone, rows), 1.0))))

    def size(change: Array) -> Array:
        """Norm of the change of predicted torques (channel,), on the motion that changes more."""
        both = (np.array([np.linalg.norm(f[:, :-1] @ change) for f in seen.factors]) for seen in (fitted, other))
        return np.asarray(np.maximum(*both))

    return size(changed - own) / torque, noise * size(root) / torque


def _fit(seen: Observation, noise: Array) -> tuple[Array, Array]:
    """Least squares (b,) in the directions that the rows determine, and a root (b, r) of its covariance."""
    factor = seen.stacked(1.0 / noise)
    scale = np.linalg.norm(factor[:, :-1], axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    u, s, vt = np.linalg.svd(factor[:, :-1] / scale, full_matrices=False)
    kept = s > _RANK * s[0]
    root = (vt[kept] / s[kept, None] / scale).T
    return np.asarray(root @ (u[:, kept].T @ factor[:, -1])), np.asarray(root)


def check_standstill(evidence: Evidence) -> Check:
    """Check that every joint moves; parameters of a joint that stands still are unknown."""
    code, estimate = CheckCode.STANDSTILL, evidence.estimate
    unknown = [n for n, s in zip(estimate.base.names, estimate.std, strict=True) if np.isposinf(s)]
    still = [c for c, rows in zip(estimate.base.channels, estimate.rows, strict=True) if not rows]
    unit = "unknown base parameters"
    if not unknown and not still:
        return Check(code, "passed", "every joint moves", 0, 0, None, unit)
    joints = ", ".join(f"'{c}'" for c in still) or "a joint"
    more = ", ..." if len(unknown) > 4 else ""
    words = (
        f"{joints} stands still: {len(unknown)} base parameters are unknown and keep their a-priori values "
        f"({', '.join(unknown[:4])}{more})"
    )
    return Check(code, "warned", words, float(len(unknown)), 0, None, unit, "record a motion of all joints")
