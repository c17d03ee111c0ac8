"""Low-gain tracking with unmodeled effects: feedforward of the rigid model alone, and with a learned residual.

Nothing here is published. The simulated arm has stiction, torque ripple and springs between motors and links, which the
rigid model does not describe. Both models are learned from the same runs at high gains and fed forward at low ones.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.functions import mass_matrix
from dynid.excitation.basis import random_fourier
from dynid.identification.estimate import Estimate
from dynid.identification.pipeline import identify
from dynid.progress import Progress
from dynid.recording.recording import Recording
from dynid.residual.fit import fit_residual
from dynid.residual.residual import Residual
from dynid.robot.load import load_robot
from dynid.robot.model import Robot
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.engine import simulate
from dynid.simulation.laws import LinearController, pd
from dynid.simulation.reference import Reference
from dynid.simulation.sensors import Sensors
from dynid.simulation.simulation import Simulation
from dynid.simulation.unmodeled import UnmodeledEffects
from studies.reproduce.study import Figure, kept_figures

__all__ = ["CompliantArm", "figures"]

Array = NDArray[np.float64]

ROBOTS = ("twolink", "puma560", "tx40")
_RATE = 1000.0
_PERIOD, _TRANSIENT = 10.0, 2.0  # s
# During recording, Coulomb friction deflects a joint by 0.02 rad, within these bandwidths (Hz); in the test its
# stiffness is a sixth of that. The springs between motors and links have a natural frequency of 25 Hz.
_DEFLECTION, _SLOWEST, _FASTEST = 0.02, 3.0, 8.0
_SOFTER, _SPRING = 6.0, 25.0
_TRAINING, _UNSEEN, _FAR = (1, 2, 3, 4, 5, 6), (11, 12, 13), (31, 32)


def _say(progress: Progress) -> None:
    """Show progress on standard error."""
    print(f"dynid: {progress.message}", file=sys.stderr)


@dataclass(frozen=True)
class CompliantArm:
    """A built-in robot with unmodeled effects."""

    name: str

    @cached_property
    def robot(self) -> Robot:
        return load_robot(self.name)

    @cached_property
    def model(self) -> Robot:
        """The model to identify, with the same friction in both directions."""
        return (
            self.robot if self.name == "tx40" else self.robot.with_drives("viscous+coulomb+offset", rotor_inertia=True)
        )

    @cached_property
    def effects(self) -> UnmodeledEffects:
        """Stiction of 30 % and ripple of 50 % of each joint's Coulomb friction, and springs to the links."""
        coulomb, inertia = self._coulomb, self._inertia
        spring = 2 * np.pi * _SPRING
        return UnmodeledEffects(
            stiction=0.3 * coulomb,
            stribeck_velocity=0.1,
            ripple=0.5 * coulomb,
            harmonics=3.0,
            phase=np.arange(self.robot.n),
            stiffness=inertia * spring**2,
            damping=0.1 * inertia * spring,
        )

    def motion(self, seed: int, low: float = -0.5, high: float = 0.5) -> Reference:
        """Two periods of a random motion between `low` and `high`, from -1 to 1 over the range of the joints."""
        t = np.arange(int(2 * _PERIOD * _RATE)) / _RATE
        lower, upper = self._middle + low * self._half, self._middle + high * self._half
        return Reference(_RATE, *random_fourier(lower, upper, self._velocity, _PERIOD, t, seed))

    def follow(self, law: LinearController, motions: Sequence[Reference]) -> list[Simulation]:
        """Simulations of the arm with a controller along each motion."""
        sensors = Sensors(counts=100_000, torque_noise=0.02 * self._coulomb)
        loop = ClosedLoop(controller=law, sensors=sensors, coulomb_slope=100.0)
        return [simulate(self.robot, loop, m, unmodeled=self.effects, seed=k) for k, m in enumerate(motions)]

    def law(self, softer: float = 1.0) -> LinearController:
        """A critically damped PD controller, softer than during recording by this factor."""
        slow, fast = (self._inertia * (2 * np.pi * f) ** 2 for f in (_SLOWEST, _FASTEST))
        stiffness = np.clip(self._coulomb / _DEFLECTION, slow, fast) / softer
        return pd(_RATE, stiffness, 2 * np.sqrt(stiffness * self._inertia))

    @cached_property
    def recording(self) -> Recording:
        """Runs at high gains with feedforward of the a-priori model."""
        law = self.law().with_feedforward("full", self.model)
        runs = self.follow(law, [self.motion(seed) for seed in _TRAINING])
        return Recording(self.robot.coordinates, tuple(s.run(f"run {k}") for k, s in enumerate(runs)))

    @cached_property
    def estimate(self) -> Estimate:
        return identify(self.model, self.recording, "wls")

    @cached_property
    def residual(self) -> Residual:
        return fit_residual(self.estimate, self.recording, progress=_say)

    def errors(self, motions: Sequence[Reference]) -> tuple[Array, Array]:
        """Tracking errors (n,) in rad, rms over the motions, of the rigid model alone and with the residual."""
        law = self.law(_SOFTER)
        laws = (
            law.with_feedforward("full", self.estimate.identified_robot),
            law.with_feedforward(self.residual.predictor()),
        )
        return tuple(_rms(self.follow(one, motions)) for one in laws)  # type: ignore[return-value]

    @cached_property
    def _inertia(self) -> Array:
        return np.diag(mass_matrix(self.robot, self._middle)).copy()

    @cached_property
    def _coulomb(self) -> Array:
        drives = self.robot.drives
        own = [[abs(t.value) for t in drives if t.owner == j and t.is_coulomb] for j in range(self.robot.n)]
        return np.array([max(values) for values in own])

    @cached_property
    def _limits(self) -> tuple[Array, Array, Array]:
        limits = [self.robot.limits[c] for c in self.robot.coordinates]
        lower, upper, velocity = (np.array([getattr(x, k) for x in limits]) for k in ("lower", "upper", "velocity"))
        return np.maximum(lower, -np.pi), np.minimum(upper, np.pi), np.minimum(velocity, 3.0)

    @property
    def _middle(self) -> Array:
        return 0.5 * (self._limits[0] + self._limits[1])

    @property
    def _half(self) -> Array:
        return 0.5 * (self._limits[1] - self._limits[0])

    @property
    def _velocity(self) -> Array:
        return self._limits[2]


