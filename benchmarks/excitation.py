"""Excitation design against other optimisers: times to the same criterion from the same start, in one run.

python -m benchmarks.excitation              # needs cyipopt-wheels, numdifftools and cma for all comparisons
python -m benchmarks.excitation --cap 60     # seconds that a baseline may take
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pinocchio as pin
import scipy.optimize
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import dynid
from dynid.excitation.basis import Fourier, Narrowed, at_rest
from dynid.excitation.criteria import make_criterion
from dynid.excitation.limits import motion_limits
from dynid.excitation.problem import Problem
from dynid.excitation.search import refine, shrunk

Array = NDArray[np.float64]

LIMITS = {"*": {"lower": -2.0, "upper": 2.0, "velocity": 1.5, "acceleration": 6.0}}
# A motion may violate its limits by this share of them.
WITHIN = 1e-3
# Distance from our final value that a baseline has to reach: criteria are logarithms, so this is one percent.
CLOSE = 0.01


class Enough(Exception):
    """The baseline has reached the goal, or its time is over."""


@dataclass
class Watch:
    """The best value within the limits that a baseline has found, and when it reached the goal."""

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

    def summary(self, ours: float) -> str:
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


def compiled(problem: Problem, shape: tuple[int, ...]) -> Callable[[Array], float]:
    """The criterion through dynid's own compiled regressor."""

    def value(y: Array) -> float:
        found = problem.value(y.reshape(shape) * problem.unit)
        return found if np.isfinite(found) else 1e10

    return value


def looped(problem: Problem, shape: tuple[int, ...]) -> Callable[[Array], float]:
    """The criterion through a Python loop over Pinocchio's regressor."""
    base = problem.criterion.base
    layout = base.robot.layout
    model = base.robot.to_pinocchio()
    data = model.createData()
    drive = [i for i, j in enumerate(base.kept) if not layout[j].inertial]
    body = [i for i, j in enumerate(base.kept) if layout[j].inertial]
    inertial = [k for k, p in enumerate(layout) if p.inertial]
    columns = [inertial.index(base.kept[i]) for i in body]

    def value(y: Array) -> float:
        q, v, a, _ = problem.motion(y.reshape(shape) * problem.unit)
        W = np.empty((len(q), len(base.channels), base.count))
        W[:, :, drive] = base.regressor(q, v, a)[:, :, drive]
        for k in range(len(q)):
            W[k][:, body] = pin.computeJointTorqueRegressor(model, data, q[k], v[k], a[k])[:, columns]
        found = problem.criterion(W)[0]
        return found if np.isfinite(found) else 1e10

    return value


def finite_differences(problem: Problem, X: Array, watch: Watch, value: Callable[[Array], float]) -> None:
    """SLSQP: gradient by finite differences, all limits with their constant Jacobian."""
    G, h = linear_limits(problem)
    scipy.optimize.minimize(
        value,
        (X / problem.unit).ravel(),
        method="SLSQP",
        constraints=[{"type": "ineq", "fun": lambda y: h - G @ y, "jac": lambda y: -G}],
        callback=lambda y: watch.look(y.reshape(X.shape) * problem.unit),
        options={"maxiter": 1000, "ftol": 1e-9},
    )


def plain_finite_differences(problem: Problem, X: Array, watch: Watch, value: Callable[[Array], float]) -> None:
    """SLSQP in its direct form: all Fourier coefficients (77), rest at both ends as equalities (14)."""
    narrow = problem.basis
    assert isinstance(narrow, Narrowed)
    family = narrow.family
    whole = replace(problem, basis=family)
    n, k = len(X), family.size
    rest = np.vstack([family.values(0.0, 1), family.values(0.0, 2)])
    equal = np.kron(np.eye(n), rest)
    rows, lim = [], problem.limits
    for basis, size in zip(whole.bases[:3], (lim.upper, lim.velocity, lim.acceleration), strict=True):
        part = np.kron(np.eye(n), basis) / np.repeat(size, len(basis))[:, None]
        rows += [part, -part]
    G = np.vstack(rows)

    def narrowed(x: Array) -> Array:
        return np.asarray(np.linalg.lstsq(narrow.directions, x.reshape(n, k).T, rcond=None)[0].T)

    scipy.optimize.minimize(
        lambda x: value((narrowed(x) / problem.unit).ravel()),
        (X @ narrow.directions.T).ravel(),
        method="SLSQP",
        constraints=[
            {"type": "ineq", "fun": lambda x: 1.0 - G @ x, "jac": lambda x: -G},
            {"type": "eq", "fun": lambda x: equal @ x, "jac": lambda x: equal},
        ],
        callback=lambda x: watch.look(narrowed(x)),
        options={"maxiter": 1000, "ftol": 1e-9},
    )


