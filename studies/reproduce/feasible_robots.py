"""Feasible estimates of all real robots: their error on training and held-out data against least squares."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynid.feasibility.queries import is_feasible
from dynid.identification.observation import observe
from dynid.identification.pipeline import estimate_from
from dynid.robot.inertia import inertia_to_pseudo
from studies.reproduce.robot_cases import CASES
from studies.reproduce.robots import known_figures
from studies.reproduce.study import Figure

__all__ = ["figures"]

_COST = 1.05
_EQUAL = 1e-4


def figures() -> Iterator[Figure]:
    """Feasible weighted least squares against the unconstrained one on the same signals, weights and rows."""
    known = known_figures()
    verdicts = []
    for key, make in CASES.items():
        case, study = make(), known[key]
        section = f"{study.robot}: {study.missing}"
        seen = observe(case.robot, case.train)
        free, held = estimate_from(seen, "wls"), estimate_from(seen, "feasible", metric="euclidean", excess=0.0)
        cost = [float(np.linalg.norm(seen.residual_norms(e.beta) / free.noise)) for e in (free, held)]
        verdict = is_feasible(free.base, free.beta)
        why = f" ({verdict.reasons[0]}, ...)" if verdict.reasons else ""
        yield Figure(section, "unconstrained WLS is", "", f"{verdict.status}{why}", 0.0, 0.0, "for the record")
        ratio = cost[1] / cost[0]
        reason = "at most 5 % more; the fit is the optimum, so no feasible robot has less"
        yield Figure(
            section, "training error over WLS", f"<= {_COST}", f"{ratio:.4f}", max(ratio - 1, 0.0), 0.05, reason
        )
        joints = [100 * float(e.relative_error.mean()) for e in (free, held)]
        yield Figure(
            section, "mean of joints, fit, %", f"{joints[0]:.1f}", f"{joints[1]:.1f}", 0.0, 0.0, "for the record"
        )
        pseudo = [inertia_to_pseudo(held.identified_robot.links[i].inertia) for i in case.robot.parameter_links]
        smallest = min(float(np.linalg.eigvalsh(p)[0] / np.trace(p)) for p in pseudo)
        shown = f"{smallest:.1e}"
        law = "every pseudo-inertia is positive definite"
        yield Figure(section, "least eigenvalue of all links, share", "> 0", shown, float(smallest <= 0), 0.0, law)
        if case.test is None:
            continue
        errors = [float(study.error(e, case.test).mean()) for e in (free, held)]
        better = errors[1] <= errors[0] * (1 + _EQUAL)
        verdicts.append(better)
        words = "not worse" if better else "worse"
        name = "mean of joints, held out"
        yield Figure(
            section, name, study.shown(errors[0]), f"{study.shown(errors[1])}, {words}", 0.0, 0.0, "for the record"
        )
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
