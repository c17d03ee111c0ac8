"""Coverage: how often the true base parameters lie in their 95 % confidence intervals.

Nothing here is published. The plants are integrated with the forward dynamics of MuJoCo and Pinocchio, so that neither
the data nor the truth come from our own simulator. The model is complete; the torques carry white or autocorrelated
noise, the positions are counted by encoders, and the prior is wrong.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from dynid.dynamics.functions import inverse_dynamics, regressor
from dynid.identification.estimators.registry import find_method
from dynid.identification.pipeline import identify
from dynid.parameters.base import BaseParameters
from dynid.progress import Progress
from dynid.robot.model import Robot
from dynid.signals.settings import Signals
from dynid.simulation.engine import simulate
from studies.reproduce.coverage_plants import ARMS, NOISES, RATE, Arm
from studies.reproduce.study import Figure, kept_figures

__all__ = [
    "METHODS",
    "SIGNALS",
    "Coverage",
    "Errors",
    "centred",
    "coverage",
    "figures",
    "identified",
    "true_values",
]

Array = NDArray[np.float64]

METHODS = ("auto", "wls", "feasible", "iv")
LEVEL, LOWEST, HIGHEST = 0.95, 0.90, 0.98
_IDENTIFIED = 0.3
_RECORD = "for the record"

# The low-pass of the positions passes the whole band that is left after decimation, up to 20 Hz.
SIGNALS = Signals(cutoff=40.0, decimate=(10, 2))


@dataclass(frozen=True, eq=False)
class Errors:
    """Base parameters of one estimate: names, estimate minus truth, standard deviation, whether they are covered."""

    names: tuple[str, ...]
    error: Array
    std: Array
    covered: NDArray[np.bool]


@dataclass(frozen=True, eq=False)
class Coverage:
    """Errors over the runs of one arm, noise and method, and the names of base parameters that the data identify."""

    runs: tuple[Errors, ...]
    identified: frozenset[str]

    @property
    def share(self) -> float:
        """Share of the identified base parameters of all runs that are covered."""
        return float(np.concatenate(self._covered).mean())

    @property
    def share_of_all(self) -> float:
        """Share of all base parameters, with those that the prior decides where a method has one."""
        return float(np.concatenate([run.covered for run in self.runs]).mean())

    @property
    def standard_error(self) -> float:
        """Standard error of the share, at least that of independent parameters at the nominal level.

        Parameters of one run are correlated, runs are not.
        """
        covered = self._covered
        scatter = np.std([c.mean() for c in covered], ddof=1) / np.sqrt(len(covered))
        return float(max(scatter, np.sqrt(LEVEL * (1 - LEVEL) / sum(c.size for c in covered))))

    @property
    def rms_z(self) -> float:
        """Root mean square of the errors of identified base parameters over their standard deviations.

        Infinite where an active constraint determines a parameter, whose standard deviation is then zero.
        """
        with np.errstate(divide="ignore"):
            z = np.concatenate([(run.error / run.std)[self._of(run)] for run in self.runs])
        return float(np.sqrt(np.mean(z**2)))

    @property
    def _covered(self) -> list[NDArray[np.bool]]:
        return [run.covered[self._of(run)] for run in self.runs]

    def _of(self, run: Errors) -> NDArray[np.bool]:
        return np.array([name in self.identified for name in run.names])


def figures(full: bool = False, folder: Path | None = None) -> Iterator[Figure]:
    """10 runs for each arm and noise, or 100."""
    runs, allowance = (100, 0.0) if full else (10, 2.0)
    sections: dict[str, Callable[[], Iterator[Figure]]] = {}
    for title, arm in ARMS.items():
        sections[f"{title}, plant"] = partial(_plant, title, arm)
        for noise in NOISES:
            sections[f"{title}, noise {noise}, {runs} runs"] = partial(_noise, title, arm, noise, runs, allowance)
    yield from kept_figures("coverage", sections, folder)


def _section(title: str, arm: Arm) -> str:
    return f"{title} ({arm.name}), integrated by {arm.engine}"


def _noise(title: str, arm: Arm, noise: str, runs: int, allowance: float) -> Iterator[Figure]:
    """Coverage of all methods with one kind of noise, and of one method with default signals."""
    what, corner = f"{title}, noise {noise}", NOISES[noise]
    kind = "white torque noise" if corner is None else f"torque noise with a corner of {noise}"
    section = f"{_section(title, arm)}: {kind}"
    for method, found in coverage(arm, corner, runs, what=what).items():
        yield _share(section, method, found, allowance * found.standard_error)
    default = coverage(arm, corner, runs, ("wls",), Signals(), what=f"{what}, default signals")["wls"]
    yield _share(section, "wls with default signals", default, np.inf)


def _share(section: str, method: str, found: Coverage, tolerance: float) -> Figure:
    """The share that is covered, against its band."""
    outside = max(LOWEST - found.share, found.share - HIGHEST, 0.0)
    band = f"{100 * LOWEST:.0f} to {100 * HIGHEST:.0f} %"
    ours = f"{100 * found.share:.1f} % (of all {100 * found.share_of_all:.1f} %; RMS z {found.rms_z:.2f})"
    reason = f"{len(found.runs)} runs, {len(found.identified)} identified of {len(found.runs[0].names)} base parameters"
    if tolerance:
        reason = f"{reason}; {_RECORD if np.isinf(tolerance) else 'two standard errors of so few runs'}"
    return Figure(section, f"{method}: covered", band, ours, outside, tolerance, reason)


def coverage(
    arm: Arm,
    corner: float | None,
    runs: int,
    methods: Sequence[str] = METHODS,
    signals: Signals = SIGNALS,
    workers: int = -1,
    what: str = "",
) -> dict[str, Coverage]:
    """Coverage of each method over `runs` recordings of an arm with torque noise of this corner frequency (Hz).

    `workers` is the number of processes, -1 for one per core. `what` is the name of this part in the progress.
    """
    _ = arm.motion  # integrated once, here, and not by every worker
    started = time.perf_counter()
    tasks = (delayed(_run)(arm, corner, seed, tuple(methods), signals) for seed in range(runs))
    found: list[list[Errors]] = []
    for each in Parallel(n_jobs=workers, return_as="generator")(tasks):
        found.append(each)
        left = (time.perf_counter() - started) * (runs / len(found) - 1)
        if what:
            _say(Progress(f"{what}: {len(found)}/{runs} runs", len(found) / runs, left))
    names = identified(arm, corner)
    return {method: Coverage(of_runs, names) for method, of_runs in zip(methods, zip(*found, strict=True), strict=True)}


def identified(arm: Arm, corner: float | None) -> frozenset[str]:
    """Base parameters that the data determine without a prior: std of least squares below 30 % of the magnitude."""
    estimate = identify(arm.prior, arm.recording(corner, 0), "wls", signals=centred(SIGNALS))
    small = estimate.std < _IDENTIFIED * np.abs(estimate.base.values(arm.truth.parameters))
    return frozenset(name for name, good in zip(estimate.base.names, small, strict=True) if good)


def _run(arm: Arm, corner: float | None, seed: int, methods: Sequence[str], signals: Signals) -> list[Errors]:
    """Errors, standard deviations and whether the intervals contain the truth, for each method on one recording."""
    recording = arm.recording(corner, seed)
    out = []
    for method in methods:
        if find_method(method).simulates:
            # The loop with the prior is unstable: without rotor inertia the gains are too high.
            estimate = identify(arm.prior, recording, method, signals=signals, loop=arm.loop, start="feasible")
        else:
            estimate = identify(arm.prior, recording, method, signals=centred(signals))
        truth = true_values(arm.truth, estimate.base)
        lower, upper = estimate.confidence_intervals(LEVEL).T
        covered = (lower <= truth) & (truth <= upper)
        out.append(Errors(estimate.base.names, estimate.beta - truth, estimate.std, covered))
    return out


def true_values(truth: Robot, base: BaseParameters) -> Array:
    """The truth in the base parameters of a model whose drive terms a method may have chosen.

    A model that has all terms of the plant, viscous friction perhaps per direction, has their values, and zero for the
    others. If a true term was left out, they are the values that fit the true torques along a random motion best.
    """
    names = base.robot.parameter_names
    values = dict(zip(truth.parameter_names, truth.parameters, strict=True))
    for name in [n for n in values if n.startswith("fv_") and n not in names]:
        values |= dict.fromkeys((f"fvp_{name[3:]}", f"fvn_{name[3:]}"), values.pop(name))
    if set(values) <= set(names):
        return base.values([values.get(name, 0.0) for name in names])
    q, v, a = np.random.default_rng(0).uniform(-2.0, 2.0, (3, 500, truth.n))
    columns = regressor(base.robot, q, v, a)[:, :, list(base.kept)].reshape(-1, base.count)
    return np.asarray(np.linalg.lstsq(columns, inverse_dynamics(truth, q, v, a).ravel())[0])


def centred(signals: Signals) -> Signals:
    """The signals with torques half a control period later; closed-loop methods know this from their loop.

    A torque is recorded when it begins to act and is held for a period.
    """
    return replace(signals, delay=-0.5 / RATE)


def _plant(title: str, arm: Arm) -> Iterator[Figure]:
    """The same closed loop in our simulator, and what signal processing alone does to an estimate."""
    _say(Progress(f"integrating the arm with {title} by {arm.engine}"))
    section = f"{_section(title, arm)}: the plant and the filters"
    q, _, _ = arm.motion
    ours = simulate(arm.truth, arm.loop, arm.reference)
    apart = float(np.abs(ours.q - q).max())
    yield Figure(
        section, "largest difference of positions from our simulation, rad", "0", f"{apart:.1e}", apart, 1e-6,
        "two integrators, their steps short against friction",
    )  # fmt: skip
    noisy = identify(arm.prior, arm.recording(None, 0), "wls", signals=centred(SIGNALS))
    truth = noisy.base.values(arm.truth.parameters)
    for name, signals, most, reason in (
        ("this study", SIGNALS, 0.3, "0.3 makes errors 4 % larger"),
        ("default", Signals(), np.inf, _RECORD),
    ):
        quiet = identify(arm.prior, arm.recording(None, 0, share=0.0), "wls", signals=centred(signals))
        bias = float(np.sqrt(np.mean(((quiet.beta - truth) / noisy.std) ** 2)))
        title = f"RMS error without torque noise over std with white noise, signals: {name}"
        yield Figure(section, title, "0", f"{bias:.2f}", bias, most, reason)


def _say(progress: Progress) -> None:
    print(f"dynid: {progress}", file=sys.stderr)
