"""The ten inertial parameters of a rigid body and their equivalent forms.

All functions work on the last axis, so that stacks of bodies (..., 10) are converted at once. The order is that of
Pinocchio: m, mx, my, mz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz, with the first moments m c and the inertia tensor about the
frame origin (Ixy = -integral of x y dm).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError, Infeasible, InvalidShape, InvalidType, InvalidValue, NotFinite, UnknownName
from dynid.robot.parts import checked, checked_placement

__all__ = [
    "INERTIAL_SYMBOLS",
    "TENSOR_INDEX",
    "TEXTBOOK_SYMBOLS",
    "consistency_room",
    "inertia_from_com",
    "inertia_from_log_cholesky",
    "inertia_from_pseudo",
    "inertia_from_spatial",
    "inertia_to_com",
    "inertia_to_log_cholesky",
    "inertia_to_pseudo",
    "inertia_to_spatial",
    "inertia_transform",
    "inertia_violations",
    "move_inertia",
    "numbers",
    "reorder_inertia",
]

Array = NDArray[np.float64]

INERTIAL_SYMBOLS = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")

# The order of the parameters of a link in textbooks on base parameters.
TEXTBOOK_SYMBOLS = ("Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz", "mx", "my", "mz", "m")

_ORDERS = {
    "pinocchio": INERTIAL_SYMBOLS,
    "khalil": ("m", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz"),
    "sympybotics": TEXTBOOK_SYMBOLS,
}

# Rounding errors of a body: relative to its largest principal inertia, and to the tensor about the origin of its frame.
_ROUNDING, _CANCELLED = 1e-10, 1e-12

# Row, column of each of the six tensor entries in INERTIAL_SYMBOLS[4:].
TENSOR_INDEX = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))


def numbers(given: ArrayLike, tail: tuple[int, ...], what: str) -> Array:
    """A stack of arrays as finite floats, each of shape `tail`."""
    try:
        out = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise InvalidType(f"{what} must be numbers, got {given!r:.60}") from None
    if out.shape[out.ndim - len(tail) :] != tail:
        raise InvalidShape(f"{what} must have shape (..., {', '.join(map(str, tail))}), got {out.shape}")
    if not np.all(np.isfinite(out)):
        raise NotFinite(f"{what}: a value is not finite")
    return out


def _ten(pi: ArrayLike) -> Array:
    """Inertial parameters (..., 10) as finite floats."""
    return numbers(pi, (10,), "inertial parameters")


def _tensor(pi: Array) -> Array:
    """Inertia tensors (..., 3, 3) about the origin."""
    out = np.empty((*pi.shape[:-1], 3, 3))
    for k, (i, j) in enumerate(TENSOR_INDEX):
        out[..., i, j] = out[..., j, i] = pi[..., 4 + k]
    return out


def _assemble(mass: Array, moment: Array, tensor: Array) -> Array:
    """Inertial parameters from mass, first moment and tensor about the origin."""
    pi = np.empty((*mass.shape, 10))
    pi[..., 0] = mass
    pi[..., 1:4] = moment
    for k, (i, j) in enumerate(TENSOR_INDEX):
        pi[..., 4 + k] = 0.5 * (tensor[..., i, j] + tensor[..., j, i])
    return pi


def _steiner(moment: Array, arm: Array) -> Array:
    """Tensor of a point mass with first moment `moment` at `arm`: (h.c) 1 - h c'."""
    dot = np.sum(moment * arm, axis=-1)[..., None, None]
    return dot * np.eye(3) - 0.5 * (moment[..., :, None] * arm[..., None, :] + arm[..., :, None] * moment[..., None, :])


