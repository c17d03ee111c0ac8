"""Units whose bodies or errors are not those of the other units from their first date on.

Every unit is compared with every other one over the dates before its bodies changed. The distance of a unit is the
median of the squares of these differences in units of their covariances, and what is usual is the median of the
distances. A few units that are unlike the others, however far, change neither. Joints in another order and
the like may leave so large errors of the torques that nothing is said of the bodies: errors are compared in the same
manner.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.fleet.bodies import BodySeries, PayloadChange, between, fit_payload

__all__ = ["Unlike", "unlike_units"]

Array = NDArray[np.float64]

# Units from which one can be told from the others, and units that each is compared with at most.
_FEWEST, _COMPARED = 3, 30
# Mean square of what a payload may leave of a difference, relative to the usual one between units.
_LEFT = 4.0
# Median of the square of a standard normal number. Units may differ along one direction only, and the square of one
# normal number has the widest tail relative to its median.
_MEDIAN = float(scipy.stats.chi2.ppf(0.5, 1))


@dataclass(frozen=True, eq=False)
class Unlike:
    """How a unit differs from the others.

    Attributes
    ----------
    ratio : float
        Difference of its bodies from those of other units relative to the usual one between units.
    joint, errors : str and float
        Joint with the largest error of the torques relative to that of other units, and this ratio.
    p_value : float
        p-value, not corrected for the number of tests.
    payload : PayloadChange or None
        The payload that explains the difference, if one does.
    """

    ratio: float
    joint: str
    errors: float
    p_value: float
    payload: PayloadChange | None

    @property
    def words(self) -> str:
        """The difference in words, without the name of the unit."""
        bodies = f"its bodies are not those of the other units: {self.ratio:.2g} times the usual difference"
        if self.payload is not None:
            return f"{bodies}, as by a payload of {self.payload.words}"
        if self.errors > self.ratio:
            bodies = f"the model explains the torques of {self.joint} {self.errors:.2g} times worse than in other units"
        return f"{bodies}; compare the order, signs, units and gains of its log, or its payload, with the others"


def unlike_units(
    units: Mapping[str, BodySeries],
    noise: Mapping[str, Array],
    channels: Sequence[str],
    columns: Array,
    link: str,
    mass: float,
    limit: float,
) -> dict[str, Unlike]:
    """Units whose bodies or errors of the torques differ from those of the others, by name.

    Parameters
    ----------
    units : mapping of str to BodySeries
        The dates of every unit before its bodies changed.
    noise : mapping of str to ndarray, shape (channel,)
        Standard deviation of the errors of the torques of every unit; NaN where there are none.
    channels : sequence of str
        Names of the channels.
    columns : ndarray, shape (k, 10)
        Columns of the base matrix of the inertial parameters of the link.
    link : str
        Link that a payload is on.
    mass : float
        Mass of the link in kg; a unit that is lighter by more than that does not miss a payload.
    limit : float
        p-value below which a unit is unlike the others.

    Returns
    -------
    dict of str to Unlike
    """
    if len(units) < _FEWEST:
        return {}
    whole = {unit: one.over(0, len(one.scores)) for unit, one in units.items()}
    names = list(whole)
    others = [names[k] for k in np.unique(np.linspace(0, len(names) - 1, _COMPARED).astype(int))]
    distance = {unit: _distance([between(whole[x], whole[unit])[1] for x in others if x != unit]) for unit in names}
    usual = max(float(np.median(list(distance.values()))), 1.0)
    errors = {unit: np.nan_to_num(x) for unit, x in _relative(noise).items()}
    squares = {unit: max(distance[unit] / usual, float(np.max(errors[unit])) ** 2) for unit in names}
    p = {unit: float(scipy.stats.f.sf(x * _MEDIAN, 1, len(names) - 1)) for unit, x in squares.items()}
    found = [unit for unit in names if p[unit] < limit]
    alike = [whole[unit] for unit in names if unit not in found]
    fleet = sum(n for n, _ in alike), sum(s for _, s in alike)
    out = {}
    for unit in found:
        root, whitened = between((np.asarray(fleet[0]), np.asarray(fleet[1])), whole[unit])
        rows, target = root @ columns / np.sqrt(usual), whitened / np.sqrt(usual)
        # The errors of the torques may be all that is said of a unit.
        load = fit_payload(rows, target, link) if np.any(rows) else None
        left = np.inf if load is None else float(np.mean((rows @ load.inertial - target) ** 2))
        explained = load is not None and left < _LEFT and load.mass > -mass
        worst = int(np.argmax(errors[unit]))
        out[unit] = Unlike(
            ratio=float(np.sqrt(distance[unit] / usual)),
            joint=channels[worst],
            errors=float(errors[unit][worst]),
            p_value=p[unit],
            payload=load if explained else None,
        )
    return out


def _relative(noise: Mapping[str, Array]) -> dict[str, Array]:
    """Noise of every unit relative to the median over all units."""
    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a channel that no unit measured
        usual = np.nanmedian(list(noise.values()), axis=0)
    return {unit: x / np.where(usual > 0, usual, np.inf) for unit, x in noise.items()}


def _distance(whitened: list[Array]) -> float:
    """Median of the mean squares, the lower one of an even number."""
    squares = sorted(float(np.mean(x**2)) if len(x) else 0.0 for x in whitened)
    return squares[(len(squares) - 1) // 2]
