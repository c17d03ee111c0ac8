"""Progress: how far long work is, reported to whoever waits for it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

__all__ = ["JSON_LINES", "PROGRESS_FORMAT", "Progress", "ProgressCallback"]

# Environment variable that says how commands print progress where nobody watches, and its value for lines of JSON.
PROGRESS_FORMAT, JSON_LINES = "DYNID_PROGRESS", "json"
_KEY = "progress"


@dataclass(frozen=True)
class Progress:
    """How far long work is.

    Attributes
    ----------
    message : str
        What is being done, or what was done last, in a few words.
    share : float or None
        Share of the work that is done, from 0 to 1; None where it is not known.
    seconds_left : float or None
        Estimated time left in seconds; None where it is not known.
    values : mapping of str to float
        Figures that show how the work goes, such as the criterion of a search, by name.
    """

    message: str
    share: float | None = None
    seconds_left: float | None = None
    values: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        if self.seconds_left is None:
            return self.message
        left = self.seconds_left
        return f"{self.message}, {left:.0f} s left" if left < 100 else f"{self.message}, {left / 60:.1f} min left"

    def to_line(self) -> str:
        """One line of JSON, for another program; values that are not finite are left out."""
        values = {name: value for name, value in self.values.items() if math.isfinite(value)}
        content = {"message": self.message, "share": self.share, "seconds_left": self.seconds_left, "values": values}
        return json.dumps({_KEY: content})

    @classmethod
    def from_line(cls, line: str) -> Progress | None:
        """What `to_line` wrote; None for any other line."""
        if not line.startswith(f'{{"{_KEY}": '):
            return None
        try:
            return cls(**json.loads(line)[_KEY])
        except (ValueError, TypeError):
            return None


ProgressCallback = Callable[[Progress], None]
