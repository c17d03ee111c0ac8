"""The right causes of each kind of fault, as codes, and the kinds that no data could tell."""

from __future__ import annotations

from collections.abc import Mapping

from dynid.assessment.causes.cause import CauseCode
from dynid.assessment.data.battery import finding_codes
from dynid.assessment.verdict.assessment import Assessment, CheckCode
from dynid.assessment.verdict.evidence import Evidence
from studies.reproduce.verdict_setup import Fault

__all__ = ["INVISIBLE", "RIGHT_CAUSES", "named_codes"]

_CODES = finding_codes()
# Any of these codes, of a check, a finding or a cause, names the fault.
RIGHT_CAUSES: Mapping[Fault, frozenset[str]] = {
    Fault.TORQUE_GAIN: frozenset({_CODES["torque_gain"], CauseCode.TORQUE_GAIN}),
    Fault.TORQUE_SIGN: frozenset({_CODES["torque_sign"], _CODES["friction_sign"], CheckCode.SIGNS}),
    Fault.TORQUE_DELAY: frozenset({CheckCode.DELAY, CauseCode.DELAY, _CODES["torque_delay"]}),
    # A first-order low-pass of f Hz is a delay of 1 / (2 pi f) s for motion well below f.
    Fault.TORQUE_LOW_PASS: frozenset({CauseCode.LOW_PASS, CauseCode.DELAY, _CODES["torque_delay"]}),
    Fault.TORQUE_CLIPPED: frozenset({_CODES["torque_saturated"], CauseCode.SATURATION}),
    Fault.TORQUE_QUANTIZED: frozenset({_CODES["torque_resolution"]}),
    Fault.TORQUE_SPIKES: frozenset({_CODES["torque_spikes"], _CODES["value_implausible"]}),
    Fault.GRAVITY_COMPENSATED: frozenset({_CODES["torque_gravity_compensated"], CauseCode.GRAVITY_COMPENSATED}),
    Fault.COMPUTED_TORQUE: frozenset({_CODES["torque_computed"]}),
    Fault.ENCODER_OFFSET: frozenset({CauseCode.ENCODER_OFFSET}),
    Fault.DEGREES: frozenset({_CODES["position_unit"]}),
    Fault.JOINTS_SWAPPED: frozenset({_CODES["joint_order"], CauseCode.JOINTS_SWAPPED}),
    Fault.STAMP_JITTER: frozenset({_CODES["sampling_uneven"], _CODES["stamps_noisy"]}),
    Fault.SAMPLES_LOST: frozenset({_CODES["samples_missing"]}),
    Fault.ROWS_REPEATED: frozenset({_CODES["rows_repeated"]}),
    Fault.TORQUE_ASYMMETRIC: frozenset({CauseCode.TORQUE_ASYMMETRIC}),
    Fault.TORQUE_RECTIFIED: frozenset({_CODES["torque_unsigned"]}),
    Fault.TORQUE_NONLINEAR: frozenset({CauseCode.TORQUE_NONLINEAR}),
    Fault.CROSSTALK: frozenset({CauseCode.CROSSTALK}),
    Fault.CLOCK_RATE: frozenset({CauseCode.CLOCK_RATE}),
    Fault.ZEROS_TURNED: frozenset({_CODES["position_zero"]}),
    Fault.REUSED_RECORDING: frozenset({CheckCode.UNSEEN_MOTION}),
    Fault.LINK_LENGTH: frozenset({CauseCode.PLACEMENT}),
    # Torques that oppose gravity: the torques of all loaded joints are reversed, or gravity is.
    Fault.GRAVITY_SIGN: frozenset({_CODES["torque_sign"], CauseCode.GRAVITY_REVERSED}),
    Fault.BASE_TILT: frozenset({CauseCode.TILT}),
    Fault.ELASTICITY: frozenset({CauseCode.ELASTICITY}),
    Fault.SWINGING_BASE: frozenset({CauseCode.SWINGING_BASE}),
    Fault.BACKLASH: frozenset({CauseCode.BACKLASH}),
    Fault.THERMAL_DRIFT: frozenset({CauseCode.DRIFT}),
    Fault.DRIVE_SATURATED: frozenset({_CODES["torque_saturated"], CauseCode.SATURATION}),
    Fault.PRESLIDING: frozenset({CauseCode.PRESLIDING}),
    Fault.CONTACT: frozenset({CauseCode.CONTACT}),
    Fault.COGGING: frozenset({CauseCode.RIPPLE}),
    Fault.STRIBECK: frozenset({CauseCode.STRIBECK, CauseCode.FRICTION}),
    Fault.LOAD_FRICTION: frozenset({CauseCode.LOAD_FRICTION}),
    Fault.PAYLOAD: frozenset({CheckCode.PAYLOAD, CauseCode.PAYLOAD}),
    Fault.JOINT_STILL: frozenset({_CODES["joint_not_moving"], CheckCode.STANDSTILL}),
    Fault.POSITION_SIGN: frozenset({_CODES["torque_sign"], _CODES["position_zero"], CheckCode.SIGNS}),
    Fault.JOINT_REVERSED: frozenset(
        {CauseCode.TORQUE_GAIN, _CODES["torque_sign"], CheckCode.SIGNS, _CODES["position_zero"]}
    ),
    Fault.GEAR_RATIO: frozenset({CauseCode.POSITION_GAIN}),
    Fault.POSITION_COARSE: frozenset({_CODES["position_resolution"]}),
    Fault.POSITION_STUCK: frozenset({_CODES["position_stuck"]}),
    Fault.POSITION_WRAPPED: frozenset({_CODES["angle_wrapped"]}),
    Fault.POSITION_COMMANDED: frozenset({CauseCode.DELAY, _CODES["torque_delay"]}),
    Fault.CLOCK_JUMP: frozenset({_CODES["samples_missing"], _CODES["sampling_uneven"]}),
    Fault.TORQUE_UNIT: frozenset({_CODES["torque_unit"], _CODES["torque_limit"], _CODES["value_implausible"]}),
    Fault.TORQUE_ZERO: frozenset({_CODES["torque_zero"], _CODES["torque_constant"]}),
    # Torques that are held are late by half their period, and have few values.
    Fault.TORQUE_HELD: frozenset({CauseCode.DELAY, CauseCode.LOW_PASS, _CODES["torque_delay"]}),
    Fault.TORQUE_DRIFT: frozenset({CauseCode.DRIFT}),
    Fault.TORQUE_TONE: frozenset({CauseCode.ELASTICITY, CauseCode.UNKNOWN}),
    Fault.ONE_TORQUE_LATE: frozenset({CauseCode.JOINT_DELAY, _CODES["torque_delay"]}),
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
