"""From a figure and its limits to the result of a check."""

from __future__ import annotations

import numpy as np

from dynid.assessment.verdict.assessment import Check, CheckCode, Result

__all__ = ["graded", "unchecked"]


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
