"""Motion profiles from 0 to 1 over unit time, from rest to rest, with their derivatives.

These have fixed proportions, so that a motion through waypoints is linear in its waypoints. Moves in minimum time are
in `dynid.excitation.planners`.

    quintic: 10 s^3 - 15 s^4 + 6 s^5,    trapezoid: acceleration 9/2, 0, -9/2,    double-s: seven pieces of jerk

Source: Biagiotti and Melchiorri, Trajectory Planning for Automatic Machines and Robots (2008), chapters 2 and 3.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["PROFILES"]

Array = NDArray[np.float64]


def _quintic(s: Array, order: int) -> Array:
    """10 s^3 - 15 s^4 + 6 s^5."""
    polynomial = np.polynomial.Polynomial([0.0, 0.0, 0.0, 10.0, -15.0, 6.0])
    return np.asarray(polynomial.deriv(order)(s) if order else polynomial(s))


def _trapezoid(s: Array, order: int) -> Array:
    """One third each of constant acceleration, constant velocity and constant deceleration."""
    top = 1.5
    a = 3 * top
    up, down = s < 1 / 3, s > 2 / 3
    if order == 0:
        return np.where(up, a * s**2 / 2, np.where(down, 1 - a * (1 - s) ** 2 / 2, top * (s - 1 / 6)))
    if order == 1:
        return np.where(up, a * s, np.where(down, a * (1 - s), top))
    return np.where(up, a, np.where(down, -a, 0.0)) if order == 2 else np.zeros_like(s)


def _double_s(s: Array, order: int) -> Array:
    """Seven phases of constant jerk: 2/5 acceleration, a third of that at its maximum, and 2/5 deceleration."""
    T, rise = 0.4, 0.4 / 3
    velocity = 1 / (1 - T)
    acceleration = velocity / (T - rise)
    jerk = acceleration / rise

    def half(u: Array, order: int) -> Array:
        """From rest to the middle of the segment."""
        first, second, third = u < rise, u < T - rise, u < T
        if order == 0:
            return np.where(
                first,
                jerk * u**3 / 6,
                np.where(
                    second,
                    acceleration * (3 * u**2 - 3 * rise * u + rise**2) / 6,
                    np.where(
                        third, velocity * T / 2 - velocity * (T - u) + jerk * (T - u) ** 3 / 6, velocity * (u - T / 2)
                    ),
                ),
            )
        if order == 1:
            late = np.where(third, velocity - jerk * (T - u) ** 2 / 2, velocity)
            return np.where(first, jerk * u**2 / 2, np.where(second, acceleration * (u - rise / 2), late))
        if order == 2:
            late = np.where(third, jerk * (T - u), 0.0)
            return np.where(first, jerk * u, np.where(second, acceleration, late))
        return np.where(first, jerk, np.where(second, 0.0, np.where(third, -jerk, 0.0)))

    mirrored = half(1 - s, order)
    sign = -1.0 if order % 2 == 0 else 1.0
    return np.where(s <= 0.5, half(s, order), (1.0 if order == 0 else 0.0) + sign * mirrored)


# Function of a profile, and where in (0, 1) its derivatives up to the jerk jump.
PROFILES: dict[str, tuple[Callable[[Array, int], Array], Array]] = {
    "quintic": (_quintic, np.zeros(0)),
    "trapezoid": (_trapezoid, np.array([1 / 3, 2 / 3])),
    "double-s": (_double_s, np.array([0.4 / 3, 0.8 / 3, 0.4, 0.6, 1 - 0.8 / 3, 1 - 0.4 / 3])),
}
