"""What earlier recordings tell of the base parameters, in the form that the design of the next motion stacks.

The information of recordings is W' S^-1 W with the variances S of the channels. It is kept as rows R with R'R equal to
it: rows of several recordings are stacked, and the information of a whole is that of its parts. Those of an estimate
follow from its covariance.

    R'R = sum of W_j' W_j / noise_j^2,    covariance = (R'R)^-1,    R of several recordings = their rows stacked

Source: Golub and Van Loan, Matrix Computations (4th edition 2013), for triangular factors of stacked rows; Pukelsheim,
Optimal Design of Experiments (1993), for information matrices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Protocol

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.errors import InvalidType, InvalidValue, Mismatch, NotIdentifiable
from dynid.excitation.criteria import Criterion
from dynid.identification.estimate import Estimate
from dynid.identification.estimators.least_squares import joint_noise
from dynid.identification.observation import Observation, fold
from dynid.identification.observing import observe
from dynid.parameters.base import BaseParameters
from dynid.recording.dataset import DataSet
from dynid.recording.recording import Recording
from dynid.signals.settings import Signals
from dynid.threads import one_blas_thread

__all__ = ["Earlier", "Information", "earlier_information", "torque_noise"]

Array = NDArray[np.float64]

# Rows per second of a recording of which nothing is known.
_RATE = 100.0
# On unit columns: directions below this are not identifiable, nor are parameters with a share of them.
_UNSEEN = 1e-10
# Of a covariance with unit diagonal: variances below this share of the largest are not those of measurements.
_SINGULAR = 1e-12
# Another basis of the same combinations, up to rounding.
_SAME_SPAN = 1e-8


class DesignedMotion(Protocol):
    """A motion with the base parameters that it was designed for, such as an `Excitation`."""

    @property
    def criterion(self) -> Criterion:
        """The criterion of the design, with the base parameters."""

    def base_regressor(self, rate: float = ...) -> Array:
        """Base regressor (N, channel, b) along the motion at a rate (Hz)."""


@dataclass(frozen=True, eq=False)
class Information:
    """What is known of the base parameters.

    Attributes
    ----------
    base : BaseParameters
    rows : array, shape (k, b)
        Rows R, k at most b; the information matrix is R'R. Each is divided by the noise of its channel.
    noise : array, shape (channel,)
        The standard deviation of the torque noise of a row of the next recording.
    rate : float
        Rows of each channel per second of the next recording, Hz.
    """

    base: BaseParameters
    rows: Array
    noise: Array
    rate: float = _RATE

    @property
    def matrix(self) -> Array:
        """The information matrix (b, b)."""
        return self.rows.T @ self.rows

    @property
    def std(self) -> Array:
        """Standard deviation of each base parameter (b,); infinite where it cannot be identified."""
        size = np.linalg.norm(self.rows, axis=0)
        used = size > _UNSEEN * size.max(initial=0.0)
        out = np.full(self.base.count, np.inf)
        if not np.any(used):
            return out
        _, s, vt = np.linalg.svd(self.rows[:, used] / size[used])
        rank = int(np.count_nonzero(s > _UNSEEN * s[0]))
        std = np.linalg.norm(vt[:rank].T / s[:rank], axis=1) / size[used]
        std[np.linalg.norm(vt[rank:], axis=0) > np.sqrt(_UNSEEN)] = np.inf
        out[used] = std
        return out

    def with_rows(self, rows: Array) -> Information:
        """The same with further rows (m, b), divided by their noise."""
        with one_blas_thread():
            return replace(self, rows=fold(np.vstack([self.rows, rows])))

    def with_motion(self, motion: DesignedMotion) -> Information:
        """What will be known after a motion was recorded once, with the noise and the rate stated here.

        Parameters
        ----------
        motion : DesignedMotion
            Designed for the same base parameters.

        Returns
        -------
        Information
        """
        if motion.criterion.base.expressions != self.base.expressions:
            raise Mismatch("the motion was designed for other base parameters than those of the information")
        W = motion.base_regressor(self.rate)[:-1] / self.noise[:, None]
        return self.with_rows(W.reshape(-1, self.base.count))

    def on_grid(self, samples: int, duration: float) -> Array:
        """The rows, weighted so that they count beside `samples` rows per channel for a whole motion of `duration` s.

        A criterion sees few samples of a motion, its recording has many more.
        """
        return self.rows * np.sqrt(samples / (self.rate * duration))


Earlier = Recording | DataSet | Observation | Estimate | Information


def earlier_information(
    base: BaseParameters,
    sources: Earlier | Sequence[Earlier] = (),
    *,
    noise: ArrayLike | None = None,
    rate: float | None = None,
    signals: Signals | None = None,
) -> Information:
    """Stack what earlier recordings, observations and estimates tell of the base parameters.

    An estimate and the recordings that it was made of count twice: give either.

    Parameters
    ----------
    base : BaseParameters
        Those that the next motion is designed for.
    sources : Recording, DataSet, Observation, Estimate, Information, or a sequence of them
        Measured torques are needed in recordings. Estimates count with their covariance, whatever the noise.
    noise : float or array, shape (channel,), optional
        The standard deviation of the torque noise. Default: that of the residuals of the recordings; without any,
        that of the estimates, with the share of their rows that is independent; or 1.
    rate : float, optional
        Rows per second of the next recording, Hz, after decimation. Default: that of the sources, or 100.
    signals : Signals, optional
        How recordings are filtered and differentiated.

    Returns
    -------
    Information

    Raises
    ------
    DataError
        If a source is of other base parameters, or its covariance is singular.

    Examples
    --------
    >>> import dynid
    >>> from dynid.cli.demo import synthetic_recording
    >>> from dynid.excitation import earlier_information
    >>> robot = dynid.load_robot("twolink")
    >>> known = earlier_information(dynid.base_parameters(robot), synthetic_recording(robot, 0, duration=5.0))
    >>> known.rows.shape == (known.base.count, known.base.count)
    True
    """
    if rate is not None and not (np.isfinite(rate) and rate > 0):
        raise InvalidValue(f"the rate must be a positive number of rows per second, got {rate!r:.40}", "rate")
    given: list[Earlier] = list(sources) if isinstance(sources, Sequence) else [sources]
    for one in given:
        if not isinstance(one, Earlier):
            raise InvalidType(
                f"information comes from recordings, observations and estimates, got {type(one).__name__}"
            )
    seen = [_observed(x, base, signals) for x in given if isinstance(x, Recording | DataSet | Observation)]
    estimates = [x for x in given if isinstance(x, Estimate)]
    ready = [x for x in given if isinstance(x, Information)]
    for x in ready:
        _check_same(x.base, base)
    std = _noise(base, noise, seen, estimates, ready)
    parts = [f[:, :-1] / s for o in seen for f, s in zip(o.factors, std, strict=True)]
    parts += [_rows_of_estimate(x, base) for x in estimates]
    parts += [x.rows for x in ready]
    found = Information(base, np.zeros((0, base.count)), std, rate or _rate(seen, estimates, ready))
    return found.with_rows(np.vstack(parts)) if parts else found


def torque_noise(noise: ArrayLike, channels: int) -> Array:
    """The standard deviation of each channel (channel,), checked."""
    given = np.asarray(noise, dtype=float)
    if given.shape not in ((), (1,), (channels,)) or not np.all(np.isfinite(given)) or not np.all(given > 0):
        raise InvalidValue(f"torque noise must be positive, one number or {channels}", "torque_noise")
    return np.broadcast_to(given, (channels,)).copy()


def _observed(source: Recording | DataSet | Observation, base: BaseParameters, signals: Signals | None) -> Observation:
    """The rows of a source, of few samples too."""
    if not isinstance(source, Observation):
        return observe(base.robot, source, base=base, signals=signals, fewest=1)
    _check_same(source.base, base)
    return source


def _check_same(found: BaseParameters, base: BaseParameters) -> None:
    if found.expressions != base.expressions or found.channels != base.channels:
        raise Mismatch("the previous recording is an observation of other base parameters or channels")


def _noise(
    base: BaseParameters,
    given: ArrayLike | None,
    seen: Sequence[Observation],
    estimates: Sequence[Estimate],
    ready: Sequence[Information],
) -> Array:
    """The standard deviation (channel,): what is given, or what the sources show."""
    if given is not None:
        return torque_noise(given, len(base.channels))
    if ready:
        return ready[0].noise
    if seen:
        return _residual_noise(reduce(Observation.joined, seen))
    alike = [x for x in estimates if x.base.channels == base.channels]
    if not alike:
        return np.ones(len(base.channels))
    return np.asarray(np.sqrt(np.mean([_row_variance(x) for x in alike], axis=0)), dtype=float)


def _residual_noise(observation: Observation) -> Array:
    """Noise of each channel about weighted least squares; directions that are not excited do not matter to it."""
    noise = np.ones(len(observation.factors))
    for _ in range(2):
        factor = observation.stacked(1.0 / noise)
        size = np.linalg.norm(factor[:, :-1], axis=0)
        size[size == 0] = 1.0
        beta = np.linalg.lstsq(factor[:, :-1] / size, factor[:, -1], rcond=_UNSEEN)[0] / size
        noise = joint_noise(observation, beta)
    return noise


def _row_variance(estimate: Estimate) -> Array:
    """Variance of a row of each channel as if rows were independent; fewer of them are, if noise is autocorrelated."""
    rows = np.asarray(estimate.rows, dtype=float)
    if not estimate.independent_rows:
        return estimate.noise**2
    return estimate.noise**2 * rows / np.clip(estimate.independent_rows, 1.0, np.maximum(rows, 1.0))


def _rate(seen: Sequence[Observation], estimates: Sequence[Estimate], ready: Sequence[Information]) -> float:
    """Rows per second of the sources, where they say how long they are."""
    if ready:
        return ready[0].rate
    measured: list[Observation | Estimate] = [*seen, *estimates]
    timed = [(max(x.rows), x.domain.seconds) for x in measured if x.domain is not None]
    seconds = sum(t for _, t in timed)
    return sum(rows for rows, _ in timed) / seconds if seconds > 0 else _RATE


def _rows_of_estimate(estimate: Estimate, base: BaseParameters) -> Array:
    """Rows whose information is the inverse of the covariance, for the base parameters of the design."""
    if estimate.base.robot.parameter_names != base.robot.parameter_names:
        raise Mismatch(
            f"the estimate has other parameters than '{base.robot.name}': design for the same bodies and drive terms, "
            "such as those of Estimate.robot"
        )
    change = estimate.base.matrix[:, list(base.kept)]
    if not np.allclose(change @ base.matrix, estimate.base.matrix, rtol=0.0, atol=_SAME_SPAN):
        raise Mismatch("the estimate has other base parameters than the motion is designed for")
    size = estimate.std
    if not np.all(np.isfinite(size) & (size > 0)):
        raise NotIdentifiable(_NOT_INVERTIBLE)
    values, vectors = scipy.linalg.eigh(estimate.covariance / np.outer(size, size))
    if values[0] <= _SINGULAR * values[-1]:
        raise NotIdentifiable(_NOT_INVERTIBLE)
    return np.asarray((vectors / np.sqrt(values)).T / size @ change, dtype=float)


_NOT_INVERTIBLE = (
    "the covariance of the estimate is singular, so it has no information matrix; give the recordings instead"
)
