"""Options of the estimators: one frozen dataclass per method, checked when it is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dynid.errors import InvalidValue, UnknownName, did_you_mean, named
from dynid.feasibility.prior import KnownMasses, check_bodies, known_masses

__all__ = [
    "BodyOptions",
    "KnownMasses",
    "MethodOptions",
    "Start",
    "check_at_least_one",
    "check_choice",
    "check_iteration",
    "known_masses",
    "options_from",
]

Start = ArrayLike | Literal["prior", "feasible"]
Options = TypeVar("Options", bound="MethodOptions")

STARTS = ("prior", "feasible")


@dataclass(frozen=True, eq=False, kw_only=True)
class MethodOptions:
    """Base of the options of all methods.

    The fields of a subclass are the options of its method. Values that are wrong whatever the data raise a DataError
    when the object is made, before any signal is cleaned; shapes that depend on the robot are checked by the method.
    """


@dataclass(frozen=True, eq=False, kw_only=True)
class BodyOptions(MethodOptions):
    """Options of the methods that estimate bodies: what is known of their masses, and their plausible box.

    Attributes
    ----------
    mass : float, optional
        Mass in kg of all moving bodies together, from scales or the data sheet: known within a standard deviation of
        3 %.
    link_masses : mapping of str to float, optional
        Mass in kg of single links, known as well, by name; with wildcards, that of each link that matches.
    box : bool, default True
        Whether the bodies stay inside the plausible box.
    """

    mass: float | None = None
    link_masses: Mapping[str, float] | None = None
    box: bool = True

    def __post_init__(self) -> None:
        check_bodies(self.mass, self.link_masses, self.box)


def options_from(kind: type[Options], method: str, keywords: Mapping[str, Any]) -> Options:
    """The options of a method from keywords; an unknown keyword raises a DataError that lists the method's options."""
    known = [x.name for x in fields(kind)]
    for name in keywords:
        if name not in known:
            listed = f"its options are {', '.join(known)}" if known else "it has no options"
            raise UnknownName(f"method '{method}' has no option '{name}': {listed}{did_you_mean(name, known)}", name)
    return kind(**keywords)


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Raise a DataError if an option is none of its choices."""
    if value not in choices:
        raise UnknownName(f"{name} '{value}' is unknown: use {', '.join(choices[:-1])} or {choices[-1]}", name)


def check_at_least_one(name: str, value: object) -> None:
    """Raise a DataError unless an option is a whole number of at least one."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidValue(f"{name} must be a whole number of at least one, got {value!r:.40}", name)


def check_iteration(start: object, tolerance: float, max_iterations: int, starts: tuple[str, ...] = STARTS) -> None:
    """Raise a DataError if the options that all iterative methods share are wrong."""
    check_at_least_one("max_iterations", max_iterations)
    if not tolerance > 0:
        raise InvalidValue(f"tolerance must be positive, got {tolerance!r:.40}", "tolerance")
    if isinstance(start, str) and start not in starts:
        raise UnknownName(f"{named('start')} '{start}' is unknown: use {', '.join(starts)} or standard parameters (p,)")
