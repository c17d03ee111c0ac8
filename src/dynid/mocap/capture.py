"""Capture: one motion-capture trial with the checks of its markers, plates and clocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid.assessment.finding import Findings
from dynid.mocap.faults import Gap, Spike, Swap, find_gaps, find_spikes, find_swaps, undo_swaps
from dynid.mocap.findings import find
from dynid.mocap.plate_checks import compare_clocks
from dynid.mocap.trial import Trial

__all__ = ["Capture"]


@dataclass(frozen=True, eq=False, repr=False)
class Capture(Trial):
    """One motion-capture trial: markers, analog channels, force plates and coordinates. Metres, radians, newtons, z up.

    Attributes
    ----------
    name : str
        Name of the trial.
    rate : float
        Frame rate of the cameras, Hz.
    markers : tuple of str
        Marker names.
    positions : ndarray, shape (N, M, 3)
        Marker positions in the laboratory, m; nan where a marker was not visible.
    analogs : Channels
        Raw analog channels in units of the file.
    plates : tuple of Plate
        Force plates.
    coordinates : Channels
        Coordinates of a motion file.
    events : tuple of (str, float)
        Names and times (s) of events.
    start : float
        Time of the first sample in the file, s. In the capture every clock starts at 0.
    """

    def gaps(self) -> tuple[Gap, ...]:
        """Intervals of frames in which a marker was not visible."""
        return find_gaps(self)

    def swaps(self) -> tuple[Swap, ...]:
        """Intervals of frames in which the names of two markers are exchanged."""
        return find_swaps(self)

    def spikes(self) -> tuple[Spike, ...]:
        """Frames in which a marker jumps away and back."""
        return find_spikes(self)

    def unswapped(self) -> Capture:
        """The capture with the names of all `swaps` exchanged back."""
        return undo_swaps(self)

    def findings(self, mass: float | None = None) -> Findings:
        """Check markers, plates and clocks.

        Parameters
        ----------
        mass : float, optional
            Mass of the body, kg, for checks of the weight.

        Returns
        -------
        Findings
            A tuple of `Finding`, most severe first.
        """
        return find(self, mass)

    def clock_offset(self, height: ArrayLike | None = None) -> tuple[float, float]:
        """Estimate the delay of the plates against the cameras.

        Compares the vertical force with the vertical acceleration of the body.

        Parameters
        ----------
        height : array_like, shape (N,), optional
            Height of the centre of mass, m; by default the mean of all markers.

        Returns
        -------
        delay : float
            Delay, s.
        correlation : float
            Correlation at this delay.
        """
        lag, correlation, _ = compare_clocks(self, None if height is None else np.asarray(height, dtype=float))
        return lag, correlation
