"""Checks of measured torques against the a-priori model: sign, gain, delay, offset, and efforts that are no torques."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.data.context import Cleaned, Context
from dynid.assessment.data.fit import Gain, basis, effective_rows, find_delay, gain_of
from dynid.assessment.data.order import joint_order, torque_order
from dynid.assessment.data.recording_check import RecordingCheck
from dynid.assessment.data.zeros import joint_zeros
from dynid.assessment.finding import Finding, FindingCode
from dynid.recording.run import Run
from dynid.robot.drives import TermKind
from dynid.robot.model import Robot
from dynid.signals.unsigned import is_unsigned

__all__ = [
    "FRICTION_SIGN",
    "TORQUE",
    "TORQUE_DELAY",
    "TORQUE_GRAVITY_COMPENSATED",
    "TORQUE_SIGN",
    "TORQUE_TOO_SMALL",
    "TORQUE_UNRELATED",
    "TORQUE_UNSIGNED",
]

Array = NDArray[np.float64]

TORQUE_OFFSET = FindingCode("torque_offset", "the torque has a constant offset", ("warning", "info"), signal="torque")
TORQUE_UNSIGNED = FindingCode(
    "torque_unsigned",
    "the torques never change their sign although the joints move in both directions: unsigned currents; or that of "
    "one joint always has the sign of the velocity",
    "error",
    signal="torque",
)
TORQUE_NOT_COMPARED = FindingCode(
    "torque_not_compared", "the torques cannot be compared with an a-priori model", "info", signal="torque"
)
TORQUE_DELAY = FindingCode(
    "torque_delay", "the torque is delayed against the motion, or runs ahead of it", "warning", signal="torque"
)
TORQUE_SIGN = FindingCode(
    "torque_sign", "the torque has the wrong sign against the a-priori model", "error", signal="torque"
)
TORQUE_UNIT = FindingCode(
    "torque_unit",
    "the factor is so large that the channel is a current, a motor torque or in another unit",
    "warning",
    signal="torque",
)
TORQUE_GAIN = FindingCode(
    "torque_gain", "the torque differs from the a-priori model by a factor", "warning", signal="torque"
)
FRICTION_SIGN = FindingCode("friction_sign", "the friction in the torque has the wrong sign", "error", signal="torque")
TORQUE_TOO_SMALL = FindingCode(
    "torque_too_small", "the effort varies far less than the torque that the motion needs", "warning", signal="torque"
)
TORQUE_GRAVITY_COMPENSATED = FindingCode(
    "torque_gravity_compensated", "the effort does not contain the static load", "warning", signal="torque"
)
TORQUE_UNRELATED = FindingCode(
    "torque_unrelated", "the effort is unrelated to the torque that the motion needs", "warning", signal="torque"
)

# Torques are delayed by milliseconds; beyond a fifth of a second the fit finds another part of the motion.
_LONGEST_DELAY = 0.2
# A delay must reduce the error at zero delay to this share; otherwise it may be a model error.
_DELAY_SAVES = 0.7
# Increase of the log-likelihood, over independent rows, from which a delay is significant.
_DELAY_EVIDENCE = 12.0
_STEPS = 1.5
# Below this share of its highest velocity, a joint may stick.
_AT_REST = 0.05
# Share of the torque left by friction, offset and inertia that the model must explain before its gain is checked.
_SIGN_SHARE, _GAIN_SHARE = 0.5, 0.8
_SIGMAS = 4.0
# A-priori models have errors of tens of percent; a factor of two is more.
_FAR = 2.0
# Beyond this factor the cause is not a model error or a payload.
_NOT_A_TORQUE = 5.0
# A torque that varies less than this share of the model's cannot have moved the robot.
_TOO_SMALL = 0.2
# Share of the effort limit below which the torque of the model is too uncertain for a comparison.
_LOADED = 0.02
_UNRELATED = 0.1
# Friction that explains more than this share of a torque must brake the motion; otherwise the sign is wrong.
_FRICTION_SHARE = 0.6
# Friction can be separated from offset and load only if the joint moves this share of the time in each direction.
_BOTH_DIRECTIONS = 0.2
# Offsets beyond this share of the torque's variation are reported; beyond a half they bias a model without offset.
_OFFSET, _LARGE_OFFSET = 0.1, 0.5
# Share of the samples in which a torque without sign has that of the velocity, fits until the signs of the model stay,
# and the share that must change.
_ALWAYS, _SIGN_FITS, _TURNED = 0.98, 20, 0.03
# Terms that model an offset: the constant itself, or Coulomb friction that differs by direction.
_OFFSETS = (TermKind.OFFSET, TermKind.COULOMB_POSITIVE)


def check_torque(robot: Robot, run: Run, context: Context) -> Iterator[Finding]:
    """Check sign, gain, delay and offset of every joint's torque against the a-priori bodies."""
    cleaned = context.cleaned(run)
    if cleaned is None or cleaned.torque is None or run.torque is None:
        return
    if is_unsigned(cleaned.v[:, cleaned.moving], run.torque[:, cleaned.moving]):
        yield context.found(
            TORQUE_UNSIGNED,
            run,
            None,
            "The torques never change their sign although the joints move in both directions: they are magnitudes, "
            "such as unsigned currents.",
            f"{np.count_nonzero(cleaned.moving)} joints",
            "Log signed torques or currents; or leave them out and identify the actuators from commands and positions.",
        )
        return
    if cleaned.model is None:
        yield context.found(
            TORQUE_NOT_COMPARED,
            run,
            None,
            "The torques cannot be compared with the robot: its masses or the motion of its base are unknown.",
            "0 joints compared",
            "Give a-priori masses, even rough ones, so that signs, gains and delays can be checked.",
        )
        return
    if joint_order(run, context) != tuple(range(robot.n)) or any((0, 1) not in x for x in joint_zeros(run, context)):
        return  # the columns must be in the right order, and positions those of the robot first
    own = torque_order(run, context)
    for j, _ in context.joints():
        # A joint at rest is held by stiction.
        if own[j] == j and cleaned.moving[j] and np.ptp(cleaned.torque[:, j]) > 0:
            yield from _without_sign(run, context, cleaned, j)
            yield from _check_joint(run, context, cleaned, j)


