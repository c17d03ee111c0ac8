"""What a payload monitor reports: the payload as it is known, and events."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["EventKind", "PayloadEvent", "PayloadState"]

Array = NDArray[np.float64]


class EventKind(StrEnum):
    """What happened: PICK_UP, mass was gained; RELEASE, mass was lost."""

    PICK_UP = "pick-up"
    RELEASE = "release"


@dataclass(frozen=True)
class PayloadEvent:
    """A change of the payload.

    Attributes
    ----------
    kind : EventKind
        Whether mass was gained or lost.
    time : float
        When it happened, s; to about a tenth of a second.
    detected : float
        Time of the sample at which it was found, s.
    mass_change : float
        First estimate of the change of mass, kg.
    mass_change_std : float
        Its standard deviation, kg.
    statistic : float
        Value of the test.
    threshold : float
        Value that it had to exceed.
    """

    kind: EventKind
    time: float
    detected: float
    mass_change: float
    mass_change_std: float
    statistic: float
    threshold: float

    def __str__(self) -> str:
        return f"{self.kind} at {self.time:.2f} s: {self.mass_change:+.3g} kg, std {self.mass_change_std:.2g}"

    def to_dict(self) -> dict[str, Any]:
        """The event as plain data."""
        return {
            "kind": str(self.kind),
            "time": self.time,
            "detected": self.detected,
            "mass_change": self.mass_change,
            "mass_change_std": self.mass_change_std,
            "statistic": self.statistic,
            "threshold": self.threshold,
        }


@dataclass(frozen=True, eq=False)
class PayloadState:
    """The payload as far as the rows since the last event show it.

    Attributes
    ----------
    link : str
        Link that carries it.
    since : float
        Time in s from which rows were used.
    rows : int
        Number of rows of all channels.
    mass : float
        Mass, kg; negative where the arm is lighter than its model.
    mass_std : float
        Standard deviation of the mass, kg.
    centre : ndarray, shape (3,)
        Centre of mass in the frame of the link, m; nan where the mass is not distinguishable from zero.
    centre_std : ndarray, shape (3,)
        Standard deviation of the centre, m.
    """

    link: str
    since: float
    rows: int
    mass: float
    mass_std: float
    centre: Array
    centre_std: Array

    def __str__(self) -> str:
        text = f"{self.mass:.3f} kg, std {self.mass_std:.2g}"
        if not np.all(np.isfinite(self.centre)):
            return text
        return f"{text}, centre ({', '.join(f'{x:.3f}' for x in self.centre)}) m"

    def to_dict(self) -> dict[str, Any]:
        """The payload as plain data; None where a value is not finite."""

        def plain(x: float) -> float | None:
            return float(x) if np.isfinite(x) else None

        return {
            "link": self.link,
            "since": self.since,
            "rows": self.rows,
            "mass": self.mass,
            "mass_std": plain(self.mass_std),
            "centre": [plain(x) for x in self.centre],
            "centre_std": [plain(x) for x in self.centre_std],
        }
