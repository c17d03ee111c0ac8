"""The right causes of each kind of fault, as codes, and the kinds that no data could tell."""

from __future__ import annotations

from collections.abc import Mapping

from dynid.assessment.causes.cause_source import cause_codes
from dynid.assessment.data.battery import finding_codes
from dynid.assessment.verdict.assessment import Assessment, CheckCode
from dynid.assessment.verdict.evidence import Evidence
from studies.reproduce.verdict_setup import Fault

__all__ = ["INVISIBLE", "RIGHT_CAUSES", "named_codes"]

_CODES, _CAUSES = finding_codes(), cause_codes()
# Any of these codes, of a check, a finding or a cause, names the fault.
RIGHT_CAUSES: Mapping[Fault, frozenset[str]] = {
    Fault.TORQUE_GAIN: frozenset({_CODES["torque_gain"], _CAUSES["torque_gain"]}),
    Fault.TORQUE_SIGN: frozenset({_CODES["torque_sign"], _CODES["friction_sign"], CheckCode.SIGNS}),
    Fault.TORQUE_DELAY: frozenset({CheckCode.DELAY, _CAUSES["delay"], _CODES["torque_delay"]}),
    # A first-order low-pass of f Hz is a delay of 1 / (2 pi f) s for motion well below f.
    Fault.TORQUE_LOW_PASS: frozenset({_CAUSES["low_pass"], _CAUSES["delay"], _CODES["torque_delay"]}),
    Fault.TORQUE_CLIPPED: frozenset({_CODES["torque_saturated"], _CAUSES["saturation"]}),
    Fault.TORQUE_QUANTIZED: frozenset({_CODES["torque_resolution"]}),
    Fault.TORQUE_SPIKES: frozenset({_CODES["torque_spikes"], _CODES["value_implausible"]}),
    Fault.GRAVITY_COMPENSATED: frozenset({_CODES["torque_gravity_compensated"], _CAUSES["gravity_compensated"]}),
    Fault.COMPUTED_TORQUE: frozenset({_CODES["torque_computed"]}),
    Fault.ENCODER_OFFSET: frozenset({_CAUSES["encoder_offset"]}),
    Fault.DEGREES: frozenset({_CODES["position_unit"]}),
    Fault.JOINTS_SWAPPED: frozenset({_CODES["joint_order"], _CAUSES["joints_swapped"]}),
    Fault.STAMP_JITTER: frozenset({_CODES["sampling_uneven"], _CODES["stamps_noisy"]}),
    Fault.SAMPLES_LOST: frozenset({_CODES["samples_missing"]}),
    Fault.ROWS_REPEATED: frozenset({_CODES["rows_repeated"]}),
    Fault.TORQUE_ASYMMETRIC: frozenset({_CAUSES["torque_asymmetric"]}),
    Fault.TORQUE_RECTIFIED: frozenset({_CODES["torque_unsigned"]}),
    Fault.TORQUE_NONLINEAR: frozenset({_CAUSES["torque_nonlinear"]}),
    Fault.CROSSTALK: frozenset({_CAUSES["crosstalk"]}),
    Fault.CLOCK_RATE: frozenset({_CAUSES["clock_rate"]}),
    Fault.ZEROS_TURNED: frozenset({_CODES["position_zero"]}),
    Fault.REUSED_RECORDING: frozenset({CheckCode.UNSEEN_MOTION}),
    Fault.LINK_LENGTH: frozenset({_CAUSES["placement"]}),
    # Torques that oppose gravity: the torques of all loaded joints are reversed, or gravity is.
    Fault.GRAVITY_SIGN: frozenset({_CODES["torque_sign"], _CAUSES["gravity_reversed"]}),
    Fault.BASE_TILT: frozenset({_CAUSES["tilt"]}),
    Fault.ELASTICITY: frozenset({_CAUSES["elasticity"]}),
    Fault.SWINGING_BASE: frozenset({_CAUSES["swinging_base"]}),
    Fault.BACKLASH: frozenset({_CAUSES["backlash"]}),
    Fault.THERMAL_DRIFT: frozenset({_CAUSES["drift"]}),
    Fault.DRIVE_SATURATED: frozenset({_CODES["torque_saturated"], _CAUSES["saturation"]}),
    Fault.PRESLIDING: frozenset({_CAUSES["presliding"]}),
    Fault.CONTACT: frozenset({_CAUSES["contact"]}),
    Fault.COGGING: frozenset({_CAUSES["ripple"]}),
    Fault.STRIBECK: frozenset({_CAUSES["stribeck"], _CAUSES["friction"]}),
    Fault.LOAD_FRICTION: frozenset({_CAUSES["load_friction"]}),
    Fault.PAYLOAD: frozenset({CheckCode.PAYLOAD, _CAUSES["payload"]}),
    Fault.JOINT_STILL: frozenset({_CODES["joint_not_moving"], CheckCode.STANDSTILL}),
    Fault.POSITION_SIGN: frozenset({_CODES["torque_sign"], _CODES["position_zero"], CheckCode.SIGNS}),
    Fault.JOINT_REVERSED: frozenset(
        {_CAUSES["torque_gain"], _CODES["torque_sign"], CheckCode.SIGNS, _CODES["position_zero"]}
    ),
    Fault.GEAR_RATIO: frozenset({_CAUSES["position_gain"]}),
    Fault.POSITION_COARSE: frozenset({_CODES["position_resolution"]}),
    Fault.POSITION_STUCK: frozenset({_CODES["position_stuck"]}),
    Fault.POSITION_WRAPPED: frozenset({_CODES["angle_wrapped"]}),
    Fault.POSITION_COMMANDED: frozenset({_CAUSES["delay"], _CODES["torque_delay"]}),
    Fault.CLOCK_JUMP: frozenset({_CODES["samples_missing"], _CODES["sampling_uneven"]}),
    Fault.TORQUE_UNIT: frozenset({_CODES["torque_unit"], _CODES["torque_limit"], _CODES["value_implausible"]}),
    Fault.TORQUE_ZERO: frozenset({_CODES["torque_zero"], _CODES["torque_constant"]}),
    # Torques that are held are late by half their period, and have few values.
    Fault.TORQUE_HELD: frozenset({_CAUSES["delay"], _CAUSES["low_pass"], _CODES["torque_delay"]}),
    Fault.TORQUE_DRIFT: frozenset({_CAUSES["drift"]}),
    Fault.TORQUE_TONE: frozenset({_CAUSES["elasticity"], _CAUSES["unknown"]}),
    Fault.ONE_TORQUE_LATE: frozenset({_CAUSES["joint_delay"], _CODES["torque_delay"]}),
    Fault.SPRING: frozenset({_CAUSES["spring"]}),
    Fault.COUNTERBALANCE: frozenset({_CAUSES["gravity"], _CAUSES["spring"]}),
    Fault.CABLE: frozenset({_CAUSES["hysteresis"], _CAUSES["presliding"]}),
    Fault.COUPLED_FRICTION: frozenset({_CAUSES["coupling"]}),
    Fault.PAYLOAD_CHANGED: frozenset({_CAUSES["payload"]}),
    Fault.OTHER_ROBOT: frozenset({CheckCode.PARAMETER_AGREEMENT, _CAUSES["payload"], CheckCode.PAYLOAD}),
    Fault.GRAVITY_MISSING: frozenset({_CAUSES["gravity_missing"]}),
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
