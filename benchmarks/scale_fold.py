"""The fold as it was, beside the one of today: seconds per sample in one process, and equal factors.

python -m benchmarks.scale_fold
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import scipy
from threadpoolctl import threadpool_limits

import dynid
from benchmarks.identify import PLAIN, arm, recording
from dynid.dynamics.batch import thread_count
from dynid.dynamics.functions import regressor
from dynid.identification.row_stream import Folding, touched_columns
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.signals.filters import _chebyshev
from dynid.signals.settings import Motion, Signals, prepare

_CHUNK, _BLOCK, _MARGIN, _PANEL = 1024, 4096, 60, 32


def old_decimate(rows: np.ndarray, factors: tuple[int, ...]) -> np.ndarray:
    """Decimation by SciPy's filter, column by column."""
    for factor in factors:
        rows = scipy.signal.sosfiltfilt(_chebyshev(factor), rows, axis=0)[::factor]
    return rows


def old_fold(base: BaseParameters, motion: Motion) -> list[np.ndarray]:
    """One factor of [W y] per channel by the code before: whole regressors, wide copies, one thread for LAPACK."""
    robot, touched, kept = base.robot, touched_columns(base), np.array(base.kept)
    step, samples = int(np.prod(motion.decimate or (1,))), len(motion.t)
    span, margin = (_CHUNK, 0) if step == 1 else (_BLOCK * step, _MARGIN * step)
    factors = [np.zeros((0, len(c) + 1)) for c in touched]
    with threadpool_limits(1, "blas"):
        for start in range(motion.lead, samples - motion.lead, span):
            stop = min(start + span, samples - motion.lead)
            lo, hi = max(0, start - margin), min(samples, stop + margin)
            Y = regressor(robot, motion.q[lo:hi], motion.v[lo:hi], motion.a[lo:hi])
            for k, columns in enumerate(touched):
                rows = np.column_stack([Y[:, k, kept[columns]], motion.torque[lo:hi, k], motion.v[lo:hi, k]])
                if step > 1:
                    rows = old_decimate(rows, motion.decimate)[(start - lo) // step :][: -(-(stop - start) // step)]
                wide = np.zeros((len(rows), base.count))
                wide[:, columns] = rows[:, :-2]
                moving = np.abs(rows[:, -1]) >= 1e-6
                W, y = wide[moving], rows[moving, -2]
                stack = np.empty((len(factors[k]) + len(y), len(columns) + 1), order="F")
                stack[: len(factors[k])] = factors[k]
                stack[len(factors[k]) :, :-1], stack[len(factors[k]) :, -1] = W[:, columns], y
                size = stack.shape[1]
                if len(stack) <= size:
                    factors[k] = stack
                    continue
                packed, _, _ = scipy.linalg.lapack.dgeqrt(min(_PANEL, size), stack, overwrite_a=1)
                factors[k] = np.triu(packed[:size])
    return factors


def new_fold(base: BaseParameters, motion: Motion, settings: Signals, threads: int | None = None) -> list[np.ndarray]:
    folding = Folding(base, settings, threads=threads)
    folding.add(motion)
    touched = touched_columns(base)
    return [f[:, [*c, base.count]] for f, c in zip(folding.factors()[0], touched, strict=True)]


def difference(old: list[np.ndarray], new: list[np.ndarray]) -> float:
    """Largest difference of R'R, relative to the norms of its columns.

    R itself is not unique: a channel alone does not determine all base parameters of its columns.
    """
    worst = 0.0
    for a, b in zip(old, new, strict=True):
        size = np.linalg.norm(a, axis=0)
        size = np.where(size > 0, size, 1.0)
        worst = max(worst, float(np.abs((a / size).T @ (a / size) - (b / size).T @ (b / size)).max()))
    return worst


def compare(samples: int, settings: Signals, repeats: int = 30) -> tuple[float, float, float]:
    """Microseconds per sample of the old and the new fold, the best of some repeats each, and their difference."""
    robot = arm()
    base = base_parameters(robot)
    motion = prepare(recording(robot, samples).runs[0], settings)
    seconds: dict[str, list[float]] = {"old": [], "new": []}
    for _ in range(repeats):
        began = time.perf_counter()
        old = old_fold(base, motion)
        seconds["old"].append(time.perf_counter() - began)
        began = time.perf_counter()
        new = new_fold(base, motion, settings)
        seconds["new"].append(time.perf_counter() - began)
    return 1e6 * min(seconds["old"]) / samples, 1e6 * min(seconds["new"]) / samples, difference(old, new)


def main() -> None:
    print(f"dynid {dynid.__version__}, {thread_count()} threads, 7 joints")
    decimated = replace(PLAIN, decimate=(10,))
    for what, settings in (("all samples", PLAIN), ("decimated by 10", decimated)):
        old, new, apart = compare(20_480, settings)
        print(
            f"fold, {what}: before {old:.2f} us per sample, now {new:.2f} us, ratio {old / new:.2f} (goal 2); "
            f"factors differ by {apart:.1e} (goal 1e-12)"
        )


if __name__ == "__main__":
    main()
