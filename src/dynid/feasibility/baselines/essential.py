"""Essential parameters, fitted in the space of the standard ones near a prior (Gautier and others 2013).

Base parameters are removed once, by the rule of Pham and Gautier: the least certain first, until the largest relative
standard deviation is at most `ratio` times the smallest. The rest is fitted over the standard parameters by a singular
value decomposition, and what the data leave free is taken from a prior of the design data. The result is not
constrained: it is checked by Cholesky factorisations, and the shift with which they succeed says how far it is off.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError, InvalidValue
from dynid.feasibility.baselines.base_rows import base_fit, base_rows
from dynid.feasibility.baselines.result import BaselineFit
from dynid.feasibility.cone import smat
from dynid.feasibility.constraints import Inertia, Notion, Signs
from dynid.feasibility.sets import FeasibleSet, feasible_set
from dynid.robot.parts import checked

if TYPE_CHECKING:
    from dynid.parameters.base import BaseParameters

__all__ = ["EssentialFit", "essential_fit"]

Array = NDArray[np.float64]

_RANK = 1e-9
# Tolerance of the Cholesky factorisations, in the unit of each body and drive.
_ROUNDING = 1e-12
# Steps of the search for their shift, each of which halves its interval.
_HALVINGS = 60


@dataclass(frozen=True, eq=False)
class EssentialFit:
    """Result of the fit. It is true if its parameters are physically consistent.

    Attributes
    ----------
    fit : BaselineFit
        Standard parameters and how they were found.
    essential : tuple of str
        Base parameters that were kept.
    removed : tuple of str
        The others, in the order in which they were removed.
    shift : float
        Smallest multiple of the unit of each body and drive that must be added for all Cholesky factorisations to
        succeed: zero if the parameters are physically consistent, else a measure of how far they are from it.
    """

    fit: BaselineFit
    essential: tuple[str, ...]
    removed: tuple[str, ...]
    shift: float

    def __bool__(self) -> bool:
        return self.shift == 0


def essential_fit(
    base: BaseParameters,
    R: ArrayLike,
    z: ArrayLike,
    *,
    prior: ArrayLike | None = None,
    ratio: float = 30.0,
    notion: Notion = "semi",
) -> EssentialFit:
    """Least squares on the essential parameters, near a prior where the data leave a choice.

    Parameters
    ----------
    base : BaseParameters
        Base parameters of the robot.
    R : array_like, shape (k, p)
        Rows over the standard parameters, divided by the noise, with more rows than base parameters.
    z : array_like, shape (k,)
        Their targets.
    prior : array_like, shape (p,), optional
        Standard parameters of the design data; `robot.parameters` if not given.
    ratio : float
        Largest relative standard deviation of an essential parameter, in multiples of the smallest one.
    notion : {"semi", "full"}
        Physical consistency of a link that is checked.

    Returns
    -------
    EssentialFit

    Raises
    ------
    DataError
        For wrong shapes and settings, and rows that other parameters than these determine.

    Examples
    --------
    >>> import dynid
    >>> import numpy as np
    >>> from dynid.feasibility.baselines import essential_fit
    >>> from dynid.parameters.base import random_states
    >>> base = dynid.base_parameters(dynid.load_robot("box2"))
    >>> rows = dynid.regressor(base.robot, *random_states(base.robot, 50, 0)).reshape(-1, len(base.robot.layout))
    >>> noise = 0.1 * np.random.default_rng(0).normal(size=len(rows))
    >>> found = essential_fit(base, rows, rows @ base.robot.parameters + noise)
    >>> bool(found), found.removed
    (True, ('fc_joint2', 'fc_joint1', 'fv_joint1', 'fv_joint2'))
    """
    started = time.perf_counter()
    if not ratio > 1:
        raise InvalidValue(f"the ratio of standard deviations must be more than 1, got {ratio:g}", "ratio")
    feasible = feasible_set(base.robot, (Inertia(notion, margin=0.0), Signs()))
    start = base.robot.parameters if prior is None else checked(prior, (feasible.size,), "prior", DataError)
    rows, own, target = base_rows(base, R, z)
    kept, removed = _essential(own, target, ratio)
    # Removed parameters are zero in the fit: their columns take no part.
    reduced = own[:, kept] @ base.matrix[kept] * feasible.scale
    u, sizes, v = np.linalg.svd(reduced, full_matrices=False)
    rank = int(np.count_nonzero(sizes > _RANK * sizes[0]))
    missing = u[:, :rank].T @ (target - reduced @ (start / feasible.scale))
    pi = start + feasible.scale * (v[:rank].T @ (missing / sizes[:rank]))
    cost = 0.5 * float(np.sum((rows @ pi - target) ** 2))
    message = f"{len(kept)} of {base.count} base parameters are essential"
    fit = BaselineFit(pi, cost, True, len(removed) + 1, time.perf_counter() - started, message)
    names = [tuple(base.names[i] for i in part) for part in (kept, removed)]
    return EssentialFit(fit, names[0], names[1], _shift(feasible, pi))


def _essential(rows: Array, target: Array, ratio: float) -> tuple[list[int], list[int]]:
    """Indices of the essential base parameters, and of the others in the order of their removal."""
    kept, removed = list(range(rows.shape[1])), list[int]()
    while len(kept) > 1:
        relative = base_fit(rows, target, kept).relative
        worst = int(np.argmax(relative))
        if relative[worst] <= ratio * relative.min():
            break
        removed.append(kept.pop(worst))
    return kept, removed


def _shift(feasible: FeasibleSet, pi: Array) -> float:
    """Smallest shift of all matrices and signs, in their units, with which Cholesky factorisations succeed."""
    if _succeeds(feasible, pi, _ROUNDING):
        return 0.0
    high = 2.0 * _ROUNDING
    while not _succeeds(feasible, pi, high):
        high *= 2.0
    low = 0.5 * high
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if _succeeds(feasible, pi, middle) else (middle, high)
    return high


def _succeeds(feasible: FeasibleSet, pi: Array, shift: float) -> bool:
    """Whether all matrices have a Cholesky factor and all signed parameters are not negative, after a shift."""
    for block in feasible.blocks:
        unit = 1.0 if block.unit is None else block.unit
        value = block.value(pi) + shift * unit
        if block.cone == "psd":
            try:
                np.linalg.cholesky(smat(value))
            except np.linalg.LinAlgError:
                return False
        elif np.any(value < 0):
            return False
    return True
