"""Structural identifiability of sensor errors, decided on random states and random bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid.calibration.sensors.unknowns import Unknown, Unknowns
from dynid.dynamics.functions import inverse_dynamics
from dynid.parameters.base import BaseParameters, random_states
from dynid.robot.posture import tilted_gravity

__all__ = ["hidden_unknowns"]

Array = NDArray[np.float64]

_STEP = 1e-3
_STEPS = (-2 * _STEP, -_STEP, _STEP, 2 * _STEP)
# Remainder of a unit column after projection on all before it; rounding of the differences leaves 1e-11.
_VISIBLE = 1e-7
_LEAN = np.array([0.3, 0.2])

_WHY = {
    "torque_gain": "no other measured torque shares a load with it, so nothing says how large its own is",
    "torque_offset": "the robot's own drive offset is the same signal; leave one of them out",
    "encoder_offset": "bodies turned about the joint's axis give the same torques",
    "tilt": "other bodies give the same torques",
    "wrench_offset": "the weight of the base link is the same signal",
}
_NOTHING = {"encoder_offset": "gravity looks the same from all positions of this joint, as about a vertical axis"}


def hidden_unknowns(base: BaseParameters, unknowns: Unknowns, loaded: bool) -> dict[Unknown, str]:
    """Unknowns whose effect equals that of base parameters or of earlier unknowns, each with the reason.

    `loaded`: whether a known payload hangs on the robot in part of the runs. Delays always show in a moving robot.
    """
    robot = unknowns.robot
    if any(e.word == "tilt" for e in unknowns.entries):
        tilt = _LEAN
        model = robot.with_gravity(tilted_gravity(robot, tilt))
    else:
        tilt, model = np.zeros(2), robot
    rows = [robot.channels.index(c) for c in base.channels]
    samples = max(4 * (base.count + len(unknowns.entries)) // max(len(rows), 1), 60)
    q, v, a = random_states(model, samples, seed=1)
    rng = np.random.default_rng(2)
    pi = rng.uniform(0.2, 1.0, len(robot.layout))
    load = rng.uniform(0.2, 1.0, len(robot.layout))
    carries = (np.arange(samples) % 2 == 1)[:, None]
    W = replace(base, robot=model).regressor(q, v, a)

    def torque(of: Array, gravity: Array | None = None) -> Array:
        here = model if gravity is None else robot.with_gravity(gravity)
        plain = inverse_dynamics(here, of, v, a, pi)
        if loaded:
            plain = np.where(carries, inverse_dynamics(here, of, v, a, pi + load), plain)
        return np.asarray(plain[:, rows])

    basis = np.linalg.qr(_unit(W.reshape(-1, base.count)))[0]
    hidden: dict[Unknown, str] = {}
    now = torque(q)
    first = len(robot.channels) - robot.n
    # A zero error of a joint that only a leaning base shows counts as the direction of that lean: tilts come first.
    for entry in sorted(unknowns.entries, key=lambda e: e.word == "encoder_offset"):
        if "delay" in entry.word:
            continue
        column = np.zeros_like(now)
        if entry.word == "encoder_offset":
            move = np.eye(q.shape[1])[q.shape[1] - robot.n + entry.members[0]]
            column = _derivative([torque(q + s * move) for s in _STEPS])
        elif entry.word == "tilt":
            turn = np.eye(2)[entry.members[0]]
            column = _derivative([torque(q, tilted_gravity(robot, tilt + s * turn)) for s in _STEPS])
        else:
            of_base = entry.word.startswith("wrench")
            mine = [k for k, r in enumerate(rows) if (r if of_base else r - first) in entry.members]
            column[:, mine] = now[:, mine] if entry.word == "torque_gain" else 1.0
        size = float(np.linalg.norm(column))
        if size <= _VISIBLE * np.linalg.norm(now):
            hidden[entry] = f"{entry.name} cannot be seen: {_NOTHING.get(entry.word, 'it changes no measured torque')}"
            continue
        unit = column.ravel() / size
        for _ in range(2):
            unit = unit - basis @ (basis.T @ unit)
        left = float(np.linalg.norm(unit))
        if left > _VISIBLE:
            basis = np.column_stack([basis, unit / left])
        else:
            hidden[entry] = f"{entry.name} cannot be seen: {_WHY[entry.word]}"
    return hidden


def _unit(columns: Array) -> Array:
    size = np.linalg.norm(columns, axis=0)
    return columns / np.where(size > 0, size, 1.0)


def _derivative(values: Sequence[Array]) -> Array:
    """Derivative at zero from values at the four steps, to fourth order."""
    return np.asarray((8 * (values[2] - values[1]) - (values[3] - values[0])) / (12 * _STEP))