def _check_joint(run: Run, context: Context, cleaned: Cleaned, j: int) -> Iterator[Finding]:
    """Check the torque of one joint."""
    assert cleaned.torque is not None and cleaned.model is not None
    y, model = cleaned.torque[:, j], cleaned.model[:, j]
    v, a, direction = cleaned.v[:, j], cleaned.a[:, j], cleaned.direction[:, j]
    one = np.ones(len(y))
    others = np.column_stack([one, v, direction, a])
    seconds = _delay(cleaned, j, np.column_stack([model, others]), y)
    if seconds:
        late = "lags behind" if seconds > 0 else "runs ahead of"
        yield context.found(
            TORQUE_DELAY,
            run,
            j,
            f"The torque {late} the motion.",
            f"{abs(seconds):.3g} seconds",
            "Give this delay to the signal settings (delay), or correct the time stamps of the torques.",
        )
        clock = np.arange(len(y)) * cleaned.step
        y = np.interp(clock + seconds, clock, y)
    gain = gain_of(model, others, y)
    judged = list(_sign_and_gain(run, context, j, gain))
    yield from judged
    if not judged:
        yield from _friction_sign(
            run, context, j, y, np.column_stack([one, model, a]), np.column_stack([v, direction]), v
        )
        yield from _unrelated(run, context, j, y, model, gain)
    if 1 / _FAR < gain.value < _FAR and gain.share > _GAIN_SHARE:
        yield from _offset(run, context, j, gain_of(one, np.column_stack([model, v, direction, a]), y))


