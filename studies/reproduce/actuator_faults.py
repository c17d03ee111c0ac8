"""Actuators with a fault that nobody told the identification of, integrated by MuJoCo, and good ones."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

import dynid
from dynid.actuators.unknowns import DEFAULT_UNKNOWN
from dynid.recording.recording import Recording
from dynid.robot import ActuatorLaw
from studies.reproduce.actuator_plants import CONTROL, RATE, STIFF, driven, legs

__all__ = ["ActuatorFault", "FaultyActuators", "faulty_actuators"]

Array = NDArray[np.float64]


class ActuatorFault(StrEnum):
    """What the law does not have."""

    NONE = "none"
    BACKLASH = "backlash"
    LOAD_FRICTION = "load friction"
    SATURATION = "saturation"
    MOTOR_LINE = "motor line"
    STRIBECK = "Stribeck friction"
    DELAY = "delay"
    FEEDBACK_DELAY = "delay of the torque"
    VELOCITY_TARGET = "velocity target"
    ENCODER_OFFSET = "encoder offset"
    GAIN = "gain"
    RIPPLE = "ripple"
    SPRING = "spring"


@dataclass(frozen=True, eq=False)
class FaultyActuators:
    """What a user has: a model, a law, a log to fit and one of other motion; and what is true.

    `size` says how large the fault is, `true` holds armature, damping and friction (n, 3) of the joints.
    """

    robot: dynid.Robot
    law: ActuatorLaw
    unknown: tuple[str, ...]
    fitted: Recording
    unseen: Recording
    size: str
    true: Array


def faulty_actuators(fault: ActuatorFault, seed: int, seconds: float = 6.0) -> FaultyActuators:
    """Actuators whose values, gains, motion, encoders and size of the fault follow from the seed.

    Chains of one to three joints; every fourth seed has two legs with six joints.
    """
    rng = np.random.default_rng([list(ActuatorFault).index(fault), seed])
    n = 6 if seed % 4 == 3 else 1 + seed % 4
    low, high = np.array([0.008, 0.05, 0.05]), np.array([0.04, 0.5, 0.5])
    true = rng.uniform(low, high, (n, 3))
    text = legs if n == 6 else _chain
    model = mujoco.MjModel.from_xml_string(text(true))
    guess = np.tile([0.015, 0.3, 0.2], (n, 1))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "given.xml"
        path.write_text(text(guess), encoding="utf-8")
        robot = dynid.load_robot(path, friction="viscous+coulomb", rotor_inertia=True)
    kp = float(rng.choice([20.0, 40.0, 80.0]))
    kd = np.round(rng.uniform(0.25, 0.7) * np.sqrt(kp / model.dof_invweight0), 3)
    law = ActuatorLaw(robot.coordinates, kp=kp, kd=kd, rate=CONTROL)
    counts, delay = int(rng.choice([2048, 4096, 16384])), int(rng.integers(1, 9)) / CONTROL
    commands = [_command(rng, n, seconds, kind) for kind in (seed % 2, 1 - seed % 2)]
    plant = _Plant(law.changed(delay=delay), model, robot, counts)
    _SPOIL[fault](plant, rng, commands[0])
    logs = [plant.log(x) for x in commands]
    unknown = tuple(x for x in DEFAULT_UNKNOWN if x != "delay" or fault is not ActuatorFault.DELAY)
    return FaultyActuators(plant.robot, law, unknown, logs[0], logs[1], plant.words, true)


@dataclass(eq=False)
class _Plant:
    """What is simulated, and the model that the user has."""

    law: ActuatorLaw
    model: mujoco.MjModel
    robot: dynid.Robot
    counts: int
    words: str = ""
    more: Callable[[Array], Array] | None = None
    dry: Callable[[Array], Array] | None = None

    @property
    def n(self) -> int:
        """Number of joints."""
        return self.law.n

    def log(self, command: Array) -> Recording:
        """Positions under a command."""
        return self._driven(command)[0]

    def torques(self, command: Array) -> Array:
        """Torques (K, n) of the motors under a command."""
        return self._driven(command)[1]

    def _driven(self, command: Array) -> tuple[Recording, Array]:
        return driven(self.model, self.law, command, counts=self.counts, ratio=10, more=self.more, dry=self.dry)


def _nothing(plant: _Plant, rng: np.random.Generator, command: Array) -> None:
    plant.words = "-"


def _backlash(plant: _Plant, rng: np.random.Generator, command: Array) -> None:
    width = float(rng.choice([0.005, 0.01, 0.02, 0.04]))
    plant.law, plant.words = plant.law.changed(backlash=width), f"{1e3 * width:g} mrad"


def _load_friction(plant: _Plant, rng: np.random.Generator, command: Array) -> None:
    size = float(rng.choice([0.05, 0.1, 0.2, 0.3]))
    plant.law, plant.words = plant.law.changed(load_friction=size), f"{100 * size:g} % of the torque"


def _saturation(plant: _Plant, rng: np.random.Generator, command: Array) -> None:
    share = float(rng.choice([0.35, 0.5, 0.65, 0.8]))
    limit = share * np.abs(plant.torques(command)).max(axis=0)
    plant.law, plant.words = plant.law.changed(torque_limit=limit), f"{100 * share:g} % of the largest torque"


def _motor_line(plant: _Plant, rng: np.random.Generator, command: Array) -> None:
    share = float(rng.choice([0.5, 0.7, 0.9]))
    log, torque = plant._driven(command)
    fast = np.abs(np.gradient(log.runs[0].q, axis=0) * RATE).max(axis=0)
    plant.law = plant.law.changed(stall_torque=share * np.abs(torque).max(axis=0), no_load_velocity=1.5 * fast)
    plant.words = f"stall torque {100 * share:g} % of the largest torque"


def _stribeck(plant: _Plant, rng: np.random.Generator, command: Array) -> None:
    share = float(rng.choice([0.5, 1.0, 2.0]))
    size = share * plant.model.dof_frictionloss.copy()
    plant.dry, plant.words = (lambda v: size * np.exp(-((v / 0.3) ** 2))), f"{100 * share:g} % more at rest"


def _delay(plant: _Plant, rng: np.random.Generator, command: Array) -> None:
    late = int(rng.integers(4, 13)) / CONTROL
    plant.law, plant.words = plant.law.changed(delay=late), f"{1e3 * late:g} ms"


def _feedback_delay(plant: _Plant, rng: np.random.Generator, command: Array) -> None:
    # Old measurements make a loop unstable after about a time of inertia over damping, or of kd over kp.
    law = plant.law
    longest = 0.5 * min(1.0 / np.max(law.kd * plant.model.dof_invweight0), np.min(law.kd / law.kp))
    late = max(min(int(rng.integers(4, 10)), int(longest * CONTROL)), 2) / CONTROL
    plant.law, plant.words = plant.law.changed(delay=late, delayed="torque"), f"{1e3 * late:g} ms"


def _velocity_target(plant: _Plant, rng: np.random.Generator, command: Array) -> None:
    plant.law, plant.words = plant.law.changed(velocity_target="command"), "kd on the commanded velocity"


def _encoder_offset(plant: _Plant, rng: np.random.Generator, command: Array) -> None:
    size = float(rng.choice([0.02, 0.04, 0.08]))
    plant.law = plant.law.changed(bias=size * rng.choice([-1.0, 1.0], plant.n))
    plant.words = f"{1e3 * size:g} mrad"


def _gain(plant: _Plant, rng: np.random.Generator, command: Array) -> None:
    factor = float(rng.choice([0.8, 0.9, 1.1, 1.2]))
    plant.law, plant.words = plant.law.changed(kp=factor * plant.law.kp), f"kp times {factor:g}"


def _ripple(plant: _Plant, rng: np.random.Generator, command: Array) -> None:
    share = float(rng.choice([0.1, 0.2]))
    size = share * np.abs(plant.torques(command)).max(axis=0)
    plant.more, plant.words = (lambda q: size * np.sin(24.0 * q)), f"{100 * share:g} % of the torque, 24 per turn"


def _spring(plant: _Plant, rng: np.random.Generator, command: Array) -> None:
    stiffness = float(rng.choice([0.1, 0.3])) * plant.law.kp
    plant.more, plant.words = (lambda q: -stiffness * (q - 0.3)), f"{stiffness[0]:g} N m/rad"


_SPOIL = {
    ActuatorFault.NONE: _nothing,
    ActuatorFault.BACKLASH: _backlash,
    ActuatorFault.LOAD_FRICTION: _load_friction,
    ActuatorFault.SATURATION: _saturation,
    ActuatorFault.MOTOR_LINE: _motor_line,
    ActuatorFault.STRIBECK: _stribeck,
    ActuatorFault.DELAY: _delay,
    ActuatorFault.FEEDBACK_DELAY: _feedback_delay,
    ActuatorFault.VELOCITY_TARGET: _velocity_target,
    ActuatorFault.ENCODER_OFFSET: _encoder_offset,
    ActuatorFault.GAIN: _gain,
    ActuatorFault.RIPPLE: _ripple,
    ActuatorFault.SPRING: _spring,
}


def _command(rng: np.random.Generator, n: int, seconds: float, kind: int) -> Array:
    """Commanded positions (K, n): chirps to 4 Hz with a slow sway, or sums of six sines."""
    t = np.arange(int(seconds * RATE)) / RATE
    phase, columns = 2 * np.pi * (0.1 * t + 3.9 * t**2 / (2 * seconds)), []
    for _ in range(n):
        if kind == 0:
            y = 0.4 * rng.uniform(0.7, 1.1) * np.sin(phase * rng.uniform(0.9, 1.1))
            y += 0.2 * np.sin(2 * np.pi * rng.uniform(0.2, 0.5) * t)
        else:
            waves = rng.uniform([0.2, 0.09, 0.0], [4.0, 0.2, 2 * np.pi], (6, 3))
            y = sum(size * np.sin(2 * np.pi * f * t + start) for f, size, start in waves)
        columns.append(y * np.minimum(1.0, t / 0.5))
    return np.column_stack(columns)


def _chain(values: Array) -> str:
    """MJCF of a chain with friction that is close to an ideal one; values (n, 3) as of `legs`."""
    text, end = "", ""
    for k, (armature, damping, friction) in enumerate(values):
        text += (
            f'<body name="b{k}" pos="0 0 {-0.2 if k else 0}"><joint name="j{k}" axis="{("0 1 0", "1 0 0")[k % 2]}" '
            f'armature="{armature}" damping="{damping}" frictionloss="{friction}" {STIFF}/>'
            f'<inertial pos="0.003 0.002 -0.1" mass="{(1.0, 0.6, 0.3)[k]}" diaginertia="0.004 0.004 0.0008"/>'
        )
        end += "</body>"
    return f"<mujoco><worldbody>{text}{end}</worldbody></mujoco>"
