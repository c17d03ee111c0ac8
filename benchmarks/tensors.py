"""Dynamics in PyTorch and JAX against the compiled kernels of dynid: 4096 states of the 7-joint WAM, from one run.

CPU times, the best of all repeats; functions of JAX are compiled before they are timed, and the time of that is printed
by itself. Agreement is the largest difference to the kernels in double precision as a share of the largest number.
Gradients are those of a weighted sum of all results with respect to all states and parameters. Their error is that of
the derivative along one random direction against central differences, in double precision.

taskset -c 0 python -m benchmarks.tensors          # one core
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time
from types import ModuleType
from typing import Any

import numpy as np

import dynid
from dynid.parameters.base import random_states

FUNCTIONS = ("inverse_dynamics", "forward_dynamics")


def best(call: Callable[[], Any], repeats: int) -> float:
    """Milliseconds of CPU time."""
    call()
    times = []
    for _ in range(repeats):
        start = process_time()
        call()
        times.append(process_time() - start)
    return 1e3 * min(times)


def loaded(robot: dynid.Robot, language: str) -> ModuleType:
    with tempfile.TemporaryDirectory() as folder:
        (path,) = dynid.generate_code(robot, FUNCTIONS, language=language).write(folder)
        module = ModuleType(language)
        exec(compile(Path(path).read_text(), path.name, "exec"), module.__dict__)
        return module


def row(name: str, *figures: object) -> None:
    print(f"{name:32s}", *(f"{x:>12.3g}" if isinstance(x, float) else f"{x:>12}" for x in figures), flush=True)


def by_torch(robot: dynid.Robot, at: dict[str, np.ndarray], weight: np.ndarray, repeats: int) -> None:
    import torch

    module = loaded(robot, "torch")
    for name, last in zip(FUNCTIONS, ("a", "tau"), strict=True):
        function = getattr(module, name)
        for kind in (torch.float64, torch.float32):
            given = [torch.tensor(at[x], dtype=kind, requires_grad=True) for x in ("q", "v", last, "parms")]
            w = torch.tensor(weight, dtype=kind)
            with torch.no_grad():
                plain = best(lambda f=function, g=given: f(*g), repeats)
                apart = np.abs(function(*given).numpy() - at[name]).max() / np.abs(at[name]).max()
            slopes = best(lambda f=function, g=given, w=w: torch.autograd.grad((w * f(*g)).sum(), g), repeats)
            row(f"torch {name} {str(kind)[6:]}", plain, slopes, "", float(apart))
        doubles = [torch.tensor(at[x]) for x in ("q", "v", last, "parms")]

        def value(*x: Any, f: Any = function) -> float:
            return float((torch.tensor(weight) * f(*x)).sum())

        leaves = [x.clone().requires_grad_() for x in doubles]
        slopes = torch.autograd.grad((torch.tensor(weight) * function(*leaves)).sum(), leaves)
        print(f"  gradient error {gradient_error(value, doubles, slopes):.1e}")


def by_jax(robot: dynid.Robot, at: dict[str, np.ndarray], weight: np.ndarray, repeats: int) -> None:
    import jax

    jax.config.update("jax_enable_x64", True)
    module = loaded(robot, "jax")
    for name, last in zip(FUNCTIONS, ("a", "tau"), strict=True):
        function = jax.jit(getattr(module, name))

        def total(q: Any, v: Any, x: Any, parms: Any, f: Any = function) -> Any:
            return (jax.numpy.asarray(weight, dtype=q.dtype) * f(q, v, x, parms)).sum()

        slope = jax.jit(jax.grad(total, (0, 1, 2, 3)))
        for kind in ("float64", "float32"):
            given = [jax.numpy.asarray(at[x], dtype=kind) for x in ("q", "v", last, "parms")]
            start = process_time()
            jax.block_until_ready(function(*given))
            middle = process_time()
            jax.block_until_ready(slope(*given))
            compiled = f"{middle - start:.1f}, {process_time() - middle:.1f} s"
            plain = best(lambda f=function, g=given: jax.block_until_ready(f(*g)), repeats)
            slopes = best(lambda f=slope, g=given: jax.block_until_ready(f(*g)), repeats)
            apart = np.abs(np.asarray(function(*given)) - at[name]).max() / np.abs(at[name]).max()
            row(f"jax {name} {kind}", plain, slopes, compiled, float(apart))
        doubles = [jax.numpy.asarray(at[x]) for x in ("q", "v", last, "parms")]
        print(f"  gradient error {gradient_error(total, doubles, slope(*doubles)):.1e}")


def gradient_error(value: Callable[..., Any], given: list[Any], slopes: Any) -> float:
    """Relative error of the derivative along a random direction, against central differences."""
    rng = np.random.default_rng(5)
    steps = [rng.normal(size=tuple(x.shape)) * (0.1 * np.abs(np.asarray(x)) if x.ndim == 1 else 1.0) for x in given]
    exact = sum(float((np.asarray(s) * d).sum()) for s, d in zip(slopes, steps, strict=True))
    h = 1e-6
    moved = [[x + side * h * _as(x, d) for x, d in zip(given, steps, strict=True)] for side in (1, -1)]
    up, down = (float(value(*x)) for x in moved)
    return abs((up - down) / (2 * h) - exact) / abs(exact)


def _as(x: Any, array: np.ndarray) -> Any:
    """The array as whatever x is."""
    return x.new_tensor(array) if hasattr(x, "new_tensor") else array


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robot", default="wam7")
    parser.add_argument("--samples", type=int, default=4096)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    robot = dynid.load_robot(options.robot).with_smooth_coulomb(20.0)
    q, v, a = random_states(robot, options.samples, 0)
    rng = np.random.default_rng(1)
    at = {"q": q, "v": v, "a": a, "tau": 10 * rng.normal(size=v.shape), "parms": robot.parameters}
    at["inverse_dynamics"] = dynid.inverse_dynamics(robot, q, v, a)
    at["forward_dynamics"] = dynid.forward_dynamics(robot, q, v, at["tau"])
    weight = rng.normal(size=v.shape)
    row(f"{options.samples} states, {robot.n} joints", "ms", "gradient ms", "compile", "difference")
    row("kernel inverse_dynamics", best(lambda: dynid.inverse_dynamics(robot, q, v, a), options.repeats))
    row("kernel forward_dynamics", best(lambda: dynid.forward_dynamics(robot, q, v, at["tau"]), options.repeats))
    by_torch(robot, at, weight, options.repeats)
    by_jax(robot, at, weight, options.repeats)


if __name__ == "__main__":
    main()
