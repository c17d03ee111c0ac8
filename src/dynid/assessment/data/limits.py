"""Positions, speeds and torques against the robot's limits, and units that the limits give away."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynid.assessment.data.context import LARGEST_NUMBER, Context
from dynid.assessment.finding import Finding
from dynid.recording.recording import Run
from dynid.robot.model import Robot
from dynid.robot.parts import Limits

__all__ = ["check_limits", "check_size"]

# Limits in robot files are rounded; this much beyond them (share of the limit, and a part of a unit) still passes.
_SLACK, _SLACK_UNIT = 0.02, 0.01
# Positions this much beyond the limits are another unit rather than a wrong limit.
_OTHER_UNIT = 2.0
# Without limits, an arm that turns more than this many radians from zero is read in degrees.
_MANY_TURNS = 4 * np.pi
# A single step of nearly a whole turn is a wrapped angle, not a motion.
_WRAP = 0.9 * 2 * np.pi
# Speeds from recorded positions are judged where all but a few samples are, which leaves single outliers out.
_MOST = 99.5
_WORDS = {"q": "position", "v": "velocity", "torque": "torque"}


def check_size(run: Run, robot: Robot, context: Context) -> Iterator[Finding]:
    """Numbers that no machine has."""
    for signal in ("q", "v", "torque"):
        values = getattr(run, signal)
        if values is None:
            continue
        worst = np.abs(values).max(axis=0)
        for j, _ in context.joints():
            if worst[j] >= LARGEST_NUMBER:
                row = int(np.argmax(np.abs(values[:, j])))
                yield context.found(
                    "error",
                    run,
                    j,
                    f"The {_WORDS[signal]} is an impossible number at row {row}; it is not looked at further.",
                    f"{worst[j]:.3g} in units of the recording",
                    "Drop the damaged rows, or correct the column.",
                )


def check_limits(run: Run, robot: Robot, context: Context) -> Iterator[Finding]:
    """Positions, speeds and torques that the robot's limits do not allow."""
    for j, name in enumerate(robot.coordinates):
        q = run.q[:, j]
        if np.abs(q).max() >= LARGEST_NUMBER:
            continue
        limits = robot.limits[name]
        unit = _unit_mistake(q, limits, context.angular[j])
        if unit:
            yield context.found(
                "error",
                run,
                j,
                f"The position seems to be in {unit}.",
                f"{np.abs(q).max():.4g} at most, where the robot allows {_largest(limits):.4g} {context.unit(j)}",
                f"Give the unit of the positions when loading ({'deg' if context.angular[j] else 'mm'}).",
            )
            continue
        jumps = np.abs(np.diff(q)) > _WRAP
        if context.angular[j] and jumps.any():
            yield context.found(
                "error",
                run,
                j,
                f"The angle jumps by a whole turn, first at row {int(np.argmax(jumps)) + 1}.",
                f"{int(jumps.sum())} jumps",
                "Unwrap the angle before loading.",
            )
            continue
        yield from _beyond(run, context, j, limits)


def _unit_mistake(q: np.ndarray, limits: Limits, angular: bool) -> str:
    worst, allowed = float(np.abs(q).max()), _largest(limits)
    if np.isfinite(allowed):
        factor, unit = (180 / np.pi, "degrees") if angular else (1e3, "millimetres")
        fits = limits.lower - _SLACK_UNIT <= q.min() / factor and q.max() / factor <= limits.upper + _SLACK_UNIT
        return unit if fits and worst > _OTHER_UNIT * allowed else ""
    return "degrees" if angular and worst > _MANY_TURNS else ""


def _largest(limits: Limits) -> float:
    return max(abs(limits.lower), abs(limits.upper))


def _beyond(run: Run, context: Context, j: int, limits: Limits) -> Iterator[Finding]:
    q, unit = run.q[:, j], context.unit(j)
    over = max(float(q.max()) - limits.upper, limits.lower - float(q.min()))
    if over > _SLACK * (limits.upper - limits.lower) + _SLACK_UNIT:
        yield context.found(
            "warning",
            run,
            j,
            "The position leaves the range that the robot allows.",
            f"{over:.3g} {unit} beyond [{limits.lower:.4g}, {limits.upper:.4g}]",
            "Check zero and sign of the position against the robot's description, or correct its limits.",
        )
    cleaned = context.cleaned(run)
    if cleaned is not None:
        speed = float(np.percentile(np.abs(cleaned.v[:, j]), _MOST))
        if speed > (1 + _SLACK) * limits.velocity + _SLACK_UNIT:
            yield context.found(
                "warning",
                run,
                j,
                "The joint moves faster than the robot allows.",
                f"{speed:.3g} {unit} per second where {limits.velocity:.3g} are allowed",
                "Check the time stamps and the unit of the position, or correct the robot's limits.",
            )
    if run.torque is not None:
        torque = float(np.percentile(np.abs(run.torque[:, j]), _MOST))
        if torque > (1 + _SLACK) * limits.effort and limits.effort > 0:
            yield context.found(
                "warning",
                run,
                j,
                "The torque is larger than the robot allows.",
                f"{torque:.4g} {context.force_unit(j)} where {limits.effort:.4g} are allowed",
                "Check its unit and whether it is a joint torque, or correct the robot's limits.",
            )
