"""Draws from the distribution of identified actuators, for training with randomized models.

    x = estimate + V sqrt(L) n, with covariance V L V' and n ~ N(0, 1);    value exp(change / value) if value > 2 std

Source: MacKay, Information Theory, Inference, and Learning Algorithms (2003), chapter 27 (Laplace's method).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dynid.actuators.bodies import consistent_robot
from dynid.actuators.estimate import ActuatorEstimate
from dynid.actuators.unknowns import SYMBOLS, Quantity, base_of
from dynid.errors import InvalidValue
from dynid.identification.parameter_draws import ParameterDraws

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
        raise InvalidValue(f"at least two draws are needed, got {count}", "count")
    values = _values(estimate, count, seed)
    drawn: list[tuple[str, str, str, str, Array]] = []
    layout = estimate.robot.layout
    unknown_bodies = any(x.quantity is Quantity.BODIES for x in estimate.unknowns)
    standard = np.array(list(_robots(estimate, values))) if unknown_bodies else None
    for k, x in enumerate(estimate.unknowns):
        symbol = SYMBOLS.get(x.quantity, str(x.quantity))
        for joint in x.joints:
            name, column = f"{symbol}_{joint}", values[:, k]
            if standard is not None and x.parameters:  # the armature of a consistent robot, not a combination
                column = standard[:, estimate.robot.parameter_names.index(name)]
            drawn.append((name, joint, symbol, x.unit, column))
    if standard is not None:
        drawn += [(p.name, "", p.symbol, p.unit, standard[:, i]) for i, p in enumerate(layout) if p.inertial]
    names, joints, symbols, units, columns = zip(*drawn, strict=True)
    return ParameterDraws(names, joints, symbols, units, np.column_stack(columns))


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


def _robots(estimate: ActuatorEstimate, values: Array) -> Iterator[Array]:
    """Standard parameters (p,) of a physically consistent robot for every draw."""
    others = [x for x in estimate.unknowns if x.quantity is not Quantity.BODIES]
    base = base_of(estimate.robot, others)
    known = np.where(np.isinf(estimate.std), 0.0, estimate.std)
    for row in values:
        yield consistent_robot(base, estimate.unknowns, row, np.diag((1e-2 * known) ** 2)).parameters