def inertia_from_com(mass: ArrayLike, com: ArrayLike, inertia: ArrayLike) -> Array:
    """Inertial parameters from mass, centre of mass and inertia tensor about the centre of mass.

    Parameters
    ----------
    mass : array_like, shape (...)
        Mass (kg).
    com : array_like, shape (..., 3)
        Centre of mass (m).
    inertia : array_like, shape (..., 3, 3)
        Inertia tensor about the centre of mass (kg m2), in the axes of the frame.

    Returns
    -------
    ndarray, shape (..., 10)
        m, mx, my, mz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the frame origin.

    Raises
    ------
    DataError
        For wrong shapes and values that are not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from dynid.inertia import inertia_from_com
    >>> inertia_from_com(2.0, [0.0, 0.0, 0.5], 0.1 * np.eye(3))
    array([2. , 0. , 0. , 1. , 0.6, 0. , 0.6, 0. , 0. , 0.1])
    """
    mass, com, inertia = numbers(mass, (), "mass"), numbers(com, (3,), "com"), numbers(inertia, (3, 3), "inertia")
    if not mass.shape == com.shape[:-1] == inertia.shape[:-2]:
        raise InvalidShape(
            f"mass, com and inertia differ in number: {mass.shape}, {com.shape}, {inertia.shape}", "mass"
        )
    moment = mass[..., None] * com
    return _assemble(mass, moment, inertia + _steiner(moment, com))


def inertia_to_com(pi: ArrayLike) -> tuple[Array, Array, Array]:
    """Mass, centre of mass and inertia tensor about the centre of mass.

    Parameters
    ----------
    pi : array_like, shape (..., 10)
        Inertial parameters.

    Returns
    -------
    mass : ndarray, shape (...)
        Mass (kg).
    com : ndarray, shape (..., 3)
        Centre of mass (m).
    inertia : ndarray, shape (..., 3, 3)
        Inertia tensor about the centre of mass (kg m2).

    Raises
    ------
    DataError
        If a mass is zero.
    """
    pi = _ten(pi)
    mass = pi[..., 0]
    if np.any(mass == 0):
        raise InvalidValue("a body of zero mass has no centre of mass", "mass")
    com = pi[..., 1:4] / mass[..., None]
    return mass, com, _tensor(pi) - _steiner(pi[..., 1:4], com)


def inertia_to_pseudo(pi: ArrayLike) -> Array:
    """Pseudo-inertia matrix [[Sigma, h], [h', m]] with Sigma = tr(I)/2 1 - I (Wensing, Kim, Slotine 2018).

    A body is physically consistent exactly where this matrix is positive definite (semidefinite on the boundary).

    Parameters
    ----------
    pi : array_like, shape (..., 10)
        Inertial parameters.

    Returns
    -------
    ndarray, shape (..., 4, 4)
        Second moments of the mass (kg m2), first moments (kg m) and mass (kg).
    """
    pi = _ten(pi)
    tensor = _tensor(pi)
    out = np.empty((*pi.shape[:-1], 4, 4))
    trace = np.trace(tensor, axis1=-2, axis2=-1)[..., None, None]
    out[..., :3, :3] = 0.5 * trace * np.eye(3) - tensor
    out[..., :3, 3] = out[..., 3, :3] = pi[..., 1:4]
    out[..., 3, 3] = pi[..., 0]
    return out


def inertia_from_pseudo(pseudo: ArrayLike) -> Array:
    """Inertial parameters from the pseudo-inertia matrix.

    Parameters
    ----------
    pseudo : array_like, shape (..., 4, 4)
        Pseudo-inertia as returned by `inertia_to_pseudo`.

    Returns
    -------
    ndarray, shape (..., 10)
        Inertial parameters.
    """
    pseudo = numbers(pseudo, (4, 4), "pseudo-inertia")
    sigma = pseudo[..., :3, :3]
    trace = np.trace(sigma, axis1=-2, axis2=-1)[..., None, None]
    return _assemble(pseudo[..., 3, 3], pseudo[..., :3, 3], trace * np.eye(3) - sigma)


