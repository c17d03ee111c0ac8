"""Simulated arms whose motion is integrated with the forward dynamics of MuJoCo or Pinocchio, not with ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.excitation.fourier import random_fourier
from dynid.export.mjcf import write_mjcf
from dynid.export.urdf import write_urdf
from dynid.recording.recording import Recording, Run
from dynid.robot.inertia import inertia_from_pseudo, inertia_to_pseudo
from dynid.robot.load import load_robot
from dynid.robot.model import Robot
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.laws import LinearController, bandwidth_gains, pd
from dynid.simulation.reference import Reference, as_reference
from dynid.simulation.sensors import Sensors

__all__ = ["ARMS", "NOISES", "RATE", "Arm", "colored_noise"]

Array = NDArray[np.float64]
# Joint accelerations (n,) from positions, velocities and the torques of drives and friction.
ForwardDynamics = Callable[[Array, Array, Array], Array]

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

    @cached_property
    def truth(self) -> Robot:
        """The robot of the plant."""
        joints = range(len(self.viscous))
        bodies = load_robot(self.name)
        bodies = replace(bodies, drives=(), transmission=None)
        robot = bodies.with_drives("viscous+coulomb", rotor_inertia=True).with_smooth_coulomb(_SLOPE)
        values = {"Ia": self.rotor_inertia, "fv": self.viscous, "fc": self.coulomb}
        drives = {f"{s}_{robot.coordinates[j]}": values[s][j] for s in values for j in joints}
        return replace(robot, drives=tuple(replace(t, value=drives[t.name]) for t in robot.drives))

    @cached_property
    def prior(self) -> Robot:
        """What is known before: bodies with errors of about 20 %, physically consistent, and drives of zero."""
        rng = np.random.default_rng(self.seed)

        def other(inertia: Array) -> Array:
            root = np.linalg.cholesky(inertia_to_pseudo(inertia))
            root = root @ (np.eye(4) + _PRIOR_ERROR * rng.standard_normal((4, 4)))
            return inertia_from_pseudo(root @ root.T)

        base, *moving = self.truth.links
        links = (base, *(replace(link, inertia=other(link.inertia)) for link in moving))
        return replace(self.truth, links=links, drives=tuple(replace(t, value=0.0) for t in self.truth.drives))

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
        forward = _ENGINES[self.engine](self.truth)
        viscous, coulomb = np.array(self.viscous), np.array(self.coulomb)
        path, gains = self.reference, self.law.D
        ahead = self.law.torques_ahead(path.q, path.v, path.a)
        step = 1.0 / (RATE * _SUBSTEPS)
        q, v = path.q[0].copy(), path.v[0].copy()
        out = np.empty((3, *path.q.shape))

        def rate(q: Array, v: Array, torque: Array) -> Array:
            return forward(q, v, torque - viscous * v - coulomb * np.tanh(_SLOPE * v))

        for k in range(len(path)):
            torque = gains[:, 0] * path.q[k] + gains[:, 1] * path.v[k] + gains[:, 2] * q + gains[:, 3] * v + ahead[k]
            out[:, k] = q, v, torque
            for _ in range(_SUBSTEPS):
                a1 = rate(q, v, torque)
                v2 = v + 0.5 * step * a1
                a2 = rate(q + 0.5 * step * v, v2, torque)
                v3 = v + 0.5 * step * a2
                a3 = rate(q + 0.5 * step * v2, v3, torque)
                v4 = v + step * a3
                a4 = rate(q + step * v3, v4, torque)
                q = q + step / 6 * (v + 2 * v2 + 2 * v3 + v4)
                v = v + step / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        return out[0], out[1], out[2]

    def recording(self, corner: float | None, seed: int, share: float = _NOISE) -> Recording:
        """What is recorded: counted positions, and torques with noise of this corner frequency.

        The encoders are mounted anew in every run, so that the rounding errors of the runs differ.
        """
        q, _, torque = self.motion
        rng = np.random.default_rng([seed, 0 if corner is None else int(1000 * corner)])
        count, shift = 2 * np.pi / _COUNTS, rng.uniform(-0.5, 0.5, self.truth.n)
        level = share * np.sqrt(np.mean(torque**2, axis=0))
        noise = level * colored_noise(torque.shape, corner, rng)
        run = Run(
            np.arange(len(q)) / RATE,
            count * (np.round(q / count + shift) - shift),
            torque=torque + noise,
            reference=self.reference.q,
        )
        return Recording(self.truth.coordinates, (run,))


def colored_noise(shape: tuple[int, ...], corner: float | None, rng: np.random.Generator) -> Array:
    """Noise of unit variance per column, white or behind a first-order low-pass, stationary from the first sample."""
    noise = rng.standard_normal(shape)
    if corner is None:
        return noise
    kept = np.exp(-2 * np.pi * corner / RATE)
    noise[1:] *= np.sqrt(1 - kept**2)
    return np.asarray(scipy.signal.lfilter([1.0], [1.0, -kept], noise, axis=0))


def _rotor_inertia(robot: Robot) -> Array:
    return np.array([t.value for t in robot.drives if t.symbol == "Ia"])


def _mujoco(robot: Robot) -> ForwardDynamics:
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
    model.dof_armature[:] = _rotor_inertia(robot)
    assert tuple(model.joint(i).name for i in range(model.njnt)) == robot.coordinates
    data = mujoco.MjData(model)

    def forward(q: Array, v: Array, torque: Array) -> Array:
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, v, torque
        mujoco.mj_forward(model, data)
        return np.array(data.qacc)

    return forward


def _pinocchio(robot: Robot) -> ForwardDynamics:
    """Forward dynamics of Pinocchio, from a URDF file of the bodies."""
    import pinocchio as pin

    limits = {name: {"position": (-10.0, 10.0), "velocity": 100.0, "effort": 1000.0} for name in robot.coordinates}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "arm.urdf"
        # A joint without limits would be stored as cosine and sine.
        write_urdf(replace(robot, drives=()).with_limits(limits), path)
        model = pin.buildModelFromUrdf(str(path))
    model.gravity.linear = robot.gravity
    model.armature = _rotor_inertia(robot)
    assert tuple(model.names)[1:] == robot.coordinates
    data = model.createData()

    def forward(q: Array, v: Array, torque: Array) -> Array:
        return np.array(pin.aba(model, data, q, v, torque))

    return forward


_ENGINES: dict[str, Callable[[Robot], ForwardDynamics]] = {"MuJoCo": _mujoco, "Pinocchio": _pinocchio}

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
