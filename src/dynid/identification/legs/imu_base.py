"""Motion of the base of a standing robot from its inertial unit and the feet at rest.

The equations of motion need the specific force and the angular velocity of the base, which the unit measures, and not
its position or heading. What the unit does not tell is its bias: a Kalman smoother finds it from the feet at rest,
whose velocity is zero up to a tolerance, because feet and floors are not rigid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.dynamics.batch import first_use
from dynid.dynamics.frames import frame_jacobian, placement_in_base
from dynid.errors import DataError
from dynid.identification.legs.contacts import Contact
from dynid.recording.base_motion import BaseMotion, base_from_imu
from dynid.recording.recording import PARTS, Run
from dynid.robot.model import Robot
from dynid.signals.filters import derivative, lowpass

__all__ = ["LegBase", "base_from_legs", "check_imu", "longest_stretch"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Rate in Hz at which the smoother works; biases change slowly, and the unit is averaged to it.
_RATE = 125.0
# Cut-off in Hz of joint velocities in the velocity of a foot.
_CUTOFF = 25.0
# Standard deviations before the first sample: velocity, gravity, biases; and of the drift of the biases in one second.
_START = (0.5, 3.0, 0.05, 0.3)
_DRIFT = (1e-5, 1e-4)
# A foot that is this many standard deviations too fast is not at rest.
_GATE = 4.0
# A foot that is not at rest in more than this share of its stance leaves too little to know the bias from.
_SLIPPING = 0.5


@dataclass(frozen=True, eq=False)
class LegBase:
    """Motion of the base, the biases of the inertial unit, and the samples at which a foot that stands moves.

    Attributes
    ----------
    motion : BaseMotion
        Pose (heading from the gyroscope alone, position zero), body twist and its time derivative, N samples.
    bias, bias_std : ndarray (6,)
        Bias of the accelerometer (m/s2) and of the gyroscope (rad/s) in base axes, mean of the run, and its standard
        deviation.
    gravity_std : float
        Standard deviation (m/s2) of the direction of gravity, mean of the run.
    noise : ndarray (6,)
        Standard deviation of the white noise of one sample of the unit: specific force and angular velocity.
    slips : mapping of str to ndarray of bool (N,)
        Samples at which a standing foot was not at rest.
    """

    motion: BaseMotion
    bias: Array
    bias_std: Array
    gravity_std: float
    noise: Array
    slips: Mapping[str, Mask]


def check_imu(run: Run) -> Array:
    """The signal of the inertial unit; a DataError if there is none, or if one of its axes is missing."""
    if run.imu is None:
        raise DataError(f"run '{run.name}' has no inertial unit: give imu (N, 6), specific force and angular velocity")
    dead = np.flatnonzero(np.ptp(run.imu, axis=0) == 0.0)
    if dead.size:
        axis = PARTS["imu"][dead[0]]
        raise DataError(f"run '{run.name}': axis {axis} of the inertial unit is constant, so it is missing")
    return run.imu


def base_from_legs(
    robot: Robot,
    run: Run,
    feet: Sequence[Contact],
    standing: Mapping[str, Mask],
    *,
    imu: str | None = None,
    foot_std: float = 0.03,
) -> LegBase:
    """Motion of the base from the inertial unit, with its biases from the feet at rest.

    Parameters
    ----------
    robot : Robot
        The robot, with a floating base.
    run : Run
        Encoders and inertial unit on a uniform clock.
    feet : sequence of Contact
        The feet.
    standing : mapping of str to ndarray of bool (N,)
        Samples at which each foot is at rest, by its frame.
    imu : str, optional
        Frame of the inertial unit, by default the base link.
    foot_std : float
        Standard deviation (m/s) of the velocity of a foot at rest: soft soles, soft floors, backlash.

    Returns
    -------
    LegBase

    Raises
    ------
    DataError
        If the unit or one of its axes is missing, no foot ever stands, or the standing feet slip.
    """
    signal = check_imu(run)
    if not any(mask.any() for mask in standing.values()):
        raise DataError(
            f"run '{run.name}': no foot stands at any sample, so the bias of the inertial unit is not observable"
        )
    rate = 1.0 / run.step
    mount = placement_in_base(robot, np.zeros((1, robot.nq)), imu or robot.links[0].name)[0]
    force, spin = signal[:, :3] @ mount[:3, :3].T, signal[:, 3:] @ mount[:3, :3].T
    place, relative = _relative(robot, run, feet, rate, mount[:3, 3], force)
    every = max(1, round(rate / _RATE))
    f, w = _averaged(force, every), _averaged(spin, every)
    where, moving = _averaged(place, every), _averaged(relative, every)
    on = np.column_stack([standing[foot.frame] for foot in feet])
    on = _averaged(on.astype(float), every) > 0.999
    noise = np.array([white_noise(x) for x in (*force.T, *spin.T)])
    states, variances, slipped = _smooth(robot, f, w, where, moving, on, every / rate, noise / np.sqrt(every), foot_std)
    slips = {
        foot.frame: np.repeat(slipped[:, k], every)[: len(run.t)] & standing[foot.frame][: len(slipped) * every]
        if len(run.t) <= len(slipped) * every
        else _padded(np.repeat(slipped[:, k], every), len(run.t)) & standing[foot.frame]
        for k, foot in enumerate(feet)
    }
    _check_slips(run, standing, slips)
    middle = (np.arange(len(f)) * every + 0.5 * (every - 1)) * run.step
    t = np.arange(len(run.t)) * run.step
    smooth = np.column_stack([np.interp(t, middle, x) for x in states.T])
    motion = _motion(robot, run, mount, force - smooth[:, 9:], spin - smooth[:, 6:9], smooth)
    std = np.sqrt(np.maximum(np.diagonal(variances, axis1=1, axis2=2).mean(axis=0), 0.0))
    return LegBase(
        motion=motion,
        bias=np.concatenate([smooth[:, 9:].mean(axis=0), smooth[:, 6:9].mean(axis=0)]),
        bias_std=np.concatenate([std[9:], std[6:9]]),
        gravity_std=float(np.sqrt(np.mean(std[3:6] ** 2))),
        noise=noise,
        slips=slips,
    )


def white_noise(x: Array) -> float:
    """Standard deviation of white noise on a smooth signal (N,), from its second differences, or of its steps."""
    second = np.diff(x, 2)
    steps = np.abs(np.diff(x))
    steps = steps[steps > 0]
    quantum = float(steps.min()) / np.sqrt(12.0) if steps.size else 0.0
    return max(float(1.4826 * np.median(np.abs(second))) / np.sqrt(6.0), min(quantum, float(np.std(x))))


def longest_stretch(mask: Mask) -> tuple[int, int]:
    """First and last sample of the longest stretch of true samples."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(int), [0]])))
    starts, stops = edges[::2], edges[1::2]
    k = int(np.argmax(stops - starts))
    return int(starts[k]), int(stops[k]) - 1


