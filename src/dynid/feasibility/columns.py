"""Links and parameters selected by name, and sparse rows over the standard parameters."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dynid.errors import UnknownName
from dynid.patterns import matching_names
from dynid.robot.model import Robot

__all__ = ["columns_of", "first_column", "link_named", "links_named", "matching", "wide"]

Array = NDArray[np.float64]


def links_named(robot: Robot, pattern: str) -> list[str]:
    """Names of the links with inertial parameters that match a pattern."""
    return matching(pattern, [robot.links[i].name for i in robot.parameter_links], "link with inertia")


def link_named(robot: Robot, name: str) -> str:
    """Name of the only link with inertial parameters that matches a pattern."""
    found = links_named(robot, name)
    if len(found) > 1:
        raise UnknownName(f"'{name}' matches more than one link: {', '.join(found)}", "name")
    return found[0]


def matching(pattern: str, names: Iterable[str], what: str) -> list[str]:
    """Names that match a pattern; an error that mentions `what` if there are none."""
    found = matching_names(pattern, names)
    if not found:
        raise UnknownName(f"no {what} is named '{pattern}'")
    return found


def first_column(robot: Robot, link: str) -> int:
    """First column of the inertial parameters of a link."""
    return robot.parameter_names.index(f"m_{link}")


def wide(coefficients: Array, columns: Iterable[int], width: int) -> sparse.csr_array:
    """Coefficients (rows, k) as a sparse matrix with `width` columns."""
    coefficients = np.atleast_2d(coefficients)
    row, local = np.nonzero(coefficients)
    where = np.array(list(columns))[local]
    starts = np.searchsorted(row, np.arange(len(coefficients) + 1))
    return sparse.csr_array((coefficients[row, local], where, starts), shape=(len(coefficients), width))


def columns_of(robot: Robot, coefficients: Array, columns: Iterable[int]) -> sparse.csr_array:
    """Coefficients (rows, k) as a sparse matrix over the standard parameters."""
    return wide(coefficients, columns, len(robot.layout))
