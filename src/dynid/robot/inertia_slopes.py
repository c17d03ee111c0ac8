"""Derivatives of the inertial parameters of a rigid body with respect to another form of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import InvalidShape
from dynid.robot.inertia import TENSOR_INDEX, numbers

__all__ = ["com_jacobian"]

Array = NDArray[np.float64]

_ROW, _COLUMN = np.array(TENSOR_INDEX).T


def com_jacobian(mass: ArrayLike, com: ArrayLike) -> Array:
    """Jacobian of the inertial parameters with respect to mass, centre of mass and inertia tensor about it.

    Derivative of `inertia_from_com`, which is linear in the tensor: the Jacobian does not depend on it.

    Parameters
    ----------
    mass : array_like, shape (...)
        Mass (kg).
    com : array_like, shape (..., 3)
        Centre of mass (m).

    Returns
    -------
    ndarray, shape (..., 10, 10)
        Rows: m, mx, my, mz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the frame origin. Columns: mass, the coordinates of the
        centre of mass, and Ixx, Ixy, Iyy, Ixz, Iyz, Izz about it.

    Raises
    ------
    DataError
        For wrong shapes and values that are not finite.

    Examples
    --------
    >>> from dynid.inertia import com_jacobian
    >>> com_jacobian(2.0, [0.0, 0.0, 0.5])[4, :4]  # Ixx by mass and centre of mass
    array([0.25, 0.  , 0.  , 2.  ])
    """
    mass, com = numbers(mass, (), "mass"), numbers(com, (3,), "com")
    if mass.shape != com.shape[:-1]:
        raise InvalidShape(f"mass and com differ in number: {mass.shape}, {com.shape}", "mass")
    unit = np.eye(3)
    out = np.zeros((*mass.shape, 10, 10))
    out[...] = np.eye(10)
    out[..., 1:4, 0] = com
    out[..., 1:4, 1:4] = mass[..., None, None] * unit
    # Entries (i, j) of the tensor of a point mass, m (c'c 1 - c c'), by m and by c_k.
    diagonal = unit[_ROW, _COLUMN]
    out[..., 4:, 0] = np.sum(com**2, axis=-1)[..., None] * diagonal - com[..., _ROW] * com[..., _COLUMN]
    slope = 2 * diagonal[:, None] * com[..., None, :]
    slope = slope - unit[_ROW] * com[..., _COLUMN, None] - com[..., _ROW, None] * unit[_COLUMN]
    out[..., 4:, 1:4] = mass[..., None, None] * slope
    return out
