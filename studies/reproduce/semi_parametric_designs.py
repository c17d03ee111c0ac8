"""Training and test motions of Krishnamoorthi (2018): designs, high-frequency series, and random test motions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.excitation.basis import Fourier, at_rest
from dynid.excitation.criteria import make_criterion
from dynid.excitation.excitation import Excitation
from dynid.excitation.limits import motion_limits
from dynid.parameters.base import base_parameters
from dynid.robot.load import load_robot
from studies.reproduce.excitation import semiparametric_design, semiparametric_limits
from studies.reproduce.study import published

__all__ = [
    "BUDGET",
    "TRAINING",
    "high_frequency",
    "random_motion",
    "sum_of_link_conditions",
    "training_parts",
    "unseen_motions",
]

Array = NDArray[np.float64]

BUDGET = 3000  # iterations, as many as a search can use
_SHARE = 0.95  # share of the limits used by random motions
_GRID = 2001

# Rows of Table 5-8: criterion, whether it includes friction, and whether a high-frequency series follows.
TRAINING: dict[str, tuple[str, bool, bool]] = {
    "Cond(W_fe)": ("cond", True, False),
    "Cond(W_nfe)": ("cond", False, False),
    "HFS + Cond(W_fe)": ("cond", True, True),
    "HFS + Cond(W_nfe)": ("cond", False, True),
    "sum Cond(W_fe)": ("sum-cond", True, False),
    "sum Cond(W_nfe)": ("sum-cond", False, False),
    "HFS + sum Cond(W_fe)": ("sum-cond", True, True),
    "HFS + sum Cond(W_nfe)": ("sum-cond", False, True),
}


def training_parts(name: str, row: str) -> tuple[Excitation, ...]:
    """The motions of one row of Table 5-8, each to be run on its own."""
    criterion, friction, series = TRAINING[row]
    design = semiparametric_design(name, criterion, BUDGET, friction)
    return (design, high_frequency(name)) if series else (design,)


def high_frequency(name: str, seed: int = 100) -> Excitation:
    """Random motion from the designs' last harmonic up to the bandwidth of the loop; the thesis gives only the band.

    Amplitudes and phases are drawn such that all harmonics have the same mean acceleration.
    """
    golden = published("semi_parametric")
    period, first = 1.0 / golden["frequency"], golden[name]["harmonics"]
    last = round(golden["bandwidth"] * period)
    return random_motion(name, Fourier(period, tuple(range(first, last + 1))), seed)


def unseen_motions(name: str, count: int = 3) -> list[Excitation]:
    """Random motions with five, six or seven harmonics, more than the designs; the first are the same for any count."""
    golden = published("semi_parametric")
    return [random_motion(name, Fourier(1.0 / golden["frequency"], 5 + k % 3), seed=200 + k) for k in range(count)]


def random_motion(name: str, series: Fourier, seed: int) -> Excitation:
    """Random motion from rest at zero and back, scaled to the limits; harmonics have the same mean acceleration."""
    robot = load_robot(name).with_drives("viscous+coulomb", rotor_inertia=False)
    limits = motion_limits(robot, semiparametric_limits(name))
    basis = at_rest(series)
    rng = np.random.default_rng(seed)
    drawn = rng.normal(size=(robot.n, series.size)) / np.concatenate([[1.0], np.tile(series.numbers, 2)])
    # The closest motion that rests at both ends and begins at zero.
    coefficients = np.linalg.lstsq(basis.directions[:, 1:], drawn.T, rcond=None)[0].T
    X = np.hstack([np.zeros((robot.n, 1)), coefficients])
    t = np.linspace(0.0, series.duration, _GRID)
    q, v, a = (basis.values(t, order) @ X.T for order in range(3))
    used = np.max([
        (q / limits.upper).max(axis=0),
        (q / limits.lower).max(axis=0),
        np.abs(v).max(axis=0) / limits.velocity,
        np.abs(a).max(axis=0) / limits.acceleration,
    ], axis=0)  # fmt: skip
    goal = make_criterion(base_parameters(robot, channels="torque"), "cond")
    return Excitation(robot, basis, _SHARE * X / used[:, None], limits, goal)


def sum_of_link_conditions(motion: Excitation) -> float:
    """Sum of cond(W_i) over links, friction columns included."""
    W = motion.base_regressor()
    links = motion.criterion.base.link_columns.values()
    return float(sum(np.linalg.cond(W[:, :, list(columns)].reshape(-1, len(columns))) for columns in links))
