"""Predictions of torques with their standard deviation, which grows outside of the domain of validity."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.identification.estimate import Estimate, Prediction
from dynid.parameters.base_model import BaseModel
from dynid.signals.domain import Domain

__all__ = ["Domain", "friction_scale", "friction_std", "predict"]

Array = NDArray[np.float64]

# Standard deviation of a number between -1 and 1 that is more often near these bounds than between them (arcsine law).
_BOUNDED = 1.0 / np.sqrt(2.0)
# Samples whose regressor is held at a time.
_CHUNK = 4096


def predict(estimate: Estimate, domain: Domain, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Prediction:
    """Torques of a motion by an estimate, as `Estimate.predict`."""
    q, v, a = (np.atleast_2d(np.asarray(x, dtype=float)) for x in (q, v, a))
    parts = [_linear(estimate, *(x[k : k + _CHUNK] for x in (q, v, a))) for k in range(0, len(q), _CHUNK)]
    torque, variance = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    depends = np.concatenate([part[2] for part in parts])
    beyond = domain.beyond(q, v, a)
    # What joints at rest leave unknown shows only in motion of these joints.
    moved = {c for c, rows in zip(estimate.base.channels, estimate.rows, strict=True) if rows}
    left = np.asarray(beyond[:, [name not in moved for name in domain.joints]].any(axis=1))
    variance[depends & left[:, None]] = np.inf
    dry, change = friction_scale(estimate, domain)
    excess = domain.excess(v)
    for k, channel in enumerate(estimate.base.channels):
        if channel in domain.joints:
            j = domain.joints.index(channel)
            variance[:, k] += friction_std(dry[k], change[k], excess[:, j], domain.crossing[j]) ** 2
    return Prediction(estimate.base.channels, torque, np.sqrt(variance + estimate.rms**2), beyond)


def _linear(estimate: Estimate, q: Array, v: Array, a: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Predicted torques (N, channel), their variance by the covariance, and whether unknown parameters have a part."""
    rows = estimate.base.regressor(q, v, a)
    known = np.isfinite(np.diag(estimate.covariance))
    covariance = estimate.covariance[np.ix_(known, known)]
    seen = rows[..., known]
    variance = np.maximum(np.einsum("nci,nci->nc", seen @ covariance, seen), 0.0)
    return rows @ estimate.beta, variance, np.any(rows[..., ~known] != 0.0, axis=-1)


def friction_scale(estimate: Estimate, domain: Domain) -> tuple[Array, Array]:
    """Dry friction (channel,) of the identified laws, and their change up to the recorded velocity.

    Both are those of the line through the law at half and at all of that velocity, so that smoothing at rest and a
    Stribeck peak that has fallen do not count. The change is at least the residual, below which a law is not known.
    """
    robot, model = estimate.robot, BaseModel(estimate.base, estimate.beta)
    shares = np.array([0.0, 0.5, 1.0, -0.5, -1.0])
    q, v = np.zeros((len(shares), robot.nq)), np.zeros((len(shares), robot.nv))
    if robot.base == "floating":
        q[:, 6] = 1.0  # the base upright
    q[:, robot.nq - robot.n :] = 0.5 * (domain.low + domain.high)
    v[:, robot.nv - robot.n :] = shares[:, None] * domain.velocity
    # Laws may be custom terms: friction is all that the drives do in motion and not at rest.
    torque = model.drive_torque(q, v)[:, [model.channels.index(c) for c in estimate.base.channels]]
    half, full = (torque[1:] - torque[0]).reshape(2, 2, -1).transpose(1, 0, 2)
    dry, change = np.abs(2.0 * half - full).max(axis=0), 2.0 * np.abs(full - half).max(axis=0)
    return dry, np.maximum(change, estimate.rms)


def friction_std(dry: ArrayLike, change: ArrayLike, excess: ArrayLike, crossing: ArrayLike) -> Array:
    """Standard deviation that the unknown friction beyond the recorded velocity adds to a torque.

    A recording says nothing of the friction law f beyond its velocity V, where d = (|v| - V) / V is the excess. What
    was recorded bounds two unknowns. Its dry friction f(0) may rise or fall by itself per V, as with Stribeck friction,
    whose fall hides a rise: f(0) d. The change F = f(V) - f(0) may come from any power law between a dry and a
    quadratic one. A line that is fitted to a quadratic law crosses it at u V (`Domain.crossing`), and the law exceeds
    it beyond V by F ((2/u - 1) d + d^2/u). Dry and quadratic friction are no rare extremes, so the error follows
    the arcsine law between these bounds (evaluation of type B, JCGM 100:2008, 4.3):

        std = (f(0) d + F ((2/u - 1) d + d^2/u)) / sqrt(2)
    """
    d, u = np.asarray(excess, dtype=float), np.asarray(crossing, dtype=float)
    with np.errstate(invalid="ignore"):
        bent = (2.0 / u - 1.0) * d + d**2 / u
        std = _BOUNDED * (np.asarray(dry) * d + np.asarray(change) * bent)
    return np.where(np.isinf(d), np.inf, std)  # of a joint that stood still nothing is known
