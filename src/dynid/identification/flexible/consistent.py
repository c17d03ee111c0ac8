"""Physically consistent standard parameters of the links of a robot with flexible joints."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.feasibility.fit import fit
from dynid.feasibility.prior import consistent_prior
from dynid.feasibility.sets import feasible_set
from dynid.identification.flexible.sides import FlexibleModel

__all__ = ["consistent_links"]

Array = NDArray[np.float64]


def consistent_links(model: FlexibleModel, factor: Array) -> Array:
    """Standard parameters (p,) of the link side in the feasible set that fit the data best.

    `factor` (k, u + 1) is the factor of the weighted rows over all unknowns, base parameters of the links first. The
    other unknowns are eliminated: they take their best values for every choice of the links.
    """
    b = model.base.count
    last = np.concatenate([factor[:, b:-1], factor[:, :b], factor[:, -1:]], axis=1)
    others = factor.shape[1] - 1 - b
    R = scipy.linalg.qr(last, mode="r", check_finite=False)[0][others : last.shape[1], others:]
    feasible = feasible_set(model.links, "full")
    rows = np.pad(R[:, :-1] @ model.base.matrix, ((0, 0), (0, feasible.extra)))
    prior = consistent_prior(model.links, model.links.parameters).parameters
    return fit(feasible, rows, R[:, -1], prior).parameters
