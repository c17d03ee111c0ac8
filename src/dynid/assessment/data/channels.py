"""Checks of single channels: constant, zero, clipped or coarsely quantised signals, and standstill."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.data.context import Context, longest_true, plausible, stretches
from dynid.assessment.data.recording_check import RecordingCheck
from dynid.assessment.finding import Finding, FindingCode
from dynid.identification.loads import without_torques
from dynid.recording.run import Run
from dynid.robot.model import Robot
from dynid.signals.grid import grid_step

__all__ = ["CLIPPING", "RESOLUTION", "STILL", "STUCK", "TORQUES", "TORQUE_CONSTANT", "TORQUE_ZERO"]

Array = NDArray[np.float64]

POSITION_STUCK = FindingCode(
    "position_stuck", "the position is constant, but the velocity is not zero", ("error", "warning"), signal="q"
)
TORQUE_MISSING = FindingCode(
    "torque_missing", "the log has no torques; the message says what it is good for", "warning", signal="q"
)
TORQUE_CONSTANT = FindingCode("torque_constant", "the torque of a moving robot is constant", "error", signal="torque")
TORQUE_ZERO = FindingCode("torque_zero", "the torque is exactly zero in many samples", "warning", signal="torque")
ROBOT_NOT_MOVING = FindingCode("robot_not_moving", "no joint moves in the whole run", "warning", signal="q")
STANDSTILL = FindingCode("standstill", "no joint moves in much of the run", ("warning", "info"), signal="q")
VELOCITY_CONSTANT = FindingCode("velocity_constant", "the velocity of a moving joint is constant", "error", signal="v")
TORQUE_RESOLUTION = FindingCode(
    "torque_resolution", "the torque is coarsely quantised", ("warning", "info"), signal="torque"
)
JOINT_NOT_MOVING = FindingCode("joint_not_moving", "the joint hardly moves", "info", signal="q")
TORQUE_SATURATED = FindingCode("torque_saturated", "the torque is clipped", "warning", signal="torque")
POSITION_RESOLUTION = FindingCode(
    "position_resolution", "the position is coarsely quantised", ("warning", "info"), signal="q"
)

# Torques pass through zero now and then; a channel that is exactly zero in this share of the samples is mostly off.
_ZERO_SHARE = 0.2
# A position is frozen if it is constant for so many samples and then moves this many times more than in its fast steps.
# It spoils the recording from this share of the samples on.
_FROZEN_SAMPLES, _FROZEN_JUMP, _FAST_STEP, _FROZEN_SHARE = 10, 5.0, 0.99, 0.01
# Clipping: this many samples at the extreme, this many in a row, and this many times more than just below it. The
# peak of a coarsely quantised sine has 2.4 times more samples on its last step than on the one before.
_CLIPPED_SAMPLES, _CLIPPED_STRETCH, _CLIPPED_RATIO = 10, 4, 5.0
# "Just below" is this share of the channel's range.
_JUST_BELOW = 0.01
# Quantisation noise as a share of the signal: reported, and warned about. That of positions is filtered. That of
# torques follows the motion where a whole run has but ten values, so that it does not average out like noise.
_COARSE, _TOO_COARSE = 0.1, 0.2
_COARSE_TORQUE, _TOO_COARSE_TORQUE = 0.05, 0.1
# Below this share of its highest velocity a joint stands still, as in the cleaning of signals.
_STILL = 0.01
_STILL_SHARE, _MOSTLY_STILL = 0.2, 0.5


def check_torques(robot: Robot, run: Run, context: Context) -> Iterator[Finding]:
    """Say what a log without torques is good for."""
    if run.torque is None and run.wrench is None and not run.wrenches:
        doing = without_torques(run)
        yield context.found(
            TORQUE_MISSING,
            run,
            None,
            "The log has no torques: bodies cannot be identified from it.",
            f"0 of {robot.n} joints have a torque",
            f"{doing[0].upper()}{doing[1:]}.",
        )


def check_stuck(robot: Robot, run: Run, context: Context) -> Iterator[Finding]:
    """Find channels that are constant, or exactly zero most of the time."""
    moved = context.moving(run)
    any_moved = bool(moved.any())
    for j, _ in context.joints():
        if run.v is not None and np.ptp(run.v[:, j]) == 0 and moved[j]:
            yield context.found(
                VELOCITY_CONSTANT,
                run,
                j,
                "The velocity is constant although the joint moves.",
                f"{run.v[0, j]:.4g} {context.unit(j)} per second throughout",
                "Leave this velocity out, so that the position is differentiated instead.",
            )
        if not moved[j]:
            turns = run.v is not None and abs(float(np.mean(run.v[:, j]))) * abs(run.t[-1] - run.t[0]) > 0.1
            yield context.found(
                POSITION_STUCK if turns else JOINT_NOT_MOVING,
                run,
                j,
                "The position is constant although the velocity is not zero." if turns else "The joint hardly moves.",
                f"{np.ptp(run.q[:, j]):.3g} {context.unit(j)} of motion",
                "Check the position column."
                if turns
                else "Its friction and inertia cannot be identified from this run; move it in another.",
            )
        else:
            yield from _frozen(run, context, j)
        if run.torque is not None and any_moved:
            yield from _stuck_torque(run, context, j)


def _frozen(run: Run, context: Context, j: int) -> Iterator[Finding]:
    """Find a position that stays where it is while the joint moves on, and jumps there in the end."""
    steps = np.abs(np.diff(run.q[:, j]))
    usual = float(np.quantile(steps, _FAST_STEP))
    held = [
        (start, stop)
        for start, stop in stretches(steps == 0)
        if stop < len(steps) and stop - start >= _FROZEN_SAMPLES and steps[stop] > _FROZEN_JUMP * usual > 0
    ]
    if not held:
        return
    bad = np.zeros(len(run.t), dtype=bool)
    for start, stop in held:
        bad[start + 1 : stop + 1] = True
    start, stop = max(held, key=lambda x: x[1] - x[0])
    times = f"{len(held)} times, longest" if len(held) > 1 else "once,"
    lasts = run.t[stop] - run.t[start]
    yield context.found(
        POSITION_STUCK,
        run,
        j,
        f"The position freezes {times} for {lasts:.2g} s from t = {run.t[start]:.4g} s on, and jumps.",
        f"{steps[stop]:.3g} {context.unit(j)} in one sample, where it moves {usual:.2g} at most",
        "Leave these seconds out (--rows), and look why the sensor or the logger stops.",
        bad,
        severity="error" if np.mean(bad) > _FROZEN_SHARE else "warning",
    )


def _stuck_torque(run: Run, context: Context, j: int) -> Iterator[Finding]:
    """Find a torque that is constant, or exactly zero most of the time."""
    assert run.torque is not None
    torque = run.torque[:, j]
    unit = context.force_unit(j)
    if np.ptp(torque) == 0:
        yield context.found(
            TORQUE_CONSTANT,
            run,
            j,
            "The torque is constant although the robot moves.",
            f"{torque[0]:.4g} {unit} throughout",
            "Check the torque column; leave this joint out of the fit if it has no torque.",
        )
        return
    zero = float(np.mean(torque == 0))
    # A coarsely quantised channel is zero only on one of its steps.
    expected = grid_step(torque) / float(np.std(torque))
    if zero > _ZERO_SHARE and zero > expected:
        yield context.found(
            TORQUE_ZERO,
            run,
            j,
            "The torque is exactly zero in many samples.",
            f"{100 * zero:.3g} percent of the samples are zero",
            "The channel is off, has a dead band or is too coarse: leave this joint out of the fit.",
            torque == 0,
        )


def check_clipping(robot: Robot, run: Run, context: Context) -> Iterator[Finding]:
    """Find torques that are clipped at their extreme value."""
    if run.torque is None or not plausible(run.torque):
        return
    for j, _ in context.joints():
        torque = run.torque[:, j]
        span = float(np.ptp(torque))
        if span == 0:
            continue
        step = max(grid_step(torque), _JUST_BELOW * span)
        for top in (float(torque.max()), float(torque.min())):
            at = np.abs(torque - top) <= 1e-9 * span
            below = np.count_nonzero((np.abs(torque - top) <= 1.5 * step) & ~at)
            enough = at.sum() >= _CLIPPED_SAMPLES and longest_true(at) >= _CLIPPED_STRETCH
            if top != 0 and enough and at.sum() > _CLIPPED_RATIO * below:
                yield context.found(
                    TORQUE_SATURATED,
                    run,
                    j,
                    "The torque is clipped at its extreme value: the drive or the sensor saturates.",
                    f"{int(at.sum())} samples at {top:.4g} {context.force_unit(j)}",
                    "Slow the motion down or lighten the load, and leave out the saturated samples.",
                    at,
                )


def check_resolution(robot: Robot, run: Run, context: Context) -> Iterator[Finding]:
    """Find positions and torques with coarse quantisation."""
    cleaned = context.cleaned(run)
    if cleaned is None:
        return
    for j, _ in context.joints():
        step = grid_step(run.q[:, j])
        acceleration = float(np.std(cleaned.a[:, j]))
        if step and cleaned.moving[j] and acceleration > 0:
            # White noise of step / sqrt(12), low-passed and differentiated twice.
            band = 2 * np.pi * cleaned.cutoff
            noise = step / np.sqrt(12) * band**2 * np.sqrt(2 * cleaned.cutoff * cleaned.raw_step / 5)
            if noise > _COARSE * acceleration:
                yield context.found(
                    POSITION_RESOLUTION,
                    run,
                    j,
                    "The position is coarsely quantised, which causes "
                    f"{100 * noise / acceleration:.2g} percent of noise in the acceleration below "
                    f"{cleaned.cutoff:.3g} Hz.",
                    f"{step:.3g} {context.unit(j)} per step",
                    "Filter with a lower cut-off, average repeated periods, or move faster.",
                    severity="warning" if noise > _TOO_COARSE * acceleration else "info",
                )
        if run.torque is None or cleaned.torque is None:
            continue
        step, size = grid_step(run.torque[:, j]), float(np.std(run.torque[:, j]))
        if size > 0 and step / np.sqrt(12) > _COARSE_TORQUE * size:
            share = step / np.sqrt(12) / size
            yield context.found(
                TORQUE_RESOLUTION,
                run,
                j,
                f"The torque is coarsely quantised, which causes noise of {100 * share:.2g} percent of its variation.",
                f"{step:.3g} {context.force_unit(j)} per step",
                "Record the torque with a finer resolution, or with more load on this joint.",
                severity="warning" if share > _TOO_COARSE_TORQUE else "info",
            )


def check_standstill(robot: Robot, run: Run, context: Context) -> Iterator[Finding]:
    """Find runs in which no joint moves for a long time."""
    cleaned = context.cleaned(run)
    if cleaned is None:
        return
    if not cleaned.moving.any():
        yield context.found(
            ROBOT_NOT_MOVING,
            run,
            None,
            "The robot stands still in the whole run.",
            "100 percent of the samples",
            "Only gravity at this posture can be identified; record a motion.",
        )
        return
    fastest = np.abs(cleaned.v).max(axis=0)
    moving = np.abs(cleaned.v[:, cleaned.moving]) > _STILL * fastest[cleaned.moving]
    standing = ~moving.any(axis=1)
    still = float(np.mean(standing))
    if still > _STILL_SHARE:
        yield context.found(
            STANDSTILL,
            run,
            None,
            "The robot stands still in much of the run.",
            f"{100 * still:.3g} percent of the time",
            "Remove these rows: they add no information, and stiction in them biases the friction.",
            standing,
            severity="warning" if still > _MOSTLY_STILL else "info",
        )


TORQUES = RecordingCheck(
    name="torques",
    finds="logs without torques, and what else they are good for",
    advice="record torques or currents",
    codes=(TORQUE_MISSING,),
    of_run=check_torques,
)


STUCK = RecordingCheck(
    name="stuck-channels",
    finds="constant velocities or torques of a moving joint, positions that are constant or freeze while the joint "
    "moves; torques that are exactly zero most of the time; joints that hardly move",
    advice="check the column; leave the joint out of the fit",
    codes=(
        VELOCITY_CONSTANT,
        POSITION_STUCK,
        JOINT_NOT_MOVING,
        TORQUE_CONSTANT,
        TORQUE_ZERO,
    ),
    of_run=check_stuck,
)


CLIPPING = RecordingCheck(
    name="clipping",
    finds="flat tops of the torque at its extreme value",
    advice="slow down; leave those samples out",
    codes=(TORQUE_SATURATED,),
    of_run=check_clipping,
)


RESOLUTION = RecordingCheck(
    name="resolution",
    finds="positions and torques with coarse quantisation, and the noise it causes",
    advice="lower cut-off; average periods; finer resolution",
    codes=(
        POSITION_RESOLUTION,
        TORQUE_RESOLUTION,
    ),
    of_run=check_resolution,
)


STILL = RecordingCheck(
    name="standstill",
    finds="share of the run in which no joint moves",
    advice="cut it",
    codes=(
        ROBOT_NOT_MOVING,
        STANDSTILL,
    ),
    of_run=check_standstill,
)
