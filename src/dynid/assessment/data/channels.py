"""Single channels: stuck, zero, clipped, or coarse ones, and how much of the run the arm stands still."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.data.context import SMALLEST_MOTION, Context, longest_true, plausible
from dynid.assessment.finding import Finding
from dynid.recording.recording import Run
from dynid.robot.model import Robot

__all__ = ["check_clipping", "check_resolution", "check_standstill", "check_stuck"]

Array = NDArray[np.float64]

# Torques pass through zero now and then; exactly zero in this share of the samples is a channel that is mostly off.
_ZERO_SHARE = 0.2
# Clipping: this many samples at the extreme, a stretch of at least this many, and many times more than just below it.
# The round top of a sine, coarsely digitised, has 2.4 times more samples on its last step than on the one before.
_CLIPPED_SAMPLES, _CLIPPED_STRETCH, _CLIPPED_RATIO = 10, 4, 5.0
# "Just below" is this share of the channel's range.
_JUST_BELOW = 0.01
# A step counts where values lie on its grid to this precision; finer grids than a millionth of the range do not matter.
_ON_GRID, _FINEST = 0.05, 1e-6
_GRID_SHARE = 0.95
# Noise that the step adds, as a share of the signal: worth knowing, worth doing something.
_COARSE, _TOO_COARSE = 0.1, 0.2
# Below this share of its highest speed a joint stands still, as in the cleaning of signals.
_STILL = 0.01
_STILL_SHARE, _MOSTLY_STILL = 0.2, 0.5


def check_stuck(run: Run, robot: Robot, context: Context) -> Iterator[Finding]:
    """Channels that do not change, or are exactly zero most of the time."""
    moved = np.ptp(run.q, axis=0) > SMALLEST_MOTION
    any_moved = bool(moved.any())
    for j, _ in context.joints():
        if run.v is not None and np.ptp(run.v[:, j]) == 0 and moved[j]:
            yield context.found(
                "error",
                run,
                j,
                "The velocity is constant although the joint moves.",
                f"{run.v[0, j]:.4g} {context.unit(j)} per second throughout",
                "Leave this velocity out, so that positions are differentiated instead.",
            )
        if not moved[j]:
            turns = run.v is not None and abs(float(np.mean(run.v[:, j]))) * abs(run.t[-1] - run.t[0]) > 0.1
            yield context.found(
                "error" if turns else "info",
                run,
                j,
                "The position is stuck although the velocity says that the joint moves."
                if turns
                else "The joint hardly moves.",
                f"{np.ptp(run.q[:, j]):.3g} {context.unit(j)} of motion",
                "Check the position column."
                if turns
                else "Its friction and inertia cannot be seen in this run; move it in another.",
            )
        if run.torque is not None and any_moved:
            yield from _stuck_torque(run, context, j)


def _stuck_torque(run: Run, context: Context, j: int) -> Iterator[Finding]:
    assert run.torque is not None
    torque = run.torque[:, j]
    unit = context.force_unit(j)
    if np.ptp(torque) == 0:
        yield context.found(
            "error",
            run,
            j,
            "The torque is constant although the arm moves.",
            f"{torque[0]:.4g} {unit} throughout",
            "Check the torque column; leave this joint out of the fit if it has no torque.",
        )
        return
    zero = float(np.mean(torque == 0))
    # A coarse but sound channel is zero on one of its steps only.
    expected = _step(torque) / float(np.std(torque))
    if zero > _ZERO_SHARE and zero > expected:
        yield context.found(
            "warning",
            run,
            j,
            "The torque is exactly zero in many samples.",
            f"{100 * zero:.3g} percent of the samples are zero",
            "The channel is off, dead-banded or too coarse there: leave this joint out of the fit.",
        )


def check_clipping(run: Run, robot: Robot, context: Context) -> Iterator[Finding]:
    """Torques with flat tops at their extreme value."""
    if run.torque is None or not plausible(run.torque):
        return
    for j, _ in context.joints():
        torque = run.torque[:, j]
        span = float(np.ptp(torque))
        if span == 0:
            continue
        step = max(_step(torque), _JUST_BELOW * span)
        for top in (float(torque.max()), float(torque.min())):
            at = np.abs(torque - top) <= 1e-9 * span
            below = np.count_nonzero((np.abs(torque - top) <= 1.5 * step) & ~at)
            enough = at.sum() >= _CLIPPED_SAMPLES and longest_true(at) >= _CLIPPED_STRETCH
            if top != 0 and enough and at.sum() > _CLIPPED_RATIO * below:
                yield context.found(
                    "warning",
                    run,
                    j,
                    "The torque is cut off at its extreme value: the drive or the sensor saturates.",
                    f"{int(at.sum())} samples at {top:.4g} {context.force_unit(j)}",
                    "Slow the motion down or lighten the load, and leave out the saturated samples.",
                )


def check_resolution(run: Run, robot: Robot, context: Context) -> Iterator[Finding]:
    """Steps of positions and torques that are coarse against the motion."""
    cleaned = context.cleaned(run)
    if cleaned is None:
        return
    for j, _ in context.joints():
        step = _step(run.q[:, j])
        acceleration = float(np.std(cleaned.a[:, j]))
        if step and cleaned.moving[j] and acceleration > 0:
            # White noise of step / sqrt(12), low-passed and differentiated twice.
            band = 2 * np.pi * cleaned.cutoff
            noise = step / np.sqrt(12) * band**2 * np.sqrt(2 * cleaned.cutoff * cleaned.raw_step / 5)
            if noise > _COARSE * acceleration:
                yield context.found(
                    "warning" if noise > _TOO_COARSE * acceleration else "info",
                    run,
                    j,
                    f"Positions come in coarse steps, which makes {100 * noise / acceleration:.2g} percent of noise in "
                    f"the acceleration below {cleaned.cutoff:.3g} Hz.",
                    f"{step:.3g} {context.unit(j)} a step",
                    "Filter with a lower cut-off, average repeated periods, or move faster.",
                )
        if run.torque is None or cleaned.torque is None:
            continue
        step, size = _step(run.torque[:, j]), float(np.std(run.torque[:, j]))
        if size > 0 and step / np.sqrt(12) > _COARSE * size:
            share = step / np.sqrt(12) / size
            yield context.found(
                "warning" if share > _TOO_COARSE else "info",
                run,
                j,
                f"Torques come in coarse steps, whose rounding is {100 * share:.2g} percent of their variation.",
                f"{step:.3g} {context.force_unit(j)} a step",
                "Record the torque at a finer resolution, or with more load on this joint.",
            )


def check_standstill(run: Run, robot: Robot, context: Context) -> Iterator[Finding]:
    """Share of the run in which no joint moves."""
    cleaned = context.cleaned(run)
    if cleaned is None:
        return
    if not cleaned.moving.any():
        yield context.found(
            "warning",
            run,
            None,
            "The arm stands still in the whole run.",
            "100 percent of the samples",
            "Only gravity at this posture can be seen; record a motion.",
        )
        return
    fastest = np.abs(cleaned.v).max(axis=0)
    moving = np.abs(cleaned.v[:, cleaned.moving]) > _STILL * fastest[cleaned.moving]
    still = float(np.mean(~moving.any(axis=1)))
    if still > _STILL_SHARE:
        yield context.found(
            "warning" if still > _MOSTLY_STILL else "info",
            run,
            None,
            "The arm stands still in much of the run.",
            f"{100 * still:.3g} percent of the time",
            "Cut these rows: they add no information, and stiction there spoils the friction.",
        )


def _step(x: Array) -> float:
    """Distance of the grid on which the values lie, 0 where they lie on none."""
    span = float(np.ptp(x))
    if not np.isfinite(span) or span == 0:
        return 0.0
    values = np.unique(np.round((x - x.min()) / span, 9))
    gaps = np.diff(values)
    # Noise gives about as many values as samples; two values only are a switch, not a grid.
    if gaps.size < 2:
        return 0.0
    step = float(np.min(gaps))
    if step < _FINEST:
        return 0.0
    counts = gaps / step
    on_grid = np.abs(counts - np.round(counts)) < _ON_GRID
    return step * span if np.mean(on_grid) > _GRID_SHARE else 0.0
