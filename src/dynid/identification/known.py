"""What a recording says of each standard parameter: identified alone, only in combination, or left to the prior.

Which combinations any motion could show follows from the base parameters. What this recording shows follows from their
covariance: with an a-priori covariance S of the standard parameters and the covariance C of the base parameters K pi,
the covariance that remains is S - S K' (K S K' + C)^-1 K S. A parameter whose variance stays above half of the
a-priori one is unidentifiable from this recording: the prior says more about it than the data. The a-priori covariance
is that of methods with a prior: every pseudo-inertia is known within a factor of about two. A value that the data moved
away from the prior by more than that is part of an identified combination.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynid.feasibility.metrics import quadratic_rows
from dynid.feasibility.prior import consistent_prior, wide_bodies

if TYPE_CHECKING:
    from dynid.identification.estimate import Estimate

__all__ = ["ParameterClass", "parameter_classes", "parameter_remarks", "prior_shares"]

Array = NDArray[np.float64]

# Share of the a-priori variance that is left; at a half, data and prior say equally much.
_PRIOR_DECIDES = 0.5


class ParameterClass(StrEnum):
    """Whether a standard parameter is identifiable, in the words of `BaseParameters.classes`."""

    IDENTIFIABLE = "identifiable"
    COMBINED = "combined"
    UNIDENTIFIABLE = "unidentifiable"


def parameter_classes(estimate: Estimate) -> dict[str, ParameterClass]:
    """Class of every standard parameter in this recording, by name.

    A parameter that no motion shows, or that this recording determines less than the prior does, is unidentifiable.
    """
    robot, kinds = estimate.robot, estimate.base.classes
    variance = np.diag(_prior_covariance(estimate))
    shares = prior_shares(estimate)
    known = {p.owner for p, value in zip(robot.layout, robot.parameters, strict=True) if p.symbol == "m" and value > 0}
    given = np.array([p.owner in known for p in robot.layout])
    moved = given & ((estimate.parameters - robot.parameters) ** 2 > variance)
    if estimate.standard is None:
        moved[:] = False
    return {
        name: ParameterClass.UNIDENTIFIABLE if share > _PRIOR_DECIDES and not far else ParameterClass(kinds[name])
        for name, share, far in zip(robot.parameter_names, shares, moved, strict=True)
    }


def parameter_remarks(estimate: Estimate) -> dict[str, str]:
    """What the reader of an exported model must know of each link and of the joint that moves it, by link.

    Links with parameters that are all identified alone are left out.
    """
    robot, classes = estimate.robot, estimate.parameter_classes
    carrier = {joint.name: robot.links[i + 1].name for i, joint in enumerate(robot.joints)}
    found: dict[str, dict[ParameterClass, list[str]]] = {}
    for p in robot.layout:
        kind = classes[p.name]
        # A motor of a coupled drive belongs to no single link.
        link = p.owner if p.inertial else carrier.get(p.owner, "")
        if kind != ParameterClass.IDENTIFIABLE and link:
            symbol = p.symbol if p.inertial else p.name
            found.setdefault(link, {}).setdefault(kind, []).append(symbol)
    # Only a method with a prior keeps what it cannot identify near it.
    kept = ", the a-priori model decides" if estimate.standard is not None else ""
    words = {
        ParameterClass.UNIDENTIFIABLE: f"not identifiable from this recording{kept}",
        ParameterClass.COMBINED: "identifiable only in combination",
    }
    return {
        link: "; ".join(f"{words[k]}: {', '.join(kinds[k])}" for k in words if k in kinds)
        for link, kinds in found.items()
    }


def prior_shares(estimate: Estimate) -> Array:
    """Share (p,) of the a-priori variance of each standard parameter that is left; 1 where the data say nothing."""
    robot, base = estimate.robot, estimate.base
    before = _prior_covariance(estimate)
    variance = np.diag(before)
    finite = np.isfinite(np.diag(estimate.covariance))
    K, C = base.matrix[finite], estimate.covariance[np.ix_(finite, finite)]
    carried = before @ K.T
    total = K @ carried + C
    size = np.sqrt(np.maximum(np.diag(total), 1e-300))
    known = carried / size
    inner = np.linalg.pinv(total / np.outer(size, size), hermitian=True)
    gained = np.einsum("ij,jk,ik->i", known, inner, known)
    left = np.clip(1.0 - gained / variance, 0.0, 1.0)
    if estimate.standard_covariance is not None:
        # Of methods with a prior this is the covariance that remains itself.
        left = np.maximum(left, np.clip(np.diag(estimate.standard_covariance) / variance, 0.0, 1.0))
    inertial = np.array([p.inertial for p in robot.layout])
    # Drive parameters have no a-priori covariance of their own: only what is not observed at all is open.
    unseen = ~np.any(np.abs(K) > 0, axis=0)
    return np.where(unseen, 1.0, np.where(inertial, left, 0.0))


def _prior_covariance(estimate: Estimate) -> Array:
    """Covariance (p, p) of a prior that knows each pseudo-inertia within a factor of about two."""
    robot = estimate.robot
    prior = consistent_prior(robot).parameters
    inertial = np.array([p.inertial for p in robot.layout])
    typical = np.maximum(np.abs(prior), np.abs(estimate.parameters))
    scale = np.where(inertial | (typical > 0), np.maximum(typical, 1e-300), 1.0)
    # Standard parameters that no method estimated may be far from any body.
    bodies = wide_bodies(robot, prior if estimate.standard is None else estimate.standard, prior)
    rows = quadratic_rows(robot, bodies, "pullback", scale)[0]
    unit = np.linalg.norm(rows, axis=0)
    root = np.linalg.pinv(rows / unit) / unit[:, None]
    return np.asarray(root @ root.T)
