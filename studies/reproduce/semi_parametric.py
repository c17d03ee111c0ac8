"""Semi-parametric compensation on simulated arms: models, motions, control loops and errors of Krishnamoorthi (2018).

Base parameters, problem sizes and a few condition numbers are printed; test motions, high-frequency series, estimates
and most errors are not. Values are compared where they are printed, orders where they are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.controllers import bandwidth
from dynid.excitation.basis import Fourier, at_rest
from dynid.excitation.criteria import make_criterion
from dynid.excitation.excitation import Excitation
from dynid.excitation.limits import motion_limits
from dynid.parameters.base import base_parameters
from dynid.residual.features import fit_features
from dynid.residual.kernel import parse_kernel
from dynid.robot.load import load_robot
from studies.reproduce import structure
from studies.reproduce.amplitude_sums import AmplitudeSums
from studies.reproduce.excitation import semiparametric_design_figures, semiparametric_limits, semiparametric_tables
from studies.reproduce.regrouping import printed_regrouping, random_arm, regrouping
from studies.reproduce.semi_parametric_cases import friction_figures, overlay_figures, tracking_figures
from studies.reproduce.semi_parametric_control import IDENTIFICATION
from studies.reproduce.semi_parametric_designs import (
    BUDGET,
    TRAINING,
    high_frequency,
    sum_of_link_conditions,
    training_parts,
    unseen_motions,
)
from studies.reproduce.semi_parametric_learned import fallback_figures, kernel_figures, learned, own, table_figures
from studies.reproduce.study import Figure, kept_figures, number, published

__all__ = ["MOTIONS", "figures"]

Array = NDArray[np.float64]

MOTIONS = 20  # along which the orders of Table 5-8 are counted in the full form

_ROBOTS = {"puma560": "PUMA", "twolink": "two-link"}
_EXACT, _RECORD = "a count is exact", "for the record"


def figures(full: bool = False, folder: Path | None = None) -> Iterator[Figure]:
    """The two-link and what needs no simulation; `full`: the PUMA too, and Table 5-8 over twenty motions.

    Finished parts and rows of the table are kept in `folder`.
    """
    names = list(_ROBOTS) if full else ["twolink"]
    arms = " and ".join(names)
    sections: dict[str, Callable[[], Iterator[Figure]]] = {
        "structures": _structures,
        "theorem": _theorem,
        "printed conditions": _printed_conditions,
        **{f"design, {name}": partial(_design, name) for name in names},
        "sizes": _sizes,
        "hyper-parameters": _hyperparameters,
        "bandwidth": _bandwidth,
        f"friction, {arms}": lambda: friction_figures(names),
    }
    if full:
        sections |= {"motions": _motions, "Table 5-8": lambda: table_figures(MOTIONS, folder)}
    sections |= {
        f"tracking, {arms}": lambda: tracking_figures(learned, own, names),
        "kernels": kernel_figures,
        "overlays": lambda: overlay_figures(learned),
        "fallback": fallback_figures,
    }
    yield from kept_figures("semi-parametric", sections, folder)


def _design(name: str) -> Iterator[Figure]:
    for figure in semiparametric_design_figures(name, BUDGET):
        yield replace(figure, section=f"T6 {figure.section}")


def _structures() -> Iterator[Figure]:
    """T1 and T2 are counts and groupings, T4 the values of base parameters."""
    for figure in structure.figures("Krishnamoorthi 2018"):
        values = "value of" in figure.name or "identifiable" in figure.name
        target = "T4" if values else "T1" if figure.section.startswith("PUMA") else "T2"
        yield replace(figure, section=f"{target} {figure.section}")


def _theorem() -> Iterator[Figure]:
    section = "T3 regrouping theorem on random arms of three joints"
    worst, lost = {"left-to-right": 0.0, "recursive": 0.0}, np.inf
    for seed in range(5):
        robot, table = random_arm(seed)
        rows = regrouping(robot, table)
        for method in worst:
            base = base_parameters(robot, method=method)  # type: ignore[arg-type]
            labels = [robot.parameter_labels[k] for k in base.kept]
            same = set(labels) == set(rows)
            apart = max(float(np.abs(rows[k] - r).max()) for k, r in zip(labels, base.matrix, strict=True))
            worst[method] = max(worst[method], apart if same else np.inf)
        printed = printed_regrouping(robot, table)
        lost = min(lost, max(float(np.abs(printed[k] - rows[k]).max()) for k in rows))
    for method, apart in worst.items():
        reason = "rounding of coefficients of size one"
        yield Figure(section, f"corrected theorem minus {method}", "0", f"{apart:.1e}", apart, 1e-12, reason)
    yield Figure(
        section, "theorem as printed, least error of an arm", "> 0", f"{lost:.2f}", max(1e-6 - lost, 0.0), 0.0,
        "the lines of YZ and ZZ are merged in print: more than rounding; set after the error was seen",
    )  # fmt: skip


def _printed_conditions() -> Iterator[Figure]:
    golden = published("semi_parametric")
    for name in _ROBOTS:
        for figure in semiparametric_tables(name):
            if not figure.name.startswith("cond(W)"):
                continue
            yield replace(figure, section=f"T5 {figure.section}")
            measured = golden[name]["condition_number"]
            factor = float(figure.ours) / measured
            yield Figure(
                f"T5 {figure.section}", f"{figure.name}, over that of measured data", f"{measured}", f"{factor:.2f}",
                abs(float(np.log2(factor))), 1.0, "a factor of two: its columns and noise are not stated",
            )  # fmt: skip


def _sizes() -> Iterator[Figure]:
    golden = published("semi_parametric")
    for name, title in _ROBOTS.items():
        robot = load_robot(name).with_drives("viscous+coulomb", rotor_inertia=False)
        series = Fourier(1.0 / golden["frequency"], golden[name]["harmonics"])
        basis = at_rest(series)
        limits = motion_limits(robot, semiparametric_limits(name))
        goal = make_criterion(base_parameters(robot, channels="torque"), "cond")
        problem = AmplitudeSums(basis, goal, limits, 100, start=np.zeros(robot.n))
        free = int(np.count_nonzero(problem.unit))
        ours = {
            "unknowns": robot.n * (series.size - 1),
            "equalities": robot.n * series.size - free,
            "inequalities": sum(limit.slack.size for limit in problem.slacks(problem.resting)),
        }
        for what, count in golden[name]["problem"].items():
            yield number("T7 size of the design problem", f"{title}, {what}", count, ours[what], 0.0, _EXACT)


def _hyperparameters() -> Iterator[Figure]:
    robot = load_robot("twolink")
    q, v, a = np.random.default_rng(0).normal(size=(3, 10, robot.n))
    features = fit_features(robot, q, v, a, periodic=False)
    for kernel, count in published("semi_parametric")["twolink"]["hyperparameters"].items():
        ours = parse_kernel(kernel, features, 0).size
        reason = f"{_EXACT}; the noise is not counted"
        yield number("T8 hyper-parameters of the two-link", kernel, count, ours, 0.0, reason)


def _bandwidth() -> Iterator[Figure]:
    """Frequency at which (Kd s + Kp) / (M s2 + (Kd + fv) s + Kp) falls to -3 dB, per joint with the others fixed."""
    section = "T9 bandwidth of the PUMA's loop at the gains for identification, Hz"
    robot = load_robot("puma560")
    fv = np.array([t.value for t in robot.drives if t.symbol == "fv"])
    expected = published("semi_parametric")["bandwidth"]
    for label, damping, friction in (
        ("without damping", 0.0, 0.0 * fv),
        ("with viscous friction", IDENTIFICATION.damping, fv),
    ):
        ours = bandwidth(robot, IDENTIFICATION.stiffness, damping, friction=friction, q=np.zeros(robot.n))
        yield number(
            section, f"largest of all joints, {label}", expected, float(ours.max()), 0.5, "printed to one digit"
        )
        shown = ", ".join(f"{x:.2f}" for x in ours)
        reason = f"{_RECORD}: only the wrist reaches 5 Hz"
        yield Figure(section, f"joints 1 to 6, {label}", "5", shown, 0.0, 0.0, reason)


def _motions() -> Iterator[Figure]:
    """The training motions of Table 5-8 and the test motions, with their condition numbers."""
    section = "T11 motions for the PUMA"
    motions: dict[str, Excitation] = {
        row: training_parts("puma560", row)[0] for row, (_, _, series) in TRAINING.items() if not series
    }
    motions["HFS"] = high_frequency("puma560")
    motions |= {f"test {k}": motion for k, motion in enumerate(unseen_motions("puma560"), start=1)}
    for name, motion in motions.items():
        kind, slack = min(motion.slacks.items(), key=lambda entry: entry[1])
        ends = max(float(np.abs(x).max()) for x in motion.at([0.0, motion.duration]))
        note = f"cond {motion.condition_number:.4g}, sum of links {sum_of_link_conditions(motion):.4g}"
        yield Figure(
            section, f"{name}: limits and rest at both ends", "slack >= 0, rest", f"{slack:.3f}, {ends:.0e}; {note}",
            max(-slack, ends - 1e-9, 0.0), 0.0, f"{kind} is closest",
        )  # fmt: skip
