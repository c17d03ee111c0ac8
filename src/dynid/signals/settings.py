"""`Signals`: the settings between a raw run and the samples of the estimators, and `prepare`, which applies them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import (
    DataError,
    InvalidType,
    InvalidValue,
    MissingData,
    TooFew,
    UnknownName,
    did_you_mean,
    named,
)
from dynid.recording.run import Run
from dynid.recording.wrench import WrenchSensor
from dynid.signals.clock import fit_clock
from dynid.signals.filters import DERIVATIVES, average_periods, derivative, lowpass, median
from dynid.signals.manifold import (
    BaseState,
    accumulated_rotation,
    average_poses,
    base_state,
    median_poses,
    resample_poses,
)
from dynid.signals.motion_band import motion_band, noise_range
from dynid.signals.spikes import without_dropouts

__all__ = ["STANDSTILL", "Motion", "Signals", "prepare", "uniform"]

Array = NDArray[np.float64]

# Below this velocity (rad/s or m/s) a joint stands still; the sign of its velocity is rounding noise.
STANDSTILL = 1e-6
# Frequencies (Hz), times (s) and counts beyond this are no settings of a recording.
_LARGEST = 1e9
# Share of the cut-off of the positions that the automatic decimation keeps. The low-pass of the positions reaches the
# regressor but not the torques; where it attenuates by less than half a percent, that makes no difference.
_KEPT = 0.5
# Share of the trimmed samples on which the transient of the decimation filter decays.
_TRANSIENT_SHARE = 0.75


@dataclass(frozen=True, kw_only=True)
class Signals:
    """How runs are filtered, differentiated and decimated, for identification and validation alike.

    Attributes
    ----------
    median : int
        Width in samples of a running median of the positions, odd; 0 for none.
    cutoff : float, "auto" or None
        Cut-off frequency in Hz of the zero-phase Butterworth low-pass of the positions. "auto" is twice the band of
        the motion, see `dynid.signals.motion_band`; None for no filter.
    order : int
        Order of that filter, applied forward and backward.
    torque_cutoff : float, "same" or None
        Cut-off frequency in Hz of a low-pass of torques and wrenches, "same" for that of the positions. By default
        they pass the parallel decimation only, as the regressor columns do.
    derivative : {"central", "central5", "savgol", "fourier"}
        Method of differentiation, see `dynid.signals.filters.derivative`.
    measured_velocity : bool
        Use the measured velocities instead of differentiated positions.
    measured_acceleration : bool
        Use the measured accelerations instead of differentiated velocities, with the low-pass of the positions. Rows
        without an order in time (tables of q, v, a and torque) need both measured signals and
        `cutoff=None, decimate=(), trim=0`, since nothing can then be filtered or differentiated.
    resample : float, "auto" or None
        Rate in Hz of the uniform clock to resample to. "auto" resamples uneven clocks only, None none. Rows that only
        repeat the row before are dropped, and an even clock of the source replaces time stamps that are less accurate,
        see `dynid.signals.clock`; None leaves rows and stamps as they are.
    period : float or None
        Period in s of a periodic motion; its repetitions are averaged first.
    trim : float
        Seconds removed at both ends of a run after filtering.
    delay : float
        Seconds by which the torques lag the positions.
    decimate : tuple of int or "auto"
        Factors of the parallel decimation of torques and regressor columns, one per stage. "auto" keeps the band up to
        half the cut-off, in which the low-pass of the positions changes nothing: torques and regressor columns are
        filtered alike, and neither inertia nor friction is biased. Rows are then nearly independent.
    min_velocity : float, tuple of float or str
        Rows of a joint are left out while its velocity is below this magnitude in rad/s or m/s: one number, one per
        joint, or a share of the largest velocity of the joint, such as "1%".
    wrench_delay : float
        Seconds by which the wrenches lag the positions.
    stops : bool
        Leave out samples at which a joint presses against a mechanical stop, see `dynid.identification.stops`.
    dropouts : bool
        Replace dropouts of the torque, one or two samples that are zero among others that are not, see
        `dynid.signals.spikes`.

    Raises
    ------
    DataError
        If a setting is unknown or cannot be used.

    Examples
    --------
    >>> from dynid import Signals
    >>> signals = Signals(cutoff=40.0, decimate=(10, 10), min_velocity="2%")
    >>> Signals.from_dict(signals.to_dict()) == signals
    True
    """

    median: int = 0
    cutoff: float | Literal["auto"] | None = "auto"
    order: int = 4
    torque_cutoff: float | Literal["same"] | None = None
    derivative: str = "central5"
    measured_velocity: bool = False
    measured_acceleration: bool = False
    resample: float | Literal["auto"] | None = "auto"
    period: float | None = None
    trim: float = 0.2
    delay: float = 0.0
    decimate: tuple[int, ...] | Literal["auto"] = "auto"
    min_velocity: float | tuple[float, ...] | str = "1%"
    wrench_delay: float = 0.0
    stops: bool = True
    dropouts: bool = True

    def __post_init__(self) -> None:
        if self.derivative not in DERIVATIVES:
            raise UnknownName(f"derivative '{self.derivative}' is unknown: use {', '.join(DERIVATIVES)}", "derivative")
        for name in ("median", "order"):
            _whole(getattr(self, name), name, 0 if name == "median" else 1)
        for name in ("cutoff", "torque_cutoff", "resample", "period", "trim", "delay", "wrench_delay"):
            _finite(getattr(self, name), name)
        for name in ("measured_velocity", "measured_acceleration", "stops", "dropouts"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidType(f"{name} must be true or false, got {getattr(self, name)!r:.40}")
        if self.decimate != "auto":
            factors = (self.decimate,) if isinstance(self.decimate, str | int) else self.decimate
            object.__setattr__(self, "decimate", tuple(_whole(x, "a factor of decimate", 1) for x in factors))
        if not isinstance(self.min_velocity, str):
            object.__setattr__(self, "min_velocity", _lowest_velocities(self.min_velocity))
        width = len(self.min_velocity) if isinstance(self.min_velocity, tuple) else 1
        self.velocity_limits(np.ones((1, width)))  # an unknown word is refused here, before any work is done

    def to_dict(self) -> dict[str, Any]:
        """All settings, ready for JSON.

        Returns
        -------
        dict
            `Signals.from_dict` makes the same settings of it again.
        """
        return asdict(self)

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Signals:
        """Settings from a dictionary, as `to_dict` gives it or as it is read back from JSON.

        Parameters
        ----------
        data : mapping
            Setting to value; settings that are left out have their defaults.

        Returns
        -------
        Signals

        Raises
        ------
        DataError
            If a setting is unknown or cannot be used.
        """
        known = [f.name for f in fields(Signals)]
        unknown = [name for name in data if name not in known]
        if unknown:
            hint = did_you_mean(unknown[0], known)
            raise UnknownName(f"signals has no setting '{unknown[0]}': use {', '.join(known)}{hint}", "signals")
        settings: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
        return Signals(**settings)

    @property
    def ordered(self) -> bool:
        """Whether rows must follow each other in time; False where nothing is filtered, differentiated or decimated."""
        return not (
            self.measured_velocity and self.measured_acceleration and self.cutoff is None and self.decimate == ()
        )

    @property
    def drops_slow_rows(self) -> bool:
        """Whether rows are left out at low velocities."""
        limits = self.velocity_limits(
            np.ones((1, len(self.min_velocity) if isinstance(self.min_velocity, tuple) else 1))
        )
        return bool(np.any(limits > STANDSTILL))

    def velocity_limits(self, v: Array) -> Array:
        """Smallest magnitude of the velocity (joint,) of rows that are kept, for these velocities (N, joint)."""
        if isinstance(self.min_velocity, str):
            try:
                share = float(self.min_velocity.removesuffix("%")) / 100.0
            except ValueError:
                raise InvalidValue(
                    f"{named('min_velocity')} '{self.min_velocity}' is neither a number nor a percentage"
                ) from None
            if not 0.0 <= share <= 1.0:
                raise InvalidValue(f"{named('min_velocity')} must be between 0 and 100 %, got '{self.min_velocity}'")
            limits = share * np.abs(v).max(axis=0)
        else:
            limits = np.broadcast_to(np.asarray(self.min_velocity), (v.shape[1],))
        return np.maximum(limits, STANDSTILL)


# Settings that have words of their own, those that may be negative, and those that may be zero but not None.
_SETTING_WORDS = {"cutoff": ("auto",), "torque_cutoff": ("same",), "resample": ("auto",)}
_SIGNED = ("delay", "wrench_delay")
_ZERO = ("trim", *_SIGNED)


def _finite(value: Any, name: str) -> None:
    """Raise a DataError unless a setting is a finite number in its range, None or one of its words."""
    words = _SETTING_WORDS.get(name, ())
    if (value is None and name not in _ZERO) or (isinstance(value, str) and value in words):
        return
    least = (
        "a finite number" if name in _SIGNED else "zero or a positive number" if name in _ZERO else "a positive number"
    )
    takes = " or ".join([least, *(f"'{word}'" for word in words)])
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    inside = number and abs(value) <= _LARGEST and (name in _SIGNED or value > 0 or (name in _ZERO and value == 0))
    if not inside:
        raise InvalidValue(f"{name} must be {takes}, got {value!r:.40}")


def _lowest_velocities(value: Any) -> float | tuple[float, ...]:
    """One velocity or one per joint, or a DataError."""
    try:
        found = np.array(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        found = np.array(np.nan)
    if found.ndim > 1 or not np.all((found >= 0.0) & (found <= _LARGEST)):
        raise InvalidValue(
            f"{named('min_velocity')} must be zero or positive, one number or one per joint, got {value!r:.40}"
        )
    return float(found) if found.ndim == 0 else tuple(found.tolist())


def _whole(value: Any, name: str, least: int) -> int:
    """A whole number of at least `least`, or a DataError."""
    whole = isinstance(value, int | np.integer) or (isinstance(value, float) and value.is_integer())
    if not whole or isinstance(value, bool) or not least <= value <= _LARGEST:
        raise InvalidValue(f"{name} must be a whole number of at least {least}, got {value!r:.40}")
    return int(value)


@dataclass(frozen=True, eq=False)
class Motion:
    """A filtered run on a uniform clock.

    Attributes
    ----------
    t : ndarray (N,)
        Time in s.
    q, v, a : ndarray (N, joint)
        Positions, velocities and accelerations of the joints.
    torque : ndarray (N, joint) or None
        Torques of the joints.
    rate : float
        Sampling rate in Hz.
    cutoff : float or None
        Cut-off frequency in Hz that was used.
    decimate : tuple of int
        Factors of the decimation that follows.
    name : str
        Name of the run.
    q_noise : ndarray (joint,)
        Range in rad or m that the noise of the positions alone would have.
    lead : int
        Samples at either end on which the transient of the decimation filter decays; they give no rows.
    base : BaseState or None
        Motion of a floating base.
    wrench : ndarray (N, 6) or None
        Wrench on the base.
    wrenches, sensors : mapping
        Wrenches (N, 6) of the named sensors, and where the sensors are.
    stopped : ndarray of bool (N, joint) or None
        Samples at which a joint presses against a mechanical stop; None where there are none.
    dropouts : ndarray of int (joint,) or None
        Number of dropouts of the torque that were replaced; None where torques were left as they are.
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
    q_noise: Array
    lead: int = 0
    base: BaseState | None = None
    wrench: Array | None = None
    wrenches: Mapping[str, Array] = field(default_factory=dict)
    sensors: Mapping[str, WrenchSensor] = field(default_factory=dict)
    stopped: NDArray[np.bool_] | None = None
    dropouts: NDArray[np.int64] | None = None


