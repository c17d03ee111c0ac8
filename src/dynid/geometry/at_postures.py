"""Errors at measured postures, with the geometry of the file and with an identified one, as vectors in the base.

    e = measured - predicted,    sensors placed best for each geometry

so that neither geometry is charged for where a tracker or a socket stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.geometry.calibrate import fitted_sensors
from dynid.geometry.estimate import GeometryEstimate
from dynid.geometry.measurements.measurement import Measurement, Space
from dynid.geometry.measurements.points import Points
from dynid.geometry.measurements.poses import Poses
from dynid.geometry.measurements.sockets import Sockets
from dynid.geometry.problem import Problem
from dynid.geometry.unknowns import UnknownKind

__all__ = ["PostureErrors", "posture_errors", "problem_of"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PostureErrors:
    """Errors of one sensor at its postures.

    Attributes
    ----------
    sensor, frame : str
        Name of the sensor, and the link or frame that it measures.
    place : ndarray of str, shape (N,)
        Place of each posture.
    q : ndarray, shape (N, n)
        Joint positions (rad or m).
    position : ndarray, shape (N, 3)
        Origin of the frame in the base, identified (m).
    before, after : ndarray, shape (N,)
        Distance between measured and predicted points (m) with the geometry of the file and the identified one.
    away_before, away_after : ndarray, shape (N, 3), or None
        The same as vectors in axes of the base (m), None where a sensor sees no direction.
    """

    sensor: str
    frame: str
    place: NDArray[np.str_]
    q: Array
    position: Array
    before: Array
    after: Array
    away_before: Array | None
    away_after: Array | None


def problem_of(estimate: GeometryEstimate, measurements: Sequence[Measurement]) -> tuple[Problem, Array]:
    """The problem of measurements on an identified robot, with its unknowns: joints as identified, sensors at zero.

    Parameters
    ----------
    estimate : GeometryEstimate
        The identified geometry.
    measurements : sequence of Measurement
        Those of the fit, or others.
    """
    problem = Problem.of(estimate.robot, tuple(measurements), estimate.model, estimate.bodies)
    found = {
        u.name: v for u, v in zip(estimate.unknowns, estimate.values, strict=True) if u.kind is not UnknownKind.SENSOR
    }
    x = np.array([0.0 if u.kind is UnknownKind.SENSOR else found.get(u.name, 0.0) for u in problem.unknowns])
    return problem, x


def posture_errors(estimate: GeometryEstimate, measurements: Sequence[Measurement]) -> tuple[PostureErrors, ...]:
    """Errors at measured postures with the geometry of the file and with the identified one.

    Parameters
    ----------
    estimate : GeometryEstimate
        The identified geometry.
    measurements : sequence of Measurement
        Those of the fit, or others of the same robot.

    Returns
    -------
    tuple of PostureErrors
        One per sensor.

    Examples
    --------
    >>> import dynid, numpy as np
    >>> from dynid.geometry import Points, calibrate_geometry, posture_errors
    >>> robot, rng = dynid.load_robot("tx40"), np.random.default_rng(0)
    >>> q = rng.uniform(-1.5, 1.5, (40, 6))
    >>> seen = dynid.dynamics.frame_placement(robot, q + 0.01, "link6")[:, :3, 3]
    >>> tracker = Points(q, "link6", points=seen)
    >>> errors = posture_errors(calibrate_geometry(robot, tracker, held_out=False), [tracker])[0]
    >>> bool(errors.after.mean() < 0.2 * errors.before.mean())
    True
    """
    problem, x = problem_of(estimate, measurements)
    both = [fitted_sensors(problem, v) for v in (np.zeros(len(x)), x)]
    out = []
    for k, m in enumerate(problem.measurements):
        residual = [problem.rows(v)[k].residual * m.std for v in both]
        seen = problem.rows(x)[k].seen
        residual = [np.where(seen, r, np.nan) for r in residual]
        spaces = [problem.space(k, v) for v in both]
        away = [_away(m, s, r) for s, r in zip(spaces, residual, strict=True)]
        position = spaces[1].frames[m.frame].origin
        before, after = (m.distances(r) for r in residual)
        out.append(PostureErrors(m.name, m.frame, m.place, m.q, position, before, after, *away))
    return tuple(out)


def _away(m: Measurement, space: Space, residual: Array) -> Array | None:
    """Measured less predicted position (N, 3) in axes of the base; None where the sensor sees no direction."""
    if isinstance(m, Sockets):
        return -residual
    if isinstance(m, Points):
        seen = residual.reshape(len(residual), -1, 3)
        some = np.isfinite(seen).any(1)
        mean = np.where(some, np.nansum(seen, axis=1) / np.maximum(np.isfinite(seen).sum(1), 1), np.nan)
        return -mean @ space.placement("base").rotation[0]
    if isinstance(m, Poses):
        if not m.in_hand:
            return -residual[:, :3] @ space.placement("base").rotation[0]
        turn = space.frames[m.frame].rotation @ space.placement("mount").rotation[0]
        # The target is fixed: what the sensor sees too far in one direction, the robot is off in the other.
        return np.asarray((turn @ residual[:, :3, None])[..., 0])
    return None
