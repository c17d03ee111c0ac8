"""Weight of the prior with all constraints, and weights of the rows, for method "auto"."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DynidError
from dynid.feasibility.constraints import Constraints
from dynid.feasibility.prior import consistent_prior
from dynid.feasibility.sets import feasible_set
from dynid.identification.drive_choice import largest_weight
from dynid.identification.estimators.feasible import (
    allowed_excess,
    correlation,
    feasible_fit,
    feasible_solution,
    retry_notes,
)
from dynid.identification.estimators.irls import robust_scale, weighted_rows
from dynid.identification.estimators.solution import Choice, Solution, solve_factor
from dynid.identification.observation import fold, time_parts
from dynid.identification.parts import Loss, Parts

__all__ = ["choose_estimator"]

Array = NDArray[np.float64]

# A total mass further from the prior than this factor is worth a remark.
_FAR = 3.0
_WEIGHTED, _ROBUST = "feasible", "feasible, Huber weights"
# Weights of the prior that are tried with all constraints, relative to that of the estimate nearest to the prior.
_SHARES = np.array([0.01, 0.1, 1.0])
# Neighbours of the best weight that are further apart than this factor have another one between them.
_COARSE = 10.0


def choose_estimator(parts: Parts, constraints: Constraints, weight: float, choices: list[Choice]) -> Solution:
    """The feasible estimate that predicts best, beside estimates without constraints."""
    seen = parts.observation
    base, noise = seen.base, parts.noise
    allowed = feasible_set(base.robot, constraints)
    whole = seen.stacked(1.0 / noise)
    nearest = replace(parts.preference, excess=allowed_excess(None, base) * correlation(seen, noise))
    found = feasible_fit(base, allowed, whole, nearest)

    def loss(fitted: Callable[[Array], Array], factors: Sequence[tuple[Array, ...]], scale: Array) -> Loss | None:
        stacks = [np.vstack([f / n for f, n in zip(part, scale, strict=True)]) for part in factors]
        betas = []
        try:
            for k in range(len(stacks)):
                betas.append(fitted(fold(np.vstack([x for i, x in enumerate(stacks) if i != k]))))
        except DynidError:  # some part does not show all parameters, or the weight is too small for the solver
            return None
        return parts.loss(betas)

    def consistent(weight: float) -> Callable[[Array], Array]:
        wanted = replace(parts.preference, weight=weight)
        return lambda factor: base.matrix @ feasible_fit(base, allowed, factor, wanted).parameters

    def unconstrained(factor: Array) -> Array:
        return solve_factor(factor, base)[0]

    one = np.ones(len(noise))
    tried: dict[float, Loss | None] = {}
    weights = {float(w) for w in (weight, *(_SHARES * found.weight)) if w >= _SHARES[0] * found.weight}
    while weights:
        tried |= {w: loss(consistent(w), parts.factors, noise) for w in weights}
        solved = {w: trial for w, trial in tried.items() if trial is not None}
        if not solved:
            raise DynidError("cross-validation found no weight of the prior with which all parts can be solved")
        weights = _between(solved)
    taken = largest_weight(solved, base.robot)
    wanted = replace(parts.preference, weight=taken)
    choices += [
        Choice("weight of the prior", f"{w:.2g}", np.inf if trial is None else trial.error, w == taken)
        for w, trial in sorted(tried.items())
    ]
    start = base.matrix @ feasible_fit(base, allowed, whole, wanted).parameters
    trials = {
        _WEIGHTED: solved[taken],
        "wls": loss(unconstrained, parts.factors, noise),
        "ols": loss(unconstrained, parts.factors, one),
    }
    if seen.streams:  # robust weights need the rows, which a data set does not keep
        robust = time_parts(seen, len(parts.factors), weighted_rows(seen, start, robust_scale(seen, start), "huber"))
        trials |= {_ROBUST: loss(consistent(taken), robust, one), "irls": loss(unconstrained, robust, one)}
    losses = {name: np.inf if trial is None else trial.error for name, trial in trials.items()}
    chosen = min((name for name in (_WEIGHTED, _ROBUST) if name in losses), key=lambda name: losses[name])
    choices += [Choice("estimator", name, error, name == chosen) for name, error in losses.items()]
    rows, factor = None, whole
    if chosen == _ROBUST:
        rows = weighted_rows(seen, start, robust_scale(seen, start), "huber")
        factor = np.vstack([np.vstack(part) for part in robust])
    solution = feasible_solution(base, allowed, fold(factor), noise, wanted)
    assert found.best is not None
    solution = replace(solution, shift=solution.beta - base.matrix @ found.best)
    remarks = _remarks(choices, losses, chosen, taken, parts, solution)
    notes = [*parts.notes, *retry_notes(found), *remarks, *solution.notes]
    return replace(solution, notes=tuple(notes), rows=rows)


def _between(losses: Mapping[float, Loss]) -> set[float]:
    """Geometric means of the best weight and its neighbours, where these are far apart."""
    order = sorted(losses)
    at = min(range(len(order)), key=lambda i: losses[order[i]].error)
    near = [(order[i], order[i + 1]) for i in (at - 1, at) if 0 <= i < len(order) - 1]
    return {float(np.sqrt(low * high)) for low, high in near if high > _COARSE * low}


def _remarks(
    choices: list[Choice], losses: dict[str, float], best: str, weight: float, parts: Parts, solution: Solution
) -> Iterator[str]:
    """What was chosen, and what the recording does not show."""
    seen = parts.observation
    settings = [f"{c.what} {c.option}" for c in choices if c.chosen and c.what in ("delay", "cut-off")]
    yield f"chosen by cross-validation: {', '.join([best, f'weight {weight:.2g}', *settings])}"
    yield from _friction_remark(choices, seen.robot.n)
    free = min(losses[name] for name in ("wls", "ols", "irls") if name in losses)
    if free < 0.95 * losses[best]:
        yield (
            f"estimates without constraints predict better ({100 * free:.3g} % against {100 * losses[best]:.3g} %): "
            "the robot has effects that rigid bodies and these drive terms do not describe"
        )
    yield from _mass_remark(parts, solution)
    assert solution.prior_rows is not None
    K, prior = seen.base.matrix, solution.prior_rows
    data = np.vstack([f[:, :-1] / n for f, n in zip(seen.factors, solution.noise, strict=True)]) @ K
    before = np.diag(K @ np.linalg.pinv(prior.T @ prior) @ K.T)
    after = np.diag(K @ np.linalg.pinv(prior.T @ prior + data.T @ data) @ K.T)
    left = [name for name, b, a in zip(seen.base.names, before, after, strict=True) if a > 0.5 * b]
    if left:
        shown = ", ".join(left[:6]) + (", ..." if len(left) > 6 else "")
        yield f"{len(left)} of {len(before)} base parameters stay near the prior, the motion shows too little: {shown}"


def _friction_remark(choices: list[Choice], joints: int) -> Iterator[str]:
    """The friction that was chosen, with the joints that have it."""
    kind = "friction of "
    owners: dict[str, list[str]] = {}
    for choice in choices:
        if choice.chosen and choice.what.startswith(kind):
            owners.setdefault(choice.option, []).append(choice.what.removeprefix(kind))
    if owners:
        laws = (f"{law} ({'all joints' if len(who) == joints else ', '.join(who)})" for law, who in owners.items())
        yield f"friction chosen: {'; '.join(laws)}"


def _mass_remark(parts: Parts, solution: Solution) -> Iterator[str]:
    """A remark if the total mass is far from that of the robot's own bodies."""
    robot = parts.robot
    if consistent_prior(robot).complete or solution.parameters is None:
        return
    masses = [i for i, p in enumerate(robot.layout) if p.inertial and p.symbol == "m"]
    total, expected = solution.parameters[masses].sum(), parts.preference.prior[masses].sum()
    if not 1 / _FAR < total / expected < _FAR:
        yield (
            f"the identified robot has {total:.3g} kg, its a-priori bodies {expected:.3g} kg: "
            "check units, signs and gains of the torques"
        )
