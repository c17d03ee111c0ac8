"""Check for spikes: single samples of the torque far from their neighbours."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynid.assessment.data.context import Context, plausible
from dynid.assessment.data.recording_check import RecordingCheck
from dynid.assessment.finding import Finding, FindingCode
from dynid.recording.run import Run
from dynid.robot.model import Robot
from dynid.signals.filters import median
from dynid.signals.spikes import spikes_of

__all__ = ["SPIKES", "TORQUE_SPIKES"]

TORQUE_SPIKES = FindingCode(
    "torque_spikes",
    "single samples of the torque are far from their neighbours; those that drop to zero are replaced",
    "warning",
    signal="torque",
)

# A few spikes are averaged away by the filters.
_FEW, _FEW_SHARE = 5, 2e-4


def check_spikes(robot: Robot, run: Run, context: Context) -> Iterator[Finding]:
    """Find dropouts and outliers of the torque that last one or two samples."""
    if run.torque is None or not plausible(run.torque):
        return
    found = spikes_of(run.torque)
    away = np.abs(run.torque - median(run.torque, 5)) if found.any() else run.torque
    for j, _ in context.joints():
        spikes, count = found[:, j], int(found[:, j].sum())
        if count < _FEW or count < _FEW_SHARE * len(run):
            continue
        yield context.found(
            TORQUE_SPIKES,
            run,
            j,
            f"The torque has spikes or dropouts, the first at row {int(np.argmax(spikes))}.",
            f"{count} samples up to {away[spikes, j].max():.3g} {context.force_unit(j)} from their neighbours",
            "Repair the logging, or drop these samples; method irls gives them less weight.",
            spikes,
        )


SPIKES = RecordingCheck(
    name="spikes",
    finds="single samples of the torque far from their neighbours",
    advice="repair the logging; drop these samples",
    codes=(TORQUE_SPIKES,),
    of_run=check_spikes,
)
