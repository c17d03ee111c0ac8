"""Drive gains in N m/A per joint, from runs with and without a known payload.

    g_j i_j = W_j beta without the payload,    g_j i_j = W_j (beta + K_L p) with it, p known in part

Source: Gautier and Briot, Global Identification of Joint Drive Gains and Dynamic Parameters of Robots (2014).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.calibration.gain_fit import METHODS, GainFit, GainRows, Method, NegativeGain, output, tls, wls
from dynid.calibration.loaded import LoadedRows, channel_residuals, drive_columns, short_of_rows
from dynid.calibration.payload import Payload
from dynid.errors import (
    Duplicate,
    DynidError,
    InvalidShape,
    InvalidType,
    InvalidValue,
    Mismatch,
    MissingArgument,
    MissingData,
    NotApplicable,
    NotIdentifiable,
    UnknownName,
    keyword,
    named,
)
from dynid.identification.observation import Observation, time_parts
from dynid.identification.observing import observe
from dynid.parameters.base import BASE, BaseParameters, base_parameters
from dynid.parameters.loads import load_columns
from dynid.recording.recording import Recording
from dynid.results import SavedResult, Table, about, framed
from dynid.robot.model import Robot
from dynid.signals.autocorrelation import independent_rows
from dynid.signals.settings import Signals
from dynid.threads import one_blas_thread

__all__ = ["DriveGains", "identify_drive_gains", "reference_gains"]

Array = NDArray[np.float64]

# A gain is identifiable if its standard deviation, from the data alone, is below this share of it.
_SHOWN = 0.1
# Some gain must differ from zero by this many standard deviations, or the payload is not visible in the currents.
_SEEN = 5.0
_ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class DriveGains(SavedResult):
    """Identified drive gains."""

    kind = "gains"
    tables = (
        Table(
            "drive gains",
            "joint",
            framed(joint="joints", gain="gains", std="std", shown="shown", relative_error="relative_error"),
        ),
    )

    joints: tuple[str, ...] = field(metadata=about("Joint names."))
    gains: Array = field(metadata=about("Gains, N m/A (N/A for prismatic joints).", size=("joint",)))
    covariance: Array = field(metadata=about("Their covariance.", size=("joint", "joint")))
    shown: tuple[bool, ...] = field(metadata=about("Which gains the data identify by themselves."))
    method: str = field(metadata=about("Estimator that was used."))
    relative_error: Array = field(
        metadata=about(
            "Share of the currents that is not explained; it does not depend on the scale of the gains.",
            size=("joint",),
        )
    )
    base: BaseParameters | None = field(default=None, metadata=about("Base parameters of the arm.", codec=BASE))
    beta: Array | None = field(
        default=None, metadata=about("Their values, identified together with the gains.", size=("b",))
    )
    payload: Array | None = field(
        default=None, metadata=about("Inertial parameters of the payload, known and identified.", size=("10",))
    )
    offset: Array | None = field(
        default=None, metadata=about("Torque at zero current, where torques were measured. N m or N.", size=("joint",))
    )
    halves: Array | None = field(
        default=None,
        metadata=about(
            "Gains from the first and from the second half of all runs; None where a half identifies no gains.",
            size=("2", "joint"),
        ),
    )
    at_bounds: tuple[str, ...] = field(default=(), metadata=about("Joints whose gain is at a bound."))
    notes: tuple[str, ...] = field(default=(), metadata=about("Remarks for the user."))

    @property
    def relative_covariance(self) -> Array:
        """Covariance (joint, joint) of the gains relative to themselves, which `identify_payload` takes."""
        return np.asarray(self.covariance / np.outer(self.gains, self.gains))

    @property
    def std(self) -> Array:
        """Standard deviation of each gain (joint,), N m/A."""
        return np.asarray(np.sqrt(np.maximum(np.diag(self.covariance), 0.0)))

    @property
    def parameters(self) -> Array | None:
        """Standard parameters (p,) of the arm with the identified base parameters, closest to the prior."""
        return None if self.base is None or self.beta is None else self.base.standard(self.beta)

    def apply(self, recording: Recording) -> Recording:
        """Convert the currents of a recording to torques.

        Parameters
        ----------
        recording : Recording
            Recording with currents of the same joints.

        Returns
        -------
        Recording
            The recording with torques, N m (N for prismatic joints).
        """
        if recording.joints != self.joints:
            raise Mismatch(
                f"gains are of {', '.join(self.joints)}, the recording has {', '.join(recording.joints)}", "gains"
            )
        shift = 0.0 if self.offset is None else self.offset
        currents = of_currents(recording).runs
        runs = tuple(replace(run, torque=np.asarray(run.torque) * self.gains + shift) for run in currents)
        return replace(recording, runs=runs)

    def summary(self) -> str:
        """A table of the gains with standard deviations."""
        lines = [
            f"drive gains by {self.method}",
            "  joint                      gain        std  identifiable  unexplained",
        ]
        for j, g, s, shown, e in zip(self.joints, self.gains, self.std, self.shown, self.relative_error, strict=True):
            lines.append(f"  {j:<20} {g:>10.5g} {s:>10.2g}  {'yes' if shown else 'no':<12}  {100 * e:.2f} %")
        return "\n".join([*lines, *(f"  note: {n}" for n in self.notes)])

    def to_dict(self) -> dict[str, Any]:
        """All results as plain data; None where a value is not finite."""

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
            "halves": None if self.halves is None else self.halves.tolist(),
            "at_bounds": list(self.at_bounds),
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
    """Identify drive gains from currents, without and with a known payload on a link.

    Without a known payload a common factor of all gains cannot be identified.

    Parameters
    ----------
    robot : Robot
        The arm, with a fixed base.
    unloaded, loaded : Recording
        Runs without and with the payload; they need currents.
    payload : float, array_like of shape (10,) or Payload
        Mass in kg, or inertial parameters in the link frame with nan for the unknown ones, which are identified too.
    link : str
        Link that carries the payload.
    method : {"output", "wls", "tls"}, default "output"
        "output" predicts currents and is not biased by their errors; "wls" and "tls" are the classical linear
        estimators.
    shared : sequence of sequences of str
        Groups of joints with equal motors, which share one gain.
    positive : bool, default True
        Refuse negative gains with an error that names the joint whose current has the opposite sign.
    bounds : tuple of array_like, optional
        Smallest and largest gain, one value or one per joint, N m/A or N/A.
    prior, prior_std : array_like, optional
        Prior gains and their standard deviations, one value or one per joint, for gains that the data do not identify.
    free : sequence of str
        Drive parameters (wildcards) that may differ between the runs.
    signals : Signals, optional
        How runs are filtered.

    Returns
    -------
    DriveGains
        Gains with covariance.

    Raises
    ------
    DataError
        If the payload is not visible in the currents, a gain is negative, or settings contradict each other.
    """
    if method not in METHODS:
        raise UnknownName(f"{named('method')} '{method}' is unknown: use {', '.join(METHODS)}")
    if robot.base != "fixed":
        raise NotApplicable(f"drive gains need a fixed base, that of '{robot.name}' is {robot.base}")
    if method == "tls" and (bounds is not None or prior is not None):
        raise NotApplicable("method tls takes neither bounds nor a prior; use output or wls", "method")
    known = _known(payload)
    base = base_parameters(robot, channels="torque")
    columns = load_columns(base, link)
    settings = signals or Signals()
    before, after = (observe(robot, of_currents(x), signals=settings, base=base) for x in (unloaded, loaded))
    unknown = np.isnan(known)
    moved = columns @ np.where(unknown, 0.0, known)
    load = np.hstack([columns[:, unknown], moved[:, None]])
    rows = LoadedRows(base, before.factors, after.factors, drive_columns(base, free), load)
    with one_blas_thread():
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
            raise InvalidValue("the lower bound of a gain must lie below its upper one", "bounds")
        try:
            found = _fitted(given, method, positive)
        except NegativeGain as wrong:
            names = [j for j, k in zip(robot.coordinates, group, strict=True) if k == wrong.group]
            raise Mismatch(
                f"the gain of {' and '.join(names)} is negative: the current has the opposite sign there; read it "
                f"with {keyword('sign', {'current': -1})}, or allow negative gains with {keyword('positive', False)}"
            ) from None
        _require_scale(given, found, link)
        halves = _halves(rows, given, before, after, method)
    return _result(robot, rows, given, found, halves, known, method, total, worth)


def _fitted(given: GainRows, method: Method, positive: bool) -> GainFit:
    """The gains by one of the methods; raises NegativeGain."""
    if method != "tls":
        return {"output": output, "wls": wls}[method](given, positive)
    found = tls(given)
    if positive and np.any(found.gains < 0):
        raise NegativeGain(int(np.argmax(found.gains < 0)))
    return found


def _halves(rows: LoadedRows, given: GainRows, before: Observation, after: Observation, method: Method) -> Array | None:
    """Gains (2, joint) of the first and of the second half of all runs; None where a half identifies none."""
    found = []
    try:
        for first, second in zip(time_parts(before, 2), time_parts(after, 2), strict=True):
            half = replace(rows, unloaded=first, loaded=second)
            found.append(_fitted(replace(given, channels=half.channels), method, positive=False).gains[given.group])
    except DynidError:
        return None
    return np.array(found)


def reference_gains(recording: Recording) -> DriveGains:
    """Fit torque = gain * current + offset to recordings that have both currents and measured torques.

    Parameters
    ----------
    recording : Recording
        Runs with currents (A) and torques (N m or N).

    Returns
    -------
    DriveGains
        Gains and offsets per joint.

    Raises
    ------
    DataError
        If a run has no currents or no torques, or a current is constant.
    """
    pairs = []
    for run in recording.runs:
        if run.current is None or run.torque is None:
            raise MissingData(f"run '{run.name}' needs currents and measured torques for gains by reference")
        pairs.append((run.current, run.torque))
    current, torque = (np.concatenate([p[k] for p in pairs]) for k in (0, 1))
    gains, offsets, variances, errors, halves = [], [], [], [], []
    for i, tau in zip(current.T, torque.T, strict=True):
        if np.ptp(i) == 0:
            raise NotIdentifiable("a constant current identifies no gain")
        X = np.column_stack([i, np.ones_like(i)])
        x = np.linalg.lstsq(X, tau, rcond=None)[0]
        both = zip(np.array_split(X, 2), np.array_split(tau, 2), strict=True)
        halves.append([np.linalg.lstsq(part, torque, rcond=None)[0][0] for part, torque in both])
        rest = tau - X @ x
        worth = max(independent_rows(rest) - 2.0, 1.0)
        variance = float(np.sum((i - i.mean()) ** 2)) / len(i)
        gains.append(x[0])
        offsets.append(x[1])
        variances.append(float(rest @ rest) / len(i) / worth / variance)
        errors.append(float(np.linalg.norm(rest)) / max(float(np.linalg.norm(tau)), 1e-300))
    found, covariance = np.array(gains), np.diag(variances)
    shown = np.sqrt(variances) < _SHOWN * np.abs(found)
    negative = [j for j, g in zip(recording.joints, found, strict=True) if g < 0]
    notes = [f"negative gain of {', '.join(negative)}: current and torque have opposite signs"] if negative else []
    return DriveGains(
        recording.joints,
        found,
        covariance,
        tuple(bool(x) for x in shown),
        "reference",
        np.array(errors),
        offset=np.array(offsets),
        halves=np.array(halves).T,
        notes=tuple(notes),
    )


def of_currents(recording: Recording) -> Recording:
    """The recording with its currents in place of torques."""
    for run in recording.runs:
        if run.current is None:
            raise MissingData(
                f"run '{run.name}' has no currents: name their columns, {keyword('columns', {'current': 'i{i}'})}"
            )
    return replace(recording, runs=tuple(replace(run, torque=run.current) for run in recording.runs))


def _known(payload: float | ArrayLike | Payload | None) -> Array:
    """Ten inertial parameters, nan where unknown."""
    if isinstance(payload, Payload):
        return payload.inertial
    why = "without a known payload a common factor of all gains cannot be identified"
    if payload is None:
        raise MissingArgument(f"{why}: give its mass, or its ten inertial parameters", "payload")
    try:
        given = np.asarray(payload, dtype=float)
    except (TypeError, ValueError):
        raise InvalidType(f"a payload is a mass or ten inertial parameters, got {payload!r:.60}", "payload") from None
    if given.ndim == 0:
        given = np.concatenate([[given], np.full(9, np.nan)])
    if given.shape != (10,):
        raise InvalidShape(f"a payload is a mass or ten inertial parameters, got shape {given.shape}", "payload")
    if np.isinf(given).any():
        raise InvalidValue("the payload has a number that is not finite", "payload")
    if not np.any(np.nan_to_num(given)):
        raise InvalidValue(f"{why}: all its known parameters are zero", "payload")
    if given[0] <= 0:
        raise InvalidValue(f"the mass of a payload is positive, got {given[0]:g} kg", "payload")
    return given


def _groups(joints: Sequence[str], shared: Sequence[Sequence[str]]) -> NDArray[np.intp]:
    """Index of the gain of each joint."""
    leader = list(range(len(joints)))
    taken: set[str] = set()
    for names in shared:
        wrong = [n for n in names if n not in joints]
        if wrong:
            raise UnknownName(f"shared gains name no joint '{wrong[0]}', the joints are {', '.join(joints)}", "shared")
        again = [n for n in names if n in taken]
        if again:
            raise Duplicate(f"joint '{again[0]}' is in two groups of shared gains", "shared")
        taken.update(names)
        for n in names:
            leader[joints.index(n)] = joints.index(names[0])
    return np.unique(leader, return_inverse=True)[1]


def _each(value: ArrayLike, group: NDArray[np.intp], gains: int, what: str, finite: bool = True) -> Array:
    """One value per gain, from one value for all or one per joint; equal motors take the mean."""
    try:
        given = np.broadcast_to(np.asarray(value, dtype=float), group.shape)
    except (TypeError, ValueError):
        raise InvalidShape(f"{what} of gains needs one number, or {len(group)}") from None
    if np.isnan(given).any() or (finite and not np.all(np.isfinite(given))):
        raise InvalidType(f"{what} of gains must be numbers")
    return np.array([given[group == k].mean() for k in range(gains)])


def _prior_std(prior: ArrayLike | None, std: ArrayLike | None, group: NDArray[np.intp], gains: int) -> Array:
    if (prior is None) != (std is None):
        raise MissingArgument(
            "a prior of gains needs its standard deviation prior_std, and prior_std needs a prior", "prior_std"
        )
    if std is None:
        return np.full(gains, np.inf)
    out = _each(std, group, gains, "prior_std", finite=False)
    if np.any(out <= 0):
        raise InvalidValue("prior_std of gains must be positive", "prior_std")
    return out


def _noise(rows: LoadedRows, before: Observation, after: Observation) -> tuple[Array, Array, Array]:
    """Standard deviation of an independent row of current, number of such rows, and of all rows, each (joint,).

    Each joint is fitted with parameters of its own, so that gains do not affect the residual.
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
    residual = np.maximum(np.array(lost), _ROUNDING * np.where(size > 0, size, 1.0))
    noise = residual / np.sqrt(np.maximum(total - np.array(touched), 1.0)) * np.sqrt(total / np.maximum(worth, 1.0))
    return noise, worth, total


def _require_scale(rows: GainRows, found: GainFit, link: str) -> None:
    """Raise if no gain is identifiable: the known payload is not visible in the currents."""
    own = np.sqrt(np.maximum(np.diag(found.own_covariance), 0.0))
    if np.all(own > np.abs(found.gains) / _SEEN) and not np.any(np.isfinite(rows.prior_std)):
        raise NotIdentifiable(
            f"the known payload on '{link}' is not visible in the currents, so gains cannot be scaled: move more, or "
            "use a heavier payload on a link further out",
            "payload",
        )


def _result(
    robot: Robot,
    rows: LoadedRows,
    given: GainRows,
    found: GainFit,
    halves: Array | None,
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
            f"errors of the currents bias gains towards zero: {', '.join(pulled)}; method output has no such bias"
        )
    hidden = [j for j, s in zip(robot.coordinates, shown, strict=True) if not s]
    if hidden:
        notes.append(
            f"not identifiable from these runs: the gain of {', '.join(hidden)}; share it with an equal motor, "
            "or give a prior"
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
        halves=halves,
        at_bounds=tuple(held),
        notes=tuple(notes),
    )
