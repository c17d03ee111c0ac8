"""Finding: one thing that a check has to say of a recording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["SEVERITIES", "Finding", "Severity"]

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


@dataclass(frozen=True)
class Finding:
    """One thing found in a run: how bad, where, what, how much, and what to do about it.

    severity: "error" makes the data unusable as they are, "warning" makes results worse, "info" is good to know.
    joint: its name, or "" where the whole run is meant. how_much: a number first, then its unit in words.
    """

    severity: Severity
    run: str
    joint: str
    what: str
    how_much: str
    what_to_do: str
