"""Motions of TIAGo's torso and arm designed one after another, beside a single long motion and a short one repeated.

All have the same length, and all but the repeated one the same iterations.

Section 3.3.2d of Nguyen (2021) gives: cubic splines, the condition number of the base regressor, limits of position,
velocity and effort and of self-collision, a least change of 0.05 (Algorithm 1), the lift joint and seven arm joints.
It gives no duration, no number of control points, no limits, no rate, and no number of figure 3.21, whose curve falls
over iterations and repeats. Those are chosen here, collisions are left out, and the fall is what is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.excitation.design import design_excitation
from dynid.excitation.excitation import Excitation
from dynid.excitation.information import Information, earlier_information
from dynid.excitation.stacking import ExcitationStack, StackEnd, stack_excitations
from dynid.robot.model import Robot
from studies.reproduce.arms import Arm
from studies.reproduce.study import Figure, finished_rows, kept_figures, number, rows_file

__all__ = ["Pair", "equality_figures", "figures", "paired"]

Array = NDArray[np.float64]

TIAGO = Arm(
    "tiago", "robots/tiago_no_hand.urdf", ("torso_lift_joint", *(f"arm_{k}_joint" for k in range(1, 8))), held_back=True
)
# Of the source.
_LEAST_GAIN = 0.05
# Not in the source. Waypoints count both ends, so four short motions have the segments of the single one.
_SECONDS, _WAYPOINTS, _MOTIONS, _BUDGET, _MOST = 4.0, 5, 4, 60, 12
_NOISE = np.array([5.0, 1.0, 1.0, 0.5, 0.5, 0.2, 0.2, 0.2])
_RATE = 100.0
_LIMITS = {"*": {"acceleration": 5.0}}
_RECORDED = "recorded: the source has no number"
_EQUAL = "rounding"


@dataclass(frozen=True, eq=False)
class Pair:
    """Standard deviations of the same parameters from motions one after another, and from other motions as long.

    Attributes
    ----------
    stacked, single, repeated : array, shape (b,)
        Predicted: for the stack, for a single motion, and for the first motion of the stack recorded again and again.
    stacked_error, single_error : array, shape (b,)
        Errors of weighted least squares from a simulated recording of each.
    """

    stacked: Array
    single: Array
    repeated: Array
    stacked_error: Array
    single_error: Array

    def ratio(self, other: str) -> float:
        """Geometric mean of the standard deviations of another motion over those of the stack."""
        return float(np.exp(np.mean(np.log(getattr(self, other) / self.stacked))))


def figures(full: bool = False, folder: Path | None = None) -> Iterator[Figure]:
    """Equalities, the course of figure 3.21, and the comparison for two seeds, or for 20."""
    sections: dict[str, Callable[[], Iterator[Figure]]] = {
        "equalities": partial(equality_figures, TIAGO.robot),
        "course": _course,
    }
    yield from kept_figures("stacking", sections, folder)
    for criterion in ("d", "cond"):
        yield from _comparison(criterion, 20 if full else 2, rows_file("stacking", folder))


def equality_figures(robot: Robot) -> Iterator[Figure]:
    """What holds exactly: information of parts and whole, and a design that knows nothing."""
    section = f"{robot.name}: equalities"
    fresh = _single(robot, 1, "d", 0)
    base = fresh.criterion.base
    nothing = earlier_information(base, noise=_noise(robot))
    again = _single(robot, 1, "d", 0, after=nothing)
    apart = float(np.abs(again.coefficients - fresh.coefficients).max())
    yield number(section, "largest change of a coefficient by information of no rows", 0.0, apart, 0.0, "identical")
    other = _single(robot, 1, "d", 1)
    rows = np.concatenate([_rows(x, nothing.noise) for x in (fresh, other)])
    parts, whole = nothing.with_motion(fresh).with_motion(other).matrix, rows.T @ rows
    difference = float(np.abs(parts - whole).max() / np.abs(whole).max())
    yield number(section, "information of two motions less that of both in one", 0.0, difference, 1e-12, _EQUAL)


@cache
def _stack_of_source() -> ExcitationStack:
    return stack_excitations(
        TIAGO.robot, _SECONDS, family="cubic", size=_WAYPOINTS, criterion="cond", limits=_LIMITS, noise=_NOISE,
        least_gain=_LEAST_GAIN, most=_MOST, budget=_BUDGET,
    )  # fmt: skip


def _course() -> Iterator[Figure]:
    """The condition number after every motion, as in figure 3.21."""
    section = "TIAGo, torso and arm: Algorithm 1 (Nguyen 2021, figure 3.21)"
    found = _stack_of_source()
    course = found.condition_numbers[1:]
    for k, value in enumerate(course, start=1):
        yield Figure(section, f"condition number after motion {k}", "falls", f"{value:.4g}", 0.0, np.inf, _RECORDED)
    fall = float(course[-1] / course[0])
    reason = "the curve of the source falls; it has no numbers"
    yield Figure(section, "last over first condition number", "< 1", f"{fall:.3f}", max(fall - 1.0, 0.0), 0.0, reason)
    ended = 0.0 if found.end in (StackEnd.NO_GAIN, StackEnd.MOST) else 1.0
    yield Figure(section, "end", "change below 0.05", found.reason, ended, 0.0, f"at most {_MOST} motions here")


def _comparison(criterion: str, seeds: int, path: Path | None) -> Iterator[Figure]:
    """Four motions one after another against one of the same length, segments and iterations."""
    whole = _MOTIONS * _SECONDS
    lengths = f"{_MOTIONS} motions of {_SECONDS:g} s against one of {whole:g} s"
    section = f"TIAGo, {lengths}, criterion {criterion}, {seeds} seeds"
    tasks = {f"criterion {criterion}, seed {seed}": (criterion, seed) for seed in range(seeds)}
    rows = finished_rows(f"stacking, criterion {criterion}", _paired, tasks, path, workers=1)
    pairs = [Pair(*(np.array(row[field.name]) for field in fields(Pair))) for row in rows]
    repeated, ratios = (np.array([pair.ratio(other) for pair in pairs]) for other in ("repeated", "single"))
    stacked, single = (np.array([getattr(p, name) for p in pairs]) for name in ("stacked", "single"))
    error, other = (np.array([getattr(p, f"{name}_error") for p in pairs]) for name in ("stacked", "single"))
    shown = {
        "seeds in which the stack is better in the mean": f"{np.count_nonzero(ratios > 1)} of {seeds}",
        "share of standard deviations that the stack makes smaller": f"{100 * np.mean(stacked < single):.1f} %",
        "single over stacked std, geometric mean, median of seeds": f"{np.median(ratios):.3f}",
        "single over stacked std, worst and best seed": f"{ratios.min():.3f} to {ratios.max():.3f}",
        "single over stacked rms error of simulated recordings": f"{_rms_ratio(error, other):.3f}",
    }
    for name, value in shown.items():
        yield Figure(section, name, "-", value, 0.0, np.inf, "recorded: either may be better")
    words = f"{np.median(repeated):.3f}, {repeated.min():.3f} to {repeated.max():.3f}"
    least = max(1.0 - float(repeated.min()), 0.0)
    reason = "other motions show more than the same one again"
    yield Figure(section, "first motion repeated over stacked std, median and range", "> 1", words, least, 0.0, reason)
    for name, errors, std in (("stacked", error, stacked), ("single", other, single)):
        scatter = float(np.sqrt(np.mean((errors / std) ** 2)))
        # The parameters of a recording have correlated errors: about as many independent ones as base parameters.
        bound = 4.0 / np.sqrt(2.0 * seeds * stacked.shape[1])
        reason = "predicted and simulated agree, four standard deviations of a mean square"
        yield number(section, f"rms of error over predicted std, {name}", 1.0, scatter, bound, reason)


def _rms_ratio(stacked: Array, single: Array) -> float:
    """Geometric mean over the parameters of the ratio of their rms errors."""
    rms = [np.sqrt(np.mean(x**2, axis=0)) for x in (single, stacked)]
    return float(np.exp(np.mean(np.log(rms[0] / rms[1]))))


def _paired(criterion: str, seed: int) -> dict[str, Any]:
    """Both designs of a seed for TIAGo, as a row."""
    return {name: values.tolist() for name, values in vars(paired(TIAGO.robot, criterion, seed)).items()}


def paired(robot: Robot, criterion: str, seed: int) -> Pair:
    """Both designs of a seed, with the same iterations in all."""
    single = _single(robot, _MOTIONS, criterion, seed)
    stack = stack_excitations(
        robot, _SECONDS, family="cubic", size=_WAYPOINTS, criterion=criterion, limits=_LIMITS, noise=_noise(robot),
        least_gain=0.0, most=_MOTIONS, budget=_BUDGET, seed=seed * _MOTIONS,
    )  # fmt: skip
    nothing = earlier_information(single.criterion.base, noise=_noise(robot))
    rng = np.random.default_rng(seed)
    return Pair(
        stack.std[-1],
        nothing.with_motion(single).std,
        stack.std[1] / np.sqrt(_MOTIONS),
        _error(nothing, stack.motions, rng),
        _error(nothing, (single,), rng),
    )


def _single(robot: Robot, parts: int, criterion: str, seed: int, **more: Any) -> Excitation:
    """A motion as long as so many short ones, with their segments and iterations."""
    return design_excitation(
        robot, parts * _SECONDS, family="cubic", size=parts * (_WAYPOINTS - 1) + 1, criterion=criterion, limits=_LIMITS,
        noise=_noise(robot), budget=parts * _BUDGET, seed=seed, **more,
    )  # fmt: skip


def _noise(robot: Robot) -> Array:
    return _NOISE[: robot.n]


def _rows(motion: Excitation, noise: Array) -> Array:
    """Rows (m, b) of a recording of a motion over their noise."""
    W = motion.base_regressor(_RATE)[:-1] / noise[:, None]
    return W.reshape(-1, W.shape[2])


def _error(nothing: Information, motions: tuple[Excitation, ...], rng: np.random.Generator) -> Array:
    """Errors (b,) of weighted least squares: torques by Pinocchio with white noise, positions exact."""
    base = nothing.base
    W, y = [], []
    for motion in motions:
        _, q, v, a = (x[:-1] for x in motion.sample(_RATE))
        torque = _torques(q, v, a) + nothing.noise * rng.normal(size=q.shape)
        W.append(_rows(motion, nothing.noise))
        y.append((torque / nothing.noise).ravel())
    rows, values = np.concatenate(W), np.concatenate(y)
    size = np.linalg.norm(rows, axis=0)
    return np.linalg.lstsq(rows / size, values, rcond=None)[0] / size - base.values()


def _torques(q: Array, v: Array, a: Array) -> Array:
    """Inverse dynamics (N, n) of the arm's file by Pinocchio; its drives have no friction and no rotors."""
    import pinocchio as pin

    model = TIAGO.model
    data = model.createData()
    return np.array([pin.rnea(model, data, *state) for state in zip(q, v, a, strict=True)])
