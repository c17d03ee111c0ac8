"""Payload identification: mass, centre of mass and inertia of a tool, from runs with and without it or a known arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.calibration.body_fit import FORMS, BodyFit, Form, body_sizes, fit_body
from dynid.calibration.loaded import (
    LoadedRows,
    channel_residuals,
    less,
    loaded_rows,
    short_of_rows,
    without_span,
)
from dynid.errors import DataError
from dynid.identification.estimate import Estimate
from dynid.identification.loads import default_channels
from dynid.identification.observation import Observation, observe, time_parts
from dynid.markup import HtmlFrame
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.recording.recording import Recording
from dynid.robot.inertia import INERTIAL_SYMBOLS, inertia_to_com
from dynid.robot.model import Robot
from dynid.robot.parts import checked
from dynid.signals.autocorrelation import independent_rows
from dynid.signals.settings import Signals
from dynid.threads import one_blas_thread

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Payload", "identify_payload"]

Array = NDArray[np.float64]

# A parameter is identifiable if its standard deviation is below this share of a typical value for mass and distance.
_SHOWN = 0.2


@dataclass(frozen=True, eq=False)
class Payload(HtmlFrame):
    """An identified payload, a body fixed to a link.

    Attributes
    ----------
    link : str
        Link that carries it.
    form : {"full", "mass-centre", "mass"}
        What was identified.
    feasible : bool
        Whether the body was constrained to be physically consistent.
    inertial : ndarray, shape (10,)
        Inertial parameters in the link frame: m, mx, my, mz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz. SI units.
    covariance : ndarray, shape (10, 10)
        Their covariance; infinite on the diagonal where the data do not identify a parameter.
    shown : tuple of bool
        Which of the ten parameters the motion identifies by itself.
    parts : ndarray, shape (k, 10)
        Estimates from separate parts of the loaded runs.
    channels : tuple of str
        Channels that were used.
    rows : tuple of int
        Number of rows of the loaded runs per channel.
    worth : tuple of float
        Number of independent rows per channel, from the autocorrelation of the residual.
    noise : ndarray, shape (channel,)
        Standard deviation of one independent row, N m or N.
    unexplained : ndarray, shape (channel,)
        Residual of the loaded runs as a share of the torque.
    notes : tuple of str
        Remarks for the user.
    """

    link: str
    form: Form
    feasible: bool
    inertial: Array
    covariance: Array
    shown: tuple[bool, ...]
    parts: Array
    channels: tuple[str, ...]
    rows: tuple[int, ...]
    worth: tuple[float, ...]
    noise: Array
    unexplained: Array
    notes: tuple[str, ...] = ()

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

    def to_frame(self) -> pl.DataFrame:
        """The inertial parameters as a table.

        Returns
        -------
        polars.DataFrame
            One row per parameter: parameter, unit, value, std, repeatability and shown.
        """
        import polars as pl

        units = ("kg", *("kg m",) * 3, *("kg m2",) * 6)
        return pl.DataFrame(
            {
                "parameter": INERTIAL_SYMBOLS,
                "unit": units,
                "value": self.inertial,
                "std": self.std,
                "repeatability": self.repeatability,
                "shown": self.shown,
            }
        )

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
            "rows": dict(zip(self.channels, self.rows, strict=True)),
            "independent_rows": dict(zip(self.channels, self.worth, strict=True)),
            "unexplained": dict(zip(self.channels, self.unexplained.tolist(), strict=True)),
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
        Known model of the arm: an estimate, whose covariance is propagated, or a robot, taken as exact.
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
        raise DataError(f"repeatability needs at least two parts, got {parts}")
    if form not in FORMS:
        raise DataError(f"form '{form}' is unknown: use {', '.join(FORMS)}")
    if (unloaded is None) == (model is None):
        raise DataError("give runs without the payload, or a model of the arm, and not both")
    if (centre is not None) != (form == "mass"):
        raise DataError("form 'mass' needs the centre of the payload, and only that form takes one")
    place = None if centre is None else checked(centre, (3,), "centre of the payload", DataError)
    base, arm, arm_covariance = _arm(robot, model, loaded)
    settings = signals or (model.signals if isinstance(model, Estimate) else Signals())
    seen = observe(robot, loaded, signals=settings, base=base)
    before = None if unloaded is None else observe(robot, unloaded, signals=settings, base=base)
    with one_blas_thread():
        return _Search(link, form, feasible, place, tuple(free), before, seen, arm, arm_covariance).payload(parts)


def _arm(
    robot: Robot, model: Estimate | Robot | None, loaded: Recording
) -> tuple[BaseParameters, Array | None, Array | None]:
    """Base-parameter structure, known base parameters (b,) and their covariance (b, b)."""
    if isinstance(model, Estimate):
        if model.robot.parameter_names != robot.parameter_names:
            raise DataError(f"the model is of another robot or other drive terms than '{robot.name}'")
        return model.base, model.beta, model.covariance
    base = base_parameters(robot, channels=default_channels(robot, loaded))
    if model is None:
        return base, None, None
    if model.parameter_names != robot.parameter_names:
        raise DataError(f"the model is of another robot or other drive terms than '{robot.name}'")
    return base, base.values(model.parameters), None


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
    arm: Array | None
    arm_covariance: Array | None

    def payload(self, count: int) -> Payload:
        rows = loaded_rows(self.unloaded, self.loaded, self.link, self.free, self.arm)
        noise, worth, unexplained = self._noise(rows)
        weights = 1.0 / noise
        found = self._fit(rows, weights, self.form, self.feasible)
        own = self._fit(rows, weights, "full", feasible=False)
        covariance = found.covariance + self._carried(rows, weights, found)
        sizes = _SHOWN * body_sizes(found.inertial)
        notes = short_of_rows(self.loaded.base.channels, self.loaded.rows, worth)
        if found.held:
            notes.append(f"active constraints: {', '.join(found.held)}")
        if self.form != "full" and self._worse(rows, weights, found, own):
            notes.append("a point mass explains these runs significantly worse than ten parameters: use form 'full'")
        if isinstance(self.arm, np.ndarray) and self.arm_covariance is None:
            notes.append(
                "the model of the arm is taken as exact; standard deviations include the noise of the loaded runs only"
            )
        return Payload(
            link=self.link,
            form=self.form,
            feasible=self.feasible,
            inertial=found.inertial,
            covariance=covariance,
            shown=tuple(bool(x) for x in np.sqrt(np.diag(own.covariance)) < sizes),
            parts=self._parts(rows, weights, count),
            channels=self.loaded.base.channels,
            rows=self.loaded.rows,
            worth=tuple(worth),
            noise=noise,
            unexplained=unexplained,
            notes=tuple(notes),
        )

    def _reduced(self, rows: LoadedRows, weights: Array) -> tuple[Array, Array]:
        """Rows over the ten payload parameters, with the unknowns of the arm projected out."""
        lead = rows.arm if self.arm is None else rows.arm - rows.base.count
        stacked = rows.stacked(weights)
        if self.arm is not None:
            stacked = stacked[:, rows.base.count :]
        left = without_span(stacked, lead)[:10]
        return left[:, :10], left[:, 10]

    def _fit(self, rows: LoadedRows, weights: Array, form: Form, feasible: bool) -> BodyFit:
        return fit_body(*self._reduced(rows, weights), form, feasible, self.centre)

    def _worse(self, rows: LoadedRows, weights: Array, found: BodyFit, own: BodyFit) -> bool:
        """Whether a form leaves significantly more residual than ten free parameters."""
        R, z = self._reduced(rows, weights)
        lost = float(np.sum((R @ found.inertial - z) ** 2) - np.sum((R @ own.inertial - z) ** 2))
        return bool(lost > scipy.stats.chi2.ppf(0.999, 6 if self.form == "mass-centre" else 9))

    def _noise(self, rows: LoadedRows) -> tuple[Array, list[float], Array]:
        """Standard deviation of an independent row per channel, number of such rows, and unexplained share."""
        channels, arm = rows.channels, rows.base.count
        size = np.array([max(float(np.linalg.norm(c[:, -1])), 1e-300) for c in channels])
        count = np.array(self.loaded.rows, dtype=float)
        if self.unloaded is not None:
            count = count + np.array(self.unloaded.rows)
        noise = size / np.sqrt(np.maximum(count, 1.0))
        floor = 1e-13 * noise
        for _ in range(2):
            x = self._free_solution(rows, 1.0 / noise)
            touched = np.array([np.count_nonzero(np.linalg.norm(c[:, :-1], axis=0)) for c in channels])
            lost = np.array([np.linalg.norm(c[:, -1] - c[:, :-1] @ x) for c in channels])
            noise = np.maximum(lost / np.sqrt(np.maximum(count - touched, 1.0)), floor)
        changed, load = x[arm : rows.arm], x[rows.arm :]
        beta = x[:arm] + rows.changed @ changed + rows.load @ load
        whole = beta if self.arm is None else beta + self.arm
        left = channel_residuals(self.loaded, [whole] * len(channels))
        worth = [independent_rows(r) for r in left]
        torque = self.loaded.torque_norms()
        unexplained = self.loaded.residual_norms(whole) / np.where(torque > 0, torque, np.inf)
        share = np.array([n / max(w, 1.0) for n, w in zip(self.loaded.rows, worth, strict=True)])
        return noise * np.sqrt(np.maximum(share, 1.0)), worth, unexplained

    def _free_solution(self, rows: LoadedRows, weights: Array) -> Array:
        """Least squares over all columns; the columns of a known arm stay zero."""
        known = 0 if self.arm is None else rows.base.count
        stacked = rows.stacked(weights)[:, known:]
        norms = np.linalg.norm(stacked[:, :-1], axis=0)
        scale = np.where(norms > 0, norms, 1.0)
        x = np.linalg.lstsq(stacked[:, :-1] / scale, stacked[:, -1], rcond=1e-10)[0] / scale
        return np.concatenate([np.zeros(known), x])

    def _carried(self, rows: LoadedRows, weights: Array, found: BodyFit) -> Array:
        """Covariance (10, 10) contributed by the uncertainty of the arm model."""
        if self.arm_covariance is None:
            return np.zeros((10, 10))
        arm = rows.base.count
        stacked = rows.stacked(weights)
        ordered = np.hstack([stacked[:, arm:-1], stacked[:, :arm]])
        left = without_span(ordered, rows.changed.shape[1])[:10]
        own = np.where(np.isfinite(found.covariance), found.covariance, 0.0)
        gain = own @ left[:, :10].T @ left[:, 10:]
        return np.asarray(gain @ self.arm_covariance @ gain.T)

    def _parts(self, rows: LoadedRows, weights: Array, count: int) -> Array:
        """Estimates (k, 10) from separate parts of the loaded runs."""
        found = []
        for part in time_parts(self.loaded, count):
            given = part if self.arm is None else tuple(less(f, self.arm) for f in part)
            found.append(self._fit(rows.with_loaded(given), weights, self.form, self.feasible).inertial)
        return np.array(found).reshape(-1, 10)
