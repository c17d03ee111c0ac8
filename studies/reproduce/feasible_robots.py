"""Feasible estimates of all real robots: their error on training and held-out data against least squares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynid.feasibility.queries import is_feasible
from dynid.identification.observing import observe
from dynid.identification.pipeline import estimate_from
from dynid.robot.inertia import inertia_to_pseudo
from studies.reproduce.robot_cases import CASES
from studies.reproduce.robots import known_figures
from studies.reproduce.study import Figure, finished_rows, rows_file

__all__ = ["figures"]

_COST = 1.05
_EQUAL = 1e-4


def figures(folder: Path | None = None) -> Iterator[Figure]:
    """Feasible weighted least squares against the unconstrained one on the same signals, weights and rows."""
    rows = finished_rows(
        "feasible-robots", _row, {key: (key,) for key in CASES}, rows_file("feasible-robots", folder), workers=1
    )
    for row in rows:
        yield from _robot(row)
    verdicts = [_not_worse(row["held out"]) for row in rows if row["held out"]]
    share = sum(verdicts) / len(verdicts)
    yield Figure(
        "All robots",
        "share that is not worse on held-out data",
        ">= 0.5",
        f"{share:.2f} ({sum(verdicts)} of {len(verdicts)})",
        max(0.5 - share, 0.0),
        0.0,
        "at least half",
    )


def _robot(row: dict[str, Any]) -> Iterator[Figure]:
    study = known_figures()[row["name"]]
    section = f"{study.robot}: {study.missing}"
    yield Figure(section, "unconstrained WLS is", "", row["verdict"], 0.0, 0.0, "for the record")
    ratio = row["cost"][1] / row["cost"][0]
    reason = "at most 5 % more; the fit is the optimum, so no feasible robot has less"
    yield Figure(section, "training error over WLS", f"<= {_COST}", f"{ratio:.4f}", max(ratio - 1, 0.0), 0.05, reason)
    a, b = (f"{x:.1f}" for x in row["fit"])
    yield Figure(section, "mean of joints, fit, %", a, b, 0.0, 0.0, "for the record")
    smallest, law = row["smallest"], "every pseudo-inertia is positive definite"
    name = "least eigenvalue of all links, share"
    yield Figure(section, name, "> 0", f"{smallest:.1e}", float(smallest <= 0), 0.0, law)
    if row["held out"]:
        free, held = (study.shown(x) for x in row["held out"])
        words = "not worse" if _not_worse(row["held out"]) else "worse"
        yield Figure(section, "mean of joints, held out", free, f"{held}, {words}", 0.0, 0.0, "for the record")


def _row(key: str) -> dict[str, Any]:
    """Least squares, then feasible: costs, errors of the fit and on held-out data; also the least eigenvalue."""
    case, study = CASES[key](), known_figures()[key]
    seen = observe(case.robot, case.train)
    free, held = estimate_from(seen, "wls"), estimate_from(seen, "feasible", metric="euclidean", excess=0.0)
    verdict = is_feasible(free.base, free.beta)
    why = f" ({verdict.reasons[0]}, ...)" if verdict.reasons else ""
    pseudo = [inertia_to_pseudo(held.identified_robot.links[i].inertia) for i in case.robot.parameter_links]
    return {
        "verdict": f"{verdict.status}{why}",
        "cost": [float(np.linalg.norm(seen.residual_norms(e.beta) / free.noise)) for e in (free, held)],
        "fit": [100 * float(e.relative_error.mean()) for e in (free, held)],
        "smallest": min(float(np.linalg.eigvalsh(p)[0] / np.trace(p)) for p in pseudo),
        "held out": [] if case.test is None else [float(study.error(e, case.test).mean()) for e in (free, held)],
    }


def _not_worse(errors: Sequence[float]) -> bool:
    return errors[1] <= errors[0] * (1 + _EQUAL)
