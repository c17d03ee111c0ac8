"""Checks of measured velocities against differentiated positions: unit, sign, delay, noise."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynid.assessment.data.context import Cleaned, Context
from dynid.assessment.data.fit import Delay, find_delay, gain_of
from dynid.assessment.data.order import velocity_order
from dynid.assessment.data.recording_check import RecordingCheck
from dynid.assessment.finding import Finding, FindingCode
from dynid.recording.run import Run
from dynid.robot.model import Robot

__all__ = ["VELOCITY", "VELOCITY_SIGN"]

VELOCITY_GAIN = FindingCode(
    "velocity_gain", "the velocity is a multiple of the derivative of the position", "error", signal="v"
)
VELOCITY_DELAY = FindingCode("velocity_delay", "the velocity is delayed", "warning", signal="v")
VELOCITY_UNRELATED = FindingCode(
    "velocity_unrelated", "the velocity is unrelated to the position", "warning", signal="v"
)
VELOCITY_NOISE = FindingCode("velocity_noise", "the velocity is noisy", "warning", signal="v")
VELOCITY_SIGN = FindingCode("velocity_sign", "the velocity has the wrong sign", "error", signal="v")
VELOCITY_IS_POSITION = FindingCode("velocity_is_position", "the velocity is a commanded position", "error", signal="v")
VELOCITY_UNIT = FindingCode("velocity_unit", "the velocity is in another unit", "error", signal="v")

# Velocity filters of controllers have delays of up to a few tenths of a second.
_LONGEST_DELAY = 0.5
# The position explains at least this share of a velocity that belongs to it, including noise.
_BELONGS = 0.5
# A command leaves less than this share to the position that follows it.
_REPEATS = 0.02
# Scales of encoders are far more exact than this; a larger error is a unit or a gear ratio.
_FACTOR = 0.1
# Named factors are recognised within this share.
_RECOGNISED = 0.03
# Velocity errors of five percent by a delay, or of thirty percent by noise, are reported.
_DELAY_ERROR = 0.05
_NOISE_ERROR = 0.3
# Differences computed in the controller lag by half a sample or one, which does not count as a delay.
_STEPS = 1.5
_ANGULAR_FACTORS = {
    180 / np.pi: ("in degrees per second", "deg/s"),
    np.pi / 180: ("in radians where positions are in degrees", "rad/s, and positions in deg"),
    60 / (2 * np.pi): ("in revolutions per minute", "rpm"),
    1 / (2 * np.pi): ("in revolutions per second", "rev/s"),
    2 * np.pi: ("in radians where positions are in revolutions", "rad/s, and positions in rev"),
}
_LINEAR_FACTORS = {1e3: ("in millimetres per second", "mm/s"), 1e-3: ("in metres, positions in millimetres", "m/s")}


def check_velocity(robot: Robot, run: Run, context: Context) -> Iterator[Finding]:
    """Check unit, sign, delay and noise of every joint's velocity."""
    cleaned = context.cleaned(run)
    if cleaned is None or cleaned.measured_v is None:
        return
    elsewhere = velocity_order(run, context)
    for j, _ in context.joints():
        if cleaned.moving[j] and np.ptp(cleaned.measured_v[:, j]) > 0 and elsewhere[j] == j:
            yield from _check_joint(run, context, cleaned, j)


