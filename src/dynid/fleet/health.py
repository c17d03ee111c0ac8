"""Health of the units: which parameter changed, when, by how much, and whether temperature explains it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.calibration.loaded import load_columns
from dynid.errors import DataError
from dynid.fleet.bodies import (
    BodySeries,
    BodyStep,
    PayloadChange,
    between,
    body_steps,
    dispersion_of,
    fit_payload,
    payload_basis,
)
from dynid.fleet.entries import shown_date
from dynid.fleet.kinds import ParameterKind, kinds_of, owners_of
from dynid.fleet.scatter import Track, Variation, usable_temperature, variation_of
from dynid.fleet.series import Found, Line, fit_line, segments_of
from dynid.fleet.whitened import WhitenedEntry
from dynid.parameters.base import BaseParameters

__all__ = ["Change", "ChangeCode", "Drift", "Health", "TemperatureCode", "UnitCode", "UnitHealth", "fleet_health"]

Array = NDArray[np.float64]

_DAYS_PER_MONTH = 30.0


class ChangeCode(StrEnum):
    """What changed."""

    STEP = "step"
    DRIFT = "drift"
    PAYLOAD = "payload"
    BODY = "body"


class TemperatureCode(StrEnum):
    """Whether temperature may explain a change of friction."""

    SEPARATED = "not temperature"
    NOT_LOGGED = "temperature not logged"
    NOT_CONCERNED = "not concerned"


class UnitCode(StrEnum):
    """Verdict of a unit."""

    CHANGED = "changed"
    STEADY = "steady"
    TOO_SHORT = "too few dates"


@dataclass(frozen=True, eq=False)
class Change:
    """A significant change of one unit.

    Attributes
    ----------
    unit : str
        Name of the unit.
    code : ChangeCode
        What changed.
    date : str
        First date after the change; for a drift the date at which it starts.
    joint : str
        Joint of the parameter; for bodies the joint that moves the link.
    parameter : str
        Name of the base parameter; for bodies the name of the link.
    kind : ParameterKind or None
        Kind of the parameter; None for bodies.
    value, std : float
        Change and its standard deviation, in the unit of the parameter; for a payload its mass in kg; NaN for a body.
    before : float
        Value before the change; NaN for bodies.
    p_value : float
        p-value, corrected for all tests of the fleet.
    temperature : TemperatureCode
        Whether temperature may explain it.
    payload : PayloadChange or None
        The payload, compared with the dates since the change before.
    carried : PayloadChange or None
        The payload compared with the dates before the first change, where that is another one.
    """

    unit: str
    code: ChangeCode
    date: str
    joint: str
    parameter: str
    kind: ParameterKind | None
    value: float
    std: float
    before: float
    p_value: float
    temperature: TemperatureCode
    payload: PayloadChange | None = None
    carried: PayloadChange | None = None

    @property
    def relative(self) -> float:
        """Change relative to the value before; NaN where there is none."""
        return self.value / abs(self.before) if self.before else float("nan")

    @property
    def words(self) -> str:
        """The change in words."""
        if self.payload is not None:
            x = self.payload
            where = ", ".join(f"{c:.3f}" for c in x.centre)
            verb = "carries" if x.mass > 0 else "has lost"
            return (
                f"unit {self.unit} {verb} a payload of {abs(x.mass):.3g} kg (std {x.mass_std:.2g}) on {x.link} since "
                f"{self.date}, centre {where} m"
                + (
                    ""
                    if self.carried is None
                    else f"; {self.carried.mass:+.3g} kg (std {self.carried.mass_std:.2g}) in all"
                )
            )
        if self.code is ChangeCode.BODY:
            return f"bodies of unit {self.unit} changed on {self.date}, not by a payload on {self.parameter}"
        share = f" {100 * self.relative:+.0f} %" if np.isfinite(self.relative) else ""
        tail = "" if self.temperature is TemperatureCode.NOT_CONCERNED else f", {self.temperature.value}"
        how = "drifts" if self.code is ChangeCode.DRIFT else "changed"
        return (
            f"{self.joint} of unit {self.unit}: {self.kind}{share} since {self.date} "
            f"({how} by {self.value:+.3g}, std {self.std:.2g}){tail}"
        )

    def to_dict(self) -> dict[str, Any]:
        """All values as plain data."""
        return {
            "unit": self.unit,
            "code": self.code.value,
            "date": self.date,
            "joint": self.joint,
            "parameter": self.parameter,
            "kind": None if self.kind is None else self.kind.value,
            "change": _plain(self.value),
            "std": _plain(self.std),
            "before": _plain(self.before),
            "p_value": self.p_value,
            "temperature": self.temperature.value,
            "words": self.words,
        } | (
            {}
            if self.payload is None
            else {
                "mass": self.payload.mass,
                "mass_std": _plain(self.payload.mass_std),
                "centre": self.payload.centre.tolist(),
                "centre_std": [_plain(x) for x in self.payload.centre_std],
                "carried_mass": None if self.carried is None else self.carried.mass,
            }
        )


@dataclass(frozen=True)
class Drift:
    """Weighted regression of one parameter of one unit over time, with temperature taken out where it is logged.

    Attributes
    ----------
    unit, parameter : str
        Names of the unit and of the base parameter.
    per_month, std : float
        Change per 30 days and its standard deviation, in the unit of the parameter.
    """

    unit: str
    parameter: str
    per_month: float
    std: float


@dataclass(frozen=True, eq=False)
class UnitHealth:
    """Verdict of one unit.

    Attributes
    ----------
    unit : str
        Name of the unit.
    code : UnitCode
        Verdict.
    changes : tuple of Change
        Its changes, in order of time.
    dates : int
        Number of its entries.
    """

    unit: str
    code: UnitCode
    changes: tuple[Change, ...]
    dates: int

    @property
    def words(self) -> str:
        """The verdict in words."""
        if self.changes:
            return "; ".join(change.words for change in self.changes)
        if self.code is UnitCode.TOO_SHORT:
            return f"unit {self.unit}: {self.dates} date, too few to tell a change"
        return f"unit {self.unit}: no change over {self.dates} dates"


@dataclass(frozen=True, eq=False)
class Health:
    """Health of a fleet.

    Attributes
    ----------
    units : tuple of UnitHealth
        Verdicts, changed units first, the most significant change first.
    drifts : tuple of Drift
        Regression of every watched parameter of every unit over time.
    variations : dict of str to Variation
        Scatter and temperature effect of every watched parameter.
    rate : float
        Probability of any false alarm in the whole fleet.
    tests : int
        Number of series that were tested: units times watched parameters.
    link : str
        Link whose payload is watched.
    """

    units: tuple[UnitHealth, ...]
    drifts: tuple[Drift, ...]
    variations: dict[str, Variation]
    rate: float
    tests: int
    link: str

    @property
    def changes(self) -> tuple[Change, ...]:
        """All changes, unit by unit."""
        return tuple(change for unit in self.units for change in unit.changes)

    def __getitem__(self, unit: str) -> UnitHealth:
        """Verdict of one unit."""
        found = [x for x in self.units if x.unit == unit]
        if not found:
            raise DataError(f"no unit is named '{unit}', there are {', '.join(x.unit for x in self.units)}")
        return found[0]


def fleet_health(
    base: BaseParameters, entries: Sequence[WhitenedEntry], *, rate: float = 0.05, link: str | None = None
) -> Health:
    """Changes of every unit, with a stated probability of any false alarm in the whole fleet.

    Parameters
    ----------
    base : BaseParameters
        Base parameters of the robot.
    entries : sequence of WhitenedEntry
        What every entry says by itself.
    rate : float, default 0.05
        Probability of one false alarm or more over all units, parameters and dates, if nothing changed.
    link : str, optional
        Link whose payload is watched; by default the last one.

    Returns
    -------
    Health

    Raises
    ------
    DataError
        If the rate is not between 0 and 1, or the link carries no parameters.
    """
    if not 0.0 < rate < 1.0:
        raise DataError(f"the rate of false alarms must lie between 0 and 1, got {rate:g}")
    tool = link or base.robot.links[max(base.robot.parameter_links)].name
    columns = load_columns(base, tool)
    units: dict[str, list[WhitenedEntry]] = {}
    for one in sorted(entries, key=lambda e: (e.moment, e.name)):
        units.setdefault(one.unit, []).append(one)
    kinds, owners = kinds_of(base), owners_of(base)
    watched = [j for j, kind in enumerate(kinds) if not kind.of_body]
    bodies = np.array([j for j, kind in enumerate(kinds) if kind.of_body], dtype=np.intp)
    several = [unit for unit, mine in units.items() if len(mine) > 1]
    tests = len(several) * (len(watched) + 2 * bool(len(bodies)))
    found: dict[str, list[Change]] = {unit: [] for unit in units}
    drifts: list[Drift] = []
    variations: dict[str, Variation] = {}
    for j in watched:
        tracks = {unit: _track(base, units[unit], j, kinds[j], owners[j]) for unit in several}
        tracks = {unit: track for unit, track in tracks.items() if len(track.days) > 1}
        if not tracks:
            continue
        variation = variation_of(list(tracks.values()))
        variations[base.names[j]] = variation
        for unit, track in tracks.items():
            series = variation.series(track)
            line = fit_line(series)
            if line is not None:
                drifts.append(_drift(unit, base.names[j], line))
            moments = [e.moment for e in units[unit] if e.known[j]]
            for step in segments_of(series, rate / tests, variation.freedom):
                found[unit].append(_change(unit, base.names[j], kinds[j], owners[j], step, moments, track, tests))
    if len(bodies) and several:
        _body_changes(base, {u: units[u] for u in several}, bodies, columns, tool, rate / tests, tests, found)
    verdicts = [_verdict(unit, len(mine), found[unit]) for unit, mine in units.items()]
    verdicts.sort(key=lambda v: min((c.p_value for c in v.changes), default=2.0))
    return Health(tuple(verdicts), tuple(drifts), variations, rate, tests, tool)


def _track(base: BaseParameters, mine: Sequence[WhitenedEntry], j: int, kind: ParameterKind, owner: str) -> Track:
    used = [e for e in mine if e.known[j]]
    warm = None
    if kind.of_friction and owner in base.robot.coordinates:
        joint = base.robot.coordinates.index(owner)
        warm = usable_temperature(np.array([e.temperature[joint] for e in used]))
    return Track(
        np.array([_days(e.moment) for e in used]),
        np.array([e.beta[j] for e in used]),
        np.array([e.covariance[j, j] for e in used]),
        warm,
    )


def _days(moment: datetime) -> float:
    return (moment - datetime(2000, 1, 1)).total_seconds() / 86400.0


def _drift(unit: str, parameter: str, line: Line) -> Drift:
    return Drift(unit, parameter, _DAYS_PER_MONTH * line.slope, _DAYS_PER_MONTH * line.std)


def _change(
    unit: str,
    parameter: str,
    kind: ParameterKind,
    joint: str,
    step: Found,
    moments: Sequence[datetime],
    track: Track,
    tests: int,
) -> Change:
    temperature = TemperatureCode.NOT_CONCERNED
    if kind.of_friction:
        temperature = TemperatureCode.NOT_LOGGED if track.temperature is None else TemperatureCode.SEPARATED
    return Change(
        unit=unit,
        code=ChangeCode.DRIFT if step.drifts else ChangeCode.STEP,
        date=shown_date(moments[step.at]),
        joint=joint,
        parameter=parameter,
        kind=kind,
        value=step.change,
        std=step.std,
        before=step.before,
        p_value=min(1.0, step.p_value * tests),
        temperature=temperature,
    )


def _body_changes(
    base: BaseParameters,
    units: dict[str, list[WhitenedEntry]],
    bodies: NDArray[np.intp],
    columns: Array,
    link: str,
    limit: float,
    tests: int,
    found: dict[str, list[Change]],
) -> None:
    """Add the changes of the bodies of every unit.

    Bodies do not vary from date to date as friction does. What varies beyond noise is the effect of what the model
    lacks, which is taken to be proportional to the covariances.
    """
    basis = payload_basis(columns[bodies])
    series = {
        unit: BodySeries(
            np.array([e.beta[bodies] for e in mine]),
            np.array([e.covariance[np.ix_(bodies, bodies)] for e in mine]),
        )
        for unit, mine in units.items()
    }
    dispersion = dispersion_of(list(series.values()), basis)
    robot = base.robot
    joint = robot.joints[robot.link_index(link) - 1].name
    for unit, one in series.items():
        steps = body_steps(one, basis, dispersion, limit)
        edges = [*(step.at for step in steps), len(one.values)]
        for k, step in enumerate(steps):
            date = shown_date(units[unit][step.at].moment)
            change = _body_change(unit, step, columns[bodies], link, joint, date, tests)
            if k and change.payload is not None:
                since, spread = between(one, (0, steps[0].at), (step.at, edges[k + 1]))
                whole = fit_payload(since, spread * dispersion.payload, columns[bodies], link)
                change = replace(change, carried=whole)
            found[unit].append(change)


def _body_change(unit: str, step: BodyStep, columns: Array, link: str, joint: str, date: str, tests: int) -> Change:
    load = fit_payload(step.change, step.covariance, columns, link) if step.is_payload else None
    return Change(
        unit=unit,
        code=ChangeCode.BODY if load is None else ChangeCode.PAYLOAD,
        date=date,
        joint=joint,
        parameter=link,
        kind=None,
        value=float("nan") if load is None else load.mass,
        std=float("nan") if load is None else load.mass_std,
        before=float("nan"),
        p_value=min(1.0, tests * min(step.payload_p, step.rest_p)),
        temperature=TemperatureCode.NOT_CONCERNED,
        payload=load,
    )


def _verdict(unit: str, dates: int, changes: list[Change]) -> UnitHealth:
    code = UnitCode.CHANGED if changes else UnitCode.STEADY if dates > 1 else UnitCode.TOO_SHORT
    return UnitHealth(unit, code, tuple(sorted(changes, key=lambda c: (c.date, c.p_value))), dates)


def _plain(x: float) -> float | None:
    return float(x) if np.isfinite(x) else None
