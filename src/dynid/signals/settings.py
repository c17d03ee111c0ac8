"""One settings object for everything between a raw run and the samples that estimators see."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.recording.recording import Run
from dynid.recording.wrench import WrenchSensor
from dynid.signals.filters import DERIVATIVES, auto_cutoff, average_periods, derivative, lowpass, median
from dynid.signals.manifold import (
    BaseState,
    accumulated_rotation,
    average_poses,
    base_state,
    median_poses,
    resample_poses,
)

__all__ = ["Motion", "Signals", "prepare"]

Array = NDArray[np.float64]

# Slower than this (rad/s or m/s) a joint stands still, whatever rounding says of its direction.
_STANDSTILL = 1e-6
_SETTLING = 0.75


@dataclass(frozen=True)
class Signals:
    """How runs are cleaned, for identification and validation alike.

    median: width of a running median over positions (0 for none).
    cutoff: Butterworth low-pass of positions in Hz, "auto" to find it from the data, None for none; order: its order.
    torque_cutoff: a low-pass of torques and wrenches alone, "same" for that of the positions; by default they meet only
    the parallel decimation, as the regressor columns do.
    derivative: central, central5, savgol or fourier. measured_velocity: take v from the recording.
    resample: rate in Hz of a uniform clock, "auto" to resample only uneven clocks.
    period: seconds of one period of a motion that repeats; its repetitions are averaged first.
    trim: seconds dropped at both ends after filtering. delay: seconds by which torques lag positions, wrench_delay:
    those by which wrenches do.
    decimate: factors of the parallel decimation of torques and regressor columns, stage by stage; "auto" keeps the
    band up to the cut-off, so that rows are nearly independent and steps of friction line up with those of the torque.
    min_velocity: rows of a joint are dropped while it moves slower than this (rad/s or m/s; one number, one a joint), or
    than this share of its highest speed if given as "1%".
    """

    median: int = 0
    cutoff: float | Literal["auto"] | None = "auto"
    order: int = 4
    torque_cutoff: float | Literal["same"] | None = None
    derivative: str = "central"
    measured_velocity: bool = False
    resample: float | Literal["auto"] | None = "auto"
    period: float | None = None
    trim: float = 0.2
    delay: float = 0.0
    decimate: tuple[int, ...] | Literal["auto"] = "auto"
    min_velocity: float | tuple[float, ...] | str = "1%"
    wrench_delay: float = 0.0

    def __post_init__(self) -> None:
        if self.derivative not in DERIVATIVES:
            raise DataError(f"derivative '{self.derivative}' is unknown: use {', '.join(DERIVATIVES)}")
        if self.trim < 0 or self.order < 1 or self.median < 0:
            raise DataError("trim and median must not be negative, and the filter order at least 1")
        if self.decimate != "auto":
            object.__setattr__(self, "decimate", tuple(int(x) for x in self.decimate))
        if not isinstance(self.min_velocity, str | float | int):
            object.__setattr__(self, "min_velocity", tuple(float(x) for x in self.min_velocity))
        width = len(self.min_velocity) if isinstance(self.min_velocity, tuple) else 1
        self.speed_limits(np.ones((1, width)))  # a wrong word is refused here, not in the middle of the work

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Signals:
        """Settings from what `to_dict` gave, read back from JSON."""
        settings: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
        return Signals(**settings)

    def speed_limits(self, v: Array) -> Array:
        """Slowest speed (joint,) that counts, for these velocities (N, joint)."""
        if isinstance(self.min_velocity, str):
            try:
                share = float(self.min_velocity.removesuffix("%")) / 100.0
            except ValueError:
                raise DataError(f"min_velocity '{self.min_velocity}' is neither a number nor a percentage") from None
            limits = share * np.abs(v).max(axis=0)
        else:
            limits = np.broadcast_to(np.asarray(self.min_velocity, dtype=float), (v.shape[1],))
        return np.maximum(limits, _STANDSTILL)


@dataclass(frozen=True, eq=False)
class Motion:
    """A cleaned run on a uniform clock: t, q, v, a, torque (N, joint), and the cut-off that was used.

    `base` is the motion of the base, `wrench` (N, 6) acts on it, `wrenches` are those of the named `sensors`.
    The first and last `lead` samples are there only for the decimation filter to settle on; they make no rows.
    """

    t: Array
    q: Array
    v: Array
    a: Array
    torque: Array | None
    rate: float
    cutoff: float | None
    decimate: tuple[int, ...]
    name: str
    lead: int = 0
    base: BaseState | None = None
    wrench: Array | None = None
    wrenches: Mapping[str, Array] = field(default_factory=dict)
    sensors: Mapping[str, WrenchSensor] = field(default_factory=dict)


def prepare(run: Run, settings: Signals) -> Motion:
    """Clean one run: uniform clock, median, low-pass, derivatives, delay, trimming."""
    if settings.median:  # before resampling would smear an outlier out
        pose = None if run.base is None else median_poses(run.base, settings.median)
        run = replace(run, q=median(run.q, settings.median), base=pose)
    run, rate = _uniform(run, settings)
    if settings.period is not None:
        run = _averaged(run, settings.period, rate)
    torque = run.torque
    if settings.delay and torque is not None:
        torque = _shifted(run.t, torque, settings.delay)
    q = run.q
    cutoff = settings.cutoff
    if cutoff == "auto":
        # Without torques of joints there is no friction in what is measured.
        cutoff = auto_cutoff(_positions(run), rate, friction=torque is not None)
    if cutoff is not None and q.shape[1]:
        q = lowpass(q, float(cutoff), rate, settings.order)
    torque_cutoff = cutoff if settings.torque_cutoff == "same" else settings.torque_cutoff
    if torque is not None and torque_cutoff is not None:
        torque = lowpass(torque, float(torque_cutoff), rate, settings.order)
    if settings.measured_velocity:
        if run.v is None:
            raise DataError(f"run '{run.name}' has no measured velocity")
        v = lowpass(run.v, float(cutoff), rate, settings.order) if cutoff is not None else run.v
    else:
        v = derivative(q, rate, settings.derivative)
    a = derivative(v, rate, settings.derivative)
    base = None if run.base is None else _base(run, rate, cutoff, settings)

    def loaded(x: Array) -> Array:
        if settings.wrench_delay:
            x = _shifted(run.t, x, settings.wrench_delay)
        return x if torque_cutoff is None else lowpass(x, float(torque_cutoff), rate, settings.order)

    edge = round(settings.trim * rate)
    if len(q) - 2 * edge < 2:
        raise DataError(
            f"run '{run.name}' lasts {len(q) / rate:.3g} s; nothing is left after trimming {settings.trim:g} s"
        )
    factors = _auto_factors(rate, cutoff) if settings.decimate == "auto" else settings.decimate
    # The decimation filter settles on what is trimmed, but for its outer quarter, where the low-pass itself settles:
    # reflected at a noisy last sample it would carry that sample's error far into the run.
    step = int(np.prod(factors)) if factors else 1
    lead = int(_SETTLING * edge) // step * step if step > 1 else 0
    cut = slice(edge - lead, len(q) - edge + lead)
    kept = None if torque is None else torque[cut]
    return Motion(
        *(run.t[cut], q[cut], v[cut], a[cut], kept, rate, cutoff, factors, run.name, lead),
        base=None if base is None else BaseState(base.pose[cut], base.v[cut], base.a[cut]),
        wrench=None if run.wrench is None else loaded(run.wrench)[cut],
        wrenches={name: loaded(x)[cut] for name, x in run.wrenches.items()},
        sensors=run.sensors,
    )


def _positions(run: Run) -> Array:
    """The positions that a cut-off is found from: the joints, or the base where no joint moves."""
    if run.base is None or np.ptp(run.q, axis=0).max(initial=0.0) > 0:
        return run.q
    return np.hstack([run.base[:, :3], accumulated_rotation(run.base)])


def _base(run: Run, rate: float, cutoff: float | None, settings: Signals) -> BaseState:
    assert run.base is not None
    low = None if cutoff is None else float(cutoff)
    try:
        return base_state(run.base, rate, low, settings.order, settings.derivative, run.base_v, run.base_a)
    except DataError as error:
        raise DataError(f"run '{run.name}': {error}") from None


def _shifted(t: Array, x: Array, delay: float) -> Array:
    """Columns of x as they are `delay` seconds later."""
    return np.column_stack([np.interp(t + delay, t, column) for column in x.T])


def _auto_factors(rate: float, cutoff: float | None) -> tuple[int, ...]:
    """Stages of at most ten that keep the band up to the cut-off inside the decimation filter's 80 % of Nyquist."""
    left = int(0.4 * rate / cutoff) if cutoff else 1
    stages = []
    while left >= 2:
        stages.append(min(10, left))
        left //= stages[-1]
    return tuple(stages)


