"""Torques that look measured but come out of a model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.data.context import Context
from dynid.assessment.data.fit import basis
from dynid.assessment.finding import Finding
from dynid.parameters.base import base_parameters
from dynid.recording.recording import Run
from dynid.robot.model import Robot

__all__ = ["check_computed"]

Array = NDArray[np.float64]

# Sensors and currents leave at least a percent of noise, unfiltered; less than a thousandth was computed or filtered.
_NOISE = 1e-3
# Bodies without any friction never explain the torques of real joints this well, least of all of lightly loaded ones.
_RESIDUAL = 0.15
# Where friction columns take the residual of a joint below this share of it, there is friction in the torque.
_FRICTION = 1 / 3
# Joints with less torque than this share of the strongest are left out: rounding decides there.
_COUNTS = 1e-3
# Pooled rows a parameter below which the fit would be perfect whatever the torques.
_ROWS = 5
# Samples that are looked at.
_SAMPLES = 400
# Positions with less noise than this (rad or m) come from no encoder: the whole run was simulated.
_SIMULATED = 1e-8


def check_computed(run: Run, robot: Robot, context: Context) -> Iterator[Finding]:
    """Torques without noise and without friction, in all joints at once."""
    cleaned = context.cleaned(run)
    if cleaned is None or cleaned.torque is None or cleaned.torque_noise is None or cleaned.model is None:
        return
    size = cleaned.torque.std(axis=0)
    counts = size > _COUNTS * size.max()
    if not cleaned.moving.any() or not counts.any() or np.any(cleaned.torque_noise[counts] > _NOISE * size[counts]):
        return
    rigid = base_parameters(replace(robot, drives=(), base="fixed"), channels="torque")
    if len(cleaned.q) * np.count_nonzero(counts) < _ROWS * rigid.count:
        return
    thin = slice(None, None, max(1, len(cleaned.q) // _SAMPLES))
    rows = rigid.regressor(cleaned.q[thin], cleaned.v[thin], cleaned.a[thin])[:, counts] / size[counts][None, :, None]
    torque = cleaned.torque[thin][:, counts] / size[counts]
    rest = _rest(rows, torque)
    if rest.max() > _RESIDUAL:
        return
    friction = _friction(cleaned.v[thin][:, counts], cleaned.direction[thin][:, counts])
    if np.any(_rest(np.concatenate([rows, friction], axis=2), torque) < _FRICTION * rest):
        return
    simulated = float(cleaned.q_noise.max()) < _SIMULATED
    yield context.found(
        "info" if simulated else "warning",
        run,
        None,
        "The torques look computed by a model, not measured: they show neither noise nor friction.",
        f"{100 * rest.max():.2g} percent of the least explained torque is left by bodies without friction",
        "Fine for a simulation."
        if simulated
        else "Identify from measured torques or currents; these would only return the controller's model.",
    )


def _rest(rows: Array, torque: Array) -> Array:
    """What the columns of rows (N, joint, k) leave of the torques (N, joint), as a deviation (joint,)."""
    explained = basis(rows.reshape(torque.size, -1))
    return np.asarray((torque.ravel() - explained @ (explained.T @ torque.ravel())).reshape(torque.shape).std(axis=0))


def _friction(v: Array, direction: Array) -> Array:
    """Columns (N, joint, 3 joint) of viscous friction, Coulomb friction and offset, each joint with its own."""
    own = np.eye(v.shape[1])
    return np.concatenate([v[:, :, None] * own, direction[:, :, None] * own, np.ones_like(v)[:, :, None] * own], axis=2)
