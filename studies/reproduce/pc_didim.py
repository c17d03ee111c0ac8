"""PC-DIDIM on a simulated TX40: statements of Janot and Wensing (2021) with other parameters, motion and gains.

Their CAD values, gains and motion are not printed. The truth here is the built-in TX40, the motion is designed, the
noise is that of rounding to encoder counts, inside the loop, and white noise on the recorded torques. The values of
their tables cannot be reproduced; their statements about the estimators can be checked.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dynid.identification.covariance import barrier_covariance, base_covariance, shortest_covariance
from dynid.identification.estimate import Estimate
from dynid.identification.experiment import Experiment
from dynid.identification.pipeline import estimate_from
from dynid.montecarlo.scenario import Estimator, MonteCarloStudy, Scenario
from dynid.montecarlo.study import MonteCarlo, monte_carlo
from dynid.parameters.base import base_parameters
from dynid.robot.load import load_robot
from dynid.simulation.closed_loop import ClosedLoop
from studies.reproduce.pc_didim_loops import equality_figures, instrument_figures, say, start_figures, white_figures
from studies.reproduce.pc_didim_noise import BAD, ESTIMATORS, GOOD, KEY, PAPER, base_values, biased, grid_figures
from studies.reproduce.study import Figure, number
from studies.reproduce.tx40_loop import RATE, slow_experiment, tx40_loop, tx40_sensors, tx40_truth

__all__ = ["figures", "scenarios"]

Array = NDArray[np.float64]

_FEWEST, _QUICK, _MANY = 2, 4, 300


def figures(full: bool = False, folder: Path | None = None) -> Iterator[Figure]:
    """Four runs of every scenario and T7 to T10 left out; `full`: 300 runs as in the paper, and all.

    Finished recordings are kept in `folder`.
    """
    runs = _MANY if full else _QUICK
    yield from _ranks()
    main = monte_carlo(scenarios(runs), folder=_part(folder, "scenarios"), progress=say)
    print(main.summary(list(KEY)), file=sys.stderr)
    yield from _accurate(main)
    yield from _badly_filtered(main)
    yield from _poor_encoders(main)
    if full:
        yield from grid_figures(10, folder=_part(folder, "grid"), progress=say)
    else:
        yield from grid_figures(_FEWEST, PAPER[:1], PAPER[1:], folder=_part(folder, "paper"), progress=say)
    yield from _iterations(main)
    yield from _covariances(main)
    if full:
        yield from equality_figures(40, _part(folder, "equalities.jsonl"))
        yield from _constraint_types(40, _part(folder, "constraints"))
        yield from start_figures(20, _part(folder, "starts.jsonl"))
        yield from instrument_figures(200, folder)
    yield from white_figures(40 if full else _FEWEST, _part(folder, "whiteness.jsonl"))
    yield from _torque_errors(main)


def _part(folder: Path | None, name: str) -> Path | None:
    return None if folder is None else folder / name


def scenarios(runs: int) -> MonteCarloStudy:
    """S1, S2 and S3 of the paper with PC-IDIM-LS and PC-DIDIM."""
    controller, motion = tx40_loop(RATE)
    return MonteCarloStudy(
        robots={"tx40": Scenario(tx40_truth(), ClosedLoop(controller=controller), motion)},
        noise={"accurate": tx40_sensors(32000), "poor": tx40_sensors(1000)},
        filters={"good": GOOD, "bad": BAD},
        pairs=[("accurate", "good"), ("accurate", "bad"), ("poor", "good")],
        estimators=ESTIMATORS,
        runs=runs,
        measure=_relative_errors,
    )


def _relative_errors(_: Experiment, estimate: Estimate) -> Mapping[str, float]:
    return {f"error{j}": 100 * float(e) for j, e in enumerate(estimate.relative_error, start=1)}


def _of(main: MonteCarlo, noise: str, filters: str, method: str) -> dict[str, dict[str, float]]:
    return base_values(main, noise=noise, filter=filters, method=method)


def _ranks() -> Iterator[Figure]:
    section = "T1 base parameters of the TX40"
    robot = load_robot("tx40")
    cases = {
        52: robot.without("Ia_motor6", "fv_motor6", "fc_motor6", "off_*"),
        54: robot.without("Ia_motor6", "off_*"),
        60: robot.without("Ia_motor6"),
        61: robot,
    }
    for count, model in cases.items():
        ours = base_parameters(model).count
        yield number(section, f"{len(model.layout)} standard", count, ours, 0.0, "a count is exact")


def _accurate(main: MonteCarlo) -> Iterator[Figure]:
    section = "T2 S1: accurate encoders, good filters"
    ls, pc = (_of(main, "accurate", "good", m) for m in ("PC-IDIM-LS", "PC-DIDIM"))
    for name in KEY:
        a, b = ls[name], pc[name]
        apart = abs(a["mean"] - b["mean"]) / b["std"]
        bias = abs(b["mean"] - b["truth"]) / b["std"]
        yield Figure(
            section, f"{name}: difference of LS and DIDIM, std", "0.1 (Ia6 1)", f"{apart:.2f}", apart,
            1.0 if name != "Ia_joint6" else 2.0, "the paper's own bias is one standard deviation",
        )  # fmt: skip
        yield Figure(
            section, f"{name}: error of PC-DIDIM, std", "up to 1.1", f"{bias:.2f}", bias, 1.5,
            "the paper's own error is up to 1.1",
        )  # fmt: skip
    for name in KEY[:2]:
        share = 100 * pc[name]["std"] / abs(pc[name]["truth"])
        yield Figure(section, f"{name}: std %", "0.4, 0.8", f"{share:.2f}", share, 1.0, "below 1 %")


def _badly_filtered(main: MonteCarlo) -> Iterator[Figure]:
    """Table II of the paper, which is this scenario alone: least squares is low, PC-DIDIM is not."""
    section = "T3 S2: accurate encoders, bad filters"
    ls, pc = (_of(main, "accurate", "bad", m) for m in ("PC-IDIM-LS", "PC-DIDIM"))
    for name, value in {"Izz_link1R": -23.8, "Ia_joint6": -100.0, "fv_joint6": -26.1}.items():
        bias = ls[name]["bias_percent"]
        least = 10.0 if name != "Ia_joint6" else 90.0
        yield Figure(
            section, f"{name}: bias of PC-IDIM-LS %", f"{value:g}", f"{bias:.1f}", max(0.0, least + bias), 0.0,
            f"at least {least:g} % low",
        )  # fmt: skip
    yield from _unbiased(section, pc, "0.1 to 0.7")


def _poor_encoders(main: MonteCarlo) -> Iterator[Figure]:
    """The paper has no table of this scenario, only the statement that least squares is biased and PC-DIDIM is not."""
    section = "T4 S3: poor encoders, good filters"
    ls, pc = (_of(main, "poor", "good", m) for m in ("PC-IDIM-LS", "PC-DIDIM"))
    off = biased(ls)
    shown = f"{len(off)} of {len(KEY)} {', '.join(off)}".rstrip()
    yield Figure(
        section, "base values that PC-IDIM-LS has wrong", "'differ significantly'", shown, float(not off), 0.0,
        "at least one is 5 % and three predicted standard deviations off; no value is printed",
    )  # fmt: skip
    yield from _unbiased(section, pc, "'very close'")


def _unbiased(section: str, pc: Mapping[str, Mapping[str, float]], published: str) -> Iterator[Figure]:
    for name in ("Izz_link1R", "mx_link2R", "fv_joint6"):
        bias = pc[name]["bias_percent"]
        yield Figure(section, f"{name}: bias of PC-DIDIM %", published, f"{bias:.2f}", abs(bias), 1.0, "within 1 %")


def _iterations(main: MonteCarlo) -> Iterator[Figure]:
    section = "T5 iterations of PC-DIDIM"
    fits = main.fits.filter(pl.col("method") == "PC-DIDIM")
    for noise, filters, expected in (
        ("accurate", "good", "3.4"),
        ("accurate", "bad", "5.3"),
        ("poor", "good", "5.3"),
    ):
        mine = fits.filter((pl.col("noise") == noise) & (pl.col("filter") == filters))
        converged = mine.filter(pl.col("outcome") == "converged")
        mean, most = float(converged["iterations"].mean()), int(mine["iterations"].max())  # type: ignore[arg-type]
        reason = "not more than the paper's 3 to 4" if filters == "good" and noise == "accurate" else "below 10"
        bound = 4.0 if filters == "good" and noise == "accurate" else 9.0
        yield Figure(section, f"{noise}, {filters}: mean", expected, f"{mean:.2f}", mean, bound, reason)
        yield Figure(section, f"{noise}, {filters}: most", "< 10", str(most), float(most), 9.0, "below 10 always")
        lost = mine.height - converged.height
        yield number(section, f"{noise}, {filters}: runs that did not converge", 0, lost, 0.0, "every run converges")
    smallest = float(fits["smallest"].min())  # type: ignore[arg-type]
    yield Figure(
        section, "smallest slack of any iterate", "> 0", f"{smallest:.1e}", max(0.0, -smallest), 1e-9,
        "every iterate is feasible to rounding; each was simulated, so its mass matrix is positive definite",
    )  # fmt: skip


def _covariances(main: MonteCarlo) -> Iterator[Figure]:
    section = "T6 covariance"
    runs = main.fits["run"].n_unique()
    blur = 3.0 / np.sqrt(2.0 * runs)
    for kind, reason in (
        ("base", "within 10 % and three standard errors of the standard deviation over the runs"),
        (
            "standard",
            "as above; the active constraints change from run to run, which a linearisation cannot describe",
        ),
    ):
        table = main.parameters(kind).filter(
            (pl.col("method") == "PC-DIDIM") & (pl.col("noise") == "accurate") & (pl.col("filter") == "good")
        )
        # A parameter fixed by the prior or a constraint has no scatter to compare with.
        free = table.filter(pl.col("std") > 1e-6 * pl.col("truth").abs().clip(lower_bound=1e-6))
        ratio = (free["predicted"] / free["std"]).to_numpy()
        typical, inside = float(np.median(ratio)), float(np.mean(np.abs(ratio - 1.0) <= 0.1 + blur))
        name = f"{kind} parameters: predicted over Monte Carlo std"
        yield Figure(section, f"{name}, median", "1.0", f"{typical:.3f}", abs(typical - 1.0), 0.1, "within 10 %")
        title = f"{kind} parameters within 10 % and {100 * blur:.0f} %, of {len(ratio)}"
        yield Figure(section, title, "100 %", f"{100 * inside:.0f} %", 1.0 - inside, 0.05, reason)
    yield from _identities(section)


def _identities(section: str) -> Iterator[Figure]:
    """Exact identities of the covariances (53), (55) and (56)."""
    experiment = slow_experiment(0)
    robot = experiment.robot.without("off_*")
    experiment = replace(experiment, robot=robot)
    rows = experiment.observe(experiment.simulate(robot.parameters))
    base, noise = experiment.base, estimate_from(rows, "wls").noise
    factor = rows.stacked(1.0 / noise)[:-1, :-1]
    inverse = np.linalg.inv(factor)
    didim = inverse @ inverse.T
    full = factor @ base.matrix
    shortest = shortest_covariance(full)
    plain = np.linalg.pinv(full.T @ full, rcond=1e-14, hermitian=True)
    barrier = base_covariance(base, barrier_covariance(robot, robot.parameters, full))
    for name, ours, exact, tolerance in (
        ("(53) is the pseudo-inverse of X'X", shortest, plain, 1e-6),
        ("(53) projected is that of DIDIM", base_covariance(base, shortest), didim, 1e-10),
        ("(55) projected (56) is that of DIDIM", barrier, didim, 0.01),
    ):
        apart = float(np.linalg.norm(ours - exact) / np.linalg.norm(exact))
        reason = "the normal equations square the condition number" if tolerance == 1e-6 else "they are equal in theory"
        yield Figure(section, name, "equal", f"{apart:.1e}", apart, tolerance, reason)


def _constraint_types(runs: int, folder: Path | None) -> Iterator[Figure]:
    section = "T8 full and semi-consistency"
    study = scenarios(runs)
    chosen = tuple(
        Estimator("pc-didim", {"constraints": kind}, name=kind, noise_model="white") for kind in ("full", "semi")
    )
    small = MonteCarloStudy(
        study.robots, {"accurate": study.noise["accurate"]}, study.filters, study.starts, chosen, runs
    )
    found = monte_carlo(small, folder=folder, progress=say)
    for filters in ("good", "bad"):
        full, semi = (_of(found, "accurate", filters, kind) for kind in ("full", "semi"))
        apart = max(abs(full[n]["mean"] - semi[n]["mean"]) / full[n]["predicted"] for n in full)
        yield Figure(
            section, f"{filters} filters: largest difference of a base value, std", "little",
            f"{apart:.2f}", apart, 1.0, "less than one standard deviation",
        )  # fmt: skip


def _torque_errors(main: MonteCarlo) -> Iterator[Figure]:
    """The paper has torque errors of the real arm only, which `tx40-filters` is compared with."""
    section = "T12 relative torque errors of the simulated arm, % per joint"
    mean: dict[tuple[str, str], Array] = {}
    for filters in ("good", "bad"):
        for method in ("PC-IDIM-LS", "PC-DIDIM"):
            mine = main.fits.filter(
                (pl.col("noise") == "accurate") & (pl.col("filter") == filters) & (pl.col("method") == method)
            )
            errors = np.array([mine[f"error{j}"].mean() for j in range(1, 7)], dtype=float)
            mean[filters, method] = errors
            reason = "for the record: none is published of a simulation"
            yield Figure(section, f"{filters} filters, {method}", "-", _list(errors), 0.0, 0.0, reason)
    ratio = mean["bad", "PC-IDIM-LS"] / mean["bad", "PC-DIDIM"]
    yield Figure(
        section, "bad filters: PC-IDIM-LS over PC-DIDIM", "-", _list(ratio), max(0.0, 1.0 - float(ratio.min())), 0.0,
        "our own bound: noise in the regressor adds to the error of every joint",
    )  # fmt: skip


def _list(values: Array) -> str:
    return ", ".join(f"{x:.1f}" for x in values)