def _without_sign(run: Run, context: Context, cleaned: Cleaned, j: int) -> Iterator[Finding]:
    """Find a torque that was logged without its sign, with that of the velocity.

    Where it opposed the motion its sign is wrong. The signs of the model are put back one fit after the other.
    """
    assert cleaned.torque is not None and cleaned.model is not None
    fast = np.abs(cleaned.v[:, j]) > _AT_REST * np.abs(cleaned.v[:, j]).max()
    y, v = cleaned.torque[fast, j], cleaned.v[fast, j]
    large = np.abs(y) > _AT_REST * np.abs(y).max()
    if np.mean(y[large] * v[large] > 0) < _ALWAYS:
        return
    model = cleaned.model[fast, j]
    columns = np.column_stack([model, np.ones_like(v), v, cleaned.direction[fast, j], cleaned.a[fast, j]])
    q = basis(columns)
    rest = float(np.sum((y - q @ (q.T @ y)) ** 2))
    left, turned = np.inf, 0.0
    for friction in (0.0, float(np.median(np.abs(y)))):
        signed, guess = y, model + cleaned.direction[fast, j] * friction
        for _ in range(_SIGN_FITS):
            signed = np.abs(y) * np.sign(guess)
            guess = q @ (q.T @ signed)
        if np.sum((signed - guess) ** 2) < left:
            left, turned = float(np.sum((signed - guess) ** 2)), float(np.mean(signed[large] * y[large] < 0))
    if turned > _TURNED and left < _SIGN_SHARE**2 * rest:
        yield context.found(
            TORQUE_UNSIGNED,
            run,
            j,
            "The torque always has the sign of the velocity, also where the motion needs the opposite one: it was "
            "logged without its sign.",
            f"{100 * turned:.0f} percent of the samples have the wrong sign",
            "Log the signed torque or current of this joint, or leave it out of the fit.",
        )


def _delay(cleaned: Cleaned, j: int, columns: Array, y: Array) -> float:
    """Delay of the torque (s); 0 where none is significant, or friction that builds up after reversals explains it."""
    # Stiction precedes the motion, which looks like a delay: rows at rest are left out.
    velocity = np.abs(cleaned.v[:, j])
    moving = velocity > _AT_REST * velocity.max()
    delay = find_delay(columns, y, cleaned.step, _LONGEST_DELAY, rows=moving)
    if abs(delay.seconds) < max(_STEPS * cleaned.raw_step, 0.2 * cleaned.step) or delay.rest > 1 - _SIGN_SHARE:
        return 0.0
    if abs(delay.seconds) > 0.95 * _LONGEST_DELAY or delay.rest > _DELAY_SAVES**2 * delay.rest_at_zero:
        return 0.0
    left = y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0]
    evidence = 0.5 * effective_rows(left) * np.log(delay.rest_at_zero / max(delay.rest, 1e-12))
    if evidence <= _DELAY_EVIDENCE:
        return 0.0
    soft = np.column_stack([columns, *(x[:, j] for x in cleaned.building)])
    building = find_delay(soft, y, cleaned.step, _LONGEST_DELAY, rows=moving)
    return 0.0 if building.rest_at_zero < delay.rest else delay.seconds


def _sign_and_gain(run: Run, context: Context, j: int, gain: Gain) -> Iterator[Finding]:
    """Check sign and size of the gain between model and torque."""
    if abs(gain.value) < _SIGMAS * gain.std or gain.share < _SIGN_SHARE:
        return
    low, high = gain.value - 2 * gain.std, gain.value + 2 * gain.std
    times = f"{gain.value:.3g} times the model (between {low:.3g} and {high:.3g} with 95 percent confidence)"
    if gain.value < 0:
        yield context.found(
            TORQUE_SIGN,
            run,
            j,
            "The torque has the opposite sign of the a-priori model's.",
            times,
            "Reverse the sign of the torque when loading; if all joints are reversed, also check the gravity vector.",
        )
    size, least, most = abs(gain.value), min(abs(low), abs(high)), max(abs(low), abs(high))
    if gain.share < _GAIN_SHARE or (most >= 1 / _FAR and least <= _FAR):
        return
    odd = size > _NOT_A_TORQUE or size < 1 / _NOT_A_TORQUE
    what = (
        "The effort is a multiple of the a-priori torque: it is a current, a motor torque, or in another unit."
        if odd
        else "The torque differs from the a-priori model by a factor: a wrong drive gain, a payload, or a wrong model."
    )
    yield context.found(
        TORQUE_UNIT if odd else TORQUE_GAIN,
        run,
        j,
        what,
        times,
        "Give drive gains or gear ratios when loading, or correct the masses of the robot and its payload.",
    )


