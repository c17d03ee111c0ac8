"""Faults of logs: what sensors, drives and loggers do to torques, positions and time stamps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.dynamics.frames import frame_jacobian
from dynid.dynamics.functions import inverse_dynamics
from studies.reproduce.verdict_plants import RATE, Log, RunName
from studies.reproduce.verdict_setup import Fault, Setup

__all__ = ["LOG_FAULTS", "disguised", "logged_as", "offset", "slipping_springs", "swapped", "turned"]

Array = NDArray[np.float64]

# Faults of the log: a function of the log and its run, and words.
Spoil = Callable[[Log, RunName], Log]
Spoiled = tuple[Spoil, str]


def _torque(change: Callable[[Array], Array]) -> Spoil:
    return lambda log, run: replace(log, torque=change(log.torque))


def logged_as(s: Setup) -> tuple[Callable[[Array], Array], str]:
    """What the log shows of the torque (N,) of the joint of a case, and words."""
    match s.fault:
        case Fault.TORQUE_GAIN:
            factor = 1.0 + 0.15 * s.sign
            return (lambda x: factor * x), f"torque of {s.name} scaled by {factor:.2f}"
        case Fault.TORQUE_SIGN:
            return (lambda x: -x), f"sign of the torque of {s.name} reversed"
        case Fault.TORQUE_ASYMMETRIC:
            more = s.between(1.1, 1.3)
            return (lambda x: np.where(x > 0, more * x, x)), f"positive torques of {s.name} scaled by {more:.2f}"
        case Fault.TORQUE_NONLINEAR:
            share, peak = s.between(0.15, 0.35), s.peak[s.joint]
            words = f"torque constant of {s.name} falling: its largest torque logged {100 * share:.0f} % too large"
            return (lambda x: x * (1.0 + share * (x / peak) ** 2)), words
    return (lambda x: x), ""


def _logged(s: Setup) -> Spoiled:
    change, words = logged_as(s)
    return _joint_changed(s, lambda x, _: change(x)), words


def _delay(s: Setup) -> Spoiled:
    samples = 3 + int(5.99 * s.u)

    def spoil(log: Log, run: RunName) -> Log:
        return Log(log.t[samples:], log.q[samples:], log.torque[:-samples])

    return spoil, f"torque late by {samples} samples ({1e3 * samples * s.sensing.every / RATE:.0f} ms)"


def _low_pass(s: Setup) -> Spoiled:
    corner = s.between(3.0, 8.0)
    kept = np.exp(-2 * np.pi * corner * s.sensing.every / RATE)

    def change(torque: Array) -> Array:
        start = kept * torque[:1]
        return np.asarray(scipy.signal.lfilter([1 - kept], [1, -kept], torque, axis=0, zi=start)[0])

    return _torque(change), f"torque behind a first-order low-pass of {corner:.1f} Hz"


def _clipped(s: Setup) -> Spoiled:
    share = s.between(0.5, 0.75)
    most = np.where(np.arange(len(s.peak)) == s.joint, share * s.peak, np.inf)
    return _torque(lambda x: np.clip(x, -most, most)), f"torque of {s.name} clipped at {most[s.joint]:.3g} in the log"


def _quantized(s: Setup) -> Spoiled:
    bits = 7 + round(s.u)
    step = 2 * np.array(s.plant.effort) / 2**bits
    return _torque(lambda x: step * np.round(x / step)), f"torques counted with {bits} bits over the effort limits"


def _spikes(s: Setup) -> Spoiled:
    share = s.between(0.002, 0.01)

    def spoil(log: Log, run: RunName) -> Log:
        rng, torque = s.rng(run), log.torque.copy()
        bad = rng.uniform(size=torque.shape) < share
        torque[bad] = (rng.choice([-1.0, 0.0, 1.0], torque.shape) * np.array(s.plant.effort))[bad]
        return replace(log, torque=torque)

    return spoil, f"{100 * share:.1f} % of the torques are zero or at the effort limit"


def _compensated(s: Setup) -> Spoiled:
    still = s.plant.prior(s.seed)

    def spoil(log: Log, run: RunName) -> Log:
        zero = np.zeros_like(log.q)
        return replace(log, torque=log.torque - inverse_dynamics(still, log.q, zero, zero))

    return spoil, "the log has torques without the gravity compensation of the controller"


def _computed(s: Setup) -> Spoiled:
    model = s.plant.prior(s.seed)

    def spoil(log: Log, run: RunName) -> Log:
        path = s.plant.reference(s.seed, run)
        return replace(log, torque=inverse_dynamics(model, path.q, path.v, path.a)[:: s.sensing.every])

    return spoil, "the log has the torques of the controller's model along the reference"


def offset(s: Setup) -> float:
    return float(np.radians(2.0) * s.sign)


def _encoder(s: Setup) -> Spoiled:
    shift = np.where(np.arange(s.plant.truth.n) == s.turning_joint, offset(s), 0.0)
    name = s.plant.truth.coordinates[s.turning_joint]
    return lambda log, run: replace(log, q=log.q + shift), f"encoder of {name} off by {2 * s.sign:.0f} degrees"


def _degrees(s: Setup) -> Spoiled:
    factor = np.where(np.arange(s.plant.truth.n) == s.turning_joint, 180 / np.pi, 1.0)
    name = s.plant.truth.coordinates[s.turning_joint]
    return lambda log, run: replace(log, q=log.q * factor), f"positions of {name} in degrees"


def swapped(s: Setup) -> list[int]:
    turning = [j for j, x in enumerate(s.plant.truth.joints) if x.kind == "revolute"]
    order = list(range(s.plant.truth.n))
    order[turning[-2]], order[turning[-1]] = turning[-1], turning[-2]
    return order


def _order(s: Setup) -> Spoiled:
    order = swapped(s)
    return lambda log, run: Log(log.t, log.q[:, order], log.torque[:, order]), "columns of the last two joints swapped"


def _jitter(s: Setup) -> Spoiled:
    share = s.between(0.1, 0.3)

    def spoil(log: Log, run: RunName) -> Log:
        step = s.sensing.every / RATE
        return replace(log, t=np.sort(log.t + share * step * s.rng(run).standard_normal(len(log.t))))

    return spoil, f"time stamps with a standard deviation of {100 * share:.0f} % of the period"


def _lost(s: Setup) -> Spoiled:
    share = s.between(0.01, 0.05)

    def spoil(log: Log, run: RunName) -> Log:
        rng, kept = s.rng(run), np.ones(len(log.t), dtype=bool)
        while 1 - kept.mean() < share:
            at = rng.integers(1, len(kept) - 12)
            kept[at : at + rng.integers(1, 11)] = False
        return Log(log.t[kept], log.q[kept], log.torque[kept])

    return spoil, f"{100 * share:.1f} % of the samples lost, up to ten in a row"


def _repeated(s: Setup) -> Spoiled:
    factor = s.between(1.3, 2.2)

    def spoil(log: Log, run: RunName) -> Log:
        step = s.sensing.every / RATE / factor
        t = np.arange(0.0, log.t[-1], step)
        rows = np.searchsorted(log.t, t, side="right") - 1
        return Log(t, log.q[rows], log.torque[rows])

    return spoil, f"rows read {factor:.2f} times as often as they change"


def _joint_changed(s: Setup, change: Callable[[Array, Log], Array]) -> Spoil:
    """Another torque (N,) of the joint of the case."""

    def spoil(log: Log, run: RunName) -> Log:
        out = log.torque.copy()
        out[:, s.joint] = change(out[:, s.joint], log)
        return replace(log, torque=out)

    return spoil


def _rectified(s: Setup) -> Spoiled:
    spoil = _joint_changed(s, lambda x, log: np.abs(x) * np.sign(np.gradient(log.q[:, s.joint], log.t)))
    return spoil, f"the torque of {s.name} logged without its sign, with that of the velocity"


def _crosstalk(s: Setup) -> Spoiled:
    other = s.joint - 1 if s.joint else 1
    share = s.between(0.1, 0.2) * s.rms[s.joint] / s.rms[other]
    spoil = _joint_changed(s, lambda x, log: x + share * log.torque[:, other])
    return spoil, f"sensor of {s.name} shows {100 * share:.2g} % of the torque of {s.plant.truth.coordinates[other]}"


def _clock_rate(s: Setup) -> Spoiled:
    factor = 1.0 + 0.1 * s.sign
    return lambda log, run: replace(log, t=factor * log.t), f"time stamps scaled by {factor:.1f}"


def _zeros(s: Setup) -> Spoiled:
    turning = [j for j, x in enumerate(s.plant.truth.joints) if x.kind == "revolute"]
    joints = turning[1:3] if len(turning) > 2 else turning[-1:]
    shift = np.where(np.isin(np.arange(s.plant.truth.n), joints), np.radians(90.0 * s.sign), 0.0)
    names = " and ".join(s.plant.truth.coordinates[j] for j in joints)
    return lambda log, run: replace(log, q=log.q + shift), f"zeros of {names} off by {90 * s.sign:.0f} degrees"


def slipping_springs(q: Array, distance: float | Array) -> Array:
    """Share of Coulomb friction (N, joint), from -1 to 1, of springs that slip around a distance (Iwan)."""
    lengths = np.multiply.outer([0.5, 1.0, 1.5], distance * np.ones(q.shape[1]))
    bent = np.empty((len(q), *lengths.shape))
    bent[0] = np.sign(q[1] - q[0])
    for k, step in enumerate(np.diff(q, axis=0)):
        bent[k + 1] = np.clip(bent[k] + step / lengths, -1.0, 1.0)
    return np.asarray(bent.mean(axis=1))


def _presliding(s: Setup) -> Spoiled:
    distance = s.between(2e-3, 8e-3)
    slides = np.array([x.kind == "prismatic" for x in s.plant.truth.joints])
    drives = s.plant.drives

    def spoil(log: Log, run: RunName) -> Log:
        traces = s.good[run]
        soft = slipping_springs(traces.q, np.where(slides, 0.1 * distance, distance))
        change = drives.coulomb * (soft - np.tanh(drives.slope * traces.v))
        return replace(log, torque=log.torque + change[:: s.sensing.every])

    return spoil, f"friction builds up over {1e3 * distance:.1f} mrad after reversals"


def _contact(s: Setup) -> Spoiled:
    """Somebody touches the last link: twice while the robot is fitted, once in the other run."""
    robot, width = s.plant.truth, s.between(0.08, 0.3)
    hand = robot.links[-1].name

    def spoil(log: Log, run: RunName) -> Log:
        rng, end = s.rng(run), float(log.t[-1])
        arms = frame_jacobian(robot, log.q, hand)[:, :3]
        torque = log.torque.copy()
        for at in rng.uniform(0.1 * end, 0.9 * end, 2 if run == "training" else 1):
            pulse = np.clip(1.0 - ((log.t - at) / width) ** 2, 0.0, None)
            direction = rng.standard_normal(3)
            push = np.einsum("nij,i->nj", arms, direction) * pulse[:, None]
            torque += push * np.max(s.rms) / np.max(np.abs(push))
        return replace(log, torque=torque)

    return spoil, f"bumps of {2e3 * width:.0f} ms against the last link, as large as the torque"


def turned(s: Setup) -> tuple[float, float]:
    """Factors of the positions and of the torque of the turning joint in the log."""
    return {Fault.POSITION_SIGN: (-1.0, 1.0), Fault.JOINT_REVERSED: (-1.0, -1.0)}.get(
        s.fault, (1.0 + 0.1 * s.sign, 1.0) if s.fault is Fault.GEAR_RATIO else (1.0, 1.0)
    )


def _turned(s: Setup) -> Spoiled:
    one, name = np.arange(s.plant.truth.n) == s.turning_joint, s.plant.truth.coordinates[s.turning_joint]
    q, torque = (np.where(one, factor, 1.0) for factor in turned(s))
    words = f"positions of {name} times {q.min() if q.min() < 1 else q.max():.2g}"
    words += ", and its torque reversed" if torque.min() < 0 else ""
    return lambda log, run: replace(log, q=q * log.q, torque=torque * log.torque), words


def _coarse(s: Setup) -> Spoiled:
    bits = 9 + round(2 * s.u)
    slides = np.array([x.kind == "prismatic" for x in s.plant.truth.joints])
    step = np.where(slides, 1e-3, 2 * np.pi / 2**bits)
    return lambda log, run: replace(log, q=step * np.round(log.q / step)), f"encoders of {bits} bits per revolution"


def _stuck(s: Setup) -> Spoiled:
    def spoil(log: Log, run: RunName) -> Log:
        q, start = log.q.copy(), int(len(log.q) * s.between(0.2, 0.7))
        held = slice(start, start + len(q) // 10)
        q[held, s.joint] = q[start, s.joint]
        return replace(log, q=q)

    return spoil, f"position of {s.name} frozen for two seconds"


def _wrapped(s: Setup) -> Spoiled:
    j = s.turning_joint
    middle = s.good["training"].q[:, j].mean()

    def spoil(log: Log, run: RunName) -> Log:
        q = log.q.copy()
        q[:, j] = (q[:, j] - middle) % (2 * np.pi)
        return replace(log, q=q)

    return spoil, f"angle of {s.plant.truth.coordinates[j]} wrapped in the middle of its range"


def _commanded(s: Setup) -> Spoiled:
    def spoil(log: Log, run: RunName) -> Log:
        return replace(log, q=s.plant.reference(s.seed, run).q[:: s.sensing.every])

    return spoil, "the log has the commanded positions"


def _clock_jump(s: Setup) -> Spoiled:
    jump, at = s.between(0.5, 3.0), s.between(0.3, 0.7)
    return (
        lambda log, run: replace(log, t=log.t + jump * (np.arange(len(log.t)) > at * len(log.t))),
        f"the clock was set forward by {jump:.1f} s",
    )


def _held(s: Setup) -> Spoiled:
    period = s.between(0.04, 0.1)

    def spoil(log: Log, run: RunName) -> Log:
        last = np.searchsorted(log.t, np.floor(log.t / period + 1e-9) * period, side="right") - 1
        return replace(log, torque=log.torque[np.maximum(last, 0)])

    return spoil, f"torques renewed every {1e3 * period:.0f} ms only"


def _drifting(s: Setup) -> Spoiled:
    size = s.between(0.15, 0.4) * s.rms[s.joint]
    spoil = _joint_changed(s, lambda x, log: x + size * (log.t / log.t[-1] - 0.5))
    return spoil, f"zero of the torque of {s.name} drifts by {size:.2g} in a run"


def _tone(s: Setup) -> Spoiled:
    frequency, size = s.between(2.0, 9.0), s.between(0.08, 0.15)

    def spoil(log: Log, run: RunName) -> Log:
        phase = s.rng(run).uniform(0, 2 * np.pi)
        tone = np.sin(2 * np.pi * frequency * log.t + phase)[:, None]
        return replace(log, torque=log.torque + size * s.rms * tone * (np.arange(len(s.rms)) == s.joint))

    return spoil, f"an aliased vibration of {frequency:.1f} Hz in the torque of {s.name}"


def _one_late(s: Setup) -> Spoiled:
    late = s.between(0.01, 0.03)
    samples = max(2, round(late * RATE / s.sensing.every))
    spoil = _joint_changed(s, lambda x, _: np.concatenate([np.full(samples, x[0]), x[:-samples]]))
    return spoil, f"torque of {s.name} late by {1e3 * samples * s.sensing.every / RATE:.0f} ms"


LOG_FAULTS: dict[Fault, Callable[[Setup], Spoiled]] = {
    Fault.TORQUE_GAIN: _logged,
    Fault.TORQUE_SIGN: _logged,
    Fault.TORQUE_DELAY: _delay,
    Fault.TORQUE_LOW_PASS: _low_pass,
    Fault.TORQUE_CLIPPED: _clipped,
    Fault.TORQUE_QUANTIZED: _quantized,
    Fault.TORQUE_SPIKES: _spikes,
    Fault.GRAVITY_COMPENSATED: _compensated,
    Fault.COMPUTED_TORQUE: _computed,
    Fault.ENCODER_OFFSET: _encoder,
    Fault.DEGREES: _degrees,
    Fault.JOINTS_SWAPPED: _order,
    Fault.STAMP_JITTER: _jitter,
    Fault.SAMPLES_LOST: _lost,
    Fault.ROWS_REPEATED: _repeated,
    Fault.TORQUE_ASYMMETRIC: _logged,
    Fault.TORQUE_RECTIFIED: _rectified,
    Fault.TORQUE_NONLINEAR: _logged,
    Fault.CROSSTALK: _crosstalk,
    Fault.CLOCK_RATE: _clock_rate,
    Fault.ZEROS_TURNED: _zeros,
    Fault.POSITION_SIGN: _turned,
    Fault.JOINT_REVERSED: _turned,
    Fault.GEAR_RATIO: _turned,
    Fault.POSITION_COARSE: _coarse,
    Fault.POSITION_STUCK: _stuck,
    Fault.POSITION_WRAPPED: _wrapped,
    Fault.POSITION_COMMANDED: _commanded,
    Fault.CLOCK_JUMP: _clock_jump,
    Fault.TORQUE_UNIT: lambda s: (_torque(lambda x: 1e3 * x), "torques in mN m"),
    Fault.TORQUE_ZERO: lambda s: (_joint_changed(s, lambda x, _: 0.0 * x), f"no torque of {s.name} was logged"),
    Fault.TORQUE_HELD: _held,
    Fault.TORQUE_DRIFT: _drifting,
    Fault.TORQUE_TONE: _tone,
    Fault.ONE_TORQUE_LATE: _one_late,
    Fault.PRESLIDING: _presliding,
    Fault.CONTACT: _contact,
}


def disguised(s: Setup, log: Log) -> tuple[Log, str]:
    """The training run again, as another file."""
    n = len(log.t)
    kind = s.seed // 2 % 5  # the seeds of both halves of the study have all of them
    if kind == 0:
        return log, "the fitted run under another name"
    if kind == 1:
        t = np.arange(0.0, log.t[-1], 1.25 * s.sensing.every / RATE)
        q, torque = (scipy.interpolate.CubicSpline(log.t, x)(t) for x in (log.q, log.torque))
        return Log(t, q, torque), "the fitted run resampled to 80 % of its rate"
    if kind == 2:
        part = slice(n // 5, n - n // 10)
        return Log(log.t[part] - log.t[part][0], log.q[part], log.torque[part]), "70 % of the fitted run"
    if kind == 3:
        return Log(log.t[:-1], log.q[1:], log.torque[1:]), "the fitted run shifted by one sample"
    degrees = np.round(np.degrees(log.q), 4)
    return Log(
        log.t, np.radians(degrees), log.torque.astype(np.float32).astype(float)
    ), "the fitted run, digits rounded"