def prepare(run: Run, settings: Signals) -> Motion:
    """Apply the settings to one run: dropouts, median, uniform clock, delay, low-pass, derivatives, trimming."""
    dropouts = None
    # Outliers first, because resampling would distribute them over their neighbours.
    if settings.dropouts and settings.ordered and run.torque is not None:
        repaired, dropouts = without_dropouts(run.torque)
        run = replace(run, torque=repaired) if dropouts.any() else run
    if settings.median:
        pose = None if run.base is None else median_poses(run.base, settings.median)
        run = replace(run, q=median(run.q, settings.median), base=pose)
    run, rate = uniform(run, settings)
    if settings.period is not None:
        run = _averaged(run, settings.period, rate)
    torque = run.torque
    if settings.delay and torque is not None:
        torque = _shifted(run.t, torque, settings.delay)
    q = run.q
    # Without joint torques there is no friction whose steps a low-pass would smooth, and noise of markers counts more.
    inside = 1.0 if torque is None else _KEPT
    cutoff = settings.cutoff
    if cutoff == "auto":
        cutoff = motion_band(_positions(run), rate, friction=torque is not None) / inside
    if cutoff is not None and q.shape[1]:
        q = lowpass(q, float(cutoff), rate, settings.order)
    torque_cutoff = cutoff if settings.torque_cutoff == "same" else settings.torque_cutoff
    if torque is not None and torque_cutoff is not None:
        torque = lowpass(torque, float(torque_cutoff), rate, settings.order)

    def measured(x: Array | None, what: str) -> Array:
        if x is None:
            raise MissingData(f"run '{run.name}' has no measured {what}")
        return lowpass(x, float(cutoff), rate, settings.order) if cutoff is not None and x.shape[1] else x

    v = measured(run.v, "velocity") if settings.measured_velocity else derivative(q, rate, settings.derivative)
    a = measured(run.a, "acceleration") if settings.measured_acceleration else derivative(v, rate, settings.derivative)
    base = None if run.base is None else _base(run, rate, cutoff, settings)

    def loaded(x: Array) -> Array:
        if settings.wrench_delay:
            x = _shifted(run.t, x, settings.wrench_delay)
        return x if torque_cutoff is None else lowpass(x, float(torque_cutoff), rate, settings.order)

    edge = round(settings.trim * rate)
    if len(q) - 2 * edge < 2:
        raise TooFew(
            f"run '{run.name}' lasts {len(q) / rate:.3g} s; nothing is left after trimming {settings.trim:g} s", "trim"
        )
    factors = (
        _auto_factors(rate, inside * cutoff if cutoff else None) if settings.decimate == "auto" else settings.decimate
    )
    # The transient of the decimation filter decays on the trimmed samples. Their outer quarter is left out: it holds
    # the transient of the low-pass, and reflection at a noisy last sample would carry its error into the run.
    step = int(np.prod(factors)) if factors else 1
    lead = int(_TRANSIENT_SHARE * edge) // step * step if step > 1 else 0
    cut = slice(edge - lead, len(q) - edge + lead)
    kept = None if torque is None else torque[cut]
    return Motion(
        t=run.t[cut],
        q=q[cut],
        v=v[cut],
        a=a[cut],
        torque=kept,
        rate=rate,
        cutoff=cutoff,
        decimate=factors,
        name=run.name,
        q_noise=_noise(run, settings, rate, cutoff),
        lead=lead,
        base=None if base is None else BaseState(base.pose[cut], base.v[cut], base.a[cut]),
        wrench=None if run.wrench is None else loaded(run.wrench)[cut],
        wrenches={name: loaded(x)[cut] for name, x in run.wrenches.items()},
        sensors=run.sensors,
        dropouts=dropouts,
    )