def _uniform(run: Run, settings: Signals) -> tuple[Run, float]:
    """The run on a uniform clock and its rate; measured clocks within 1 % of their step count as uniform."""
    steps = np.diff(run.t)
    if np.any(steps <= 0):
        k = int(np.argmax(steps <= 0))
        raise DataError(f"run '{run.name}': time does not increase at row {k + 1}; see `dynid check`")
    step = float(np.mean(steps))
    uneven = float(np.abs(steps - step).max()) > 0.01 * step
    if settings.resample is None or (settings.resample == "auto" and not uneven):
        return run, 1.0 / step
    # Resampling to the median step keeps nearly all measured instants where they were.
    rate = 1.0 / run.step if settings.resample == "auto" else float(settings.resample)
    t = np.arange(run.t[0], run.t[-1], 1.0 / rate)

    def even(x: Array) -> Array:
        # Akima curves follow positions smoothly and do not swing out at gaps.
        return np.asarray(scipy.interpolate.Akima1DInterpolator(run.t, x, axis=0)(t)) if x.shape[1] else x[: len(t)]

    return _mapped(run, t, even, lambda pose: resample_poses(run.t, pose, t)), rate


def _averaged(run: Run, period: float, rate: float) -> Run:
    """One period in place of all its repetitions."""
    samples = period * rate
    if abs(samples - round(samples)) > 0.01:
        raise DataError(f"a period of {period:g} s is no whole number of samples at {rate:.6g} Hz; resample first")
    whole = round(samples)
    return _mapped(run, run.t[:whole], lambda x: average_periods(x, whole), lambda pose: average_poses(pose, whole))


def _mapped(run: Run, t: Array, even: Callable[[Array], Array], even_poses: Callable[[Array], Array]) -> Run:
    """What cleaning needs of a run, on another clock."""
    plain = {s: getattr(run, s) for s in ("q", "v", "torque", "wrench", "base_v", "base_a")}
    signals: dict[str, Any] = {s: None if x is None else even(x) for s, x in plain.items()}
    pose = None if run.base is None else even_poses(run.base)
    wrenches = {name: even(x) for name, x in run.wrenches.items()}
    return Run(t, base=pose, wrenches=wrenches, sensors=run.sensors, name=run.name, **signals)
