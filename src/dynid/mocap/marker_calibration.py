"""Positions of markers on their segments, from a static trial or a slow motion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import InvalidShape, InvalidValue, MissingData, named
from dynid.mocap.capture import Capture
from dynid.mocap.marker_kinematics import inverse_kinematics
from dynid.mocap.marker_model import Attachments, MarkerModel, checked_attachments
from dynid.robot.model import Robot

__all__ = ["MarkerCalibration", "calibrate_markers"]

Array = NDArray[np.float64]

_MAX_ITERATIONS = 40


@dataclass(frozen=True, eq=False)
class MarkerCalibration:
    """Positions of markers on their segments.

    Attributes
    ----------
    attachments : dict of str to (str, ndarray)
        Link or frame of each marker and its position there, m, for `inverse_kinematics`.
    moved : dict of str to float
        Distance of each marker from its initial position, m.
    rms : float
        Root mean square distance between markers and model, m.
    q : ndarray, shape (F, nq)
        Poses of the frames that were used.
    converged : bool
        Whether the search converged.
    """

    attachments: dict[str, tuple[str, Array]]
    moved: dict[str, float]
    rms: float
    q: Array
    converged: bool


def calibrate_markers(
    robot: Robot,
    markers: Capture,
    attachments: Attachments,
    *,
    q: ArrayLike | None = None,
    prior_std: float | Mapping[str, float] = 0.02,
    noise: float = 0.001,
    frames: int = 20,
) -> MarkerCalibration:
    """Estimate marker positions on the links from a static trial or a motion.

    Parameters
    ----------
    robot : Robot
        The robot or human model.
    markers : Capture
        Captured markers.
    attachments : mapping of str to (str, array_like)
        Link or frame of each marker and its approximate position there, m.
    q : array_like, shape (nq,) or (N, nq), optional
        Known poses; marker positions are then means in the frames of the links. Otherwise poses and positions are
        estimated together.
    prior_std : float or mapping of str to float, default 0.02
        Standard deviation of the approximate positions, m, for all markers or per marker; 0 keeps a position.
    noise : float, default 0.001
        Standard deviation of the captured markers, m.
    frames : int, default 20
        Number of evenly spaced frames to use.

    Returns
    -------
    MarkerCalibration
        Marker positions and poses.

    Raises
    ------
    DataError
        If a marker is never visible, or an option is invalid.
    """
    places = checked_attachments(attachments)
    if not noise > 0 or frames < 1:
        raise InvalidValue(f"{named('noise')} must be positive and frames at least 1")
    target = markers.positions[:, [markers.marker_index(name) for name in places]]
    unseen = [name for name, x in zip(places, target.swapaxes(0, 1), strict=True) if not np.isfinite(x).any()]
    if unseen:
        raise MissingData(f"marker '{unseen[0]}' is never visible in '{markers.name}'")
    model = MarkerModel(robot, places)
    if q is not None:
        poses = np.atleast_2d(np.asarray(q, dtype=float))
        if poses.shape[1] != robot.nq or len(poses) not in (1, len(target)):
            raise InvalidShape(f"q has shape {np.shape(q)}, expected ({robot.nq},) or ({len(target)}, {robot.nq})")
        poses = np.broadcast_to(poses, (len(target), robot.nq))
        return _known_pose(model, places, target, poses)
    prior = np.array([_std_of(prior_std, name) for name in places])
    some = np.unique(np.linspace(0, len(target) - 1, min(frames, len(target))).astype(int))
    start = Capture(markers.name, markers.rate, tuple(places), target[some])
    poses = inverse_kinematics(robot, start, attachments).q.copy()
    return _together(model, places, target[some], poses, prior, noise)


def _std_of(prior_std: float | Mapping[str, float], name: str) -> float:
    value = float(prior_std.get(name, 0.02)) if isinstance(prior_std, Mapping) else float(prior_std)
    if not value >= 0:
        raise InvalidValue(f"prior_std of marker '{name}' must not be negative, got {value:g}", "prior_std")
    return value


def _known_pose(
    model: MarkerModel, places: dict[str, tuple[str, Array]], target: Array, poses: Array
) -> MarkerCalibration:
    seen = np.isfinite(target[..., 0])
    local = np.full(target.shape, np.nan)
    for k, pose in enumerate(poses):
        turn, at = model.rotations(pose)
        local[k] = np.einsum("mji,mj->mi", turn, target[k] - at)
    offsets = np.nanmean(local, axis=0)
    rms = float(np.sqrt(np.nanmean(np.sum((local - offsets)[seen] ** 2, axis=1))))
    return _result(places, offsets, rms, np.array(poses), True)


def _together(
    model: MarkerModel, places: dict[str, tuple[str, Array]], target: Array, poses: Array, prior: Array, noise: float
) -> MarkerCalibration:
    """Gauss-Newton over poses and positions; poses are eliminated frame by frame (Schur complement)."""
    nominal = np.array([x for _, x in places.values()])
    offsets, free = nominal.copy(), np.repeat(prior > 0, 3)
    belief = np.repeat((noise / np.where(prior > 0, prior, 1.0)) ** 2, 3)
    converged = False
    for _ in range(_MAX_ITERATIONS):
        size = offsets.size
        matrix, right = np.diag(belief), -belief * (offsets - nominal).ravel()
        eliminated = []
        for k in range(len(poses)):
            seen = np.isfinite(target[k, :, 0])
            p, jacobian = model.jacobians(poses[k])
            turn, _ = model.rotations(poses[k])
            rows = np.where(seen[:, None, None], jacobian, 0.0).reshape(size, -1)
            spin = np.zeros((size, size))
            for m in np.flatnonzero(seen):
                spin[3 * m : 3 * m + 3, 3 * m : 3 * m + 3] = turn[m]
            off = np.where(seen[:, None], target[k] - p, 0.0).ravel()
            # Coordinates that no marker determines keep their value.
            inverse = np.linalg.pinv(rows.T @ rows, rcond=1e-10, hermitian=True)
            cross = rows.T @ spin
            matrix += spin.T @ spin - cross.T @ inverse @ cross
            right += spin.T @ off - cross.T @ (inverse @ (rows.T @ off))
            eliminated.append((inverse, rows.T @ off, cross))
        step = np.zeros(size)
        step[free] = np.linalg.solve(matrix[np.ix_(free, free)], right[free])
        turns = [inverse @ (slope - cross @ step) for inverse, slope, cross in eliminated]
        poses = np.array([model.moved(pose, turn) for pose, turn in zip(poses, turns, strict=True)])
        offsets = offsets + step.reshape(-1, 3)
        model.set_offsets(offsets)
        if max(np.abs(step).max(), max(np.abs(turn).max() for turn in turns)) < 1e-9:
            converged = True
            break
    off = np.array([model.positions(pose) for pose in poses]) - target
    rms = float(np.sqrt(np.nanmean(np.sum(off**2, axis=2))))
    return _result(places, offsets, rms, poses, converged)


def _result(
    places: dict[str, tuple[str, Array]], offsets: Array, rms: float, q: Array, converged: bool
) -> MarkerCalibration:
    attachments = {name: (frame, offsets[m]) for m, (name, (frame, _)) in enumerate(places.items())}
    moved = {name: float(np.linalg.norm(offsets[m] - old)) for m, (name, (_, old)) in enumerate(places.items())}
    return MarkerCalibration(attachments, moved, rms, q, converged)
