"""Residuals at control rate and in training, against GPyTorch and scikit-learn, in one run.

python -m benchmarks.residual                 # peers: pip install gpytorch scikit-learn
python -m benchmarks.residual --figure FILE   # SVG file of the times by number of points

Seven joints of an iiwa14, squared exponential kernel with 21 length scales, the same hyper-parameters everywhere; all
sides give the same values, which is checked before anything is timed. Single samples run on one core. Repeats are
interleaved and the best counts; each function is repeated for at most four seconds, so slow ones have few repeats
(GPyTorch's exact variance one), which favours the fast ones on a busy computer. GPyTorch uses exact factorisations
(max_cholesky_size raised) except for "its default", which is approximate. Our times include the rigid torque and the
features; theirs start from the features and give no rigid torque. Ratios above one mean that dynid is faster.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import metadata
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import dynid
from benchmarks.residual_peers import VARIANCES, agree, gpytorch_singles, gpytorch_step, sklearn_singles
from dynid.excitation.basis import random_fourier
from dynid.residual import exact, sparse
from dynid.residual.blend import Blend
from dynid.residual.features import Features, fit_features
from dynid.residual.kernel import parse_kernel
from dynid.residual.noise import parse_noise
from dynid.residual.posterior import Block, Posterior, basis_columns
from dynid.residual.predictor import Predictor
from dynid.residual.problem import Problem
from dynid.residual.residual import JointResidual, Residual

Array = NDArray[np.float64]
Work = Callable[[], object]

POINTS, INDUCING, RANK = 2000, 100, 100
GPYTORCH_EXACT = f"GPyTorch: {VARIANCES['exact']}"
SIZES = (500, 1000, 2000, 4000)
REPEATS, SINGLES, BATCH = 100, 20, 2000
ENOUGH = 4.0  # seconds of repeats per function


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figure", type=Path, default=Path(__file__).parents[1] / "docs" / "residual-growth.svg")
    figure = parser.parse_args().figure
    peers = {name: version(name) for name in ("gpytorch", "torch", "scikit-learn")}
    print(f"dynid {dynid.__version__}, " + ", ".join(f"{name} {found or 'missing'}" for name, found in peers.items()))
    if None in peers.values():
        print("for the comparisons: pip install gpytorch scikit-learn")
    robot, motion, features, problems, theta = arm(POINTS)
    full = residual(robot, features, problems, theta, exact.condition)
    small = residual(robot, features, problems, theta, inducing)
    singles(motion, full, small, problems, theta, peers)
    batches(motion, full, small)
    training(problems[0], theta[0], peers)
    figure.write_text(drawn(growth(peers)))
    print(f"\ngrowth drawn into {figure}")


# -- what is compared ----------------------------------------------------------------------------


def arm(points: int) -> tuple[dynid.Robot, tuple[Array, ...], Features, list[Problem], list[Array]]:
    """The arm, a motion, its features, and a learning problem with hyper-parameters per joint."""
    robot = dynid.load_robot("iiwa14").with_drives("viscous+coulomb+offset", rotor_inertia=True)
    limits = list(robot.limits.values())
    lower, upper = np.array([v.lower for v in limits]), np.array([v.upper for v in limits])
    velocity = np.array([v.velocity for v in limits])
    q, v, a = random_fourier(lower, upper, velocity, 20.0, np.linspace(0, 40, points), seed=1)
    features = fit_features(robot, q, v, a, periodic=False)
    x, rng = features(q, v, a), np.random.default_rng(0)
    problems, theta = [], []
    for j in range(robot.n):
        y = np.sin(3 * q[:, j]) + np.tanh(5 * v[:, j]) + 0.1 * rng.normal(size=points)
        kernel, noise = parse_kernel("ard", features, j), parse_noise("even", features, j)
        problems.append(Problem.of(kernel, noise, features, x, y, basis_columns(-1, x)))
        theta.append(problems[-1].start() + rng.uniform(-0.3, 0.3, problems[-1].size))
    return robot, (q, v, a), features, problems, theta


def residual(
    robot: dynid.Robot, features: Features, problems: list[Problem], theta: list[Array], block: Any
) -> Residual:
    """A residual with blocks made by `block`, without blending, so that peers give the same torque."""
    joints = []
    for problem, t in zip(problems, theta, strict=True):
        kernel, noise = problem.split(t)
        made: Block = block(problem, t)
        posterior = Posterior(problem.kernel, kernel, problem.noise, noise, 1.0, (made,), made.points[:1])
        joints.append(JointResidual(posterior, 1.0, np.inf))
    return Residual(robot, features, tuple(joints), np.zeros(robot.n), Blend.everywhere())


def inducing(problem: Problem, theta: Array, count: int = INDUCING) -> Block:
    kernel, _ = problem.split(theta)
    points = problem.x[sparse.choose_points(problem.kernel, kernel, problem.x, count)]
    return sparse.condition(problem.kernel, kernel, points, sparse.gather(problem, theta, points))


def apart(made: Residual) -> Residual:
    """The same with another order of the points for each joint, so that they are not shared."""
    joints = []
    for j, joint in enumerate(made.joints):
        assert joint is not None
        block, order = joint.posterior.blocks[0], np.random.default_rng(j).permutation(joint.posterior.points)
        turned = replace(
            block,
            points=block.points[order],
            weights=block.weights[order],
            reduction=block.reduction[np.ix_(order, order)],
            projection=block.projection[:, order],
        )
        joints.append(replace(joint, posterior=replace(joint.posterior, blocks=(turned,))))
    return replace(made, joints=tuple(joints))


def singles(
    motion: tuple[Array, ...],
    full: Residual,
    small: Residual,
    problems: list[Problem],
    theta: list[Array],
    peers: dict[str, str | None],
) -> None:
    query = [m[7 :: len(m) // SINGLES][:SINGLES] + 0.05 for m in motion]
    rows = full.features(*query)
    ours = {
        f"{POINTS} points": full.predictor(variance=False),
        f"{POINTS} points, not shared by joints": apart(full).predictor(variance=False),
        f"{POINTS} points, variance of rank {RANK}": full.predictor(rank=RANK),
        f"{INDUCING} inducing points": small.predictor(variance=False),
        f"{INDUCING} inducing points, with variance": small.predictor(rank=INDUCING),
        "rigid torque alone": replace(full, joints=(None,) * full.robot.n).predictor(variance=False),
    }
    expected = full.predict(*query)
    works: dict[str, Work] = {name: partial(each, predictor, query) for name, predictor in ours.items()}
    theirs: dict[str, Work] = {}
    if peers["gpytorch"] and peers["torch"]:
        theirs |= gpytorch_singles(problems, theta, rows, expected.learned, tuple(VARIANCES))
    if peers["scikit-learn"]:
        theirs |= sklearn_singles(problems, theta, rows, expected.learned)
    agree("dynid", ours[f"{POINTS} points"].torques(*query), expected.torque, 1e-9)
    with threads(1):
        time = {name: 1e6 * seconds / SINGLES for name, seconds in best(works | theirs).items()}
    if GPYTORCH_EXACT in time:
        time[GPYTORCH_EXACT] *= SINGLES
    plain, sure = time[f"{POINTS} points"], time[f"{POINTS} points, variance of rank {RANK}"]
    print("\none sample, torques of all 7 joints, one core, us")
    goals = {f"{POINTS} points": 500.0, f"{INDUCING} inducing points": 30.0}
    lines = [["dynid", name, f"{time[name]:.1f}", "", *verdict(time[name], goals.get(name))] for name in ours]
    for name in theirs:
        base = sure if "variance" in name else plain
        lines.append([*name.split(": "), f"{time[name]:.0f}", f"{time[name] / base:.0f}", "", ""])
    table(["", "", "us", "ratio", "goal", ""], lines)


def batches(motion: tuple[Array, ...], full: Residual, small: Residual) -> None:
    query = [m[:BATCH] + 0.05 for m in motion]
    mean, sure = full.predictor(variance=False), full.predictor(rank=RANK)
    works: dict[str, Work] = {
        f"predictor, {POINTS} points": partial(mean.torques, *query),
        f"predictor, {POINTS} points, variance of rank {RANK}": partial(sure.torques, *query),
        f"predictor, {INDUCING} inducing points": partial(small.predictor(variance=False).torques, *query),
        f"Residual.predict, {POINTS} points, full variance": partial(full.predict, *query),
    }
    time = best(works, 3)
    print(f"\n{BATCH} samples at once, all cores")
    table(["", "us per sample"], [[name, f"{1e6 * seconds / BATCH:.1f}"] for name, seconds in time.items()])


def training(problem: Problem, theta: Array, peers: dict[str, str | None]) -> None:
    """Likelihood and gradient of one joint, on one thread and on two."""
    rows = []
    for count in (1, 2):
        works: dict[str, Work] = {"dynid": partial(exact.log_likelihood, problem, theta)}
        if peers["gpytorch"] and peers["torch"]:
            works |= {
                "GPyTorch, Cholesky": gpytorch_step(problem, theta, True),
                "GPyTorch, its default": gpytorch_step(problem, theta, False),
            }
        with threads(count):
            time = best(works, 3)
        rows += [[name, str(count), f"{1e3 * s:.0f}", f"{s / time['dynid']:.2f}"] for name, s in time.items()]
    print(f"\nlikelihood and its gradient, {len(problem.x)} samples, {problem.size} hyper-parameters, ms")
    table(["", "threads", "ms", "ratio"], rows)


def growth(peers: dict[str, str | None]) -> dict[str, dict[str, list[float]]]:
    """Times over the number of points."""
    out: dict[str, dict[str, list[float]]] = {
        "one sample of seven joints, us": {},
        "likelihood and gradient of one joint, ms": {},
    }
    for size in SIZES:
        robot, motion, features, problems, theta = arm(size)
        made = residual(robot, features, problems, theta, exact.condition)
        query = [m[:SINGLES] + 0.05 for m in motion]
        predictor = made.predictor(variance=False)
        learned = predictor.predict(*query).learned
        works: dict[str, Work] = {
            "dynid": partial(each, predictor, query),
        }
        steps: dict[str, Work] = {"dynid": partial(exact.log_likelihood, problems[0], theta[0])}
        if peers["gpytorch"] and peers["torch"]:
            works["GPyTorch"] = gpytorch_singles(problems, theta, features(*query), learned, ("none",))[
                "GPyTorch: mean"
            ]
            steps["GPyTorch, Cholesky"] = gpytorch_step(problems[0], theta[0], True)
        with threads(1):
            for name, seconds in best(works, 20).items():
                out["one sample of seven joints, us"].setdefault(name, []).append(1e6 * seconds / SINGLES)
            for name, seconds in best(steps, 2).items():
                out["likelihood and gradient of one joint, ms"].setdefault(name, []).append(1e3 * seconds)
    for title, lines in out.items():
        print(f"\n{title}, by number of points, one core")
        table(["", *map(str, SIZES)], [[name, *(f"{t:.0f}" for t in times)] for name, times in lines.items()])
    return out


def each(predictor: Predictor, query: list[Array]) -> None:
    out = np.empty(predictor.n)
    for q, v, a in zip(*query, strict=True):
        predictor(q, v, a, out)


# -- measuring, printing, drawing ----------------------------------------------------------------


def version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Run BLAS and torch on this many threads."""
    if version("torch"):
        import torch

        torch.set_num_threads(count)
    with threadpool_limits(count):
        yield


