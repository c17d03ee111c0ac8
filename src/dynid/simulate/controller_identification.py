"""An unknown linear controller from a log of reference, position and torque.

A log at the controller's rate holds all that a law saw: its torque of a tick is a linear function of the errors and
positions of this tick and those before. Laws of every known structure are fitted to the first part of each run and judged
on the rest, by what they would have commanded there on their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.recording.recording import Recording, Run
from dynid.robot.model import Robot
from dynid.signals.filters import derivative
from dynid.simulate.laws import Feedforward, LinearController
from dynid.simulate.sensors import Sensors

__all__ = ["ControllerIdentification", "IdentifiedLaw", "identify_controller"]

Array = NDArray[np.float64]

_HELD_OUT = 0.3
_CUTOFFS = 12
_FLOOR = 1e-18  # of the variance of the torque; fits below it are equally exact
_MEMORY = 1e-3  # a low-pass of a share below it is no longer told from an integral
STRUCTURES = ("p", "pd", "cascade", "pid", "arx")


@dataclass(frozen=True, eq=False)
class IdentifiedLaw:
    """The law of one joint: its structure, gains and their deviations, and the torque variance it explains unseen (%)."""

    joint: str
    structure: str
    gains: dict[str, float]
    sigma: dict[str, float]
    fit: float


@dataclass(frozen=True, eq=False)
class ControllerIdentification:
    """`controller` repeats the loop with `sensors`: speeds by plain differences, answers `sensors.delay` ticks late."""

    controller: LinearController
    laws: tuple[IdentifiedLaw, ...]
    delay: int

    @property
    def sensors(self) -> Sensors:
        return Sensors(delay=self.delay)

    def summary(self) -> str:
        """A line a joint: structure, fit on unseen time, gains with their deviations."""
        lines = [f"controller at {self.controller.rate:g} Hz, delay of {self.delay} samples"]
        for law in self.laws:
            gains = ", ".join(f"{name} {value:.4g} ± {law.sigma[name]:.2g}" for name, value in law.gains.items())
            lines.append(f"{law.joint}: {law.structure}, explains {law.fit:.2f} % of unseen torque; {gains}")
        return "\n".join(lines)


def identify_controller(
    recording: Recording | Run,
    robot: Robot | None = None,
    *,
    feedforward: Feedforward = "none",
    structures: Sequence[str] = STRUCTURES,
    max_delay: int = 4,
    max_order: int = 3,
) -> ControllerIdentification:
    """Find the law of each joint from runs with reference, position and torque at the controller's own rate.

    Candidates: p, pd, cascade (P-P), pid, each with or without a low-pass on the speed, and arx, any law over past
    errors, speeds and torques up to `max_order`. Delays up to `max_delay` samples. The one with the best Bayes criterion
    on the last 30 % of every run is taken. Where the controller is known to feed the torques of a model forward, give
    `robot` and `feedforward` ("gravity" or "full"): they are taken off along the reference first.
    """
    unknown = [s for s in structures if s not in STRUCTURES]
    if unknown or not structures:
        raise DataError(f"controller structure '{(unknown or [''])[0]}' is unknown: use {', '.join(STRUCTURES)}")
    runs = recording.runs if isinstance(recording, Recording) else (recording,)
    rate = _common_rate(runs)
    logs = [_log(run, rate, robot, feedforward) for run in runs]
    n = logs[0].u.shape[1]
    names = recording.joints if isinstance(recording, Recording) else tuple(f"joint{i + 1}" for i in range(n))
    shapes = [(s, 0) for s in structures if s != "arx"]
    shapes += [("arx", m) for m in range(1, max_order + 1)] if "arx" in structures else []
    found = []
    for delay in range(max_delay + 1):
        best = [min((_fit(logs, i, delay, *shape) for shape in shapes), key=lambda fit: fit.score) for i in range(n)]
        found.append((sum(fit.score for fit in best), delay, best))
    _, delay, fits = min(found, key=lambda x: x[0])
    laws = tuple(_law(name, fit, logs, i, delay) for i, (name, fit) in enumerate(zip(names, fits, strict=True)))
    realised = [_realised(law, fit.share, rate) for law, fit in zip(laws, fits, strict=True)]
    return ControllerIdentification(_joined(realised, rate, robot, feedforward), laws, delay)


@dataclass(frozen=True, eq=False)
class _Log:
    """Errors, speeds by differences, speeds of the reference, torques without what is fed forward, each (N, n)."""

    rate: float
    e: Array
    v: Array
    v_ref: Array
    u: Array


@dataclass(frozen=True, eq=False)
class _Fit:
    structure: str
    order: int
    share: float  # of a new speed that the low-pass lets through, 1 for no filter
    theta: Array
    score: float
    fit: float


def _common_rate(runs: Sequence[Run]) -> float:
    rate = 1.0 / runs[0].step
    for run in runs:
        for signal in ("reference", "torque"):
            if getattr(run, signal) is None:
                raise DataError(f"run '{run.name}' has no {signal}, without which its controller cannot be found")
        if np.abs(np.diff(run.t) * rate - 1.0).max() > 0.01:
            raise DataError(f"run '{run.name}' is not sampled evenly at {rate:g} Hz, as a controller's log must be")
        if len(run) < _LEAST:
            raise DataError(f"run '{run.name}' has {len(run)} samples; a controller needs at least {_LEAST}")
    return rate


def _log(run: Run, rate: float, robot: Robot | None, feedforward: Feedforward) -> _Log:
    assert run.reference is not None and run.torque is not None
    v_ref = derivative(run.reference, rate)
    ahead = LinearController(
        rate, *_nothing(run.q.shape[1]), feedforward=feedforward, model=None if feedforward == "none" else robot
    ).torques_ahead(run.reference, v_ref, derivative(v_ref, rate))
    v = np.diff(run.q, axis=0, prepend=run.q[:1]) * rate
    v[0] = v[1]
    return _Log(rate, run.reference - run.q, v, v_ref, run.torque - ahead if len(ahead) else run.torque)


def _fit(logs: Sequence[_Log], i: int, delay: int, structure: str, order: int) -> _Fit:
    """Fit joint i to the first part of every run, with the best low-pass of its speed, and judge it on the rest."""
    filtered = structure in ("pd", "cascade", "pid")

    def loss(cutoff: float) -> float:
        return _squares(logs, i, delay, structure, order, _share(cutoff, logs[0].rate))[1]

    fits = [_judged(logs, i, delay, structure, order, 1.0)]
    if filtered:
        grid = logs[0].rate * np.geomspace(2e-3, 0.5, _CUTOFFS)
        k = int(np.clip(np.argmin([loss(x) for x in grid]), 1, _CUTOFFS - 2))
        found = scipy.optimize.minimize_scalar(
            lambda x: loss(np.exp(x)), bounds=np.log(grid[[k - 1, k + 1]]), method="bounded", options={"xatol": 1e-6}
        )
        fits.append(_judged(logs, i, delay, structure, order, _share(np.exp(found.x), logs[0].rate)))
    return min(fits, key=lambda fit: fit.score)


def _squares(logs: Sequence[_Log], i: int, delay: int, structure: str, order: int, share: float) -> tuple[Array, float]:
    """Coefficients over the first part of every run, and their sum of squares there."""
    X, y = _stacked(logs, i, delay, structure, order, share, slice(0, 1))
    theta = np.linalg.lstsq(X, y, rcond=None)[0]
    return theta, float(np.sum((y - X @ theta) ** 2))


def _judged(logs: Sequence[_Log], i: int, delay: int, structure: str, order: int, share: float) -> _Fit:
    theta, _ = _squares(logs, i, delay, structure, order, share)
    errors, torques = [], []
    for r, log in enumerate(logs):
        X, y = _columns(log, i, delay, structure, order, share, r, len(logs))
        first = _split(len(y))
        told = X @ theta
        if structure == "arx":  # on its own: from its own torques, not the recorded ones
            told = _on_its_own(theta, order, X, y)
        errors.append((y - told)[first:])
        torques.append(y[first:])
    error, torque = np.concatenate(errors), np.concatenate(torques)
    spread = float(np.var(torque)) or 1.0
    miss = float(np.mean(error**2)) if np.all(np.isfinite(error)) else np.inf
    unknowns = len(theta) + (share < 1.0)
    score = len(error) * np.log(max(miss, _FLOOR * spread)) + unknowns * np.log(len(error))
    return _Fit(structure, order, share, theta, score, 100.0 * (1.0 - miss / spread))


def _on_its_own(theta: Array, order: int, X: Array, y: Array) -> Array:
    """What an ARX law commands given its first torques and all it measures."""
    a = np.concatenate([[1.0], theta[len(theta) - order :]])
    driven = X[:, : len(theta) - order] @ theta[: len(theta) - order]
    start = -X[0, len(theta) - order :]
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(scipy.signal.lfilter([1.0], a, driven, zi=scipy.signal.lfiltic([1.0], a, start))[0])


def _split(samples: int) -> int:
    return round((1 - _HELD_OUT) * samples)


def _stacked(
    logs: Sequence[_Log], i: int, delay: int, structure: str, order: int, share: float, part: slice
) -> tuple[Array, Array]:
    """Columns and torques of all runs: their first part, or with an open slice all of them."""
    pieces = [_columns(log, i, delay, structure, order, share, r, len(logs)) for r, log in enumerate(logs)]
    ends = [_split(len(y)) if part.stop else len(y) for _, y in pieces]
    X, y = ([p[k][:end] for p, end in zip(pieces, ends, strict=True)] for k in (0, 1))
    return np.vstack(X), np.concatenate(y)
