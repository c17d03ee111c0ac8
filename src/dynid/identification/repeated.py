"""Identification from K recordings of one motion, whose scatter is the noise.

The base parameters are those of the mean run by weighted least squares. What the K runs differ by is noise and nothing
else: errors of the model repeat with the motion and cancel. Per joint, the variance of a torque row of the mean is that
of the runs around their mean, with K - 1 degrees of freedom per row, divided by K.

The covariance of the estimate follows from the scores g_kb = W_kb' e_kb of run k in block b of the time, with the
regressor of its own positions. The scatter of g_kb over k is the noise of the block, that of the positions included,
whatever its autocorrelation within the block and its correlation between the joints. Blocks add up.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid.errors import NotApplicable
from dynid.identification.estimate import Estimate
from dynid.identification.estimators.least_squares import noise_floor, wls
from dynid.identification.estimators.solution import Solution, solve_factor
from dynid.identification.observation import Observation
from dynid.identification.observing import observe
from dynid.identification.pipeline import estimate_of
from dynid.identification.row_stream import Block, channel_rows
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.model import Robot
from dynid.signals.averaging import repetitions
from dynid.signals.settings import Signals, prepare

__all__ = ["identify_repetitions"]

Array = NDArray[np.float64]

# Blocks of time whose noise is taken as independent, as many as those of the jackknife.
_BLOCKS = 20


def identify_repetitions(
    robot: Robot,
    recording: Recording,
    *,
    signals: Signals | None = None,
    channels: str | Sequence[str] | None = None,
) -> Estimate:
    """Identify base parameters from the mean of several runs of one motion, with their scatter as the noise.

    Parameters
    ----------
    robot : Robot
        The robot, with the drive terms that are to be identified. Its base is fixed.
    recording : Recording
        At least two runs of one motion. Runs that are shifted in time are aligned first.
    signals : Signals, optional
        How the runs are filtered and differentiated; by default `Signals()`.
    channels : str or sequence of str, optional
        Joints whose torques are fitted; by default all.

    Returns
    -------
    Estimate
        Its `noise` is that of the torque rows of the mean, and `freedom` the degrees of freedom of the scatter. The
        standard deviations do not contain errors of the model, which repeat with the motion.

    Raises
    ------
    DataError
        If there is one run only, the runs are not the same motion, or they have no torques.
    DynidError
        If the motion does not excite all base parameters.

    Examples
    --------
    >>> import dynid
    >>> from dynid.cli.demo import synthetic_recording
    >>> robot = dynid.load_robot("twolink")
    >>> run = synthetic_recording(robot, 0, duration=5.0).runs[0]
    >>> noise = [0.01 * (-1) ** k * (run.t[:, None] % 0.1) for k in range(3)]
    >>> runs = [dynid.Run(run.t, run.q, torque=run.torque + n) for n in noise]
    >>> estimate = dynid.identification.identify_repetitions(robot, dynid.Recording(robot.coordinates, tuple(runs)))
    >>> estimate.noise_model
    'repetitions'
    """
    started = time.perf_counter()
    settings = signals or Signals()
    found = repetitions(recording, settings)
    # All runs are on one clock now.
    settings = replace(settings, resample=None)
    mean = replace(recording, runs=(found.mean,))
    seen = observe(robot, mean, signals=settings, channels=channels if channels is not None else "torque")
    if any(c not in robot.coordinates for c in seen.base.channels):
        raise NotApplicable(
            "repetitions show the noise of joint torques; the wrench of a base cannot be fitted with them"
        )
    tables = [_rows(seen, run) for run in found.runs]
    noise = _noise(seen, tables)
    beta, inverse = solve_factor(seen.stacked(1.0 / noise), seen.base)
    scores = _scores(seen, tables, noise, beta)
    covariance, freedom = _covariance(inverse, scores)
    note = (
        f"the mean of {found.count} runs; standard deviations from their scatter, {freedom:.0f} degrees of freedom, "
        "without errors of the model"
    )
    solution = Solution(beta, covariance, noise, notes=(note,), resampled=True)
    estimate = estimate_of(seen, solution, "wls", started)
    return replace(estimate, noise_model="repetitions", freedom=freedom)


def _rows(seen: Observation, run: Run) -> list[Block]:
    """Rows of a run, with its own positions and torques, at the samples that the mean run has rows of."""
    (mean,) = seen.motions
    settings = replace(seen.signals, cutoff=mean.cutoff, decimate=mean.decimate)
    kept = {k: np.sort(np.concatenate([b.index for b in seen.blocks() if b.channel == k])) for k in _used(seen)}
    out = []
    for block, _ in channel_rows(seen.base, prepare(run, settings)):
        if block.channel in kept:
            rows = np.isin(block.index, kept[block.channel], assume_unique=True)
            out.append(Block(block.channel, block.W[rows], block.y[rows], block.index[rows]))
    return out


def _used(seen: Observation) -> list[int]:
    """Channels that have rows."""
    return [k for k, rows in enumerate(seen.rows) if rows]


def _noise(seen: Observation, tables: Sequence[Sequence[Block]]) -> Array:
    """Standard deviation (channel,) of a row of the mean run, from the scatter of the residuals of the runs.

    The residuals are those of a first fit: where positions differ between the runs, so do the torques that they need.
    """
    beta = wls(seen).beta
    out = noise_floor(seen)
    for k in _used(seen):
        residuals = np.array([np.concatenate([b.y - b.W @ beta for b in rows if b.channel == k]) for rows in tables])
        out[k] = max(float(np.sqrt(np.mean(np.var(residuals, axis=0, ddof=1)) / len(tables))), out[k])
    return out


def _scores(seen: Observation, tables: Sequence[Sequence[Block]], noise: Array, beta: Array) -> Array:
    """Scores (run, block of time, b) of the residuals, in units of the noise."""
    samples = len(seen.motions[0].t)
    out = np.zeros((len(tables), _BLOCKS, seen.base.count))
    for k, rows in enumerate(tables):
        for block in rows:
            part = block.index * _BLOCKS // samples
            scores = block.W * ((block.y - block.W @ beta) / noise[block.channel] ** 2)[:, None]
            np.add.at(out[k], part, scores)
    return out


def _covariance(inverse: Array, scores: Array) -> tuple[Array, float]:
    """Covariance (b, b) of the base parameters of the mean run, and its degrees of freedom (Satterthwaite's)."""
    runs = len(scores)
    white = inverse @ inverse.T
    steps = (scores - scores.mean(axis=0)) @ white
    blocks = np.sum(steps**2, axis=0) / (runs * (runs - 1.0))
    # The square of a variance of K - 1 degrees of freedom is too large by the factor (K + 1) / (K - 1).
    size = np.maximum(np.sum(blocks**2, axis=0), 1e-300)
    freedom = np.sum(blocks, axis=0) ** 2 / size * (runs + 1.0) - 2.0
    # There are too few blocks for a matrix: correlations between parameters are those of white noise.
    ratio = np.sqrt(np.sum(blocks, axis=0) / np.diag(white))
    return white * np.outer(ratio, ratio), float(np.clip(np.median(freedom), runs - 1.0, _BLOCKS * (runs - 1.0)))
