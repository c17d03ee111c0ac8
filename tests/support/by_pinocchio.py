"""Quantities from Pinocchio, sample by sample, in the frames of this package."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from dynid import Robot
from dynid.robot.inertia import inertia_transform

Array = NDArray[np.float64]


def each(function: object, model: pin.Model, *arrays: Array) -> Array:
    """function(model, data, q[k], v[k], ...) for every sample, stacked."""
    data = model.createData()
    return np.array([np.array(function(model, data, *row)) for row in zip(*arrays, strict=True)])  # type: ignore[operator]


def regressor_in_link_frames(robot: Robot, model: pin.Model, q: Array, v: Array, a: Array) -> Array:
    """Pinocchio's regressor, its columns taken from bodies in joint frames to bodies in our link frames."""
    theirs = each(pin.computeJointTorqueRegressor, model, q, v, a).reshape(len(q), model.nv, -1)
    moves = [inertia_transform(joint.mount) for joint in robot.joints]
    if robot.base == "floating":
        moves = [np.eye(10), *moves]
    return np.concatenate([theirs[:, :, 10 * i : 10 * i + 10] @ move for i, move in enumerate(moves)], axis=2)
