"""Motion of a floating base on the manifold of rotations: filtered, interpolated and differentiated.

Relative to one sample, the rotation vectors to its neighbours are a smooth curve through zero whose slope is the
angular velocity: the finite differences and local polynomials for joints apply to rotations, with the same accuracy.
Filters act on the rotation vector accumulated from sample to sample, which is continuous over any number of turns.

    w = sum of c_k log(R_i' R_i+k),    a = R' p'' - w x R' p',    mean = U diag(1, 1, det(U V')) V' of mean(R) = U S V'

with the coefficients c_k of a derivative of evenly spaced samples.

Source: Hartley, Trumpf, Dai and Li, Rotation Averaging (2013), for the mean; weights on the rotation vectors of a
window and the correction of the drift of filtered rotations are our own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import Mismatch, NotApplicable, TooFew, UnknownName
from dynid.recording.base_motion import running_product
from dynid.recording.run import mended_poses
from dynid.signals.filters import derivative, lowpass, median

__all__ = ["BaseState", "accumulated_rotation", "angular_velocity", "average_poses", "base_state", "resample_poses"]

Array = NDArray[np.float64]

# Largest rotation between two samples; beyond it the sampling rate is too low, or the orientation jumps.
_LARGEST_TURN = np.pi / 2
# Band of the drift of integrated filtered rotations, relative to the cut-off.
_DRIFT_BAND = 0.25
_WINDOW = 9
# Smallest singular value of a mean rotation matrix: two rotations 50 degrees apart reach it, which no noise does.
_LEAST_ALIKE = 0.9


@dataclass(frozen=True, eq=False)
class BaseState:
    """Motion of a floating base.

    Attributes
    ----------
    pose : ndarray (N, 7)
        Position (m) and quaternion (x, y, z, w).
    v : ndarray (N, 6)
        Body twist: linear (m/s), angular (rad/s).
    a : ndarray (N, 6)
        Time derivative of the body twist.
    """

    pose: Array
    v: Array
    a: Array


def base_state(
    pose: Array,
    rate: float,
    cutoff: float | None,
    order: int = 4,
    method: str = "central",
    twist: Array | None = None,
    twist_rate: Array | None = None,
) -> BaseState:
    """Filtered pose of a base and its derivatives.

    The position is filtered and differentiated in the world and then expressed in the body, where its acceleration is
    R' p'' - w x R' p'.

    Parameters
    ----------
    pose : ndarray (N, 7)
        Position (m) and quaternion (x, y, z, w).
    rate : float
        Sampling rate in Hz.
    cutoff : float or None
        Cut-off frequency in Hz, None for no filter.
    order : int
        Order of the low-pass.
    method : str
        Method of differentiation, as for joints.
    twist, twist_rate : ndarray (N, 6), optional
        Measured body twist and its time derivative, which are filtered and used instead of derivatives of the pose.

    Returns
    -------
    BaseState
    """
    position, rotation = pose[:, :3], _rotation(pose)
    if cutoff is not None:
        position = lowpass(position, cutoff, rate, order)
        rotation = _smooth(rotation, cutoff, rate, order)
    clean = mended_poses(np.hstack([position, rotation.as_quat()]), "the base")
    if twist is not None:
        v = twist if cutoff is None else lowpass(twist, cutoff, rate, order)
    else:
        w = angular_velocity(rotation, rate, method)
        velocity = derivative(position, rate, method)
        v = np.hstack([rotation.inv().apply(velocity), w])
    if twist_rate is not None:
        a = twist_rate if cutoff is None else lowpass(twist_rate, cutoff, rate, order)
    elif twist is not None:
        a = derivative(v, rate, method)
    else:
        linear = rotation.inv().apply(derivative(velocity, rate, method))
        a = np.hstack([linear - np.cross(w, v[:, :3]), derivative(w, rate, method)])
    return BaseState(clean, v, a)


def angular_velocity(rotation: scipy.spatial.transform.Rotation, rate: float, method: str = "central") -> Array:
    """Body angular velocity (N, 3) in rad/s of rotations sampled at a rate, by a method of differentiation for joints.

    "fourier" differentiates the rotation matrix, which is periodic whatever the number of turns.
    """
    samples = len(rotation)
    _refuse_leaps(rotation)
    if method == "fourier":
        matrices = rotation.as_matrix()
        rates = derivative(matrices.reshape(samples, 9), rate, method).reshape(samples, 3, 3)
        spin = np.swapaxes(matrices, 1, 2) @ rates
        spin = 0.5 * (spin - np.swapaxes(spin, 1, 2))
        return np.column_stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]])
    reach = {"central": 1, "central5": 2, "savgol": _WINDOW // 2}.get(method)
    if reach is None:
        raise UnknownName(
            f"derivative '{method}' is unknown for rotations: use central, central5, savgol or fourier", "derivative"
        )
    if samples < 2 * reach + 1:
        raise TooFew(f"derivatives over {2 * reach + 1} rotations need as many, got {samples}")
    # Rotations of the window relative to the sample; near the ends the window is not centred, as for joints.
    first = np.clip(np.arange(samples) - reach, 0, samples - 2 * reach - 1)
    if method != "savgol":
        first = np.arange(reach, samples - reach) - reach
    here = np.arange(samples) if method == "savgol" else np.arange(reach, samples - reach)
    own = rotation[here].inv()
    seen = np.stack([(own * rotation[first + k]).as_rotvec() for k in range(2 * reach + 1)])
    out = np.empty((samples, 3))
    if method == "savgol":
        for place in range(2 * reach + 1):
            rows = here - first == place
            weights = scipy.signal.savgol_coeffs(2 * reach + 1, 3, deriv=1, delta=1.0 / rate, pos=place, use="dot")
            out[rows] = np.tensordot(weights, seen[:, rows], axes=(0, 0))
        return out
    if method == "central":
        out[here] = (seen[2] - seen[0]) * (rate / 2.0)
    else:
        out[here] = (seen[0] - 8 * seen[1] + 8 * seen[3] - seen[4]) * (rate / 12.0)
        out[[1, -2]] = angular_velocity(rotation[:3], rate)[1], angular_velocity(rotation[-3:], rate)[1]
    steps = (rotation[[0, -2]].inv() * rotation[[1, -1]]).as_rotvec() * rate
    out[[0, -1]] = steps
    return out


def accumulated_rotation(pose: Array) -> Array:
    """Sum (N, 3) of the rotation vectors from sample to sample: continuous over any number of turns."""
    rotation = _rotation(pose)
    _refuse_leaps(rotation)
    steps = (rotation[:-1].inv() * rotation[1:]).as_rotvec()
    return np.concatenate([np.zeros((1, 3)), np.cumsum(steps, axis=0)])


def resample_poses(t: Array, pose: Array, at: Array) -> Array:
    """Poses (M, 7) at other times `at` (M,) within t (N,), by smooth interpolation."""
    curve = scipy.interpolate.Akima1DInterpolator(t, np.hstack([pose[:, :3], accumulated_rotation(pose)]), axis=0)
    before = np.clip(np.searchsorted(t, at, side="right") - 1, 0, len(t) - 1)
    there, start = curve(at), curve(t[before])
    rotation = scipy.spatial.transform.Rotation
    turned = _rotation(pose)[before] * rotation.from_rotvec(there[:, 3:] - start[:, 3:])
    return mended_poses(np.hstack([there[:, :3], turned.as_quat()]), "the base")


def average_poses(pose: Array, samples: int) -> Array:
    """Mean pose (samples, 7) over whole periods; the mean rotation is the nearest in the least-squares sense."""
    count = len(pose) // samples
    if samples < 2 or count < 1:
        raise TooFew(f"{len(pose)} samples are less than one period of {samples}", "period")
    whole = pose[: count * samples]
    matrices = _rotation(whole).as_matrix().reshape(count, samples, 3, 3).mean(axis=0)
    u, size, vt = np.linalg.svd(matrices)
    if size.min() < _LEAST_ALIKE:
        raise Mismatch("the base does not return to the same orientation after a period", "period")
    u[:, :, 2] *= np.linalg.det(u @ vt)[:, None]
    position = whole[:, :3].reshape(count, samples, 3).mean(axis=0)
    quaternion = scipy.spatial.transform.Rotation.from_matrix(u @ vt).as_quat()
    return mended_poses(np.hstack([position, quaternion]), "the base")


def median_poses(pose: Array, width: int) -> Array:
    """Running median of the position and of the quaternion over a few samples; it removes single outliers."""
    return mended_poses(median(pose, width), "the base")


def _rotation(pose: Array) -> scipy.spatial.transform.Rotation:
    """Rotations of poses (N, 7)."""
    return scipy.spatial.transform.Rotation.from_quat(pose[:, 3:])


def _smooth(
    rotation: scipy.spatial.transform.Rotation, cutoff: float, rate: float, order: int
) -> scipy.spatial.transform.Rotation:
    """Zero-phase low-pass of rotations; about one axis it equals the low-pass of the unwrapped angle.

    The accumulated rotation is filtered and integrated again. Rotations about different axes do not commute, so the
    noise that the filter removes leaves a slow drift, which is estimated from the samples and corrected.
    """
    _refuse_leaps(rotation)
    make = scipy.spatial.transform.Rotation
    steps = (rotation[:-1].inv() * rotation[1:]).as_rotvec()
    path = lowpass(np.concatenate([np.zeros((1, 3)), np.cumsum(steps, axis=0)]), cutoff, rate, order)
    start = rotation[0] * make.from_rotvec(path[0])
    turns = np.concatenate([start.as_quat()[None], make.from_rotvec(np.diff(path, axis=0)).as_quat()])
    built = make.from_quat(running_product(turns))
    drift = (built.inv() * rotation).as_rotvec()
    if np.linalg.norm(drift, axis=1).max() > _LARGEST_TURN:
        raise NotApplicable("the orientation of the base is too noisy to be filtered; check its quaternion")
    return built * make.from_rotvec(lowpass(drift, _DRIFT_BAND * cutoff, rate, order))


def _refuse_leaps(rotation: scipy.spatial.transform.Rotation) -> None:
    """Raise DataError where the orientation jumps between two samples."""
    turn = (rotation[:-1].inv() * rotation[1:]).magnitude()
    if turn.size and turn.max() > _LARGEST_TURN:
        k = int(np.argmax(turn > _LARGEST_TURN))
        raise NotApplicable(
            f"the base turns by {np.degrees(turn[k]):.0f} degrees between samples {k} and {k + 1}: its orientation "
            "jumps, or the sampling rate is too low"
        )
