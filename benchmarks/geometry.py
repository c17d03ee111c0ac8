"""Choice of postures for a geometric calibration against other algorithms: criterion and time, from one run.

python -m benchmarks.geometry                    # needs cvxpy for the relaxation by a cone program
python -m benchmarks.geometry --candidates 300 --count 20

The cone program is compared where only the zeros of the joints are unknown: with all errors of the joints it takes
minutes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import dynid
from dynid.geometry import GeometryModel, Points
from dynid.geometry.candidates import Drawn
from dynid.geometry.choice import Choice
from dynid.geometry.information import inform
from dynid.geometry.problem import Problem

Array = NDArray[np.float64]

# Largest excursion of DETMAX from the number of postures, and steps of the multiplicative algorithm.
EXCURSION, STEPS = 4, 3000


def candidates_of_an_arm(count: int) -> Drawn:
    """Random postures of a TX40."""
    robot = dynid.load_robot("tx40")
    low, high = np.array([(x.lower, x.upper) for x in robot.limits.values()]).T
    q = np.random.default_rng(0).uniform(low, high, (count, robot.n))
    return Drawn(q, (np.zeros(count, dtype=np.intp),))


def choice_of_an_arm(criterion: str, count: int, model: GeometryModel) -> Choice:
    """A marker on a TX40 seen by a tracker that stands anywhere."""
    robot = dynid.load_robot("tx40")
    marker = Points(
        np.zeros((1, 6)), "link6", points=np.zeros((1, 3)), known=np.array([[0.03, 0, 0.1]]), base=np.eye(4)
    )
    drawn = candidates_of_an_arm(count)
    return inform(Problem.of(robot, [marker], model), drawn, drawn.q[:200], None).choice(criterion)


def ours(choice: Choice, count: int) -> list[int]:
    """Greedy, then exchange with updates of low rank."""
    return choice.exchanged(choice.grown([], count))


def fedorov(choice: Choice, count: int) -> list[int]:
    """Fedorov's exchange: the best of all pairs at a time, every covariance computed anew."""
    which = choice.grown([], count)
    value = choice.value(which)
    while True:
        best, pair = value * (1 - 1e-7 * np.sign(value)), None
        for old in which:
            others = [k for k in which if k != old]
            values = values_with(choice, others)
            new = int(np.argmin(values))
            if values[new] < best:
                best, pair = float(values[new]), (old, new)
        if pair is None:
            return which
        which[which.index(pair[0])] = pair[1]
        value = choice.value(which)


def detmax(choice: Choice, count: int) -> list[int]:
    """Mitchell's DETMAX: postures are added and taken out in excursions of growing length."""
    best = choice.grown([], count)
    value = choice.value(best)
    for length in range(1, EXCURSION + 1):
        while True:
            gained = False
            for first in (1, -1):
                which = list(best)
                for way in (first, -first):
                    for _ in range(length):
                        which = with_best(choice, which) if way > 0 else without_worst(choice, which)
                new = choice.value(which)
                if new < value - 1e-7 * abs(value):
                    best, value, gained = which, new, True
            if not gained:
                break
    return best


def values_with(choice: Choice, which: list[int]) -> Array:
    """The criterion with each candidate added, from covariances computed anew."""
    M = choice.information(which)
    rows = choice.rows
    if choice.criterion == "d":
        values = (
            -np.linalg.slogdet(M)[1]
            - np.linalg.slogdet(np.eye(rows.shape[1]) + rows @ np.linalg.solve(M, np.swapaxes(rows, 1, 2)))[1]
        )
    else:
        C = np.linalg.inv(M)
        moved = rows @ C
        inner = np.eye(rows.shape[1]) + moved @ np.swapaxes(rows, 1, 2)
        gain = np.linalg.solve(inner, moved @ choice.weight @ np.swapaxes(moved, 1, 2))
        values = np.sum(C * choice.weight) - np.einsum("nii->n", gain)
    values[which] = np.inf
    return np.asarray(values)


def with_best(choice: Choice, which: list[int]) -> list[int]:
    return [*which, int(np.argmin(values_with(choice, which)))]


def without_worst(choice: Choice, which: list[int]) -> list[int]:
    return min(([k for k in which if k != old] for old in which), key=choice.value)