def figures(folder: Path | None = None) -> Iterator[Figure]:
    """Tracking errors of every robot on unseen motion and far from the data."""
    yield from kept_figures("compensated-control", {name: partial(_tracked, name) for name in ROBOTS}, folder)


def _tracked(name: str) -> Iterator[Figure]:
    arm = CompliantArm(name)
    section = f"{name}: position error at a sixth of the stiffness"
    rigid, both = arm.errors([arm.motion(seed) for seed in _UNSEEN])
    ratio = float(np.linalg.norm(both) / np.linalg.norm(rigid))
    shown = f"{ratio:.2f} ({1e3 * np.linalg.norm(rigid):.2f} to {1e3 * np.linalg.norm(both):.2f} mrad)"
    yield Figure(section, "unseen motion: with residual over rigid alone", "0.5", shown, ratio, 0.5, "at most half")
    yield from _by_joint(section, "unseen motion", arm, rigid, both)
    rigid, both = arm.errors([arm.motion(seed, 0.55, 0.95) for seed in _FAR])
    yield from _by_joint(section, "far from the data", arm, rigid, both)


def _by_joint(section: str, where: str, arm: CompliantArm, rigid: Array, both: Array) -> Iterator[Figure]:
    for joint, a, b in zip(arm.robot.coordinates, rigid, both, strict=True):
        ratio = float(b / a)
        yield Figure(section, f"{where}, {joint}", "1", f"{ratio:.2f}", ratio, 1.02, "not worse, within 2 %")


def _rms(runs: Sequence[Simulation]) -> Array:
    lost = [s.outcome for s in runs if not s.completed]
    if lost:
        return np.full(runs[0].robot.n, np.inf)
    first = int(_TRANSIENT * _RATE)
    return np.sqrt(np.mean([np.mean((s.q - s.reference)[first:] ** 2, axis=0) for s in runs], axis=0))
