"""References of a standing robot: sways, lifts and a trot in place, by inverse kinematics of its legs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

import dynid
from dynid.dynamics import frame_jacobian, frame_placement
from dynid.robot.model import Robot

__all__ = ["Gait", "biped_gait", "quadruped_gait"]

Array = NDArray[np.float64]

_REFERENCE_RATE = 200.0


@dataclass(frozen=True, eq=False)
class Gait:
    """What a controller follows: joints q, v (N, n), feed-forward torque (N, n) and the load of each foot (N, foot)."""

    t: Array
    q: Array
    v: Array
    torque: Array
    load: Array
    base: Array

    def at(self, rate: float) -> Gait:
        """The same motion at another rate in Hz."""
        t = np.arange(self.t[0], self.t[-1], 1.0 / rate)
        signals = (self.q, self.v, self.torque, self.load, self.base)
        return Gait(
            t, *(scipy.interpolate.make_interp_spline(self.t, x, k=3 if x is self.q else 1)(t) for x in signals)
        )


def quadruped_gait(robot: Robot, feet: Sequence[str], rate: float, seed: int, trot: float = 10.0) -> Gait:
    """Sway on four feet, a lift and wave of each leg, and a trot in place for `trot` seconds; about 30 s before it."""
    rng = np.random.default_rng(seed)
    stand = np.tile([0.0, 0.75, -1.5], 4)
    # Foot positions in the stance, around a trunk at a height that the legs give.
    q0 = np.concatenate([np.zeros(6), [1.0], stand])
    rest = np.array([frame_placement(robot, q0, f)[:3, 3] for f in feet])
    side = np.sign(rest[:, :2])
    sway, lift = 10.0, 4.0
    total = 1.0 + sway + 4 * lift + trot + 1.0
    t = np.arange(0.0, total, 1.0 / _REFERENCE_RATE)
    body = (
        _sway(t, rng, (0.025, 0.02, 0.025, 0.1, 0.08, 0.12), (0.25, 1.2))
        * (_window(t, 1.0, 1.0 + sway) + 0.3 * _window(t, 1.0 + sway, total - 1.0))[:, None]
    )
    load = np.ones((len(t), 4))
    swing = np.zeros((len(t), 4, 3))
    for k in range(4):
        start = 1.0 + sway + k * lift
        body[:, :2] -= np.array([0.045, 0.045]) * side[k] * _window(t, start, start + lift, 0.8)[:, None]
        up = _window(t, start + 0.8, start + lift - 0.8, 0.3)
        load[:, k] *= 1.0 - _window(t, start + 0.7, start + lift - 0.7, 0.1)
        wave = _sway(t, rng, (0.06, 0.05, 0.025), (0.8, 3.0))
        swing[:, k] = up[:, None] * (wave + np.array([0.0, 0.0, 0.08]))
    start = 1.0 + sway + 4 * lift
    phase = (t - start - 0.5) / 0.5
    for k in range(4):
        mine = np.mod(phase + (0.5 if k in (1, 2) else 0.0), 1.0)
        on = (phase >= 0.5) & (t < start + trot - 0.5)
        up = np.where(on & (mine < 0.4), np.sin(np.pi * mine / 0.4) ** 2, 0.0)
        swing[:, k, 2] += 0.06 * up
        swing[:, k, 0] += 0.03 * up * np.sin(2 * np.pi * 0.37 * t)
        load[:, k] *= np.where(on & (mine < 0.4), 0.0, 1.0)
    return _gait(robot, feet, t, body, rest + swing, load, stand, surface=False).at(rate)


def biped_gait(robot: Robot, feet: Sequence[str], rate: float, seed: int, steps: int = 4) -> Gait:
    """Sway on both feet, then steps in place: the weight moves over one foot, and the other leg is lifted and waved."""
    rng = np.random.default_rng(seed)
    stand = np.tile([0.0, 0.0, -0.45, 0.9, -0.45, 0.0], 2)
    q0 = np.concatenate([np.zeros(6), [1.0], stand])
    rest = np.array([frame_placement(robot, q0, f)[:3, 3] for f in feet])
    sway, step = 20.0, 7.0
    total = 1.0 + sway + steps * step + 1.0
    t = np.arange(0.0, total, 1.0 / _REFERENCE_RATE)
    slow = _sway(t, rng, (0.015, 0.02, 0.03), (0.2, 0.8))
    fast = _sway(t, rng, (0.09, 0.11, 0.15), (0.3, 1.5))
    body = np.hstack([slow, fast])
    body *= (_window(t, 1.0, 1.0 + sway) + 0.12 * _window(t, 1.0 + sway, total - 1.0))[:, None]
    body[:, 0] += 0.02 * _window(t, 0.0, total + 1.0, 0.8)
    load = np.ones((len(t), 2))
    swing = np.zeros((len(t), 2, 3))
    for k in range(steps):
        leg = k % 2
        start = 1.0 + sway + k * step
        over = _window(t, start, start + step, 1.8)
        body[:, 1] -= 0.09 * np.sign(rest[leg, 1]) * over
        up = _window(t, start + 2.0, start + step - 2.0, 0.5)
        load[:, leg] *= 1.0 - _window(t, start + 1.4, start + step - 1.4, 0.6)
        wave = _sway(t, rng, (0.05, 0.025, 0.02), (0.5, 1.6))
        swing[:, leg] = up[:, None] * (wave + np.array([0.0, 0.0, 0.06]))
    return _gait(robot, feet, t, body, rest + swing, load, stand, surface=True).at(rate)


def _sway(t: Array, rng: np.random.Generator, size: Sequence[float], band: tuple[float, float] = (0.3, 1.8)) -> Array:
    """Sums (N, axis) of four sines per axis, of this largest size."""
    out = np.zeros((len(t), len(size)))
    for i, amplitude in enumerate(size):
        for f in rng.uniform(*band, 4):
            out[:, i] += amplitude / 2.5 * np.sin(2 * np.pi * (f * t + rng.uniform()))
    return out


def _window(t: Array, start: float, stop: float, ramp: float = 1.0) -> Array:
    """One between two times, zero outside, with smooth ramps inside."""
    x = np.clip(np.minimum(t - start, stop - t) / ramp, 0.0, 1.0)
    return np.asarray(x**3 * (10.0 - 15.0 * x + 6.0 * x**2))


def _gait(
    robot: Robot, feet: Sequence[str], t: Array, body: Array, targets: Array, load: Array, stand: Array, surface: bool
) -> Gait:
    """Joint references and feed-forward torques of a motion of the trunk (N, 6) and the feet (N, foot, 3)."""
    turn = scipy.spatial.transform.Rotation.from_euler("xyz", body[:, 3:])
    base = np.hstack([body[:, :3], turn.as_quat()])
    q = np.hstack([base, np.tile(stand, (len(t), 1))])
    for _ in range(30):
        worst = 0.0
        for k, foot in enumerate(feet):
            place = frame_placement(robot, q, foot)
            error = targets[:, k] - place[:, :3, 3]
            jacobian = frame_jacobian(robot, q, foot)
            if surface:  # the soles stay level
                tilt = -scipy.spatial.transform.Rotation.from_matrix(place[:, :3, :3]).as_rotvec()
                error = np.hstack([error, tilt])
            jacobian = jacobian[:, : error.shape[1], 6:]
            mine = np.flatnonzero(np.abs(jacobian).max(axis=(0, 1)) > 1e-9)
            q[:, 7 + mine] += np.linalg.solve(jacobian[:, :, mine], error[..., None])[..., 0].clip(-0.3, 0.3)
            worst = max(worst, float(np.abs(error).max()))
        if worst < 1e-9:
            break
    assert worst < 1e-6, f"the legs do not reach the reference: {worst:.2g} m"
    rate = 1.0 / (t[1] - t[0])
    v = np.gradient(q[:, 7:], 1.0 / rate, axis=0)
    torque = _feed_forward(robot, feet, q, load, surface)
    return Gait(t, q[:, 7:], v, torque, load, base)


def _feed_forward(robot: Robot, feet: Sequence[str], q: Array, load: Array, surface: bool) -> Array:
    """Torques that hold the robot at rest with its weight on the loaded feet, vertical forces only."""
    nothing = np.zeros((len(q), robot.nv))
    weight = dynid.inverse_dynamics(robot, q, nothing, nothing)
    rows = [2, 3, 4] if surface else [2]
    columns = np.concatenate([frame_jacobian(robot, q, f)[:, rows] for f in feet], axis=1)
    size = np.repeat(np.maximum(load, 1e-4), len(rows), axis=1)
    if surface:
        size[:, [1, 2, 4, 5]] *= 0.02
    up = frame_jacobian(robot, q, robot.links[0].name)[:, 2:5, :6]  # force and moments on the trunk, world axes
    held = np.einsum("nij,nkj->nik", up, columns[:, :, :6])
    wanted = np.einsum("nij,nj->ni", up, weight[:, :6])
    weighted = held * size[:, None]
    inner = np.linalg.solve(np.einsum("nij,nkj->nik", weighted, held), wanted[..., None])
    force = np.einsum("nji,nj->ni", weighted, inner[..., 0])
    return np.asarray(weight[:, 6:] - np.einsum("nij,ni->nj", columns[:, :, 6:], force))
