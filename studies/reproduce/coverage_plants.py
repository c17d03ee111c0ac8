"""Simulated arms whose motion is integrated with the forward dynamics of MuJoCo or Pinocchio, not with ours."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dynid.excitation.basis import random_fourier
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.load import load_robot
from dynid.robot.model import Robot
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.gains import bandwidth_gains
from dynid.simulation.laws import LinearController, pd
from dynid.simulation.reference import Reference, as_reference
from dynid.simulation.sensors import Sensors
from studies.reproduce.plants import Drives, colored_noise, integrate, other_bodies, with_drive_values

__all__ = ["ARMS", "NOISES", "RATE", "Arm"]

Array = NDArray[np.float64]

RATE = 1000.0  # Hz
NOISES: dict[str, float | None] = {"white": None, "10 Hz": 10.0, "2 Hz": 2.0}  # corner of the torque noise

_DURATION, _PERIOD, _HARMONICS = 20.0, 20.0, 12  # s
_SUBSTEPS = 4
_BANDWIDTH = 6.0  # Hz
_SLOPE = 100.0  # s/rad, of the smooth Coulomb friction
_COUNTS = 2**17  # per revolution
_NOISE = 0.03  # share of the torque of a joint
_PRIOR_ERROR = 0.1  # relative, of the square root of every pseudo-inertia


@dataclass(frozen=True)
class Arm:
    """An arm with known parameters: the built-in robot's bodies, and rotor inertia and friction per joint.

    `range` and `velocity` bound the motion, rad and rad/s.
    """

    name: str
    engine: Literal["MuJoCo", "Pinocchio"]
    rotor_inertia: tuple[float, ...]
    viscous: tuple[float, ...]
    coulomb: tuple[float, ...]
    range: float
    velocity: float
    seed: int = 0

    @property
    def drives(self) -> Drives:
        """The drives of the plant."""
        rotor_inertia, viscous, coulomb = (np.array(x) for x in (self.rotor_inertia, self.viscous, self.coulomb))
        return Drives(rotor_inertia=rotor_inertia, viscous=viscous, coulomb=coulomb, slope=_SLOPE)

    @cached_property
    def truth(self) -> Robot:
        """The robot of the plant."""
        bodies = replace(load_robot(self.name), drives=(), transmission=None)
        robot = bodies.with_drives("viscous+coulomb", rotor_inertia=True).with_smooth_coulomb(_SLOPE)
        return with_drive_values(robot, self.drives)

    @cached_property
    def prior(self) -> Robot:
        """What is known before: bodies with errors of about 20 %, physically consistent, and drives of zero."""
        robot = other_bodies(self.truth, _PRIOR_ERROR, np.random.default_rng(self.seed))
        return replace(robot, drives=tuple(replace(t, value=0.0) for t in self.truth.drives))

    @cached_property
    def law(self) -> LinearController:
        """PD control with the gravity torques of the prior along the reference."""
        kp, kv = bandwidth_gains(self.truth, _BANDWIDTH)
        return pd(RATE, kp * kv, kv).with_feedforward("gravity", self.prior)

    @property
    def loop(self) -> ClosedLoop:
        """The closed loop of the plant, for methods that simulate it."""
        return ClosedLoop(controller=self.law, sensors=Sensors(velocity="exact"), coulomb_slope=_SLOPE)

    @cached_property
    def reference(self) -> Reference:
        """A Fourier series, as methods that simulate read it from the recording."""
        limits = [self.truth.limits[c] for c in self.truth.coordinates]
        middle = np.array([0.5 * (x.lower + x.upper) if np.isfinite(x.lower + x.upper) else 0.0 for x in limits])
        t = np.arange(int(_DURATION * RATE)) / RATE
        fastest = np.full(self.truth.n, self.velocity)
        low, high = middle - self.range, middle + self.range
        q, _, _ = random_fourier(low, high, fastest, _PERIOD, t, self.seed, _HARMONICS)
        return as_reference(q, self.truth, RATE)

    @cached_property
    def motion(self) -> tuple[Array, Array, Array]:
        """Positions and velocities at the start of every control period, and the torques held during it."""
        path, gains = self.reference, self.law.D
        ahead = self.law.torques_ahead(path.q, path.v, path.a)

        def control(k: int, q: Array, v: Array) -> Array:
            return gains[:, 0] * path.q[k] + gains[:, 1] * path.v[k] + gains[:, 2] * q + gains[:, 3] * v + ahead[k]

        start = path.q[0], path.v[0]
        moved = integrate(self.truth, self.engine, self.drives, control, start, len(path), 1 / RATE, _SUBSTEPS)
        return moved.q, moved.v, moved.torque

    def recording(self, corner: float | None, seed: int, share: float = _NOISE) -> Recording:
        """What is recorded: counted positions, and torques with noise of this corner frequency.

        The encoders are mounted anew in every run, so that the rounding errors of the runs differ.
        """
        q, _, torque = self.motion
        rng = np.random.default_rng([seed, 0 if corner is None else int(1000 * corner)])
        count, shift = 2 * np.pi / _COUNTS, rng.uniform(-0.5, 0.5, self.truth.n)
        level = share * np.sqrt(np.mean(torque**2, axis=0))
        noise = level * colored_noise(torque.shape, corner, RATE, rng)
        run = Run(
            np.arange(len(q)) / RATE,
            count * (np.round(q / count + shift) - shift),
            torque=torque + noise,
            reference=self.reference.q,
        )
        return Recording(self.truth.coordinates, (run,))


ARMS = {
    "two joints": Arm("box2", "Pinocchio", (0.2, 0.05), (1.0, 0.3), (1.5, 0.5), range=1.5, velocity=4.0),
    "six joints": Arm(
        "rv2sq",
        "MuJoCo",
        (0.24, 0.31, 0.115, 0.031, 0.026, 0.011),
        (4.2, 5.1, 2.1, 0.72, 0.54, 0.29),
        (4.6, 5.4, 2.9, 1.15, 0.88, 0.47),
        range=1.3,
        velocity=5.0,
    ),
    "seven joints": Arm(
        "wam7",
        "Pinocchio",
        (0.05, 0.1, 0.02, 0.02, 0.003, 0.003, 0.0005),
        (1.6, 0.85, 0.4, 0.58, 0.03, 0.04, 0.03),
        (1.8, 0.75, 0.7, 0.56, 0.06, 0.06, 0.02),
        range=1.5,
        velocity=5.0,
    ),
}
