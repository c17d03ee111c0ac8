"""Measured torques against the a-priori model: sign, gain, delay, offset, and efforts that are no torques."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.data.context import Cleaned, Context
from dynid.assessment.data.fit import Gain, effective_rows, find_delay, gain_of
from dynid.assessment.data.order import joint_order, torque_order
from dynid.assessment.finding import Finding
from dynid.recording.recording import Run
from dynid.robot.drives import TermKind
from dynid.robot.model import Robot

__all__ = ["check_torque"]

Array = NDArray[np.float64]

# Torque chains delay by milliseconds; beyond a fifth of a second the fit only finds another part of the motion.
_LONGEST_DELAY = 0.2
# A delay must leave at most this share of the error at no delay, or model errors would pass for it.
_DELAY_SAVES = 0.7
# ... and its gain must be beyond chance: log-likelihood by independent rows.
_DELAY_EVIDENCE = 12.0
_STEPS = 1.5
# Slower than this share of its highest speed, a joint may stick.
_AT_REST = 0.05
# Share of what friction, offset and own inertia leave that the model must explain before its factor is judged.
_SIGN_SHARE, _GAIN_SHARE = 0.5, 0.8
_SIGMAS = 4.0
# A-priori models are off by tens of percent; a factor of two is more than that.
_FAR = 2.0
# Beyond this factor it is no model error or payload any more.
_NOT_A_TORQUE = 5.0
# A torque that varies this much less than the model asks for cannot have moved the arm.
_TOO_SMALL = 0.2
# The model's load counts from this share of the joint's effort limit on; below, the model itself is too uncertain.
_LOADED = 0.02
_UNRELATED = 0.1
# Friction that explains more than this share of a torque and drives the motion instead of braking it has a wrong sign.
_FRICTION_SHARE = 0.6
# Friction is told from offset and load only if the joint moves this share of the time in each direction.
_BOTH_WAYS = 0.2
# Offsets from this share of the torque's variation on are told; from half on they spoil a model without offset.
_OFFSET, _LARGE_OFFSET = 0.1, 0.5
# Terms that hold an offset: the constant itself, or Coulomb friction that differs by direction.
_OFFSETS = (TermKind.OFFSET, TermKind.COULOMB_POSITIVE)


def check_torque(run: Run, robot: Robot, context: Context) -> Iterator[Finding]:
    """Sign, gain, delay and offset of every joint's torque against the robot's a-priori bodies."""
    cleaned = context.cleaned(run)
    if cleaned is None or cleaned.torque is None:
        return
    if cleaned.model is None:
        yield context.found(
            "info",
            run,
            None,
            "The torques cannot be compared with the robot, whose bodies or base motion are unknown.",
            "0 joints compared",
            "Give a-priori masses, even rough ones, to have signs, gains and delays checked.",
        )
        return
    if joint_order(run, context) != tuple(range(robot.n)):
        return  # nothing else can be said before the columns stand right
    own = torque_order(run, context)
    for j, _ in context.joints():
        # A joint at rest is held by stiction, whatever its drive does.
        if own[j] == j and cleaned.moving[j] and np.ptp(cleaned.torque[:, j]) > 0:
            yield from _check_joint(run, context, cleaned, j)


def _check_joint(run: Run, context: Context, cleaned: Cleaned, j: int) -> Iterator[Finding]:
    assert cleaned.torque is not None and cleaned.model is not None
    y, model = cleaned.torque[:, j], cleaned.model[:, j]
    v, a, direction = cleaned.v[:, j], cleaned.a[:, j], cleaned.direction[:, j]
    one = np.ones(len(y))
    others = np.column_stack([one, v, direction, a])
    seconds = _delay(cleaned, j, np.column_stack([model, others]), y)
    if seconds:
        late = "lags behind" if seconds > 0 else "runs ahead of"
        yield context.found(
            "warning",
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


def _delay(cleaned: Cleaned, j: int, columns: Array, y: Array) -> float:
    """Delay of the torque (s), 0 where none is evident."""
    # Stiction goes ahead of the motion, which would pass for a delay: joints at rest are not looked at.
    speed = np.abs(cleaned.v[:, j])
    delay = find_delay(columns, y, cleaned.step, _LONGEST_DELAY, rows=speed > _AT_REST * speed.max())
    if abs(delay.seconds) < max(_STEPS * cleaned.raw_step, 0.2 * cleaned.step) or delay.rest > 1 - _SIGN_SHARE:
        return 0.0
    if abs(delay.seconds) > 0.95 * _LONGEST_DELAY or delay.rest > _DELAY_SAVES**2 * delay.rest_at_zero:
        return 0.0
    left = y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0]
    evidence = 0.5 * effective_rows(left) * np.log(delay.rest_at_zero / max(delay.rest, 1e-12))
    return delay.seconds if evidence > _DELAY_EVIDENCE else 0.0


def _sign_and_gain(run: Run, context: Context, j: int, gain: Gain) -> Iterator[Finding]:
    if abs(gain.value) < _SIGMAS * gain.std or gain.share < _SIGN_SHARE:
        return
    low, high = gain.value - 2 * gain.std, gain.value + 2 * gain.std
    times = f"{gain.value:.3g} times the model (between {low:.3g} and {high:.3g} with 95 percent confidence)"
    if gain.value < 0:
        yield context.found(
            "error",
            run,
            j,
            "The torque has the opposite sign of what the robot's model needs.",
            times,
            "Turn the sign of the torque when loading; if all joints are reversed, also check the gravity vector.",
        )
    size, least, most = abs(gain.value), min(abs(low), abs(high)), max(abs(low), abs(high))
    if gain.share < _GAIN_SHARE or (most >= 1 / _FAR and least <= _FAR):
        return
    odd = size > _NOT_A_TORQUE or size < 1 / _NOT_A_TORQUE
    what = (
        "The effort follows the model by a factor that no joint torque has: a current, a motor torque, or a unit."
        if odd
        else "The torque is far from what the robot's model needs: a wrong drive gain, a payload, or a wrong model."
    )
    yield context.found(
        "warning",
        run,
        j,
        what,
        times,
        "Give drive gains or gear ratios when loading, or correct the masses of the robot and its payload.",
    )


def _friction_sign(
    run: Run, context: Context, j: int, y: Array, others: Array, friction: Array, v: Array
) -> Iterator[Finding]:
    """Friction brakes: a torque that mostly goes against the velocity is turned, whatever the model's load."""
    forward = float(np.mean(v > 0))
    if min(forward, 1 - forward) < _BOTH_WAYS:
        return
    columns = np.column_stack([others, friction])
    factors = np.linalg.lstsq(columns, y, rcond=1e-8)[0]
    part = friction @ factors[others.shape[1] :]
    rest = y - columns @ factors
    size = float(np.std(y))
    if float(part @ v) < 0 and np.std(part) > _FRICTION_SHARE * size and np.std(rest) < _FRICTION_SHARE * np.std(part):
        yield context.found(
            "error",
            run,
            j,
            "The torque drives the joint where friction should brake it: its sign is reversed.",
            f"{100 * float(np.var(part)) / size**2:.3g} percent of the torque's variance go against the velocity",
            "Turn the sign of the torque when loading.",
        )


