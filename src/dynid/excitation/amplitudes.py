"""Limits on the harmonics of a motion, and the ready rules of Halper (2024) for the iiwa, equations 3.55a to 3.55f.

Sums of amplitudes bound position and velocity at all times and for any phases, so they are stricter than the peaks of a
motion.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import InvalidValue, Mismatch, NotApplicable, keyword
from dynid.excitation.basis import Basis, Fourier, Narrowed
from dynid.excitation.limits import MotionLimits, motion_limits
from dynid.robot.model import Robot

__all__ = ["AmplitudeLimits", "halper_rules", "series_without_offset"]

Array = NDArray[np.float64]

# Smooths the square root at zero, as a share of the velocity limit: amplitudes are overestimated, never underestimated.
_SMOOTHING = 1e-4
KINDS = ("position sum", "velocity sum", "coefficient")


@dataclass(frozen=True, eq=False)
class AmplitudeLimits:
    """Limits on the velocity amplitudes a and b of a Fourier series, per joint.

    With A_l = hypot(a_l, b_l): sum A_l / (l w) stays below `position` ("position sum"), sum A_l below `velocity`
    ("velocity sum"), and each of a_l and b_l below min(l w position / L, velocity) ("coefficient").

    Attributes
    ----------
    series : Narrowed
        The family of the motion, a subspace of `Fourier`.
    position : array, shape (n,)
        Largest distance from the middle of the motion, rad or m.
    velocity : array, shape (n,)
        Largest velocity, rad/s or m/s.
    """

    series: Narrowed
    position: Array
    velocity: Array

    def tightened(self, share: float) -> AmplitudeLimits:
        """All limits reduced by a share, 0 to 1."""
        return replace(self, position=(1 - share) * self.position, velocity=(1 - share) * self.velocity)

    def harmonics(self, X: Array) -> tuple[Array, Array]:
        """Velocity amplitudes a and b (n, L) of coefficients (n, k) of the family."""
        waves = (X @ self.series.directions.T)[:, 1:]
        half = waves.shape[1] // 2
        return waves[:, :half], waves[:, half:]

    def slacks(self, X: Array) -> dict[str, Array]:
        """Distance to every limit as a share of it, by kind: (n,) of the sums, (n, 2 L) of the coefficients."""
        a, b = self.harmonics(X)
        lw, amplitude = self._frequencies, self._smooth(a, b)
        return {
            KINDS[0]: 1.0 - (amplitude / lw).sum(axis=1) / self.position,
            KINDS[1]: 1.0 - amplitude.sum(axis=1) / self.velocity,
            KINDS[2]: 1.0 - np.abs(np.hstack([a, b])) / self._box,
        }

    def gradients(self, X: Array, kind: str, column: NDArray[np.intp]) -> Array:
        """Derivatives (m, n, k) of slacks of a kind over the coefficients; columns count as `slacks`, flattened."""
        a, b = self.harmonics(X)
        waves, count = np.hstack([a, b]), 2 * a.shape[1]
        out = np.zeros((len(column), *X.shape))
        rows = np.arange(len(column))
        if kind == KINDS[2]:
            joint, wave = np.divmod(column, count)
            slope = -np.sign(waves[joint, wave]) / self._box[joint, wave]
            out[rows, joint] = slope[:, None] * self.series.directions[1 + wave]
            return out
        weight, bound = {
            KINDS[0]: (1.0 / self._frequencies, self.position),
            KINDS[1]: (np.ones(a.shape[1]), self.velocity),
        }[kind]
        slope = np.tile(weight, 2) * waves / np.tile(self._smooth(a, b), 2) @ self.series.directions[1:]
        out[rows, column] = -(slope / bound[:, None])[column]
        return out

    @property
    def _frequencies(self) -> Array:
        """l w of the harmonics (L,), rad/s."""
        half = (len(self.series.directions) - 1) // 2
        return np.asarray(2 * np.pi / self.series.duration * np.arange(1, half + 1), dtype=float)

    @property
    def _box(self) -> Array:
        """Largest coefficients (n, 2 L)."""
        lw = self._frequencies
        return np.tile(np.minimum(np.outer(self.position, lw) / len(lw), self.velocity[:, None]), 2)

    def _smooth(self, a: Array, b: Array) -> Array:
        return np.sqrt(a**2 + b**2 + (_SMOOTHING * self.velocity[:, None]) ** 2)


def series_without_offset(duration: float, harmonics: int) -> Narrowed:
    """A start posture and harmonics that begin at rest there, without acceleration and with zero mean."""
    series = Fourier(duration, harmonics)
    offset = np.eye(series.size)[0]
    rows = [series.values(0.0, order)[0] for order in range(3)]
    return Narrowed(series, np.column_stack([offset, scipy.linalg.null_space(np.array([*rows, offset]))]))


def halper_rules(
    robot: Robot,
    duration: float = 20.0,
    harmonics: int = 10,
    *,
    limits: Mapping[str, Mapping[str, float]] | MotionLimits | None = None,
) -> dict[str, Any]:
    """Settings of `dynid.design_excitation` that are the rules of Halper (2024), equation 3.55.

    (a) least condition number, (b) a Fourier series without offset, (c) start at zero, at rest and without
    acceleration, (d) and (e) sums of amplitudes within ranges and velocity limits, (f) a limit on every coefficient.

    Parameters
    ----------
    robot : Robot
    duration : float
        Period of the motion, s.
    harmonics : int
        Number of harmonics, at least 3.
    limits : mapping or MotionLimits, optional
        Limits by joint name or pattern, beside those of the robot's model.

    Returns
    -------
    dict
        Keywords `family`, `criterion`, `start`, `limits` and `amplitudes`.

    Raises
    ------
    DataError
        If there are fewer than three harmonics, or zero is no posture inside the range of a joint.

    Examples
    --------
    >>> import dynid
    >>> robot = dynid.load_robot("twolink")
    >>> motion = dynid.design_excitation(robot, **dynid.excitation.halper_rules(robot, 6.0, 4), budget=20)
    >>> bool(abs(motion.at(0.0)[0]).max() < 1e-12)
    True
    """
    if isinstance(harmonics, bool) or not isinstance(harmonics, int) or harmonics < 3:
        raise InvalidValue(
            f"rules 'halper' need at least 3 harmonics to start at rest, got {harmonics!r:.40}", "harmonics"
        )
    held = limits if isinstance(limits, MotionLimits) else motion_limits(robot, limits)
    reach = np.minimum(held.upper, -held.lower)
    outside = [name for name, room in zip(robot.coordinates, reach, strict=True) if not room > 0]
    if outside:
        raise NotApplicable(
            f"rules 'halper' start at zero, which is not inside the range of joint '{outside[0]}'", "rules"
        )
    series = series_without_offset(duration, harmonics)
    return {
        "family": series,
        "criterion": "cond",
        "start": np.zeros(robot.n),
        "limits": held,
        "amplitudes": AmplitudeLimits(series, reach, held.velocity),
    }


def check_family(amplitudes: AmplitudeLimits | None, basis: Basis) -> None:
    """Refuse limits on the harmonics of another family than that of the motion."""
    if amplitudes is not None and amplitudes.series is not basis:
        raise Mismatch(f"the limits on amplitudes belong to another family: give {keyword('family')} as their series")
