"""Checks that name causes: what is wrong with geometry, torques or drives, or changed during the recording."""

from __future__ import annotations

import numpy as np

from dynid.assessment.causes.cause import Cause
from dynid.assessment.data.torque import TORQUE_DELAY
from dynid.assessment.verdict.assessment import Check, CheckCode, Result
from dynid.assessment.verdict.evidence import Evidence
from dynid.assessment.verdict.grade import unchecked

__all__ = [
    "check_change",
    "check_delay",
    "check_flexibility",
    "check_geometry",
    "check_residual",
    "check_torque_scale",
]

# A cause that is named warns. It fails where parameters cannot imitate this share of a joint's torque, it explains this
# share of the residual, and it is this probable.
_FAILS, _FAILING_SHARE, _PROBABLE = 0.1, 0.5, 0.5
# It is told and does not warn where it is less probable than that, its correction gains nothing on motion that is not
# in the fit, and parameters imitate it up to this share of a joint's torque: half of what a user would call an error.
_HARMLESS = 0.01
# Wrong gains that would not be named are said from this size.
_VISIBLE_GAIN = 0.1
_OTHER_JOINTS = "the joints of the log are not those of the robot: what follows from that is not searched for"
_UNKNOWN = "the fitted recording was not given, or it does not have the torques of all joints"


def check_geometry(evidence: Evidence) -> Check:
    """Check for a tilted base, encoder offsets and links of the wrong length."""
    return _named(evidence, CheckCode.GEOMETRY, "no tilt, encoder offset or wrong link length is seen")


def check_torque_scale(evidence: Evidence) -> Check:
    """Check for torques that do not fit those of other joints, or have wrong gravity, and for exchanged joints."""
    words = "the torques of all joints fit each other"
    visible = {} if evidence.causes is None else evidence.causes.visible_gain
    blind = {joint: x for joint, x in visible.items() if x > _VISIBLE_GAIN}
    if blind:
        sizes = ", ".join(f"{100 * x:.0f} % in '{j}'" if x < 1.0 else f"any in '{j}'" for j, x in blind.items())
        words += f"; parameters of the model imitate wrong gains up to these sizes, which no check sees: {sizes}"
    return _named(evidence, CheckCode.TORQUE_SCALE, words)


def check_flexibility(evidence: Evidence) -> Check:
    """Check for elastic joints, a rocking base, and backlash."""
    return _named(evidence, CheckCode.FLEXIBILITY, "no elasticity or backlash is seen")


def check_change(evidence: Evidence) -> Check:
    """Check for friction that drifts, and for a payload that one of the runs carries."""
    return _named(evidence, CheckCode.CHANGE, "nothing changed during or between the recordings")


def check_delay(evidence: Evidence) -> Check:
    """Check for torques that lag the motion, by a delay or a low-pass, and for a clock with another rate."""
    words = "there is no significant delay between torques and motion"
    found = _named(evidence, CheckCode.DELAY, words)
    findings = [f for f in evidence.findings or () if f.code == TORQUE_DELAY]
    if findings and found.result == "passed":
        first, where = findings[0], ", ".join(sorted({f.joint for f in findings}))
        words = f"{first.what.rstrip('.')} ({where}: {first.how_much})"
        return Check(CheckCode.DELAY, "warned", words, advice=first.what_to_do)
    return found


def check_residual(evidence: Evidence) -> Check:
    """Check for effects in the drives that the model does not have: friction, ripple, saturation, springs."""
    return _named(evidence, CheckCode.RESIDUAL, "no effect of the drives is missing from the model")


def _named(evidence: Evidence, code: CheckCode, passed: str) -> Check:
    """Check for its causes; the one that most probably matters most is named, the worst decides."""
    if evidence.other_joints:
        return unchecked(code, _OTHER_JOINTS)
    if evidence.causes is None:
        return unchecked(code, _UNKNOWN)
    found = [c for c in evidence.told_causes if c.code.check == code]
    unit = "of the torque"
    if not found:
        return Check(code, "passed", passed, 0.0, 0.0, _FAILS, unit)
    weights = [_weight(evidence, c) for c in found]
    harmless = all(_harmless(c, weight) for c, weight in zip(found, weights, strict=True))
    failed = any(_fails(c, weight) for c, weight in zip(found, weights, strict=True))
    result: Result = "failed" if failed else "passed" if harmless else "warned"
    first = max(found, key=lambda c: c.probability * c.unexplained)
    words = str(first) + (f", and {len(found) - 1} more" if len(found) > 1 else "")
    if harmless:
        words = f"nothing that changes a torque by {100 * _HARMLESS:.0f} %; {words}"
    effects = tuple(dict.fromkeys(c.option for c in found if c.option))
    worst = max(c.unexplained for c in found)
    return Check(code, result, words, worst, 0.0, _FAILS, unit, first.advice, effects)


def _harmless(cause: Cause, weight: float) -> bool:
    """Whether a cause is improbable, and its correction gains so little that nobody would miss it."""
    useless = cause.trial is not None and not cause.trial.gains and not cause.code.fatal
    return useless and cause.probability < _PROBABLE and weight * cause.unexplained < _HARMLESS


def _fails(cause: Cause, weight: float) -> bool:
    """Whether a cause makes the estimate useless, by its part of the torque that counts, and is probably the right one.

    The error itself fails where it is too large, whatever its cause.
    """
    large = weight * cause.unexplained > _FAILS and cause.share > _FAILING_SHARE
    return cause.code.fatal or (large and cause.probability >= _PROBABLE)


def _weight(evidence: Evidence, cause: Cause) -> float:
    """Torque of the joints of a cause over the torque that counts there: less than one for joints that carry little."""
    torques = evidence.torques
    own = torques.size / np.maximum(np.maximum(torques.size, torques.floor), 1e-300)
    concerned = [own[k] for k, channel in enumerate(torques.channels) if channel in cause.joints]
    return float(np.nanmax(concerned)) if concerned else 1.0
