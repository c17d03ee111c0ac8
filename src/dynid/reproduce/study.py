"""The frame of every reproduction: figures, studies and where published numbers are read from."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.errors import DataError

__all__ = ["Figure", "Study", "find_study", "published", "studies"]


@dataclass(frozen=True)
class Figure:
    """One published figure, ours, how far apart they are and how far they may be, with the reason."""

    section: str
    name: str
    published: str
    ours: str
    difference: float
    tolerance: float
    reason: str

    @property
    def ok(self) -> bool:
        return bool(self.difference <= self.tolerance)


@dataclass(frozen=True)
class Study:
    """A named set of figures from one source or on one subject; `needs_data` where real recordings are read."""

    name: str
    title: str
    run: Callable[[], Iterator[Figure]]
    needs_data: bool = False


def studies() -> dict[str, Study]:
    """All reproductions by name."""
    from dynid.reproduce import dynamics, robots, structure, toolbox, tx40

    found = [
        Study("structure", "Counts and groupings of base parameters", structure.figures),
        Study("dynamics", "Torques, condition numbers and mass matrices of the printed models", dynamics.figures),
        Study("toolbox-2dof", "The 2-DOF example from random samples", toolbox.figures),
        Study("tx40", "The identified TX40 from its motor-side files", tx40.figures, needs_data=True),
        Study("robots", "Every real robot with default settings", robots.figures, needs_data=True),
    ]
    return {study.name: study for study in found}


def find_study(name: str) -> Study:
    known = studies()
    if name not in known:
        raise DataError(f"no reproduction is named '{name}', there are {', '.join(known)}")
    return known[name]


def published(name: str) -> dict[str, Any]:
    """The published numbers of data/NAME.toml."""
    text = (resources.files("dynid.reproduce") / "data" / f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def number(section: str, name: str, expected: float, ours: float, tolerance: float, reason: str) -> Figure:
    """A figure that is one number; tolerance is absolute."""
    return Figure(section, name, f"{expected:.7g}", f"{ours:.7g}", abs(float(ours) - expected), tolerance, reason)


def numbers(
    section: str, name: str, expected: ArrayLike, ours: ArrayLike, tolerance: float, reason: str
) -> Iterator[Figure]:
    """One figure an entry of a vector."""
    for i, (e, o) in enumerate(zip(np.ravel(expected), np.ravel(ours), strict=True), start=1):
        yield number(section, f"{name} [{i}]", float(e), float(o), tolerance, reason)
