"""Can an identified fleet be trusted?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.verdict.assessment import Assessment, Check, CheckCode
from dynid.assessment.verdict.grade import graded, listed, unchecked
from dynid.fleet.health import TemperatureCode, UnitCode
from dynid.fleet.result import FleetEstimate

__all__ = ["assess_fleet"]

Array = NDArray[np.float64]

# Dates of a unit from which a drift and a step can be told apart.
_DATES = 4


def assess_fleet(result: FleetEstimate) -> Assessment:
    """Assess an identified fleet.

    Parameters
    ----------
    result : FleetEstimate
        What was identified.

    Returns
    -------
    Assessment
        The verdict and its checks.
    """
    return Assessment(
        result.base.robot.name,
        "fleet",
        (
            _judged(result),
            _unlike(result),
            _dates(result),
            _left_out(result),
            _temperature(result),
            _shared_known(result),
            _unit_scatter(result),
        ),
    )


def _judged(found: FleetEstimate) -> Check:
    """Units with too few dates to tell a change."""
    short = [u.unit for u in found.health.units if u.code is UnitCode.TOO_SHORT]
    share = len(short) / len(found.units)
    words = "every unit can be judged"
    if short:
        words = f"{len(short)} of {len(found.units)} units have too few dates to be judged: {listed(short)}"
    return graded(CheckCode.UNITS, share, 0.0, 0.99, "of the units", words, "record these units on more dates")


def _unlike(found: FleetEstimate) -> Check:
    """Units whose bodies are not those of the others, which take no part in the common model."""
    code = CheckCode.PARAMETER_AGREEMENT
    if len(found.units) < 3:
        return unchecked(code, "a unit is compared with the others from three units on")
    unlike = [u.unit for u in found.health.units if u.unlike is not None]
    words = "the units are alike"
    if unlike:
        words = f"{len(unlike)} of {len(found.units)} units are unlike the others: {listed(unlike)}"
    advice = "compare joint order, units, gains and payload of these units"
    return graded(code, len(unlike) / len(found.units), 0.0, 0.5, "of the units", words, advice)


def _dates(found: FleetEstimate) -> Check:
    """The number of recordings behind a verdict on a unit."""
    dates = float(np.median([u.dates for u in found.health.units]))
    words = f"half of the units have {dates:g} dates or fewer, from {len(found.entries)} recordings"
    code, unit = CheckCode.RECORDING_LENGTH, "dates, median over the units"
    if dates >= _DATES:
        return Check(code, "passed", words, dates, _DATES, None, unit)
    advice = f"record each unit on {_DATES} dates or more: with fewer, a drift is not told from a step"
    return Check(code, "warned", words, dates, _DATES, None, unit, advice)


def _left_out(found: FleetEstimate) -> Check:
    share = found.left_out / max(found.left_out + len(found.entries), 1)
    words = "every recording was used"
    if found.left_out:
        words = f"{found.left_out} of {found.left_out + len(found.entries)} recordings could not be used"
    return graded(CheckCode.DATA, share, 0.0, 0.5, "of the recordings", words, "mend or remove these recordings")


def _temperature(found: FleetEstimate) -> Check:
    """Changes of friction that may be warmth."""
    vague = (TemperatureCode.NOT_LOGGED, TemperatureCode.NOT_SEPARATED)
    doubted = [c.unit for c in found.health.changes if c.temperature in vague]
    doubted = list(dict.fromkeys([*doubted, *(u.unit for u in found.health.units if u.untested)]))
    if not doubted:
        return Check(CheckCode.TEMPERATURE, "passed", "no change of friction may be temperature")
    words = f"friction of {listed(doubted)} may have changed with temperature only"
    advice = "log the temperature of the joints (temperature_JOINT), warm and cold"
    return Check(CheckCode.TEMPERATURE, "warned", words, advice=advice)


def _shared_known(found: FleetEstimate) -> Check:
    """Whether the recordings determine what all units share."""
    code, unit = CheckCode.UNCERTAINTY, "of the common parameters"
    if not found.shared_names:
        return unchecked(code, "the units share no parameter")
    lost = [
        n
        for n, x in zip(found.shared_names, np.diag(found.shared.shared_covariance), strict=True)
        if not np.isfinite(x)
    ]
    words = "the recordings determine every common parameter"
    if lost:
        words = f"no recording determines {listed(lost)}"
    return graded(code, len(lost) / len(found.shared_names), 0.0, 0.99, unit, words, "record motion of all joints")


def _unit_scatter(found: FleetEstimate) -> Check:
    """How far units differ by nature, and what decides on them: their own recordings or the fleet."""
    code = CheckCode.FLEET_SCATTER
    if found.pooled is None:
        return unchecked(code, "a fleet of one unit has no scatter")
    variance = np.diagonal(found.pooled.covariance, axis1=1, axis2=2)
    between = found.pooled.variance
    share = float(np.median(np.clip(1.0 - variance / np.maximum(between, 1e-300), 0.0, 1.0)))
    who = "their own recordings decide" if share > 0.5 else "the mean of the fleet decides"
    words = f"{who} on the parameters of single units, which are told apart for {100 * share:.0f} % of their scatter"
    return Check(code, "passed", words, share, None, None, "of the variance between units")
