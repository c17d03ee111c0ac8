"""From a figure and its limits to the result of a check."""

from __future__ import annotations

import numpy as np

from dynid.assessment.verdict.assessment import Check, Result

__all__ = ["graded", "unchecked"]


def graded(
    name: str,
    figure: float,
    limit: float,
    failure: float,
    unit: str,
    words: str,
    advice: str = "",
) -> Check:
    """A check whose figure is better the smaller it is: passed up to `limit`, failed beyond `failure`."""
    result: Result = "passed" if figure <= limit else "warned" if figure <= failure else "failed"
    if np.isnan(figure):
        result = "failed"
    return Check(name, result, words, float(figure), limit, failure, unit, "" if result == "passed" else advice)


def unchecked(name: str, why: str) -> Check:
    """A check for which there is no evidence."""
    return Check(name, "not checked", why)
