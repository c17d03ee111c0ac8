"""First against second half of every real recording: do the estimates differ by as much as their standard deviations?

The halves have their own noise and, if the model is complete, the same parameters. Then the RMS of
z = (b1 - b2) / sqrt(s1^2 + s2^2) over the base parameters is near one. Real models are not complete: a z above one is
the sum of a standard deviation that is too small and of effects that are not in the model.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynid.errors import DynidError
from dynid.identification.pipeline import identify
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from studies.reproduce.robot_cases import CASES
from studies.reproduce.study import Figure

__all__ = ["figures", "halves_z"]

_LOWEST, _HIGHEST = 0.7, 1.3


def figures() -> Iterator[Figure]:
    """RMS z of weighted least squares for every robot, and how many are near one; all for the record."""
    section, record = "RMS z of first against second half, wls", "for the record"
    band, found = f"{_LOWEST} to {_HIGHEST}", []
    for name, case in CASES.items():
        data = case()
        try:
            z = halves_z(data.robot, data.train)
        except DynidError as error:  # half a motion may not excite all base parameters
            yield Figure(section, name, band, "none", 0.0, np.inf, str(error))
            continue
        found.append(z)
        yield Figure(section, name, band, f"{z:.2f}", max(_LOWEST - z, z - _HIGHEST, 0.0), np.inf, record)
    inside = sum(_LOWEST <= z <= _HIGHEST for z in found)
    outside = len(found) - inside
    yield Figure(section, f"recordings within {band}", str(len(found)), str(inside), outside, np.inf, record)


def halves_z(robot: Robot, recording: Recording, method: str = "wls") -> float:
    """RMS of the differences of the base parameters of the halves of all runs, over their standard deviations."""
    half = [len(run) // 2 for run in recording.runs]
    first = tuple(run.rows(0, k) for run, k in zip(recording.runs, half, strict=True))
    second = tuple(run.rows(k, len(run)) for run, k in zip(recording.runs, half, strict=True))
    one, two = (identify(robot, Recording(recording.joints, runs), method) for runs in (first, second))
    return float(np.sqrt(np.mean((one.beta - two.beta) ** 2 / (one.std**2 + two.std**2))))
