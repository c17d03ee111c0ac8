"""Real robots with a friction model selected per joint, on held-out motion."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.friction.fit import fit_friction
from dynid.identification.pipeline import identify
from dynid.identification.validation import validate
from studies.reproduce.robot_cases import CASES, Case
from studies.reproduce.study import Figure, kept_figures

__all__ = ["chosen_friction", "figures"]

Array = NDArray[np.float64]

_ROBOTS = ("ur10e", "lwr4", "tx40_halves")
# Load by gravity alone, so that every model can be part of the robot.
_MODELS = (
    *("coulomb+viscous", "asymmetric", "stribeck", "power", "quadratic", "tanh", "sigmoid", "load", "stribeck+load"),
)


def chosen_friction(case: Case) -> tuple[dict[str, str], Array, Array]:
    """Selected model per joint, and relative errors (joint,) on held-out motion without and with these models."""
    assert case.test is not None
    before = validate(identify(case.robot, case.train, "wls"), case.test)
    robot, chosen = case.robot, {}
    for joint in case.robot.coordinates:
        fit = fit_friction(case.robot, case.train, joint, models=_MODELS, load="gravity")
        chosen[joint], robot = fit.best.name, fit.apply(robot)
    after = validate(identify(robot, case.train, "wls"), case.test)
    return chosen, before.relative, after.relative


def figures(folder: Path | None = None) -> Iterator[Figure]:
    """Errors of plain friction and of the selected models, per robot."""
    yield from kept_figures("friction-robots", {name: partial(_robot, name) for name in _ROBOTS}, folder)


def _robot(name: str) -> Iterator[Figure]:
    section = f"{name}: torque error on held-out motion, % (plain: Coulomb, viscous and offset)"
    chosen, plain, ours = chosen_friction(CASES[name]())
    for k, (joint, model) in enumerate(chosen.items()):
        shown = f"{100 * ours[k]:.2f}, {model}"
        yield Figure(section, joint, f"plain {100 * plain[k]:.2f}", shown, 0.0, 0.0, "for the record")
    over = max(float(np.mean(ours) - np.mean(plain)), 0.0)
    there, shown = (f"{100 * float(np.mean(x)):.2f}" for x in (plain, ours))
    yield Figure(section, "mean of joints", f"plain {there}", shown, over, 0.0, "not worse in the mean")
