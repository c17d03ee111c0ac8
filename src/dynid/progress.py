"""Progress: how far long work is, reported to whoever waits for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Progress", "ProgressCallback"]


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
    """

    message: str
    share: float | None = None
    seconds_left: float | None = None

    def __str__(self) -> str:
        if self.seconds_left is None:
            return self.message
        left = self.seconds_left
        return f"{self.message}, {left:.0f} s left" if left < 100 else f"{self.message}, {left / 60:.1f} min left"


ProgressCallback = Callable[[Progress], None]
