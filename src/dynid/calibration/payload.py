"""Payload identification: mass, centre of mass and inertia of a tool, from runs with and without it or a known arm.

With the same arm in both recordings, K_L the base parameters of a body that is fixed to the link, and its p:

    y_before = W_1 beta + e_1,    y_after = W_2 (beta + K_L p) + e_2,    p = argmin |e_1|^2 + |e_2|^2 over beta and p

or with a known arm, beta ~ N(b, C). What the masses by joint scatter beyond their noise becomes part of the standard
deviation.

Sources: Atkeson, An and Hollerbach (1986), for loads from joint torques; Khalil, Gautier and Lemoine, Identification of
the Payload Inertial Parameters of Industrial Manipulators (2007), for motion with and without a payload; DerSimonian
and Laird, Meta-Analysis in Clinical Trials (1986), for `random_scatter`; Birge, The Calculation of Errors by the Method
of Least Squares (1932), for the ratio of scatter to noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.calibration.loaded import (
    LoadedRows,
    channel_residuals,
    less,
    loaded_rows,
    short_of_rows,
    without_span,
)
from dynid.errors import ConflictingArguments, DataError, InvalidValue, Mismatch, MissingArgument, UnknownName, named
from dynid.feasibility.body_fit import FORMS, BodyFit, Form, body_sizes, fit_body
from dynid.identification.estimate import Estimate
from dynid.identification.loads import default_channels
from dynid.identification.observation import Observation, time_parts
from dynid.identification.observing import observe
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.results import SavedResult, Table, about, framed
from dynid.robot.inertia import INERTIAL_SYMBOLS, inertia_to_com
from dynid.robot.model import Robot
from dynid.robot.parts import checked
from dynid.signals.autocorrelation import independent_rows
from dynid.signals.settings import Signals
from dynid.threads import one_blas_thread

__all__ = ["TYPED_GAIN_STD", "MassSource", "Payload", "identify_payload"]

Array = NDArray[np.float64]

# A parameter is identifiable if its standard deviation is below this share of a typical value for mass and distance.
_SHOWN = 0.2


# Relative errors of gains from data sheets: those given for a UR10e are 2 to 20 % off those from a known mass.
TYPED_GAIN_STD = 0.1
# Share of their variance that is common to all joints, which have motors and data sheets of one maker.
_COMMON = 0.5
# A torque is a current times a gain if nothing else is left of it: rounding.
_CONVERTED = 1e-6
# A-priori standard deviations of a robot file: of a mass, as a share of it; of a centre, m; of a radius of gyration, m;
# of a drive parameter, as a share of it.
_ROBOT_MASS, _ROBOT_CENTRE, _ROBOT_RADIUS, _ROBOT_DRIVE = 0.4, 0.04, 0.1, 0.5
# Shares of those errors among which the likelihood of the loaded runs chooses.
_ERROR_SCALES = np.concatenate([[0.0], np.geomspace(1e-3, 10.0, 25)])


class MassSource(StrEnum):
    """Where the standard deviation of a mass comes from."""

    NOISE = "noise"
    ARM = "arm model"
    GAINS = "gains"
    CHANNELS = "disagreement of the joints"


@dataclass(frozen=True, eq=False)
class Payload(SavedResult):
    """An identified payload, a body fixed to a link."""

    kind = "payload"
    tables = (
        Table(
            "payload",
            "10",
            framed(
                parameter=lambda p: INERTIAL_SYMBOLS,
                unit=lambda p: ("kg", *("kg m",) * 3, *("kg m2",) * 6),
                value="inertial",
                std="std",
                repeatability="repeatability",
                shown="shown",
            ),
        ),
    )

    robot: str = field(metadata=about("Name of the robot."))
    link: str = field(metadata=about("Link that carries it."))
    form: Form = field(metadata=about("What was identified."))
    feasible: bool = field(metadata=about("Whether the body was constrained to be physically consistent."))
    inertial: Array = field(
        metadata=about(
            "Inertial parameters in the link frame: m, mx, my, mz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz. SI units.",
            size=("10",),
        )
    )
    covariance: Array = field(
        metadata=about(
            "Their covariance; infinite on the diagonal where the data do not identify a parameter.", size=("10", "10")
        )
    )
    shown: tuple[bool, ...] = field(metadata=about("Which of the ten parameters the motion identifies by itself."))
    parts: Array = field(metadata=about("Estimates from separate parts of the loaded runs.", size=("k", "10")))
    channels: tuple[str, ...] = field(metadata=about("Channels that were used."))
    rows: tuple[int, ...] = field(metadata=about("Number of rows of the loaded runs per channel."))
    worth: tuple[float, ...] = field(
        metadata=about("Number of independent rows per channel, from the autocorrelation of the residual.")
    )
    noise: Array = field(metadata=about("Standard deviation of one independent row, N m or N.", size=("channel",)))
    unexplained: Array = field(
        metadata=about("Residual of the loaded runs as a share of the torque.", size=("channel",))
    )
    mass_sources: dict[MassSource, float] = field(
        metadata=about(
            "Standard deviation of the mass, kg, by where it comes from. Their squares add up to the square of "
            "`mass_std`."
        )
    )
    gain_std: float = field(
        metadata=about("Relative standard deviation of the gains of the drives that is part of `covariance`.")
    )
    gains_known: bool = field(
        metadata=about(
            "Whether gains were measured, or given with a standard deviation; otherwise currents were turned "
            "into torques with typed gains, or torques are taken as they were logged."
        )
    )
    channel_mass: Array = field(
        metadata=about(
            "Mass that each channel gives by itself for a body of this shape, and its standard deviation from "
            "noise, kg.",
            size=("channel",),
        )
    )
    channel_mass_std: Array = field(
        metadata=about(
            "Mass that each channel gives by itself for a body of this shape, and its standard deviation from "
            "noise, kg.",
            size=("channel",),
        )
    )
    scatter: float = field(
        metadata=about("Relative scatter of these masses beyond their noise, which is part of `covariance`.")
    )
    arm_scale: float = field(
        metadata=about(
            "Errors of the known model of the arm, beyond the covariance of an estimate, that the loaded runs "
            "ask for: as a share of those of a robot file (40 % of a mass); nan where runs without the payload "
            "give the arm."
        )
    )
    parts_ratio: float = field(metadata=about("Differences between the parts, relative to those that noise explains."))
    bare: Array = field(
        metadata=about(
            "Residual of the loaded runs as a share of the torque if there were no payload.", size=("channel",)
        )
    )
    held: tuple[str, ...] = field(default=(), metadata=about("Active constraints of physical consistency."))
    notes: tuple[str, ...] = field(default=(), metadata=about("Remarks for the user."))

    @property
    def mass(self) -> float:
        """Mass, kg."""
        return float(self.inertial[0])

    @property
    def std(self) -> Array:
        """Standard deviation of each inertial parameter (10,)."""
        return np.asarray(np.sqrt(np.maximum(np.diag(self.covariance), 0.0)))

    @property
    def mass_std(self) -> float:
        """Standard deviation of the mass, kg."""
        return float(self.std[0])

    @property
    def centre(self) -> Array:
        """Centre of mass (3,) in the link's frame, m."""
        return np.asarray(inertia_to_com(self.inertial)[1])

    @property
    def centre_std(self) -> Array:
        """Standard deviation (3,) of the centre of mass, m."""
        slope = np.hstack([-self.centre[:, None], np.eye(3)]) / self.mass
        covariance = self.covariance[:4, :4]
        finite = np.where(np.isfinite(covariance), covariance, 0.0)
        out = np.sqrt(np.maximum(np.diag(slope @ finite @ slope.T), 0.0))
        lost = ~np.isfinite(np.diag(covariance))
        out[lost[1:] | lost[0]] = np.inf
        return np.asarray(out)

    @property
    def inertia(self) -> Array:
        """Tensor (3, 3) about the centre of mass, kg m2."""
        return np.asarray(inertia_to_com(self.inertial)[2])

    @property
    def repeatability(self) -> Array:
        """Standard deviation (10,) of the estimates from separate parts of the runs; nan with fewer than two parts."""
        return np.std(self.parts, axis=0, ddof=1) if len(self.parts) > 1 else np.full(10, np.nan)

    def summary(self) -> str:
        """A table of the parameters with standard deviations and repeatability."""
        kind = f"{self.form}, {'physically consistent' if self.feasible else 'unconstrained'}"
        c, d = self.centre, self.centre_std
        repeated = self.repeatability
        lines = [
            f"payload on {self.link} ({kind})",
            f"  mass    {self.mass:.5g} kg, std {self.mass_std:.2g}, over {len(self.parts)} parts {repeated[0]:.2g}",
            f"  centre  {', '.join(f'{x:.4f}' for x in c)} m, std {', '.join(f'{x:.2g}' for x in d)}",
            "  name          value        std   over parts  identifiable",
        ]
        for row in zip(INERTIAL_SYMBOLS, self.inertial, self.std, repeated, self.shown, strict=True):
            lines.append(f"  {row[0]:<5} {row[1]:>13.5g} {row[2]:>10.2g} {row[3]:>12.2g}  {'yes' if row[4] else 'no'}")
        shares = ", ".join(f"{c} {100 * x:.1f} %" for c, x in zip(self.channels, self.unexplained, strict=True))
        return "\n".join([*lines, f"  unexplained  {shares}", *(f"  note: {n}" for n in self.notes)])

    def to_dict(self) -> dict[str, Any]:
        """All results as plain data; None where a value is not finite."""
        names = INERTIAL_SYMBOLS

        def plain(x: float) -> float | None:
            return float(x) if np.isfinite(x) else None

        return {
            "link": self.link,
            "form": self.form,
            "feasible": self.feasible,
            "mass": self.mass,
            "mass_std": plain(self.mass_std),
            "centre": self.centre.tolist(),
            "centre_std": [plain(x) for x in self.centre_std],
            "inertia": self.inertia.tolist(),
            "inertial": dict(zip(names, self.inertial.tolist(), strict=True)),
            "std": dict(zip(names, map(plain, self.std), strict=True)),
            "repeatability": dict(zip(names, map(plain, self.repeatability), strict=True)),
            "shown": dict(zip(names, self.shown, strict=True)),
            "mass_sources": {source.value: x for source, x in self.mass_sources.items()},
            "gain_std": self.gain_std,
            "channel_mass": dict(zip(self.channels, map(plain, self.channel_mass), strict=True)),
            "channel_mass_std": dict(zip(self.channels, map(plain, self.channel_mass_std), strict=True)),
            "scatter": self.scatter,
            "rows": dict(zip(self.channels, self.rows, strict=True)),
            "independent_rows": dict(zip(self.channels, self.worth, strict=True)),
            "unexplained": dict(zip(self.channels, self.unexplained.tolist(), strict=True)),
            "unexplained_without_payload": dict(zip(self.channels, self.bare.tolist(), strict=True)),
            "covariance": [[plain(x) for x in row] for row in self.covariance],
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        return f"Payload('{self.link}', {self.mass:.4g} kg)"


def identify_payload(
    robot: Robot,
    loaded: Recording,
    unloaded: Recording | None = None,
    *,
    link: str,
    model: Estimate | Robot | None = None,
    form: Form = "full",
    feasible: bool = True,
    centre: ArrayLike | None = None,
    free: Sequence[str] = (),
    signals: Signals | None = None,
    parts: int = 5,
    gain_std: float | ArrayLike | None = None,
) -> Payload:
    """Identify a payload that was fixed to a link in the loaded runs.

    Parameters
    ----------
    robot : Robot
        The arm without the payload.
    loaded : Recording
        Runs with the payload.
    unloaded : Recording, optional
        Runs without it. Give these or `model`, not both.
    link : str
        Link that carries the payload.
    model : Estimate or Robot, optional
        Known model of the arm: an estimate, whose covariance is propagated, or a robot. Where the loaded runs
        contradict either, its errors count as larger.
    form : {"full", "mass-centre", "mass"}, default "full"
        All ten inertial parameters, a point mass, or the mass only at a known `centre`.
    feasible : bool, default True
        Constrain the body to be physically consistent.
    centre : array_like, shape (3,), optional
        Centre of mass in the link frame, m; required by form "mass".
    free : sequence of str
        Drive parameters (wildcards, such as "off_*") that may differ between loaded and unloaded runs.
    signals : Signals, optional
        How runs are filtered; by default as for the model, or the defaults of `Signals`.
    parts : int, default 5
        Number of equal parts of the loaded runs, identified separately for the repeatability.
    gain_std : float or array_like of shape (joint, joint), optional
        Relative standard deviation of the gains of the drives, or their relative covariance, such as that of
        `DriveGains.relative_covariance`. By default 0.1 where torques are currents times gains, and 0 otherwise. Half
        of the variance of a single number is common to all joints.

    Returns
    -------
    Payload
        Inertial parameters with covariance and repeatability.

    Raises
    ------
    DataError
        If settings contradict each other, or the motion does not identify the payload.
    """
    if parts < 2:
        raise InvalidValue(f"repeatability needs at least two parts, got {parts}", "parts")
    if form not in FORMS:
        raise UnknownName(f"{named('form')} '{form}' is unknown: use {', '.join(FORMS)}")
    if (unloaded is None) == (model is None):
        raise ConflictingArguments("give runs without the payload, or a model of the arm, and not both", "model")
    if (centre is not None) != (form == "mass"):
        raise MissingArgument("form 'mass' needs the centre of the payload, and only that form takes one", "centre")
    place = None if centre is None else checked(centre, (3,), "centre of the payload", DataError)
    base, arm = _arm(robot, model, loaded)
    settings = signals or (model.signals if isinstance(model, Estimate) else Signals())
    seen = observe(robot, loaded, signals=settings, base=base)
    before = None if unloaded is None else observe(robot, unloaded, signals=settings, base=base)
    typed = gain_std is None and any(_converted(run) for run in loaded.runs)
    gains = _gain_covariance(TYPED_GAIN_STD if typed else 0.0 if gain_std is None else gain_std, len(base.channels))
    with one_blas_thread():
        search = _Search(link, form, feasible, place, tuple(free), before, seen, arm, gains, gain_std is not None)
        return search.payload(parts)


def _converted(run: Run) -> bool:
    """Whether the torques of a run are its currents times gains, with or without an offset."""
    if run.current is None or run.torque is None:
        return False
    for current, torque in zip(run.current.T, run.torque.T, strict=True):
        columns = np.column_stack([current, np.ones_like(current)])
        left = torque - columns @ np.linalg.lstsq(columns, torque, rcond=None)[0]
        if np.linalg.norm(left) > _CONVERTED * max(float(np.linalg.norm(torque)), 1e-300):
            return False
    return True


def _gain_covariance(std: float | ArrayLike, channels: int) -> Array:
    """Relative covariance (channel, channel) of the gains, from one number or as it is given."""
    given = np.asarray(std, dtype=float)
    if given.ndim == 0 and np.isfinite(given) and given >= 0:
        return np.asarray(given**2 * ((1 - _COMMON) * np.eye(channels) + _COMMON))
    if given.shape == (channels, channels) and np.all(np.isfinite(given)) and np.linalg.eigvalsh(given)[0] > -1e-12:
        return given
    raise InvalidValue(f"gain_std is one number that is not negative, or a covariance of {channels} gains", "gain_std")


@dataclass(frozen=True, eq=False)
class _Arm:
    """Known base parameters (b,), and roots of the covariance of their errors.

    `noise` (b, k) is that of an estimate, `errors` (b, p) that of a robot file before any recording, whose scale is
    learned. `gravity` says that the torques of the arm follow from a robot, and not from torques with the gains of the
    log.
    """

    values: Array
    noise: Array
    errors: Array
    gravity: bool

    def root(self, scale: float) -> Array:
        """A root of the covariance, with the errors of a robot file times `scale`."""
        return np.hstack([self.noise, scale * self.errors])


def _arm(robot: Robot, model: Estimate | Robot | None, loaded: Recording) -> tuple[BaseParameters, _Arm | None]:
    """Base-parameter structure, and what is known of the arm."""
    if model is not None:
        names = model.robot.parameter_names if isinstance(model, Estimate) else model.parameter_names
        if names != robot.parameter_names:
            raise Mismatch(f"the model is of another robot or other drive terms than '{robot.name}'", "model")
    if isinstance(model, Estimate):
        errors = model.base.matrix @ _robot_errors(model.robot, model.parameters)
        unknown = ~np.isfinite(np.diag(model.covariance))
        noise = _covariance_root(np.where(unknown[:, None] | unknown, 0.0, model.covariance))
        # What stood still kept its a-priori value.
        kept = errors[:, np.any(errors[unknown], axis=0)] * unknown[:, None]
        return model.base, _Arm(model.beta, np.hstack([noise, kept]), errors, False)
    base = base_parameters(robot, channels=default_channels(robot, loaded))
    if model is None:
        return base, None
    errors = base.matrix @ _robot_errors(model, model.parameters)
    return base, _Arm(base.values(model.parameters), np.zeros((base.count, 0)), errors, True)


def _robot_errors(robot: Robot, parameters: Array) -> Array:
    """A root (p, p + 1) of the covariance of the errors of a robot file: each parameter, and a common factor of all."""
    mass = {p.owner: abs(float(x)) for p, x in zip(robot.layout, parameters, strict=True) if p.symbol == "m"}
    body = {"m": _ROBOT_MASS, **dict.fromkeys(("mx", "my", "mz"), _ROBOT_CENTRE)}
    own = [
        mass[p.owner] * body.get(p.symbol, _ROBOT_RADIUS**2) if p.inertial else _ROBOT_DRIVE * abs(float(x))
        for p, x in zip(robot.layout, parameters, strict=True)
    ]
    return np.column_stack([np.diag(own), _ROBOT_MASS * parameters])


def _covariance_root(covariance: Array) -> Array:
    """A root (b, k) of a covariance (b, b), without the directions that have no variance."""
    size = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    size = np.where(size > 0, size, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(size, size))
    kept = values > 1e-14 * max(float(values[-1]), 1e-300)
    return np.asarray(size[:, None] * vectors[:, kept] * np.sqrt(values[kept]))


@dataclass(frozen=True, eq=False)
class _Reduced:
    """Rows R (10, 10) and z (10,) of the payload alone; gains Z (10, channel) and unit errors of the arm (10, k)."""

    R: Array
    z: Array
    gains: Array
    arm: Array


@dataclass(frozen=True, eq=False)
class _Search:
    """The estimation problem: a body of one form on one link."""

    link: str
    form: Form
    feasible: bool
    centre: Array | None
    free: tuple[str, ...]
    unloaded: Observation | None
    loaded: Observation
    arm: _Arm | None
    gains: Array
    gains_known: bool

    def payload(self, count: int) -> Payload:
        rows = loaded_rows(
            self.unloaded, self.loaded, self.link, self.free, None if self.arm is None else self.arm.values
        )
        noise, worth = self._noise(rows)
        weights = 1.0 / noise
        scale = self._arm_scale(rows, weights)
        reduced = self._reduced(rows, weights, scale)
        found = self._fit(reduced, self.form, self.feasible)
        own = self._fit(reduced, "full", feasible=False)
        parts, ratio = self._parts(rows, weights, scale, count)
        masses, masses_std = self._channel_masses(rows, weights, scale, found)
        scatter = random_scatter(masses, masses_std) / max(abs(float(found.inertial[0])), 1e-12)
        causes = self._causes(reduced, found, ratio, scatter)
        covariance = sum(causes.values(), np.zeros((10, 10)))
        covariance = np.where(np.isfinite(found.covariance), covariance, found.covariance)
        sizes = _SHOWN * body_sizes(found.inertial)
        notes = short_of_rows(self.loaded.base.channels, self.loaded.rows, worth)
        if found.held:
            notes.append(f"active constraints: {', '.join(found.held)}")
        if self.form != "full" and self._worse(reduced, found, own):
            notes.append("a point mass explains these runs significantly worse than ten parameters: use form 'full'")
        return Payload(
            robot=self.loaded.base.robot.name,
            link=self.link,
            form=self.form,
            feasible=self.feasible,
            inertial=found.inertial,
            covariance=covariance,
            shown=tuple(bool(x) for x in np.sqrt(np.diag(own.covariance)) < sizes),
            parts=parts,
            channels=self.loaded.base.channels,
            rows=self.loaded.rows,
            worth=tuple(worth),
            noise=noise,
            unexplained=self._unexplained(rows, weights, scale, found.inertial),
            mass_sources={source: float(np.sqrt(max(x[0, 0], 0.0))) for source, x in causes.items()},
            gain_std=float(np.sqrt(np.max(np.diag(self.gains)))),
            gains_known=self.gains_known,
            channel_mass=masses,
            channel_mass_std=masses_std,
            scatter=scatter,
            arm_scale=np.nan if self.arm is None else scale,
            parts_ratio=ratio,
            bare=self._unexplained(rows, weights, scale, np.zeros(10)),
            held=found.held,
            notes=tuple(notes),
        )

    def _system(self, rows: LoadedRows, weights: Array, scale: float) -> tuple[Array, Array, Array]:
        """Whitened rows: unknowns beside the payload, the payload (r, 10), and the measurement of each channel.

        Errors of a known arm are unknowns of unit variance, in the last rows.
        """
        stacked = rows.stacked(weights)
        measured = _each_apart([w * c[:, -1] for w, c in zip(weights, rows.channels, strict=True)])
        if self.arm is None:
            return stacked[:, : rows.arm], stacked[:, rows.arm : -1], measured
        errors = stacked[:, : rows.base.count] @ self.arm.root(scale)
        k, f = errors.shape[1], rows.changed.shape[1]
        lead = np.vstack([np.hstack([errors, stacked[:, rows.base.count : rows.arm]]), np.eye(k, k + f)])
        return (
            lead,
            np.vstack([stacked[:, rows.arm : -1], np.zeros((k, 10))]),
            np.vstack([measured, np.zeros((k, measured.shape[1]))]),
        )

    def _reduced(self, rows: LoadedRows, weights: Array, scale: float) -> _Reduced:
        """Rows over the ten payload parameters, with all other unknowns projected out."""
        lead, load, measured = self._system(rows, weights, scale)
        total = measured.sum(axis=1)[:, None]
        gained, k = measured, 0
        if self.arm is not None:
            k = self.arm.root(scale).shape[1]
            if self.arm.gravity:
                # Torques of the arm that do not come from the log do not share the error of its gains.
                known = [
                    w * (c[:, : rows.base.count] @ self.arm.values) for w, c in zip(weights, rows.channels, strict=True)
                ]
                gained = measured + np.vstack([_each_apart(known), np.zeros((k, measured.shape[1]))])
        units = np.vstack([np.zeros((len(lead) - k, k)), np.eye(k)])
        left = without_span(np.hstack([lead, load, total, gained, units]), lead.shape[1])[:10]
        ends = 11 + measured.shape[1]
        return _Reduced(left[:, :10], left[:, 10], left[:, 11:ends], left[:, ends:])

    def _fit(self, reduced: _Reduced, form: Form, feasible: bool) -> BodyFit:
        return fit_body(reduced.R, reduced.z, form, feasible, self.centre)

    def _worse(self, reduced: _Reduced, found: BodyFit, own: BodyFit) -> bool:
        """Whether a form leaves significantly more residual than ten free parameters."""
        R, z = reduced.R, reduced.z
        lost = float(np.sum((R @ found.inertial - z) ** 2) - np.sum((R @ own.inertial - z) ** 2))
        return bool(lost > scipy.stats.chi2.ppf(0.999, 6 if self.form == "mass-centre" else 9))

    def _noise(self, rows: LoadedRows) -> tuple[Array, list[float]]:
        """Standard deviation of an independent row per channel and number of such rows, with the arm left free."""
        channels, arm = rows.channels, rows.base.count
        size = np.array([max(float(np.linalg.norm(c[:, -1])), 1e-300) for c in channels])
        count = np.array(self.loaded.rows, dtype=float)
        if self.unloaded is not None:
            count = count + np.array(self.unloaded.rows)
        noise = size / np.sqrt(np.maximum(count, 1.0))
        floor = 1e-13 * noise
        for _ in range(2):
            x = _solution(rows.stacked(1.0 / noise))
            touched = np.array([np.count_nonzero(np.linalg.norm(c[:, :-1], axis=0)) for c in channels])
            lost = np.array([np.linalg.norm(c[:, -1] - c[:, :-1] @ x) for c in channels])
            noise = np.maximum(lost / np.sqrt(np.maximum(count - touched, 1.0)), floor)
        whole = x[:arm] + rows.changed @ x[arm : rows.arm] + rows.load @ x[rows.arm :]
        whole = whole if self.arm is None else whole + self.arm.values
        left = channel_residuals(self.loaded, [whole] * len(channels))
        worth = [independent_rows(r) for r in left]
        share = np.array([n / max(w, 1.0) for n, w in zip(self.loaded.rows, worth, strict=True)])
        return noise * np.sqrt(np.maximum(share, 1.0)), worth

    def _arm_scale(self, rows: LoadedRows, weights: Array) -> float:
        """The scale of the errors of a known arm with the largest likelihood of the loaded runs."""
        if self.arm is None:
            return 1.0
        arm, seen = self.arm, rows.stacked(weights)[:, : rows.base.count]

        def cost(scale: float) -> float:
            lead, load, measured = self._system(rows, weights, scale)
            y = measured.sum(axis=1)
            columns = np.hstack([lead, load])
            left = y - columns @ _solution(np.column_stack([columns, y]))
            size = np.linalg.svd(seen @ arm.root(scale), compute_uv=False)
            return float(left @ left + np.sum(np.log1p(size**2)))

        return float(min(_ERROR_SCALES, key=cost))

    def _unexplained(self, rows: LoadedRows, weights: Array, scale: float, inertial: Array) -> Array:
        """Residual of the loaded runs with a given payload, as a share of the torque (channel,)."""
        lead, load, measured = self._system(rows, weights, scale)
        x = _solution(np.column_stack([lead, measured.sum(axis=1) - load @ inertial]))
        first = len(x) - rows.changed.shape[1]
        beta = x[:first] if self.arm is None else self.arm.values + self.arm.root(scale) @ x[:first]
        torque = self.loaded.torque_norms()
        lost = self.loaded.residual_norms(beta + rows.changed @ x[first:] + rows.load @ inertial)
        return np.asarray(lost / np.where(torque > 0, torque, np.inf))

    def _parts(self, rows: LoadedRows, weights: Array, scale: float, count: int) -> tuple[Array, float]:
        """Estimates (k, 10) from separate parts of the loaded runs, and how much more they differ than by noise."""
        found = []
        for part in time_parts(self.loaded, count):
            given = part if self.arm is None else tuple(less(f, self.arm.values) for f in part)
            reduced = self._reduced(rows.with_loaded(given), weights, scale)
            found.append(self._fit(reduced, self.form, self.feasible))
        masses, std = (
            np.array(x) for x in zip(*((f.inertial[0], np.sqrt(f.covariance[0, 0])) for f in found), strict=True)
        )
        return np.array([f.inertial for f in found]).reshape(-1, 10), _birge(masses, std)

    def _channel_masses(self, rows: LoadedRows, weights: Array, scale: float, found: BodyFit) -> tuple[Array, Array]:
        """Mass of a body of this shape by every channel alone, and its standard deviation (channel,)."""
        masses, std = np.full(len(weights), np.nan), np.full(len(weights), np.inf)
        for k in range(len(weights)):
            alone = self._reduced(rows, np.where(np.arange(len(weights)) == k, weights, 0.0), scale)
            shown = alone.R @ found.inertial
            power = float(shown @ shown)
            if power > 0 and found.inertial[0] > 0:
                masses[k] = found.inertial[0] * float(shown @ alone.z) / power
                std[k] = found.inertial[0] / np.sqrt(power)
        return masses, std

    def _causes(self, reduced: _Reduced, found: BodyFit, ratio: float, scatter: float) -> dict[MassSource, Array]:
        """Covariance (10, 10) by where it comes from; zero where the motion shows nothing."""
        own = np.where(np.isfinite(found.covariance), found.covariance, 0.0)
        move = own @ reduced.R.T
        arm, gains = move @ reduced.arm, move @ reduced.gains
        carried = arm @ arm.T
        out = {MassSource.NOISE: (own - carried) * max(ratio, 1.0) ** 2}
        if self.arm is not None:
            out[MassSource.ARM] = carried
        if np.any(self.gains):
            out[MassSource.GAINS] = gains @ self.gains @ gains.T
        return out | {MassSource.CHANNELS: scatter**2 * gains @ gains.T}


def _each_apart(parts: Sequence[Array]) -> Array:
    """Vectors of several channels in columns of their own, below each other."""
    out = np.zeros((sum(map(len, parts)), len(parts)))
    start = 0
    for k, part in enumerate(parts):
        out[start : start + len(part), k] = part
        start += len(part)
    return out


def _solution(rows: Array) -> Array:
    """Least squares of the last column on the others."""
    norms = np.linalg.norm(rows[:, :-1], axis=0)
    scale = np.where(norms > 0, norms, 1.0)
    return np.asarray(np.linalg.lstsq(rows[:, :-1] / scale, rows[:, -1], rcond=1e-10)[0] / scale)


def _birge(values: Array, std: Array) -> float:
    """Scatter of values about their weighted mean, relative to that of their noise."""
    known = np.isfinite(std) & (std > 0)
    if known.sum() < 2:
        return 1.0
    x, w = values[known], std[known] ** -2
    return float(np.sqrt(np.sum(w * (x - np.sum(w * x) / w.sum()) ** 2) / (known.sum() - 1)))


def random_scatter(values: Array, std: Array) -> float:
    """Standard deviation of values beyond their noise, by DerSimonian and Laird (1986); zero where noise suffices."""
    known = np.isfinite(values) & np.isfinite(std) & (std > 0)
    if known.sum() < 2:
        return 0.0
    x, w = values[known], std[known] ** -2
    left = float(np.sum(w * (x - np.sum(w * x) / w.sum()) ** 2)) - (known.sum() - 1)
    return float(np.sqrt(max(left, 0.0) / (w.sum() - np.sum(w**2) / w.sum())))
