"""Logs of commanded and measured positions of a robot that is not quite the one of its file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import dynid
from dynid.actuators import Commands, Segments, rollout
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot import ActuatorLaw

__all__ = ["encoder_log"]


def encoder_log(path: Path, seconds: float = 6.0) -> None:
    """A chirp of the two-link arm with half as much armature again, at 200 Hz with encoders of 4096 steps, as CSV."""
    robot = dynid.load_robot("twolink", friction="viscous+coulomb", rotor_inertia=True)
    symbols = [p.symbol for p in robot.layout]
    real = robot.parameters + np.array([{"Ia": 0.3, "fc": 1.0}.get(s, 0.0) for s in symbols])
    law = ActuatorLaw(robot.coordinates, kp=60.0, kd=4.0)
    t = np.arange(round(200 * seconds)) / 200.0
    command = 0.5 * np.sin(2 * np.pi * np.outer(0.2 * t + 0.15 * t**2, [1.0, 1.3]))
    start = Segments(np.array([0]), len(t) - 1, command[:1], np.zeros((1, 2)))
    moved = rollout(robot.with_parameters(real), law, Commands(200.0, command, None, None), start).q[0]
    step = 2 * np.pi / 4096
    run = Run(t, step * np.round(moved / step), reference=command)
    Recording(robot.coordinates, (run,)).to_csv(path)
