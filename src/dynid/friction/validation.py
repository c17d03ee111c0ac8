"""Torques of other motion, predicted with fitted friction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.functions import gravity_torque, inverse_dynamics
from dynid.errors import MissingArgument, NotApplicable, NotIdentifiable, keyword
from dynid.friction.pieces import Features
from dynid.friction.result import FrictionFit, ModelFit
from dynid.friction.rows import joint_index, own_rows, temperatures_of, without_friction
from dynid.identification.loads import check_run
from dynid.identification.validation_errors import Validation, validation_of
from dynid.parameters.base import base_parameters
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.signals.filters import decimate
from dynid.signals.settings import Motion, Signals, prepare

__all__ = ["validate_friction"]

Array = NDArray[np.float64]


def validate_friction(
    robot: Robot,
    chosen: Sequence[tuple[FrictionFit, ModelFit]],
    recording: Recording,
    settings: Signals,
    temperature: ArrayLike | Sequence[ArrayLike] | None,
) -> Validation:
    """Errors of the torques of joints, each predicted with one of its fitted models and the parameters beside it."""
    for fit, model in chosen:
        if model.body_parameters is None:
            raise NotApplicable(
                f"the friction of '{fit.joint}' is that of a friction map, which predicts no other torques"
            )
        if model.model.needs("temperature") and temperature is None:
            raise MissingArgument(
                f"friction model '{model.name}' of joint '{fit.joint}' needs temperatures: "
                f"give {keyword('temperature')} in deg C"
            )
    for run in recording.runs:
        check_run(robot, run, robot.coordinates)
    motions = [prepare(run, settings) for run in recording.runs]
    celsius = temperatures_of(recording, motions, temperature)
    edges = np.cumsum([len(m.t) for m in motions])[:-1]
    warmth = [None] * len(motions) if celsius is None else np.split(celsius, edges)
    starts = np.cumsum([0.0, *(m.t[-1] - m.t[0] for m in motions)])
    parts: list[tuple[Array, Array, Array]] = []
    for fit, model in chosen:
        place = joint_index(robot, fit.joint)
        base = base_parameters(without_friction(robot, place), channels=[fit.joint])
        found = []
        for motion, warm, start in zip(motions, warmth, starts, strict=False):
            assert motion.torque is not None
            numbers, kept = own_rows(base, motion, settings)
            both = np.column_stack([motion.torque[:, place], _torque(base.robot, place, fit, model, motion, warm)])
            thinned = decimate(both, motion.decimate)[kept]
            found.append(np.column_stack([thinned, start + motion.t[numbers] - motion.t[0]]))
        rows = np.vstack(found)
        if not len(rows):
            raise NotIdentifiable(
                f"joint '{fit.joint}' never moves faster than min_velocity in this recording", "min_velocity"
            )
        parts.append((rows[:, 0], rows[:, 1], rows[:, 2]))
    measured, predicted, time = zip(*parts, strict=True)
    return validation_of(robot, tuple(fit.joint for fit, _ in chosen), measured, predicted, time)


def _torque(bare: Robot, place: int, fit: FrictionFit, model: ModelFit, motion: Motion, warm: Array | None) -> Array:
    """Torque (N,) of a joint: that of the robot without its friction, and the friction."""
    rigid = inverse_dynamics(bare, motion.q, motion.v, motion.a, model.body_parameters)[:, -bare.n :][:, place]
    gravity = fit.load == "gravity" and model.model.needs("load")
    load = gravity_torque(bare, motion.q, model.body_parameters)[:, -bare.n :][:, place] if gravity else rigid
    return np.asarray(rigid + model.model.torque(Features(motion.v[:, place], load, warm), model.parameters))