def _friction_sign(
    run: Run, context: Context, j: int, y: Array, others: Array, friction: Array, v: Array
) -> Iterator[Finding]:
    """Check that friction brakes the joint; if it drives it, the torque has the wrong sign."""
    forward = float(np.mean(v > 0))
    if min(forward, 1 - forward) < _BOTH_DIRECTIONS:
        return
    columns = np.column_stack([others, friction])
    factors = np.linalg.lstsq(columns, y, rcond=1e-8)[0]
    part = friction @ factors[others.shape[1] :]
    rest = y - columns @ factors
    size = float(np.std(y))
    if float(part @ v) < 0 and np.std(part) > _FRICTION_SHARE * size and np.std(rest) < _FRICTION_SHARE * np.std(part):
        yield context.found(
            FRICTION_SIGN,
            run,
            j,
            "The friction in the torque drives the joint instead of braking it: the sign is reversed.",
            f"{100 * float(np.var(part)) / size**2:.3g} percent of the torque's variance is opposite to the velocity",
            "Reverse the sign of the torque when loading.",
        )


def _unrelated(run: Run, context: Context, j: int, y: Array, model: Array, gain: Gain) -> Iterator[Finding]:
    """Find efforts that cannot be the torque of this joint."""
    limit = context.robot.limits[context.robot.coordinates[j]].effort
    loaded = not np.isfinite(limit) or gain.weight > _LOADED * limit
    still = float(abs(model.mean()))
    unit = context.force_unit(j)
    doing = "Find out what this channel measures; if gains or gear ratios are unknown, leave this joint out of the fit."
    if gain.size < _TOO_SMALL * gain.weight:
        yield context.found(
            TORQUE_TOO_SMALL,
            run,
            j,
            "The effort varies far less than the torque that the motion needs: it is not a joint torque.",
            f"{gain.size / gain.weight:.3g} times the model's variation of {gain.weight:.3g} {unit}",
            doing,
        )
    elif still > 5 * gain.size and still > 3 * float(np.std(model)) and abs(float(y.mean())) < _TOO_SMALL * still:
        yield context.found(
            TORQUE_GRAVITY_COMPENSATED,
            run,
            j,
            "The effort does not contain the static load of the joint: gravity is compensated separately.",
            f"{y.mean():.3g} {unit} on average where the model has {model.mean():.4g}",
            "Add the compensated load to this channel, or leave this joint out of the fit.",
        )
    elif loaded and gain.weight > 0.5 * gain.size and gain.share < _UNRELATED:
        yield context.found(
            TORQUE_UNRELATED,
            run,
            j,
            "The effort is unrelated to the torque that the motion needs.",
            f"{100 * gain.share:.2g} percent of its variance is explained by the model",
            doing,
        )


def _offset(run: Run, context: Context, j: int, offset: Gain) -> Iterator[Finding]:
    """Check for a constant offset of the torque."""
    size = abs(offset.value)
    if size < _OFFSET * offset.size or size < _SIGMAS * offset.std:
        return
    robot = context.robot
    modeled = any(robot.tree_coordinates[t.owner] == robot.coordinates[j] and t.kind in _OFFSETS for t in robot.drives)
    yield context.found(
        TORQUE_OFFSET,
        run,
        j,
        "The torque has a constant offset.",
        f"{offset.value:.3g} {context.force_unit(j)}",
        "It is identified with the friction." if modeled else "Model an offset in the friction of this joint.",
        severity="warning" if size > _LARGE_OFFSET * offset.size and not modeled else "info",
    )


TORQUE = RecordingCheck(
    name="torque",
    finds="torques logged without their sign; reversed sign, gain far from 1, delay and offset against the a-priori "
    "bodies; efforts that are currents, do not contain the static load, or are unrelated to the motion",
    advice="reverse the sign; give drive gains; give the delay to the signal settings",
    codes=(
        TORQUE_NOT_COMPARED,
        TORQUE_UNSIGNED,
        TORQUE_SIGN,
        FRICTION_SIGN,
        TORQUE_GAIN,
        TORQUE_UNIT,
        TORQUE_DELAY,
        TORQUE_OFFSET,
        TORQUE_TOO_SMALL,
        TORQUE_GRAVITY_COMPENSATED,
        TORQUE_UNRELATED,
    ),
    of_run=check_torque,
)
