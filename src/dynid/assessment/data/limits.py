"""Checks of positions, velocities and torques against the joint limits, and of units."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynid.assessment.data.context import LARGEST_NUMBER, Context
from dynid.assessment.data.recording_check import RecordingCheck
from dynid.assessment.finding import Finding, FindingCode
from dynid.recording.run import Run
from dynid.robot.model import Robot
from dynid.robot.parts import Limits

__all__ = ["LIMITS", "POSITION_UNIT", "SIZE"]

POSITION_LIMIT = FindingCode(
    "position_limit", "the position exceeds the joint limits", "warning", signal="q", limited=True
)
POSITION_UNIT = FindingCode("position_unit", "the position is in degrees or millimetres", "error", signal="q")
ANGLE_WRAPPED = FindingCode("angle_wrapped", "the angle jumps by a revolution", "error", signal="q")
VELOCITY_LIMIT = FindingCode(
    "velocity_limit",
    "the velocity exceeds the joint limits; information up to a factor of 1.25",
    ("warning", "info"),
    signal="v",
    limited=True,
)
TORQUE_LIMIT = FindingCode(
    "torque_limit",
    "the torque exceeds the joint limits; information up to a factor of 1.25 (files give rated or peak values)",
    ("warning", "info"),
    signal="torque",
    limited=True,
)
VALUE_IMPLAUSIBLE = FindingCode("value_implausible", "a value is implausibly large", "error")

# Limits in robot files are rounded; excesses up to this (share of the limit, plus rad or m) pass.
_SLACK, _SLACK_UNIT = 0.02, 0.01
# Robot files give rated velocities and torques as often as peak ones, and controllers overshoot. A wrong unit, clock or
# gear ratio exceeds the limit by more than this factor.
_PEAK = 1.25
# Positions beyond the limits by this factor are in another unit.
_OTHER_UNIT = 2.0
# Without limits, positions beyond this many radians are taken to be in degrees.
_MANY_TURNS = 4 * np.pi
# A single step of nearly one revolution is a wrapped angle; such steps are less than this share of all.
_WRAP, _MOST_WRAP = 0.9 * 2 * np.pi, 1.1 * 2 * np.pi
_FEW_JUMPS = 0.01
# Percentile of velocities and torques that is compared with the limits, so that single outliers do not matter.
_PERCENTILE = 99.5
_NAMES = {"q": "position", "v": "velocity", "torque": "torque"}


def check_size(robot: Robot, run: Run, context: Context) -> Iterator[Finding]:
    """Find implausibly large values."""
    for signal in ("q", "v", "torque"):
        values = getattr(run, signal)
        if values is None:
            continue
        worst = np.abs(values).max(axis=0)
        for j, _ in context.joints():
            if worst[j] >= LARGEST_NUMBER:
                row = int(np.argmax(np.abs(values[:, j])))
                yield context.found(
                    VALUE_IMPLAUSIBLE,
                    run,
                    j,
                    f"The {_NAMES[signal]} is implausibly large at row {row}; the channel is not checked further.",
                    f"{worst[j]:.3g} in units of the recording",
                    "Drop the damaged rows, or correct the column.",
                    np.abs(values[:, j]) >= LARGEST_NUMBER,
                )


def check_limits(robot: Robot, run: Run, context: Context) -> Iterator[Finding]:
    """Find positions, velocities and torques beyond the joint limits."""
    for j, name in enumerate(robot.coordinates):
        q = run.q[:, j]
        if np.abs(q).max() >= LARGEST_NUMBER:
            continue
        limits = robot.limits[name]
        jumps = np.abs(np.diff(q)) > _WRAP
        turns = jumps & (np.abs(np.diff(q)) < _MOST_WRAP)
        # One revolution at a time, in a channel that else moves by little: not the unit, whatever the limits say.
        wrapped = context.angular[j] and turns.any() and np.array_equal(turns, jumps) and np.mean(turns) < _FEW_JUMPS
        unit = "" if wrapped else _unit_mistake(q, limits, context.angular[j])
        if unit:
            yield context.found(
                POSITION_UNIT,
                run,
                j,
                f"The position seems to be in {unit}.",
                f"{np.abs(q).max():.4g} at most, where the robot allows {_largest(limits):.4g} {context.unit(j)}",
                f"Give the unit of the positions when loading ({'deg' if context.angular[j] else 'mm'}).",
            )
            continue
        if context.angular[j] and jumps.any():
            yield context.found(
                ANGLE_WRAPPED,
                run,
                j,
                f"The angle jumps by one revolution, first at row {int(np.argmax(jumps)) + 1}.",
                f"{int(jumps.sum())} jumps",
                "Unwrap the angle before loading.",
                np.concatenate([[False], jumps]),
            )
            continue
        yield from _beyond(run, context, j, limits)


def _unit_mistake(q: np.ndarray, limits: Limits, angular: bool) -> str:
    """The unit that positions seem to be in instead of rad or m; "" if there is no mistake."""
    worst, allowed = float(np.abs(q).max()), _largest(limits)
    if np.isfinite(allowed):
        factor, unit = (180 / np.pi, "degrees") if angular else (1e3, "millimetres")
        fits = limits.lower - _SLACK_UNIT <= q.min() / factor and q.max() / factor <= limits.upper + _SLACK_UNIT
        return unit if fits and worst > _OTHER_UNIT * allowed else ""
    return "degrees" if angular and worst > _MANY_TURNS else ""


def _largest(limits: Limits) -> float:
    """Largest absolute position within the limits."""
    return max(abs(limits.lower), abs(limits.upper))


def _beyond(run: Run, context: Context, j: int, limits: Limits) -> Iterator[Finding]:
    """Find positions, velocities and torques of one joint beyond its limits."""
    q, unit = run.q[:, j], context.unit(j)
    over = max(float(q.max()) - limits.upper, limits.lower - float(q.min()))
    slack = _SLACK * (limits.upper - limits.lower) + _SLACK_UNIT
    if over > slack:
        yield context.found(
            POSITION_LIMIT,
            run,
            j,
            "The position exceeds the joint limits.",
            f"{over:.3g} {unit} beyond [{limits.lower:.4g}, {limits.upper:.4g}]",
            "Check zero and sign of the position against the robot's description, or correct its limits.",
            (q > limits.upper + slack) | (q < limits.lower - slack),
        )
    cleaned = context.cleaned(run)
    if cleaned is not None:
        velocity = float(np.percentile(np.abs(cleaned.v[:, j]), _PERCENTILE))
        allowed = (1 + _SLACK) * limits.velocity + _SLACK_UNIT
        if velocity > allowed:
            yield context.found(
                VELOCITY_LIMIT,
                run,
                j,
                "The velocity exceeds the joint limits.",
                f"{velocity:.3g} {unit} per second where {limits.velocity:.3g} are allowed",
                "Check the time stamps and the unit of the position, or correct the robot's limits.",
                np.abs(cleaned.v[:, j]) > allowed,
                severity="warning" if velocity > _PEAK * limits.velocity else "info",
            )
    if run.torque is not None:
        torque = float(np.percentile(np.abs(run.torque[:, j]), _PERCENTILE))
        if torque > (1 + _SLACK) * limits.effort and limits.effort > 0:
            yield context.found(
                TORQUE_LIMIT,
                run,
                j,
                "The torque exceeds the joint limits.",
                f"{torque:.4g} {context.force_unit(j)} where {limits.effort:.4g} are allowed",
                "Check its unit and whether it is a joint torque, or correct the robot's limits.",
                np.abs(run.torque[:, j]) > (1 + _SLACK) * limits.effort,
                severity="warning" if torque > _PEAK * limits.effort else "info",
            )


SIZE = RecordingCheck(
    name="values",
    finds="implausibly large values (damaged rows)",
    advice="drop the rows",
    codes=(VALUE_IMPLAUSIBLE,),
    of_run=check_size,
    order=False,
)


LIMITS = RecordingCheck(
    name="limits",
    finds="positions in degrees or millimetres; wrapped angles; positions, velocities and torques beyond the "
    "robot's limits",
    advice="give the unit; unwrap; correct zero, sign or limits",
    codes=(
        POSITION_UNIT,
        ANGLE_WRAPPED,
        POSITION_LIMIT,
        VELOCITY_LIMIT,
        TORQUE_LIMIT,
    ),
    of_run=check_limits,
)
