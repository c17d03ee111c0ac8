"""The recorded Staubli TX40 with good and with deliberately bad filters, against Tables V and VII of Janot and Wensing.

The recording has positions and torques, but neither the references nor the controller. Both are replaced: a cascade
with the bandwidths of the paper, and the reference with which that cascade makes a model follow the smoothed positions.
This loop is not that of the robot; docs/study-reports/closed-loop-real.md says what can be concluded from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.controllers import LinearController, bandwidth_gains, cascade
from dynid.dynamics.functions import inverse_dynamics
from dynid.identification.estimate import Estimate
from dynid.identification.experiment import Experiment
from dynid.identification.observing import observe
from dynid.identification.pipeline import estimate_closed_loop, estimate_from
from dynid.recording.recording import Recording
from dynid.robot.load import load_robot
from dynid.robot.model import Robot
from dynid.signals.filters import derivative, lowpass
from dynid.signals.settings import Signals
from dynid.simulation.closed_loop import ClosedLoop
from studies.reproduce.study import Figure, finished_rows, rows_file
from studies.reproduce.tx40 import tx40_recording, tx40_signals

__all__ = ["BAD", "GOOD", "StandIn", "figures", "noisy", "stand_in"]

Array = NDArray[np.float64]

_RATE = 5000.0
_SLOPE = 100.0  # s/rad, of Coulomb friction, measured and simulated alike
_BANDWIDTH = (10.0, 10.0, 10.0, 20.0, 20.0, 20.0)
_SMOOTH = 20.0  # Hz, low-pass of the positions from which the stand-in reference is computed
_NOISE = 1e-3  # rad, gives the published error of least squares on joint 1
_SLOWEST = tx40_signals().min_velocity

# Low-pass of 40 and 400 Hz, decimation to 10 and 100 Hz. The transient of the decimation filter is trimmed.
GOOD = Signals(cutoff=40.0, decimate=(10, 10, 2), trim=0.4, min_velocity=_SLOWEST)
BAD = Signals(cutoff=400.0, decimate=(10, 2), trim=0.4, min_velocity=_SLOWEST)

_METHODS = {
    "feasible": "PC-IDIM-LS",
    "pc-didim": "PC-DIDIM, stand-in loop",
    "pc-iv": "PC-IV, stand-in loop",
}
# Relative torque errors (%) per joint.
_TABLE_V = {"feasible": (5.1, 4.9, 5.0, 5.4, 7.2, 7.0), "pc-didim": (5.3, 5.1, 5.0, 5.5, 7.1, 7.2)}
_TABLE_VII = {"feasible": (51.0, 52.0, 49.0, 55.0, 63.0, 63.0), "pc-didim": (11.0, 11.0, 14.0, 14.0, 17.0, 16.0)}
_POINTS = 3.0
# Signals, noise (rad) added to the positions, and methods.
_CASES: dict[str, tuple[Signals, float, Iterable[str]]] = {
    "good filters": (GOOD, 0.0, _METHODS),
    "bad filters": (BAD, 0.0, _METHODS),
    "noise added": (BAD, _NOISE, _TABLE_VII),
}


@dataclass(frozen=True, eq=False)
class StandIn:
    """The recording with a computed reference, and the controller for which it was computed."""

    robot: Robot
    recording: Recording
    controller: LinearController

    def estimate(self, method: str, signals: Signals) -> Estimate:
        """One estimate; closed-loop methods use the stand-in loop."""
        if method == "feasible":
            seen = observe(self.robot, self.recording, signals=signals)
            return estimate_from(seen, method, metric="euclidean", excess=0.0, noise_model="white")
        loop = ClosedLoop(controller=self.controller)
        return estimate_closed_loop(Experiment(self.robot, self.recording, loop, signals), method, noise_model="white")


def stand_in(recording: Recording, bandwidth: tuple[float, ...] = _BANDWIDTH, smooth: float = _SMOOTH) -> StandIn:
    """Close a loop around the recorded TX40.

    tau = kv (kp (q_ref - q) - v) is solved for q_ref: q and v are positions and velocities after a low-pass at `smooth`
    Hz, tau is the torque of the well filtered PC-IDIM-LS model for them. Measured torques and their noise do not enter.
    """
    robot = load_robot("tx40").with_smooth_coulomb(_SLOPE)
    model = estimate_from(
        observe(robot, recording, signals=GOOD), "feasible", metric="euclidean", excess=0.0
    ).identified_robot
    kp, kv = bandwidth_gains(model, bandwidth)
    runs = []
    for run in recording.runs:
        q = lowpass(run.q, smooth, _RATE)
        v = derivative(q, _RATE)
        tau = inverse_dynamics(model, q, v, derivative(v, _RATE))
        runs.append(replace(run, reference=q + (v + tau / kv) / kp))
    return StandIn(robot, replace(recording, runs=tuple(runs)), cascade(_RATE, kp, kv))


def noisy(recording: Recording, std: float, seed: int = 0) -> Recording:
    """White noise (rad) added to the recorded positions, outside of any loop."""
    rng = np.random.default_rng(seed)
    runs = (replace(run, q=run.q + std * rng.standard_normal(run.q.shape)) for run in recording.runs)
    return replace(recording, runs=tuple(runs))


@dataclass(frozen=True)
class _Fit:
    """Base values, their standard deviations, and torque errors in percent per joint."""

    beta: list[float]
    std: list[float]
    percent: list[float]

    def change_in_std(self, bad: _Fit) -> Array:
        """Change of base values with bad filters, in std of these; values fixed by constraints are left out."""
        good, std = np.array(self.beta), np.array(self.std)
        free = std > 1e-9 * np.abs(good)
        return np.asarray(np.abs(np.array(bad.beta) - good)[free] / std[free])


@cache
def _loop(std: float) -> StandIn:
    recording = tx40_recording()
    return stand_in(noisy(recording, std) if std else recording)


def _row(method: str, signals: Signals, std: float) -> dict[str, Any]:
    found = _loop(std).estimate(method, signals)
    return {
        "beta": found.beta.tolist(), "std": found.std.tolist(), "percent": (100 * found.relative_error).tolist()
    }  # fmt: skip


def figures(folder: Path | None = None) -> Iterator[Figure]:
    """Torque errors and base values with good and bad filters, and with added noise."""
    tasks = {f"{kind}, {m}": (m, *given) for kind, (*given, methods) in _CASES.items() for m in methods}
    rows = finished_rows("tx40-filters", _row, tasks, rows_file("tx40-filters", folder), workers=1)
    fits = {row["name"]: _Fit(row["beta"], row["std"], row["percent"]) for row in rows}
    good, bad, louder = ({m: fits[f"{kind}, {m}"] for m in methods} for kind, (*_, methods) in _CASES.items())
    reason = "percentage points: another motion, another day, perhaps another TX40"
    for section, table, found in (
        ("Table V, good filters: 40 Hz, decimated to 10 Hz", _TABLE_V, good),
        ("Table VII, bad filters: 400 Hz, decimated to 100 Hz", _TABLE_VII, bad),
    ):
        for method, published in table.items():
            for j, (theirs, ours) in enumerate(zip(published, found[method].percent, strict=True), start=1):
                yield _error(
                    section, f"{_METHODS[method]}, joint {j}", theirs, ours, abs(ours - theirs), _POINTS, reason
                )
    section = "Base values, from good filters to bad ones"
    moved = {method: good[method].change_in_std(bad[method]) for method in _METHODS}
    for method, change in moved.items():
        shown = f"rms {np.sqrt(np.mean(change**2)):.2f}, largest {change.max():.1f} std"
        if method == "feasible":
            less, reason = float(moved["pc-didim"].max() - change.max()), "changes more than PC-DIDIM"
            yield Figure(section, _METHODS[method], "-", shown, less, 0.0, reason)
        else:
            yield Figure(
                section, _METHODS[method], "-", shown, float(change.max()), 1.0, "within one standard deviation"
            )
    section = f"Bad filters, noise of {_NOISE:g} rad added to the recorded positions"
    measured, simulated = (louder[method].percent for method in _TABLE_VII)
    quiet = bad["pc-didim"].percent
    for j, theirs in enumerate(_TABLE_VII["feasible"]):
        name, less = f"PC-IDIM-LS, joint {j + 1}", simulated[j] - measured[j]
        yield _error(section, name, theirs, measured[j], less, 0.0, "larger error than PC-DIDIM")
    for j, theirs in enumerate(_TABLE_VII["pc-didim"]):
        name, apart = f"{_METHODS['pc-didim']}, joint {j + 1}", abs(simulated[j] - quiet[j])
        yield _error(section, name, theirs, simulated[j], apart, 1.0, "one point from that without added noise")


def _error(
    section: str, name: str, theirs: float, ours: float, difference: float, tolerance: float, reason: str
) -> Figure:
    return Figure(section, name, f"{theirs:g} %", f"{ours:.1f} %", difference, tolerance, reason)
