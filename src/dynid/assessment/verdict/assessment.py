"""Assessment: a verdict in three words, and the checks that led to it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dynid.files import write_text

__all__ = ["RESULTS", "Assessment", "Check", "Result", "Trust"]

Result = Literal["passed", "warned", "failed", "not checked"]
Trust = Literal["trusted", "use with care", "do not use"]
RESULTS: tuple[Result, ...] = ("failed", "warned", "passed", "not checked")
# What speaks for an estimate, the most telling first.
_FOR = ("error on unseen motion", "agreement of both recordings", "physically possible", "certainty within the limits")


@dataclass(frozen=True)
class Check:
    """One question that was asked of an estimate.

    `figure` is what was measured, in words of `unit`; it passes up to `limit` and fails beyond `failure`. `words` say
    what was found, `advice` what to do about it.
    """

    name: str
    result: Result
    words: str
    figure: float | None = None
    limit: float | None = None
    failure: float | None = None
    unit: str = ""
    advice: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data; figures that are not finite are null."""
        out = dict(vars(self))
        for key in ("figure", "limit", "failure"):
            value = out[key]
            out[key] = None if value is None or not np.isfinite(value) else float(value)
        return out


@dataclass(frozen=True)
class Assessment:
    """What may be done with an estimate, why, and every check with its figure and limit."""

    robot: str
    method: str
    checks: tuple[Check, ...]

    @property
    def verdict(self) -> Trust:
        """Failed checks forbid the use, warnings ask for care."""
        found = {c.result for c in self.checks}
        if "failed" in found:
            return "do not use"
        return "use with care" if "warned" in found else "trusted"

    @property
    def trusted(self) -> bool:
        return self.verdict == "trusted"

    @property
    def reasons(self) -> tuple[str, ...]:
        """What was found against the estimate, worst first; what speaks for it where nothing was."""
        against = [c.words for r in ("failed", "warned") for c in self.checks if c.result == r]
        return tuple(against or [c.words for name in _FOR for c in self.checks if c.name == name])

    def check(self, name: str) -> Check:
        """A check by its name."""
        return next(c for c in self.checks if c.name == name)

    def summary(self) -> str:
        """Verdict and reasons, then a line a check."""
        lines = [f"verdict: {self.verdict}", *(f"  - {reason}" for reason in self.reasons)]
        width = max(len(c.name) for c in self.checks)
        return "\n".join([*lines, *(f"  {c.result:11}  {c.name:{width}}  {_shown(c)}" for c in self.checks)])

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "format": "dynid verdict 1",
            "robot": self.robot,
            "method": self.method,
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "checks": [c.to_dict() for c in self.checks],
        }

    def save(self, path: str | Path) -> None:
        """Write the assessment as JSON."""
        write_text(path, json.dumps(self.to_dict(), indent=2) + "\n")


def _shown(check: Check) -> str:
    if check.figure is None:
        return ""
    limit = "" if check.limit is None else f" (limit {check.limit:.3g})"
    return f"{check.figure:.3g} {check.unit}{limit}"
