"""Runs of a robot on its legs, ready to be folded: contacts, base state, filtered signals, first noise.

Which feet touch the floor is known from the run, from foot switches, or from the torques of the legs. This schedule is
used twice, each time on the safe side. A foot that may touch has an unknown force, which is eliminated: eliminating a
force that was zero loses some information and biases nothing. A foot that certainly stands is at rest, which tells the
velocity of the base. So a wrong schedule is survived where the torques contradict it.

The equations of motion need the specific force and the angular velocity of the base, which the unit measures, and not
its position or heading. What the unit does not tell is its bias: a Kalman smoother finds it from the feet at rest,
whose velocity is zero up to a tolerance, because feet and floors are not rigid.

Source: Bloesch and others, State Estimation for Legged Robots: Consistent Fusion of Leg Kinematics and IMU (2012); the
smoother is `dynid.dynamics.kernels.base_filter`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.dynamics.batch import first_use
from dynid.dynamics.frames import frame_jacobian, placement_in_base
from dynid.dynamics.functions import inverse_dynamics, regressor
from dynid.errors import Mismatch, MissingData, NotIdentifiable, UnknownName
from dynid.legs.contacts import Contact, contact_jacobian
from dynid.recording.base_motion import BaseMotion, base_from_imu
from dynid.recording.recording import Recording
from dynid.recording.run import PARTS, Run
from dynid.robot.model import Robot
from dynid.signals.filters import derivative, lowpass
from dynid.signals.settings import Motion, Signals, prepare, uniform

__all__ = [
    "LegBase",
    "LegNoise",
    "LegRun",
    "Schedule",
    "base_from_legs",
    "check_imu",
    "contact_schedule",
    "drive_indices",
    "in_mode",
    "longest_stretch",
    "prepare_legs",
    "used_modes",
    "vertical_forces",
]

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
        raise MissingData(
            f"run '{run.name}' has no inertial unit: give imu (N, 6), specific force and angular velocity", "imu"
        )
    dead = np.flatnonzero(np.ptp(run.imu, axis=0) == 0.0)
    if dead.size:
        axis = PARTS["imu"][dead[0]]
        raise MissingData(f"axis {axis} of the inertial unit is constant, so it is missing", where=f"run '{run.name}'")
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
        raise NotIdentifiable(
            "no foot stands at any sample, so the bias of the inertial unit is not observable",
            where=f"run '{run.name}'",
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
    raise NotIdentifiable(
        f"foot '{worst}' slips at {int(slips[worst].sum())} of {int(standing[worst].sum())} samples "
        f"of its stance, longest from sample {first} to {last}, and no other foot is at rest either",
        where=f"run '{run.name}'",
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


# Vertical force of a foot in shares of the weight: at the middle a contact is as probable as none, and the width is
# that of the logistic curve. The a-priori model of a leg and its friction are wrong by about one percent of the weight.
_MIDDLE, _WIDTH = 0.04, 0.008
# Below the first probability a foot is in the air, above the second it stands.
_AIR, _STANDS = 0.05, 0.95
# A contact that is shorter than this in s, or an interruption of one, is not believed.
_SHORTEST = 0.03


@dataclass(frozen=True, eq=False)
class Schedule:
    """Contacts of a run.

    Attributes
    ----------
    probability : mapping of str to ndarray (N,)
        Probability that each foot touches the floor, from the torques.
    touching : mapping of str to ndarray of bool (N,)
        Samples at which the force of a foot may differ from zero.
    standing : mapping of str to ndarray of bool (N,)
        Samples at which a foot certainly stands.
    contradicted : mapping of str to ndarray of bool (N,)
        Samples at which the schedule of the run contradicts the torques; all false where the run has none.
    """

    probability: Mapping[str, Array]
    touching: Mapping[str, Mask]
    standing: Mapping[str, Mask]
    contradicted: Mapping[str, Mask]

    def widened(self, samples: int) -> dict[str, Mask]:
        """`touching`, longer by some samples on either side, as a filter does to forces."""
        wide = np.ones(2 * samples + 1, dtype=bool)
        return {foot: scipy.ndimage.binary_dilation(mask, wide) for foot, mask in self.touching.items()}


def vertical_forces(robot: Robot, run: Run, feet: Sequence[Contact], *, imu: str | None = None) -> Array:
    """Vertical force (N, foot) in N of the floor on each foot, from the torques of the legs and the model.

    Parameters
    ----------
    robot : Robot
        The robot with its a-priori parameters.
    run : Run
        Encoders, torques and inertial unit.
    feet : sequence of Contact
        The feet.
    imu : str, optional
        Frame of the inertial unit, by default the base link.

    Returns
    -------
    ndarray, shape (N, foot)
    """
    signal = check_imu(run)
    if run.torque is None:
        raise MissingData(f"run '{run.name}' has no torques")
    rate = 1.0 / run.step
    cutoff = min(_CUTOFF, 0.4 * rate)
    q = lowpass(run.q, cutoff, rate)
    v = derivative(q, rate)
    mount = placement_in_base(robot, np.zeros((1, robot.nq)), imu or robot.links[0].name)[0]
    still = lowpass(signal, cutoff, rate)
    down = np.array(robot.gravity, dtype=float)
    # Gravity is left to the accelerometer: at zero specific force the base would fall freely.
    base = base_from_imu(run.t, still[:, 3:], still[:, :3], gravity=down, placement=mount)
    assert base.twist is not None and base.acceleration is not None
    state = (
        np.hstack([base.pose, q]),
        np.hstack([base.twist, v]),
        np.hstack([base.acceleration, derivative(v, rate)]),
    )
    missing = inverse_dynamics(robot, *state)[:, 6:] - lowpass(run.torque, cutoff, rate)
    jacobian = contact_jacobian(robot, state[0], feet)[:, :, 6:]
    force = np.einsum("nij,nj->ni", np.linalg.pinv(np.swapaxes(jacobian, 1, 2), rcond=1e-3), missing)
    up = lowpass(signal[:, :3] @ mount[:3, :3].T, min(2.0, cutoff), rate)
    up = up / np.linalg.norm(up, axis=1, keepdims=True)
    out, first = np.empty((len(q), len(feet))), 0
    for k, foot in enumerate(feet):
        axes = placement_in_base(robot, state[0], foot.frame)[:, :3, :3]
        out[:, k] = np.einsum("ni,nji,nj->n", force[:, first : first + 3], axes, up)
        first += foot.rows
    return out


def contact_schedule(robot: Robot, run: Run, feet: Sequence[Contact], *, imu: str | None = None) -> Schedule:
    """Contacts of a run from its schedule, if it has one, and from the torques of the legs.

    Parameters
    ----------
    robot : Robot
        The robot with its a-priori parameters.
    run : Run
        Encoders, torques, inertial unit, and `contacts`: whether each foot touches, from a gait or from foot switches.
    feet : sequence of Contact
        The feet.
    imu : str, optional
        Frame of the inertial unit, by default the base link.

    Returns
    -------
    Schedule

    Raises
    ------
    DataError
        If the run has contacts that are none of the feet, or no foot touches at any sample.
    """
    names = [foot.frame for foot in feet]
    unknown = next((name for name in run.contacts if name not in names), None)
    if unknown is not None:
        raise UnknownName(
            f"run '{run.name}' has a contact of '{unknown}', which is none of the feet {', '.join(names)}"
        )
    force = vertical_forces(robot, run, feet, imu=imu)
    weight = float(np.mean(np.maximum(force, 0.0).sum(axis=1)))
    share = force / max(weight, 1e-9)
    probability = _logistic(share)
    # A foot that seems to pull tells that the model is wrong there: its force is unknown, too.
    loaded = _logistic(np.abs(share))
    shortest = max(1, round(_SHORTEST / run.step))
    touching, standing, contradicted = {}, {}, {}
    for k, foot in enumerate(names):
        air, stands = loaded[:, k] < _AIR, probability[:, k] > _STANDS
        stands = scipy.ndimage.binary_opening(stands, np.ones(shortest, dtype=bool))
        given = run.contacts.get(foot)
        touching[foot], standing[foot] = ~air, stands
        contradicted[foot] = np.zeros(len(run.t), dtype=bool)
        if given is not None:
            told = given > 0.5
            contradicted[foot] = (told & air) | (~told & stands)
            touching[foot] = touching[foot] | told
            standing[foot] = stands & told
    if weight <= 0.0 or not any(mask.any() for mask in standing.values()):
        raise MissingData(f"no foot stands at any sample: {', '.join(names)}", where=f"run '{run.name}'")
    named = {foot: probability[:, k] for k, foot in enumerate(names)}
    return Schedule(named, touching, standing, contradicted)


def _logistic(share: Array) -> Array:
    """Probability of a contact with a force in shares of the weight."""
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip((share - _MIDDLE) / _WIDTH, -50.0, 50.0))))


# Time in s, times the cut-off, over which the low-pass extends a force: half of its impulse response.
_REACH = 0.5


@dataclass(frozen=True, eq=False)
class LegNoise:
    """Noise of torques and accelerations after the low-pass.

    Attributes
    ----------
    torque : ndarray (n,)
        Standard deviation of each joint's torque, N m or N.
    acceleration : ndarray (nv,)
        Standard deviations of accelerations: base linear (m/s2), base angular (rad/s2), joints.
    """

    torque: Array
    acceleration: Array


@dataclass(frozen=True, eq=False)
class LegRun:
    """A run that is ready to be folded.

    Attributes
    ----------
    motion : Motion
        Filtered run.
    q, v, a : ndarray (N, nq), (N, nv), (N, nv)
        State of base and joints.
    drives : ndarray (N, n, p)
        Drive columns of the regressor per joint, filtered as the torques are, for the parameters `drive_columns`.
    touching : ndarray of bool (N, foot)
        Which forces are unknown.
    still : ndarray of bool (N, n)
        Joints that stand still.
    used : ndarray of int (m,)
        Samples that give rows.
    base : LegBase or None
        Base state with its biases; None where the run has the motion of its base.
    schedule : Schedule
        Contacts at the samples of the run before trimming.
    """

    motion: Motion
    q: Array
    v: Array
    a: Array
    drives: Array
    touching: Mask
    still: Mask
    used: NDArray[np.intp]
    base: LegBase
    schedule: Schedule
    noise: LegNoise


def prepare_legs(
    robot: Robot,
    recording: Recording,
    feet: Sequence[Contact],
    *,
    imu: str | None,
    signals: Signals,
    foot_std: float,
    every: int | None,
    foot_forces: bool = False,
) -> list[LegRun]:
    """Contacts, base state and filtered signals of every run."""
    return [_prepared(robot, run, feet, imu, signals, foot_std, every, foot_forces) for run in recording.runs]


def _prepared(
    robot: Robot,
    run: Run,
    feet: Sequence[Contact],
    imu: str | None,
    signals: Signals,
    foot_std: float,
    every: int | None,
    foot_forces: bool,
) -> LegRun:
    if run.torque is None:
        raise MissingData(f"run '{run.name}' has no torques")
    if run.q.shape[1] != robot.n:
        raise Mismatch(f"the recording has {run.q.shape[1]} joints, robot '{robot.name}' has {robot.n}")
    if foot_forces:
        missing = next((foot.frame for foot in feet if foot.frame not in run.wrenches), None)
        if missing is not None:
            raise MissingData(f"run '{run.name}' has no wrench of foot '{missing}', which foot_forces needs")
    else:
        run = replace(run, wrenches={}, sensors={})
    even, rate = uniform(run, signals)
    schedule = contact_schedule(robot, even, feet, imu=imu)
    base = base_from_legs(robot, even, feet, schedule.standing, imu=imu, foot_std=foot_std)
    motion = prepare(base.motion.on(even), signals)
    assert motion.base is not None and motion.torque is not None
    first = int(np.searchsorted(even.t, motion.t[0] - 0.5 / rate))
    inside = slice(first, first + len(motion.t))
    cutoff = motion.cutoff
    reach = 0 if cutoff is None else int(np.ceil(_REACH / cutoff * rate))
    wide = schedule.widened(reach)
    touching = np.column_stack([wide[foot.frame][inside] for foot in feet])
    if foot_forces:
        touching = np.zeros_like(touching)
    q, v, a = (
        np.hstack([b, j])
        for b, j in zip((motion.base.pose, motion.base.v, motion.base.a), (motion.q, motion.v, motion.a), strict=True)
    )
    step = every or (1 if cutoff is None else max(1, int(0.4 * rate / cutoff)))
    return LegRun(
        motion=motion,
        q=q,
        v=v,
        a=a,
        drives=_drive_columns(robot, q, v, a, motion),
        touching=touching,
        still=np.abs(motion.v) < signals.velocity_limits(motion.v),
        used=np.arange(0, len(motion.t), step),
        base=base,
        schedule=schedule,
        noise=_first_noise(even, motion, base, rate),
    )


def _first_noise(run: Run, motion: Motion, base: LegBase, rate: float) -> LegNoise:
    """Noise after the low-pass, from that of one sample; torques get a share of their size beside it.

    White noise of density s^2 / (rate / 2) has after a low-pass at c the variance s^2 2 c / rate, and its first and
    second derivative (2 pi c)^2 / 3 and (2 pi c)^4 / 5 times that.
    """
    assert run.torque is not None and motion.torque is not None
    band = 1.0 if motion.cutoff is None else min(1.0, 2.0 * motion.cutoff / rate)
    edge = 2.0 * np.pi * band * rate / 2.0
    encoders = np.array([white_noise(x) for x in run.q.T])
    joints = encoders * np.sqrt(band) * edge**2 / np.sqrt(5.0)
    linear = np.hypot(base.noise[:3] * np.sqrt(band), base.bias_std[:3])
    angular = base.noise[3:] * np.sqrt(band) * edge / np.sqrt(3.0)
    torque = np.array([white_noise(x) for x in run.torque.T]) * np.sqrt(band)
    size = 0.005 * np.sqrt(np.mean(motion.torque**2, axis=0)) + 1e-9
    return LegNoise(np.hypot(torque, size), np.concatenate([linear, angular, joints]))


def drive_indices(robot: Robot) -> list[tuple[int, int]]:
    """Row of the joint and column of every drive parameter."""
    joint = {name: j for j, name in enumerate(robot.coordinates)}
    return [(joint[p.owner], c) for c, p in enumerate(robot.layout) if not p.inertial and p.owner in joint]


def _drive_columns(robot: Robot, q: Array, v: Array, a: Array, motion: Motion) -> Array:
    """Drive columns (N, k), each of the row of its joint, low-passed as the torques are."""
    indices = drive_indices(robot)
    if not indices:
        return np.zeros((len(q), 0))
    rows, columns = (np.array(x) for x in zip(*indices, strict=True))
    out = np.concatenate(
        [
            regressor(robot, q[k : k + 1024], v[k : k + 1024], a[k : k + 1024])[:, 6 + rows, columns]
            for k in range(0, len(q), 1024)
        ]
    )
    return out if motion.cutoff is None else lowpass(out, float(motion.cutoff), motion.rate)


def used_modes(runs: Sequence[LegRun], feet: Sequence[Contact]) -> tuple[tuple[Contact, ...], ...]:
    """Contact modes with at least one sample, the most frequent first."""
    found: dict[tuple[bool, ...], int] = {}
    for run in runs:
        kinds, counts = np.unique(run.touching[run.used], axis=0, return_counts=True)
        for kind, count in zip(kinds, counts, strict=True):
            key = tuple(bool(x) for x in kind)
            found[key] = found.get(key, 0) + int(count)
    order = sorted(found, key=lambda key: -found[key])
    return tuple(tuple(foot for foot, on in zip(feet, key, strict=True) if on) for key in order)


def in_mode(run: LegRun, mode: tuple[Contact, ...], feet: Sequence[Contact]) -> Mask:
    """Samples (N,) at which exactly the contacts of a mode touch."""
    wanted = np.array([foot in mode for foot in feet])
    return np.asarray(np.all(run.touching == wanted, axis=1))
