"""Check for torques that were computed by a model instead of measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.data.context import Context
from dynid.assessment.data.fit import basis
from dynid.assessment.data.recording_check import RecordingCheck
from dynid.assessment.finding import Finding, FindingCode
from dynid.parameters.base import base_parameters
from dynid.recording.run import Run
from dynid.robot.model import Robot

__all__ = ["COMPUTED"]

Array = NDArray[np.float64]

TORQUE_COMPUTED = FindingCode(
    "torque_computed", "the torque was computed by a model", ("warning", "info"), signal="torque"
)

# Unfiltered sensors and currents have at least a percent of noise; less than a thousandth was computed or filtered.
_NOISE = 1e-3
# A model without friction never explains the torques of real joints this well.
_RESIDUAL = 0.15
# If friction columns reduce the residual of a joint below this share, the torque contains friction.
_FRICTION = 1 / 3
# Joints with less torque than this share of the strongest are left out because of rounding errors.
_COUNTS = 1e-3
# Rows per parameter below which any torques would be fitted perfectly.
_ROWS = 5
# Samples that are used.
_SAMPLES = 400
# Positions with less noise than this (rad or m) do not come from an encoder: the whole run was simulated.
_SIMULATED = 1e-8


def check_computed(robot: Robot, run: Run, context: Context) -> Iterator[Finding]:
    """Find torques without noise and without friction in all joints."""
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
        TORQUE_COMPUTED,
        run,
        None,
        "The torques seem to be computed by a model: they contain neither noise nor friction.",
        f"{100 * rest.max():.2g} percent of the torque of the worst joint is not explained by bodies without friction",
        "This is right for a simulation."
        if simulated
        else "Identify from measured torques or currents; these only reproduce the model of the controller.",
        severity="info" if simulated else "warning",
    )


def _rest(rows: Array, torque: Array) -> Array:
    """Residual of the torques (N, joint) on the columns of rows (N, joint, k), as standard deviations (joint,)."""
    explained = basis(rows.reshape(torque.size, -1))
    return np.asarray((torque.ravel() - explained @ (explained.T @ torque.ravel())).reshape(torque.shape).std(axis=0))


def _friction(v: Array, direction: Array) -> Array:
    """Columns (N, joint, 3 joint) of viscous friction, Coulomb friction and offset of each joint."""
    own = np.eye(v.shape[1])
    return np.concatenate([v[:, :, None] * own, direction[:, :, None] * own, np.ones_like(v)[:, :, None] * own], axis=2)


COMPUTED = RecordingCheck(
    name="computed-torque",
    finds="torques without noise and friction, which were computed by a model",
    advice="identify from measured torques or currents",
    codes=(TORQUE_COMPUTED,),
    of_run=check_computed,
)