def _padded(mask: Mask, count: int) -> Mask:
    """A mask with false samples at its end."""
    return np.concatenate([mask, np.zeros(count - len(mask), dtype=bool)])


def _averaged(x: Array, every: int) -> Array:
    """Means of `every` consecutive samples along the first axis; a remainder at the end is left out."""
    count = len(x) // every
    return np.ascontiguousarray(x[: count * every].reshape(count, every, *x.shape[1:]).mean(axis=1))


def _relative(
    robot: Robot, run: Run, feet: Sequence[Contact], rate: float, origin: Array, force: Array
) -> tuple[Array, Array]:
    """Position and velocity (N, foot, 3) of the feet relative to the unit, in base axes."""
    still = robot.with_base("fixed")
    cutoff = min(_CUTOFF, 0.4 * rate)
    q = lowpass(run.q, cutoff, rate)
    v = derivative(q, rate)
    up = lowpass(force, min(2.0, 0.4 * rate), rate)
    up = up / np.linalg.norm(up, axis=1, keepdims=True)
    place, relative = np.empty((2, len(q), len(feet), 3))
    for k, foot in enumerate(feet):
        twist = np.einsum("nij,nj->ni", frame_jacobian(still, q, foot.frame), v)
        offset = -foot.radius * up
        place[:, k] = placement_in_base(still, q, foot.frame)[:, :3, 3] + offset - origin
        relative[:, k] = twist[:, :3] + np.cross(twist[:, 3:], offset)
    return place, relative