def multiplicative(choice: Choice, count: int) -> tuple[Array, float]:
    """Weights of the relaxation by the multiplicative algorithm, and a bound that no choice passes.

    w <- w d / mean(d) with the derivative d of the criterion; weights sum to `count` and may exceed 1, so that the
    bound holds for repeated postures, too.
    """
    w = np.full(len(choice.rows), count / len(choice.rows))
    flat = choice.rows.reshape(-1, choice.rows.shape[2])
    power = 1.0 if choice.criterion == "d" else 0.5
    bound = -np.inf
    for _ in range(STEPS):
        M = choice.prior + (flat * np.repeat(w, choice.rows.shape[1])[:, None]).T @ flat
        C = np.linalg.inv(M)
        inner = C if choice.criterion == "d" else C @ choice.weight @ C
        d = np.einsum("nrx,nrx->n", (flat @ inner).reshape(choice.rows.shape), choice.rows)
        value = -np.linalg.slogdet(M)[1] if choice.criterion == "d" else np.sum(C * choice.weight)
        # A convex function lies above its tangent, whose least value is that of the best vertex.
        bound = max(bound, float(value + w @ d - count * d.max()))
        if value - bound < 1e-4 * abs(value):
            break
        w = w * d**power
        w *= count / w.sum()
    return w, bound


def cone_program(choice: Choice, count: int) -> Array:
    """Weights of FIGAROH's relaxation: the determinant of the weighted information, by a cone program."""
    import cvxpy as cp

    w = cp.Variable(len(choice.rows), nonneg=True)
    inner = np.swapaxes(choice.rows, 1, 2) @ choice.rows
    size = len(choice.prior)
    # The program is solved where equal weights make the information one.
    half = np.linalg.inv(np.linalg.cholesky(choice.prior + count * inner.mean(0)))
    scaled = (half @ inner @ half.T).reshape(len(inner), -1)
    M = cp.reshape(scaled.T @ w, (size, size), order="C") + half @ choice.prior @ half.T
    cp.Problem(cp.Maximize(cp.log_det(M)), [cp.sum(w) == count]).solve(solver=cp.CLARABEL)
    return np.asarray(w.value)


def rounded(weights: Array, count: int) -> list[int]:
    """The candidates with the largest weights."""
    return [int(k) for k in np.argsort(-weights)[:count]]


def timed(work: Callable[[], list[int]]) -> tuple[list[int], float]:
    began = time.perf_counter()
    found = work()
    return found, time.perf_counter() - began


def compare(criterion: str, candidates: int, count: int, model: GeometryModel, cone: bool = False) -> None:
    choice = choice_of_an_arm(criterion, candidates, model)
    found, seconds = timed(lambda: ours(choice, count))
    value = choice.value(found)
    bound = multiplicative(choice, count)[1]
    draws = [np.random.default_rng(k).permutation(candidates) for k in range(31)]
    random, twice = (float(np.median([choice.value(x[:n]) for x in draws])) for n in (count, 2 * count))
    size = choice.rows.shape[2]

    def worse(other: float) -> float:
        """The criterion over ours; of determinants, the mean factor on each variance."""
        return float(np.exp((other - value) / size)) if criterion == "d" else other / value

    print(f"criterion {criterion}: {count} of {candidates} postures, {size} unknowns; ours in {seconds:.2f} s")
    print(f"  bound of all choices: {worse(bound):.4f} of ours")
    print(f"  random, median: {worse(random):.3f} of ours, twice as many {worse(twice):.3f}")
    baselines: dict[str, Callable[[], list[int]]] = {
        "Fedorov's exchange": lambda: fedorov(choice, count),
        "DETMAX": lambda: detmax(choice, count),
        "multiplicative algorithm, largest weights": lambda: rounded(multiplicative(choice, count)[0], count),
    }
    if cone:
        baselines["cone program of FIGAROH, largest weights"] = lambda: rounded(cone_program(choice, count), count)
    for name, work in baselines.items():
        try:
            which, other = timed(work)
        except ImportError as error:
            print(f"  {name}: {error.name} is not installed")
            continue
        print(f"  {name}: time ratio {other / seconds:.1f}, criterion {worse(choice.value(which)):.4f} of ours")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=300, help="number of candidate postures")
    parser.add_argument("--count", type=int, default=20, help="postures that are chosen")
    given = parser.parse_args()
    with threadpool_limits(1, "blas"):
        for criterion in ("i", "d"):
            compare(criterion, given.candidates, given.count, GeometryModel())
        compare("d", given.candidates, given.count, GeometryModel.only("zero"), cone=True)


if __name__ == "__main__":
    main()