def _noise(run: Run, settings: Signals, rate: float, cutoff: float | None) -> Array:
    """Range (joint,) that the noise of the filtered positions alone would have.

    It is zero where rows need no order in time, because positions are neither filtered nor differentiated: the scatter
    of neighbouring rows is then motion.
    """
    if not settings.ordered:
        return np.zeros(run.q.shape[1])
    return noise_range(run.q) * np.sqrt(min(1.0, 2.0 * cutoff / rate) if cutoff is not None else 1.0)


def _positions(run: Run) -> Array:
    """The positions whose spectrum gives the cut-off: those of the joints, or of the base where no joint moves."""
    if run.base is None or np.ptp(run.q, axis=0).max(initial=0.0) > 0:
        return run.q
    return np.hstack([run.base[:, :3], accumulated_rotation(run.base)])


def _base(run: Run, rate: float, cutoff: float | None, settings: Signals) -> BaseState:
    """Filtered motion of the base; errors name the run."""
    assert run.base is not None
    low = None if cutoff is None else float(cutoff)
    try:
        return base_state(run.base, rate, low, settings.order, settings.derivative, run.base_v, run.base_a)
    except DataError as error:
        raise error.at(f"run '{run.name}'") from None


def _shifted(t: Array, x: Array, delay: float) -> Array:
    """Columns of x `delay` seconds later."""
    return np.column_stack([np.interp(t + delay, t, column) for column in x.T])


