"""Check for spikes: single samples of the torque far from their neighbours."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.data.channels import grid_step
from dynid.assessment.data.context import Context, plausible
from dynid.assessment.finding import Finding, FindingCode
from dynid.recording.recording import Run
from dynid.robot.model import Robot
from dynid.signals.filters import median

__all__ = ["check_spikes"]

Array = NDArray[np.float64]

# A spike of up to two samples leaves the median of five as it is; a step of friction moves it.
_WIDTH = 5
# Distance from that median: in standard deviations of its usual noise, of which normal noise never reaches ten; as a
# share of the range of usual torques; and in steps of a quantised channel.
_SIGMAS, _SHARE_OF_RANGE, _STEPS = 10.0, 0.3, 10.0
# A few spikes are averaged away by the filters.
_FEW, _FEW_SHARE = 5, 2e-4


def check_spikes(robot: Robot, run: Run, context: Context) -> Iterator[Finding]:
    """Find dropouts and outliers of the torque that last one or two samples."""
    if run.torque is None or not plausible(run.torque) or len(run) < 10 * _WIDTH:
        return
    away = np.abs(run.torque - median(run.torque, _WIDTH))
    for j, _ in context.joints():
        noise = 1.4826 * float(np.median(away[:, j]))
        low, high = np.percentile(run.torque[:, j], [1.0, 99.0])
        limits = _SIGMAS * noise, _SHARE_OF_RANGE * float(high - low), _STEPS * grid_step(run.torque[:, j])
        spikes = away[:, j] > max(limits)
        count = int(spikes.sum())
        if count < _FEW or count < _FEW_SHARE * len(run):
            continue
        yield context.found(
            FindingCode.TORQUE_SPIKES,
            "warning",
            run,
            j,
            f"The torque has spikes or dropouts, the first at row {int(np.argmax(spikes))}.",
            f"{count} samples up to {away[spikes, j].max():.3g} {context.force_unit(j)} from their neighbours",
            "Repair the logging, or drop these samples; method irls gives them less weight.",
            spikes,
        )
