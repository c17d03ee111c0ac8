"""From a figure and its limits to the result of a check."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.assessment.verdict.assessment import Check, CheckCode, Result

__all__ = ["check_held_out", "graded", "listed", "unchecked"]

# Names that a sentence lists.
_NAMED = 3


def graded(
    code: CheckCode,
    figure: float,
    limit: float,
    failure: float,
    unit: str,
    words: str,
    advice: str = "",
) -> Check:
    """Check of a figure that should be small: passed up to `limit`, failed beyond `failure`, warned between.

    A figure that is not a number is not known, and not checked.
    """
    result: Result = "passed" if figure <= limit else "warned" if figure <= failure else "failed"
    if np.isnan(figure):
        result = "not checked"
    return Check(code, result, words, float(figure), limit, failure, unit, "" if result == "passed" else advice)


def unchecked(code: CheckCode, why: str) -> Check:
    """Check that could not be made, and why."""
    return Check(code, "not checked", why)


def check_held_out(held_out: bool) -> Check:
    """Check that motion was held out to validate on."""
    if held_out:
        return Check(CheckCode.EVIDENCE, "passed", "compared with motion that was not fitted")
    advice = "hold a part of the log out, or record a second one"
    return Check(CheckCode.EVIDENCE, "warned", "no motion was held out", advice=advice)


def listed(names: Sequence[str]) -> str:
    """The first names of a list, and how many more there are."""
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
