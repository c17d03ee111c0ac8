"""All checks in the order in which they are run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from dynid.assessment.data.channels import check_clipping, check_resolution, check_standstill, check_stuck
from dynid.assessment.data.clock import check_clock, check_repeated_rows
from dynid.assessment.data.computed import check_computed
from dynid.assessment.data.context import Context
from dynid.assessment.data.excitation import check_excitation
from dynid.assessment.data.limits import check_limits, check_size
from dynid.assessment.data.order import check_order
from dynid.assessment.data.torque import check_torque
from dynid.assessment.data.velocity import check_velocity
from dynid.assessment.data.wrench import check_wrench
from dynid.assessment.finding import SEVERITIES, Finding
from dynid.errors import DataError
from dynid.recording.recording import Recording, Run
from dynid.robot.model import Robot

__all__ = ["RECORDING_CHECKS", "RUN_CHECKS", "check"]

RunCheck = Callable[[Run, Robot, Context], Iterator[Finding]]
RecordingCheck = Callable[[Context], Iterator[Finding]]

RUN_CHECKS: tuple[RunCheck, ...] = (
    check_clock,
    check_repeated_rows,
    check_size,
    check_stuck,
    check_limits,
    check_order,
    check_velocity,
    check_torque,
    check_computed,
    check_clipping,
    check_resolution,
    check_standstill,
    check_wrench,
)
# What there is to check of a single body on a wrench sensor, which has no joints.
_JOINTLESS_CHECKS: tuple[RunCheck, ...] = (check_clock, check_wrench)
# Runs are identified together, so what one does not show another may.
RECORDING_CHECKS: tuple[RecordingCheck, ...] = (check_excitation,)


def check(robot: Robot, recording: Recording) -> tuple[Finding, ...]:
    """Check a recording of a robot: clock, units, signs, delays, column order, torques, resolution, limits, excitation.

    Findings are sorted by severity, errors first; an exception is raised only where the numbers of joints differ.
    """
    if len(recording.joints) != robot.n:
        raise DataError(f"the recording has {len(recording.joints)} joints, robot '{robot.name}' has {robot.n}")
    context = Context(recording, robot)
    # Damaged data overflow here and there; what comes of it is looked at, not warned about.
    with np.errstate(all="ignore"):
        found = list(_findings(recording, robot, context))
    return tuple(sorted(found, key=lambda f: SEVERITIES.index(f.severity)))


def _findings(recording: Recording, robot: Robot, context: Context) -> Iterator[Finding]:
    for run in recording.runs:
        for run_check in RUN_CHECKS if robot.n else _JOINTLESS_CHECKS:
            yield from run_check(run, robot, context)
        if robot.n and context.cleaned(run) is None:
            yield context.found(
                "info",
                run,
                None,
                "The run is too short or too broken for its signals to be compared with each other.",
                f"{len(run)} samples",
                "Record a longer run, or repair its clock first.",
            )
    for recording_check in RECORDING_CHECKS if robot.n else ():
        yield from recording_check(context)
