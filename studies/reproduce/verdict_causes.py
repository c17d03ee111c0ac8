"""The right causes of each kind of fault, as codes, and the kinds that no data could tell."""

from __future__ import annotations

from collections.abc import Mapping

from dynid.assessment.causes.cause import CauseCode
from dynid.assessment.finding import FindingCode
from dynid.assessment.verdict.assessment import Assessment, CheckCode
from dynid.assessment.verdict.evidence import Evidence
from studies.reproduce.verdict_setup import Fault

__all__ = ["INVISIBLE", "RIGHT_CAUSES", "named_codes"]

# Any of these codes, of a check, a finding or a cause, names the fault.
RIGHT_CAUSES: Mapping[Fault, frozenset[str]] = {
    Fault.TORQUE_GAIN: frozenset({FindingCode.TORQUE_GAIN, CauseCode.TORQUE_GAIN}),
    Fault.TORQUE_SIGN: frozenset({FindingCode.TORQUE_SIGN, FindingCode.FRICTION_SIGN, CheckCode.SIGNS}),
    Fault.TORQUE_DELAY: frozenset({CheckCode.DELAY, CauseCode.DELAY, FindingCode.TORQUE_DELAY}),
    # A first-order low-pass of f Hz is a delay of 1 / (2 pi f) s for motion well below f.
    Fault.TORQUE_LOW_PASS: frozenset({CauseCode.LOW_PASS, CauseCode.DELAY, FindingCode.TORQUE_DELAY}),
    Fault.TORQUE_CLIPPED: frozenset({FindingCode.TORQUE_SATURATED, CauseCode.SATURATION}),
    Fault.TORQUE_QUANTIZED: frozenset({FindingCode.TORQUE_RESOLUTION}),
    Fault.TORQUE_SPIKES: frozenset({FindingCode.TORQUE_SPIKES, FindingCode.VALUE_IMPLAUSIBLE}),
    Fault.GRAVITY_COMPENSATED: frozenset({FindingCode.TORQUE_GRAVITY_COMPENSATED, CauseCode.GRAVITY_COMPENSATED}),
    Fault.COMPUTED_TORQUE: frozenset({FindingCode.TORQUE_COMPUTED}),
    Fault.ENCODER_OFFSET: frozenset({CauseCode.ENCODER_OFFSET}),
    Fault.DEGREES: frozenset({FindingCode.POSITION_UNIT}),
    Fault.JOINTS_SWAPPED: frozenset({FindingCode.JOINT_ORDER, CauseCode.JOINTS_SWAPPED}),
    Fault.STAMP_JITTER: frozenset({FindingCode.SAMPLING_UNEVEN, FindingCode.STAMPS_NOISY}),
    Fault.SAMPLES_LOST: frozenset({FindingCode.SAMPLES_MISSING}),
    Fault.ROWS_REPEATED: frozenset({FindingCode.ROWS_REPEATED}),
    Fault.TORQUE_ASYMMETRIC: frozenset({CauseCode.TORQUE_ASYMMETRIC}),
    Fault.TORQUE_RECTIFIED: frozenset({FindingCode.TORQUE_UNSIGNED}),
    Fault.TORQUE_NONLINEAR: frozenset({CauseCode.TORQUE_NONLINEAR}),
    Fault.CROSSTALK: frozenset({CauseCode.CROSSTALK}),
    Fault.CLOCK_RATE: frozenset({CauseCode.CLOCK_RATE}),
    Fault.ZEROS_TURNED: frozenset({FindingCode.POSITION_ZERO}),
    Fault.REUSED_RECORDING: frozenset({CheckCode.UNSEEN_MOTION}),
    Fault.LINK_LENGTH: frozenset({CauseCode.PLACEMENT}),
    # Torques that oppose gravity: the torques of all loaded joints are reversed, or gravity is.
    Fault.GRAVITY_SIGN: frozenset({FindingCode.TORQUE_SIGN, CauseCode.GRAVITY_REVERSED}),
    Fault.BASE_TILT: frozenset({CauseCode.TILT}),
    Fault.ELASTICITY: frozenset({CauseCode.ELASTICITY}),
    Fault.SWINGING_BASE: frozenset({CauseCode.SWINGING_BASE}),
    Fault.BACKLASH: frozenset({CauseCode.BACKLASH}),
    Fault.THERMAL_DRIFT: frozenset({CauseCode.DRIFT}),
    Fault.DRIVE_SATURATED: frozenset({FindingCode.TORQUE_SATURATED, CauseCode.SATURATION}),
    Fault.PRESLIDING: frozenset({CauseCode.PRESLIDING}),
    Fault.CONTACT: frozenset({CauseCode.CONTACT}),
    Fault.COGGING: frozenset({CauseCode.RIPPLE}),
    Fault.STRIBECK: frozenset({CauseCode.STRIBECK, CauseCode.FRICTION}),
    Fault.LOAD_FRICTION: frozenset({CauseCode.LOAD_FRICTION}),
    Fault.PAYLOAD: frozenset({CheckCode.PAYLOAD, CauseCode.PAYLOAD}),
    Fault.JOINT_STILL: frozenset({FindingCode.JOINT_NOT_MOVING, CheckCode.STANDSTILL}),
    Fault.POSITION_SIGN: frozenset({FindingCode.TORQUE_SIGN, FindingCode.POSITION_ZERO, CheckCode.SIGNS}),
    Fault.JOINT_REVERSED: frozenset(
        {CauseCode.TORQUE_GAIN, FindingCode.TORQUE_SIGN, CheckCode.SIGNS, FindingCode.POSITION_ZERO}
    ),
    Fault.GEAR_RATIO: frozenset({CauseCode.POSITION_GAIN}),
    Fault.POSITION_COARSE: frozenset({FindingCode.POSITION_RESOLUTION}),
    Fault.POSITION_STUCK: frozenset({FindingCode.POSITION_STUCK}),
    Fault.POSITION_WRAPPED: frozenset({FindingCode.ANGLE_WRAPPED}),
    Fault.POSITION_COMMANDED: frozenset({CauseCode.DELAY, FindingCode.TORQUE_DELAY}),
    Fault.CLOCK_JUMP: frozenset({FindingCode.SAMPLES_MISSING, FindingCode.SAMPLING_UNEVEN}),
    Fault.TORQUE_UNIT: frozenset({FindingCode.TORQUE_UNIT, FindingCode.TORQUE_LIMIT, FindingCode.VALUE_IMPLAUSIBLE}),
    Fault.TORQUE_ZERO: frozenset({FindingCode.TORQUE_ZERO, FindingCode.TORQUE_CONSTANT}),
    # Torques that are held are late by half their period, and have few values.
    Fault.TORQUE_HELD: frozenset({CauseCode.DELAY, CauseCode.LOW_PASS, FindingCode.TORQUE_DELAY}),
    Fault.TORQUE_DRIFT: frozenset({CauseCode.DRIFT}),
    Fault.TORQUE_TONE: frozenset({CauseCode.ELASTICITY, CauseCode.UNKNOWN}),
    Fault.ONE_TORQUE_LATE: frozenset({CauseCode.JOINT_DELAY, FindingCode.TORQUE_DELAY}),
    Fault.SPRING: frozenset({CauseCode.SPRING}),
    Fault.COUNTERBALANCE: frozenset({CauseCode.GRAVITY, CauseCode.SPRING}),
    Fault.CABLE: frozenset({CauseCode.HYSTERESIS, CauseCode.PRESLIDING}),
    Fault.COUPLED_FRICTION: frozenset({CauseCode.COUPLING}),
    Fault.PAYLOAD_CHANGED: frozenset({CauseCode.PAYLOAD}),
    Fault.OTHER_ROBOT: frozenset({CheckCode.PARAMETER_AGREEMENT, CauseCode.PAYLOAD, CheckCode.PAYLOAD}),
    Fault.GRAVITY_MISSING: frozenset({CauseCode.GRAVITY_MISSING}),
}

