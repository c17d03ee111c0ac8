"""The error of an internal model that stays on, fitted to the torques of the feedback beside it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from dynid.errors import DataError, Mismatch, NotApplicable
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.robot.model import Robot
from dynid.robot.parts import checked
from dynid.simulation.torque_models import RigidModel

__all__ = ["fit_overlay"]

Array = NDArray[np.float64]

# Samples per block of the regressor.
_BLOCK = 2000


def fit_overlay(
    robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, feedback: ArrayLike, *, previous: RigidModel | None = None
) -> RigidModel:
    """Fit the error of a robot's internal model to the torques of its feedback: a correction for `overlay`.

    What a PD law adds to an internal model that is wrong and stays on, is the error of the model where tracking is
    tight (Krishnamoorthi 2018, case 2). Its base parameters are fitted by least squares. Where tracking is loose, the
    fit is repeated: lay the correction over the law, run the motion again, and give the correction as `previous`. What
    is left of the feedback is added to it.

    Parameters
    ----------
    robot : Robot
        Structure of the error: links and drive terms. Values of its parameters are not used.
    q, v, a : array_like, shape (N, n)
        The desired motion: positions, velocities and accelerations.
    feedback : array_like, shape (N, n)
        Torques (N m or N) of the feedback, without those of the internal model and of the overlay.
    previous : RigidModel, optional
        The correction that was laid over while `feedback` was recorded, as returned by this function.

    Returns
    -------
    RigidModel
        The correction. Its robot has the base parameters of the error and is not physically consistent. Combinations
        that the motion does not show stay as they were.

    Raises
    ------
    DataError
        If shapes do not agree, the base is not fixed, or `previous` has other parameters.

    Examples
    --------
    >>> import dynid, numpy as np
    >>> robot = dynid.load_robot("twolink")
    >>> q, v, a = np.random.default_rng(0).normal(size=(3, 100, 2))
    >>> missing = 0.2 * dynid.inverse_dynamics(robot, q, v, a)
    >>> correction = dynid.controllers.fit_overlay(robot, q, v, a, missing)
    >>> bool(np.allclose(correction.torques(q, v, a), missing))
    True
    """
    if robot.base != "fixed":
        raise NotApplicable(
            f"an overlay is fitted to the joints of a robot with a fixed base; that of '{robot.name}' moves"
        )
    if previous is not None and previous.robot.parameter_names != robot.parameter_names:
        raise Mismatch(
            "the previous correction has other parameters than the robot: give the same one in every fit", "previous"
        )
    shape = (max(len(np.atleast_1d(feedback)), 1), robot.n)
    motion = [checked(x, shape, name, DataError) for x, name in ((q, "q"), (v, "v"), (a, "a"))]
    target = checked(feedback, shape, "feedback", DataError)
    base = base_parameters(robot)
    error = base.join(_least_squares(base, motion, target))
    if previous is not None:
        error = error + previous.robot.parameters
    return RigidModel(robot.with_parameters(error))


def _least_squares(base: BaseParameters, motion: list[Array], target: Array) -> Array:
    """Base values (b,) of least norm in units of their columns, from a triangular factor."""
    b = base.count
    factor = np.zeros((0, b + 1))
    for start in range(0, len(target), _BLOCK):
        rows = slice(start, start + _BLOCK)
        W = base.regressor(*(x[rows] for x in motion)).reshape(-1, b)
        block = np.column_stack([W, target[rows].ravel()])
        factor = linalg.qr(np.vstack([factor, block]), mode="r")[0][: b + 1]
    size = np.linalg.norm(factor[:, :b], axis=0)
    size[size == 0] = 1.0
    return np.asarray(np.linalg.lstsq(factor[:, :b] / size, factor[:, b], rcond=None)[0] / size)
