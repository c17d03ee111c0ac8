"""Rows of a robot with flexible joints: torques of the drives, and deflections as measured outputs.

The equations of motor and link are combined so that each measurement with noise stands alone on the left:

    torque     = Ia theta'' + motor friction + Y(q) beta                     one row per joint and sample
    theta - q  = encoder errors + c / (1 + T p) Y(q) beta                    one more per flexible joint

with the compliance c = 1/k, the lag T = d/k and the differential operator p. Encoder errors are an offset and, where
asked for, a delay of the link encoder (times q') and an eccentric mounting (times cos q and sin q).

The sum of both equations of the joint does not contain the deflection. The deflection is small and carries the noise of
two encoders; as a regressor it would make the stiffness too small (errors in variables), as an output it does not. The
regressors are those of rigid-body identification, of which the noise is small. The second row is linear in beta for
given c and T, and is linearised in c and T (Gauss-Newton).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, partial

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.identification.flexible.motion import TwoSided
from dynid.identification.flexible.sides import FlexibleModel
from dynid.identification.row_stream import Segment, segments, touched_columns
from dynid.signals.filters import derivative
from dynid.signals.settings import Motion, Signals

__all__ = ["ENCODER_COLUMNS", "EncoderError", "FlexibleRows", "Rows"]

Array = NDArray[np.float64]

# Samples at the start of a segment on which the lag of the damper decays where nothing is decimated.
_SETTLING = 256


class EncoderError(StrEnum):
    """Errors of link encoders, beside their offset, that look like a deflection."""

    DELAY = "delay"
    ECCENTRICITY = "eccentricity"


ENCODER_COLUMNS = {EncoderError.DELAY: 1, EncoderError.ECCENTRICITY: 2}


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of one channel of one segment.

    Attributes
    ----------
    channel : int
        0 to n - 1 are the torques of the joints, the following ones the deflections of the flexible joints.
    spring : int
        Number of the flexible joint whose deflections these are; -1 for torques.
    run : int
        Number of the run.
    columns : ndarray of int (k,)
        Base parameters that can have an effect on the channel.
    links : ndarray (m, k)
        Their torques on the link side; of deflections behind the lag of the damper.
    slopes : ndarray (m, k)
        Derivatives of `links` with respect to the lag; none for torques.
    motors : ndarray (m, motor parameter)
        Torques of the motor parameters; none for deflections.
    encoder : ndarray (m, encoder error)
        Columns of the encoder errors other than offsets; none for torques.
    y : ndarray (m,)
        Measured torques or deflections.
    index : ndarray of int (m,)
        Numbers of the samples.
    """

    channel: int
    spring: int
    run: int
    columns: NDArray[np.intp]
    links: Array
    slopes: Array
    motors: Array
    encoder: Array
    y: Array
    index: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FlexibleRows:
    """All rows of filtered runs: torques once, deflections for given lags of the dampers."""

    model: FlexibleModel
    motions: tuple[TwoSided, ...]
    signals: Signals
    errors: tuple[EncoderError, ...] = ()

    @property
    def channels(self) -> int:
        """Number of channels: one per joint, one more per flexible joint."""
        return self.model.robot.n + len(self.model.flexible)

    @cached_property
    def _touched(self) -> list[NDArray[np.intp]]:
        return touched_columns(self.model.base)

    @cached_property
    def torques(self) -> tuple[Rows, ...]:
        """Rows of the torques of all joints and runs."""
        return tuple(self._rows(self._torque_rows))

    def deflections(self, lags: Array) -> tuple[Rows, ...]:
        """Rows of the deflections of flexible joints, for the lags T (flexible joint,) of their dampers in s."""
        return tuple(self._rows(partial(self._deflection_rows, lags)))

    def _rows(self, of: Callable[[int, TwoSided, Segment, int, Array], Iterator[Rows]]) -> Iterator[Rows]:
        first = 0
        for number, motion in enumerate(self.motions):
            for part in padded_segments(motion.motors):
                at, links = part.whole, motion.links
                Y = self.model.link_rows(links.q[at], links.v[at], links.a[at])
                yield from of(number, motion, part, first, Y)
            first += len(motion.motors.t)

    def _moving(self, motion: TwoSided, part: Segment, i: int) -> NDArray[np.bool_]:
        """Rows of a joint whose velocity is not too low for its friction to be known."""
        limit = self.signals.velocity_limits(motion.motors.v)[i]
        return np.asarray(np.abs(part.thinned(motion.motors.v[part.whole, i])) >= limit)

    def _torque_rows(self, run: int, motion: TwoSided, part: Segment, first: int, Y: Array) -> Iterator[Rows]:
        motors, at = motion.motors, part.whole
        Z = self.model.motor_rows(motors.q[at], motors.v[at], motors.a[at])
        assert motors.torque is not None
        for i in range(self.model.robot.n):
            columns, moving = self._touched[i], self._moving(motion, part, i)
            wide = part.thinned(np.column_stack([Y[:, i, columns], Z[:, i], motors.torque[at, i]]))[moving]
            index = first + part.start + part.step * np.flatnonzero(moving)
            k = len(columns)
            yield Rows(i, -1, run, columns, wide[:, :k], wide[:, :0], wide[:, k:-1], wide[:, :0], wide[:, -1], index)

    def _deflection_rows(
        self, lags: Array, run: int, motion: TwoSided, part: Segment, first: int, Y: Array
    ) -> Iterator[Rows]:
        rate = motion.motors.rate
        for number, i in enumerate(self.model.flexible):
            columns, moving = self._touched[i], self._moving(motion, part, i)
            behind = lag(Y[:, i, columns], lags[number], rate)
            slopes = -derivative(lag(behind, lags[number], rate), rate, "central5")
            bent = motion.deflection[part.whole, i]
            wrong = self.encoder_columns(motion.links, part.whole, int(i))
            wide = part.thinned(np.column_stack([behind, slopes, *wrong, bent]))[moving]
            index = first + part.start + part.step * np.flatnonzero(moving)
            k, channel = len(columns), self.model.robot.n + number
            parts = wide[:, :k], wide[:, k : 2 * k], wide[:, :0], wide[:, 2 * k : -1], wide[:, -1]
            yield Rows(channel, number, run, columns, *parts, index)

    def encoder_columns(self, links: Motion, at: slice, i: int) -> list[Array]:
        """Deflections (N,) that the encoder errors of joint i feign per unit."""
        out = []
        if EncoderError.DELAY in self.errors:
            out.append(links.v[at, i])
        if EncoderError.ECCENTRICITY in self.errors:
            out += [np.cos(links.q[at, i]), np.sin(links.q[at, i])]
        return out


def lag(x: Array, time: float, rate: float) -> Array:
    """Columns of x behind a first-order lag 1 / (1 + T p), T >= 0 in s, by the trapezoidal rule."""
    if time <= 0.0:
        return x
    ratio = 2.0 * time * rate
    b, a = np.array([1.0, 1.0]) / (1.0 + ratio), np.array([1.0, (1.0 - ratio) / (1.0 + ratio)])
    state = scipy.signal.lfilter_zi(b, a)[:, None] * x[0]
    return np.asarray(scipy.signal.lfilter(b, a, x, axis=0, zi=state)[0])


def padded_segments(motion: Motion) -> Iterator[Segment]:
    """Segments of a run that fit in memory, with samples before and after them for filters."""
    for part in segments(motion):
        if part.step > 1:
            yield part
            continue
        lo, hi = max(0, part.start - _SETTLING), min(len(motion.t), part.stop + _SETTLING)
        yield PaddedSegment(part.start, part.stop, lo, hi, part.factors)


class PaddedSegment(Segment):
    """A segment without decimation whose margins are cut off again."""

    def thinned(self, rows: Array) -> Array:
        """Rows of `start` to `stop`, from rows over `whole`."""
        return rows[self.start - self.lo : self.stop - self.lo]
