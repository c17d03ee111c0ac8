"""`CausalRows`: filtered regressor rows of a stream of samples, without look-ahead.

    row = H [Y(q, v, a) torque] with q, v and a from the filters and the torque as late as they are

Sources: those of `filters`; the kernel is `dynid.dynamics.kernels.stream`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.batch import first_use, for_kernel
from dynid.dynamics.kernels.stream import REJECTED, Stream, filtered_rows
from dynid.dynamics.tree import compile_robot
from dynid.errors import ConflictingArguments, InvalidShape, Mismatch, MissingArgument, NotApplicable
from dynid.identification.row_stream import touched_columns
from dynid.online.filters import CausalFilters
from dynid.parameters.base import BaseParameters
from dynid.robot.drives import TermKind
from dynid.robot.model import Robot

__all__ = ["CausalRows"]

Array = NDArray[np.float64]

# Samples that one call of the kernel takes at most.
_CHUNK = 256
# A step of the clock that is longer than this many periods is a gap.
_GAP = 1.5
# Samples after which the rate is compared with the clock, and how much they may differ.
_RATE_AFTER, _RATE_ERROR = 200, 0.02


class CausalRows:
    """Filtered rows [W y] of every channel from a stream of samples.

    Parameters
    ----------
    base : BaseParameters
        The base parameters whose columns are computed.
    filters : CausalFilters
        The filters.
    measured_velocity : bool
        Whether velocities come with every sample; otherwise positions are differentiated.

    Raises
    ------
    DataError
        If the robot has a floating or instrumented base, closed loops or custom drive terms, or a channel is no joint.
    """

    def __init__(self, base: BaseParameters, filters: CausalFilters, *, measured_velocity: bool = False) -> None:
        robot = base.robot
        _check_robot(robot)
        model = compile_robot(robot)
        self.base, self.filters, self.measured_velocity = base, filters, measured_velocity
        self.touched = touched_columns(base)
        kept = np.array(base.kept)
        columns = [np.r_[kept[own], -1] for own in self.touched]
        start = np.cumsum([0, *map(len, columns)])
        n, m = robot.n, filters.taps.shape[1]
        width = int(start[-1]) + len(base.channels)
        bodies, p = len(robot.joints) + 1, len(robot.layout)
        self.stream = Stream(
            taps=filters.taps,
            sections=filters.sections,
            past_q=np.zeros((n, 2 * m)),
            past_v=np.zeros((n, 2 * m)),
            past_torque=np.zeros((m, n)),
            q=np.zeros((1, n)),
            v=np.zeros((1, n)),
            a=np.zeros((1, n)),
            R=np.zeros((bodies, 9)),
            P=np.zeros((bodies, 3)),
            J=np.zeros((bodies - 1, 6)),
            V=np.zeros((bodies, 6)),
            A=np.zeros((bodies, 6)),
            W=np.zeros((6, p)),
            Y=np.zeros((1, len(robot.channels), p)),
            start=start,
            column=np.concatenate([*columns, np.full(len(base.channels), -1)]).astype(np.int64),
            joint=np.array([robot.coordinates.index(c) for c in base.channels], dtype=np.int64),
            delayed=np.zeros((len(filters.sections), 2, width)),
            lowest=np.full(n, np.inf),
            highest=np.full(n, -np.inf),
            fastest=np.zeros(n),
            state=np.zeros(4, dtype=np.int64),
            period=np.array([filters.step], dtype=np.int64),
        )
        self.out = np.zeros((_CHUNK // filters.step + 2, width))
        self.gaps = self.repeated = self.samples = 0
        self._tree, self._drives = model.tree, model.drives
        self._q, self._v, self._torque = (np.zeros((1, n)) for _ in range(3))
        self._t = self._since = -np.inf  # times of the last sample and of the first one after a gap
        self._run = 0
        with first_use(filtered_rows):  # compiled here, never while samples arrive
            self._filter(self._q[:0], self._v[:0], self._torque[:0], True)

    @property
    def rejected(self) -> int:
        """Samples with values that are not finite or absurdly large."""
        return int(self.stream.state[REJECTED])

    def start_of(self, channel: int) -> slice:
        """Entries of a row that belong to a channel."""
        return slice(int(self.stream.start[channel]), int(self.stream.start[channel + 1]))

    def push(self, t: float, q: ArrayLike, torque: ArrayLike, v: ArrayLike | None = None) -> int:
        """Take one sample; returns how many rows are now in `out`, 0 or 1."""
        if (v is None) == self.measured_velocity:
            self._refuse_velocity(v)
        n = self._q.shape[1]
        if len(q) != n or len(torque) != n or (v is not None and len(v) != n):  # type: ignore[arg-type]
            raise InvalidShape(f"a sample has {n} positions, torques and velocities, one per joint")
        self._q[0] = q
        self._torque[0] = torque
        if v is not None:
            self._v[0] = v
        step = t - self._t
        if not step > 0.0:
            self.repeated += 1
            return 0
        self._t = t
        restart = bool(step * self.filters.rate > _GAP)
        self._count(t, 1, restart)
        return self._filter(self._q, self._v, self._torque, restart)

    def push_block(self, t: ArrayLike, q: ArrayLike, torque: ArrayLike, v: ArrayLike | None = None) -> Iterator[int]:
        """Take samples t (N,), q, torque and v (N, n); yields after each part how many rows are now in `out`."""
        if (v is None) == self.measured_velocity:
            self._refuse_velocity(v)
        times = np.asarray(t, dtype=float)
        n = self._q.shape[1]
        signals = [for_kernel(np.asarray(x, dtype=float)) for x in (q, q if v is None else v, torque)]
        if times.ndim != 1 or any(x.shape != (len(times), n) for x in signals):
            raise InvalidShape(f"samples have times (N,) and positions, torques and velocities (N, {n})")
        steps = np.diff(times, prepend=self._t)
        # A row that repeats a time or goes back is dropped; steps are then those between the rows that are left.
        fresh = times > np.maximum.accumulate(np.r_[self._t, times[:-1]])
        if not fresh.all():
            self.repeated += int(np.count_nonzero(~fresh))
            times, signals = times[fresh], [for_kernel(x[fresh]) for x in signals]
            steps = np.diff(times, prepend=self._t)
        gaps = np.flatnonzero(steps * self.filters.rate > _GAP)
        edges = np.unique(np.r_[0, gaps, len(times)])
        for lo, hi in pairwise(edges.tolist()):
            restart = bool(steps[lo] * self.filters.rate > _GAP)
            if restart:
                self._count(float(times[lo]), 1, restart=True)
                self._count(float(times[hi - 1]), hi - lo - 1, restart=False)
            else:
                self._count(float(times[hi - 1]), hi - lo, restart=False)
            self._t = float(times[hi - 1])
            for first in range(lo, hi, _CHUNK):
                part = slice(first, min(first + _CHUNK, hi))
                yield self._filter(signals[0][part], signals[1][part], signals[2][part], restart and first == lo)

    def _filter(self, q: Array, v: Array, torque: Array, restart: bool) -> int:
        return int(
            filtered_rows(
                self._tree, self._drives, self.stream, q, v, torque, self.measured_velocity, restart, self.out
            )
        )

    def _refuse_velocity(self, v: ArrayLike | None) -> None:
        if v is None:
            raise MissingArgument("measured_velocity is set: give the velocities with every sample")
        raise ConflictingArguments("velocities are given, but measured_velocity is not set", "measured_velocity")

    def _count(self, t: float, samples: int, restart: bool) -> None:
        """Count samples, and compare the clock with the rate once."""
        self.samples += samples
        if restart:
            self.gaps += int(self._run > 0)
            self._run, self._since = samples, t
            return
        before, self._run = self._run, self._run + samples
        if before < _RATE_AFTER <= self._run:
            found = (self._run - 1) / (t - self._since)
            if abs(found / self.filters.rate - 1.0) > _RATE_ERROR:
                raise Mismatch(
                    f"the samples come at {found:.4g} Hz, not at the rate of {self.filters.rate:.4g} Hz", "rate"
                )


def _check_robot(robot: Robot) -> None:
    """Raise a DataError for what the compiled stream does not cover."""
    reason = None
    if robot.base != "fixed":
        reason = f"its base is {robot.base}"
    elif robot.loops:
        reason = "it has closed loops"
    elif any(term.kind == TermKind.CUSTOM for term in robot.drives):
        reason = "it has custom drive terms"
    if reason is not None:
        raise NotApplicable(f"robot '{robot.name}' cannot be followed sample by sample: {reason}; add whole recordings")
