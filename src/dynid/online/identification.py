"""`OnlineIdentification`: base parameters from samples that keep arriving, without look-ahead.

    beta = argmin over all blocks of sum of fade |W beta - y|^2,    from the triangular factors of the blocks

Sources: those of `factors` and `filters`; `dynid.identification.jackknife` for standard deviations from blocks of time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.batch import first_use
from dynid.dynamics.kernels.stream import FILLED, LEFT, LENGTH, SLOT, Factors, fold_rows, next_block
from dynid.errors import ConflictingArguments, InvalidValue, Mismatch, MissingArgument, TooFew
from dynid.identification.estimate import Estimate
from dynid.identification.estimators.options import MethodOptions
from dynid.identification.estimators.registry import check_factors_suffice, find_method, method_options
from dynid.identification.jackknife import NoiseModel
from dynid.identification.observation import Observation, fold, no_rows, time_parts
from dynid.identification.observing import observe
from dynid.identification.pipeline import estimate_from
from dynid.identification.row_stream import joined_factors, touched_columns
from dynid.identification.stops import Standstill, smallest_motions, standstill
from dynid.online.filters import CausalFilters, causal_filters
from dynid.online.rows import CausalRows
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.signals.settings import STANDSTILL, Motion, Signals
from dynid.threads import one_blas_thread

__all__ = ["BlockFactors", "OnlineIdentification"]

Array = NDArray[np.float64]


# Triangular factors of a stream in blocks of time, in square-root information form.
#
# The rows of a channel are rotated one by one into the factor of the current block (Givens rotations). Twenty blocks
# take
# turns, so that their estimates also show how far the residuals are correlated over time. Nothing forgotten: after each
# turn the blocks become twice as long, so that they remain a fixed share of the whole. With a time constant, the rows
# of
# a channel lose weight with every new row of this channel: a joint that stands still forgets nothing. With a window, a
# block is emptied before it is used again.
#
#     R'R <- fade^2 R'R + [W y]'[W y],    fade = exp(-1 / (2 forgetting row_rate)),    rows <- fade^2 rows + 1
#
# Sources: Golub and Van Loan, Matrix Computations (4th edition 2013), chapter 5 (Givens rotations); Haykin, Adaptive
# Filter Theory (2002), chapter on square-root adaptive filters; Bierman, Factorization Methods for Discrete Sequential
# Estimation (1977), for the square-root information form.


# Blocks of time, and seconds of the first ones: several correlation times of the residuals of a drive.
BLOCKS = 20
_FIRST_BLOCK = 1.0


class BlockFactors:
    """Factors of [W y] per channel and block of time.

    Parameters
    ----------
    base : BaseParameters
        The base parameters.
    touched : list of ndarray
        Columns that each channel can have.
    row_rate : float
        Rows per second.
    forgetting : float or None
        Time constant in s of the weight of old rows; None for none.
    window : float or None
        Seconds that are kept; None for all.
    """

    def __init__(
        self,
        base: BaseParameters,
        touched: list[NDArray[np.intp]],
        *,
        row_rate: float,
        forgetting: float | None = None,
        window: float | None = None,
    ) -> None:
        for name, value in (("forgetting", forgetting), ("window", window)):
            if value is not None and not (value > 0 and np.isfinite(value)):
                raise InvalidValue(f"{name} is a positive number of seconds, got {value}")
        if forgetting is not None and window is not None:
            raise ConflictingArguments("give a time constant of forgetting or a window, not both", "forgetting")
        self.base, self.touched = base, touched
        self.row_rate, self.forgetting, self.window = row_rate, forgetting, window
        sizes = np.array([len(c) + 1 for c in touched])
        channels = len(touched)
        seconds = _FIRST_BLOCK
        if window is not None:
            seconds = window / BLOCKS
        elif forgetting is not None:
            seconds = 2.0 * forgetting / BLOCKS
        length = max(1, round(seconds * row_rate))
        state = np.zeros(4, dtype=np.int64)
        state[LEFT], state[LENGTH], state[FILLED] = length, length, 1
        self.arrays = Factors(
            start=np.cumsum([0, *sizes]),
            place=np.cumsum([0, *sizes**2]),
            values=np.zeros((BLOCKS, int(np.sum(sizes**2)))),
            weight=np.zeros((BLOCKS, channels)),
            last=np.zeros((BLOCKS, channels)),
            clock=np.zeros(channels),
            fade=np.array([1.0 if forgetting is None else np.exp(-0.5 / (forgetting * row_rate))]),
            share=np.zeros(channels),
            least=np.zeros(channels),
            smallest=np.zeros(channels),
            state=state,
            window=np.array([0 if window is None else 1]),
            row=np.zeros(int(sizes.max())),
        )

    def warm_up(self, rows: CausalRows) -> None:
        """Compile before samples arrive."""
        with first_use(fold_rows):
            fold_rows(rows.stream, self.arrays, rows.out, 0)

    def fold(self, rows: CausalRows, count: int) -> int:
        """Rotate the rows of a stream into the current block; returns how many rows of channels were used."""
        return int(fold_rows(rows.stream, self.arrays, rows.out, count))

    def add(self, observation: Observation, seconds: float) -> None:
        """Fold a whole recording that lasts some seconds, cut into parts of time that take the next blocks."""
        f = self.arrays
        length = f.state[LENGTH] / self.row_rate
        count = int(np.clip(round(seconds / length), 1, BLOCKS))
        parts = [observation.factors] if count == 1 else time_parts(observation, count)
        weights = np.array(observation.rows, dtype=float) / len(parts)
        for part in parts:
            if self.forgetting is not None:
                f.clock[:] += seconds / len(parts) * self.row_rate
            self._add_part(part, weights)
            next_block(f)

    def _add_part(self, part: tuple[Array, ...], weights: Array) -> None:
        f, slot = self.arrays, int(self.arrays.state[SLOT])
        for c, own in enumerate(self.touched):
            fade = float(f.fade[0]) ** (f.clock[c] - f.last[slot, c])
            rows = part[c][:, [*own, -1]]
            stack = np.vstack([fade * self._factor(slot, c), rows])
            folded = fold(np.asfortranarray(stack))
            view = self._factor(slot, c)
            view[:] = 0.0
            view[: len(folded)] = folded[: len(view)]
            f.weight[slot, c] = f.weight[slot, c] * fade**2 + weights[c]
            f.last[slot, c] = f.clock[c]

    def _factor(self, block: int, channel: int) -> Array:
        """The factor (k, k) of a channel in a block, not faded."""
        f = self.arrays
        size = int(f.start[channel + 1] - f.start[channel])
        return f.values[block, f.place[channel] : f.place[channel + 1]].reshape(size, size)

    def _fades(self) -> Array:
        """What is left (block, channel) of the rows of each block since they were rotated in."""
        f = self.arrays
        return np.asarray(f.fade[0] ** (f.clock - f.last))

    @property
    def rows(self) -> Array:
        """Number of rows per channel (channel,), faded."""
        return np.asarray(np.sum(self._fades() ** 2 * self.arrays.weight, axis=0))

    def parts(self) -> list[tuple[Array, ...]]:
        """Factors (k, b + 1) per channel of every block that has rows, the oldest first."""
        f, fades = self.arrays, self._fades()
        filled, slot = int(f.state[FILLED]), int(f.state[SLOT])
        order = [(slot + 1 + k) % filled for k in range(filled)]
        out = []
        for block in order:
            if not np.any(f.weight[block]):
                continue
            factors = []
            for c, own in enumerate(self.touched):
                wide = np.zeros((len(own) + 1, self.base.count + 1))
                factor = fades[block, c] * self._factor(block, c)
                wide[:, own], wide[:, -1] = factor[:, :-1], factor[:, -1]
                factors.append(wide)
            out.append(tuple(factors))
        return out


# Rows per second by which whole recordings fill blocks of time, where no stream gives a rate of rows.
_RECORDED_ROWS = 20.0


class OnlineIdentification:
    """Identification while a robot runs: fed sample by sample, in blocks of samples, or with whole recordings.

    Every sample costs the same bounded time and creates no array. It passes causal filters (see
    `dynid.online.CausalFilters`); its regressor rows are rotated into triangular factors (square-root information
    form). The estimate is made of the factors when it is asked for. Call all methods from one thread.

    Parameters
    ----------
    robot : Robot
        The robot, with the drive terms that are to be identified.
    rate : float, optional
        Samples per second (Hz) of `update`. Left out, only whole recordings can be added.
    cutoff : float, optional
        Cut-off frequency in Hz of the low-pass of the positions; rows keep the band up to half of it. By default 16 Hz,
        or two fifths of a low rate.
    forgetting : float, optional
        Time constant in s: the weight of a row falls to 1/e after so many seconds of motion of its joint. A joint that
        stands still forgets nothing. By default nothing is forgotten.
    window : float, optional
        Seconds to keep, in place of `forgetting`. The window moves on in steps of a twentieth.
    base : BaseParameters, optional
        Base parameters to use; by default those of the robot and the channels.
    channels : str or sequence of str, optional
        Measured quantities that are fitted, as for `identify`; by default "torque".
    measured_velocity : bool, default False
        Velocities come with every sample. Otherwise positions are differentiated.
    min_velocity : float, tuple of float or str, default "1%"
        Rows of a joint are left out while its velocity is below this magnitude, as for `Signals`. A share is that of
        the largest velocity so far.
    feasible_every : float, default 10.0
        Seconds of samples after which `feasible` computes its estimate anew.

    Raises
    ------
    DataError
        If a setting cannot be used, or if the robot has a floating base, closed loops or custom drive terms and a rate
        is given: such robots are identified from whole recordings only.

    Examples
    --------
    >>> import dynid
    >>> from dynid.cli.demo import synthetic_recording
    >>> from dynid.online import OnlineIdentification
    >>> robot = dynid.load_robot("rv2sq")
    >>> run = synthetic_recording(robot, 0, duration=5.0).runs[0]
    >>> online = OnlineIdentification(robot, rate=1 / run.step)
    >>> for t, q, torque in zip(run.t, run.q, run.torque):
    ...     _ = online.update(t, q, torque)
    >>> online.estimate().method
    'wls'
    """

    def __init__(
        self,
        robot: Robot,
        *,
        rate: float | None = None,
        cutoff: float | None = None,
        forgetting: float | None = None,
        window: float | None = None,
        base: BaseParameters | None = None,
        channels: str | Sequence[str] | None = None,
        measured_velocity: bool = False,
        min_velocity: float | tuple[float, ...] | str = "1%",
        feasible_every: float = 10.0,
    ) -> None:
        if not feasible_every > 0:
            raise InvalidValue(
                f"feasible_every is a positive number of seconds, got {feasible_every}", "feasible_every"
            )
        if base is not None and channels is not None:
            raise ConflictingArguments("base parameters have their channels already", "channels")
        if base is None:
            base = base_parameters(robot, channels=channels if channels is not None else "torque")
        elif base.robot.parameter_names != robot.parameter_names:
            raise Mismatch(f"the base parameters are of another robot or other drive terms than '{robot.name}'", "base")
        if rate is None and cutoff is not None:
            raise MissingArgument(
                "a cut-off belongs to samples: give their rate; recordings have their own signals", "rate"
            )
        self._base = base
        self._feasible_every = float(feasible_every)
        self._feasible: tuple[float, Estimate] | None = None
        self._signals = Signals(measured_velocity=measured_velocity, min_velocity=min_velocity)
        self._rows: CausalRows | None = None
        touched = touched_columns(base)
        if rate is not None:
            filters = causal_filters(rate, cutoff)
            self._signals = replace(self._signals, cutoff=filters.cutoff)
            self._rows = CausalRows(base, filters, measured_velocity=measured_velocity)
            touched = self._rows.touched
        row_rate = _RECORDED_ROWS if self._rows is None else self._rows.filters.row_rate
        self._factors = BlockFactors(base, touched, row_rate=row_rate, forgetting=forgetting, window=window)
        self._added: list[Observation] = []
        self._recorded = 0.0
        if self._rows is not None:
            self._set_limits()
            self._factors.warm_up(self._rows)

    def _set_limits(self) -> None:
        """Velocities and ranges below which rows of a joint are left out."""
        assert self._rows is not None
        robot, settings, arrays = self._base.robot, self._signals, self._factors.arrays
        joints = self._rows.stream.joint
        limits = settings.velocity_limits(np.ones((1, robot.n)))[joints]
        if isinstance(settings.min_velocity, str):
            arrays.share[:], arrays.least[:] = limits, STANDSTILL
        else:
            arrays.least[:] = limits
        arrays.smallest[:] = smallest_motions(robot)[joints] if settings.drops_slow_rows else -1.0

    @property
    def robot(self) -> Robot:
        """The robot that is identified."""
        return self._base.robot

    @property
    def base(self) -> BaseParameters:
        """The base parameters that are the unknowns."""
        return self._base

    @property
    def filters(self) -> CausalFilters:
        """The filters of the samples, with their delay."""
        return self._stream.filters

    @property
    def _stream(self) -> CausalRows:
        if self._rows is None:
            raise MissingArgument("no rate was given, so that only whole recordings can be added", "rate")
        return self._rows

    @property
    def samples(self) -> int:
        """Number of samples so far."""
        return 0 if self._rows is None else self._rows.samples

    @property
    def seconds(self) -> float:
        """Duration of all samples and recordings so far, s."""
        return self._recorded + (0.0 if self._rows is None else self._rows.samples / self._rows.filters.rate)

    @property
    def rows(self) -> tuple[float, ...]:
        """Number of rows per channel; with forgetting, the sum of their weights."""
        return tuple(self._factors.rows.tolist())

    @property
    def left_out(self) -> dict[str, int]:
        """Samples that were not used, and gaps of the clock.

        "repeated" counts samples whose time does not increase, "unusable" those with a value that is not finite or
        beyond 1e9. After a gap and after an unusable sample, the filters begin anew.
        """
        if self._rows is None:
            return {"repeated": 0, "unusable": 0, "gaps": 0}
        return {"repeated": self._rows.repeated, "unusable": self._rows.rejected, "gaps": self._rows.gaps}

    def update(self, t: float, q: ArrayLike, torque: ArrayLike, v: ArrayLike | None = None) -> bool:
        """Take one sample.

        Parameters
        ----------
        t : float
            Time in s. A sample whose time does not increase is left out.
        q : array_like, shape (joint,)
            Positions, rad or m.
        torque : array_like, shape (joint,)
            Torques, N m or N.
        v : array_like, shape (joint,), optional
            Velocities, rad/s or m/s; with `measured_velocity` only.

        Returns
        -------
        bool
            Whether rows were added, which happens every `filters.step` samples.

        Raises
        ------
        DataError
            If the sample has another number of joints, or if the clock does not run at the rate.
        """
        rows = self._stream
        count = rows.push(t, q, torque, v)
        return count > 0 and self._factors.fold(rows, count) > 0

    def update_block(self, t: ArrayLike, q: ArrayLike, torque: ArrayLike, v: ArrayLike | None = None) -> int:
        """Take a block of samples, with the same result as one by one.

        Parameters
        ----------
        t : array_like, shape (N,)
            Times in s.
        q, torque, v : array_like, shape (N, joint)
            Positions, torques and, with `measured_velocity`, velocities.

        Returns
        -------
        int
            Number of rows of all channels that were added.
        """
        rows = self._stream
        return sum(self._factors.fold(rows, count) for count in rows.push_block(t, q, torque, v))

    def add(self, recording: Recording, *, signals: Signals | None = None) -> None:
        """Add a whole recording, filtered without delay as for `identify`; its samples are not kept.

        Parameters
        ----------
        recording : Recording
            Measured motion and torques.
        signals : Signals, optional
            How the runs are filtered and differentiated; by default `Signals()`.
        """
        seen = observe(self.robot, recording, signals=signals, base=self._base)
        seconds = sum(float(run.t[-1] - run.t[0]) for run in recording.runs)
        self._factors.add(seen, seconds)
        self._recorded += seconds
        self._added = [replace(seen, factors=(), blocks=no_rows, motions=(), time_blocks=())]

    def observation(self) -> Observation:
        """All information so far as an observation, which every method that needs no samples takes.

        Returns
        -------
        Observation
            Its `time_blocks` are the blocks of time. It keeps no samples.

        Raises
        ------
        DataError
            If there are fewer rows than base parameters.
        """
        parts = self._factors.parts()
        rows = self._factors.rows
        if rows.sum() <= self._base.count:
            raise TooFew(
                f"{rows.sum():.0f} rows so far for {self._base.count} base parameters: move longer, or keep more"
            )
        with one_blas_thread():
            factors = joined_factors(parts)
        last = self._added[-1] if self._added else None
        return Observation(
            self._base,
            factors,
            tuple(round(x) for x in rows.tolist()),
            no_rows,
            self._signals if last is None else last.signals,
            () if self._rows is None else (self._rows.filters.cutoff,),
            None if last is None else last.log_format,
            standstill=self._standstill(last),
            stops=() if last is None else last.stops,
            time_blocks=tuple(parts),
        )

    def _standstill(self, last: Observation | None) -> Standstill | None:
        """What is unknown because joints have not moved so far."""
        if last is not None and last.standstill is None:
            return None
        if self._rows is None or not self._rows.samples:
            return None if last is None else last.standstill
        stream = self._rows.stream
        q = np.vstack([stream.lowest, stream.highest])
        q[:, ~np.all(np.isfinite(q), axis=0)] = 0.0
        zero = np.zeros_like(q)
        rate, cutoff = self._rows.filters.rate, self._rows.filters.cutoff
        reached = Motion(np.arange(2.0), q, zero, zero, None, rate, cutoff, (), "samples", np.zeros(q.shape[1]))
        return standstill(self._base, [reached], self._signals)

    def estimate(
        self,
        method: str = "wls",
        *,
        options: MethodOptions | None = None,
        noise_model: NoiseModel = "autocorrelated",
        **keywords: Any,
    ) -> Estimate:
        """The estimate from all information so far.

        Parameters
        ----------
        method : str, default "wls"
            One that takes an observation. Those that need runs or read the samples again are refused.
        options, **keywords
            Options of the method, as for `identify`.
        noise_model : {"autocorrelated", "white"}, default "autocorrelated"
            "autocorrelated" takes the standard deviations from blocks of time, whatever the correlation within a block.
            Fewer than six blocks show nothing of it: the residuals then count as white, and the estimate says so.

        Returns
        -------
        Estimate

        Raises
        ------
        DataError
            If there are too few rows, or if the method reads the samples again.
        DynidError
            If the motion so far does not excite all base parameters.
        """
        chosen = method_options(method, options, **keywords)
        check_factors_suffice(find_method(method), chosen)
        return estimate_from(self.observation(), method, options=chosen, noise_model=noise_model)

    def feasible(self, *, max_age: float | None = None, **keywords: Any) -> Estimate:
        """The physically consistent estimate near the a-priori robot, not older than some seconds of samples.

        It takes a cone program of some tens of milliseconds or more, so `update` never computes it: call this in a
        slower loop.

        Parameters
        ----------
        max_age : float, optional
            Age in s of samples up to which the last result is returned again; by default `feasible_every`.
        **keywords
            Options of method "feasible".

        Returns
        -------
        Estimate
        """
        age = self._feasible_every if max_age is None else max_age
        made, last = self._feasible or (-math.inf, None)
        if last is None or self.seconds - made >= age:
            last = self.estimate("feasible", **keywords)
            self._feasible = (self.seconds, last)
        return last
