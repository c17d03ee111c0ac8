"""Result of a sensor calibration, and recordings corrected by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich import table as rich

from dynid.calibration.sensors.unknowns import Values, corrected_run, units_of
from dynid.identification.estimate import Estimate
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.results import SavedResult, Table, about, framed
from dynid.robot.model import Robot
from dynid.robot.serialize import ROBOT
from dynid.terminal import rendered

__all__ = ["SensorCalibration"]

Array = NDArray[np.float64]


def _errors(calibration: SensorCalibration) -> list[tuple[str, str, float, float, str]]:
    """Every error: its kind, of which joint or axis, value, standard deviation (0 where it is fixed) and unit."""
    robot, values, std = calibration.robot, calibration.values, calibration.std
    return [
        (word, of, float(value), float(sigma), unit)
        for word in calibration.words
        for of, value, sigma, unit in zip(
            _entries(calibration, word), values[word], std[word], units_of(robot, word), strict=True
        )
    ]


def _rows(k: int) -> Callable[[SensorCalibration], list[Any]]:
    return lambda calibration: [row[k] for row in _errors(calibration)]


@dataclass(frozen=True, eq=False)
class SensorCalibration(SavedResult):
    """Sensor errors with standard deviations, and the parameters estimated together with them."""

    kind = "sensors"
    tables = (
        Table(
            "sensor calibration",
            "error",
            framed(
                error=_rows(0),
                of=_rows(1),
                value=_rows(2),
                std=_rows(3),
                unit=_rows(4),
            ),
        ),
    )

    robot: Robot = field(metadata=about("The robot with the estimated gravity direction.", codec=ROBOT))
    words: tuple[str, ...] = field(metadata=about("Kinds of error that were estimated."))
    values: Values = field(
        metadata=about(
            "Values and standard deviations by kind: delay, torque_gain, torque_offset, encoder_offset, "
            "velocity_gain and velocity_offset per joint (n,), tilt (2,), wrench_delay (1,), wrench_offset "
            "(6,). Kinds that were not estimated have the value of a perfect sensor and a standard deviation of"
            " zero."
        )
    )
    std: Values = field(
        metadata=about(
            "Values and standard deviations by kind: delay, torque_gain, torque_offset, encoder_offset, "
            "velocity_gain and velocity_offset per joint (n,), tilt (2,), wrench_delay (1,), wrench_offset "
            "(6,). Kinds that were not estimated have the value of a perfect sensor and a standard deviation of"
            " zero."
        )
    )
    names: tuple[str, ...] = field(metadata=about("Names of the unknowns k that torques identify."))
    covariance: Array = field(metadata=about("Their covariance.", size=("k", "k")))
    estimate: Estimate = field(
        metadata=about("Base parameters; their covariance includes the uncertainty of the sensors.")
    )
    uncorrected: Estimate = field(
        metadata=about(
            "Base parameters from the same recordings without correction; runs with a known payload are left out."
        )
    )
    iterations: int = field(metadata=about("Number of iterations."))
    converged: bool = field(metadata=about("Whether the search converged."))
    warnings: tuple[str, ...] = field(default=(), metadata=about("What could not be identified."))
    periodic: bool = field(default=False, metadata=about("Whether runs were treated as periodic."))

    @property
    def delay(self) -> Array:
        """Seconds by which each torque lags the positions (n,)."""
        return self.values["delay"]

    @property
    def torque_gain(self) -> Array:
        """Measured torque per true torque of each joint (n,)."""
        return self.values["torque_gain"]

    @property
    def torque_offset(self) -> Array:
        """Measured torque of each joint at zero true torque (n,), N m or N."""
        return self.values["torque_offset"]

    @property
    def encoder_offset(self) -> Array:
        """Measured position of each joint at the zero position of the model (n,), rad or m."""
        return self.values["encoder_offset"]

    @property
    def tilt(self) -> Array:
        """Rotation angles (2,) of gravity in the base frame about the axes perpendicular to its nominal value, rad."""
        return self.values["tilt"]

    @property
    def gravity(self) -> Array:
        """Gravity (3,) in the base frame, m/s2."""
        return self.robot.gravity

    def corrected(self, recording: Recording) -> Recording:
        """Correct a recording for the estimated sensor errors.

        Parameters
        ----------
        recording : Recording
            Recording of the same robot.

        Returns
        -------
        Recording
            The corrected recording; ends that a delay leaves without torque are cut off.
        """
        return replace(recording, runs=tuple(self._corrected(run) for run in recording.runs))

    def _corrected(self, run: Run) -> Run:
        out = corrected_run(run, self.values, self.periodic)
        late = np.concatenate([self.delay, self.values["wrench_delay"], [0.0]])
        if self.periodic or not late.any():
            return out
        ends = run.t[0] - late.min(), run.t[-1] - late.max()
        inside = np.flatnonzero((run.t >= ends[0]) & (run.t <= ends[1]))
        return out.rows(int(inside[0]), int(inside[-1]) + 1)

    def summary(self) -> str:
        """A table of the sensor errors and of the torque errors before and after correction."""
        return _text(self)

    def to_dict(self) -> dict[str, Any]:
        """All results as plain data."""
        joints = list(self.robot.coordinates)
        return {
            "robot": self.robot.name,
            "joints": joints,
            "estimated": list(self.words),
            "sensors": {w: {"value": self.values[w].tolist(), "std": _plain(self.std[w])} for w in self.words},
            "gravity": self.gravity.tolist(),
            "unknowns": list(self.names),
            "covariance": self.covariance.tolist(),
            "iterations": self.iterations,
            "converged": self.converged,
            "warnings": list(self.warnings),
            "relative_error_percent": {
                "corrected": (100 * self.estimate.relative_error).tolist(),
                "uncorrected": (100 * self.uncorrected.relative_error).tolist(),
            },
            "estimate": self.estimate.to_dict(),
        }

    def __repr__(self) -> str:
        state = "" if self.converged else ", not converged"
        return f"SensorCalibration('{self.robot.name}', {', '.join(self.words)}{state})"


def _plain(std: Array) -> list[float | None]:
    return [float(x) if np.isfinite(x) else None for x in std]


def _entries(calibration: SensorCalibration, word: str) -> tuple[str, ...]:
    robot = calibration.robot
    special = {"tilt": ("x", "y"), "wrench_delay": ("base",), "wrench_offset": ("fx", "fy", "fz", "mx", "my", "mz")}
    return special.get(word, robot.coordinates)


def _text(calibration: SensorCalibration) -> str:
    table = rich.Table(title=f"{calibration.robot.name}: sensors")
    for name in ("error", "of", "value", "std", "unit"):
        table.add_column(name, justify="right" if name in ("value", "std") else "left")
    for word in calibration.words:
        figures = calibration.values[word], calibration.std[word]
        columns = zip(_entries(calibration, word), *figures, units_of(calibration.robot, word), strict=True)
        for of, value, std, unit in columns:
            shown = "fixed" if std == 0 else ("not identified" if not np.isfinite(std) else f"{std:.2g}")
            table.add_row(word.replace("_", " "), of, f"{value:.6g}", shown, unit)
    fit = rich.Table(title="torque error, % of torque")
    for name in ("channel", "as recorded", "corrected"):
        fit.add_column(name, justify="left" if name == "channel" else "right")
    before = dict(zip(calibration.uncorrected.base.channels, 100 * calibration.uncorrected.relative_error, strict=True))
    for channel, error in zip(
        calibration.estimate.base.channels, 100 * calibration.estimate.relative_error, strict=True
    ):
        fit.add_row(channel, f"{before[channel]:.3g}", f"{error:.3g}")
    closing = f"{'converged' if calibration.converged else 'not converged'} after {calibration.iterations} iterations"
    return rendered(table, fit, closing, *calibration.warnings)
