"""Gains of the torque measurements of the units, relative to the mean of the fleet.

All units have the same bodies, so the part of the torque that the bodies make shows the gain of each unit and joint:
y = g W_s s + W_d d, where s are the shared parameters and d those of the unit, which absorb the gain. Shared parameters
and gains are found by turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.errors import TooFew
from dynid.fleet.arrow import solve_arrow
from dynid.fleet.folding import FoldedEntry
from dynid.fleet.whitened import WhitenedEntry
from dynid.identification.observation import fold
from dynid.parameters.base import BaseParameters

__all__ = ["FleetGains", "fleet_gains"]

Array = NDArray[np.float64]

_ITERATIONS, _CONVERGED = 50, 1e-7


@dataclass(frozen=True, eq=False)
class FleetGains:
    """Gains (unit, channel) with standard deviations, and the entries with them in the shared columns."""

    gains: Array
    std: Array
    folded: list[FoldedEntry]


def fleet_gains(
    base: BaseParameters,
    folded: Sequence[FoldedEntry],
    seen: Sequence[WhitenedEntry],
    units: Sequence[str],
    shared: NDArray[np.intp],
    ratio: Array,
) -> FleetGains:
    """Gain of every unit and channel; their mean over the units is one.

    Parameters
    ----------
    base : BaseParameters
        Base parameters.
    folded, seen : sequence
        The entries, folded and in units of their noise.
    units : sequence of str
        Names of the units.
    shared : ndarray of int
        Columns of the parameters that all units share.
    ratio : ndarray, shape (b,)
        Standard deviations relative to those of white noise.

    Returns
    -------
    FleetGains

    Raises
    ------
    DataError
        If there is one unit only, or nothing is shared.
    """
    if len(units) < 2 or not len(shared):
        raise TooFew("gains are relative to other units with the same bodies: two units and shared bodies are needed")
    channels = len(base.channels)
    own = np.array([j for j in range(base.count) if j not in set(shared.tolist())], dtype=np.intp)
    factors = [[_joined(unit, k, folded, seen) for k in range(channels)] for unit in units]
    gains, std = np.ones((len(units), channels)), np.full((len(units), channels), np.inf)
    for _ in range(_ITERATIONS):
        stacks = [_scaled(mine, g, shared) for mine, g in zip(factors, gains, strict=True)]
        rows, targets = [x[:, :-1] for x in stacks], [x[:, -1] for x in stacks]
        found = solve_arrow(rows, targets, range(len(units)), shared, own, np.zeros(0, dtype=np.intp))
        body = np.nan_to_num(found.shared)
        new = gains.copy()
        for u, mine in enumerate(factors):
            for k, factor in enumerate(mine):
                new[u, k], std[u, k] = _gain(factor, body, shared, own)
        new = new / np.nanmean(new, axis=0)
        change = float(np.nanmax(np.abs(new - gains)))
        gains = new
        if change < _CONVERGED:
            break
    place = {unit: k for k, unit in enumerate(units)}
    scaled = [
        replace(
            f, factors=tuple(_scaled([x], [g], shared) for x, g in zip(f.factors, gains[place[f.unit]], strict=True))
        )
        for f in folded
    ]
    return FleetGains(gains, std * float(np.sqrt(np.mean(ratio[shared] ** 2))), scaled)


def _joined(unit: str, k: int, folded: Sequence[FoldedEntry], seen: Sequence[WhitenedEntry]) -> Array:
    """Factor of one channel over all entries of a unit, in units of the noise."""
    mine = [f.factors[k] / s.noise[k] for f, s in zip(folded, seen, strict=True) if f.unit == unit and f.rows[k]]
    return fold(np.asfortranarray(np.vstack(mine))) if mine else np.zeros((0, folded[0].factors[k].shape[1]))


def _scaled(factors: Sequence[Array], gains: Sequence[float] | Array, shared: NDArray[np.intp]) -> Array:
    """The factors of all channels with the gain in the shared columns; a gain that is not known counts as one."""
    out = []
    for factor, gain in zip(factors, gains, strict=True):
        mine = factor.copy()
        mine[:, shared] *= gain if np.isfinite(gain) else 1.0
        out.append(mine)
    return np.vstack(out)


def _gain(factor: Array, body: Array, shared: NDArray[np.intp], own: NDArray[np.intp]) -> tuple[float, float]:
    """Gain of one channel and its standard deviation for white noise; NaN and infinite without rows."""
    if not len(factor):
        return float("nan"), float("inf")
    column = factor[:, shared] @ body
    lead = factor[:, own]
    used = lead[:, np.linalg.norm(lead, axis=0) > 0]
    if used.shape[1]:
        q, _ = np.linalg.qr(used)
        column = column - q @ (q.T @ column)
    power = float(column @ column)
    return float(column @ factor[:, -1]) / power, power**-0.5
