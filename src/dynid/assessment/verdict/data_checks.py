"""Checks of the data behind an estimate: excitation, signs, delays, residuals, feedback, findings."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.finding import Finding
from dynid.assessment.tests.candidates import ALL_JOINTS
from dynid.assessment.tests.missing import Effect
from dynid.assessment.verdict.assessment import Check
from dynid.assessment.verdict.evidence import Evidence
from dynid.assessment.verdict.grade import graded, unchecked
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

# Unit columns: up to a hundred is a designed motion; beyond a thousand a thousandth of noise decides the estimate.
_CONDITION, _LARGE_CONDITION = 100.0, 1000.0
# Rows a parameter: with fewer than twenty, more than a twentieth of what is fitted is noise.
_ROWS, _FEW_ROWS = 20.0, 3.0
# Deviations by which a friction or rotor inertia must lie below zero before its sign is called wrong.
_SIGMAS = 4.0
# A delay (in samples) that makes torque errors of this share of the torque.
_SAMPLES, _MANY_SAMPLES, _DELAY_SIZE = 1.5, 10.0, 0.015
# A single missing effect matters where it explains this share of a residual that is this share of the torque.
_EFFECT, _LARGE_EFFECT, _SMALL_RESIDUAL = 0.5, 0.9, 0.1
_FRICTION = tuple(TermKind)[TermKind.VISCOUS : TermKind.OFFSET]


def check_excitation(evidence: Evidence) -> Check:
    """Condition number of the regressor: does the motion show all parameters alike?"""
    name, condition = "excitation", evidence.condition
    if condition is None:
        return unchecked(name, "what the motion showed is not known")
    words = f"the motion shows the weakest combination of parameters {condition:.3g} times less than the strongest"
    if condition > _CONDITION:
        words += f"; worst known: {', '.join(evidence.weakest[:4])}"
    return graded(name, condition, _CONDITION, _LARGE_CONDITION, "condition number", words, "run a designed excitation")


def check_rows(evidence: Evidence) -> Check:
    """How many rows there are a parameter."""
    estimate = evidence.estimate
    count = sum(estimate.rows) / max(estimate.base.count, 1)
    words = f"{count:.0f} rows were fitted a parameter" if count >= 1 else "fewer rows than parameters were fitted"
    # Better the larger: the figure is compared upside down.
    found = graded("length of the recording", 1 / count, 1 / _ROWS, 1 / _FEW_ROWS, "", words, "record longer")
    return Check(found.name, found.result, words, count, _ROWS, _FEW_ROWS, "rows a parameter", found.advice)


def check_signs(evidence: Evidence) -> Check:
    """Friction that drives and rotors of negative inertia: a torque of the wrong sign makes them."""
    name, estimate = "signs", evidence.estimate
    values = dict(zip(estimate.base.names, zip(estimate.beta, evidence.deviation, strict=True), strict=True))
    lowest, worst = np.inf, ""
    for term in estimate.robot.drives:
        # A coupling between joints has no sign of its own.
        if term.kind not in (*_FRICTION, TermKind.INERTIA) or term.name not in values or term.cross_only:
            continue
        value, sigma = values[term.name]
        column = estimate.base.names.index(term.name)
        # Only where the base parameter is this number alone is its sign known.
        if np.count_nonzero(np.abs(estimate.base.matrix[column]) > 1e-9) > 1:
            continue
        size = value / sigma if sigma > 0 else (0.0 if value >= 0 else -np.inf)
        if size < lowest:
            lowest, worst = float(size), term.name
    turned = [f for f in evidence.findings or () if f.severity == "error" and "sign" in f.what]
    figure = max(-lowest, 0.0) if worst else 0.0
    if turned:
        words = f"'{turned[0].joint}': {_plain(turned[0])} ({turned[0].how_much})"
        return Check(name, "failed", words, figure, _SIGMAS, 2 * _SIGMAS, "deviations below zero", turned[0].what_to_do)
    if figure > _SIGMAS:
        words = f"'{worst}' is negative by {figure:.0f} deviations: it drives where it should brake"
    else:
        words = "no friction or rotor inertia has the wrong sign"
    return graded(name, figure, _SIGMAS, 2 * _SIGMAS, "deviations below zero", words, "check the sign of the torques")


def check_delay(evidence: Evidence) -> Check:
    """Whether torques come later or earlier than the motion they make."""
    name = "delay"
    if evidence.missing is None or not evidence.motions:
        return unchecked(name, "the fitted recording was not given, or its torques cannot be searched")
    step = evidence.raw_step
    late = [e for e in (*evidence.missing.effects, *evidence.missing.candidates) if e.joint == ALL_JOINTS]
    told = [f for f in evidence.findings or () if "the motion." in f.what and "torque" in f.what]
    if not late:
        return unchecked(name, "the motion does not show delays")
    effect = late[0]
    size = float(np.sqrt(max(effect.share, 0.0)) * np.median(evidence.estimate.relative_error))
    matters = effect.p_value < evidence.missing.level and size > _DELAY_SIZE
    samples = abs(effect.coefficient) / step if matters else 0.0
    words = (
        f"torques {'lag behind' if effect.coefficient > 0 else 'run ahead of'} the motion by "
        f"{1e3 * abs(effect.coefficient):.3g} ms, which explains {100 * effect.share:.0f} % of what the model leaves"
        if matters and samples > _SAMPLES
        else "no delay between torques and motion matters"
    )
    if told and samples <= _SAMPLES:
        where = ", ".join(sorted({f.joint for f in told}))
        return Check(name, "warned", f"{_plain(told[0])} ({where}: {told[0].how_much})", advice=told[0].what_to_do)
    return graded(
        name, samples, _SAMPLES, _MANY_SAMPLES, "samples", words, "give this delay to the signal settings (delay)"
    )


def check_residual(evidence: Evidence) -> Check:
    """Whether what the model leaves follows speed, acceleration, position or torque."""
    name = "residual"
    if evidence.missing is None:
        return unchecked(name, "the fitted recording was not given, or its torques cannot be searched")
    relative = dict(zip(evidence.estimate.base.channels, evidence.estimate.relative_error, strict=True))

    def size(effect: Effect) -> float:
        return effect.share if relative.get(effect.joint, 0.0) > _SMALL_RESIDUAL else 0.0

    own = [e for e in evidence.missing.effects if e.joint != ALL_JOINTS]
    worst = max(own, key=size, default=None)
    figure = 0.0 if worst is None else size(worst)
    words = (
        "what the model leaves follows neither speed nor acceleration nor position enough to matter"
        if figure <= _EFFECT or worst is None
        else f"'{worst.joint}' misses {worst.words}, which explains {100 * worst.share:.0f} % of its residual"
    )
    return graded(name, figure, _EFFECT, _LARGE_EFFECT, "of the residual", words, evidence.missing.advice)


def check_feedback(evidence: Evidence) -> Check:
    """Whether noise that feedback brings into the torques biases the estimate."""
    name, diagnosis = "feedback", evidence.diagnosis
    test = None if diagnosis is None else next((t for t in diagnosis.tests if "exogen" in t.name.lower()), None)
    if test is None:
        return unchecked(name, "bias by feedback is tested with the controller only (dynid.stats.diagnose)")
    instruments = ("iv", "didim", "pc-iv", "pc-didim")
    harmless = not test.rejected or evidence.estimate.method in instruments
    words = f"{test.verdict}" + ("; the method does not rest on it" if test.rejected and harmless else "")
    result = "passed" if harmless else "warned"
    return Check(name, result, words, test.p_value, test.level, None, "p-value", "" if harmless else test.advice)  # type: ignore[arg-type]


def check_data(evidence: Evidence) -> Check:
    """What the data checks found."""
    name = "data"
    if evidence.findings is None:
        return unchecked(name, "the fitted recording was not given")
    errors = [f for f in evidence.findings if f.severity == "error"]
    warnings = [f for f in evidence.findings if f.severity == "warning"]
    if not errors and not warnings:
        return Check(name, "passed", "nothing was found wrong with the recordings", 0, 0, None, "findings")
    first = (errors or warnings)[0]
    where = f"'{first.joint}': " if first.joint else ""
    more = len(errors) + len(warnings) - 1
    words = f"{where}{_plain(first)} ({first.how_much})" + (f", and {more} more findings" if more else "")
    result = "failed" if errors else "warned"
    return Check(name, result, words, float(more + 1), 0, None, "findings", first.what_to_do)  # type: ignore[arg-type]


def _plain(finding: Finding) -> str:
    return finding.what.rstrip(".")
