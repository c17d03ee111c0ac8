"""Plants without our simulator: forward dynamics of MuJoCo or Pinocchio, and drives that are written here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.dynamics.functions import inverse_dynamics
from dynid.errors import DataError
from dynid.export.mjcf import write_mjcf
from dynid.export.urdf import write_urdf
from dynid.robot.inertia import inertia_from_pseudo, inertia_to_pseudo
from dynid.robot.model import Robot

__all__ = [
    "ENGINES",
    "Drives",
    "Elastic",
    "Stand",
    "Traces",
    "colored_noise",
    "integrate",
    "other_bodies",
    "with_drive_values",
]

Array = NDArray[np.float64]
# Joint accelerations (n,) from positions, velocities and the torques of drives and friction.
ForwardDynamics = Callable[[Array, Array, Array], Array]
# Joint torques (n,) of a control period, from its number, positions and velocities.
ControlLaw = Callable[[int, Array, Array], Array]


@dataclass(frozen=True)
class Elastic:
    """A spring between the rotor and the link of one joint; `gap` is the whole backlash, rad.

    The encoder is on the rotor, and so is the friction.
    """

    joint: int
    stiffness: float
    damping: float
    gap: float = 0.0


@dataclass(frozen=True, eq=False)
class Stand:
    """What the base stands on: two passive joints under it, with springs (N m/rad) and dampers (N m s/rad).

    `robot` is the robot on these joints, which are its first two.
    """

    robot: Robot
    stiffness: Array
    damping: Array

    def still(self, q: Array) -> Array:
        """Deflection (2,) under the weight in a posture."""
        posture = np.append(np.zeros(2), q)[None]
        return np.asarray(-inverse_dynamics(self.robot, posture, 0 * posture, 0 * posture)[0, :2] / self.stiffness)

    def forward(self, engine: str, armature: Array) -> ForwardDynamics:
        """Forward dynamics with the coordinates of the stand after those of the robot."""
        whole, n = ENGINES[engine](self.robot, np.append(np.zeros(2), armature)), len(armature)

        def rate(q: Array, v: Array, torque: Array) -> Array:
            bent = -self.stiffness * q[n:] - self.damping * v[n:]
            return np.roll(whole(np.roll(q, 2), np.roll(v, 2), np.append(bent, torque)), -2)

        return rate


@dataclass(frozen=True, eq=False, kw_only=True)
class Drives:
    """Rotor inertia, friction and further effects per joint (n,), in SI units.

    `slope` is that of the smooth Coulomb friction tanh(slope v). Stribeck friction adds `stribeck` to the Coulomb
    friction at low velocity, `load` a share of the magnitude of the drive torque. While the drives warm up, the viscous
    friction loses the share `warming` with the time constant `warming_time`; they run since `warm_since` before the
    start, in s. `ripple` is the amplitude of a torque with `ripple_order` periods per revolution. Drives deliver no
    more than `limit`.
    """

    rotor_inertia: Array
    viscous: Array
    coulomb: Array
    slope: Array | float
    stribeck: Array | float = 0.0
    stribeck_velocity: Array | float = 0.1
    load: float = 0.0
    warming: float = 0.0
    warming_time: float = 10.0
    warm_since: float = 0.0
    ripple: Array | float = 0.0
    ripple_order: float = 24.0
    limit: Array | float = np.inf
    elastic: Elastic | None = None
    stand: Stand | None = None

    @cached_property
    def _plain(self) -> bool:
        """Whether there is only viscous and Coulomb friction."""
        return not (np.any(self.stribeck) or self.load or self.warming or np.any(self.ripple))

    def resistance(self, t: float, q: Array, v: Array, torque: Array) -> Array:
        """Torques of friction and ripple (n,) at the rotors."""
        direction = np.tanh(self.slope * v)
        if self._plain:
            return self.viscous * v + self.coulomb * direction
        fallen = 1.0 - self.warming * (1.0 - np.exp(-(t + self.warm_since) / self.warming_time))
        coulomb = (
            self.coulomb + self.stribeck * np.exp(-((v / self.stribeck_velocity) ** 2)) + self.load * np.abs(torque)
        )
        ripple = self.ripple * np.sin(self.ripple_order * q)
        return np.asarray(fallen * self.viscous * v + coulomb * direction + ripple)


@dataclass(frozen=True, eq=False)
class Traces:
    """Positions, velocities and accelerations of the rotors at the start of every control period, and its torques.

    `wanted` are the torques of the controller, `torque` those that the drives deliver.
    """

    q: Array
    v: Array
    a: Array
    torque: Array
    wanted: Array


def integrate(
    robot: Robot, engine: str, drives: Drives, control: ControlLaw, start: tuple[Array, Array], periods: int,
    period: float, substeps: int = 1,
) -> Traces:  # fmt: skip
    """Integrate a robot under a sampled controller by Runge-Kutta steps of fourth order."""
    j = None if drives.elastic is None else drives.elastic.joint
    armature = drives.rotor_inertia.copy()
    if j is not None:
        armature[j] = 0.0
    stand = drives.stand
    forward = ENGINES[engine](robot, armature) if stand is None else stand.forward(engine, armature)
    n, step, limit = robot.n, period / substeps, drives.limit
    q, v = (x.copy() for x in start)
    if stand is not None:
        q, v = np.append(q, stand.still(q)), np.append(v, np.zeros(2))
    if drives.elastic is not None:
        # The rotor of an elastic joint is one more coordinate. Its shaft carries the weight from the start.
        q, v = np.append(q, q[j]), np.append(v, v[j])
        q[j] -= _twist(
            drives.elastic, float(inverse_dynamics(replace(robot, drives=()), q[:n], 0 * v[:n], 0 * v[:n])[j])
        )

    def rate(t: float, q: Array, v: Array, torque: Array) -> Array:
        if drives.elastic is None or j is None:
            return forward(q, v, torque - drives.resistance(t, q[:n], v[:n], torque))
        rotor_q, rotor_v = _rotors(q, j), _rotors(v, j)
        net = torque - drives.resistance(t, rotor_q, rotor_v, torque)
        shaft = _shaft(drives.elastic, q[n] - q[j], v[n] - v[j])
        rotor = (net[j] - shaft) / drives.rotor_inertia[j]
        net[j] = shaft
        return np.append(forward(q[:n], v[:n], net), rotor)

    out = np.empty((5, periods, n))
    for k in range(periods):
        t = k * period
        measured_q, measured_v = (q[:n], v[:n]) if j is None else (_rotors(q, j), _rotors(v, j))
        wanted = control(k, measured_q, measured_v)
        torque = np.minimum(np.maximum(wanted, -limit), limit)
        for i in range(substeps):
            a1 = rate(t, q, v, torque)
            if i == 0:
                out[:, k] = measured_q, measured_v, a1[:n] if j is None else _rotors(a1, j), torque, wanted
            v2 = v + 0.5 * step * a1
            a2 = rate(t, q + 0.5 * step * v, v2, torque)
            v3 = v + 0.5 * step * a2
            a3 = rate(t, q + 0.5 * step * v2, v3, torque)
            v4 = v + step * a3
            a4 = rate(t, q + step * v3, v4, torque)
            q = q + step / 6 * (v + 2 * v2 + 2 * v3 + v4)
            v = v + step / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
    return Traces(*out)


def _rotors(x: Array, j: int) -> Array:
    """The coordinates of the rotors: those of the links, except for the elastic joint."""
    out = x[:-1].copy()
    out[j] = x[-1]
    return out


def _shaft(elastic: Elastic, twist: float, twist_rate: float) -> float:
    """Torque of the shaft of an elastic joint; none within the gap."""
    bent = twist - np.clip(twist, -0.5 * elastic.gap, 0.5 * elastic.gap)
    return elastic.stiffness * bent + (elastic.damping * twist_rate if bent or not elastic.gap else 0.0)


def _twist(elastic: Elastic, torque: float) -> float:
    """Twist of the shaft of an elastic joint under a torque."""
    return torque / elastic.stiffness + 0.5 * elastic.gap * float(np.sign(torque))


def colored_noise(shape: tuple[int, ...], corner: float | None, rate: float, rng: np.random.Generator) -> Array:
    """Noise of unit variance per column, white or behind a first-order low-pass, stationary from the first sample."""
    noise = rng.standard_normal(shape)
    if corner is None:
        return noise
    kept = np.exp(-2 * np.pi * corner / rate)
    noise[1:] *= np.sqrt(1 - kept**2)
    return np.asarray(scipy.signal.lfilter([1.0], [1.0, -kept], noise, axis=0))


def with_drive_values(robot: Robot, drives: Drives) -> Robot:
    """The robot with the rotor inertia, viscous and Coulomb friction of its drives."""
    values = {"Ia": drives.rotor_inertia, "fv": drives.viscous, "fc": drives.coulomb}
    named = {f"{s}_{c}": float(x[j]) for s, x in values.items() for j, c in enumerate(robot.coordinates)}
    return replace(robot, drives=tuple(replace(t, value=named[t.name]) for t in robot.drives))


def other_bodies(robot: Robot, error: float, rng: np.random.Generator) -> Robot:
    """Physically consistent bodies with a relative error of the square root of every pseudo-inertia."""

    def other(inertia: Array) -> Array:
        root = np.linalg.cholesky(inertia_to_pseudo(inertia))
        root = root @ (np.eye(4) + error * rng.standard_normal((4, 4)))
        return inertia_from_pseudo(root @ root.T)

    base, *moving = robot.links
    return replace(robot, links=(base, *(replace(link, inertia=other(link.inertia)) for link in moving)))


def _mujoco(robot: Robot, armature: Array) -> ForwardDynamics:
    """Forward dynamics of MuJoCo, from an MJCF file of the bodies."""
    try:
        import mujoco
    except ImportError:
        raise DataError("this study needs MuJoCo: pip install 'dynid[mujoco]'") from None
    with TemporaryDirectory() as folder:
        path = Path(folder) / "arm.xml"
        write_mjcf(replace(robot, drives=()), path)
        model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    model.dof_armature[:] = armature
    assert tuple(model.joint(i).name for i in range(model.njnt)) == robot.coordinates
    data = mujoco.MjData(model)

    def forward(q: Array, v: Array, torque: Array) -> Array:
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, v, torque
        mujoco.mj_forward(model, data)
        return np.array(data.qacc)

    return forward


def _pinocchio(robot: Robot, armature: Array) -> ForwardDynamics:
    """Forward dynamics of Pinocchio, from a URDF file of the bodies."""
    import pinocchio as pin

    limits = {name: {"position": (-10.0, 10.0), "velocity": 100.0, "effort": 1000.0} for name in robot.coordinates}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "arm.urdf"
        # A joint without limits would be stored as cosine and sine.
        write_urdf(replace(robot, drives=()).with_limits(limits), path)
        model = pin.buildModelFromUrdf(str(path))
    model.gravity.linear = robot.gravity
    model.armature = armature
    assert tuple(model.names)[1:] == robot.coordinates
    data = model.createData()

    def forward(q: Array, v: Array, torque: Array) -> Array:
        return np.array(pin.aba(model, data, q, v, torque))

    return forward


ENGINES: dict[str, Callable[[Robot, Array], ForwardDynamics]] = {"MuJoCo": _mujoco, "Pinocchio": _pinocchio}