def _unrelated(run: Run, context: Context, j: int, y: Array, model: Array, gain: Gain) -> Iterator[Finding]:
    """Efforts that cannot be the torque which moves this joint."""
    limit = context.robot.limits[context.robot.coordinates[j]].effort
    loaded = not np.isfinite(limit) or gain.weight > _LOADED * limit
    still = float(abs(model.mean()))
    unit = context.force_unit(j)
    doing = "Find out what this channel is; with gains or gear ratios unknown, leave this joint out of the fit."
    if gain.size < _TOO_SMALL * gain.weight:
        yield context.found(
            "warning",
            run,
            j,
            "The effort varies far less than the torque that the motion needs: it is not a joint torque.",
            f"{gain.size / gain.weight:.3g} times the model's variation of {gain.weight:.3g} {unit}",
            doing,
        )
    elif still > 5 * gain.size and still > 3 * float(np.std(model)) and abs(float(y.mean())) < _TOO_SMALL * still:
        yield context.found(
            "warning",
            run,
            j,
            "The effort lacks the static load of the joint: gravity is compensated before it is measured.",
            f"{y.mean():.3g} {unit} on average where the model holds {model.mean():.4g}",
            "Add the compensated load to this channel, or leave this joint out of the fit.",
        )
    elif loaded and gain.weight > 0.5 * gain.size and gain.share < _UNRELATED:
        yield context.found(
            "warning",
            run,
            j,
            "The effort does not follow the torque that the model needs for this motion.",
            f"{100 * gain.share:.2g} percent of its variance are explained by the model",
            doing,
        )


def _offset(run: Run, context: Context, j: int, offset: Gain) -> Iterator[Finding]:
    size = abs(offset.value)
    if size < _OFFSET * offset.size or size < _SIGMAS * offset.std:
        return
    modelled = any(t.owner == j and t.kind in _OFFSETS for t in context.robot.drives)
    yield context.found(
        "warning" if size > _LARGE_OFFSET * offset.size and not modelled else "info",
        run,
        j,
        "The torque has a constant offset.",
        f"{offset.value:.3g} {context.force_unit(j)}",
        "It is identified with the friction." if modelled else "Model an offset in the friction of this joint.",
    )
