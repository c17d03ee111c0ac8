"""Parts of the PC-DIDIM study that need many loops: fixed parameters, starts, instruments and whiteness.

All but the last run the loop at 1 kHz, with noise of the same density.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dynid.assessment.causes.instruments import instrument_test
from dynid.assessment.causes.residuals import residual_tests
from dynid.errors import DataError, DynidError
from dynid.feasibility.conflict import conflict
from dynid.feasibility.constraints import Constraint, Fixed, Signs
from dynid.feasibility.sets import feasible_set
from dynid.identification.estimate import Estimate
from dynid.identification.experiment import Experiment
from dynid.identification.pipeline import estimate_closed_loop, estimate_from
from dynid.montecarlo.scenario import MonteCarloStudy, Scenario, perturbed_parameters
from dynid.montecarlo.study import monte_carlo
from dynid.parameters.base import base_parameters
from dynid.progress import Progress
from dynid.robot.model import Robot
from dynid.signals.settings import Signals
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.engine import simulate
from studies.reproduce.pc_didim_noise import BAD, GOOD, KEY
from studies.reproduce.study import Figure, finished_rows, number
from studies.reproduce.tx40_loop import RATE, SLOW, TRIM, slow_experiment, tx40_loop, tx40_sensors, tx40_truth

__all__ = ["equality_figures", "instrument_figures", "say", "start_figures", "white_figures"]

_SHARES = (0.1, 0.2, 0.3, 0.4, 0.5)


def say(progress: Progress) -> None:
    """Print progress beside the figures."""
    print(f"dynid: {progress}", file=sys.stderr)


def equality_figures(runs: int, kept: Path | None = None) -> Iterator[Figure]:
    """T7: dependent parameters fixed at wrong values; finished runs are kept in a file."""
    section = "T7 dependent parameters fixed with 5 % error"
    names = base_parameters(tx40_truth()).names
    for label, others, tolerance, reason in (
        ("equalities alone", (), 0.1, "unchanged within 0.1"),
        ("equalities and feasible links", ("full",), 0.1, "unchanged within 0.1, unless a link is on the boundary"),
    ):
        tasks = {f"{label}, {seed}": (seed, others) for seed in range(runs)}
        drawn = [row["found"] for row in finished_rows("T7", _fixed_run, tasks, kept, workers=-1)]
        found = [x for x in drawn if x is not None]
        if others:
            title = f"{label}: draws that no robot satisfies, of {runs}"
            reason_none = "the paper draws its values too, and does not report this"
            yield Figure(section, title, "-", str(runs - len(found)), 0.0, 0.0, reason_none)
        free, fixed, sigma, shift, expected = (np.array(x) for x in zip(*found, strict=True))
        moved = np.abs(fixed.mean(axis=0) - free.mean(axis=0)) / sigma.mean(axis=0)
        for name in KEY[:4]:
            value = float(moved[names.index(name)])
            title = f"{label}, {name}: change of base value, std"
            yield Figure(section, title, "0.02", f"{value:.2f}", value, tolerance, reason)
        slope = float(np.sum(shift * expected) / np.sum(expected**2))
        title = f"{label}: change of kept parameters over -K d"
        yield Figure(section, title, "1", f"{slope:.3f}", abs(slope - 1.0), 0.05, "section IV-E of the paper")


def _fixed_run(seed: int, others: tuple[str, ...]) -> dict[str, Any]:
    """Base values without and with fixed dependent parameters, their std, shift of the kept ones and its prediction.

    None where the drawn values are infeasible.
    """
    experiment = slow_experiment(seed)
    robot = experiment.robot
    base = experiment.base
    dependent = list(base.dependent)
    rng = np.random.default_rng(seed)
    truth = robot.parameters
    error = 0.05 * np.abs(truth[dependent]) * rng.standard_normal(len(dependent))
    names = [robot.parameter_names[i] for i in dependent]
    given = {name: float(truth[i] + e) for name, i, e in zip(names, dependent, error, strict=True)}
    exact = {name: float(truth[i]) for name, i in zip(names, dependent, strict=True)}
    kept = list(base.kept)
    free = estimate_closed_loop(experiment, "pc-didim", constraints=[*others, Signs()], noise_model="white")
    laws: list[list[str | Constraint]] = [[*others, Signs(), Fixed(x)] for x in (exact, given)]
    try:
        right, wrong = (estimate_closed_loop(experiment, "pc-didim", constraints=law) for law in laws)
    except DynidError:
        if not any(conflict(feasible_set(robot, law)) for law in laws):
            raise
        return {"found": None}
    assert right.standard is not None and wrong.standard is not None
    shift = (wrong.standard - right.standard)[kept]
    values = (free.beta, wrong.beta, free.std, shift, -base.matrix[:, dependent] @ error)
    return {"found": [x.tolist() for x in values]}


def _slow_scenario(model: Robot | None = None) -> Scenario:
    controller, motion = tx40_loop(SLOW)
    loop = ClosedLoop(controller=controller, integrator="implicit", substeps=1)
    return Scenario(tx40_truth(), loop, motion, model=model)


def start_figures(draws: int, kept: Path | None = None) -> Iterator[Figure]:
    """T9: starts away from the truth; finished runs are kept in a file."""
    section = "T9 starts away from the truth"
    cases = [(share, seed) for share in _SHARES for seed in range(draws)]
    tasks = {f"{share:g}, {seed}": (share, seed) for share, seed in cases}
    rows = finished_rows("T9", _start_run, tasks, kept, workers=-1)
    found = {case: row["converged"] for case, row in zip(cases, rows, strict=True)}
    lost = np.array([[[not ok for ok in found[share, seed]] for seed in range(draws)] for share in _SHARES]).sum(axis=1)
    labels = [f"{round(100 * share)} %" for share in _SHARES]
    for label, count in zip(labels, lost[:, 0], strict=True):
        yield number(section, f"{label}: PC-DIDIM fails of {draws}", 0, int(count), 0.0, "it always converges")
    for column, name, published in (
        (1, "DIDIM from the same feasible robots", "-"),
        (2, "DIDIM from base values perturbed one by one", "none to 20 or 30 %, then more and more"),
    ):
        shown = ", ".join(f"{label} {n}" for label, n in zip(labels, lost[:, column], strict=True))
        grows = column == 1 or lost[3:, column].sum() > lost[:2, column].sum()
        reason = "more at 40 and 50 % than at 10 and 20 %" if column == 2 else "for comparison; not in the paper"
        yield Figure(section, f"{name}: fails of {draws}", published, shown, float(not grows), 0.0, reason)


def _start_run(share: float, seed: int) -> dict[str, Any]:
    """Whether PC-DIDIM and DIDIM converge from a perturbed feasible robot, and DIDIM from perturbed base values."""
    experiment = slow_experiment(seed)
    base, rng = experiment.base, np.random.default_rng([seed, round(100 * share)])
    feasible = perturbed_parameters(experiment.robot, share, rng)
    truth = base.values()
    arbitrary = base.standard(truth + share * np.abs(truth) * rng.standard_normal(truth.shape))
    runs = (("pc-didim", feasible), ("didim", feasible), ("didim", arbitrary))
    return {"converged": [estimate_closed_loop(experiment, method, start=x).converged for method, x in runs]}


def _dwh(experiment: Experiment, estimate: Estimate) -> Mapping[str, float]:
    """p-value of the revised Durbin-Wu-Hausman test; instruments from the estimate if it converged, else the start."""
    parameters = estimate.parameters if estimate.converged else experiment.robot.parameters
    simulations = experiment.simulate(parameters)
    if not simulations[-1].completed:
        raise DataError(simulations[-1].outcome)
    paired = experiment.pair(simulations)
    noise = estimate_from(paired.measured, "wls").noise
    return {"dwh": instrument_test(paired, noise, correlated_samples=5).p_value}


def instrument_figures(tests: int, folder: Path | None = None) -> Iterator[Figure]:
    """T10: the test with the right model and without friction; finished recordings are kept in `folder`."""
    section = "T10 revised Durbin-Wu-Hausman test"
    truth = tx40_truth()
    # Rows up to the filters' own cut-offs: the test needs several times more samples than there are columns.
    filters = {
        "good": Signals(cutoff=40.0, decimate=(10,), trim=TRIM),
        "bad": Signals(cutoff=200.0, decimate=(4,), trim=TRIM),
    }
    # The test takes simulated states as exact. Their errors, which torque noise causes through the parameters, must be
    # small compared with the noise of the encoders.
    noise = {"accurate": tx40_sensors(32000, SLOW, torque=0.1)}
    common: dict[str, Any] = {"noise": noise, "estimators": ("pc-didim",), "measure": _dwh}

    def fits(scenario: Scenario, name: str, runs: int, kept: str) -> pl.DataFrame:
        study = MonteCarloStudy({"tx40": scenario}, filters={name: filters[name]}, runs=runs, **common)
        return monte_carlo(study, folder=None if folder is None else folder / f"{kept}-{name}", progress=say).fits

    right = fits(_slow_scenario(), "good", tests, "right")
    rate = float((right["dwh"] < 0.05).mean())  # type: ignore[arg-type]
    reach = 0.05 + 3 * np.sqrt(0.05 * 0.95 / tests)
    yield Figure(
        section, f"S1, right model: rejected, of {tests} runs", "not rejected", f"{100 * rate:.1f} %", rate, reach,
        "nominal 5 % and three standard errors of the share; Holm's correction can only lower it",
    )  # fmt: skip
    few = max(tests // 10, 20)
    bad = fits(_slow_scenario(), "bad", few, "right")
    rate = float((bad["dwh"] < 0.05).mean())  # type: ignore[arg-type]
    reach = 0.05 + 3 * np.sqrt(0.05 * 0.95 / few)
    yield Figure(
        section, f"S2, right model: rejected, of {few} runs", "not rejected", f"{100 * rate:.1f} %", rate, reach,
        "as above",
    )  # fmt: skip
    wrong = _slow_scenario(truth.without("fv_motor6", "fc_motor6"))
    for name in filters:
        dropped = fits(wrong, name, few, "dropped")
        rate = float((dropped["dwh"].drop_nulls() < 0.05).mean())  # type: ignore[arg-type]
        yield Figure(
            section, f"coupling friction dropped, {name} filters: rejected, of {few} runs", "rejected",
            f"{100 * rate:.0f} %", 1.0 - rate, 0.1, "rejected in at least 90 %",
        )  # fmt: skip


def white_figures(runs: int, kept: Path | None = None) -> Iterator[Figure]:
    """T11: whiteness of the residual; finished runs are kept in a file."""
    section = "T11 whiteness of the residual"
    tasks = {str(seed): (seed,) for seed in range(runs)}
    found = [row["p"] for row in finished_rows("T11", _whiteness, tasks, kept, workers=-1)]
    good, bad = (np.mean([np.array(x) < 0.05]) for x in zip(*found, strict=True))
    yield Figure(
        section, f"10 Hz: whiteness rejected, of {runs} runs", "white", f"{100 * good:.0f} %", float(good),
        0.05 + 3 * np.sqrt(0.05 * 0.95 / runs), "nominal 5 % and three standard errors of the share",
    )  # fmt: skip
    yield Figure(
        section, f"100 Hz: whiteness rejected, of {runs} runs", "autocorrelated", f"{100 * bad:.0f} %",
        1.0 - float(bad), 0.1, "noise through the feedback is autocorrelated there",
    )  # fmt: skip


def _whiteness(seed: int) -> dict[str, Any]:
    """p-values of whiteness of the residual at the simulation of the truth, at 10 and 100 Hz."""
    robot = tx40_truth()
    controller, motion = tx40_loop(RATE)
    loop = ClosedLoop(controller=controller, sensors=tx40_sensors(32000))
    recording = simulate(robot, loop, motion, seed=seed).recording()
    out = []
    for signals in (GOOD, BAD):
        experiment = Experiment(robot, recording, loop, signals)
        rows = experiment.observe(experiment.simulate(robot.parameters))
        estimate = estimate_from(rows, "wls", noise_model="white")
        out.append(float(residual_tests(rows, estimate.beta, estimate.noise).whiteness.p_value))
    return {"p": out}
