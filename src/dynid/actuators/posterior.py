"""Draws from the distribution of identified actuators, for training with randomized models."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dynid.actuators.bodies import consistent_robot
from dynid.actuators.draws import ParameterDraws
from dynid.actuators.estimate import ActuatorEstimate
from dynid.actuators.unknowns import SYMBOLS, ParameterSpace, Quantity, base_of
from dynid.errors import DataError

__all__ = ["draw_actuators"]

Array = NDArray[np.float64]

# A positive value that is this many standard deviations from zero is drawn in its logarithm, a smaller one is cut.
_CLEAR = 2.0


def draw_actuators(estimate: ActuatorEstimate, count: int, *, seed: int = 0) -> ParameterDraws:
    """Draw values of the unknowns that the log allows, with their correlation.

    The distribution is normal around the estimate with its covariance (Laplace). Values that must be positive are drawn
    in their logarithm where they are clearly positive, and cut at zero otherwise. Unknown bodies of every draw are
    made physically consistent. A value that the log does not show stays at its estimate.

    Parameters
    ----------
    estimate : ActuatorEstimate
    count : int
        Number of draws, at least two.
    seed : int
        Seed of the draws.

    Returns
    -------
    ParameterDraws
        One parameter per unknown and joint; all inertial parameters of the links where bodies are unknown.

    Raises
    ------
    DataError
        If fewer than two draws are wanted.
    """
    if count < 2:
        raise DataError(f"at least two draws are needed, got {count}")
    values = _values(estimate, count, seed)
    names, joints, symbols, units, columns = [], [], [], [], []
    for k, x in enumerate(estimate.unknowns):
        if x.quantity is Quantity.BODIES:
            continue
        symbol = SYMBOLS.get(x.quantity, str(x.quantity))
        for joint in x.joints:
            names.append(f"{symbol}_{joint}")
            joints.append(joint)
            symbols.append(symbol)
            units.append(x.unit)
            columns.append(values[:, k])
    if any(x.quantity is Quantity.BODIES for x in estimate.unknowns):
        layout = estimate.robot.layout
        index = [i for i, p in enumerate(layout) if p.inertial]
        bodies = np.array(list(_bodies(estimate, values)))
        for i in index:
            names.append(layout[i].name)
            joints.append("")
            symbols.append(layout[i].symbol)
            units.append(layout[i].unit)
            columns.append(bodies[:, i])
    return ParameterDraws(tuple(names), tuple(joints), tuple(symbols), tuple(units), np.column_stack(columns))


def _values(estimate: ActuatorEstimate, count: int, seed: int) -> Array:
    """Draws (count, C) of the unknowns."""
    rng = np.random.default_rng(seed)
    size, vectors = np.linalg.eigh(estimate.covariance)
    root = vectors * np.sqrt(np.maximum(size, 0.0))
    away = rng.standard_normal((count, len(size))) @ root.T
    away[:, np.isinf(estimate.std)] = 0.0
    out = estimate.values + away
    for k, x in enumerate(estimate.unknowns):
        if np.isinf(x.least):
            continue
        value = estimate.values[k]
        if value > _CLEAR * estimate.std[k]:
            out[:, k] = value * np.exp(away[:, k] / value)
        else:
            out[:, k] = np.maximum(out[:, k], x.least)
    return out


def _bodies(estimate: ActuatorEstimate, values: Array) -> Iterator[Array]:
    """Standard parameters (p,) of a physically consistent robot for every draw."""
    others = [x for x in estimate.unknowns if x.quantity is not Quantity.BODIES]
    space = ParameterSpace(estimate.robot, estimate.law, estimate.unknowns, base_of(estimate.robot, others))
    known = np.where(np.isinf(estimate.std), 0.0, estimate.std)
    for row in values:
        yield consistent_robot(space, row, np.diag((1e-2 * known) ** 2)).parameters
