"""Units of measured positions and lengths, from how far the robot moves between the same postures.

scatter of the measured points / scatter of the frame in the robot's file = 1, 100 or 1000
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.errors import InvalidValue, keyword
from dynid.geometry.formats.piece import UNITS, Settings

__all__ = ["length_factor"]

Array = NDArray[np.float64]

# Markers beside the frame move farther than it, and less: within this factor a unit is possible.
_WITHIN = 3.0
# A frame that moves less than this (m) says nothing about units; then points farther away than this are no metres.
_STILL, _FAR = 1e-2, 20.0


def length_factor(
    what: str, measured: Array, moved: Array, settings: Settings, file: str, named: str | None = None
) -> float:
    """Factor to metres of points (N, 3) or lengths (N,), whose frame stands at `moved` (N, 3).

    Parameters
    ----------
    what : str
        "points" or "lengths".
    measured, moved : ndarray
        What was measured, and positions of the frame in the robot's file (m).
    settings : Settings
        What was said, and the notes.
    file : str
        Name of the file, for messages.
    named : str, optional
        Unit in the names of the columns.
    """
    units = UNITS[what]
    seen = np.isfinite(measured.reshape(len(measured), -1)).all(1)
    scatter, expected = _scatter(measured[seen]), _scatter(moved[seen])
    stated = settings.units.get(what) or named
    if expected < _STILL or scatter == 0:
        if stated is not None:
            return units[stated]
        away = float(np.nanmedian(np.abs(measured[seen]))) if seen.any() else 0.0
        unit = "mm" if away > _FAR else "m"
        settings.note(f"{what} are read as {unit}; the robot moves too little to tell", file)
        return units[unit]
    likely = min(units, key=lambda u: abs(np.log(scatter * units[u] / expected)))
    # A length changes less than the position whose distance it is.
    within = _WITHIN if what == "points" else _WITHIN**3
    words = f"{what} scatter by {scatter:.3g} over postures between which '{settings.frame}' moves by {expected:.3g} m"
    if stated is not None:
        if likely != stated and not 1 / _WITHIN**3 < scatter * units[stated] / expected < within**3:
            raise InvalidValue(
                f"{words}: they are not in {stated} but in {likely}, {keyword('units', {what: likely})}",
                "units",
                where=file,
            )
        return units[stated]
    if what == "lengths" and likely == "cm":
        likely = "mm" if scatter > _WITHIN * expected * 10 else "m"
    if not 1 / _WITHIN**2 < scatter * units[likely] / expected < _WITHIN**2:
        settings.note(f"{words}, which fits no unit: check the order and the signs of the joints", file)
        likely = "m" if scatter < _FAR else "mm"
    settings.note(f"{what} are read as {likely}, as far as the robot moves between the postures", file)
    return units[likely]


def _scatter(x: Array) -> float:
    """Root mean square distance from the mean."""
    if not len(x):
        return 0.0
    flat = x.reshape(len(x), -1)
    return float(np.sqrt(((flat - flat.mean(0)) ** 2).sum(1).mean()))
