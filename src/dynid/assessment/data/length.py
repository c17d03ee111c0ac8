"""Check for runs that are too short, or too damaged, for the other checks."""

from __future__ import annotations

from collections.abc import Iterator

from dynid.assessment.data.context import Context
from dynid.assessment.data.recording_check import RecordingCheck
from dynid.assessment.finding import Finding, FindingCode
from dynid.recording.recording import Run
from dynid.robot.model import Robot

__all__ = ["LENGTH", "RUN_TOO_SHORT"]

RUN_TOO_SHORT = FindingCode(
    "run_too_short", "the run is too short, or too damaged, to compare its signals", "info", signal="t"
)


def check_length(robot: Robot, run: Run, context: Context) -> Iterator[Finding]:
    """Find runs that cannot be cleaned."""
    if context.cleaned(run) is None:
        yield context.found(
            RUN_TOO_SHORT,
            run,
            None,
            "The run is too short or too damaged to compare its signals with each other.",
            f"{len(run)} samples",
            "Record a longer run, or repair its clock first.",
        )


LENGTH = RecordingCheck(
    name="length",
    finds="runs that are too short, or too damaged, to compare their signals",
    advice="record longer; repair the clock",
    codes=(RUN_TOO_SHORT,),
    of_run=check_length,
)
