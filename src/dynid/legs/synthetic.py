"""A recording of a robot that sways on its feet and lifts them one by one, made from the equations of motion alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.frames import frame_jacobian, frame_placement, placement_in_base
from dynid.dynamics.functions import inverse_dynamics
from dynid.errors import DataError, Infeasible, NotApplicable, TooFew
from dynid.legs.contacts import Contact, ContactKind, as_contacts, contact_jacobian
from dynid.recording.run import Run
from dynid.robot.model import Robot
from dynid.robot.parts import checked
from dynid.signals.filters import derivative
from dynid.signals.manifold import base_state

__all__ = ["standing_run"]

Array = NDArray[np.float64]

# Largest position (m) and angle (rad) of the trunk, its band in Hz, and the largest angle of a lifted leg's joints.
_SWAY = (0.02, 0.02, 0.02, 0.1, 0.1, 0.1)
_BAND = (0.3, 1.2)
_WAVE, _WAVE_BAND = 0.25, (0.5, 1.8)
_LIFT = 3.0
_SHIFT = 0.3
_REACHED = 1e-9


def standing_run(
    robot: Robot,
    feet: Sequence[Contact | str],
    posture: ArrayLike,
    *,
    imu: str | None = None,
    duration: float = 20.0,
    rate: float = 200.0,
    noise: float = 0.005,
    bias: ArrayLike = (0.03, -0.02, 0.05, 0.004, -0.006, 0.002),
    seed: int = 0,
    name: str = "stand",
) -> Run:
    """A run of a robot that sways on its feet and lifts one foot after the other.

    The feet that stand are exactly at rest, and their forces are the smallest that carry the robot. It serves to try
    out a robot, a set of sensors or a length of recording before the experiment.

    Parameters
    ----------
    robot : Robot
        The robot, with a floating base.
    feet : sequence of Contact or str
        Its feet; the legs must have as many joints as the contact prevents motions.
    posture : array_like, shape (n,)
        Joint positions at which it stands.
    imu : str, optional
        Frame of the inertial unit, by default the base link.
    duration : float
        Duration in s, at least 3 s per foot.
    rate : float
        Samples per second.
    noise : float
        Standard deviation of the torques relative to their root mean square; the inertial unit has 10 times this in
        m/s2 and this in rad/s, and encoders a hundredth of it in rad.
    bias : array_like, shape (6,)
        Bias of accelerometer (m/s2) and gyroscope (rad/s).
    seed : int
        Seed of motion and noise.
    name : str
        Name of the run.

    Returns
    -------
    Run
        Positions, torques, inertial unit and contacts.

    Raises
    ------
    DataError
        If the duration is too short, or the legs cannot hold their feet at rest.
    """
    contacts = as_contacts(robot, feet)
    if duration < _LIFT * len(contacts):
        raise TooFew(f"{len(contacts)} feet need at least {_LIFT * len(contacts):g} s, got {duration:g} s", "duration")
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, duration, 1.0 / rate)
    sway = _waves(t, rng, _SWAY, _BAND)
    home = np.concatenate([np.zeros(6), [1.0], checked(posture, (robot.n,), "posture", DataError)])
    starts = [duration - _LIFT * (len(contacts) - k) for k in range(len(contacts))]
    for contact, start in zip(contacts, starts, strict=True):
        # The trunk moves away from the foot that is lifted, so that the others carry it without pulling.
        away = _SHIFT * frame_placement(robot, home, contact.frame)[:2, 3]
        sway[:, :2] -= away * _window(t, start - 0.5, start + _LIFT + 0.5)[:, None]
    turn = scipy.spatial.transform.Rotation.from_euler("xyz", sway[:, 3:])
    base = base_state(np.hstack([sway[:, :3], turn.as_quat()]), rate, None, method="central5")
    q = np.tile(home[7:], (len(t), 1))
    up = np.zeros((len(t), len(contacts)))
    for k, contact in enumerate(contacts):
        up[:, k] = _window(t, starts[k], starts[k] + _LIFT)
        q = _placed(robot, base.pose, q, contact)
        own = _own_joints(robot, contact)
        q[:, own] += up[:, k : k + 1] * _waves(t, rng, (_WAVE,) * len(own), _WAVE_BAND)
    v = derivative(q, rate)
    state = np.hstack([base.pose, q]), np.hstack([base.v, v]), np.hstack([base.a, derivative(v, rate)])
    load = inverse_dynamics(robot, *state)
    J = contact_jacobian(robot, state[0], contacts)
    on = np.repeat(up < 1e-9, [contact.rows for contact in contacts], axis=1)
    held = np.where(on[:, :, None], J[:, :, :6], 0.0)
    force = np.einsum("nij,nj->ni", np.linalg.pinv(np.swapaxes(held, 1, 2), rcond=1e-6), load[:, :6])
    torque = load[:, 6:] - np.einsum("nij,ni->nj", J[:, :, 6:], force)
    unit = _unit(robot, base.pose, base.v, base.a, imu) + np.asarray(checked(bias, (6,), "bias", DataError))
    return Run(
        t,
        q + 0.01 * noise * rng.normal(size=q.shape),
        torque=torque + noise * np.sqrt(np.mean(torque**2)) * rng.normal(size=torque.shape),
        imu=unit + noise * rng.normal(size=unit.shape) * np.repeat([10.0, 1.0], 3),
        contacts={contact.frame: (up[:, k] < 1e-9).astype(float) for k, contact in enumerate(contacts)},
        name=name,
    )


def _waves(t: Array, rng: np.random.Generator, size: Sequence[float], band: tuple[float, float]) -> Array:
    """Sums (N, axis) of four sines per axis."""
    out = np.zeros((len(t), len(size)))
    for i, amplitude in enumerate(size):
        for frequency in rng.uniform(*band, 4):
            out[:, i] += amplitude / 2.5 * np.sin(2 * np.pi * (frequency * t + rng.uniform()))
    return out


def _window(t: Array, start: float, stop: float, ramp: float = 0.5) -> Array:
    """One between two times, zero outside, with smooth ramps inside."""
    x = np.clip(np.minimum(t - start, stop - t) / ramp, 0.0, 1.0)
    return np.asarray(x**3 * (10.0 - 15.0 * x + 6.0 * x**2))


def _own_joints(robot: Robot, contact: Contact) -> NDArray[np.intp]:
    """Joints that move a contact relative to the base."""
    rng = np.random.default_rng(0)
    q = np.hstack([np.zeros((4, 6)), np.ones((4, 1)), rng.uniform(-1.0, 1.0, (4, robot.n))])
    moved = np.abs(frame_jacobian(robot, q, contact.frame)[:, :, 6:]).max(axis=(0, 1))
    return np.flatnonzero(moved > 1e-9)


def _placed(robot: Robot, pose: Array, q: Array, contact: Contact) -> Array:
    """Joint positions that keep a foot where it is in the posture while the base moves."""
    own = _own_joints(robot, contact)
    whole = contact.kind is ContactKind.SURFACE
    if len(own) != (6 if whole else 3):
        raise NotApplicable(
            f"foot '{contact.frame}' has {len(own)} joints, a {contact.kind} contact at rest needs 3 or 6", "feet"
        )
    home = np.concatenate([np.zeros(6), [1.0], q[0]])
    target = frame_placement(robot, home, contact.frame)
    rotation = scipy.spatial.transform.Rotation
    out = q.copy()
    for _ in range(30):
        x = np.hstack([pose, out])
        place = frame_placement(robot, x, contact.frame)
        error = target[:3, 3] - place[:, :3, 3]
        jacobian = frame_jacobian(robot, x, contact.frame)[:, :, 6 + own]
        if whole:
            tilt = rotation.from_matrix(target[:3, :3] @ np.swapaxes(place[:, :3, :3], 1, 2)).as_rotvec()
            error = np.hstack([error, tilt])
        else:
            jacobian = jacobian[:, :3]
        out[:, own] += np.linalg.solve(jacobian, error[..., None])[..., 0].clip(-0.3, 0.3)
        if np.abs(error).max() < _REACHED:
            return out
    raise Infeasible(f"the leg of '{contact.frame}' cannot hold its foot at rest from this posture")


def _unit(robot: Robot, pose: Array, v: Array, a: Array, imu: str | None) -> Array:
    """Specific force and angular velocity (N, 6) in the axes of the unit."""
    mount = placement_in_base(robot, np.zeros((1, robot.nq)), imu or robot.links[0].name)[0]
    down = scipy.spatial.transform.Rotation.from_quat(pose[:, 3:]).inv().apply(np.array(robot.gravity))
    spin, lever = v[:, 3:], mount[:3, 3]
    force = a[:, :3] + np.cross(spin, v[:, :3]) - down
    force = force + np.cross(a[:, 3:], lever) + np.cross(spin, np.cross(spin, lever))
    return np.hstack([force @ mount[:3, :3], spin @ mount[:3, :3]])