def best(works: dict[str, Work], repeats: int = REPEATS) -> dict[str, float]:
    """Best time of each work in seconds; repeats are interleaved and limited in time."""
    times, spent = dict.fromkeys(works, np.inf), dict.fromkeys(works, 0.0)
    for _ in range(repeats):
        for name, work in works.items():
            if spent[name] < ENOUGH:
                start = perf_counter()
                work()
                took = perf_counter() - start
                times[name], spent[name] = min(times[name], took), spent[name] + took
    return times


def verdict(value: float, goal: float | None) -> list[str]:
    return ["", ""] if goal is None else [f"<= {goal:g}", "met" if value <= goal else "not met"]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    lines = [head, *rows]
    width = [max(len(line[i]) for line in lines) for i in range(len(head))]
    for line in lines:
        print("  " + "  ".join(cell.ljust(w) for cell, w in zip(line, width, strict=True)).rstrip())


def drawn(panels: dict[str, dict[str, list[float]]]) -> str:
    """Times over the number of points, both axes logarithmic, one panel per kind."""
    colors = ("#1d6fb8", "#2e8b57", "#d1495b")
    left, top, side, gap = 80, 70, 330, 230
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + 2 * (side + gap) - 30}" height="{top + side + 60}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        '<text x="20" y="28" font-size="18" font-weight="bold" fill="#1d2b3a">'
        "Time over the number of points, one core</text>",
    ]
    for k, (title, lines) in enumerate(panels.items()):
        x0, times = left + k * (side + gap), np.concatenate(list(lines.values()))
        low, high = np.floor(np.log10(times.min())), np.ceil(np.log10(times.max()))

        def across(n: float, x0: float = x0) -> float:
            return x0 + side * np.log(n / SIZES[0]) / np.log(SIZES[-1] / SIZES[0])

        def up(t: float, low: float = low, high: float = high) -> float:
            return top + side * (1 - (np.log10(t) - low) / (high - low))

        out.append(f'<rect x="{x0}" y="{top}" width="{side}" height="{side}" fill="#f4f6f8"/>')
        out.append(f'<text x="{x0}" y="{top - 10}" fill="#1d2b3a">{title}</text>')
        for power in range(int(low), int(high) + 1):
            y = up(10.0**power)
            out.append(f'<line x1="{x0}" y1="{y:.1f}" x2="{x0 + side}" y2="{y:.1f}" stroke="#d5dbe1"/>')
            out.append(f'<text x="{x0 - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#52606d">{10.0**power:g}</text>')
        for n in SIZES:
            out.append(
                f'<text x="{across(n):.1f}" y="{top + side + 18}" text-anchor="middle" fill="#52606d">{n}</text>'
            )
        for (name, values), color in zip(lines.items(), colors, strict=False):
            path = " ".join(f"{across(n):.1f},{up(t):.1f}" for n, t in zip(SIZES, values, strict=True))
            out.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
            out += [
                f'<circle cx="{across(n):.1f}" cy="{up(t):.1f}" r="4" fill="{color}"/>'
                for n, t in zip(SIZES, values, strict=True)
            ]
            out.append(f'<text x="{x0 + side + 8}" y="{up(values[-1]) + 4:.1f}" fill="{color}">{name}</text>')
    return "\n".join([*out, "</svg>", ""])


if __name__ == "__main__":
    main()
