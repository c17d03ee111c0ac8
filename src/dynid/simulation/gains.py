"""Gains of controllers and the bandwidth of the loops that they close, each joint as a single inertia.

    (kd s + kp) / (M s^2 + (kd + friction) s + kp),    2 pi f = natural sqrt(1 - 2 d^2 + sqrt((1 - 2 d^2)^2 + 1))

with the natural frequency sqrt(kp / M) and the damping ratio d; the second formula is that of kp alone in the
numerator.

Source: Franklin, Powell and Emami-Naeini, Feedback Control of Dynamic Systems (2010), for the second order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.functions import mass_matrix
from dynid.errors import InvalidShape, InvalidValue, NotApplicable
from dynid.robot.model import Robot

__all__ = ["bandwidth", "bandwidth_gains", "gains_of"]

Array = NDArray[np.float64]


def bandwidth_gains(
    robot: Robot, bandwidth: ArrayLike, *, damping: float = 1.0, q: ArrayLike | None = None
) -> tuple[Array, Array]:
    """Gains of `cascade` for a closed-loop bandwidth per joint.

    Each joint is treated as a single inertia, the diagonal entry of the mass matrix at `q`. The gains of `pd` are
    kp kv and kv.

    Parameters
    ----------
    robot : Robot
        Model with inertial parameters.
    bandwidth : float or array of shape (n,)
        Closed-loop bandwidth (Hz) at -3 dB.
    damping : float
        Damping ratio.
    q : array of shape (n,), optional
        Joint positions for the inertia; by default the middle of the position limits.

    Returns
    -------
    kp, kv : array of shape (n,)
        Position gains (1/s) and velocity gains (N m s/rad or N s/m).

    Raises
    ------
    DataError
        If bandwidth or damping is not positive.

    Examples
    --------
    >>> import dynid
    >>> kp, kv = dynid.controllers.bandwidth_gains(dynid.load_robot("twolink"), 5.0)
    >>> kp.shape
    (2,)
    """
    (f,) = gains_of(bandwidth=bandwidth, n=robot.n)
    if np.any(f <= 0) or not damping > 0:
        raise InvalidValue("bandwidth and damping must be positive", "bandwidth")
    inertia = _inertia(robot, q)
    d = 1 - 2 * damping**2
    natural = 2 * np.pi * f / np.sqrt(d + np.sqrt(d**2 + 1))
    return natural / (2 * damping), 2 * damping * natural * inertia


def bandwidth(
    robot: Robot,
    kp: ArrayLike,
    kd: ArrayLike,
    *,
    friction: ArrayLike = 0.0,
    reference_velocity: bool = True,
    q: ArrayLike | None = None,
) -> Array:
    """Closed-loop bandwidth per joint of given gains of `pd` or `cascade`.

    Each joint is treated as a single inertia M, the diagonal entry of the mass matrix at `q`, with the other joints
    held. The bandwidth is the frequency at which the position follows the reference at -3 dB, in
    (kd s + kp) / (M s2 + (kd + friction) s + kp). Without the reference velocity, kd s is not in the numerator.

    Parameters
    ----------
    robot : Robot
        Model with inertial parameters.
    kp : float or array of shape (n,)
        Proportional gains (N m/rad or N/m); those of `cascade` times its velocity gains.
    kd : float or array of shape (n,)
        Derivative gains (N m s/rad or N s/m); the velocity gains of `cascade`.
    friction : float or array of shape (n,)
        Viscous friction (N m s/rad or N s/m) of the joints.
    reference_velocity : bool
        Whether the law has the reference velocity, as `pd`, or not, as `cascade`.
    q : array of shape (n,), optional
        Joint positions for the inertia; by default the middle of the position limits.

    Returns
    -------
    array of shape (n,)
        Closed-loop bandwidth (Hz).

    Raises
    ------
    DataError
        If kp or an inertia is not positive, or kd or friction is negative.

    Examples
    --------
    >>> import dynid
    >>> robot = dynid.load_robot("twolink")
    >>> kp, kv = dynid.controllers.bandwidth_gains(robot, 5.0)
    >>> dynid.controllers.bandwidth(robot, kp * kv, kv, reference_velocity=False)
    array([5., 5.])
    """
    kp, kd, fv = gains_of(kp=kp, kd=kd, friction=friction, n=robot.n)
    if np.any(kp <= 0) or np.any(kd < 0) or np.any(fv < 0):
        raise InvalidValue(
            "the bandwidth needs positive gains kp, and gains kd and friction that are not negative", "kp"
        )
    inertia = _inertia(robot, q)
    if np.any(inertia <= 0):
        name = robot.coordinates[int(np.argmin(inertia))]
        raise NotApplicable(f"joint '{name}' has no bandwidth, since its inertia is not positive")
    ahead = kd if reference_velocity else 0.0
    # |kp + j w ahead|^2 is half of |kp - M w^2 + j w (kd + fv)|^2: M^2 w^4 + b w^2 - kp^2 = 0, without cancellation.
    b = (kd + fv) ** 2 - 2 * kp * inertia - 2 * ahead**2
    root = np.sqrt(b**2 + (2 * inertia * kp) ** 2)
    square = np.where(b > 0, 2 * kp**2 / (np.abs(b) + root), (np.abs(b) + root) / (2 * inertia**2))
    return np.asarray(np.sqrt(square) / (2 * np.pi))


def _inertia(robot: Robot, q: ArrayLike | None) -> Array:
    """Diagonal (n,) of the mass matrix, by default in the middle of the position limits."""
    pose = np.array([_middle(robot, c) for c in robot.coordinates]) if q is None else np.asarray(q, float)
    return np.asarray(np.diagonal(mass_matrix(robot, pose)))


def _middle(robot: Robot, joint: str) -> float:
    """Middle of the position limits, 0 without limits."""
    limits = robot.limits[joint]
    low, high = limits.lower, limits.upper
    return 0.5 * (low + high) if np.isfinite(low) and np.isfinite(high) else 0.0


def gains_of(n: int | None = None, **given: ArrayLike) -> list[Array]:
    """Gains as arrays of equal length, checked."""
    arrays = {name: np.atleast_1d(np.asarray(value, dtype=float)) for name, value in given.items()}
    length = n or max(len(a) for a in arrays.values())
    for name, array in arrays.items():
        if array.ndim != 1 or len(array) not in (1, length) or not np.all(np.isfinite(array)):
            raise InvalidShape(
                f"gain {name} needs one finite number, or one per joint ({length}), got shape {array.shape}"
            )
    return [np.broadcast_to(a, (length,)).copy() for a in arrays.values()]
