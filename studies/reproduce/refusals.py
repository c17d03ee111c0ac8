"""Refusals: small recordings that weighted least squares can fit, and whether the default fits each of them.

Chains and trees of 1 to 30 joints along analytic motions: slow, short, of few joints, at constant velocity, at rest
between points, at a low rate, with gaps, with offsets, with a prior that is wrong or missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path as FilePath
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DynidError
from dynid.identification.pipeline import identify
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from studies.reproduce.analytic_plants import (
    MOTIONS,
    PRIORS,
    Path,
    moved,
    prior_of,
    recorded,
    tree,
    with_typical_drives,
)
from studies.reproduce.study import Figure, finished_rows, rows_file

__all__ = ["Condition", "figures", "judged", "make"]

Array = NDArray[np.float64]
Condition = Literal[
    "plain", "short", "low rate", "gap", "constant velocity", "one joint", "nearly at rest", "much noise"
]

MANY, FEW = 300, 20  # recordings that least squares fits
# Sizes by turns: most robots are small.
JOINTS = (*(1, 2, 3, 6, 1, 2, 4, 7, 2, 3, 5, 6, 1, 10, 2, 4, 3, 8, 6), *(2, 7, 12, 1, 3, 5, 20, 2, 1, 6, 4, 30))
SMALL = 4  # joints of the short form
_RATE, _LOW_RATE, _LENGTH, _SHORT = 100.0, 20.0, 6.0, 1.5  # Hz, s
_NOISE, _MUCH = 0.03, 0.3
_CORNERS = (None, 10.0, 2.0)
# Drive terms of the given robot by turns: those of the plant, fewer, none.
_FRICTION = ("viscous+coulomb+offset", "viscous+coulomb", "viscous", "none")
_STROKE = 1.0  # s at one velocity
_RECORD = "for the record"


def make(seed: int) -> tuple[Robot, Recording, str]:
    """A robot with its prior, its recording, and both in words."""
    rng = np.random.default_rng(seed)
    joints, conditions = JOINTS[seed % len(JOINTS)], get_args(Condition)
    condition: Condition = conditions[seed // 2 % len(conditions)]
    motion, prior = MOTIONS[seed // 3 % len(MOTIONS)], PRIORS[seed // 5 % len(PRIORS)]
    parents = tuple(j if rng.random() < 0.7 else int(rng.integers(0, j + 1)) for j in range(joints))
    kinds = "".join(rng.choice(["r", "r", "r", "p"], joints))
    truth = with_typical_drives(tree(parents, kinds, seed), seed)
    rate = _LOW_RATE if condition == "low rate" else _RATE
    path = _changed(moved(truth, motion, _SHORT if condition == "short" else _LENGTH, rate, seed), condition)
    share, corner = _MUCH if condition == "much noise" else _NOISE, _CORNERS[seed % len(_CORNERS)]
    recording = recorded(truth, path, path.torque(truth), share, corner, seed)
    if condition == "gap":
        recording = _with_gap(recording)
    friction = _FRICTION[seed // 7 % len(_FRICTION)]
    robot = prior_of(truth, prior, seed).with_drives(friction, rotor_inertia=friction == _FRICTION[0])
    words = f"{seed}: {joints} joints ({kinds}), {motion}, {condition}, prior {prior}, friction {friction}"
    return robot, recording, words


def _changed(path: Path, condition: Condition) -> Path:
    """The motion under a condition: to and fro at constant velocities, parts of it at rest, or all of it small."""
    if condition == "constant velocity":
        stroke = 2 * np.abs(path.t / (2 * _STROKE) % 1.0 - 0.5)[:, None]  # from one to zero and back
        velocity = np.sign(path.t % (2 * _STROKE) - _STROKE)[:, None] / _STROKE
        way = path.q[-1] - path.q[0]
        return Path(path.t, path.q[0] + stroke * way, velocity * way, np.zeros_like(path.q))
    if condition == "nearly at rest":
        return Path(path.t, path.q[0] + 0.01 * (path.q - path.q[0]), 0.01 * path.v, 0.01 * path.a)
    if condition == "one joint":
        moves = np.arange(path.q.shape[1]) == path.q.shape[1] - 1
        return Path(path.t, np.where(moves, path.q, path.q[0]), path.v * moves, path.a * moves)
    return path


def _with_gap(recording: Recording) -> Recording:
    """Two runs with a tenth of the time missing between them."""
    (run,) = recording.runs
    cut = len(run) // 2
    return Recording(recording.joints, (run.rows(0, cut), run.rows(cut + len(run) // 10, len(run))))


def judged(seed: int) -> dict[str, Any]:
    """Message of each method that refuses the recording, None where it fits."""
    robot, recording, words = make(seed)
    out: dict[str, Any] = {"words": words}
    for method in ("wls", "auto"):
        if method == "auto" and out["wls"] is not None:
            break
        out[method] = None
        try:
            fitted = identify(robot, recording, method)
            if not np.all(np.isfinite(fitted.parameters)):
                out[method] = "the parameters are not finite"
        except Exception as error:  # whatever stops a method, it does not fit the recording
            out[method] = str(error) if isinstance(error, DynidError) else f"{type(error).__name__}: {error}"
    return out


def figures(full: bool = False, folder: FilePath | None = None) -> Iterator[Figure]:
    """Recordings that the default refuses and least squares fits, with the messages, then those that both refuse."""
    wanted, rows, fitted = MANY if full else FEW, list[dict[str, Any]](), list[dict[str, Any]]()
    path = rows_file("refusals", folder)
    seeds = (s for s in count() if full or JOINTS[s % len(JOINTS)] <= SMALL)
    while len(fitted) < wanted:
        tasks = {str(s): (s,) for s in islice(seeds, wanted - len(fitted))}
        rows += finished_rows("refusals", judged, tasks, path, workers=-1 if full else 1)
        fitted = [row for row in rows if row["wls"] is None]
    refused = [row for row in fitted if row["auto"] is not None]
    section = "Recordings that weighted least squares fits"
    yield Figure(section, "recordings", str(wanted), str(len(fitted)), 0.0, 0.0, "small, by design")
    yield Figure(section, "refused by auto", "0", str(len(refused)), len(refused), 0.0, "whatever wls fits, auto fits")
    for row in refused:
        yield Figure(section, row["words"], "fits", row["auto"], 1.0, np.inf, "counted above")
    for row in rows:
        if row["wls"] is not None:
            yield Figure("Recordings that wls refuses too", row["words"], "", row["wls"], 0.0, np.inf, _RECORD)
