"""Torque per ampere of every joint, by the a-priori bodies: a start where nobody knows the drives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.data.context import Cleaned, Context
from dynid.assessment.data.fit import Gain, gain_of
from dynid.recording.recording import Recording
from dynid.robot.model import Robot

__all__ = ["gains_by_bodies"]

# A gain is told by the model where it explains this share of what friction and offset leave of a current.
_SHARE = 0.5


def gains_by_bodies(robot: Robot, recording: Recording) -> tuple[float, ...] | None:
    """Gains (N m/A or N/A) with which the currents fit the masses of the robot file.

    They are as wrong as these masses: bodies that are identified with them keep their scale.

    Parameters
    ----------
    robot : Robot
        The robot with a-priori masses.
    recording : Recording
        Runs with currents.

    Returns
    -------
    tuple of float, or None
        One gain per joint, two digits each; None where the currents of a joint do not tell.
    """
    runs = [replace(run, torque=run.current) for run in recording.runs]
    context = Context(robot, Recording(recording.joints, tuple(runs)))
    cleaned = [c for run in context.recording.runs if (c := context.cleaned(run)) is not None and c.model is not None]
    gains = [_gain(cleaned, j) for j in range(robot.n)]
    return None if not cleaned or any(g is None for g in gains) else tuple(float(f"{g:.2g}") for g in gains if g)


def _gain(runs: list[Cleaned], j: int) -> float | None:
    """The gain of one joint; with the inertia of the rotor where gravity tells them apart."""
    if not runs:
        return None

    def joined(signal: str) -> NDArray[np.float64]:
        return np.concatenate([getattr(run, signal)[:, j] for run in runs])

    model, current, v = joined("model"), joined("torque"), joined("v")
    friction = np.column_stack([np.ones_like(v), v, joined("direction")])
    for others in (np.column_stack([friction, joined("a")]), friction):
        found: Gain = gain_of(model, others, current)
        if found.share > _SHARE and found.value != 0:
            return 1.0 / found.value
    return None
