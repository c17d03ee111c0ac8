"""Hyper-parameters of a residual Gaussian process through GPyTorch: seconds per step on a CPU or a GPU.

python -m benchmarks.residual_gpu --device cuda            # needs numpy, scipy, lazy_loader, torch and gpytorch
python -m benchmarks.residual_gpu --samples 2000 --points 100 --large 0 --steps 5
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gpytorch
import numpy as np
import torch

# The package without its __init__, which needs more: residual models need only numpy, scipy and lazy_loader.
front = types.ModuleType("dynid")
front.__path__ = [str(Path(__file__).parents[1] / "src" / "dynid")]
sys.modules.setdefault("dynid", front)

from dynid.residual import exact, sparse, torch_backend  # noqa: E402
from dynid.residual.kernel import Kernel, Part  # noqa: E402
from dynid.residual.layout import SHAPES  # noqa: E402
from dynid.residual.noise import Noise  # noqa: E402
from dynid.residual.problem import Problem  # noqa: E402

JOINTS = 7
KERNEL = Kernel("ard", (Part(tuple(range(3 * JOINTS)), "se", True),))
# Standard deviation of the noise on targets of about unit variance.
SCATTER = 0.1


def motion(samples: int, rng: np.random.Generator) -> np.ndarray:
    """Positions, velocities and accelerations (N, 21) of seven joints on a random periodic motion of 20 s."""
    t = np.sort(rng.uniform(0, 20, samples))
    w = 2 * np.pi / 20 * np.arange(1, 6)[:, None]
    a, b = rng.normal(size=(2, 5, JOINTS)) / np.arange(1, 6)[:, None]
    s, c = np.sin(w * t), np.cos(w * t)
    q = s.T @ a + c.T @ b
    v = (w * c).T @ a - (w * s).T @ b
    return np.hstack([q, v, -((w**2 * s).T @ a) - (w**2 * c).T @ b])


def targets(x: np.ndarray) -> np.ndarray:
    """Unmodeled torque of a joint: friction that falls with velocity and grows with load, torque ripple, a cable."""
    q, v, a = np.split(x, 3, axis=1)
    load = np.cos(q[:, 1]) + 0.5 * np.cos(q[:, 1] + q[:, 3])
    friction = np.tanh(v[:, 1] / 0.1) * (0.6 + 0.3 * np.exp(-np.abs(v[:, 1])) + 0.2 * np.abs(load))
    return friction + 0.1 * np.sin(6 * q[:, 1]) + 0.2 * np.tanh(q[:, 1] - q[:, 2]) + 0.05 * a[:, 3] * np.cos(q[:, 3])


def data(samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and noisy targets, 500 samples of each motion; other seeds give other motions."""
    rng = np.random.default_rng(seed)
    x = np.vstack([motion(500, rng) for _ in range(-(-samples // 500))])[:samples]
    return x, targets(x) + SCATTER * rng.normal(size=samples)


def problem(samples: int) -> Problem:
    x, y = data(samples, seed=0)
    scale = x.std(axis=0)
    return Problem(KERNEL, Noise(), x / scale, y, np.zeros((samples, 0)), np.zeros(samples))


def held_out(samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Other motions, scaled as the training set of `samples`."""
    x, y = data(5000, seed=1)
    return x / data(samples, seed=0)[0].std(axis=0), y


def timed(call: Callable[[], Any]) -> float:
    """Wall-clock seconds of a call; its results are on the CPU, so a GPU has finished."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def seconds(call: Callable[[], Any], repeats: int) -> float:
    """Median of several calls after one to warm up."""
    call()
    return float(np.median([timed(call) for _ in range(repeats)]))


def apart(ours: Any, theirs: Any) -> float:
    """Largest difference, relative to the largest value."""
    return float(np.max(np.abs(np.subtract(ours, theirs))) / np.max(np.abs(theirs)))


def tensors(task: Problem, device: str) -> torch_backend.Data:
    reversal = task.reversal if task.noise.size == 2 else None
    return torch_backend.Data.of(parts(task), task.x, task.y, task.basis, reversal, device)


def parts(task: Problem) -> list[torch_backend.Part]:
    return [(part.columns, part.shape, part.ard) for part in task.kernel.parts]


def inducing(task: Problem, count: int) -> np.ndarray:
    """Inducing points chosen among 20,000 samples at the initial hyper-parameters."""
    rows = np.random.default_rng(2).permutation(len(task.y))[:20000]
    return task.x[rows][sparse.choose_points(task.kernel, task.split(task.start())[0], task.x[rows], count)]


def agreement(samples: int, points: int, device: str) -> None:
    """The device against the numpy version: likelihood, bound and gradients, for every shape, noise and basis."""
    task = problem(samples)
    columns = tuple(range(3 * JOINTS))
    reversal = 1 - np.tanh(task.x[:, JOINTS + 1]) ** 2
    linear = 30 * np.column_stack([np.ones(samples), task.x])  # as vague a prior as in the residual models
    worst: dict[str, list[float]] = {}
    for shape in SHAPES:
        kernel = Kernel(shape, (Part(columns, shape, True), Part((1, 8), "se", False)))
        for noise, basis in ((Noise(), task.basis), (Noise(0), linear)):
            given = replace(task, kernel=kernel, noise=noise, basis=basis, reversal=reversal)
            theta = given.start() - 0.2
            z = inducing(given, points)
            held = tensors(given, device)
            pairs = zip(torch_backend.log_likelihood(held, theta), exact.log_likelihood(given, theta), strict=True)
            kind = "exact, with a basis" if basis.shape[1] else "exact"
            worst.setdefault(kind, []).extend(apart(*pair) for pair in pairs)
            pairs = zip(torch_backend.bound(held, theta, z), sparse.bound(given, theta, z, True), strict=True)
            worst.setdefault("sparse", []).extend(apart(*pair) for pair in pairs)
    for kind, found in worst.items():
        print(f"{kind}, {samples} samples: values and gradients within {max(found):.1e} of numpy's")
    theta, held = task.start(), tensors(task, device)
    theirs = seconds(lambda: exact.log_likelihood(task, theta), 3)
    ours = seconds(lambda: torch_backend.log_likelihood(held, theta), 3)
    print(f"exact, {samples} samples, likelihood and gradient: numpy {theirs:.3f} s, {device} {ours:.4f} s")


def training(title: str, task: Problem, device: str, steps: int, points: np.ndarray | None, repeats: int) -> None:
    """Seconds per step and for a whole search, and the error on unseen motions."""
    theta = task.start()
    held = tensors(task, device)
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    if points is None:
        step = seconds(lambda: torch_backend.log_likelihood(held, theta), repeats)
    else:
        step = seconds(lambda: torch_backend.bound(held, theta, points), repeats)
    started = time.perf_counter()
    found = torch_backend.fit_hyper_parameters(
        parts(task), task.x, task.y, theta, steps, "exact" if points is None else "sparse", points, device,
        bounds=task.bounds(),
    )  # fmt: skip
    whole = time.perf_counter() - started
    x, y = held_out(len(task.y))
    started = time.perf_counter()
    mean, variance = torch_backend.predict(held, found.theta, x, points)
    predicted = time.perf_counter() - started
    noise = np.exp(2 * found.theta[-1])
    error = np.mean((y - mean) ** 2) / np.var(y)
    inside = np.mean(np.abs(y - mean) < 1.96 * np.sqrt(variance + noise))
    print(f"{title}: {step:.3f} s per likelihood with gradient; {steps} L-BFGS steps {whole:.1f} s", end=" ")
    print(f"({found.evaluations} evaluations), log likelihood {found.history[0]:.0f} -> {found.value:.0f}")
    print(f"  noise {np.sqrt(noise):.3f} (true {SCATTER}); {len(x)} predictions in {predicted:.2f} s:", end=" ")
    print(f"nMSE {error:.4f} (the noise alone {SCATTER**2 / np.var(y):.4f}), {100 * inside:.1f} % within 95 %")
    if device == "cuda":
        print(f"  peak {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--samples", type=int, default=20000)
    parser.add_argument("--points", type=int, default=500)
    parser.add_argument("--large", type=int, default=1_000_000, help="samples of a third, sparse training; 0 for none")
    parser.add_argument("--larger-exact", type=int, default=0, help="samples of one more exact training; 0 for none")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--numpy", action="store_true", help="time one numpy step of the full size as well")
    args = parser.parse_args()
    card = torch.cuda.get_device_name() if args.device == "cuda" else f"{torch.get_num_threads()} threads"
    print(f"{card}, {platform.machine()}, torch {torch.__version__}, gpytorch {gpytorch.__version__}, float64")
    agreement(min(2000, args.samples), min(200, args.points), args.device)
    task = problem(args.samples)
    started = time.perf_counter()
    points = inducing(task, args.points)
    print(f"{len(points)} points chosen in {time.perf_counter() - started:.1f} s (numpy)")
    size = f"{args.samples} x {3 * JOINTS}"
    training(f"exact, {size}", task, args.device, args.steps, None, args.repeats)
    training(f"sparse, {size}, {len(points)} points", task, args.device, args.steps, points, args.repeats)
    if args.numpy:
        theta = task.start()
        whole = timed(lambda: exact.log_likelihood(task, theta))
        low = timed(lambda: sparse.bound(task, theta, points))
        print(f"the same steps in numpy: exact {whole:.1f} s, sparse {low:.1f} s")
    if args.larger_exact:
        size = f"{args.larger_exact} x {3 * JOINTS}"
        training(f"exact, {size}", problem(args.larger_exact), args.device, args.steps, None, args.repeats)
    if args.large:
        task = problem(args.large)
        points = inducing(task, args.points)
        size = f"{args.large} x {3 * JOINTS}"
        training(f"sparse, {size}, {len(points)} points", task, args.device, args.steps, points, args.repeats)


if __name__ == "__main__":
    main()
