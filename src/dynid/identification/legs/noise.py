"""Noise of torques and accelerations from the residuals of projected rows, by expectation maximisation.

The projection mixes the noise of all joints, so the residual of one joint is not seen. Each sample has the latent noise
u = (torques, accelerations) with variances D, of which N' C u with C = (S, M) is seen. Its expectation and variance
given the residual r are D C' N A^-1 r and D - D C' N A^-1 N' C D with A = N' C D C' N; their mean over the samples is
the next D. Accelerations share one factor per kind: base linear, base angular, joints.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynid.identification.legs.contacts import Contact
from dynid.identification.legs.fold import STANDSTILL, sample_rows
from dynid.identification.legs.runs import LegNoise, LegRun, in_mode, used_modes
from dynid.parameters.base import BaseParameters
from dynid.robot.model import Robot

__all__ = ["estimate_noise"]

Array = NDArray[np.float64]

_ITERATIONS = 40
_CONVERGED = 1e-3
# Samples that the variances are estimated from.
_SAMPLES = 1500


def estimate_noise(
    robot: Robot,
    runs: Sequence[LegRun],
    feet: Sequence[Contact],
    base: BaseParameters,
    beta: Array,
    start: LegNoise,
    known: Array | None = None,
) -> LegNoise:
    """Standard deviations with which the residuals of base parameters are most likely, from those at the start."""
    n = robot.n
    cases = list(_cases(robot, runs, feet, base, beta, known))
    # One factor per joint torque, and one per kind of acceleration.
    groups = np.concatenate([np.arange(n), np.repeat([n, n + 1], 3), np.full(n, n + 2)])
    first = np.concatenate([start.torque, start.acceleration]) ** 2
    factor = np.ones(n + 3)
    for _ in range(_ITERATIONS):
        D = first * factor[groups]
        total, count = np.zeros(n + 3), np.zeros(n + 3)
        for C, r, moving in cases:
            A = np.einsum("nij,j,nkj->nik", C, D, C)
            solved = np.linalg.solve(A, np.concatenate([r[:, :, None], C], axis=2))
            expected = D * np.einsum("nij,ni->nj", C, solved[:, :, 0])
            variance = D - D * np.einsum("nij,nij->nj", C, solved[:, :, 1:]) * D
            share = (expected**2 + variance) / first * moving
            for g in range(n + 3):
                total[g] += share[:, groups == g].sum()
                count[g] += moving[:, groups == g].sum()
        new = np.where(count > 0, total / np.maximum(count, 1.0), factor)
        done = np.abs(np.log(new / factor)).max() < _CONVERGED
        factor = new
        if done:
            break
    std = np.sqrt(first * factor[groups])
    return LegNoise(std[:n], std[n:])


def _cases(robot, runs, feet, base, beta, known):  # type: ignore[no-untyped-def]
    """Per run and mode: projected noise columns (m, nv - r, n + nv), residuals, and which noises count (m, n + nv)."""
    kept = list(base.kept)
    total = sum(len(run.used) for run in runs)
    every = max(1, total // _SAMPLES)
    for run in runs:
        thin = run.used[::every]
        for mode in used_modes([run], feet):
            mine = thin[in_mode(run, mode, feet)[thin]]
            if not len(mine):
                continue
            J, Y, y, M = sample_rows(robot, run, mine, mode, known)
            u = (
                np.linalg.svd(np.swapaxes(J, 1, 2), full_matrices=True)[0]
                if J.shape[1]
                else _identity(len(mine), robot.nv)
            )
            free = u[:, :, J.shape[1] :]
            r = np.einsum("nij,ni->nj", free, y - Y[:, :, kept] @ beta)
            torques = np.zeros((robot.nv, robot.n))
            torques[6:] = np.eye(robot.n)
            slow = np.where(run.still[mine], STANDSTILL, 1.0)
            columns = np.concatenate([torques * slow[:, None, :], M], axis=2)
            moving = np.concatenate([~run.still[mine], np.ones((len(mine), robot.nv), dtype=bool)], axis=1)
            yield np.einsum("nij,nik->njk", free, columns), r, moving.astype(float)


def _identity(samples: int, size: int) -> Array:
    return np.tile(np.eye(size), (samples, 1, 1))
