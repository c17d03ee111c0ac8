"""Identified actuators: robot, law, and what the log says about every unknown."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid.actuators.causes import ActuatorCauses
from dynid.actuators.law import ActuatorLaw
from dynid.actuators.unknowns import Unknown
from dynid.errors import UnknownName, did_you_mean
from dynid.markup import HtmlFrame
from dynid.robot.model import Robot
from dynid.signals.fingerprint import Fingerprint

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ActuatorEstimate", "Confounded"]

Array = NDArray[np.float64]

# Two unknowns with a correlation beyond this cannot be told apart.
_CONFOUNDED = 0.95


class Confounded(NamedTuple):
    """Two unknowns that the log does not tell apart, and the correlation of their errors.

    Parameters
    ----------
    first, second : str
        Labels of the unknowns.
    correlation : float
        Correlation of their errors.
    """

    first: str
    second: str
    correlation: float


@dataclass(frozen=True, eq=False)
class ActuatorEstimate(HtmlFrame):
    """Actuators that were identified from positions and commands.

    Attributes
    ----------
    robot : Robot
        With the identified armature, friction and, where they were unknown, bodies.
    law : ActuatorLaw
        With the identified gains, delay and limits.
    unknowns : tuple of Unknown
    values, std : ndarray, shape (C,)
        Values and standard deviations, with the autocorrelation and the structure of the residual, and with the
        moment within a tick of the law at which encoders are read, unless the law has the timestep of a
        simulator. An unknown that motion shows in combination only has the value of the combination. A standard
        deviation is infinite where the log does not show the value.
    prior_values : ndarray, shape (C,)
        Values of the given robot and law.
    covariance : ndarray, shape (C, C)
        Covariance of the values that the log shows.
    within_tick : ndarray, shape (C,)
        Change of the values, all together, by one standard deviation of the moment within a tick of the law at which
        encoders are read. The covariance contains it.
    at_bound : ndarray of bool, shape (C,)
        Values that are zero because they would be negative.
    rms : ndarray, shape (n,)
        Position error (rad or m) of each joint over the fitted horizon, root mean square.
    prior_rms : ndarray, shape (n,)
        The same of the given robot and law, over whole runs; infinite where the simulation diverges.
    kp_change, kp_change_std : ndarray, shape (n,)
        Relative change of each proportional gain that would fit the log better, and its standard deviation: a test of
        the law. NaN where a gain is unknown or zero.
    kd_change, kd_change_std : ndarray, shape (n,)
        The same of each derivative gain, where the damping that was found is zero. NaN elsewhere: a derivative gain and
        damping act alike.
    negative_delay : float
        Delay below zero (s) that the log asks for, where the delay is at its bound: commands that act before they are
        logged. 0.0 if it does not.
    rate : float
        Rows per second of the log.
    rows : int
    effective_rows : ndarray, shape (C,)
        Number of independent rows that each standard deviation rests on.
    horizon : float
        Seconds of the longest simulation that was fitted.
    iterations : int
    converged : bool
    seconds : float
        Computing time.
    fingerprint : Fingerprint
        The fitted motion, by which it is known again.
    notes : tuple of str
    causes : ActuatorCauses or None
        What explains the errors of simulated motion, by `actuator_causes`; None where nobody searched.
    """

    robot: Robot
    law: ActuatorLaw
    unknowns: tuple[Unknown, ...]
    values: Array
    std: Array
    prior_values: Array
    covariance: Array
    within_tick: Array
    at_bound: NDArray[np.bool_]
    rms: Array
    prior_rms: Array
    kp_change: Array
    kp_change_std: Array
    kd_change: Array
    kd_change_std: Array
    negative_delay: float
    rate: float
    rows: int
    effective_rows: Array
    horizon: float
    iterations: int
    converged: bool
    seconds: float
    fingerprint: Fingerprint
    notes: tuple[str, ...] = ()
    causes: ActuatorCauses | None = None

    def with_causes(self, causes: ActuatorCauses) -> ActuatorEstimate:
        """The estimate with what explains its errors, of which the verdict tells.

        Parameters
        ----------
        causes : ActuatorCauses
            Of :func:`dynid.actuators.actuator_causes`.

        Returns
        -------
        ActuatorEstimate
        """
        return replace(self, causes=causes)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the unknowns."""
        return tuple(x.label for x in self.unknowns)

    @property
    def correlation(self) -> Array:
        """Correlation of the errors of all values, shape (C, C)."""
        return _correlation(self.covariance)

    @property
    def confounded(self) -> tuple[Confounded, ...]:
        """Pairs of unknowns that the motion does not tell apart, the strongest correlation first."""
        correlation = _correlation(self.covariance - np.outer(self.within_tick, self.within_tick))
        pairs = [
            Confounded(self.labels[i], self.labels[j], float(correlation[i, j]))
            for i, j in np.argwhere(np.triu(np.abs(correlation) > _CONFOUNDED, 1))
        ]
        return tuple(sorted(pairs, key=lambda x: -abs(x.correlation)))

    def value(self, label: str) -> tuple[float, float]:
        """Value and standard deviation of one unknown.

        Parameters
        ----------
        label : str
            One of `labels`.

        Returns
        -------
        tuple of float
        """
        if label not in self.labels:
            raise UnknownName(f"no unknown is named '{label}'{did_you_mean(label, self.labels)}", "label")
        k = self.labels.index(label)
        return float(self.values[k]), float(self.std[k])

    def to_frame(self) -> pl.DataFrame:
        """The identified values as a table.

        Returns
        -------
        polars.DataFrame
            One row per unknown: unknown, value, std (infinite where the log does not show it), unit and at_bound.
        """
        import polars as pl

        units = [x.unit for x in self.unknowns]
        columns = {
            "unknown": self.labels,
            "value": self.values,
            "std": self.std,
            "unit": units,
            "at_bound": self.at_bound,
        }
        return pl.DataFrame(columns)

    def save(self, path: str | Path) -> None:
        """Write the estimate: a .json file holds all of it, a .toml file the law and the values.

        Parameters
        ----------
        path : str or Path
        """
        from dynid.actuators.estimate_file import save_actuators

        save_actuators(self, path)

    def table(self) -> str:
        """Values, standard deviations and units as text."""
        width = max(len(x) for x in self.labels)
        lines = []
        for x, value, std, bound in zip(self.unknowns, self.values, self.std, self.at_bound, strict=True):
            scale, unit = (1e3, "ms") if x.unit == "s" else (1.0, x.unit)
            around = "not shown by the log" if np.isinf(std) else f"+- {scale * std:.2g} {unit}"
            lines.append(f"{x.label:<{width}}  {scale * value:>10.4g} {around}{'  (at its bound)' if bound else ''}")
        return "\n".join(lines)


def _correlation(covariance: Array) -> Array:
    """Correlation (C, C), zero for a value without variance."""
    size = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    size[size == 0] = np.inf
    out = covariance / np.outer(size, size)
    np.fill_diagonal(out, 1.0)
    return np.asarray(out)
