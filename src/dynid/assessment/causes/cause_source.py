"""The record of what is searched for among the causes of a residual, and all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from dynid.assessment.causes.cause_code import CauseCode
from dynid.assessment.causes.cause_groups import Group, Model
from dynid.base.records import collect

__all__ = ["CauseSource", "cause_codes", "cause_sources"]


@dataclass(frozen=True, kw_only=True)
class CauseSource:
    """Candidates for the causes of a residual.

    Attributes
    ----------
    name : str
        Its name; that of its entry point in the group `dynid.causes` where another package has it.
    codes : tuple of CauseCode
        Codes of its candidates.
    groups : callable, optional
        Function (model) that yields the candidates; None where the search makes them itself, in an order of its own.
    near : mapping of CauseCode to callable
        Functions (model, group) that yield candidates between those that were tried, near the best one.
    """

    name: str
    codes: tuple[CauseCode, ...]
    groups: Callable[[Model], Iterator[Group]] | None = None
    near: Mapping[CauseCode, Callable[[Model, Group], Iterator[Group]]] = field(default_factory=dict)


@cache
def cause_sources() -> dict[str, CauseSource]:
    """All candidates by the names of their records: those of the folder `kinds`, then those of other packages.

    Returns
    -------
    dict of str to CauseSource
    """
    return collect("dynid.assessment.causes.kinds", CauseSource, "dynid.causes", "cause")


def cause_codes() -> dict[str, CauseCode]:
    """All codes of causes by their text.

    Returns
    -------
    dict of str to CauseCode

    Examples
    --------
    >>> from dynid.stats import cause_codes
    >>> cause_codes()["payload"].advice
    'identify and validate with the same payload, or give the payload to the robot'
    """
    return {str(code): code for source in cause_sources().values() for code in source.codes}
