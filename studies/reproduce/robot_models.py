"""What a user takes home from every real robot: errors on unseen motion of all methods, and masses of the bodies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DynidError
from dynid.feasibility.prior import consistent_prior
from dynid.identification.estimate import Estimate
from dynid.identification.pipeline import identify
from dynid.identification.validation import validate
from studies.reproduce.robot_cases import Case
from studies.reproduce.study import Figure

__all__ = ["model_figures"]

Array = NDArray[np.float64]

OTHERS = ("ols", "wls", "ridge", "feasible")
# Allowed ratio of the mean error of auto to the best of the others, and of its worst joint to that of the prior.
_BEST, _PRIOR = 1.05, 1.2
# Total mass relative to that of the prior, unless the data say otherwise by more than this many standard deviations.
_LIGHT, _HEAVY, _STDS = 0.3, 3.0, 4.0


def model_figures(section: str, case: Case) -> Iterator[Figure]:
    """Errors on unseen motion of the prior and of each method, and masses, of one robot."""
    section = f"{section.split(':')[0]}: what is taken home"
    auto = identify(case.robot, case.train)
    found: dict[str, Estimate | None] = {}
    for method in OTHERS:
        try:
            found[method] = identify(case.robot, case.train, method)
        except DynidError:
            found[method] = None
    yield from _masses(section, "feasible", found["feasible"])
    yield from _masses(section, "auto", auto)
    if case.test is None:
        return
    # The prior model says nothing of friction that its file does not have.
    prior = replace(auto, base=auto.base, beta=auto.base.values())
    errors = {name: _errors(estimate, case) for name, estimate in {"prior": prior, **found}.items()}
    for name, error in errors.items():
        shown = (
            f"{error.mean():.1f} %, worst joint {error.max():.1f} %" if np.all(np.isfinite(error)) else "no solution"
        )
        yield Figure(section, f"held out, {name}", "-", shown, 0.0, np.inf, "for the record")
    ours = _errors(auto, case)
    best = min(errors, key=lambda name: errors[name].mean())
    yield Figure(
        section,
        "held out, auto: mean of joints",
        f"<= {_BEST:g} x {errors[best].mean():.1f} % ({best})",
        f"{ours.mean():.1f} %",
        float(ours.mean() / errors[best].mean()),
        _BEST,
        "the recording alone chooses",
    )
    yield Figure(
        section,
        "held out, auto: worst joint",
        f"<= {_PRIOR:g} x {errors['prior'].max():.1f} % (prior)",
        f"{ours.max():.1f} %",
        float(ours.max() / errors["prior"].max()),
        _PRIOR,
        "identification must not make the model worse",
    )


def _errors(estimate: Estimate | None, case: Case) -> Array:
    """Relative errors (channel,) on unseen motion in percent; infinite without an estimate."""
    if estimate is None:
        return np.full(case.robot.n, np.inf)
    assert case.test is not None
    return np.asarray(100 * validate(estimate, case.test).relative)


def _masses(section: str, method: str, estimate: Estimate | None) -> Iterator[Figure]:
    """Total mass and largest ratio of a link's mass to the prior, for robots whose file has bodies."""
    if estimate is None or estimate.standard is None or estimate.standard_covariance is None:
        return
    robot = estimate.robot
    prior = consistent_prior(robot)
    if prior.complete:
        return
    at = [i for i, p in enumerate(robot.layout) if p.inertial and p.symbol == "m"]
    masses, expected = estimate.standard[at], prior.parameters[at]
    std = float(np.sqrt(estimate.standard_covariance[np.ix_(at, at)].sum()))
    total, whole = float(masses.sum()), float(expected.sum())
    outside = max(_LIGHT * whole - total, total - _HEAVY * whole, 0.0) / std
    ratios = masses / expected
    worst = float(ratios[np.argmax(np.abs(np.log(np.maximum(ratios, 1e-12))))])
    name = robot.layout[at[int(np.argmax(np.abs(np.log(np.maximum(ratios, 1e-12)))))]].owner
    # Outside the band only if the data say so.
    wrong = outside if 0.0 < outside <= _STDS else 0.0
    yield Figure(
        section,
        f"{method}: total mass",
        f"{_LIGHT:g} to {_HEAVY:g} x {whole:.3g} kg",
        f"{total:.3g} kg (std {std:.2g})" + (f", outside by {outside:.1f} std" if outside else ""),
        wrong,
        0.0,
        f"or outside by more than {_STDS:g} standard deviations",
    )
    yield Figure(section, f"{method}: worst link", "prior", f"{name}: {worst:.2f} times", 0.0, np.inf, "for the record")