def _smooth(
    robot: Robot,
    f: Array,
    w: Array,
    where: Array,
    moving: Array,
    on: Mask,
    step: float,
    noise: Array,
    foot_std: float,
) -> tuple[Array, Array, Mask]:
    """States (N, 12), covariances (N, 12, 12) and rejected feet (N, foot) of the compiled smoother."""
    from dynid.dynamics.kernels.base_filter import smooth_base

    weight = float(np.linalg.norm(robot.gravity))
    pull = -f[: max(1, round(0.2 / step))].mean(axis=0)
    start = np.concatenate([np.zeros(3), weight * pull / np.linalg.norm(pull), np.zeros(6)])
    added = np.repeat(
        [
            float(np.mean(noise[:3])) ** 2 * step**2,
            (weight * float(np.mean(noise[3:]))) ** 2 * step**2,
            _DRIFT[0] ** 2 * step,
            _DRIFT[1] ** 2 * step,
        ],
        3,
    )
    # Impacts between two averaged samples integrate to more than white noise does.
    added[:3] += (2e-3) ** 2
    states, variances = np.empty((len(f), 12)), np.empty((len(f), 12, 12))
    slips = np.zeros(on.shape, dtype=bool)
    covariance = np.diag(np.repeat(np.square(_START), 3))
    with first_use(smooth_base):
        smooth_base(
            f, w, where, moving, on, step, weight, start, covariance, added, foot_std, _GATE, states, variances, slips
        )
    return states, variances, slips


def _check_slips(run: Run, standing: Mapping[str, Mask], slips: Mapping[str, Mask]) -> None:
    """Raise a DataError that names the foot that slips most, if all feet slip most of the time that they stand."""
    shares = {foot: float(np.mean(slips[foot][standing[foot]])) for foot in slips if standing[foot].any()}
    if min(shares.values()) < _SLIPPING:
        return
    worst = max(shares, key=lambda foot: shares[foot])
    first, last = longest_stretch(slips[worst])
    raise DataError(
        f"run '{run.name}': foot '{worst}' slips at {int(slips[worst].sum())} of {int(standing[worst].sum())} samples "
        f"of its stance, longest from sample {first} to {last}, and no other foot is at rest either"
    )


def _motion(robot: Robot, run: Run, mount: Array, force: Array, spin: Array, smooth: Array) -> BaseMotion:
    """Pose, twist and its rate at the origin of the base from unbiased signals; gravity decides the tilt."""
    rotation = scipy.spatial.transform.Rotation
    turned = base_from_imu(run.t, spin)
    drifted = rotation.from_quat(turned.pose[:, 3:])
    down = np.array(robot.gravity, dtype=float)
    # The shortest rotation from gravity as the gyroscope alone would have it to that of the smoother.
    found = smooth[:, 3:6] / np.linalg.norm(smooth[:, 3:6], axis=1, keepdims=True)
    integrated = drifted.inv().apply(down / np.linalg.norm(down))
    axis = np.cross(found, integrated)
    sine, cosine = np.linalg.norm(axis, axis=1), np.sum(found * integrated, axis=1)
    angle = np.arctan2(sine, cosine)
    vector = axis * (angle / np.where(sine > 0, sine, 1.0))[:, None]
    upright = drifted * rotation.from_rotvec(vector)
    pose = np.hstack([np.zeros((len(spin), 3)), upright.as_quat()])
    angular = np.gradient(spin, run.t, axis=0)
    lever = mount[:3, 3]
    at_origin = force - np.cross(angular, lever) - np.cross(spin, np.cross(spin, lever))
    velocity = smooth[:, :3] - np.cross(spin, lever)
    linear = at_origin + upright.inv().apply(down) - np.cross(spin, velocity)
    return replace(turned, pose=pose, twist=np.hstack([velocity, spin]), acceleration=np.hstack([linear, angular]))
