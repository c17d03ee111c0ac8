"""Rows of the equations of motion without contact forces, whitened and folded per contact mode.

The noise of torques and accelerations follows from the residuals of projected rows, by expectation maximisation. The
projection mixes the noise of all joints, so the residual of one joint is not seen. Each sample has the latent noise
u = (torques, accelerations) with variances D, of which N' C u with C = (S, M) is seen. Its expectation and variance
given the residual r are D C' N A^-1 r and D - D C' N A^-1 N' C D with A = N' C D C' N; their mean over the samples is
the next D. Accelerations share one factor per kind: base linear, base angular, joints.

Sources: Mistry, Buchli and Schaal, Inverse Dynamics Control of Floating Base Systems Using Orthogonal Decomposition
(2010), for the projection; Dempster, Laird and Rubin, Maximum Likelihood from Incomplete Data via the EM Algorithm
(1977), for the noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.batch import run as run_kernel
from dynid.dynamics.batch import thread_count
from dynid.dynamics.functions import mass_matrix, regressor
from dynid.errors import TooFew
from dynid.identification.loads import measured
from dynid.identification.observation import Block, Observation, fold
from dynid.legs.contacts import Contact, check_rank, contact_jacobian, mode_name
from dynid.legs.runs import LegNoise, LegRun, drive_indices, in_mode, used_modes
from dynid.parameters.base import BaseParameters
from dynid.robot.model import Robot
from dynid.signals.domain import Domain
from dynid.signals.settings import Signals
from dynid.threads import one_blas_thread

__all__ = ["STANDSTILL", "estimate_noise", "observe_legs", "sample_rows"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]

# Samples per part; parts are folded side by side, each on one thread.
_CHUNK = 256
# Contact modes with less than this share of the samples are folded together.
_RARE = 0.02
# The torque of a joint that stands still contains any friction: its noise is this many times larger.
STANDSTILL = 100.0


@dataclass(frozen=True, eq=False)
class _Part:
    """Rows [bias W y] (m, 3 + b + 1) of samples of one mode, the sample of each row, and their factor."""

    channel: int
    rows: Array | None
    index: Index
    factor: Array


def channel_of_modes(
    runs: Sequence[LegRun], modes: Sequence[tuple[Contact, ...]], feet: Sequence[Contact]
) -> tuple[list[int], tuple[str, ...]]:
    """Channel of each mode and names of the channels: rare modes share one."""
    total = sum(len(run.used) for run in runs)
    counts = [sum(int(np.sum(in_mode(run, mode, feet)[run.used])) for run in runs) for mode in modes]
    common = [k for k, count in enumerate(counts) if count >= _RARE * total]
    names = [mode_name(modes[k]) for k in common]
    channel = [common.index(k) if k in common else len(common) for k in range(len(modes))]
    if len(common) < len(modes):
        names.append("other modes")
    return channel, tuple(names)


def sample_rows(
    robot: Robot, run: LegRun, samples: NDArray[np.intp], mode: Sequence[Contact], known: ArrayLike | None = None
) -> tuple[Array, Array, Array, Array]:
    """Contact Jacobian, regressor, measured torques and mass matrix at samples, before the projection."""
    q, v, a = run.q[samples], run.v[samples], run.a[samples]
    Y = regressor(robot, q, v, a)
    for k, (row, column) in enumerate(drive_indices(robot)):
        Y[:, 6 + row, column] = run.drives[samples, k]
    motion = run.motion
    assert motion.torque is not None
    if motion.wrenches:
        part = replace(
            motion,
            torque=motion.torque[samples],
            wrench=np.zeros((len(samples), 6)),
            wrenches={n: w[samples] for n, w in motion.wrenches.items()},
        )
        # Wrenches act on the robot: they add to what the drives do.
        y = measured(robot, part, q)
    else:
        y = np.hstack([np.zeros((len(samples), 6)), motion.torque[samples]])
    if known is not None:
        y = y - Y @ np.asarray(known, dtype=float)
    return contact_jacobian(robot, q, mode), Y, y, mass_matrix(robot, q)


def projected(
    run: LegRun,
    samples: NDArray[np.intp],
    parts: tuple[Array, Array, Array, Array],
    noise: LegNoise,
    kept: NDArray[np.intp],
) -> Array:
    """Whitened rows (m, nv - r, 3 + b + 1) of samples of one mode.

    The first three columns are those of an error of the accelerometer, the last one is measured.
    """
    from dynid.dynamics.kernels.projection import project

    J, Y, y, M = parts
    nv = Y.shape[1]
    torque = np.zeros((len(samples), nv))
    torque[:, 6:] = np.where(run.still[samples], STANDSTILL, 1.0) * noise.torque
    columns = np.empty((len(samples), nv, 4 + len(kept)))
    columns[:, :, :3], columns[:, :, 3:-1], columns[:, :, -1] = M[:, :, :3], Y[:, :, kept], y
    out = np.empty((len(samples), nv - J.shape[1], columns.shape[2]))
    before = (
        np.ascontiguousarray(J),
        columns,
        np.ascontiguousarray(M),
        torque,
        np.ascontiguousarray(noise.acceleration),
    )
    run_kernel(project, len(samples), before, (out,), least=_CHUNK)
    return out


def observe_legs(
    robot: Robot,
    base: BaseParameters,
    runs: Sequence[LegRun],
    feet: Sequence[Contact],
    noise: LegNoise,
    *,
    settings: Signals,
    known: ArrayLike | None = None,
    keep: bool = True,
) -> Observation:
    """Fold the runs into one factor of whitened rows per contact mode.

    What the smoother leaves unknown of the accelerometer's bias is common to all samples of a run, so it is not noise:
    it is one unknown per axis and run, with the smoother's standard deviation, and is eliminated from the rows.
    """
    modes = used_modes(runs, feet)
    channel, names = channel_of_modes(runs, modes, feet)
    base = replace(base, channels=names)
    kept = np.array(base.kept)
    width = base.count + 4
    for mode in modes:
        for run in runs:
            check_mode(robot, run, mode, feet)

    def parts(run: LegRun, keep: bool) -> Iterator[_Part]:
        """The parts of a run, side by side on the threads, in the order of modes and samples."""

        def part(job: tuple[int, NDArray[np.intp]]) -> _Part:
            k, samples = job
            rows = projected(run, samples, sample_rows(robot, run, samples, modes[k], known), noise, kept)
            index = np.repeat(samples, rows.shape[1]).astype(np.int64)
            rows = rows.reshape(-1, width)
            return _Part(channel[k], rows if keep else None, index, fold(np.asfortranarray(rows)))

        prior = _bias_rows(run, base.count)
        yield _Part(channel[0], prior, run.used[:1].repeat(3).astype(np.int64), prior)
        yield from _side_by_side(part, _jobs(run, modes, feet))

    factors = [np.zeros((0, base.count + 1)) for _ in names]
    counts = [0] * len(names)
    blocks: list[Block] = []
    gains: list[Array] = []
    with one_blas_thread():
        for number, run in enumerate(runs):
            own: list[list[Array]] = [[] for _ in names]
            held = []
            for one in parts(run, keep):
                own[one.channel].append(one.factor)
                counts[one.channel] += len(one.index)
                held.append(one)
            stacks = [fold(np.asfortranarray(np.vstack([np.zeros((0, width)), *x]))) for x in own]
            gains.append(_bias_gain(stacks))
            factors = [
                fold(np.asfortranarray(np.vstack([f, x[:, 3:] - x[:, :3] @ gains[-1]])))
                for f, x in zip(factors, stacks, strict=True)
            ]
            if keep:
                blocks += [_without_bias(x, gains[-1], _first(runs, number)) for x in held]
    if sum(counts) <= base.count:
        raise TooFew(f"{sum(counts)} rows are left for {base.count} base parameters; record longer")

    def again() -> Iterator[Block]:
        for number, run in enumerate(runs):
            for one in parts(run, True):
                yield _without_bias(one, gains[number], _first(runs, number))

    return Observation(
        base,
        tuple(factors),
        tuple(counts),
        (lambda: iter(blocks)) if keep else again,
        settings,
        tuple(run.motion.cutoff for run in runs),
        motions=tuple(run.motion for run in runs),
        domain=Domain.of_motions(base.robot, [run.motion for run in runs]),
    )


def _jobs(
    run: LegRun, modes: Sequence[tuple[Contact, ...]], feet: Sequence[Contact]
) -> list[tuple[int, NDArray[np.intp]]]:
    """Number of the mode and samples of every part of a run."""
    out = []
    for k, mode in enumerate(modes):
        mine = run.used[in_mode(run, mode, feet)[run.used]]
        out += [(k, mine[start : start + _CHUNK]) for start in range(0, len(mine), _CHUNK)]
    return out


def _side_by_side(
    call: Callable[[tuple[int, NDArray[np.intp]]], _Part], jobs: Sequence[tuple[int, NDArray[np.intp]]]
) -> Iterator[_Part]:
    """Results of a call for every job, in order; the first one alone, because it may compile."""
    if not jobs:
        return
    yield call(jobs[0])
    with ThreadPoolExecutor(thread_count()) as pool:
        yield from pool.map(call, jobs[1:])


def _first(runs: Sequence[LegRun], number: int) -> int:
    """Number of the first sample of a run among all."""
    return sum(len(run.motion.t) for run in runs[:number])


def _bias_rows(run: LegRun, count: int) -> Array:
    """Rows (3, 3 + b + 1) of what the smoother knows of the bias that is left."""
    out = np.zeros((3, count + 4))
    out[:, :3] = np.diag(1.0 / np.maximum(run.base.bias_std[:3], 1e-9))
    return out


def _bias_gain(factors: Sequence[Array]) -> Array:
    """The bias (3, b + 1) that is most likely for given parameters, from factors of [bias W y]."""
    own = sum(f[:, :3].T @ f[:, :3] for f in factors)
    return np.asarray(np.linalg.solve(own, sum(f[:, :3].T @ f[:, 3:] for f in factors)))


def _without_bias(part: _Part, gain: Array, first: int) -> Block:
    """Rows with the most likely bias inserted."""
    assert part.rows is not None
    left = part.rows[:, 3:] - part.rows[:, :3] @ gain
    return Block(part.channel, left[:, :-1], left[:, -1], first + part.index)


def check_mode(robot: Robot, run: LegRun, mode: Sequence[Contact], feet: Sequence[Contact]) -> None:
    """Raise a DataError if the contact Jacobian of a mode has no full rank at the samples of a run."""
    mine = run.used[in_mode(run, tuple(mode), feet)[run.used]]
    if len(mine) and mode:
        check_rank(robot, run.q[mine], mode)


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
                else np.tile(np.eye(robot.nv), (len(mine), 1, 1))
            )
            free = u[:, :, J.shape[1] :]
            r = np.einsum("nij,ni->nj", free, y - Y[:, :, kept] @ beta)
            torques = np.zeros((robot.nv, robot.n))
            torques[6:] = np.eye(robot.n)
            slow = np.where(run.still[mine], STANDSTILL, 1.0)
            columns = np.concatenate([torques * slow[:, None, :], M], axis=2)
            moving = np.concatenate([~run.still[mine], np.ones((len(mine), robot.nv), dtype=bool)], axis=1)
            yield np.einsum("nij,nik->njk", free, columns), r, moving.astype(float)
