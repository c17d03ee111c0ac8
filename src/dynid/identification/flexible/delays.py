"""Delay between the encoders of motor and link: the link side is shifted in time until none is left."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.identification.flexible.motion import TwoSided

__all__ = ["advanced"]

Array = NDArray[np.float64]


def advanced(motion: TwoSided, delays: Array) -> TwoSided:
    """The run with the links of all joints (n,) advanced by the delays of their encoders in s."""
    if not np.any(delays):
        return motion
    links = motion.links
    moved = {}
    for signal in ("q", "v", "a"):
        values = getattr(links, signal).copy()
        for i in np.flatnonzero(delays):
            values[:, i] = scipy.interpolate.CubicSpline(links.t, values[:, i])(links.t + delays[i])
        moved[signal] = values
    return TwoSided(motion.motors, replace(links, **moved))
