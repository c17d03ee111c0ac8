"""What a calibration of the sensors found, and recordings freed of it."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from dynid.calibration.sensors.unknowns import WORDS, Values, corrected_run
from dynid.identification.estimate import Estimate
from dynid.recording.recording import Recording, Run
from dynid.robot.model import Robot

__all__ = ["SensorCalibration"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SensorCalibration:
    """Errors of the sensors with their deviations, and the parameters estimated together with them.

    `values` and `std` hold one array a word: delay, torque_gain, torque_offset, encoder_offset, velocity_gain and
    velocity_offset one a joint, tilt (2,), wrench_delay (1,) and wrench_offset (6,). What was not estimated has the
    value of a perfect sensor and a deviation of zero. `names` and `covariance` are those of the unknowns that the
    torques tell. `robot` has the gravity that was found. `estimate` are the base parameters with all that is unknown
    of the sensors in their covariance, `uncorrected` those that the same recordings, runs with a known payload left
    out, give as they are. `warnings` say what cannot be seen.
    """

    robot: Robot
    words: tuple[str, ...]
    values: Values
    std: Values
    names: tuple[str, ...]
    covariance: Array
    estimate: Estimate
    uncorrected: Estimate
    iterations: int
    converged: bool
    warnings: tuple[str, ...] = ()
    periodic: bool = False

    @property
    def delay(self) -> Array:
        """Seconds by which each torque lags the positions (n,)."""
        return self.values["delay"]

    @property
    def torque_gain(self) -> Array:
        """What each torque signal shows of a true newton metre (n,)."""
        return self.values["torque_gain"]

    @property
    def torque_offset(self) -> Array:
        """What each torque signal shows at a true zero (n,)."""
        return self.values["torque_offset"]

    @property
    def encoder_offset(self) -> Array:
        """What each encoder shows at the model's zero position (n,)."""
        return self.values["encoder_offset"]

    @property
    def tilt(self) -> Array:
        """Angles (2,) by which gravity is turned in the base frame, about the axes perpendicular to the nominal one."""
        return self.values["tilt"]

    @property
    def gravity(self) -> Array:
        """Gravity (3,) in the base frame."""
        return self.robot.gravity

    def corrected(self, recording: Recording) -> Recording:
        """A recording as perfect sensors would have made it; ends that a delay leaves without torque are cut off."""
        return Recording(recording.joints, tuple(self._corrected(run) for run in recording.runs))

    def _corrected(self, run: Run) -> Run:
        out = corrected_run(run, self.values, self.periodic)
        late = np.concatenate([self.delay, self.values["wrench_delay"], [0.0]])
        if self.periodic or not late.any():
            return out
        ends = run.t[0] - late.min(), run.t[-1] - late.max()
        inside = np.flatnonzero((run.t >= ends[0]) & (run.t <= ends[1]))
        return out.rows(int(inside[0]), int(inside[-1]) + 1)

    def summary(self) -> str:
        """A table of what was found, and how much closer the torques are fitted."""
        return _text(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
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
    table = Table(title=f"{calibration.robot.name}: sensors")
    for name in ("error", "of", "value", "sigma", "unit"):
        table.add_column(name, justify="right" if name in ("value", "sigma") else "left")
    for word in calibration.words:
        columns = zip(_entries(calibration, word), calibration.values[word], calibration.std[word], strict=True)
        for of, value, std in columns:
            shown = "fixed" if std == 0 else ("not seen" if not np.isfinite(std) else f"{std:.2g}")
            table.add_row(word.replace("_", " "), of, f"{value:.6g}", shown, WORDS[word])
    fit = Table(title="torque error, % of torque")
    for name in ("channel", "as recorded", "corrected"):
        fit.add_column(name, justify="left" if name == "channel" else "right")
    before = dict(zip(calibration.uncorrected.base.channels, 100 * calibration.uncorrected.relative_error, strict=True))
    for channel, error in zip(
        calibration.estimate.base.channels, 100 * calibration.estimate.relative_error, strict=True
    ):
        fit.add_row(channel, f"{before[channel]:.3g}", f"{error:.3g}")
    closing = f"{'converged' if calibration.converged else 'not converged'} after {calibration.iterations} iterations"
    console = Console(file=io.StringIO(), width=120, highlight=False)
    for part in (table, fit, closing, *calibration.warnings):
        console.print(part)
    return console.file.getvalue()  # type: ignore[attr-defined]