# Kinds that may stay trusted where their effect on predicted torque is small; docs/faults.md says why.
INVISIBLE: frozenset[Fault] = frozenset(
    {
        Fault.TORQUE_GAIN,
        Fault.TORQUE_ASYMMETRIC,
        Fault.TORQUE_NONLINEAR,
        Fault.TORQUE_RECTIFIED,
        Fault.ENCODER_OFFSET,
        Fault.LINK_LENGTH,
        Fault.JOINTS_SWAPPED,
        Fault.TORQUE_QUANTIZED,
        Fault.TORQUE_DELAY,
        Fault.ELASTICITY,
        Fault.BACKLASH,
        Fault.SWINGING_BASE,
        Fault.JOINT_REVERSED,
        Fault.GEAR_RATIO,
        Fault.COUNTERBALANCE,
        Fault.ONE_TORQUE_LATE,
        # Clocks that were recovered.
        Fault.STAMP_JITTER,
        Fault.SAMPLES_LOST,
        Fault.ROWS_REPEATED,
        # Friction that method "auto" models.
        Fault.STRIBECK,
    }
)


def named_codes(evidence: Evidence, assessment: Assessment) -> set[str]:
    """Codes of all that an assessment names: checks that warned or failed, findings of any severity, causes."""
    found = {str(c.code) for c in assessment.checks if c.result in ("warned", "failed")}
    found |= {str(f.code) for f in evidence.findings or ()}
    causes = evidence.causes.causes if evidence.causes is not None else ()
    return found | {str(x.code) for c in causes for x in (c, *c.alternatives)}
