"""Inertial parameters of one body from whitened rows R p = z: free, feasible, a point mass, or a known centre.

    argmin |R p - z|^2 over p: any p, those with a positive definite pseudo-inertia, or p = m (1, c, |c|^2 1 - c c')

Sources: Atkeson, An and Hollerbach, Estimation of Inertial Parameters of Manipulator Loads and Links (1986), for loads;
Wensing, Kim and Slotine (2018), for the cone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import NotIdentifiable
from dynid.feasibility.covariance import constrained_covariance
from dynid.feasibility.fit import fit
from dynid.feasibility.metrics import hessian_rows
from dynid.feasibility.sets import feasible_set
from dynid.robot.inertia import inertia_from_com
from dynid.robot.model import Robot
from dynid.robot.parts import Joint, Link

__all__ = ["FORMS", "BodyFit", "Form", "body_sizes", "fit_body", "point_mass"]

Array = NDArray[np.float64]
Form = Literal["full", "mass-centre", "mass"]
FORMS = ("full", "mass-centre", "mass")

_WEAKEST = 1e-9
# A payload's centre of mass lies within about a metre of the link origin: a weak prior for unidentified coordinates.
_REACH = 1.0
# Initial centres of mass (m) along each axis for a point mass: the cost is not convex.
_AROUND = 0.25
_TYPICAL_MASS, _TYPICAL_LENGTH = 1.0, 0.1


@dataclass(frozen=True, eq=False)
class BodyFit:
    """Inertial parameters (10,), covariance (10, 10), infinite where unidentified, and active constraints."""

    inertial: Array
    covariance: Array
    held: tuple[str, ...] = ()


def body_sizes(inertial: Array) -> Array:
    """Typical magnitude (10,) of each inertial parameter for a body of this mass and distance."""
    mass = abs(float(inertial[0])) or _TYPICAL_MASS
    length = max(float(np.linalg.norm(inertial[1:4])) / mass, _TYPICAL_LENGTH)
    return mass * np.repeat([1.0, length, length**2], [1, 3, 6])


def fit_body(R: Array, z: Array, form: Form, feasible: bool, centre: Array | None = None) -> BodyFit:
    """Least squares over the bodies of a form; R (k, 10) and z (k,) with unit noise."""
    if form == "full":
        return _feasible(R, z) if feasible else _free(R, z)
    if form == "mass-centre":
        return _point(R, z, feasible)
    assert centre is not None
    column = point_mass(1.0, centre)
    power = float(np.sum((R @ column) ** 2))
    if power == 0.0:
        raise NotIdentifiable("the mass of the payload is not identifiable from the motion")
    mass = float((R @ column) @ z) / power
    held = ("mass positive",) if feasible and mass < 0 else ()
    return BodyFit((0.0 if held else mass) * column, np.outer(column, column) / power, held)


def point_mass(mass: float, centre: Array) -> Array:
    """Inertial parameters (10,) of a point mass (kg) at a centre (3,) in m."""
    return inertia_from_com(mass, centre, np.zeros((3, 3)))


def _free(R: Array, z: Array) -> BodyFit:
    norms = np.linalg.norm(R, axis=0)
    scale = np.where(norms > 0, norms, 1.0)
    u, s, vt = np.linalg.svd(R / scale, full_matrices=False)
    strong = s > _WEAKEST * s[0]
    root = (vt[strong].T / s[strong]) / scale[:, None]
    covariance = root @ root.T
    lost = 1.0 - np.sum(vt[strong] ** 2, axis=0) > 1e-6
    covariance[lost, lost] = np.inf
    return BodyFit(root @ (u[:, strong].T @ z), covariance)


def _feasible(R: Array, z: Array) -> BodyFit:
    """Fit with a positive definite pseudo-inertia; unidentified parameters stay close to a ball."""
    free = _free(R, z)
    start = np.where(np.isfinite(np.diag(free.covariance)), free.inertial, 0.0)
    mass = max(abs(float(start[0])), 1e-6)
    centre = np.clip(start[1:4] / mass, -_REACH, _REACH)
    ball = inertia_from_com(mass, centre, 0.4 * mass * (0.5 * _TYPICAL_LENGTH) ** 2 * np.eye(3))
    joint = Joint("joint", "revolute", 0, np.eye(4), np.array([0.0, 0.0, 1.0]))
    alone = Robot("payload", (Link("base", np.zeros(10)), Link("payload", ball)), (joint,))
    bodies = feasible_set(alone, "full")
    found = fit(bodies, R, z, ball)
    pinned = np.sqrt(found.weight) * hessian_rows(bodies, found.parameters, ball, "euclidean")
    return BodyFit(found.parameters, constrained_covariance(found, R, pinned), tuple(found.active))


def _point(R: Array, z: Array, feasible: bool) -> BodyFit:
    """Fit a point mass: unknown mass and centre, from several initial centres."""
    pin = np.hstack([np.zeros((3, 1)), np.eye(3) / _REACH])

    def rest(x: Array) -> Array:
        return np.concatenate([R @ point_mass(x[0], x[1:]) - z, pin @ x])

    def slope(x: Array) -> Array:
        return np.vstack([R @ _point_slope(x), pin])

    lowest = 0.0 if feasible else -np.inf
    best = None
    for start in np.vstack([np.zeros((1, 3)), _AROUND * np.eye(3), -_AROUND * np.eye(3)]):
        column = R @ point_mass(1.0, start)
        power = float(column @ column)
        mass = float(column @ z) / power if power > 0 else _TYPICAL_MASS
        first = np.concatenate([[max(mass, 1e-3) if feasible else mass or 1e-3], start])
        lower = np.array([lowest, *[-np.inf] * 3])
        scale = np.array([max(abs(first[0]), 1e-3), *[_TYPICAL_LENGTH] * 3])
        found = scipy.optimize.least_squares(
            rest, first, slope, (lower, np.inf), x_scale=scale, xtol=1e-14, ftol=1e-14, gtol=1e-14, max_nfev=300
        )
        if best is None or found.cost < best.cost * (1 - 1e-9):
            best = found
    assert best is not None
    x = best.x
    scale = np.array([max(abs(x[0]), 1e-6), *[_TYPICAL_LENGTH] * 3])
    rows = slope(x) * scale
    covariance = np.linalg.pinv(rows.T @ rows, rcond=1e-15, hermitian=True) * np.outer(scale, scale)
    D = _point_slope(x)
    held = ("mass positive",) if feasible and x[0] <= 1e-9 else ()
    return BodyFit(point_mass(x[0], x[1:]), D @ covariance @ D.T, held)


def _point_slope(x: Array) -> Array:
    """Derivative (10, 4) of the inertial parameters of a point mass by mass and centre."""
    mass, c = float(x[0]), x[1:]
    out = np.zeros((10, 4))
    out[:, 0] = point_mass(1.0, c)
    for i, e in enumerate(np.eye(3)):
        out[1 + i, 1 + i] = mass
        turned = mass * (2 * c[i] * np.eye(3) - np.outer(e, c) - np.outer(c, e))
        out[4:, 1 + i] = turned[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
    return out
