"""Regret: the error of the default on unseen motion against the best in hindsight of all other methods.

The default gets the robot as its file has it, without drive terms. The others get exactly the drive terms of the plant,
or of the documented model of a real machine. The cases are a fraction of the grid of robots, noise, motions, priors and
lengths in which any two factors meet in all combinations, and the real machines. One half of them is held back.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path as FilePath
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.functions import inverse_dynamics
from dynid.errors import DataError, DynidError
from dynid.identification.estimate import Estimate
from dynid.identification.pipeline import identify
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.signals.settings import Signals
from studies.reproduce.analytic_plants import (
    MOTIONS,
    PRIORS,
    Path,
    bodies,
    moved,
    prior_of,
    recorded,
    tree,
    with_typical_drives,
)
from studies.reproduce.cases import MACHINES, machine
from studies.reproduce.study import Figure, finished_rows, has_data, rows_file

__all__ = ["OTHERS", "Case", "designed", "figures", "half_of", "regret", "simulated"]

Array = NDArray[np.float64]
Half = Literal["development", "held back"]

ROBOTS: dict[str, Callable[[], Robot]] = {
    "two joints": partial(bodies, "box2"),
    "three joints": partial(tree, (0, 1, 2), "rrr", 3),
    "four joints": partial(tree, (0, 1, 2, 3), "rrrr", 4),
    "six joints": partial(bodies, "rv2sq"),
    "seven joints": partial(bodies, "wam7"),
    "prismatic axis": partial(tree, (0, 1, 2, 3), "prrr", 5),
    "two arms on a torso": partial(tree, (0, 1, 2, 1, 4), "rrrrr", 6),
}
LEVELS = (0.01, 0.03, 0.1)
CORNERS: dict[str, float | None] = {"white": None, "10 Hz": 10.0, "2 Hz": 2.0}
LENGTHS = (3.0, 10.0, 30.0)  # s
OTHERS: dict[str, dict[str, Any]] = {
    **{method: {"method": method} for method in ("ols", "wls", "gls", "irls", "tls", "ridge", "feasible")},
    "feasible cv": {"method": "feasible", "weight": "cv"},
}
EQUAL = 0.0005  # differences of the relative error that count as none
_MEDIAN, _MOST = 1.0, 1.05
_RATE, _UNSEEN = 500.0, 10.0  # Hz, s
_WORST = 10
_QUICK = ("two joints", "three joints")
_NO_TEST = ("tx40, all",)  # everything is for training


@dataclass(frozen=True, eq=False)
class Case:
    """A training recording, the robot that the default is given and the one with the right drive terms.

    `error` is the relative torque error of an estimate on unseen motion, mean over the joints.
    """

    given: Robot
    right: Robot
    training: Recording
    error: Callable[[Estimate], float]


def designed() -> dict[str, tuple[Any, ...]]:
    """Names and factors of the 49 simulated cases: an orthogonal array of strength two over seven levels."""
    out: dict[str, tuple[Any, ...]] = {}
    for i, j in np.ndindex(7, 7):
        robot, level, color, motion, prior, length = (
            tuple(factor)[(i + k * j) % 7 % len(factor)] if k else tuple(factor)[i % len(factor)]
            for k, factor in enumerate((ROBOTS, LEVELS, CORNERS, MOTIONS, PRIORS, LENGTHS))
        )
        name = f"{robot}, {100 * level:g} % {color}, {motion}, prior {prior}, {length:g} s"
        name = name if name not in out else f"{name}, again"
        out[name] = (robot, level, color, motion, prior, length, 7 * i + j)
    return out


def simulated(robot: str, level: float, color: str, motion: Any, prior: Any, length: float, seed: int) -> Case:
    """A case along an analytic motion; the unseen one is of the same kind, and its torque has no noise."""
    truth = with_typical_drives(ROBOTS[robot](), seed)
    right = prior_of(truth, prior, seed)
    path = moved(truth, motion, length, _RATE, seed)
    training = recorded(truth, path, path.torque(truth), level, CORNERS[color], seed)
    unseen = moved(truth, motion, _UNSEEN, 100.0, 1000 + seed)
    error = partial(_clean_error, unseen, unseen.torque(truth))
    return Case(right.with_drives("none", rotor_inertia=False), right, training, error)


def _clean_error(path: Path, torque: Array, estimate: Estimate) -> float:
    """Over the joints that move; of the others no recording of this motion shows the friction."""
    moving = np.any(path.v != 0.0, axis=0)
    wrong = inverse_dynamics(estimate.identified_robot, path.q, path.v, path.a) - torque
    return float(np.mean((np.linalg.norm(wrong, axis=0) / np.linalg.norm(torque, axis=0))[moving]))


def real(name: str) -> Case:
    """A real machine with its documented model and its own unseen recording."""
    case = machine(name)
    assert case.test is not None
    return Case(case.robot, case.robot, case.train, partial(_measured_error, case.test))


def _measured_error(unseen: Recording, estimate: Estimate) -> float:
    """With the same filters for all methods, and the delay that a method may have found."""
    signals = replace(Signals(), delay=estimate.signals.delay)
    return float(np.nanmean(estimate.validate(unseen, signals=signals).relative))


def compared(make: Callable[..., Case], *arguments: Any) -> dict[str, Any]:
    """Errors of the default and of the others on one case, and the messages of the methods that refuse it."""
    case = make(*arguments)
    errors: dict[str, float] = {}
    refusals: dict[str, str] = {}
    for title, keywords in {"auto": {"method": "auto"}, **OTHERS}.items():
        robot = case.given if title == "auto" else case.right
        try:
            errors[title] = case.error(identify(robot, case.training, **keywords))
        except DynidError as error:
            refusals[title] = str(error)
    return {"errors": errors, "refusals": refusals}


def regret(row: dict[str, Any], method: str = "auto") -> float:
    """Error of a method over the smallest of the others; one where they count as equal, infinite if it refuses."""
    errors = dict(row["errors"])
    own = errors.pop(method, np.inf)
    best = min(errors.values(), default=np.inf)
    return 1.0 if abs(own - best) <= EQUAL or own == best else float(own / best)


def half_of(name: str) -> Half:
    """The half that a case belongs to, by its name."""
    return get_args(Half)[zlib.crc32(name.encode()) % 2]


def cases(full: bool) -> dict[str, tuple[Any, ...]]:
    """Arguments of `compared` by name: all cases, or short ones of small robots."""
    simulations = {name: (simulated, *factors) for name, factors in designed().items()}
    if not full:
        return {k: x for k, x in simulations.items() if x[1] in _QUICK and x[6] < LENGTHS[-1]}
    machines = [name for name in MACHINES if name not in _NO_TEST] if has_data() else []
    return simulations | {f"real: {name}": (real, name) for name in machines}


def figures(full: bool = False, half: str | None = None, folder: FilePath | None = None) -> Iterator[Figure]:
    """Median and 95 % quantile of the regret of each half, its worst cases, and the regret of the other methods.

    `folder` keeps finished cases, and a second call does what is missing.
    """
    halves: Sequence[Half] = get_args(Half)
    if half is not None and half not in halves:
        raise DataError(f"there is no half '{half}': use {' or '.join(repr(h) for h in halves)}")
    chosen = [h for h in halves if half in (None, h)]
    tasks = {name: arguments for name, arguments in cases(full).items() if half_of(name) in chosen}
    path = rows_file("regret", folder)
    rows = finished_rows("regret", compared, tasks, path, workers=-1 if full else 1)
    for which in chosen:
        yield from _half([row for row in rows if half_of(row["name"]) == which], which, full)


def _half(rows: list[dict[str, Any]], which: Half, full: bool) -> Iterator[Figure]:
    """Figures of one half; the short form is for the record."""
    known = [row for row in rows if len(row["errors"]) > ("auto" in row["errors"])]
    section = f"{which} half, {len(known)} cases"
    if not known:
        return
    values = np.array([regret(row) for row in known])
    reason = "differences below 0.05 % of torque count as equal" if full else "for the record, few cases"
    for name, most, found in (
        ("median regret", _MEDIAN, float(np.median(values))),
        ("95 % quantile of the regret", _MOST, float(np.quantile(values, 0.95, method="higher"))),
    ):
        over = max(found - most, 0.0)
        yield Figure(section, name, f"<= {most:g}", f"{found:.3f}", over, 0.0 if full else np.inf, reason)
    for method in OTHERS:
        other = np.array([regret(row, method) for row in known])
        shown = f"{np.median(other):.3f}, {np.quantile(other, 0.95, method='higher'):.3f}"
        title, refused = f"{section}: another method as the default, median and 95 % quantile", np.isinf(other).sum()
        yield Figure(title, method, "", shown, 0.0, np.inf, f"for the record, refuses {refused}")
    for row in sorted(known, key=regret, reverse=True)[:_WORST]:
        yield _worst(f"{section}: the largest regrets", row)


def _worst(section: str, row: dict[str, Any]) -> Figure:
    """One case: the best other method beside the default."""
    errors = dict(row["errors"])
    default = errors.pop("auto", None)
    best = min(errors, key=errors.__getitem__)
    ours = f"refused ({row['refusals']['auto']})" if default is None else f"auto {100 * default:.2f} %"
    shown = f"{best} {100 * errors[best]:.2f} %"
    return Figure(section, row["name"], shown, f"{ours}, regret {regret(row):.2f}", 0.0, np.inf, "for the record")
