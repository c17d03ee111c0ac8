"""Humanoids for the tests: thirty joints, limbs of random sizes, and motion with exact derivatives and contacts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

import dynid
from dynid import Recording, Robot, Run
from dynid.excitation.basis import random_fourier
from dynid.identification.loads import measured, wrench_at_base
from dynid.recording import WrenchSensor
from dynid.robot import Joint, Link
from dynid.robot.parts import Frame
from dynid.robot.spatial import placement
from dynid.signals.settings import Motion, Signals
from tests.support.random_robots import random_inertia

Array = NDArray[np.float64]

# Exact derivatives of periodic motion and nothing else.
EXACT = Signals(cutoff=None, derivative="fourier", trim=0.0, min_velocity=0.0, resample=None, decimate=())
_X, _Y, _Z = np.eye(3)


def humanoid(seed: int = 0, base: str = "floating", limbs: str = "LRHAB") -> Robot:
    """Pelvis with legs (6 joints each), trunk and head (4) and arms (7 each), or only the limbs named by letter."""
    rng = np.random.default_rng(seed)
    links = [Link("pelvis", 4 * random_inertia(rng))]
    joints: list[Joint] = []

    def chain(name: str, parent: int, start: Array, axes: list[Array], steps: dict[int, Array]) -> int:
        for k, axis in enumerate(axes):
            shift = start if k == 0 else steps.get(k, np.zeros(3))
            shift = shift * rng.uniform(0.8, 1.2)
            joints.append(Joint(f"{name}{k + 1}", "revolute", parent, placement(None, shift), axis))
            links.append(Link(f"{name}_link{k + 1}", random_inertia(rng)))
            parent = len(links) - 1
        return parent

    frames = []
    for side, y in (("L", 0.1), ("R", -0.1)):
        if side in limbs:
            foot = chain(
                f"leg{side}", 0, np.array([0, y, -0.05]), [_Z, _X, _Y, _Y, _Y, _X], {3: -0.4 * _Z, 4: -0.4 * _Z}
            )
            frames.append(Frame(f"foot{side}", foot, placement(Rotation.from_euler("z", y).as_matrix(), -0.08 * _Z)))
    trunk = chain("trunk", 0, 0.1 * _Z, [_Z, _Y], {1: 0.2 * _Z}) if "H" in limbs else 0
    if "H" in limbs:
        chain("head", trunk, 0.4 * _Z, [_Z, _Y], {})
    for side, name, y in (("A", "armL", 0.2), ("B", "armR", -0.2)):
        if side in limbs:
            hand = chain(
                name, trunk, np.array([0, y, 0.3]), [_Y, _X, _Z, _Y, _Z, _Y, _X], {3: -0.3 * _Z, 4: -0.25 * _Z}
            )
            frames.append(Frame(f"hand{name[-1]}", hand, placement(None, -0.1 * _Z)))
    return Robot(f"humanoid{seed}", tuple(links), tuple(joints), base=base, frames=tuple(frames))  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Dance:
    """A motion with its exact derivatives: t, q, v, a of base and joints."""

    t: Array
    q: Array
    v: Array
    a: Array


def dance(robot: Robot, seed: int = 0, samples: int = 600, period: float = 6.0, turns: int = 1) -> Dance:
    """Joints and a floating base in smooth periodic motion; the base turns round `turns` times a period."""
    t = np.arange(samples) * (period / samples)
    ones = np.ones(robot.n)
    q, v, a = random_fourier(-1.2 * ones, 1.2 * ones, 4.0 * ones, period, t, seed)
    if robot.base != "floating":
        return Dance(t, q, v, a)
    x, dx, ddx = random_fourier(-0.7 * np.ones(6), 0.7 * np.ones(6), 3.0 * np.ones(6), period, t, seed + 1000)
    yaw = 2 * np.pi * turns / period
    x[:, 3], dx[:, 3] = x[:, 3] + yaw * t, dx[:, 3] + yaw
    pose, twist, rate = from_euler(x, dx, ddx)
    return Dance(t, np.hstack([pose, q]), np.hstack([twist, v]), np.hstack([rate, a]))


def from_euler(x: Array, dx: Array, ddx: Array) -> tuple[Array, Array, Array]:
    """Pose, body twist and its rate from position and ZYX angles (N, 6) with their derivatives."""
    rotation = Rotation.from_euler("ZYX", x[:, 3:])
    _, p, r = x[:, 3:].T
    sp, cp, sr, cr = np.sin(p), np.cos(p), np.sin(r), np.cos(r)
    dy, dp, dr = dx[:, 3:].T
    ddy, ddp, ddr = ddx[:, 3:].T
    w = np.column_stack([dr - dy * sp, dp * cr + dy * sr * cp, -dp * sr + dy * cr * cp])
    dw = np.column_stack(
        [
            ddr - ddy * sp - dy * cp * dp,
            ddp * cr - dp * sr * dr + ddy * sr * cp + dy * (cr * dr * cp - sr * sp * dp),
            -ddp * sr - dp * cr * dr + ddy * cr * cp + dy * (-sr * dr * cp - cr * sp * dp),
        ]
    )
    linear = rotation.inv().apply(dx[:, :3])
    pushed = rotation.inv().apply(ddx[:, :3]) - np.cross(w, linear)
    return np.hstack([x[:, :3], rotation.as_quat()]), np.hstack([linear, w]), np.hstack([pushed, dw])


def standing(
    robot: Robot,
    motion: Dance,
    sensors: dict[str, WrenchSensor],
    noise: float = 0.0,
    torque_noise: float = 0.0,
    seed: int = 0,
) -> Recording:
    """A run whose named sensors share the wrench that the motion needs: all but the first push as they please."""
    rng = np.random.default_rng(seed)
    samples, first = len(motion.t), len(robot.channels) - robot.n
    load = dynid.inverse_dynamics(robot, motion.q, motion.v, motion.a)
    names = list(sensors)
    wrenches = {}
    left = load[:, :first].copy()
    for name in names[1:]:
        wave = np.sin(np.outer(2 * np.pi * motion.t / motion.t[-1], rng.integers(1, 4, 6)) + rng.uniform(0, 6, 6))
        wrenches[name] = wave * [30, 30, 100, 5, 5, 5]
        left -= wrench_at_base(robot, sensors[name], motion.q, wrenches[name])
    if names:
        basis = [wrench_at_base(robot, sensors[names[0]], motion.q, np.tile(unit, (samples, 1))) for unit in np.eye(6)]
        wrenches[names[0]] = np.linalg.solve(np.stack(basis, axis=2), left[..., None])[..., 0]
    joints = motion.q[:, robot.nq - robot.n :]
    pushed = Motion(
        t=motion.t,
        q=joints,
        v=joints,
        a=joints,
        torque=np.zeros_like(joints),
        rate=1.0,
        cutoff=None,
        decimate=(),
        name="",
        q_noise=np.zeros(joints.shape[1]),
        wrenches=wrenches,
        sensors=sensors,
    )
    torque = load[:, first:] - measured(robot, pushed, motion.q)[:, first:]
    run = Run(
        motion.t,
        joints,
        torque=torque + torque_noise * rng.normal(size=torque.shape),
        wrench=None if names or not first else load[:, :first] + noise * rng.normal(size=(samples, 6)),
        base=motion.q[:, :7] if robot.base == "floating" else None,
        wrenches={n: w + noise * rng.normal(size=w.shape) for n, w in wrenches.items()},
        sensors=sensors,
    )
    return Recording(robot.coordinates, (run,))
