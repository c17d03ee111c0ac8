"""All estimators on simulated robots with known parameters: accuracy, robustness and time in one table."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dynid.errors import DataError
from dynid.identification.estimators.registry import own_methods
from dynid.montecarlo.scenario import Estimator, MonteCarloStudy, Start
from dynid.montecarlo.study import MonteCarlo, monte_carlo
from dynid.parameters.base import base_parameters
from dynid.progress import ProgressCallback
from dynid.robot.model import Robot
from dynid.signals.settings import Signals
from dynid.simulation.sensors import Sensors
from studies.benchmark.robots import DURATION, RATE, benchmark_robot, held_out, make_scenario

__all__ = ["BENCHMARK_ROBOTS", "Benchmark", "default_methods", "run_benchmark"]

BENCHMARK_ROBOTS = ("tx40", "rv2sq", "puma560", "wam7", "iiwa14")
COUNTS = (32000, 1000)
# Methods that need many simulations, minutes per robot; they run only if they are named.
SLOW = ("clie", "cloe", "ekf", "ml", "ukf")
_VELOCITY_CUTOFF = 100.0
_FILTERS = {
    "40 Hz": Signals(cutoff=40.0, decimate=(10, 5), trim=0.4),
    "200 Hz": Signals(cutoff=200.0, decimate=(5,), trim=0.4),
}
_NARROW, _WIDE = _FILTERS
_STARTS: dict[str, Start] = {"truth": "truth", "30 % off": 0.3}
_SEED = 2021
_ERRORS = ("torque_error", "sigmas", "covered")
_CASE = ("robot", "noise", "filter", "start", "method")


@dataclass(frozen=True, eq=False)
class Benchmark:
    """Results of the benchmark: `table`, one row per robot, case and method, and all individual fits in `results`.

    torque_error: relative torque error in percent on a noise-free unseen motion, averaged over joints. sigmas: median
    error of the base parameters in units of their predicted standard deviations, 0.67 if those are correct. covered:
    share of the base parameters within two standard deviations of the truth. All three are medians over the fits that
    converged; `converged` is the share of such fits, iterations and seconds are means.
    """

    table: pl.DataFrame
    results: MonteCarlo
    runs: int
    computer: str

    def overview(self) -> pl.DataFrame:
        """The table aggregated over robots: medians, the worst robot, and shares of all runs."""
        return self.table.group_by(*_CASE[1:], maintain_order=True).agg(
            pl.col("converged").mean(),
            pl.col("torque_error").median(),
            pl.col("torque_error").max().alias("worst_robot"),
            *(pl.col(c).median() for c in ("sigmas", "covered")),
            *(pl.col(c).mean() for c in ("iterations", "seconds")),
        )

    def summary(self) -> str:
        """The overview as Markdown, with the computer on which it was made."""
        robots = self.table["robot"].unique(maintain_order=True).to_list()
        head = ("counts", "filter", "start", "method", "converged", "torque error %", "worst robot %", "error / sigma",
                "within 2 sigma", "iterations", "seconds")  # fmt: skip
        lines = [
            f"{', '.join(robots)}: {self.runs} recordings of {DURATION:g} s at {RATE:g} Hz for every noise",
            f"on {self.computer}",
            "",
            f"| {' | '.join(head)} |",
            f"|{'---|' * len(head)}",
        ]
        for row in self.overview().iter_rows(named=True):
            case = row["noise"], row["filter"], row["start"] or "-", row["method"], _percent(row["converged"])
            errors = (_number(row[c]) for c in ("torque_error", "worst_robot", "sigmas"))
            costs = (_number(row[c]) for c in ("iterations", "seconds"))
            lines.append(f"| {' | '.join([*case, *errors, _percent(row['covered']), *costs])} |")
        return "\n".join([*lines, ""])

    def to_dict(self) -> dict[str, Any]:
        """The table and the computer on which it was made, as plain data."""
        return {"computer": self.computer, "runs": self.runs, "table": self.table.to_dicts()}


def default_methods() -> tuple[str, ...]:
    """Ordinary and feasible least squares, and every closed-loop method except the slow ones."""
    return (
        "wls",
        "feasible",
        *(name for name, method in own_methods().items() if method.simulates and name not in SLOW),
    )


def run_benchmark(
    robots: Sequence[str] = BENCHMARK_ROBOTS,
    runs: int = 2,
    counts: Sequence[int] = COUNTS,
    methods: Sequence[str] | None = None,
    workers: int | None = None,
    folder: str | Path | None = None,
    progress: ProgressCallback | None = None,
) -> Benchmark:
    """Run the benchmark with its fixed seeds; `counts` are encoder counts per revolution.

    Every encoder is combined with the narrow filter, the finest encoder also with one that is too wide for least
    squares.
    """
    if len(set(robots)) < len(robots) or not robots:
        raise DataError("the benchmark needs robots, each of them once")
    if not counts or min(counts) < 1:
        raise DataError(f"encoder counts per revolution must be positive, got {', '.join(map(str, counts))}")
    estimators = [Estimator(method) for method in methods or default_methods()]
    truths = {name: benchmark_robot(name) for name in robots}
    noise = {str(c): Sensors(noise=2 * np.pi / c / np.sqrt(12), velocity_cutoff=_VELOCITY_CUTOFF) for c in counts}
    study = MonteCarloStudy(
        robots={name: make_scenario(robot) for name, robot in truths.items()},
        noise=noise,
        filters=_FILTERS,
        starts=_STARTS,
        estimators=estimators,
        runs=runs,
        seed=_SEED,
        pairs=[*((c, _NARROW) for c in noise), (str(max(counts)), _WIDE)],
    )
    results = monte_carlo(study, workers=workers, folder=folder, progress=progress)
    return Benchmark(_table(results, truths), results, runs, _computer(workers))


def _table(results: MonteCarlo, robots: dict[str, Robot]) -> pl.DataFrame:
    errors = pl.concat([_errors(results.estimates.filter(robot=name), robot) for name, robot in robots.items()])
    fits = results.fits.join(errors, on=[*_CASE, "run"], how="left", nulls_equal=True, maintain_order="left")
    good = pl.col("outcome") == "converged"
    return fits.group_by(_CASE, maintain_order=True).agg(
        pl.len().alias("runs"),
        good.mean().alias("converged"),
        *(pl.col(c).filter(good).median() for c in _ERRORS),
        *(pl.col(c).filter(good).mean() for c in ("iterations", "seconds")),
    )


def _errors(estimates: pl.DataFrame, robot: Robot) -> pl.DataFrame:
    """Errors of every fit of one robot: of torques on the held-out motion, and of base values in units of their std."""
    base = base_parameters(robot, channels="torque")
    W = base.regressor(*held_out(robot))
    torque = np.linalg.norm(W @ base.values(), axis=0)
    rows = []
    for key, fit in estimates.filter(kind="base").group_by(*_CASE, "run", maintain_order=True):
        assert fit["parameter"].to_list() == list(base.names)
        off = (fit["estimate"] - fit["truth"]).to_numpy()
        share = 100 * float(np.mean(np.linalg.norm(W @ off, axis=0) / torque))
        sigma = fit["std"].to_numpy()
        # A value fixed by a constraint has zero standard deviation: its ratio is zero or infinite.
        ratio = np.divide(np.abs(off), sigma, out=np.where(off == 0, 0.0, np.inf), where=sigma > 0)
        rows.append((*key, share, float(np.median(ratio)), float(np.mean(ratio <= 2))))
    types = {**dict.fromkeys(_CASE, pl.String), "run": pl.Int64, **dict.fromkeys(_ERRORS, pl.Float64)}
    return pl.DataFrame(rows, schema=types, orient="row")


def _computer(workers: int | None) -> str:
    from dynid import __version__

    cores = len(os.sched_getaffinity(0))
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}"
    return f"{system}, dynid {__version__}, {cores} cores, {workers or cores} workers"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"
