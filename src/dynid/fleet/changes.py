"""The search for changes of the units, with a stated probability of any false alarm in the whole fleet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from dynid.errors import InvalidValue
from dynid.fleet.bodies import (
    BodySeries,
    BodyStep,
    between,
    body_steps,
    dispersion_of,
    fit_payload,
    payload_basis,
)
from dynid.fleet.entries import shown_date
from dynid.fleet.health import Change, ChangeCode, Drift, Health, TemperatureCode, UnitCode, UnitHealth
from dynid.fleet.kinds import ParameterKind, kinds_of, owners_of
from dynid.fleet.scatter import SWING, Track, Variation, usable_temperature, variation_of
from dynid.fleet.series import Found, Line, fit_line, segments_of
from dynid.fleet.unlike import Unlike, unlike_units
from dynid.fleet.whitened import WhitenedEntry
from dynid.parameters.base import BaseParameters
from dynid.parameters.loads import link_mass, load_columns

__all__ = ["fleet_health"]

Array = NDArray[np.float64]

_DAYS_PER_MONTH = 30.0
# Correlation of temperature and time from which a drift has three times the standard deviation that it has without.
_TOGETHER = 0.95


def fleet_health(
    base: BaseParameters,
    entries: Sequence[WhitenedEntry],
    *,
    even: Sequence[WhitenedEntry] | None = None,
    rate: float = 0.05,
    link: str | None = None,
) -> Health:
    """Changes of every unit, with a stated probability of any false alarm in the whole fleet.

    Parameters
    ----------
    base : BaseParameters
        Base parameters of the robot.
    entries : sequence of WhitenedEntry
        What every entry says by itself.
    even : sequence of WhitenedEntry, optional
        The same with the gains of the units taken out, by which units are compared with each other.
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
        raise InvalidValue(f"the rate of false alarms must lie between 0 and 1, got {rate:g}", "rate")
    tool = link or base.robot.links[max(base.robot.parameter_links)].name
    columns = load_columns(base, tool)
    units = _by_unit(entries)
    kinds, owners = kinds_of(base), owners_of(base)
    watched = [j for j, kind in enumerate(kinds) if not kind.of_body]
    bodies = np.array([j for j, kind in enumerate(kinds) if kind.of_body], dtype=np.intp)
    several = [unit for unit, mine in units.items() if len(mine) > 1]
    tests = len(several) * (len(watched) + 2 * bool(len(bodies))) + 2 * len(units) * bool(len(bodies))
    found: dict[str, list[Change]] = {unit: [] for unit in units}
    drifts: list[Drift] = []
    variations: dict[str, Variation] = {}
    for j in watched:
        used = {unit: _used(base, units[unit], j, kinds[j], owners[j]) for unit in several}
        tracks = {unit: _track(mine, j, warm) for unit, (mine, warm) in used.items() if len(mine) > 1}
        if not tracks:
            continue
        variation = variation_of(list(tracks.values()))
        variations[base.names[j]] = variation
        for unit, track in tracks.items():
            series = variation.series(track)
            line = fit_line(series)
            if line is not None:
                drifts.append(_drift(unit, base.names[j], line))
            mine, warm = used[unit]
            moments = [e.moment for e in mine]
            for step in segments_of(series, rate / tests, variation.freedom):
                found[unit].append(_change(unit, base.names[j], kinds[j], owners[j], step, moments, warm, tests))
    unlike: dict[str, Unlike] = {}
    if len(bodies):
        if several:
            _body_changes(base, {u: units[u] for u in several}, bodies, columns, tool, rate / tests, tests, found)
        unlike = _unlike(base, _by_unit(even or entries), found, bodies, columns[bodies], tool, rate / tests, tests)
    together = {unit: _together(base, mine) for unit, mine in units.items()}
    alone = any(v.temperature is not None and np.isinf(v.temperature.between) for v in variations.values())
    verdicts = [
        _verdict(unit, len(mine), found[unit], unlike.get(unit), together[unit] if alone else ())
        for unit, mine in units.items()
    ]
    verdicts.sort(key=lambda v: v.p_value)
    notes = (*(() if alone else _common_wear(together)), *_without_temperature(base, units))
    return Health(tuple(verdicts), tuple(drifts), variations, rate, tests, tool, notes)


def _by_unit(entries: Sequence[WhitenedEntry]) -> dict[str, list[WhitenedEntry]]:
    """Entries of every unit in order of time."""
    out: dict[str, list[WhitenedEntry]] = {}
    for one in sorted(entries, key=lambda e: (e.moment, e.name)):
        out.setdefault(one.unit, []).append(one)
    return out


def _together(base: BaseParameters, mine: Sequence[WhitenedEntry]) -> tuple[str, ...]:
    """Joints with friction of a unit whose temperature goes together with time."""
    out = []
    for joint in _friction_joints(base):
        used, warm = _with_temperature(mine, base.robot.coordinates.index(joint))
        days = np.array([_days(e.moment) for e in used])
        varying = None if warm is None else usable_temperature(warm)
        if varying is not None and np.ptp(days) > 0 and abs(np.corrcoef(days, varying)[0, 1]) > _TOGETHER:
            out.append(joint)
    return tuple(out)


def _friction_joints(base: BaseParameters) -> list[str]:
    """Joints with friction."""
    pairs = zip(kinds_of(base), owners_of(base), strict=True)
    return list(dict.fromkeys(o for kind, o in pairs if kind.of_friction and o in base.robot.coordinates))