def inertia_to_spatial(pi: ArrayLike) -> Array:
    """Spatial inertia matrix about the frame origin, in the order (linear, angular).

    Parameters
    ----------
    pi : array_like, shape (..., 10)
        Inertial parameters.

    Returns
    -------
    ndarray, shape (..., 6, 6)
        [[m 1, -[h]], [[h], I]] with [h] the cross-product matrix of the first moment.
    """
    pi = _ten(pi)
    out = np.zeros((*pi.shape[:-1], 6, 6))
    out[..., :3, :3] = pi[..., 0, None, None] * np.eye(3)
    hx, hy, hz = pi[..., 1], pi[..., 2], pi[..., 3]
    cross = np.zeros((*pi.shape[:-1], 3, 3))
    cross[..., 0, 1], cross[..., 0, 2] = -hz, hy
    cross[..., 1, 0], cross[..., 1, 2] = hz, -hx
    cross[..., 2, 0], cross[..., 2, 1] = -hy, hx
    out[..., 3:, :3] = cross
    out[..., :3, 3:] = -cross
    out[..., 3:, 3:] = _tensor(pi)
    return out


def inertia_from_spatial(spatial: ArrayLike) -> Array:
    """Inertial parameters from the spatial inertia matrix.

    Parameters
    ----------
    spatial : array_like, shape (..., 6, 6)
        Spatial inertia as returned by `inertia_to_spatial`.

    Returns
    -------
    ndarray, shape (..., 10)
        Inertial parameters.
    """
    spatial = numbers(spatial, (6, 6), "spatial inertia")
    cross = spatial[..., 3:, :3]
    moment = np.stack([cross[..., 2, 1], cross[..., 0, 2], cross[..., 1, 0]], axis=-1)
    return _assemble(spatial[..., 0, 0], moment, spatial[..., 3:, 3:])


def inertia_to_log_cholesky(pi: ArrayLike) -> Array:
    """Log-Cholesky parameters: ten unconstrained values per body (Rucker and Wensing 2022).

    The pseudo-inertia is U U' with U = exp(alpha) [[exp d1, s12, s13, t1], [0, exp d2, s23, t2], [0, 0, exp d3, t3],
    [0, 0, 0, 1]].

    Parameters
    ----------
    pi : array_like, shape (..., 10)
        Inertial parameters of physically consistent bodies.

    Returns
    -------
    ndarray, shape (..., 10)
        alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3.

    Raises
    ------
    DataError
        If a pseudo-inertia is not positive definite.
    """
    pseudo = inertia_to_pseudo(pi)
    try:
        lower = np.linalg.cholesky(pseudo[..., ::-1, ::-1])
    except np.linalg.LinAlgError:
        raise Infeasible("log-Cholesky form needs a positive definite pseudo-inertia") from None
    upper = lower[..., ::-1, ::-1]
    scale = upper[..., 3, 3]
    u = upper / scale[..., None, None]
    return np.stack(
        [
            np.log(scale),
            np.log(u[..., 0, 0]),
            np.log(u[..., 1, 1]),
            np.log(u[..., 2, 2]),
            u[..., 0, 1],
            u[..., 1, 2],
            u[..., 0, 2],
            u[..., 0, 3],
            u[..., 1, 3],
            u[..., 2, 3],
        ],
        axis=-1,
    )


def inertia_from_log_cholesky(theta: ArrayLike) -> Array:
    """Inertial parameters from log-Cholesky parameters; the result is always physically consistent.

    Parameters
    ----------
    theta : array_like, shape (..., 10)
        Log-Cholesky parameters as returned by `inertia_to_log_cholesky`.

    Returns
    -------
    ndarray, shape (..., 10)
        Inertial parameters.
    """
    theta = _ten(theta)
    u = np.zeros((*theta.shape[:-1], 4, 4))
    for k in range(3):
        u[..., k, k] = np.exp(theta[..., 1 + k])
    u[..., 3, 3] = 1.0
    u[..., 0, 1], u[..., 1, 2], u[..., 0, 2] = theta[..., 4], theta[..., 5], theta[..., 6]
    u[..., :3, 3] = theta[..., 7:10]
    u *= np.exp(theta[..., 0])[..., None, None]
    return inertia_from_pseudo(u @ np.swapaxes(u, -1, -2))


