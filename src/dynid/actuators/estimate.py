"""Identified actuators: robot, law, and what the log says about every unknown."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid.actuators.causes import ActuatorCauses
from dynid.actuators.law_file import law_from_dict, law_to_dict
from dynid.actuators.unknowns import Unknown
from dynid.attached import attached
from dynid.errors import UnknownName, WrongFormat, did_you_mean
from dynid.results import Codec, Column, Reading, SavedResult, Table, about, decimals
from dynid.robot.actuator_law import ActuatorLaw
from dynid.robot.model import Robot
from dynid.robot.serialize import ROBOT
from dynid.signals.fingerprint import Fingerprint

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


def _read_law(data: dict[str, Any], reading: Reading) -> ActuatorLaw:
    return law_from_dict(data, data["joints"]).of(reading.found["robot"].coordinates)


@dataclass(frozen=True, eq=False)
class ActuatorEstimate(SavedResult):
    """Actuators that were identified from positions and commands."""

    kind = "actuators"
    sizes = MappingProxyType({"unknown": ("unknowns", "unknowns"), "joint": ("law.joints", "joints")})
    tables = (
        Table(
            "actuator estimate",
            "unknown",
            (
                Column("labels", "unknown", "unknown"),
                Column("values", "value", "value", decimals),
                Column("std", "std", "std", decimals),
                Column(lambda e: [x.unit for x in e.unknowns], "unit", "unit"),
                Column("at_bound", "at_bound", "at_bound", decimals),
            ),
        ),
    )

    robot: Robot = field(
        metadata=about("With the identified armature, friction and, where they were unknown, bodies.", codec=ROBOT)
    )
    law: ActuatorLaw = field(
        metadata=about(
            "With the identified gains, delay and limits.", codec=Codec(dict[str, Any], law_to_dict, _read_law)
        )
    )
    unknowns: tuple[Unknown, ...] = field(metadata=about("What was identified."))
    values: Array = field(
        metadata=about(
            "Values. An unknown that motion shows in combination only has the value of the combination.",
            size=("unknown",),
            finite=True,
        )
    )
    std: Array = field(
        metadata=about(
            "Standard deviations, with the autocorrelation and the structure of the residual, and with the moment "
            "within a tick of the law at which encoders are read, unless the law has the timestep of a simulator. "
            "Infinite where the log does not show the value.",
            size=("unknown",),
        )
    )
    prior_values: Array = field(metadata=about("Values of the given robot and law.", size=("unknown",)))
    covariance: Array = field(
        metadata=about("Covariance of the values that the log shows.", size=("unknown", "unknown"))
    )
    within_tick: Array = field(
        metadata=about(
            "Change of the values, all together, by one standard deviation of the moment within a tick of the law at "
            "which encoders are read. The covariance contains it.",
            size=("unknown",),
            finite=True,
        )
    )
    at_bound: NDArray[np.bool_] = field(
        metadata=about("Values that are zero because they would be negative.", size=("unknown",))
    )
    rms: Array = field(
        metadata=about(
            "Position error (rad or m) of each joint over the fitted horizon, root mean square.", size=("joint",)
        )
    )
    prior_rms: Array = field(
        metadata=about(
            "The same of the given robot and law, over whole runs; infinite where the simulation diverges.",
            size=("joint",),
        )
    )
    kp_change: Array = field(
        metadata=about(
            "Relative change of each proportional gain that would fit the log better: a test of the law. NaN where a "
            "gain is unknown or zero.",
            size=("joint",),
        )
    )
    kp_change_std: Array = field(metadata=about("Its standard deviation.", size=("joint",)))
    kd_change: Array = field(
        metadata=about(
            "The same of each derivative gain, where the damping that was found is zero. NaN elsewhere: a derivative "
            "gain and damping act alike.",
            size=("joint",),
        )
    )
    kd_change_std: Array = field(metadata=about("Its standard deviation.", size=("joint",)))
    negative_delay: float = field(
        metadata=about(
            "Delay below zero (s) that the log asks for, where the delay is at its bound: commands that act before "
            "they are logged. 0.0 if it does not.",
            finite=True,
        )
    )
    rate: float = field(metadata=about("Rows per second of the log.", finite=True))
    rows: int = field(metadata=about("Number of rows."))
    effective_rows: Array = field(
        metadata=about("Number of independent rows that each standard deviation rests on.", size=("unknown",))
    )
    horizon: float = field(metadata=about("Seconds of the longest simulation that was fitted.", finite=True))
    iterations: int = field(metadata=about("Number of iterations."))
    converged: bool = field(metadata=about("Whether they converged."))
    seconds: float = field(metadata=about("Computing time.", unit="s", finite=True))
    fingerprint: Fingerprint = field(metadata=about("The fitted motion, by which it is known again."))
    notes: tuple[str, ...] = field(default=(), metadata=about("Remarks."))
    causes: ActuatorCauses | None = field(
        default=None,
        metadata=about(
            "What explains the errors of simulated motion, by `actuator_causes`; None where nobody searched."
        ),
    )

    def fault(self) -> str:
        """What is wrong with the fields together: unknowns that the robot does not have."""
        for x in self.unknowns:
            if not set(x.joints) <= set(self.law.joints) or not set(x.parameters) <= set(self.robot.parameter_names):
                return f"the robot has nothing for the unknown '{x.label}'"
        return ""

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

    def save(self, path: str | Path) -> None:
        """Write the estimate: a .json file holds all of it, a .toml file the law and the values.

        Parameters
        ----------
        path : str or Path

        Raises
        ------
        DataError
            If the ending is another one.
        """
        path = Path(path)
        if path.suffix == ".json":
            super().save(path)
        elif path.suffix == ".toml":
            attached(self, "write_toml")(self, path)
        else:
            raise WrongFormat(f"identified actuators are written as .toml or .json, not '{path.name}'")

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