def _check_joint(run: Run, context: Context, cleaned: Cleaned, j: int) -> Iterator[Finding]:
    """Check the velocity of one joint."""
    assert cleaned.measured_v is not None and cleaned.v_noise is not None
    true, measured = cleaned.v[:, j], cleaned.measured_v[:, j]
    delay = find_delay(true[:, None], measured, cleaned.step, _LONGEST_DELAY, centered=False)
    if 1.0 - delay.rest < _BELONGS:
        position = np.column_stack([cleaned.q[:, j], np.ones(len(true))])
        followed = find_delay(position, measured, cleaned.step, _LONGEST_DELAY)
        if followed.rest < _REPEATS:
            yield context.found(
                VELOCITY_IS_POSITION,
                run,
                j,
                "The velocity is a position: the joint follows it, as it does a command.",
                f"{100 * (1 - followed.rest):.4g} percent of it is explained by the position",
                "Read this column as the commanded position (columns: reference), not as velocity.",
            )
            return
        yield context.found(
            VELOCITY_UNRELATED,
            run,
            j,
            "The velocity is unrelated to the derivative of the position.",
            f"{100 * (1 - delay.rest):.3g} percent of it is explained by the position",
            "Check that both columns belong to this joint; differentiate the position instead of using this velocity.",
        )
        return
    clock = np.arange(len(true)) * cleaned.step
    shifted = np.interp(clock - delay.seconds, clock, true)
    gain = gain_of(shifted, np.zeros((len(true), 0)), measured)
    yield from _check_factor(run, context, j, gain.value)
    yield from _check_delay(run, context, cleaned, j, delay)
    noise = float(np.hypot(cleaned.v_noise[j], gain.rest))
    size = abs(gain.value) * float(np.sqrt(np.mean(true**2)))
    if noise > _NOISE_ERROR * size:
        yield context.found(
            VELOCITY_NOISE,
            run,
            j,
            "The velocity is noisy.",
            f"{100 * noise / size:.3g} percent of the velocity is noise ({noise:.3g} {context.unit(j)} per second)",
            "Differentiate filtered positions instead of using this velocity.",
        )


def _check_factor(run: Run, context: Context, j: int, gain: float) -> Iterator[Finding]:
    """Check sign and unit of a velocity."""
    if gain < 0:
        yield context.found(
            VELOCITY_SIGN,
            run,
            j,
            "The velocity has the opposite sign of the derivative of the position.",
            f"{gain:.4g} times the derivative of the position",
            "Reverse the sign of this joint's velocity, or of its position and torque if those are wrong.",
        )
    size = abs(gain)
    if abs(size - 1) <= _FACTOR:
        return
    known = _ANGULAR_FACTORS if context.angular[j] else _LINEAR_FACTORS
    for factor, (words, unit) in known.items():
        if abs(size / factor - 1) < _RECOGNISED:
            yield context.found(
                VELOCITY_UNIT,
                run,
                j,
                f"The velocity is {words}.",
                f"{size:.4g} times the derivative of the position",
                f"Give its unit when loading: {unit}.",
            )
            return
    yield context.found(
        VELOCITY_GAIN,
        run,
        j,
        "The velocity is a multiple of the derivative of the position: a gear ratio, a unit, or a wrong sampling rate.",
        f"{size:.4g} times the derivative of the position",
        "Give the scale of this joint's velocity when loading, or correct the sampling rate.",
    )


def _check_delay(run: Run, context: Context, cleaned: Cleaned, j: int, delay: Delay) -> Iterator[Finding]:
    """Check the delay of a velocity."""
    error = float(np.sqrt(max(0.0, delay.rest_at_zero - delay.rest)))
    if abs(delay.seconds) < _STEPS * cleaned.raw_step or error < _DELAY_ERROR:
        return
    late = "lags behind" if delay.seconds > 0 else "runs ahead of"
    yield context.found(
        VELOCITY_DELAY,
        run,
        j,
        f"The velocity {late} the position, which causes an error of {100 * error:.2g} percent.",
        f"{abs(delay.seconds):.3g} seconds",
        "Differentiate filtered positions instead of using this velocity.",
    )


VELOCITY = RecordingCheck(
    name="velocity",
    finds="commanded positions that are read as velocities (`qd_*`); unit (degrees, revolutions, per minute), gear "
    "ratio, sign, delay and noise against the differentiated position",
    advice="name the column `reference`; give the unit or sign, or differentiate positions instead",
    codes=(
        VELOCITY_IS_POSITION,
        VELOCITY_UNRELATED,
        VELOCITY_SIGN,
        VELOCITY_UNIT,
        VELOCITY_GAIN,
        VELOCITY_DELAY,
        VELOCITY_NOISE,
    ),
    of_run=check_velocity,
)