def reorder_inertia(pi: ArrayLike, source: str, target: str) -> Array:
    """Inertial parameters in the order of another convention.

    Parameters
    ----------
    pi : array_like, shape (..., 10)
        Inertial parameters in the order `source`.
    source, target : {"pinocchio", "khalil", "sympybotics"}
        Orders of the input and of the result; dynid uses that of Pinocchio.

    Returns
    -------
    ndarray, shape (..., 10)
        The same parameters in the order `target`.

    Raises
    ------
    DataError
        For an unknown order.

    Examples
    --------
    >>> from dynid.inertia import reorder_inertia
    >>> reorder_inertia(range(10), "pinocchio", "khalil")
    array([0., 1., 2., 3., 4., 5., 7., 6., 8., 9.])
    """
    for name in (source, target):
        if name not in _ORDERS:
            raise UnknownName(f"unknown parameter order '{name}', known: {', '.join(_ORDERS)}", "order")
    index = [_ORDERS[source].index(s) for s in _ORDERS[target]]
    return _ten(pi)[..., index]


def inertia_transform(h: Array) -> Array:
    """Matrix (10, 10) that maps inertial parameters from a child frame to its parent frame: J -> H J H'."""
    return inertia_from_pseudo(h @ inertia_to_pseudo(np.eye(10)) @ h.T).T


def move_inertia(pi: ArrayLike, h: ArrayLike) -> Array:
    """Inertial parameters of a body expressed in another frame.

    Inertial parameters of rigidly connected bodies that are expressed in the same frame add up.

    Parameters
    ----------
    pi : array_like, shape (..., 10)
        Inertial parameters in the frame of the body.
    h : array_like, shape (4, 4)
        Placement of the frame of the body in the target frame.

    Returns
    -------
    ndarray, shape (..., 10)
        Inertial parameters in the target frame.

    Raises
    ------
    DataError
        If `h` is not a rotation and a translation.
    """
    return _ten(pi) @ inertia_transform(checked_placement(h, "placement of the body", DataError)).T


def inertia_violations(pi: ArrayLike) -> list[str]:
    """Conditions of physical consistency that one body violates.

    Every check of a body in dynid ends here. Rounding errors are not reported: an eigenvalue is negative below -1e-10
    times the largest one, or -1e-12 times the largest entry of the tensor about the frame origin, from which it is
    computed.

    Parameters
    ----------
    pi : array_like, shape (10,)
        Inertial parameters of one body.

    Returns
    -------
    list of str
        One message per violation: mass, positive definite tensor, triangle inequality. Empty if there is none.

    Examples
    --------
    >>> from dynid.inertia import inertia_violations
    >>> inertia_violations([1.0, 0.0, 0.0, 0.0, 0.1, 0.0, 0.1, 0.0, 0.0, 0.3])
    ['triangle inequality broken: principal inertias 0.1 + 0.1 < 0.3 kg m2']
    """
    pi = checked(pi, (10,), "inertial parameters of one body", DataError)
    found = []
    mass = pi[0]
    if mass <= 0:
        found.append(f"mass {mass:.4g} kg is not positive")
        if mass == 0 and np.any(pi[1:4] != 0):
            found.append("first moment without mass")
    eigenvalues, room, rounding = consistency_room(pi)
    where = "the origin" if mass == 0 else "the centre of mass"
    if eigenvalues[0] < -rounding:
        found.append(f"inertia about {where} has the negative principal value {eigenvalues[0]:.4g} kg m2")
    elif room < -rounding:
        found.append(
            "triangle inequality broken: principal inertias "
            f"{eigenvalues[0]:.4g} + {eigenvalues[1]:.4g} < {eigenvalues[2]:.4g} kg m2"
        )
    return found


def consistency_room(pi: Array) -> tuple[Array, float, float]:
    """Principal inertias (3,) about the centre of mass, their room, and rounding (kg m2).

    The room is negative for a negative principal inertia and for a broken triangle inequality.
    """
    eigenvalues = np.asarray(np.linalg.eigvalsh(_tensor(pi) if pi[0] == 0 else inertia_to_com(pi)[2]), dtype=float)
    room = float(min(eigenvalues[0], eigenvalues[0] + eigenvalues[1] - eigenvalues[2]))
    rounding = _ROUNDING * float(np.abs(eigenvalues).max()) + _CANCELLED * float(np.abs(pi[4:]).max())
    return eigenvalues, room, max(rounding, 1e-300)
