"""Recordings of arms that MuJoCo or Pinocchio integrates, as a user has them: prior, training run, unseen run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from importlib.metadata import PackageNotFoundError, files
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.excitation.basis import random_fourier
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.load import load_robot
from dynid.robot.model import Robot
from dynid.simulation.gains import bandwidth_gains
from dynid.simulation.laws import pd
from dynid.simulation.reference import Reference, as_reference
from studies.reproduce.plants import Drives, Traces, colored_noise, integrate, other_bodies, with_drive_values

__all__ = ["PLANTS", "RATE", "Log", "Plant", "RunName", "Sensing", "recorded"]

Array = NDArray[np.float64]
RunName = Literal["training", "unseen"]

RATE = 1000.0  # Hz, of the controller
_DURATION = 20.0  # s
_HARMONICS = 12
_MOTIONS = 8  # of which the best conditioned is used
_BANDWIDTH = 6.0  # Hz
_SLOPE = 100.0  # s/rad, of the smooth Coulomb friction of the plant; the user's model has a step
_STEEPER = 8.0  # in s/m, of a prismatic joint
_PRIOR_ERROR = 0.1  # relative, of the square root of every pseudo-inertia


@dataclass(frozen=True)
class Plant:
    """An arm: bodies, engine, drives per joint, effort limits, and bounds of the motion about its middle posture."""

    name: str
    engine: Literal["MuJoCo", "Pinocchio"]
    rotor_inertia: tuple[float, ...]
    viscous: tuple[float, ...]
    coulomb: tuple[float, ...]
    effort: tuple[float, ...]
    range: tuple[float, ...]
    velocity: tuple[float, ...]
    middle: tuple[float, ...] = field(default=())

    @cached_property
    def drives(self) -> Drives:
        """Drives of the plant without further effects."""
        rotor_inertia, viscous, coulomb = (np.array(x) for x in (self.rotor_inertia, self.viscous, self.coulomb))
        slope = _SLOPE * np.array([_STEEPER if x.kind == "prismatic" else 1.0 for x in _bodies(self.name).joints])
        return Drives(rotor_inertia=rotor_inertia, viscous=viscous, coulomb=coulomb, slope=slope)

    @cached_property
    def truth(self) -> Robot:
        """The robot of the plant, with the limits of its joints."""
        bodies = replace(_bodies(self.name), drives=(), transmission=None)
        middle = self.middle or (0.0,) * bodies.n
        limits = {
            c: {
                "position": (middle[j] - self.range[j], middle[j] + self.range[j]),
                "velocity": self.velocity[j],
                "effort": self.effort[j],
            }
            for j, c in enumerate(bodies.coordinates)
        }
        robot = bodies.with_limits(limits).with_drives("viscous+coulomb", rotor_inertia=True)
        return with_drive_values(robot, self.drives)

    def prior(self, seed: int) -> Robot:
        """What the user has: bodies with errors of about 20 %, physically consistent, and drives of zero."""
        robot = other_bodies(self.truth, _PRIOR_ERROR, np.random.default_rng([seed, 1]))
        return replace(robot, drives=tuple(replace(t, value=0.0) for t in robot.drives))

    def reference(self, seed: int, run: RunName, still: int | None = None) -> Reference:
        """The best conditioned of some Fourier series; joint `still` does not move."""
        q = _best_motion(self.name, 2 * seed + (run == "unseen"))
        if still is not None:
            q = q.copy()
            q[:, still] = q[0, still]
        return as_reference(q, self.truth, RATE)

    @cached_property
    def base(self) -> BaseParameters:
        """Base parameters of the plant."""
        return base_parameters(self.truth)

    def moved(
        self, seed: int, run: RunName, drives: Drives | None = None, bodies: Robot | None = None,
        still: int | None = None,
    ) -> Traces:  # fmt: skip
        """Integrate a run under PD control with the gravity torques of the prior, with other drives or bodies."""
        if drives is None and bodies is None and still is None:
            return _good(self.name, seed, run)
        return _moved(self, seed, run, self.drives if drives is None else drives, bodies or self.truth, still)


@dataclass(frozen=True, eq=False)
class Log:
    """What is logged of one run: time stamps, positions and torques, without noise of the sensors."""

    t: Array
    q: Array
    torque: Array


@dataclass(frozen=True)
class Sensing:
    """Sensors and logger of a case, drawn from its seed.

    `every` is the number of control periods per logged sample, `counts` those of the encoders per revolution or metre,
    `noise` the standard deviation of the torque noise as a share of the rms torque, `corner` its corner frequency, Hz.
    """

    every: int
    counts: float
    noise: float
    corner: float | None

    @staticmethod
    def of(seed: int) -> Sensing:
        """Rates of 200 to 1000 Hz, 2^16 to 2^20 counts, noise of 1 to 4 %, white or with a corner of 2 to 10 Hz."""
        rng = np.random.default_rng([seed, 2])
        corner = None if seed % 3 == 0 else float(rng.uniform(2.0, 10.0))
        return Sensing(int(rng.choice([1, 2, 4, 5])), 2.0 ** rng.uniform(16, 20), rng.uniform(0.01, 0.04), corner)

    def log(self, traces: Traces) -> Log:
        """Sample the run; a torque is the mean of the periods before and after its time stamp."""
        torque = traces.torque.copy()
        torque[1:] = 0.5 * (traces.torque[1:] + traces.torque[:-1])
        t = np.arange(len(torque)) / RATE
        return Log(t[:: self.every], traces.q[:: self.every], torque[:: self.every])

    def seen(self, log: Log, level: Array, seed: Sequence[int]) -> Log:
        """Add what sensors do: counted positions, and torque noise of standard deviation `level` (n,).

        The encoders are mounted anew in every run, so that the rounding errors of the runs differ.
        """
        rng = np.random.default_rng(seed)
        n = log.q.shape[1]
        count, shift = 2 * np.pi / self.counts, rng.uniform(-0.5, 0.5, n)
        noise = level * colored_noise(log.torque.shape, self.corner, RATE / self.every, rng)
        return Log(log.t, count * (np.round(log.q / count + shift) - shift), log.torque + noise)

    def level(self, traces: Traces) -> Array:
        """Standard deviation of the torque noise of each joint (n,) in this run."""
        return self.noise * np.sqrt(np.mean(traces.torque**2, axis=0))


def recorded(robot: Robot, log: Log, name: str) -> Recording:
    """A recording of one run."""
    return Recording(robot.coordinates, (Run(log.t, log.q, torque=log.torque, name=name),))


def _moved(plant: Plant, seed: int, run: RunName, drives: Drives, bodies: Robot, still: int | None = None) -> Traces:
    kp, kv = bandwidth_gains(plant.truth, _BANDWIDTH)
    law = pd(RATE, kp * kv, kv).with_feedforward("gravity", plant.prior(seed))
    path, gains = plant.reference(seed, run, still), law.D
    ahead = law.torques_ahead(path.q, path.v, path.a) + gains[:, 0] * path.q + gains[:, 1] * path.v
    of_q, of_v = gains[:, 2].copy(), gains[:, 3].copy()

    def control(k: int, q: Array, v: Array) -> Array:
        return np.asarray(ahead[k] + of_q * q + of_v * v)

    start = path.q[0], path.v[0]
    # The step is stable: the slope of Coulomb friction over rotor inertia is below 2.8 RATE.
    assert np.all(drives.slope * drives.coulomb <= 2.1 * RATE * drives.rotor_inertia)
    traces = integrate(bodies, plant.engine, drives, control, start, len(path), 1 / RATE)
    if not all(np.all(np.isfinite(x)) for x in vars(traces).values()):
        raise DataError(f"the integration of plant '{plant.name}' diverged (seed {seed}, {run})")
    return traces


@lru_cache(maxsize=8)
def _good(name: str, seed: int, run: RunName) -> Traces:
    plant = PLANTS[name]
    return _moved(plant, seed, run, plant.drives, plant.truth)


@lru_cache(maxsize=8)
def _best_motion(name: str, number: int) -> Array:
    """Positions (N, n) of the motion with the smallest condition number, which begins and ends where it began."""
    plant = PLANTS[name]
    robot, base = plant.truth, plant.base
    limits = [robot.limits[c] for c in robot.coordinates]
    lower, upper = np.array([x.lower for x in limits]), np.array([x.upper for x in limits])
    velocity = np.array([x.velocity for x in limits])

    def motion(t: Array, seed: int) -> tuple[Array, Array, Array]:
        return random_fourier(lower, upper, velocity, _DURATION, t, seed, _HARMONICS)

    def condition(seed: int) -> float:
        w = base.regressor(*motion(np.arange(0.0, _DURATION, 0.1), seed)).reshape(-1, base.count)
        return float(np.linalg.cond(w / np.linalg.norm(w, axis=0)))

    best = min(range(_MOTIONS * number, _MOTIONS * (number + 1)), key=condition)
    return motion(np.arange(round(_DURATION * RATE)) / RATE, best)[0]


@cache
def _bodies(name: str) -> Robot:
    if name == "scara":
        return _scara()
    if name != "ur10":
        return load_robot(name)
    try:
        (path,) = (f for f in files("example-robot-data") or () if f.name == "ur10_robot.urdf")
    except (PackageNotFoundError, ValueError):
        raise DataError("this study needs the UR10 of example-robot-data: pip install 'dynid[dev]'") from None
    return load_robot(str(path.locate()))


def _scara() -> Robot:
    """Two links with vertical axes, a vertical quill and a wrist that turns it."""
    bodies = (
        (0.0, "revolute", 8.0, [0.2, 0.01, 0.02], [0.03, 0, 0, 0.12, 0, 0.14]),
        (0.4, "revolute", 5.0, [0.15, -0.01, 0.03], [0.015, 0, 0, 0.05, 0, 0.06]),
        (0.3, "prismatic", 1.5, [0.0, 0.005, -0.1], [0.01, 0, 0, 0.01, 0, 0.002]),
        (0.0, "revolute", 0.8, [0.02, 0.01, 0.03], [0.002, 0, 0, 0.0022, 0, 0.0015]),
    )
    rows = [
        {"a": a, "kind": kind, "inertia": {"mass": mass, "com": com, "tensor": tensor}}
        for a, kind, mass, com, tensor in bodies
    ]
    return Robot.from_dh(rows, "modified", name="scara")


PLANTS = {
    "box2": Plant(
        "box2",
        "Pinocchio",
        rotor_inertia=(0.2, 0.05),
        viscous=(1.0, 0.3),
        coulomb=(1.5, 0.5),
        effort=(150.0, 50.0),
        range=(1.5, 1.5),
        velocity=(4.0, 4.0),
    ),
    "scara": Plant(
        "scara",
        "MuJoCo",
        rotor_inertia=(0.5, 0.25, 4.0, 0.01),
        viscous=(6.0, 3.0, 40.0, 0.08),
        coulomb=(5.0, 3.0, 10.0, 0.2),
        effort=(120.0, 60.0, 150.0, 5.0),
        range=(2.0, 2.2, 0.15, 3.0),
        velocity=(4.0, 5.0, 0.8, 8.0),
    ),
    "ur10": Plant(
        "ur10",
        "Pinocchio",
        rotor_inertia=(1.1, 1.1, 0.5, 0.1, 0.1, 0.1),
        viscous=(12.0, 14.0, 9.0, 2.0, 1.8, 1.6),
        coulomb=(10.0, 12.0, 7.0, 2.0, 1.6, 1.4),
        effort=(330.0, 330.0, 150.0, 56.0, 56.0, 56.0),
        range=(2.5, 1.3, 1.8, 2.5, 2.5, 3.0),
        velocity=(2.1, 2.1, 3.1, 3.2, 3.2, 3.2),
        middle=(0.0, -1.2, 1.0, -1.0, 0.3, 0.0),
    ),
    "tx40": Plant(
        "tx40",
        "MuJoCo",
        rotor_inertia=(0.35, 0.4, 0.15, 0.08, 0.08, 0.03),
        viscous=(8.0, 6.0, 2.0, 1.1, 1.5, 0.7),
        coulomb=(6.5, 7.5, 3.0, 1.5, 1.6, 0.5),
        effort=(90.0, 90.0, 40.0, 20.0, 20.0, 10.0),
        range=(2.8, 1.9, 2.2, 3.0, 2.0, 3.0),
        velocity=(5.0, 5.0, 7.5, 8.6, 8.6, 11.0),
    ),
    "wam7": Plant(
        "wam7",
        "Pinocchio",
        rotor_inertia=(0.09, 0.1, 0.035, 0.03, 0.004, 0.004, 0.002),
        viscous=(1.6, 0.85, 0.4, 0.58, 0.03, 0.04, 0.03),
        coulomb=(1.8, 0.75, 0.7, 0.56, 0.06, 0.06, 0.03),
        effort=(80.0, 80.0, 40.0, 40.0, 10.0, 10.0, 5.0),
        range=(2.5, 1.8, 2.5, 2.0, 2.5, 1.5, 2.8),
        velocity=(3.0, 3.0, 4.0, 4.0, 6.0, 6.0, 8.0),
    ),
}
