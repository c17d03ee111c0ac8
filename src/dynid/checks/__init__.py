"""What is wrong with a recording, in words."""

from __future__ import annotations

from dynid.checks.finding import Finding
from dynid.recording.recording import Recording
from dynid.robot.model import Robot

__all__ = ["Finding", "check"]


def check(recording: Recording, robot: Robot) -> tuple[Finding, ...]:
    """What is wrong with a recording of this robot, worst first; raises only where the numbers of joints differ.

    Clock, units, signs, delays, order of columns, torques against the a-priori model, resolution, limits, excitation.
    """
    # Filters and interpolation load slowly; whoever only imports dynid does not wait for them.
    from dynid.checks.battery import run_checks

    return run_checks(recording, robot)
