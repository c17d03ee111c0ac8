"""Drive gains: how many N m an ampere makes, joint by joint, from runs with and without a payload that is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from dynid.calibration.gain_fit import METHODS, GainFit, GainRows, Method, NegativeGain, output, tls, wls
from dynid.calibration.loaded import (
    LoadedRows,
    channel_residuals,
    drive_columns,
    independent_rows,
    load_columns,
    short_of_rows,
)
from dynid.calibration.payload import Payload
from dynid.errors import DataError
from dynid.identification.observation import Observation, observe
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.signals.settings import Signals

__all__ = ["DriveGains", "identify_drive_gains", "reference_gains"]

Array = NDArray[np.float64]

# A gain is shown if its deviation, by the data alone, is below this share of it.
_SHOWN = 0.1
# Some gain must be this many of its deviations away from zero for the known payload to show at all.
_SEEN = 5.0
_ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class DriveGains:
    """Gains (joint,) in N m/A (N/A), their covariance (joint, joint), and which of them the data show by themselves.

    `beta` (b,) are the base parameters of the arm found with them and `payload` (10,) the payload's numbers, known and
    found. `relative_error` (joint,) is the share of the currents that stays unexplained: no scale of gains changes it.
    `offset` (joint,) is the torque without current, where torques were measured.
    """

    joints: tuple[str, ...]
    gains: Array
    covariance: Array
    shown: tuple[bool, ...]
    method: str
    relative_error: Array
    base: BaseParameters | None = None
    beta: Array | None = None
    payload: Array | None = None
    offset: Array | None = None
    notes: tuple[str, ...] = ()

    @property
    def std(self) -> Array:
        """Standard deviation of each gain (joint,)."""
        return np.asarray(np.sqrt(np.maximum(np.diag(self.covariance), 0.0)))

    @property
    def parameters(self) -> Array | None:
        """Standard parameters (p,) of the arm: those with the base parameters found that move least from the prior."""
        return None if self.base is None or self.beta is None else self.base.standard(self.beta)

    def apply(self, recording: Recording) -> Recording:
        """The recording with torques made from its currents."""
        if recording.joints != self.joints:
            raise DataError(f"gains are of {', '.join(self.joints)}, the recording has {', '.join(recording.joints)}")
        shift = 0.0 if self.offset is None else self.offset
        currents = of_currents(recording).runs
        runs = tuple(replace(run, torque=np.asarray(run.torque) * self.gains + shift) for run in currents)
        return Recording(recording.joints, runs)

    def summary(self) -> str:
        """A table worth reading."""
        lines = [f"drive gains by {self.method}", "  joint                      gain  deviation  shown  unexplained"]
        for j, g, s, shown, e in zip(self.joints, self.gains, self.std, self.shown, self.relative_error, strict=True):
            lines.append(f"  {j:<20} {g:>10.5g} {s:>10.2g}  {'yes' if shown else 'no':<5}  {100 * e:.2f} %")
        return "\n".join([*lines, *(f"  note: {n}" for n in self.notes)])

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data; null where nothing is known."""

        def plain(x: float) -> float | None:
            return float(x) if np.isfinite(x) else None

        by_joint = {
            j: {"gain": float(g), "std": plain(s), "shown": shown, "relative_error": plain(e)}
            for j, g, s, shown, e in zip(
                self.joints, self.gains, self.std, self.shown, self.relative_error, strict=True
            )
        }
        return {
            "method": self.method,
            "joints": by_joint,
            "covariance": [[plain(x) for x in row] for row in self.covariance],
            "payload": None if self.payload is None else self.payload.tolist(),
            "offset": None if self.offset is None else self.offset.tolist(),
            "base_parameters": None if self.beta is None else self.beta.tolist(),
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        return f"DriveGains({self.method}, {', '.join(f'{g:.4g}' for g in self.gains)})"


def identify_drive_gains(
    robot: Robot,
    unloaded: Recording,
    loaded: Recording,
    *,
    payload: float | ArrayLike | Payload,
    link: str,
    method: Method = "output",
    shared: Sequence[Sequence[str]] = (),
    positive: bool = True,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    prior: ArrayLike | None = None,
    prior_std: ArrayLike | None = None,
    free: Sequence[str] = (),
    signals: Signals | None = None,
) -> DriveGains:
    """Identify drive gains from currents, without and with a payload on a link.

    Without a known payload the currents leave a common factor open. `payload` is its mass in kg, or its ten numbers in
    the link's frame with nan for those unknown: these are found too. `method`: "output" predicts currents and is not
    biased by their errors; "wls" and "tls" are the classical linear ones. `shared` lists groups of joints with equal
    motors, which have one gain. `positive` refuses negative gains, naming the joint whose current counts the other way;
    `bounds` are the smallest and largest gain, and `prior` with `prior_std` (one number, or one a joint) is what is
    known beforehand of gains that the data do not show. `free` names drive parameters that may differ between runs.
    """
    if method not in METHODS:
        raise DataError(f"method '{method}' is unknown: use {', '.join(METHODS)}")
    if robot.base != "fixed":
        raise DataError(f"drive gains need a base that is bolted down, that of '{robot.name}' is {robot.base}")
    if method == "tls" and (bounds is not None or prior is not None):
        raise DataError("total least squares knows neither bounds nor a prior; use output or wls")
    known = _known(payload)
    base = base_parameters(robot, channels="torque")
    columns = load_columns(base, link)
    settings = signals or Signals()
    before, after = (observe(robot, of_currents(x), settings, base) for x in (unloaded, loaded))
    unknown = np.isnan(known)
    moved = columns @ np.where(unknown, 0.0, known)
    load = np.hstack([columns[:, unknown], moved[:, None]])
    rows = LoadedRows(base, before.factors, after.factors, drive_columns(base, free), load)
    with threadpool_limits(1, "blas"):
        noise, worth, total = _noise(rows, before, after)
        group = _groups(robot.coordinates, shared)
        gains = int(group.max()) + 1
        low, high = (0.0, np.inf) if bounds is None else bounds
        given = GainRows(
            rows.channels,
            group,
            noise,
            worth,
            prior=_each(prior if prior is not None else 0.0, group, gains, "prior"),
            prior_std=_prior_std(prior, prior_std, group, gains),
            lower=np.maximum(_each(low, group, gains, "lower bound"), 0.0),
            upper=_each(high, group, gains, "upper bound", finite=False),
        )
        if np.any(given.lower >= given.upper):
            raise DataError("the lower bound of a gain must lie below its upper one")
        try:
            found = {"output": output, "wls": wls}[method](given, positive) if method != "tls" else tls(given)
            if method == "tls" and positive and np.any(found.gains < 0):
                raise NegativeGain(int(np.argmax(found.gains < 0)))
        except NegativeGain as wrong:
            names = [j for j, k in zip(robot.coordinates, group, strict=True) if k == wrong.group]
            raise DataError(
                f"the gain of {' and '.join(names)} comes out negative: the current counts the other way there; read "
                "it with sign={'current': ...}, or let gains be negative with positive=False"
            ) from None
    _require_scale(given, found, link)
    return _result(robot, rows, given, found, known, method, total, worth)


def reference_gains(recording: Recording) -> DriveGains:
    """Gains and offsets of recordings that have currents and measured torques: torque = gain * current + offset."""
    pairs = []
    for run in recording.runs:
        if run.current is None or run.torque is None:
            raise DataError(f"run '{run.name}' needs currents and measured torques for gains by reference")
        pairs.append((run.current, run.torque))
    current, torque = (np.concatenate([p[k] for p in pairs]) for k in (0, 1))
    gains, offsets, variances, errors = [], [], [], []
    for i, tau in zip(current.T, torque.T, strict=True):
        if np.ptp(i) == 0:
            raise DataError("a current that never changes tells no gain")
        X = np.column_stack([i, np.ones_like(i)])
        x = np.linalg.lstsq(X, tau, rcond=None)[0]
        rest = tau - X @ x
        worth = max(independent_rows(rest) - 2.0, 1.0)
        spread = float(np.sum((i - i.mean()) ** 2)) / len(i)
        gains.append(x[0])
        offsets.append(x[1])
        variances.append(float(rest @ rest) / len(i) / worth / spread)
        errors.append(float(np.linalg.norm(rest)) / max(float(np.linalg.norm(tau)), 1e-300))
    found, covariance = np.array(gains), np.diag(variances)
    shown = np.sqrt(variances) < _SHOWN * np.abs(found)
    negative = [j for j, g in zip(recording.joints, found, strict=True) if g < 0]
    notes = [f"negative gain of {', '.join(negative)}: current and torque count opposite ways"] if negative else []
    return DriveGains(
        recording.joints,
        found,
        covariance,
        tuple(bool(x) for x in shown),
        "reference",
        np.array(errors),
        offset=np.array(offsets),
        notes=tuple(notes),
    )


def of_currents(recording: Recording) -> Recording:
    """The recording with its currents where torques are looked for."""
    for run in recording.runs:
        if run.current is None:
            raise DataError(f"run '{run.name}' has no currents: name their columns, columns={{'current': ...}}")
    return Recording(recording.joints, tuple(replace(run, torque=run.current) for run in recording.runs))


def _known(payload: float | ArrayLike | Payload | None) -> Array:
    """Ten numbers with nan for those that are not known."""
    if isinstance(payload, Payload):
        return payload.inertial
    why = "without a payload that is known, currents leave a common factor of all gains open"
    if payload is None:
        raise DataError(f"{why}: give its mass, or its ten numbers")
    try:
        given = np.asarray(payload, dtype=float)
    except (TypeError, ValueError):
        raise DataError(f"a payload is a mass or ten numbers, got {payload!r:.60}") from None
    if given.ndim == 0:
        given = np.concatenate([[given], np.full(9, np.nan)])
    if given.shape != (10,):
        raise DataError(f"a payload is a mass or ten numbers, got shape {given.shape}")
    if np.isinf(given).any():
        raise DataError("the payload has a number that is not finite")
    if not np.any(np.nan_to_num(given)):
        raise DataError(f"{why}: nothing that is known of it differs from zero")
    if given[0] <= 0:
        raise DataError(f"the mass of a payload is positive, got {given[0]:g} kg")
    return given


def _groups(joints: Sequence[str], shared: Sequence[Sequence[str]]) -> NDArray[np.intp]:
    """Number of the gain that each joint has."""
    leader = list(range(len(joints)))
    taken: set[str] = set()
    for names in shared:
        wrong = [n for n in names if n not in joints]
        if wrong:
            raise DataError(f"shared gains name no joint '{wrong[0]}', the joints are {', '.join(joints)}")
        again = [n for n in names if n in taken]
        if again:
            raise DataError(f"joint '{again[0]}' is in two groups of shared gains")
        taken.update(names)
        for n in names:
            leader[joints.index(n)] = joints.index(names[0])
    return np.unique(leader, return_inverse=True)[1]


def _each(value: ArrayLike, group: NDArray[np.intp], gains: int, what: str, finite: bool = True) -> Array:
    """One number a gain from one for all or one a joint; equal motors take their mean."""
    try:
        given = np.broadcast_to(np.asarray(value, dtype=float), group.shape)
    except (TypeError, ValueError):
        raise DataError(f"{what} of gains needs one number, or {len(group)}") from None
    if np.isnan(given).any() or (finite and not np.all(np.isfinite(given))):
        raise DataError(f"{what} of gains must be numbers")
    return np.array([given[group == k].mean() for k in range(gains)])


def _prior_std(prior: ArrayLike | None, std: ArrayLike | None, group: NDArray[np.intp], gains: int) -> Array:
    if (prior is None) != (std is None):
        raise DataError("a prior of gains needs its standard deviation, prior_std, and the other way round")
    if std is None:
        return np.full(gains, np.inf)
    out = _each(std, group, gains, "prior_std", finite=False)
    if np.any(out <= 0):
        raise DataError("prior_std of gains must be positive")
    return out


def _noise(rows: LoadedRows, before: Observation, after: Observation) -> tuple[Array, Array, Array]:
    """Deviation of an independent row of every joint's current, how many there are, and how many rows, (joint,).

    Every joint is explained by parameters of its own here: what is left is not the doing of gains.
    """
    b = rows.base.count
    loads = np.hstack([rows.changed, rows.load])
    free, lost, touched = [], [], []
    for block in rows.channels:
        norms = np.linalg.norm(block[:, :-1], axis=0)
        scale = np.where(norms > 0, norms, 1.0)
        x = np.linalg.lstsq(block[:, :-1] / scale, block[:, -1], rcond=1e-10)[0] / scale
        free.append(x)
        lost.append(float(np.linalg.norm(block[:, -1] - block[:, :-1] @ x)))
        touched.append(np.linalg.matrix_rank(block[:, :-1] / scale, tol=1e-8))
    left = zip(
        channel_residuals(before, [x[:b] for x in free]),
        channel_residuals(after, [x[:b] + loads @ x[b:] for x in free]),
        strict=True,
    )
    worth = np.array([independent_rows(u) + independent_rows(v) for u, v in left])
    total = np.array(before.rows, dtype=float) + np.array(after.rows)
    size = np.array([np.linalg.norm(block[:, -1]) for block in rows.channels])
    spread = np.maximum(np.array(lost), _ROUNDING * np.where(size > 0, size, 1.0))
    noise = spread / np.sqrt(np.maximum(total - np.array(touched), 1.0)) * np.sqrt(total / np.maximum(worth, 1.0))
    return noise, worth, total


def _require_scale(rows: GainRows, found: GainFit, link: str) -> None:
    """Raise where no gain at all is told by the data: the known payload does not show in the currents."""
    own = np.sqrt(np.maximum(np.diag(found.own_covariance), 0.0))
    if np.all(own > np.abs(found.gains) / _SEEN) and not np.any(np.isfinite(rows.prior_std)):
        raise DataError(
            f"the currents do not show the known payload on '{link}': gains cannot be scaled by it; move more, or hang "
            "a heavier payload on a link further out"
        )


def _result(
    robot: Robot,
    rows: LoadedRows,
    given: GainRows,
    found: GainFit,
    known: Array,
    method: str,
    total: Array,
    worth: Array,
) -> DriveGains:
    gains = found.gains[given.group]
    own = np.sqrt(np.maximum(np.diag(found.own_covariance), 0.0))[given.group]
    pull = np.zeros(len(gains)) if found.pull is None else found.pull[given.group]
    shown = (own < _SHOWN * np.abs(gains)) & (pull < _SHOWN)
    payload = known.copy()
    payload[np.isnan(known)] = found.unknowns[rows.arm :]
    whole = np.concatenate([found.unknowns, [1.0]])
    lost = [
        float(np.linalg.norm(block[:, :-1] @ whole / g - block[:, -1]))
        / max(float(np.linalg.norm(block[:, -1])), 1e-300)
        for block, g in zip(given.channels, gains, strict=True)
    ]
    notes = short_of_rows(robot.coordinates, [int(n) for n in total], worth.tolist())
    held = [j for j, k in zip(robot.coordinates, given.group, strict=True) if k in found.held]
    if held:
        notes.append(f"at their bounds: {', '.join(held)}")
    pulled = [f"{j} {100 * x:.0f} %" for j, x in zip(robot.coordinates, pull, strict=True) if x >= 0.01]
    if pulled:
        notes.append(
            f"errors of the currents pull gains towards zero here: {', '.join(pulled)}; output is free of that"
        )
    hidden = [j for j, s in zip(robot.coordinates, shown, strict=True) if not s]
    if hidden:
        notes.append(
            f"not shown by these runs: the gain of {', '.join(hidden)}; share it with an equal motor, or give a prior"
        )
    return DriveGains(
        robot.coordinates,
        gains,
        found.covariance[np.ix_(given.group, given.group)],
        tuple(bool(x) for x in shown),
        method,
        np.array(lost),
        rows.base,
        found.unknowns[: rows.base.count],
        payload,
        notes=tuple(notes),
    )