def _with_temperature(mine: Sequence[WhitenedEntry], joint: int) -> tuple[list[WhitenedEntry], Array | None]:
    """Entries with the temperature of a joint, and the temperatures; all of them and None where most have none."""
    logged = [e for e in mine if np.isfinite(e.temperature[joint])]
    if 2 * len(logged) <= len(mine):
        return list(mine), None
    return logged, np.array([e.temperature[joint] for e in logged])


def _without_temperature(base: BaseParameters, units: dict[str, list[WhitenedEntry]]) -> tuple[str, ...]:
    """A sentence per unit of which recordings are left out since others have a temperature."""
    out = []
    for unit, mine in units.items():
        used = {j: _with_temperature(mine, base.robot.coordinates.index(j))[0] for j in _friction_joints(base)}
        fewest = min(used.values(), key=len, default=mine)
        if len(fewest) < len(mine):
            joints = ", ".join(j for j, some in used.items() if len(some) < len(mine))
            out.append(
                f"unit {unit}: {len(mine) - len(fewest)} of {len(mine)} recordings have no temperature and say nothing "
                f"about the friction of {joints} here"
            )
    return tuple(out)


def _common_wear(together: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """A sentence where temperature and time go together in most units, so that their common wear looks like warmth."""
    count = Counter(joint for joints in together.values() for joint in joints)
    joints = [joint for joint, n in count.items() if 2 * n > len(together)]
    if not joints:
        return ()
    return (
        f"temperature and time go together in most units at {', '.join(joints)}: wear that is common to all units "
        "cannot be told from temperature",
    )


def _unlike(
    base: BaseParameters,
    units: dict[str, list[WhitenedEntry]],
    found: dict[str, list[Change]],
    bodies: NDArray[np.intp],
    columns: Array,
    link: str,
    limit: float,
    tests: int,
) -> dict[str, Unlike]:
    """Units whose bodies are not those of the others, over their dates before a change of bodies."""
    mass = link_mass(base.robot, link)
    noise = {unit: np.median([e.noise for e in mine], axis=0) for unit, mine in units.items()}
    series = {}
    for unit, mine in units.items():
        first = min((c.date for c in found[unit] if c.kind is None), default=None)
        # A change between two recordings of the first date leaves the first recording.
        before = [e for e in mine if first is None or shown_date(e.moment) < first] or mine[:1]
        series[unit] = BodySeries.of_rows([e.rows for e in before], [e.target for e in before], bodies)
    out = unlike_units(series, noise, base.channels, columns, link, mass, limit)
    return {unit: replace(one, p_value=min(1.0, one.p_value * tests)) for unit, one in out.items()}


def _used(
    base: BaseParameters, mine: Sequence[WhitenedEntry], j: int, kind: ParameterKind, owner: str
) -> tuple[list[WhitenedEntry], Array | None]:
    """Entries that show a parameter, and the temperatures where it is friction and they are logged."""
    shown = [e for e in mine if e.known[j]]
    if kind.of_friction and owner in base.robot.coordinates:
        return _with_temperature(shown, base.robot.coordinates.index(owner))
    return shown, None


def _track(used: Sequence[WhitenedEntry], j: int, temperature: Array | None) -> Track:
    return Track(
        np.array([_days(e.moment) for e in used]),
        np.array([e.beta[j] for e in used]),
        np.array([e.covariance[j, j] for e in used]),
        None if temperature is None else usable_temperature(temperature),
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
    warm: Array | None,
    tests: int,
) -> Change:
    temperature = TemperatureCode.NOT_CONCERNED
    if kind.of_friction:
        temperature = TemperatureCode.NOT_LOGGED
        if warm is not None:
            told = usable_temperature(warm) is not None or np.ptp(warm) < SWING
            temperature = TemperatureCode.SEPARATED if told else TemperatureCode.NOT_SEPARATED
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

    Bodies do not vary from date to date as friction does. What varies beyond noise is the effect of what is not
    modeled, which is taken to be proportional to the covariances.
    """
    basis = payload_basis(columns[bodies])
    series = {
        unit: BodySeries.of_rows([e.rows for e in mine], [e.target for e in mine], bodies)
        for unit, mine in units.items()
    }
    dispersion = dispersion_of(list(series.values()), basis)
    robot = base.robot
    joint = robot.joints[robot.link_index(link) - 1].name
    for unit, one in series.items():
        steps = body_steps(one, basis, dispersion, limit)
        edges = [*(step.at for step in steps), len(one.scores)]
        for k, step in enumerate(steps):
            date = shown_date(units[unit][step.at].moment)
            change = _body_change(unit, step, columns[bodies], link, joint, date, limit, tests)
            if k and change.payload is not None:
                root, since = between(one.over(0, steps[0].at), one.over(step.at, edges[k + 1]))
                wider = np.sqrt(dispersion.payload)
                whole = fit_payload(root @ columns[bodies] / wider, since / wider, link)
                change = replace(change, carried=whole)
            found[unit].append(change)


def _body_change(
    unit: str, step: BodyStep, columns: Array, link: str, joint: str, date: str, limit: float, tests: int
) -> Change:
    load = fit_payload(step.root @ columns, step.whitened, link) if step.is_payload else None
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
        more=load is not None and step.rest_p < limit,
    )


def _verdict(
    unit: str, dates: int, changes: list[Change], unlike: Unlike | None, untested: tuple[str, ...]
) -> UnitHealth:
    code = UnitCode.STEADY if dates > 1 else UnitCode.TOO_SHORT
    if changes:
        code = UnitCode.CHANGED
    elif unlike is not None:
        code = UnitCode.UNLIKE
    return UnitHealth(unit, code, tuple(sorted(changes, key=lambda c: (c.date, c.p_value))), dates, unlike, untested)