def _auto_factors(rate: float, band: float | None) -> tuple[int, ...]:
    """Factors of at most ten per stage that keep a band within 80 % of the Nyquist frequency that is left."""
    return _stages(int(0.4 * rate / band)) if band else ()


def _stages(factor: int) -> tuple[int, ...]:
    """Factors of at most ten whose product is as close to a factor as possible, not above it; () for one."""
    if factor <= 10:
        return (factor,) if factor > 1 else ()
    trials = [(first, *_stages(factor // first)) for first in range(10, 1, -1)]
    return max(trials, key=lambda stages: int(np.prod(stages)))


def uniform(run: Run, settings: Signals) -> tuple[Run, float]:
    """The run on a uniform clock and its rate; clocks whose steps differ by less than 1 % are uniform."""
    steps = np.diff(run.t)
    if np.any(steps <= 0):
        k = int(np.argmax(steps <= 0))
        raise InvalidValue(f"time does not increase at row {k + 1}; see `dynid check`", where=f"run '{run.name}'")
    if settings.resample is None:
        return run, 1.0 / float(np.mean(steps))
    clock = fit_clock(run)
    if len(clock.rows) < len(run.t):
        run = _mapped(run, clock.stamps, lambda x: x[clock.rows], lambda pose: pose[clock.rows])
    if settings.resample == "auto" and not clock.uneven:
        return run, 1.0 / clock.step
    times = clock.times
    if settings.resample == "auto" and clock.recovered and np.all(np.diff(clock.number) == 1):
        return replace(run, t=times), 1.0 / clock.step
    # Resampling to the usual step keeps nearly all measured instants where they were.
    if settings.resample == "auto":
        rate = 1.0 / clock.step if clock.recovered else 1.0 / run.step
    else:
        rate = float(settings.resample)
    t = np.arange(times[0], times[-1] + 1e-6 / rate if clock.recovered else times[-1], 1.0 / rate)
    t = np.minimum(t, times[-1])

    def even(x: Array) -> Array:
        # Akima interpolation is smooth and does not overshoot at gaps.
        return np.asarray(scipy.interpolate.Akima1DInterpolator(times, x, axis=0)(t)) if x.shape[1] else x[: len(t)]

    def nearest(x: Array) -> Array:
        # A command changes in steps, which must not be smoothed.
        after = np.clip(np.searchsorted(times, t), 1, len(times) - 1)
        return np.asarray(x[after - (t - times[after - 1] < times[after] - t)])

    return _mapped(run, t, even, lambda pose: resample_poses(times, pose, t), nearest), rate


def _averaged(run: Run, period: float, rate: float) -> Run:
    """The mean period of a periodic run."""
    samples = period * rate
    if abs(samples - round(samples)) > 0.01:
        raise InvalidValue(
            f"a period of {period:g} s is not a whole number of samples at {rate:.6g} Hz; resample first", "period"
        )
    whole = round(samples)
    return _mapped(run, run.t[:whole], lambda x: average_periods(x, whole), lambda pose: average_poses(pose, whole))


def _mapped(
    run: Run,
    t: Array,
    even: Callable[[Array], Array],
    even_poses: Callable[[Array], Array],
    even_commands: Callable[[Array], Array] | None = None,
) -> Run:
    """The signals that are used later, on another clock; commands by a function of their own, if there is one."""
    plain = {s: getattr(run, s) for s in ("q", "v", "a", "torque", "wrench", "base_v", "base_a", "imu")}
    signals: dict[str, Any] = {s: None if x is None else even(x) for s, x in plain.items()}
    pose = None if run.base is None else even_poses(run.base)
    signals["reference"] = None if run.reference is None else (even_commands or even)(run.reference)
    wrenches = {name: even(x) for name, x in run.wrenches.items()}
    contacts = {name: np.clip(even(x[:, None])[:, 0], 0.0, 1.0) for name, x in run.contacts.items()}
    return Run(t, base=pose, wrenches=wrenches, sensors=run.sensors, contacts=contacts, name=run.name, **signals)