def ipopt_with_numdifftools(problem: Problem, X: Array, watch: Watch, value: Callable[[Array], float]) -> None:
    """The method of FIGAROH: numdifftools for the gradient, Ipopt without a Hessian."""
    import cyipopt
    import numdifftools

    G, h = linear_limits(problem)
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

    bounds = {"cl": np.zeros(len(h)), "cu": np.full(len(h), np.inf)}
    solver = cyipopt.Problem(n=X.size, m=len(h), problem_obj=Design(), **bounds)
    for name, setting in {"hessian_approximation": "limited-memory", "print_level": 0, "sb": "yes"}.items():
        solver.add_option(name, setting)
    solver.solve((X / problem.unit).ravel())


def evolution(problem: Problem, X: Array, watch: Watch, _: Callable[[Array], float]) -> None:
    """CMA-ES on motions shrunk into their limits."""
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
    whole = time.perf_counter() - began
    goal = problem.value(found) + CLOSE
    # Ours has no callback: the least number of iterations that reaches the goal is timed.
    count = next(k for k in range(1, 200) if problem.value(refine(problem, X, np.inf, max_iterations=k)) <= goal)
    times = []
    for _ in range(9):
        began = time.perf_counter()
        refine(problem, X, np.inf, max_iterations=count)
        times.append(time.perf_counter() - began)
    ours = float(np.median(times))
    stacked = problem.criterion.base.regressor(*problem.motion(found)[:3]).reshape(-1, problem.criterion.base.count)
    print(
        f"criterion {criterion}: from {problem.value(X):.3f} to {problem.value(found):.3f} in {whole:.2f} s "
        f"(condition number {np.linalg.cond(stacked):.1f}), within {CLOSE} of it after {ours:.3f} s; up to there:"
    )
    fast, slow = compiled(problem, X.shape), looped(problem, X.shape)
    assert abs(fast((X / problem.unit).ravel()) - slow((X / problem.unit).ravel())) < 1e-9
    baselines = {
        "SLSQP, finite differences of a Pinocchio loop, plain coefficients": (plain_finite_differences, slow, cap),
        "SLSQP, finite differences of a Pinocchio loop": (finite_differences, slow, cap),
        "SLSQP, finite differences of dynid's kernels": (finite_differences, fast, cap),
        "Ipopt, numdifftools on a Pinocchio loop": (ipopt_with_numdifftools, slow, cap),
        "CMA-ES, same time": (evolution, fast, whole),
    }
    for name, (baseline, value, seconds) in baselines.items():
        watch = Watch(problem, goal if "CMA" not in name else -np.inf, seconds)
        try:
            baseline(problem, X, watch, value)
        except Enough:
            pass
        except ImportError as error:
            print(f"  {name}: {error.name} is not installed")
            continue
        if "CMA" in name:
            worse = watch.best - problem.value(found)
            print(f"  {name} ({seconds:.1f} s): {watch.best:.3f}, worse than ours by {worse:.3f}")
        else:
            print(f"  {name}: {watch.summary(ours)} (goal 50)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cap", type=float, default=100.0, help="seconds that a baseline may take for each criterion")
    cap = parser.parse_args().cap
    with threadpool_limits(1, "blas"):
        for criterion in ("d", "cond"):
            compare(criterion, cap)


if __name__ == "__main__":
    main()
