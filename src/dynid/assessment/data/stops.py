"""Check for joints that press against a mechanical stop."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynid.assessment.data.context import Context
from dynid.assessment.data.recording_check import RecordingCheck
from dynid.assessment.finding import Finding, FindingCode
from dynid.errors import DynidError
from dynid.identification.stops import Stop, stops_of_rows
from dynid.signals.settings import Signals

__all__ = ["STOPS"]

MECHANICAL_STOP = FindingCode(
    "mechanical_stop",
    "a joint presses against a mechanical stop; these samples are left out",
    "warning",
    signal="q",
    limited=True,
)

# A stop this near to a limit of the robot (rad or m) is that limit; limits in robot files are rounded.
_AT_LIMIT = 0.02


def check_stops(context: Context) -> Iterator[Finding]:
    """Find joints that press against a stop: torque at one end of their range that no motion explains."""
    recording = context.recording
    runs = [run for run in recording.runs if run.torque is not None and context.cleaned(run) is not None]
    usable = [x for x in map(context.cleaned, runs) if x is not None and x.torque is not None]
    if not usable or context.robot.base == "floating":
        return
    try:
        base = context.base
    except DynidError:
        return  # a robot without parameters has no model of its torques
    q, v, a, y = (np.concatenate([np.asarray(getattr(x, s)) for x in usable]) for s in ("q", "v", "a", "torque"))
    number = np.concatenate([np.full(len(x.q), k) for k, x in enumerate(usable)])
    slowest = Signals().velocity_limits(v)
    stops = list(stops_of_rows(base, base.regressor(q, v, a), y, q, v, number, slowest))
    single = len(recording.runs) == 1
    name = recording.runs[0].name if single else "all runs"
    for stop, pressed in stops:
        j = context.robot.coordinates.index(stop.joint)
        yield Finding(
            MECHANICAL_STOP,
            "warning",
            name,
            recording.joints[j],
            f"The joint presses against a mechanical stop{_limit(context, stop)}.",
            f"{100 * stop.share:.2g} percent of the samples from {stop.position:.4g} {context.unit(j)} on, with "
            f"{stop.torque:.3g} {context.force_unit(j)} that no motion explains",
            "Keep the motion away from the stop. These samples are left out when parameters are identified.",
            context.rows(runs[0], pressed) if single else (),
        )


def _limit(context: Context, stop: Stop) -> str:
    """Whether the stop is a limit of the robot, in words."""
    limits = context.robot.limits[stop.joint]
    limit = limits.upper if stop.side > 0 else limits.lower
    side = "upper" if stop.side > 0 else "lower"
    at = np.isfinite(limit) and abs(limit - stop.position) < _AT_LIMIT
    return f", its {side} limit" if at else f" at the {side} end of its range"


STOPS = RecordingCheck(
    name="stops",
    finds="joints that press against a mechanical stop: torque at one end of their range that no motion explains, "
    "at a position limit where limits are known",
    advice="keep away from the stop; the samples are left out",
    codes=(MECHANICAL_STOP,),
    of_recording=check_stops,
)
