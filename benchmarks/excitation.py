"""Excitation design beside other ways to the same motion: times to the same criterion from the same start, in one run.

python benchmarks/excitation.py              # needs cyipopt-wheels, numdifftools and cma for all comparisons
python benchmarks/excitation.py --cap 60     # seconds that a rival may take
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin
import scipy.optimize
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import dynid
from dynid.excitation.basis import Fourier, at_rest
from dynid.excitation.criteria import make_criterion
from dynid.excitation.limits import motion_limits
from dynid.excitation.problem import Problem
from dynid.excitation.search import refine, shrunk

Array = NDArray[np.float64]

LIMITS = {"*": {"lower": -2.0, "upper": 2.0, "velocity": 1.5, "acceleration": 6.0}}
# A motion counts as within its limits up to this share of them.
WITHIN = 1e-3
# How close to our final value a rival has to come: criteria are logarithms, so this is one percent.
CLOSE = 0.01


class Enough(Exception):
    """The rival is there, or its time is over."""


@dataclass
class Watch:
    """The best value within the limits that a rival has seen, and when it came close enough."""

    problem: Problem
    goal: float
    cap: float
    best: float = np.inf
    reached: float | None = None
    began: float = field(default_factory=time.perf_counter)

    def look(self, X: Array) -> None:
        now = time.perf_counter() - self.began
        if self.problem.worst(X) >= -WITHIN:
            self.best = min(self.best, self.problem.value(X))
        if self.best <= self.goal and self.reached is None:
            self.reached = now
        if self.reached is not None or now > self.cap:
            raise Enough

    def said(self, ours: float) -> str:
        if self.reached is not None:
            return f"{self.reached:.1f} s, ratio {self.reached / ours:.0f}"
        return f"not in {self.cap:.0f} s (best {self.best:.3f}), ratio above {self.cap / ours:.0f}"


def arm_problem(criterion: str) -> Problem:
    """Seven joints, five harmonics, 20 s, at rest at both ends."""
    robot = dynid.load_robot("iiwa14")
    base = dynid.base_parameters(robot, channels="torque")
    basis = at_rest(Fourier(20.0, 5))
    return Problem(basis, make_criterion(base, criterion), motion_limits(robot, LIMITS), 100)


def linear_limits(problem: Problem) -> tuple[Array, Array]:
    """All limits on the grid as rows G y <= h over the unknowns in units of the limits."""
    lim, n = problem.limits, len(problem.limits.velocity)
    rows, right = [], []
    sizes = (lim.upper, lim.velocity, lim.acceleration)
    for basis, size in zip(problem.bases[:3], sizes, strict=True):
        for j in range(n):
            part = np.zeros((len(basis), n, basis.shape[1]))
            part[:, j] = basis * problem.unit[j] / size[j]
            flat = part.reshape(len(basis), -1)
            rows += [flat, -flat]
            right.append(np.ones(2 * len(basis)))
    return np.vstack(rows), np.concatenate(right)


def finite_differences(problem: Problem, X: Array, watch: Watch) -> None:
    """SLSQP as it comes: gradient by finite differences, all limits with their constant Jacobian."""
    G, h = linear_limits(problem)

    def value(y: Array) -> float:
        found = problem.value(y.reshape(X.shape) * problem.unit)
        return found if np.isfinite(found) else 1e10

    scipy.optimize.minimize(
        value,
        (X / problem.unit).ravel(),
        method="SLSQP",
        constraints=[{"type": "ineq", "fun": lambda y: h - G @ y, "jac": lambda y: -G}],
        callback=lambda y: watch.look(y.reshape(X.shape) * problem.unit),
        options={"maxiter": 1000, "ftol": 1e-9},
    )


def ipopt_with_numdifftools(problem: Problem, X: Array, watch: Watch) -> None:
    """FIGAROH's way: a loop over Pinocchio's regressor, numdifftools for the gradient, Ipopt without a Hessian."""
    import cyipopt
    import numdifftools

    base = problem.criterion.base
    model = base.robot.to_pinocchio()
    data = model.createData()
    G, h = linear_limits(problem)
    kept = list(base.kept)
    inertial = [j for j in kept if base.robot.layout[j].inertial]
    where = {j: i for i, j in enumerate(k for k, p in enumerate(base.robot.layout) if p.inertial)}

    def value(y: Array) -> float:
        q, v, a, _ = problem.motion(y.reshape(X.shape) * problem.unit)
        W = np.empty((len(q), len(base.channels), len(kept)))
        drive = [i for i, j in enumerate(kept) if not base.robot.layout[j].inertial]
        body = [i for i, j in enumerate(kept) if base.robot.layout[j].inertial]
        W[:, :, drive] = base.regressor(q, v, a)[:, :, drive]
        for k in range(len(q)):
            Y = pin.computeJointTorqueRegressor(model, data, q[k], v[k], a[k])
            W[k][:, body] = Y[:, [where[j] for j in inertial]]
        found = problem.criterion(W)[0]
        return found if np.isfinite(found) else 1e10

    slope = numdifftools.Gradient(value)

    class Design:
        def objective(self, y: Array) -> float:
            return value(y)

        def gradient(self, y: Array) -> Array:
            watch.look(y.reshape(X.shape) * problem.unit)
            return np.asarray(slope(y))

        def constraints(self, y: Array) -> Array:
            return h - G @ y

        def jacobian(self, y: Array) -> Array:
            return (-G).ravel()

    solver = cyipopt.Problem(n=X.size, m=len(h), problem_obj=Design(), cl=np.zeros(len(h)), cu=np.full(len(h), np.inf))
    solver.add_option("hessian_approximation", "limited-memory")
    solver.add_option("print_level", 0)
    solver.add_option("sb", "yes")
    solver.solve((X / problem.unit).ravel())


def evolution(problem: Problem, X: Array, watch: Watch) -> None:
    """CMA-ES on the motion drawn together until it is within its limits."""
    import cma

    def value(y: Array) -> float:
        Z = shrunk(problem, np.asarray(y).reshape(X.shape) * problem.unit)
        assert Z is not None
        watch.look(Z)
        found = problem.value(Z)
        return found if np.isfinite(found) else 1e10

    cma.fmin2(value, (X / problem.unit).ravel(), 0.1, {"verbose": -9, "seed": 1, "maxfevals": 10**9})


def compare(criterion: str, cap: float) -> None:
    problem = arm_problem(criterion)
    rng = np.random.default_rng(0)
    X = shrunk(problem, problem.resting + problem.unit * rng.normal(size=problem.unit.shape), 0.02)
    assert X is not None
    refine(problem, X, time.monotonic() + 1.0)
    began = time.perf_counter()
    found = refine(problem, X, time.monotonic() + 60.0)
    ours = time.perf_counter() - began
    goal = problem.value(found) + CLOSE
    stacked = problem.criterion.base.regressor(*problem.motion(found)[:3]).reshape(-1, problem.criterion.base.count)
    print(
        f"criterion {criterion}: from {problem.value(X):.3f} to {problem.value(found):.3f} in {ours:.2f} s "
        f"(condition number {np.linalg.cond(stacked):.1f}); rivals have to come within {CLOSE} of it"
    )
    rivals: dict[str, tuple[Callable[[Problem, Array, Watch], None], float]] = {
        "SLSQP, finite differences": (finite_differences, cap),
        "Ipopt, numdifftools, Pinocchio loop": (ipopt_with_numdifftools, cap),
        "CMA-ES, same time": (evolution, ours),
    }
    for name, (rival, seconds) in rivals.items():
        watch = Watch(problem, goal if "CMA" not in name else -np.inf, seconds)
        try:
            rival(problem, X, watch)
        except Enough:
            pass
        except ImportError as error:
            print(f"  {name}: {error.name} is not installed")
            continue
        if "CMA" in name:
            worse = watch.best - problem.value(found)
            print(f"  {name} ({seconds:.1f} s): {watch.best:.3f}, worse than ours by {worse:.3f}")
        else:
            print(f"  {name}: {watch.said(ours)} (goal 50)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cap", type=float, default=100.0, help="seconds that a rival may take for each criterion")
    cap = parser.parse_args().cap
    with threadpool_limits(1, "blas"):
        for criterion in ("d", "cond"):
            compare(criterion, cap)


if __name__ == "__main__":
    main()
