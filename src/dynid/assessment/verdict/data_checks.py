"""Checks of the data behind an estimate: excitation, signs, delay, residual, feedback, findings."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.finding import Finding, FindingCode
from dynid.assessment.tests.candidates import EffectCode
from dynid.assessment.tests.missing import Effect
from dynid.assessment.verdict.assessment import Check, CheckCode
from dynid.assessment.verdict.evidence import Evidence
from dynid.assessment.verdict.grade import graded, unchecked
from dynid.hypothesis import TestCode
from dynid.robot.drives import TermKind

__all__ = [
    "check_data",
    "check_delay",
    "check_excitation",
    "check_feedback",
    "check_residual",
    "check_rows",
    "check_signs",
]

Array = NDArray[np.float64]

# With unit columns, designed motions reach about a hundred; beyond a thousand, noise dominates some parameters.
_CONDITION, _LARGE_CONDITION = 100.0, 1000.0
# Rows per parameter: with fewer than twenty, more than a twentieth of the noise is fitted.
_ROWS, _FEW_ROWS = 20.0, 3.0
# Standard deviations below zero from which the sign of a friction or rotor inertia counts as wrong.
_SIGMAS = 4.0
# A delay (in samples) matters if it causes torque errors of this share of the torque.
_SAMPLES, _MANY_SAMPLES, _DELAY_SIZE = 1.5, 10.0, 0.015
# A single missing effect matters if it explains this share of a residual that is this share of the torque.
_EFFECT, _LARGE_EFFECT, _SMALL_RESIDUAL = 0.5, 0.9, 0.1
_FRICTION = tuple(TermKind)[TermKind.VISCOUS : TermKind.OFFSET]
_WRONG_SIGN = (FindingCode.VELOCITY_SIGN, FindingCode.TORQUE_SIGN, FindingCode.FRICTION_SIGN)
# Methods whose estimate is consistent although feedback correlates the measured regressor with the torque error.
_INSTRUMENTAL = ("iv", "didim", "pc-iv", "pc-didim")


def check_excitation(evidence: Evidence) -> Check:
    """Check the condition number of the regressor."""
    code, condition = CheckCode.EXCITATION, evidence.condition
    words = f"the motion excites the weakest combination of parameters {condition:.3g} times less than the strongest"
    if condition > _CONDITION:
        words += f"; most uncertain: {', '.join(evidence.weakest[:4])}"
    return graded(code, condition, _CONDITION, _LARGE_CONDITION, "condition number", words, "run a designed excitation")


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
    values = dict(zip(estimate.base.names, zip(estimate.beta, evidence.std, strict=True), strict=True))
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


def check_delay(evidence: Evidence) -> Check:
    """Check for a delay between torques and motion."""
    code = CheckCode.DELAY
    if evidence.missing is None or not evidence.motions:
        return unchecked(code, "the fitted recording was not given, or it has no joint torques to search")
    effects = (*evidence.missing.effects, *evidence.missing.candidates)
    late = [e for e in effects if e.code == EffectCode.TORQUE_DELAY]
    findings = [f for f in evidence.findings or () if f.code == FindingCode.TORQUE_DELAY]
    if not late:
        return unchecked(code, "a delay cannot be distinguished from the model along this motion")
    effect = late[0]
    size = float(np.sqrt(max(effect.share, 0.0)) * np.median(evidence.estimate.relative_error))
    matters = effect.p_value < evidence.missing.level and size > _DELAY_SIZE
    samples = abs(effect.coefficient) / evidence.raw_step if matters else 0.0
    words = (
        f"torques {'lag behind' if effect.coefficient > 0 else 'run ahead of'} the motion by "
        f"{1e3 * abs(effect.coefficient):.3g} ms, which explains {100 * effect.share:.0f} % of the residual"
        if matters and samples > _SAMPLES
        else "there is no significant delay between torques and motion"
    )
    if findings and samples <= _SAMPLES:
        first, where = findings[0], ", ".join(sorted({f.joint for f in findings}))
        return Check(code, "warned", f"{_plain(first)} ({where}: {first.how_much})", advice=first.what_to_do)
    return graded(
        code, samples, _SAMPLES, _MANY_SAMPLES, "samples", words, "give this delay to the signal settings (delay)"
    )


def check_residual(evidence: Evidence) -> Check:
    """Check whether the residual depends on velocity, acceleration, position or torque."""
    code = CheckCode.RESIDUAL
    if evidence.missing is None:
        return unchecked(code, "the fitted recording was not given, or it has no joint torques to search")
    relative = dict(zip(evidence.estimate.base.channels, evidence.estimate.relative_error, strict=True))

    def size(effect: Effect) -> float:
        return effect.share if relative.get(effect.joint, 0.0) > _SMALL_RESIDUAL else 0.0

    own = [e for e in evidence.missing.effects if e.code != EffectCode.TORQUE_DELAY]
    worst = max(own, key=size, default=None)
    figure = 0.0 if worst is None else size(worst)
    words = (
        "the residual does not depend on velocity, acceleration or position to a relevant extent"
        if figure <= _EFFECT or worst is None
        else f"the residual of '{worst.joint}' contains {worst.words}, which explains {100 * worst.share:.0f} % of it"
    )
    return graded(code, figure, _EFFECT, _LARGE_EFFECT, "of the residual", words, evidence.missing.advice)


def check_feedback(evidence: Evidence) -> Check:
    """Check whether noise that feedback brings into the torques biases the estimate."""
    code, diagnosis = CheckCode.FEEDBACK, evidence.diagnosis
    test = None if diagnosis is None else diagnosis.test(TestCode.EXOGENEITY)
    if test is None:
        return unchecked(code, "bias by feedback can only be tested with the controller (dynid.stats.diagnose)")
    harmless = not test.rejected or evidence.estimate.method in _INSTRUMENTAL
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


def check_data(evidence: Evidence) -> Check:
    """Check for errors and warnings among the findings on the recordings."""
    code = CheckCode.DATA
    if evidence.findings is None:
        return unchecked(code, "the fitted recording was not given")
    errors = [f for f in evidence.findings if f.severity == "error"]
    warnings = [f for f in evidence.findings if f.severity == "warning"]
    if not errors and not warnings:
        return Check(code, "passed", "no problem was found in the recordings", 0, 0, None, "findings")
    first = (errors or warnings)[0]
    where = f"'{first.joint}': " if first.joint else ""
    more = len(errors) + len(warnings) - 1
    return Check(
        code=code,
        result="failed" if errors else "warned",
        words=f"{where}{_plain(first)} ({first.how_much})" + (f", and {more} more findings" if more else ""),
        figure=float(more + 1),
        limit=0,
        unit="findings",
        advice=first.what_to_do,
    )


def _plain(finding: Finding) -> str:
    """The message of a finding without its full stop."""
    return finding.what.rstrip(".")
