"""The record of a check of recordings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dynid.assessment.data.context import Context
from dynid.assessment.finding import Finding, FindingCode
from dynid.recording.recording import Run
from dynid.robot.model import Robot

__all__ = ["RecordingCheck"]


@dataclass(frozen=True, kw_only=True)
class RecordingCheck:
    """A check of recordings, of each run or of all runs together.

    Attributes
    ----------
    name : str
        Its name; that of its entry point in the group `dynid.checks` where another package has it.
    finds : str
        What it finds, for a table.
    advice : str
        What to do about it, for a table.
    codes : tuple of FindingCode
        Codes of its findings.
    of_run : callable, optional
        Function (robot, run, context) that yields the findings on one run.
    of_recording : callable, optional
        Function (context) that yields the findings on all runs, which are identified together.
    joints : bool, default True
        Whether the robot must have joints; a single body on a wrench sensor has none.
    order : bool, default True
        Whether the rows of a run must follow each other in time.
    """

    name: str
    finds: str
    advice: str
    codes: tuple[FindingCode, ...]
    of_run: Callable[[Robot, Run, Context], Iterator[Finding]] | None = None
    of_recording: Callable[[Context], Iterator[Finding]] | None = None
    joints: bool = True
    order: bool = True

    def applies(self, robot: Robot, ordered: bool) -> bool:
        """Whether a robot and a recording have what the check needs.

        Parameters
        ----------
        robot : Robot
            The robot.
        ordered : bool
            Whether the rows of a run follow each other in time.

        Returns
        -------
        bool
        """
        return (ordered or not self.order) and (robot.n > 0 or not self.joints)
