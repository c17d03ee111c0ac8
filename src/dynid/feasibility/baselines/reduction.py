"""Remove base parameters until the rest is feasible (Diaz-Rodriguez and others 2010).

Least squares on the base parameters; if the values are feasible, stop. Otherwise set the parameter with the largest
relative standard deviation to zero, and repeat. The authors look for standard parameters by a bounded search over a
grid; here the cone program decides, as in Sousa (2014). Nothing guarantees that any reduced model is feasible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import InvalidValue
from dynid.feasibility.baselines.base_rows import base_fit, base_rows
from dynid.feasibility.constraints import Constraints
from dynid.feasibility.queries import is_feasible, nearest_feasible
from dynid.feasibility.sets import FeasibleSet, feasible_set

if TYPE_CHECKING:
    from dynid.parameters.base import BaseParameters

__all__ = ["ModelReduction", "ReductionStep", "reduce_until_feasible"]

Array = NDArray[np.float64]

# Violations up to this size, in the unit of each constraint, are rounding errors of the cone program.
_ROUNDING = 1e-8


@dataclass(frozen=True, eq=False)
class ReductionStep:
    """One fit of the reduction.

    Attributes
    ----------
    beta : ndarray, shape (b,)
        Base parameters, zero where they were removed.
    error : float
        Norm of the residual relative to that of the targets.
    feasible : bool
        Whether the base parameters are physically consistent.
    distance : float
        Euclidean distance to the nearest feasible base parameters; nan where it was not asked for.
    removed : str
        The base parameter that was removed before this fit; "" for the first one.
    """

    beta: Array
    error: float
    feasible: bool
    distance: float
    removed: str


@dataclass(frozen=True, eq=False)
class ModelReduction:
    """Result of the reduction. It is true if it ended at a feasible model.

    Attributes
    ----------
    steps : tuple of ReductionStep
        All fits, beginning with that of all base parameters.
    parameters : ndarray, shape (p,), or None
        Feasible standard parameters of the last model; None if it is not feasible.
    kept : tuple of str
        Base parameters of the last model.
    """

    steps: tuple[ReductionStep, ...]
    parameters: Array | None
    kept: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.parameters is not None

    @property
    def removed(self) -> tuple[str, ...]:
        """Removed base parameters, in order."""
        return tuple(step.removed for step in self.steps[1:])


def reduce_until_feasible(
    base: BaseParameters,
    R: ArrayLike,
    z: ArrayLike,
    *,
    constraints: Constraints = "semi",
    smallest: int = 1,
    distances: bool = False,
) -> ModelReduction:
    """Remove base parameters, the least certain first, until least squares is physically consistent.

    Parameters
    ----------
    base : BaseParameters
        Base parameters of the robot.
    R : array_like, shape (k, p)
        Rows over the standard parameters, divided by the noise, with more rows than base parameters.
    z : array_like, shape (k,)
        Their targets.
    constraints : str, constraint or sequence
        "full", "semi", or constraints of `dynid.feasibility.constraints`; the authors use "semi".
    smallest : int
        Number of base parameters at which the search ends.
    distances : bool
        Whether the distance to the feasible set is computed at each step, which takes longer.

    Returns
    -------
    ModelReduction

    Raises
    ------
    DataError
        For wrong shapes and settings, and rows that other parameters than these determine.

    Examples
    --------
    >>> import dynid
    >>> from dynid.feasibility.baselines import reduce_until_feasible
    >>> from dynid.parameters.base import random_states
    >>> base = dynid.base_parameters(dynid.load_robot("box2"))
    >>> rows = dynid.regressor(base.robot, *random_states(base.robot, 50, 0)).reshape(-1, len(base.robot.layout))
    >>> found = reduce_until_feasible(base, rows, rows @ base.robot.parameters)
    >>> bool(found), found.removed
    (True, ())
    """
    if not 1 <= smallest <= base.count:
        raise InvalidValue(
            f"the smallest model must have 1 to {base.count} base parameters, got {smallest}", "smallest"
        )
    _, rows, target = base_rows(base, R, z)
    feasible = feasible_set(base.robot, constraints)
    kept, steps, removed = list(range(base.count)), list[ReductionStep](), ""
    norm = float(np.linalg.norm(target)) or 1.0
    while True:
        fit = base_fit(rows, target, kept)
        found = _feasible(base, fit.beta, feasible, constraints)
        distance = nearest_feasible(base, fit.beta, constraints).distance if distances else np.nan
        steps.append(ReductionStep(fit.beta, fit.residual / norm, found is not None, distance, removed))
        if found is not None or len(kept) <= smallest:
            return ModelReduction(tuple(steps), found, tuple(base.names[i] for i in kept))
        worst = int(np.argmax(fit.relative))
        removed = base.names[kept.pop(worst)]


def _feasible(base: BaseParameters, beta: Array, feasible: FeasibleSet, constraints: Constraints) -> Array | None:
    """Feasible standard parameters with these base values, or None. A removed friction of zero lies on the boundary."""
    test = is_feasible(base, beta, constraints)
    if test or (test.status == "undecided" and not feasible.violations(test.parameters, _ROUNDING)):
        return test.parameters
    return None
