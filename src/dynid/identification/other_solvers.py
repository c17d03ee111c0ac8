"""The feasible fit of an observation as a problem that other solvers can be given."""

from __future__ import annotations

from dynid.feasibility.agreement import FitProblem
from dynid.feasibility.constraints import Constraints
from dynid.feasibility.metrics import Metric
from dynid.feasibility.sets import feasible_set
from dynid.identification.estimators.feasible import least_squares_rows, preference, row_noise
from dynid.identification.observation import Observation

__all__ = ["feasible_problem"]


def feasible_problem(
    observation: Observation,
    *,
    constraints: Constraints = "full",
    metric: Metric = "pullback",
    weight: float = 1.0,
) -> FitProblem:
    """The weighted least squares of an observation over physically consistent robots, near their prior.

    It is the problem of method "feasible" with a given weight of the prior and without a box of plausible bodies.

    Parameters
    ----------
    observation : Observation
        The folded recording.
    constraints : str, constraint or sequence
        "full", "semi", or constraints of `dynid.feasibility.constraints`.
    metric : {"euclidean", "pullback", "entropic"}
        Distance from the prior. The entropic one is no semidefinite program: only some solvers have its cones.
    weight : float, default 1
        Weight of the prior. With 1, a pseudo-inertia is known within a factor of about two.

    Returns
    -------
    FitProblem
        `compare()` solves it with all solvers of this computer, `write_sdpa` writes it for others.

    Raises
    ------
    DataError
        For unknown constraints.
    """
    noise, _ = row_noise(observation, "wls")
    wanted, _ = preference(observation, noise, metric=metric, weight=weight)
    allowed = feasible_set(observation.robot, constraints)
    R, z = least_squares_rows(observation.stacked(1.0 / noise), observation.base.matrix, allowed)
    return FitProblem(allowed, R, z, wanted.prior, metric, weight, wanted.scale)
