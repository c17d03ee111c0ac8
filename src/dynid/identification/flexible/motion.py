"""Runs with the positions of motors and links, filtered alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.identification.loads import no_torques
from dynid.recording.recording import Recording, Run
from dynid.robot.model import Robot
from dynid.signals.settings import Motion, Signals, prepare

__all__ = ["TwoSided", "link_encoders", "two_sided"]

Array = NDArray[np.float64]

# A link encoder stands still if its range is below this share of that of the motor.
_CONSTANT = 1e-3


@dataclass(frozen=True, eq=False)
class TwoSided:
    """A filtered run: the motion of the motors and that of the links on the same clock.

    The link of a joint without link encoder moves as its motor.
    """

    motors: Motion
    links: Motion

    @property
    def deflection(self) -> Array:
        """Motor minus link positions (N, joint), in rad or m."""
        return self.motors.q - self.links.q


def link_encoders(robot: Robot, recording: Recording, joints: Sequence[str] | None = None) -> tuple[str, ...]:
    """The joints whose links have encoders in all runs, or those that are asked for.

    Raises
    ------
    DataError
        If a joint that is asked for has no link encoder, or no joint has one; if a link encoder stands still while its
        motor moves; if both encoders of a joint give identical positions.
    """
    for run in recording.runs:
        if run.q.shape[1] != robot.n:
            raise DataError(f"the recording has {run.q.shape[1]} joints, robot '{robot.name}' has {robot.n}")
        if run.torque is None:
            raise no_torques(run)
    unknown = [name for name in joints or () if name not in robot.coordinates]
    if unknown:
        raise DataError(f"no joint named '{unknown[0]}', the joints are {', '.join(robot.coordinates)}")
    found = []
    for i, name in enumerate(robot.coordinates):
        if joints is not None and name not in joints:
            continue
        missing = [run for run in recording.runs if run.link_q is None or np.isnan(run.link_q[0, i])]
        if not missing:
            _check_encoder(recording.runs, i, name)
            found.append(name)
        elif joints is not None or len(missing) < len(recording.runs):
            raise DataError(f"run '{missing[0].name}': the link encoder of '{name}' is missing")
    if not found:
        raise DataError(
            "no joint has a link encoder (signal link_q): stiffness can only be identified from the motor side"
        )
    return tuple(found)


def _check_encoder(runs: Sequence[Run], i: int, name: str) -> None:
    """Refuse a link encoder that stands still, or that repeats the motor encoder."""
    links = [np.asarray(run.link_q)[:, i] for run in runs]
    motors = [run.q[:, i] for run in runs]
    moved = max(float(np.ptp(x)) for x in motors)
    if max(float(np.ptp(x)) for x in links) <= _CONSTANT * moved:
        raise DataError(f"the link encoder of '{name}' is constant while its motor moves: leave the joint out")
    bent = np.concatenate([motor - link for motor, link in zip(motors, links, strict=True)])
    if np.ptp(bent) <= 1e-9 * moved:
        raise DataError(f"both encoders of '{name}' are identical: there is no elasticity to see")


def two_sided(robot: Robot, run: Run, joints: Sequence[str], signals: Signals) -> TwoSided:
    """Filter one run: positions of motors and links, and torques, with the same settings."""
    n = robot.n
    flexible = [name in joints for name in robot.coordinates]
    link_q = np.where(flexible, run.q if run.link_q is None else run.link_q, run.q)
    assert run.torque is not None
    # The positions of both sides pass the same clock, filter and derivatives as one wide run.
    wide = Run(run.t, np.hstack([run.q, link_q]), torque=np.hstack([run.torque, run.torque]), name=run.name)
    both = prepare(wide, replace(signals, measured_velocity=False, measured_acceleration=False))
    assert both.torque is not None
    sides = []
    for at in (slice(0, n), slice(n, 2 * n)):
        q, v, a, torque = (np.ascontiguousarray(x[:, at]) for x in (both.q, both.v, both.a, both.torque))
        sides.append(replace(both, q=q, v=v, a=a, torque=torque, q_noise=both.q_noise[at]))
    return TwoSided(*sides)
