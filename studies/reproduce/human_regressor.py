"""Sixteen bodies of a person from measured forces: three cone programs with their published solutions.

The regressor, the a-priori bodies, their bounding ellipsoids and the solutions come with Lee, Wensing and Park 2020.
Objective and constraints of the published solutions and ours are evaluated by the same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.feasibility.constraints import Constraint, Ellipsoids, Inertia
from dynid.feasibility.fit import Fit, closest, fit
from dynid.feasibility.metrics import distance
from dynid.feasibility.sets import FeasibleSet, feasible_set
from dynid.identification.observation import fold
from dynid.robot.inertia import INERTIAL_SYMBOLS, inertia_to_pseudo
from dynid.robot.model import Robot
from dynid.robot.parts import Joint, Link
from studies.reproduce.study import Figure, data_folder, number

__all__ = ["figures"]

Array = NDArray[np.float64]

_SECTION = "Human from measured forces (Lee, Wensing, Park 2020)"
_ORDER = ("m", "mx", "my", "mz", "Ixx", "Iyy", "Izz", "Ixy", "Iyz", "Ixz")
_BODIES = 16
_AS_GOOD = "relative; negative if ours is better; a published point outside a constraint may be lower"


@dataclass(frozen=True, eq=False)
class _Problem:
    """|R pi - z|^2 is the published least-squares error; `published` are standard vectors (p,) by metric."""

    feasible: FeasibleSet
    ellipsoids: tuple[Array, ...]
    R: Array
    z: Array
    gamma: float
    bound: float
    published: dict[str, Array]

    @property
    def prior(self) -> Array:
        return self.feasible.robot.parameters

    def squares(self, pi: Array) -> float:
        return float(np.sum((self.R @ pi - self.z) ** 2))

    def regularised(self, pi: Array) -> float:
        """Squares plus gamma times the squared distance from the prior in SI units."""
        robot, one = self.feasible.robot, np.ones(len(pi))
        return self.squares(pi) + 2 * self.gamma * distance(robot, pi, self.prior, "euclidean", one)

    def pullback(self, pi: Array) -> float:
        """Squared distance from the prior in the metric of the prior's pseudo-inertias."""
        return 2 * distance(self.feasible.robot, pi, self.prior, "pullback", self.feasible.scale)

    def entropic(self, pi: Array) -> float:
        """Divergence from the prior, zero at the prior itself."""
        return distance(self.feasible.robot, pi, self.prior, "entropic", self.feasible.scale)

    def smallest_eigenvalue(self, pi: Array) -> float:
        """Of all pseudo-inertias, SI units."""
        return float(np.linalg.eigvalsh(inertia_to_pseudo(pi.reshape(_BODIES, 10))).min())

    def least_inside(self, pi: Array) -> float:
        """The smallest tr(P Q) of all bodies, SI units."""
        return float(np.einsum("kij,kij->k", inertia_to_pseudo(pi.reshape(_BODIES, 10)), self.ellipsoids).min())


def figures() -> Iterator[Figure]:
    problem = _problem()
    trace = 0.01 * float(np.sum(problem.R**2))
    yield number(_SECTION, "gamma", problem.gamma, trace, 1e-6 * problem.gamma, "relative 1e-6")
    feasible, R, z, prior = problem.feasible, problem.R, problem.z, problem.prior
    found = fit(feasible, R, z, prior, weight=problem.gamma, scale=np.ones(len(prior)))
    yield from _compared(problem, "euclidean", found, problem.regularised)
    # The published bound on the squares, not our own: both solutions are of the same problem.
    bound = np.sqrt(problem.bound)
    yield from _compared(problem, "pullback", closest(feasible, R, z, bound, prior, "pullback"), problem.pullback)
    yield from _compared(problem, "entropic", closest(feasible, R, z, bound, prior, "entropic"), problem.entropic)


def _compared(problem: _Problem, metric: str, found: Fit, objective: Callable[[Array], float]) -> Iterator[Figure]:
    """Objective, squares, constraints and masses of the published solution and of ours."""
    theirs, ours = problem.published[metric], found.parameters
    a, b = objective(theirs), objective(ours)
    yield Figure(_SECTION, f"{metric}: objective", f"{a:.10g}", f"{b:.10g}", b / a - 1.0, 1e-6, _AS_GOOD)
    a, b = problem.squares(theirs), problem.squares(ours)
    if metric == "euclidean":
        reason, difference = "relative, the bound of the other two", abs(b / problem.bound - 1.0)
    else:
        reason, difference = "above the bound, relative", b / problem.bound - 1.0
    yield Figure(_SECTION, f"{metric}: squares", f"{a:.10g}", f"{b:.10g}", difference, 1e-6, reason)
    for name, measure in (
        ("smallest eigenvalue", problem.smallest_eigenvalue),
        ("least inside an ellipsoid", problem.least_inside),
    ):
        a, b = measure(theirs), measure(ours)
        yield Figure(_SECTION, f"{metric}: {name}", f"{a:.3g}", f"{b:.3g}", -b, 1e-8, "not below zero, SI units")
    masses, others = ours[::10], theirs[::10]
    yield number(_SECTION, f"{metric}: total mass", others.sum(), masses.sum(), 5e-4, "quoted to three decimals")
    worst = int(np.argmax(np.abs(masses - others)))
    name, reason = f"{metric}: mass that differs most, body {worst + 1}", "solvers' tolerance"
    yield number(_SECTION, name, others[worst], masses[worst], 1e-3, reason)


def _problem() -> _Problem:
    """The published problem in our order of parameters, its 990 rows folded into 161."""
    folder = data_folder() / "human-regressor-lee2020"
    given = scipy.io.loadmat(folder / "Train_data_human.mat")
    solutions = np.load(folder / "published_solutions.npz")
    order = [_ORDER.index(s) for s in INERTIAL_SYMBOLS]
    columns = np.add.outer(10 * np.arange(_BODIES), order).ravel()
    std = np.tile(np.sqrt(np.diag(solutions["sigma"])), len(given["A"]) // 3)
    factor = fold(np.column_stack([given["A"][:, columns], given["b"]]) / std[:, None])
    robot = _robot(given["Phi_prior"][order].T)
    ellipsoids = tuple(np.asarray(q, dtype=float) for q in given["Q"].ravel())
    inside: list[Constraint] = [Ellipsoids(f"body{k}", [q]) for k, q in enumerate(ellipsoids, start=1)]
    published = {
        metric: solutions[name][order].T.ravel()
        for metric, name in (
            ("euclidean", "Phi_euclidean"),
            ("pullback", "Phi_const_pullback"),
            ("entropic", "Phi_entropic"),
        )
    }
    return _Problem(
        feasible_set(robot, [Inertia(margin=0.0), *inside]),
        ellipsoids,
        factor[:, :-1],
        factor[:, -1],
        float(solutions["gamma"]),
        float(solutions["c"]),
        published,
    )


def _robot(bodies: Array) -> Robot:
    """A chain of the bodies: the regressor is given, so their connection does not matter."""
    links = [Link("ground", np.zeros(10)), *(Link(f"body{k}", body) for k, body in enumerate(bodies, start=1))]
    joints = [Joint(f"joint{k + 1}", "revolute", k, np.eye(4), np.array([0.0, 0.0, 1.0])) for k in range(len(bodies))]
    return Robot("human", tuple(links), tuple(joints))
